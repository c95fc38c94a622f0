"""Arrays with elements put in by a mask, inserted or deleted."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_value
from minijax.core.array import Array
from minijax.core.trace import Tracer
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.lax import compare, creation, slicing
from minijax.lax.joining import concatenate_p
from minijax.numpy.creation import asarray
from minijax.numpy.indexing import IndexHelper
from minijax.numpy.linear_algebra import diagonal_length
from minijax.numpy.promotion import (
    axis_of,
    broadcast_to_shape,
    cast,
    check_arraylike,
    converted,
    to_array,
    weakened,
)
from minijax.numpy.searching import known, nonzero
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import along_axis, broadcast_to, moveaxis, ravel, reshaped
from minijax.numpy.sorting import argsort
from minijax.numpy.taking import take
from minijax.typing import ArrayLike

__all__ = ["delete", "fill_diagonal", "insert", "place"]


def _check_not_in_place(name: str, inplace: bool, error: type[Exception] = ValueError) -> None:
    if inplace:
        raise error(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. "
            "Pass inplace=False to instead return an updated array."
        )


@library(static=("wrap", "inplace"), converted=("wrap", "inplace"))
def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Return a copy of an array with values on its main diagonal.

    - `a`: array of at least two dimensions, of equal sizes if more than two.
    - `val`: scalar or array; its elements are repeated along the diagonal as needed.
    - `inplace`: must be False, since arrays are immutable; `wrap`: must be False.

    Returns an array of the shape and dtype of `a`. NotImplementedError unless `inplace` and `wrap`
    are False, ValueError for other shapes. Source: NumPy's `fill_diagonal`.

    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5, inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    a, val = to_array("fill_diagonal", a), to_array("fill_diagonal", val, 1)
    sizes = a.aval.shape
    if len(sizes) < 2:
        raise ValueError(f"array must be at least 2-d; fill_diagonal got shape {sizes}.")
    if len(sizes) > 2 and len(set(sizes)) != 1:
        raise ValueError(f"All dimensions of input must be of equal length; got {sizes}.")
    count = min(sizes)
    if len(sizes) == 2:
        count = diagonal_length(*sizes, 0)
    val = ravel(val)
    times = -(-count // max(val.aval.shape[0], 1))
    val = concatenate_p.bind(*[val] * times, dimension=0) if times > 1 else val
    places = creation.iota(np.int32, count)
    return IndexHelper(a)[(places,) * len(sizes)].set(val[:count])


def _repeated(v: Any, length: int) -> Any:
    """A vector repeated, or cut, to a length."""
    times = -(-length // v.aval.shape[0])
    if times > 1:
        v = concatenate_p.bind(*[v] * times, dimension=0)
    return slicing.slice_in_dim(v, 0, length)


@library(static=("inplace",), converted=("inplace",))
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Return a copy of an array with values put where a mask is true.

    - `arr`: array of any shape; `mask`: boolean array of as many elements.
    - `vals`: array whose elements are put in order, and repeated as needed.
    - `inplace`: must be False, since arrays are immutable.

    Returns an array of the shape and dtype of `arr`. ValueError unless `inplace` is False, or if
    the sizes differ or `vals` is empty. Source: NumPy's `place`.

    >>> jnp.place(jnp.array([1, 2, 3]), jnp.array([True, False, True]), 9, inplace=False)
    Array([9, 2, 9], dtype=int32)
    """
    _check_not_in_place("place", inplace)
    arr, mask, vals = to_array("place", arr), to_array("place", mask, 1), to_array("place", vals, 2)
    vals = ravel(vals)
    if arr.aval.size != mask.aval.size:
        raise ValueError(
            "place: arr and mask must be the same size; got shapes "
            f"{arr.aval.shape} and {mask.aval.shape}."
        )
    if not vals.aval.size:
        raise ValueError("place: Cannot place values from an empty array")
    if not arr.aval.size:
        return arr
    size = arr.aval.size
    (places,) = nonzero(ravel(mask), size=size, fill_value=size)
    flat = IndexHelper(ravel(arr))[places].set(_repeated(vals, size), mode="drop")
    return reshaped(flat, arr.aval.shape)


# -- insert and delete ------------------------------------------------------------------------


def _check_places(name: str, obj: Any) -> None:
    if not isinstance(obj, slice):
        check_arraylike(name, 0, obj)


def _range_of(obj: slice, length: int) -> np.ndarray:
    return np.arange(*obj.indices(length))


