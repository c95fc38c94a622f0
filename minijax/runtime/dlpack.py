"""Buffers shared with other libraries, by the DLPack protocol."""

from __future__ import annotations

import ctypes
import enum
from typing import Any

import ml_dtypes
import numpy as np

from minijax.runtime import buffers, platforms
from minijax.runtime.released import collect
from minijax.runtime.unimported import without_upstream
from minijax.runtime.versions import _jax

__all__ = ["DLDeviceType", "dlpack_device", "dlpack_kind", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Kinds of devices as DLPack numbers them. Source: https://dmlc.github.io/dlpack/latest/."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLROCM = 10


_CPU, _CUDA, _CUDA_HOST, _ROCM = DLDeviceType


def dlpack_device(kind: int, index: int) -> Any:
    """The device that DLPack numbers so, or None for a kind that none of ours is."""
    if kind in (_CPU, _CUDA_HOST):
        return platforms.backend("cpu").local_devices()[0]
    if kind in (_CUDA, _ROCM):
        client = platforms.backend("cuda" if kind == _CUDA else "rocm")
        return client.device_from_local_hardware_id(index)
    return None


def dlpack_kind(device: Any) -> tuple[int, int]:
    """Return how DLPack numbers a device."""
    if device.platform == "cpu":
        return _CPU, 0
    kind = _ROCM if "rocm" in device.client.platform_version else _CUDA
    return kind, device.local_hardware_id


def to_dlpack(buffer: Any, stream: Any = None) -> Any:
    """A DLPack capsule that shares the memory of a buffer; -1 is a stream that waits for nothing."""
    collect()  # buffers that other libraries have let go of: they may be large
    return buffers.exported(buffer, None if stream == -1 else stream)


def from_dlpack(
    external: Any, device: Any, copy: bool | None = None
) -> tuple[Any, tuple[int, ...], np.dtype] | None:
    """A buffer that shares the memory of another library's array, its shape and its dtype.

    The buffer holds a copy if that memory is not aligned; None if `copy` is False then.
    """
    stream = None  # on which the values are waited for
    if device.platform != "cpu":
        stream = device.get_stream_for_external_ready_events()
    capsule = external.__dlpack__(stream=stream)
    shape, name = _described(capsule)
    try:
        buffer = without_upstream(
            _jax.dlpack_managed_tensor_to_buffer, capsule, device, stream, copy
        )
    except _jax.JaxRuntimeError as error:
        if copy is not False or "unaligned" not in str(error):
            raise
        return None
    return buffer, shape, np.dtype(getattr(ml_dtypes, name, name))


class _Tensor(ctypes.Structure):
    """A DLTensor, as DLPack's header has it."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
    ]  # fmt: skip


_is_capsule, _pointer_of = (
    ctypes.PYFUNCTYPE(result, ctypes.py_object, ctypes.c_char_p)((name, ctypes.pythonapi))
    for result, name in (
        (ctypes.c_int, "PyCapsule_IsValid"),
        (ctypes.c_void_p, "PyCapsule_GetPointer"),
    )
)
_NAME = b"dltensor"
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}  # and their bits
_NAMES = {
    6: "bool", 7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn",
    11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz", 14: "float8_e8m0fnu",
    15: "float6_e2m3fn", 16: "float6_e3m2fn", 17: "float4_e2m1fn",
}  # fmt: skip


def _described(capsule: Any) -> tuple[tuple[int, ...], str]:
    """Return the shape of a capsule's tensor and the name of its dtype, which the buffer may not know.

    jaxlib takes types of buffers from upstream, where that is installed.
    """
    if not _is_capsule(capsule, _NAME):
        return (), ""  # jaxlib says what is wrong
    tensor = _Tensor.from_address(_pointer_of(capsule, _NAME))
    kind = _KINDS.get(tensor.code)
    name = f"{kind}{tensor.bits}" if kind else _NAMES.get(tensor.code, "")
    return tuple(tensor.shape[: tensor.ndim]), name
