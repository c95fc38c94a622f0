"""Arrays that are made from nothing: of one value, and of the numbers 0, 1, 2, ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_index
from minijax.arrays.array import ArrayImpl, array_from_numpy, as_typed
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.core.trace import Tracer, eval_trace
from minijax.features.queries import is_dim
from minijax.features.sharding.explicit import constant_at, made_at
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.types import NO_AXES, vma_of
from minijax.lax.casts import vary
from minijax.lax.convert import convert_element_type, to_dtype
from minijax.lax.rules import check_dtype
from minijax.lax.shapes import as_value, broadcast_in_dim_p, canonical_shape
from minijax.runtime import platforms
from minijax.runtime.guards import check_transfer
from minijax.runtime.mesh import AbstractMesh
from minijax.runtime.named_sharding import (
    NamedSharding,
    is_empty,
    sums_open,
)
from minijax.runtime.sharding import Sharding, single_device
from minijax.typing import ArrayLike, DTypeLike, Shape

__all__ = [
    "broadcasted_iota", "counted", "empty", "empty_p", "full", "full_like", "iota", "iota_p", "varying_as",
]  # fmt: skip

NUMBERS = (bool, int, float, complex, np.generic)
_NO_OPERAND = "it has no operands, so no trace that transforms its operands meets it"


def _of_dtype(name: str, dtype: Any) -> np.dtype:
    """A dtype that was asked for, canonical; warns if it was to be wider."""
    return dtypes.check_user_dtype_supported(dtype, name)


def _without_operands(name: str) -> Primitive:
    p = Primitive(name)
    p.rule_jvp = p.rule_transpose = p.rule_batch = no_rule(_NO_OPERAND)
    return p


def _check_sizes(name: str, shape: tuple[int, ...]) -> None:
    if any(size < 0 for size in shape):
        function = "broadcast_in_dim" if name == "full" else name
        raise TypeError(f"{function} shape must have every element be nonnegative, got {shape}.")


# -- iota ---------------------------------------------------------------------------------------

iota_p = _without_operands("iota")
set_layout(iota_p)


@iota_p.shape_rule
def _(*, dtype, shape, dimension, sharding):
    _check_sizes("iota", shape)
    aval = ShapedArray(shape, dtype)
    check_dtype("iota", aval, (np.integer, np.floating, np.complexfloating))
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"iota dimension must be between 0 and len(shape), got {dimension=} for {shape=}"
        )
    return aval


@iota_p.lower
def _(b, *, dtype, shape, dimension, sharding):
    return b.op("stablehlo.iota", (), b.out, f"iota_dimension = {dimension} : i64")


def counted(size: Any) -> Any:
    """Return 0, 1, ..., size - 1 as NumPy's integers; as an array if the size depends on variables."""
    return iota(np.int32, size) if is_dim(size) else np.arange(size, dtype=np.int32)


def iota(dtype: DTypeLike, size: int) -> Array:
    """Return the vector 0, 1, ..., size - 1.

    - `dtype`: numeric dtype
    - `size`: nonnegative integer

    The result has shape (size,). TypeError for dtype bool or a negative size.
    Source: the StableHLO operation `stablehlo.iota`.

    >>> lax.iota(jnp.int32, 3)
    Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, canonical_shape((size,)), 0)


def broadcasted_iota(
    dtype: DTypeLike, shape: Shape, dimension: int, *, out_sharding: Any = None
) -> Array:
    """Return an array in which each element is its index along one axis.

    - `dtype`: numeric dtype
    - `shape`: shape of the result
    - `dimension`: nonnegative axis
    - `out_sharding`: sharding of the result

    TypeError for dtype bool or a negative size; ValueError if there is no such axis.
    Source: the StableHLO operation `stablehlo.iota`.

    >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    dtype, shape = _of_dtype("broadcasted_iota", dtype), canonical_shape(shape)
    dimension = known_index(dimension, "dimension argument of lax.broadcasted_iota")
    make = lambda over: iota_p.bind(dtype=dtype, shape=shape, dimension=dimension, sharding=over)
    return make(None) if out_sharding is None else made_at(make, out_sharding, "broadcasted_iota")


# -- full and empty -----------------------------------------------------------------------------


