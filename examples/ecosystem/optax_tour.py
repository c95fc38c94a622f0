"""A tour of Optax: optimizers, schedules, losses, and gradient transformations."""

import jax
import jax.numpy as jnp
import optax

OPTIMIZERS = {
    "sgd": optax.sgd(0.05, momentum=0.9, nesterov=True),
    "adam": optax.adam(0.1),
    "adamw": optax.adamw(0.1),
    "adabelief": optax.adabelief(0.1),
    "adafactor": optax.adafactor(0.1),
    "adagrad": optax.adagrad(0.5),
    "lamb": optax.lamb(0.1),
    "lion": optax.lion(0.05),
    "nadam": optax.nadam(0.1),
    "radam": optax.radam(0.1),
    "rmsprop": optax.rmsprop(0.05),
    "yogi": optax.yogi(0.1),
    "lbfgs": optax.lbfgs(),
}

SCHEDULES = {
    "cosine": optax.cosine_decay_schedule(1.0, 10),
    "exponential": optax.exponential_decay(1.0, 3, 0.5, staircase=True),
    "warmup": optax.warmup_cosine_decay_schedule(0.0, 1.0, 3, 10),
    "one cycle": optax.cosine_onecycle_schedule(10, 1.0),
    "joined": optax.join_schedules(
        [optax.constant_schedule(1.0), optax.linear_schedule(1.0, 0.0, 5)], [4]
    ),
}


def rosenbrock(p):
    return (1.0 - p["x"]) ** 2 + 5.0 * (p["y"] - p["x"] ** 2) ** 2


def minimize(optimizer, steps=30):
    params = {"x": jnp.array(-0.5), "y": jnp.array(0.8)}
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(rosenbrock)(params)
        extra = {"value": value, "grad": grads, "value_fn": rosenbrock}
        optimizer_ = optax.with_extra_args_support(optimizer)
        updates, state = optimizer_.update(grads, state, params, **extra)
        return optax.apply_updates(params, updates), state

    for _ in range(steps):
        params, state = step(params, state)
    return rosenbrock(params)


def main():
    for name, optimizer in OPTIMIZERS.items():
        steps = 5 if name == "lbfgs" else 30
        print(f"{name}: {minimize(optimizer, steps):.5f}")

    for name, schedule in SCHEDULES.items():
        print(name, " ".join(f"{schedule(count):.4f}" for count in range(0, 11, 2)))

    logits = jax.random.normal(jax.random.key(0), (6, 4))
    labels = jnp.array([0, 1, 2, 3, 0, 1])
    soft = optax.smooth_labels(jax.nn.one_hot(labels, 4), 0.1)
    losses = {
        "cross entropy": optax.softmax_cross_entropy(logits, soft),
        "integer labels": optax.softmax_cross_entropy_with_integer_labels(logits, labels),
        "binary": optax.sigmoid_binary_cross_entropy(logits, soft),
        "huber": optax.huber_loss(logits, soft),
        "focal": optax.sigmoid_focal_loss(logits, soft),
        "cosine": optax.cosine_distance(logits, soft),
        "divergence": optax.kl_divergence(jax.nn.log_softmax(logits), soft),
    }
    for name, loss in losses.items():
        print(f"{name}: {loss.mean():.5f}")

    groups = optax.multi_transform(
        {"fast": optax.sgd(0.05), "slow": optax.chain(optax.clip(0.1), optax.sgd(0.01))},
        {"x": "fast", "y": "slow"},
    )
    gathered = optax.MultiSteps(optax.adam(0.1), every_k_schedule=2)
    ascent = optax.chain(optax.clip_by_global_norm(1.0), optax.trace(0.9), optax.scale(-0.05))
    for name, optimizer in {"groups": groups, "steps": gathered, "chain": ascent}.items():
        print(f"{name}: {minimize(optimizer, 10):.5f}")


if __name__ == "__main__":
    main()
