"""Operations on shapes: reshaping, broadcasting, transposing, reversing, tiling.

May import the floors below and `lax.rules`, and nothing else of `lax`. `pad`, the transpose of
`slice`, stands beside it in `lax.slicing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arrays.array import as_value
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.dims import is_dim, is_negative
from minijax.core.primitive import Primitive
from minijax.core.splits import batched_sharding, kept_axes, parts_of
from minijax.core.sums import first, refused
from minijax.errors import ShardingTypeError
from minijax.lax.rules import linear
from minijax.lowering.module import i64_array
from minijax.lowering.types import physical
from minijax.runtime.mesh import axes_of
from minijax.runtime.named import out_sharding_of
from minijax.transforms.primitives import (
    broadcast_in_dim_p,
    moveaxis,
    reduce_sum_p,
    transpose_p,
)

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "collapse", "expand_dims", "reshape", "reshape_p", "rev", "rev_p",
    "shape_as_value", "squeeze", "squeeze_p", "tile", "tile_p", "transpose", "transpose_p",
]  # fmt: skip


# -- what functions on shapes share -----------------------------------------------------------


def size_of(x: Any) -> Any:
    """A size as a Python integer, or as the expression of dimension variables that it is."""
    return x if is_dim(x) else index(x)


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of Python integers; one integer stands for one dimension."""
    try:
        return tuple(map(index, shape))
    except TypeError:
        pass
    try:
        return (size_of(shape),) if not isinstance(shape, Iterable) else tuple(map(size_of, shape))
    except TypeError:
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {shape}. "
            "A size that depends on a traced value cannot be a shape: mark it static."
        ) from None


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
    return ShapedArray(shape, x.dtype, x.weak_type, vma=x.vma)


# -- reshape ----------------------------------------------------------------------------------

reshape_p = Primitive("reshape")
reshape_p.sums(first)


@reshape_p.shape_rule
def _(x, *, new_sizes, dimensions, sharding):
    if any(size < 0 for size in new_sizes):
        raise TypeError(
            f"reshape: new_sizes must all be nonnegative, got {new_sizes}: compute the size meant "
            "by -1, or use minijax.numpy.reshape."
        )
    if prod(new_sizes) != x.size:
        raise ValueError(
            f"reshape: total size must be unchanged, got new_sizes {new_sizes} (of size "
            f"{prod(new_sizes)}) for shape {x.shape} (of size {x.size})."
        )
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError(
            f"reshape: dimensions must be a permutation of operand dimensions, got {dimensions} "
            f"for shape {x.shape}."
        )
    return resized(x, new_sizes)


@reshape_p.sharding
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
            f"`out_sharding` argument of minijax.lax.reshape. Got operand type: {x.str_short()}, "
            f"new sizes: {new_sizes}"
        )
    return parts