def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: Sharding | None = None,
) -> Array:
    """Return an array filled with one value.

    - `shape`: shape of the result
    - `fill_value`: scalar, whose dtype and weak type the result has unless `dtype` is given
    - `sharding`: sharding of the result

    TypeError if `fill_value` is not a scalar or a size is negative.
    Source: NumPy's `full`.

    >>> lax.full((2,), 7, jnp.int32)
    Array([7, 7], dtype=int32)
    """
    shape = canonical_shape(shape)
    if fill_value is None:
        raise ValueError("full: fill_value is None: give a number.")
    if np.shape(fill_value):
        raise TypeError(
            f"full must be called with scalar fill_value, got fill_value.shape "
            f"{np.shape(fill_value)}. Use minijax.numpy.full or broadcast_to for an array."
        )
    if dtype is None:
        fill_value = fitted(fill_value, None)
    else:
        fill_value = as_scalar(fill_value, _of_dtype("full", dtype))
    return _filled_at(shape, fill_value, sharding)


def _filled_at(shape: tuple[int, ...], scalar: Any, where: Any) -> Array:
    """An array on a device, or as a sharding that a user gave says."""
    if isinstance(getattr(where, "mesh", None), AbstractMesh) and not is_empty(where):
        return made_at(lambda over: _filled(shape, scalar, over), where, "broadcast_in_dim")
    return _filled(shape, scalar, where)


def _filled(shape: tuple[int, ...], scalar: Any, where: Any) -> Array:
    """`where`: a sharding or None. Put somewhere at once, the array is strongly typed.

    Of a sum that is still to be taken each device makes a summand.
    """
    where = None if is_empty(where) else where
    if where is not None and not _is_typed(where):
        made = _filled(shape, scalar, None)
        made = convert_element_type(made, made.dtype) if type(made) is ArrayImpl else made
        return constant_at(made, where)
    if not shape and where is None:
        get_aval(scalar)  # TypeError for what is no number
        return as_value(scalar)
    _check_sizes("full", shape)
    return broadcast_in_dim_p.bind(scalar, shape=shape, broadcast_dimensions=(), sharding=where)


_ON_HOST = 1 << 16  # elements, up to which NumPy makes what is known where nothing is traced


def made_on_host(size: int) -> bool:
    """Whether NumPy makes an array of known values, in the time of an execution, and not a program.

    Compiling the program would take 10 ms, for each shape.
    """
    return not is_dim(size) and size <= _ON_HOST and not local.context.settings.no_execution


@broadcast_in_dim_p.impl
def _(x, **params):
    shape, context = params["shape"], local.context
    free = params["sharding"] is None and context.mesh is None
    if free and isinstance(x, NUMBERS):
        check_transfer("host_to_device", get_aval(x), single_device(platforms.default_device()))
    if free and isinstance(x, NUMBERS) and made_on_host(math.prod(shape)):
        aval = get_aval(x)
        # Where there are guards of the values, they look at those of a program.
        if all(size > 0 for size in shape) and np.isfinite(x):
            value = np.full(shape, dtypes.number_as(x, aval.dtype))
            return array_from_numpy(value, aval.update(shape=shape), explicit=None)
    return context.outermost.process(broadcast_in_dim_p, (x,), params, use_impl=False)


def _is_typed(where: Any) -> bool:
    """Whether a sharding is one of types: over a mesh without devices, or of a sum over its axes."""
    if not isinstance(where, NamedSharding):
        return False
    return isinstance(where.mesh, AbstractMesh) or sums_open(where)


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


def fitted(x: Any, dtype: Any) -> Any:
    """A Python number to fill with: integers wrap around in the dtype, as NumPy's casts do."""
    if type(x) is int and not isinstance(dtype, dtypes.ExtendedDType):
        info = dtypes.iinfo(dtypes.int_())
        if not info.min <= x <= info.max:
            wrapped = np.asarray(x).astype(dtypes.int_() if dtype is None else dtype)[()]
            return int(wrapped) if dtype is None else wrapped
    elif type(x) is complex and getattr(dtype, "kind", "c") != "c":
        return bool(x) if dtype == dtypes.bool_ else float(x)  # the TypeError of Python
    return x


