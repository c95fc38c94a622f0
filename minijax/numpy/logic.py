"""Comparisons, truth values and bits. May import the floors below, `promotion` and `ufuncs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.lax import arithmetic, compare
from minijax.lax.compare import (
    and_p,
    eq_p,
    ge_p,
    gt_p,
    le_p,
    lt_p,
    ne_p,
    not_p,
    or_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from minijax.lax.reductions import reduce_and_p
from minijax.numpy.promotion import (
    broadcast_to_shape,
    check_arraylike,
    converted,
    filled_like,
    is_arraylike,
    number_like,
    promote_dtypes,
    promote_dtypes_numeric,
    promote_one,
    promote_pair,
    promote_shapes,
    to_array,
)
from minijax.numpy.ufuncs import named
from minijax.transforms.library import library

__all__ = [
    "allclose", "array_equal", "array_equiv", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_right_shift", "equal", "greater", "greater_equal",
    "invert", "isclose", "iscomplex", "iscomplexobj", "isfinite", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "isrealobj", "left_shift", "less", "less_equal", "logical_not",
    "not_equal", "right_shift",
]  # fmt: skip

# -- comparisons ------------------------------------------------------------------------------


def _comparison(name: str, p: Any, doc: str, is_order: bool = False) -> Callable:
    bind = p.bind

    def fun(x, y, /):
        x, y = promote_pair(name, x, y)
        return bind(x, y)

    def ordered(x, y, /):
        x, y = promote_pair(name, x, y)
        if get_aval(x).dtype.kind == "c":
            return _complex_order(bind, x, y)
        return bind(x, y)

    return named(ordered if is_order else fun, name, doc)


def _complex_order(bind: Callable, x: Any, y: Any) -> Any:
    """Complex numbers are ordered by their real parts, then by their imaginary parts."""
    x, y = to_array("", x), to_array("", y)
    by_imag = bind(arithmetic.imag(x), arithmetic.imag(y))
    xr, yr = arithmetic.real(x), arithmetic.real(y)
    return compare.select(eq_p.bind(xr, yr), by_imag, bind(xr, yr))


equal = _comparison("equal", eq_p, "Whether x == y, element by element.")
not_equal = _comparison("not_equal", ne_p, "Whether x != y, element by element.")
less = _comparison("less", lt_p, "Whether x < y, element by element.", True)
less_equal = _comparison("less_equal", le_p, "Whether x <= y, element by element.", True)
greater = _comparison("greater", gt_p, "Whether x > y, element by element.", True)
greater_equal = _comparison("greater_equal", ge_p, "Whether x >= y, element by element.", True)

# -- truth values -----------------------------------------------------------------------------


def truth(x: Any) -> Any:
    """Booleans for any array or number: whether each element is not zero."""
    aval = get_aval(x)
    if aval.dtype == dtypes.bool_:
        return x
    return ne_p.bind(x, number_like(x, 0))


def _logical(name: str, p: Any, doc: str) -> Callable:
    bind = p.bind

    def fun(x, y, /):
        check_arraylike(name, x, y)
        if get_aval(x).dtype == get_aval(y).dtype == dtypes.bool_:
            x, y = promote_dtypes(x, y)  # what two comparisons give is not weak
        return bind(*promote_shapes(name, truth(x), truth(y)))

    return named(fun, name, doc)


logical_and = _logical("logical_and", and_p, "Whether both elements are true (not zero).")
logical_or = _logical("logical_or", or_p, "Whether one element at least is true (not zero).")
logical_xor = _logical("logical_xor", xor_p, "Whether exactly one element is true (not zero).")


@library
def logical_not(x, /):
    """Whether the element is zero. Source: numpy.logical_not."""
    return not_p.bind(truth(promote_one("logical_not", x)))


# -- bits -------------------------------------------------------------------------------------


def _bitwise(name: str, p: Any, doc: str) -> Callable:
    bind = p.bind

    def fun(x, y, /):
        x, y = promote_pair(name, x, y)
        return bind(x, y)

    return named(fun, name, doc)


bitwise_and = _bitwise("bitwise_and", and_p, "Bits set in both; for booleans, logical and.")
bitwise_or = _bitwise("bitwise_or", or_p, "Bits set in either; for booleans, logical or.")
bitwise_xor = _bitwise("bitwise_xor", xor_p, "Bits set in one only; for booleans, exclusive or.")


@library
def invert(x, /):
    """Each bit flipped; for booleans, logical not. Source: numpy.invert."""
    return not_p.bind(promote_one("invert", x))


bitwise_invert = bitwise_not = invert


def _shift_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    x, y = promote_pair(name, x, y)
    if get_aval(x).dtype == dtypes.bool_:
        x, y = promote_dtypes_numeric(x, y)
    return x, y


@library
def left_shift(x, y, /):
    """x * 2**y, in the bits that there are. TypeError for floats. Source: numpy.left_shift."""
    return shift_left_p.bind(*_shift_pair("left_shift", x, y))


@library
def right_shift(x1, x2, /):
    """floor(x1 / 2**x2). TypeError for floats. Source: numpy.right_shift."""
    x1, x2 = _shift_pair("right_shift", x1, x2)
    unsigned = dtypes.issubdtype(get_aval(x1).dtype, np.unsignedinteger)
    return (shift_right_logical_p if unsigned else shift_right_arithmetic_p).bind(x1, x2)


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


@library
def bitwise_count(x, /):
    """The number of bits set in |x|, as uint8. Source: numpy.bitwise_count."""
    (x,) = promote_dtypes_numeric(promote_one("bitwise_count", x))
    if dtypes.issubdtype(x.aval.dtype, np.signedinteger):
        x = arithmetic.abs(x)
    return converted(compare.population_count(x), dtypes.uint8)


# -- what numbers are -------------------------------------------------------------------------


@library
def isnan(x, /):
    """Whether the element is not a number. Source: numpy.isnan."""
    x = promote_one("isnan", x)
    return ne_p.bind(x, x)


def _full_bool(x: Any, value: bool) -> Any:
    return broadcast_to_shape(np.bool_(value), x.aval.shape)


@library
def isfinite(x, /):
    """Whether the element is neither infinite nor NaN. Source: numpy.isfinite."""
    x = promote_one("isfinite", x)
    dtype = x.aval.dtype
    if dtypes.issubdtype(dtype, np.floating):
        return compare.is_finite(x)
    if dtypes.issubdtype(dtype, np.complexfloating):
        finite = compare.is_finite
        return and_p.bind(finite(arithmetic.real(x)), finite(arithmetic.imag(x)))
    return _full_bool(x, True)


@library
def isinf(x, /):
    """Whether the element is infinite. Source: numpy.isinf."""
    x = promote_one("isinf", x)
    dtype = x.aval.dtype
    x = converted(x, dtype)
    if dtypes.issubdtype(dtype, np.floating):
        return _equals(arithmetic.abs(x), np.inf)
    if dtypes.issubdtype(dtype, np.complexfloating):
        parts = arithmetic.real(x), arithmetic.imag(x)
        return or_p.bind(*[_equals(arithmetic.abs(part), np.inf) for part in parts])
    return _full_bool(x, False)


def _equals(x: Any, value: float) -> Any:
    if not dtypes.supports_inf(x.aval.dtype):
        return _full_bool(x, False)
    return eq_p.bind(x, converted(value, x.aval.dtype, x.aval.weak_type))


def _signed_infinity(name: str, value: float, x: Any, out: Any) -> Any:
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")
    x = promote_one(name, x)
    dtype = x.aval.dtype
    x = converted(x, dtype)
    if dtypes.issubdtype(dtype, np.complexfloating):
        raise ValueError(
            f"isposinf/isneginf are not well defined for complex types; {name} got "
            f"{x.aval.str_short()}: use isinf, or take a part."
        )
    if dtypes.issubdtype(dtype, np.floating):
        return _equals(x, value)
    return _full_bool(x, False)


@library
def isposinf(x, /, out=None):
    """Whether the element is positive infinity. Source: numpy.isposinf."""
    return _signed_infinity("isposinf", np.inf, x, out)


@library
def isneginf(x, /, out=None):
    """Whether the element is negative infinity. Source: numpy.isneginf."""
    return _signed_infinity("isneginf", -np.inf, x, out)


@library
def iscomplex(x):
    """Whether the imaginary part is not zero. Source: numpy.iscomplex."""
    x = promote_one("iscomplex", x)
    return truth(arithmetic.imag(x) if x.aval.dtype.kind == "c" else filled_like(x, 0))


@library
def isreal(x):
    """Whether the imaginary part is zero. Source: numpy.isreal."""
    return not_p.bind(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex. Source: numpy.iscomplexobj."""
    if isinstance(x, Array):
        return x.aval.dtype.kind == "c"
    if x is None:
        return False
    if not is_arraylike(x):
        return np.iscomplexobj(x)
    return dtypes.issubdtype(dtypes.dtype(x), np.complexfloating)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex. Source: numpy.isrealobj."""
    return not iscomplexobj(x)


# -- nearly equal, and equal as a whole -------------------------------------------------------


@library(static=("equal_nan",))
def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |a - b| <= atol + rtol * |b|; infinities are close to themselves.

    NaN is close to NaN if `equal_nan`. Source: numpy.isclose.
    """
    a, b = promote_shapes("isclose", *_pair_for_isclose(a, b))
    aval = get_aval(a)
    if dtypes.is_extended(aval.dtype):  # keys are close if they are equal
        return eq_p.bind(a, b)
    a, b = converted(a, aval.dtype), converted(b, aval.dtype)
    real = dtypes.to_real_dtype(aval.dtype)
    rtol, atol = converted(rtol, real), converted(atol, real)
    a, b = to_array("isclose", a), to_array("isclose", b)
    distance = arithmetic.abs(arithmetic.sub_p.bind(a, b))
    allowed = arithmetic.add_p.bind(atol, arithmetic.mul_p.bind(rtol, arithmetic.abs(b)))
    near = le_p.bind(*promote_shapes("isclose", distance, allowed))
    # What is near to a finite number is finite, if the bound is.
    out = or_p.bind(and_p.bind(isfinite(b), near), eq_p.bind(a, b))
    if equal_nan:
        out = or_p.bind(out, and_p.bind(isnan(a), isnan(b)))
    return converted(out, dtypes.bool_)


