"""Reductions: sum, prod, min, max, all, any, argmin, argmax, mean, var, std, ptp.

All take `axis` (an integer, several, or None for all), `keepdims`, and where NumPy has them `where`
and `initial`. Sums, extremes and means also go over mapped axes, by their names: `axis=("batch",
0)`. Those that skip NaN stand in `nan_reductions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.calls import check_hashable
from minijax.core.avals import get_aval
from minijax.features.library import library
from minijax.lax import arithmetic, compare
from minijax.lax.arithmetic import add_p, div_p, max_p, min_p, mul_p, sub_p
from minijax.lax.compare import and_p, or_p
from minijax.lax.named_axes import axis_size
from minijax.lax.parallel import pmax, pmin, psum
from minijax.lax.reductions import (
    argmax_p,
    argmin_p,
    greatest,
    least,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_sum,
)
from minijax.numpy.logic import truth
from minijax.numpy.promotion import (
    as_dtype,
    axes_of,
    axis_of,
    broadcast_shapes,
    broadcast_to_shape,
    cast,
    check_arraylike,
    check_no_out,
    converted,
    number_like,
    promote_shapes,
    to_array,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import broadcast_to, expanded, ravel
from minijax.typing import Array, ArrayLike, Axis, DTypeLike

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min",
    "prod", "ptp", "std", "sum", "var",
]  # fmt: skip

_HALF = (dtypes.float16, dtypes.BFLOAT16)


def kept(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The result of a reduction, with the reduced axes put back at size one if asked for."""
    return expanded(x, axes) if keepdims and axes else x


def names_of(axis: Any) -> tuple[tuple[str, ...], Any]:
    """The mapped axes among `axis`, which collectives go over, and the rest of it."""
    if isinstance(axis, str):
        return (axis,), ()
    if isinstance(axis, tuple):
        names = tuple([one for one in axis if isinstance(one, str)])
        return names, tuple([one for one in axis if not isinstance(one, str)]) if names else axis
    return (), axis


def _unnamed(name: str, axis: Any) -> None:
    if names_of(axis)[0]:
        raise NotImplementedError(
            f"Named reductions not implemented for jnp.{name}(): got axis={axis!r}; gather the mapped "
            "axis with lax.all_gather first."
        )


def wide(dtype: Any) -> Any:
    """The dtype in which sums of `dtype` are computed."""
    return dtypes.float32 if dtype in _HALF else dtype


def _sum_dtype(a: Any, dtype: Any, promote_integers: bool) -> tuple[Any, Any]:
    """The dtype to compute in and the dtype of the result, of a sum or product."""
    if dtype is not None:
        return dtype, dtype
    found = a.aval.dtype
    if found == dtypes.bool_:
        return (dtypes.int_(),) * 2
    if promote_integers and dtypes.issubdtype(found, np.integer):
        default = dtypes.uint() if dtypes.issubdtype(found, np.unsignedinteger) else dtypes.int_()
        found = default if found.itemsize < default.itemsize else found
    if dtypes.is_extended(found):
        raise TypeError(
            f"elements of dtype {found.name} are no numbers: they have no sum or product."
        )
    return wide(found), found


def mask_of(name: str, where: Any) -> Any:
    """The `where` argument of a reduction, checked to be boolean."""
    if where is None:
        return None
    check_arraylike(name, where)
    if get_aval(where).dtype != dtypes.bool_:
        raise ValueError(
            f"jnp.{name}: where must be None or a boolean array; got where.dtype="
            f"{get_aval(where).dtype!r}."
        )
    return where


def _sum_like(name: str, reduce: Callable, combine: Any, identity: int) -> Callable[..., Array]:
    def body(a, axis, dtype, out, keepdims, initial, where, promote_integers):
        check_no_out(name, out)
        a = to_array(name, a)
        if identity:
            _unnamed(name, axis)
        names, axis = names_of(axis)
        working, result = _sum_dtype(a, as_dtype(dtype, name), promote_integers)
        axes = axes_of(axis, a.aval.ndim)
        a = cast(a, working)
        if where is not None:
            a = choose_where(mask_of(name, where), a, number_like(a, identity))
        truths = a.aval.dtype == dtypes.bool_  # asked for: their sum is "or", their product "and"
        total = (reduce_and_p if identity else reduce_or_p).bind(a, axes=axes) if truths else None
        total = reduce(a, axes) if total is None else total
        total = psum(total, names) if names else total
        if initial is not None:
            join = (and_p if identity else or_p) if truths else combine
            total = join.bind(_initial(name, initial, working), total)
        return kept(converted(total, result), axes, keepdims)

    return body


