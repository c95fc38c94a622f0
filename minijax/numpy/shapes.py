"""Functions that change the shape of an array or the order of its axes.

Joining and splitting stand in `joining`, padding in `padding`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from minijax import dtypes
from minijax.arguments.functions import check_at_most
from minijax.arguments.values import known_axes
from minijax.core.array import Array
from minijax.errors import InconclusiveDimensionOperation
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.features.sharding.explicit import split_as
from minijax.features.sharding.sharding_rules import common_sharding
from minijax.lax import dynamic_slicing, slicing
from minijax.lax.joining import concatenate_p
from minijax.lax.shapes import MOST_AXES, items_of, reshape_p, rev_p, size_of, squeeze_p, tile_p
from minijax.namespace import user_stacklevel
from minijax.numpy.promotion import (
    IncompatibleShapes,
    axes_of,
    axis_of,
    broadcast_shapes,
    broadcast_to_shape,
    canonical_shape,
    cast,
    check_arraylike,
    is_arraylike,
    promote_one,
    to_array,
)
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding, out_sharding_of
from minijax.transforms.primitives import full_like_aval, insert_axes, to_shape, transpose_p
from minijax.typing import ArrayLike, DimSize, Shape

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "expand_dims", "flip", "fliplr", "flipud", "matrix_transpose", "moveaxis",
    "ndim", "permute_dims", "ravel", "reshape", "resize", "roll", "rollaxis", "rot90",
    "shape", "size", "squeeze", "swapaxes", "tile", "transpose",
]  # fmt: skip


def shape(a: ArrayLike) -> tuple[int, ...]:
    """Return the shape of an array.

    - `a`: array or scalar.

    Returns a tuple of ints. Source: NumPy's `shape`.

    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)
    """
    return _shape_of("shape", a)


def ndim(a: ArrayLike) -> int:
    """Return the number of dimensions of an array.

    - `a`: array of any shape, or scalar.

    Returns an int. Source: NumPy's `ndim`.

    >>> jnp.ndim(jnp.ones((2, 3)))
    2
    """
    return len(_shape_of("ndim", a))


def size(a: ArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """Return the number of elements of an array, or along some of its axes.

    - `a`: array of any shape, or scalar.
    - `axis`: an int, a sequence of ints, or None for all axes.

    Returns an int. ValueError if `axis` is out of range. Source: NumPy's `size`.

    >>> jnp.size(jnp.ones((2, 3)), axis=1)
    3
    """
    sizes = _shape_of("size", a)
    out = 1
    for one in axes_of(axis, len(sizes)):
        out *= sizes[one]
    return out


def _shape_of(name: str, a: Any) -> tuple[int, ...]:
    if hasattr(a, "__jax_array__"):
        a = a.__jax_array__()
    if isinstance(a, Array):
        return a.shape
    if not hasattr(a, "shape") and not is_arraylike(a):
        warnings.warn(
            f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. In a future "
            "release this will be an error: convert it with jax.numpy.asarray(...), or use NumPy's "
            "function.",
            DeprecationWarning,
            stacklevel=user_stacklevel(),
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
            raise IncompatibleShapes(
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
        raise IncompatibleShapes(
            f"cannot reshape array of shape {found} (size {total}) into shape {sizes} because the "
            f"product of specified axis sizes ({known}) does not evenly divide {total}."
        )
    return (*sizes[:free], total // known, *sizes[free + 1 :])


def reshaped(
    x: Any, sizes: tuple[int, ...], dimensions: tuple[int, ...] | None = None, where: Any = None
) -> Any:
    """`lax.reshape` for sizes that are known to be right."""
    if dimensions is None and x.aval.shape == sizes:
        return split_as(x, where, "reshape", new=False)
    where = out_sharding_of(where, "reshape")
    return reshape_p.bind(x, new_sizes=sizes, dimensions=dimensions, sharding=where)


def _reshape(a: Any, wanted: Any, order: str, where: Any = None) -> Any:
    sizes = resolved_shape(wanted, a.aval.shape)
    if a.aval.shape == sizes == () and order in ("C", "F"):  # an equation of upstream's too
        return reshape_p.bind(a, new_sizes=(), dimensions=None, sharding=None)
    if order == "C":
        return reshaped(a, sizes, None, where)
    if order == "F":
        rank = a.aval.ndim
        backwards = tuple(range(rank - 1, -1, -1)) if rank > 1 else None
        return transpose(reshaped(a, sizes[::-1], backwards))
    if order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented: give 'C' or 'F'.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}. Give 'C' or 'F'.")


@library(static=("shape", "order", "copy", "out_sharding"), forwards=True)
def reshape(
    a: ArrayLike,
    shape: DimSize | Shape,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: Any = None,
) -> Array:
    """Return an array of the same elements with another shape.

    - `a`: array of any shape and dtype.
    - `shape`: an int or a sequence of ints; one may be -1, and is then inferred.
    - `order`: "C" reads and writes elements in row-major order, "F" in column-major order.
    - `out_sharding`: sharding of the result.

    Returns an array of the dtype of `a`. TypeError if the number of elements differs, ValueError
    for an unknown `order`. Source: NumPy's `reshape`.

    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    del copy
    return _reshape(to_array("reshape", a), shape, order, out_sharding)


@library(static=("order", "out_sharding"))
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """Flatten an array to one dimension.

    - `a`: array of any shape and dtype.
    - `order`: "C" for row-major order, "F" for column-major order.
    - `out_sharding`: sharding of the result.

    Returns an array of shape (a.size,) and of the dtype of `a`. NotImplementedError for the order
    "K", ValueError for an unknown one. Source: NumPy's `ravel`.

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
    Array([1, 3, 2, 4], dtype=int32)
    """
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K': give 'C' or 'F'.")
    return _reshape(to_array("ravel", a), (-1,) if np.size(a) else (0,), order, out_sharding)


@library(static=("new_shape",))
def resize(a: ArrayLike, new_shape: Shape) -> Array:
    """Return an array with another shape, repeating or leaving out elements as needed.

    - `a`: array of any shape and dtype.
    - `new_shape`: an int or a sequence of ints.

    Returns an array of shape `new_shape`, zeros if `a` is empty. ValueError for negative sizes.
    Source: NumPy's `resize`.

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 4))
    Array([[1, 2, 3, 1],
           [2, 3, 1, 2]], dtype=int32)
    """
    a = ravel(a)
    sizes = canonical_shape(new_shape)
    if any(one < 0 for one in sizes):
        raise ValueError(f"all elements of `new_shape` must be non-negative, got {sizes}.")
    total = int(np.prod(sizes, dtype=object))
    if not total or not a.aval.size:
        return full_like_aval(0, a.aval.update(shape=sizes))
    times = -(-total // a.aval.size)
    repeated = tile(a, (times,)) if times > 1 else a
    if repeated.aval.size != total:
        repeated = slicing.slice_in_dim(repeated, 0, total)
    return reshaped(repeated, sizes)


# -- order of axes ----------------------------------------------------------------------------


@library(static=("axes",), converted=("axes",), forwards=True)
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Permute the axes of an array.

    - `a`: array of any shape and dtype.
    - `axes`: permutation of range(a.ndim); axis i of the result is axis axes[i] of `a`. By default
      the order is reversed.

    Returns an array of the dtype of `a`. TypeError or ValueError if `axes` is no permutation.
    Source: NumPy's `transpose`.

    >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
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
            f"{order} for operand shape {a.aval.shape}. Name each axis once."
        )
    return transpose_p.bind(a, permutation=order)


@library(static=("axes",), converted=("axes",), forwards=True)
def permute_dims(a: ArrayLike, /, axes: tuple[int, ...]) -> Array:
    """Permute the axes of an array.

    - `a`: array of any shape and dtype.
    - `axes`: permutation of range(a.ndim); axis i of the result is axis axes[i] of `a`.

    Returns an array of the dtype of `a`. TypeError or ValueError if `axes` is no permutation.
    Source: NumPy's `permute_dims`, of the array API standard.

    >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    if axes is None:
        raise TypeError("permute_dims: axes must be given, got None: jnp.transpose takes none.")
    return transpose(a, axes)


@library
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Swap the last two axes of an array.

    - `x`: array of shape (..., m, n).

    Returns an array of shape (..., n, m). ValueError below two dimensions. Source: NumPy's
    `matrix_transpose`.

    >>> jnp.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x = to_array("matrix_transpose", x)
    rank = x.aval.ndim
    if rank < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got ndim={rank}"
        )
    return transpose_p.bind(x, permutation=(*range(rank - 2), rank - 1, rank - 2))


@library(static=("axis1", "axis2"))
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Swap two axes of an array.

    - `a`: array of any shape and dtype.
    - `axis1`, `axis2`: ints.

    Returns an array of the dtype of `a`. ValueError if an axis is out of range. Source: NumPy's
    `swapaxes`.

    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = to_array("swapaxes", a)
    order = list(range(a.aval.ndim))
    one, two = axis_of(axis1, a.aval.ndim), axis_of(axis2, a.aval.ndim)
    order[one], order[two] = order[two], order[one]
    return transpose(a, tuple(order))


@library(static=("source", "destination"), converted=("source", "destination"))
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Move axes of an array to new positions; the other axes keep their order.

    - `a`: array of any shape and dtype.
    - `source`, `destination`: ints, or sequences of ints of one length.

    Returns an array of the dtype of `a`. ValueError if an axis is out of range or the lengths
    differ. Source: NumPy's `moveaxis`.

    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    a = to_array("moveaxis", a)
    rank = a.aval.ndim
    if source is None or destination is None:
        raise TypeError(f"moveaxis takes axes, got {source} and {destination}: give integers.")
    source, destination = (
        axes_of(known_axes(x), rank, repeated=TypeError) for x in (source, destination)
    )
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
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move one axis of an array before another one. `moveaxis` is clearer in new code.

    - `a`: array of any shape and dtype.
    - `axis`: the axis to move; `start`: it is moved before this one, 0 by default.

    Returns an array of the dtype of `a`. ValueError if an axis is out of range. Source: NumPy's
    `rollaxis`.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a = to_array("rollaxis", a)
    rank = a.aval.ndim
    if not -rank <= start <= rank:
        raise ValueError(f"{start=} must satisfy {-rank}<=start<={rank}")
    axis, start = axis_of(axis, rank), axis_of(start, rank + 1)
    return moveaxis(a, axis, start - 1 if start > axis else start)


# -- axes of size one -------------------------------------------------------------------------


def along_axis(a: Any, axis: int | None) -> tuple[Any, int]:
    """An array and the number of one of its axes; if that is None the array is flattened first."""
    return (ravel(a), 0) if axis is None else (a, axis_of(axis, a.ndim))


def expanded(x: Any, axes: Sequence[int]) -> Any:
    """New axes of size one at these places of the result."""
    return insert_axes(x, sorted(axes))


@library(static=("axis",), converted=("axis",))
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Insert axes of size one.

    - `a`: array of any shape and dtype.
    - `axis`: an int, or a sequence of ints: positions of the new axes in the result.

    Returns an array of the dtype of `a`. ValueError for positions that repeat or are out of range.
    Source: NumPy's `expand_dims`.

    >>> jnp.expand_dims(jnp.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    a = to_array("expand_dims", a)
    given = tuple(items_of(axis)) if np.iterable(axis) else (axis,)
    check_at_most("the number of axes", len(given), MOST_AXES)
    rank = a.aval.ndim + len(given)
    axes = [axis_of(one, rank) for one in known_axes(given)]
    if len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis in lax.expand_dims: {given}")
    return expanded(a, axes) if axes else a


@library(static=("axis",), converted=("axis",))
def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Remove axes of size one.

    - `a`: array of any shape and dtype.
    - `axis`: an int or a sequence of ints, the axes to remove; None for all axes of size one.

    Returns an array of the dtype of `a`. ValueError if the size of an axis in `axis` is not one.
    Source: NumPy's `squeeze`.

    >>> jnp.squeeze(jnp.ones((1, 2, 1)), axis=0).shape
    (2, 1)
    """
    a = to_array("squeeze", a)
    sizes = a.aval.shape
    if axis is None:
        if any(map(is_dim, sizes)):
            raise ValueError(
                "jnp.squeeze with axis=None is not supported with shape polymorphism: name the axes."
            )
        axes = tuple([i for i, one in enumerate(sizes) if one == 1])
    else:
        axes = axes_of(known_axes(axis), len(sizes))
    return squeeze_p.bind(a, dimensions=tuple(sorted(axes))) if axes else a


def _at_least(name: str, arrays: Sequence[Any], places: dict[int, tuple[int, ...]]) -> Any:
    out = []
    for position, x in enumerate(arrays):
        x = to_array(name, x, position)
        axes = places.get(x.aval.ndim)
        out.append(expanded(x, axes) if axes else x)
    return out[0] if len(out) == 1 else out


@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]: ...
@library
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """View scalars as arrays of one dimension; other arrays stay as they are.

    - `*arys`: arrays of any shape and dtype.

    Returns an array, or a list of them for more than one argument. Source: NumPy's `atleast_1d`.

    >>> jnp.atleast_1d(jnp.int32(5))
    Array([5], dtype=int32)
    """
    return _at_least("atleast_1d", arys, {0: (0,)})


@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]: ...
@library
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Give arrays at least two dimensions, with new axes in front.

    - `*arys`: arrays of any shape and dtype; one of shape (n,) becomes (1, n).

    Returns an array, or a list of them for more than one argument. Source: NumPy's `atleast_2d`.

    >>> jnp.atleast_2d(jnp.ones(3)).shape
    (1, 3)
    """
    return _at_least("atleast_2d", arys, {0: (0, 1), 1: (0,)})


@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]: ...
@library
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Give arrays at least three dimensions.

    - `*arys`: arrays of any shape and dtype; (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1).

    Returns an array, or a list of them for more than one argument. Source: NumPy's `atleast_3d`.

    >>> jnp.atleast_3d(jnp.ones(3)).shape
    (1, 3, 1)
    """
    return _at_least("atleast_3d", arys, {0: (0, 1, 2), 1: (0, 2), 2: (2,)})


# -- broadcasting -----------------------------------------------------------------------------


@library(static=("shape", "out_sharding"), forwards=True)
def broadcast_to(
    array: ArrayLike,
    shape: DimSize | Shape,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Broadcast an array to a shape.

    - `array`: array whose sizes are, counted from the last axis, equal to those of `shape` or one.
    - `shape`: an int or a sequence of ints; `out_sharding`: sharding of the result.

    Returns an array of shape `shape` and of the dtype of `array`. ValueError if it does not
    broadcast. Source: NumPy's `broadcast_to`.

    >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
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
def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Broadcast arrays to their common shape.

    - `*args`: arrays whose shapes broadcast.

    Returns a list of arrays of one shape, each of its own dtype. ValueError if shapes do not
    broadcast. Source: NumPy's `broadcast_arrays`.

    >>> jnp.broadcast_arrays(jnp.array([1, 2]), 3)
    [Array([1, 2], dtype=int32), Array([3, 3], dtype=int32, weak_type=True)]
    """
    check_arraylike("broadcast_arrays", *args)
    if not args:
        return []
    sizes = broadcast_shapes(*[np.shape(x) for x in args])
    arrays = [promote_one("broadcast_arrays", x) for x in args]
    if all(x.shape == sizes for x in arrays):  # however each is split
        return arrays
    where, count = common_sharding(sizes, *arrays), len(sizes)
    return [
        x if x.shape == sizes else to_shape(x, sizes, range(count - x.ndim, count), where)
        for x in arrays
    ]


# -- order of elements ------------------------------------------------------------------------


@library(static=("axis",), converted=("axis",))
def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Reverse the order of elements along axes.

    - `m`: array of any shape and dtype.
    - `axis`: an int, a sequence of ints, or None for all axes.

    Returns an array of the shape and dtype of `m`. ValueError if `axis` is out of range. Source:
    NumPy's `flip`.

    >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    m = to_array("flip", m)
    axes = axes_of(axis, m.aval.ndim, repeated=TypeError)
    return rev_p.bind(m, dimensions=axes) if axes else m


@library
def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of elements along axis 1.

    - `m`: array of at least two dimensions.

    Returns an array of the shape and dtype of `m`. ValueError for fewer dimensions. Source: NumPy's
    `fliplr`.

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


@library
def flipud(m: ArrayLike) -> Array:
    """Reverse the order of elements along axis 0.

    - `m`: array of at least one dimension.

    Returns an array of the shape and dtype of `m`. ValueError for scalars. Source: NumPy's
    `flipud`.

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


@library(static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate an array by multiples of 90 degrees in the plane of two axes.

    - `m`: array of at least two dimensions.
    - `k`: an int, the number of rotations, from the first of `axes` towards the second.
    - `axes`: pair of different ints, (0, 1) by default.

    Returns an array of the dtype of `m`. ValueError for fewer dimensions or equal axes. Source:
    NumPy's `rot90`.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
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
    return isinstance(x, (int, np.integer)) or (isinstance(x, np.ndarray) and x.dtype.kind in "iub")


def roll(
    a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None = None
) -> Array:
    """Shift elements along axes; those shifted beyond the end come in again at the beginning.

    - `a`: array of any shape and dtype.
    - `shift`: an integer or a sequence of them; may be traced. Fractions are cut off.
    - `axis`: an int, a sequence of ints, or None to roll the flattened array.

    Returns an array of the shape and dtype of `a`. ValueError if there is not one shift for each
    axis. Source: NumPy's `roll`.

    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    axis = tuple(axis) if np.iterable(known_axes(axis)) else axis
    if shift is None or np.ndim(shift) > 1:
        raise ValueError(
            "'shift' and 'axis' arguments to roll must be scalars or 1D arrays; got "
            + (f"shift={shift}." if shift is None else f"a shift of shape {np.shape(shift)}.")
        )
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
        by = to_array("roll", by)
        if by.aval.dtype.kind not in "iu" or by.aval.dtype.itemsize < 4:
            by = cast(by, dtypes.int_())  # of floats towards zero, as NumPy does
        start = (length - by % length) % length  # which unsigned numbers can say
        a = dynamic_slicing.dynamic_slice_in_dim(twice, start, length, axis=one)
    return a


# -- repetition -------------------------------------------------------------------------------


@library(static=("reps",), converted=("reps",))
def tile(A: ArrayLike, reps: DimSize | Sequence[DimSize]) -> Array:
    """Repeat an array along each axis.

    - `A`: array of any shape and dtype.
    - `reps`: an int or a sequence of ints, the number of repetitions for each axis, counted from
      the last.

    Returns an array of the dtype of `A`, with max(A.ndim, len(reps)) dimensions. Source: NumPy's
    `tile`.

    >>> jnp.tile(jnp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    A = to_array("tile", A)
    try:
        times = tuple(map(size_of, items_of(reps)))
    except TypeError:
        times = (size_of(reps),)
    check_at_most("the number of axes", len(times), MOST_AXES)
    rank = max(len(times), A.aval.ndim)
    times = (1,) * (rank - len(times)) + times
    A = broadcast_to_shape(A, (1,) * (rank - A.aval.ndim) + A.aval.shape)
    return A if all(one == 1 for one in times) else tile_p.bind(A, reps=times)
