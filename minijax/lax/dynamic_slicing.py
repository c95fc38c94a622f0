"""Slices at indices that a program computes, and updates of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from minijax import dtypes
from minijax.arrays.dispatch import concrete, program_for
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.caches import ProgramCache
from minijax.core.primitive import Primitive
from minijax.core.staging import trace_to_jaxpr
from minijax.features.library import library
from minijax.features.queries import certain, is_dim
from minijax.features.sharding.layouts import layout, set_layout
from minijax.features.sharding.sharding_rules import ambiguous, as_operand, parts_of
from minijax.features.sharding.unreduced import alike, first_reduced
from minijax.lax.arithmetic import add_p
from minijax.lax.compare import lt_p, select_n_p
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full
from minijax.lax.index_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from minijax.lax.indexing import gather_p, scatter_p
from minijax.lax.joining import stack_p
from minijax.lax.rules import linear_in, linear_together, same_dtypes
from minijax.lax.shapes import (
    canonical_axis,
    canonical_shape,
    expand_dims,
    resized,
    size_of,
    squeeze_p,
    trailing,
)
from minijax.lax.slicing import slice_p, slice_padded
from minijax.lowering.module import i64_array
from minijax.transforms.batching import mapped_size, to_front
from minijax.transforms.primitives import add_tangents, broadcast_batch, full_like_aval, moveaxis
from minijax.transforms.tangents import Summed, is_undefined
from minijax.typing import ArrayLike, Shape

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_slice_p",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim",
    "dynamic_update_slice_p", "index_take",
]  # fmt: skip

_F = TypeVar("_F", bound=Callable)

# -- dynamic_slice ------------------------------------------------------------------------------------

dynamic_slice_p = Primitive("dynamic_slice")
set_layout(dynamic_slice_p, parts=as_operand, sums=first_reduced)


def _check_starts(name: str, x: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    if len(starts) != x.ndim or any(start.shape for start in starts):
        raise TypeError(
            f"start_indices arguments to {name} must be scalars,  got indices {tuple(starts)}: one for "
            f"each axis of an operand of shape {x.shape}."
        )
    kinds = {start.dtype for start in starts}
    if len(kinds) > 1 or not all(dtypes.issubdtype(kind, np.integer) for kind in kinds):
        raise TypeError(
            f"{_same_type(name)} {', '.join(start.dtype.name for start in starts)}: "
            "convert them to one dtype."
        )


def _same_type(name: str) -> str:
    """Return upstream's words, which differ by a colon."""
    got = "got:" if name == "dynamic_slice" else "got"
    return f"index arguments to {name} must be integers of the same type, {got}"


@dynamic_slice_p.shape_rule
def _(x, *starts, slice_sizes):
    _check_starts("dynamic_slice", x, starts)
    if len(slice_sizes) != x.ndim or any(
        not 0 <= size <= bound for size, bound in zip(slice_sizes, x.shape, strict=False)
    ):
        sizes = tuple(slice_sizes)
        wanted = (
            f"be less than or equal to operand shape, got slice_sizes {sizes} for operand shape "
            f"{x.shape}"
        )
        if len(sizes) != x.ndim:
            wanted = (
                "have length equal to the number of dimensions of the operand, got slice_sizes "
                f"{sizes} for operand shape {x.shape}"
            )
        elif any(size < 0 for size in sizes):
            wanted = f"be greater than or equal to zero, got slice_sizes of {sizes}"
        raise TypeError(f"slice slice_sizes must {wanted}. They are those of dynamic_slice.")
    return resized(x, slice_sizes)


linear_in(dynamic_slice_p, 0)


@dynamic_slice_p.transpose
def _(ct, x, *starts, slice_sizes):
    if x.sum is None:
        found = dynamic_update_slice_p.bind(full_like_aval(0, x.aval), ct, *starts)
    else:
        there = dynamic_slice_p.bind(x.sum, *starts, slice_sizes=slice_sizes)
        total = add_tangents(there, ct)
        found = Summed(dynamic_update_slice_p.bind(x.sum, total, *starts))
    return [found, *[None] * len(starts)]


@slice_p.transpose
def _(ct, x, **params):
    starts = params["start_indices"]
    if x.sum is None or params["strides"] is not None or any(map(is_dim, starts)):
        return [slice_padded(ct, x.aval, **params)]
    total = add_tangents(slice_p.bind(x.sum, **params), ct)
    return [Summed(dynamic_update_slice_p.bind(x.sum, total, *map(np.int32, starts)))]


