"""Sorting and searching in what is sorted. NaN counts as the largest number, and complex numbers
compare by real, then by imaginary part.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.values import sized
from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax import creation
from minijax.lax.arithmetic import neg_p
from minijax.lax.compare import not_p, or_p
from minijax.lax.control_flow import fori_loop
from minijax.lax.joining import concatenate_p
from minijax.lax.shapes import rev_p
from minijax.lax.sorting import sort_p, top_k_p
from minijax.numpy import reductions
from minijax.numpy.logic import greater_equal, isnan, less
from minijax.numpy.promotion import (
    as_dtype,
    axis_of,
    broadcast_to_shape,
    check_arraylike,
    check_dtypes,
    converted,
    promote_dtypes,
    to_array,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import along_axis, ravel, reshaped
from minijax.numpy.taking import put_along_axis, take
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort",
    "sort_complex",
]  # fmt: skip


def _check_options(name: str, kind: Any, order: Any, stable: Any) -> None:
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to "
            "specify sort stability."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported. Arrays have no fields.")
    if stable is None:  # np.argsort(x) passes it to x.argsort, and answers a TypeError itself
        raise TypeError(f"'stable' argument to {name} must be True or False. Got None.")


def _flipped(x: Any, axis: int) -> Any:
    return rev_p.bind(x, dimensions=(axis,))


def _sorted(operands: Sequence[Any], axis: int, stable: bool, keys: int) -> list[Any]:
    return sort_p.bind(*operands, dimension=axis, is_stable=stable, num_keys=keys)


@library(static=("axis", "kind", "order", "stable", "descending"))
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Return a sorted copy of an array.

    - `a`: array of shape (..., n, ...); NaN sorts last, complex numbers lexicographically.
    - `axis`: the axis along which to sort; -1 by default, None to flatten `a` first.
    - `stable`: keep the order of equal elements; `descending`: from the largest to the smallest.
    - `kind`, `order`: must be None.

    Returns an array of the shape and dtype of `a`. TypeError if `kind` or `order` is given
    or `stable` is None, ValueError if `axis` is out of range. Source: NumPy's `sort`.

    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _check_options("sort", kind, order, stable)
    a = to_array("sort", a)
    a, axis = along_axis(a, axis)
    (out,) = _sorted((a,), axis, bool(stable), 1)
    return _flipped(out, axis) if descending else out


@library(static=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return the indices that sort an array.

    - `a`: array of shape (..., n, ...); NaN sorts last, complex numbers lexicographically.
    - `axis`: the axis along which to sort; -1 by default, None to flatten `a` first.
    - `stable`: keep the order of equal elements; `descending`: from the largest to the smallest.
    - `dtype`: integer dtype of the indices, the default integer unless given.
    - `kind`, `order`: must be None.

    Returns an integer array of the shape of `a`. TypeError if `kind` or `order` is given
    or `stable` is None, ValueError if `axis` is out of range. Source: NumPy's `argsort`.

    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _check_options("argsort", kind, order, stable)
    a = to_array("argsort", a)
    a, axis = along_axis(a, axis)
    dtype = as_dtype(dtype, "argsort") or dtypes.int_()
    places = creation.broadcasted_iota(dtype, a.aval.shape, axis)
    if descending and stable:
        a, places = _flipped(a, axis), _flipped(places, axis)
    _, out = _sorted((a, places), axis, bool(stable), 1)
    return _flipped(out, axis) if descending else out


@library(static=("axis",))
def lexsort(keys: Array | np.ndarray | Sequence[ArrayLike], axis: int = -1) -> Array:
    """Return the indices that sort by several keys, of which the last is the primary one.

    - `keys`: sequence of arrays of one shape, or an array whose first axis runs over the keys.
    - `axis`: the axis of each key along which to sort, the last by default.

    Returns an integer array of the shape of one key. TypeError if there are no keys, ValueError if
    their shapes differ. Source: NumPy's `lexsort`.

    >>> jnp.lexsort((jnp.array([2, 1, 0]), jnp.array([0, 1, 0])))
    Array([2, 0, 1], dtype=int32)
    """
    keys = [to_array("lexsort", key, i) for i, key in enumerate(sized("lexsort", keys))]
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({key.aval.shape for key in keys}) > 1:
        raise ValueError(
            f"all keys need to be the same shape; lexsort got {[key.aval.shape for key in keys]}."
        )
    if not keys[0].aval.ndim:
        return converted(np.int32(0), dtypes.int_())
    axis = axis_of(axis, keys[0].aval.ndim)
    places = creation.broadcasted_iota(dtypes.int_(), keys[0].aval.shape, axis)
    return _sorted((*reversed(keys), places), axis, True, len(keys))[-1]


@library
def sort_complex(a: ArrayLike) -> Array:
    """Sort an array as complex numbers: by real part, then by imaginary part.

    - `a`: numeric array of shape (..., n).

    Returns a complex array of the shape of `a`, sorted along its last axis. Source: NumPy's
    `sort_complex`.

    >>> jnp.sort_complex(jnp.array([3, 1, 2]))
    Array([1.+0.j, 2.+0.j, 3.+0.j], dtype=complex64)
    """
    a = sort(to_array("sort_complex", a))
    return converted(a, dtypes.to_complex_dtype(a.aval.dtype))


def _partition_axis(name: str, a: Any, kth: Any, axis: Any) -> tuple[Any, int, int]:
    a = to_array(name, a)
    if dtypes.issubdtype(a.aval.dtype, np.complexfloating):
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented. Sort instead.")
    axis = axis_of(axis, a.aval.ndim)
    return a, axis_of(operator.index(kth), a.aval.shape[axis]), axis


@library(static=("kth", "axis"))
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return a copy in which the smallest `kth` elements come first.

    - `a`: real array of shape (..., n, ...).
    - `kth`: an int; element `kth` of the result is the one that sorting would put there. No larger
      ones stand before it and no smaller ones behind it.
    - `axis`: an int, the last by default.

    Returns an array of the shape and dtype of `a`; the order on both sides of `kth` is unspecified.
    NotImplementedError for complex arrays, ValueError if `kth` or `axis` is out of range. Source:
    NumPy's `partition`.

    >>> jnp.partition(jnp.array([4, 2, 3, 1]), 1)[:2]
    Array([1, 2], dtype=int32)
    """
    a, kth, axis = _partition_axis("partition", a, kth, axis)
    head = _reversed_order(_top(_reversed_order(a), kth + 1, axis)[0])
    tail = _top(a, a.aval.shape[axis] - kth - 1, axis)[0]
    return concatenate_p.bind(head, tail, dimension=axis)


