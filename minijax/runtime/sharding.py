"""Where the parts of an array lie. The classes subclass jaxlib's C++ base class, which its buffers
and executables know.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from minijax.namespace import hiding
from minijax.runtime import platforms
from minijax.runtime.versions import HloSharding, _jax

__all__ = ["Sharding", "SingleDeviceSharding", "device_list", "single_device"]

Shape = tuple[int, ...]


class Sharding(_jax.Sharding):
    """The base class of all shardings."""

    __dir__ = hiding(
        "device", "explicit_part", "local_parts", "parts_by_device", "with_parts", "with_spec"
    )
    # These hide the properties that upstream puts on jaxlib's class.
    _device_assignment: tuple[Any, ...] = ()
    _internal_device_list: Any = None

    def _assigned(self, asked: str) -> tuple[Any, ...]:
        """The devices in order; ValueError if there are none to answer what was asked."""
        if not self._device_assignment:
            raise ValueError(f"{asked} is not implemented for `jax.sharding.AbstractMesh`.")
        return self._device_assignment

    @property
    def device_set(self) -> set[Any]:
        return set(self._assigned("device_set"))

    @property
    def num_devices(self) -> int:
        return len(self._device_assignment)

    @property
    def addressable_devices(self) -> set[Any]:
        devices = self._assigned("addressable_devices")
        process = devices[0].client.process_index()
        return {device for device in devices if device.process_index == process}

    @property
    def has_addressable_devices(self) -> bool:
        """Whether any of the devices is of this process."""
        return bool(self.addressable_devices)

    @functools.cached_property
    def is_fully_addressable(self) -> bool:
        devices = self._assigned("is_fully_addressable")
        return len(self.addressable_devices) == len(set(devices))

    def check_compatible_aval(self, shape: Sequence[int]) -> None:
        """ValueError unless arrays of this shape can lie so."""

    def explicit_part(self, ndim: int) -> Any:
        """Return the part that belongs to the type of an array of this rank; None if there is none."""
        return None

    def devices_indices_map(self, global_shape: Shape) -> dict[Any, tuple[slice, ...]]:
        """Return the part of an array of this shape that each device holds."""
        raise NotImplementedError

    def parts_by_device(self, global_shape: Shape) -> dict[Any, tuple[slice, ...]]:
        """Return the index of the part on each device, be it of the array or of a summand of it."""
        return self.devices_indices_map(global_shape)

    @property
    def _addressable_device_assignment(self) -> tuple:
        """The devices of this process, in order: libraries that store arrays go through them."""
        local = self.addressable_devices
        return tuple([device for device in self._device_assignment if device in local])

    def addressable_devices_indices_map(self, global_shape: Shape) -> dict[Any, tuple[Any, ...]]:
        local = self.addressable_devices
        table = self.devices_indices_map(global_shape)
        return {device: index for device, index in table.items() if device in local}

    def local_parts(self, global_shape: Shape) -> tuple[list[Any], list[Any], bool]:
        """The devices of this process, in order, the part of an array that each holds, and whether
        the parts are its rows from first to last.
        """
        table = self.addressable_devices_indices_map(global_shape)
        devices = [device for device in self._device_assignment if device in table]
        indices = [table[device] for device in devices]
        return devices, indices, _are_rows(indices, global_shape)


def _are_rows(indices: Sequence[tuple], shape: Shape) -> bool:
    if not shape or not indices or shape[0] % len(indices):
        return False
    size, rest = shape[0] // len(indices), (slice(None),) * (len(shape) - 1)
    rows = [(slice(place * size, (place + 1) * size), *rest) for place in range(len(indices))]
    return list(map(tuple, indices)) == rows


def default_memory_kind(device: Any) -> str | None:
    """The kind of memory that arrays on a device are in; None for one that is only described."""
    try:
        return _device(device).default_memory().kind
    except _jax.JaxRuntimeError:
        return None


def _device(device: Any) -> Any:
    if not hasattr(device, "addressable_memories"):
        raise TypeError(
            f"Expected a device, as devices() lists them; got {device!r} of type "
            f"{type(device).__name__}."
        )
    return device


def check_memory_kind(device: Any, kind: str) -> None:
    """ValueError unless the device has a memory of this kind, or is one that is only described."""
    kinds = [memory.kind for memory in _device(device).addressable_memories()]
    if kinds and kind not in kinds:
        raise ValueError(
            f"Could not find memory addressable by device {device.device_kind}. Device "
            f"{device.device_kind} can address the following memory kinds: {', '.join(kinds)}. Got "
            f"memory kind: {kind}"
        )


_WHOLE = HloSharding.replicate()


class SingleDeviceSharding(Sharding):
    """A whole array on one device."""

    is_fully_replicated = True
    is_fully_addressable = True
    memory_kind: str | None = None  # data, since jaxlib asks for it at each transfer

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        if memory_kind is None:
            memory_kind = default_memory_kind(device)
        else:
            check_memory_kind(device, memory_kind)
        super().__init__()
        self.device = self._device = device
        self.memory_kind = memory_kind
        self._device_assignment = (device,)
        self._internal_device_list = device_list((device,))

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self.device, memory_kind=kind)

    def shard_shape(self, global_shape: Shape) -> Shape:
        return global_shape

    def devices_indices_map(self, global_shape: Shape) -> dict[str, Any]:
        return {self.device: (slice(None),) * len(global_shape)}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        return self == other or (
            getattr(other, "num_devices", None) == 1
            and other.device_set == self.device_set
            and other.memory_kind == self.memory_kind
        )

    def _to_xla_hlo_sharding(self, num_dimensions: int):
        return _WHOLE

    def __eq__(self, other: Any) -> Any:
        return self is other or (
            isinstance(other, SingleDeviceSharding)
            and self.device == other.device
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> Any:
        return hash((self.device, self.memory_kind))

    def __repr__(self) -> str:
        memory = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"SingleDeviceSharding(device={self.device!r}{memory})"

    def __reduce__(self) -> Any:
        return _unpickle_single, (self.device.platform, self.device.id, self.memory_kind)


def _unpickle_single(platform: str, index: int, memory_kind: str | None):
    for device in platforms.devices(platform):
        if device.id == index:
            return SingleDeviceSharding(device, memory_kind=memory_kind)
    return single_device(platforms.default_device())


_singles: dict[Any, SingleDeviceSharding] = {}
_lists: dict[tuple, Any] = {}


def single_device(device: Any) -> SingleDeviceSharding:
    """The sharding of arrays on this device, the same object each time."""
    sharding = _singles.get(device)
    if sharding is None:
        sharding = _singles.setdefault(device, SingleDeviceSharding(device))
    return sharding


def device_list(devices: tuple) -> Any:
    """jaxlib's list of these devices, the same object each time."""
    found = _lists.get(devices)
    if found is None:
        found = _lists.setdefault(devices, _jax.DeviceList(devices))
    return found
