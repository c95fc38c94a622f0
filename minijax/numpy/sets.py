"""Sets: unique, intersect1d, union1d, isin and their kin.

With `size` the number of results is known and these work on traced arrays; without it values must
be known, and the work is done on the host.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_value
from minijax.arrays.array import as_array
from minijax.core.array import Array
from minijax.features.library import library
from minijax.features.sharding.sharding_rules import parts_of
from minijax.lax import creation
from minijax.lax.joining import concatenate_p
from minijax.lax.sorting import sort_p
from minijax.numpy import reductions
from minijax.numpy.cumulative import cumsum
from minijax.numpy.indexing import IndexHelper
from minijax.numpy.logic import equal, isnan, logical_and, logical_not, logical_or, not_equal
from minijax.numpy.promotion import (
    axis_of,
    broadcast_to_shape,
    check_arraylike,
    converted,
    known_size,
    number_like,
    promote_dtypes,
    to_array,
    weakened,
)
from minijax.numpy.searching import _nonzero_of_size, known
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import moveaxis, ravel, reshaped
from minijax.numpy.sorting import searchsorted, sort
from minijax.numpy.taking import take, take_or_last
from minijax.typing import ArrayLike

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip

_SIZE_OF_UNIQUE = (
    "The error arose for the size argument of jnp.unique(). To make jnp.unique() compatible with JIT "
    "and other transforms, you can specify a concrete value for the size argument, which will "
    "determine the output size."
)
_GIVE_SIZE = "To make it compatible with JIT and other transforms, give the size argument."


class _UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    values: Array
    inverse_indices: Array


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """Return the distinct elements of an array.

    - `ar`: array; `axis`: None to flatten it, or an int to compare the slices along this axis.
    - `return_index`, `return_inverse`, `return_counts`: also return the first indices of the
      distinct elements, the position of each element among them, how often each occurs.
    - `equal_nan`: NaN are equal to each other; `sorted`: has no effect.
    - `size`: number of elements of the result, needed if `ar` is traced; `fill_value` fills missing
      ones, by default the smallest.

    Returns an array of the dtype of `ar`, or a tuple of it and integer arrays.
    ConcretizationTypeError if `ar` is traced and `size` is None. Source: NumPy's `unique`.

    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    del sorted
    ar = _typed_if_complex(to_array("unique", ar))
    wanted = (return_index, return_inverse, return_counts)
    if axis is not None:
        axis = axis_of(axis, ar.ndim)
    if size is None:
        out = _unique_on_host(ar, axis, equal_nan)
    else:
        if not (ar.size if axis is None else ar.shape[axis]) and size and fill_value is None:
            raise ValueError(
                "jnp.unique: for zero-sized input with nonzero size argument, fill_value must be "
                "specified"
            )
        out = _unique_of_size(
            ar, fill_value, axis, bool(equal_nan), known_size(size, _SIZE_OF_UNIQUE)
        )
    chosen = (out[0], *[x for x, want in zip(out[1:], wanted, strict=True) if want])
    return chosen if len(chosen) > 1 else chosen[0]


def _unique_on_host(ar: Any, axis: int | None, equal_nan: bool) -> tuple[Array, ...]:
    value = known(ar, "unique", _GIVE_SIZE)
    shape = value.shape
    if ar.dtype.kind == "V" and axis is None:  # NumPy does not know where NaN of these goes
        wide = value.astype(np.float32)
        _, index, inverse, counts = np.unique(
            wide, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan
        )
        found = value.reshape(-1)[index]
    else:
        found, index, inverse, counts = np.unique(
            value, return_index=True, return_inverse=True, return_counts=True, axis=axis,
            equal_nan=equal_nan,
        )  # fmt: skip
    inverse = inverse.reshape(shape if axis is None else (shape[axis],))
    integers = [as_array(x.astype(dtypes.int_())) for x in (index, inverse, counts)]
    return _as(found, ar), *integers


def _as(found: np.ndarray, like: Any) -> Any:
    """Return an array of the host in the dtype and weak type of another array."""
    out = as_array(found.astype(like.dtype))
    return weakened(out) if like.aval.weak_type else out