def _at_zero(starts: Sequence[Any], place: int) -> list[Any]:
    """Start indices with a zero for one more axis."""
    starts = list(starts)
    dtype = get_aval(starts[0]).dtype if starts else np.dtype(np.int32)
    starts.insert(place, np.zeros((), dtype)[()])
    return starts


def _index_vectors(starts, dims, axes: Sequence[int]):
    """One index vector for each element of the batch, of the start indices of these axes."""
    size = mapped_size(starts, dims)
    columns = [to_front(starts[axis], dims[axis], size) for axis in axes]
    return stack_p.bind(*columns, axis=1), size


@dynamic_slice_p.batch
def _(args, dims, *, slice_sizes):
    (x, *starts), (dx, *ds) = args, dims
    if all(d is None for d in ds):
        sizes = (*slice_sizes[:dx], x.shape[dx], *slice_sizes[dx:])
        return dynamic_slice_p.bind(x, *_at_zero(starts, dx), slice_sizes=sizes), dx
    shape = np.shape(x) if dx is None else (*x.shape[:dx], *x.shape[dx + 1 :])
    axes = [axis for axis, size in enumerate(slice_sizes) if size != shape[axis]]
    axes = axes or [next(axis for axis, d in enumerate(ds) if d is not None)]
    indices, size = _index_vectors(starts, ds, axes)
    batching: tuple[int, ...] = ()
    if dx is not None:
        x = moveaxis(x, dx, 0)
        batching, slice_sizes = (0,), (1 if is_dim(size) else min(size, 1), *slice_sizes)
        axes = [axis + 1 for axis in axes]
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape) + 1)),
        collapsed_slice_dims=(),
        start_index_map=tuple(axes),
        operand_batching_dims=batching,
        start_indices_batching_dims=batching,
    )
    out = gather_p.bind(
        x,
        indices,
        dimension_numbers=numbers,
        slice_sizes=slice_sizes,
        unique_indices=False,
        indices_are_sorted=False,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )
    return out, 0


def _physical_starts(b, x, starts):
    """Start indices with zeros for the axes that elements take up in memory."""
    extra = trailing(x.aval)
    if not extra:
        return starts
    scalar = starts[0].aval if starts else ShapedArray((), np.dtype(np.int32))
    return (*starts, *[b.constant(np.zeros((), scalar.dtype), scalar)] * len(extra))


@dynamic_slice_p.lower
def _(b, x, *starts, slice_sizes):
    sizes = i64_array((*slice_sizes, *trailing(x.aval)))
    operands = (x, *_physical_starts(b, x, starts))
    if len(operands) == 1:
        return x
    return b.op("stablehlo.dynamic_slice", operands, b.out, f"slice_sizes = {sizes}")


_strided = ProgramCache()


@slice_p.impl
def _(x, *, start_indices, limit_indices, strides):
    # The place of a slice that is run at once is an operand: each is no new program.
    x = concrete(x)
    params = {"start_indices": start_indices, "limit_indices": limit_indices, "strides": strides}
    out = slice_p.out_avals((x.aval,), params)
    if strides is None or all(step == 1 for step in strides):
        return dynamic_slice_p.bind(x, *start_indices, slice_sizes=out.shape)
    key = (x.signature, *params.values())
    program = _strided.get(key)
    if program is None:
        closed = trace_to_jaxpr(lambda x: [slice_p.bind(x, **params)], (x.aval,))
        program = _strided[key] = program_for(closed, "slice", [x])
    return program([x])[0]


# -- dynamic_update_slice ----------------------------------------------------------------------------

dynamic_update_slice_p = Primitive("dynamic_update_slice")
set_layout(dynamic_update_slice_p, sums=lambda name, avals, asked: alike()(name, avals[:2], asked))


@layout(dynamic_update_slice_p, "parts")
def _(avals, out):
    x, update, *_ = avals
    for part, own, size, width in zip(
        parts_of(x), parts_of(update), x.shape, update.shape, strict=True
    ):
        if own == part or (own is None and size == width):
            continue
        raise ambiguous(
            "dynamic_update_slice",
            "dynamic_update_slice operand sharding must be equal to update sharding",
            (x, update),
        )
    return parts_of(x)


@dynamic_update_slice_p.shape_rule
def _(x, update, *starts):
    wanted = "have the same rank as operand" if update.ndim != x.ndim else None
    if wanted is None and any(n > bound for n, bound in zip(update.shape, x.shape, strict=True)):
        wanted = "be smaller than operand shape"
    if wanted:
        subject = "update shape" if wanted.startswith("be") else "update"
        raise TypeError(
            f"dynamic_update_slice {subject} must {wanted}, got update shape {update.shape} for "
            f"operand shape {x.shape}."
        )
    _check_starts("dynamic_update_slice", x, starts)
    same_dtypes("dynamic_update_slice", (x, update))
    return ShapedArray(x.shape, x.dtype)


