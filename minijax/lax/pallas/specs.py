"""The specs of a kernel: memory spaces, blocks of arrays, and the grid that it runs over.

Data only: `mapping` makes of it how an array is cut.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.features.references.cells import AbstractRef

__all__ = [
    "ANY", "BlockDim", "BlockSpec", "Blocked", "BoundedSlice", "Buffered", "CompilerParams",
    "CostEstimate", "DeviceIdType", "Element", "GridSpec", "HOST", "MemoryRef", "MemorySpace",
    "NoBlockSpec", "RevisitMode", "SemaphoreType", "Space", "Squeezed", "no_block_spec", "semaphore",
    "squeezed",
]  # fmt: skip

# -- memory ---------------------------------------------------------------------------------------


class Space(enum.Enum):
    """The base of the kinds of memory: called with a shape and a dtype, one is a place in it."""

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        aval = ShapedArray(tuple(shape), dtypes.canonicalize_dtype(dtype))
        return MemoryRef(aval, self)

    def __str__(self) -> str:
        return self.value


class MemorySpace(Space):
    """Kinds of memory that every device has. Interpreted, all are the same."""

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


ANY = MemorySpace.ANY
HOST = MemorySpace.HOST


class semaphore(np.generic):
    """The kind of dtype of semaphores. Interpreted, they count as int32."""


class SemaphoreType(enum.Enum):
    """Kinds of semaphores, as scratch shapes: one, or called with a shape an array of them."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        return MemoryRef(ShapedArray(tuple(shape), np.dtype(np.int32)), Semaphores.SEMAPHORE)

    def get_ref_aval(self) -> AbstractRef:
        return self(()).get_ref_aval()

    def get_array_aval(self) -> ShapedArray:
        return self(()).inner_aval


class Semaphores(Space):
    """The memory of semaphores, which start at zero."""

    SEMAPHORE = "semaphore_mem"


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """A place in memory of some type, as a scratch shape."""

    inner_aval: ShapedArray
    memory_space: Any

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)

    def get_array_aval(self) -> ShapedArray:
        return self.inner_aval

    def get_ref_aval(self) -> AbstractRef:
        return AbstractRef(self.inner_aval, self.memory_space)


# -- how an axis is cut ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Blocked:
    """Blocks of a size side by side; the index map counts blocks."""

    block_size: int

    def __str__(self) -> str:
        return f"Blocked({self.block_size})"


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """Blocks of one element, of which the kernel sees no axis."""


@dataclasses.dataclass(frozen=True)
class Element:
    """Windows of a size; the index map gives their first element.

    `padding` is how many elements of no particular value stand before and after the array.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        if self.padding == (0, 0):
            return f"Element({self.block_size})"
        return f"Element({self.block_size}, padding={self.padding})"


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """Windows of at most a size; the index map gives a `Slice`. Not interpreted, as upstream's."""

    block_size: int

    def __repr__(self) -> str:
        return f"BoundedSlice({self.block_size})"


BlockDim = Element | Squeezed | Blocked | BoundedSlice
squeezed = Squeezed()


class RevisitMode(enum.Enum):
    """The time at which a block that is met again may be buffered: at the next step only, or at
    any.
    """

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """The number of buffers that a pipeline has for a block. Interpreted, there is no pipeline."""

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


# -- specs ----------------------------------------------------------------------------------------


class NoBlockSpec:
    """Stands for the whole array."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()


@dataclasses.dataclass(repr=False)
class BlockSpec:
    """The cutting of an array into the blocks that a kernel sees at each step of its grid.

    - `block_shape`: for each axis a size, a `BlockDim`, or None for one that is squeezed away; the
      whole array if None
    - `index_map`: from the indices of the grid to which block it is, one integer an axis; the first
      if None
    - `memory_space`, `pipeline_mode`: for devices that have several; interpreted, of no effect
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Buffered | None = None
    _: dataclasses.KW_ONLY
    memory_space: Any | None = None

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(block_shape={self.block_shape}, index_map={self.index_map}, "
            f"memory_space={self.memory_space!r}, pipeline_mode={self.pipeline_mode})"
        )

    def __post_init__(self):
        if isinstance(self.block_shape, Iterable):  # else `pallas_call` says what is wrong
            self.block_shape = tuple(self.block_shape)

    def replace(self, **changes: Any) -> BlockSpec:
        """Return the spec with some fields changed."""
        return dataclasses.replace(self, **changes)


class GridSpec:
    """The grid of a kernel and how its operands are cut; see `pallas_call`.

    The sizes of the grid may be pairs of a name and a size; the names are `grid_names`.
    """

    num_scalar_prefetch = 0

    def __init__(
        self,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        self.grid_names = None
        if isinstance(grid, tuple) and grid and isinstance(grid[0], tuple):  # (name, size) pairs
            self.grid_names, grid = zip(*[(name, size) for name, size in grid], strict=True)
        self.grid = _checked_grid(grid)
        self.in_specs, self.out_specs = in_specs, out_specs
        self.scratch_shapes = scratch_shapes
        if type(scratch_shapes) is list:
            self.scratch_shapes = tuple(scratch_shapes)
        if isinstance(in_specs, list):
            self.in_specs = tuple(in_specs)
        elif in_specs is not no_block_spec and not isinstance(in_specs, tuple):
            raise ValueError(
                f"`in_specs` must be a tuple or a list. Found: {in_specs!r}: one for each argument."
            )
        if isinstance(out_specs, list):
            self.out_specs = tuple(out_specs)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(grid={self.grid}, grid_names={self.grid_names}, "
            f"in_specs={self.in_specs}, out_specs={self.out_specs}, "
            f"scratch_shapes={self.scratch_shapes})"
        )


def _checked_grid(grid: Any) -> tuple:
    """The sizes of a grid: integers, or scalar arrays of them."""
    if isinstance(grid, (int, np.integer)):
        grid = (grid,)
    if grid is None:
        raise TypeError("grid takes a tuple of integers, got None: give () for a single step.")
    sizes = tuple(grid)
    for size in sizes:
        whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
        scalar = isinstance(size, Array) and size.ndim == 0 and size.dtype.kind in "iu"
        if not (whole or scalar):
            raise ValueError(f"Grid must be a tuple of integers or jax.Array, got {grid}")
    return tuple([size if isinstance(size, Array) else int(size) for size in sizes])


# -- hints ----------------------------------------------------------------------------------------


class CompilerParams:
    """The base class of what a device's compiler is told. Interpreted, of no effect."""


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """The cost of a kernel as its author states it: operations, and bytes read and written."""

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def __post_init__(self):
        for name, value in vars(self).items():
            if not isinstance(value, int):
                raise ValueError(
                    f"All fields in CostEstimate must be ints. {name} is not an int: "
                    f"{value!r} of type {type(value)}."
                )

    def to_json(self) -> bytes:
        return json.dumps(dataclasses.asdict(self)).encode("ascii")


class DeviceIdType(enum.Enum):
    """The naming of a device that is signalled."""

    MESH = "mesh"
    LOGICAL = "logical"
