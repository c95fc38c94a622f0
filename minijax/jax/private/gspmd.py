"""A stand-in for `jax._src.sharding_impls`: shardings as XLA and Shardy write them, and what
they say.

Programs of minijax are split by `NamedSharding`s alone: one that XLA's own description gives is
such a sharding here, over a mesh that has its tiles.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minijax.features.mlir_rules import sdy
from minijax.features.sharding.array_members import replica_ids
from minijax.jax.private.op_shardings import are_hlo_shardings_equal, get_num_ways_dim_sharded
from minijax.runtime.mesh import AbstractMesh, Mesh, PartitionSpec
from minijax.runtime.named_sharding import NamedSharding, named_of_hlo
from minijax.runtime.sharding import Sharding
from minijax.runtime.versions import HloSharding, xla_client

__all__ = [
    "ArrayMapping", "GSPMDSharding", "SdyArray", "SdyDim", "array_mapping_to_axis_resources",
    "cached_named_sharding", "device_replica_id_map", "flatten_spec", "local_to_global_shape",
    "named_sharding_to_xla_hlo_sharding", "num_addressable_indices", "parse_flatten_op_sharding",
]  # fmt: skip

ArrayMapping = OrderedDict[Any, int]
cached_named_sharding = NamedSharding


def _hlo(described: Any) -> Any:
    """XLA's sharding of itself or of its message."""
    if isinstance(described, xla_client.OpSharding):
        return HloSharding.from_proto(described)
    return described


def _factors(size: int) -> list[int]:
    """The prime factors."""
    found, divisor = [], 2
    while size > 1:
        while size % divisor == 0:
            found.append(divisor)
            size //= divisor
        divisor += 1
    return found


def _over_a_mesh(devices: tuple, hlo: Any, memory_kind: str | None) -> NamedSharding:
    """Name the axes of a split: of a mesh of prime sizes, or of the tiles as they are numbered."""
    ways, copies = get_num_ways_dim_sharded(hlo)
    sizes = _factors(len(devices))
    grid = np.array(devices, object)
    names = tuple(f"_{number}" for number in range(len(sizes)))
    mesh = Mesh(grid.reshape(sizes), names)
    found = named_of_hlo(hlo, mesh, len(ways), memory_kind)
    if found is not None:
        return found
    order = grid[np.array(hlo.tile_assignment_devices())]
    names = tuple(f"_{number}" for number in range(len(ways) + 1))
    mesh = Mesh(order.reshape(*ways, copies), names)
    return NamedSharding(mesh, PartitionSpec(*names[:-1]), memory_kind)


class GSPMDSharding(NamedSharding):
    """An array split as XLA's own description says: tiles, and which device has each."""

    def __init__(self, devices: Sequence[Any], op_sharding: Any, *, memory_kind: str | None = None):
        self._devices = tuple(devices)
        self._hlo_sharding = _hlo(op_sharding)
        over = _over_a_mesh(self._devices, self._hlo_sharding, memory_kind)
        super().__init__(over.mesh, over.spec, over._memory_kind)

    @classmethod
    def get_replicated(
        cls, device_assignment: Sequence[Any], *, memory_kind: str | None = None
    ) -> GSPMDSharding:
        """Whole arrays on each of these devices."""
        return cls(device_assignment, HloSharding.replicate(), memory_kind=memory_kind)

    def check_compatible_aval(self, shape: Sequence[int]) -> None:
        """ValueError unless arrays of this rank can be split so."""
        ways, _ = get_num_ways_dim_sharded(self._hlo_sharding)
        if len(shape) < len(ways):
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(ways)}, but was "
                f"applied to a value of rank {len(shape)}."
            )
        super().check_compatible_aval(shape)

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        return GSPMDSharding(self._devices, self._hlo_sharding, memory_kind=kind)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return self._hlo_sharding

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, GSPMDSharding) and (
            self is other
            or (
                self._devices == other._devices
                and self._memory_kind == other._memory_kind
                and are_hlo_shardings_equal(self._hlo_sharding, other._hlo_sharding)
            )
        )

    def __hash__(self) -> int:
        return hash((self._devices, self._memory_kind))

    def __reduce__(self) -> Any:
        return _unpickle, (self._devices, self._hlo_sharding.to_proto(), self._memory_kind)

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo_sharding!r}, memory_kind={self._memory_kind})"


def _unpickle(devices: tuple, proto: Any, memory_kind: str | None) -> GSPMDSharding:
    return GSPMDSharding(devices, proto, memory_kind=memory_kind)


