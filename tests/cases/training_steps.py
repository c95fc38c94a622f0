"""Training steps, each with one line that a checkpoint can go around.

Each loss takes `around`, which is applied to the function of that line, as `minijax.checkpoint` is.
`python -m tests.cases.training_steps NAME ...` prints what `explain.memory` and XLA say of steps.
"""

import json
import sys

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax, nn


def _of(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def _as_it_is(f):
    return f


def _sgd(loss, around):
    def train(p, *data):
        value, grads = jax.value_and_grad(loss)(p, *data, around)
        return value, jax.tree.map(lambda x, g: x - 0.1 * g, p, grads)

    return train


def _adam(loss, around):
    def train(state, *data):
        p, m, v = state
        g = jax.grad(loss)(p, *data, around)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        new = lambda p, m, v: p - 0.1 * m / (jnp.sqrt(v) + 1e-8)
        return jax.tree.map(new, p, m, v), m, v

    return train


def _mlp(act):
    def loss(p, x, y, around):
        for w, b in p[:-1]:
            x = around(lambda x, w, b: act(x @ w + b))(x, w, b)
        return jnp.mean((x @ p[-1][0] + p[-1][1] - y) ** 2)

    return loss


def _rnn(p, xs, y, around):
    def body(h, x):
        return around(lambda h, x: jnp.tanh(x @ p[0] + h @ p[1]))(h, x), None

    h, _ = lax.scan(body, jnp.zeros((64, 128)), xs)
    return jnp.mean((h @ p[2] - y) ** 2)


def _norm(p, x, y, around):
    for w, s in p:
        x = x - x.mean(-1, keepdims=True)
        act = lambda x, w, s: nn.relu((x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True)) * s) @ w)
        x = x + around(act)(x, w, s)
    return jnp.mean((x - y) ** 2)


def _ode(p, x, y, around):
    def body(x, _):
        return around(lambda x: x + 0.1 * jnp.tanh(x @ p[0]) @ p[1])(x), None

    return jnp.mean((lax.scan(body, x, None, length=10)[0] - y) ** 2)


def _autoencoder(p, x, around):
    z = jnp.tanh(x @ p[0])
    seen = around(lambda z: nn.sigmoid(z @ p[1]))(z)
    return jnp.mean((seen - x) ** 2) + 1e-3 * jnp.sum(jnp.abs(z))


def _attention(p, x, y, around):
    q, k, v, o, w1, w2 = p
    heads = lambda z: z.reshape(*z.shape[:2], 4, -1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", heads(x @ q), heads(x @ k)) / 4
    weights = around(lambda a: nn.softmax(jnp.tanh(a) * 8))(scores)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, heads(x @ v)).reshape(x.shape) @ o
    return jnp.mean((x + nn.gelu(x @ w1) @ w2 - y) ** 2)


def _cnn(p, x, y, around):
    for w in p[:-1]:
        numbers = ("NHWC", "HWIO", "NHWC")
        x = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=numbers)
        x = around(lambda x: nn.relu(jnp.sin(x) * x))(x)
    logits = nn.log_softmax(x.reshape(x.shape[0], -1) @ p[-1])
    return -jnp.mean(jnp.take_along_axis(logits, y[:, None], 1))


def _embedding(p, tokens, around):
    e, w = p
    h = jnp.tanh(e[tokens[:, :-1]] @ w)
    logits = around(lambda h, e: nn.log_softmax(h @ e.T))(h, e)
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], -1))


def _checkpointed(p, x, y, around):
    for w, b in p[:-1]:
        x = jax.checkpoint(lambda x, w, b: jnp.tanh(jnp.tanh(x @ w + b)))(x, w, b)
    return jnp.mean((around(lambda x: x @ p[-1][0] + p[-1][1])(x) - y) ** 2)


def _lstm(p, xs, y, around):
    def cell(state, x):
        h, c = state
        i, f, g, o = jnp.split(around(lambda h, x: nn.sigmoid(x @ p[0] + h @ p[1]))(h, x), 4, -1)
        c = f * c + i * g
        return (o * jnp.tanh(c), c), None

    zeros = jnp.zeros((32, 64))
    (h, _), _ = lax.scan(cell, (zeros, zeros), xs)
    return jnp.mean((h @ p[2] - y) ** 2)


def _layers(p, x, y, around):
    def layer(x, w):
        x = x - x.mean(-1, keepdims=True)
        return around(lambda x, w: x + nn.gelu(x @ w[0]) @ w[1])(x, w), None

    return jnp.mean((lax.scan(layer, x, p)[0] - y) ** 2)


