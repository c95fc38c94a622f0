"""How the arrays of a kernel are cut over its grid: specs, checked against the types of arrays.

A `GridMapping` is a param of `pallas_call_p`; what it holds can be transformed: mapping adds a
dimension to the grid, differentiating adds tangents to the arrays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arguments.functions import fun_name
from minijax.core.avals import ShapedArray
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo, eval_jaxpr
from minijax.core.staging import trace_to_jaxpr
from minijax.features.references.cells import AbstractRef
from minijax.lax.convert import convert_element_type
from minijax.lax.dynamic_slices import Slice
from minijax.lax.pallas.specs import (
    Blocked,
    BlockSpec,
    BoundedSlice,
    Element,
    MemorySpace,
    NoBlockSpec,
    Squeezed,
    no_block_spec,
)

__all__ = [
    "BlockMapping", "DYNAMIC", "GridMapping", "INDEX", "block_mapping", "named", "spec_leaves",
]  # fmt: skip

INDEX = ShapedArray((), np.dtype(np.int32))  # the type of indices of a grid


class _Dynamic:
    """Stands in a grid for a size that is an operand."""

    def __repr__(self) -> str:
        return "DynamicGridDim"


DYNAMIC = _Dynamic()


@dataclasses.dataclass(frozen=True, eq=False)
class BlockMapping:
    """The cutting of one array: `index_map` is a program of the indices of the grid, and of
    references to the scalars that are known before a step.
    """

    block_shape: tuple[Any, ...]
    index_map: ClosedJaxpr
    array_aval: ShapedArray
    memory_space: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a block as the kernel sees it."""
        return tuple([d.block_size for d in self.block_shape if type(d) is not Squeezed])

    @property
    def ref_aval(self) -> AbstractRef:
        inner = ShapedArray(self.shape, self.array_aval.dtype)
        return AbstractRef(inner, self.memory_space)

    def __repr__(self) -> str:
        return f"BlockMapping(block_shape={self.block_shape!r})"

    def mapped(self, axis: int | None, size: int) -> BlockMapping:
        """The mapping under one more dimension of the grid, the first, which goes over an axis."""
        closed = self.index_map

        def index_map(step, *rest):
            found = eval_jaxpr(closed.jaxpr, closed.consts, *rest)
            if axis is not None:
                found.insert(axis, step)
            return found

        made = trace_to_jaxpr(index_map, [INDEX, *closed.in_avals], closed.jaxpr.debug_info)
        if axis is None:
            return dataclasses.replace(self, index_map=made)
        shape, sizes = list(self.block_shape), list(self.array_aval.shape)
        shape.insert(axis, Squeezed())
        sizes.insert(axis, size)
        aval = ShapedArray(tuple(sizes), self.array_aval.dtype)
        return BlockMapping(tuple(shape), made, aval, self.memory_space)


@dataclasses.dataclass(frozen=True, eq=False)
class GridMapping:
    """The grid, how inputs and outputs are cut, and how many operands of each kind there are.

    Operands are the sizes of the grid that are not known, `num_index_operands` arrays of scalars,
    and the inputs. `vmapped` dimensions of the grid are not the kernel's.
    """

    grid: tuple[Any, ...]
    block_mappings: tuple[BlockMapping, ...]
    num_index_operands: int
    num_inputs: int
    vmapped: int = 0

    @property
    def num_dynamic(self) -> int:
        return sum(size is DYNAMIC for size in self.grid)

    @property
    def num_outputs(self) -> int:
        return len(self.block_mappings) - self.num_inputs

    @property
    def inputs(self) -> tuple[BlockMapping, ...]:
        return self.block_mappings[: self.num_inputs]

    @property
    def outputs(self) -> tuple[BlockMapping, ...]:
        return self.block_mappings[self.num_inputs :]

    def __repr__(self) -> str:
        return f"GridMapping(grid={self.grid!r}, block_mappings={self.block_mappings!r})"


def named(fun: Callable) -> str:
    """A function in messages: its name and where it is written."""
    code = getattr(fun, "__code__", None)
    where = f" at {code.co_filename}:{code.co_firstlineno}" if code else ""
    return f"{fun_name(fun)}{where}"


