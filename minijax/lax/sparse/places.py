"""Reading and adding at the places of a sparse matrix: what its formats share.

A place that is negative counts from the end; one that is out of bounds is dropped where values are
added, and clipped where they are read. Source: the formats COO and CSR (Saad, Iterative Methods,
3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.primitive import Primitive
from minijax.features.queries import is_dim
from minijax.lax.arithmetic import add, div, mul, sub
from minijax.lax.compare import lt, ne, select_n
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import broadcasted_iota, full
from minijax.lax.cumulative import cumsum
from minijax.lax.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    scatter,
    scatter_add,
)
from minijax.lax.joining import concatenate
from minijax.lax.reductions import reduce_sum
from minijax.lax.shapes import broadcast_in_dim, reshape
from minijax.lax.sparse.info import as_row
from minijax.transforms.tangents import Zero, zero_like

__all__ = [
    "add_at", "nonzero_places", "pointers", "row_numbers", "take_at", "values_taken",
]  # fmt: skip

_DROP = GatherScatterMode.FILL_OR_DROP


def _column(places: Any, size: int) -> Any:
    """Places along one axis, counted from the front, as a column of indices."""
    if np.issubdtype(places.dtype, np.signedinteger):
        least = np.iinfo(places.dtype)
        if is_dim(size) or size <= least.max:
            row = as_row((size,), places.dtype)
            shifted = add(places, broadcast_in_dim(row, places.shape, (places.ndim - 1,)))
            places = select_n(lt(places, full(places.shape, 0, places.dtype)), places, shifted)
    return broadcast_in_dim(places, (*places.shape, 1), tuple(range(places.ndim)))


def _indices(places: Sequence[Any], sizes: Sequence[int]) -> Any:
    columns = [_column(x, size) for x, size in zip(places, sizes, strict=False)]
    return columns[0] if len(columns) == 1 else concatenate(columns, 1)


def take_at(x: Any, places: Sequence[Any]) -> Any:
    """Return the elements of `x` at indices along its first axes: (n, ...)."""
    count, shape = len(places), x.shape
    if not places[0].shape[0]:
        return full((0, *shape[count:]), 0, x.dtype)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, 1 + len(shape) - count)),
        collapsed_slice_dims=tuple(range(count)),
        start_index_map=tuple(range(count)),
    )
    sizes = (1,) * count + shape[count:]
    return gather(x, _indices(places, shape), numbers, sizes)


def add_at(shape: Sequence[int], places: Sequence[Any], values: Any) -> Any:
    """Zeros of a shape, with values of shape (n, ...) added at places along the first axes."""
    count, shape = len(places), tuple(shape)
    if 0 in shape or not values.shape[0]:
        return full(shape, 0, values.dtype)
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, 1 + len(shape) - count)),
        inserted_window_dims=tuple(range(count)),
        scatter_dims_to_operand_dims=tuple(range(count)),
    )
    zeros = full(shape, 0, values.dtype)
    return scatter_add(zeros, _indices(places, shape), values, numbers, mode=_DROP)


def nonzero_places(matrix: Any, nse: int) -> tuple[Any, Any, Any, Any]:
    """The values, rows and columns of the first `nse` nonzeros, and whether each is one.

    Where there are fewer: zeros at (0, 0). The places are found by counting: the number of nonzeros
    up to an element says where it goes.
    """
    rows, columns = matrix.shape
    flat = reshape(matrix, (rows * columns,))
    mask = ne(flat, full(flat.shape, 0, flat.dtype))
    counts = convert_element_type(mask, np.int32)
    if 0 in (rows, columns):
        found = full((nse,), 0, np.int32)
        total = full((), 0, np.int32)
    else:
        ends = cumsum(counts)
        total = reduce_sum(counts, (0,))
        outside = full(flat.shape, nse, np.int32)
        goal = select_n(mask, outside, sub(ends, full(flat.shape, 1, np.int32)))
        numbers = ScatterDimensionNumbers((), (0,), (0,))
        found = scatter(
            full((nse,), 0, np.int32),
            reshape(goal, (*goal.shape, 1)),
            broadcasted_iota(np.int32, flat.shape, 0),
            numbers,
            mode=_DROP,
        )
    real = lt(broadcasted_iota(np.int32, (nse,), 0), broadcast_in_dim(total, (nse,), ()))
    row, column = _unraveled(found, columns)
    values = take_at(matrix, (row, column))
    return select_n(real, full((nse,), 0, matrix.dtype), values), row, column, real


def _unraveled(found: Any, columns: int) -> tuple[Any, Any]:
    width = full(found.shape, max(columns, 1), found.dtype)
    row = div(found, width)
    return row, sub(found, mul(row, width))


def row_numbers(indptr: Any, nse: int, dtype: Any) -> Any:
    """The row of each of `nse` elements, from where rows start; as many as rows for padding."""
    ones = full(indptr.shape, 1, dtype)
    starts = add_at((nse,), (indptr,), ones)
    return sub(cumsum(starts), full((nse,), 1, dtype))


def pointers(rows: Any, count: int, dtype: Any) -> Any:
    """Return where each of `count` rows starts, and where the last ends; from rows of elements in
    order.

    Elements of row `count` are padding.
    """
    totals = add_at((count,), (rows,), full(rows.shape, 1, np.int32))
    ends = convert_element_type(cumsum(totals), dtype)
    return concatenate([full((1,), 0, dtype), ends], 0)


def values_taken(p: Primitive, taken: Callable) -> None:
    """The derivative of a primitive that takes data, and their places, from a dense array.

    `taken(t, *results, **params)` gives what a tangent has at these places.
    """

    @p.jvp
    def _(primals, tangents, **params):
        outs = p.bind(*primals, **params)
        (t,), (data, *places) = tangents, outs
        t_data = zero_like(data) if type(t) is Zero else taken(t, *outs, **params)
        return outs, [t_data, *map(zero_like, places)]