linear_together(dynamic_update_slice_p, stop=2)


@dynamic_update_slice_p.transpose
def _(ct, x, update, *starts):
    ct_x = ct_update = None
    if is_undefined(x):
        zeros = full_like_aval(0, ShapedArray(update.shape, ct.dtype))
        ct_x = dynamic_update_slice_p.bind(ct, zeros, *starts)
    if is_undefined(update):
        ct_update = dynamic_slice_p.bind(ct, *starts, slice_sizes=update.shape)
    return [ct_x, ct_update, *[None] * len(starts)]


@dynamic_update_slice_p.batch
def _(args, dims):
    (x, update, *starts), (dx, du, *ds) = args, dims
    if all(d is None for d in ds):
        if dx is None:
            x, dx = broadcast_batch(x, update.shape[du], du), du
        elif du is None:
            update = broadcast_batch(update, x.shape[dx], dx)
        else:
            update = moveaxis(update, du, dx)
        return dynamic_update_slice_p.bind(x, update, *_at_zero(starts, dx)), dx
    ndim = len(starts)
    indices, size = _index_vectors(starts, ds, range(ndim))
    x, update = to_front(x, dx, size), to_front(update, du, size)
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, ndim + 1)),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=tuple(range(1, ndim + 1)),
        operand_batching_dims=(0,),
        scatter_indices_batching_dims=(0,),
    )
    out = scatter_p.bind(
        x,
        indices,
        update,
        dimension_numbers=numbers,
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
        update_jaxpr=None,
        update_consts=(),
    )
    return out, 0


@dynamic_update_slice_p.lower
def _(b, x, update, *starts):
    operands = (x, update, *_physical_starts(b, x, starts))
    if len(operands) == 2:
        return update
    return b.op("stablehlo.dynamic_update_slice", operands, b.out)


# -- the functions on them -----------------------------------------------------------------------------


def _start_indices(
    name: str, shape: Sequence[int], starts: Any, allow_negative: bool | Sequence[bool]
) -> list[Any]:
    """One index for each axis; below zero they count from the end."""
    if isinstance(starts, (Array, np.ndarray)):
        if starts.ndim != 1:
            raise ValueError(
                f"Slice indices must be a 1D sequence, got {starts.shape}: {name} takes scalars or "
                "a vector as start_indices."
            )
        starts = [_element(starts, place) for place in range(starts.shape[0])]
    starts = list(starts)
    if len(starts) != len(shape):
        raise ValueError(
            "Length of slice indices must match number of operand dimensions "
            f"({len(starts)} vs {tuple(shape)}): {name} got {len(starts)} start_indices for an "
            f"operand of shape {tuple(shape)}."
        )
    if not isinstance(allow_negative, (tuple, list)):
        allow_negative = [bool(allow_negative)] * len(starts)
    if len(allow_negative) != len(starts):
        raise ValueError(
            f"safe_zip() argument 2 has length {len(allow_negative)} but argument 0 has length "
            f"{len(starts)}. allow_negative_indices of {name} is a boolean, or one for each dimension."
        )
    return [
        _wrapped(start, size, get_aval(start).dtype, allowed)
        for start, size, allowed in zip(starts, shape, allow_negative, strict=True)
    ]


def _element(vector: Any, place: int) -> Any:
    if not isinstance(vector, Array):
        return vector[place]
    row = slice_p.bind(vector, start_indices=(place,), limit_indices=(place + 1,), strides=(1,))
    return squeeze_p.bind(row, dimensions=(0,))


def _wrapped(start: Any, size: int, dtype: Any, allow_negative: bool) -> Any:
    """A start index with those below zero counted from the end of an axis of this size."""
    if isinstance(start, (int, np.integer)):
        start = int(start)
        if start < 0 and not allow_negative:
            raise ValueError(
                f"Index {start} is out of bounds for dimension {size} if "
                "allow_negative_indices=False: give an index from 0 on."
            )
        if start < 0:
            start += size
        return np.asarray(start).astype(dtype)[()]
    if not allow_negative or not dtypes.issubdtype(dtype, np.signedinteger):
        return start
    if certain(lambda: size > dtypes.iinfo(dtype).max):
        dtype = dtypes.canonicalize_dtype(np.int64)
        start = convert_element_type(start, dtype)
    kind = dtype.type
    negative = lt_p.bind(start, kind(0))
    by = convert_element_type(size.__jax_array__(), dtype) if is_dim(size) else kind(size)
    return select_n_p.bind(negative, start, add_p.bind(start, by))