def _initial(name: str, initial: Any, dtype: Any) -> Any:
    check_arraylike(name, initial)
    if np.ndim(initial):
        raise ValueError(
            f"initial value must be a scalar. Got array of shape {np.shape(initial)} in {name}."
        )
    return converted(initial, dtype)


def _reduce_sum(a: Any, axes: tuple[int, ...]) -> Any:
    return reduce_sum(a, axes)


_sum = _sum_like("sum", _reduce_sum, add_p, 0)
_prod = _sum_like("prod", lambda a, axes: reduce_prod_p.bind(a, axes=axes), mul_p, 1)


@library(static=("axis", "dtype", "out", "keepdims", "promote_integers"), converted=("axis",))
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Sum the elements along axes.

    - `a`: numeric or boolean array of any shape.
    - `axis`: an int, a tuple of ints, or None for all axes.
    - `dtype`: dtype of the computation and of the result. By default that of `a`, with narrow
      integers and booleans widened unless `promote_integers` is False.
    - `keepdims`: keep reduced axes with size 1; `initial`: scalar to start from.
    - `where`: boolean array, broadcast to `a`, of elements to include.

    Returns an array of the remaining shape. ValueError if `axis` is out of range or `where` is not
    boolean. Source: NumPy's `sum`.

    >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int32)
    """
    return _sum(a, axis, dtype, out, keepdims, initial, where, promote_integers)


@library(static=("axis", "dtype", "out", "keepdims", "promote_integers"), converted=("axis",))
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Multiply the elements along axes.

    - `a`: numeric or boolean array of any shape.
    - `axis`: an int, a tuple of ints, or None for all axes.
    - `dtype`: dtype of the computation and of the result. By default that of `a`, with narrow
      integers and booleans widened unless `promote_integers` is False.
    - `keepdims`, `initial`, `where`: as in `sum`.

    Returns an array of the shape of `a` without the reduced axes. ValueError if `axis` is out of
    range or `where` is not boolean. Source: NumPy's `prod`.

    >>> jnp.prod(jnp.array([2, 3, 4]))
    Array(24, dtype=int32)
    """
    return _prod(a, axis, dtype, out, keepdims, initial, where, promote_integers)


# -- least and greatest -----------------------------------------------------------------------


def _extreme(
    name: str, reduce_p: Any, over: Callable, combine: Any, identity: Callable
) -> Callable:
    def body(a, axis, out, keepdims, initial, where):
        check_no_out(name, out)
        a = to_array(name, a)
        if where is not None:
            check_arraylike(name, where)
        if where is not None and initial is None:
            raise ValueError(
                f"reduction operation {name} does not have an identity, so to use a where mask "
                "one has to specify 'initial'"
            )
        names, axis = names_of(axis)
        axes = axes_of(axis, a.aval.ndim)
        a = converted(a, a.aval.dtype)
        if where is not None:
            a = choose_where(mask_of(name, where), a, identity(a.aval.dtype))
        sizes = a.aval.shape
        if initial is None and not a.aval.size and not np.prod([sizes[i] for i in axes]):
            raise ValueError(
                f"zero-size array to reduction operation {name} which has no identity: its shape "
                f"is {sizes} and axis is {axis}; give 'initial'."
            )
        found = reduce_p.bind(a, axes=axes)
        found = over(found, names) if names else found
        if initial is not None:
            found = combine.bind(_initial(name, initial, a.aval.dtype), found)
        return kept(found, axes, keepdims)

    return body


_max = _extreme("max", reduce_max_p, pmax, max_p, least)
_min = _extreme("min", reduce_min_p, pmin, min_p, greatest)


