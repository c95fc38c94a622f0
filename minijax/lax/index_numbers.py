"""The roles of axes in a gather or a scatter: the descriptions, and what they must satisfy.

A gather cuts a window of `slice_sizes` out of the operand at each row of its indices; a scatter
combines a window of its updates into the operand at each. The numbers are those of StableHLO, with
the last axis of the indices as the index vector.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers"]


class GatherDimensionNumbers(NamedTuple):
    """Correspondence between the axes of the operand, the indices and the result of a gather.

    - `offset_dims`: axes of the result's shape that run over a window
    - `collapsed_slice_dims`: axes of the operand with windows of size 1, left out of the result
    - `start_index_map`: the operand's axis that each entry of an index vector is for
    - `operand_batching_dims`, `start_indices_batching_dims`: paired axes of the operand and the
      indices

    Source: the StableHLO attribute `gather`.

    >>> lax.GatherDimensionNumbers((), (0,), (0,)).start_index_map
    (0,)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Correspondence between the axes of the operand, the indices and the updates of a scatter.

    - `update_window_dims`: axes of the updates' shape that run over a window
    - `inserted_window_dims`: axes of the operand with windows of size 1, missing in the updates
    - `scatter_dims_to_operand_dims`: the operand's axis that each entry of an index vector is for
    - `operand_batching_dims`, `scatter_indices_batching_dims`: paired axes of operand and indices

    Source: the StableHLO attribute `scatter`.

    >>> lax.ScatterDimensionNumbers((), (0,), (0,)).inserted_window_dims
    (0,)
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class GatherScatterMode(enum.Enum):
    """Choice of how a gather or scatter treats windows that exceed the operand's shape.

    - `CLIP`: windows are moved until they lie within
    - `FILL_OR_DROP`: a gather gives a fill value for them, a scatter leaves them out
    - `PROMISE_IN_BOUNDS`: the caller promises that there are none
    - `ONE_HOT`: multiplication with one-hot vectors; no operation here accepts it

    Source: the StableHLO operations `gather` and `scatter`, which clip or drop.

    >>> lax.GatherScatterMode.from_any("clip").name
    'CLIP'
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode that a name stands for; None is "fill". ValueError for another name."""
        if isinstance(s, GatherScatterMode):
            return s
        try:
            return _MODES[s]
        except (KeyError, TypeError):
            names = ", ".join([repr(name) for name in _MODES])
            raise ValueError(f'Unknown gather mode "{s}": mode is one of {names}.') from None


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


def window_to_gather(
    numbers: ScatterDimensionNumbers, operand: tuple[int, ...], updates: tuple[int, ...]
) -> tuple[GatherDimensionNumbers, tuple[int, ...]]:
    """The gather that reads what a scatter writes, and the sizes of its windows."""
    gather = GatherDimensionNumbers(
        offset_dims=tuple(numbers.update_window_dims),
        collapsed_slice_dims=tuple(numbers.inserted_window_dims),
        start_index_map=tuple(numbers.scatter_dims_to_operand_dims),
        operand_batching_dims=tuple(numbers.operand_batching_dims),
        start_indices_batching_dims=tuple(numbers.scatter_indices_batching_dims),
    )
    return gather, window_sizes(numbers, operand, updates)


def window_sizes(
    numbers: ScatterDimensionNumbers, operand: tuple[int, ...], updates: tuple[int, ...]
) -> tuple[int, ...]:
    """The size of a scatter's window along each axis of the operand."""
    window = iter(numbers.update_window_dims)
    absent = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    return tuple([1 if d in absent else updates[next(window)] for d in range(len(operand))])


# -- checks --------------------------------------------------------------------------------------


_MAPPINGS = {
    "start_index_map": "start_index_map",
    "scatter_dims_to_operand_dims": "scatter_dims_to_operand_dims mapping",
}


class _Checker:
    """Raises TypeError that name the operation and show its operands."""

    def __init__(self, op: str, operand: ShapedArray, indices: ShapedArray, numbers: NamedTuple):
        self.op, self.operand, self.indices, self.numbers = op, operand, indices, numbers

    def require(self, condition: bool, message: str) -> None:
        if not condition:
            raise TypeError(
                f"{message}. The operand of {self.op} has shape {self.operand.shape}, the indices "
                f"{self.indices.shape}; the dimension numbers are {self.numbers}."
            )

    def axes(self, name: str, dims: Sequence[int], limit: int, *, ordered: bool = True) -> None:
        """Axes within a rank, without repeats and, unless said otherwise, in order."""
        for place, d in enumerate(dims):
            wrong = f"Invalid {name} set in {self.op} op; valid range is [0, {limit}); got: {d}"
            if name == "offset_dims":
                wrong = (
                    f"Offset dimension {place} in {self.op} op is out of bounds; got {d}, but should "
                    f"have been in [0, {limit})"
                )
            elif name in _MAPPINGS:
                wrong = f"Invalid {_MAPPINGS[name]}; domain is [0, {limit}), got: {place}->{d}"
            self.require(0 <= d < limit, wrong)
        op, dims = f"{name} in {self.op} op", tuple(dims)
        if ordered:
            self.require(list(dims) == sorted(dims), f"{op} must be sorted; got {dims}")
        self.require(len(set(dims)) == len(dims), f"{op} must not repeat; got: {dims}")

    def disjoint(self, a: str, first: Sequence[int], b: str, second: Sequence[int]) -> None:
        self.require(
            not set(first) & set(second),
            f"{a} and {b} must be disjoint, got {tuple(first)} and {tuple(second)}",
        )

    def index_vectors(
        self, name: str, index_map: Sequence[int], batching_name: str, batching: Sequence[int]
    ) -> None:
        """Check the indices, and the axes they are for, as both operations require."""
        indices, operand = self.indices, self.operand
        if not dtypes.issubdtype(indices.dtype, np.integer):
            raise ValueError(
                f"indices must have an integer type: those of {self.op} are {indices.str_short()}; "
                "convert them with .astype('int32')."
            )
        title = self.op.capitalize()
        self.require(
            indices.ndim > 0,
            f"{title} index leaf dimension must be within [0, rank(indices) + 1). rank(indices) is 0: "
            "indices must have at least one axis, the index vector",
        )
        self.require(
            len(index_map) == indices.shape[-1],
            f"{title} op has {len(index_map)} elements in {name} and the bound of dimension "
            f"index_vector_dim={indices.ndim - 1} of indices is {indices.shape[-1]}. These two "
            "numbers must be equal",
        )
        self.axes(name, index_map, operand.ndim, ordered=False)
        operand_batching = self.numbers.operand_batching_dims
        self.axes("operand_batching_dims", operand_batching, operand.ndim)
        self.axes(batching_name, batching, indices.ndim - 1, ordered=False)
        self.disjoint("operand_batching_dims", operand_batching, name, index_map)
        self.require(
            len(batching) == len(operand_batching)
            and all(
                operand.shape[d] == indices.shape[i]
                for d, i in zip(operand_batching, batching, strict=False)
            ),
            f"operand_batching_dims {tuple(operand_batching)} and {batching_name} "
            f"{tuple(batching)} must pair axes of equal size",
        )


