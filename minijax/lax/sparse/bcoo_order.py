"""`bcoo_sort_indices` and `bcoo_sum_duplicates`: the elements in the order of their indices.

Both are programs of one stable sort of the indices and of reading or adding the data by it, which
is what their derivatives are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.lax.arithmetic import sub
from minijax.lax.compare import bitwise_and, bitwise_not, ge, ne, select
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
from minijax.lax.reductions import reduce_or, reduce_sum
from minijax.lax.shapes import broadcast_in_dim, broadcast_shapes, expand_dims, squeeze
from minijax.lax.slicing import slice_in_dim
from minijax.lax.sorting import sort
from minijax.lax.sparse.bcoo_axes import front, over_batch, unfronted
from minijax.lax.sparse.info import as_row, check_buffers, check_indices
from minijax.lowering.module import lower_by
from minijax.transforms.tangents import Zero, zero_like

__all__ = [
    "bcoo_sort_indices_p", "bcoo_sum_duplicates_p", "count_groups", "first_places", "groups",
    "rows_of",
]  # fmt: skip

_I32 = np.dtype(np.int32)


# -- the order of indices, without batch dimensions ---------------------------------------------


def _order(indices: Any) -> tuple[Any, Any]:
    """Rows in lexicographic order, and from which row each comes."""
    nse, n_sparse = indices.shape
    places = broadcasted_iota(_I32, (nse,), 0)
    if not n_sparse:
        return indices, places
    columns = [squeeze(slice_in_dim(indices, c, c + 1, axis=1), (1,)) for c in range(n_sparse)]
    *columns, places = sort((*columns, places), dimension=0, num_keys=n_sparse)
    return concatenate([expand_dims(c, (1,)) for c in columns], 1), places


def _starts(rows: Any) -> Any:
    """Whether a row of those in order is not that before."""
    nse, n_sparse = rows.shape
    first = full((min(nse, 1),), True)
    if nse < 2:
        return first
    if not n_sparse:
        return concatenate([first, full((nse - 1,), False)], 0)
    differ = ne(slice_in_dim(rows, 1, nse, axis=0), slice_in_dim(rows, 0, nse - 1, axis=0))
    return concatenate([first, reduce_or(differ, (1,))], 0)


def rows_of(x: Any, places: Any) -> Any:
    """The rows of `x` at these places."""
    if not x.size or not places.size:
        return full((*places.shape, *x.shape[1:]), 0, x.dtype)
    return gather(
        x,
        expand_dims(places, (1,)),
        GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,)),
        (1, *x.shape[1:]),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def _put_rows(p: Any, out: Any, places: Any, rows: Any, **known: bool) -> Any:
    """Rows written, or added, at their places in `out`; those out of bounds are dropped."""
    if not rows.size or not out.size:
        return out
    numbers = ScatterDimensionNumbers(tuple(range(1, out.ndim)), (0,), (0,))
    mode = GatherScatterMode.FILL_OR_DROP
    return p(out, expand_dims(places, (1,)), rows, numbers, mode=mode, **known)


def first_places(indices: Any) -> Any:
    """Return, for each row of indices, whether it is the first of equal ones."""
    rows, places = _order(indices)
    out = full((indices.shape[0],), False)
    return _put_rows(scatter, out, places, _starts(rows), unique_indices=True)


def groups(indices: Any, sizes: Any, nse: int) -> tuple[Any, Any, Any]:
    """The `nse` first different rows of indices in order, and for each row which of them it is.

    Rows that are out of bounds count as one, which has the `sizes` as indices and comes last; so do
    those that are missing. The third result is whether a row is in bounds.
    """
    count, n_sparse = indices.shape
    bound = broadcast_in_dim(as_row(sizes, indices.dtype), indices.shape, (1,))
    outside = full((count,), False)
    if n_sparse:
        outside = reduce_or(ge(indices, bound), (1,))
        wide = broadcast_in_dim(outside, indices.shape, (0,))
        indices = select(wide, bound, indices)
    rows, places = _order(indices)
    rank = cumsum(convert_element_type(_starts(rows), _I32), axis=0)
    rank = sub(rank, full(rank.shape, 1, _I32)) if count else rank
    row = as_row(sizes, indices.dtype)
    found = broadcast_in_dim(row, (nse, n_sparse), (1,))
    found = _put_rows(scatter, found, rank, rows, indices_are_sorted=True)
    group = _put_rows(scatter, full((count,), 0, _I32), places, rank, unique_indices=True)
    return found, group, outside


# -- bcoo_sort_indices and bcoo_sum_duplicates --------------------------------------------------


def _reordering(name: str, compute: Callable) -> Primitive:
    """A primitive that gives data, which it is linear in, and indices in another order.

    `compute(values, indices, **params)` gives the results for several arrays of data.
    """
    p = Primitive(name, multiple_results=True)
    p.lower(lower_by(lambda data, indices, **params: compute([data], indices, **params)))
    p.rule_transpose = no_rule("its tangents are gathers and scatters")

    @p.jvp
    def _(primals, tangents, **params):
        data, indices = primals
        if type(tangents[0]) is Zero:
            outs = p.bind(data, indices, **params)
            return outs, list(map(zero_like, outs))
        data, t, indices = compute([data, tangents[0]], indices, **params)
        return [data, indices], [t, zero_like(indices)]

    @p.batch
    def _(args, dims, *, spinfo, **params):
        size, (data, indices) = front(args, dims)
        outs = p.bind(data, indices, spinfo=spinfo.deeper(size), **params)
        return unfronted(outs, size)

    return p


def _with_batch(data, indices, n_batch: int, nse: int) -> ShapedArray:
    """The type of data in an order of the indices: it has their batch dimensions too."""
    batch = broadcast_shapes(data.shape[:n_batch], indices.shape[:n_batch])
    return ShapedArray((*batch, nse, *data.shape[n_batch + 1 :]), data.dtype)


def _sorted(values, indices, *, spinfo) -> list[Any]:
    n_batch = indices.ndim - 2
    indices, places = over_batch(_order, n_batch, indices)
    return [over_batch(rows_of, n_batch, x, places) for x in values] + [indices]


bcoo_sort_indices_p = _reordering("bcoo_sort_indices", _sorted)


@bcoo_sort_indices_p.shape_rule
def _(data, indices, *, spinfo):
    n_batch, _, _, nse = check_buffers(data, indices, spinfo.shape)
    found = ShapedArray(indices.shape, indices.dtype)
    return [_with_batch(data, indices, n_batch, nse), found]


def _summed(values, indices, *, spinfo, nse) -> list[Any]:
    n_batch, n_sparse, _, _ = check_indices(indices, spinfo.shape)
    sizes = spinfo.shape[n_batch : n_batch + n_sparse]
    found, group, _ = over_batch(lambda rows: groups(rows, sizes, nse), n_batch, indices)

    def total(x, group):
        return _put_rows(scatter_add, full((nse, *x.shape[1:]), 0, x.dtype), group, x)

    return [over_batch(total, n_batch, x, group) for x in values] + [found]


bcoo_sum_duplicates_p = _reordering("bcoo_sum_duplicates", _summed)


@bcoo_sum_duplicates_p.shape_rule
def _(data, indices, *, spinfo, nse):
    n_batch, n_sparse, _, _ = check_buffers(data, indices, spinfo.shape)
    if nse is None:
        raise ValueError(
            "bcoo_sum_duplicates: nse must be specified when using the function within jit, vmap, "
            "and other transformations requiring abstract evaluation."
        )
    found = ShapedArray((*indices.shape[:n_batch], nse, n_sparse), indices.dtype)
    return [_with_batch(data, indices, n_batch, nse), found]


def count_groups(indices: Any, sizes: Any) -> Any:
    """Return how many different rows of indices there are in bounds, without batch dimensions."""
    _, group, outside = groups(indices, sizes, 0)
    del group
    rows, places = _order(indices)
    inside = bitwise_not(rows_of(outside, places)) if indices.shape[0] else outside
    kept = bitwise_and(_starts(rows), inside)
    return reduce_sum(convert_element_type(kept, _I32), (0,))
