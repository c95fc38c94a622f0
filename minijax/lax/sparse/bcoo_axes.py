"""Arrays with a label for each axis: reading, adding and multiplying by labels.

The programs of the BCOO primitives are written with these. A batch axis that a buffer holds once
for all has no label: what reads it by labels then needs no copies. Labels are integers, for the
dimensions of a sparse array, and strings or pairs for others; `NSE` is that of the specified
elements. Source: the gather, scatter and dot_general of StableHLO, whose dimension numbers say the
same by positions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.lax.arithmetic import add, mul
from minijax.lax.compare import lt, select
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full
from minijax.lax.dot import dot_general
from minijax.lax.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    scatter_add,
)
from minijax.lax.reductions import reduce_or, reduce_sum
from minijax.lax.shapes import broadcast_in_dim, expand_dims, squeeze, transpose
from minijax.lax.sparse.info import as_row
from minijax.transforms.batching import mapped_size
from minijax.transforms.primitives import moveaxis
from minijax.transforms.vmap import vmap

__all__ = [
    "NSE", "Named", "add_at", "contract", "front", "named", "of_ones", "ordered", "over_batch",
    "summed", "take_at", "unfronted",
]  # fmt: skip

NSE = "nse"
Labels = tuple[Hashable, ...]


class Named(NamedTuple):
    """An array, and the labels of its axes."""

    array: Any
    labels: Labels

    def size(self, label: Hashable) -> int:
        """Return how long the axis of this label is."""
        return self.array.shape[self.labels.index(label)]


def named(x: Any, labels: Sequence[Hashable], n_batch: int = 0) -> Named:
    """An array with labels, without those of its first `n_batch` axes that are of size 1."""
    ones = [axis for axis in range(n_batch) if x.shape[axis] == 1]
    kept = tuple(label for axis, label in enumerate(labels) if axis not in ones)
    return Named(squeeze(x, ones) if ones else x, kept)


def ordered(x: Named, labels: Sequence[Hashable], sizes: Sequence[int]) -> Any:
    """The array with axes of these labels and sizes; it is copied along those that it has not."""
    known = [label for label in labels if label in x.labels]
    order = tuple(x.labels.index(label) for label in known)
    array = x.array if order == tuple(range(len(order))) else transpose(x.array, order)
    if tuple(array.shape) == tuple(sizes):
        return array
    places = tuple(axis for axis, label in enumerate(labels) if label in x.labels)
    return broadcast_in_dim(array, tuple(sizes), places)


def _wrapped(indices: Any, sizes: Sequence[int]) -> Any:
    """Indices where those that are negative count from the end."""
    if np.dtype(indices.dtype).itemsize < 4:  # sizes may be more than they hold
        indices = convert_element_type(indices, np.int32)
    if dtypes.issubdtype(indices.dtype, np.unsignedinteger):
        return indices
    row = as_row(sizes, indices.dtype)
    row = broadcast_in_dim(row, indices.shape, (indices.ndim - 1,))
    return select(lt(indices, full(indices.shape, 0, indices.dtype)), add(indices, row), indices)


def take_at(x: Named, indices: Named, columns: Sequence[Hashable]) -> Named:
    """The elements of `x` where its axes `columns` have the indices; zero if out of bounds.

    The indices have one more axis than labels, of one entry for each column. Axes that both have go
    together; those of the indices come first in the result.
    """
    if not columns:
        return x
    shape, shared = x.array.shape, [i for i in x.labels if i in indices.labels]
    others = tuple(i for i in x.labels if i not in shared and i not in columns)
    labels = (*indices.labels, *others)
    sizes = (*indices.array.shape[:-1], *[x.size(i) for i in others])
    at = tuple(x.labels.index(i) for i in columns)
    if 0 in sizes or 0 in shape:
        return Named(full(sizes, 0, x.array.dtype), labels)
    batching = tuple(x.labels.index(i) for i in shared)
    taken = gather(
        x.array,
        _wrapped(indices.array, [shape[axis] for axis in at]),
        GatherDimensionNumbers(
            offset_dims=tuple(range(len(indices.labels), len(labels))),
            collapsed_slice_dims=tuple(sorted(at)),
            start_index_map=at,
            operand_batching_dims=batching,
            start_indices_batching_dims=tuple(indices.labels.index(i) for i in shared),
        ),
        tuple(n if label in others else 1 for label, n in zip(x.labels, shape, strict=True)),
        mode=GatherScatterMode.FILL_OR_DROP,
        fill_value=False if x.array.dtype == np.bool_ else 0,
    )
    return Named(taken, labels)


def add_at(
    x: Named, indices: Named, columns: Sequence[Hashable], labels: Labels, sizes: Sequence[int]
) -> Any:
    """Zeros of these labels and sizes with the elements of `x` added at the indices.

    Those out of bounds are dropped. Axes that the result does not have are summed.
    """
    if not columns:
        return ordered(summed(x, labels), labels, sizes)
    held = [i for i in labels if i in columns or i in x.labels or i in indices.labels]
    whole = dict(zip(labels, sizes, strict=True))
    shape = tuple(whole[i] for i in held)
    window = [i for i in held if i not in columns and i not in indices.labels]
    order = (*indices.labels, *window)
    updates = ordered(x, order, (*indices.array.shape[:-1], *[whole[i] for i in window]))
    shared = [i for i in held if i in indices.labels]
    out = full(shape, 0, x.array.dtype)
    if 0 not in shape and 0 not in updates.shape:
        at = tuple(held.index(i) for i in columns)
        out = scatter_add(
            out,
            _wrapped(indices.array, [shape[axis] for axis in at]),
            updates,
            ScatterDimensionNumbers(
                update_window_dims=tuple(range(len(indices.labels), len(order))),
                inserted_window_dims=tuple(sorted(at)),
                scatter_dims_to_operand_dims=at,
                operand_batching_dims=tuple(held.index(i) for i in shared),
                scatter_indices_batching_dims=tuple(indices.labels.index(i) for i in shared),
            ),
            mode=GatherScatterMode.FILL_OR_DROP,
        )
    return ordered(Named(out, tuple(held)), labels, sizes)


def summed(x: Named, kept: Sequence[Hashable]) -> Named:
    """The sum over the axes that are not kept; of truth values, whether any is."""
    axes = tuple(axis for axis, label in enumerate(x.labels) if label not in kept)
    if not axes:
        return x
    reduce = reduce_or if x.array.dtype == np.bool_ else reduce_sum
    return Named(reduce(x.array, axes), tuple(i for i in x.labels if i in kept))


def contract(x: Named, y: Named, kept: Sequence[Hashable]) -> Named:
    """The product of two arrays, summed over the axes that are not kept."""
    both = [i for i in x.labels if i in y.labels]
    x, y = summed(x, (*both, *kept)), summed(y, (*both, *kept))
    batch = [i for i in both if i in kept]
    sums = [i for i in both if i not in kept]
    labels = (
        *batch,
        *[i for i in x.labels if i not in both],
        *[i for i in y.labels if i not in both],
    )
    if not sums:
        sizes = [x.size(i) if i in x.labels else y.size(i) for i in labels]
        return Named(mul(ordered(x, labels, sizes), ordered(y, labels, sizes)), labels)
    numbers = [tuple(a.labels.index(i) for i in chosen) for chosen in (sums, batch) for a in (x, y)]
    out = dot_general(
        x.array,
        y.array,
        ((numbers[0], numbers[1]), (numbers[2], numbers[3])),
        precision="highest",
    )
    return Named(out, labels)


def over_batch(fun: Callable, n_batch: int, *arrays: Any) -> Any:
    """`fun` mapped over the first axes of arrays; an axis of size 1 stands for any size.

    The axes of the results have the greatest size; they are 1 if all are.
    """
    if not n_batch:
        return fun(*arrays)
    size = max((x.shape[0] for x in arrays if x.shape[0] != 1), default=1)
    if any(x.shape[0] == 0 for x in arrays):
        size = 0
    axes = tuple(None if x.shape[0] == 1 != size else 0 for x in arrays)
    given = [squeeze(x, (0,)) if axis is None else x for x, axis in zip(arrays, axes, strict=True)]
    return vmap(lambda *parts: over_batch(fun, n_batch - 1, *parts), in_axes=axes)(*given)


# -- what rules share ---------------------------------------------------------------------------


def front(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[int, list[Any]]:
    """The mapped size, and arguments with the mapped axis first, of size 1 where they are not."""
    size = mapped_size(args, dims)
    moved = [
        expand_dims(x, (0,)) if d is None else moveaxis(x, d, 0)
        for x, d in zip(args, dims, strict=True)
    ]
    return size, moved


def unfronted(outs: Sequence[Any], size: int) -> tuple[list[Any], list[int | None]]:
    """Results that have a mapped axis, or one of size 1 that stands for all."""
    dims = [None if x.shape[0] == 1 != size else 0 for x in outs]
    return [squeeze(x, (0,)) if d is None else x for x, d in zip(outs, dims, strict=True)], dims


def of_ones(x: Any, shape: Sequence[int]) -> Any:
    """The sum of an array to a shape that has ones in places of it."""
    axes = tuple(a for a, (m, n) in enumerate(zip(x.shape, shape, strict=True)) if n == 1 != m)
    if not axes:
        return x
    kept = tuple(a for a in range(x.ndim) if a not in axes)
    return broadcast_in_dim(reduce_sum(x, axes), tuple(shape), kept)
