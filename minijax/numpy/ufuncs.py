"""Functions on elements that are one primitive, or nearly: arithmetic, roots, trigonometry.

Comparisons and bits stand in `logic`, division and powers in `division`, what looks into
floating-point numbers in `floats`. Each takes arrays of any shapes that broadcast and promotes
their dtypes; those named after a NumPy function compute what that one does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.errors import float0_error
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.lax import arithmetic, compare, transcendental
from minijax.lax.arithmetic import add_p, integer_pow_p, max_p, min_p, mul_p, neg_p, sub_p
from minijax.lax.barrier import optimization_barrier
from minijax.lax.compare import and_p, or_p, select_n_p
from minijax.lax.convert import stop_gradient
from minijax.numpy.promotion import (
    broadcast_to_shape,
    check_arraylike,
    check_dtypes,
    check_no_out,
    check_ranks,
    converted,
    filled_like,
    number_like,
    promote_one,
    promote_one_inexact,
    promote_pair,
    promote_pair_inexact,
    settled,
)
from minijax.typing import Array, ArrayLike, BinaryFunction, UnaryFunction

__all__ = [
    "abs", "absolute", "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "around", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil",
    "clip", "conj", "conjugate", "cos", "cosh", "deg2rad", "degrees", "exp", "exp2", "expm1",
    "fabs", "floor", "hypot", "imag", "log", "log10", "log1p", "log2", "positive", "rad2deg",
    "radians", "real", "reciprocal", "rint", "round", "sign", "sin", "sinc", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc",
]  # fmt: skip

_BOOL = dtypes.bool_


_ONE = "- `x`: array of any shape.\n\nReturns an array of the shape of `x`"
INEXACT = _ONE + ", of a floating-point or complex dtype."
SAME = _ONE + " and of its dtype."
PAIR = """- `x`, `y`: arrays or scalars whose shapes broadcast and whose dtypes promote.

