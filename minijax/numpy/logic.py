"""Comparisons, truth values and bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.errors import Float0Error, float0_error
from minijax.features.library import library
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
from minijax.numpy.creation import asarray
from minijax.numpy.promotion import (
    ExtendedDtypeError,
    broadcast_to_shape,
    check_arraylike,
    check_dtypes,
    check_ranks,
    common_dtype,
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
from minijax.numpy.ufuncs import PAIR, named
from minijax.typing import ArrayLike, BinaryFunction, DTypeLike

__all__ = [
    "allclose", "array_equal", "array_equiv", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_right_shift", "equal", "greater", "greater_equal",
    "invert", "isclose", "iscomplex", "iscomplexobj", "isfinite", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "isrealobj", "issubdtype", "left_shift", "less", "less_equal",
    "logical_not", "not_equal", "right_shift",
]  # fmt: skip

# -- comparisons ------------------------------------------------------------------------------


def _comparison(name: str, p: Any, doc: str, is_order: bool = False) -> BinaryFunction:
    bind = p.bind

    def fun(x: ArrayLike, y: ArrayLike, /) -> Array:
        x, y = promote_pair(name, x, y)
        return bind(x, y)

    def ordered(x: ArrayLike, y: ArrayLike, /) -> Array:
        x, y = promote_pair(name, x, y)
        if get_aval(x).dtype.kind == "c":
            return _complex_order(bind, x, y)
        return bind(x, y)

    return named(ordered if is_order else fun, name, doc, PAIR + "dtype bool.", "bool")


def _complex_order(bind: Callable, x: Any, y: Any) -> Any:
    """Complex numbers are ordered by their real parts, then by their imaginary parts."""
    x, y = to_array("", x), to_array("", y)
    by_imag = bind(arithmetic.imag(x), arithmetic.imag(y))
    xr, yr = arithmetic.real(x), arithmetic.real(y)
    return compare.select(eq_p.bind(xr, yr), by_imag, bind(xr, yr))


equal = _comparison(
    "equal", eq_p, "Test whether x == y, element by element.\n[1, 2]; [1, 3] -> [ True, False]"
)
not_equal = _comparison(
    "not_equal", ne_p, "Test whether x != y, element by element.\n[1, 2]; [1, 3] -> [False,  True]"
)
less = _comparison(
    "less",
    lt_p,
    "Test whether x < y; complex numbers are ordered by real, then imaginary part.\n[1, 2]; [2, 2] -> [ True, False]",
    True,
)
less_equal = _comparison(
    "less_equal",
    le_p,
    "Test whether x <= y; complex numbers are ordered by real, then imaginary part.\n[1, 2]; [2, 2] -> [ True,  True]",
    True,
)
greater = _comparison(
    "greater",
    gt_p,
    "Test whether x > y; complex numbers are ordered by real, then imaginary part.\n[1, 2]; [2, 2] -> [False, False]",
    True,
)
greater_equal = _comparison(
    "greater_equal",
    ge_p,
    "Test whether x >= y; complex numbers are ordered by real, then imaginary part.\n[1, 2]; [2, 2] -> [False,  True]",
    True,
)

# -- truth values -----------------------------------------------------------------------------


def truth(x: Any) -> Any:
    """Booleans for any array or number: whether each element is not zero."""
    aval = get_aval(x)
    if aval.dtype == dtypes.bool_:
        return x
    return ne_p.bind(x, number_like(x, 0))


def _logical(name: str, p: Any, doc: str) -> BinaryFunction:
    bind = p.bind

    def fun(x: ArrayLike, y: ArrayLike, /) -> Array:
        check_arraylike(name, x, y)
        _, weak = common_dtype((x, y))  # an error if there is none
        left, right = get_aval(x), get_aval(y)
        if {left.weak_type, right.weak_type} != {weak} or left.dtype == right.dtype == dtypes.bool_:
            x, y = promote_dtypes(to_array(name, x), to_array(name, y))  # both are weak, or neither
        return bind(*promote_shapes(name, truth(x), truth(y)))

    return named(fun, name, doc, PAIR + "dtype bool.", "bool")


logical_and = _logical(
    "logical_and",
    and_p,
    "Test whether both elements are true, that is, nonzero.\n[0, 1]; [2, 2] -> [False,  True]",
)
logical_or = _logical(
    "logical_or",
    or_p,
    "Test whether at least one of two elements is true, that is, nonzero.\n[0, 1]; [0, 2] -> [False,  True]",
)
logical_xor = _logical(
    "logical_xor",
    xor_p,
    "Test whether exactly one of two elements is true, that is, nonzero.\n[0, 1]; [2, 2] -> [ True, False]",
)


@library
def logical_not(x: ArrayLike, /) -> Array:
    """Test whether each element is false, that is, zero.

    - `x`: array of any shape and dtype.

    Returns a boolean array of the shape of `x`. Source: NumPy's `logical_not`.

    >>> jnp.logical_not(jnp.array([0, 2]))
    Array([ True, False], dtype=bool)
    """
    return not_p.bind(truth(promote_one("logical_not", x)))


# -- bits -------------------------------------------------------------------------------------


def _bitwise(name: str, p: Any, doc: str) -> BinaryFunction:
    bind = p.bind

    def fun(x: ArrayLike, y: ArrayLike, /) -> Array:
        x, y = promote_pair(name, x, y)
        return bind(x, y)

    return named(fun, name, doc, PAIR + "the promoted dtype.", "int32")


bitwise_and = _bitwise(
    "bitwise_and",
    and_p,
    "Compute the bitwise and; the logical one for booleans.\nTypeError unless integer or boolean.\n[12, 5]; [10, 3] -> [8, 1]",
)
bitwise_or = _bitwise(
    "bitwise_or",
    or_p,
    "Compute the bitwise or; the logical one for booleans.\nTypeError unless integer or boolean.\n[12, 5]; [10, 3] -> [14,  7]",
)
bitwise_xor = _bitwise(
    "bitwise_xor",
    xor_p,
    "Compute the bitwise exclusive or; the logical one for booleans.\nTypeError unless integer or boolean.\n[12, 5]; [10, 3] -> [6, 6]",
)


@library
def invert(x: ArrayLike, /) -> Array:
    """Flip each bit; for booleans, compute logical not.

    - `x`: integer or boolean array of any shape.

    Returns an array of the shape and dtype of `x`. TypeError for other dtypes. Source: NumPy's
    `invert`.

    >>> jnp.invert(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return not_p.bind(promote_one("invert", x))


bitwise_invert = bitwise_not = invert


def _shift_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    x, y = promote_pair(name, x, y)
    if get_aval(x).dtype == dtypes.bool_:
        x, y = promote_dtypes_numeric(x, y)
    return x, y


@library
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Shift the bits of each integer to the left, so that x becomes x * 2**y.

    - `x`, `y`: integer arrays that broadcast; bits shifted out are lost.

    Returns an array of the broadcast shape and of the promoted dtype. TypeError for other dtypes.
    Source: NumPy's `left_shift`.

    >>> jnp.left_shift(jnp.array([1, 3]), jnp.array([2, 1]))
    Array([4, 6], dtype=int32)
    """
    return shift_left_p.bind(*_shift_pair("left_shift", x, y))


@library
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shift the bits of each integer to the right, so that x1 becomes floor(x1 / 2**x2).

    - `x1`, `x2`: integer arrays that broadcast; signed integers keep their signs.

    Returns an array of the broadcast shape and of the promoted dtype. TypeError for other dtypes.
    Source: NumPy's `right_shift`.

    >>> jnp.right_shift(jnp.array([8, -8]), jnp.array([2, 1]))
    Array([ 2, -4], dtype=int32)
    """
    x1, x2 = _shift_pair("right_shift", x1, x2)
    unsigned = dtypes.issubdtype(get_aval(x1).dtype, np.unsignedinteger)
    return (shift_right_logical_p if unsigned else shift_right_arithmetic_p).bind(x1, x2)


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


@library
def bitwise_count(x: ArrayLike, /) -> Array:
    """Count the bits that are set in the absolute value of each integer.

    - `x`: integer array of any shape.

    Returns a uint8 array of the shape of `x`. TypeError for inexact dtypes. Source: NumPy's
    `bitwise_count`.

    >>> jnp.bitwise_count(jnp.array([7, -8]))
    Array([3, 1], dtype=uint8)
    """
    (x,) = promote_dtypes_numeric(promote_one("bitwise_count", x))
    if dtypes.issubdtype(x.aval.dtype, np.signedinteger):
        x = arithmetic.abs(x)
    return converted(compare.population_count(x), dtypes.uint8)


# -- what numbers are -------------------------------------------------------------------------


@library
def isnan(x: ArrayLike, /) -> Array:
    """Test whether each element is NaN.

    - `x`: array of any shape.

    Returns a boolean array of the shape of `x`. Source: NumPy's `isnan`.

    >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
    Array([False,  True], dtype=bool)
    """
    x = promote_one("isnan", x)
    return ne_p.bind(x, x)


def _full_bool(x: Any, value: bool) -> Any:
    return broadcast_to_shape(np.bool_(value), x.aval.shape)


@library
def isfinite(x: ArrayLike, /) -> Array:
    """Test whether each element is neither infinite nor NaN.

    - `x`: array of any shape.

    Returns a boolean array of the shape of `x`. Source: NumPy's `isfinite`.

    >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    x = promote_one("isfinite", x)
    dtype = x.aval.dtype
    if dtypes.issubdtype(dtype, np.floating):
        return compare.is_finite(x)
    if dtypes.issubdtype(dtype, np.complexfloating):
        finite = compare.is_finite
        return and_p.bind(finite(arithmetic.real(x)), finite(arithmetic.imag(x)))
    return _full_bool(x, True)


@library
def isinf(x: ArrayLike, /) -> Array:
    """Test whether each element is infinite, for complex numbers in either part.

    - `x`: array of any shape.

    Returns a boolean array of the shape of `x`. Source: NumPy's `isinf`.

    >>> jnp.isinf(jnp.array([1.0, -jnp.inf, jnp.nan]))
    Array([False,  True, False], dtype=bool)
    """
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
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Test whether each element is positive infinity.

    - `x`: real array of any shape.

    Returns a boolean array of the shape of `x`. ValueError for complex dtypes, NotImplementedError
    if `out` is given. Source: NumPy's `isposinf`.

    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    return _signed_infinity("isposinf", np.inf, x, out)


@library
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Test whether each element is negative infinity.

    - `x`: real array of any shape.

    Returns a boolean array of the shape of `x`. ValueError for complex dtypes, NotImplementedError
    if `out` is given. Source: NumPy's `isneginf`.

    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    return _signed_infinity("isneginf", -np.inf, x, out)


@library
def iscomplex(x: ArrayLike) -> Array:
    """Test whether each element has a nonzero imaginary part.

    - `x`: array of any shape.

    Returns a boolean array of the shape of `x`. Source: NumPy's `iscomplex`.

    >>> jnp.iscomplex(jnp.array([1 + 0j, 2j]))
    Array([False,  True], dtype=bool)
    """
    x = promote_one("iscomplex", x)
    return truth(arithmetic.imag(x) if x.aval.dtype.kind == "c" else filled_like(x, 0))


@library
def isreal(x: ArrayLike) -> Array:
    """Test whether each element has an imaginary part of zero.

    - `x`: array of any shape.

    Returns a boolean array of the shape of `x`. Source: NumPy's `isreal`.

    >>> jnp.isreal(jnp.array([1 + 0j, 2j]))
    Array([ True, False], dtype=bool)
    """
    return not_p.bind(iscomplex(x))


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Test whether a dtype lies under another one in the hierarchy of dtypes.

    - `arg1`, `arg2`: dtypes or scalar classes, such as `float32` and `jnp.floating`; types of narrow
      and extended dtypes are known too.

    Returns a bool. Source: NumPy's `issubdtype`.

    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating), jnp.issubdtype(jnp.int4, jnp.floating)
    (True, False)
    """
    return dtypes.issubdtype(arg1, arg2)


def iscomplexobj(x: Any) -> bool:
    """Test whether an object has a complex dtype, whatever its values.

    - `x`: any object, such as an array.

    Returns a bool. Source: NumPy's `iscomplexobj`.

    >>> jnp.iscomplexobj(jnp.array([1 + 0j])), jnp.iscomplexobj(1.0)
    (True, False)
    """
    if hasattr(x, "__jax_array__") and not isinstance(x, Array):
        x = x.__jax_array__()
    if isinstance(x, Array):
        return x.aval.dtype.kind == "c"
    if x is None:
        return False
    if hasattr(x, "dtype"):
        return dtypes.issubdtype(x.dtype, np.complexfloating)
    if not is_arraylike(x) and (isinstance(x, type(...)) or np.asarray(x).dtype == object):
        raise TypeError(
            f"Value {x!r} with dtype object is not a valid JAX array type. Only arrays of numeric "
            "types are supported by JAX."
        )
    if not is_arraylike(x):
        return np.iscomplexobj(x)
    return dtypes.issubdtype(dtypes.dtype(x), np.complexfloating)


def isrealobj(x: Any) -> bool:
    """Test whether an object has no complex dtype, whatever its values.

    - `x`: any object, such as an array.

    Returns a bool. Source: NumPy's `isrealobj`.

    >>> jnp.isrealobj(jnp.array([1 + 0j])), jnp.isrealobj(1.0)
    (False, True)
    """
    return not iscomplexobj(x)


# -- nearly equal, and equal as a whole -------------------------------------------------------


@library(static=("equal_nan",))
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Test whether elements are equal within a tolerance: |a - b| <= atol + rtol * |b|.

    - `a`, `b`: arrays that broadcast and promote; infinities are close to themselves.
    - `rtol`, `atol`: relative and absolute tolerance, 1e-5 and 1e-8 by default.
    - `equal_nan`: NaN are close to each other.

    Returns a boolean array of the broadcast shape. TypeError if shapes do not broadcast. Source:
    NumPy's `isclose`.

    >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0 + 1e-6, 2.1]))
    Array([ True, False], dtype=bool)
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
    if dtype == dtypes.float0:
        raise float0_error("isclose")
    if not dtypes.issubdtype(dtype, np.inexact) and not dtypes.is_extended(dtype):
        # Not by promotion: integers below 8 bits have none.
        a, b = converted(a, dtypes.float_()), converted(b, dtypes.float_())
    return [a, b]


