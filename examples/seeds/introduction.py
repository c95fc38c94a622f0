"""An introduction to JAX in five short programs: grad, jit, vmap, devices, pmap.

python examples/seeds/introduction.py                     on JAX
python -m minijax.jax examples/seeds/introduction.py      on minijax
"""

import jax
import jax.numpy as jnp
import numpy as np


def f(x):
    return x**2


def derivatives():
    print("grad:", jax.grad(f)(3.0))
    primal, tangent = jax.jvp(f, (3.0,), (1.0,))
    primal_too, pullback = jax.vjp(f, 3.0)
    print("jvp:", primal, tangent, " vjp:", primal_too, pullback(1.0))


def compilation():
    def compute(x):
        return x**2 + x

    compute_jit = jax.jit(compute)
    print("jit:", compute_jit(3.0), compute_jit(jnp.arange(3)))


def vectorization():
    print("vmap:", jax.vmap(f)(jnp.array([1.0, 2.0, 3.0])))
    batch = jax.vmap(jax.grad(lambda w, x: jnp.tanh(w @ x)), in_axes=(None, 0))
    gradients = batch(jnp.ones(2), jnp.arange(6.0).reshape(3, 2) / 10)
    print("a gradient for each sample:", np.round(gradients, 4))


def devices():
    x = jax.device_put(jnp.ones((3, 3)), jax.devices("cpu")[0])
    print("devices:", x.devices(), x.device)


def parallel():
    count = jax.local_device_count()
    x = jnp.arange(float(count))
    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(x)
    print("psum over the devices is the sum:", bool((total == x.sum()).all()))


if __name__ == "__main__":
    derivatives()
    compilation()
    vectorization()
    devices()
    parallel()
