# %% [markdown]
# # 6. vmap
#
# *Is `vmap` a loop?*
#
# No. `vmap(f)` calls `f` once, on values that have one axis more than `f` sees. Each operation is
# replaced by one that works on the whole batch: a product of vectors becomes a product of a matrix
# and a vector, and no loop is left.

# %%
import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax

v = jnp.arange(3.0)
batch = jnp.arange(12.0).reshape(4, 3)


def project(x):
    return jnp.dot(x, v)


print(jax.make_jaxpr(project)(batch[0]))
print(jax.make_jaxpr(jax.vmap(project))(batch))

# %% [markdown]
# ## The tracer
#
# It holds the value with its batch axis, says which axis that is, and shows the shape without it.

# %%
place = explain.where("minijax.transforms.batching.BatchTracer")
print(place, place.source, sep="\n")


# %%
def look(x):
    print(x, "has the shape", x.shape)
    return x.sum()


_ = jax.vmap(look, in_axes=1)(batch)

# %% [markdown]
# ## The interpreter
#
# The trace is built like that of chapter 4: take the tracers apart, make the parent current, apply
# the rule. A batching rule is given the values and the places of their batch axes (`None` for a
# value that is the same for all), and returns a result and the place of its batch axis.

# %%
for name in ("process", "apply"):
    place = explain.where(f"minijax.transforms.batching.BatchTrace.{name}")
    print(place, place.source, sep="\n")

# %% [markdown]
# ## Rules
#
# For an operation on elements the rule has to bring the batch axes to one place, no more. For a
# reduction it shifts the axes that are reduced:

# %%
for name in ("reduce_sum", "transpose", "dot_general"):
    for row in explain.primitive(name).rows:
        if row.column == "batch":
            print(row.place, row.place.source, sep="\n")

# %% [markdown]
# ## With other transforms
#
# `vmap` of `grad` gives the gradient of each example, which no sum over a batch can give. The
# equations below show it: the sum over examples is missing, and `explain` names the transforms.


# %%
def loss(w, x):
    return jnp.tanh(jnp.dot(w, x)) ** 2


each = jax.vmap(jax.grad(loss), in_axes=(None, 0))
for line in explain(each, v, batch, compile=False)["jaxpr"].lines:
    print(line.text[:64].ljust(66), line.made)

# %% [markdown]
# ## Exercise 1
#
# Compute all pairwise distances of two sets of points with two `vmap`s and a function of two points.


# %%
def distance(p, q):
    return jnp.sqrt(jnp.sum((p - q) ** 2))


pairwise = jax.vmap(jax.vmap(distance, in_axes=(None, 0)), in_axes=(0, None))
p, q = jnp.zeros((2, 3)), jnp.ones((5, 3))
assert pairwise(p, q).shape == (2, 5)
assert jnp.allclose(pairwise(p, q), jnp.sqrt(3.0))

# %% [markdown]
# ## Exercise 2
#
# Write the Jacobian of a function with `vmap` and `jvp`: one call of `jvp` for each column, all at
# once.


# %%
def jacobian(f):
    def columns(x):
        return jax.vmap(lambda t: jax.jvp(f, (x,), (t,))[1], out_axes=-1)(jnp.eye(len(x)))

    return columns


def polar(z):
    return jnp.stack([z[0] * jnp.cos(z[1]), z[0] * jnp.sin(z[1])])


at = jnp.array([2.0, 0.5])
assert jnp.allclose(jacobian(polar)(at), jax.jacfwd(polar)(at))

# %% [markdown]
# ## Exercise 3
#
# `lax.cond` runs one of two branches. What is it under `vmap`, where the examples disagree?


# %%
def branch(x):
    return lax.cond(x > 0, lambda x: x * 2, lambda x: -x, x)


found = [eqn.primitive.name for eqn in jax.make_jaxpr(jax.vmap(branch))(v).jaxpr.eqns]
assert "cond" not in found and "select_n" in found  # both branches are computed, then one is chosen

# %% [markdown]
# ## Read on
#
# `transforms/batching.py`, then `transforms/vmap.py`, which deals with `in_axes` and `out_axes`. The
# largest batching rules are those of gathers and loops: `lax/gathers.py` and
# `lax/control_flow/scan_rules.py`.
