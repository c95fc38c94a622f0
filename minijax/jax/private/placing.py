"""Counterparts of upstream's private functions on meshes, on running programs, and on putting
arrays
on devices; `modules` says for which modules.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from minijax import device_put, devices, effects_barrier, monitoring, process_index
from minijax.arrays.array import as_value
from minijax.config import local
from minijax.core.avals import get_aval
from minijax.core.primitive import Primitive
from minijax.dtypes import ExtendedDType
from minijax.features.diagnostics.finite import check_finite
from minijax.features.mlir_rules import sdy
from minijax.jax.private.gspmd import SdyArray
from minijax.jax.private.programs import apply_primitive
from minijax.jax.private.utilities import HashableFunction
from minijax.lowering.types import physical
from minijax.runtime.mesh import AbstractMesh, DuplicateSpecError, Mesh, PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.runtime.sharding import Sharding
from minijax.runtime.versions import HloSharding
from minijax.tree_util import tree_flatten, tree_map

logger = logging.getLogger("jax._src.dispatch")

# -- meshes ----------------------------------------------------------------------------------------

BaseMesh = Mesh | AbstractMesh


def all_axis_types_match(axis_types: Sequence[Any], ty: Any) -> bool:
    """Whether there are axes, and all are of this type."""
    return bool(axis_types) and all(kind is ty for kind in axis_types)


def any_axis_types_match(axis_types: Sequence[Any], ty: Any) -> bool:
    return any(kind is ty for kind in axis_types)


def show_axes(axes: Sequence[Any]) -> str:
    """Names of axes for messages."""
    return ", ".join(f"`{name}`" for name in axes)


class ResourceEnv(NamedTuple):
    """The mesh of `with mesh:`."""

    physical_mesh: Mesh

    def with_mesh(self, mesh: Mesh) -> ResourceEnv:
        return ResourceEnv(mesh)

    physical_resource_axes = resource_axes = property(
        lambda self: set(self.physical_mesh.axis_names)
    )
    shape = property(lambda self: self.physical_mesh.shape)

    def __repr__(self) -> str:
        mesh = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"ResourceEnv(mesh=Mesh({mesh}))"


EMPTY_ENV = ResourceEnv(Mesh(np.empty((), dtype=object), ()))

# -- orders of devices -----------------------------------------------------------------------------


def strides_for_sizes(sizes: Sequence[int]) -> np.ndarray:
    """Return how far apart neighbours along each axis are, the last axis varying fastest."""
    found = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
    return np.array(found, dtype=np.int64)


def unflatten_superdims(assignment: np.ndarray) -> list[tuple[int, int]]:
    """The sizes and strides, the fastest first, of which an order of numbers is the walk.

    NotImplementedError for an order that is no such walk.
    """
    flat, dims = np.asarray(assignment).reshape(-1), []
    while flat.size > 1:
        stride = flat[1] - flat[0]
        run = np.arange(flat.size) * stride
        wrong = np.flatnonzero(flat != run)
        size = int(wrong[0]) if wrong.size else flat.size
        blocks = flat.reshape(-1, size) if size > 1 and flat.size % size == 0 else None
        if stride <= 0 or blocks is None or (blocks - blocks[:, :1] != run[:size]).any():
            raise NotImplementedError(
                f"the order {list(map(int, assignment))} of devices is that of no mesh whose axes are "
                "transposed."
            )
        dims.append((size, int(stride)))
        flat = blocks[:, 0]
    return dims


def explode_superdims(
    sizes: Sequence[int], dims: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The axes of these sizes of which such dimensions are made, the slowest of the walk first."""
    axes = list(zip(sizes, map(int, strides_for_sizes(sizes)), strict=True))
    found = []
    for size, stride in reversed(dims):
        parts = [(n, s) for n, s in axes if n > 1 and stride <= s < stride * size]
        if math.prod([n for n, _ in parts]) != size:
            raise AssertionError(f"no axes of sizes {list(sizes)} make up {(size, stride)}")
        found += parts
    return found


