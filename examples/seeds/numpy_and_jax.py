"""NumPy and jax.numpy side by side: what is the same, and where they part.

python examples/seeds/numpy_and_jax.py                     on JAX
python -m minijax.jax examples/seeds/numpy_and_jax.py      on minijax
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np


def the_same_calls():
    print("devices:", jax.devices("cpu"))
    print("NumPy:", np.array([1.0, 2.0, 3.0]), " JAX:", jnp.array([1.0, 2.0, 3.0]))
    assert isinstance(jnp.array([1.0]), jax.Array)

    a_np = np.arange(6).reshape((2, 3))
    b_np = np.array([[1, 1, 1], [2, 2, 2]])
    a_jnp = jnp.arange(6).reshape((2, 3))
    b_jnp = jnp.array([[1, 1, 1], [2, 2, 2]])
    c_np, c_jnp = a_np + b_np * 2, a_jnp + b_jnp * 2
    print(f"NumPy gives\n{c_np}\nJAX gives\n{c_jnp}")
    print("they agree:", np.allclose(c_np, c_jnp))


def arrays_do_not_change():
    x = np.array([1, 2, 3])
    x[0] = 100
    print("NumPy, changed in place:", x)
    y = jnp.array([1, 2, 3])
    try:
        y[0] = 100
    except TypeError as error:
        print("in JAX that is a", type(error).__name__)
    print("a new array instead:", y.at[0].set(100), " the old one:", y)


def dtypes():
    print("NumPy's floats:", np.array([1.0]).dtype, " JAX's:", jnp.array([1.0]).dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that 64 bits are off
        print("asked for float64:", jnp.array([1.0, 2.0], dtype=jnp.float64).dtype)
    with jax.enable_x64(True):
        print("with 64 bits on:", jnp.array([1.0, 2.0], dtype=jnp.float64).dtype)


def transformations():
    def energy(x):
        return jnp.sum(x**2) / 2

    x = jnp.arange(4.0)
    print("grad:", jax.grad(energy)(x))
    print("jit of grad:", jax.jit(jax.grad(energy))(x))
    print("vmap of grad:", jax.vmap(jax.grad(energy))(jnp.eye(2, 4)))
    print("pmap over one device:", jax.pmap(energy)(x[None]))
    # NumPy and JAX live together: what NumPy makes, JAX takes, and the other way round.
    print("of NumPy's array:", energy(np.arange(4.0, dtype=np.float32)), np.sum(x))


if __name__ == "__main__":
    the_same_calls()
    arrays_do_not_change()
    dtypes()
    transformations()
