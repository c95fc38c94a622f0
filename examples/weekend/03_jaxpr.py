# %% [markdown]
# # 3. A jaxpr
#
# *What does JAX see of my function?*
#
# It sees a list of equations: which primitives were applied, to which values, in which order. Names,
# loops and functions of Python are gone. This list is called a *jaxpr*, and it is the one form of a
# program that everything in this book reads or writes.

# %%
import math

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax


def norm(x):
    total = 0.0
    for i in range(2):
        total = total + x[i] * x[i]
    return jnp.sqrt(total)


print(jax.make_jaxpr(norm)(jnp.ones(2)))

# %% [markdown]
# Read it like this. `lambda ; a:f32[2]` names the inputs, `let` begins the equations, `in` the
# outputs. The loop has been unrolled, because Python ran it. Each equation is one primitive; square
# brackets hold its parameters, which are no arrays.
#
# `explain` shows the same program with the line that each equation comes from:

# %%
for line in explain(norm, jnp.ones(2), compile=False)["jaxpr"].lines:
    print(line.text.ljust(70), line.where)

# %% [markdown]
# ## The data structure
#
# There is little to it. A program has constants, inputs, outputs and equations:

# %%
place = explain.where("minijax.core.jaxpr.Jaxpr.__init__")
print(place, place.source, sep="\n")

# %% [markdown]
# A *closed* jaxpr is one with the values of its constants. `make_jaxpr` returns such a one, and its
# parts can be looked at:

# %%
closed = jax.make_jaxpr(norm)(jnp.ones(2))
for eqn in closed.jaxpr.eqns[-2:]:
    types = ", ".join(str(var.aval) for var in eqn.invars)
    print(f"{eqn.primitive}({types}) -> {eqn.outvars[0].aval}")

# %% [markdown]
# ## How it is recorded
#
# A trace of its own kind, as in chapter 2. For each primitive it asks for the type of the result,
# makes a variable of that type, appends one equation, and returns a tracer for the variable.

# %%
place = explain.where("minijax.core.staging.JaxprTrace.record")
print(place, place.source, sep="\n")

# %% [markdown]
# Nothing is computed. That is why recording needs only shapes and dtypes, and why a function may be
# recorded for arrays that would not fit into memory:

# %%
huge = jax.ShapeDtypeStruct((1_000_000, 1_000_000), jnp.float32)
print(jax.make_jaxpr(lambda a: (a @ a).sum())(huge))

# %% [markdown]
# ## How it is run
#
# An interpreter of jaxprs is a loop with a dictionary. This one binds each primitive again, so that
# it works under every transform; it is how programs inside of programs are transformed.

# %%
place = explain.where("minijax.core.jaxpr.eval_jaxpr")
print(place, place.source, sep="\n")

# %% [markdown]
# ## What is not seen
#
# What Python does leaves no equation: it happens once, while the program is recorded.


# %%
def impure(x):
    print("this line runs while the function is recorded")
    return x + 1


program = jax.jit(impure)
program(1.0)
program(2.0)  # silent

# %% [markdown]
# ## Exercise 1
#
# Write an interpreter that runs a jaxpr with Python's own `math` in place of XLA, for the primitives
# `sin`, `mul` and `add`.

# %%
RULES = {"sin": math.sin, "mul": lambda x, y: x * y, "add": lambda x, y: x + y}


def evaluate(closed, *args):
    values = dict(zip(closed.jaxpr.invars, args))

    def read(atom):
        return atom.val if hasattr(atom, "val") else values[atom]  # a literal has its value

    for eqn in closed.jaxpr.eqns:
        values[eqn.outvars[0]] = RULES[eqn.primitive.name](*map(read, eqn.invars))
    return [read(atom) for atom in closed.jaxpr.outvars]


def f(x):
    return lax.sin(x) * x + 1.0


(found,) = evaluate(jax.make_jaxpr(f)(2.0), 2.0)
assert abs(found - float(f(2.0))) < 1e-6

# %% [markdown]
# ## Exercise 2
#
# Count the equations of `jnp.where(x > 0, x, 0.0)`. Then count those of its gradient with respect to
# `x`. Is the comparison computed again?


# %%
def relu(x):
    return jnp.where(x > 0, x, 0.0)


def names(f, *args):
    return [eqn.primitive.name for eqn in jax.make_jaxpr(f)(*args).jaxpr.eqns]


print(names(relu, 1.0), names(jax.grad(relu), 1.0))
assert names(jax.grad(relu), 1.0).count("gt") == 1

# %% [markdown]
# ## Exercise 3
#
# `explain.to_python` turns a jaxpr back into source. Run what it gives, and compare.

# %%
source = str(explain.to_python(norm, jnp.ones(2)))
print(source)
space = {}
exec(source, space)
assert jnp.allclose(space["norm"](jnp.array([3.0, 4.0])), 5.0)

# %% [markdown]
# ## Read on
#
# `core/jaxpr.py` has the data structure, the interpreter and the removal of dead code;
# `core/staging.py` has the trace that records. `PartialTrace` at its end records only what depends
# on its own tracers: chapter 5 is built on it.
