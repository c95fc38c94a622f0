"""Haiku: an MLP with batch statistics, and an LSTM that learns to continue a wave."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax


def mlp(x, is_training):
    x = hk.Linear(16)(x)
    x = hk.BatchNorm(create_scale=True, create_offset=True, decay_rate=0.9)(x, is_training)
    return hk.nets.MLP([16, 1], activation=jax.nn.tanh)(x)


def lstm(xs):
    """Predictions for each step of (time, batch, 1) inputs."""
    core = hk.LSTM(24)
    hidden, _ = hk.dynamic_unroll(core, xs, core.initial_state(xs.shape[1]))
    return hk.BatchApply(hk.Linear(1))(hidden)


def fit_mlp():
    model = hk.transform_with_state(mlp)
    x = jax.random.normal(jax.random.key(0), (64, 3))
    y = jnp.sin(x.sum(-1, keepdims=True))
    params, state = model.init(jax.random.key(1), x, True)
    optimizer = optax.sgd(0.05, momentum=0.9)

    def loss_of(params, state):
        out, state = model.apply(params, state, None, x, True)
        return jnp.mean((out - y) ** 2), state

    @jax.jit
    def step(params, state, opt):
        (loss, state), grads = jax.value_and_grad(loss_of, has_aux=True)(params, state)
        updates, opt = optimizer.update(grads, opt)
        return optax.apply_updates(params, updates), state, opt, loss

    opt = optimizer.init(params)
    for number in range(31):
        params, state, opt, loss = step(params, state, opt)
        if number % 10 == 0:
            print(f"mlp step {number}: loss {loss:.5f}")
    average = state["batch_norm/~/mean_ema"]["average"]
    print(f"running mean: {jnp.mean(average):.5f}")


def fit_lstm():
    model = hk.without_apply_rng(hk.transform(lstm))
    times = jnp.linspace(0.0, 6.0, 25)[:, None] + jnp.linspace(0.0, 1.0, 8)
    waves = jnp.sin(times)[..., None]
    xs, ys = waves[:-1], waves[1:]
    params = model.init(jax.random.key(2), xs)
    optimizer = optax.adam(0.01)

    @jax.jit
    def step(params, opt):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, xs) - ys) ** 2))(params)
        updates, opt = optimizer.update(grads, opt)
        return optax.apply_updates(params, updates), opt, loss

    opt = optimizer.init(params)
    for number in range(31):
        params, opt, loss = step(params, opt)
        if number % 10 == 0:
            print(f"lstm step {number}: loss {loss:.5f}")
    shapes = jax.tree.map(lambda x: x.shape, params)
    print(f"lstm shapes: {shapes['lstm/linear']}")


if __name__ == "__main__":
    fit_mlp()
    fit_lstm()
