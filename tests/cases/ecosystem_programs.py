"""Small programs of libraries for JAX, for strict mode: `python -m minijax.jax FILE NAME ...`.

Each takes a few steps of what its library is for. Prints a line of JSON: what each raised, or null.
"""

import importlib
import json
import sys

import jax
import jax.numpy as jnp

X = jnp.linspace(-1.0, 1.0, 24).reshape(8, 3)
Y = jnp.sin(X.sum(-1, keepdims=True))
PROGRAMS = {}


def _program(*libraries):
    def add(f):
        PROGRAMS[f.__name__] = f, libraries
        return f

    return add


def _fit(loss, params, optimizer, steps=3):
    import optax

    @jax.jit
    def step(params, state):
        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    state = optimizer.init(params)
    for _ in range(steps):
        params, state, value = step(params, state)
    return value


def _linear(params):
    return jnp.mean((X @ params["w"] + params["b"] - Y) ** 2)


def _zeros():
    return {"w": jnp.zeros((3, 1)), "b": jnp.zeros(1)}


@_program("optax")
def optax_adamw(optax):
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 2, 10)
    return _fit(_linear, _zeros(), optax.adamw(schedule, weight_decay=0.01))


@_program("optax")
def optax_chain(optax):
    parts = [optax.clip_by_global_norm(1.0), optax.add_noise(0.01, 0.5, 0), optax.lion(0.01)]
    return _fit(_linear, _zeros(), optax.MultiSteps(optax.chain(*parts), 2))


@_program("optax")
def optax_losses(optax):
    labels = jnp.arange(8) % 3
    cross = optax.softmax_cross_entropy_with_integer_labels(X, labels)
    huber, cosine = optax.huber_loss(X, X + 1), optax.cosine_similarity(X, X)
    return cross.sum() + huber.sum() + cosine.sum() + optax.safe_norm(jnp.zeros(3), 1e-3)


@_program("flax", "optax")
def linen_dropout(flax, optax):
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.LayerNorm()(nn.gelu(nn.Dense(8)(x)))
            return nn.Dense(1)(nn.Dropout(0.5, deterministic=False)(x))

    net = Net()
    params = net.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, X)
    keys = {"dropout": jax.random.key(2)}
    return _fit(lambda p: jnp.mean((net.apply(p, X, rngs=keys) - Y) ** 2), params, optax.sgd(0.1))


@_program("flax")
def linen_batch_norm(flax):
    from flax import linen as nn

    net = nn.BatchNorm(use_running_average=False)
    variables = net.init(jax.random.key(0), X)
    loss = lambda v: net.apply(v, X, mutable=["batch_stats"])
    take = lambda v: (loss(v)[0].sum(), loss(v)[1])
    return jax.jit(jax.value_and_grad(take, has_aux=True))(variables)


@_program("flax")
def linen_attention(flax):
    from flax import linen as nn

    tokens = jnp.arange(10).reshape(2, 5) % 7
    embed, attend = nn.Embed(7, 8), nn.MultiHeadDotProductAttention(2)
    table = embed.init(jax.random.key(0), tokens)
    x = embed.apply(table, tokens)
    params = attend.init(jax.random.key(1), x)
    mask = nn.make_causal_mask(tokens)
    loss = lambda t, p: attend.apply(p, embed.apply(t, tokens), mask=mask).sum()
    return jax.jit(jax.grad(loss, (0, 1)))(table, params)


@_program("flax", "optax")
def nnx_network(flax, optax):
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.conv = nnx.Conv(1, 4, (3,), rngs=rngs)
            self.norm = nnx.BatchNorm(4, rngs=rngs)
            self.out = nnx.Linear(12, 1, rngs=rngs)

        def __call__(self, x):
            x = nnx.relu(self.norm(self.conv(x[..., None])))
            return self.out(x.reshape(x.shape[0], -1))

    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adam(0.01), wrt=nnx.Param)

    @nnx.jit
    def step(net, optimizer):
        value, gradient = nnx.value_and_grad(lambda net: jnp.mean((net(X) - Y) ** 2))(net)
        optimizer.update(net, gradient)
        return value

    return [step(net, optimizer) for _ in range(2)]


@_program("equinox", "optax")
def equinox_mlp(eqx, optax):
    net = eqx.nn.MLP(3, 1, 8, 2, key=jax.random.key(0))
    params, static = eqx.partition(net, eqx.is_inexact_array)
    loss = lambda p: jnp.mean((jax.vmap(eqx.combine(p, static))(X) - Y) ** 2)
    return _fit(loss, params, optax.adam(0.01))


@_program("equinox")
def equinox_recurrent(eqx):
    cell = eqx.nn.GRUCell(3, 4, key=jax.random.key(0))

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(cell):
        final, _ = jax.lax.scan(lambda h, x: (cell(x, h), None), jnp.zeros(4), X)
        return jnp.sum(final**2)

    return loss(cell)


@_program("equinox")
def equinox_attention(eqx):
    keys = jax.random.split(jax.random.key(0), 3)
    attend = eqx.nn.MultiheadAttention(2, 4, key=keys[0])
    drop, embed = eqx.nn.Dropout(0.3), eqx.nn.Embedding(5, 4, key=keys[1])
    x = jax.vmap(embed)(jnp.arange(6) % 5)
    return eqx.filter_jit(lambda x: drop(attend(x, x, x), key=keys[2]))(x)


@_program("haiku", "optax")
def haiku_recurrent(hk, optax):
    def forward(x):
        core = hk.LSTM(4)
        out, _ = hk.dynamic_unroll(core, x[:, None], core.initial_state(1))
        return hk.Linear(1)(out)[:, 0]

    net = hk.without_apply_rng(hk.transform(forward))
    params = net.init(jax.random.key(0), X)
    return _fit(lambda p: jnp.mean((net.apply(p, X) - Y) ** 2), params, optax.adam(0.01))


@_program("haiku")
def haiku_averages(hk):
    def forward(x):
        x = hk.BatchNorm(True, True, 0.9)(hk.Linear(4)(x), is_training=True)
        return hk.dropout(hk.next_rng_key(), 0.2, jax.nn.relu(x))

    net = hk.transform_with_state(forward)
    params, state = net.init(jax.random.key(0), X)

    @jax.jit
    def step(params, state, key):
        def loss(params):
            out, new = net.apply(params, state, key, X)
            return jnp.mean(out**2), new

        return jax.value_and_grad(loss, has_aux=True)(params)

    (_, state), _ = step(params, state, jax.random.key(1))
    return step(params, state, jax.random.key(2))


@_program("chex")
def chex_dataclass(chex):
    @chex.dataclass
    class State:
        mean: jax.Array
        count: jax.Array

    @jax.jit
    @chex.assert_max_traces(n=1)
    def update(state, x):
        chex.assert_rank(x, 1)
        count = state.count + 1
        return State(mean=state.mean + (x - state.mean) / count, count=count)

    state = State(mean=jnp.zeros(3), count=jnp.zeros(()))
    for x in X:
        state = update(state, x)
    chex.assert_trees_all_close(state.mean, X.mean(0), atol=1e-5)
    chex.assert_tree_all_finite(state)
    return state.mean


def outcome(name):
    """What a program raised, in one line, or None."""
    f, libraries = PROGRAMS[name]
    try:
        jax.block_until_ready(f(*map(importlib.import_module, libraries)))
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"
    return None


if __name__ == "__main__":
    print(json.dumps({name: outcome(name) for name in sys.argv[1:] or PROGRAMS}))
