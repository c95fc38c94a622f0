"""Shardings as XLA's own partitioner writes them, without names."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.runtime.mesh import Mesh, PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.runtime.sharding import Sharding, check_memory_kind, default_memory_kind, device_list
from minijax.runtime.versions import HloSharding, xla_client

__all__ = ["GSPMDSharding"]


class GSPMDSharding(Sharding):
    """The sharding that an `HloSharding` (or an `OpSharding` message) describes.

    It holds for arrays of the rank that it was written for. ValueError for a kind of memory that the
    devices have not.
    """

    def __init__(self, devices: Sequence[Any], op_sharding: Any, *, memory_kind: Any = None):
        super().__init__()
        self._device_assignment = devices = tuple(devices)
        self._internal_device_list = device_list(devices)
        is_message = isinstance(op_sharding, xla_client.OpSharding)
        self._hlo_sharding = HloSharding.from_proto(op_sharding) if is_message else op_sharding
        if memory_kind is None:
            memory_kind = default_memory_kind(devices[0])
        else:
            check_memory_kind(devices[0], memory_kind)
        self._memory_kind = memory_kind

    memory_kind = property(lambda self: self._memory_kind)

    @classmethod
    def get_replicated(cls, device_assignment: Sequence[Any], *, memory_kind: Any = None):
        """Whole arrays on every device."""
        return cls(device_assignment, HloSharding.replicate(), memory_kind=memory_kind)

    @functools.cached_property
    def _tiles(self) -> list[int]:
        """Into how many parts each dimension is split."""
        if self._hlo_sharding.is_replicated() or len(self._device_assignment) == 1:
            return []
        tiles = list(self._hlo_sharding.tile_assignment_dimensions())
        return tiles[: len(tiles) - self._groups]

    @property
    def _groups(self) -> int:
        """Return how many trailing dimensions of the tiles are of devices that have the same parts."""
        hlo = self._hlo_sharding
        return len(hlo.subgroup_types()) + bool(hlo.replicate_on_last_tile_dim())

    @functools.cached_property
    def is_fully_replicated(self) -> bool:
        return all(count == 1 for count in self._tiles)

    @functools.cached_property
    def named(self) -> NamedSharding:
        """Return the sharding over a mesh whose axes are the dimensions of the tiles."""
        devices = np.array(self._device_assignment, dtype=object)
        if self.is_fully_replicated:
            return NamedSharding(Mesh(devices, ("devices",)), PartitionSpec())
        grid = np.array(self._hlo_sharding.tile_assignment_devices())
        sizes = self._hlo_sharding.tile_assignment_dimensions()
        names = tuple([f"axis_{number}" for number in range(len(sizes))])
        mesh = Mesh(devices[grid].reshape(sizes), names)
        return NamedSharding(mesh, PartitionSpec(*names[: len(self._tiles)]))

    def check_compatible_aval(self, shape: Sequence[int]) -> None:
        """ValueError unless arrays of this rank can be split so."""
        if len(shape) < len(self._tiles):
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self._tiles)}, but "
                f"was applied to a value of rank {len(shape)}"
            )

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the part that one device holds."""
        self.check_compatible_aval(global_shape)
        tiles = [*self._tiles, *[1] * (len(global_shape) - len(self._tiles))]
        for axis, (size, count) in enumerate(zip(global_shape, tiles, strict=True)):
            if size % count:
                raise ValueError(
                    f"Sharding {self} implies that array axis {axis} is partitioned {count} times, "
                    f"but the dimension size is {size} (full shape: {tuple(global_shape)}, "
                    f"per-dimension tiling factors: {tiles} should evenly divide the shape)"
                )
        return tuple(size // count for size, count in zip(global_shape, tiles, strict=True))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict:
        self.shard_shape(global_shape)
        table = self.named.devices_indices_map(tuple(global_shape))
        return {device: table[device] for device in self._device_assignment}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether both put the same parts of an array of this rank on the same devices."""
        return (
            self._device_assignment == other._device_assignment
            and self.memory_kind == other.memory_kind
            and self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)
        )

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        return GSPMDSharding(self._device_assignment, self._hlo_sharding, memory_kind=kind)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return self._hlo_sharding

    def _fields(self) -> tuple:
        return self._device_assignment, self._hlo_sharding, self._memory_kind

    def __eq__(self, other):
        return self is other or (
            isinstance(other, GSPMDSharding) and self._fields() == other._fields()
        )

    def __hash__(self):
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo_sharding!r}, memory_kind={self._memory_kind})"