@library(static=("axis", "out", "keepdims"), converted=("axis",))
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the maximum along axes; NaN where an element is NaN.

    - `a`: real, complex or boolean array of any shape; complex numbers are ordered
      lexicographically.
    - `axis`: an int, a tuple of ints, or None for all axes.
    - `keepdims`: keep reduced axes with size 1.
    - `initial`: scalar, the least value of the result.
    - `where`: boolean array, broadcast to `a`, of elements to include; needs `initial`.

    Returns an array of the dtype of `a`. ValueError if no element is reduced, or `where` is given,
    and `initial` is not. Source: NumPy's `max`.

    >>> jnp.max(jnp.array([[1, 5], [7, 2]]), axis=1)
    Array([5, 7], dtype=int32)
    """
    return _max(a, axis, out, keepdims, initial, where)


@library(static=("axis", "out", "keepdims"), converted=("axis",))
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the minimum along axes; NaN where an element is NaN.

    - `a`: real, complex or boolean array of any shape; complex numbers are ordered
      lexicographically.
    - `axis`: an int, a tuple of ints, or None for all axes.
    - `keepdims`: keep reduced axes with size 1.
    - `initial`: scalar, the greatest value of the result.
    - `where`: boolean array, broadcast to `a`, of elements to include; needs `initial`.

    Returns an array of the dtype of `a`. ValueError if no element is reduced, or `where` is given,
    and `initial` is not. Source: NumPy's `min`.

    >>> jnp.min(jnp.array([[1, 5], [7, 2]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    return _min(a, axis, out, keepdims, initial, where)


amax, amin = max, min


@library(static=("axis", "out", "keepdims"), converted=("axis",))
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the range of values, maximum minus minimum, along axes.

    - `a`: numeric array of any shape with at least one element to reduce.
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.

    Returns an array of the dtype of `a`. ValueError if no element is reduced. Source: NumPy's
    `ptp`.

    >>> jnp.ptp(jnp.array([[1, 5], [7, 2]]), axis=0)
    Array([6, 3], dtype=int32)
    """
    check_no_out("ptp", out)
    high, low = max(a, axis, None, keepdims), min(a, axis, None, keepdims)
    return sub_p.bind(high, low)


# -- truth ------------------------------------------------------------------------------------


def _truth_of(name: str, reduce_p: Any, identity: bool) -> Callable[..., Array]:
    def body(a, axis, out, keepdims, where):
        check_no_out(name, out)
        _unnamed(name, axis)
        a = to_array(name, a)
        axes = axes_of(axis, a.aval.ndim)
        keys = dtypes.is_extended(a.aval.dtype)
        a = converted(a if keys else truth(a), dtypes.bool_)  # an error for keys
        if where is not None:
            a = choose_where(mask_of(name, where), a, np.bool_(identity))
        return kept(reduce_p.bind(a, axes=axes), axes, keepdims)

    return body


_all = _truth_of("all", reduce_and_p, True)
_any = _truth_of("any", reduce_or_p, False)