@library(static=("axis", "equal_nan", "size"), whole=True)
def _unique_of_size(ar, fill_value, axis, equal_nan, size):
    shape = ar.aval.shape
    rows = reshaped(ravel(ar), (ar.aval.size, 1)) if axis is None else _as_rows(ar, axis)
    count = rows.aval.shape[0]
    dtype = dtypes.int_()
    if not count:
        return _nothing(ar, fill_value, axis, size)
    columns = [rows[:, i] for i in range(rows.aval.shape[1])]
    places = creation.iota(dtype, count)
    *keys, order = sort_p.bind(*columns, places, dimension=0, is_stable=True, num_keys=len(columns))
    is_new = _differs_from_last(keys, count, equal_nan)
    (starts,) = _nonzero_of_size(is_new, (count,), size + 1)
    starts, next_starts = starts[:size], starts[1:]
    total = reductions.sum(is_new, dtype=dtype)
    valid = creation.iota(dtype, size) < total
    index = take_or_last(order, starts)
    index = choose_where(valid, index, index[0]) if size else index
    if len(keys) == 1:  # the sorted values are there
        values = reshaped(keys[0], (count, 1))
        found, fill = take_or_last(values, starts), values[0]
    else:
        found, fill = take(rows, index, axis=0, mode="clip"), rows[order[0]]
    if fill_value is not None:
        fill = broadcast_to_shape(converted(fill_value, ar.aval.dtype), found.aval.shape[1:])
    found = choose_where(reshaped(valid, (size, 1)), found, fill)
    if fill_value is not None:
        found = converted(found, ar.aval.dtype)
    group = cumsum(converted(is_new, dtype)) - 1
    inverse = IndexHelper(places)[order].set(group, unique_indices=True)
    counts = choose_where(valid, next_starts - starts, 0)
    inverse = reshaped(inverse, shape if axis is None else (count,))
    return _from_rows(found, ar, axis, size), index, inverse, converted(counts, dtype)


def _differs_from_last(keys: list[Any], count: int, equal_nan: bool) -> Any:
    """Whether each row of sorted keys differs from the one before it."""
    differs = None
    for key in keys:
        now, last = key[1:], key[:-1]
        one = not_equal(now, last)
        if equal_nan and dtypes.issubdtype(key.aval.dtype, np.inexact):
            one = logical_and(one, logical_not(logical_and(isnan(now), isnan(last))))
        differs = one if differs is None else logical_or(differs, one)
    first = broadcast_to_shape(np.bool_(True), (1,))
    if differs is None:
        rest = broadcast_to_shape(np.bool_(False), (count - 1,))
        return concatenate_p.bind(first, rest, dimension=0)
    return concatenate_p.bind(first, differs, dimension=0)


def _as_rows(ar: Any, axis: int) -> Any:
    moved = moveaxis(ar, axis, 0)
    count = moved.aval.shape[0]
    width = int(np.prod(moved.aval.shape[1:], dtype=np.int64))
    return reshaped(moved, (count, width))


def _from_rows(rows: Any, ar: Any, axis: int | None, size: int) -> Any:
    if axis is None:
        return reshaped(rows, (size,))
    rest = [n for i, n in enumerate(ar.aval.shape) if i != axis]
    return moveaxis(reshaped(rows, (size, *rest)), 0, axis)


def _nothing(ar: Any, fill_value: Any, axis: int | None, size: int) -> tuple:
    """The results for an array without elements."""
    dtype = dtypes.int_()
    shape = list(ar.aval.shape) if axis is not None else [0]
    shape[axis or 0] = size
    fill = converted(0 if fill_value is None else fill_value, ar.aval.dtype)
    zeros = broadcast_to_shape(np.asarray(0, dtype)[()], (size,))
    nothing = broadcast_to_shape(
        np.asarray(0, dtype)[()], ar.aval.shape if axis is None else (ar.aval.shape[axis],)
    )
    return broadcast_to_shape(fill, tuple(shape)), zeros, nothing, zeros


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueAllResult:
    """Return the distinct elements, their first indices, the inverse, and their counts.

    - `x`: array, flattened first; `size`, `fill_value`: as in `unique`.

    Returns a named tuple of values, indices, inverse_indices (of the shape of `x`) and counts.
    ConcretizationTypeError if `x` is traced and `size` is None. Source: NumPy's `unique_all`, of
    the array API standard.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).indices
    Array([1, 0], dtype=int32)
    """
    found = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return _UniqueAllResult(*found)


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueCountsResult:
    """Return the distinct elements of an array and how often each occurs.

    - `x`: array of any shape, flattened first; `size`, `fill_value`: as in `unique`.

    Returns a named tuple of values and counts. ConcretizationTypeError if `x` is traced and `size`
    is None. Source: NumPy's `unique_counts`, of the array API standard.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    check_arraylike("unique_counts", x)
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return _UniqueCountsResult(*found)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueInverseResult:
    """Return the distinct elements of an array and the position of each element among them.

    - `x`: array, flattened first; `size`, `fill_value`: as in `unique`.

    Returns a named tuple of values and inverse_indices, of the shape of `x`.
    ConcretizationTypeError if `x` is traced and `size` is None. Source: NumPy's `unique_inverse`,
    of the array API standard.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    check_arraylike("unique_inverse", x)
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return _UniqueInverseResult(*found)


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the distinct elements of an array, each NaN by itself.

    - `x`: array, flattened first; `size`, `fill_value`: as in `unique`.

    Returns an array of shape (count,) and of the dtype of `x`. ConcretizationTypeError if `x` is
    traced and `size` is None. Source: NumPy's `unique_values`, of the array API standard.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    check_arraylike("unique_values", x)
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# -- two sets ---------------------------------------------------------------------------------