@library(static=("kth", "axis"))
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return the indices that partition an array.

    - `a`: real array of shape (..., n, ...).
    - `kth`: an int; see `partition`.
    - `axis`: an int, the last by default.

    Returns an integer array of the shape of `a`. NotImplementedError for complex arrays, ValueError
    if `kth` or `axis` is out of range. Source: NumPy's `argpartition`.

    >>> jnp.argpartition(jnp.array([4, 2, 3, 1]), 1)[:2]
    Array([3, 1], dtype=int32)
    """
    a, kth, axis = _partition_axis("argpartition", a, kth, axis)
    head = _top(_reversed_order(a), kth + 1, axis)[1]
    others = put_along_axis(
        broadcast_to_shape(np.float32(1), a.aval.shape), head, np.float32(0), axis, inplace=False
    )
    tail = _top(others, a.aval.shape[axis] - kth - 1, axis)[1]
    return concatenate_p.bind(head, tail, dimension=axis)


def _top(x: Any, count: int, axis: int) -> list[Any]:
    return top_k_p.bind(x, k=count, axis=axis)


def _reversed_order(x: Any) -> Any:
    """Return a key that sorts in reverse; integers have no negative of their least one."""
    floating = dtypes.issubdtype(x.aval.dtype, np.floating)
    return neg_p.bind(x) if floating else not_p.bind(x)


# -- searching --------------------------------------------------------------------------------

_METHODS = ("compare_all", "scan", "scan_unrolled", "sort")


def _before(x: Any, y: Any) -> Any:
    """Whether x comes before y, NaN last."""
    out = less(x, y)
    if dtypes.issubdtype(x.aval.dtype, np.inexact):
        out = or_p.bind(out, not_p.bind(or_p.bind(isnan(x), not_p.bind(isnan(y)))))
    return out


@library(static=("side", "method"), whole=True)
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Find where to insert values into a sorted vector so that it stays sorted.

    - `a`: array of shape (n,), in ascending order unless `sorter` is given.
    - `v`: array of any shape of values to insert.
    - `side`: "left" inserts before equal elements, "right" behind them.
    - `sorter`: integer array of shape (n,) that sorts `a`, such as `argsort(a)`.
    - `method`: "scan", "scan_unrolled", "sort" or "compare_all"; they differ in speed only.

    Returns an integer array of the shape of `v`. ValueError if `a` is not one-dimensional, or for
    an unknown `side` or `method`. Source: NumPy's `searchsorted`.

    >>> jnp.searchsorted(jnp.array([1, 2, 2, 3]), jnp.array([2, 5]))
    Array([1, 4], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument side={side!r}, expected 'left' or 'right'")
    if method not in _METHODS:
        raise ValueError(f"invalid argument method={method!r}, expected one of {list(_METHODS)}")
    if np.ndim(a) != 1:
        check_arraylike("searchsorted", a, v)
        raise ValueError(f"a should be 1-dimensional; searchsorted got shape {np.shape(a)}.")
    check_arraylike("searchsorted", a, v)
    a, v = promote_dtypes(to_array("searchsorted", a), to_array("searchsorted", v))
    if sorter is not None:
        sorter = to_array("searchsorted", sorter)
        if sorter.ndim != 1:
            raise ValueError(f"sorter should be 1-dimensional; got shape {sorter.shape}.")
        a = take(a, sorter, axis=0, mode="clip")
    dtype = dtypes.int32 if a.aval.shape[0] < np.iinfo(np.int32).max else dtypes.int64
    if not a.aval.shape[0]:
        return broadcast_to_shape(np.asarray(0, dtype)[()], v.aval.shape)
    find = {"compare_all": _by_comparing, "sort": _by_sorting}.get(method, _by_halving)
    return find(a, v, side, dtype, method == "scan_unrolled")


def _goes_after(x: Any, v: Any, side: str) -> Any:
    """Whether the place of `v` is after the element `x`."""
    return _before(x, v) if side == "left" else not_p.bind(_before(v, x))


def _by_comparing(a, v, side, dtype, unrolled) -> Any:
    shape = (a.aval.shape[0], *v.aval.shape)
    column = broadcast_to_shape(reshaped(a, (shape[0], *[1] * v.aval.ndim)), shape)
    after = _goes_after(column, broadcast_to_shape(v, shape), side)
    return reductions.sum(after, axis=0, dtype=dtype)


def _by_sorting(a, v, side, dtype, unrolled) -> Any:
    """The rank of each `v` in a sort of both, less the number of others of `v` before it."""
    flat = ravel(v)
    count, total = flat.aval.shape[0], a.aval.shape[0] + flat.aval.shape[0]
    both = (flat, a) if side == "left" else (a, flat)
    first = 0 if side == "left" else a.aval.shape[0]
    joined = concatenate_p.bind(*both, dimension=0)
    places = creation.iota(dtype, total)
    _, order = _sorted((joined, places), 0, True, 1)
    rank = argsort(order)
    mine = rank[first : first + count]
    own = argsort(argsort(flat))
    return reshaped(converted(mine - own, dtype), v.aval.shape)


def _by_halving(a, v, side, dtype, unrolled) -> Any:
    length = a.aval.shape[0]
    steps = int(np.ceil(np.log2(length + 1)))
    low = broadcast_to_shape(np.asarray(0, dtype)[()], v.aval.shape)
    high = broadcast_to_shape(np.asarray(length, dtype)[()], v.aval.shape)
    one = np.asarray(1, dtype)[()]

    def halve(_, bounds):
        low, high = bounds
        middle = low + ((high - low) >> one)  # below the length: `low` is
        after = _goes_after(take(a, middle, axis=0, mode="clip"), v, side)
        return choose_where(after, middle, low), choose_where(after, high, middle)

    if unrolled:
        bounds = (low, high)
        for step in range(steps):
            bounds = halve(step, bounds)
        return bounds[1]
    return fori_loop(0, steps, halve, (low, high))[1]


@library(static=("right", "method"))
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """Return the index of the bin that each element belongs to.

    - `x`: array of any shape.
    - `bins`: array of shape (n,), ascending or descending.
    - `right`: include the right edge of a bin instead of the left one.
    - `method`: as in `searchsorted`.

    Returns an integer array of the shape of `x`, from 0 (before the first edge) to n (behind the
    last). ValueError if `bins` is not one-dimensional. Source: NumPy's `digitize`.

    >>> jnp.digitize(jnp.array([0.5, 1.0, 3.5]), jnp.array([1.0, 2.0, 3.0]))
    Array([0, 1, 3], dtype=int32)
    """
    check_arraylike("digitize", x, bins)
    bins = to_array("digitize", bins)
    if bins.aval.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins={bins!r}")
    x = to_array("digitize", x)
    check_dtypes(bins, x)
    if not bins.aval.shape[0]:
        return broadcast_to_shape(np.asarray(0, dtypes.int32)[()], x.aval.shape)
    side = "left" if right else "right"
    method = method or "scan"
    up = searchsorted(bins, x, side=side, method=method)
    down = bins.aval.shape[0] - searchsorted(bins[::-1], x, side=side, method=method)
    return choose_where(greater_equal(bins[-1], bins[0]), up, down)
