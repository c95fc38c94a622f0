"""Compiled programs as bytes, for another process with such devices.

May import the ground floor and `runtime`. Devices are written by number; on reading, others may take
their places.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

from minijax.runtime import sharding as shardings
from minijax.runtime.cache import disk_cache, program_key
from minijax.runtime.executables import compile_options
from minijax.runtime.versions import _jax

__all__ = ["load", "load_executable", "save", "save_executable"]


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return ("device", obj.id) if isinstance(obj, _jax.Device) else None

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is shardings.SingleDeviceSharding:  # else it were on the device of that number
            return _on_device, (obj.device, obj.memory_kind)
        return NotImplemented


def _on_device(device: Any, kind: str | None) -> shardings.SingleDeviceSharding:
    own = shardings.single_device(device)
    return own if kind == own.memory_kind else own.with_memory_kind(kind)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, devices: dict[int, Any]):
        super().__init__(file)
        self.devices = devices

    def persistent_load(self, pid: Any) -> Any:
        try:
            return self.devices[pid[1]]
        except KeyError:
            raise ValueError(
                f"the program was compiled for device {pid[1]}, and the devices given in their order "
                f"stand for {sorted(self.devices)}: give as many as it was compiled for."
            ) from None


def save(value: Any) -> bytes:
    """A value, in which devices may be, as bytes."""
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


def load(data: bytes, devices: dict[int, Any]) -> Any:
    """The value, with these devices in the places of those that had the numbers."""
    return _Unpickler(io.BytesIO(data), devices).load()


def save_executable(executable: Any, text: str, devices: Any, spmd: bool, options: Any) -> bytes:
    """The executable of a module as bytes.

    One that came from the disk is read there again: XLA leaves functions out when it writes what it
    has read.
    """
    kept = disk_cache()
    key = program_key(text, devices, compile_options(devices, spmd=spmd, overrides=options))
    found = kept.get(key) if kept is not None else None
    return executable.serialize() if found is None else found


def load_executable(data: bytes, devices: Sequence[Any], *, spmd: bool) -> Any:
    """The executable, loaded to run on these devices."""
    devices = tuple(devices)
    options = compile_options(devices, spmd=spmd)
    return devices[0].client.deserialize_executable(data, shardings.device_list(devices), options)
