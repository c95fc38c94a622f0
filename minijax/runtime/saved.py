"""Compiled programs as bytes, for another process with such devices.

Devices are written by number; on reading, others may take their places. Bytes begin with a digest
of the rest, and name no classes but those in `_CLASSES`: reading others is refused before anything
of theirs runs. A compiled program itself is code of the machine, which no check makes safe.
"""

from __future__ import annotations

import enum
import io
import pickle
import sys
import types
from collections.abc import Sequence
from typing import Any

from minijax.runtime import lapack
from minijax.runtime import sharding as shardings
from minijax.runtime.cache import disk_cache, program_key, timed_content
from minijax.runtime.digests import sha256
from minijax.runtime.executables import compile_options, is_compile_only
from minijax.runtime.versions import _jax

__all__ = ["load", "load_executable", "save", "save_executable", "sealed", "unsealed"]

_MAGIC = b"minijax executable 3\n"
_ARRAYS = "_reconstruct scalar"
# What a description of a program is made of: modules, and names in them.
_CLASSES: dict[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        "minijax.features.array_members.concrete": "_unpickle",
        "minijax.core.avals": "_unpickle",
        "minijax.features.sharding.memory_layouts": "ProgramLayouts",
        "minijax.features.sharding.program_placement": "ProgramPlacement",
        "minijax.lax.prng": "key_type",
        "minijax.runtime.gspmd": "GSPMDSharding",
        "minijax.runtime.layouts": "AutoLayout Format Layout",
        "minijax.runtime.mesh": "AbstractDevice AbstractMesh AxisType Mesh _unpickle_spec",
        "minijax.runtime.named_sharding": "NamedSharding",
        "minijax.runtime.saved": "_on_device",
        "ml_dtypes": "bfloat16 float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 "
        "float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
        "int1 int2 int4 uint1 uint2 uint4",
        "numpy": "dtype ndarray",
        "numpy._core.multiarray": _ARRAYS,
        "numpy.core.multiarray": _ARRAYS,
    }.items()
}


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _jax.Device):
            return "device", obj.id
        return ("class", *_home(obj)) if isinstance(obj, type) and _home(obj) else None

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is shardings.SingleDeviceSharding:  # else it were on the device of that number
            return _on_device, (obj.device, obj.memory_kind)
        if isinstance(obj, enum.Enum):  # Python before 3.11.4 has them found by getattr
            return type(obj), (obj.value,)
        named = isinstance(obj, (type, types.FunctionType, types.BuiltinFunctionType))
        if named and obj.__name__ not in _CLASSES.get(obj.__module__, ()):
            raise ValueError(
                f"the program has a part that cannot be serialized: "
                f"{obj.__module__}.{obj.__qualname__}"
            )
        return NotImplemented


def _home(kind: type) -> tuple[str, str] | None:
    """Return where a class is that names another module than its own, as those of the stand-in do."""
    name = kind.__name__
    for module, names in _CLASSES.items():
        if name in names and kind.__module__ != module:
            if getattr(sys.modules.get(module), name, None) is kind:
                return module, name
    return None


def _on_device(device: Any, kind: str | None) -> shardings.SingleDeviceSharding:
    own = shardings.single_device(device)
    return own if kind == own.memory_kind else own.with_memory_kind(kind)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, devices: dict[int, Any]):
        super().__init__(file)
        self.devices = devices

    def find_class(self, module: str, name: str) -> Any:
        if name not in _CLASSES.get(module, ()):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a compiled program")
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        if pid[0] == "class":
            return self.find_class(*pid[1:])
        try:
            return self.devices[pid[1]]
        except KeyError:
            raise ValueError(
                f"the program was compiled for device {pid[1]}, and the devices given in their order "
                f"stand for {sorted(self.devices)}: give as many as it was compiled for."
            ) from None


def save(value: Any) -> bytes:
    """Return a value, in which devices may be, as bytes.

    ValueError if it has parts of other classes than `load` takes, such as a type of the user's.
    """
    file = io.BytesIO()
    _Pickler(file, protocol=4).dump(value)
    return file.getvalue()


def load(data: bytes, devices: dict[int, Any]) -> Any:
    """Return the value, with these devices in the places of those that had the numbers.

    ValueError for bytes that `save` did not give.
    """
    try:
        return _Unpickler(io.BytesIO(data), devices).load()
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(
            f"these {len(data)} bytes are no description of a program: {error}"
        ) from None


def sealed(data: bytes) -> bytes:
    """Return bytes as a program is handed out: with what tells them from others, and from damage."""
    return _MAGIC + sha256(data).digest() + data


def unsealed(data: bytes) -> bytes:
    """Return the bytes that `sealed` was given. ValueError for others, and for damaged ones."""
    start = len(_MAGIC) + sha256().digest_size
    content = data[start:]
    if not data.startswith(_MAGIC):
        raise ValueError(
            f"these {len(data)} bytes are no program that this version of minijax serialized: "
            "give the bytes that serialize gave, whole."
        )
    if data[len(_MAGIC) : start] != sha256(content).digest():
        raise ValueError(
            f"a serialized program of {len(data)} bytes is damaged: give the bytes that serialize "
            "gave, whole."
        )
    return content


def save_executable(executable: Any, text: str, devices: Any, spmd: bool, options: Any) -> bytes:
    """The executable of a module as bytes.

    One that came from the disk is read there again: XLA leaves functions out when it writes what it
    has read.
    """
    kept = None if is_compile_only(devices) else disk_cache()
    if kept is None:
        return executable.serialize()
    key = program_key(text, devices, compile_options(devices, spmd=spmd, overrides=options))
    found = kept.get(key)
    return executable.serialize() if found is None else timed_content(found)[1]


def load_executable(data: bytes, devices: Sequence[Any], *, spmd: bool, made_for: str) -> Any:
    """The executable, loaded to run on these devices; `made_for` is the kind it was compiled for."""
    devices = tuple(devices)
    options, client = compile_options(devices, spmd=spmd), devices[0].client
    lapack.prepare_all(devices[0].platform)
    try:
        return client.deserialize_executable(data, shardings.device_list(devices), options)
    except _jax.JaxRuntimeError as error:
        kind, described = devices[0].device_kind, is_compile_only(devices)
        if kind == made_for and not described:
            raise
        what = " that is described and not attached" if described else ""
        raise _jax.JaxRuntimeError(
            f"{str(error).rstrip('.')}. The program was compiled for {made_for!r} and is loaded for {kind!r}{what}: "
            f"load it where devices of the kind {made_for!r} are attached."
        ) from None