def insert(
    arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None
) -> Array:
    """Insert values before given positions along an axis.

    - `arr`: array of any shape.
    - `obj`: an int, a slice, or a vector of ints: positions in `arr`.
    - `values`: array that broadcasts to the slices to insert; converted to the dtype of `arr`.
    - `axis`: an int, or None to flatten `arr` first.

    Returns an array of the dtype of `arr`. ValueError if `obj` is not integer or has more than one
    dimension. Source: NumPy's `insert`.

    >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
    Array([1, 9, 2, 3], dtype=int32)
    """
    arr, values = to_array("insert", arr), to_array("insert", values, 2)
    _check_places("insert", obj)
    arr, axis = along_axis(arr, known_value(axis, "axis argument of jnp.insert()"))
    length = arr.shape[axis]
    scalar = not isinstance(obj, slice) and np.ndim(obj) == 0
    places = _range_of(obj, length) if isinstance(obj, slice) else obj
    if isinstance(places, (Array, np.ndarray)) and places.dtype == dtypes.bool_:
        places = np.nonzero(known(asarray(places), "insert", "Give integers."))[0]
    places = asarray(places)
    if not dtypes.issubdtype(places.dtype, np.integer):
        raise ValueError(
            f"jnp.insert(): index array must be integer typed; got {obj!r}: convert it with int(), "
            "or .astype(int)."
        )
    if places.ndim > 1:
        raise ValueError("jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar; "
                         f"got shape {places.shape}.")  # fmt: skip
    if scalar or places.size == 1:
        return _insert_block(arr, ravel(places), values, axis, scalar)
    if isinstance(places, Tracer) or not isinstance(length, int):
        return _insert_each(arr, _arrangement(ravel(places), length), values, axis)
    return _insert_each(arr, _known_arrangement(np.asarray(places), length), values, axis)


def _parted(arr: Any, first: Any, count: int, axis: int, values: Any) -> Any:
    """`arr` with a gap for `values` from a place: a choice between two padded copies."""
    length = arr.aval.shape[axis]
    if dtypes.is_extended(arr.aval.dtype):  # of keys there is no zero
        rows = creation.iota(dtypes.int_(), length + count)
        rows = compare.clamp(0, choose_where(rows < first, rows, rows - count), length - 1)
        return IndexHelper(arr)[(*(slice(None),) * axis, rows)].get() if length else values
    zero = np.zeros((), arr.aval.dtype)[()]
    widths = [[(0, 0, 0)] * arr.aval.ndim for _ in range(2)]
    widths[0][axis], widths[1][axis] = (0, count, 0), (count, 0, 0)
    low, high = (slicing.pad(arr, zero, w) for w in widths)
    return choose_where(
        creation.broadcasted_iota(dtypes.int_(), low.aval.shape, axis) < first, low, high
    )


def _values_to_insert(arr: Any, values: Any, axis: int, scalar: bool) -> Any:
    """The values in the array's dtype, with its rank."""
    rank = arr.aval.ndim
    if values.aval.ndim < rank:
        values = reshaped(values, (1,) * (rank - values.aval.ndim) + values.aval.shape)
    return cast(moveaxis(values, 0, axis) if scalar else values, arr.aval.dtype)


def _resized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


@library(static=("axis", "scalar"))
def _insert_block(arr, places, values, axis, scalar):
    """All values at one place."""
    length = arr.aval.shape[axis]
    values = _values_to_insert(arr, values, axis, scalar)
    count = values.aval.shape[axis]
    if not count:
        return arr
    values = broadcast_to(values, _resized(arr.aval.shape, axis, count))
    places = converted(places, dtypes.int_())
    first = compare.clamp(0, (places < 0) * length + places, length)[0]
    out = _parted(arr, first, count, axis, values)
    where = (*(slice(None),) * axis, first + creation.iota(dtypes.int_(), count))
    out = IndexHelper(out)[where].set(values)
    return weakened(out) if arr.aval.weak_type else out


def _known_arrangement(places: np.ndarray, length: int) -> tuple[np.ndarray, ...]:
    """The order in which values are inserted, and where they and the old elements come to stand."""
    places = places.ravel().astype(np.int64)
    places = np.clip(np.where(places < 0, places + length, places), 0, length)
    order = np.argsort(places, kind="stable")
    new = places[order] + np.arange(places.size)
    old = np.delete(np.arange(length + places.size), new)
    return tuple(x.astype(dtypes.int_()) for x in (order, new, old))


@library(static=("length",))
def _arrangement(places, length):
    """`_known_arrangement` of traced places."""
    places = converted(places, dtypes.int_())
    count = places.aval.shape[0]
    places = compare.clamp(0, (places < 0) * length + places, length)
    order = argsort(places)
    new = places[order] + creation.iota(dtypes.int_(), count)
    is_new = IndexHelper(broadcast_to_shape(np.bool_(False), (length + count,)))[new].set(True)
    (old,) = nonzero(~is_new, size=length)
    return order, new, old