def _pair_for_isclose(a: Any, b: Any) -> list[Any]:
    check_arraylike("isclose", a, b)
    a, b = promote_dtypes(a, b)
    dtype = get_aval(a).dtype
    if not dtypes.issubdtype(dtype, np.inexact) and not dtypes.is_extended(dtype):
        # Not by promotion: integers below 8 bits have none.
        a, b = converted(a, dtypes.float_()), converted(b, dtypes.float_())
    return [a, b]


def _all(x: Any) -> Any:
    return reduce_and_p.bind(x, axes=tuple(range(x.aval.ndim)))


@library(static=("equal_nan",))
def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close; see `isclose`. A boolean scalar. Source: numpy.allclose."""
    check_arraylike("allclose", a, b)
    return _all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and all elements are equal. A boolean scalar. Source: numpy.array_equal."""
    from_any = [x if is_arraylike(x) else np.asarray(x) for x in (a1, a2)]
    return _array_equal(*from_any, equal_nan)


@library(static=("equal_nan",))
def _array_equal(a1, a2, equal_nan):
    if np.shape(a1) != np.shape(a2):
        return to_array("array_equal", np.zeros((), bool))
    out = equal(a1, a2)
    if equal_nan:
        out = or_p.bind(out, logical_and(isnan(a1), isnan(a2)))
    return _all(out)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether the arrays broadcast to each other and are then equal. Source: numpy.array_equiv."""
    a1, a2 = [x if is_arraylike(x) else np.asarray(x) for x in (a1, a2)]
    try:
        np.broadcast_shapes(np.shape(a1), np.shape(a2))
        dtypes.result_type(a1, a2)
    except ValueError:  # they fit neither in shape nor in dtype
        return to_array("array_equiv", np.zeros((), bool))
    return _array_equiv(a1, a2)


@library
def _array_equiv(a1, a2):
    return _all(equal(a1, a2))
