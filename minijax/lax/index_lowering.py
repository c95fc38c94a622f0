"""Gather and scatter in StableHLO, with what their modes ask for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray
from minijax.features.queries import is_dim
from minijax.lax.index_numbers import GatherScatterMode, window_sizes
from minijax.lax.shapes import trailing
from minijax.lowering.module import Value, i64_array
from minijax.lowering.types import physical

__all__ = ["lower_gather", "lower_scatter"]

# -- lowering of indices ---------------------------------------------------------------------------


def _wide(b, indices):
    """Indices of at least 32 bits: bounds of the operand need not fit in fewer."""
    if dtypes.bit_width(indices.dtype) >= 32:
        return indices
    unsigned = dtypes.issubdtype(indices.dtype, np.unsignedinteger)
    return b.convert(indices, np.dtype(np.uint32 if unsigned else np.int32))


def _bounds(b, operand, indices, axes: Sequence[int], sizes: Sequence[int]):
    """The greatest index of a window that is within the operand, for each index vector entry."""
    most = int(dtypes.iinfo(indices.dtype).max)
    limits = [operand.shape[d] - sizes[d] for d in axes]
    if any(map(is_dim, limits)):
        row = b.convert(b.vector(limits), indices.dtype)
    else:
        aval = ShapedArray((len(limits),), indices.dtype)
        row = b.constant(np.asarray([min(x, most) for x in limits], indices.dtype), aval)
    return b.broadcast(row, indices.shape, (len(indices.shape) - 1,))


def _within(b, operand, indices, axes: Sequence[int], sizes: Sequence[int]):
    """Return for each index vector, whether its window lies within the operand."""
    # A negative index is a great unsigned one, so that one comparison does for both ends.
    unsigned = np.dtype(np.uint64 if indices.dtype.itemsize == 8 else np.uint32)
    indices = b.convert(indices, unsigned)
    inside = b.compare(indices, _bounds(b, operand, indices, axes, sizes), "LE", "UNSIGNED")
    rows = indices.shape[:-1]
    if len(axes) == 1:
        return b.reshape(inside, rows)
    scalar = ShapedArray((), np.dtype(np.bool_))
    true = b.constant(np.True_, scalar)
    body = b.region([scalar, scalar], lambda r, p, q: [r.op("stablehlo.and", (p, q), scalar)])
    attributes = f"dimensions = {i64_array((len(rows),))}"
    out = ShapedArray(rows, np.dtype(np.bool_))
    return b.op_n("stablehlo.reduce", (inside, true), [out], attributes, [body])[0]


def _clamped(b, operand, indices, axes: Sequence[int], sizes: Sequence[int]):
    low = b.full(0, indices.aval)
    high = _bounds(b, operand, indices, axes, sizes)
    return b.op("stablehlo.clamp", (low, indices, high), indices.aval)


def _listed(dims: Sequence[int]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def _flag(value: bool) -> str:
    return "true" if value else "false"


def lower_gather(
    b, operand, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, mode, fill_value,
    unique_indices,
):  # fmt: skip
    if mode is GatherScatterMode.ONE_HOT:
        raise NotImplementedError("gather: mode 'one_hot' is not implemented; use 'clip'.")
    out = b.out
    if out.size == 0:
        return b.full(0, physical(out))
    numbers = dimension_numbers
    indices = _wide(b, indices)
    extra = trailing(operand.aval)
    offsets = (*numbers.offset_dims, *range(out.ndim, out.ndim + len(extra)))
    attributes = (
        f"dimension_numbers = #stablehlo.gather<offset_dims = {_listed(offsets)}, "
        f"collapsed_slice_dims = {_listed(numbers.collapsed_slice_dims)}, "
        f"operand_batching_dims = {_listed(numbers.operand_batching_dims)}, "
        f"start_indices_batching_dims = {_listed(numbers.start_indices_batching_dims)}, "
        f"start_index_map = {_listed(numbers.start_index_map)}, "
        f"index_vector_dim = {len(indices.shape) - 1}>, "
        f"slice_sizes = {i64_array((*slice_sizes, *extra))}, "
        f"indices_are_sorted = {_flag(indices_are_sorted)}"
    )
    gathered = b.op("stablehlo.gather", (operand, indices), out, attributes)
    if mode is not GatherScatterMode.FILL_OR_DROP or not numbers.start_index_map:
        return gathered
    rows = [d for d in range(out.ndim) if d not in numbers.offset_dims]
    inside = _within(b, operand, indices, numbers.start_index_map, slice_sizes)
    stored = physical(out)
    inside = b.broadcast(inside, stored.shape, rows)
    operands = (inside, Value(gathered.name, stored), b.full(fill_value, stored))
    return Value(b.op("stablehlo.select", operands, stored).name, out)


def lower_scatter(
    b, operand, indices, updates, *, dimension_numbers, indices_are_sorted, unique_indices, mode,
    update_jaxpr, update_consts,
):  # fmt: skip
    out = b.out
    if updates.aval.size == 0:
        return operand
    numbers = dimension_numbers
    indices = _wide(b, indices)
    if mode is GatherScatterMode.CLIP and indices.shape[-1]:
        sizes = window_sizes(numbers, operand.shape, updates.shape)
        axes = numbers.scatter_dims_to_operand_dims
        indices = _clamped(b, operand, indices, axes, sizes)
    extra = trailing(operand.aval)
    rank = len(updates.shape)
    window = (*numbers.update_window_dims, *range(rank, rank + len(extra)))
    attributes = (
        f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {_listed(window)}, "
        f"inserted_window_dims = {_listed(numbers.inserted_window_dims)}, "
        f"input_batching_dims = {_listed(numbers.operand_batching_dims)}, "
        f"scatter_indices_batching_dims = {_listed(numbers.scatter_indices_batching_dims)}, "
        f"scatter_dims_to_operand_dims = {_listed(numbers.scatter_dims_to_operand_dims)}, "
        f"index_vector_dim = {len(indices.shape) - 1}>, "
        f"indices_are_sorted = {_flag(indices_are_sorted)}, "
        f"unique_indices = {_flag(unique_indices)}"
    )
    element = _element(operand.aval)

    def combine(r, old, new):
        return [new] if update_jaxpr is None else r.closed_jaxpr(update_jaxpr, old, new)

    body = b.region([element, element], combine)
    return b.op_n("stablehlo.scatter", (operand, indices, updates), [out], attributes, [body])[0]


def _element(aval: ShapedArray) -> ShapedArray:
    """The scalar that a reducer works on: of a random key, one of its words."""
    dtype = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        dtype = dtype.physical_element_aval.dtype
    return ShapedArray((), dtype)
