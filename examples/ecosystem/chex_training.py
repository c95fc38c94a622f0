"""Chex in a small training loop: a dataclass for the state, assertions on shapes and values."""

import chex
import jax
import jax.numpy as jnp


@chex.dataclass
class State:
    """What the loop carries."""

    weights: chex.Array
    velocity: chex.Array
    steps: chex.Array


def loss_of(weights, x, y):
    chex.assert_rank([x, weights], [2, 1])
    chex.assert_equal_shape_prefix([x, y], 1)
    return jnp.mean((x @ weights - y) ** 2)


@jax.jit
@chex.assert_max_traces(n=1)
def update(state, x, y):
    grads = jax.grad(loss_of)(state.weights, x, y)
    chex.assert_trees_all_equal_shapes(grads, state.weights)
    velocity = 0.9 * state.velocity - 0.05 * grads
    return state.replace(weights=state.weights + velocity, velocity=velocity, steps=state.steps + 1)


@chex.chexify
@jax.jit
def safe_log(x):
    y = jnp.log(x)
    chex.assert_tree_all_finite({"log": y})
    return y


def main():
    key = jax.random.key(0)
    x = jax.random.normal(key, (50, 3))
    target = jnp.array([1.0, -2.0, 0.5])
    y = x @ target
    state = State(weights=jnp.zeros(3), velocity=jnp.zeros(3), steps=jnp.array(0))
    for _ in range(40):
        state = update(state, x, y)
    print(f"after {state.steps} steps: loss {loss_of(state.weights, x, y):.6f}")
    print("weights", " ".join(f"{w:.5f}" for w in state.weights))
    chex.assert_trees_all_close(state.weights, target, atol=0.2)
    chex.assert_tree_all_finite(state)
    chex.assert_shape(state["weights"], (3,))

    for name, check in {
        "shape": lambda: chex.assert_shape(x, (50, 4)),
        "type": lambda: chex.assert_type(x, int),
        "close": lambda: chex.assert_trees_all_close({"a": x}, {"a": x + 1}),
    }.items():
        try:
            check()
        except AssertionError as error:
            print(f"{name}: {str(error).splitlines()[0][:60]}")

    print(f"log: {safe_log(jnp.array([1.0, 2.0])).sum():.5f}")
    try:
        safe_log(jnp.array([1.0, -1.0]))
        safe_log.wait_checks()
    except Exception as error:
        print(f"caught in a compiled function: {type(error).__name__}")


if __name__ == "__main__":
    main()
