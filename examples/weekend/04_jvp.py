# %% [markdown]
# # 4. jvp
#
# *How can a computer differentiate my code, if it neither does algebra nor takes small steps?*
#
# It carries two numbers where the program has one: the value, and how fast the value changes. For
# each primitive there is a rule that says how the second number follows; the chain rule is that the
# results of one rule are the inputs of the next.

# %%
import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax


def f(x):
    return jnp.sin(x) * x


value, rate = jax.jvp(f, (2.0,), (1.0,))
print(value, rate, "by hand:", np.sin(2.0) + 2.0 * np.cos(2.0))

# %% [markdown]
# The value is called the *primal*, its rate of change the *tangent*, and the transform a
# Jacobian-vector product: of a function from n numbers to m numbers, with Jacobian matrix J, it
# computes J v for a vector v, without J.
#
# ## A rule
#
# The derivative of `sin` is one line of the table in which `sin` is defined:

# %%
for row in explain.primitive("sin").rows:
    print(row.column.ljust(10), row.place or f"none: {row.reason}")

place = explain.where("minijax.lax.transcendental.sin_p")
print(place, place.source, sep="\n")

# %% [markdown]
# In `lambda t, out, x`, `t` is the tangent of the operand, `out` the result, `x` the operand. The rule
# is written with primitives, and that matters: they are bound in the trace further out, so that rules
# can be differentiated, batched or compiled in their turn.
#
# ## The interpreter
#
# A tracer holds a primal and a tangent. The trace takes them apart, makes its parent current, and
# applies the rule:

# %%
for name in ("process", "apply", "pair"):
    place = explain.where(f"minijax.transforms.jvp.JVPTrace.{name}")
    print(place, place.source, sep="\n")

# %% [markdown]
# `pair` returns the bare primal where the tangent is a symbolic zero. A constant therefore never
# becomes a tracer, and no time is spent on multiplying by zero.
#
# ## What it made of our function
#
# For each equation `explain` says which rule made it:


# %%
def rate_of_f(x, t):
    return jax.jvp(f, (x,), (t,))[1]


for line in explain(rate_of_f, 2.0, 1.0, compile=False)["jaxpr"].lines:
    print(line.text.ljust(40), line.made)

# %% [markdown]
# ## Twice
#
# The second derivative needs nothing new. The inner `jvp` is a function, the outer one calls it, and
# the rules of the inner trace bind their primitives in the outer one.


# %%
def derivative(f):
    return lambda x: jax.jvp(f, (x,), (1.0,))[1]


print([float(g(0.5)) for g in (lax.sin, derivative(lax.sin), derivative(derivative(lax.sin)))])
print(np.sin(0.5), np.cos(0.5), -np.sin(0.5))

# %% [markdown]
# ## Exercise 1
#
# Forward mode fits in twenty lines. Write a class of dual numbers that can add, multiply and take
# the sine, and compare it with `jax.jvp`.


# %%
class Dual:
    def __init__(self, primal, tangent):
        self.primal, self.tangent = primal, tangent

    def __add__(self, other):
        return Dual(self.primal + other.primal, self.tangent + other.tangent)

    def __mul__(self, other):
        tangent = self.tangent * other.primal + self.primal * other.tangent
        return Dual(self.primal * other.primal, tangent)


def sine(x):
    return Dual(np.sin(x.primal), np.cos(x.primal) * x.tangent)


x = Dual(2.0, 1.0)
assert np.isclose((sine(x) * x).tangent, rate, rtol=1e-6)

# %% [markdown]
# ## Exercise 2
#
# A function of three inputs has a gradient of three entries. How many calls of `jvp` do they take?


# %%
def g(x):
    return jnp.sum(x**2)


x = jnp.array([1.0, 2.0, 3.0])
gradient = [float(jax.jvp(g, (x,), (unit,))[1]) for unit in jnp.eye(3)]  # one call for each input
assert gradient == [2.0, 4.0, 6.0]

# %% [markdown]
# A million inputs would take a million calls. Chapter 5 does it in one.
#
# ## Exercise 3
#
# What is the derivative of `jnp.floor` here, and why is no error raised?

# %%
assert jax.grad(jnp.floor)(1.5) == 0.0  # it is flat wherever it is smooth, and the rule says so

# %% [markdown]
# ## Read on
#
# `transforms/jvp.py`: the parts quoted here, then `jvp_jaxpr`, which transforms a whole program.
# `transforms/tangents.py` has the symbolic zeros. The rules of all primitives are listed by
# `explain.rules("jvp")`.
