# %% [markdown]
# # 10. Your own primitive
#
# *What is the least that I must write to add an operation that XLA has and JAX has not shown me?*
#
# A name and a rule for each interpreter that is to know it. A rule that is missing is an error only
# once somebody asks for it, so one can begin with two. As an example we add the cube root, which
# StableHLO has as `stablehlo.cbrt`, as if it were not there.

# %%
import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax
from minijax.core.primitive import Primitive, no_rule

root_p = Primitive("root")

# %% [markdown]
# ## Two rules: its type, and its lowering
#
# The rule of the type takes avals and returns the aval of the result. The lowering rule takes a
# builder (chapter 7) and values, and returns a value.


# %%
@root_p.shape_rule
def _(x):
    return x


@root_p.lower
def _(b, x):
    return b.op("stablehlo.cbrt", (x,), b.out)


x = jnp.array([1.0, 8.0, 27.0])
print(root_p.bind(x))
print(jax.make_jaxpr(root_p.bind)(x))
print(jax.jit(lambda x: root_p.bind(x) + 1.0)(x))

# %% [markdown]
# The interpreters that have no rule yet say what to add:

# %%
for transform in (jax.grad, jax.vmap):
    try:
        transform(root_p.bind)(8.0 if transform is jax.grad else x)
    except NotImplementedError as error:
        print(error)

# %% [markdown]
# ## The derivative
#
# y = x^(1/3) has the derivative y / (3 x). The rule is written with primitives, its own among them;
# so second derivatives need nothing more.


# %%
@root_p.jvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    y = root_p.bind(x)
    return y, t * y / (3.0 * x)


print(jax.grad(root_p.bind)(8.0), jax.grad(jax.grad(root_p.bind))(8.0))

# %% [markdown]
# Reverse mode works as well, without a rule of ours: the tangent passes a multiplication and a
# division, which have transposes. `root` itself is never in a linear program. To say so is better
# than to leave the place empty:

# %%
root_p.rule_transpose = no_rule("it is not linear in its operand")

# %% [markdown]
# ## The batching rule
#
# An operation on elements does not care which axis is the batch's:


# %%
@root_p.batch
def _(args, dims):
    return root_p.bind(*args), dims[0]


print(jax.vmap(jax.grad(root_p.bind))(x))
for row in explain.primitive("root").rows:
    print(row.column.ljust(10), row.place or f"none: {row.reason}")

# %% [markdown]
# ## As one line of data
#
# Most primitives of this package are operations on elements. Their rules are alike, and one
# function makes them from a table:

# %%
place = explain.where("minijax.lax.rules.elementwise")
print(place, place.source, sep="\n")

place = explain.where("minijax.lax.arithmetic.cbrt_p")
print(place, place.source, sep="\n")

# %% [markdown]
# ## Exercise 1
#
# Define `cube_p` with `elementwise`. It has no StableHLO operation of its own: give a lowering rule
# that multiplies twice.

# %%
from minijax.lax.rules import INEXACT, elementwise  # noqa: E402


def lower_cube(b, x):
    square = b.op("stablehlo.multiply", (x, x), b.out)
    return b.op("stablehlo.multiply", (square, x), b.out)


cube_p = elementwise(
    "cube", lower_cube, [INEXACT], jvp=[lambda t, out, x: lax.mul(t, lax.mul(3.0, lax.mul(x, x)))]
)
assert cube_p.bind(3.0) == 27.0 and jax.grad(cube_p.bind)(2.0) == 12.0
assert (jax.vmap(cube_p.bind)(x) == x**3).all()

# %% [markdown]
# ## Exercise 2
#
# A linear primitive: reverse the last axis of a matrix. Its jvp rule applies it to the tangent. What
# is its transpose? Take care of the batch axis in the batching rule.

# %%
mirror_p = Primitive("mirror")
mirror_p.shape_rule(lambda x: x)


@mirror_p.lower
def _(b, x):
    axis = len(x.shape) - 1
    return b.op("stablehlo.reverse", (x,), b.out, f"dimensions = array<i64: {axis}>")


@mirror_p.jvp
def _(primals, tangents):
    return mirror_p.bind(*primals), mirror_p.bind(*tangents)


@mirror_p.transpose
def _(ct, x):
    return [mirror_p.bind(ct)]  # mirroring twice changes nothing, so it is its own transpose


@mirror_p.batch
def _(args, dims):
    return mirror_p.bind(jnp.moveaxis(args[0], dims[0], 0)), 0


m = jnp.arange(6.0).reshape(2, 3)
weights = jnp.array([1.0, 10.0, 100.0])
assert (mirror_p.bind(m) == m[:, ::-1]).all()
assert (jax.grad(lambda v: jnp.dot(mirror_p.bind(v), weights))(m[0]) == weights[::-1]).all()
assert (jax.vmap(mirror_p.bind, in_axes=1, out_axes=1)(m) == m[::-1]).all()

# %% [markdown]
# ## Exercise 3
#
# The `impl` rule runs a primitive in Python, outside of `jit`. With it a primitive needs no lowering
# as long as it is called eagerly.

# %%
total_p = Primitive("total")
total_p.def_impl(lambda x: float(np.asarray(x).sum()))
assert total_p.bind(x) == 36.0

# %% [markdown]
# ## Read on
#
# `core/primitive.py` lists all kinds of rules and what they take and return. Then one file of
# primitives: `lax/arithmetic.py` for operations on elements, `lax/reductions.py` for others.
