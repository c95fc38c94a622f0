"""Functions that look into floating-point numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.config import promoting_freely
from minijax.core.avals import get_aval
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.lax import arithmetic, compare, transcendental
from minijax.lax.arithmetic import add_p, mul_p, neg_p, sub_p
from minijax.lax.compare import and_p, or_p, select_n_p
from minijax.lax.convert import bitcast_convert_type
from minijax.numpy.division import remainder
from minijax.numpy.logic import greater, isnan, less
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    check_no_out,
    check_ranks,
    converted,
    filled_like,
    number_like,
    promote_dtypes_inexact,
    promote_inexact,
    promote_one,
    promote_one_inexact,
    promote_pair,
    promote_shapes,
    settled,
    to_array,
    typed_as,
)
from minijax.numpy.ufuncs import PAIR, multiply, named, subtract
from minijax.numpy.ufuncs import trunc as _trunc
from minijax.typing import Array, ArrayLike, BinaryFunction

__all__ = [
    "copysign", "fmax", "fmin", "frexp", "heaviside", "ldexp", "modf", "nan_to_num", "nextafter",
    "signbit", "spacing",
]  # fmt: skip


def where(condition: Any, x: Any, y: Any) -> Any:
    """Elements of `x` where `condition` is true, else of `y`; all broadcast and promote."""
    x, y = promote_pair("where", x, y)
    shape = broadcast_shapes(np.shape(condition), np.shape(x), np.shape(y))
    x, y = broadcast_to_shape(x, shape), broadcast_to_shape(y, shape)
    if condition.aval.ndim:
        condition = broadcast_to_shape(condition, shape)
    return select_n_p.bind(condition, y, x)


def _is_complex(x: Any) -> bool:
    return dtypes.issubdtype(get_aval(x).dtype, np.complexfloating)


@library
def signbit(x: ArrayLike, /) -> Array:
    """Test whether the sign bit of each element is set, as it is for -0.0.

    - `x`: real array of any shape.

    Returns a boolean array of the shape of `x`. ValueError for complex dtypes. Source: NumPy's
    `signbit`.

    >>> jnp.signbit(jnp.array([-0.0, 1.0]))
    Array([ True, False], dtype=bool)
    """
    x = promote_one("signbit", x)
    dtype = x.aval.dtype
    if dtypes.issubdtype(dtype, np.integer):
        x = converted(x, dtype)
        return compare.lt_p.bind(x, number_like(x, 0))
    if dtype == dtypes.bool_:
        return broadcast_to_shape(np.bool_(False), x.aval.shape)
    if not dtypes.issubdtype(dtype, np.floating):
        raise ValueError(
            f"jax.numpy.signbit is not well defined for {dtype.name}: take the real part first."
        )
    x = converted(x, dtype)
    bits = bitcast_convert_type(x, f"int{dtype.itemsize * 8}")
    return compare.lt_p.bind(bits, number_like(bits, 0))


@library
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Give the elements of one array the signs of another one.

    - `x1`: real array of magnitudes; `x2`: real array of signs. They broadcast.

    Returns an array of the broadcast shape, of a floating-point dtype. TypeError for complex
    dtypes. Source: NumPy's `copysign`.

    >>> jnp.copysign(jnp.array([1.0, -2.0]), jnp.array([-1.0, 1.0]))
    Array([-1.,  2.], dtype=float32)
    """
    args = x1, x2
    x1, x2 = promote_inexact("copysign", x1, x2)
    if _is_complex(x1):
        raise TypeError("copysign does not support complex-valued inputs: take the real parts.")
    size = arithmetic.abs(x1)
    return typed_as(where(signbit(x2), arithmetic.neg(size), size), *args)