def _pair(name: str, ar1: Any, ar2: Any) -> tuple[Any, Any]:
    check_arraylike(name, ar1, ar2)
    one, two = promote_dtypes(to_array(name, ar1), to_array(name, ar2))
    return _typed_if_complex(ravel(one)), _typed_if_complex(ravel(two))


def _typed_if_complex(x: Any) -> Any:
    """Return an array that is not weakly typed if it is complex: so are upstream's sets of these."""
    return converted(x, x.dtype) if x.dtype.kind == "c" else x


def _by_mask(x: Any, mask: Any, size: int, fill: Any) -> Any:
    """The elements of a vector where a mask is true, and after these `fill`: the first, or zero."""
    if not x.aval.shape[0]:
        return creation.full((size,), 0 if fill is None else fill, x.aval.dtype)
    (places,) = _nonzero_of_size(mask, (x.aval.shape[0],), size)
    found = take(x, places, axis=0, mode="clip")
    missing = places >= x.aval.shape[0]
    if fill is None:
        fill = choose_where(missing[0], converted(0, x.aval.dtype), found[0]) if size else 0
    return choose_where(missing, converted(fill, x.aval.dtype), found)


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the sorted distinct elements of either of two arrays.

    - `ar1`, `ar2`: arrays, flattened first.
    - `size`, `fill_value`: as in `unique`.

    Returns an array of shape (count,) and of the promoted dtype. ConcretizationTypeError if an
    array is traced and `size` is None. Source: NumPy's `union1d`.

    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    one, two = _pair("union1d", ar1, ar2)
    joined = concatenate_p.bind(one, two, dimension=0)
    known_value(size, "The error arose in union1d()")
    return unique(joined, size=size, fill_value=fill_value)


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the sorted distinct elements of one array that are not in another.

    - `ar1`, `ar2`: arrays, flattened first.
    - `assume_unique`: the elements of `ar1` are distinct; their order is kept.
    - `size`, `fill_value`: as in `unique`.

    Returns an array of shape (count,) and of the dtype of `ar1`. ConcretizationTypeError if an
    array is traced and `size` is None. Source: NumPy's `setdiff1d`.

    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    one, two = _pair("setdiff1d", ar1, ar2)
    first = _typed_if_complex(to_array("setdiff1d", ar1))
    if size is None:
        values = [known(x, "setdiff1d", _GIVE_SIZE) for x in (one, two)]
        return _as(np.setdiff1d(*values, assume_unique=assume_unique), first)
    fill_value = 0 if fill_value is None else fill_value
    size = known_size(size, "The error arose in setdiff1d()")
    out = _setdiff_of_size(one, two, fill_value, size, bool(assume_unique))
    out = converted(out, first.dtype)
    return weakened(out) if first.weak_type else out


