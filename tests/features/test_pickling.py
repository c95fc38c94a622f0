"""What is pickled by value finds the one configuration and trace of the process that loads it."""

import subprocess
import sys
import weakref

import jax
import numpy as np
import pytest

import minijax

MADE = {
    "jit": "jax.jit(square)",
    "grad": "jax.grad(lambda x: square(x).sum())",
    "value_and_grad": "jax.value_and_grad(lambda x: square(x).sum())",
    "vmap": "jax.vmap(square)",
    "hessian": "jax.hessian(lambda x: square(x).sum())",
    "jit of vmap of grad": "jax.jit(jax.vmap(jax.grad(square)))",
    "checkpoint": "jax.checkpoint(square)",
    "pmap": "lambda x: jax.pmap(square)(x[None])",
    "make_jaxpr": "lambda x: str(jax.make_jaxpr(square)(x))",
    "linear_transpose": "jax.linear_transpose(lambda x: 2 * x, jnp.ones(3))",
    "vectorize": "jnp.vectorize(square)",
    "vjp": "jax.vjp(square, jnp.ones(3))[1]",
    "settings": "jax.debug_nans(True)(square)",
    "closure": "(lambda a: jax.jit(lambda x: x + a))(jnp.ones(3))",
    "initializer": "lambda x: jax.nn.initializers.he_normal()(jax.random.key(0), (3, 2)) * x[0]",
}
DUMP = """
import cloudpickle, sys
import minijax as jax, minijax.numpy as jnp
def square(x):
    return x * x
sys.stdout.buffer.write(cloudpickle.dumps([{}]))
"""
LOAD = """
import pickle, sys
import minijax as jax, minijax.numpy as jnp
for function in pickle.load(sys.stdin.buffer):
    print(repr(function(jnp.arange(3.0))))
"""


def test_functions_of_a_notebook_run_in_another_process():
    """They are of `__main__`, so cloudpickle takes them by value, and what transforms them too."""
    pytest.importorskip("cloudpickle")
    text = ", ".join(MADE.values())
    dumped = subprocess.run(
        [sys.executable, "-c", DUMP.format(text)], capture_output=True, check=True
    ).stdout
    loaded = subprocess.run(
        [sys.executable, "-c", LOAD], input=dumped, capture_output=True, check=True
    ).stdout.decode()
    space = {"jax": minijax, "jnp": minijax.numpy, "square": lambda x: x * x}
    expected = [repr(eval(made, space)(minijax.numpy.arange(3.0))) for made in MADE.values()]
    assert loaded == "".join(text + "\n" for text in expected)


@pytest.mark.parametrize("name", ["array", "scalar", "empty", "key", "dtype", "spec"])
def test_types_are_true_and_may_be_referred_to_weakly(name):
    def made(m):
        return {
            "array": m.typeof(np.ones(3)), "scalar": m.typeof(1.0), "empty": m.typeof(np.ones(0)),
            "key": m.typeof(m.random.key(0)), "dtype": m.random.key(0).dtype, "spec": m.P("a"),
        }[name]  # fmt: skip

    for m in (jax, minijax):
        value = made(m)
        assert bool(value)
        assert weakref.ref(value)() is value


def test_types_have_no_length():
    for m in (jax, minijax):
        with pytest.raises(TypeError, match="object of type 'ShapedArray' has no len"):
            len(m.typeof(np.ones(3)))
