"""Arrays from values: array, asarray, zeros, full, copy, and what reads buffers and files.

Ranges and grids stand in `ranges`, `triangles` and `grids`.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Sequence, Sized
from contextlib import suppress
from typing import IO, Any

import numpy as np

from minijax import dlpack, dtypes, tree_util
from minijax.arguments.functions import check_at_most, check_callable
from minijax.arrays.array import ArrayImpl, array_from_numpy, as_typed, as_value
from minijax.config import local, override
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.staging import recording_trace
from minijax.core.trace import Tracer, eval_trace
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.features.sharding.constraints import sharding_constraint_p
from minijax.features.sharding.explicit import constant_at, split_as
from minijax.features.sharding.transfer import as_sharding, device_put, put_array
from minijax.lax import creation
from minijax.lax.compare import ne_p
from minijax.lax.convert import convert_element_type, copy_p, to_dtype
from minijax.lax.joining import join, stack_p
from minijax.lax.shapes import MOST_AXES
from minijax.namespace import user_stacklevel
from minijax.numpy.promotion import (
    as_dtype,
    broadcast_to_shape,
    canonical_shape,
    cast,
    check_arraylike,
    converted,
    to_array,
)
from minijax.numpy.shapes import broadcast_to, expanded
from minijax.runtime.executables import is_compile_only
from minijax.runtime.mesh import PartitionSpec, device_mesh
from minijax.runtime.named_sharding import NamedSharding, is_empty
from minijax.runtime.platforms import Device
from minijax.runtime.sharding import Sharding, single_device
from minijax.transforms.vmap import vmap
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "array", "asarray", "astype", "copy", "empty", "empty_like", "from_dlpack", "frombuffer",
    "fromfile", "fromfunction", "fromiter", "fromstring", "full", "full_like", "load", "ones",
    "ones_like", "zeros", "zeros_like",
]  # fmt: skip

_NUMBERS = dtypes.python_scalar_dtypes


def placed(x: Any, device: Any, out_sharding: Any = None, name: str = "", **options: bool) -> Any:
    """`x` on a device or sharding, if one was asked for; ValueError for a `Format`.

    `name`: that of the function, for messages on `out_sharding`; `options`: those of `split_as`
    """
    if device is None or is_empty(device):
        return split_as(x, out_sharding, name, **options)
    if out_sharding is not None:
        raise ValueError(
            f"Only one of `device` or `out_sharding` can be set. Got {device=} and {out_sharding=}."
        )
    if not isinstance(device, (Device, Sharding)):
        raise ValueError(
            f"sharding={device!r} must be an instance of jax.sharding.Sharding: put the array there with "
            "minijax.device_put(x, ...), or give a PartitionSpec as out_sharding."
        )
    where = as_sharding(device)
    mesh = getattr(where, "mesh", None)
    traced = isinstance(x, Tracer) or recording_trace() is not None
    if traced and (mesh is None or mesh.are_all_axes_auto):
        return sharding_constraint_p.bind(x, sharding=where)
    return device_put(x, where)


def _constant_at(x: Any, device: Any, out_sharding: Any, name: str) -> Any:
    """Place an array of one value, as `placed` does but for programs, which do not place constants."""
    if device is None or is_empty(device) or out_sharding is not None:
        return placed(x, device, out_sharding, name)
    return constant_at(x, device)


def spread(x: Any, device: Any, out_sharding: Any, name: str, **options: bool) -> Any:
    """Place as `placed` what the host has made: it lies whole on each device of the mesh in force.

    A program for devices that are only described holds it as a constant, from wherever it lies.
    """
    mesh = device_mesh()
    if mesh.empty or not (device is out_sharding is None) or type(x) is not ArrayImpl:
        return placed(x, device, out_sharding, name, **options)
    if x.committed or (recording_trace() is not None and is_compile_only(mesh.devices.flat)):
        return x
    return put_array(x, NamedSharding(mesh, PartitionSpec()))


def staged(x: Any) -> Any:
    """Return a new array as a constant of the program that is being recorded, if one is.

    Its values are not to be read there, as those of no result of an operation are.
    """
    if local.context.trace is eval_trace or type(x) is not ArrayImpl:
        return x
    trace = recording_trace()
    return x if trace is None else trace.tracer_of(x)


# -- from values ------------------------------------------------------------------------------


def _by_position(args: tuple, *by_name: Any) -> tuple[Any, ...]:
    """Return copy, order and ndmin of `array`, where the first of them were given by position."""
    if len(args) > len(by_name):
        raise TypeError(
            f"array() takes at most 5 positional arguments but {2 + len(args)} were given: object, "
            "dtype, copy, order and ndmin. Give the others by name."
        )
    warnings.warn(
        "Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated. "
        "Use keyword arguments instead.",
        DeprecationWarning,
        stacklevel=user_stacklevel(),
    )
    return args + by_name[len(args) :]


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Create an array.

    - `object`: array, scalar, or nested sequences of these of equal lengths.
    - `dtype`: dtype of the result; by default that of `object`, with Python numbers in the default
      widths. A Python number alone gives a weakly typed scalar.
    - `copy`: copy `object` even if it is an array, True by default.
    - `ndmin`: least number of dimensions; new axes come first.

    Returns an array of the shape of `object`, placed as `device` or `out_sharding` say. TypeError
    for objects without numbers, ValueError for None and ragged sequences. Source: NumPy's `array`.

    >>> jnp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    if args:
        copy, order, ndmin = _by_position(args, copy, order, ndmin)
    if order not in (None, "K"):
        raise NotImplementedError(f"Only implemented for order='K'; got order={order!r}.")
    if copy and isinstance(object, np.ma.MaskedArray):  # a copy may leave the mask behind
        object = np.asarray(object)
    out = _made(object, as_dtype(dtype, "array"), copy, device)
    if ndmin > out.ndim:
        check_at_most("ndmin", ndmin, MOST_AXES)
        out = expanded(out, range(ndmin - out.ndim))
    return _placed_as_asked(object, out, device, out_sharding)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Convert an object to an array, without a copy where possible.

    - `a`: array, scalar, or nested sequences of these of equal lengths.
    - `dtype`: dtype of the result, as in `array`.
    - `copy`: True copies always; False raises an error where a copy is needed; None copies if
      needed.
    - `device` or `out_sharding`: placement of the result.

    Returns an array of the shape of `a`. ValueError for None, for ragged sequences, or if `copy` is
    False and impossible; TypeError for objects that hold no numbers. Source: NumPy's `asarray`.

    >>> jnp.asarray([1.0, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    if order not in (None, "K"):
        raise NotImplementedError(f"Only implemented for order='K'; got order={order!r}.")
    dtype = as_dtype(dtype, "asarray")
    if isinstance(a, np.ma.MaskedArray) and (copy or dtype is not None):
        a = np.asarray(a)
    out = _made(a, dtype, bool(copy), device)
    if copy is False and dtype is not None and out is not a and isinstance(a, Array):
        raise ValueError(
            f"asarray(copy=False): a copy is needed to convert {a.dtype.name} to {out.dtype.name}."
        )
    return _placed_as_asked(a, out, device, out_sharding)


def _placed_as_asked(x: Any, out: Array, device: Any, out_sharding: Any) -> Array:
    """Return an array that was made of `x`; one that lies there already is not committed."""
    if isinstance(x, Array) or hasattr(x, "__jax_array__"):
        where = single_device(device) if isinstance(device, Device) else device
        if type(x) is ArrayImpl and out.dtype == x.dtype and where == x.sharding:
            device = None if out_sharding is None else device
        return placed(out, device, out_sharding, "jnp.array", new=False)
    if device is not None:
        return placed(staged(out), device, out_sharding)
    return staged(spread(out, None, out_sharding, "jnp.array", new=False))


def _made(x: Any, dtype: Any, copied: bool, device: Any) -> Array:
    """Return `_to_array(x, dtype, copied)`, made on one device directly if one is asked for."""
    if isinstance(device, Device) and recording_trace() is None:
        with override("default_device", device):
            return _to_array(x, dtype, copied, device)
    return _to_array(x, dtype, copied, device)


def _to_array(x: Any, dtype: Any, copied: bool, device: Any = None) -> Array:
    if isinstance(x, Array):
        out = x if dtype is None else cast(x, dtype)
        return copy_p.bind(out) if out is x and (copied or _of_host(x)) else out
    kind = type(x)
    if kind in _NUMBERS:
        if dtype is None:
            return as_value(x)
        return _from_numbers(x, {kind}, dtype)
    if isinstance(x, (list, tuple)):
        try:
            return _from_sequence(x, dtype)
        except ValueError as error:
            if "inhomogeneous" not in str(error):
                raise
            raise ValueError(
                f"{error} Give all rows the same length: pad the shorter ones, and mask them."
            ) from None
    if hasattr(x, "__jax_array__"):
        return _to_array(x.__jax_array__(), dtype, copied, device)
    if x is None:
        raise ValueError("None is not a valid value for jnp.array: give numbers.")
    if not isinstance(x, (np.ndarray, np.generic)):
        if isinstance(x, (bool, int, float, complex)):
            return _to_array(_plain(x), dtype, copied)
        x = _through_numpy(x, dtype)
    if x.dtype == dtypes.string and device is not None:
        return put_array(x, device)
    return _from_numpy(x, dtype)


def _of_host(x: Any) -> bool:
    """Whether a tracer stands for a known number or NumPy array, where no program is recorded."""
    known = x.concrete() if isinstance(x, Tracer) else None
    host = isinstance(known, (int, float, complex, np.ndarray, np.generic))
    return host and recording_trace() is None


def _plain(x: Any) -> Any:
    return next(kind(x) for kind in (bool, int, float, complex) if isinstance(x, kind))


def _through_numpy(x: Any, dtype: Any = None) -> np.ndarray:
    """Convert an object by NumPy: by `__array__`, the buffer protocol, or as a sequence."""
    try:
        out = np.asarray(x)
    except MemoryError as error:
        if str(error):
            raise
        said = f"a sequence of {len(x)} items" if isinstance(x, Sized) else f"{type(x)}"
        raise MemoryError(f"No memory for the elements of {said}: give a NumPy array.") from None
    if out.dtype.kind in "OSUMm" and dtype is not None:
        with suppress(TypeError):  # which what follows says of the value
            out = np.asarray(x, dtype)  # numbers as text or objects; ValueError for other text
    if out.dtype.kind in "OSUMm":
        raise TypeError(
            f"Value '{x}' with dtype {out.dtype} is not a valid JAX array type. Only arrays of "
            "numeric types are supported by JAX: give numbers, or sequences of them."
        )
    return out


def _from_numpy(x: Any, dtype: Any) -> Array:
    if x.dtype.kind in "OSUMm":
        x = _through_numpy(x, dtype)
    if dtype is not None and dtype != x.dtype:
        x = x.astype(dtype)  # NumPy warns of what is lost
    return as_value(x if dtype is None else as_typed(x))


def _from_sequence(x: Sequence[Any], dtype: Any) -> Array:
    if any(isinstance(item, (list, tuple)) for item in x):
        tree_util.tree_leaves(
            x
        )  # RecursionError; jaxlib gives with `is_leaf` no depth back after it
    leaves = tree_util.tree_leaves(x, is_leaf=lambda leaf: leaf is None)
    kinds = set(map(type, leaves))
    if type(None) in kinds:
        raise ValueError("None is not a valid value for jnp.array: give numbers.")
    if not kinds:
        return as_value(np.asarray(x, dtype or dtypes.float_()))
    if kinds <= _NUMBERS.keys():
        return _from_numbers(x, kinds, dtype)
    leaves = [_leaf(leaf, dtype) for leaf in leaves]
    if dtype is None and not isinstance(leaves[0].dtype, dtypes.ExtendedDType):
        dtype = dtypes.lattice_result_type(*leaves)[0]
    plain = all(
        not isinstance(leaf, Array) or (type(leaf) is ArrayImpl and not leaf.shape)
        for leaf in leaves
    )
    context = local.context
    free = context.numbers_key is context.key  # no transfer is guarded
    if plain and free and dtype is not None and context.trace is eval_trace:
        values = tree_util.tree_structure(x).unflatten([np.asarray(leaf) for leaf in leaves])
        return as_value(as_typed(np.array(values, dtype=dtype)))
    return _stacked(x, dtype)


def _leaf(x: Any, dtype: Any) -> Any:
    """An element of a sequence, as something with a dtype."""
    if hasattr(x, "__jax_array__") and not isinstance(x, Array):
        return _leaf(x.__jax_array__(), dtype)
    if isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex)):
        return x if hasattr(x, "dtype") else as_value(x)
    return _through_numpy(x, dtype)


def _from_numbers(x: Any, kinds: set[type], dtype: Any) -> Array:
    widest = next(kind for kind in (complex, float, int, bool) if kind in kinds)
    default = dtypes.canonicalize_dtype(_NUMBERS[widest])
    if dtype is None or dtype == default:
        return as_value(np.array(x, dtype=default))
    to_real = widest is complex and not dtypes.issubdtype(dtype, np.complexfloating)
    if widest is int or to_real or dtype.kind in "iub":  # NumPy says which numbers do not fit
        return as_value(as_typed(np.array(x, dtype=dtype)))
    value = np.array(x, dtype=default)
    with np.errstate(all="ignore"):
        return as_value(as_typed(value.astype(dtype)))


def _stacked(x: Any, dtype: Any) -> Array:
    """Nested sequences with arrays in them, stacked from the inside out."""
    if not isinstance(x, (list, tuple)):
        x = _leaf(x, dtype)
        x = to_array("array", x)
        return x if dtype is None else cast(x, dtype)
    parts = [_stacked(item, dtype) for item in x]
    if not parts:
        return as_value(np.zeros((0,), dtype))
    if any(part.shape != parts[0].shape for part in parts):
        raise ValueError(
            "setting an array element with a sequence: the parts have the shapes "
            f"{[part.shape for part in parts]}, which must be equal."
        )
    return join(stack_p, parts, 0)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Return a copy of an array.

    - `a`: array of any shape and dtype, or what `array` takes.

    Returns an array of the shape and dtype of `a`. Source: NumPy's `copy`.

    >>> jnp.copy(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(
    x: ArrayLike,
    dtype: DTypeLike | None,
    /,
    *,
    copy: bool = False,
    device: Device | Sharding | None = None,
) -> Array:
    """Convert an array to another dtype.

    - `x`: array of any shape; complex numbers lose their imaginary parts in real dtypes.
    - `dtype`: the dtype, or None for the default float.
    - `copy`: copy even where the dtype is right already, False by default.
    - `device`: placement of the result.

    Returns an array of the shape of `x`. Source: NumPy's `astype`, of the array API standard.

    >>> jnp.astype(jnp.array([1.7, -1.7]), jnp.int32)
    Array([ 1, -1], dtype=int32)
    """
    if not hasattr(x, "aval"):
        x = to_array("astype", x)
    dtype = dtypes.check_user_dtype_supported(dtype, "astype")
    aval = x.aval
    if aval.dtype == dtype and not aval.weak_type:
        return placed(copy_p.bind(x) if copy else x, device)
    if dtype.kind == "V" and dtype == dtypes.float0:
        return convert_element_type(x, dtype)
    if aval.dtype.kind == "c" and dtype.kind not in "cb":
        warnings.warn(
            "Casting from complex to real dtypes will soon raise a ValueError. Take the real or the "
            "imaginary part first, with jnp.real or jnp.imag.",
            DeprecationWarning,
            stacklevel=user_stacklevel(),
        )
    return placed(_astype(x, dtype), device)


@library(static=("dtype",))
def _astype(x, dtype):
    if dtype == dtypes.bool_ and x.aval.dtype.kind == "c":
        x = ne_p.bind(x, creation.full_like(x, 0))  # converted, only the real part would count
    return converted(x, dtype)


# -- of one value -----------------------------------------------------------------------------


def _filled(shape, value, dtype):
    return broadcast_to_shape(as_typed(np.asarray(value, dtype)[()]), shape)


def _constant(name: str, shape: Any, dtype: Any, value: int, device: Any, out: Any) -> Array:
    sizes = canonical_shape(shape)
    _check_sizes(name, sizes)
    if isinstance(dtype, dtypes.ExtendedDType):
        return creation.full_like(ShapedArray(sizes, dtype), value)
    found = dtypes.check_user_dtype_supported(dtype, name)
    if found == dtypes.float0:  # a matter of NumPy: no device holds it
        return np.zeros(sizes, found)
    called = "jnp.ones" if value else "jnp.zeros"
    return _constant_at(_filled(sizes, value, found), device, out, called)


def _check_sizes(name: str, sizes: tuple[int, ...]) -> None:
    if any(size < 0 for size in sizes):
        raise TypeError(
            f"broadcast_in_dim shape must have every element be nonnegative, got {sizes}. {name} "
            "takes the size itself; -1 has a meaning for reshape only."
        )


def zeros(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Return an array filled with zeros.

    - `shape`: an int or a sequence of ints.
    - `dtype`: dtype of the result, the default float unless given.
    - `device` or `out_sharding`: its placement.

    TypeError for negative sizes. Source: NumPy's `zeros`.

    >>> jnp.zeros((2, 2), dtype=jnp.int32)
    Array([[0, 0],
           [0, 0]], dtype=int32)
    """
    return _constant("zeros", shape, dtype, 0, device, out_sharding)


