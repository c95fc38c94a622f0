"""`experimental.pallas.tpu`: what kernels for TPUs name and interpretation gives a meaning.

Kinds of memory are all the same; copies are done when they start.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

import minijax.numpy as jnp
from minijax import dtypes
from minijax.core.array import Array
from minijax.deprecated import moved
from minijax.lax.pallas import specs
from minijax.lax.pallas.language import semaphore_signal as _signal
from minijax.lax.pallas.language import semaphore_wait as _wait
from minijax.lax.pallas.meshes import TensorCoreMesh
from minijax.lax.pallas.specs import GridSpec, SemaphoreType, no_block_spec
from minijax.lax.ref_views import recast, view_of
from minijax.namespace import shown
from minijax.runtime import platforms
from minijax.typing import DTypeLike

__all__ = [
    "ARBITRARY", "BufferType", "CMEM", "CORE_PARALLEL", "ChipVersion", "CompilerParams", "CoreType",
    "GridDimensionSemantics", "HBM", "InterpretParams", "LoweringException", "MemorySpace", "PARALLEL",
    "PrefetchScalarGridSpec", "SEMAPHORE", "SMEM", "SUBCORE_PARALLEL", "SemaphoreType", "SideEffectType",
    "Tiling", "VMEM", "VMEM_SHARED", "async_copy", "bitcast", "create_tensorcore_mesh",
    "einshape", "is_tpu_device", "load", "make_async_copy",
    "reset_tpu_interpret_mode_state", "roll", "store", "sync_copy", "touch",
]  # fmt: skip

__dir__ = shown(__name__)


class MemorySpace(specs.Space):
    """The kinds of memory of a TPU."""

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __repr__(self) -> str:
        return self.name


VMEM, VMEM_SHARED, SMEM = MemorySpace.VMEM, MemorySpace.VMEM_SHARED, MemorySpace.SMEM
CMEM, SEMAPHORE, HBM = MemorySpace.CMEM, MemorySpace.SEMAPHORE, MemorySpace.HBM


class GridDimensionSemantics(enum.Enum):
    """Whether the steps along a dimension of the grid may run in any order."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, ARBITRARY = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.ARBITRARY
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL


class _Named(enum.Enum):
    """Members whose text is their value."""

    def __str__(self) -> str:
        return self.value


class ChipVersion(_Named):
    """The generations and kinds of TPU chips."""

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"

    @property
    def num_physical_tensor_cores_per_chip(self) -> int:
        """The number of TensorCores."""
        return 1 if self.is_lite else 2

    @property
    def supports_megacore(self) -> bool:
        """Whether its TensorCores can be one device."""
        return self in (ChipVersion.TPU_V4, ChipVersion.TPU_V5P)

    @property
    def is_lite(self) -> bool:
        """Whether it has one TensorCore."""
        return self in (ChipVersion.TPU_V4I, ChipVersion.TPU_V5E, ChipVersion.TPU_V6E)


class CoreType(_Named):
    """The kinds of cores of a TPU: TensorCores, and those of a SparseCore."""

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"

    def __repr__(self) -> str:
        return self.name


class BufferType(enum.Enum):
    """The uses of the buffers of a pipeline."""

    INPUT = 1
    OUTPUT = 2
    INPUT_OUTPUT = 3
    MANUAL = 4

    @property
    def is_input(self) -> bool:
        """Whether it is read."""
        return self in (BufferType.INPUT, BufferType.INPUT_OUTPUT)

    @property
    def is_output(self) -> bool:
        """Whether it is written."""
        return self in (BufferType.OUTPUT, BufferType.INPUT_OUTPUT)


class SideEffectType(enum.Enum):
    """The effects of a kernel besides its results."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


class Tiling(enum.Enum):
    """The layouts of arrays in tiles."""

    COMPACT = 1
    SPARSE_CORE = 2

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a tile of elements of 32 bits."""
        return (8, 128) if self is Tiling.COMPACT else (8,)


class LoweringException(Exception):
    """A kernel that a compiler for TPUs does not take."""


@dataclasses.dataclass(frozen=True)
class CompilerParams(specs.CompilerParams):
    """Options of the compiler for TPUs; without effect where kernels are interpreted."""

    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: Any = False
    flags: Mapping[str, Any] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False

    def __post_init__(self):
        for name in ("dimension_semantics", "allow_input_fusion"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))

    def __hash__(self) -> int:
        flags = tuple(sorted((self.flags or {}).items()))
        return hash((self.dimension_semantics, self.vmem_limit_bytes, flags))


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """Parameters of an imitated TPU, which `pallas_call` takes as `interpret`.

    The kernel runs as with `interpret=True`: in order, on one core, its copies done when they start,
    and what it does not write NaN. Other values of the fields are accepted and have no effect.
    """

    detect_races: bool = False
    out_of_bounds_reads: Literal["raise", "uninitialized"] = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: Literal["nan", "zero"] = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None
    dma_execution_mode: Literal["eager", "on_wait"] = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Callable[[Any, tuple[np.int32, ...], np.int32], Any] | None = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: Literal["logical", "padded"] = "logical"


def reset_tpu_interpret_mode_state() -> None:
    """Forget what interpreted kernels left behind: nothing, as each begins anew."""


class PrefetchScalarGridSpec(GridSpec):
    """A grid whose index maps, and kernel, are given the first arguments before each step.

    `num_scalar_prefetch` arguments, of integers, come first, to the kernel as references, and to each
    index map after the indices of the grid. They have no BlockSpec.
    """

    scalar_space = SMEM

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