def _reshaped_parts(shape, parts, sizes, count_of) -> list[Any] | None:
    """What splits the dimensions after a reshape, or None if no dimensions say it.

    Dimensions correspond in groups of equal products: one, several that become one, or one that
    becomes several, of which the first then has the split.
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
        if sizes[right[0]] % count_of(joined):
            return None
        out[right[0]] = joined if len(joined) > 1 else joined[0]
    return out


def _reshape_transpose(ct, aval, *, new_sizes, dimensions, sharding):
    if dimensions is None:
        where = aval.to_cotangent_aval().explicit
        if where is not None:
            return reshape_p.bind(ct, new_sizes=aval.shape, dimensions=None, sharding=where)
        return _reshape(ct, aval.shape)
    ct = _reshape(ct, tuple(aval.shape[d] for d in dimensions))
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


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return reshape_p.bind(x, new_sizes=shape, dimensions=None, sharding=None)


def reshape(
    operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None, *, out_sharding=None
) -> Array:
    """The elements of `operand` in row-major order, in the shape `new_sizes`.

    `dimensions` is an order in which the operand's axes are taken first. ValueError if the
    sizes differ; TypeError if one is negative or `dimensions` is no permutation. StableHLO: `reshape`.
    """
    new_sizes = canonical_shape(new_sizes)
    shape = np.shape(operand)
    if dimensions is not None:
        dimensions = tuple(map(index, dimensions))
        if dimensions == tuple(range(len(shape))):
            dimensions = None
    if dimensions is None and shape == new_sizes and out_sharding is None:
        return as_value(operand)
    return reshape_p.bind(
        operand,
        new_sizes=new_sizes,
        dimensions=dimensions,
        sharding=out_sharding_of(out_sharding, "reshape"),
    )


def collapse(operand: Array, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The axes from `start_dimension` up to `stop_dimension` made one.

    An empty range gives a new axis of size 1. ValueError if the range runs backwards.
    """
    shape = np.shape(operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        raise ValueError(
            f"collapse: invalid dimension range {start_dimension}:{stop_dimension} for an operand "
            f"of shape {shape}: it must not run backwards."
        )
    return reshape(operand, (*shape[:start], prod(shape[start:stop]), *shape[stop:]))


# -- squeeze and expand_dims ------------------------------------------------------------------

squeeze_p = Primitive("squeeze")
squeeze_p.sums(first)
squeeze_p.sharding(kept_axes("dimensions"))


@squeeze_p.shape_rule
def _(x, *, dimensions):
    if any(x.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={x.shape} and dimensions={dimensions}: name axes of size 1 only."
        )
    return resized(x, tuple(size for d, size in enumerate(x.shape) if d not in dimensions))


linear(squeeze_p, lambda ct, aval, *, dimensions: _expand(ct, dimensions))


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
            f"repeated axis in lax.{name}: {tuple(dimensions)}. Dimensions are not unique: name "
            "each once."
        )
    return axes


def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """`array` without the named axes. ValueError unless each exists, once, and has size 1."""
    axes = tuple(sorted(_unique_axes("squeeze", dimensions, np.ndim(array))))
    return squeeze_p.bind(array, dimensions=axes) if axes else as_value(array)


def _expand(x: Any, axes: Sequence[int]) -> Any:
    """New axes of size 1 at these sorted places of the result."""
    shape = list(np.shape(x))
    for axis in axes:
        shape.insert(axis, 1)
    kept = tuple([axis for axis in range(len(shape)) if axis not in axes])
    return broadcast_in_dim_p.bind(x, shape=tuple(shape), broadcast_dimensions=kept, sharding=None)


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """New axes of size 1; `dimensions` are their places in the result. ValueError on repeats."""
    dimensions = tuple(dimensions)
    if not dimensions:
        return as_value(array)
    ndim = np.ndim(array) + len(dimensions)
    return _expand(array, sorted(_unique_axes("expand_dims", dimensions, ndim)))


# -- broadcasting -----------------------------------------------------------------------------


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding=None) -> Array:
    """`operand` repeated along new leading axes of the given sizes."""
    sizes = tuple(map(index, sizes))
    if not sizes and out_sharding is None:
        return as_value(operand)
    shape = np.shape(operand)
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim(operand, (*sizes, *shape), dims, out_sharding=out_sharding)


def broadcast_in_dim(
    operand: Any, shape: Any, broadcast_dimensions: Sequence[int], *, out_sharding=None
) -> Array:
    """`operand` repeated to `shape`; axis i of it becomes axis `broadcast_dimensions[i]`.

    TypeError if an axis of the operand has neither size 1 nor the size of the result's.
    StableHLO: `broadcast_in_dim`.
    """
    shape = canonical_shape(shape)
    if any(size < 0 for size in shape):
        raise TypeError(f"broadcast_in_dim: shape must be nonnegative, got {shape}.")
    dims = tuple(map(index, broadcast_dimensions))
    if out_sharding is None and np.shape(operand) == shape and dims == tuple(range(len(shape))):
        return as_value(operand)
    return broadcast_in_dim_p.bind(
        operand,
        shape=shape,
        broadcast_dimensions=dims,
        sharding=out_sharding_of(out_sharding, "broadcast_in_dim"),
    )


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """`x` with leading axes of size 1 added until it has `rank` axes."""
    missing = rank - np.ndim(x)
    return _expand(x, range(missing)) if missing > 0 else as_value(x)


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """`arr` broadcast to the shape of `like_arr`, as NumPy aligns them."""
    shape = np.shape(like_arr)
    missing = len(shape) - np.ndim(arr)
    return broadcast_in_dim(arr, shape, range(missing, len(shape)))