Returns an array of the broadcast shape and of """


def named(fun: Callable, name: str, doc: str, takes: str, dtype: str) -> Any:
    """Return a table's function as a library function with its name and docstring.

    `doc` has a summary, remarks, and an example "arguments -> result", one on each line; `takes`
    describes arguments and result, and `dtype` is that of the example's result.
    """
    summary, *remarks, example = doc.split("\n")
    inputs, result = example.split(" -> ")
    arrays = ", ".join([f"jnp.array({x})" for x in inputs.split("; ")])
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = "\n".join(
        [summary, "", takes, *remarks, f"Source: NumPy's `{name}`.", "",
         f">>> jnp.{name}({arrays})", f"Array({result}, dtype={dtype})"]
    )  # fmt: skip
    fun.__module__ = "minijax.numpy"
    return library(fun)


def _inexact(name: str, function: Callable, doc: str) -> UnaryFunction:
    """A function of one argument, computed in a floating or complex dtype."""

    def fun(x: ArrayLike, /) -> Array:
        return function(promote_one_inexact(name, x))

    return named(fun, name, doc, INEXACT, "float32")


def _same(name: str, function: Callable, doc: str) -> UnaryFunction:
    """A function of one argument, computed in the dtype that this has."""

    def fun(x: ArrayLike, /) -> Array:
        return function(promote_one(name, x))

    return named(fun, name, doc, SAME, "int32")


def _pair(name: str, p: Any, doc: str, on_bool: Any = None) -> BinaryFunction:
    """A primitive of two operands; another one for booleans."""
    bind = p.bind

    def fun(x: ArrayLike, y: ArrayLike, /) -> Array:
        x, y = promote_pair(name, x, y)
        return bind(x, y)

    def fun_with_bool(x: ArrayLike, y: ArrayLike, /) -> Array:
        x, y = promote_pair(name, x, y)
        if getattr(x, "dtype", None) == _BOOL:
            return on_bool.bind(x, y)
        return bind(x, y)

    chosen = fun_with_bool if on_bool is not None else fun
    return named(chosen, name, doc, PAIR + "the promoted dtype.", "int32")


# -- arithmetic -------------------------------------------------------------------------------

add = _pair(
    "add",
    add_p,
    "Add elements; booleans by logical or.\n[1, 2]; [10, 20] -> [11, 22]",
    on_bool=or_p,
)
subtract = _pair(
    "subtract", sub_p, "Subtract elements.\nTypeError for booleans.\n[1, 2]; [10, 20] -> [ -9, -18]"
)
multiply = _pair(
    "multiply",
    mul_p,
    "Multiply elements; booleans by logical and.\n[1, 2]; [10, 20] -> [10, 40]",
    on_bool=and_p,
)
maximum = _pair(
    "maximum", max_p, "Return the larger of two elements; NaN if one is.\n[1, 5]; [3, 2] -> [3, 5]"
)
minimum = _pair(
    "minimum", min_p, "Return the smaller of two elements; NaN if one is.\n[1, 5]; [3, 2] -> [1, 2]"
)
negative = _same(
    "negative", neg_p.bind, "Negate each element.\nTypeError for booleans.\n[1, -2] -> [-1,  2]"
)
positive = _same(
    "positive",
    lambda x: _unchanged("positive", x),
    "Return each element unchanged, as +x does.\n[1, -2] -> [ 1, -2]",
)
sign = _same(
    "sign",
    arithmetic.sign,
    "Return the sign of each element: -1, 0 or 1; x / |x| for complex ones.\nTypeError for booleans.\n[-3, 0, 2] -> [-1,  0,  1]",
)


@library
def abs(x: ArrayLike, /) -> Array:
    """Compute the absolute value of each element.

    - `x`: array of any shape.

    Returns an array of the shape of `x` and of its dtype, or of the real one for a complex dtype.
    Source: NumPy's `abs`.

    >>> jnp.abs(jnp.array([-1, 2]))
    Array([1, 2], dtype=int32)
    """
    x = promote_one("abs", x)
    dtype = x.aval.dtype
    if dtype == _BOOL or dtypes.issubdtype(dtype, np.unsignedinteger):
        return x
    return arithmetic.abs(x)


absolute = abs


@library
def fabs(x: ArrayLike, /) -> Array:
    """Compute the absolute value of each element in a floating-point dtype.

    - `x`: real array of any shape.

    Returns an array of the shape of `x`. TypeError for complex dtypes. Source: NumPy's `fabs`.

    >>> jnp.fabs(jnp.array([-1, 2]))
    Array([1., 2.], dtype=float32)
    """
    x = promote_one_inexact("fabs", x)
    if dtypes.issubdtype(x.aval.dtype, np.complexfloating):
        raise TypeError("ufunc 'fabs' does not support complex dtypes: use abs.")
    return arithmetic.abs(x)


@library
def square(x: ArrayLike, /) -> Array:
    """Compute the square of each element.

    - `x`: array of any shape.

    Returns an array of the shape and dtype of `x`, int32 for booleans. Source: NumPy's `square`.

    >>> jnp.square(jnp.array([-2, 3]))
    Array([4, 9], dtype=int32)
    """
    x = promote_one("square", x)
    return arithmetic.square(converted(x, dtypes.int32) if x.aval.dtype == _BOOL else x)


@library
def reciprocal(x: ArrayLike, /) -> Array:
    """Compute 1 / x for each element.

    - `x`: array of any shape; integers become floats.

    Returns an array of the shape of `x`, of floating-point or complex dtype. Source: NumPy's
    `reciprocal`.

    >>> jnp.reciprocal(jnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return integer_pow_p.bind(promote_one_inexact("reciprocal", x), y=-1)


@library
def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """Limit elements to an interval.

    - `arr`: real array.
    - `min`, `max`: bounds, which broadcast with `arr`, or None for no bound. Where `min` is above
      `max`, the result is `max`.

    Returns an array of the broadcast shape and of the promoted dtype. ValueError for complex
    dtypes. Source: NumPy's `clip`.

    >>> jnp.clip(jnp.array([1, 5, 9]), 2, 6)
    Array([2, 5, 6], dtype=int32)
    """
    if arr is None:
        raise ValueError(
            "No input was provided to the clip function. It is the first, positional argument."
        )
    check_arraylike("clip", arr, *[bound for bound in (min, max) if bound is not None])
    for x in (arr, min, max):
        if x is not None and dtypes.issubdtype(dtypes.result_type(x), np.complexfloating):
            raise ValueError(
                "Clip received a complex value either through the input or the min/max keywords. "
                "Complex values have no ordering: clip the real and imaginary parts."
            )
    for name, bound, limit in (("maximum", min, maximum), ("minimum", max, minimum)):
        if bound is not None:
            check_dtypes(bound, arr)
            check_ranks(name, bound, arr)
            arr = limit(bound, arr)
    return promote_one("clip", arr)


# -- rounding ---------------------------------------------------------------------------------


def _integers_stay(name: str, function: Callable, doc: str) -> UnaryFunction:
    def fun(x: ArrayLike, /) -> Array:
        x = promote_one(name, x)
        if x.aval.dtype.kind in "fcV" and _is_inexact(x):
            return function(x)
        return _unchanged(name, x)

    return named(fun, name, doc, SAME, "float32")


def _unchanged(name: str, x: Any) -> Any:
    """The array, of integers. TypeError for random keys and float0, which are no numbers."""
    dtype = x.aval.dtype
    if dtype == dtypes.float0:
        raise float0_error(name)
    if dtypes.is_extended(dtype) and name != "positive":
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type. {name} takes numbers: key_data(key) gives "
            "the words of a random key."
        )
    return x


