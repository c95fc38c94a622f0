# %% [markdown]
# # 7. jit and StableHLO
#
# *What does `jit` do when I call a function, and why does it sometimes do it again?*
#
# It records the function as a jaxpr, writes that as a module of StableHLO (the language that XLA
# reads), has it compiled, and runs it. All but the last is kept. It is done again when a call
# differs in something that the program depends on: a shape, a dtype, the structure of the
# arguments, or the value of a static argument.

# %%
import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import explain


@jax.jit
def step(w, x):
    return jnp.tanh(x @ w).sum()


w, x = jnp.ones((3, 2)), jnp.ones((4, 3))
page = explain(step, w, x)
for stage in page.stages:
    print(stage.name.ljust(24), len(stage.lines), "lines")

# %% [markdown]
# ## From equations to text
#
# Lowering is a loop over the equations. Each primitive has a rule that writes one operation, or
# a few. `Builder.op` writes the line.

# %%
for name in ("jaxpr", "eqn", "op"):
    place = explain.where(f"minijax.lowering.module.Builder.{name}")
    print(place, place.source, sep="\n")

# %%
print(page["StableHLO"].text)

# %% [markdown]
# ## What XLA makes of it
#
# XLA fuses operations into loops, so that a value in between need not go through memory. What it
# runs is the program below. It names the lines of the source, too.

# %%
for line in page["optimised HLO"].lines:
    print(line.text[:88].ljust(90), line.where)

# %% [markdown]
# ## The call
#
# A call whose program is known has a path of its own, with one look-up in a dictionary; the function
# quoted here is for all others. It flattens the arguments, makes arrays of them, looks for a
# program by their signatures (chapter 1), and traces and compiles if there is none.

# %%
place = explain.where("minijax.transforms.jit.PjitFunction._call")
print(place, place.source, sep="\n")

# %% [markdown]
# ## Within another transform
#
# `jit` within `grad` or `vmap` is a primitive like others. Its parameter is a jaxpr, and its rules
# transform that jaxpr: the derivative of a compiled function is a compiled function.

# %%
print(jax.make_jaxpr(jax.grad(step))(w, x))
place = explain.where("minijax.transforms.call_rules.calls_program")
print(place, *place.source.splitlines()[:26], sep="\n")

# %% [markdown]
# ## Exercise 1
#
# How often is this function traced by the five calls? Predict first.

# %%
traced = []


@jax.jit
def f(x):
    traced.append(x.aval)
    return x + 1


f(jnp.zeros(3))
f(jnp.ones(3))  # the same type
f(jnp.ones(4))  # another shape
f(np.ones(3, np.float32))  # NumPy's, of the first type
f(1.0)  # weakly typed
print(f.explain_cache())
assert len(traced) == 3

# %% [markdown]
# ## Exercise 2
#
# `jit(lambda x: ...)` within a Python loop compiles in every iteration, since each lambda is a new
# function. Mend this one.

# %%
count = []


def slow(values):
    return [jax.jit(lambda x: count.append(1) or x * 2)(v) for v in values]


slow([1.0, 2.0, 3.0])
assert len(count) == 3

count.clear()
double = jax.jit(lambda x: count.append(1) or x * 2)
assert [float(double(v)) for v in [1.0, 2.0, 3.0]] == [2.0, 4.0, 6.0] and len(count) == 1

# %% [markdown]
# ## Exercise 3
#
# A static argument may have any value that can be hashed, and may be used in an `if`. What does each
# new value cost?

# %%
traced.clear()


@jax.jit(static_argnames="power")
def raised(x, power):
    traced.append(power)
    return x**power if power > 0 else x


assert raised(3.0, power=2) == 9.0 and raised(3.0, power=0) == 3.0 and raised(5.0, power=2) == 25.0
assert traced == [2, 0]  # one tracing and one compilation

# %% [markdown]
# ## Read on
#
# `transforms/tracing.py` and `transforms/jit.py`, then `transforms/cached_calls.py` for the path of
# known calls; `lowering/module.py` for the text. `core/caches.py` says where programs are kept and
# when they are forgotten.