@library
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the next representable number after x towards y.

    - `x`, `y`: real arrays that broadcast.

    Returns an array of the broadcast shape, of a floating-point dtype. TypeError for complex
    dtypes. Source: NumPy's `nextafter`.

    >>> jnp.nextafter(jnp.array([1.0]), jnp.array([2.0])) > 1.0
    Array([ True], dtype=bool)
    """
    return arithmetic.nextafter(*promote_inexact("nextafter", x, y))


@library
def spacing(x: ArrayLike, /) -> Array:
    """Return the distance from each element to the next number away from zero, with its sign.

    - `x`: real array of any shape, of 16 bits or more; for float16, the next larger number counts.

    Returns an array of the shape of `x`, of a floating-point dtype. ValueError for complex dtypes,
    NotImplementedError for those of 8 bits. Source: NumPy's `spacing`.

    >>> jnp.spacing(jnp.array([1.0])) == jnp.finfo(jnp.float32).eps
    Array([ True], dtype=bool)
    """
    check_arraylike("spacing", x)
    x = promote_one_inexact("spacing", x)
    if _is_complex(x):
        raise ValueError("jnp.spacing is not defined for complex inputs: take the real part.")
    dtype = x.aval.dtype
    x = converted(x, dtype)
    if dtype == np.float16:
        return sub_p.bind(arithmetic.nextafter(x, number_like(x, np.inf)), x)
    if dtype.itemsize < 2:
        raise NotImplementedError(
            f"jnp.spacing only supports 16, 32, and 64-bit types; got {dtype.name}: convert first."
        )
    towards = copysign(converted(np.inf, dtype), x)
    distance = sub_p.bind(arithmetic.nextafter(x, towards), x)
    # XLA may flush the smallest number to zero in the subtraction.
    least = copysign(number_like(x, float(dtypes.finfo(dtype).smallest_subnormal)), x)
    return where(compare.eq_p.bind(distance, number_like(x, 0)), least, distance)


@library
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Evaluate the step function: 0 for negative x1, x2 at zero, 1 for positive x1.

    - `x1`, `x2`: real arrays that broadcast.

    Returns an array of the broadcast shape, of a floating-point dtype. TypeError for complex
    dtypes. Source: NumPy's `heaviside`.

    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    is_scalar = not np.ndim(x1)
    check_arraylike("heaviside", x1, x2)
    x1, x2 = promote_dtypes_inexact(x1, x2)
    with promoting_freely():  # ranks alone
        x1, x2 = promote_shapes("heaviside", x1, x2)
    is_negative = compare.lt_p.bind(x1, number_like(x1, 0))
    is_zero = compare.eq_p.bind(x1, number_like(x1, 0))
    step = where(is_negative, number_like(x1, 0), number_like(x1, 1))
    out = where(is_zero, x2, where(isnan(x1), x1, step))
    return out if is_scalar else converted(out, out.dtype)


def _ignoring_nan(name: str, comparison: Callable) -> BinaryFunction:
    def fun(x1: ArrayLike, x2: ArrayLike) -> Array:
        x1, x2 = promote_pair(name, x1, x2)
        x1, x2 = to_array(name, x1), to_array(name, x2)
        return where(or_p.bind(comparison(x1, x2), isnan(x2)), x1, x2)

    which, result = ("larger", "[2., 3.]") if name == "fmax" else ("smaller", "[1., 3.]")
    summary = f"Return the {which} of two elements, ignoring NaN."
    doc = f"{summary}\n[1.0, 3.0]; [2.0, jnp.nan] -> {result}"
    return named(fun, name, doc, PAIR + "the promoted dtype.", "float32")


fmax = _ignoring_nan("fmax", greater)
fmin = _ignoring_nan("fmin", less)


@library(static=("copy",))
@promoting_freely()
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace NaN and infinities by numbers.

    - `x`: array of any shape; integers stay, and complex numbers are treated by parts.
    - `nan`: replaces NaN, 0 by default.
    - `posinf`, `neginf`: replace infinities, by default by the largest and the least finite number.
    - `copy`: has no effect.

    Returns an array of the shape and dtype of `x`. Source: NumPy's `nan_to_num`.

    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=9.0)
    Array([1., 0., 9.], dtype=float32)
    """
    del copy
    x = promote_one("nan_to_num", x)
    dtype = x.aval.dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        return x
    if _is_complex(x):
        parts = arithmetic.real(x), arithmetic.imag(x)
        return arithmetic.complex(*[nan_to_num(p, True, nan, posinf, neginf) for p in parts])
    x = converted(x, dtype)
    info = dtypes.finfo(dtype)
    posinf = info.max if posinf is None else posinf
    neginf = info.min if neginf is None else neginf
    out = where(isnan(x), converted(nan, dtype), x)
    if dtypes.supports_inf(dtype):
        for infinity, value in ((np.inf, posinf), (-np.inf, neginf)):
            is_infinite = compare.eq_p.bind(out, number_like(out, infinity))
            value = converted(to_array("nan_to_num", value), dtype)
            out = where(is_infinite, value, out)
    return out


# -- logarithms of sums of exponentials -------------------------------------------------------