def spec_leaves(name: str, specs: Any, tree: Any, other: str) -> list[BlockSpec]:
    """A spec for each leaf of a tree. ValueError unless they are given in the same structure."""
    if specs is no_block_spec:
        return [BlockSpec()] * tree.num_leaves
    is_leaf = lambda x: isinstance(x, (BlockSpec, NoBlockSpec))
    leaves, given = tree_util.flatten(specs, is_leaf)
    if given != tree:
        raise ValueError(
            f"Pytree for `{name}` and `{other}` do not match: {name} has the structure {given}, and "
            f"{other} {tree}. Give a BlockSpec for each array, BlockSpec() for the whole of one."
        )
    for leaf in leaves:
        if not is_leaf(leaf):
            raise AttributeError(
                f"`{name}` takes BlockSpecs, got {leaf!r} of type {type(leaf)}, which has no "
                "attribute 'memory_space'."
            )
    return [BlockSpec() if leaf is no_block_spec else leaf for leaf in leaves]


def _block_dim(size: Any) -> Any:
    if size is None:
        return Squeezed()
    if isinstance(size, (Blocked, Squeezed, Element, BoundedSlice)):
        return size
    if isinstance(size, (int, np.integer)) and size >= 0:
        return Blocked(int(size))
    raise ValueError(
        f"A block has sizes that are integers and not negative, None or BlockDims, got {size!r}."
    )


def block_mapping(
    spec: BlockSpec, aval: ShapedArray, origin: str, grid_size: int, scalars: tuple[Any, Sequence]
) -> BlockMapping:
    """Return how an array of this type is cut. ValueError if the spec does not fit it.

    `scalars` are the structure and the types of what index maps are given beside indices.
    """
    if spec.block_shape is None:
        shape = tuple([Blocked(size) for size in aval.shape])
    else:
        shape = tuple(map(_block_dim, spec.block_shape))
    if len(shape) != aval.ndim:
        raise ValueError(
            f"Block shape for {origin} (= {shape}) must have the same number of dimensions as the "
            f"array shape {aval.shape}."
        )
    tree, scalar_avals = scalars
    in_avals = [INDEX] * grid_size + list(scalar_avals)
    index_map = spec.index_map
    if index_map is None:
        index_map = lambda *args: (0,) * len(shape)

    def flat(*leaves):
        found = index_map(*leaves[:grid_size], *tree.unflatten(leaves[grid_size:]))
        found = found if isinstance(found, (tuple, list)) else (found,)
        _check_indices(index_map, origin, shape, found)
        starts = [x.start if isinstance(x, Slice) else x for x in found]
        return [convert_element_type(x, np.int32) for x in starts]

    made = trace_to_jaxpr(flat, in_avals, DebugInfo("pallas_call index_map", fun_name(index_map)))
    if made.consts:
        raise ValueError(
            f"Index map function {named(index_map)} for {origin} must not capture constants: "
            f"{made.consts}: compute what it needs from its arguments, or pass it as a scalar that "
            "is prefetched."
        )
    inner = ShapedArray(aval.shape, aval.dtype)
    space = MemorySpace.DEFAULT if spec.memory_space is None else spec.memory_space
    return BlockMapping(shape, made, inner, space)


def _check_indices(index_map: Callable, origin: str, shape: tuple, found: Sequence[Any]) -> None:
    """ValueError unless an index map gives an integer for each axis of the array."""
    who = f"Index map function {named(index_map)} for {origin}"
    if len(found) != len(shape):
        raise ValueError(
            f"{who} must return {len(shape)} values to match block_shape={shape}. Currently "
            f"returning {len(found)} values: {tuple(found)}."
        )
    for place, (x, dim) in enumerate(zip(found, shape, strict=True)):
        if (type(dim) is BoundedSlice) != isinstance(x, Slice):
            wanted = "pl.Slice" if type(dim) is BoundedSlice else "an integer"
            raise ValueError(
                f"{who} returned a value of type {type(x)} at position {place} with block dimension "
                f"{dim!r} when it should be {wanted}."
            )
        if isinstance(x, Slice) or (isinstance(x, int) and not isinstance(x, bool)):
            continue
        aval = getattr(x, "aval", None)
        if aval is None:
            aval = np.asarray(x)
        if aval.shape or aval.dtype not in (np.int32, np.int64):
            kind = f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"
            raise ValueError(
                f"{who} must return integer scalars. Output[{place}] has type {kind}: give int32."
            )
