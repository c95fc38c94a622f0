"""Shapes of BCOO arrays: reshaping, slicing, joining, indexing and summing.

Each is the sparse counterpart of the function of `lax` of its name: indices change, and data move
only where their dimensions do.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.errors import check_arguments_of
from minijax.experimental.sparse.bcoo_array import (
    BCOO,
    bcoo_sum_duplicates,
    bcoo_transpose,
    bcoo_update_layout,
    known_info,
)
from minijax.lax.shapes import canonical_shape
from minijax.lax.sparse.info import as_row
from minijax.transforms.vmap import vmap

__all__ = [
    "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_dynamic_slice", "bcoo_gather",
    "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_squeeze",
]  # fmt: skip


def _kinds(mat: BCOO) -> tuple[range, range, range]:
    """The batch, sparse and dense dimensions."""
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    return range(first), range(first, last), range(last, mat.ndim)


def _columns(indices: Any, columns: Sequence[int]) -> Any:
    return indices[..., np.asarray(columns, np.int32)]


def _whole_batch(mat: BCOO, shape: Sequence[int]) -> tuple[Any, Any]:
    """The buffers, with batch dimensions of these sizes."""
    data = jnp.broadcast_to(mat.data, (*shape, *mat.data.shape[mat.n_batch :]))
    return data, jnp.broadcast_to(mat.indices, (*shape, *mat.indices.shape[mat.n_batch :]))


def _over_dense(mask: Any, data: Any) -> Any:
    """A mask over the specified elements, with dimensions for the dense ones of the data."""
    return mask.reshape((*mask.shape, *[1] * (data.ndim - mask.ndim)))


# -- bcoo_broadcast_in_dim ----------------------------------------------------------------------


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """The array in a shape of more dimensions, or longer ones; see `lax.broadcast_in_dim`.

    New dimensions before the sparse ones are batch dimensions; those among them must be of size 1:
    NotImplementedError. ValueError for dimensions that do not fit.
    """
    shape, dims = tuple(shape), tuple(broadcast_dimensions)
    if len(dims) != mat.ndim:
        raise ValueError(
            f"spinfo.shape={mat.shape} and broadcast_dimensions={dims} must have the same length"
        )
    batch, sparse, dense = ([dims[d] for d in kind] for kind in _kinds(mat))
    n_dense = len(shape) - min(dense) if dense else 0
    n_batch = min(sparse) if sparse else len(shape) - n_dense
    middle = range(n_batch, len(shape) - n_dense)
    if max(sparse, default=-1) > max(middle, default=-1) or max(batch, default=-1) >= n_batch:
        raise ValueError(
            "Cannot mix sparse and dense dimensions during broadcast_in_dim: got "
            f"broadcast_dimensions={dims} for {mat!r}."
        )
    known = dict(zip(dims, mat.shape, strict=True))
    if any(shape[d] != known.get(d, 1) for d in middle):
        raise NotImplementedError(
            f"Adding sparse dimensions with lengths != 1: got shape={shape} for {mat!r}, with "
            f"broadcast_dimensions={dims}."
        )
    held = lambda x: [x.shape[batch.index(d)] if d in batch else shape[d] for d in range(n_batch)]
    last = len(shape) - n_dense - n_batch - 1
    places = (*batch, n_batch, *[d - last for d in dense])
    data = lax.broadcast_in_dim(
        mat.data, (*held(mat.data), mat.nse, *shape[len(shape) - n_dense :]), places
    )
    indices = lax.broadcast_in_dim(
        mat.indices,
        (*held(mat.indices), mat.nse, mat.n_sparse),
        (*batch, n_batch, n_batch + 1),
    )
    columns = [
        indices[..., sparse.index(d)] if d in sparse else jnp.zeros_like(indices, shape=indices.shape[:-1])
        for d in middle
    ]  # fmt: skip
    if len(columns) != mat.n_sparse:
        indices = jnp.stack(columns, axis=-1)
    return BCOO((data, indices), shape=shape)


# -- bcoo_concatenate ---------------------------------------------------------------------------


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """The arrays one after the other along a batch or sparse dimension; see `lax.concatenate`.

    ValueError if the numbers of their batch, sparse and dense dimensions differ, TypeError for
    shapes or dtypes that do not fit, NotImplementedError along a dense dimension.
    """
    operands, dimension = list(operands), operator.index(dimension)
    if not all(isinstance(mat, BCOO) for mat in operands):
        raise ValueError(
            f"bcoo_concatenate: expected operands to be a sequence of BCOO arrays. Got {operands}"
        )
    shape = _joined_shape(operands, dimension)
    first = operands[0]
    for name in ("n_batch", "n_dense"):
        if len({getattr(mat, name) for mat in operands}) > 1:
            kind = name.removeprefix("n_")
            raise ValueError(
                f"bcoo_concatenate requires inputs to have matching {kind} dimensions. Change them "
                "by update_layout."
            )
    batch, sparse, _ = _kinds(first)
    if dimension in sparse:
        return _join_sparse(operands, dimension, shape)
    if dimension in batch:
        return _join_batch(operands, dimension, shape)
    raise NotImplementedError(
        "Concatenation along dense dimensions. Change n_dense by update_layout before."
    )


def _joined_shape(operands: Sequence[BCOO], dimension: int) -> tuple[int, ...]:
    if not operands:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    shapes = [mat.shape for mat in operands]
    shown = ", ".join(map(str, shapes))
    first = shapes[0]
    if len({len(shape) for shape in shapes}) > 1:
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: {shown}.")
    if not 0 <= dimension < len(first):
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes {shown}."
        )
    without = {(*shape[:dimension], *shape[dimension + 1 :]) for shape in shapes}
    if len(without) > 1:
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
            f"being concatenated: concatenating along dimension {dimension} for shapes {shown}."
        )
    return (*first[:dimension], sum(s[dimension] for s in shapes), *first[dimension + 1 :])


def _join_sparse(operands: Sequence[BCOO], dimension: int, shape: tuple) -> BCOO:
    n_batch = operands[0].n_batch
    datas, rows, start = [], [], 0
    for mat in operands:
        sizes = jnp.broadcast_shapes(*[
            b.shape[:n_batch] for other in operands for b in (other.data, other.indices)
        ])  # fmt: skip
        data, indices = _whole_batch(mat, sizes)
        # What is out of bounds may come to stand in the arrays after it: it must be zero.
        inside = indices[..., dimension - n_batch] < mat.shape[dimension]
        datas.append(jnp.where(_over_dense(inside, data), data, jnp.zeros_like(data, shape=())))
        rows.append(indices.at[..., dimension - n_batch].add(start))
        start += mat.shape[dimension]
    data = lax.concatenate(datas, n_batch)
    return BCOO((data, lax.concatenate(rows, n_batch)), shape=shape)


def _join_batch(operands: Sequence[BCOO], dimension: int, shape: tuple) -> BCOO:
    nse = max(mat.nse for mat in operands)
    datas, rows = [], []
    for mat in operands:
        data, indices = _whole_batch(mat, mat.shape[: mat.n_batch])
        missing = nse - mat.nse
        if missing:
            pad = [(0, missing if axis == mat.n_batch else 0) for axis in range(data.ndim)]
            data = jnp.pad(data, pad)
            sizes = [mat.shape[d] for d in _kinds(mat)[1]]
            row = jnp.asarray(sizes, indices.dtype)
            more = jnp.broadcast_to(row, (*indices.shape[:-2], missing, mat.n_sparse))
            indices = lax.concatenate([indices, more], mat.n_batch)
        datas.append(data)
        rows.append(indices)
    data = lax.concatenate(datas, dimension)
    return BCOO((data, lax.concatenate(rows, dimension)), shape=shape)


# -- bcoo_reshape -------------------------------------------------------------------------------


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None,
    sharding: Any = None,
) -> BCOO:  # fmt: skip
    """The array in another shape, after a transpose if `dimensions` are given; see `lax.reshape`.

    Batch, sparse and dense dimensions stay apart: ValueError for a shape that would mix them.
    """
    new = canonical_shape(new_sizes)
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=tuple(dimensions))
    batch, sparse, dense = ([mat.shape[d] for d in kind] for kind in _kinds(mat))
    n_batch = _count_of(new, prod(batch))
    if n_batch is None:
        raise ValueError(
            "bcoo_reshape: new shape cannot mix batch and sparse dimensions; got "
            f"shape={mat.shape} new_shape={new} with n_batch={mat.n_batch}"
        )
    n_sparse = _count_of(new[n_batch:], prod(sparse)) if dense else len(new) - n_batch
    end = None if n_sparse is None else n_batch + n_sparse
    if end is None or prod(new[n_batch:end]) != prod(sparse) or prod(new[end:]) != prod(dense):
        raise ValueError(
            "bcoo_reshape: new shape cannot mix sparse and dense dimensions; got "
            f"shape={mat.shape} new_shape={new} with n_dense={mat.n_dense}"
        )
    data, indices = _whole_batch(mat, batch)
    if tuple(batch) == new[:n_batch]:
        data, indices = mat.data, mat.indices
    lead = lambda x: x.shape[: mat.n_batch] if tuple(batch) == new[:n_batch] else new[:n_batch]
    data = data.reshape((*lead(data), mat.nse, *new[end:]))
    indices = indices.reshape((*lead(indices), mat.nse, mat.n_sparse))
    return BCOO((data, _reindexed(indices, sparse, new[n_batch:end])), shape=new)


def _count_of(sizes: Sequence[int], wanted: int) -> int | None:
    """Return how many of the first sizes, as many as can be, have this product; None if none have."""
    fits = [k for k in range(len(sizes) + 1) if prod(sizes[:k]) == wanted]
    return max(fits) if fits else None


def _reindexed(indices: Any, sizes: Sequence[int], new: Sequence[int]) -> Any:
    """Indices into a shape as those into another of as many elements."""
    if tuple(sizes) == tuple(new):
        return indices
    dtype = jnp.promote_types(indices.dtype, np.int32)
    old = indices.astype(dtype)
    bound = jnp.asarray(sizes, dtype)
    outside = jnp.any(old >= bound, axis=-1)
    flat = jnp.zeros_like(old, shape=old.shape[:-1])
    for c, size in enumerate(sizes):
        flat = flat * size + old[..., c]
    columns, stride = [], prod(new)
    for size in new:
        stride //= max(size, 1)
        columns.append(lax.rem(lax.div(flat, jnp.full_like(flat, max(stride, 1))),
                               jnp.full_like(flat, max(size, 1))))  # fmt: skip
    if not columns:
        return jnp.zeros_like(indices, shape=(*indices.shape[:-1], 0))
    found = jnp.stack(columns, axis=-1)
    return jnp.where(outside[..., None], jnp.asarray(new, dtype), found).astype(indices.dtype)


# -- bcoo_rev, bcoo_squeeze ---------------------------------------------------------------------


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with the order of elements along dimensions reversed; see `lax.rev`."""
    dims = tuple(operator.index(d) for d in dimensions)
    lax.rev(jnp.zeros((0,) * operand.ndim), dims)  # its errors
    batch, sparse, dense = _kinds(operand)
    last = operand.n_sparse - 1
    of_batch = [d for d in dims if d in batch]
    data = lax.rev(operand.data, [*of_batch, *[d - last for d in dims if d in dense]])
    indices = lax.rev(operand.indices, of_batch)
    columns = [d - operand.n_batch for d in dims if d in sparse]
    if columns:
        sizes = as_row([operand.shape[d] for d in sparse], indices.dtype)
        turned = np.asarray([c in columns for c in range(operand.n_sparse)])
        inside = indices < sizes
        flipped = jnp.where(inside, sizes - 1 - indices, sizes)
        indices = jnp.where(turned, flipped, indices).astype(indices.dtype)
    return BCOO((data, indices), shape=operand.shape)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without dimensions of size 1; see `lax.squeeze`."""
    dims = []
    for d in dimensions:
        if not -arr.ndim <= d < arr.ndim:
            raise ValueError(f"axis {d} is out of bounds for array of dimension {arr.ndim}")
        dims.append(d % arr.ndim)
    if any(arr.shape[d] != 1 for d in dims):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={arr.shape} and dimensions={tuple(dimensions)}"
        )
    batch, sparse, dense = _kinds(arr)
    last = arr.n_sparse - 1
    of_batch = {d for d in dims if d in batch}
    data = lax.squeeze(arr.data, sorted({*of_batch, *[d - last for d in dims if d in dense]}))
    indices = lax.squeeze(arr.indices, sorted(of_batch))
    kept = [d - arr.n_batch for d in sparse if d not in dims]
    if len(kept) < arr.n_sparse:
        indices = _columns(indices, kept)
    shape = tuple(n for d, n in enumerate(arr.shape) if d not in dims)
    return BCOO((data, indices), **known_info(arr, shape=shape))


# -- bcoo_slice, bcoo_dynamic_slice, bcoo_gather ------------------------------------------------


def _cut(mat: BCOO, data: Any, indices: Any, keep: Any, shape: tuple) -> BCOO:
    """The elements that are kept; the others are zeros out of bounds, and left out if they can be.

    There are no more elements than places in the new shape.
    """
    sizes = [shape[d] for d in _kinds(mat)[1]]
    if keep is not None:
        bound = jnp.asarray(sizes, indices.dtype)
        indices = jnp.where(keep[..., None], indices, bound).astype(indices.dtype)
        data = jnp.where(_over_dense(keep, data), data, jnp.zeros_like(data, shape=()))
    out = BCOO((data, indices), shape=shape)
    if not sizes or out.nse <= prod(sizes):
        return out
    out = bcoo_sum_duplicates(out, nse=prod(sizes))
    return BCOO((out.data, out.indices), shape=shape)


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:  # fmt: skip
    """A slice with static bounds; see `lax.slice`. ValueError for bounds that do not fit."""
    starts, limits = ([operator.index(i) for i in x] for x in (start_indices, limit_indices))
    steps = [1] * mat.ndim if strides is None else [operator.index(i) for i in strides]
    if len(steps) != mat.ndim:
        raise ValueError(f"len(strides) = {len(steps)}; expected {mat.ndim}")
    if any(step <= 0 for step in steps):
        raise ValueError(f"strides must be a sequence of positive integers; got {steps}")
    fits = len(starts) == len(limits) == mat.ndim and all(
        0 <= a <= b <= n for a, b, n in zip(starts, limits, mat.shape, strict=True)
    )
    if not fits:
        raise ValueError(
            f"bcoo_slice: invalid indices. Got start_indices={starts}, limit_indices={limits} and "
            f"shape={mat.shape}"
        )
    bounds = list(zip(starts, limits, steps, strict=True))
    shape = tuple(-(-(b - a) // step) for a, b, step in bounds)
    batch, sparse, dense = _kinds(mat)
    cut = [slice(*bounds[d]) for d in range(mat.ndim)]
    of_batch = lambda x: [slice(None) if x.shape[d] == 1 != mat.shape[d] else cut[d] for d in batch]
    data = mat.data[(*of_batch(mat.data), slice(None), *[cut[d] for d in dense])]
    indices = mat.indices[tuple(of_batch(mat.indices))]
    chosen = [bounds[d] for d in sparse]
    whole = [(0, mat.shape[d], 1) for d in sparse]
    if chosen == whole:
        return _cut(mat, data, indices, None, shape)
    first, end, step = (np.asarray(x, indices.dtype) for x in zip(*chosen, strict=True))
    keep = (indices >= first) & (indices < end)
    if max(step) > 1:
        keep &= (indices - first) % step == 0
    return _cut(mat, data, (indices - first) // step, jnp.all(keep, axis=-1), shape)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A slice of static size where the indices say, which are clamped; see `lax.dynamic_slice`."""
    sizes = tuple(operator.index(n) for n in slice_sizes)
    starts = [start_indices[i] for i in range(len(start_indices))]
    _check_dynamic(mat, starts, sizes)
    batch, sparse, dense = _kinds(mat)
    starts = [jnp.asarray(s) for s in starts]
    starts = [
        jnp.clip(jnp.where(s < 0, s + n, s), 0, n - size) if s.dtype.kind != "u" else
        jnp.minimum(s, n - size)
        for s, n, size in zip(starts, mat.shape, sizes, strict=True)
    ]  # fmt: skip
    kept = lambda x, d: x.shape[d] == 1 != mat.shape[d]
    zero = jnp.zeros_like(starts[0]) if starts else None

    def cut(x, others):
        at = [zero if kept(x, d) else starts[d] for d in batch]
        many = [1 if kept(x, d) else sizes[d] for d in batch]
        rest = [(zero, x.shape[mat.n_batch]), *[(starts[d], sizes[d]) for d in others]]
        if x is mat.indices:
            rest.append((zero, mat.n_sparse))
        at, many = at + [a for a, _ in rest], many + [n for _, n in rest]
        if tuple(many) == x.shape:
            return x
        return lax.dynamic_slice(x, at, many)

    if not starts:
        return mat
    data, indices = cut(mat.data, dense), cut(mat.indices, ())
    if not sparse:
        return _cut(mat, data, indices, None, sizes)
    first = jnp.stack([starts[d] for d in sparse]).astype(indices.dtype)
    count = np.asarray([sizes[d] for d in sparse], indices.dtype)
    bound = as_row([mat.shape[d] for d in sparse], indices.dtype)
    keep = jnp.all((indices >= first) & (indices < first + count) & (indices < bound), axis=-1)
    return _cut(mat, data, indices - first, keep, sizes)