def as_scalar(value: Any, dtype: Any) -> Any:
    """A scalar of this dtype: a NumPy one where the value is known."""
    if hasattr(value, "__jax_array__"):
        value = value.__jax_array__()
    if isinstance(value, Array) or isinstance(dtype, dtypes.ExtendedDType):
        return convert_element_type(value, dtype)
    if type(value) is complex and not dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            f"fill_value {value} is complex, and the dtype is {dtype.name}: give its real part."
        )
    return as_typed(np.asarray(value).astype(dtype)[()])


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    sharding: Sharding | None = None,
) -> Array:
    """Return an array filled with one value, of the shape and dtype of another.

    - `x`: array, or an object with `shape` and `dtype`
    - `fill_value`: scalar
    - `dtype`, `shape`, `sharding`: replace those of `x`

    The result has the weak type of `x` unless `dtype` is given. TypeError if `fill_value` is not a
    scalar.
    Source: NumPy's `full_like`.

    >>> lax.full_like(jnp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    if dtype is None:
        described = hasattr(x, "shape") and hasattr(x, "dtype")
        typed = not callable(getattr(x, "aval", len))
        aval = get_aval(x) if typed or not described else x
        dtype = dtypes.canonicalize_dtype(aval.dtype, allow_extended_dtype=True)
        weak = aval is not x and aval.weak_type
    else:
        dtype, weak = _of_dtype("full_like", dtype), False
    shape = np.shape(x) if shape is None else canonical_shape(shape)
    given = sharding is not None
    if sharding is None and shape == np.shape(x):
        explicit = getattr(getattr(x, "aval", None), "explicit", None)
        concrete = type(x) is ArrayImpl and local.context.trace is eval_trace
        sharding = beside(x) if explicit is None else x.sharding if concrete else explicit
    if isinstance(dtype, dtypes.ExtendedDType) and np.shape(fill_value):
        return _keys_like(convert_element_type(fill_value, dtype), shape)
    if np.shape(fill_value):
        raise TypeError(
            f"full must be called with scalar fill_value, got fill_value.shape {np.shape(fill_value)}."
        )
    if isinstance(dtype, dtypes.ExtendedDType) and not isinstance(fill_value, Array):
        return dtype.full(ShapedArray(shape, dtype), fill_value)
    if dtype == dtypes.float0:  # NumPy's array: no device holds it
        return np.zeros(shape, dtype)
    fill_value = as_scalar(fill_value, dtype)
    if weak and not isinstance(fill_value, Array):
        fill_value = fill_value.item()
    elif weak:
        fill_value = to_dtype(fill_value, dtype, True)
    out = (_filled_at if given else _filled)(shape, fill_value, sharding)
    return varying_as(out, x)


def _keys_like(given: Any, shape: tuple[int, ...]) -> Any:
    """Elements of an extended dtype, given one by one."""
    if given.shape != shape:
        wanted = given.aval.update(shape=shape).str_short()
        raise ValueError(
            f"Incompatible types for broadcasting: input type={given.aval.str_short()} and requested "
            f"type={wanted}. Elements of extended dtypes are given one by one, or one for all."
        )
    return given


def varying_as(out: Array, x: Any) -> Array:
    """Return `out`, made like `x`, as varying over the manual mesh axes over which `x` varies."""
    if not local.context.varying:
        return out
    stated = getattr(getattr(x, "aval", x), "manual_axis_type", None)  # a ShapeDtypeStruct's too
    varying = NO_AXES if stated is None else stated.varying & local.context.varying
    return vary(out, varying - vma_of(get_aval(out)))


empty_p = _without_operands("empty")
set_layout(empty_p)


@empty_p.shape_rule
def _(*, shape, dtype, out_sharding):
    _check_sizes("empty", shape)
    return ShapedArray(shape, dtype)


@empty_p.lower
def _(b, *, shape, dtype, out_sharding):
    return b.full(0, b.out)


@empty_p.lower_on("cuda", "rocm", "tpu")
def _(b, *, shape, dtype, out_sharding):
    return b.custom_call("AllocateBuffer", (), [b.out], config='""', api_version=1)[0]


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Array:
    """Return an array whose values do not matter: zeros on a CPU, memory as it is elsewhere.

    - `shape`, `dtype`: shape and dtype of the result
    - `out_sharding`: sharding of the result

    Source: NumPy's `empty`.

    >>> lax.empty((2,), jnp.float32)
    Array([0., 0.], dtype=float32)
    """
    dtype, shape = _of_dtype("empty", dtype), canonical_shape(shape)
    return made_at(
        lambda over: empty_p.bind(shape=shape, dtype=dtype, out_sharding=over),
        out_sharding,
        "empty",
    )