def _is_inexact(x: Any) -> bool:
    return dtypes.issubdtype(x.aval.dtype, np.inexact)


def _is_complex(x: Any) -> bool:
    return x.aval.dtype.kind == "c"


floor = _integers_stay(
    "floor",
    arithmetic.floor,
    "Round each element down to an integer; integers stay.\nTypeError for complex dtypes.\n[1.5, -1.5] -> [ 1., -2.]",
)
ceil = _integers_stay(
    "ceil",
    arithmetic.ceil,
    "Round each element up to an integer; integers stay.\nTypeError for complex dtypes.\n[1.5, -1.5] -> [ 2., -1.]",
)
_EVEN = arithmetic.RoundingMethod.TO_NEAREST_EVEN


@library
def trunc(x: ArrayLike) -> Array:
    """Round each element towards zero to an integer.

    - `x`: real array of any shape.

    Returns an array of the shape and dtype of `x`. TypeError for complex dtypes. Source: NumPy's
    `trunc`.

    >>> jnp.trunc(jnp.array([1.7, -1.7]))
    Array([ 1., -1.], dtype=float32)
    """
    x = promote_one("trunc", x)
    if not _is_inexact(x):
        return _unchanged("trunc", x)
    negative_ones = compare.lt_p.bind(x, number_like(x, 0))
    return compare.select_n(negative_ones, arithmetic.floor(x), arithmetic.ceil(x))


@library
def rint(x: ArrayLike, /) -> Array:
    """Round each element to the nearest integer, halves to the even one.

    - `x`: array of any shape; integers become floats, and complex numbers are rounded by parts.

    Returns an array of the shape of `x`, of floating-point or complex dtype. Source: NumPy's
    `rint`.

    >>> jnp.rint(jnp.array([0.5, 1.5, 2.6]))
    Array([0., 2., 3.], dtype=float32)
    """
    x = promote_one("rint", x)
    if x.aval.dtype == dtypes.float0:
        raise float0_error("rint")
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
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round elements to a number of decimals, halves to the even one.

    - `a`: numeric array of any shape; integers stay, and complex numbers are rounded by parts.
    - `decimals`: an int, 0 by default; negative ones round to tens, hundreds and so on.

    Returns an array of the shape and dtype of `a`. NotImplementedError for integers with negative
    `decimals`, ValueError for booleans. Source: NumPy's `round`.

    >>> jnp.round(jnp.array([0.5, 1.5, 2.6]))
    Array([0., 2., 3.], dtype=float32)
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
    if not dtypes.issubdtype(dtype, np.number) and dtype != np.bool_:
        raise TypeError(f"Cannot interpret '{dtype}' as a data type: round takes numbers.")
    if not _is_inexact(a):
        raise ValueError(f"round takes numbers; got dtype {dtype.name}. Use .astype(int).")

    def to_decimals(x):
        if decimals == 0:
            return _round_even(x)
        kept, weak = x.aval.dtype, x.aval.weak_type and not x.aval.ndim
        wide = converted(x, dtypes.float32, weak) if kept.itemsize < 4 else x
        most = -int(np.ceil(np.log10(float(dtypes.finfo(wide.aval.dtype).tiny))))
        if decimals > most:  # as far as they are told apart, numbers have fewer decimals
            return x
        if decimals > 0:
            scaled = multiply(wide, 10.0**decimals)
            out = _divide(_round_even(scaled), 10.0**decimals)
        else:  # in two steps where the inverse of the factor would be subnormal, which XLA would join
            steps = [10.0 ** min(size, most) for size in (-decimals, -decimals - most) if size > 0]
            scaled = wide
            for factor in steps:
                scaled = _divide(optimization_barrier(scaled), factor)
            out = _round_even(scaled)
            for factor in reversed(steps):
                out = multiply(optimization_barrier(out), factor)
        # Infinities stay, and what is too large to have decimals.
        out = select_n_p.bind(compare.is_finite_p.bind(scaled), stop_gradient(wide), out)
        return converted(out, kept, weak)

    return _by_part(to_decimals, a)