def gather_shape(
    operand: ShapedArray,
    indices: ShapedArray,
    numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
) -> tuple[int, ...]:
    """The shape of the result of a gather. TypeError if the numbers do not fit the operands."""
    check = _Checker("gather", operand, indices, numbers)
    check.index_vectors(
        "start_index_map",
        numbers.start_index_map,
        "start_indices_batching_dims",
        numbers.start_indices_batching_dims,
    )
    collapsed, batching = numbers.collapsed_slice_dims, numbers.operand_batching_dims
    rank = len(numbers.offset_dims) + indices.ndim - 1
    check.axes("offset_dims", numbers.offset_dims, rank)
    check.axes("collapsed_slice_dims", collapsed, operand.ndim)
    check.disjoint("collapsed_slice_dims", collapsed, "operand_batching_dims", batching)
    sizes = tuple(slice_sizes)
    check.require(
        len(sizes) == operand.ndim,
        "Gather op must have one slice size for every input dimension; got: "
        f"len(slice_sizes)={len(sizes)}, input_shape.rank={operand.ndim}",
    )
    for place, (size, bound) in enumerate(zip(sizes, operand.shape, strict=True)):
        check.require(
            0 <= size <= bound,
            f"Slice size at index {place} in gather op is out of range, must be within [0, {bound} "
            f"+ 1), got {size}",
        )
    for place, d in enumerate(collapsed):
        check.require(
            sizes[d] == 1,
            f"Gather op can only collapse slice dims with bound 1, but bound is {sizes[d]} for index "
            f"{d} at position {place}",
        )
    check.require(
        all(sizes[d] <= 1 for d in batching),
        f"slice_sizes must be 1 on operand_batching_dims, got {sizes}",
    )
    absent = {*collapsed, *batching}
    window = [size for d, size in enumerate(sizes) if d not in absent]
    check.require(
        len(window) == len(numbers.offset_dims),
        "offset_dims must be as many as the axes of the operand that are neither collapsed nor "
        "batching",
    )
    rows, offsets = iter(indices.shape[:-1]), set(numbers.offset_dims)
    sizes_left = iter(window)
    return tuple([next(sizes_left) if d in offsets else next(rows) for d in range(rank)])


def check_scatter(
    operand: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    numbers: ScatterDimensionNumbers,
) -> None:
    """TypeError if the numbers of a scatter do not fit its operands."""
    check = _Checker("scatter", operand, indices, numbers)
    check.index_vectors(
        "scatter_dims_to_operand_dims",
        numbers.scatter_dims_to_operand_dims,
        "scatter_indices_batching_dims",
        numbers.scatter_indices_batching_dims,
    )
    window_dims, inserted = numbers.update_window_dims, numbers.inserted_window_dims
    batching = numbers.operand_batching_dims
    rank = len(window_dims) + indices.ndim - 1
    check.require(
        updates.ndim == rank,
        f"Updates tensor must be of rank {rank}; got {updates.ndim}. Its shape is {updates.shape}",
    )
    check.axes("update_window_dims", window_dims, rank)
    check.axes("inserted_window_dims", inserted, operand.ndim)
    check.disjoint("inserted_window_dims", inserted, "operand_batching_dims", batching)
    absent = {*inserted, *batching}
    bounds = [size for d, size in enumerate(operand.shape) if d not in absent]
    check.require(
        len(bounds) == len(window_dims),
        f"Scatter op has window of size {len(window_dims) + len(absent)}; doesn't match operand of "
        f"rank {operand.ndim}",
    )
    for d, bound in zip(window_dims, bounds, strict=True):
        check.require(
            updates.shape[d] <= bound,
            "Bounds of the window dimensions of updates must not exceed the bounds of the "
            f"corresponding dimensions of operand. For dimension {d}, updates bound is "
            f"{updates.shape[d]}, operand bound is {bound}",
        )
    rows = [size for d, size in enumerate(updates.shape) if d not in window_dims]
    for d, (size, bound) in enumerate(zip(rows, indices.shape[:-1], strict=True)):
        check.require(
            size == bound,
            "Bounds of the scatter dimensions of updates must be the same as the bounds of the "
            f"corresponding dimensions of scatter indices. For scatter dimension {d}, updates bound "
            f"is {size}, indices bound is {bound}",
        )
