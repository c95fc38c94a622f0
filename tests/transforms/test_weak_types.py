"""Weak types of cotangents: programs hand strong ones on as strong, whatever their results are."""

import jax
import numpy as np
import pytest

import minijax
from tests.harness.differential import assert_same

pytestmark = pytest.mark.both_ends

PROGRAMS = {
    "jit": lambda m, x: m.jit(lambda y: y * 2.0)(x),
    "jit of sin": lambda m, x: m.jit(m.numpy.sin)(x),
    "nested jit": lambda m, x: m.jit(lambda y: m.jit(m.numpy.exp)(y) * y)(x),
    "jit of custom_jvp": lambda m, x: m.jit(m.nn.silu)(x),
    "cond": lambda m, x: m.lax.cond(x > 0, lambda y: y * y, lambda y: y * 3.0, x),
    "switch": lambda m, x: m.lax.switch(1, [lambda y: y, lambda y: y * 3.0], x),
    "scan": lambda m, x: m.lax.scan(lambda c, _: (c * 2.0, c), x, None, length=3)[0],
    "scan of a constant": lambda m, x: m.lax.fori_loop(0, 3, lambda _, c: c * x, 1.0),
    "scan that stacks": lambda m, x: m.lax.scan(lambda c, _: (c, c * x), x, None, length=3)[1],
    "scan that makes it strong": lambda m, x: m.lax.scan(
        lambda c, y: (c * y, c), x, np.arange(1, 4, dtype=np.float32)
    )[0],
    "scan that makes its double strong": lambda m, x: m.lax.scan(
        lambda c, y: (c * 2.0 * y, c), x, np.arange(1, 4, dtype=np.float32)
    )[0],
    "scan that makes its sine strong": lambda m, x: m.lax.scan(
        lambda c, y: (m.numpy.sin(c) * y + c, None), x, np.arange(1, 4, dtype=np.float32)
    )[0],
    "scan whose jitted body makes it strong": lambda m, x: m.lax.scan(
        m.jit(lambda c, y: (c * y, None)), x, np.arange(1, 4, dtype=np.float32)
    )[0],
    "scan that makes it strong in jit": lambda m, x: m.lax.scan(
        lambda c, y: (m.jit(lambda c, y: m.jit(m.numpy.multiply)(c, y) + c)(c, y), c),
        x,
        np.arange(1, 4, dtype=np.float32),
    )[0],
    "loop that makes it strong": lambda m, x: m.lax.fori_loop(
        0, 3, lambda _, c: c * m.numpy.float32(2), x
    ),
    "checkpoint": lambda m, x: m.checkpoint(lambda y: m.numpy.sin(y) * y)(x),
}

COTANGENTS = {
    "strong": lambda m, y: m.numpy.ones(y.shape, y.dtype),
    "NumPy": lambda m, y: np.ones(y.shape, y.dtype),
    "of the result's type": lambda m, y: m.lax.full_like(y, 1.0),
}

PRIMALS = {"weak": lambda m: m.numpy.asarray(1.5), "strong": lambda m: m.numpy.float32(1.5)}


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("primal", PRIMALS)
@pytest.mark.parametrize("cotangent", COTANGENTS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_cotangents(program, cotangent, primal, jitted):
    def pulled(m):
        def both(x):
            y, pull = m.vjp(lambda x: PROGRAMS[program](m, x), x)
            return y, pull(COTANGENTS[cotangent](m, y))

        return (m.jit(both) if jitted else both)(PRIMALS[primal](m))

    ours, theirs = pulled(minijax), pulled(jax)
    assert_same(ours, theirs, where=f"{cotangent} cotangent of {program}, {primal} primal")


_LINEAR = {
    "conj": lambda m, x: m.numpy.conj(x),
    "conj twice": lambda m, x: m.numpy.conj(m.numpy.conj(x)),
    "conj of a product": lambda m, x: m.numpy.conj(x * x),
    "conj in jit": lambda m, x: m.jit(m.numpy.conj)(x),
    "conj in checkpoint": lambda m, x: m.checkpoint(m.numpy.conj)(x),
    "transpose": lambda m, x: m.numpy.transpose(x),
    "reshape": lambda m, x: m.numpy.reshape(x, (1, 1))[0, 0],
    "sum": lambda m, x: m.numpy.sum(x),
    "negative": lambda m, x: -x,
    "real": lambda m, x: m.numpy.real(x) * (1 + 0j),
}


@pytest.mark.parametrize("x", [0.3 + 0.4j, np.complex64(0.3 + 0.4j)], ids=["weak", "strong"])
@pytest.mark.parametrize("name", _LINEAR)
def test_gradients_of_linear_functions_of_complex_numbers(name, x):
    run = lambda m: m.grad(lambda y: _LINEAR[name](m, y), holomorphic=True)(x)
    ours, theirs = run(minijax), run(jax)
    assert_same(ours, theirs)
    assert ours.weak_type == theirs.weak_type


@pytest.mark.parametrize("batch", [None, (0, 0), (0, None), (None, 0)], ids=str)
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("kinds", ["ws", "sw", "ww", "ss"])
def test_sums_of_cotangents(kinds, jitted, batch):
    """Eagerly a sum is weak if both operands are, in a program if the first one is."""

    def added(m, add):
        one = {"w": m.numpy.asarray(1.5), "s": m.numpy.float32(2)}
        args = [one[kind] for kind in kinds]
        if batch is not None:
            add = m.vmap(add, batch)
            args = [a if d is None else m.numpy.stack([a, a]) for a, d in zip(args, batch)]
        return (m.jit(add) if jitted else add)(*args)

    theirs = added(jax, jax.interpreters.ad.add_jaxvals_p.bind)
    assert_same(added(minijax, minijax.interpreters.ad.add_jaxvals_p.bind), theirs)


@pytest.mark.parametrize("other", ["first", "second"])
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_sums_of_weak_and_strong_cotangents(jitted, other):
    def gradient(m):
        def strong(x):
            return m.lax.scan(lambda c, y: (c * y, None), x, np.arange(1, 3, dtype=np.float32))[0]

        def f(x):
            parts = [strong(x), x * 2.0]
            return sum(parts if other == "first" else parts[::-1])

        return (m.jit(m.grad(f)) if jitted else m.grad(f))(m.numpy.asarray(1.5))

    assert_same(gradient(minijax), gradient(jax))