def _divide(x: Any, y: Any) -> Any:
    return arithmetic.div_p.bind(*promote_pair("divide", x, y))


around = round

# -- exponentials and roots -------------------------------------------------------------------

exp = _inexact("exp", transcendental.exp, "Compute e to the power of each element.\n[0.0] -> [1.]")
exp2 = _inexact(
    "exp2", transcendental.exp2, "Compute 2 to the power of each element.\n[1.0, 3.0] -> [2., 8.]"
)
expm1 = _inexact(
    "expm1", transcendental.expm1, "Compute exp(x) - 1, accurately near zero.\n[0.0] -> [0.]"
)
log = _inexact(
    "log",
    transcendental.log,
    "Compute the natural logarithm; NaN for negative reals.\n[1.0] -> [0.]",
)
log1p = _inexact(
    "log1p", transcendental.log1p, "Compute log(1 + x), accurately near zero.\n[0.0] -> [0.]"
)
sqrt = _inexact(
    "sqrt",
    arithmetic.sqrt,
    "Compute the square root; NaN for negative reals.\n[4.0, 9.0] -> [2., 3.]",
)
cbrt = _inexact(
    "cbrt", arithmetic.cbrt, "Compute the cube root.\nTypeError for complex dtypes.\n[0.0] -> [0.]"
)


@library
def log2(x: ArrayLike, /) -> Array:
    """Compute the logarithm to base 2; NaN for negative reals.

    - `x`: array of any shape; integers become floats.

    Returns an array of the shape of `x`, of floating-point or complex dtype. Source: NumPy's
    `log2`.

    >>> jnp.log2(jnp.array([1.0, 8.0])).round()
    Array([0., 3.], dtype=float32)
    """
    x = promote_one_inexact("log2", x)

    def by_log_of_two(part):
        two = np.asarray(2).astype(part.aval.dtype)[()]
        return arithmetic.div_p.bind(part, transcendental.log(two))

    return _by_part(by_log_of_two, transcendental.log(x))


@library
def log10(x: ArrayLike, /) -> Array:
    """Compute the logarithm to base 10; NaN for negative reals.

    - `x`: array of any shape; integers become floats.

    Returns an array of the shape of `x`, of floating-point or complex dtype. Source: NumPy's
    `log10`.

    >>> jnp.log10(jnp.array([1.0, 100.0])).round()
    Array([0., 2.], dtype=float32)
    """
    x = promote_one_inexact("log10", x)

    def by_log_of_ten(part):
        factor = np.asarray(1 / np.log(10.0)).astype(part.aval.dtype)[()]
        return mul_p.bind(part, factor)

    return _by_part(by_log_of_ten, transcendental.log(x))


# -- trigonometry -----------------------------------------------------------------------------

sin = _inexact(
    "sin", transcendental.sin, "Compute the sine of each element, in radians.\n[0.0] -> [0.]"
)
cos = _inexact(
    "cos", transcendental.cos, "Compute the cosine of each element, in radians.\n[0.0] -> [1.]"
)
tan = _inexact(
    "tan", transcendental.tan, "Compute the tangent of each element, in radians.\n[0.0] -> [0.]"
)
arcsin = _inexact(
    "arcsin",
    transcendental.asin,
    "Compute the inverse sine, in radians; NaN for reals beyond [-1, 1].\n[0.0] -> [0.]",
)
arccos = _inexact(
    "arccos",
    transcendental.acos,
    "Compute the inverse cosine, in radians; NaN for reals beyond [-1, 1].\n[1.0] -> [0.]",
)
arctan = _inexact(
    "arctan", transcendental.atan, "Compute the inverse tangent, in radians.\n[0.0] -> [0.]"
)
sinh = _inexact("sinh", transcendental.sinh, "Compute the hyperbolic sine.\n[0.0] -> [0.]")
cosh = _inexact("cosh", transcendental.cosh, "Compute the hyperbolic cosine.\n[0.0] -> [1.]")
tanh = _inexact("tanh", transcendental.tanh, "Compute the hyperbolic tangent.\n[0.0] -> [0.]")
arcsinh = _inexact(
    "arcsinh", transcendental.asinh, "Compute the inverse hyperbolic sine.\n[0.0] -> [0.]"
)
arccosh = _inexact(
    "arccosh",
    transcendental.acosh,
    "Compute the inverse hyperbolic cosine; NaN for reals below 1.\n[1.0] -> [0.]",
)
arctanh = _inexact(
    "arctanh",
    transcendental.atanh,
    "Compute the inverse hyperbolic tangent; NaN for reals beyond [-1, 1].\n[0.0] -> [0.]",
)
asin, acos, atan = arcsin, arccos, arctan
asinh, acosh, atanh = arcsinh, arccosh, arctanh

