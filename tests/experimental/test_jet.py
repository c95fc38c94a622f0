"""`jet` against upstream: terms of the series of many functions, orders one to four."""

import jax
import jax.experimental.jet
import numpy as np
import pytest

import minijax
import minijax.experimental.jet
from tests.harness.differential import assert_same, x64

X = np.array([0.3, 0.7, 1.2])
Y = np.array([1.1, 0.4, 0.9])
FUNCTIONS = {
    "sin": lambda j, x, y: j.numpy.sin(x) * y,
    "exp": lambda j, x, y: j.numpy.exp(x * y),
    "power": lambda j, x, y: x**3 / y,
    "sqrt": lambda j, x, y: j.numpy.sqrt(x + y),
    "dot": lambda j, x, y: x @ y,
    "reduce": lambda j, x, y: (x * y).sum() + x.max(),
    "log1p": lambda j, x, y: j.numpy.log1p(j.numpy.exp(x)) * y,
    "where": lambda j, x, y: j.numpy.where(x > y, x * x, y),
    "tree": lambda j, x, y: {"a": x * y, "b": (x + y, x)},
    "jit": lambda j, x, y: j.jit(lambda a, b: a * j.numpy.cos(b))(x, y),
}


@pytest.mark.parametrize(("order", "scaled"), [(1, True), (3, False)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_series(name, order, scaled):
    generator = np.random.default_rng(order)
    series = [[generator.normal(size=3) for _ in range(order)] for _ in range(2)]

    def outcome(j):
        f = lambda x, y: FUNCTIONS[name](j, x, y)
        return j.experimental.jet.jet(f, (X, Y), series, factorial_scaled=scaled)

    with x64(True):
        assert_same(outcome(minijax), outcome(jax), size=1.0, weak=False)


def test_high_order():
    """Eight derivatives of the sine."""
    with x64(True):
        _, terms = minijax.experimental.jet.jet(minijax.numpy.sin, (0.5,), ([1.0, *[0.0] * 7],))
    expected = [np.sin(0.5 + k * np.pi / 2) for k in range(1, 9)]
    np.testing.assert_allclose(terms, expected, rtol=1e-9)


def test_misuse():
    for j in (minijax, jax):
        jet = j.experimental.jet.jet
        with pytest.raises(ValueError, match="inconsistent lengths"):
            jet(lambda x, y: x * y, (1.0, 2.0), ([1.0, 2.0], [1.0]))
        with pytest.raises(ValueError, match="position 0 is not an array"):
            jet(lambda x: x["a"], ({"a": 1.0},), ([1.0],))
