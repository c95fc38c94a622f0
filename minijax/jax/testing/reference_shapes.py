"""A stand-in for `jax._src.lax_reference`: conversions, shapes, slices and orders, by NumPy.

Each function takes the arguments that the one of `lax` takes, and gives NumPy arrays.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from minijax.jax.testing.widening import bit_width, kind_of, narrow, quiet, wide

__all__ = [
    "bitcast_convert_type", "broadcast", "broadcast_in_dim", "concatenate",
    "convert_element_type", "dynamic_slice", "dynamic_update_slice", "pad", "reshape", "rev",
    "select", "slice", "sort", "sort_key_val", "squeeze", "top_k", "transpose",
]  # fmt: skip


# Dtypes.


@quiet
def convert_element_type(operand: Any, dtype: Any) -> np.ndarray:
    """The numbers in another dtype: floats become the nearest integer toward zero that it has."""
    x, kind = np.asarray(operand), np.dtype(dtype)
    if kind_of(x.dtype) == "c" and kind_of(kind) != "c":
        x = x.real if kind != np.bool_ else x != 0
    if kind == np.bool_:
        return np.asarray(wide(x) != 0)
    if kind_of(x.dtype) != "f" or kind_of(kind) not in "iu":
        return narrow(x, kind)
    x, info = wide(x), ml_dtypes.iinfo(kind)
    low, end = float(info.min), float(info.max) + 1
    inside = narrow(np.where((x > low - 1) & (x < end), x, 0.0).astype(object), object)
    found = np.where(x >= end, int(info.max), np.where(x <= low - 1, int(info.min), inside))
    whole = np.uint64 if kind_of(kind) == "u" else np.int64
    return narrow(found.astype(whole), kind)


def _to_bits(x: np.ndarray) -> np.ndarray:
    """The bits of each element along a new last axis, the lowest first."""
    octets = np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little")[..., : bit_width(x.dtype)]


def bitcast_convert_type(operand: Any, new_dtype: Any) -> np.ndarray:
    """Reinterpret the bits as other numbers; a last axis makes up for another width."""
    x, kind = np.asarray(operand), np.dtype(new_dtype)
    bits, size = _to_bits(x), bit_width(kind)
    if size < bits.shape[-1]:
        bits = bits.reshape(*x.shape, -1, size)
    elif size > bits.shape[-1]:
        bits = bits.reshape(*x.shape[:-1], size)
    octets = np.packbits(bits, axis=-1, bitorder="little")
    found = np.ascontiguousarray(octets).view(np.uint8 if kind.itemsize == 1 else kind)
    found = found.reshape(bits.shape[:-1])
    if size < 8 and kind_of(kind) == "i":  # the memory of a narrow integer bears its sign
        return narrow(np.where(found >= 2 ** (size - 1), found.astype(int) - 2**size, found), kind)
    return found.view(kind)


# Shapes.


def broadcast(operand: Any, sizes: Sequence[int]) -> np.ndarray:
    """The array along new first axes of these sizes."""
    x = np.asarray(operand)
    return np.broadcast_to(x, (*sizes, *x.shape)).copy()


def broadcast_in_dim(
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> np.ndarray:
    """The array in a larger shape; its axes are those that `broadcast_dimensions` names."""
    x = np.asarray(operand)
    inner = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        inner[axis] = size
    return np.broadcast_to(x.reshape(inner), tuple(shape)).copy()


def reshape(
    operand: Any, new_sizes: int | Sequence[int], dimensions: Sequence[int] | None = None
) -> np.ndarray:
    """The elements in order, read along axes in the order of `dimensions`, in another shape."""
    x = np.asarray(operand)
    return np.reshape(x if dimensions is None else np.transpose(x, dimensions), new_sizes)


def transpose(operand: Any, permutation: Sequence[int] | None = None) -> np.ndarray:
    """The axes in another order."""
    return np.transpose(operand, permutation)


def squeeze(array: Any, dimensions: int | Sequence[int] | None = None) -> np.ndarray:
    """Without these axes of size one."""
    axes = tuple(dimensions) if isinstance(dimensions, Sequence) else dimensions
    return np.squeeze(np.asarray(array), axes)


def concatenate(operands: Sequence[Any], dimension: int) -> np.ndarray:
    """Arrays one after the other along an axis."""
    return np.concatenate([np.asarray(x) for x in operands], axis=dimension)


def rev(operand: Any, dimensions: Sequence[int]) -> np.ndarray:
    """The elements in opposite order along these axes."""
    return np.flip(np.asarray(operand), tuple(dimensions))


def select(pred: Any, on_true: Any, on_false: Any) -> np.ndarray:
    """The elements of one array or the other; `pred` is of their shape or a scalar."""
    return np.where(pred, on_true, on_false)


def pad(
    operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]
) -> np.ndarray:
    """`padding_value` before, after and between elements; what is negative takes away."""
    x = np.asarray(operand)
    inner = [n + builtins.max(n - 1, 0) * step for n, (_, _, step) in zip(x.shape, padding_config)]
    spread = np.full(inner, padding_value, x.dtype)
    spread[tuple(builtins.slice(None, None, step + 1) for _, _, step in padding_config)] = x
    before = [builtins.max(low, 0) for low, _, _ in padding_config]
    full = [
        n + builtins.max(low, 0) + builtins.max(high, 0)
        for n, (low, high, _) in zip(inner, padding_config)
    ]
    found = np.full(full, padding_value, x.dtype)
    found[tuple(builtins.slice(b, b + n) for b, n in zip(before, inner))] = spread
    kept = (
        builtins.slice(builtins.max(-low, 0), builtins.max(n + builtins.min(high, 0), 0))
        for n, (low, high, _) in zip(full, padding_config)
    )
    return np.asarray(found[tuple(kept)])


# Slices.


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> np.ndarray:  # fmt: skip
    """The elements from `start_indices` up to, not with, `limit_indices`."""
    steps = strides or [1] * len(start_indices)
    where = tuple(map(builtins.slice, start_indices, limit_indices, steps))
    return np.asarray(np.asarray(operand)[where])


def _window(shape: Sequence[int], start_indices: Any, sizes: Sequence[int]) -> tuple:
    """The place of a window, moved to lie within; starts below zero count from the end."""
    where = []
    for size, start, width in zip(shape, start_indices, sizes, strict=True):
        start = operator.index(np.asarray(start).item())
        start = builtins.min(builtins.max(start + size * (start < 0), 0), size - width)
        where.append(builtins.slice(start, start + width))
    return tuple(where)


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> np.ndarray:
    """A window of these sizes, which starts where it fits."""
    x = np.asarray(operand)
    return np.array(x[_window(x.shape, start_indices, slice_sizes)])


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> np.ndarray:
    """The array with a window replaced by `update`, which starts where it fits."""
    found, update = np.array(operand), np.asarray(update)
    found[_window(found.shape, start_indices, update.shape)] = update
    return found


# Orders: stable, NaNs after all numbers, the zeros equal.


def _order(keys: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """The places of the elements in ascending order, by the first key first."""
    return np.lexsort([wide(key) for key in reversed(keys)], axis=axis)


def sort(
    operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> np.ndarray | tuple[np.ndarray, ...]:
    """Sort along an axis in ascending order; several arrays, by the first `num_keys` of them."""
    several = isinstance(operand, (tuple, list))
    arrays = [np.asarray(x) for x in (operand if several else [operand])]
    order = _order(arrays[:num_keys], dimension)
    found = tuple(np.take_along_axis(x, order, dimension) for x in arrays)
    return found if several else found[0]


def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[np.ndarray, ...]:
    """Keys in ascending order along an axis, and the values moved with them."""
    return sort((keys, values), dimension)  # type: ignore[return-value]


def top_k(operand: Any, k: int, axis: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """The `k` largest along an axis, the first among equals first, and their places."""
    x = np.asarray(operand)
    size = x.shape[axis]
    last_first = _order([np.flip(x, axis)], axis)
    places = np.flip(size - 1 - last_first, axis)
    places = np.take(places, np.arange(k), axis)
    return np.take_along_axis(x, places, axis), places.astype(np.int32)
