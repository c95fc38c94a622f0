"""Functions on elements that are one primitive, or nearly: arithmetic, roots, trigonometry.

May import the floors below and `numpy.promotion`. Comparisons and bits stand in `logic`, division
and powers in `division`, what looks into floating-point numbers in `floats`. Each takes arrays of
any shapes that broadcast and promotes their dtypes; those named after a NumPy function compute what
that one does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.lax import arithmetic, compare, transcendental
from minijax.lax.arithmetic import add_p, integer_pow_p, max_p, min_p, mul_p, neg_p, sub_p
from minijax.lax.compare import and_p, or_p
from minijax.numpy.promotion import (
    broadcast_to_shape,
    check_arraylike,
    check_no_out,
    converted,
    filled_like,
    number_like,
    promote_one,
    promote_one_inexact,
    promote_pair,
    promote_pair_inexact,
    settled,
)
from minijax.transforms.custom_jvp import custom_jvp
from minijax.transforms.library import library

__all__ = [
    "abs", "absolute", "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "around", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil",
    "clip", "conj", "conjugate", "cos", "cosh", "deg2rad", "degrees", "exp", "exp2", "expm1",
    "fabs", "floor", "hypot", "imag", "log", "log10", "log1p", "log2", "positive", "rad2deg",
    "radians", "real", "reciprocal", "rint", "round", "sign", "sin", "sinc", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc",
]  # fmt: skip

_BOOL = dtypes.bool_


def named(fun: Callable, name: str, doc: str) -> Callable:
    """Give a function made by a table its name and its docstring, and make it a library function."""
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = doc
    fun.__module__ = "minijax.numpy"
    return library(fun)


def _inexact(name: str, function: Callable, doc: str) -> Callable:
    """A function of one argument, computed in a floating or complex dtype."""

    def fun(x, /):
        return function(promote_one_inexact(name, x))

    return named(fun, name, doc)


def _same(name: str, function: Callable, doc: str) -> Callable:
    """A function of one argument, computed in the dtype that this has."""

    def fun(x, /):
        return function(promote_one(name, x))

    return named(fun, name, doc)


def _pair(name: str, p: Any, doc: str, on_bool: Any = None) -> Callable:
    """A primitive of two operands; another one for booleans."""
    bind = p.bind

    def fun(x, y, /):
        x, y = promote_pair(name, x, y)
        return bind(x, y)

    def fun_with_bool(x, y, /):
        x, y = promote_pair(name, x, y)
        if getattr(x, "dtype", None) == _BOOL:
            return on_bool.bind(x, y)
        return bind(x, y)

    return named(fun_with_bool if on_bool is not None else fun, name, doc)


# -- arithmetic -------------------------------------------------------------------------------

add = _pair("add", add_p, "x + y; for booleans, x or y.", on_bool=or_p)
subtract = _pair("subtract", sub_p, "x - y. TypeError for booleans.")
multiply = _pair("multiply", mul_p, "x * y; for booleans, x and y.", on_bool=and_p)
maximum = _pair("maximum", max_p, "The larger of two elements; NaN if one is.")
minimum = _pair("minimum", min_p, "The smaller of two elements; NaN if one is.")
negative = _same("negative", neg_p.bind, "-x. TypeError for booleans.")
positive = _same("positive", lambda x: x, "+x, which is x.")
sign = _same("sign", arithmetic.sign, "-1, 0 or 1; for complex, x / |x|.")


@library
def abs(x, /):
    """Absolute value; a real dtype for a complex one. Source: numpy.absolute."""
    x = promote_one("abs", x)
    dtype = x.aval.dtype
    if dtype == _BOOL or dtypes.issubdtype(dtype, np.unsignedinteger):
        return x
    return arithmetic.abs(x)


absolute = abs


@library
def fabs(x, /):
    """Absolute value in a floating dtype. TypeError for complex. Source: numpy.fabs."""
    x = promote_one_inexact("fabs", x)
    if dtypes.issubdtype(x.aval.dtype, np.complexfloating):
        raise TypeError("ufunc 'fabs' does not support complex dtypes: use abs.")
    return arithmetic.abs(x)


@library
def square(x, /):
    """x * x. Source: numpy.square."""
    x = promote_one("square", x)
    return arithmetic.square(converted(x, dtypes.int32) if x.aval.dtype == _BOOL else x)


@library
def reciprocal(x, /):
    """1 / x, in a floating or complex dtype. Source: numpy.reciprocal."""
    return integer_pow_p.bind(promote_one_inexact("reciprocal", x), y=-1)


@library
def clip(arr=None, /, min=None, max=None):
    """Elements below `min` set to it and those above `max` set to that; neither if None.

    `min` and `max` broadcast. ValueError for complex. Source: numpy.clip.
    """
    if arr is None:
        raise TypeError("clip(): the array is missing; it is the first, positional argument.")
    check_arraylike("clip", arr, *[bound for bound in (min, max) if bound is not None])
    for x in (arr, min, max):
        if x is not None and dtypes.issubdtype(dtypes.dtype(x), np.complexfloating):
            raise ValueError(
                "Clip received a complex value either through the input or the min/max keywords. "
                "Complex values have no ordering: clip the real and imaginary parts."
            )
    if min is not None:
        arr = maximum(min, arr)
    if max is not None:
        arr = minimum(max, arr)
    return promote_one("clip", arr)


# -- rounding ---------------------------------------------------------------------------------


def _integers_stay(name: str, function: Callable, doc: str) -> Callable:
    def fun(x, /):
        x = promote_one(name, x)
        return function(x) if x.aval.dtype.kind in "fcV" and _is_inexact(x) else x

    return named(fun, name, doc)


def _is_inexact(x: Any) -> bool:
    return dtypes.issubdtype(x.aval.dtype, np.inexact)


def _is_complex(x: Any) -> bool:
    return x.aval.dtype.kind == "c"


floor = _integers_stay("floor", arithmetic.floor, "The largest integer not above x.")
ceil = _integers_stay("ceil", arithmetic.ceil, "The smallest integer not below x.")
_EVEN = arithmetic.RoundingMethod.TO_NEAREST_EVEN


@library
def trunc(x):
    """The nearest integer towards zero. Integers stay. Source: numpy.trunc."""
    x = promote_one("trunc", x)
    if not _is_inexact(x):
        return x
    negative_ones = compare.lt_p.bind(x, number_like(x, 0))
    return compare.select_n(negative_ones, arithmetic.floor(x), arithmetic.ceil(x))


@library
def rint(x, /):
    """The nearest integer, halves to even, in a floating dtype. Source: numpy.rint."""
    x = promote_one("rint", x)
    if not _is_inexact(x):
        return converted(x, dtypes.float_())
    return _by_part(_round_even, x)


def _round_even(x: Any) -> Any:
    return arithmetic.round(x, _EVEN)


def _by_part(function: Callable, x: Any) -> Any:
    """A function on reals applied to the real and imaginary part of a complex array."""
    if not _is_complex(x):
        return function(x)
    return arithmetic.complex(function(arithmetic.real(x)), function(arithmetic.imag(x)))


@library(static=("decimals", "out"))
def round(a, decimals=0, out=None):
    """Rounded to a number of decimals, halves to even. Integers stay. Source: numpy.round.

    NotImplementedError for integers with negative `decimals`.
    """
    check_no_out("round", out)
    decimals = operator.index(decimals)
    a = promote_one("round", a)
    dtype = a.aval.dtype
    if dtypes.issubdtype(dtype, np.integer):
        if decimals < 0:
            raise NotImplementedError(
                f"integer np.round not implemented for decimals < 0 (got {decimals}): convert to "
                "a floating dtype first."
            )
        return a
    if not _is_inexact(a):
        raise ValueError(f"round takes numbers; got dtype {dtype.name}. Use .astype(int).")

    def to_decimals(x):
        if decimals == 0:
            return _round_even(x)
        kept, weak = x.aval.dtype, x.aval.weak_type and not x.aval.ndim
        wide = converted(x, dtypes.float32, weak) if kept.itemsize < 4 else x
        factor = 10.0**decimals if decimals > 0 else 10.0 ** (-decimals)
        scale, unscale = (multiply, _divide) if decimals > 0 else (_divide, multiply)
        return converted(unscale(_round_even(scale(wide, factor)), factor), kept, weak)

    return _by_part(to_decimals, a)


def _divide(x: Any, y: Any) -> Any:
    return arithmetic.div_p.bind(*promote_pair("divide", x, y))


around = round

# -- exponentials and roots -------------------------------------------------------------------

exp = _inexact("exp", transcendental.exp, "e to the power of x.")
exp2 = _inexact("exp2", transcendental.exp2, "2 to the power of x.")
expm1 = _inexact("expm1", transcendental.expm1, "exp(x) - 1, accurate near zero.")
log = _inexact("log", transcendental.log, "Natural logarithm.")
log1p = _inexact("log1p", transcendental.log1p, "log(1 + x), accurate near zero.")
sqrt = _inexact("sqrt", arithmetic.sqrt, "Square root; NaN for negative reals.")
cbrt = _inexact("cbrt", arithmetic.cbrt, "Cube root. TypeError for complex.")


@library
def log2(x, /):
    """Logarithm to base 2. Source: numpy.log2."""
    x = promote_one_inexact("log2", x)

    def by_log_of_two(part):
        two = np.asarray(2).astype(part.aval.dtype)[()]
        return arithmetic.div_p.bind(part, transcendental.log(two))

    return _by_part(by_log_of_two, transcendental.log(x))


@library
def log10(x, /):
    """Logarithm to base 10. Source: numpy.log10."""
    x = promote_one_inexact("log10", x)

    def by_log_of_ten(part):
        factor = np.asarray(1 / np.log(10.0)).astype(part.aval.dtype)[()]
        return mul_p.bind(part, factor)

    return _by_part(by_log_of_ten, transcendental.log(x))


# -- trigonometry -----------------------------------------------------------------------------

sin = _inexact("sin", transcendental.sin, "Sine, of radians.")
cos = _inexact("cos", transcendental.cos, "Cosine, of radians.")
tan = _inexact("tan", transcendental.tan, "Tangent, of radians.")
arcsin = _inexact("arcsin", transcendental.asin, "Inverse sine, in radians.")
arccos = _inexact("arccos", transcendental.acos, "Inverse cosine, in radians.")
arctan = _inexact("arctan", transcendental.atan, "Inverse tangent, in radians.")
sinh = _inexact("sinh", transcendental.sinh, "Hyperbolic sine.")
cosh = _inexact("cosh", transcendental.cosh, "Hyperbolic cosine.")
tanh = _inexact("tanh", transcendental.tanh, "Hyperbolic tangent.")
arcsinh = _inexact("arcsinh", transcendental.asinh, "Inverse hyperbolic sine.")
arccosh = _inexact("arccosh", transcendental.acosh, "Inverse hyperbolic cosine.")
arctanh = _inexact("arctanh", transcendental.atanh, "Inverse hyperbolic tangent.")
asin, acos, atan = arcsin, arccos, arctan
asinh, acosh, atanh = arcsinh, arccosh, arctanh

degrees = _inexact(
    "degrees", lambda x: multiply(x, number_like(x, 180 / np.pi)), "Radians in degrees."
)
radians = _inexact(
    "radians", lambda x: multiply(x, number_like(x, np.pi / 180)), "Degrees in radians."
)
rad2deg, deg2rad = degrees, radians


@library
def arctan2(x1, x2, /):
    """The angle of the point (x2, x1), in radians from -pi to pi. Source: numpy.arctan2."""
    return transcendental.atan2(*promote_pair_inexact("arctan2", x1, x2))


atan2 = arctan2


@library
def hypot(x1, x2, /):
    """sqrt(x1**2 + x2**2) without overflow. ValueError for complex. Source: numpy.hypot."""
    args = x1, x2
    x1, x2 = promote_pair_inexact("hypot", x1, x2)
    if dtypes.dtype(x1).kind == "c":
        raise ValueError(
            "jnp.hypot is not well defined for complex-valued inputs: convert them to real values "
            "first, such as by abs(x)."
        )
    x1, x2 = abs(x1), abs(x2)
    large, small = maximum(x1, x2), minimum(x1, x2)
    is_zero = compare.eq_p.bind(large, number_like(large, 0))
    safe = compare.select_n(is_zero, large, filled_like(large, 1))
    ratio = arithmetic.div(small, safe)
    scaled = multiply(large, arithmetic.sqrt(add(1, square(ratio))))
    finite = compare.select_n(is_zero, scaled, large)
    infinite = or_p.bind(
        compare.eq_p.bind(x1, number_like(x1, np.inf)),
        compare.eq_p.bind(x2, number_like(x2, np.inf)),
    )
    infinite = broadcast_to_shape(infinite, finite.shape)
    out = compare.select_n(infinite, finite, filled_like(finite, np.inf))
    return settled(out, *args)


@library
def sinc(x, /):
    """sin(pi x) / (pi x), and 1 at zero, with derivatives there. Source: numpy.sinc."""
    x = promote_one_inexact("sinc", x)
    x = multiply(x, number_like(x, np.pi))
    is_zero = compare.eq_p.bind(x, number_like(x, 0))
    safe = compare.select_n(is_zero, x, filled_like(x, 1))
    near = _sinc_at_zero(0, x)
    return compare.select_n(is_zero, arithmetic.div(transcendental.sin(safe), safe), near)


@partial(custom_jvp, nondiff_argnums=(0,))
def _sinc_at_zero(order: int, x: Any) -> Any:
    """The derivative of this order of sin(x) / x at zero, from its Taylor series."""
    return filled_like(x, 0 if order % 2 else (-1) ** (order // 2) / (order + 1))


@_sinc_at_zero.defjvp
def _(order, primals, tangents):
    (x,), (t,) = primals, tangents
    return _sinc_at_zero(order, x), multiply(_sinc_at_zero(order + 1, x), t)


# -- complex numbers --------------------------------------------------------------------------


@library
def conjugate(x, /):
    """The complex conjugate; real arrays stay. Source: numpy.conjugate."""
    x = promote_one("conjugate", x)
    return arithmetic.conj(x) if _is_complex(x) else x


conj = conjugate


@library
def real(val, /):
    """The real part. Source: numpy.real."""
    val = promote_one("real", val)
    return arithmetic.real(val) if _is_complex(val) else val


@library
def imag(val, /):
    """The imaginary part; zeros for real arrays. Source: numpy.imag."""
    val = promote_one("imag", val)
    return arithmetic.imag(val) if _is_complex(val) else filled_like(val, 0)


@library(static=("deg",))
def angle(z, deg=False):
    """The argument of a complex number, in radians or, with `deg`, degrees. Source: numpy.angle."""
    z = promote_one("angle", z)
    if not _is_inexact(z):
        z = converted(z, dtypes.float_())
    if z.aval.dtype.kind != "c":  # the type of a complex number alone stays weak
        z = converted(z, z.aval.dtype)
    out = arctan2(imag(z), real(z))
    return degrees(out) if deg else out
