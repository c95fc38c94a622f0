"""Forty programs of the kinds that people write, and six nests of transforms around each.

Each takes three matrices and four rows, and gives a number.
"""

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax, nn
from minijax.scipy import linalg, special, stats

W = [
    np.array([[0.5, -0.1, 0.2], [0.1, 0.4, -0.3], [0.0, 0.3, 0.6]], np.float32) * s
    for s in (1, 0.7, -0.4)
]
X = np.linspace(-0.9, 1.1, 12, dtype=np.float32).reshape(4, 3)

PROGRAMS = {}


def _program(f):
    PROGRAMS[f.__name__] = f
    return f


# -- networks --------------------------------------------------------------------------------------


@_program
@jax.jit
def mlp(w, x):
    for a in w:
        x = jnp.tanh(x @ a)
    return jnp.mean(x**2)


@_program
def residual_network(w, x):
    for a in w:
        x = x + nn.gelu(nn.standardize(x) @ a)
    return nn.log_softmax(x)[:, 0].sum()


@_program
def attention(w, x):
    q, k, v = (x @ a for a in w)
    return (nn.softmax(q @ k.T) @ v).sum()


@_program
def causal_attention(w, x):
    q, k, v = (x @ a for a in w)
    scores = jnp.where(jnp.tril(jnp.ones((4, 4), bool)), q @ k.T, -1e9)
    return jnp.einsum("ij,jk->ik", nn.softmax(scores), v).sum()


@_program
def transformer(w, x):
    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    q, k = norm(x) @ w[0], norm(x) @ w[1]
    x = x + nn.softmax(q @ k.T / 3**0.5) @ (norm(x) @ w[2])
    return (x + nn.silu(norm(x) @ w[0]) @ w[1]).sum()


@_program
def convolution(w, x):
    return nn.relu(lax.conv(x[None, None], w[0][None, None], (1, 1), "SAME")).sum()


@_program
def pooled_convolutions(w, x):
    y = lax.conv(x[None, None], w[0][None, None], (1, 1), "SAME")
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 1, 1), "VALID")
    return lax.reduce_window(nn.relu(y), 0.0, lax.add, (1, 1, 2, 2), (1, 1, 1, 1), "VALID").sum()


@_program
def embedding(w, x):
    table = jnp.concatenate(w)
    rows = table[jnp.array([0, 5, 2, 5])]
    return -jnp.take_along_axis(nn.log_softmax(rows @ x.T), jnp.arange(4)[:, None], 1).sum()


@_program
def dropout(w, x):
    keep = jax.random.bernoulli(jax.random.key(0), 0.5, x.shape)
    return jnp.where(keep, x @ w[0] / 0.5, 0).sum()


@_program
def variational(w, x):
    mean, spread = x @ w[0], nn.softplus(x @ w[1])
    z = mean + spread * jax.random.normal(jax.random.key(1), mean.shape)
    return jnp.sum((z @ w[2] - x) ** 2) - stats.norm.logpdf(z).sum()


@_program
def penalized_gradient(w, x):
    energy = lambda x: jnp.sum(jnp.tanh(x @ w[0]) @ w[1])
    return jnp.sum(jax.grad(energy)(x) ** 2)


# -- loops and branches ----------------------------------------------------------------------------


@_program
def recurrent(w, x):
    def body(h, x):
        return jnp.tanh(h @ w[0] + x @ w[1]), h

    return lax.scan(body, x[0], x)[0].sum()


@_program
def lstm(w, x):
    def cell(state, x):
        h, c = state
        i, f, o = nn.sigmoid(x @ w[0]), nn.sigmoid(h @ w[1]), nn.sigmoid(h @ w[2])
        c = f * c + i * jnp.tanh(h + x)
        return (o * jnp.tanh(c), c), h

    _, hidden = lax.scan(cell, (jnp.zeros(3), jnp.zeros(3)), x)
    return hidden.sum()


