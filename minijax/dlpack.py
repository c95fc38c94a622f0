"""`minijax.dlpack`: arrays shared with other libraries, without copying where memory allows.

Source: the DLPack protocol of the Python array API standard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arrays.array import ArrayImpl, Signature
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.features.sharding.transfer import as_sharding, put_array
from minijax.lax.convert import convert_element_type
from minijax.runtime import buffers
from minijax.runtime import dlpack as tensors
from minijax.runtime import sharding as shardings
from minijax.tracebacks import public
from minijax.typing import DTypeLike

__all__ = ["from_dlpack", "is_supported_dtype"]


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether DLPack can carry arrays of this dtype."""
    if dtype is None:
        raise TypeError("Expected a string or dtype-like object; got dtype=None")
    found = dtype if isinstance(dtype, dtypes.ExtendedDType) else np.dtype(dtype)
    if isinstance(found, dtypes.ExtendedDType):
        return False
    if not dtypes.is_supported(found):
        return False
    return dtypes.bit_width(found) >= 8 and found != dtypes.float0


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> ArrayImpl:
    """Convert an array of another library by the DLPack protocol, without a copy where possible.

    - `external_array`: object with `__dlpack__` and `__dlpack_device__`
    - `device`: device or sharding of one device; by default that of the array
    - `copy`: copy in any case if True, in none if False

    Returns an array committed to its device, of the shape of `external_array` and its dtype in the
    width of the current mode. Memory of a CPU that is aligned to 64 bytes is shared, and nobody may
    write to it from then on. TypeError for an object without these methods; ValueError for several
    devices, or if `copy` is False and a copy is needed.
    Source: the DLPack protocol of the Python array API standard.

    >>> jnp.from_dlpack(np.arange(3, dtype=np.int32))
    Array([0, 1, 2], dtype=int32)
    """
    if isinstance(external_array, Array) and dtypes.is_extended(external_array.dtype):
        raise TypeError(f"{_NO_METHODS} Got keys: share jax.random.key_data of them.")
    if not hasattr(external_array, "__dlpack__") or not hasattr(
        external_array, "__dlpack_device__"
    ):
        raise TypeError(f"{_NO_METHODS} Got {external_array!r} of type {type(external_array)}.")
    kind, index = external_array.__dlpack_device__()
    home_device = tensors.dlpack_device(int(kind), index)
    if home_device is None:
        raise TypeError(
            f"Array passed to from_dlpack is on unsupported device type (DLDeviceType: {int(kind)}, "
            f"array: {external_array!r}): copy it to the CPU, or to a GPU of CUDA or ROCm."
        )
    home = shardings.single_device(home_device)
    target = home if device is None else as_sharding(device)
    if len(target.device_set) > 1:
        raise ValueError(
            "from_dlpack can only unpack a dlpack tensor onto a singular device, but a Sharding with "
            f"{len(target.device_set)} devices was provided: device_put the result."
        )
    if target != home and copy is False:
        raise ValueError(
            f"Specified device={device!r} which requires a copy since the source device is "
            f"{home.device!r}, however {_NOT_COPIED}"
        )
    found = tensors.from_dlpack(external_array, home.device, copy)
    if found is None:
        raise ValueError(
            "Specified input which requires a copy since the source data buffer is not aligned to "
            f"64 bytes.  However {_NOT_COPIED}"
        )
    buffer, shape, dtype = found
    aval = ShapedArray(shape, dtype)
    place = buffers.place_of(buffer, home, aval)
    array = ArrayImpl(buffers.retyped(buffer, aval, home), Signature(aval, place, True))
    narrow = dtypes.canonicalize_dtype(dtype)
    if narrow != dtype:
        array = convert_element_type(array, narrow)
    elif copy and target == home:
        array = array.__copy__()
    return array if target == home else put_array(array, target)


_NO_METHODS = "The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods."
_NOT_COPIED = "copy=False. Set copy=True or copy=None to perform the requested operation."


__dir__ = public(__name__)
