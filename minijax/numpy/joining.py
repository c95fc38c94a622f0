"""Joining and splitting arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.functions import check_at_most
from minijax.arguments.values import known_count, known_index, sized
from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax.joining import concatenate_p, join, split_p, stack_p, unstack_p
from minijax.numpy.promotion import (
    as_dtype,
    axis_of,
    cast,
    check_no_out,
    promote_dtypes,
    to_array,
)
from minijax.numpy.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    expanded,
    moveaxis,
    ravel,
    reshaped,
)
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "append", "array_split", "block", "column_stack", "concat", "concatenate", "dsplit", "dstack",
    "hsplit", "hstack", "split", "stack", "unstack", "vsplit", "vstack",
]  # fmt: skip


class _NoSequence(TypeError, ValueError):
    """A scalar or an iterator in place of a sequence: upstream raises either."""


def _parts(name: str, arrays: Any) -> list[Any]:
    """The arrays to join: given in a sequence, or as the rows of one array."""
    if isinstance(arrays, Array) or isinstance(arrays, np.ndarray):
        arrays = to_array(name, arrays)
        if not arrays.aval.ndim:
            raise _NoSequence(f"{name}: zero-dimensional array cannot be taken as a sequence.")
        return list(unstack_p.bind(arrays, axis=0)) if arrays.aval.shape[0] else []
    if isinstance(arrays, Iterator) and name != "stack":  # upstream has used it up
        raise _NoSequence(
            f"Need at least one array to concatenate. {name} takes a sequence of arrays; got "
            f"{type(arrays).__name__}: write them in a list."
        )
    if not np.iterable(sized(name, arrays)):
        raise TypeError(
            f"{name} takes a sequence of arrays; got {type(arrays).__name__}: write them in a list."
        )
    return [to_array(name, x, i) for i, x in enumerate(arrays)]


def _whole(arrays: Any) -> Any:
    """The array whose rows are to be joined, or None: moved as one, its rows need not be cut."""
    if isinstance(arrays, (Array, np.ndarray)) and np.ndim(arrays) > 1 and arrays.shape[0] != 0:
        return to_array("concatenate", arrays)
    return None


def _merged(x: Any, axis: int) -> Any:
    """The rows of an array, concatenated along an axis of theirs."""
    x = moveaxis(x, 0, axis)
    sizes = x.aval.shape
    return reshaped(x, (*sizes[:axis], sizes[axis] * sizes[axis + 1], *sizes[axis + 2 :]))


def _one_dtype(name: str, parts: list[Any], dtype: Any) -> list[Any]:
    dtype = as_dtype(dtype, name)
    if dtype is not None:
        return [cast(x, dtype) for x in parts]
    first, weak = parts[0].aval.dtype, parts[0].aval.weak_type
    same = all(x.aval.dtype == first and x.aval.weak_type == weak for x in parts)
    if same and first != dtypes.bool_ and not dtypes.is_extended(first):
        return parts
    return promote_dtypes(*parts)


def joined(name: str, parts: list[Any], axis: int, dtype: Any = None) -> Any:
    """Arrays concatenated along an existing axis."""
    if not parts:
        raise ValueError(f"Need at least one array to concatenate. {name} got none.")
    rank = parts[0].aval.ndim
    if not rank:
        raise ValueError(
            f"Zero-dimensional arrays cannot be concatenated. {name} takes one list of arrays, as in "
            f"{name}([a, b]), or, to make a vector of numbers, use stack([a, b])."
        )
    axis = axis_of(axis, rank)
    parts = _one_dtype(name, parts, dtype)
    if any(x.aval.ndim != rank for x in parts):
        raise TypeError(
            "Cannot concatenate arrays with different numbers of dimensions: got "
            f"{', '.join(str(x.aval.shape) for x in parts)}: reshape or expand_dims first."
        )
    return parts[0] if len(parts) == 1 else join(concatenate_p, parts, axis)


@library(static=("axis", "dtype"), converted=("axis",), forwards=True)
def concatenate(
    arrays: np.ndarray | Array | Sequence[ArrayLike],
    axis: int | None = 0,
    dtype: DTypeLike | None = None,
) -> Array:
    """Join arrays along an existing axis.

    - `arrays`: sequence of at least one array; shapes agree except along `axis`, and dtypes
      promote.
    - `axis`: an int, 0 by default; None flattens all arrays first.
    - `dtype`: dtype of the result, the promoted one by default.

    Returns an array whose size along `axis` is the sum of the sizes. ValueError if there are no
    arrays or a scalar among them, TypeError if the shapes do not fit. Source: NumPy's
    `concatenate`.

    >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    whole = _whole(arrays)
    if whole is not None:
        (whole,) = _one_dtype("concatenate", [whole], dtype)
        rank = whole.aval.ndim - 1
        return ravel(whole) if axis is None else _merged(whole, axis_of(axis, rank))
    parts = _parts("concatenate", arrays)
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    return joined("concatenate", parts, axis, dtype)