@lru_cache(maxsize=4096)
def _broadcast_shapes(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    for shape in shapes:
        if any(size < 0 for size in shape):
            raise TypeError(f"broadcast_shapes: sizes must be nonnegative, got shape {shape}.")
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
    """The shape to which arrays of the given shapes broadcast together, by NumPy's rules.

    ValueError if they do not. Source: `numpy.broadcast_shapes`.
    """
    if not shapes:
        raise ValueError("broadcast_shapes takes at least one shape; none was given.")
    first = shapes[0]
    if type(first) is tuple and len({*shapes}) == 1 and not any(map(is_negative, first)):
        return first
    return _broadcast_shapes(tuple([tuple(map(size_of, shape)) for shape in shapes]))


def shape_as_value(shape: Sequence[int]) -> np.ndarray:
    """A shape as a vector of integers."""
    return np.asarray(shape, dtypes.canonicalize_dtype(np.int64))


def transpose(operand: Any, permutation: Sequence[int] | np.ndarray) -> Array:
    """`operand` with its axes in the order `permutation`. StableHLO: `transpose`."""
    permutation = tuple(map(index, permutation))
    if permutation == tuple(range(np.ndim(operand))):
        return as_value(operand)
    return transpose_p.bind(operand, permutation=permutation)


# -- rev --------------------------------------------------------------------------------------

rev_p = Primitive("rev")
rev_p.sums(refused)


@rev_p.shape_rule
def _(x, *, dimensions):
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < x.ndim for d in dimensions):
        wanted = "all be less than operand ndim"
        if any(d < 0 for d in dimensions):
            wanted = "have every element be nonnegative"
        elif len(set(dimensions)) != len(dimensions):
            wanted = "be unique"
        raise TypeError(
            f"rev dimensions must {wanted}, got {dimensions} for operand ndim {x.ndim}, of shape "
            f"{x.shape}."
        )
    return x


linear(rev_p, lambda ct, aval, *, dimensions: rev_p.bind(ct, dimensions=dimensions))


@rev_p.batch
def _(args, dims, *, dimensions):
    (x,), (dim,) = args, dims
    return rev_p.bind(x, dimensions=tuple(d + (d >= dim) for d in dimensions)), dim


@rev_p.lower
def _(b, x, *, dimensions):
    return b.op("stablehlo.reverse", (x,), b.out, f"dimensions = {i64_array(dimensions)}")


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """`operand` with the order of its elements reversed along the named axes.

    TypeError unless they are unique and count from the front. StableHLO: `reverse`.
    """
    return rev_p.bind(operand, dimensions=tuple(map(index, dimensions)))


# -- tile -------------------------------------------------------------------------------------

tile_p = Primitive("tile")


@tile_p.sharding
def _(avals, out, **params):
    (x,) = avals
    pairs = zip(parts_of(x), x.shape, out.shape, strict=True)
    return [part if size == repeated else None for part, size, repeated in pairs]


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
    return reduce_sum_p.bind(_reshape(ct, split_shape), axes=axes, out_sharding=None)


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


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """`operand` laid `reps[i]` times in a row along each axis i. TypeError unless one for each."""
    return tile_p.bind(operand, reps=tuple(map(int, reps)))
