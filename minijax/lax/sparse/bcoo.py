"""`bcoo_fromdense`, `bcoo_todense`, `bcoo_extract` and `bcoo_transpose`: going to and fro.

See `info` for the format. Indices that are negative count from the end, those out of bounds stand
for nothing; `spinfo` holds the shape of the dense array.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.lax.arithmetic import div, rem, sub
from minijax.lax.compare import eq, ge, ne, select
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import broadcasted_iota, full
from minijax.lax.cumulative import cumsum
from minijax.lax.indexing import GatherScatterMode, ScatterDimensionNumbers, scatter
from minijax.lax.joining import concatenate
from minijax.lax.reductions import reduce_or
from minijax.lax.rules import linear_in
from minijax.lax.shapes import broadcast_in_dim, expand_dims, permute, reshape
from minijax.lax.slicing import slice_in_dim
from minijax.lax.sparse.bcoo_axes import (
    NSE,
    add_at,
    front,
    named,
    of_ones,
    ordered,
    over_batch,
    take_at,
    unfronted,
)
from minijax.lax.sparse.bcoo_order import first_places
from minijax.lax.sparse.info import SparseInfo, check_buffers, check_indices
from minijax.lax.sparse.places import values_taken
from minijax.lowering.module import lower_by
from minijax.transforms.primitives import moveaxis
from minijax.transforms.tangents import Zero, is_undefined, zero_like
from minijax.transforms.vmap import vmap

__all__ = [
    "bcoo_extract_p", "bcoo_fromdense_p", "bcoo_todense_p", "bcoo_transpose_p", "extracted",
]  # fmt: skip


# -- bcoo_todense -----------------------------------------------------------------------------------

bcoo_todense_p = Primitive("bcoo_todense")


@bcoo_todense_p.shape_rule
def _(data, indices, *, spinfo):
    check_buffers(data, indices, spinfo.shape)
    return ShapedArray(spinfo.shape, data.dtype)


@bcoo_todense_p.lower
@lower_by
def _(data, indices, *, spinfo):
    n_batch, n_sparse, _, _ = check_buffers(data, indices, spinfo.shape)
    dims = tuple(range(len(spinfo.shape)))
    labels = (*dims[:n_batch], NSE, *dims[n_batch + n_sparse :])
    values = named(data, labels, n_batch)
    places = named(indices, (*dims[:n_batch], NSE), n_batch)
    return add_at(values, places, dims[n_batch : n_batch + n_sparse], dims, spinfo.shape)


linear_in(bcoo_todense_p, 0)


@bcoo_todense_p.transpose
def _(ct, data, indices, *, spinfo):
    assert is_undefined(data)
    found = bcoo_extract_p.bind(indices, ct, assume_unique=True)
    return [of_ones(found, data.shape), None]


@bcoo_todense_p.batch
def _(args, dims, *, spinfo):
    size, (data, indices) = front(args, dims)
    return bcoo_todense_p.bind(data, indices, spinfo=spinfo.deeper(size)), 0


# -- bcoo_extract -----------------------------------------------------------------------------------

bcoo_extract_p = Primitive("bcoo_extract")


@bcoo_extract_p.shape_rule
def _(indices, arr, *, assume_unique):
    n_batch, n_sparse, _, nse = check_indices(indices, arr.shape)
    shape = (*arr.shape[:n_batch], nse, *arr.shape[n_batch + n_sparse :])
    return ShapedArray(shape, arr.dtype)


def extracted(indices: Any, arr: Any) -> Any:
    """The data of a sparse array with these indices and the values of a dense one."""
    n_batch, n_sparse, _, nse = check_indices(indices, arr.shape)
    dims = tuple(range(arr.ndim))
    places = named(indices, (*dims[:n_batch], NSE), n_batch)
    found = take_at(named(arr, dims), places, dims[n_batch : n_batch + n_sparse])
    dense = dims[n_batch + n_sparse :]
    sizes = (*arr.shape[:n_batch], nse, *[arr.shape[d] for d in dense])
    return ordered(found, (*dims[:n_batch], NSE, *dense), sizes)


def _of_first(indices: Any, arr: Any, *, assume_unique: bool) -> Any:
    """The values at the indices, zero at those that stand before already."""
    data = extracted(indices, arr)
    if assume_unique:
        return data
    first = over_batch(first_places, indices.ndim - 2, indices)
    first = reshape(first, (*first.shape, *[1] * (data.ndim - first.ndim)))
    first = broadcast_in_dim(first, data.shape, tuple(range(data.ndim)))
    return select(first, data, full(data.shape, 0, data.dtype))


bcoo_extract_p.lower(lower_by(_of_first))


linear_in(bcoo_extract_p, 1)


@bcoo_extract_p.transpose
def _(ct, indices, arr, *, assume_unique):
    if not assume_unique:
        raise NotImplementedError(
            "transpose of bcoo_extract with assume_unique=False: call sum_duplicates() before, or "
            "give assume_unique=True."
        )
    return [None, bcoo_todense_p.bind(ct, indices, spinfo=SparseInfo(arr.shape))]


@bcoo_extract_p.batch
def _(args, dims, *, assume_unique):
    if dims[1] is None:  # each set of places reads one and the same array
        read = lambda indices, arr: _of_first(indices, arr, assume_unique=assume_unique)
        return vmap(read, in_axes=tuple(dims))(*args), 0
    _, (indices, arr) = front(args, dims)
    return bcoo_extract_p.bind(indices, arr, assume_unique=assume_unique), 0


# -- bcoo_fromdense ---------------------------------------------------------------------------------

bcoo_fromdense_p = Primitive("bcoo_fromdense", multiple_results=True)


@bcoo_fromdense_p.shape_rule
def _(mat, *, nse, n_batch, n_dense, index_dtype):
    n_sparse = mat.ndim - n_batch - n_dense
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise ValueError(
            f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} must be non-negative, and "
            f"together no more than the dimensions of shape={mat.shape}."
        )
    if nse < 0:
        raise TypeError(
            f"broadcast_in_dim shape must have every element be nonnegative, got ({nse},). It is nse."
        )
    batch, dense = mat.shape[:n_batch], mat.shape[n_batch + n_sparse :]
    data = ShapedArray((*batch, nse, *dense), mat.dtype)
    return [data, ShapedArray((*batch, nse, n_sparse), np.dtype(index_dtype))]


@bcoo_fromdense_p.lower
@lower_by
def _(mat, *, nse, n_batch, n_dense, index_dtype):
    ndim = mat.ndim
    mask = ne(mat, full(mat.shape, 0, mat.dtype))
    if n_dense:
        mask = reduce_or(mask, tuple(range(ndim - n_dense, ndim)))
    sizes = mat.shape[n_batch : ndim - n_dense]
    mask = reshape(mask, (*mat.shape[:n_batch], prod(sizes)))
    places = _places(mask, nse)
    indices = convert_element_type(_unraveled(places, sizes), np.dtype(index_dtype))
    if sizes:
        return extracted(indices, mat), indices
    # Without sparse dimensions no index is out of bounds: what is missing is known by its place.
    data = extracted(indices, mat)
    held = eq(places, full(places.shape, 0, places.dtype))
    held = broadcast_in_dim(held, data.shape, tuple(range(held.ndim)))
    return select(held, data, full(data.shape, 0, data.dtype)), indices


def _places(mask: Any, nse: int) -> Any:
    """Return where the last axis is true: the first `nse` places, and its length for those missing."""
    batch, count = mask.shape[:-1], mask.shape[-1]
    dtype = np.dtype(np.int32 if count < 2**31 else np.int64)
    rank = cumsum(convert_element_type(mask, dtype), axis=len(batch))
    slot = select(mask, sub(rank, full(rank.shape, 1, dtype)), full(rank.shape, nse, dtype))
    at = broadcasted_iota(dtype, mask.shape, len(batch))
    missing = full((*batch, nse), count, dtype)
    if 0 in mask.shape or 0 in missing.shape:
        return missing
    axes = tuple(range(len(batch)))
    numbers = ScatterDimensionNumbers((), (len(batch),), (len(batch),), axes, axes)
    return scatter(
        missing,
        expand_dims(slot, (slot.ndim,)),
        at,
        numbers,
        mode=GatherScatterMode.FILL_OR_DROP,
    )


def _unraveled(places: Any, sizes: Sequence[int]) -> Any:
    """Places in an array as rows of indices; places that are none have the sizes."""
    count = prod(sizes)
    if not sizes:
        return full((*places.shape, 0), 0, places.dtype)
    missing = ge(places, full(places.shape, count, places.dtype))
    columns, stride = [], count
    for size in sizes:
        stride //= max(size, 1)
        column = div(places, full(places.shape, max(stride, 1), places.dtype))
        column = rem(column, full(places.shape, max(size, 1), places.dtype))
        column = select(missing, full(places.shape, size, places.dtype), column)
        columns.append(expand_dims(column, (column.ndim,)))
    return concatenate(columns, places.ndim)


def _taken(t, data, indices, *, n_dense, **params):
    if indices.shape[-1]:
        return bcoo_extract_p.bind(indices, t, assume_unique=True)
    # Only elements that are not zero are the array's: the others were missing.
    held = ne(data, full(data.shape, 0, data.dtype))
    if n_dense:
        held = reduce_or(held, tuple(range(data.ndim - n_dense, data.ndim)))
        held = broadcast_in_dim(held, data.shape, tuple(range(held.ndim)))
    return select(held, extracted(indices, t), full(data.shape, 0, data.dtype))


values_taken(bcoo_fromdense_p, _taken)
bcoo_fromdense_p.rule_transpose = no_rule("its tangents are those of bcoo_extract")


@bcoo_fromdense_p.batch
def _(args, dims, *, n_batch, **params):
    mat = moveaxis(args[0], dims[0], 0)
    return bcoo_fromdense_p.bind(mat, n_batch=n_batch + 1, **params), [0, 0]


# -- bcoo_transpose ---------------------------------------------------------------------------------

bcoo_transpose_p = Primitive("bcoo_transpose", multiple_results=True)


def _orders(data, indices, permutation, spinfo) -> tuple[Any, Any, Any]:
    """The permutations of the axes of the data, those of the indices, and of their columns."""
    n_batch, n_sparse, _, _ = check_buffers(data, indices, spinfo.shape)
    batch, rest = permutation[:n_batch], permutation[n_batch:]
    sparse, dense = rest[:n_sparse], rest[n_sparse:]
    of_data = (*batch, n_batch, *[d - n_sparse + 1 for d in dense])
    return of_data, (*batch, n_batch, n_batch + 1), tuple(d - n_batch for d in sparse)


def _check_permutation(props, permutation, shape) -> None:
    n_batch, n_sparse, n_dense, _ = props
    if sorted(permutation) != list(range(len(shape))):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{permutation} for shape {shape}."
        )
    if max(permutation[:n_batch], default=-1) >= n_batch:
        raise NotImplementedError(
            "transpose permutation cannot permute batch axes with non-batch axes; got permutation "
            f"{permutation}, with n_batch={n_batch}. Change n_batch by update_layout before."
        )
    if min(permutation[n_batch + n_sparse :], default=len(shape)) < n_batch + n_sparse:
        raise NotImplementedError(
            "transpose permutation cannot permute dense axes with non-dense axes; got permutation "
            f"{permutation}, with n_dense={n_dense}. Change n_dense by update_layout before."
        )


@bcoo_transpose_p.shape_rule
def _(data, indices, *, permutation, spinfo):
    props = check_buffers(data, indices, spinfo.shape)
    _check_permutation(props, tuple(permutation), spinfo.shape)
    of_data, of_indices, _ = _orders(data, indices, permutation, spinfo)
    return [
        ShapedArray(tuple([x.shape[a] for a in order]), x.dtype)
        for x, order in ((data, of_data), (indices, of_indices))
    ]


@bcoo_transpose_p.lower
@lower_by
def _(data, indices, *, permutation, spinfo):
    of_data, of_indices, columns = _orders(data, indices, permutation, spinfo)
    indices = permute(indices, of_indices)
    if columns != tuple(range(len(columns))):
        last = indices.ndim - 1
        parts = [slice_in_dim(indices, c, c + 1, axis=last) for c in columns]
        indices = concatenate(parts, last)
    return permute(data, of_data), indices


@bcoo_transpose_p.jvp
def _(primals, tangents, **params):
    data, indices = primals
    outs = bcoo_transpose_p.bind(data, indices, **params)
    zero = zero_like(outs[1])
    if type(tangents[0]) is Zero:
        return outs, [zero_like(outs[0]), zero]
    return outs, [bcoo_transpose_p.bind(tangents[0], indices, **params)[0], zero]


@bcoo_transpose_p.transpose
def _(cts, data, indices, *, permutation, spinfo):
    ct = cts[0]
    if type(ct) is Zero:
        return [Zero(data.aval), None]
    of_data, _, _ = _orders(data, indices, permutation, spinfo)
    return [permute(ct, np.argsort(of_data)), None]


@bcoo_transpose_p.batch
def _(args, dims, *, permutation, spinfo):
    size, (data, indices) = front(args, dims)
    permutation = (0, *[d + 1 for d in permutation])
    outs = bcoo_transpose_p.bind(data, indices, permutation=permutation, spinfo=spinfo.deeper(size))
    return unfronted(outs, size)