def ones(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Return an array filled with ones.

    - `shape`: an int or a sequence of ints.
    - `dtype`: dtype of the result, the default float unless given.
    - `device` or `out_sharding`: its placement.

    TypeError for negative sizes. Source: NumPy's `ones`.

    >>> jnp.ones(3)
    Array([1., 1., 1.], dtype=float32)
    """
    return _constant("ones", shape, dtype, 1, device, out_sharding)


def empty(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Return an array whose values the caller will not use; they are zeros.

    - `shape`: an int or a sequence of ints.
    - `dtype`: dtype of the result, the default float unless given.
    - `device` or `out_sharding`: its placement.

    TypeError for negative sizes. Source: NumPy's `empty`.

    >>> jnp.empty((2, 3)).shape
    (2, 3)
    """
    return _constant("empty", shape, dtype, 0, device, out_sharding)


def full(
    shape: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Return an array filled with a value.

    - `shape`: an int or a sequence of ints.
    - `fill_value`: scalar, or array that broadcasts to `shape`.
    - `dtype`: dtype of the result, by default that of `fill_value`.
    - `device` or `out_sharding`: its placement.

    ValueError if `fill_value` does not broadcast, TypeError for negative sizes. Source: NumPy's
    `full`.

    >>> jnp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int32, weak_type=True)
    """
    check_arraylike("full", fill_value)
    sizes = canonical_shape(shape)
    _check_sizes("full", sizes)
    found = as_dtype(dtype, "full")
    fill_value = creation.fitted(fill_value, found)
    if isinstance(fill_value, creation.NUMBERS) and not isinstance(found, dtypes.ExtendedDType):
        scalar = fill_value if found is None else creation.as_scalar(fill_value, found)
        out = broadcast_to_shape(scalar, sizes)
    else:
        out = _full(sizes, fill_value, found)
    if not (device is None or is_empty(device) or isinstance(out, Tracer)) and out.aval.weak_type:
        out = convert_element_type(out, out.dtype)
    return _constant_at(out, device, out_sharding, "full")


@library(static=("shape", "dtype"))
def _full(shape, fill_value, dtype):
    x = to_array("full", fill_value)
    return broadcast_to(x if dtype is None else cast(x, dtype), shape)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Return an array filled with a value, of the shape and dtype of another one.

    - `a`: array, scalar, or object with `shape` and `dtype`.
    - `fill_value`: scalar, or array that broadcasts to the shape.
    - `dtype`, `shape`: replace those of `a`; `device` or `out_sharding`: placement of the result.

    The result is weakly typed if `a` is and no `dtype` is given. ValueError if `fill_value` does
    not broadcast, TypeError for negative sizes. Source: NumPy's `full_like`.

    >>> jnp.full_like(jnp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    aval = _type_of("full_like", a)
    check_arraylike("full_like", fill_value)
    sizes = _like_shape("full_like", aval, shape)
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        if np.ndim(fill_value):
            fill_value = broadcast_to(fill_value, sizes)
        return creation.full_like(a, fill_value, as_dtype(dtype, "full_like"), sizes)
    inherited = shape is None and device is None and out_sharding is None
    if inherited:
        device, out_sharding = _place_of(a, aval)
        device = None if np.ndim(fill_value) else device
    weak = dtype is None and _is_weak(a, aval) and not np.ndim(fill_value)
    found = dtypes.canonicalize_dtype(aval.dtype) if dtype is None else as_dtype(dtype, "full_like")
    if found == dtypes.float0:
        return np.zeros(sizes, found)
    fill_value = creation.fitted(fill_value, found)
    out = _full_like(sizes, fill_value, found, weak)
    out = _constant_at(out, device, out_sharding, "reshard" if inherited else "full_like")
    return creation.varying_as(out, aval)


@library(static=("shape", "dtype", "weak"))
def _full_like(shape, fill_value, dtype, weak):
    value = converted(to_array("full_like", fill_value), dtype, weak)
    return broadcast_to(to_dtype(value, dtype, True) if weak else value, shape)


def _type_of(name: str, a: Any) -> Any:
    """Return the shape, dtype and weak type of a prototype."""
    aval = getattr(a, "aval", None)
    if aval is not None and not callable(aval):
        return aval
    if hasattr(a, "shape") and hasattr(a, "dtype") and not isinstance(a, np.ndarray):
        return a
    check_arraylike(name, a)
    return get_aval(a.__jax_array__() if hasattr(a, "__jax_array__") else a)


def _place_of(a: Any, aval: Any) -> tuple[Any, Any]:
    """Return the `device` and the `out_sharding` of what is made like `a`."""
    if type(a) is ArrayImpl and local.context.trace is eval_trace and aval.explicit is not None:
        return a.sharding, None
    return creation.beside(a), getattr(aval, "explicit", None)


def _is_weak(a: Any, aval: Any) -> bool:
    """Whether results are weakly typed as `a` is: one that has a shape and a dtype only is not."""
    return aval is not a and aval.weak_type


def _like_shape(name: str, aval: Any, shape: Any) -> tuple[int, ...]:
    if shape is None:
        return aval.shape
    sizes = canonical_shape(shape)
    _check_sizes(name, sizes)
    return sizes


def _constant_like(name, a, dtype, shape, value, device, out_sharding) -> Array:
    aval = _type_of(name, a)
    called = f"jnp.{name}"
    if shape is None and device is None and out_sharding is None:
        (device, out_sharding), called = _place_of(a, aval), "reshard"
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return creation.full_like(a, value, dtype, shape)
    sizes = _like_shape(name, aval, shape)
    if dtype is None and _is_weak(a, aval):
        out = _constant_at(_full_like(sizes, value, aval.dtype, True), device, out_sharding, called)
        return creation.varying_as(out, aval)
    found = (
        dtypes.canonicalize_dtype(aval.dtype)
        if dtype is None
        else dtypes.check_user_dtype_supported(dtype, name)
    )
    if found == dtypes.float0:
        return np.zeros(sizes, found)
    out = _constant_at(_filled(sizes, value, found), device, out_sharding, called)
    return creation.varying_as(out, aval)


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Return zeros of the shape and dtype of another array.

    - `a`: array, scalar, or object with `shape` and `dtype`.
    - `dtype`, `shape`: replace those of `a`; `device` or `out_sharding`: placement of the result.

    The result is weakly typed if `a` is and no `dtype` is given. Source: NumPy's `zeros_like`.

    >>> jnp.zeros_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return _constant_like("zeros_like", a, dtype, shape, 0, device, out_sharding)


def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Return ones of the shape and dtype of another array.

    - `a`: array, scalar, or object with `shape` and `dtype`.
    - `dtype`, `shape`: replace those of `a`; `device` or `out_sharding`: placement of the result.

    The result is weakly typed if `a` is and no `dtype` is given. Source: NumPy's `ones_like`.

    >>> jnp.ones_like(jnp.array([1, 2]))
    Array([1, 1], dtype=int32)
    """
    return _constant_like("ones_like", a, dtype, shape, 1, device, out_sharding)


def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Device | Sharding | None = None,
) -> Array:
    """Return an array of the shape and dtype of another one whose values the caller will not use.

    - `prototype`: array, scalar, or object with `shape` and `dtype`.
    - `dtype`, `shape`: replace those of `prototype`; `device`: placement of the result.

    The values are zeros. Source: NumPy's `empty_like`.

    >>> jnp.empty_like(jnp.array([1, 2])).shape
    (2,)
    """
    return _constant_like("empty_like", prototype, dtype, shape, 0, device, None)


