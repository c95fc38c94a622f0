"""Where a kernel stands in its grid: `program_id` and `num_programs`.

While a kernel is recorded it is the innermost of `_kernels`, and the indices that it asks for
become equations of its own program, whichever part of it is being recorded. While the loop over the
grid is recorded, the indices of its step take the place of these equations.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.core.trace import Trace

__all__ = [
    "in_kernel", "in_step", "num_programs", "num_programs_p", "program_id", "program_id_p",
]  # fmt: skip


class _Kernel(NamedTuple):
    trace: Trace
    grid: tuple[Any, ...]


class _State(threading.local):
    def __init__(self):
        self.kernels: list[_Kernel] = []
        self.step: tuple[Sequence[Any], Sequence[Any]] | None = None


class _GridName:
    """Stands among the names of axes for the grid of a kernel."""

    def __repr__(self) -> str:
        return "the grid of a kernel"


_state = _State()
_GRID = _GridName()


@contextmanager
def in_kernel(grid: tuple[Any, ...]):
    """Record a kernel over this grid within the context; None stands for an unknown size.

    The grid is part of the context, so that no function that asked for a size is found recorded for
    another grid.
    """
    context = local.context
    _state.kernels.append(_Kernel(context.trace, grid))
    saved, _state.step = _state.step, None
    axes, context.axes = context.axes, (*context.axes, (_GRID, grid))
    context.refresh_key()
    try:
        yield
    finally:
        _state.kernels.pop()
        _state.step = saved
        context.axes = axes
        context.refresh_key()


@contextmanager
def in_step(ids: Sequence[Any], sizes: Sequence[Any]):
    """Evaluate a kernel at the step of these indices of a grid of these sizes, within the context."""
    saved, _state.step = _state.step, (ids, sizes)
    try:
        yield
    finally:
        _state.step = saved


class _GridPrimitive(Primitive):
    """An index, or a size, of the grid: known within a step."""

    __slots__ = ("place",)

    def __init__(self, name: str, place: int):
        super().__init__(name)
        self.place = place

    def bind(self, *, axis):
        step = _state.step
        if step is not None:
            return step[self.place][axis]
        return super().bind(axis=axis)


program_id_p = _GridPrimitive("program_id", 0)
num_programs_p = _GridPrimitive("num_programs", 1)
for _primitive in (program_id_p, num_programs_p):
    _primitive.shape_rule(lambda *, axis: ShapedArray((), np.dtype(np.int32)))
    _primitive.jvp(no_rule("it has no operands"))
    _primitive.transpose(no_rule("it has no operands"))
    _primitive.batch(no_rule("it has no operands"))
    _primitive.lower(
        no_rule("it has a meaning only in a kernel, which the loop over its grid gives")
    )


def _kernel_of(name: str, axis: int) -> tuple[_Kernel, int]:
    """The kernel that is recorded, and the axis counted from the front."""
    if not _state.kernels:
        raise AssertionError(
            f"pl.{name} is for kernels: call it in a function that pallas_call is given."
        )
    kernel = _state.kernels[-1]
    if not -len(kernel.grid) <= axis < len(kernel.grid):
        raise ValueError(f"Axis {axis} is out of bounds for grid {kernel.grid}")
    return kernel, axis % len(kernel.grid)


def program_id(axis: int) -> Array:
    """The index of the present step along an axis of the grid, an int32."""
    kernel, axis = _kernel_of("program_id", axis)
    return kernel.trace.record(program_id_p, (), {"axis": axis})


def num_programs(axis: int) -> int | Array:
    """The size of the grid along an axis: an int, or an int32 if it is not known."""
    kernel, axis = _kernel_of("num_programs", axis)
    size = kernel.grid[axis]
    return size if size is not None else kernel.trace.record(num_programs_p, (), {"axis": axis})