@_program
def reversed_scan_of_trees(w, x):
    def body(carry, row):
        total = {"sum": carry["sum"] + row["x"] @ w[0], "count": carry["count"] + 1}
        return total, total["sum"] * row["scale"]

    start = {"sum": jnp.zeros(3), "count": 0}
    rows = {"x": x, "scale": jnp.arange(4.0)}
    last, ys = lax.scan(body, start, rows, reverse=True)
    return ys.sum() + last["sum"].sum()


@_program
def scan_in_scan(w, x):
    def outer(h, x):
        inner = lambda h, _: (jnp.sin(h @ w[0]) + x, None)
        return lax.scan(inner, h, None, length=2)[0], None

    return lax.scan(outer, x[0], x)[0].sum()


@_program
def loops(w, x):
    y = lax.fori_loop(0, 3, lambda i, x: jnp.sin(x @ w[0]), x)
    return lax.cond(y.sum() > 0, lambda y: y * 2, lambda y: jnp.exp(y), y).sum()


@_program
def while_in_cond(w, x):
    scale = lax.stop_gradient(x.sum())
    halved = lambda s: lax.while_loop(lambda s: s > 0.1, lambda s: s / 2, s)
    return (x @ w[0]).sum() * lax.cond(scale > 0, halved, lambda s: s, scale)


@_program
def switched(w, x):
    index = jnp.argmax(lax.stop_gradient(x.sum(0)))
    return lax.switch(index, [lambda x: x @ w[0], lambda x: jnp.sin(x), lambda x: x * 2], x).sum()


@_program
def cond_in_scan(w, x):
    def body(h, x):
        return lax.cond(h.sum() > 0, lambda h: h @ w[0] + x, lambda h: jnp.cos(h) - x, h), h.max()

    h, tops = lax.scan(body, x[0], x)
    return h.sum() + tops.sum()


@_program
def neural_ode(w, x):
    field = lambda x: jnp.tanh(x @ w[0]) @ w[1]

    def runge_kutta(x, _):
        a = field(x)
        b = field(x + 0.05 * a)
        c = field(x + 0.05 * b)
        return x + 0.1 / 6 * (a + 2 * b + 2 * c + field(x + 0.1 * c)), None

    return lax.scan(runge_kutta, x, None, length=3)[0].sum()


@_program
def euler_steps(w, x):
    step = lambda x, _: (x + 0.1 * jnp.tanh(x @ w[0]) @ w[1], None)
    return lax.scan(step, x, None, length=4)[0].sum()


@_program
def associative(w, x):
    return lax.associative_scan(lambda a, b: a * jnp.cos(b) + b, x @ w[0]).sum()


@_program
def mapped_rows(w, x):
    return lax.map(lambda x: jnp.dot(x, w[0] @ x), x).sum()


# -- rules of one's own ----------------------------------------------------------------------------


@jax.custom_jvp
def _exp(x):
    return jnp.exp(x)


@_exp.defjvp
def _(primals, tangents):
    return _exp(*primals), tangents[0] * _exp(*primals)


@jax.custom_vjp
def _sin(x):
    return jnp.sin(x)


_sin.defvjp(lambda x: (_sin(x), x), lambda r, g: (jnp.cos(r) * g,))


@_program
def own_jvp(w, x):
    return _exp(x @ w[0]).sum()


@_program
def own_vjp_free_of_jvp(w, x):
    clipped = jax.custom_gradient(lambda x: (jnp.sin(x), lambda g: (jnp.clip(g, -1, 1),)))
    return clipped(lax.stop_gradient(x)).sum() + (x @ w[0]).sum()


@_program
def root(w, x):
    solve = lambda f, y: lax.fori_loop(0, 20, lambda i, y: y - f(y) / 2, y)
    tangent = lambda g, y: y / g(jnp.ones_like(y))
    a = jnp.abs(x @ w[0]) + 1
    return lax.custom_root(lambda y: y**2 / 2 - a / 2, jnp.ones_like(a), solve, tangent).sum()


@_program
def checkpointed(w, x):
    return jax.checkpoint(lambda x: jnp.sin(x @ w[0]) * 2)(x).sum()


@_program
def checkpointed_scan(w, x):
    body = jax.checkpoint(lambda h, x: (jnp.tanh(h @ w[0] + x), None))
    return lax.scan(body, x[0], x)[0].sum()


