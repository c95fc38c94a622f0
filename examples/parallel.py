"""Eight CPU devices: data-parallel training by pmap and by shardings, and a tensor-parallel block.

Each is checked against the same computation on one device. Run it as it is.
"""

import os

os.environ["XLA_FLAGS"] = (
    f"--xla_force_host_platform_device_count=8 {os.environ.get('XLA_FLAGS', '')}"
)

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

rng = np.random.RandomState(0)
WORLD = len(jax.devices())


def network(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return x


def loss(params, x, y):
    return jnp.mean((network(params, x) - y) ** 2)


def step(params, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.2 * g, params, grads), value


def make_params():
    sizes = [(16, 32), (32, 32), (32, 4)]
    source = np.random.RandomState(1)
    return [(source.randn(*s).astype(np.float32) * 0.2, np.zeros(s[1], np.float32)) for s in sizes]


x = rng.randn(64, 16).astype(np.float32)
y = np.tanh(x[:, :4] - x[:, 4:8]).astype(np.float32)


def train(one_step, params, x, y, steps=20):
    for _ in range(steps):
        params, value = one_step(params, x, y)
    return params, value


alone, alone_loss = train(jax.jit(step), make_params(), x, y)
print(f"one device:       loss {float(alone_loss):.5f}")

# -- the batch split by a sharding: XLA finds the collectives -------------------------------------

mesh = Mesh(np.array(jax.devices()), ("data",))
rows = NamedSharding(mesh, P("data"))
params = jax.device_put(make_params(), NamedSharding(mesh, P()))
split, split_loss = train(jax.jit(step), params, jax.device_put(x, rows), jax.device_put(y, rows))
print(f"jit, sharded:     loss {float(split_loss):.5f} on {len(split_loss.devices())} devices")

# -- the batch split by pmap: the program names the collectives -----------------------------------


def parallel_step(params, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    value, grads = jax.lax.pmean((value, grads), "data")
    return jax.tree.map(lambda p, g: p - 0.2 * g, params, grads), value


copies = jax.tree.map(lambda p: np.stack([p] * WORLD), make_params())
parts = [a.reshape(WORLD, -1, a.shape[-1]) for a in (x, y)]
mapped, mapped_loss = train(jax.pmap(parallel_step, axis_name="data"), copies, *parts)
print(f"pmap:             loss {float(mapped_loss[0]):.5f}")

# -- one transformer block, its heads and hidden units split over devices -------------------------

WIDTH, HEADS = 64, 8
weights = {
    name: rng.randn(*shape).astype(np.float32) * 0.1
    for name, shape in {
        "q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH),
        "up": (WIDTH, 256), "down": (256, WIDTH),
    }.items()
}  # fmt: skip
tokens = rng.randn(2, 10, WIDTH).astype(np.float32)


def norm(a):
    return (a - a.mean(-1, keepdims=True)) / jnp.sqrt(a.var(-1, keepdims=True) + 1e-5)


def block(weights, a, heads, join):
    """`join` adds what the devices have of a product; on one device it does nothing."""
    b = norm(a)
    q, k, v = (
        (b @ weights[name]).reshape(*b.shape[:2], heads, -1).swapaxes(1, 2) for name in "qkv"
    )
    scores = jax.nn.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]).astype(np.float32))
    attended = (scores @ v).swapaxes(1, 2).reshape(*b.shape[:2], -1)
    a = a + join(attended @ weights["o"])
    return a + join(jax.nn.gelu(norm(a) @ weights["up"]) @ weights["down"])


columns, lines = P(None, "model"), P("model", None)
specs = {"q": columns, "k": columns, "v": columns, "o": lines, "up": columns, "down": lines}
model = Mesh(np.array(jax.devices()), ("model",))
spread = jax.jit(
    jax.shard_map(
        lambda w, a: block(w, a, HEADS // WORLD or 1, lambda part: jax.lax.psum(part, "model")),
        mesh=model,
        in_specs=(specs, P()),
        out_specs=P(),
    )
)
whole = jax.jit(lambda w, a: block(w, a, HEADS, lambda part: part))
gap = float(jnp.abs(np.asarray(spread(weights, tokens)) - whole(weights, tokens)).max())
gradients = [jax.grad(lambda w, f=f: jnp.sum(f(w, tokens) ** 2))(weights) for f in (spread, whole)]
gradient_gap = max(
    float(np.abs(np.asarray(a) - np.asarray(b)).max())
    for a, b in zip(*map(jax.tree.leaves, gradients), strict=True)
)
print(f"tensor parallel:  greatest difference {gap:.1e}, of gradients {gradient_gap:.1e}")

for other in (split, jax.tree.map(lambda p: p[0], mapped)):
    for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-5)
assert gap < 1e-4 and gradient_gap < 1e-2
print("all agree with one device")
