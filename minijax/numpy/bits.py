"""Packed bits and flat indices: packbits, unpackbits, ravel_multi_index, unravel_index."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from minijax import dtypes
from minijax.arguments.functions import check_at_most
from minijax.arguments.values import known_index, known_value, sized
from minijax.core.array import Array
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.lax import arithmetic, compare, creation, slicing
from minijax.lax.shapes import MOST_AXES, items_of
from minijax.numpy import reductions
from minijax.numpy.division import divmod as divmod_
from minijax.numpy.division import remainder
from minijax.numpy.logic import truth
from minijax.numpy.promotion import (
    broadcast_to_shape,
    check_arraylike,
    check_ranks,
    converted,
    to_array,
)
from minijax.numpy.searching import known, where
from minijax.numpy.shapes import along_axis, expanded, moveaxis, reshaped
from minijax.numpy.ufuncs import add, clip, multiply
from minijax.typing import ArrayLike, DTypeLike, Shape

__all__ = ["packbits", "ravel_multi_index", "unpackbits", "unravel_index"]


def _bit_places(bitorder: str) -> Array:
    """The places of eight bits; counted, since XLA goes through a table element by element."""
    if bitorder not in ("big", "little"):
        raise ValueError(f"'order' must be either 'little' or 'big'; got bitorder={bitorder!r}")
    places = creation.iota(np.uint8, 8)
    return arithmetic.sub_p.bind(np.uint8(7), places) if bitorder == "big" else places


@library(static=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack truth values into the bits of bytes.

    - `a`: boolean or integer array; nonzero elements are set bits.
    - `axis`: an int, or None to flatten `a` first.
    - `bitorder`: "big" (the default) puts the first element into the highest bit, "little" into the
      lowest.

    Returns a uint8 array whose size along the axis is ceil(n / 8), filled up with zero bits.
    TypeError if `a` is neither boolean nor integer, ValueError for another `bitorder`. Source:
    NumPy's `packbits`.

    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1]))
    Array([131], dtype=uint8)
    """
    a = to_array("packbits", a)
    if not dtypes.issubdtype(a.aval.dtype, np.integer) and a.aval.dtype != dtypes.bool_:
        raise TypeError(
            f"Expected an input array of integer or boolean data type; got {a.aval.str_short()}."
        )
    places = _bit_places(bitorder)
    bits = converted(truth(a), dtypes.uint8)
    bits, axis = along_axis(bits, axis)
    bits = moveaxis(bits, axis, -1)
    *lead, length = bits.aval.shape
    size = (length + 7) // 8
    rest = size * 8 - length
    if is_dim(rest) or rest:
        bits = slicing.pad(bits, np.uint8(0), [(0, 0, 0)] * len(lead) + [(0, rest, 0)])
    bits = reshaped(bits, (*lead, size, 8))
    shifted = compare.shift_left_p.bind(bits, broadcast_to_shape(places, bits.aval.shape))
    out = reductions.sum(shifted, axis=-1, dtype=dtypes.uint8)
    return moveaxis(out, -1, axis)