degrees = _inexact(
    "rad2deg",
    lambda x: multiply(x, number_like(x, 180 / np.pi)),
    "Convert angles from radians to degrees.\n[0.0] -> [0.]",
)
radians = _inexact(
    "deg2rad",
    lambda x: multiply(x, number_like(x, np.pi / 180)),
    "Convert angles from degrees to radians.\n[0.0] -> [0.]",
)
rad2deg, deg2rad = degrees, radians


@library
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the angle of the point (x2, x1), in radians from -pi to pi.

    - `x1`, `x2`: arrays that broadcast, the ordinates and the abscissas.

    Returns an array of the broadcast shape, of an inexact dtype. Source: NumPy's `arctan2`.

    >>> jnp.arctan2(jnp.array([0.0]), jnp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return transcendental.atan2(*promote_pair_inexact("arctan2", x1, x2))


atan2 = arctan2


@library
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute sqrt(x1**2 + x2**2) without overflow.

    - `x1`, `x2`: real arrays that broadcast.

    Returns an array of the broadcast shape, of a floating-point dtype. ValueError for complex
    dtypes. Source: NumPy's `hypot`.

    >>> jnp.hypot(jnp.array([3.0]), jnp.array([4.0]))
    Array([5.], dtype=float32)
    """
    x1, x2 = promote_pair_inexact("hypot", x1, x2)
    if dtypes.dtype(x1).kind == "c":
        raise ValueError(
            "jnp.hypot is not well defined for complex-valued inputs. Please convert to real "
            "values first, such as by using abs(x)"
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
    return settled(out)


@library
def sinc(x: ArrayLike, /) -> Array:
    """Compute sin(pi x) / (pi x), which is 1 at zero.

    - `x`: array of any shape; integers become floats.

    Returns an array of the shape of `x`, of floating-point or complex dtype; derivatives are exact
    at zero too. Source: NumPy's `sinc`.

    >>> jnp.sinc(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
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
def conjugate(x: ArrayLike, /) -> Array:
    """Return the complex conjugate of each element; real arrays stay as they are.

    - `x`: array of any shape.

    Returns an array of the shape and dtype of `x`. Source: NumPy's `conjugate`.

    >>> jnp.conjugate(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = promote_one("conjugate", x)
    return arithmetic.conj(x) if _is_complex(x) else x


conj = conjugate


@library
def real(val: ArrayLike, /) -> Array:
    """Return the real part of each element; real arrays stay as they are.

    - `val`: array of any shape.

    Returns an array of the shape of `val` and of its real dtype. Source: NumPy's `real`.

    >>> jnp.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    val = promote_one("real", val)
    return arithmetic.real(val) if _is_complex(val) else val


@library
def imag(val: ArrayLike, /) -> Array:
    """Return the imaginary part of each element; zeros for real arrays.

    - `val`: array of any shape.

    Returns an array of the shape of `val` and of its real dtype. Source: NumPy's `imag`.

    >>> jnp.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    val = promote_one("imag", val)
    return arithmetic.imag(val) if _is_complex(val) else filled_like(val, 0)


@library(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Compute the argument of each complex number.

    - `z`: array of any shape; real numbers have the angle 0 or pi.
    - `deg`: return degrees instead of radians.

    Returns a floating-point array of the shape of `z`. Source: NumPy's `angle`.

    >>> jnp.angle(jnp.array([1j]), deg=True)
    Array([90.], dtype=float32)
    """
    z = promote_one("angle", z)
    is_real = z.aval.dtype.kind != "c"
    if not _is_inexact(z) or (is_real and not z.aval.ndim):  # a real number has the default dtype
        z = converted(z, dtypes.float_())
    out = arctan2(imag(z), real(z))
    return degrees(out) if deg else out
