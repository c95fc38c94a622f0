"""Large arrays of NumPy's in programs: one constant for each, however often a program uses it."""

import re
import warnings

import jax
import numpy as np
import pytest

import minijax
from minijax.features import constants
from tests.harness.differential import assert_same

pytestmark = pytest.mark.both_ends

C = np.random.RandomState(0).rand(200, 200).astype(np.float32)
WITH_NAN = np.where(C > 0.9, np.nan, C).astype(np.float32)
WIDE, INTS, BACK, COMPLEX = C.astype(np.float64), (C * 100).astype(int), C[:, ::-1], C * 1j

PROGRAMS = {
    "operators": lambda m: lambda x: (x * C + C - C) / (C + 1),
    "where": lambda m: lambda x: m.numpy.where(x < C, C, x) + m.numpy.where(x > 0, C, 0.0),
    "products": lambda m: lambda x: (x * m.numpy.ones((200, 200))) @ C @ C,
    "einsum": lambda m: lambda x: m.numpy.einsum("ij,jk->ik", C, C) * x,
    "concatenate": lambda m: lambda x: m.numpy.concatenate([C, C]) * x,
    "stack": lambda m: lambda x: m.numpy.stack([C, C]) * x,
    "lax": lambda m: lambda x: m.lax.add(m.lax.mul(m.numpy.broadcast_to(x, C.shape), C), C),
    "float64": lambda m: lambda x: x * WIDE + WIDE,
    "integers": lambda m: lambda x: x * INTS + INTS,
    "NaNs": lambda m: lambda x: x * WITH_NAN + WITH_NAN,
    "view": lambda m: lambda x: x * BACK + BACK,
    "complex": lambda m: lambda x: x * COMPLEX + COMPLEX,
    "asarray": lambda m: lambda x: m.numpy.asarray(C) * x + m.numpy.asarray(C),
    "array": lambda m: lambda x: m.numpy.array(C) * x + m.numpy.array(C),
    "device_put": lambda m: lambda x: m.device_put(C) * x + m.device_put(C),
    "take": lambda m: lambda x: m.numpy.take(C, 0) * x + m.numpy.take(C, 1),
    "sums": lambda m: lambda x: m.numpy.sum(C) * x + m.numpy.mean(C),
    "scan": lambda m: lambda x: m.lax.scan(
        lambda c, a: (c * C + C, None), x * C, None, length=3)[0],
    "cond": lambda m: lambda x: m.lax.cond(x > 0, lambda x: x * C, lambda x: x + C, x),
    "while": lambda m: lambda x: m.lax.while_loop(
        lambda c: (c * C).sum() < 9, lambda c: c + C.sum() + (c * C).sum(), x),
    "jit": lambda m: (lambda g: lambda x: g(g(x)))(m.jit(lambda x: (x * C).sum())),
    "two jits": lambda m: lambda x: m.jit(lambda x: x * C)(x) + m.jit(lambda x: x + C)(x),
    "vmap": lambda m: lambda x: m.vmap(lambda y: (y * C + C).sum())(m.numpy.arange(3.0)) * x,
    "grad": lambda m: m.grad(lambda x: (m.numpy.sin(x * C) * C).sum()),
    "grad of jit": lambda m: m.grad(m.jit(lambda x: (m.numpy.sin(x * C) * C).sum())),
    "checkpoint": lambda m: m.grad(m.checkpoint(lambda x: (m.numpy.sin(x * C) * C).sum())),
    "a tree": lambda m: lambda x: m.tree.map(lambda a: a * x, {"a": C, "b": C}),
    "set": lambda m: lambda x: m.numpy.asarray(C).at[0].set(x) + C,
    "another shape": lambda m: lambda x: x * C.reshape(-1)[:40_000] + C.reshape(100, 400).ravel(),
}  # fmt: skip


def captured(m, fun):
    """Bytes of the constants of a program, as the warning tells; programs within are not counted."""
    m.config.update("jax_captured_constants_warn_bytes", 0)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            m.jit(fun).lower(np.float32(1.0))
    finally:
        m.config.update("jax_captured_constants_warn_bytes", 2_000_000_000)
    found = [re.search(r"\((\S+?)([KM]?B) total", str(one.message)) for one in caught]
    number, unit = [one for one in found if one][-1].groups()
    return round(float(number) * {"B": 1, "KB": 1e3, "MB": 1e6}[unit])


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_constant_for_one_array(name):
    ours, theirs = (PROGRAMS[name](m) for m in (minijax, jax))
    most = max(captured(jax, theirs), C.nbytes)  # upstream keeps some within programs of their own
    assert captured(minijax, ours) <= most
    x = np.float32(1.5)
    assert_same(minijax.jit(ours)(x), jax.jit(theirs)(x), ulps=64, size=1.0)


def test_writes_between_uses():
    """As for NumPy, an array that was written to has its new values from then on."""
    c = np.zeros(30_000, np.float32)

    def fun(x):
        before = x + c
        c[1:] = 5
        return before[1], (x + c)[1]

    assert [float(v) for v in minijax.jit(fun)(1.0)] == [1, 6]
    assert len(constants._made) == 0  # programs alone keep what was made


@pytest.mark.parametrize("wide_first", [False, True])
def test_the_mode_between_uses(wide_first):
    """Each use has the dtype of its mode; upstream gives that of the first use to both."""

    def fun(x):
        found = []
        for wide in (wide_first, not wide_first):
            with minijax.enable_x64(wide):
                found.append(minijax.numpy.asarray(WIDE))
        return found

    first, second = minijax.jit(fun)(1.0)
    assert [first.dtype, second.dtype] == [np.float64, np.float32][:: 1 if wide_first else -1]
    np.testing.assert_array_equal(first, WIDE.astype(first.dtype))
    np.testing.assert_array_equal(second, WIDE.astype(second.dtype))


def test_nothing_is_shared_outside_of_programs():
    x, y = minijax.numpy.asarray(C), minijax.numpy.asarray(C)
    x.delete()
    np.testing.assert_array_equal(y, C)
