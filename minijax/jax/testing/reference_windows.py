"""A stand-in for `jax._src.lax_reference`: contractions, convolutions, reductions, windows.

Of it, other than `widening` and the other references, only the names of the functions that `reduce`
is known to be given are used. Products are summed in 64 bits and rounded once, to the operands'
dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.jax.testing import reference, reference_shapes
from minijax.jax.testing.widening import kind_of, narrow, operands, quiet, wide

__all__ = [
    "conv", "conv_general_dilated", "conv_with_general_padding", "dot", "dot_general",
    "padtype_to_pads", "ragged_dot", "reduce", "reduce_window", "sum",
]  # fmt: skip


# Contractions.


@quiet
def _contract(
    lhs: np.ndarray, lhs_axes: Sequence[int], rhs: np.ndarray, rhs_axes: Sequence[int],
    out_axes: Sequence[int], dtype: Any = None,
) -> np.ndarray:  # fmt: skip
    """The sum of products over the axes that have no place in the result, each axis a number."""
    kind = lhs.dtype if dtype is None else np.dtype(dtype)
    if dtype is not None and kind_of(lhs.dtype) in "biu":  # products may not fit in their own
        lhs, rhs = narrow(lhs, kind), narrow(rhs, kind)
    found = np.einsum(wide(lhs), list(lhs_axes), wide(rhs), list(rhs_axes), list(out_axes))
    return narrow(found, kind)


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None,
) -> np.ndarray:  # fmt: skip
    """Contracted and batched axes of the StableHLO operation: batch, left and right axes remain."""
    lhs, rhs = np.asarray(lhs), np.asarray(rhs)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_axes = list(range(lhs.ndim))
    rhs_axes = list(range(lhs.ndim, lhs.ndim + rhs.ndim))
    for left, right in zip((*lhs_contract, *lhs_batch), (*rhs_contract, *rhs_batch), strict=True):
        rhs_axes[right] = lhs_axes[left]
    summed = {lhs_axes[axis] for axis in lhs_contract}
    batch = [lhs_axes[axis] for axis in lhs_batch]
    free = [axis for axis in (*lhs_axes, *rhs_axes) if axis not in summed and axis not in batch]
    return _contract(lhs, lhs_axes, rhs, rhs_axes, [*batch, *free], preferred_element_type)


def dot(
    lhs: Any, rhs: Any, *, dimension_numbers: Any = None, precision: Any = None,
    preferred_element_type: Any = None,
) -> np.ndarray:  # fmt: skip
    """The product of vectors and matrices, or `dot_general`."""
    lhs, rhs = operands(lhs, rhs)
    if dimension_numbers is None:
        scalar = not (lhs.ndim and rhs.ndim)
        contracted = ((), ()) if scalar else ((lhs.ndim - 1,), (max(rhs.ndim - 2, 0),))
        dimension_numbers = (contracted, ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def ragged_dot(
    lhs: Any, rhs: Any, group_sizes: Any, precision: Any = None, preferred_element_type: Any = None
) -> np.ndarray:
    """Groups of rows of `lhs`, of these sizes, times a matrix each; rows of no group give zeros."""
    lhs, rhs = operands(lhs, rhs)
    kind = lhs.dtype if preferred_element_type is None else preferred_element_type
    found = np.zeros((lhs.shape[0], rhs.shape[2]), kind)
    ends = np.cumsum(group_sizes)
    for start, end, matrix in zip([0, *ends[:-1]], ends, rhs, strict=True):
        found[start:end] = dot(lhs[start:end], matrix, preferred_element_type=kind)
    return found


# Windows.


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:  # fmt: skip
    """Return how much goes before and after each axis, for `padding` by name: VALID, SAME,
    SAME_LOWER.
    """
    if not isinstance(padding, str):
        return [(low, high) for low, high in padding]
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise ValueError(f"padding is VALID, SAME or SAME_LOWER, or pairs of integers: {padding!r}")
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        low, high = total // 2, total - total // 2
        pads.append((low, high) if name == "SAME" else (high, low))
    return pads


def _spread(x: np.ndarray, factors: Sequence[int], value: Any) -> np.ndarray:
    """The array with `value` between its elements along the last axes, by a dilation of each."""
    kept = [(0, 0, 0)] * (x.ndim - len(factors))
    return reference_shapes.pad(x, value, kept + [(0, 0, factor - 1) for factor in factors])


def _windows(
    x: np.ndarray, sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> np.ndarray:
    """All windows over the last axes: places of windows, then places within, stand there instead."""
    first = x.ndim - len(sizes)
    places, within = [], []
    for size, window, stride, step in zip(x.shape[first:], sizes, strides, dilation, strict=True):
        reach = (window - 1) * step + 1 if window else 0
        places.append(np.arange(0, max(size - reach + 1, 0), stride))
        within.append(np.arange(window) * step)
    rank = len(sizes)
    where: list[Any] = [...]
    for axis, (place, offset) in enumerate(zip(places, within, strict=True)):
        at = place[:, None] + offset
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = at.shape
        where.append(at.reshape(shape))
    return x[tuple(where)]


# Convolutions.

Specs = tuple[Sequence[int], Sequence[int], Sequence[int]]


def _specs(dimension_numbers: Any, rank: int) -> Specs:
    """Return where batch, features and space stand in lhs, kernel and result, batch and features
    first.
    """
    if dimension_numbers is None:
        return (range(rank),) * 3
    if not all(isinstance(spec, str) for spec in dimension_numbers):
        return tuple(dimension_numbers)
    lhs, rhs, out = dimension_numbers
    space = [letter for letter in rhs if letter not in "OI"]

    def places(spec: str, first: str) -> list[int]:
        return [spec.index(letter) for letter in (*first, *space)]

    return places(lhs, "NC"), places(rhs, "OI"), places(out, "NC")


def conv_general_dilated(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None, feature_group_count: int = 1, batch_group_count: int = 1,
    precision: Any = None, preferred_element_type: Any = None,
) -> np.ndarray:  # fmt: skip
    """The StableHLO convolution: sums of products of a kernel with windows of an array."""
    lhs, rhs = operands(lhs, rhs)
    lhs_spec, rhs_spec, out_spec = _specs(dimension_numbers, lhs.ndim)
    ones = (1,) * (lhs.ndim - 2)
    steps = tuple(rhs_dilation or ones)
    x, kernel = lhs.transpose(lhs_spec), rhs.transpose(rhs_spec)
    x = _spread(x, lhs_dilation or ones, 0)
    reach = [(n - 1) * step + 1 if n else 0 for n, step in zip(kernel.shape[2:], steps)]
    pads = padtype_to_pads(x.shape[2:], reach, window_strides, padding)
    x = reference_shapes.pad(x, 0, [(0, 0, 0)] * 2 + [(low, high, 0) for low, high in pads])
    x = _windows(x, kernel.shape[2:], window_strides, steps)
    found = _grouped(x, kernel, batch_group_count, feature_group_count, preferred_element_type)
    return found.transpose(np.argsort(out_spec))


def _grouped(
    x: np.ndarray, kernel: np.ndarray, batch_groups: int, feature_groups: int, dtype: Any
) -> np.ndarray:
    """Windows times a kernel, by groups: batch, features, places from what has window axes last."""
    groups, rank = batch_groups * feature_groups, kernel.ndim - 2  # one of the two is 1
    group, row, into, out, *axes = range(4 + 2 * rank)
    space, within = axes[:rank], axes[rank:]
    batch, features, *rest = x.shape
    if batch_groups > 1:
        x = x.reshape(groups, batch // groups, features, *rest)
        x_axes = [group, row, into, *axes]
    else:
        x = x.reshape(batch, groups, features // groups, *rest)
        x_axes = [row, group, into, *axes]
    kernel = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
    found = _contract(
        x, x_axes, kernel, [group, out, into, *within], [row, group, out, *space], dtype
    )
    return found.reshape(found.shape[0], groups * kernel.shape[1], *found.shape[3:])


def conv(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]]
) -> np.ndarray:
    """A convolution with batch and features first, without dilation."""
    return conv_general_dilated(lhs, rhs, window_strides, padding)


def conv_with_general_padding(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None,
) -> np.ndarray:  # fmt: skip
    """A convolution with batch and features first."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation)


# Reductions.

_UFUNCS: dict[Any, np.ufunc] = {
    getattr(module, name): ufunc
    for module in (lax, reference)
    for name, ufunc in {
        "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
        "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    }.items()
}  # fmt: skip


@quiet
def reduce(
    operand: Any, init_value: Any, computation: Callable[[Any, Any], Any], dimensions: Sequence[int]
) -> np.ndarray:
    """The elements along axes made one by `computation`, which is associative.

    Any function of two arrays that works element by element will do; a sum or product by a function
    that is known is computed in 64 bits.
    """
    x = np.asarray(operand)
    init = np.asarray(init_value).astype(x.dtype)
    ufunc = computation if isinstance(computation, np.ufunc) else _UFUNCS.get(computation)
    if ufunc is not None:
        found = ufunc.reduce(wide(x), axis=tuple(dimensions), initial=wide(init)[()])
        return narrow(found, x.dtype)
    rows = np.moveaxis(x, tuple(dimensions), range(len(dimensions)))
    rows = rows.reshape(-1, *rows.shape[len(dimensions) :])
    while len(rows) > 1:  # neighbours are made one, which keeps the order
        pairs = len(rows) // 2
        made = np.asarray(computation(rows[0 : 2 * pairs : 2], rows[1 : 2 * pairs : 2]))
        rows = np.concatenate([made, rows[2 * pairs :]])
    whole = np.broadcast_to(init, rows.shape[1:])
    return narrow(computation(whole, rows[0]) if len(rows) else whole, x.dtype)


def sum(operand: Any, axis: int | Sequence[int] | None = None) -> np.ndarray:
    """The sum along axes, by default all of them."""
    x = np.asarray(operand)
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis).tolist()
    return reduce(x, 0, np.add, axes)


def reduce_window(
    operand: Any, init_value: Any, computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID", base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> np.ndarray:  # fmt: skip
    """Each window over an array made one element by `computation`; padding is `init_value`."""
    x = np.asarray(operand)
    ones = (1,) * x.ndim
    strides, steps = tuple(window_strides or ones), tuple(window_dilation or ones)
    init = np.asarray(init_value).astype(x.dtype)
    x = _spread(x, base_dilation or ones, init)
    reach = [(n - 1) * step + 1 if n else 0 for n, step in zip(window_dimensions, steps)]
    pads = padtype_to_pads(x.shape, reach, strides, padding)
    x = reference_shapes.pad(x, init, [(low, high, 0) for low, high in pads])
    found = _windows(x, window_dimensions, strides, steps)
    return reduce(found, init, computation, range(x.ndim, found.ndim))
