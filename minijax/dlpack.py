"""`minijax.dlpack`: arrays shared with other libraries, without copying where memory allows.

Source: the DLPack protocol of the Python array API standard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arrays.array import ArrayImpl, Signature
from minijax.core.avals import ShapedArray
from minijax.features.sharding.transfer import as_sharding, put_array
from minijax.namespace import shown
from minijax.runtime import buffers
from minijax.runtime import sharding as shardings
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
    """The array of another library (anything with `__dlpack__`) as an array of minijax.

    On a CPU the memory is shared, not copied, unless `copy=True`; the other library must not write
    to it then. With `device` the result is committed there. TypeError for what has no `__dlpack__`;
    ValueError if `copy=False` and a copy is needed.
    """
    if not hasattr(external_array, "__dlpack__") or not hasattr(
        external_array, "__dlpack_device__"
    ):
        raise TypeError(
            "The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods. "
            f"Got {external_array!r} of type {type(external_array)}."
        )
    kind, index = external_array.__dlpack_device__()
    home = shardings.single_device(buffers.dlpack_device(int(kind), index))
    if isinstance(external_array, ArrayImpl):
        buffer = external_array._buffer
    else:
        buffer = buffers.from_dlpack(external_array, home.device)
    dtype = np.dtype(buffer.aval.dtype) if hasattr(buffer.aval, "dtype") else buffer.dtype
    aval = ShapedArray(tuple(buffer.aval.shape), dtype)
    target = home if device is None else as_sharding(device)
    if target != home and copy is False:
        raise ValueError(
            f"from_dlpack was asked not to copy, but the array lies on {home.device} and the result "
            f"is wanted on {target}: pass copy=None."
        )
    place = buffers.place_of(buffer, home, aval)
    array = ArrayImpl(buffers.retyped(buffer, aval, home), Signature(aval, place, True))
    if target != home:
        return put_array(array, target)
    return array.__copy__() if copy else array


__dir__ = shown(__name__)