def _all(x: Any) -> Any:
    return reduce_and_p.bind(x, axes=tuple(range(x.aval.ndim)))


@library(static=("equal_nan",))
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Test whether all elements of two arrays are equal within a tolerance.

    - `a`, `b`: arrays that broadcast and promote.
    - `rtol`, `atol`, `equal_nan`: as in `isclose`.

    Returns a boolean scalar array. TypeError if shapes do not broadcast. Source: NumPy's
    `allclose`.

    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0 + 1e-6, 2.0]))
    Array(True, dtype=bool)
    """
    check_arraylike("allclose", a, b)
    check_dtypes(a, b)
    check_ranks("isclose", a, b)
    return _all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Test whether two arrays have the same shape and equal elements.

    - `a1`, `a2`: arrays of any shape, or nested sequences.
    - `equal_nan`: NaN are equal to each other.

    Returns a boolean scalar array. Source: NumPy's `array_equal`.

    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2]))
    Array(True, dtype=bool)
    """
    from_any = [_numbers(x) for x in (a1, a2)]
    return _array_equal(*from_any, equal_nan)


@library(static=("equal_nan",), converted=("equal_nan",))
def _array_equal(a1, a2, equal_nan):
    if np.shape(a1) != np.shape(a2):
        return to_array("array_equal", np.zeros((), bool))
    check_dtypes(a1, a2)
    out = equal(a1, a2)
    if equal_nan:
        out = or_p.bind(out, logical_and(isnan(a1), isnan(a2)))
    return _all(out)


def _numbers(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        get_aval(x)  # TypeError for one of objects
    known = is_arraylike(x) and not isinstance(x, np.generic)  # some scalars are no numbers
    return x if known else asarray(x)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Test whether two arrays broadcast to each other and are equal then.

    - `a1`, `a2`: arrays of any shape, or nested sequences.

    Returns a boolean scalar array, False if the shapes do not broadcast. Source: NumPy's
    `array_equiv`.

    >>> jnp.array_equiv(jnp.array([1, 1]), 1)
    Array(True, dtype=bool)
    """
    a1, a2 = [_numbers(x) for x in (a1, a2)]
    try:
        np.broadcast_shapes(np.shape(a1), np.shape(a2))
        common_dtype((a1, a2), "equal")
    except (ExtendedDtypeError, Float0Error):
        raise
    except ValueError:  # they fit neither in shape nor in dtype
        return to_array("array_equiv", np.zeros((), bool))
    return _array_equiv(a1, a2)


@library
def _array_equiv(a1, a2):
    return _all(equal(a1, a2))