def _variational(p, key, x, around):
    mean, spread = jnp.split(nn.relu(x @ p[0]) @ p[1], 2, -1)
    z = mean + jnp.exp(spread / 2) * jax.random.normal(key, mean.shape)
    seen = around(lambda z: nn.relu(z @ p[2]) @ p[3])(z)
    divergence = jnp.exp(spread) + mean**2 - 1 - spread
    return jnp.mean(jnp.sum((seen - x) ** 2, -1) + 0.5 * jnp.sum(divergence, -1))


def _penalty(p, x, y, around):
    def one(x, y):
        out = lambda x: jnp.tanh(jnp.tanh(x @ p[0]) @ p[1])
        slope = jax.grad(lambda x: jnp.sum(out(x)))
        return around(lambda x: jnp.sum(slope(x) ** 2) + jnp.sum((out(x) - y) ** 2))(x)

    return jnp.mean(jax.vmap(one)(x, y))


def _deep(p, x, around):
    for w in p:
        x = around(lambda x, w: jnp.sin(jnp.exp(jnp.sin(jnp.cos(x @ w)))))(x, w)
    return jnp.sum(x)


_LAYERS = [(_of(64, 128), _of(128)), (_of(128, 128), _of(128)), (_of(128, 10), _of(10))]
_BATCH = (_of(512, 64), _of(512, 10))
_TOKENS = _of(16, 33, dtype=jnp.int32)

# By name: the kind of step, the loss, and the types of its arguments.
STEPS = {
    "tanh": (_sgd, _mlp(jnp.tanh), _LAYERS, *_BATCH),
    "relu": (_sgd, _mlp(nn.relu), _LAYERS, *_BATCH),
    "rnn": (_sgd, _rnn, [_of(32, 128), _of(128, 128), _of(128, 4)], _of(20, 64, 32), _of(64, 4)),
    "norm": (_sgd, _norm, [(_of(128, 128), _of(128))] * 2, _of(256, 128), _of(256, 128)),
    "ode": (_sgd, _ode, [_of(64, 128), _of(128, 64)], _of(128, 64), _of(128, 64)),
    "adam": (_adam, _mlp(jnp.tanh), (_LAYERS, _LAYERS, _LAYERS), *_BATCH),
    "autoencoder": (_sgd, _autoencoder, [_of(128, 32), _of(32, 128)], _of(512, 128)),
    "attention": (
        _sgd, _attention, [_of(64, 64)] * 4 + [_of(64, 256), _of(256, 64)], _of(8, 64, 64), _of(8, 64, 64),
    ),
    "cnn": (
        _sgd, _cnn, [_of(3, 3, 1, 16), _of(3, 3, 16, 32), _of(7 * 7 * 32, 10)], _of(64, 28, 28, 1),
        _of(64, dtype=jnp.int32),
    ),
    "embedding": (_sgd, _embedding, [_of(1000, 64), _of(64, 64)], _TOKENS),
    "checkpoint": (_sgd, _checkpointed, [(_of(128, 128), _of(128))] * 4, _of(512, 128), _of(512, 128)),
    "lstm": (_sgd, _lstm, [_of(32, 256), _of(64, 256), _of(64, 4)], _of(30, 32, 32), _of(32, 4)),
    "layers": (_sgd, _layers, (_of(6, 64, 256), _of(6, 256, 64)), _of(256, 64), _of(256, 64)),
    "variational": (
        _sgd, _variational, [_of(784, 256), _of(256, 64), _of(32, 256), _of(256, 784)],
        _of(2, dtype=jnp.uint32), _of(128, 784),
    ),
    "penalty": (_sgd, _penalty, [_of(64, 128), _of(128, 64)], _of(256, 64), _of(256, 64)),
    "deep": (_sgd, _deep, [_of(64, 64)] * 6, _of(512, 64)),
}  # fmt: skip


def step(name, around=_as_it_is):
    """Return a step and the types of its arguments; `around` is applied where a checkpoint can go."""
    make, loss, *args = STEPS[name]
    return make(loss, around), args


def xla_bytes(f, args):
    """XLA's own figure for a function: arguments, results and temporaries."""
    found = jax.jit(f).lower(*args).compile().memory_analysis()
    return (
        found.argument_size_in_bytes + found.output_size_in_bytes
        + found.temp_size_in_bytes - found.alias_size_in_bytes
    )  # fmt: skip


def measured(name):
    """Return the peak and the savings that are said of a step, and what XLA says of both."""
    f, args = step(name)
    used = explain.memory(f, *args)
    before, after = xla_bytes(f, args), xla_bytes(step(name, jax.checkpoint)[0], args)
    savings = [[line[1], saved] for line, saved in used.savings.items()]
    return {"peak": used.peak, "xla": before, "savings": savings, "saved": before - after}


if __name__ == "__main__":
    print(json.dumps({name: measured(name) for name in sys.argv[1:]}))