# -- Shardy's ------------------------------------------------------------------------------------------


@dataclasses.dataclass(kw_only=True, frozen=True)
class SdyDim:
    """The mesh axes that a dimension is split over; an open one may be split further."""

    axes: Sequence[str]
    is_open: bool

    def build(self) -> Any:
        """Shardy's attribute, in the MLIR context at hand."""
        axes = [sdy.AxisRefAttr.get(name) for name in self.axes]
        return sdy.DimensionShardingAttr.get(axes, is_closed=not self.is_open)


@dataclasses.dataclass(kw_only=True, frozen=True)
class SdyArray:
    """The split of an array over a mesh: one `SdyDim` for each dimension."""

    mesh_shape: tuple[tuple[str, int], ...] | None
    dim_shardings: Sequence[SdyDim]
    logical_device_ids: tuple[int, ...] | None = None
    replicated_axes: frozenset[str] = frozenset()
    unreduced_axes: frozenset[str] = frozenset()

    def build(self) -> Any:
        """Shardy's attribute, in the MLIR context at hand."""
        axes = [sdy.MeshAxisAttr.get(name, size) for name, size in self.mesh_shape or ()]
        ids = [] if self.logical_device_ids is None else list(self.logical_device_ids)
        return sdy.TensorShardingAttr.get(
            sdy.MeshAttr.get(axes, ids),
            [dim.build() for dim in self.dim_shardings],
            replicated_axes=[sdy.AxisRefAttr.get(name) for name in sorted(self.replicated_axes)],
            unreduced_axes=[sdy.AxisRefAttr.get(name) for name in sorted(self.unreduced_axes)],
        )


# -- questions -----------------------------------------------------------------------------------------


def named_sharding_to_xla_hlo_sharding(self: NamedSharding, num_dimensions: int) -> Any:
    """XLA's description of a sharding by name, for arrays of this rank."""
    return self._to_xla_hlo_sharding(num_dimensions)


def parse_flatten_op_sharding(
    hlo_sharding: Any, mesh: Mesh | AbstractMesh
) -> Sequence[PartitionSpec]:
    """The specs over a mesh that XLA's sharding has: one for each of a tuple's."""
    hlo = _hlo(hlo_sharding)
    if hlo.tuple_elements():
        return [
            spec for part in hlo.tuple_elements() for spec in parse_flatten_op_sharding(part, mesh)
        ]
    ways, _ = get_num_ways_dim_sharded(hlo)
    found = named_of_hlo(hlo, mesh, len(ways))
    if found is None:
        raise ValueError(f"no axes of {mesh} split an array as {hlo} does.")
    return [found.spec]


def flatten_spec(spec: PartitionSpec) -> list:
    """The entries of a spec, those of tuples one by one."""
    return [name for part in spec for name in (part if isinstance(part, tuple) else (part,))]


def array_mapping_to_axis_resources(array_mapping: Mapping[Any, int]) -> PartitionSpec:
    """The spec that splits dimension `array_mapping[name]` over the mesh axis of that name."""
    if not array_mapping:
        return PartitionSpec()
    parts: list[tuple] = [()] * (max(array_mapping.values()) + 1)
    for name, dim in array_mapping.items():
        parts[dim] = (*parts[dim], name)
    return PartitionSpec(*[part[0] if len(part) == 1 else part or None for part in parts])


def device_replica_id_map(sharding: Sharding, global_shape: Sequence[int]) -> Mapping[Any, int]:
    """Return for each device, how many before it hold the same part of an array of this shape."""
    return replica_ids(sharding.devices_indices_map(tuple(global_shape)))


def num_addressable_indices(sharding: Sharding, dim: int, global_shape: Sequence[int]) -> int:
    """Return how many elements along a dimension the devices of this process hold."""
    parts = sharding.addressable_devices_indices_map(tuple(global_shape)).values()
    size = global_shape[dim]
    places = {index[dim].indices(size)[:2] for index in parts}
    return sum(stop - start for start, stop in places)


def local_to_global_shape(sharding: Sharding, local_shape: Sequence[int]) -> tuple[int | None, ...]:
    """The shape of the array of which this process holds a part of this shape.

    None stands for a size that the part does not tell: processes hold unequal parts.
    """
    trial = [size * len(sharding.device_set) for size in local_shape]
    out: list[int | None] = []
    for dim, size in enumerate(local_shape):
        held = num_addressable_indices(sharding, dim, trial)
        out.append(size * trial[dim] // held if held else None)
    return tuple(out)