# -- from elsewhere ---------------------------------------------------------------------------


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any
) -> Array:
    """Build an array by calling a function with the indices of each element.

    - `function`: function of len(shape) scalars; it is mapped by `vmap`.
    - `shape`: an int or a sequence of ints.
    - `dtype`: dtype of the indices, the default float unless given; None for the default integer.
    - `**kwargs`: further arguments of `function`.

    Returns an array of shape `shape`, followed by the shape of the function's result. TypeError for
    booleans as indices. Source: NumPy's `fromfunction`.

    >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 2), dtype=int)
    Array([[ 0,  1],
           [10, 11]], dtype=int32)
    """
    check_callable(function)
    sizes = canonical_shape(shape)
    found = dtypes.int_() if dtype is None else as_dtype(dtype, "fromfunction")
    if found == dtypes.bool_:
        raise TypeError("fromfunction: indices cannot have dtype bool: give a numeric dtype.")
    function = functools.partial(function, **kwargs)
    count = len(sizes)
    for axis in reversed(range(count)):
        function = vmap(function, in_axes=tuple([0 if i == axis else None for i in range(count)]))
    whole = dtypes.int_()
    places = [
        creation.iota(whole, n)
        if is_dim(n)
        else array_from_numpy(np.arange(n, dtype=whole), explicit=None)
        for n in sizes
    ]
    return function(*[asarray(x, dtype=found) for x in places])