@library(static=("axis",), converted=("axis",), forwards=True)
def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis.

    - `arrays`: sequence of at least one array; shapes agree except along `axis`, and dtypes
      promote.
    - `axis`: an int, 0 by default; None flattens all arrays first.

    Returns an array whose size along `axis` is the sum of the sizes. ValueError if there are no
    arrays, TypeError if the shapes do not fit. Source: NumPy's `concat`, of the array API standard.

    >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate.__wrapped__(arrays, axis)


@library(static=("axis", "out", "dtype"), converted=("axis",))
def stack(
    arrays: np.ndarray | Array | Sequence[ArrayLike],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Join arrays along a new axis.

    - `arrays`: sequence of at least one array; all have the same shape, and dtypes promote.
    - `axis`: position of the new axis in the result, 0 by default.
    - `dtype`: dtype of the result, the promoted one by default.

    Returns an array with one dimension more than each of `arrays`. ValueError if there are no
    arrays or their shapes differ. Source: NumPy's `stack`.

    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    check_no_out("stack", out)
    whole = _whole(arrays)
    if whole is not None:
        return moveaxis(*_one_dtype("stack", [whole], dtype), 0, axis_of(axis, whole.aval.ndim))
    parts = _parts("stack", arrays)
    if not parts:
        raise ValueError("Need at least one array to stack. Got none.")
    if any(x.aval.shape != parts[0].aval.shape for x in parts):
        of_one_rank = all(x.aval.ndim == parts[0].aval.ndim for x in parts)
        wrong = (
            "All input arrays must have the same shape. Got"
            if of_one_rank
            else "Cannot stack arrays with different numbers of dimensions: got"
        )
        raise ValueError(
            f"{wrong} {', '.join(str(x.aval.shape) for x in parts)}. Broadcast or concatenate them."
        )
    axis = axis_of(axis, parts[0].aval.ndim + 1)
    return join(stack_p, _one_dtype("stack", parts, dtype), axis)


def _at_least(function: Any, parts: list[Any]) -> list[Any]:
    return [function(x) for x in parts]


@library(static=("dtype",))
def vstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays vertically, that is, along axis 0 after `atleast_2d`.

    - `tup`: sequence of arrays; vectors of shape (n,) are rows of shape (1, n).
    - `dtype`: dtype of the result, the promoted one by default.

    Returns an array of at least two dimensions. ValueError if there are no arrays, TypeError if the
    shapes do not fit. Source: NumPy's `vstack`.

    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    whole = _whole(tup)
    if whole is not None:
        (whole,) = _one_dtype("vstack", [whole], dtype)
        return whole if whole.aval.ndim == 2 else _merged(whole, 0)
    return joined("vstack", _at_least(atleast_2d, _parts("vstack", tup)), 0, dtype)


@library(static=("dtype",))
def hstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays horizontally: along axis 1, or along axis 0 for vectors.

    - `tup`: sequence of arrays; scalars count as vectors of one element.
    - `dtype`: dtype of the result, the promoted one by default.

    Returns an array of at least one dimension. ValueError if there are no arrays, TypeError if the
    shapes do not fit. Source: NumPy's `hstack`.

    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    whole = _whole(tup)
    if whole is not None:
        return concatenate(whole, 0 if whole.aval.ndim == 2 else 1, dtype)
    parts = _at_least(atleast_1d, _parts("hstack", tup))
    return joined("hstack", parts, 0 if parts and parts[0].aval.ndim == 1 else 1, dtype)


@library(static=("dtype",))
def dstack(tup: np.ndarray | Array | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays in depth, that is, along axis 2 after `atleast_3d`.

    - `tup`: sequence of arrays; shapes (n,) and (m, n) count as (1, n, 1) and (m, n, 1).
    - `dtype`: dtype of the result, the promoted one by default.

    Returns an array of at least three dimensions. ValueError if there are no arrays, TypeError if
    the shapes do not fit. Source: NumPy's `dstack`.

    >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    return joined("dstack", _at_least(atleast_3d, _parts("dstack", tup)), 2, dtype)


@library
def column_stack(tup: np.ndarray | Array | Sequence[ArrayLike]) -> Array:
    """Join vectors as the columns of a matrix.

    - `tup`: sequence of arrays of shape (m,) or (m, n); the latter contribute n columns.

    Returns an array of shape (m, columns). ValueError if there are no arrays, TypeError if the
    shapes do not fit. Source: NumPy's `column_stack`.

    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    parts = [
        x if x.aval.ndim > 1 else expanded(ravel(x), (1,)) for x in _parts("column_stack", tup)
    ]
    return joined("column_stack", parts, 1)


@library(static=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Append values to the end of an array.

    - `arr`, `values`: arrays; with an `axis`, their shapes agree except along it.
    - `axis`: an int, or None to flatten both first.

    Returns a new array of the promoted dtype. TypeError if the shapes do not fit. Source: NumPy's
    `append`.

    >>> jnp.append(jnp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    arr, values = to_array("append", arr), to_array("append", values, 1)
    if axis is None:
        return joined("append", [ravel(arr), ravel(values)], 0)
    return joined("append", [arr, values], axis)


@library
def block(arrays: ArrayLike | Sequence[Any]) -> Array:
    """Assemble an array from nested lists of blocks.

    - `arrays`: array, or lists of arrays nested to equal depth; the innermost lists are joined
      along the last axis, the next ones along the axis before it.

    Returns an array of the promoted dtype, of at least as many dimensions as the lists are deep.
    ValueError for tuples, empty lists and unequal depths. Source: NumPy's `block`.

    >>> jnp.block([[jnp.ones((1, 2)), jnp.zeros((1, 1))]])
    Array([[1., 1., 0.]], dtype=float32)
    """
    depth, rank = _depth(arrays)
    return _joined_blocks(arrays, 0, depth, max(depth, rank))


def _depth(arrays: Any) -> tuple[int, int]:
    """Return how deep the lists are nested, and the largest rank in them."""
    if isinstance(arrays, tuple):
        raise ValueError(
            f"jax.numpy.block does not allow tuples, got {arrays}: write lists, [[...], [...]]."
        )
    if not isinstance(arrays, list):
        return 0, to_array("block", arrays).ndim
    if not arrays:
        raise ValueError("jax.numpy.block does not allow empty list arguments: leave them out.")
    found = [_depth(item) for item in arrays]
    if len({depth for depth, _ in found}) > 1:
        raise ValueError(
            "Mismatched list depths in jax.numpy.block: nest all lists to the same depth."
        )
    return found[0][0] + 1, max(rank for _, rank in found)


def _joined_blocks(arrays: Any, level: int, depth: int, rank: int) -> Any:
    if not isinstance(arrays, list):
        x = to_array("block", arrays)
        return reshaped(x, (1,) * (rank - x.ndim) + x.shape)
    parts = [_joined_blocks(item, level + 1, depth, rank) for item in arrays]
    return joined("block", parts, rank - depth + level)


# -- splitting --------------------------------------------------------------------------------


@library(static=("axis",))
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into its slices along an axis.

    - `x`: array of at least one dimension.
    - `axis`: an int, 0 by default.

    Returns a tuple of x.shape[axis] arrays without that axis. ValueError for scalars. Source:
    NumPy's `unstack`, of the array API standard.

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = to_array("unstack", x)
    axis = axis_of(axis, x.aval.ndim)
    check_at_most("unstack: the number of results", x.aval.shape[axis], 1 << 20)
    return tuple(unstack_p.bind(x, axis=axis)) if x.aval.shape[axis] else ()


def _pieces(name: str, ary: Any, sections: Any, axis: Any, equal: bool) -> list[Array]:
    ary = to_array(name, ary)
    axis = axis_of(known_index(axis, f"in jax.numpy.{name} argument `axis`"), ary.ndim)
    length = ary.shape[axis]
    where = f"in jax.numpy.{name} argument 1"
    if np.ndim(sections) > 0:
        return list(_cut(ary, tuple([known_index(cut, where) for cut in sections]), axis))
    count = known_count(sections, where)
    if count <= 0:
        raise ValueError(f"number sections must be larger than 0; {name} got {count}.")
    check_at_most(f"{name}: the number of sections", count, 1 << 20)
    each, rest = divmod(length, count)
    if rest and equal:
        raise ValueError(
            f"array split does not result in an equal division: rest is {rest}, for {length} "
            f"elements in {count} parts: use array_split."
        )
    return list(_split(ary, tuple([each + 1] * rest + [each] * (count - rest)), axis))


@library(static=("sizes", "axis"))
def _split(x, sizes, axis):
    return tuple(split_p.bind(to_array("split", x), sizes=sizes, axis=axis))


@library(static=("cuts", "axis"))
def _cut(x, cuts, axis):
    """The pieces between cuts. ValueError unless these increase, from 0 to the length."""
    x = to_array("split", x)
    length = x.aval.shape[axis]
    bounds = [0, *cuts, length]
    sizes = tuple([b - a for a, b in zip(bounds, bounds[1:], strict=False)])
    if any(size < 0 for size in sizes):
        raise ValueError(
            f"Sizes passed to split must be nonnegative, got {list(sizes)} from the cuts {cuts} of an "
            f"axis of size {length}: give cuts from 0 to {length}, in increasing order."
        )
    return tuple(split_p.bind(x, sizes=sizes, axis=axis))


def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Split an array into parts along an axis.

    - `ary`: array of shape (..., n, ...).
    - `indices_or_sections`: an int that divides n, the number of equal parts; or a sorted sequence
      of ints, the positions at which to cut.
    - `axis`: an int, 0 by default.

    Returns a list of arrays of the dtype of `ary`. ValueError if there is no equal division.
    Source: NumPy's `split`.

    >>> jnp.split(jnp.arange(4), [1])
    [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32)]
    """
    return _pieces("split", ary, indices_or_sections, axis, True)


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Split an array into parts of nearly equal size along an axis.

    - `ary`: array of shape (..., n, ...).
    - `indices_or_sections`: an int, the number of parts, whose sizes differ by at most one; or a
      sorted sequence of ints, the positions at which to cut.
    - `axis`: an int, 0 by default.

    Returns a list of arrays of the dtype of `ary`. ValueError if the number of parts is not
    positive. Source: NumPy's `array_split`.

    >>> jnp.array_split(jnp.arange(3), 2)
    [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    return _pieces("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array vertically, along axis 0.

    - `ary`: array of at least one dimension; `indices_or_sections`: as in `split`.

    Returns a list of arrays of the dtype of `ary`. ValueError if there is no equal division.
    Source: NumPy's `vsplit`.

    >>> jnp.vsplit(jnp.array([[1, 2], [3, 4]]), 2)
    [Array([[1, 2]], dtype=int32), Array([[3, 4]], dtype=int32)]
    """
    return _pieces("vsplit", ary, indices_or_sections, 0, True)


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array horizontally: along axis 1, or along axis 0 for vectors.

    - `ary`: array of at least one dimension; `indices_or_sections`: as in `split`.

    Returns a list of arrays of the dtype of `ary`. ValueError if there is no equal division.
    Source: NumPy's `hsplit`.

    >>> jnp.hsplit(jnp.array([1, 2, 3, 4]), 2)
    [Array([1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    axis = 0 if np.ndim(ary) == 1 else 1
    return _pieces("hsplit", ary, indices_or_sections, axis, True)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array in depth, along axis 2.

    - `ary`: array of at least three dimensions; `indices_or_sections`: as in `split`.

    Returns a list of arrays of the dtype of `ary`. ValueError if there is no equal division.
    Source: NumPy's `dsplit`.

    >>> [x.shape for x in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _pieces("dsplit", ary, indices_or_sections, 2, True)