def unflatten_array(named_sizes: Mapping[Any, int], assignment: np.ndarray) -> list[Any]:
    """The names of the axes in the order in which devices are walked, the slowest first."""
    sizes = list(named_sizes.values())
    names = dict(zip(map(int, strides_for_sizes(sizes)), named_sizes, strict=True))
    names |= {
        int(stride): name
        for stride, (name, size) in zip(strides_for_sizes(sizes), named_sizes.items(), strict=True)
        if size > 1
    }
    return [
        names[stride] for _, stride in explode_superdims(sizes, unflatten_superdims(assignment))
    ]


# -- shardings -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SdyArrayList:
    """The splits of several arrays."""

    shardings: tuple[SdyArray, ...]

    def build(self) -> Any:
        """Shardy's attribute, in the MLIR context at hand."""
        return sdy.TensorShardingPerValueAttr.get([one.build() for one in self.shardings])


replicated_hlo_sharding = HloSharding.replicate()


def is_hlo_sharding_replicated(hc: HloSharding) -> bool:
    """Whether each device has the whole array."""
    return hc.is_replicated() or hc.num_devices() == 1


def get_array_mapping(axis_resources: PartitionSpec) -> Mapping[Any, int]:
    """The dimension that each mesh axis of a spec splits."""
    found = OrderedDict()
    for dim, entry in enumerate(axis_resources):
        for name in entry if isinstance(entry, tuple) else (entry,):
            if name is not None:
                found[name] = dim
    return found


class NonUniformShardingError(ValueError):
    """The processes hold parts that overlap without being the same, or that are of unequal sizes."""


def get_process_index_and_count(sharding: Sharding, dim: int, ndims: int) -> tuple[int, int]:
    """Return the number of the part along a dimension that this process holds, and their count."""
    parts: dict[int, set[tuple[int, int]]] = {}
    size = len(sharding.device_set)
    for device, index in sharding.devices_indices_map((size,) * ndims).items():
        start, stop, _ = index[dim].indices(size)
        parts.setdefault(device.process_index, set()).add((start, stop))
    held = sorted({tuple(sorted(part)) for part in parts.values()})
    pieces = [piece for part in held for piece in part]
    if len(pieces) != len(set(pieces)) or len({len(part) for part in held}) > 1:
        raise NonUniformShardingError(
            f"the processes do not hold equal parts of dimension {dim} of {sharding}: {held}"
        )
    return held.index(tuple(sorted(parts[process_index()]))), len(held)


def hashed_index(x: Sequence[slice]) -> int:
    """A hash of slices."""
    return hash(tuple((part.start, part.stop) for part in x))


def _words(dtype: Any) -> int:
    return physical(get_aval(np.float32(0)).update(dtype=dtype)).ndim


def physical_sharding(aval: Any, sharding: Sharding) -> Sharding:
    """Return how what lies in memory is split, for an array of an extended dtype that is split so."""
    if not isinstance(aval.dtype, ExtendedDType) or not isinstance(sharding, NamedSharding):
        return sharding
    entries = [*sharding.spec, *[None] * (aval.ndim - len(sharding.spec))]
    return sharding.update(spec=PartitionSpec(*entries, *[None] * _words(aval.dtype)))


def logical_sharding(logical_shape: Sequence[int], dtype: Any, phys_sharding: Sharding) -> Sharding:
    """The inverse of `physical_sharding`."""
    if not isinstance(dtype, ExtendedDType) or not isinstance(phys_sharding, NamedSharding):
        return phys_sharding
    entries = list(phys_sharding.spec)[: len(logical_shape)]
    return phys_sharding.update(spec=PartitionSpec(*entries))


def prepare_axis_resources(
    axis_resources: Any, arg_name: str, allow_unconstrained_dims: bool = False
) -> Any:
    """A tree of specs, shardings and None, as it is; an error for other leaves and doubled axes."""
    what = f"{arg_name} leaf specifications"

    def check(leaf: Any) -> Any:
        if isinstance(leaf, PartitionSpec):
            names = [n for part in leaf for n in (part if isinstance(part, tuple) else (part,))]
            doubled = {n for n in names if isinstance(n, str) and names.count(n) > 1}
            if doubled:
                raise DuplicateSpecError(
                    f"A single {arg_name} specification can map every mesh axis to at most one "
                    f"positional dimension, but {leaf} has duplicate entries for {show_axes(doubled)}"
                )
            if PartitionSpec.UNCONSTRAINED in names and not allow_unconstrained_dims:
                raise ValueError(f"Unconstrained dims are not allowed in {what}: {leaf}")
        elif not isinstance(leaf, Sharding):
            raise TypeError(
                f"{what} are expected to be PartitionSpec instances or None, but got {leaf}"
            )
        return leaf

    return tree_map(check, axis_resources, is_leaf=lambda x: isinstance(x, PartitionSpec))