def frombuffer(
    buffer: bytes | Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0
) -> Array:
    """Interpret a buffer of bytes as a one-dimensional array.

    - `buffer`: bytes, or object with the buffer protocol; `dtype`: dtype of its elements.
    - `count`: number of elements to read, -1 for all; `offset`: where to begin, in bytes.

    Returns an array of shape (count,). ValueError if the buffer is too short or no multiple of the
    element size. Source: NumPy's `frombuffer`.

    >>> jnp.frombuffer(bytes([1, 0, 2]), dtype=jnp.uint8)
    Array([1, 0, 2], dtype=uint8)
    """
    if isinstance(buffer, Array):
        buffer = np.asarray(buffer)
    return asarray(np.frombuffer(buffer, dtype=_np_dtype(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Read a one-dimensional array from a text.

    - `string`: the text; `dtype`: dtype of the elements.
    - `count`: number of elements to read, -1 for all; `sep`: text between them.

    Returns an array of shape (count,). Source: NumPy's `fromstring`.

    >>> jnp.fromstring("1 2 3", dtype=int, sep=" ")
    Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype=_np_dtype(dtype), count=count, sep=sep))


def _np_dtype(dtype: Any) -> np.dtype:
    return np.dtype(dtype if isinstance(dtype, type) else getattr(dtype, "dtype", dtype))


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Raise NotImplementedError: reading files is not pure. Use `jnp.asarray(np.fromfile(...))`.

    An array of the shape and dtype that NumPy finds results. Source: NumPy's `fromfile`.

    >>> try:
    ...     jnp.fromfile("data.bin")
    ... except NotImplementedError:
    ...     print("use NumPy")
    use NumPy
    """
    raise NotImplementedError(
        "jnp.fromfile() is not implemented because it may be non-pure and thus unsafe for use "
        "with JIT and other JAX transformations. Consider using "
        "jnp.asarray(np.fromfile(...)) instead."
    )


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Raise NotImplementedError: iterators are not pure. Use `jnp.asarray(np.fromiter(...))`.

    An array of the given dtype and of shape (count,) results. Source: NumPy's `fromiter`.

    >>> jnp.asarray(np.fromiter((x * x for x in range(3)), dtype=np.int32))
    Array([0, 1, 4], dtype=int32)
    """
    raise NotImplementedError(
        "jnp.fromiter() is not implemented because it may be non-pure and thus unsafe for use "
        "with JIT and other JAX transformations. Consider using "
        "jnp.asarray(np.fromiter(...)) instead."
    )


def load(file: IO[bytes] | str | os.PathLike[Any], *args: Any, **kwargs: Any) -> Array:
    """Load an array from a file written by `save`.

    - `file`: path or binary file; `*args`, `**kwargs`: further arguments of NumPy's `load`.

    Returns an array of the stored shape and dtype, bfloat16 included; an archive written by `savez`
    is returned as NumPy's `NpzFile`. FileNotFoundError if there is no such file. Source: NumPy's
    `load`.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.array([1, 2]))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([1, 2], dtype=int32)
    """
    out = np.load(file, *args, **kwargs)
    if not isinstance(out, np.ndarray):
        return out
    if out.dtype == np.dtype("V2"):  # how NumPy writes it
        out = out.view(dtypes.BFLOAT16)
    return asarray(out)


def from_dlpack(
    x: Any, /, *, device: Device | Sharding | None = None, copy: bool | None = None
) -> Array:
    """Convert an array of another library by the DLPack protocol, without a copy where possible.

    - `x`: object with `__dlpack__` and `__dlpack_device__`.
    - `device`: placement of the result; `copy`: copy in any case if True, in none if False.

    Returns an array of the shape of `x`, as `jax.dlpack.from_dlpack` does. TypeError if `x` lacks
    these methods. Source: NumPy's `from_dlpack`, of the array API standard.

    >>> jnp.from_dlpack(np.arange(3, dtype=np.int32))
    Array([0, 1, 2], dtype=int32)
    """
    return dlpack.from_dlpack(x, device, copy)