@_program
def checkpoint_with_policy(w, x):
    keep = jax.checkpoint_policies.dots_saveable
    return jax.checkpoint(lambda x: jnp.sin(jnp.sin(x @ w[0]) @ w[1]), policy=keep)(x).sum()


# -- numerical programs ----------------------------------------------------------------------------


@_program
def solver(w, x):
    x = x @ w[0]
    s = x @ x.T + 5 * jnp.eye(x.shape[0])
    return jnp.linalg.solve(s, x).sum()


@_program
def vmapped_solver(w, x):
    one = lambda x: jnp.linalg.solve(jnp.outer(x, x) + 3 * jnp.eye(3), w[0] @ x)
    return jax.vmap(one)(x).sum()


@_program
def gaussian_process(w, x):
    gram = jnp.exp(-jnp.sum((x[:, None] - x[None]) ** 2, -1)) + 0.5 * jnp.eye(4)
    factor = linalg.cholesky(gram, lower=True)
    y = linalg.solve_triangular(factor, x @ w[0], lower=True)
    return jnp.sum(y**2) + jnp.sum(jnp.log(jnp.diagonal(factor)))


@_program
def sorting_and_scattering(w, x):
    return jnp.sort(x @ w[0]).sum() + x.at[0].set(2.0).at[1, 2].add(3.0).sum()


@_program
def windows(w, x):
    rows = jax.vmap(lambda i: lax.dynamic_slice(x, (i, 0), (2, 3)))(jnp.arange(3))
    return lax.dynamic_update_slice(rows @ w[0], x[None, :2], (1, 0, 0)).sum()


@_program
def segments(w, x):
    return jnp.prod(jax.ops.segment_sum(x @ w[0], jnp.array([0, 1, 0, 2]), 3) + 2)


@_program
def spectrum(w, x):
    return jnp.sum(jnp.abs(jnp.fft.rfft(x @ w[0], axis=0)) ** 2)


@_program
def special_functions(w, x):
    y = jnp.abs(x @ w[0]) + 0.5
    return (special.gammaln(y) + special.erf(y) + special.logsumexp(y, 1, keepdims=True)).sum()


@_program
def masked_statistics(w, x):
    y = x @ w[0]
    seen = lax.stop_gradient(y) > 0
    mean = jnp.sum(jnp.where(seen, y, 0)) / jnp.maximum(seen.sum(), 1)
    return jnp.cumsum(jnp.where(seen, y - mean, 0), 0).max() + jnp.median(y)


@_program
def low_precision(w, x):
    y = x.astype(jnp.bfloat16) @ w[0].astype(jnp.bfloat16)
    return y.astype(jnp.float32).sum()


@_program
def sharded(w, x):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("i")

    def loss(x):
        return lax.pmean(jnp.sum(jnp.tanh(x @ w[0]) ** 2), "i")

    return jax.shard_map(loss, mesh=mesh, in_specs=spec, out_specs=jax.sharding.PartitionSpec())(x)


# -- nests -----------------------------------------------------------------------------------------


def _over_two(f):
    return lambda w, x: jax.vmap(f, (None, 0))(w, jnp.stack([x, x]))


NESTS = {
    "jit": jax.jit,
    "grad": jax.grad,
    "vmap": _over_two,
    "jit of grad of vmap": lambda f: jax.jit(jax.grad(lambda *a: _over_two(f)(*a).sum())),
    "jvp of grad": lambda f: (
        lambda w, x: jax.jvp(jax.grad(lambda x: f(w, x)), (x,), (jnp.ones_like(x),))[1]
    ),
    "vjp": lambda f: lambda w, x: jax.vjp(lambda x: f(w, x), x)[1](1.0),
}
PAIRS = [(program, nest) for program in PROGRAMS for nest in NESTS]
# Each program in two nests, so that each nest meets programs of all kinds.
ROTATION = [
    (program, nest)
    for number, program in enumerate(PROGRAMS)
    for place, nest in enumerate(NESTS)
    if (place - number) % 6 in (0, 3)
]