def _check_dynamic(mat: BCOO, starts: Sequence[Any], sizes: Sequence[int]) -> None:
    if len(starts) != mat.ndim or len(sizes) != mat.ndim:
        raise ValueError(
            "Length of slice indices must match number of operand dimensions "
            f"({len(starts)} vs {mat.shape})"
        )
    found = [jnp.asarray(s).dtype for s in starts]
    if any(not jnp.issubdtype(d, np.integer) for d in found):
        shown = ", ".join(d.name for d in found)
        raise TypeError(
            f"index arguments to dynamic_slice must be integers of the same type, got: {shown}"
        )
    if any(n < 0 for n in sizes):
        raise TypeError(
            "slice slice_sizes must be greater than or equal to zero, got slice_sizes of "
            f"{tuple(sizes)}."
        )
    if any(n > size for n, size in zip(sizes, mat.shape, strict=True)):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
            f"{tuple(sizes)} for operand shape {mat.shape}."
        )


def bcoo_gather(
    operand: BCOO,
    start_indices: Array,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """Windows cut out of the array, which are clamped to it; see `lax.gather`.

    The dimensions of the windows' places become batch dimensions, if they come first in the result.
    NotImplementedError for operands with batching dimensions.
    """
    numbers = dimension_numbers
    if numbers.operand_batching_dims or numbers.start_indices_batching_dims:
        raise NotImplementedError(
            "bcoo_gather: batching dimensions. Use vmap over the arrays instead."
        )
    start_indices = jnp.asarray(start_indices)
    batch = start_indices.ndim - 1
    order = list(numbers.start_index_map)

    def window(at):
        zero = jnp.zeros_like(at, shape=())
        starts = [at[order.index(d)] if d in order else zero for d in range(operand.ndim)]
        found = bcoo_dynamic_slice(operand, starts, slice_sizes)
        return bcoo_squeeze(found, dimensions=tuple(numbers.collapsed_slice_dims))

    for _ in range(batch):
        window = vmap(window)
    out = window(start_indices)
    out = BCOO((out.data, out.indices), shape=out.shape)
    offsets = tuple(numbers.offset_dims)
    places = iter(range(batch))
    rest = iter(range(batch, out.ndim))
    permutation = tuple(next(rest) if d in offsets else next(places) for d in range(out.ndim))
    if permutation == tuple(range(out.ndim)):
        return out
    out = bcoo_update_layout(out, n_batch=0, n_dense=0)
    return bcoo_transpose(out, permutation=permutation)


# -- bcoo_reduce_sum ----------------------------------------------------------------------------


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over dimensions, as an array of the others; see `lax.reduce_sum`.

    Elements that come to stand at one place are not added: see `sum_duplicates`.
    """
    axes = sorted({operator.index(a) for a in axes})
    assert all(0 <= a < mat.ndim for a in axes), f"axes={axes} for shape={mat.shape}"
    batch, sparse, dense = _kinds(mat)
    last = mat.n_sparse - 1
    data = mat.data if axes else jnp.copy(mat.data)  # another array, as every sum is
    of_dense = [a - last for a in axes if a in dense]
    if of_dense:
        data = data.sum(of_dense, dtype=data.dtype)
    indices = mat.indices
    gone = [a for a in axes if a in sparse]
    if axes and sparse:
        bound = jnp.asarray([mat.shape[d] for d in sparse], indices.dtype)
        inside = jnp.all(indices < bound, axis=-1)
        data = jnp.where(_over_dense(inside, data), data, jnp.zeros_like(data, shape=()))
    if gone:
        indices = _columns(indices, [d - mat.n_batch for d in sparse if d not in gone])
    of_batch = [a for a in axes if a in batch]
    if of_batch:
        sizes = mat.shape[: mat.n_batch]
        kept = [d for d in batch if d not in of_batch]

        def merged(x):
            x = jnp.broadcast_to(x, (*sizes, *x.shape[mat.n_batch :]))
            x = jnp.transpose(x, (*kept, *of_batch, *range(mat.n_batch, x.ndim)))
            nse = prod(x.shape[len(kept) : mat.n_batch + 1])
            return x.reshape((*x.shape[: len(kept)], nse, *x.shape[mat.n_batch + 1 :]))

        data, indices = merged(data), merged(indices)
    return BCOO((data, indices), shape=tuple(n for d, n in enumerate(mat.shape) if d not in axes))


check_arguments_of(globals())
