"""Functions that look into floating-point numbers. May import the floors below and `ufuncs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import get_aval
from minijax.lax import arithmetic, compare, transcendental
from minijax.lax.arithmetic import add_p, mul_p, sub_p
from minijax.lax.compare import and_p, not_p, or_p, select_n_p
from minijax.lax.convert import bitcast_convert_type
from minijax.numpy.division import remainder
from minijax.numpy.logic import greater, isfinite, isnan, less
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    check_no_out,
    converted,
    filled_like,
    number_like,
    promote_inexact,
    promote_one,
    promote_one_inexact,
    promote_pair,
    promote_pair_inexact,
    settled,
    to_array,
    typed_as,
)
from minijax.numpy.ufuncs import multiply, named, subtract
from minijax.numpy.ufuncs import trunc as _trunc
from minijax.transforms.custom_jvp import custom_jvp
from minijax.transforms.library import library

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
def signbit(x, /):
    """Whether the sign bit is set: true of -0.0. ValueError for complex. Source: numpy.signbit."""
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
def copysign(x1, x2, /):
    """|x1| with the sign of x2. Source: numpy.copysign."""
    args = x1, x2
    x1, x2 = promote_inexact("copysign", x1, x2)
    if _is_complex(x1):
        raise TypeError("copysign does not support complex-valued inputs: take the real parts.")
    size = arithmetic.abs(x1)
    return typed_as(where(signbit(x2), arithmetic.neg(size), size), *args)


@library
def nextafter(x, y, /):
    """The next representable number after x towards y. Source: numpy.nextafter."""
    return arithmetic.nextafter(*promote_inexact("nextafter", x, y))


@library
def spacing(x, /):
    """The distance from x to the next number away from zero, with the sign of x.

    For float16 to the next larger number, as in NumPy. ValueError for complex,
    NotImplementedError for numbers of 8 bits. Source: numpy.spacing.
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
def heaviside(x1, x2, /):
    """0 where x1 is negative, x2 where it is zero, 1 where it is positive.

    Source: numpy.heaviside.
    """
    args = x1, x2
    x1, x2 = promote_pair_inexact("heaviside", x1, x2)
    is_negative = compare.lt_p.bind(x1, number_like(x1, 0))
    is_zero = compare.eq_p.bind(x1, number_like(x1, 0))
    step = where(is_negative, number_like(x1, 0), number_like(x1, 1))
    return settled(where(is_zero, x2, where(isnan(x1), x1, step)), args[0])


def _ignoring_nan(name: str, comparison: Callable) -> Callable:
    def fun(x1, x2):
        x1, x2 = promote_pair(name, x1, x2)
        x1, x2 = to_array(name, x1), to_array(name, x2)
        return where(or_p.bind(comparison(x1, x2), isnan(x2)), x1, x2)

    larger_or_smaller = "larger" if name == "fmax" else "smaller"
    return named(fun, name, f"The {larger_or_smaller} element, ignoring NaN. Source: numpy.{name}.")


fmax = _ignoring_nan("fmax", greater)
fmin = _ignoring_nan("fmin", less)


@library(static=("copy",))
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities replaced: by zero and by the largest finite numbers unless given.

    Integers stay. Source: numpy.nan_to_num.
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
            value = converted(value, dtype) if not hasattr(value, "dtype") else value.astype(dtype)
            out = where(is_infinite, value, out)
    return out


# -- logarithms of sums of exponentials -------------------------------------------------------


def _log_of_sum(name: str, exp: Callable, log1p: Callable, doc: str) -> Callable:
    """log(exp(x1) + exp(x2)) in some base, without overflow and with derivatives at infinities."""

    @custom_jvp
    def from_same(x1, x2):
        gap = sub_p.bind(x1, x2)
        if _is_complex(x1):
            first = compare.ge_p.bind(arithmetic.real(x1), arithmetic.real(x2))
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

    def fun(x1, x2, /):
        args = x1, x2
        x1, x2 = promote_inexact(name, x1, x2)
        shape = broadcast_shapes(np.shape(x1), np.shape(x2))
        out = from_same(broadcast_to_shape(x1, shape), broadcast_to_shape(x2, shape))
        return (typed_as if name == "logaddexp" else settled)(out, *args)

    return named(fun, name, doc)


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
    "log(exp(x1) + exp(x2)). Source: numpy.logaddexp.",
)
logaddexp2 = _log_of_sum(
    "logaddexp2",
    transcendental.exp2,
    lambda x: multiply(transcendental.log1p(x), _INVERSE_LOG2),
    "log2(2**x1 + 2**x2). Source: numpy.logaddexp2.",
)


