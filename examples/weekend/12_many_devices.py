# %% [markdown]
# # 12. Many devices
#
# *How does one program run on eight chips, if I wrote it for one array?*
#
# An array may be spread over several devices: each holds a part. A program on such arrays is
# compiled once, for all devices, and each runs it on its own part. Where a part needs what lies
# elsewhere, the compiler inserts communication, or the program asks for it by name.
#
# A CPU can show itself as eight devices, if it is told so before the first array is made.

# %%
import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax

jax.config.update("jax_num_cpu_devices", 8)
print(jax.devices())

# %% [markdown]
# ## A mesh and a sharding
#
# A *mesh* arranges the devices in a grid and names its axes. A *sharding* says along which mesh axis
# each axis of an array is split; `None` stands for an axis that is not split. On mesh axes that are
# not named the array is *replicated*: each device holds a copy.

# %%
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def sharded(x, *axes):
    return jax.device_put(x, jax.NamedSharding(mesh, jax.P(*axes)))


x = sharded(jnp.arange(32.0).reshape(8, 4), "data", None)
w = sharded(jnp.ones((4, 6)), None, "model")
print(x.sharding.spec, "-> parts of shape", {s.data.shape for s in x.addressable_shards})
print(w.sharding.spec, "-> parts of shape", {s.data.shape for s in w.addressable_shards})

# %% [markdown]
# ## The compiler splits the program
#
# The function says nothing of devices. The shardings of its arguments are part of their signatures
# (chapter 1), so that this call has a program of its own. XLA's partitioner decides how each
# operation is split.

# %%
f = jax.jit(lambda x, w: jnp.tanh(x @ w).sum(axis=0))
y = f(x, w)
print(y, y.sharding.spec)

# %% [markdown]
# The sum runs over rows that lie on four devices, and so the compiled program has a collective
# operation, `all-reduce`. In the module that XLA was given there is none, only the shardings:

# %%
print(f.lower(x, w).as_text())
text = f.lower(x, w).compile().as_text()
print(*[line.strip()[:110] for line in text.splitlines() if "all-reduce(" in line], sep="\n")

# %% [markdown]
# ## shard_map: the program of one device
#
# The other way is to write the function of one part, with the communication in it. `psum` sums over
# the devices along a mesh axis.


# %%
def part(x, w):
    print("a device sees", x.shape, w.shape)
    return lax.psum(jnp.tanh(x @ w).sum(axis=0), "data")


by_parts = jax.shard_map(
    part, mesh=mesh, in_specs=(jax.P("data", None), jax.P(None, "model")), out_specs=jax.P("model")
)
print(by_parts(x, w))
print(jax.make_jaxpr(by_parts)(x, w))

# %% [markdown]
# `shard_map` is a primitive that holds a jaxpr, as `jit` is one, and has rules for each
# interpreter. Its batching rule is short:

# %%
for row in explain.primitive("shard_map").rows:
    if row.column == "batch_axis":
        print(row.place, row.place.source, sep="\n")

# %% [markdown]
# The same names of axes serve `vmap`: `psum` over a name of `vmap` sums over the batch. One operation,
# whether an axis lies in one memory or in several.

# %%
print(jax.vmap(lambda v: lax.psum(v, "data"), axis_name="data")(jnp.arange(4.0)))
place = explain.where("minijax.lax.parallel.psum")
print(place, place.source, sep="\n")

# %% [markdown]
# ## A gradient
#
# Data-parallel training needs no code of its own. The loss is a mean over examples that are split over
# devices; the gradient of a replicated weight is a sum over all of them, and the compiler communicates.


# %%
def loss(w, x):
    return jnp.mean((x @ w) ** 2)


gradient = jax.jit(jax.grad(loss))
one = gradient(jnp.ones((4, 6)), jnp.arange(32.0).reshape(8, 4))
many = gradient(w, x)
print(many.sharding.spec, float(jnp.abs(many - one).max()))

# %% [markdown]
# ## Exercise 1
#
# How many numbers does each device hold of an array of shape (8, 4) with the spec `P("model", None)`?
# And of `P(("data", "model"), None)`?

# %%
big = jnp.zeros((8, 4))
sizes = [
    sharded(big, *spec).addressable_shards[0].data.size
    for spec in (("model", None), (("data", "model"), None))
]
assert sizes == [16, 4]  # a half, in four copies; an eighth

# %% [markdown]
# ## Exercise 2
#
# Compute the mean over all rows with `shard_map`, where each device sees two of them.

# %%
mean = jax.shard_map(
    lambda rows: lax.pmean(rows.mean(axis=0), "data"),
    mesh=mesh, in_specs=jax.P("data", None), out_specs=jax.P(None),
)  # fmt: skip
assert np.allclose(mean(x), np.arange(32.0).reshape(8, 4).mean(axis=0))

# %% [markdown]
# ## Exercise 3
#
# Send each part to the next device along "data" with `lax.ppermute`, the last to the first. Which
# NumPy function of the whole array is that?

# %%
ring = jax.shard_map(
    lambda rows: lax.ppermute(rows, "data", [(i, (i + 1) % 4) for i in range(4)]),
    mesh=mesh, in_specs=jax.P("data", None), out_specs=jax.P("data", None),
)  # fmt: skip
assert (np.asarray(ring(x)) == np.roll(np.asarray(x), 2, axis=0)).all()

# %% [markdown]
# ## Read on
#
# `features/sharding/program_placement.py` decides where a program runs; `lax/shard_map.py` and
# `lax/parallel.py` have what this chapter used. Over the Explicit axes of a mesh, shardings are part
# of types: `features/sharding/types.py`. `examples/parallel.py` trains a network on eight devices.
