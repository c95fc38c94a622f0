"""Counterparts of upstream's private types for annotations, and of its functions on integer
dtypes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from minijax.core.avals import ShapedArray
from minijax.features.references.cells import AbstractRef
from minijax.jax.private.programs import is_constant_dim
from minijax.runtime.dlpack import DLDeviceType

__all__ = [
    "DLDeviceType", "DeprecatedArg", "DuckTypedArray", "SupportsDType", "SupportsNdim",
    "SupportsShape", "SupportsSize", "dtype_to_string", "ensure_shaped", "input_dtype",
    "int_dtype_for_dim", "int_dtype_for_shape",
]  # fmt: skip


class DeprecatedArg:
    """The default of an argument that is no longer looked at."""

    def __repr__(self) -> str:
        return "Deprecated"


@runtime_checkable
class SupportsDType(Protocol):
    @property
    def dtype(self) -> Any: ...


class SupportsShape(Protocol):
    @property
    def shape(self) -> tuple: ...


class SupportsNdim(Protocol):
    @property
    def ndim(self) -> int: ...


class SupportsSize(Protocol):
    @property
    def size(self) -> int: ...


class DuckTypedArray(Protocol):
    @property
    def dtype(self) -> Any: ...

    @property
    def shape(self) -> tuple: ...


# -- of lax.utils --------------------------------------------------------------------------------------

_int32_max, _uint32_max = 2**31 - 1, 2**32 - 1


def int_dtype_for_shape(shape: Sequence[Any], *, signed: bool) -> np.dtype:
    """The dtype of 32 bits, or of 64 if need be, that indices of this shape fit in."""
    most = _int32_max if signed else _uint32_max
    wide = any(is_constant_dim(d) and d > most for d in shape)
    return np.dtype(f"{'' if signed else 'u'}int{64 if wide else 32}")


def int_dtype_for_dim(d: Any, *, signed: bool) -> np.dtype:
    """The dtype of 32 bits, or of 64 if need be, that indices of an axis of this size fit in."""
    return int_dtype_for_shape((d,), signed=signed)


def dtype_to_string(dtype: Any) -> str:
    """A dtype's name; of what has none, its text."""
    try:
        return str(np.dtype(dtype).name)
    except (TypeError, AttributeError):
        return str(dtype)


def input_dtype(x: Any, *_: Any, out_dtype: Any = None, **__: Any) -> Any:
    """The rule that a result has the dtype of the first operand, unless another is asked for."""
    return x.dtype if out_dtype is None else out_dtype


def ensure_shaped(*avals: Any) -> tuple[Any, ...]:
    """The types. ValueError unless all are of arrays."""
    if not all(isinstance(aval, (ShapedArray, AbstractRef)) for aval in avals):
        raise ValueError(f"Expected ShapedArray; got {[type(aval) for aval in avals]}")
    return avals
