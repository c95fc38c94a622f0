"""The members of concrete arrays that tell where they lie: devices, parts, layouts, memory."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from minijax import dtypes
from minijax.arrays.array import ArrayImpl, Signature
from minijax.arrays.dispatch import moved
from minijax.core.array import attach_class
from minijax.lowering.types import physical
from minijax.runtime import buffers, layouts, sharding
from minijax.runtime import dlpack as tensors
from minijax.runtime.platforms import Device
from minijax.runtime.sharding import Sharding
from minijax.runtime.unimported import without_upstream
from minijax.typing import Shape

__all__ = ["Shard", "replica_ids"]


class Shard:
    """Part of an array that one device holds.

    - `device`: the device; `data`: its part, an array of the shape of a part and the same dtype, or
      None where the device belongs to another process
    - `index`: slices of the part; `replica_id`: number among equal parts, in the order of the sharding

    Source: Shardy's device-local tensors.

    >>> jnp.arange(3).addressable_shards[0].index
    (slice(None, None, None),)
    """

    def __init__(
        self, device: Device, sharding: Sharding, global_shape: Shape, data: Any = None
    ) -> None:
        self._device, self._sharding, self._data = device, sharding, data
        self._global_shape = tuple(global_shape)

    @property
    def device(self) -> Any:
        return self._device

    @property
    def data(self) -> Any:
        return self._data

    @property
    def index(self) -> tuple[Any, ...]:
        return self._sharding.parts_by_device(self._global_shape)[self._device]

    @property
    def replica_id(self) -> int:
        return replica_ids(self._sharding.parts_by_device(self._global_shape))[self._device]

    def __repr__(self) -> str:
        shown = f"device={self.device!r}, index={self.index}, replica_id={self.replica_id}"
        return f"Shard({shown}, data={self.data})"


def replica_ids(parts: Mapping[Any, tuple[slice, ...]]) -> dict[Any, int]:
    """Return for each device, how many before it hold the same part, by the parts of devices."""
    seen: dict[Any, int] = {}
    found = {}
    for device, index in parts.items():
        key = tuple([(part.start, part.stop) for part in index])
        found[device] = seen.get(key, 0)
        seen[key] = found[device] + 1
    return found


class _Members(ArrayImpl):
    """Members that concrete arrays are given."""

    __slots__ = ()

    @property
    def device(self) -> Any:
        """The device of a single-device array; the sharding of any other."""
        where = self.signature.sharding
        return where if len(where._device_assignment) > 1 else where._device_assignment[0]

    def devices(self) -> set[Any]:
        """Return the set of devices that hold a part of the array. Source: its sharding.

        >>> jnp.ones(3).devices() == {jax.devices()[0]}
        True
        """
        self._check_deleted()
        return self.signature.sharding.device_set

    @property
    def is_fully_addressable(self) -> bool:
        """True if all devices of the array belong to this process."""
        return self.signature.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """True if each device holds the whole array."""
        return self.signature.sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """List of the parts of the array on devices of this process."""
        shards = self.global_shards
        if self.is_fully_addressable:
            return shards
        return [part for part in shards if part.data is not None]

    @property
    def global_shards(self) -> list[Shard]:
        """List of the parts of the array, of which those on devices of other processes have no data."""
        self._check_deleted()
        where = self.signature.sharding
        if len(where._device_assignment) == 1:
            data = self if where.is_fully_addressable else None
            return [Shard(*where._device_assignment, where, self.aval.shape, data)]
        if "_shards" not in vars(self):  # made once: it takes 9 us of eight devices
            vars(self)["_shards"] = self._made_shards()
        return vars(self)["_shards"]

    def _made_shards(self) -> list[Shard]:
        where, shape = self.signature.sharding, self.aval.shape
        aval = self.aval.update(shape=where.shard_shape(shape), sharding=None)
        ordered = self.signature.place is not where
        mine, parts = where.addressable_devices, iter(buffers.parts_of(self._buffer))
        shards = []
        for device in where._device_assignment:
            data = None
            if device in mine:
                buffer, home = next(parts), sharding.single_device(device)
                place = buffers.place_of(buffer, home, physical(aval)) if ordered else home
                data = ArrayImpl(buffer, Signature(aval, place, self.committed))
            shards.append(Shard(device, where, shape, data))
        return shards

    def addressable_data(self, index: int) -> ArrayImpl:
        """Return the part of the array on one of the devices of this process.

        - `index`: an int, the position in `addressable_shards`; IndexError if it is out of range.

        Returns an array of the same dtype and of the shape of the part. Source: PJRT buffers.

        >>> jnp.array([1, 2]).addressable_data(0)
        Array([1, 2], dtype=int32)
        """
        shards, index = self.addressable_shards, operator.index(index)
        if not -len(shards) <= index < len(shards):
            raise IndexError(
                f"index {index} is out of range: the array has {len(shards)} shards here."
            )
        return shards[index].data

    @property
    def format(self) -> layouts.Format:
        """Layout in memory, that is, the order of dimensions, together with the sharding."""
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            raise AttributeError("an array of random keys has no format: ask random.key_data(x)")
        if self._buffer.is_deleted():
            return layouts.Format(None, self.signature.sharding)
        return layouts.format_of(buffers.parts_of(self._buffer)[0], self.signature.sharding)

    @property
    def platform(self) -> str:
        """Name of the platform that holds the array, such as "cpu"."""
        return self.signature.sharding._device_assignment[0].platform

    def on_device_size_in_bytes(self) -> int:
        """Return the size of the array in device memory, an int, in bytes. Source: PJRT buffers.

        >>> jnp.ones(4, jnp.float32).on_device_size_in_bytes()
        16
        """
        return self._buffer.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the values, an int that is valid as long as the array.

        Source: PJRT buffers.

        >>> jnp.ones(3).unsafe_buffer_pointer() > 0
        True
        """
        return without_upstream(self._buffer.unsafe_buffer_pointer)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The description that Numba, CuPy and PyTorch read; AttributeError where it is on no GPU."""
        self._check_deleted()
        described = self._buffer.__cuda_array_interface__
        self._buffer.block_until_ready()
        return described

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        """A DLPack capsule of the array, sharing its memory unless `copy` or on another device.

        BufferError for a `dl_device` of no kind of ours, or another one where `copy` is False.
        """
        self._check_deleted()
        self._check_exported("__dlpack__")
        buffer, where = self._buffer, self.signature.sharding
        if len(where.device_set) > 1:
            raise BufferError(
                "to_dlpack can only pack a dlpack tensor from an array on a singular device, but an "
                f"array with a Sharding over {len(where.device_set)} devices was provided: {where}."
            )
        wanted = where.device if dl_device is None else tensors.dlpack_device(*dl_device)
        if wanted is None:
            raise BufferError(
                "The device specification passed to to_dlpack contains an unsupported device type "
                f"(DLDeviceType: {dl_device[0]})"
            )
        if copy is False and wanted != where.device:
            raise BufferError(
                f"__dlpack__: the array is on {where.device}, and dl_device={dl_device} takes a "
                "copy: leave copy=False out."
            )
        if (copy or wanted != where.device) and self.signature.place is not where:
            buffer = moved(self, sharding.single_device(wanted))._buffer
        elif copy or wanted != where.device:
            buffer = buffers.move(buffer, sharding.single_device(wanted), copy=True)
        buffer.block_until_ready()
        return tensors.to_dlpack(buffer, stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._check_exported("__dlpack_device__")
        where = self.signature.sharding
        if len(where.device_set) > 1:
            raise BufferError(
                f"__dlpack__ only supported for unsharded arrays. This one is on {where}."
            )
        return tensors.dlpack_kind(where.device)

    def _check_exported(self, name: str) -> None:
        if dtypes.is_extended(self.dtype):
            raise AttributeError(f"An array of {self.dtype} has no attribute {name!r}")


attach_class(_Members, ArrayImpl)
