"""64-bit dtypes turned on within a function that is transformed, and programs with dead
operations.
"""

import importlib

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import BOTH, assert_same


def _numbers(m, y):
    return y * 2.0 + m.numpy.where(y > 1, y * 3, 2.0)


def _loop(m, y):
    return m.lax.scan(lambda c, _: (c * 2.0 + y, None), y * 1.5, None, length=3)[0]


def _while(m, y):
    return m.lax.fori_loop(0, 3, lambda i, c: c * 2.0 + i, y)


def _powers(m, y):
    return m.numpy.sum(m.numpy.stack([y, y * 2]) ** 3 + m.numpy.arange(2)) + m.numpy.sqrt(y)


def _gradient(m, y):
    return m.grad(lambda z: z**3 * 2.0)(y)


def _checkpointed(m, y):
    return m.checkpoint(lambda z: m.numpy.sin(z * 2.5))(y)


def _branches(m, y):
    return m.lax.cond(y > 0, lambda z: z * 2.0, lambda z: z * 3.0, y)


def _functions(m, y):
    x = m.numpy.linspace(0.1, 1.0, 4) * y
    return m.numpy.var(x) + m.numpy.cumsum(m.nn.softmax(x))[1] + m.scipy.special.erf(x).prod()


BODIES = {
    f.__name__[1:]: f
    for f in (
        _numbers,
        _loop,
        _while,
        _powers,
        _gradient,
        _checkpointed,
        _branches,
        _functions,
    )
}
TRANSFORMS = {
    "call": lambda m, f: f,
    "jit": lambda m, f: m.jit(f),
    "jvp": lambda m, f: lambda x: m.jvp(f, (x,), (x,)),
    "grad": lambda m, f: m.grad(f),
    "jit of grad": lambda m, f: m.jit(m.grad(f)),
    "grad of jit": lambda m, f: m.grad(m.jit(f)),
    "grad of checkpoint": lambda m, f: m.grad(m.checkpoint(f)),
    "linearize": lambda m, f: lambda x: m.linearize(f, x)[1](x),
    "vmap of grad": lambda m, f: lambda x: m.vmap(m.grad(f))(m.numpy.stack([x, x])),
    "hessian": lambda m, f: m.hessian(f),
}


def _outcome(m, body, transform):
    importlib.import_module(f"{m.__name__}.scipy.special")

    def f(x):
        with m.enable_x64(True):
            return BODIES[body](m, x.astype("float64")).astype("float32")

    return TRANSFORMS[transform](m, f)(m.numpy.float32(1.7))


# Neither library: rules of these functions make numbers where the derivative is taken.
_NOT_UPSTREAM = {
    ("functions", name) for name in ("grad of jit", "grad of checkpoint", "vmap of grad", "hessian")
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("body", BODIES)
def test_wide_types_within(body, transform):
    """The derivatives are taken outside, where numbers have 32 bits."""
    if (body, transform) in _NOT_UPSTREAM:
        pytest.skip("upstream fails")
    ours = _outcome(minijax, body, transform)
    assert_same(ours, _outcome(jax, body, transform), ulps=16)


GIVEN = {
    "number": lambda m: 1.7,
    "float64": lambda m: np.float64(1.7),
    "NumPy array": lambda m: np.array(1.7),
    "array": lambda m: m.numpy.float32(1.7),
}
OF_NUMBERS = {
    "grad": lambda m, f: m.grad(f),
    "value_and_grad": lambda m, f: m.value_and_grad(f),
    "jit of grad": lambda m, f: m.jit(m.grad(f)),
    "grad of jit": lambda m, f: m.grad(m.jit(f)),
    "grad of checkpoint": lambda m, f: m.grad(m.checkpoint(f)),
    "grad of grad": lambda m, f: m.grad(m.grad(f)),
}


@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize("transform", OF_NUMBERS)
@pytest.mark.parametrize("given", GIVEN)
def test_numbers_keep_their_dtype(given, transform, within):
    """What is given outside has the dtype of the mode there, also where another mode is on."""
    if not within and given == "number" and transform not in ("grad of jit", "grad of checkpoint"):
        pytest.skip("upstream fails")

    def outcome(m):
        def f(x):
            with m.enable_x64(within):
                return m.numpy.sin(x) * x**3

        with m.enable_x64(not within):
            return OF_NUMBERS[transform](m, f)(GIVEN[given](m))

    assert_same(outcome(minijax), outcome(jax), ulps=4)


def _marked(m):
    """A primitive that cannot be lowered: it may stand only where nothing reads it."""
    extend = importlib.import_module(f"{m.__name__}.extend.core")
    p = extend.Primitive("never_lowered")
    p.def_abstract_eval(lambda x: x)
    return p.bind


DEAD = {
    "jit": lambda m, p, x: m.jit(lambda x: (p(x), x)[1])(x),
    "nested": lambda m, p, x: m.jit(lambda x: m.jit(lambda y: (p(y), y)[1])(x))(x),
    "result": lambda m, p, x: m.jit(lambda x: m.jit(lambda y: (p(y), y))(x)[1])(x),
    "scan": lambda m, p, x: m.lax.scan(lambda c, _: ((p(c), c + 1)[1], None), x, None, length=3)[0],
    "scan in jit": lambda m, p, x: m.jit(
        lambda x: m.lax.scan(lambda c, _: (c + 1, p(c)), x, None, length=3)[0]
    )(x),
    "carry": lambda m, p, x: m.jit(
        lambda x: m.lax.scan(lambda c, _: ((c[0], p(c[1])), None), (x, x), None, length=3)[0][0]
    )(x),
    "cond": lambda m, p, x: m.lax.cond(x > 0, lambda y: (p(y), y)[1], lambda y: -y, x),
    "checkpoint": lambda m, p, x: m.jit(
        lambda x: m.checkpoint(lambda y: (y + 1, p(y)))(x)[0]
    )(x),
    "grad": lambda m, p, x: m.jit(m.grad(lambda x: (p(m.lax.stop_gradient(x).astype(int)), x * 3)[1]))(x),
    "shard_map": lambda m, p, x: m.jit(lambda x: _mapped(m, lambda y: (p(y), y * 2))(x)[1])(x),
    "operand of shard_map": lambda m, p, x: m.jit(lambda x: _mapped(m, lambda y, z: (z, y))(p(x), x)[0])(x),
    "residual of jit": lambda m, p, x: _residual(m, p, m.jit)(x),
    "residual of jit in jit": lambda m, p, x: _residual(m, p, lambda f: m.jit(lambda x: m.jit(f)(x)))(x),
    "residual of cond": lambda m, p, x: _residual(m, p, lambda f: lambda y: m.lax.cond(
        y > 0, f, lambda y: (y, y * 3), y))(x),
    "residual of shard_map": lambda m, p, x: _residual(m, p, lambda f: _mapped(m, f))(x),
}  # fmt: skip


def _mapped(m, f):
    mesh, whole = m.make_mesh((1,), ("i",), (m.sharding.AxisType.Auto,)), m.P()
    return m.shard_map(f, mesh=mesh, in_specs=whole, out_specs=whole)


def _residual(m, p, called):
    """A gradient that does not need what another result's derivative would."""
    f = called(lambda y: (y * 2, p(m.lax.stop_gradient(y).astype(int)) * y))
    return m.jit(m.grad(lambda x: f(x)[0]))


@pytest.mark.parametrize("name", DEAD)
def test_dead_operations_need_no_lowering(name):
    ours, theirs = (DEAD[name](m, _marked(m), m.numpy.float32(2.0)) for m in BOTH)
    assert_same(ours, theirs)
