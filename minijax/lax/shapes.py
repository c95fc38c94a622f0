"""Operations on shapes: reshaping, broadcasting, transposing, reversing, tiling.

`pad`, the transpose of `slice`, stands beside it in `lax.slicing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from math import prod
from operator import index
from typing import Any

import numpy as np

from minijax.arguments.functions import check_at_most
from minijax.arguments.values import known_axes
from minijax.arrays.array import as_value
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive
from minijax.core.trace import Tracer, current, eval_trace
from minijax.errors import ShardingTypeError, shape_error
from minijax.features.queries import is_dim, is_negative
from minijax.features.sharding.explicit import made_at
from minijax.features.sharding.layouts import layout, set_layout
from minijax.features.sharding.sharding_rules import batched_sharding, kept_axes, parts_of
from minijax.features.sharding.types import explicit_of
from minijax.features.sharding.unreduced import first, refused
from minijax.lax.rules import linear
from minijax.lowering.module import i64_array
from minijax.lowering.types import physical
from minijax.runtime.mesh import PartitionSpec, axes_of
from minijax.runtime.named_sharding import NamedSharding, out_sharding_of
from minijax.transforms.primitives import (
    broadcast_in_dim_p,
    insert_axes,
    moveaxis,
    reduce_sum_p,
    transpose_p,
)
from minijax.typing import ArrayLike, Shape

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "collapse", "expand_dims", "reshape", "reshape_p", "rev", "rev_p",
    "squeeze", "squeeze_p", "tile", "tile_p", "transpose", "transpose_p",
]  # fmt: skip


# -- what functions on shapes share -----------------------------------------------------------

MOST_AXES = 1024


def items_of(shape: Any) -> Any:
    """The items of a shape; not more than tell that they are too many."""
    return shape if type(shape) is tuple else islice(shape, MOST_AXES + 1)


def size_of(x: Any) -> Any:
    """A size as a Python integer, or as the expression of dimension variables that it is."""
    return x if is_dim(x) else index(x)


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of Python integers; one integer stands for one dimension."""
    sizes = _sizes_of(shape)
    check_at_most("the number of axes", len(sizes), MOST_AXES)
    return sizes


