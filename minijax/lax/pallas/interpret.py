"""A kernel as a loop over its grid: what `pallas_call_p` computes, in other primitives.

Arrays are padded to whole blocks; each step cuts its blocks, evaluates the kernel on them, and puts
back those that it may have changed. What nobody wrote is NaN, or the least integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.staging import trace_to_jaxpr
from minijax.features.references.discharge import without_refs
from minijax.lax.arithmetic import div_p, mul_p, rem_p
from minijax.lax.control_flow.loops import fori_loop
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full
from minijax.lax.dynamic_slicing import dynamic_slice, dynamic_update_slice
from minijax.lax.pallas.grid import in_step
from minijax.lax.pallas.mapping import DYNAMIC, BlockMapping, GridMapping
from minijax.lax.pallas.specs import Blocked, BoundedSlice, Element, Semaphores, Squeezed
from minijax.lax.shapes import reshape
from minijax.lax.slicing import pad, slice
from minijax.transforms.primitives import full_like_aval

__all__ = ["interpreted", "uninitialized"]


def uninitialized(aval: Any, memory_space: Any = None) -> Any:
    """An array of the type `aval` that shows that nobody wrote it."""
    dtype = aval.dtype
    if isinstance(memory_space, Semaphores) or isinstance(dtype, dtypes.ExtendedDType):
        return full_like_aval(0, ShapedArray(aval.shape, dtype))
    return full(aval.shape, _no_value(dtype), dtype)


def _no_value(dtype: np.dtype) -> Any:
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtypes.issubdtype(dtype, np.signedinteger) and dtype != np.int16:
        return int(dtypes.iinfo(dtype).min)
    return False if dtype == np.bool_ else 0


# -- one array ------------------------------------------------------------------------------------


class _Cut:
    """The padding and cutting of an array into blocks, and back."""

    __slots__ = ("edges", "mapping", "sizes", "whole")

    def __init__(self, mapping: BlockMapping):
        self.mapping = mapping
        self.edges = [
            _edges(dim, size)
            for dim, size in zip(mapping.block_shape, mapping.array_aval.shape, strict=True)
        ]
        self.sizes = tuple([_size(dim) for dim in mapping.block_shape])
        # The block is the array, wherever it is said to start: there is room for no other.
        self.whole = self.sizes == mapping.array_aval.shape and not any(map(any, self.edges))

    def padded(self, x: Any) -> Any:
        if not any(map(any, self.edges)):
            return x
        one = ShapedArray((), self.mapping.array_aval.dtype)
        return pad(x, uninitialized(one), [(low, high, 0) for low, high in self.edges])

    def cropped(self, x: Any) -> Any:
        if not any(map(any, self.edges)):
            return x
        starts = [low for low, _ in self.edges]
        sizes = self.mapping.array_aval.shape
        return slice(x, starts, [low + n for low, n in zip(starts, sizes, strict=True)])

    def starts(self, ids: Sequence[Any], scalars: Sequence[Any]) -> list[Any] | None:
        """Return where the block of a step starts; None if it is the array."""
        if self.whole:
            return None
        closed = self.mapping.index_map
        if scalars:
            which = [*[None] * len(ids), *range(len(scalars))]
            closed = without_refs(closed, which, closed.in_avals[len(ids) :])
        found = eval_jaxpr(closed.jaxpr, closed.consts, *ids, *scalars)
        dims = self.mapping.block_shape
        return [_start(dim, x) for dim, x in zip(dims, found[: len(dims)], strict=True)]

    def block(self, x: Any, starts: Sequence[Any] | None) -> Any:
        found = x if starts is None else dynamic_slice(x, starts, self.sizes)
        return found if self.mapping.shape == self.sizes else reshape(found, self.mapping.shape)

    def put(self, x: Any, block: Any, starts: Sequence[Any] | None) -> Any:
        block = block if self.mapping.shape == self.sizes else reshape(block, self.sizes)
        return block if starts is None else dynamic_update_slice(x, block, starts)


def _size(dim: Any) -> int:
    return 1 if type(dim) is Squeezed else dim.block_size


def _edges(dim: Any, size: int) -> tuple[int, int]:
    """Return how many elements are put before and after an axis."""
    if type(dim) is BoundedSlice:
        raise ValueError(
            f"Unsupported block dim type: {BoundedSlice}: interpreted kernels take windows of one "
            "size, pl.Element."
        )
    if type(dim) is Squeezed:
        return 0, 0
    if type(dim) is Element:
        low, high = dim.padding
        return low, max(high, dim.block_size - size - low)
    block = dim.block_size
    return 0, max(-size % block, block - size) if block else 0


def _start(dim: Any, index: Any) -> Any:
    if type(dim) is not Blocked or dim.block_size == 1:
        return np.int32(index) if isinstance(index, int) else index
    if isinstance(index, (int, np.integer)):
        return np.int32(int(index) * dim.block_size)
    return mul_p.bind(index, np.int32(dim.block_size))


# -- the loop -------------------------------------------------------------------------------------


def _ids(step: Any, sizes: Sequence[Any]) -> list[Any]:
    """The indices of a step of the grid, whose last dimension goes fastest."""
    found: list[Any] = []
    many = [size for size in sizes if not (isinstance(size, int) and size == 1)]
    for size in reversed(sizes):
        if isinstance(size, int) and size == 1:
            found.append(np.int32(0))
            continue
        many.pop()
        if not many:
            found.append(step)
            continue
        size = np.int32(size) if isinstance(size, int) else size
        found.append(rem_p.bind(step, size))
        step = div_p.bind(step, size)
    return found[::-1]


def _steps(sizes: Sequence[Any]) -> Any:
    """Return how many steps a grid has."""
    known = prod([max(size, 0) for size in sizes if isinstance(size, int)])
    total: Any = known
    for size in sizes:
        if not isinstance(size, int):
            total = mul_p.bind(size, np.int32(total) if isinstance(total, int) else total)
    return total


class _Loop:
    """The steps of one kernel."""

    def __init__(self, kernel: ClosedJaxpr, mapping: GridMapping, sizes: Sequence[Any]):
        self.mapping, self.sizes = mapping, sizes
        avals = kernel.in_avals
        self.pure = without_refs(kernel, range(len(avals)), avals)
        jaxpr = self.pure.jaxpr
        self.changed = [x is not y for x, y in zip(jaxpr.invars, jaxpr.outvars, strict=True)]
        self.cuts = [_Cut(m) for m in mapping.block_mappings]

    def run(self, scalars: Sequence[Any], arrays: Sequence[Any], scratch: Sequence[Any]) -> list:
        """The arrays, then scratch, after all steps."""
        state = [*scalars, *arrays, *scratch]
        total = _steps(self.sizes)
        if isinstance(total, int) and total <= 1:
            return self.step(np.int32(0), state) if total == 1 else state
        if not isinstance(total, int) and get_aval(total).dtype != np.int32:
            total = convert_element_type(total, np.int32)
        moving = [n for n, flag in enumerate(self.changed) if flag]

        def body(i, values):
            given = list(state)
            for n, x in zip(moving, values, strict=True):
                given[n] = x
            found = self.step(i, given)
            return [found[n] for n in moving]

        start, stop = (0, total) if isinstance(total, int) else (np.int32(0), total)
        found = fori_loop(start, stop, body, [state[n] for n in moving])
        for n, x in zip(moving, found, strict=True):
            state[n] = x
        return state

    def step(self, i: Any, state: Sequence[Any]) -> list[Any]:
        i = i if get_aval(i).dtype == np.int32 else convert_element_type(i, np.int32)
        i = convert_element_type(i, np.int32) if get_aval(i).weak_type else i
        mapping = self.mapping
        count, end = mapping.num_index_operands, mapping.num_index_operands + len(self.cuts)
        ids = _ids(i, self.sizes)
        scalars, arrays, scratch = state[:count], state[count:end], state[end:]
        starts = [cut.starts(ids, scalars) for cut in self.cuts]
        blocks = [
            cut.block(x, place) for cut, x, place in zip(self.cuts, arrays, starts, strict=True)
        ]
        kept = mapping.vmapped
        with in_step(ids[kept:], self.sizes[kept:]):
            found = eval_jaxpr(self.pure.jaxpr, self.pure.consts, *scalars, *blocks, *scratch)
        arrays = [
            cut.put(x, new, place) if changed else x
            for cut, x, new, place, changed in zip(
                self.cuts, arrays, found[count:end], starts, self.changed[count:end], strict=True
            )
        ]
        return [*found[:count], *arrays, *found[end:]]


def interpreted(
    kernel: ClosedJaxpr, mapping: GridMapping, aliases: Sequence[tuple[int, int]], *args: Any
) -> list[Any]:
    """The outputs of a kernel for operands: sizes of the grid, scalars, inputs."""
    bounds = iter(args)
    sizes = [next(bounds) if size is DYNAMIC else size for size in mapping.grid]
    sizes = [
        convert_element_type(size, np.int32)
        if not isinstance(size, int) and get_aval(size).dtype != np.int32
        else size
        for size in sizes
    ]
    rest = args[mapping.num_dynamic :]
    scalars, inputs = rest[: mapping.num_index_operands], rest[mapping.num_index_operands :]
    given = {out: rest[operand] for operand, out in aliases}
    outputs = [
        given[n] if n in given else uninitialized(m.array_aval)
        for n, m in enumerate(mapping.outputs)
    ]
    loop = _Loop(kernel, mapping, sizes)
    arrays = [cut.padded(x) for cut, x in zip(loop.cuts, [*inputs, *outputs], strict=True)]
    first = mapping.num_index_operands + len(arrays)
    scratch = [uninitialized(aval, aval.memory_space) for aval in kernel.in_avals[first:]]
    found = loop.run(scalars, arrays, scratch)[mapping.num_index_operands : first]
    cuts = loop.cuts[mapping.num_inputs :]
    return [cut.cropped(x) for cut, x in zip(cuts, found[mapping.num_inputs :], strict=True)]


def interpreted_jaxpr(
    kernel: ClosedJaxpr, mapping: GridMapping, aliases: tuple, avals: Sequence[Any], key: Any
) -> ClosedJaxpr:
    """`interpreted` as a program, which is kept with the kernel."""
    make = lambda: trace_to_jaxpr(
        lambda *args: interpreted(kernel, mapping, aliases, *args), avals, kernel.jaxpr.debug_info
    )
    return kernel.derive(("interpreted", mapping, aliases, tuple(avals), key), make)
