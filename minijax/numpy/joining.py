"""Joining and splitting arrays. May import the floors below, `promotion` and `shapes`."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.lax.joining import concatenate_p, split_p, stack_p, unstack_p
from minijax.numpy.promotion import (
    as_dtype,
    axis_of,
    cast,
    check_no_out,
    known_count,
    known_index,
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
from minijax.transforms.library import library

__all__ = [
    "append", "array_split", "block", "column_stack", "concat", "concatenate", "dsplit", "dstack",
    "hsplit", "hstack", "split", "stack", "unstack", "vsplit", "vstack",
]  # fmt: skip


def _parts(name: str, arrays: Any) -> list[Any]:
    """The arrays to join: given in a sequence, or as the rows of one array."""
    if isinstance(arrays, Array) or isinstance(arrays, np.ndarray):
        arrays = to_array(name, arrays)
        if not arrays.aval.ndim:
            raise ValueError(f"{name}: zero-dimensional array cannot be taken as a sequence.")
        return list(unstack_p.bind(arrays, axis=0)) if arrays.aval.shape[0] else []
    if not isinstance(arrays, (list, tuple)):
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
    first = parts[0].aval.dtype
    same = all(x.aval.dtype == first for x in parts)
    if same and first != dtypes.bool_ and not dtypes.is_extended(first):
        return parts
    return promote_dtypes(*parts)


def joined(name: str, parts: list[Any], axis: int, dtype: Any = None) -> Any:
    """Arrays concatenated along an existing axis."""
    if not parts:
        raise ValueError(f"Need at least one array to concatenate: {name} got none.")
    rank = parts[0].aval.ndim
    if not rank:
        raise ValueError("Zero-dimensional arrays cannot be concatenated: use stack.")
    axis = axis_of(axis, rank)
    if any(x.aval.ndim != rank for x in parts):
        raise TypeError(
            "Cannot concatenate arrays with different numbers of dimensions: got "
            f"{', '.join(str(x.aval.shape) for x in parts)}: reshape or expand_dims first."
        )
    parts = _one_dtype(name, parts, dtype)
    return parts[0] if len(parts) == 1 else concatenate_p.bind(*parts, dimension=axis)


@library(static=("axis", "dtype"))
def concatenate(arrays, axis=0, dtype=None):
    """Arrays one after the other along an axis; flattened if it is None. Source: numpy.concatenate."""
    whole = _whole(arrays)
    if whole is not None:
        (whole,) = _one_dtype("concatenate", [whole], dtype)
        rank = whole.aval.ndim - 1
        return ravel(whole) if axis is None else _merged(whole, axis_of(axis, rank))
    parts = _parts("concatenate", arrays)
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    return joined("concatenate", parts, axis, dtype)


@library(static=("axis",))
def concat(arrays, /, *, axis=0):
    """Arrays one after the other along an axis. Source: `concat` of the array API standard."""
    return concatenate(arrays, axis)


@library(static=("axis", "out", "dtype"))
def stack(arrays, axis=0, out=None, dtype=None):
    """Arrays of one shape along a new axis. Source: numpy.stack."""
    check_no_out("stack", out)
    whole = _whole(arrays)
    if whole is not None:
        return moveaxis(*_one_dtype("stack", [whole], dtype), 0, axis_of(axis, whole.aval.ndim))
    parts = _parts("stack", arrays)
    if not parts:
        raise ValueError("Need at least one array to stack; got none.")
    if any(x.aval.shape != parts[0].aval.shape for x in parts):
        raise ValueError(
            "All input arrays must have the same shape; stack got "
            f"{', '.join(str(x.aval.shape) for x in parts)}: broadcast or concatenate them."
        )
    axis = axis_of(axis, parts[0].aval.ndim + 1)
    return stack_p.bind(*_one_dtype("stack", parts, dtype), axis=axis)


def _at_least(function: Any, parts: list[Any]) -> list[Any]:
    return [function(x) for x in parts]


@library(static=("dtype",))
def vstack(tup, dtype=None):
    """Arrays one below the other, as rows. Source: numpy.vstack."""
    whole = _whole(tup)
    if whole is not None:
        (whole,) = _one_dtype("vstack", [whole], dtype)
        return whole if whole.aval.ndim == 2 else _merged(whole, 0)
    return joined("vstack", _at_least(atleast_2d, _parts("vstack", tup)), 0, dtype)


@library(static=("dtype",))
def hstack(tup, dtype=None):
    """Arrays side by side: along axis 1, or 0 for vectors. Source: numpy.hstack."""
    whole = _whole(tup)
    if whole is not None:
        return concatenate(whole, 0 if whole.aval.ndim == 2 else 1, dtype)
    parts = _at_least(atleast_1d, _parts("hstack", tup))
    return joined("hstack", parts, 0 if parts and parts[0].aval.ndim == 1 else 1, dtype)


@library(static=("dtype",))
def dstack(tup, dtype=None):
    """Arrays along the third axis. Source: numpy.dstack."""
    return joined("dstack", _at_least(atleast_3d, _parts("dstack", tup)), 2, dtype)


@library
def column_stack(tup):
    """Vectors as columns, and matrices, side by side. Source: numpy.column_stack."""
    parts = [
        x if x.aval.ndim > 1 else expanded(ravel(x), (1,)) for x in _parts("column_stack", tup)
    ]
    return joined("column_stack", parts, 1)


@library(static=("axis",))
def append(arr, values, axis=None):
    """`values` put behind `arr`; both flattened if `axis` is None. Source: numpy.append."""
    arr, values = to_array("append", arr), to_array("append", values, 1)
    if axis is None:
        return joined("append", [ravel(arr), ravel(values)], 0)
    return joined("append", [arr, values], axis)


@library
def block(arrays):
    """An array of nested lists of blocks. Source: numpy.block."""
    depth, rank = _depth(arrays)
    return _joined_blocks(arrays, 0, depth, max(depth, rank))


def _depth(arrays: Any) -> tuple[int, int]:
    """How deep the lists are nested, and the largest rank in them."""
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
def unstack(x, /, *, axis=0):
    """The slices along an axis, as a tuple. Source: numpy.unstack."""
    x = to_array("unstack", x)
    axis = axis_of(axis, x.aval.ndim)
    return tuple(unstack_p.bind(x, axis=axis)) if x.aval.shape[axis] else ()


def _pieces(name: str, ary: Any, sections: Any, axis: Any, equal: bool) -> list[Array]:
    ary = to_array(name, ary)
    axis = axis_of(axis, ary.ndim)
    length = ary.shape[axis]
    if np.ndim(sections) > 0:
        cuts = tuple([known_index(cut, "indices_or_sections") for cut in sections])
        return list(_cut(ary, cuts, axis))
    count = known_count(sections, "indices_or_sections")
    if count <= 0:
        raise ValueError(f"number sections must be larger than 0; {name} got {count}.")
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


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Equal parts of an array, or the parts between cuts. Source: numpy.split."""
    return _pieces("split", ary, indices_or_sections, axis, True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts of an array, as equal as can be, or those between cuts. Source: numpy.array_split."""
    return _pieces("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 0. Source: numpy.vsplit."""
    return _pieces("vsplit", ary, indices_or_sections, 0, True)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 1, or 0 for vectors. Source: numpy.hsplit."""
    axis = 0 if np.ndim(ary) == 1 else 1
    return _pieces("hsplit", ary, indices_or_sections, axis, True)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 2. Source: numpy.dsplit."""
    return _pieces("dsplit", ary, indices_or_sections, 2, True)
