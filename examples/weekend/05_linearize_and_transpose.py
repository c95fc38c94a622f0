# %% [markdown]
# # 5. linearize and transpose
#
# *How does `grad` get a million derivatives for the price of a few function calls?*
#
# In two steps. The derivative of a function at a point is a linear map. First that map is recorded as
# a program of its own (*linearize*). Then the program is turned around, so that it maps a change of
# the output back to the inputs (*transpose*). This is reverse mode, or backpropagation.

# %%
import minijax as jax
import minijax.numpy as jnp
from minijax import explain


def f(x, y):
    return jnp.sin(x) * y


value, linear = jax.linearize(f, 2.0, 3.0)
print(value, linear(1.0, 0.0), linear(0.0, 1.0))

# %% [markdown]
# ## Linearize
#
# `linear` is a program. It has no sine in it: `cos(2.0)` and `sin(2.0)` were computed when the
# function was linearized, and are constants now. Such constants are called *residuals*, and they
# are the memory that training a network needs.

# %%
print(jax.make_jaxpr(linear)(1.0, 1.0))

# %% [markdown]
# No new rules are needed for this. The trace is the one of chapter 4; only its parent is another
# one, which evaluates what depends on primals alone and records what depends on tangents. This is
# the whole function:

# %%
place = explain.where("minijax.transforms.linearize.linearize_flat")
print(place, place.source, sep="\n")

# %% [markdown]
# and this is how the parent tells the two apart:

# %%
place = explain.where("minijax.core.staging.PartialTrace")
print(place, place.source, sep="\n")

# %% [markdown]
# ## Transpose
#
# A linear program computes J v. Transposed it computes w J: given how much we care about each
# output (a *cotangent*), how much do we care about each input? Each equation has to be linear in
# what is not known, and each primitive that can occur there has a transpose rule. These are the
# places of some. `sin` has none, because no linear program contains it.

# %%
for name in ("mul", "add", "neg", "reduce_sum", "dot_general", "sin"):
    for row in explain.primitive(name).rows:
        if row.column == "transpose":
            print(name.ljust(12), row.place or f"none: {row.reason}")

# %% [markdown]
# The pass itself goes through the equations from the last to the first. `pending` holds, for each
# variable, the sum of the cotangents that have come to it so far.

# %%
for name in ("backward_pass", "transpose_equation"):
    place = explain.where(f"minijax.transforms.transpose.{name}")
    print(place, place.source, sep="\n")

# %% [markdown]
# ## Both together
#
# `grad` of a function is: linearize, transpose, start with the cotangent 1. `explain` names, for
# each equation, the rule that made it; behind the arrow stands the equation that was transposed.

# %%
for line in explain(jax.grad(f), 2.0, 3.0, compile=False)["jaxpr"].lines:
    print(line.text.ljust(36), line.made)

# %% [markdown]
# The reason for the price: the linear program has about as many equations as the function, and the
# transposed one about as many as that, however many inputs there are.
#
# ## Exercise 1
#
# Reading a value twice is a copy, and copying is linear. What is the transpose of a copy?

# %%
_, back = jax.vjp(lambda x: (x, x), 1.0)
assert back((3.0, 4.0)) == (7.0,)  # addition: the cotangents of all readers are summed

# %% [markdown]
# ## Exercise 2
#
# For a matrix A, `jax.linear_transpose` of `x -> A x` has to be multiplication by the transposed
# matrix. Check the identity that defines a transpose, (A x) · w = x · (Aᵀ w), for some x and w.

# %%
A = jnp.arange(6.0).reshape(2, 3)
x, w = jnp.array([1.0, 2.0, 3.0]), jnp.array([5.0, 7.0])
(pulled,) = jax.linear_transpose(lambda x: A @ x, x)(w)
assert jnp.dot(A @ x, w) == jnp.dot(x, pulled)
assert (pulled == A.T @ w).all()

# %% [markdown]
# ## Exercise 3
#
# Which residuals does the gradient of `jnp.sin(jnp.sin(x))` keep? Guess, then look at the constants
# of the linear program.

# %%
n = 1000
_, linear = jax.linearize(lambda x: jnp.sin(jnp.sin(x)), jnp.ones(n))
residuals = jax.make_jaxpr(linear)(jnp.ones(n)).consts
assert [r.shape for r in residuals] == [(n,), (n,)]  # cos(x) and cos(sin(x))

# %% [markdown]
# ## Read on
#
# `transforms/linearize.py` and `transforms/transpose.py`; then `transforms/grad.py`, in which `vjp`,
# `grad` and `linearize` of functions of pytrees are put together from what was quoted here.
