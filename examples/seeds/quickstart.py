"""The quickstart: arrays, jit, grad, jacobian, hessian, vmap.

python examples/seeds/quickstart.py                     on JAX
python -m minijax.jax examples/seeds/quickstart.py      on minijax
"""

import jax.numpy as jnp
import numpy as np
from jax import grad, jacfwd, jacobian, jacrev, jit, jvp, random, vjp, vmap


def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def sum_logistic(x):
    return jnp.sum(1.0 / (1.0 + jnp.exp(-x)))


def first_finite_differences(f, x, eps=1e-3):
    return jnp.array([(f(x + eps * v) - f(x - eps * v)) / (2 * eps) for v in jnp.eye(len(x))])


def hessian(fun):
    return jit(jacfwd(jacrev(fun)))


def compilation():
    print("selu:", selu(jnp.arange(5.0)))
    key = random.key(1701)
    x = random.normal(key, (1_000_000,))
    selu_jit = jit(selu)
    plain, compiled = selu(x).block_until_ready(), selu_jit(x).block_until_ready()
    np.testing.assert_allclose(plain, compiled, rtol=1e-5, atol=1e-6)
    print(f"of a million numbers, compiled: mean {jnp.mean(compiled):.5f}")
    return key


def derivatives():
    x = jnp.arange(3.0)
    print("gradient:", np.round(grad(sum_logistic)(x), 5))
    print("by differences:", np.round(first_finite_differences(sum_logistic, x), 1))
    print(f"third derivative: {grad(jit(grad(jit(grad(sum_logistic)))))(1.0):.6f}")
    print("jacobian:", np.round(jacobian(jnp.exp)(x), 4))
    print("hessian:", np.round(hessian(sum_logistic)(x), 5))
    y, tangent = jvp(sum_logistic, (x,), (jnp.ones(3),))
    _, pullback = vjp(sum_logistic, x)
    print(f"jvp: {y:.5f} {tangent:.5f}  vjp: {np.round(pullback(1.0)[0], 5)}")


def vectorization(key):
    key1, key2 = random.split(key)
    mat = random.normal(key1, (150, 100))
    batched_x = random.normal(key2, (10, 100))

    def apply_matrix(x):
        return jnp.dot(mat, x)

    def naively_batched(v_batched):
        return jnp.stack([apply_matrix(v) for v in v_batched])

    @jit
    def batched(batched_x):
        return jnp.dot(batched_x, mat.T)

    @jit
    def vmap_batched(batched_x):
        return vmap(apply_matrix)(batched_x)

    expected = naively_batched(batched_x)
    np.testing.assert_allclose(expected, batched(batched_x), atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(expected, vmap_batched(batched_x), atol=1e-4, rtol=1e-4)
    print(f"three ways to apply a matrix to a batch agree: norm {jnp.linalg.norm(expected):.3f}")


if __name__ == "__main__":
    key = compilation()
    derivatives()
    vectorization(key)
