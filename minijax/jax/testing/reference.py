"""A stand-in for `jax._src.lax_reference`: the operations on elements of `lax`, by NumPy.

Written from the definitions of the StableHLO specification. Each function takes and gives NumPy
arrays; numbers are computed in 64 bits and rounded to the operands' dtype. Special functions are
SciPy's, which is imported when the first is called. `reference_shapes` and `reference_windows` have
the other operations.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from minijax.jax.testing.widening import (
    bit_width,
    kind_of,
    narrow,
    operands,
    part_dtype,
    quiet,
    widened,
)

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e",
    "bessel_i1e", "betainc", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt",
    "ceil", "clamp", "clz", "complex", "conj", "cos", "cosh", "digamma", "div", "eq", "erf",
    "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "igamma", "igammac", "imag",
    "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt", "max", "min", "mul", "mulhi",
    "ne", "neg", "nextafter", "polygamma", "population_count", "pow", "real", "reciprocal", "rem",
    "round", "rsqrt", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin",
    "sinh", "sqrt", "square", "sub", "tan", "tanh", "zeta",
]  # fmt: skip


# Arithmetic.

add = widened(np.add)
sub = widened(np.subtract)
neg = widened(np.negative)
square = widened(np.square)
reciprocal = widened(lambda x: 1 / x)
abs = widened(np.abs, part_dtype)
max = widened(np.maximum)
min = widened(np.minimum)
clamp = widened(lambda min, x, max: np.minimum(np.maximum(x, min), max))
floor = widened(np.floor)
ceil = widened(np.ceil)


def mul(x: Any, y: Any, /, *, out_dtype: Any = None) -> np.ndarray:
    """The product, of the operands made `out_dtype` if one is given."""
    if out_dtype is not None:
        x, y = (np.asarray(operand).astype(out_dtype) for operand in (x, y))
    return _product(x, y)


_product = widened(np.multiply)


@widened
def div(x, y):
    """The quotient; of integers toward zero, and all bits are set where the divisor is zero."""
    if kind_of(x.dtype) not in "iu":
        return x / y
    floored = x // y
    short = (x % y != 0) & ((x < 0) != (y < 0))
    return np.where(y == 0, -np.ones_like(x), floored + short.astype(x.dtype))


@widened
def rem(x, y):
    """Return the remainder of `div`: with the dividend's sign; the dividend where the divisor is
    zero.
    """
    left = np.fmod(x, y)
    return np.where(y == 0, x, left) if kind_of(x.dtype) in "iu" else left


@widened
def sign(x):
    """-1, 0 or 1; of complex numbers x / |x|. Zeros and NaNs are given back."""
    if kind_of(x.dtype) == "c":
        return np.where(x == 0, x, x / np.abs(x))
    if kind_of(x.dtype) in "iu":
        return np.sign(x)
    return np.where((x == 0) | np.isnan(x), x, np.copysign(1.0, x))


@widened
def round(x, rounding_method=0):
    """The nearest integer; halves go away from zero, or by method 1 to the even neighbour."""
    if rounding_method:
        return np.rint(x)
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


@quiet
def nextafter(x: Any, y: Any) -> np.ndarray:
    """The number next to `x` in its dtype, on the way to `y`."""
    return np.asarray(np.nextafter(*operands(x, y)))


@quiet
def mulhi(x: Any, y: Any) -> np.ndarray:
    """The high half of the bits of the product of integers, which Python computes in full."""
    x, y = operands(x, y)
    full = np.asarray(x.astype(object) * y.astype(object)) >> bit_width(x.dtype)
    return narrow(full, x.dtype)


# Complex numbers.


@quiet
def complex(x: Any, y: Any) -> np.ndarray:
    """The complex numbers of these parts."""
    x, y = operands(x, y)
    kind = np.complex128 if x.dtype == np.float64 else np.complex64
    found = np.empty(np.broadcast_shapes(x.shape, y.shape), kind)
    found.real, found.imag = x, y
    return found


def conj(x: Any) -> np.ndarray:
    """The conjugates; real numbers become complex."""
    (x,) = operands(x)
    return np.asarray(np.conj(x)) if kind_of(x.dtype) == "c" else complex(x, np.zeros_like(x))


real = widened(np.real, part_dtype)
imag = widened(np.imag, part_dtype)


# Exponentials, roots, and functions of angles.

exp = widened(np.exp)
expm1 = widened(np.expm1)
log = widened(np.log)
log1p = widened(np.log1p)
sqrt = widened(np.sqrt)
rsqrt = widened(lambda x: 1 / np.sqrt(x))
cbrt = widened(np.cbrt)
sin, cos, tan = map(widened, (np.sin, np.cos, np.tan))
asin, acos, atan = map(widened, (np.arcsin, np.arccos, np.arctan))
sinh, cosh, tanh = map(widened, (np.sinh, np.cosh, np.tanh))
asinh, acosh, atanh = map(widened, (np.arcsinh, np.arccosh, np.arctanh))


@widened
def exp2(x):
    """Powers of two."""
    return np.exp(x * np.log(2.0)) if kind_of(x.dtype) == "c" else np.exp2(x)


@widened
def logistic(x):
    """1 / (1 + exp(-x)), by an exponential that does not overflow."""
    right = np.real(x) >= 0
    small = np.exp(np.where(right, -x, x))
    return np.where(right, 1, small) / (1 + small)


@widened
def atan2(x, y):
    """The angle of the point (y, x); of complex numbers -i log((y + ix) / sqrt(x^2 + y^2))."""
    if kind_of(x.dtype) != "c":
        return np.arctan2(x, y)
    return -1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y))


def pow(x: Any, y: Any) -> np.ndarray:
    """Powers, of floats and complex numbers; exponents may be integers."""
    x = np.asarray(x)
    if kind_of(x.dtype) in "fc" and hasattr(y, "dtype") and kind_of(y.dtype) in "iu":
        return _integer_power(x, exponent=y.astype(np.int64))
    return _power(x, y)


_power = widened(np.power)
_integer_power = widened(lambda x, exponent: np.power(x, exponent))


# Special functions.


@functools.cache
def _special() -> Any:
    """`scipy.special`, which minijax needs for nothing else."""
    try:
        return importlib.import_module("scipy.special")
    except ImportError as error:
        raise ImportError(
            "the references of special functions are SciPy's, and SciPy is not installed here: "
            "install it with `pip install scipy`."
        ) from error


def _of_scipy(name: str) -> Any:
    return widened(lambda *xs: getattr(_special(), name)(*xs))


erf, erfc, erf_inv = map(_of_scipy, ("erf", "erfc", "erfinv"))
lgamma, digamma = map(_of_scipy, ("gammaln", "digamma"))
igamma, igammac = map(_of_scipy, ("gammainc", "gammaincc"))
betainc, zeta = map(_of_scipy, ("betainc", "zeta"))
bessel_i0e, bessel_i1e = map(_of_scipy, ("i0e", "i1e"))


@widened
def polygamma(m, x):
    """The m-th derivative of `digamma`: (-1)^(m+1) m! zeta(m + 1, x), for whole m (DLMF 5.15)."""
    special = _special()
    alternating = np.where(m % 2 == 0, -1.0, 1.0)
    higher = alternating * special.gamma(m + 1) * special.zeta(m + 1, x)
    found = np.where(m == 0, special.digamma(x), higher)
    return np.where((m < 0) | (m % 1 != 0), np.nan, found)


# Comparisons, and operations on bits.


def _bool(dtype: np.dtype) -> Any:
    return np.bool_


eq, ne = (widened(function, _bool) for function in (np.equal, np.not_equal))
ge, gt = (widened(function, _bool) for function in (np.greater_equal, np.greater))
le, lt = (widened(function, _bool) for function in (np.less_equal, np.less))
is_finite = widened(np.isfinite, _bool)
bitwise_and = widened(np.bitwise_and)
bitwise_or = widened(np.bitwise_or)
bitwise_xor = widened(np.bitwise_xor)
bitwise_not = widened(np.invert)


def _unsigned(x: np.ndarray) -> np.ndarray:
    """The bits of integers as numbers of 64 bits without a sign."""
    width = bit_width(x.dtype)
    full = x.astype(np.uint64 if kind_of(x.dtype) == "u" else np.int64).view(np.uint64)
    return full & np.uint64(2**width - 1)


def _shift(x: Any, y: Any, shifted: Any, beyond: Any) -> np.ndarray:
    """`shifted(bits, count)`, or `beyond(bits)` where the count is no number of bits there are."""
    x, y = operands(x, y)
    width = bit_width(x.dtype)
    bits, count = _unsigned(x), _unsigned(y)
    left = np.uint64(64 - width)
    known = count < width
    count = np.where(known, count, np.uint64(0))
    found = np.where(known, shifted(bits, count, left), beyond(bits, left))
    return narrow(found.astype(np.uint64).view(np.int64), x.dtype)


def _arithmetic(bits: np.ndarray, count: np.ndarray, left: np.uint64) -> np.ndarray:
    signed = (bits << left).view(np.int64)
    return (signed >> (count + left).astype(np.int64)).view(np.uint64)


def shift_left(x: Any, y: Any) -> np.ndarray:
    """The bits moved up; zero where they all go."""
    return _shift(x, y, lambda bits, count, left: bits << count, lambda bits, left: 0 * bits)


def shift_right_logical(x: Any, y: Any) -> np.ndarray:
    """The bits moved down, and zeros above them."""
    return _shift(x, y, lambda bits, count, left: bits >> count, lambda bits, left: 0 * bits)


def shift_right_arithmetic(x: Any, y: Any) -> np.ndarray:
    """The bits moved down, and copies of the highest above them."""
    last = np.uint64(63)
    return _shift(x, y, _arithmetic, lambda bits, left: _arithmetic(bits, last - left, left))


def _bits(x: np.ndarray) -> np.ndarray:
    """The bits of integers along a new last axis, the highest first."""
    places = np.arange(bit_width(x.dtype) - 1, -1, -1, dtype=np.uint64)
    return (_unsigned(x)[..., None] >> places) & np.uint64(1)


def population_count(x: Any) -> np.ndarray:
    """Return how many bits are set."""
    (x,) = operands(x)
    return narrow(_bits(x).sum(-1).astype(np.int64), x.dtype)


def clz(x: Any) -> np.ndarray:
    """Return how many bits stand above the highest that is set."""
    (x,) = operands(x)
    bits = _bits(x)
    return narrow(np.where(bits.any(-1), bits.argmax(-1), bits.shape[-1]), x.dtype)


for _name in __all__:
    globals()[_name].__name__ = _name