@library(static=("axis", "count", "bitorder"))
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpack the bits of bytes.

    - `a`: uint8 array.
    - `axis`: an int, or None to flatten `a` first.
    - `count`: number of bits to return along the axis; negative ones leave out bits at the end.
    - `bitorder`: "big" (the default) begins with the highest bit, "little" with the lowest.

    Returns a uint8 array of zeros and ones whose size along the axis is 8 n, or `count`. TypeError
    if `a` is not uint8, ValueError for another `bitorder`. Source: NumPy's `unpackbits`.

    >>> jnp.unpackbits(jnp.array([131], dtype=jnp.uint8))
    Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    a = to_array("unpackbits", a)
    if a.aval.dtype != dtypes.uint8:
        raise TypeError(f"Expected an input array of unsigned byte data type; got {a.aval.dtype}.")
    masks = compare.shift_left_p.bind(np.uint8(1), _bit_places(bitorder))
    a, axis = along_axis(a, axis)
    a = expanded(moveaxis(a, axis, -1), (a.aval.ndim,))
    shape = (*a.aval.shape[:-1], 8)
    bits = compare.and_p.bind(broadcast_to_shape(a, shape), broadcast_to_shape(masks, shape))
    bits = converted(truth(bits), dtypes.uint8)
    total = shape[-2] * 8
    bits = reshaped(bits, (*shape[:-2], total))
    if count is not None:
        last = len(shape) - 2
        if count > total:
            config = [(0, 0, 0)] * last + [(0, count - total, 0)]
            bits = slicing.pad(bits, np.uint8(0), config)
        else:
            bits = slicing.slice_in_dim(bits, 0, max(count if count >= 0 else total + count, 0),
                                        axis=last)  # fmt: skip
    return moveaxis(bits, -1, axis)


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Convert indices for each axis to indices into the flattened array.

    - `multi_index`: sequence of integer arrays that broadcast, one for each axis.
    - `dims`: sequence of ints, the shape of the array.
    - `mode`: for indices out of range: "raise" (the default; they must not be traced), "wrap",
      "clip".
    - `order`: "C" for row-major order, "F" for column-major order; `dtype`: integer dtype of the
      result.

    Returns an integer array of the broadcast shape. ValueError for indices out of range, or another
    number of them, or if they are not integer. Source: NumPy's `ravel_multi_index`.

    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 1])), (2, 3))
    Array([2, 4], dtype=int32)
    """
    where = "in `dims` argument of ravel_multi_index()."
    dims = tuple([known_index(n, where) for n in items_of(known_value(dims, where))])
    check_at_most("the number of axes", len(dims), MOST_AXES)
    parts = [
        to_array("ravel_multi_index", x, i)
        for i, x in enumerate(islice(sized("ravel_multi_index", multi_index), len(dims) + 1))
    ]
    if len(parts) != len(dims):
        raise ValueError(
            f"ravel_multi_index takes one index for each of {len(dims)} axes; got "
            f"{'more' if len(parts) > len(dims) else len(parts)}."
        )
    if any(not dtypes.issubdtype(x.dtype, np.integer) for x in parts):
        found = next(x.dtype for x in parts if x.dtype.kind not in "iu")
        error = TypeError if found.kind == "b" else ValueError
        raise error(
            f"dtype={found!r} is not an integer type. It is that of an index of ravel_multi_index; "
            "only int indices are permitted."
        )
    check_ranks("ravel_multi_index", *parts)
    if mode == "raise":
        for x, size in zip(parts, dims, strict=True):
            value = known(x, "ravel_multi_index", "Use mode='wrap' or mode='clip' instead.")
            if (value < 0).any() or (value >= size).any():
                raise ValueError("invalid entry in coordinates array")
    elif mode not in ("wrap", "clip"):
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', or 'clip'")
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    if dtype is None:
        found = dtypes.lattice_result_type(*parts)[0] if parts else dtypes.int_()
    else:
        found = dtypes.check_user_dtype_supported(dtype, "ravel_multi_index")
    largest = math.prod(dims) - 1
    if largest > dtypes.iinfo(found).max:
        raise ValueError(
            f"jnp.ravel_multi_index: dtype={found!r} not large enough to hold flattened index for "
            f"dims={dims}. Use the dtype argument to pass a suitable dtype "
            "(e.g. dtype=np.min_scalar_type(prod(dims)))."
        )
    return _ravel_multi_index(parts, dims, mode, order, found)


@library(static=("dims", "mode", "order", "dtype"))
def _ravel_multi_index(parts, dims, mode, order, dtype):
    if mode == "wrap":
        parts = [remainder(x, n) for x, n in zip(parts, dims, strict=True)]
    elif mode == "clip":
        parts = [clip(x, 0, n - 1) for x, n in zip(parts, dims, strict=True)]
    if order == "F":
        parts, dims = parts[::-1], dims[::-1]
    out = converted(0, dtype)
    stride = 1
    for x, size in zip(reversed(parts), reversed(dims), strict=True):
        out = add(out, multiply(converted(x, dtype), converted(stride, dtype)))
        stride *= size
    return converted(to_array("ravel_multi_index", out), dtype)


def unravel_index(indices: ArrayLike, shape: Shape) -> tuple[Array, ...]:
    """Convert indices into a flattened array to indices for each axis.

    - `indices`: array of numbers; negative ones count from the end, and those beyond it mean the
      last element, or the first.
    - `shape`: sequence of n ints, the shape of the array.

    Returns a tuple of n arrays of the shape and dtype of `indices`. TypeError for complex numbers;
    ValueError if `shape` has two dimensions. Source: NumPy's `unravel_index`.

    >>> jnp.unravel_index(jnp.array([2, 4]), (2, 3))
    (Array([0, 1], dtype=int32), Array([2, 1], dtype=int32))
    """
    check_arraylike("unravel_index", indices)
    if isinstance(shape, Iterable) and not isinstance(shape, (str, Array)):
        sizes = tuple(shape)
    else:
        sizes = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    if any(np.ndim(size) for size in sizes):
        raise ValueError(f"unravel_index: shape should be a scalar or 1D sequence; got {shape}.")
    if all(is_dim(size) or type(size) is int for size in sizes):
        return _unravel_index(indices, sizes)
    check_arraylike("divmod", *sizes)
    return _of_arrays(indices, [to_array("divmod", size) for size in sizes])


@library
def _of_arrays(indices, sizes):
    """`unravel_index` for sizes that are numbers of a dtype, or known at run time alone."""
    return _divided(indices, sizes)


@library(static=("sizes",))
def _unravel_index(indices, sizes):
    return _divided(indices, sizes)


def _divided(indices, sizes):
    """Divide by one size after the other: 0 is left of indices within, -1 of those from the end."""
    rest, out = to_array("unravel_index", indices), []
    for size in reversed(sizes):
        rest, index = divmod_(rest, size)
        out.append(index)
    beyond, before = rest > 0, rest + 1 < 0  # -1 itself is no unsigned number
    pairs = zip(reversed(out), sizes, strict=True)
    return tuple([where(beyond, size - 1, where(before, 0, index)) for index, size in pairs])
