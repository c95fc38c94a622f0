"""Arrays of known values, which NumPy makes where nothing is traced: no program is compiled."""

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax.runtime import executables
from tests.harness.differential import assert_same, x64

DTYPES = [
    "bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16",
    "uint32", "uint64", "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
    "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn",
]  # fmt: skip
OF_DTYPE = {
    "zeros": lambda m, dtype: m.numpy.zeros((2, 3), dtype),
    "ones": lambda m, dtype: m.numpy.ones(3, dtype),
    "empty": lambda m, dtype: m.numpy.empty((1, 2), dtype),
    "no elements": lambda m, dtype: m.numpy.ones((0, 3), dtype),
    "a scalar": lambda m, dtype: m.numpy.zeros((), dtype),
    "full": lambda m, dtype: m.numpy.full((2, 2), 1.25, dtype),
    "full of True": lambda m, dtype: m.numpy.full(2, True, dtype),
    "full of a large number": lambda m, dtype: m.numpy.full(2, 300, dtype),
    "full of NumPy's": lambda m, dtype: m.numpy.full(2, np.float64(0.1), dtype),
    "lax.full": lambda m, dtype: m.lax.full((2, 2), 1, dtype),
    "lax.full of a large number": lambda m, dtype: m.lax.full(2, 2**40 + 3, dtype),
    "like": lambda m, dtype: m.numpy.zeros_like(m.numpy.ones(3, dtype)),
    "full_like": lambda m, dtype: m.numpy.full_like(m.numpy.ones(3, dtype), 1),
    "lax.full_like": lambda m, dtype: m.lax.full_like(m.numpy.ones(3, dtype), 1),
    "mapped": lambda m, dtype: m.vmap(lambda x: m.numpy.ones(2, dtype), axis_size=3)(None),
    "traced": lambda m, dtype: m.jit(lambda: m.numpy.ones(2, dtype))(),
    "arange": lambda m, dtype: m.numpy.arange(5, dtype=dtype),
    "arange of floats": lambda m, dtype: m.numpy.arange(4.5, dtype=dtype),
    "arange from": lambda m, dtype: m.numpy.arange(2, 7, 2, dtype=dtype),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_DTYPE)
def test_dtypes(name, dtype):
    given = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    for wide in (False, True):
        with x64(wide):
            found = []
            for m in (minijax, jax):
                try:
                    found.append(OF_DTYPE[name](m, given))
                except (TypeError, ValueError, OverflowError) as error:
                    found.append(type(error).__name__)
            assert_same(*found, ulps=0)


VALUES = [0, -1, 2.5, True, 1j, -0.0, float("inf"), float("nan"), 1e300, 2**31, np.float16(0.1),
          np.int64(2**40), np.uint8(7), np.bool_(True), np.complex64(1 - 2j)]  # fmt: skip
OF_VALUE = {
    "full": lambda m, x: m.numpy.full((2, 3), x),
    "lax.full": lambda m, x: m.lax.full((2, 3), x),
    "broadcast": lambda m, x: m.lax.broadcast(x, (3,)),
    "broadcast_to": lambda m, x: m.numpy.broadcast_to(x, (1, 2)),
    "broadcast_in_dim": lambda m, x: m.lax.broadcast_in_dim(x, (2,), ()),
    "of an array": lambda m, x: m.numpy.full(2, m.numpy.asarray(x)),
    "differentiated": lambda m, x: m.jvp(lambda y: y + m.numpy.full(2, x), (1.0,), (1.0,)),
    "a gradient of zeros": lambda m, x: m.grad(lambda y: m.numpy.full(2, x).real.sum())(
        m.numpy.ones(3)
    ),
    "arange": lambda m, x: m.numpy.arange(x),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("name", OF_VALUE)
def test_values(name, value):
    for wide in (False, True):
        if name == "arange" and not 0 <= abs(value) < 100:
            continue
        with x64(wide):
            found = []
            for m in (minijax, jax):
                try:
                    found.append(OF_VALUE[name](m, value))
                except (TypeError, ValueError, OverflowError) as error:
                    found.append(type(error).__name__)
            assert_same(*found, ulps=0)


@pytest.mark.parametrize("size", [1, 300, 1 << 16, (1 << 16) + 1])
def test_small_ones_need_no_program(size, monkeypatch):
    def refuse(*args, **options):
        raise NotImplementedError("compiled")

    jnp = minijax.numpy
    minijax.clear_caches()
    monkeypatch.setattr(executables, "compile_module", refuse)
    made = [jnp.zeros, jnp.ones, lambda n: jnp.full(n, 2.5), jnp.arange,
            lambda n: jnp.arange(float(n)), lambda n: minijax.lax.full((n,), 3)]  # fmt: skip
    for make in made:
        if size <= 1 << 16:
            assert make(size).shape == (size,)
        else:
            with pytest.raises(NotImplementedError, match="compiled"):
                make(size)


@pytest.mark.parametrize("guard", ["debug_nans", "debug_infs"])
def test_guards_look_at_them(guard):
    for m in (minijax, jax):
        with getattr(m, guard)(True):
            assert m.numpy.full(2, 1.5).shape == (2,)
            with pytest.raises(FloatingPointError):
                m.numpy.full(2, float(guard.removeprefix("debug_").removesuffix("s")))


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit", "log"])
def test_ranges_are_no_transfers(level):
    for m in (minijax, jax):
        with m.transfer_guard(level):
            assert m.numpy.arange(3).shape == m.numpy.arange(3.0).shape == (3,)
