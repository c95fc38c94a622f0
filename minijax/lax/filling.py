"""Arrays that are made from nothing: of one value, and of the numbers 0, 1, 2, ...

May import the floors below, `lax.convert` and `lax.shapes`.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arrays.array import ArrayImpl
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.core.trace import Tracer, eval_trace
from minijax.lax.convert import convert_element_type, convert_element_type_p
from minijax.lax.rules import check_dtype
from minijax.lax.shapes import as_value, broadcast_in_dim_p, canonical_shape
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named import NamedSharding, out_sharding_of, sharding_of, sums_open
from minijax.runtime.sharding import Sharding
from minijax.transforms.transfer import device_put

__all__ = ["broadcasted_iota", "empty", "empty_p", "full", "full_like", "iota", "iota_p"]

_NO_OPERAND = "it has no operands, so no trace that transforms its operands meets it"


def _of_dtype(name: str, dtype: Any) -> np.dtype:
    """A dtype that was asked for, canonical; warns if it was to be wider."""
    dtypes.check_user_dtype_supported(dtype, name)
    return dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True)


def _without_operands(name: str) -> Primitive:
    p = Primitive(name)
    p.rule_jvp = p.rule_transpose = p.rule_batch = no_rule(_NO_OPERAND)
    return p


def _check_sizes(name: str, shape: tuple[int, ...]) -> None:
    if any(size < 0 for size in shape):
        raise TypeError(f"{name} shape must have every element be nonnegative, got {shape}.")


# -- iota ---------------------------------------------------------------------------------------

iota_p = _without_operands("iota")


@iota_p.shape_rule
def _(*, dtype, shape, dimension, sharding):
    _check_sizes("iota", shape)
    aval = ShapedArray(shape, dtype)
    check_dtype("iota", aval, (np.integer, np.floating, np.complexfloating))
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"iota: dimension must be between 0 and len(shape), got dimension={dimension} for "
            f"shape={shape}."
        )
    return aval


@iota_p.lower
def _(b, *, dtype, shape, dimension, sharding):
    return b.op("stablehlo.iota", (), b.out, f"iota_dimension = {dimension} : i64")


def iota(dtype: Any, size: int) -> Array:
    """The numbers 0, 1, ..., size - 1 as a vector. StableHLO: `iota`."""
    return broadcasted_iota(dtype, canonical_shape((size,)), 0)


def broadcasted_iota(dtype: Any, shape: Any, dimension: int, *, out_sharding=None) -> Array:
    """An array of this shape in which each element is its index along axis `dimension`.

    TypeError for dtype bool or a negative size; ValueError if there is no such axis (it counts
    from the front).
    """
    return iota_p.bind(
        dtype=_of_dtype("iota", dtype),
        shape=canonical_shape(shape),
        dimension=index(dimension),
        sharding=out_sharding_of(out_sharding, "broadcasted_iota"),
    )


# -- full and empty -----------------------------------------------------------------------------


def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding=None) -> Array:
    """An array of one value, which is a scalar.

    Its dtype, and weak type, are those of `fill_value` unless `dtype` is given. TypeError if
    `fill_value` is no scalar or a size is negative. Source: `numpy.full`.
    """
    shape = canonical_shape(shape)
    if fill_value is None:
        raise ValueError("full: fill_value is None: give a number.")
    if np.shape(fill_value):
        raise TypeError(
            f"full must be called with scalar fill_value, got fill_value.shape "
            f"{np.shape(fill_value)}. Use minijax.numpy.full or broadcast_to for an array."
        )
    if dtype is not None:
        fill_value = _scalar(fill_value, _of_dtype("full", dtype))
    return _filled(shape, fill_value, sharding)


def _filled(shape: tuple[int, ...], scalar: Any, where: Any) -> Array:
    """`where`: a sharding or None. Put somewhere at once, the array is strongly typed.

    Of a sum that is still to be taken each device makes a summand.
    """
    if isinstance(where, (NamedSharding, PartitionSpec)):
        where = sharding_of(where, "full")
    if where is not None and not sums_open(where) and local.context.trace is eval_trace:
        made = _filled(shape, scalar, None)
        return device_put(convert_element_type(made, made.dtype), where)
    if where is not None and not isinstance(where, NamedSharding):
        return device_put(_filled(shape, scalar, None), where)
    if not shape and where is None:
        get_aval(scalar)  # TypeError for what is no number
        return as_value(scalar)
    _check_sizes("full", shape)
    return broadcast_in_dim_p.bind(scalar, shape=shape, broadcast_dimensions=(), sharding=where)


def beside(x: Any) -> Any:
    """The sharding of what is made like `x`: that of an array which has been put somewhere.

    Of what is no array, but has a shape and a dtype, the sharding it says. None for others, and
    under a trace; over Explicit axes types say it.
    """
    if local.context.trace is not eval_trace or isinstance(x, Tracer):
        return None
    if type(x) is ArrayImpl:
        return x.sharding if x.committed and x.aval.explicit is None else None
    where = getattr(x, "sharding", None) if hasattr(x, "dtype") else None
    if not isinstance(where, Sharding) or not getattr(x, "committed", True):
        return None
    return None if getattr(getattr(x, "aval", None), "explicit", None) else where


def _scalar(value: Any, dtype: Any) -> Any:
    """A scalar of this dtype: a NumPy one where the value is known."""
    if isinstance(value, Array) or isinstance(dtype, dtypes.ExtendedDType):
        return convert_element_type(value, dtype)
    if type(value) is complex and not dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            f"fill_value {value} is complex, and the dtype is {dtype.name}: give its real part."
        )
    return np.asarray(value).astype(dtype)[()]


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None
) -> Array:
    """An array of one value, with the shape, dtype and weak type of `x` where none is given.

    `x` is an array or has `shape` and `dtype`.
    """
    if dtype is None:
        aval = x if hasattr(x, "shape") and hasattr(x, "dtype") else get_aval(x)
        dtype = dtypes.canonicalize_dtype(aval.dtype, allow_extended_dtype=True)
        weak = getattr(aval, "weak_type", False)
    else:
        dtype, weak = _of_dtype("full_like", dtype), False
    shape = np.shape(x) if shape is None else canonical_shape(shape)
    if sharding is None and shape == np.shape(x):
        explicit = getattr(getattr(x, "aval", None), "explicit", None)
        concrete = type(x) is ArrayImpl and local.context.trace is eval_trace
        sharding = beside(x) if explicit is None else x.sharding if concrete else explicit
    if np.shape(fill_value):
        raise TypeError(
            f"full_like takes a scalar fill_value, got one of shape {np.shape(fill_value)}."
        )
    if isinstance(dtype, dtypes.ExtendedDType) and not isinstance(fill_value, Array):
        return dtype.full(ShapedArray(shape, dtype), fill_value)
    fill_value = _scalar(fill_value, dtype)
    if weak and not isinstance(fill_value, Array):
        fill_value = fill_value.item()
    elif weak:
        fill_value = convert_element_type_p.bind(
            fill_value, new_dtype=dtype, weak_type=True, sharding=None
        )
    return _filled(shape, fill_value, sharding)


empty_p = _without_operands("empty")


@empty_p.shape_rule
def _(*, shape, dtype, out_sharding):
    _check_sizes("empty", shape)
    return ShapedArray(shape, dtype)


@empty_p.lower
def _(b, *, shape, dtype, out_sharding):
    return b.full(0, b.out)


def empty(shape: Any, dtype: Any, *, out_sharding=None) -> Array:
    """An array whose values do not matter. They are zeros."""
    return empty_p.bind(
        shape=canonical_shape(shape),
        dtype=_of_dtype("empty", dtype),
        out_sharding=out_sharding_of(out_sharding, "empty"),
    )