def _operand(index: Any) -> Any:
    """Let a number be an index like one that is computed, whose sign is not checked."""
    if hasattr(index, "__jax_array__"):
        index = index.__jax_array__()
    return index if isinstance(index, Array) else np.asarray(index)


def _known_starts(fun: _F) -> _F:
    """Wrap a library function, which makes operands of numbers, so that it sees negative ones."""

    plain = cast(Any, fun).__wrapped__

    @functools.wraps(fun)
    def called(*args, **kwargs):
        if kwargs.get("allow_negative_indices", True) is True:
            return fun(*args, **kwargs)
        return plain(*args, **kwargs)

    return cast(_F, called)


@_known_starts
@library(static=("slice_sizes", "allow_negative_indices"), converted=("allow_negative_indices",))
def dynamic_slice(
    operand: Array | np.ndarray,
    start_indices: Array | np.ndarray | Sequence[ArrayLike],
    slice_sizes: Shape,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Cut out the part of an array that begins at indices known at run time.

    - `operand`: array of any shape and dtype
    - `start_indices`: integer scalars, one for each axis; negative ones count from the end unless
      `allow_negative_indices` is False. The part is moved until it lies within the operand
    - `slice_sizes`: static shape of the result

    TypeError for indices that are not integers of one dtype, and for sizes greater than the
    operand's.
    Source: the StableHLO operation `stablehlo.dynamic_slice`.

    >>> lax.dynamic_slice(jnp.array([0, 1, 2, 3]), (1,), (2,))
    Array([1, 2], dtype=int32)
    """
    starts = _start_indices(
        "dynamic_slice", np.shape(operand), start_indices, allow_negative_indices
    )
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=canonical_shape(slice_sizes))


def _on_axis(start: Any, axis: int, ndim: int) -> list[Any]:
    starts: list[Any] = [get_aval(start).dtype.type(0)] * ndim
    starts[axis] = start
    return starts


@_known_starts
@library(
    static=("slice_size", "axis", "allow_negative_indices"),
    converted=("slice_size", "axis", "allow_negative_indices"),
)
def dynamic_slice_in_dim(
    operand: Array | np.ndarray,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Cut out a part along one axis that begins at an index known at run time.

    - `operand`: array of any shape and dtype
    - `start_index`: integer scalar, treated as in `dynamic_slice`
    - `slice_size`: static size of the result along `axis`

    TypeError for a size greater than the operand's and for an index that is not an integer.
    Source: the StableHLO operation `stablehlo.dynamic_slice`.

    >>> lax.dynamic_slice_in_dim(jnp.array([0, 1, 2, 3]), 1, 2)
    Array([1, 2], dtype=int32)
    """
    shape = list(np.shape(operand))
    axis = canonical_axis(int(axis), len(shape))
    starts = _on_axis(start_index, axis, len(shape))
    starts = _start_indices("dynamic_slice", shape, starts, bool(allow_negative_indices))
    shape[axis] = size_of(slice_size)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=tuple(shape))