def _log_of_sum(name: str, exp: Callable, log1p: Callable, doc: str) -> BinaryFunction:
    """log(exp(x1) + exp(x2)) in some base, without overflow and with derivatives at infinities."""

    @custom_jvp
    def from_same(x1, x2):
        gap = sub_p.bind(x1, x2)
        if _is_complex(x1):
            first = _is_larger(x1, x2)
            top, below = where(first, x1, x2), where(first, arithmetic.neg(gap), gap)
            return _principal(add_p.bind(top, log1p(exp(below))))
        top, below = arithmetic.max(x1, x2), arithmetic.neg(arithmetic.abs(gap))
        # x1 - x2 is NaN for equal infinities: their sum is the infinity, and passes NaNs on.
        return where(isnan(gap), add_p.bind(x1, x2), add_p.bind(top, log1p(exp(below))))

    @from_same.defjvp
    def _(primals, tangents):
        out = from_same(*primals)
        parts = [
            mul_p.bind(t, exp(sub_p.bind(_no_infinity(x), _no_infinity(out))))
            for x, t in zip(primals, tangents, strict=True)
        ]
        return out, add_p.bind(*parts)

    def fun(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        args = x1, x2
        x1, x2 = promote_inexact(name, x1, x2)
        shape = broadcast_shapes(np.shape(x1), np.shape(x2))
        out = from_same(broadcast_to_shape(x1, shape), broadcast_to_shape(x2, shape))
        return typed_as(out, *args) if name == "logaddexp" else settled(out)

    return named(fun, name, doc, PAIR + "a floating-point or complex dtype.", "float32")


def _is_larger(x1: Any, x2: Any) -> Any:
    """Whether the real part is larger: of two that are equal, the one with fewer turns to round."""
    real1, real2 = arithmetic.real(x1), arithmetic.real(x2)
    turns1, turns2 = (arithmetic.abs(arithmetic.imag(x)) for x in (x1, x2))
    fewer = compare.le_p.bind(turns1, turns2)
    return where(compare.eq_p.bind(real1, real2), fewer, compare.gt_p.bind(real1, real2))


def _no_infinity(x: Any) -> Any:
    """Zero in place of infinity: the slope of the larger operand is one there."""
    return where(compare.eq_p.bind(x, number_like(x, np.inf)), filled_like(x, 0), x)


def _principal(x: Any) -> Any:
    """A complex logarithm with its imaginary part between -pi and pi."""
    imag = arithmetic.imag(x)
    return arithmetic.complex(
        arithmetic.real(x), subtract(np.pi, remainder(subtract(np.pi, imag), 2 * np.pi))
    )


_INVERSE_LOG2 = 1 / np.log(2.0).item()

logaddexp = _log_of_sum(
    "logaddexp",
    transcendental.exp,
    transcendental.log1p,
    "Compute log(exp(x) + exp(y)) without overflow.\n[0.0]; [-jnp.inf] -> [0.]",
)
logaddexp2 = _log_of_sum(
    "logaddexp2",
    transcendental.exp2,
    lambda x: multiply(transcendental.log1p(x), _INVERSE_LOG2),
    "Compute log2(2**x + 2**y) without overflow.\n[3.0]; [3.0] -> [4.]",
)


# -- parts of a number ------------------------------------------------------------------------


@library
def modf(x: ArrayLike, /, out: Any = None) -> tuple[Array, Array]:
    """Split each element into its fractional and its integral part, both with its sign.

    - `x`: real array of any shape; integers become floats.

    Returns a pair of floating-point arrays of the shape of `x`. TypeError for complex dtypes.
    Source: NumPy's `modf`.

    >>> jnp.modf(jnp.array([2.5, -0.5]))
    (Array([ 0.5, -0.5], dtype=float32), Array([ 2., -0.], dtype=float32))
    """
    check_no_out("modf", out)
    x = promote_one_inexact("modf", x)
    whole = _trunc(x)
    # A zero has the sign of x, and the derivative of x.
    negative = neg_p.bind(sub_p.bind(whole, x))
    return select_n_p.bind(signbit(x), sub_p.bind(x, whole), negative), whole


_LAYOUT = {  # for each float: bits of the fraction, and of the exponent
    dtypes.float16: (10, 5),
    dtypes.BFLOAT16: (7, 8),
    dtypes.float32: (23, 8),
    dtypes.float64: (52, 11),
}


class _Bits:
    """A float in parts, by operations on integers: devices flush subnormal numbers to zero.

    `exponent` (int32) and `significand` (unsigned, its highest bit at place `fraction`) are those of a
    normal number also where the float is subnormal; both are meaningless where `special` is true:
    for zeros, infinities and NaN.
    """

    def __init__(self, x: Any):
        dtype = x.aval.dtype
        self.fraction, width = _LAYOUT[dtype]
        self.unsigned = unsigned = np.dtype(f"uint{dtype.itemsize * 8}").type
        self.bias, self.top = (1 << (width - 1)) - 1, (1 << width) - 1
        bits = bitcast_convert_type(x, unsigned)
        self.sign = and_p.bind(bits, unsigned(1 << (dtype.itemsize * 8 - 1)))
        size = sub_p.bind(bits, self.sign)
        below = and_p.bind(size, unsigned((1 << self.fraction) - 1))
        field = converted(
            compare.shift_right_logical_p.bind(size, unsigned(self.fraction)), np.int32
        )
        subnormal = compare.eq_p.bind(field, np.int32(0))
        lead = converted(compare.clz_p.bind(below), np.int32)
        shift = sub_p.bind(lead, np.int32(dtype.itemsize * 8 - 1 - self.fraction))
        shifted = compare.shift_left_p.bind(below, converted(shift, unsigned))
        whole = or_p.bind(below, unsigned(1 << self.fraction))
        self.significand = where(subnormal, shifted, whole)
        exponent = where(subnormal, sub_p.bind(np.int32(1), shift), field)
        self.exponent = sub_p.bind(exponent, np.int32(self.bias))
        is_zero = compare.eq_p.bind(size, unsigned(0))
        self.special = or_p.bind(is_zero, compare.eq_p.bind(field, np.int32(self.top)))

    def joined(self, exponent: Any, dtype: Any) -> Any:
        """The float of this sign and significand with an exponent, rounded to even if subnormal."""
        unsigned, fraction = self.unsigned, np.int32(self.fraction)
        field = add_p.bind(exponent, np.int32(self.bias))
        # As the fraction of a subnormal number, and the halves and the rest that are shifted out.
        lost = compare.clamp(np.int32(0), sub_p.bind(np.int32(1), field), fraction + np.int32(2))
        lost = converted(lost, unsigned)
        kept = compare.shift_right_logical_p.bind(self.significand, lost)
        rest = sub_p.bind(self.significand, compare.shift_left_p.bind(kept, lost))
        half = compare.shift_right_logical_p.bind(
            compare.shift_left_p.bind(unsigned(1), lost), unsigned(1)
        )
        odd = compare.eq_p.bind(and_p.bind(kept, unsigned(1)), unsigned(1))
        up = or_p.bind(
            compare.gt_p.bind(rest, half),
            and_p.bind(
                and_p.bind(compare.eq_p.bind(rest, half), odd), compare.gt_p.bind(lost, unsigned(0))
            ),
        )
        subnormal = add_p.bind(kept, converted(up, unsigned))
        normal = compare.clamp(np.int32(1), field, np.int32(self.top))
        normal = compare.shift_left_p.bind(converted(normal, unsigned), unsigned(self.fraction))
        below = and_p.bind(self.significand, unsigned((1 << self.fraction) - 1))
        infinite = compare.ge_p.bind(field, np.int32(self.top))
        normal = or_p.bind(normal, where(infinite, unsigned(0), below))
        size = where(compare.lt_p.bind(field, np.int32(1)), subnormal, normal)
        return bitcast_convert_type(or_p.bind(self.sign, size), dtype)


def _power_of_two(exponent: Any, dtype: Any) -> Any:
    """2**exponent, exact: exponents are int32, of normal numbers."""
    fraction, width = _LAYOUT[dtype]
    unsigned = np.dtype(f"uint{dtype.itemsize * 8}").type
    field = converted(add_p.bind(exponent, np.int32((1 << (width - 1)) - 1)), unsigned)
    return bitcast_convert_type(compare.shift_left_p.bind(field, unsigned(fraction)), dtype)


@custom_jvp
def _scaled(x, exponent):
    """x * 2**exponent, rounded once; exponents are int32."""
    dtype = x.aval.dtype
    if dtype not in _LAYOUT:  # of 8 bits and less: float32 has all products, or both flush them
        return converted(_scaled(converted(x, dtypes.float32), exponent), dtype)
    parts = _Bits(x)
    limit = np.int32(4 * parts.bias + 4 * parts.fraction)
    exponent = compare.clamp(np.int32(-limit), exponent, limit)
    out = parts.joined(add_p.bind(parts.exponent, exponent), dtype)
    return where(parts.special, x, out)


@_scaled.defjvp
def _scaled_jvp(primals, tangents):
    """The tangent is scaled by products with normal powers: their operations are linear."""
    x, exponent = primals
    t, dtype = tangents[0], primals[0].aval.dtype
    wide = dtype if dtype in _LAYOUT else dtypes.float32
    limit = np.int32((1 << (_LAYOUT[wide][1] - 1)) - 2)
    t = converted(t, wide)
    rest = exponent
    for _ in range(3):
        part = compare.clamp(np.int32(-limit), rest, limit)
        rest = sub_p.bind(rest, part)
        t = multiply(t, _power_of_two(part, wide))
    return _scaled(x, exponent), converted(t, dtype)


@library(whole=True)
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Split each element into mantissa and exponent, so that x = m * 2**e with 0.5 <= |m| < 1.

    - `x`: real array of any shape; integers become floats.

    Returns a pair of arrays of the shape of `x`: the mantissas, of a floating-point dtype, and the
    exponents, of int32. TypeError for complex dtypes. Source: NumPy's `frexp`.

    >>> jnp.frexp(jnp.array([1.0, 6.0]))
    (Array([0.5 , 0.75], dtype=float32), Array([1, 3], dtype=int32))
    """
    x = promote_one_inexact("frexp", x)
    if _is_complex(x):
        raise TypeError("frexp does not support complex-valued inputs: take the real part.")
    return _frexp(converted(x, x.aval.dtype))


@custom_jvp
def _frexp(x):
    dtype = x.aval.dtype
    if dtype not in _LAYOUT:
        mantissa, exponent = _frexp(converted(x, dtypes.float32))
        return converted(mantissa, dtype), exponent
    parts = _Bits(x)
    half = broadcast_to_shape(np.int32(-1), x.aval.shape)
    mantissa = where(parts.special, x, parts.joined(half, dtype))
    exponent = add_p.bind(parts.exponent, np.int32(1))
    return mantissa, where(parts.special, np.int32(0), exponent)


@_frexp.defjvp
def _frexp_jvp(primals, tangents):
    mantissa, exponent = _frexp(*primals)
    scale = transcendental.exp2(converted(arithmetic.neg(exponent), mantissa.aval.dtype))
    nothing = np.zeros(exponent.aval.shape, dtypes.float0)
    return (mantissa, exponent), (multiply(tangents[0], scale), nothing)


@library(whole=True)
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute x1 * 2**x2, rounded once.

    - `x1`: real array; `x2`: integer array. They broadcast.

    Returns an array of the broadcast shape and of the inexact dtype of `x1`. ValueError for other
    dtypes. Source: NumPy's `ldexp`.

    >>> jnp.ldexp(jnp.array([0.5, 0.75]), jnp.array([1, 3]))
    Array([1., 6.], dtype=float32)
    """
    check_arraylike("ldexp", x1, x2)
    check_ranks("ldexp", x1, x2)
    a, b = get_aval(x1).dtype, get_aval(x2).dtype
    if b == dtypes.bool_:
        x2, b = converted(x2, dtypes.int32), dtypes.int32
    if not dtypes.issubdtype(b, np.integer) or dtypes.issubdtype(a, np.complexfloating):
        raise ValueError(
            f"ldexp not supported for input types ({a!r}, {b!r}): the first is real, the second an "
            "integer."
        )
    x1 = promote_one_inexact("ldexp", x1)
    dtype = x1.aval.dtype
    x2 = to_array("ldexp", x2)
    info = dtypes.iinfo(x2.aval.dtype)
    if int(info.max) > 1 << 20:  # scaled by so much, every number is zero or infinite
        x2 = compare.clamp(_as(-(1 << 20), x2), x2, _as(1 << 20, x2))
    shape = broadcast_shapes(x1.aval.shape, x2.aval.shape)
    x1 = broadcast_to_shape(converted(x1, dtype), shape)
    return _scaled(x1, broadcast_to_shape(converted(x2, dtypes.int32), shape))


def _as(value: int, x: Any) -> Any:
    info = dtypes.iinfo(x.aval.dtype)
    return x.aval.dtype.type(min(max(value, int(info.min)), int(info.max)))
