"""The outermost interpreter can be replaced: programs of every transform, computed with NumPy."""

import jax
import numpy as np
import pytest

import minijax
from tests.cases.numpy_interpreter import with_numpy
from tests.harness.differential import assert_same_array

X = np.linspace(0.1, 1, 12, dtype=np.float32).reshape(3, 4)

PROGRAMS = {
    "products": lambda m, x: m.numpy.tanh(x @ x.T).sum(0),
    "grad": lambda m, x: m.grad(lambda x: m.numpy.sum(m.numpy.sin(x) * m.numpy.exp(x)))(x),
    "grad of a layer": lambda m, x: m.grad(lambda w: m.numpy.mean(m.numpy.tanh(x @ w) ** 2))(
        m.numpy.ones((4, 2))
    ),
    "vmap": lambda m, x: m.vmap(lambda row: m.numpy.max(row) * row)(x),
    "jit": lambda m, x: m.jit(lambda x: m.numpy.where(x > 0.5, m.numpy.log(x) + 2, x))(x),
    "scan": lambda m, x: m.lax.scan(
        lambda c, row: (m.numpy.sin(c) + row, c * 2), m.numpy.zeros(4), x
    ),
    "grad of a scan": lambda m, x: m.grad(
        lambda x: m.lax.scan(lambda c, row: (m.numpy.sin(c) * row, None), m.numpy.ones(4), x)[
            0
        ].sum()
    )(x),
    "hessian": lambda m, x: m.hessian(lambda v: m.numpy.sum(m.numpy.sin(v) * v))(x[0]),
    "vmap of a scan backwards": lambda m, x: m.jit(
        m.vmap(lambda row: m.lax.scan(lambda c, e: (c + e, c), 0.0, row, reverse=True)[1])
    )(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_numpy(name):
    ours = with_numpy(lambda: PROGRAMS[name](minijax, X))
    theirs = PROGRAMS[name](jax, X)
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert_same_array(np.asarray(a), np.asarray(b))


def test_a_primitive_without_a_rule_is_named():
    with pytest.raises(NotImplementedError, match="'sort'"):
        with_numpy(minijax.numpy.sort, X)