@library(static=("axis", "keepdims", "allow_negative_indices"))
def dynamic_index_in_dim(
    operand: Array | np.ndarray,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Cut out one index of an axis, known at run time.

    - `operand`: array of any shape and dtype
    - `index`: integer scalar, treated as in `dynamic_slice`
    - `keepdims`: whether the axis stays, with size 1

    TypeError for an index that is not an integer.
    Source: the StableHLO operation `stablehlo.dynamic_slice`.

    >>> lax.dynamic_index_in_dim(jnp.array([4, 5, 6]), 1, keepdims=False)
    Array(5, dtype=int32)
    """
    axis = canonical_axis(int(axis), np.ndim(operand))
    row = dynamic_slice_in_dim(
        operand, _operand(index), 1, axis, allow_negative_indices=allow_negative_indices
    )
    return row if keepdims else squeeze_p.bind(row, dimensions=(axis,))


@_known_starts
@library(static=("allow_negative_indices",), converted=("allow_negative_indices",))
def dynamic_update_slice(
    operand: Array | np.ndarray,
    update: ArrayLike,
    start_indices: Array | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Replace the part of an array that begins at indices known at run time.

    - `operand`: array of any shape and dtype
    - `update`: array of the dtype and rank of `operand`, no greater than it
    - `start_indices`: integer scalars, one for each axis, treated as in `dynamic_slice`

    The result has the shape and dtype of `operand`. TypeError if dtypes or ranks differ or the
    update is greater than the operand.
    Source: the StableHLO operation `stablehlo.dynamic_update_slice`.

    >>> lax.dynamic_update_slice(jnp.array([0, 0, 0, 0]), jnp.array([1, 2]), (1,))
    Array([0, 1, 2, 0], dtype=int32)
    """
    shape = np.shape(operand)
    starts = _start_indices("dynamic_update_slice", shape, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


@_known_starts
@library(static=("axis", "allow_negative_indices"), converted=("axis", "allow_negative_indices"))
def dynamic_update_slice_in_dim(
    operand: Array | np.ndarray,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace a part along one axis that begins at an index known at run time.

    - `operand`: array of any shape and dtype
    - `update`: array of the dtype and rank of `operand`, no greater than it
    - `start_index`: integer scalar, treated as in `dynamic_slice`

    The result has the shape and dtype of `operand`. TypeError as in `dynamic_update_slice`.
    Source: the StableHLO operation `stablehlo.dynamic_update_slice`.

    >>> lax.dynamic_update_slice_in_dim(jnp.array([0, 0, 0]), jnp.array([1, 2]), 1, axis=0)
    Array([0, 1, 2], dtype=int32)
    """
    shape = np.shape(operand)
    starts = _on_axis(start_index, canonical_axis(int(axis), len(shape)), len(shape))
    starts = _start_indices("dynamic_update_slice", shape, starts, bool(allow_negative_indices))
    return dynamic_update_slice_p.bind(operand, update, *starts)


@library(static=("axis", "allow_negative_indices"))
def dynamic_update_index_in_dim(
    operand: Array | np.ndarray,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace one index of an axis, known at run time.

    - `operand`: array of any shape and dtype
    - `update`: array of its dtype, with or without the axis
    - `index`: integer scalar, treated as in `dynamic_slice`

    The result has the shape and dtype of `operand`. TypeError as in `dynamic_update_slice`.
    Source: the StableHLO operation `stablehlo.dynamic_update_slice`.

    >>> lax.dynamic_update_index_in_dim(jnp.array([0, 0, 0]), 7, 1, axis=0)
    Array([0, 7, 0], dtype=int32)
    """
    axis = canonical_axis(int(axis), np.ndim(operand))
    if np.ndim(update) != np.ndim(operand):
        if np.ndim(update) + 1 != np.ndim(operand):
            raise TypeError(
                "dynamic_update_index_in_dim: the update must have as many axes as the operand, or "
                f"one less; got shapes {np.shape(update)} and {np.shape(operand)}."
            )
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, _operand(index), axis, allow_negative_indices=allow_negative_indices
    )


def index_take(src: Array, idxs: Array, axes: Sequence[int]) -> Array:
    """Take the elements of an array at index vectors for some of its axes.

    - `src`: array of any shape and dtype
    - `idxs`: integer vectors of one length n, one for each of `axes`
    - `axes`: axes, left out of the result

    The result has shape (n, *remaining axes). ValueError unless `idxs` are vectors.
    Source: NumPy's advanced indexing.

    >>> lax.index_take(jnp.array([[0, 1], [2, 3]]), jnp.array([[0, 1], [1, 0]]), (0, 1))
    Array([1, 2], dtype=int32)
    """
    shape = np.shape(src)
    axes = tuple([canonical_axis(axis, len(shape)) for axis in axes])
    if len(idxs) != len(axes):
        raise ValueError(f"index_take: one vector for each of {len(axes)} axes; got {len(idxs)}.")
    indices = [convert_element_type(x, dtypes.int32) for x in idxs]
    if any(x.ndim != 1 for x in indices):
        raise ValueError(
            f"index_take: idxs must be vectors, got shapes {[x.shape for x in indices]}."
        )
    if indices and not indices[0].shape[0]:
        rest = [size for d, size in enumerate(shape) if d not in axes]
        return full((0, *rest), 0, get_aval(src).dtype)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape) - len(axes) + 1)),
        collapsed_slice_dims=tuple(sorted(axes)),
        start_index_map=axes,
    )
    rows = [_wrapped(x, shape[axis], x.dtype, True) for x, axis in zip(indices, axes, strict=True)]
    return gather_p.bind(
        src,
        stack_p.bind(*rows, axis=1),
        dimension_numbers=numbers,
        slice_sizes=tuple(1 if d in axes else size for d, size in enumerate(shape)),
        unique_indices=False,
        indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )
