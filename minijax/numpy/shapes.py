"""Functions that change the shape of an array or the order of its axes.

May import the floors below and `numpy.promotion`. Joining and splitting stand in `joining`, padding
in `padding`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.array import Array
from minijax.core.dims import is_dim
from minijax.errors import InconclusiveDimensionOperation
from minijax.lax import dynamic_slicing, slicing
from minijax.lax.joining import concatenate_p
from minijax.lax.shapes import reshape_p, rev_p, size_of, squeeze_p, tile_p
from minijax.numpy.promotion import (
    axes_of,
    axis_of,
    broadcast_shapes,
    broadcast_to_shape,
    canonical_shape,
    check_arraylike,
    converted,
    is_arraylike,
    known_index,
    promote_one,
    to_array,
)
from minijax.runtime.named import out_sharding_of
from minijax.transforms.library import library
from minijax.transforms.primitives import broadcast_in_dim_p, transpose_p

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "expand_dims", "flip", "fliplr", "flipud", "matrix_transpose", "moveaxis",
    "ndim", "permute_dims", "ravel", "reshape", "resize", "roll", "rollaxis", "rot90",
    "shape", "size", "squeeze", "swapaxes", "tile", "transpose",
]  # fmt: skip


def shape(a: Any) -> tuple[int, ...]:
    """The shape of an array. Source: numpy.shape."""
    return _shape_of("shape", a)


def ndim(a: Any) -> int:
    """The number of axes. Source: numpy.ndim."""
    return len(_shape_of("ndim", a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, in all or along some axes. Source: numpy.size."""
    sizes = _shape_of("size", a)
    out = 1
    for one in axes_of(axis, len(sizes)):
        out *= sizes[one]
    return out


def _shape_of(name: str, a: Any) -> tuple[int, ...]:
    if isinstance(a, Array):
        return a.shape
    if not hasattr(a, "shape") and not is_arraylike(a):
        warnings.warn(
            f"jnp.{name} of a {type(a).__name__} will be an error in future, as of all functions: "
            "convert it with minijax.numpy.asarray(...), or use NumPy's function.",
            DeprecationWarning,
            stacklevel=3,
        )
    return tuple(np.shape(a))


# -- reshape ----------------------------------------------------------------------------------


def resolved_shape(wanted: Any, found: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes that `reshape` was asked for, with -1 replaced by what is left."""
    sizes = canonical_shape(wanted)
    total = 1
    for one in found:
        total *= one
    known = 1
    free = None
    for position, one in enumerate(sizes):
        if one == -1:
            if free is not None:
                raise TypeError(
                    "can only specify one unknown axis size with a `-1` value, got "
                    f"{sizes} for an array of shape {found}."
                )
            free = position
        else:
            known *= one
    if free is None:
        if known != total or any(one < 0 for one in sizes):
            raise TypeError(
                f"cannot reshape array of shape {found} (size {total}) into shape {sizes} (size "
                f"{known}): the sizes must be equal; -1 in one place stands for what is left."
            )
        return sizes
    if known == 0 or total % known:
        if is_dim(total):
            raise InconclusiveDimensionOperation(
                f"Cannot divide evenly the sizes of shapes {found} and {sizes}. The remainder "
                f"{total % -known} should be 0."
            )
        raise TypeError(
            f"cannot reshape array of shape {found} (size {total}) into shape {sizes} because the "
            f"product of specified axis sizes ({known}) does not evenly divide {total}."
        )
    return (*sizes[:free], total // known, *sizes[free + 1 :])


def reshaped(
    x: Any, sizes: tuple[int, ...], dimensions: tuple[int, ...] | None = None, where: Any = None
) -> Any:
    """`lax.reshape` for sizes that are known to be right."""
    if dimensions is None and x.aval.shape == sizes:
        return x
    where = out_sharding_of(where, "reshape")
    return reshape_p.bind(x, new_sizes=sizes, dimensions=dimensions, sharding=where)


def _reshape(a: Any, wanted: Any, order: str, where: Any = None) -> Any:
    sizes = resolved_shape(wanted, a.aval.shape)
    if order == "C":
        return reshaped(a, sizes, None, where)
    if order == "F":
        rank = a.aval.ndim
        backwards = tuple(range(rank - 1, -1, -1)) if rank > 1 else None
        return transpose(reshaped(a, sizes[::-1], backwards))
    if order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented: give 'C' or 'F'.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}. Give 'C' or 'F'.")


@library(static=("shape", "order", "copy", "out_sharding"))
def reshape(a, shape, order="C", *, copy=None, out_sharding=None):
    """The elements in another shape; one size may be -1. Source: numpy.reshape.

    TypeError if the sizes do not fit. `order` is 'C' or 'F'.
    """
    del copy
    return _reshape(to_array("reshape", a), shape, order, out_sharding)


@library(static=("order", "out_sharding"))
def ravel(a, order="C", *, out_sharding=None):
    """The elements in one dimension. `order` is 'C' or 'F'. Source: numpy.ravel."""
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K': give 'C' or 'F'.")
    return _reshape(to_array("ravel", a), (-1,) if np.size(a) else (0,), order, out_sharding)


@library(static=("new_shape",))
def resize(a, new_shape):
    """The elements in another shape, repeated or left out as needed. Source: numpy.resize."""
    a = ravel(a)
    sizes = canonical_shape(new_shape)
    if any(one < 0 for one in sizes):
        raise ValueError(f"all elements of `new_shape` must be non-negative, got {sizes}.")
    total = int(np.prod(sizes, dtype=object))
    if not total or not a.aval.size:
        return broadcast_to_shape(converted(0, a.aval.dtype, a.aval.weak_type), sizes)
    times = -(-total // a.aval.size)
    repeated = concatenate_p.bind(*[a] * times, dimension=0) if times > 1 else a
    return reshaped(slicing.slice_in_dim(repeated, 0, total), sizes)


# -- order of axes ----------------------------------------------------------------------------


@library(static=("axes",))
def transpose(a, axes=None):
    """The axes in another order; backwards by default. Source: numpy.transpose."""
    a = to_array("transpose", a)
    rank = a.aval.ndim
    if axes is None:
        order = tuple(range(rank - 1, -1, -1))
    else:
        order = tuple([axis_of(i, rank) for i in axes])
    if order == tuple(range(rank)):
        return a
    if sorted(order) != list(range(rank)):
        raise TypeError(
            f"transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{order} for operand shape {a.aval.shape}: name each axis once."
        )
    return transpose_p.bind(a, permutation=order)


@library(static=("axes",))
def permute_dims(a, /, axes):
    """The axes in another order. Source: `permute_dims` of the array API standard."""
    if axes is None:
        raise TypeError("permute_dims: axes must be given, got None: jnp.transpose takes none.")
    return transpose(a, axes)


@library
def matrix_transpose(x, /):
    """The last two axes exchanged. ValueError below two. Source: numpy.matrix_transpose."""
    x = to_array("matrix_transpose", x)
    rank = x.aval.ndim
    if rank < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got ndim={rank}"
        )
    return transpose_p.bind(x, permutation=(*range(rank - 2), rank - 1, rank - 2))


@library(static=("axis1", "axis2"))
def swapaxes(a, axis1, axis2):
    """Two axes exchanged. Source: numpy.swapaxes."""
    a = to_array("swapaxes", a)
    order = list(range(a.aval.ndim))
    one, two = axis_of(axis1, a.aval.ndim), axis_of(axis2, a.aval.ndim)
    order[one], order[two] = order[two], order[one]
    return transpose(a, tuple(order))


@library(static=("source", "destination"))
def moveaxis(a, source, destination):
    """Axes moved to other places, the rest in their order. Source: numpy.moveaxis."""
    a = to_array("moveaxis", a)
    rank = a.aval.ndim
    if source is None or destination is None:
        raise TypeError(f"moveaxis takes axes, got {source} and {destination}: give integers.")
    source, destination = axes_of(source, rank), axes_of(destination, rank)
    if len(source) != len(destination):
        raise ValueError(
            f"Inconsistent number of elements: {len(source)} vs {len(destination)}: moveaxis "
            "takes one destination for each source."
        )
    order = [axis for axis in range(rank) if axis not in source]
    for to, axis in sorted(zip(destination, source, strict=True)):
        order.insert(to, axis)
    return transpose(a, tuple(order))


@library(static=("axis", "start"))
def rollaxis(a, axis, start=0):
    """One axis moved before another. Source: numpy.rollaxis."""
    a = to_array("rollaxis", a)
    rank = a.aval.ndim
    axis, start = axis_of(axis, rank), axis_of(start, rank + 1)
    return moveaxis(a, axis, start - 1 if start > axis else start)


# -- axes of size one -------------------------------------------------------------------------


def expanded(x: Any, axes: Sequence[int]) -> Any:
    """New axes of size one at these places of the result."""
    sizes = list(x.aval.shape)
    for axis in sorted(axes):
        sizes.insert(axis, 1)
    kept = tuple([axis for axis in range(len(sizes)) if axis not in axes])
    return broadcast_in_dim_p.bind(x, shape=tuple(sizes), broadcast_dimensions=kept, sharding=None)


@library(static=("axis",))
def expand_dims(a, axis):
    """New axes of size one. Source: numpy.expand_dims."""
    a = to_array("expand_dims", a)
    given = tuple(axis) if np.iterable(axis) else (axis,)
    rank = a.aval.ndim + len(given)
    axes = [axis_of(known_index(one, "axis"), rank) for one in given]
    if len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis in expand_dims: {given}")
    return expanded(a, axes) if axes else a


@library(static=("axis",))
def squeeze(a, axis=None):
    """Without axes of size one: all of them, or those given. Source: numpy.squeeze."""
    a = to_array("squeeze", a)
    sizes = a.aval.shape
    if axis is None:
        axes = tuple([i for i, one in enumerate(sizes) if one == 1])
    else:
        axes = axes_of(axis, len(sizes))
    return squeeze_p.bind(a, dimensions=tuple(sorted(axes))) if axes else a


def _at_least(name: str, arrays: Sequence[Any], places: dict[int, tuple[int, ...]]) -> Any:
    out = []
    for position, x in enumerate(arrays):
        x = to_array(name, x, position)
        axes = places.get(x.aval.ndim)
        out.append(expanded(x, axes) if axes else x)
    return out[0] if len(out) == 1 else out


@library
def atleast_1d(*arys):
    """Scalars with one axis; other arrays as they are. Source: numpy.atleast_1d."""
    return _at_least("atleast_1d", arys, {0: (0,)})


@library
def atleast_2d(*arys):
    """With two axes at least, new ones in front. Source: numpy.atleast_2d."""
    return _at_least("atleast_2d", arys, {0: (0, 1), 1: (0,)})


@library
def atleast_3d(*arys):
    """With three axes at least, as numpy.atleast_3d."""
    return _at_least("atleast_3d", arys, {0: (0, 1, 2), 1: (0, 2), 2: (2,)})


# -- broadcasting -----------------------------------------------------------------------------


@library(static=("shape", "out_sharding"))
def broadcast_to(array, shape, *, out_sharding=None):
    """An array repeated along axes of size one and new leading axes. Source: numpy.broadcast_to."""
    array = to_array("broadcast_to", array)
    sizes = canonical_shape(shape)
    found = array.aval.shape
    if len(sizes) < len(found):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={found} shape={sizes}"
        )
    lead = len(sizes) - len(found)
    if any(one not in (1, to) for one, to in zip(found, sizes[lead:], strict=True)):
        wanted = array.aval.update(shape=sizes).str_short()
        raise ValueError(
            f"Incompatible types for broadcasting: input type={array.aval.str_short()} and "
            f"requested type={wanted}: sizes must be equal or 1, counted from the last axis."
        )
    return broadcast_to_shape(array, sizes)


@library
def broadcast_arrays(*args):
    """Arrays broadcast to their common shape, as a list. Source: numpy.broadcast_arrays."""
    check_arraylike("broadcast_arrays", *args)
    if not args:
        return []
    sizes = broadcast_shapes(*[np.shape(x) for x in args])
    return [broadcast_to_shape(promote_one("broadcast_arrays", x), sizes) for x in args]


# -- order of elements ------------------------------------------------------------------------


@library(static=("axis",))
def flip(m, axis=None):
    """The elements in reverse order, along all axes or those given. Source: numpy.flip."""
    m = to_array("flip", m)
    axes = axes_of(axis, m.aval.ndim)
    return rev_p.bind(m, dimensions=axes) if axes else m


@library
def fliplr(m):
    """Reversed along axis 1. Source: numpy.fliplr."""
    return flip(m, 1)


@library
def flipud(m):
    """Reversed along axis 0. Source: numpy.flipud."""
    return flip(m, 0)


@library(static=("k", "axes"))
def rot90(m, k=1, axes=(0, 1)):
    """Turned by 90 degrees `k` times, in the plane of two axes. Source: numpy.rot90."""
    m = to_array("rot90", m)
    if np.shape(axes) != (2,):
        raise ValueError(f"rot90: axes must be two; got {axes!r}.")
    if m.aval.ndim < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got first argument of "
            f"shape {m.aval.shape}, which has ndim {m.aval.ndim}."
        )
    one, two = (axis_of(axis, m.aval.ndim) for axis in axes)
    if one == two:
        raise ValueError(f"Axes must be different: got {tuple(axes)}.")
    k = k % 4
    if k == 0:
        return m
    if k == 2:
        return flip(m, (one, two))
    if k == 1:
        return swapaxes(flip(m, two), one, two)
    return flip(swapaxes(m, one, two), two)


def _is_static(x: Any) -> bool:
    """Whether a shift or count is known from the program's text: Python or NumPy integers."""
    if isinstance(x, (tuple, list)):
        return all(map(_is_static, x))
    return isinstance(x, (int, np.integer)) or (isinstance(x, np.ndarray) and not x.dtype.hasobject)


def roll(a: Any, shift: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Elements moved along axes, those that fall off put in at the other end. Source: numpy.roll.

    `shift` may be traced.
    """
    if np.iterable(axis):
        axis = tuple(axis)
    if _is_static(shift):
        shifts = tuple(np.ravel(shift).tolist())
        return _roll_static(a, shifts if np.ndim(shift) else shifts[0], axis)
    return _roll_dynamic(a, shift, axis)


def _shift_pairs(shift: Any, axis: Any, rank: int) -> list[tuple[Any, int]]:
    """One shift for each axis; one of either is used with all of the other."""
    axes = [axis_of(one, rank) for one in (axis if isinstance(axis, tuple) else (axis,))]
    shifts = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    count = max(len(axes), len(shifts)) if axes and shifts else 0
    if len(axes) not in (1, count) or len(shifts) not in (1, count):
        raise ValueError(
            f"Incompatible shapes for broadcasting: {len(shifts)} shifts and {len(axes)} axes: "
            "give one shift for each axis."
        )
    axes = axes * count if len(axes) == 1 else axes
    shifts = shifts * count if len(shifts) == 1 else shifts
    return list(zip(shifts, axes, strict=True))


@library(static=("shift", "axis"))
def _roll_static(a, shift, axis):
    a = to_array("roll", a)
    if axis is None:
        return reshaped(_roll_static(ravel(a), shift, 0), a.aval.shape)
    for by, one in _shift_pairs(shift, axis, a.aval.ndim):
        length = a.aval.shape[one]
        cut = -by % length if length else 0
        if cut:
            head = slicing.slice_in_dim(a, 0, cut, axis=one)
            tail = slicing.slice_in_dim(a, cut, length, axis=one)
            a = concatenate_p.bind(tail, head, dimension=one)
    return a


@library(static=("axis",))
def _roll_dynamic(a, shift, axis):
    a = to_array("roll", a)
    if axis is None:
        return reshaped(_roll_dynamic(ravel(a), shift, 0), a.aval.shape)
    if not isinstance(shift, (tuple, list)):
        shift = to_array("roll", shift)
        shift = [shift] if shift.ndim == 0 else list(shift)
    for by, one in _shift_pairs(shift, axis, a.aval.ndim):
        length = a.aval.shape[one]
        if not length:
            continue
        twice = concatenate_p.bind(a, a, dimension=one)
        start = (-to_array("roll", by)) % length
        a = dynamic_slicing.dynamic_slice_in_dim(twice, start, length, axis=one)
    return a


# -- repetition -------------------------------------------------------------------------------


@library(static=("reps",))
def tile(A, reps):
    """The array repeated along each axis. Source: numpy.tile."""
    A = to_array("tile", A)
    try:
        times = tuple(map(size_of, reps))
    except TypeError:
        times = (size_of(reps),)
    rank = max(len(times), A.aval.ndim)
    times = (1,) * (rank - len(times)) + times
    A = broadcast_to_shape(A, (1,) * (rank - A.aval.ndim) + A.aval.shape)
    return A if all(one == 1 for one in times) else tile_p.bind(A, reps=times)
