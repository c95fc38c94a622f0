"""Arrays of dtypes that libraries define."""

from __future__ import annotations

from typing import Any

from minijax import dtypes
from minijax.arrays.array import ArrayImpl, Signature
from minijax.core.avals import ShapedArray
from minijax.core.trace import Tracer

__all__ = ["EArray"]


class _ByDType(type):
    """An array counts as one by its dtype."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, ArrayImpl) and (
            isinstance(x.dtype, dtypes.ExtendedDType)
            and not dtypes.issubdtype(x.dtype, dtypes.prng_key)
        )


class EArray(ArrayImpl, metaclass=_ByDType):
    """Array of an extended dtype, with the memory of an array of what the dtype is stored as."""

    __slots__ = ()

    def __new__(cls, aval: ShapedArray, data: ArrayImpl) -> Any:
        if isinstance(data, Tracer):
            raise TypeError(f"The data must be a concrete array; got {data.described()}.")
        return ArrayImpl(data._buffer, Signature(aval, data.signature.place, data.committed))