@library(static=("axis",))
def _insert_each(arr, arrangement, values, axis):
    """Values at places of their own."""
    order, new, old = arrangement
    count = order.shape[0]
    values = _values_to_insert(arr, values, axis, False)
    values = broadcast_to(values, _resized(arr.aval.shape, axis, count))
    if not count:
        return arr
    before = (slice(None),) * axis
    sizes = _resized(arr.aval.shape, axis, arr.aval.shape[axis] + count)
    dtype = arr.aval.dtype  # of keys there is no zero
    zero = ravel(values)[0] if dtypes.is_extended(dtype) else np.zeros((), dtype)[()]
    out = broadcast_to_shape(zero, sizes)
    for where, parts in ((new, take(values, order, axis=axis)), (old, arr)):
        places = IndexHelper(out)[(*before, where)]
        out = places.set(parts, unique_indices=True, indices_are_sorted=True)
    return weakened(out) if arr.aval.weak_type else out


def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Delete slices along an axis.

    - `arr`: array of any shape.
    - `obj`: an int, a slice, a vector of ints, or a boolean vector of the length of the axis.
    - `axis`: an int, or None to flatten `arr` first.
    - `assume_unique_indices`: the integers of `obj`, which may then be traced, are distinct.

    Returns an array of the dtype of `arr`. IndexError for positions out of range, ValueError if
    `obj` is neither integer nor boolean. Source: NumPy's `delete`.

    >>> jnp.delete(jnp.array([1, 2, 3]), 1)
    Array([1, 3], dtype=int32)
    """
    arr = to_array("delete", arr)
    _check_places("delete", obj)
    if hasattr(obj, "__jax_array__"):
        obj = obj.__jax_array__()
    arr, axis = along_axis(arr, axis)
    length = arr.shape[axis]
    if isinstance(obj, slice):
        obj = _range_of(obj, length)
    distinct = assume_unique_indices and isinstance(obj, Array) and obj.dtype.kind in "iu"
    if not isinstance(obj, Tracer) and not distinct:
        places = np.asarray(obj)
        if places.dtype.kind not in "biu" and places.size:
            raise ValueError(
                f"np.delete(arr, obj): got obj.dtype={places.dtype}; must be integer or bool."
            )
        if places.dtype == bool:
            if places.shape != (length,):
                raise ValueError(
                    f"np.delete(arr, obj): for boolean indices, obj must be one-dimensional with "
                    f"length matching specified axis: got {places.shape} for {length}."
                )
            places = np.nonzero(places)[0]
        if places.ndim == 0 and is_dim(length):
            return _without(arr, places.item(), axis)
        if places.ndim == 0:
            places = np.asarray([axis_of(places[()], length)])
        places = places.astype(np.int64)
        beyond = places[(places < -length) | (places >= length)]
        if beyond.size:
            raise IndexError(
                f"index {beyond[0]} is out of bounds for axis {axis} with size {length}: delete "
                f"takes places from {-length} to {length - 1}."
            )
        keep = np.ones(length, bool)
        keep[places] = False
        return _kept(arr, keep, axis)
    if not distinct:
        remedy = "Give integers, with assume_unique_indices=True if they are distinct."
        known_value(obj, "'obj' array argument of jnp.delete()", remedy)
    return _delete_at(arr, ravel(obj), axis)


def _without(arr: Array, place: int, axis: int) -> Array:
    """`arr` without one slice, along an axis of symbolic size."""
    size = arr.shape[axis]
    place = size + place if place < 0 else place
    parts = [
        slicing.slice_in_dim(arr, 0, place, axis=axis),
        slicing.slice_in_dim(arr, place + 1, size, axis=axis),
    ]
    return concatenate_p.bind(*parts, dimension=axis)


def _kept(arr: Array, keep: np.ndarray, axis: int) -> Array:
    """The slices of `arr` that a mask keeps.

    A few runs in a larger program are sliced and joined. Else they are gathered: where they lie is
    then no part of the program, so that an eager call compiles once for all places.
    """
    changes = np.diff(np.concatenate([[0], keep, [0]]).astype(np.int8))
    starts, ends = np.nonzero(changes > 0)[0].tolist(), np.nonzero(changes < 0)[0].tolist()
    if isinstance(arr, Tracer) and 0 < len(starts) <= _FEW_RUNS:
        runs = [slicing.slice_in_dim(arr, *ab, axis=axis) for ab in zip(starts, ends, strict=True)]
        return concatenate_p.bind(*runs, dimension=axis) if len(runs) > 1 else runs[0]
    places = np.nonzero(keep)[0]
    return take(arr, places, axis, None, "clip", unique_indices=True, indices_are_sorted=True)


_FEW_RUNS = 2  # Of more, XLA makes a slower loop than of a gather.


@library(static=("axis",))
def _delete_at(arr, obj, axis):
    length, count = arr.aval.shape[axis], obj.aval.shape[0]
    obj = (obj < 0) * length + obj
    keep = IndexHelper(broadcast_to_shape(np.bool_(True), (length,)))[obj].set(False)
    (places,) = nonzero(keep, size=length - count)
    return take(arr, places, axis=axis)