def _sizes_of(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(map(index, items_of(shape)))
    except TypeError:
        pass
    try:
        if not isinstance(shape, Iterable):
            return (size_of(shape),)
        return tuple(map(size_of, items_of(shape)))
    except TypeError:
        if not isinstance(shape, Iterable):
            raise TypeError(
                f"{type(shape).__name__!r} object is not iterable: a shape is a tuple of integers, or "
                f"one; got {shape!r}."
            ) from None
        raise shape_error(shape) from None


def canonical_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the front. AxisError, a ValueError and IndexError, if there is none."""
    axis = index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(
            f"axis {axis} is out of bounds for array of dimension {ndim}: "
            + (f"give one from {-ndim} to {ndim - 1}." if ndim else "a scalar has no axes.")
        )
    return axis + ndim if axis < 0 else axis


def trailing(aval: ShapedArray) -> tuple[int, ...]:
    """The dimensions that an element itself takes up in memory: () but for random keys."""
    return physical(aval).shape[aval.ndim :]


def resized(x: ShapedArray, shape: tuple[int, ...]) -> ShapedArray:
    return ShapedArray(shape, x.dtype, x.weak_type)


# -- reshape ----------------------------------------------------------------------------------

reshape_p = Primitive("reshape")
set_layout(reshape_p, sums=first)


@reshape_p.shape_rule
def _(x, *, new_sizes, dimensions, sharding):
    if not all(size >= 0 for size in new_sizes):
        raise TypeError(
            f"reshape new_sizes must all be positive, got {new_sizes}. Compute the size meant "
            "by -1, or use minijax.numpy.reshape."
        )
    if prod(new_sizes) != x.size:
        raise ValueError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} (of size "
            f"{prod(new_sizes)}) for shape {x.shape} (of size {x.size})."
        )
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError(
            f"reshape dimensions must be a permutation of operand dimensions, got dimensions {dimensions} "
            f"for shape {x.shape}."
        )
    return resized(x, new_sizes)


@layout(reshape_p, "parts")
def _(avals, out, *, new_sizes, dimensions, sharding):
    (x,) = avals
    parts = parts_of(x) if dimensions is None else None
    if parts is not None:
        sizes = x.explicit.mesh.shape
        count_of = lambda part: prod(sizes[name] for name in axes_of(part))
        parts = _reshaped_parts(x.shape, parts, new_sizes, count_of)
    if parts is None:
        raise ShardingTypeError(
            "This reshape is not supported. Please specify the sharding of the output via the "
            f"`out_sharding` argument of jax.lax.reshape. Got operand type: {x.str_short()}, "
            f"new sizes: {new_sizes}"
        )
    return parts


def _reshaped_parts(shape, parts, sizes, count_of) -> list[Any] | None:
    """Return the mesh axes that split dimensions after a reshape; None if they do not correspond.

    Dimensions correspond in groups of equal products: one, several that become one, or one that
    becomes several, of which the first then has the split, or each as many mesh axes as its size.
    """
    old = [(size, part) for size, part in zip(shape, parts, strict=True) if size != 1]
    new = [axis for axis, size in enumerate(sizes) if size != 1]
    out: list[Any] = [None] * len(sizes)
    if 0 in shape:
        return out if not any(parts) else None
    while old:
        left, right = [old.pop(0)], [new.pop(0)]
        have, want = left[0][0], sizes[right[0]]
        while have != want:
            if have < want:
                left.append(old.pop(0))
                have *= left[-1][0]
            else:
                right.append(new.pop(0))
                want *= sizes[right[-1]]
        found = [part for _, part in left]
        named = [part for part in found if part is not None]
        if not named:
            continue
        if (len(left) > 1 and len(right) > 1) or found[: len(named)] != named:
            return None
        joined = tuple([name for part in named for name in axes_of(part)])
        for axis in right:  # that before the last one which is split has one row on each device
            whole = not sizes[axis] % count_of(joined)
            prefixes = (joined[:k] for k in range(1, len(joined) + 1))
            first = (
                joined if whole else next((n for n in prefixes if count_of(n) == sizes[axis]), None)
            )
            if first is None:
                return None
            out[axis] = first if len(first) > 1 else first[0]
            joined = joined[len(first) :]
            if not joined:
                break
        if joined:
            return None
    return out


def _reshape_transpose(ct, aval, *, new_sizes, dimensions, sharding):
    if dimensions is None:
        where = aval.to_cotangent_aval().explicit
        if where is not None:
            return reshape_p.bind(ct, new_sizes=aval.shape, dimensions=None, sharding=where)
        return reshaped(ct, aval.shape)
    ct = reshaped(ct, tuple(aval.shape[d] for d in dimensions))
    return transpose_p.bind(ct, permutation=tuple(map(int, np.argsort(dimensions))))


linear(reshape_p, _reshape_transpose)


@reshape_p.batch
def _(args, dims, *, new_sizes, dimensions, sharding):
    x = moveaxis(args[0], dims[0], 0)
    if dimensions is not None:
        dimensions = (0, *(d + 1 for d in dimensions))
    sizes = (x.shape[0], *new_sizes)
    sharding = batched_sharding(sharding, x, 0)
    return reshape_p.bind(x, new_sizes=sizes, dimensions=dimensions, sharding=sharding), 0


@reshape_p.lower
def _(b, x, *, new_sizes, dimensions, sharding):
    if dimensions is not None:
        x = b.transpose(x, dimensions)
    return b.reshape(x, new_sizes)


def reshaped(x: Any, shape: Sequence[int]) -> Any:
    """`reshape` for sizes that are known to be right."""
    if np.shape(x) == shape:
        return x
    return reshape_p.bind(x, new_sizes=tuple(shape), dimensions=None, sharding=None)


def permute(x: Any, order: Sequence[int]) -> Any:
    """`transpose` for an order that is known to be right."""
    order = tuple([int(axis) for axis in order])
    return x if order == tuple(range(len(order))) else transpose_p.bind(x, permutation=order)


def reshape(
    operand: ArrayLike,
    new_sizes: Shape,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Return the elements of an array in row-major order, in another shape.

    - `operand`: array of any shape and dtype
    - `new_sizes`: shape of the result, without -1
    - `dimensions`: order in which the operand's axes are taken first, by default their own
    - `out_sharding`: sharding of the result

    ValueError if the numbers of elements differ; TypeError if a size is negative or `dimensions` is
    not a permutation. Source: the StableHLO operation `stablehlo.reshape`.

    >>> lax.reshape(jnp.array([1, 2, 3, 4]), (2, 2))
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    new_sizes = canonical_shape(new_sizes)
    shape = np.shape(operand)
    if dimensions is not None:
        dimensions = tuple(map(index, known_axes(dimensions)))
        if dimensions == tuple(range(len(shape))):
            dimensions = None
    if dimensions is None and shape == new_sizes != () and out_sharding is None:
        return as_value(operand)
    return reshape_p.bind(
        operand,
        new_sizes=new_sizes,
        dimensions=dimensions,
        sharding=out_sharding_of(out_sharding, "reshape"),
    )


def collapse(operand: Array, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge consecutive axes into one.

    - `operand`: array of any shape and dtype
    - `start_dimension`, `stop_dimension`: range of axes, by default to the last; an empty range
      gives a new axis of size 1

    The result has the operand's elements in the same order. ValueError if the range runs backwards.
    Source: NumPy's `reshape`.

    >>> lax.collapse(jnp.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    shape = np.shape(operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        raise ValueError(
            f"Invalid dimension range passed to collapse: {shape}[{start_dimension}:"
            f"{stop_dimension}] runs backwards."
        )
    return reshape(operand, (*shape[:start], prod(shape[start:stop]), *shape[stop:]))


# -- squeeze and expand_dims ------------------------------------------------------------------

squeeze_p = Primitive("squeeze")
set_layout(squeeze_p, sums=first, parts=kept_axes("dimensions"))


@squeeze_p.shape_rule
def _(x, *, dimensions):
    if any(x.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={x.shape} and dimensions={dimensions}: name axes of size 1 only."
        )
    return resized(x, tuple(size for d, size in enumerate(x.shape) if d not in dimensions))


linear(squeeze_p, lambda ct, aval, *, dimensions: insert_axes(ct, dimensions))


@squeeze_p.batch
def _(args, dims, *, dimensions):
    (x,), (dim,) = args, dims
    dimensions = tuple(d + (d >= dim) for d in dimensions)
    out = squeeze_p.bind(x, dimensions=dimensions)
    return out, dim - sum(d < dim for d in dimensions)


@squeeze_p.lower
def _(b, x, *, dimensions):
    return b.reshape(x, b.out.shape)


def _unique_axes(name: str, dimensions: Sequence[int], ndim: int) -> tuple[int, ...]:
    axes = tuple([canonical_axis(d, ndim) for d in dimensions])
    if len(set(axes)) != len(axes):
        raise ValueError(
            f"dimensions are not unique: {tuple(dimensions)}"
            if name == "squeeze"
            else f"repeated axis in lax.{name}: {tuple(dimensions)}: name each once."
        )
    return axes


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Remove axes of size 1.

    - `array`: array of any shape and dtype
    - `dimensions`: axes

    ValueError unless each axis exists, once, and has size 1. Source: NumPy's `squeeze`.

    >>> lax.squeeze(jnp.ones((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    axes = tuple(sorted(_unique_axes("squeeze", dimensions, np.ndim(array))))
    return squeeze_p.bind(array, dimensions=axes) if axes else as_value(array)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Insert axes of size 1.

    - `array`: array of any shape and dtype
    - `dimensions`: positions of the new axes in the result's shape

    ValueError for repeated positions, or positions out of range. Source: NumPy's `expand_dims`.

    >>> lax.expand_dims(jnp.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    dimensions = tuple(items_of(dimensions))
    if not dimensions:
        return _with_own_memory(array)
    check_at_most("the number of axes", len(dimensions), MOST_AXES)
    ndim = np.ndim(array) + len(dimensions)
    return insert_axes(array, sorted(_unique_axes("expand_dims", dimensions, ndim)))


# -- broadcasting -----------------------------------------------------------------------------


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Repeat an array along new leading axes.

    - `operand`: array of any shape and dtype
    - `sizes`: sizes of the new axes
    - `out_sharding`: sharding of the result

    The result has shape (*sizes, *operand.shape). TypeError for negative sizes.
    Source: the StableHLO operation `stablehlo.broadcast_in_dim`.

    >>> lax.broadcast(jnp.array([1, 2]), (2,))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    sizes = tuple([size if is_dim(size) else index(size) for size in sizes])
    if not sizes and out_sharding is None:
        return as_value(operand)
    shape = np.shape(operand)
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim(operand, (*sizes, *shape), dims, out_sharding=out_sharding)


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Shape,
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Array:
    """Repeat an array to a shape; axis `i` of it becomes axis `broadcast_dimensions[i]`.

    - `operand`: array of any dtype
    - `shape`: shape of the result
    - `broadcast_dimensions`: increasing axes of the result, one for each axis of the operand
    - `out_sharding`: sharding of the result

    TypeError if an axis of the operand has neither size 1 nor the size of the result's axis, and
    for dimensions that are not increasing, too many or too few.
    Source: the StableHLO operation `stablehlo.broadcast_in_dim`.

    >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    shape = canonical_shape(shape)
    if any(size < 0 for size in shape):
        raise TypeError(
            f"broadcast_in_dim shape must have every element be nonnegative, got {shape}."
        )
    dims = tuple(map(index, broadcast_dimensions))
    if out_sharding is None and np.shape(operand) == shape and dims == tuple(range(len(shape))):
        return _with_own_memory(operand)
    make = lambda over: broadcast_in_dim_p.bind(
        operand, shape=shape, broadcast_dimensions=dims, sharding=over
    )
    return make(None) if out_sharding is None else made_at(make, out_sharding, "broadcast_in_dim")


def _with_own_memory(x: Any) -> Any:
    """Return the operand of an operation that changes nothing: outside of any trace, a copy of it."""
    value = as_value(x)
    if value is not x or not x.ndim or isinstance(x, Tracer) or current() is not eval_trace:
        return value
    axes = tuple(range(x.ndim))
    return broadcast_in_dim_p.bind(x, shape=x.shape, broadcast_dimensions=axes, sharding=None)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Add leading axes of size 1 until an array has `rank` axes.

    - `x`: array of any shape and dtype; returned as it is if it has `rank` axes or more
    - `rank`: integer

    The result has shape (1, ..., 1, *x.shape). Source: NumPy's `expand_dims`.

    >>> lax.broadcast_to_rank(jnp.array([1, 2]), 2)
    Array([[1, 2]], dtype=int32)
    """
    missing = rank - np.ndim(x)
    check_at_most("rank", rank, MOST_AXES)
    return insert_axes(x, range(missing)) if missing > 0 else as_value(x)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcast an array to the shape of another, aligning trailing axes.

    - `arr`: array of any dtype, which the result has
    - `like_arr`: array of the shape of the result

    ValueError if the shapes do not fit. Source: NumPy's `broadcast_to`.

    >>> lax.broadcast_like(jnp.array([1, 2]), jnp.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    shape = np.shape(like_arr)
    given, missing = np.shape(arr), len(shape) - np.ndim(arr)
    if missing < 0 or any(one not in (1, wanted) for one, wanted in zip(given, shape[missing:])):
        raise ValueError(
            f"Incompatible shapes for broadcasting: {given} and requested shape {shape}: each size "
            "must be 1, or as requested."
        )
    where = explicit_of(get_aval(like_arr))
    return broadcast_in_dim(arr, shape, range(missing, len(shape)), out_sharding=where)


@lru_cache(maxsize=4096)
def _broadcast_shapes(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    for shape in shapes:
        if any(size < 0 for size in shape):
            raise TypeError(
                "Only non-negative indices are allowed when broadcasting static shapes, but got shape "
                f"{shape}. Give broadcast_shapes sizes of 0 or more."
            )
    ndim = max(len(shape) for shape in shapes)
    out = []
    for axis in range(-ndim, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(sizes) > 1:
            raise ValueError(
                f"Incompatible shapes for broadcasting: shapes={list(shapes)}: their sizes along "
                f"axis {axis} are {sorted(sizes)}, and must be equal or 1."
            )
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which arrays of the given shapes broadcast together.

    - `shapes`: tuples of integers

    The result is a tuple of integers. ValueError if the shapes are incompatible.
    Source: NumPy's `broadcast_shapes`.

    >>> lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    if not shapes:
        raise ValueError("broadcast_shapes takes at least one shape; none was given.")
    first = shapes[0]
    if type(first) is tuple and len({*shapes}) == 1 and not any(map(is_negative, first)):
        return first
    return _broadcast_shapes(tuple([tuple(map(size_of, shape)) for shape in shapes]))


def transpose(operand: ArrayLike, permutation: Sequence[int] | np.ndarray) -> Array:
    """Permute the axes of an array.

    - `operand`: array of any shape and dtype
    - `permutation`: for each axis of the result, the operand's axis

    TypeError unless it is a permutation. Source: the StableHLO operation `stablehlo.transpose`.

    >>> lax.transpose(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    permutation = tuple(map(index, permutation))
    if permutation == tuple(range(np.ndim(operand))):
        return as_value(operand)
    return transpose_p.bind(operand, permutation=permutation)


# -- rev --------------------------------------------------------------------------------------

rev_p = Primitive("rev")
set_layout(rev_p, sums=refused)


@rev_p.shape_rule
def _(x, *, dimensions):
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < x.ndim for d in dimensions):
        wanted = (
            f"all be less than operand ndim, got dimensions {dimensions} for operand ndim {x.ndim}"
        )
        if any(d < 0 for d in dimensions):
            wanted = f"have every element be nonnegative, got {dimensions}"
        elif len(set(dimensions)) != len(dimensions):
            wanted = f"be unique, got {dimensions}"
        raise TypeError(f"rev dimensions must {wanted}. The operand is of shape {x.shape}.")
    return x


linear(rev_p, lambda ct, aval, *, dimensions: rev_p.bind(ct, dimensions=dimensions))


@rev_p.batch
def _(args, dims, *, dimensions):
    (x,), (dim,) = args, dims
    return rev_p.bind(x, dimensions=tuple(d + (d >= dim) for d in dimensions)), dim


@rev_p.lower
def _(b, x, *, dimensions):
    return b.op("stablehlo.reverse", (x,), b.out, f"dimensions = {i64_array(dimensions)}")


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order of elements along axes.

    - `operand`: array of any shape and dtype, which the result has
    - `dimensions`: nonnegative axes

    TypeError for axes that are repeated or out of range.
    Source: the StableHLO operation `stablehlo.reverse`.

    >>> lax.rev(jnp.array([1, 2, 3]), (0,))
    Array([3, 2, 1], dtype=int32)
    """
    return rev_p.bind(operand, dimensions=tuple(map(index, dimensions)))


# -- tile -------------------------------------------------------------------------------------

tile_p = Primitive("tile")


@layout(tile_p, "parts")
def _(avals, out, **params):
    (x,), reps = avals, params["reps"]
    for axis, (part, n) in enumerate(zip(parts_of(x), reps, strict=True)):
        if part is not None and n != 1:
            raise ShardingTypeError(
                f"Operand cannot be sharded on dimension {axis} when the tiling is non-trivial. Got "
                f"input type: {x.str_short()} with reps: {reps}. Change the operand with "
                "jax.sharding.reshard."
            )
    return parts_of(x)


@tile_p.shape_rule
def _(x, *, reps):
    if len(reps) != x.ndim:
        raise TypeError(
            f"reps length must be equal to the ndim of x, got len(reps)={len(reps)} and "
            f"x.ndim={x.ndim}. minijax.numpy.tile takes any number of them."
        )
    if any(n < 0 for n in reps):
        raise TypeError(f"tile: reps must be nonnegative, got {reps} for shape {x.shape}.")
    return resized(x, tuple(n * size for n, size in zip(reps, x.shape, strict=True)))


def _tile_transpose(ct, aval, *, reps):
    split_shape = tuple(n for pair in zip(reps, aval.shape, strict=True) for n in pair)
    axes = tuple(range(0, 2 * aval.ndim, 2))
    return reduce_sum_p.bind(reshaped(ct, split_shape), axes=axes, out_sharding=None)


linear(tile_p, _tile_transpose)


@tile_p.batch
def _(args, dims, *, reps):
    (x,), (dim,) = args, dims
    return tile_p.bind(x, reps=(*reps[:dim], 1, *reps[dim:])), dim


@tile_p.lower
def _(b, x, *, reps):
    split_shape = tuple(n for pair in zip(reps, x.shape, strict=True) for n in pair)
    repeated = b.broadcast(x, split_shape, range(1, 2 * len(reps), 2))
    return b.reshape(repeated, b.out.shape)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat an array along each axis.

    - `operand`: array of any shape and dtype
    - `reps`: nonnegative integers, one for each axis

    The result has shape `operand.shape[i] * reps[i]`. TypeError for too many or too few, or
    negative ones.
    Source: NumPy's `tile`.

    >>> lax.tile(jnp.array([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)
    """
    return tile_p.bind(operand, reps=tuple(map(int, reps)))