# -- parts of a number ------------------------------------------------------------------------


@library
def modf(x, /, out=None):
    """The fractional and the integral part, both with the sign of x. Source: numpy.modf."""
    check_no_out("modf", out)
    x = promote_one_inexact("modf", x)
    whole = _trunc(x)
    return copysign(sub_p.bind(x, whole), x), whole


_LAYOUT = {  # for each float: bits of the fraction, and of the exponent
    dtypes.float16: (10, 5),
    dtypes.BFLOAT16: (7, 8),
    dtypes.float32: (23, 8),
    dtypes.float64: (52, 11),
}


@library
def frexp(x, /):
    """Mantissa m with 0.5 <= |m| < 1 and int32 exponent e so that x = m * 2**e.

    TypeError for complex. Source: numpy.frexp.
    """
    x = promote_one_inexact("frexp", x)
    if _is_complex(x):
        raise TypeError("frexp does not support complex-valued inputs: take the real part.")
    return _frexp(converted(x, x.aval.dtype))


@custom_jvp
def _frexp(x):
    dtype = x.aval.dtype
    fraction, width = _LAYOUT[dtype]
    integer = np.dtype(f"int{dtype.itemsize * 8}")
    tiny = compare.lt_p.bind(arithmetic.abs(x), number_like(x, float(dtypes.finfo(dtype).tiny)))
    scaled = where(tiny, multiply(x, 2.0**fraction), x)
    bits = bitcast_convert_type(scaled, integer)
    mask = integer.type((1 << width) - 1)
    exponent = and_p.bind(compare.shift_right_logical_p.bind(bits, integer.type(fraction)), mask)
    bias = (1 << (width - 1)) - 1
    exponent = sub_p.bind(converted(exponent, dtypes.int32), np.int32(bias - 1))
    exponent = sub_p.bind(exponent, where(tiny, np.int32(fraction), np.int32(0)))
    kept = and_p.bind(bits, ~integer.type(int(mask) << fraction))
    mantissa = or_p.bind(kept, integer.type((bias - 1) << fraction))
    special = or_p.bind(compare.eq_p.bind(x, number_like(x, 0)), not_p.bind(isfinite(x)))
    exponent = where(special, np.int32(0), exponent)
    mantissa = where(special, x, bitcast_convert_type(mantissa, dtype))
    return mantissa, exponent


@_frexp.defjvp
def _frexp_jvp(primals, tangents):
    mantissa, exponent = _frexp(*primals)
    scale = transcendental.exp2(converted(arithmetic.neg(exponent), mantissa.aval.dtype))
    nothing = np.zeros(exponent.aval.shape, dtypes.float0)
    return (mantissa, exponent), (multiply(tangents[0], scale), nothing)


@library
def ldexp(x1, x2, /):
    """x1 * 2**x2 for integers x2. ValueError for others. Source: numpy.ldexp."""
    check_arraylike("ldexp", x1, x2)
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
    # A power of two may be out of range where the product is not: multiply in parts.
    limit = dtypes.finfo(dtype).maxexp - 1
    out = x1
    for _ in range(3):
        part = compare.clamp(_as(-limit, x2), x2, _as(limit, x2))
        x2 = sub_p.bind(x2, part)
        factor = transcendental.exp2(converted(part, dtype, x1.aval.weak_type))
        out = multiply(out, factor)
    return converted(out, dtype)


def _as(value: int, x: Any) -> Any:
    info = dtypes.iinfo(x.aval.dtype)
    return x.aval.dtype.type(min(max(value, int(info.min)), int(info.max)))
