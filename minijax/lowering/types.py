"""How avals and constants are written in StableHLO."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import AbstractToken, ShapedArray
from minijax.core.hooks import hooks

__all__ = ["dense", "element_type", "physical", "tensor_type"]

_ELEMENT_TYPES = {
    "bool": "i1",
    "int2": "i2", "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint2": "ui2", "uint4": "ui4", "uint8": "ui8", "uint16": "ui16", "uint32": "ui32",
    "uint64": "ui64",
    "float4_e2m1fn": "f4E2M1FN", "float6_e2m3fn": "f6E2M3FN", "float6_e3m2fn": "f6E3M2FN",
    "float8_e3m4": "f8E3M4", "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2", "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
}  # fmt: skip


def element_type(dtype: np.dtype) -> str:
    """The StableHLO element type of a dtype. float0 is stored as booleans."""
    if dtype == dtypes.float0:
        return "i1"
    try:
        return _ELEMENT_TYPES[dtype.name]
    except KeyError:
        raise dtypes.no_element_type(dtype) from None


def physical(aval: ShapedArray) -> ShapedArray:
    """Return the aval of what is in memory: of random keys, their words along a further axis."""
    dtype = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        element = dtype.physical_element_aval
        return ShapedArray((*aval.shape, *element.shape), element.dtype)
    return aval


def tensor_type(aval: Any) -> str:
    """Return the type of an aval, such as `tensor<2x3xf32>`; kept with the aval."""
    try:
        return aval.__dict__["tensor_type"]
    except (KeyError, AttributeError):
        pass
    if isinstance(aval, AbstractToken):
        return "!stablehlo.token"
    stored = physical(aval)
    dims = "".join(["?x" if hooks.is_expression(size) else f"{size}x" for size in stored.shape])
    text = aval.__dict__["tensor_type"] = f"tensor<{dims}{element_type(stored.dtype)}>"
    return text


def _word(value: np.generic) -> str:
    """Return an MLIR literal of a number that has the same bits."""
    dtype = value.dtype
    if dtype == np.bool_:
        return "true" if value else "false"
    if dtype.kind in "iu" or dtype.name in ("int2", "int4", "uint2", "uint4"):
        return str(int(value))
    if dtype.kind == "c":
        return f"({_word(value.real)}, {_word(value.imag)})"
    bits = np.asarray(value).tobytes()[::-1].hex().upper()
    if dtypes.bit_width(dtype) < 8:
        return f"{float(value):.6e}"
    return f"0x{bits}"


def dense(value: np.ndarray) -> str:
    """Return the attribute for an array: a splat where all elements have the same bits."""
    if value.dtype == dtypes.float0:
        value = np.zeros(value.shape, np.bool_)
    if value.size == 0:
        return "dense<>"
    narrow = value.dtype == np.bool_ or dtypes.bit_width(value.dtype) < 8
    first = value.reshape(-1)[:1]
    if value.size == 1 or (value.tobytes() == first.tobytes() * value.size):
        return f"dense<{_word(first[0])}>"
    if narrow:
        return f"dense<{_nested(value)}>"
    return f'dense<"0x{np.ascontiguousarray(value).tobytes().hex().upper()}">'


def _nested(value: np.ndarray) -> str:
    if value.ndim == 0:
        return _word(value[()])
    return "[" + ", ".join([_nested(row) for row in value]) + "]"