@library(static=("size", "assume_unique"), whole=True)
def _setdiff_of_size(one, two, fill_value, size, assume_unique):
    if not one.aval.shape[0]:
        return _by_mask(one, None, size, fill_value)
    keep = logical_not(isin(one, two))
    if not assume_unique:
        one, order = sort_p.bind(
            one, creation.iota(np.int32, one.aval.shape[0]), dimension=0, is_stable=True, num_keys=1
        )
        keep = logical_and(keep[order], _differs_from_last([one], one.aval.shape[0], True))
    return _by_mask(one, keep, size, fill_value)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the sorted distinct elements of exactly one of two arrays.

    - `ar1`, `ar2`: arrays, flattened first; `assume_unique`: the elements of each are distinct.
    - `size`, `fill_value`: as in `unique`.

    Returns an array of shape (count,) and of the promoted dtype. ConcretizationTypeError if an
    array is traced and `size` is None. Source: NumPy's `setxor1d`.

    >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([2, 3]))
    Array([1, 2], dtype=int32)
    """
    one, two = _pair("setxor1d", ar1, ar2)
    if size is None:
        values = [known(x, "setxor1d", _GIVE_SIZE) for x in (one, two)]
        return _as(np.setxor1d(*values, assume_unique=assume_unique), one)
    return _setxor_of_size(one, two, fill_value, known_size(size, "size argument of setxor1d()"))


@library(static=("size",), whole=True)
def _setxor_of_size(one, two, fill_value, size):
    joined = sort(concatenate_p.bind(one, two, dimension=0))
    count = joined.aval.shape[0]
    keep = logical_and(
        _differs_from_last([joined], count, True), isin(joined, one) ^ isin(joined, two)
    )
    return _by_mask(joined, keep, size, fill_value)


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: Literal[False] = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    return_indices: Literal[True],
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]: ...
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """Return the sorted distinct elements that two arrays share.

    - `ar1`, `ar2`: arrays, flattened first; `assume_unique`: the elements of each are distinct.
    - `return_indices`: also return their first indices in both.
    - `size`, `fill_value`: as in `unique`.

    Returns an array of shape (count,) and of the promoted dtype, or a tuple of it and two integer
    arrays. ConcretizationTypeError if an array is traced and `size` is None. Source: NumPy's
    `intersect1d`.

    >>> jnp.intersect1d(jnp.array([3, 1]), jnp.array([2, 3]))
    Array([3], dtype=int32)
    """
    one, two = _pair("intersect1d", ar1, ar2)
    if size is None:
        values = [known(x, "intersect1d", _GIVE_SIZE) for x in (one, two)]
        found = np.intersect1d(*values, assume_unique=assume_unique, return_indices=True)
        out = (
            _as(found[0], one),
            *[as_array(x.astype(dtypes.int_())) for x in found[1:]],
        )
        return out if return_indices else out[0]
    out = _intersection_of_size(
        one, two, fill_value, known_size(size, "size argument of intersect1d()")
    )
    return out if return_indices else out[0]


@library(static=("size",), whole=True)
def _intersection_of_size(one, two, fill_value, size):
    counts = one.aval.shape[0], two.aval.shape[0]
    if not all(counts):
        fills = [0 if fill_value is None else fill_value, *counts]
        kinds = [one.aval.dtype, dtypes.int_(), dtypes.int_()]
        return tuple(
            [creation.full((size,), x, kind) for x, kind in zip(fills, kinds, strict=True)]
        )
    places = creation.iota(dtypes.int_(), counts[0])
    values, order = sort_p.bind(one, places, dimension=0, is_stable=True, num_keys=1)
    keep = logical_and(_differs_from_last([values], counts[0], True), isin(values, two))
    (starts,) = _nonzero_of_size(keep, (counts[0],), size)
    missing = starts >= counts[0]
    found = take_or_last(values, starts)
    if fill_value is None and size:
        fill = choose_where(missing[0], number_like(found, 0), found[0])
    else:
        fill = converted(fill_value or 0, found.dtype)
    found = choose_where(missing, fill, found)
    first = choose_where(missing, counts[0], take_or_last(order, starts))
    other, other_order = sort_p.bind(
        two, creation.iota(dtypes.int_(), counts[1]), dimension=0, is_stable=True, num_keys=1
    )
    place = take(other_order, searchsorted(other, found), axis=0, mode="clip")
    second = choose_where(missing, counts[1], place)
    dtype = dtypes.int_()
    return found, converted(first, dtype), converted(second, dtype)


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Test whether each element of an array is among other elements.

    - `element`, `test_elements`: arrays of any shape.
    - `invert`: return the opposite.
    - `assume_unique`: has no effect.
    - `method`: "auto" (the default), "compare_all", "binary_search" or "sort"; they differ in speed
      only.

    Returns a boolean array of the shape of `element`. ValueError for an unknown method. Source:
    NumPy's `isin`.

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 5]))
    Array([False,  True, False], dtype=bool)
    """
    del assume_unique
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            f"invalid argument method={method!r}; expected 'auto', 'compare_all', "
            "'binary_search' or 'sort'."
        )
    return _isin(element, test_elements, bool(invert), method)


_FEW = 32  # elements, with each of which all are compared in less time than a search takes


@library(static=("invert", "method"))
def _isin(element, test_elements, invert, method):
    check_arraylike("isin", element, test_elements)
    element, others = promote_dtypes(to_array("isin", element), to_array("isin", test_elements))
    others = ravel(others)
    shape = element.aval.shape
    if not others.aval.shape[0]:
        return broadcast_to_shape(np.bool_(invert), shape)
    count = others.aval.shape[0]
    if method == "auto" and (
        (not isinstance(count, int) or count <= _FEW)
        or dtypes.is_extended(others.aval.dtype)
        or any(parts_of(element.aval) + parts_of(others.aval))
    ):
        method = "compare_all"
    if method == "compare_all":
        if any(parts_of(element.aval)):  # split as a reshape to one axis and back says
            element = ravel(element)
        grown = reshaped(element, (*element.aval.shape, 1))
        out = reshaped(reductions.any(equal(grown, others), axis=-1), shape)
    else:
        others = sort(others)
        out = equal(take(others, searchsorted(others, element), axis=0, mode="clip"), element)
    return converted(logical_not(out) if invert else out, np.dtype(bool))