def create_tensorcore_mesh(
    axis_name: str, devices: Sequence[Any] | None = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """The cores of a device as a mesh, for `pl.kernel`; interpreted, one unless `num_cores` says."""
    return TensorCoreMesh(axis_name, 1 if num_cores is None else num_cores)


def is_tpu_device() -> bool:
    """Whether arrays lie on a TPU by default."""
    return platforms.default_backend() == "tpu"


def bitcast(x: Array, ty: DTypeLike) -> Array:
    """The bits of an array as another dtype; of another width, along the axis before the last."""
    return recast(x, dtypes.canonicalize_dtype(ty))


def _groups(side: str) -> list[list[str]]:
    """The axes of one side of an equation: for each the names that it is made of."""
    found: list[list[str]] = []
    within = False
    for letter in side.replace(" ", ""):
        if letter in "()":
            within = letter == "("
            found += [[]] if within else []
        elif within:
            found[-1].append(letter)
        else:
            found.append([letter])
    return found


def _split_sizes(group: list[str], size: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of the parts of an axis."""
    if len(group) == 1:
        return {group[0]: size}
    known = math.prod([sizes[name] for name in group if name in sizes])
    unknown = [name for name in group if name not in sizes]
    if len(unknown) > 1:
        raise ValueError(
            f"Ambiguous split for {group} with size {size}. Unknowns: {unknown}. Provide sizes via "
            "kwargs."
        )
    if size % known if unknown else size != known:
        raise ValueError(f"Cannot split size {size} with known sizes {known}")
    return {name: sizes.get(name, size // known) for name in group}


def einshape(
    equation: str, x: Array, assert_is_tile_preserving: bool = False, **sizes: int
) -> Array:
    """Split, reorder and merge axes, as an equation says: "ab(cd)->cabd".

    Parentheses hold the parts of one axis; `sizes` are those of parts, of which one an axis may be
    left out. ValueError if it does not fit the array.
    """
    if equation.count("->") != 1:
        raise ValueError(f"Equation must contain exactly one '->', got {equation!r}.")
    left, right = map(_groups, equation.split("->"))
    if len(left) != x.ndim:
        raise ValueError(
            f"Equation LHS has {len(left)} groups but input has {x.ndim} dims. LHS: {left}, Input "
            f"shape: {x.shape}"
        )
    found: dict[str, int] = {}
    for group, size in zip(left, x.shape, strict=True):
        for name, part in _split_sizes(group, size, sizes).items():
            if found.setdefault(name, part) != part:
                raise ValueError(f"Inconsistent size for {name}: {found[name]} vs {part}")
    names, order = [n for group in left for n in group], [n for group in right for n in group]
    for name in order:
        if name not in found:
            raise ValueError(f"Unknown dimension {name} in RHS")
    if sorted(names) != sorted(order):
        raise NotImplementedError("Only reordering/splitting/merging supported (no broadcast yet).")
    x = jnp.transpose(
        x.reshape([found[name] for name in names]), [names.index(name) for name in order]
    )
    return x.reshape([math.prod([found[name] for name in group]) for group in right])


# -- reading and writing references ---------------------------------------------------------------


def load(ref: Any, *, mask: Array | None = None) -> Array:
    """Load the value of a reference. Where `mask` is false, the result is unspecified."""
    return view_of(ref).get()


def store(ref: Any, val: Array, *, mask: Array | None = None) -> None:
    """Write to a reference, where `mask` is true."""
    view = view_of(ref)
    view.set(val if mask is None else jnp.where(mask, val, view.get()))


def touch(ref: Any) -> None:
    """Keep what a reference holds; interpreted, nothing is to be done."""


class _Copy:
    """A copy between references, counted by a semaphore."""

    def __init__(self, src: Any, dst: Any, sem: Any):
        self.src, self.dst, self.sem = view_of(src), view_of(dst), sem

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copy."""
        if add:
            self.dst.addupdate(self.src.get())
        else:
            self.dst.set(self.src.get())
        _signal(self.sem, self.src.size)

    def wait(self) -> None:
        """Nothing is to be waited for: take what was counted."""
        _wait(self.sem, self.src.size)

    wait_send = wait_recv = wait


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> _Copy:
    """A copy from one reference to another, with `.start()` and `.wait()`."""
    return _Copy(src_ref, dst_ref, sem)


def async_copy(
    src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False
) -> _Copy:
    """Make a copy between references, as `make_async_copy` does, and start it."""
    copy = _Copy(src_ref, dst_ref, sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copy from one reference to another, or add to it."""
    part = view_of(src_ref).get()
    if add:
        view_of(dst_ref).addupdate(part)
    else:
        view_of(dst_ref).set(part)


def roll(
    x: Array,
    shift: Array | int,
    axis: int,
    *,
    stride: int | None = None,
    stride_axis: int | None = None,
) -> Array:
    """`jnp.roll` along one axis; with a stride, by so much more at each place of `stride_axis`."""
    if not all(0 <= n < x.ndim for n in (axis, stride_axis or 0)):
        raise ValueError(f"axis is out of range: {axis} of {x.ndim} axes, which count from 0.")
    if isinstance(shift, int) and shift < 0:
        raise ValueError(f"shift must be non-negative, got {shift}.")
    if (stride is None) != (stride_axis is None):
        raise ValueError("stride and stride_axis must be both specified or not specified.")
    if stride is None:
        return jnp.roll(x, shift, axis)
    parts = jnp.split(x, x.shape[stride_axis], axis=stride_axis)
    moved = [jnp.roll(part, shift + n * stride, axis) for n, part in enumerate(parts)]
    return jnp.concatenate(moved, axis=stride_axis)


def __getattr__(name: str) -> Any:
    absent = (
        f"minijax has no 'experimental.pallas.tpu.{name}': kernels are interpreted, and have what that "
        "gives a meaning."
    )
    return moved(__name__, name, absent)