@library(static=("axis", "out", "keepdims"), converted=("axis",))
def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Test whether all elements along axes are true, that is, nonzero.

    - `a`: array of any shape and dtype.
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.
    - `where`: boolean array, broadcast to `a`, of elements to include.

    Returns a boolean array; True where nothing is reduced. ValueError if `axis` is out of range.
    Source: NumPy's `all`.

    >>> jnp.all(jnp.array([[1, 0], [2, 3]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _all(a, axis, out, keepdims, where)


@library(static=("axis", "out", "keepdims"), converted=("axis",))
def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Test whether any element along axes is true, that is, nonzero.

    - `a`: array of any shape and dtype.
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.
    - `where`: boolean array, broadcast to `a`, of elements to include.

    Returns a boolean array; False where nothing is reduced. ValueError if `axis` is out of range.
    Source: NumPy's `any`.

    >>> jnp.any(jnp.array([[0, 0], [2, 3]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _any(a, axis, out, keepdims, where)


@library(static=("axis", "keepdims"))
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count the nonzero elements along axes.

    - `a`: array of any shape and dtype.
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.

    Returns an array of integers of the default dtype. Source: NumPy's `count_nonzero`.

    >>> jnp.count_nonzero(jnp.array([[1, 0], [2, 3]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    check_hashable("axis", "count_nonzero", axis)
    a = to_array("count_nonzero", a)
    return sum(truth(a), axis=axis, dtype=dtypes.int_(), keepdims=keepdims)


# -- where the extremes are -------------------------------------------------------------------


def arg_reduction(name: str, p: Any, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    check_no_out(name, out)
    a = to_array(name, a)
    rank = a.aval.ndim
    if axis is None:
        a, chosen, axes = ravel(a), 0, tuple(range(rank))
    else:
        chosen = axis_of(axis, rank)
        axes = (chosen,)
    if not a.aval.shape[chosen]:
        raise ValueError(
            f"attempt to get {name.removeprefix('nan')} of an empty sequence: shape "
            f"{a.aval.shape}. Leave out axes of size 0."
        )
    found = p.bind(a, axes=(chosen,), index_dtype=dtypes.int_())
    return kept(found, axes, bool(keepdims))


@library(static=("axis", "out", "keepdims"), converted=("axis", "keepdims"))
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the maximum along an axis, the first one of equal elements.

    - `a`: real, complex or boolean array of any shape; a NaN counts as the maximum.
    - `axis`: an int, or None for the index into the flattened array.
    - `keepdims`: keep the reduced axis with size 1.

    Returns an array of integers of the default dtype. ValueError if the axis is empty. Source:
    NumPy's `argmax`.

    >>> jnp.argmax(jnp.array([[1, 5], [7, 2]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    return arg_reduction("argmax", argmax_p, a, axis, out, keepdims)


@library(static=("axis", "out", "keepdims"), converted=("axis", "keepdims"))
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the minimum along an axis, the first one of equal elements.

    - `a`: real, complex or boolean array of any shape; a NaN counts as the minimum.
    - `axis`: an int, or None for the index into the flattened array.
    - `keepdims`: keep the reduced axis with size 1.

    Returns an array of integers of the default dtype. ValueError if the axis is empty. Source:
    NumPy's `argmin`.

    >>> jnp.argmin(jnp.array([[1, 5], [7, 2]]), axis=1)
    Array([0, 1], dtype=int32)
    """
    return arg_reduction("argmin", argmin_p, a, axis, out, keepdims)


# -- mean and variance ------------------------------------------------------------------------


def count_of(
    a: Any,
    axes: tuple[int, ...],
    where: Any,
    dtype: Any,
    keepdims: bool = False,
    names: tuple[str, ...] = (),
) -> Any:
    """Return how many elements go into each result: a number, or an array where there is a mask."""
    sizes = a.aval.shape
    if where is None:
        total = axis_size(names) if names else 1
        for axis in axes:
            total *= sizes[axis]
        return total
    counted = broadcast_to_shape(where, broadcast_shapes(np.shape(where), sizes))
    counted = converted(counted, dtypes.int_())
    return sum(counted, (*axes, *names), dtype=dtype, keepdims=keepdims)


@library(static=("axis", "dtype", "out", "keepdims"), converted=("axis",))
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the arithmetic mean along axes.

    - `a`: numeric or boolean array of any shape.
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.
    - `dtype`: dtype of the result; by default that of `a`, or the default float for integers.
    - `where`: boolean array, broadcast to `a`, of elements to include.

    Returns an array of the shape of `a` without the reduced axes; NaN where nothing is reduced.
    Source: NumPy's `mean`.

    >>> jnp.mean(jnp.array([[1, 2], [3, 6]]), axis=1)
    Array([1.5, 4.5], dtype=float32)
    """
    check_no_out("mean", out)
    a = to_array("mean", a)
    dtype = as_dtype(dtype, "mean")
    result = dtypes.to_inexact_dtype(a.aval.dtype) if dtype is None else dtype
    working = wide(result) if dtype is None else dtype
    where = mask_of("mean", where)
    where = None if where is None else broadcast_to(where, a.aval.shape)
    names, rest = names_of(axis)
    axes = axes_of(rest, a.aval.ndim)
    total = sum(a, axis, working, None, keepdims, where=where)
    count = count_of(a, axes, where, working, keepdims, names)
    return converted(div_p.bind(total, converted(count, working)), result)


def _var_dtypes(name: str, a: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtype to compute in, and that of the result, of a variance."""
    found = a.aval.dtype
    if dtype is not None:
        if dtypes.issubdtype(found, np.complexfloating) and not dtypes.issubdtype(
            dtype, np.complexfloating
        ):
            raise ValueError(
                f"jax.numpy.{name} does not yet support real dtype parameters when computing the "
                f"variance of an array of complex values. The semantics of numpy.{name} seem "
                f"unclear in this case. dtype is {dtype} and the array is of {found}: leave dtype "
                "out, or give a complex one."
            )
        working = dtypes.to_inexact_dtype(dtype)
    else:
        working = dtypes.to_inexact_dtype(found)
    if dtype is not None and working.kind == "c":  # asked for
        return working, working
    return wide(working), dtypes.to_real_dtype(working)


def _variance(name, a, axis, dtype, out, ddof, keepdims, where, mean_, correction) -> Any:
    check_no_out(name, out)
    a = to_array(name, a)
    if correction is not None:
        if not (isinstance(ddof, int) and ddof == 0):
            raise ValueError(
                "ddof and correction can't be provided simultaneously. Give one of them."
            )
        ddof = correction
    where = mask_of(name, where)
    working, result = _var_dtypes(name, a, as_dtype(dtype, name))
    names, axis = names_of(axis)
    axes = axes_of(axis, a.aval.ndim)
    every = (*axes, *names)
    a = converted(a, working)
    if mean_ is None:
        mean_ = mean(a, every, working, keepdims=True, where=where)
    centered = sub_p.bind(*promote_shapes(name, a, converted(mean_, working)))
    if working.kind == "c":
        squared = arithmetic.real(mul_p.bind(centered, arithmetic.conj(centered)))
    else:
        squared = arithmetic.square(centered)
    working = squared.aval.dtype
    total = sum(squared, every, working, keepdims=keepdims, where=where)
    count = count_of(a, axes, where, working, keepdims, names)
    if isinstance(count, int) and isinstance(ddof, (int, float)):
        freedom = converted(count - ddof, working)
        out = div_p.bind(total, freedom)
        if count - ddof <= 0:
            out = choose_where(np.bool_(False), out, number_like(out, np.nan))
        return converted(out, result)
    freedom = sub_p.bind(converted(count, working), converted(ddof, working))
    out = div_p.bind(total, freedom)
    positive = compare.gt_p.bind(freedom, number_like(freedom, 0))
    return converted(choose_where(positive, out, number_like(out, np.nan)), result)


def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """Compute the variance along axes: the mean of the squared distances from the mean.

    - `a`: numeric array of any shape.
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.
    - `dtype`: dtype of the result; by default the real dtype of `a`, or the default float.
    - `ddof`, or `correction`: number subtracted from the count in the divisor, 0 by default.
    - `where`: boolean array of elements to include; `mean`: the mean, if it is known already.

    Returns a real array of the shape of `a` without the reduced axes. ValueError if both `ddof` and
    `correction` are given. Source: NumPy's `var`.

    >>> jnp.var(jnp.array([1.0, 3.0, 5.0, 7.0]))
    Array(5., dtype=float32)
    """
    return _var(a, axis, dtype, out, ddof, keepdims, where=where, mean_=mean, correction=correction)


def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """Compute the standard deviation along axes: the square root of the variance.

    - `a`: numeric array of any shape.
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.
    - `dtype`: floating-point dtype of the result; by default the real dtype of `a`.
    - `ddof`, `correction`, `where`, `mean`: as in `var`.

    Returns a real array of the shape of `a` without the reduced axes. ValueError if `dtype` is not
    inexact, or both `ddof` and `correction` are given. Source: NumPy's `std`.

    >>> jnp.std(jnp.array([1.0, 3.0, 1.0, 3.0]))
    Array(1., dtype=float32)
    """
    return _std(a, axis, dtype, out, ddof, keepdims, where=where, mean_=mean, correction=correction)


@library(static=("axis", "dtype", "out", "keepdims", "ddof", "correction"), converted=("axis",))
def _var(a, axis, dtype, out, ddof, keepdims, where, mean_, correction):
    return _variance("var", a, axis, dtype, out, ddof, keepdims, where, mean_, correction)


@library(static=("axis", "dtype", "out", "keepdims", "ddof", "correction"), converted=("axis",))
def _std(a, axis, dtype, out, ddof, keepdims, where, mean_, correction):
    dtype = as_dtype(dtype, "std")
    if dtype is not None and not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError(
            f"dtype argument to jnp.std must be inexact; got {dtype}. Convert the result instead."
        )
    return arithmetic.sqrt(
        _variance("std", a, axis, dtype, out, ddof, keepdims, where, mean_, correction)
    )
