"""`bcoo_sort_indices` and `bcoo_sum_duplicates`: the elements in the order of their indices.

Both are programs of one stable sort of the indices and of reading or adding the data by it, which
is what their derivatives are made of.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray, get_aval
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
from minijax.lax.shapes import broadcast_in_dim, expand_dims, squeeze
from minijax.lax.slicing import slice_in_dim
from minijax.lax.sorting import sort
from minijax.lax.sparse.bcoo_axes import front, over_batch, unfronted
from minijax.lax.sparse.info import check_buffers
from minijax.lowering.module import lower_by
from minijax.transforms.tangents import Zero, zero_tangent

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
    bound = broadcast_in_dim(np.asarray(sizes, indices.dtype), indices.shape, (1,))
    outside = full((count,), False)
    if n_sparse:
        outside = reduce_or(ge(indices, bound), (1,))
        wide = broadcast_in_dim(outside, indices.shape, (0,))
        indices = select(wide, bound, indices)
    rows, places = _order(indices)
    rank = cumsum(convert_element_type(_starts(rows), _I32), axis=0)
    rank = sub(rank, full(rank.shape, 1, _I32)) if count else rank
    row = np.asarray(sizes, indices.dtype)
    found = broadcast_in_dim(row, (nse, n_sparse), (1,))
    found = _put_rows(scatter, found, rank, rows, indices_are_sorted=True)
    group = _put_rows(scatter, full((count,), 0, _I32), places, rank, unique_indices=True)
    return found, group, outside


# -- bcoo_sort_indices --------------------------------------------------------------------------

bcoo_sort_indices_p = Primitive("bcoo_sort_indices", multiple_results=True)


@bcoo_sort_indices_p.shape_rule
def _(data, indices, *, spinfo):
    n_batch, _, _, _ = check_buffers(data, indices, spinfo.shape)
    return [_with_batch(data, indices, n_batch, data.shape[n_batch]), _plain(indices)]


def _plain(aval: ShapedArray) -> ShapedArray:
    return ShapedArray(aval.shape, aval.dtype)


def _with_batch(data, indices, n_batch: int, nse: int) -> ShapedArray:
    """The type of data in an order of the indices: it has their batch dimensions too."""
    batch = np.broadcast_shapes(data.shape[:n_batch], indices.shape[:n_batch])
    shape = (*batch, nse, *data.shape[n_batch + 1 :])
    return ShapedArray(shape, data.dtype)


def _sorted(data, indices, t=None) -> list[Any]:
    n_batch = indices.ndim - 2
    indices, places = over_batch(_order, n_batch, indices)
    given = [data] if t is None else [data, t]
    return [over_batch(rows_of, n_batch, x, places) for x in given] + [indices]


@bcoo_sort_indices_p.lower
@lower_by
def _(data, indices, *, spinfo):
    return _sorted(data, indices)


@bcoo_sort_indices_p.jvp
def _(primals, tangents, *, spinfo):
    data, indices = primals
    if type(tangents[0]) is Zero:
        outs = bcoo_sort_indices_p.bind(data, indices, spinfo=spinfo)
        return outs, [zero_tangent(get_aval(x)) for x in outs]
    data, t, indices = _sorted(data, indices, tangents[0])
    return [data, indices], [t, zero_tangent(get_aval(indices))]


bcoo_sort_indices_p.rule_transpose = no_rule("its tangents are gathers")


@bcoo_sort_indices_p.batch
def _(args, dims, **params):
    return _batch(bcoo_sort_indices_p, args, dims, **params)


def _batch(p: Primitive, args, dims, *, spinfo, **params):
    size, (data, indices) = front(args, dims)
    spinfo = spinfo._replace(shape=(size, *spinfo.shape))
    return unfronted(p.bind(data, indices, spinfo=spinfo, **params), size)


# -- bcoo_sum_duplicates ------------------------------------------------------------------------

bcoo_sum_duplicates_p = Primitive("bcoo_sum_duplicates", multiple_results=True)


@bcoo_sum_duplicates_p.shape_rule
def _(data, indices, *, spinfo, nse):
    n_batch, n_sparse, _, _ = check_buffers(data, indices, spinfo.shape)
    if nse is None:
        raise ValueError(
            "bcoo_sum_duplicates: nse must be specified when using the function within jit, vmap, "
            "and other transformations requiring abstract evaluation."
        )
    shape = (*indices.shape[:n_batch], nse, n_sparse)
    found = ShapedArray(shape, indices.dtype)
    return [_with_batch(data, indices, n_batch, nse), found]


def _summed(data, indices, t, spinfo, nse) -> list[Any]:
    n_batch, n_sparse, _, _ = check_buffers(data, indices, spinfo.shape)
    sizes = spinfo.shape[n_batch : n_batch + n_sparse]
    found, group, _ = over_batch(lambda rows: groups(rows, sizes, nse), n_batch, indices)

    def total(values, group):
        out = full((nse, *values.shape[1:]), 0, values.dtype)
        return _put_rows(scatter_add, out, group, values)

    given = [data] if t is None else [data, t]
    return [over_batch(total, n_batch, x, group) for x in given] + [found]


@bcoo_sum_duplicates_p.lower
@lower_by
def _(data, indices, *, spinfo, nse):
    return _summed(data, indices, None, spinfo, nse)


@bcoo_sum_duplicates_p.jvp
def _(primals, tangents, *, spinfo, nse):
    data, indices = primals
    if type(tangents[0]) is Zero:
        outs = bcoo_sum_duplicates_p.bind(data, indices, spinfo=spinfo, nse=nse)
        return outs, [zero_tangent(get_aval(x)) for x in outs]
    data, t, indices = _summed(data, indices, tangents[0], spinfo, nse)
    return [data, indices], [t, zero_tangent(get_aval(indices))]


bcoo_sum_duplicates_p.rule_transpose = no_rule("its tangents are scatters")


@bcoo_sum_duplicates_p.batch
def _(args, dims, **params):
    return _batch(bcoo_sum_duplicates_p, args, dims, **params)


def count_groups(indices: Any, sizes: Any) -> Any:
    """Return how many different rows of indices there are in bounds, without batch dimensions."""
    _, group, outside = groups(indices, sizes, 0)
    del group
    rows, places = _order(indices)
    inside = bitwise_not(rows_of(outside, places)) if indices.shape[0] else outside
    kept = bitwise_and(_starts(rows), inside)
    return reduce_sum(convert_element_type(kept, _I32), (0,))