def are_all_shardings_default_mem_kind(shardings: Sequence[Any]) -> bool:
    """Whether all are in the memory that arrays are in by default."""
    return all(s is None or s.memory_kind in (None, "device", "unpinned_host") for s in shardings)


def batch_spec(spec: PartitionSpec, dim: int, val: Any) -> PartitionSpec:
    """The spec with one more dimension, split so."""
    entries = [*spec, *[None] * (dim - len(spec))]
    return PartitionSpec(*entries[:dim], val, *entries[dim:])


def get_unconstrained_dims(sharding: NamedSharding) -> frozenset[int]:
    """The dimensions that XLA may split as it likes."""
    entries = enumerate(sharding.spec)
    return frozenset(dim for dim, entry in entries if entry is PartitionSpec.UNCONSTRAINED)


def hashable_pytree(pytree: Any) -> HashableFunction:
    """Return a function that makes a tree of hashable leaves, and equals that of an equal tree."""
    leaves, tree = tree_flatten(pytree)
    return HashableFunction(lambda: tree.unflatten(leaves), closure=(tree, tuple(leaves)))


# -- running ---------------------------------------------------------------------------------------


def get_default_device() -> Any:
    """The device on which arrays are made."""
    chosen = local.context.settings.default_device
    return chosen if hasattr(chosen, "platform") else devices(chosen)[0]


def shard_args(
    shardings: Sequence[Any], layouts: Sequence[Any], copy_semantics: Sequence[Any],
    args: Sequence[Any], canonicalize: bool = True,
) -> list[Any]:  # fmt: skip
    """The arguments as arrays that are split so."""
    return [device_put(x, where) for x, where in zip(args, shardings, strict=True)]


# Operations that are written for the devices they run on; kept for those who add to it, as devices are
# known here whenever a program is lowered.
prim_requires_devices_during_lowering: set[Primitive] = set()


def simple_impl(prim: Primitive) -> None:
    """Have an operation run eagerly: one that has a lowering does so anyway."""


def xla_primitive_callable(prim: Primitive, **params: Any) -> Callable:
    """The function that runs an operation at once."""
    return lambda *args: apply_primitive(prim, *args, **params)


def check_arg(arg: Any) -> None:
    """TypeError for what no operation takes."""
    get_aval(arg)


def needs_check_special() -> bool:
    """Whether results are looked at for NaN or infinity."""
    settings = local.context.settings
    return settings.debug_nans or settings.debug_infs


def check_special(name: str, bufs: Sequence[Any]) -> None:
    """FloatingPointError for such a value, where they are looked for."""
    for array in bufs if needs_check_special() else ():
        check_special_array(name, array)


def check_special_array(name: str, arr: Any) -> Any:
    """The array; FloatingPointError for a NaN or infinity in it, where they are looked for."""
    check_finite([as_value(arr)], name)
    return arr


def should_tuple_args(num_args: int, platform: str) -> bool:
    """Whether a program takes its arguments as one tuple: TPUs take 2000 at most."""
    return platform == "tpu" and num_args > 2000


class RuntimeTokenSet:
    """The order of effects in time: they are run in the order in which they come."""

    def clear(self) -> None:
        """Nothing is kept from one program to the next."""

    def block_until_ready(self) -> None:
        """Wait for the effects of all programs that have been started."""
        effects_barrier()


runtime_tokens = RuntimeTokenSet()


@contextmanager
def log_elapsed_time(fmt: str, fun_name: str, event: str | None = None) -> Iterator[None]:
    """Within, time is taken: it is logged, and told to the listeners of `event`."""
    start = time.time()
    yield
    elapsed = time.time() - start
    logger.debug(fmt.format(fun_name=fun_name, elapsed_time=elapsed))
    if event is not None:
        monitoring.record_event_duration_secs(event, elapsed, fun_name=fun_name)
