"""Static slices and padding, which are each other's transposes.

Slices at indices that a program computes stand in `lax.dynamic_slicing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive
from minijax.features.library import library
from minijax.features.queries import is_dim, is_negative, max_dim
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import as_operand
from minijax.features.sharding.unreduced import first
from minijax.lax.arithmetic import add_p, neg_p
from minijax.lax.compare import select_n_p
from minijax.lax.rules import NUMBER, check_dtype, linear_in, linear_together
from minijax.lax.shapes import canonical_axis, resized, size_of, squeeze_p, trailing
from minijax.lowering.module import i64_array
from minijax.transforms.batching import to_front
from minijax.transforms.primitives import full_like_aval, reduce_sum_p, to_shape
from minijax.transforms.tangents import is_undefined
from minijax.typing import ArrayLike

__all__ = ["index_in_dim", "pad", "pad_p", "slice", "slice_in_dim", "slice_p"]

# -- slice -----------------------------------------------------------------------------------------

slice_p = Primitive("slice")
set_layout(slice_p, parts=as_operand, sums=first)


@slice_p.shape_rule
def _(x, *, start_indices, limit_indices, strides):
    steps = (1,) * x.ndim if strides is None else strides
    if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
        named = {"start_indices": start_indices, "limit_indices": limit_indices, "strides": steps}
        name = next(name for name, given in named.items() if len(given) != x.ndim)
        raise TypeError(
            f"slice {name} must have length equal to the number of dimensions of the operand, got "
            f"{name} {named[name]} for operand shape {x.shape}. Give one entry for each axis."
        )
    shape = []
    for start, limit, step, size in zip(start_indices, limit_indices, steps, x.shape, strict=True):
        if not 0 <= start <= limit <= size or step <= 0:
            if step <= 0:
                wanted = f"strides must have every element be nonnegative, got {strides}"
            elif start < 0:
                wanted = f"start_indices must be greater than or equal to zero, got {start_indices}"
            elif limit > size:
                wanted = (
                    "limit_indices must be less than or equal to operand shape, got limit_indices "
                    f"{limit_indices} for operand shape {x.shape}"
                )
            else:
                wanted = (
                    "limit_indices must be greater than or equal to start_indices, got "
                    f"start_indices {start_indices} and limit_indices {limit_indices}"
                )
            raise TypeError(
                f"slice {wanted}. The operand has shape {x.shape}, start_indices are "
                f"{start_indices}, limit_indices {limit_indices}, strides {strides}."
            )
        shape.append((limit - start + step - 1) // step)
    return resized(x, tuple(shape))


def slice_padded(ct, aval, *, start_indices, limit_indices, strides):
    if strides is None:
        ends = limit_indices
        gaps = (0,) * aval.ndim
    else:
        gaps = [
            step - 1 if is_dim(size) or size > 1 else 0
            for step, size in zip(strides, ct.shape, strict=True)
        ]
        ends = [
            start + (1 + (size - 1) * (gap + 1) if size else 0)
            for start, size, gap in zip(start_indices, ct.shape, gaps, strict=True)
        ]
    config = tuple([
        (start, size - end, gap)
        for start, end, size, gap in zip(start_indices, ends, aval.shape, gaps, strict=True)
    ])  # fmt: skip
    return pad_p.bind(ct, _zero(ct), padding_config=config)


def _zero(x: Any) -> np.generic:
    return full_like_aval(0, ShapedArray((), get_aval(x).dtype))


linear_in(slice_p, 0)  # it is transposed in `dynamic_slicing`


@slice_p.batch
def _(args, dims, *, start_indices, limit_indices, strides):
    (x,), (dim,) = args, dims
    starts = (*start_indices[:dim], 0, *start_indices[dim:])
    limits = (*limit_indices[:dim], x.shape[dim], *limit_indices[dim:])
    if strides is not None:
        strides = (*strides[:dim], 1, *strides[dim:])
    return slice_p.bind(x, start_indices=starts, limit_indices=limits, strides=strides), dim


@slice_p.lower
def _(b, x, *, start_indices, limit_indices, strides):
    extra = trailing(x.aval)
    strides = (*(strides or (1,) * len(start_indices)), *[1] * len(extra))
    attributes = (
        f"start_indices = {i64_array((*start_indices, *[0] * len(extra)))}, "
        f"limit_indices = {i64_array((*limit_indices, *extra))}, strides = {i64_array(strides)}"
    )
    return b.op("stablehlo.slice", (x,), b.out, attributes)


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Cut out the part of an array between static indices.

    - `operand`: array of any shape and dtype
    - `start_indices`, `limit_indices`: first index and limit, one for each axis
    - `strides`: steps, by default 1

    The result has the dtype of `operand`. TypeError for indices outside of it, or too many or too
    few.
    Source: the StableHLO operation `stablehlo.slice`.

    >>> lax.slice(jnp.array([0, 1, 2, 3, 4]), (1,), (5,), (2,))
    Array([1, 3], dtype=int32)
    """
    return slice_p.bind(
        operand,
        start_indices=tuple(map(index, start_indices)),
        limit_indices=tuple(map(index, limit_indices)),
        strides=None if strides is None else tuple(map(index, strides)),
    )


@library(
    static=("start_index", "limit_index", "stride", "axis"),
    converted=("start_index", "limit_index", "stride", "axis"),
)
def slice_in_dim(
    operand: Array | np.ndarray,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Cut out a part along one axis between static indices.

    - `operand`: array of any shape and dtype
    - `start_index`, `limit_index`: first index and limit; negative ones count from the end, None
      stands for the ends
    - `stride`: step

    The result has the dtype of `operand`. TypeError for indices outside of it.
    Source: the StableHLO operation `stablehlo.slice`.

    >>> lax.slice_in_dim(jnp.array([0, 1, 2, 3]), 1, -1)
    Array([1, 2], dtype=int32)
    """
    shape = np.shape(operand)
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    start = 0 if start_index is None else size_of(start_index)
    limit = size if limit_index is None else size_of(limit_index)
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    strides[axis] = size_of(stride)
    return slice_p.bind(
        operand,
        start_indices=tuple(starts),
        limit_indices=tuple(limits),
        strides=tuple(strides),
    )


@library(static=("index", "axis", "keepdims"), converted=("index", "axis", "keepdims"))
def index_in_dim(
    operand: Array | np.ndarray, index: int, axis: int = 0, keepdims: bool = True
) -> Array:
    """Cut out one static index of an axis.

    - `operand`: array of any shape and dtype
    - `index`: Python integer; negative ones count from the end
    - `keepdims`: whether the axis stays, with size 1

    IndexError if the index is out of range.
    Source: the StableHLO operation `stablehlo.slice`.

    >>> lax.index_in_dim(jnp.array([4, 5, 6]), -1)
    Array([6], dtype=int32)
    """
    axis = canonical_axis(int(axis), np.ndim(operand))
    size = np.shape(operand)[axis]
    wrapped = size_of(index)
    wrapped = wrapped + size if wrapped < 0 else wrapped
    if not 0 <= wrapped < size:
        raise IndexError(
            f"index {index} is out of bounds for axis {axis} with size {size}, of an operand of "
            f"shape {np.shape(operand)}."
        )
    row = slice_in_dim(operand, wrapped, wrapped + 1, 1, axis)
    return row if keepdims else squeeze_p.bind(row, dimensions=(axis,))


# -- pad ---------------------------------------------------------------------------------------------

pad_p = Primitive("pad")
set_layout(pad_p, parts=as_operand, sums=first)


@pad_p.shape_rule
def _(x, value, *, padding_config):
    check_dtype("pad", x, (*NUMBER, np.bool_))
    if x.dtype != value.dtype:
        raise TypeError(
            "pad operand and padding_value must be same dtype: got "
            f"{x.dtype.name} and {value.dtype.name}: convert one of them."
        )
    if value.shape:
        raise ValueError(
            f"padding_value must be a scalar; got np.shape(padding_value)={value.shape}"
        )
    if len(padding_config) != x.ndim:
        raise ValueError(
            "length of padding_config must equal the number of axes of operand, got "
            f"padding_config {padding_config} for operand shape {x.shape}."
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(
            "interior padding in padding_config must be nonnegative, got padding_config "
            f"{padding_config}"
        )
    shape = tuple([
        low + high + size + (interior and interior * max_dim(size - 1, 0))
        for size, (low, high, interior) in zip(x.shape, padding_config, strict=True)
    ])  # fmt: skip
    if any(map(is_negative, shape)):
        raise ValueError(
            f"Dimension size after padding is not at least 0, got result shape {shape}, for "
            f"padding_config {padding_config} and operand shape {x.shape}."
        )
    return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)


linear_together(pad_p)


@pad_p.transpose
def _(ct, x, value, *, padding_config):
    ct_x = ct_value = None
    lost = None
    if is_undefined(x) or is_undefined(value):
        outer = tuple((-low, -high, 0) for low, high, _ in padding_config)
        inner = pad_p.bind(ct, _zero(ct), padding_config=outer)
        if any(interior for _, _, interior in padding_config):
            inner = slice_p.bind(
                inner,
                start_indices=(0,) * ct.ndim,
                limit_indices=inner.shape,
                strides=tuple(interior + 1 for _, _, interior in padding_config),
            )
        lost = inner
    if is_undefined(x):
        ct_x = lost
    if is_undefined(value):
        axes = tuple(range(ct.ndim))
        total = reduce_sum_p.bind(ct, axes=axes, out_sharding=None)
        kept = reduce_sum_p.bind(lost, axes=axes, out_sharding=None)
        ct_value = add_p.bind(total, neg_p.bind(kept))
    return [ct_x, ct_value]


@pad_p.batch
def _(args, dims, *, padding_config):
    (x, value), (dx, dv) = args, dims
    if dv is None:
        config = (*padding_config[:dx], (0, 0, 0), *padding_config[dx:])
        return pad_p.bind(x, value, padding_config=config), dx
    # One padding value for each element of the batch: pad with anything, and choose.
    x = to_front(x, dx, value.shape[0])
    config = ((0, 0, 0), *padding_config)
    padded = pad_p.bind(x, _zero(x), padding_config=config)
    held = full_like_aval(True, ShapedArray(x.shape, dtypes.bool_))
    held = pad_p.bind(held, np.False_, padding_config=config)
    values = to_shape(value, padded.shape, (0,))
    return select_n_p.bind(held, values, padded), 0


@pad_p.lower
def _(b, x, value, *, padding_config):
    return lower_pad(b, x, value, padding_config, b.out)


def lower_pad(b, x, value, padding_config: Sequence[tuple[int, int, int]], out: ShapedArray):
    """`stablehlo.pad`."""
    lows, highs, interiors = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    attributes = (
        f"edge_padding_low = {i64_array(lows)}, edge_padding_high = {i64_array(highs)}, "
        f"interior_padding = {i64_array(interiors)}"
    )
    return b.op("stablehlo.pad", (x, value), out, attributes)


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """Put a scalar around and between the elements of an array.

    - `operand`: array of any shape and dtype
    - `padding_value`: scalar of its dtype
    - `padding_config`: for each axis, how many to put before, after and between each two; negative
      numbers remove elements before and after

    The result has the dtype of `operand`. TypeError if dtypes differ; ValueError for a negative
    size.
    Source: the StableHLO operation `stablehlo.pad`.

    >>> lax.pad(jnp.array([1, 2]), 0, [(1, 2, 1)])
    Array([0, 1, 0, 2, 0, 0], dtype=int32)
    """
    config = tuple(
        [(size_of(low), size_of(high), size_of(gap)) for low, high, gap in padding_config]
    )
    return pad_p.bind(operand, padding_value, padding_config=config)
