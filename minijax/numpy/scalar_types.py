"""The scalar types: `float32(x)` makes an array, and `float32` stands where a dtype may stand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from minijax.numpy.creation import asarray

__all__ = [
    "ScalarType", "bfloat16", "bool", "bool_", "cdouble", "character", "complex128", "complex64",
    "complex_", "complexfloating", "csingle", "double", "flexible", "float16", "float32",
    "float4_e2m1fn", "float64", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float_", "floating", "generic", "inexact", "int1", "int16", "int2", "int32",
    "int4", "int64", "int8", "int_", "integer", "number", "object_", "signedinteger", "single",
    "uint", "uint1", "uint16", "uint2", "uint32", "uint4", "uint64", "uint8", "unsignedinteger",
]  # fmt: skip


class ScalarType(type):
    """The type of scalar types: equal to the NumPy type and dtype of the same name."""

    dtype: np.dtype

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: Any) -> Any:
        same = isinstance(other, np.dtype) and cls.dtype == other
        return cls is other or cls.dtype.type == other or same

    def __ne__(cls, other: Any) -> Any:
        return not (cls == other)

    def __call__(cls, x: Any) -> Any:
        return asarray(x, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> Any:
        return isinstance(instance, cls.dtype.type)


def _scalar(kind: type, name: str | None = None) -> Any:
    dtype = np.dtype(kind)
    made = ScalarType(name or dtype.name, (object,), {"dtype": dtype})
    made.__module__ = "minijax.numpy"
    made.__doc__ = f"""Scalar type of {dtype.name}: stands for the dtype, and converts to it.

    `{made.__name__}(x)` returns an array of the shape of `x` and of this dtype; TypeError for
    objects that are no numbers. Source: NumPy's scalar types.

    >>> jnp.{made.__name__}.dtype.name
    '{dtype.name}'
    """
    return made


bool_ = bool = _scalar(np.bool_)
int1, int2, int4 = _scalar(ml_dtypes.int1), _scalar(ml_dtypes.int2), _scalar(ml_dtypes.int4)
int8, int16, int32, int64 = map(_scalar, (np.int8, np.int16, np.int32, np.int64))
uint1, uint2, uint4 = _scalar(ml_dtypes.uint1), _scalar(ml_dtypes.uint2), _scalar(ml_dtypes.uint4)
uint8, uint16, uint32, uint64 = map(_scalar, (np.uint8, np.uint16, np.uint32, np.uint64))
float4_e2m1fn = _scalar(ml_dtypes.float4_e2m1fn)
float6_e2m3fn = _scalar(ml_dtypes.float6_e2m3fn)
float6_e3m2fn = _scalar(ml_dtypes.float6_e3m2fn)
float8_e3m4 = _scalar(ml_dtypes.float8_e3m4)
float8_e4m3 = _scalar(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = _scalar(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = _scalar(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = _scalar(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = _scalar(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = _scalar(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _scalar(ml_dtypes.float8_e8m0fnu)
bfloat16 = _scalar(ml_dtypes.bfloat16)
float16, float32, float64 = map(_scalar, (np.float16, np.float32, np.float64))
complex64, complex128 = map(_scalar, (np.complex64, np.complex128))

single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128

generic, number, inexact = np.generic, np.number, np.inexact
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating
flexible, character, object_ = np.flexible, np.character, np.object_
