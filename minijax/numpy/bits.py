"""Packed bits and flat indices: packbits, unpackbits, ravel_multi_index, unravel_index.

May import the floors below and the basics of `numpy`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.lax import arithmetic, compare, filling, slicing
from minijax.numpy import reductions
from minijax.numpy.division import divmod as divmod_
from minijax.numpy.division import remainder
from minijax.numpy.logic import truth
from minijax.numpy.promotion import (
    axis_of,
    broadcast_to_shape,
    check_arraylike,
    converted,
    to_array,
)
from minijax.numpy.searching import known
from minijax.numpy.shapes import expanded, moveaxis, ravel, reshaped
from minijax.numpy.ufuncs import add, clip, multiply
from minijax.transforms.library import library

__all__ = ["packbits", "ravel_multi_index", "unpackbits", "unravel_index"]


def _bit_places(bitorder: str) -> Array:
    """The places of eight bits; counted, since XLA goes through a table element by element."""
    if bitorder not in ("big", "little"):
        raise ValueError(f"'order' must be either 'little' or 'big'; got bitorder={bitorder!r}")
    places = filling.iota(np.uint8, 8)
    return arithmetic.sub_p.bind(np.uint8(7), places) if bitorder == "big" else places


@library(static=("axis", "bitorder"))
def packbits(a, axis=None, bitorder="big"):
    """Eight truth values to a byte, along an axis. Source: numpy.packbits."""
    a = to_array("packbits", a)
    if not dtypes.issubdtype(a.aval.dtype, np.integer) and a.aval.dtype != dtypes.bool_:
        raise TypeError(
            f"Expected an input array of integer or boolean data type; got {a.aval.str_short()}."
        )
    places = _bit_places(bitorder)
    bits = converted(truth(a), dtypes.uint8)
    if axis is None:
        bits, axis = ravel(bits), 0
    axis = axis_of(axis, bits.aval.ndim)
    bits = moveaxis(bits, axis, -1)
    *lead, length = bits.aval.shape
    rest = -length % 8
    if rest:
        bits = slicing.pad(bits, np.uint8(0), [(0, 0, 0)] * len(lead) + [(0, rest, 0)])
    bits = reshaped(bits, (*lead, (length + rest) // 8, 8))
    shifted = compare.shift_left_p.bind(bits, broadcast_to_shape(places, bits.aval.shape))
    out = reductions.sum(shifted, axis=-1, dtype=dtypes.uint8)
    return moveaxis(out, -1, axis)


@library(static=("axis", "count", "bitorder"))
def unpackbits(a, axis=None, count=None, bitorder="big"):
    """The bits of bytes along an axis, `count` of them. Source: numpy.unpackbits."""
    a = to_array("unpackbits", a)
    if a.aval.dtype != dtypes.uint8:
        raise TypeError(f"Expected an input array of unsigned byte data type; got {a.aval.dtype}.")
    masks = compare.shift_left_p.bind(np.uint8(1), _bit_places(bitorder))
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of(axis, a.aval.ndim)
    a = expanded(moveaxis(a, axis, -1), (a.aval.ndim,))
    shape = (*a.aval.shape[:-1], 8)
    bits = compare.and_p.bind(broadcast_to_shape(a, shape), broadcast_to_shape(masks, shape))
    bits = converted(truth(bits), dtypes.uint8)
    total = shape[-2] * 8
    bits = reshaped(bits, (*shape[:-2], total))
    if count is not None:
        last = len(shape) - 2
        if count > total:
            config = [(0, 0, 0)] * last + [(0, count - total, 0)]
            bits = slicing.pad(bits, np.uint8(0), config)
        else:
            bits = slicing.slice_in_dim(bits, 0, max(count if count >= 0 else total + count, 0),
                                        axis=last)  # fmt: skip
    return moveaxis(bits, -1, axis)


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: Any = None,
) -> Array:
    """Flat indices of places given by an index for each axis. Source: numpy.ravel_multi_index.

    `mode`: "raise" (the indices must be known), "wrap" or "clip" for places beyond the array.
    """
    dims = tuple([operator.index(n) for n in dims])
    parts = [to_array("ravel_multi_index", x, i) for i, x in enumerate(multi_index)]
    if len(parts) != len(dims):
        raise ValueError(
            f"len(multi_index)={len(parts)} != len(dims)={len(dims)}: ravel_multi_index takes one "
            "index for each axis."
        )
    if any(not dtypes.issubdtype(x.dtype, np.integer) for x in parts):
        raise TypeError("only int indices permitted in ravel_multi_index.")
    if mode == "raise":
        for x, size in zip(parts, dims, strict=True):
            value = known(x, "ravel_multi_index", "Use mode='wrap' or mode='clip' instead.")
            if (value < 0).any() or (value >= size).any():
                raise ValueError("invalid entry in coordinates array")
    elif mode not in ("wrap", "clip"):
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', or 'clip'")
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    if dtype is None:
        found = dtypes.lattice_result_type(*parts)[0]
    else:
        found = dtypes.check_user_dtype_supported(dtype, "ravel_multi_index")
    return _ravel_multi_index(parts, dims, mode, order, found)


@library(static=("dims", "mode", "order", "dtype"))
def _ravel_multi_index(parts, dims, mode, order, dtype):
    if mode == "wrap":
        parts = [remainder(x, n) for x, n in zip(parts, dims, strict=True)]
    elif mode == "clip":
        parts = [clip(x, 0, n - 1) for x, n in zip(parts, dims, strict=True)]
    if order == "F":
        parts, dims = parts[::-1], dims[::-1]
    out = converted(0, dtype)
    stride = 1
    for x, size in zip(reversed(parts), reversed(dims), strict=True):
        out = add(out, multiply(converted(x, dtype), converted(stride, dtype)))
        stride *= size
    return converted(to_array("ravel_multi_index", out), dtype)


def unravel_index(indices: Any, shape: Any) -> tuple[Array, ...]:
    """The index along each axis of flat indices. Source: numpy.unravel_index.

    Indices below zero count from the end; those beyond the array give its last place.
    """
    check_arraylike("unravel_index", indices)
    if not dtypes.issubdtype(dtypes.dtype(indices), np.integer):
        raise TypeError("Only int indices permitted in unravel_index.")
    sizes = tuple(map(operator.index, shape)) if np.ndim(shape) else (operator.index(shape),)
    return _unravel_index(indices, sizes)


@library(static=("sizes",))
def _unravel_index(indices, sizes):
    rest = to_array("unravel_index", indices)
    total = int(np.prod(sizes, dtype=object)) if sizes else 1
    rest = clip(rest, -total, total - 1)
    rest = compare.select(
        compare.lt_p.bind(rest, converted(0, rest.aval.dtype, rest.aval.weak_type)),
        add(rest, total),
        rest,
    )
    out = []
    for size in reversed(sizes):
        rest, index = divmod_(rest, size)
        out.append(index)
    return tuple(reversed(out))
