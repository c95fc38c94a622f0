"""Joining arrays and taking them apart: concatenate, split, stack, unstack."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.functions import check_at_most
from minijax.arguments.values import sized
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive
from minijax.core.trace import Tracer, eval_trace
from minijax.features.library import MOST_ARRAYS
from minijax.features.queries import is_dim
from minijax.features.sharding.layouts import layout, set_layout
from minijax.features.sharding.sharding_rules import (
    SplitAlike,
    all_alike,
    ambiguous,
    as_operand,
    parts_of,
)
from minijax.features.sharding.unreduced import alike, first
from minijax.lax.convert import convert_element_type
from minijax.lax.rules import linear_together, same_dtypes
from minijax.lax.shapes import canonical_axis, canonical_shape, resized, size_of, trailing
from minijax.lowering.module import i64_array
from minijax.transforms.batching import mapped_size, to_axis
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import is_undefined
from minijax.typing import ArrayLike

__all__ = [
    "concatenate", "concatenate_p", "join", "shape_as_value", "split", "split_p", "stack", "stack_p", "unstack", "unstack_p",
]  # fmt: skip


def _joined(avals: Sequence[ShapedArray], shape: tuple[int, ...]) -> ShapedArray:
    """The aval of an array made of several of one dtype."""
    weak = all(aval.weak_type for aval in avals)
    return ShapedArray(shape, avals[0].dtype, weak)


def _lined_up(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    """Operands of one shape with their batch axis at one place, and that place."""
    first = next(dim for dim in dims if dim is not None)
    size = mapped_size(args, dims)
    lined = [to_axis(x, d, size, first) for x, d in zip(args, dims, strict=True)]
    return lined, first


# -- concatenate and split --------------------------------------------------------------------

concatenate_p = Primitive("concatenate", memoize=SplitAlike)
set_layout(concatenate_p, sums=alike())


@layout(concatenate_p, "parts")
def _(avals, out, **params):
    return all_alike(avals)


@concatenate_p.shape_rule
def _(*avals, dimension):
    shapes = ", ".join([str(aval.shape) for aval in avals])
    same_dtypes("concatenate", avals)
    first = avals[0]
    if any(aval.ndim != first.ndim for aval in avals):
        raise TypeError(
            f"Cannot concatenate arrays with different numbers of dimensions: got {shapes}: "
            "reshape them first."
        )
    if not 0 <= dimension < first.ndim:
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes {shapes}."
        )
    head, tail = first.shape[:dimension], first.shape[dimension + 1 :]
    for aval in avals:
        if aval.shape[:dimension] != head or aval.shape[dimension + 1 :] != tail:
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the "
                f"one being concatenated: concatenating along dimension {dimension} for shapes "
                f"{shapes}."
            )
    return _joined(avals, (*head, sum([aval.shape[dimension] for aval in avals]), *tail))


linear_together(concatenate_p)


@concatenate_p.transpose
def _(ct, *operands, dimension):
    sizes = tuple([np.shape(x)[dimension] for x in operands])
    parts = split_p.bind(ct, sizes=sizes, axis=dimension)
    return [part if is_undefined(x) else None for x, part in zip(operands, parts, strict=True)]


@concatenate_p.batch
def _(args, dims, *, dimension):
    lined, dim = _lined_up(args, dims)
    return concatenate_p.bind(*lined, dimension=dimension + (dimension >= dim)), dim


@concatenate_p.lower
def _(b, *operands, dimension):
    return _end_to_end(b, operands, b.out, dimension)


_GROUP = 32  # operands


def _groups(parts: Sequence[Any]) -> list[Sequence[Any]]:
    return [parts[start : start + _GROUP] for start in range(0, len(parts), _GROUP)]


def _end_to_end(b: Any, parts: Sequence[Any], out: Any, axis: int) -> Any:
    """Concatenate values along an axis: many of them in groups, which XLA may not join again.

    XLA's time is quadratic in the operands of one operation: for 1,000 rows of ten numbers 1.3 s, in
    groups 0.3; for 3,000 rows 11 s, in groups 0.6.
    """
    while len(parts) > MOST_ARRAYS:
        parts = [_group(b, group, axis) for group in _groups(parts)]
    return b.op("stablehlo.concatenate", parts, out, f"dimension = {axis} : i64")


def _group(b: Any, parts: Sequence[Any], axis: int) -> Any:
    shape = list(parts[0].aval.shape)
    shape[axis] = sum([part.aval.shape[axis] for part in parts])
    aval = parts[0].aval.update(shape=tuple(shape))
    joined = b.op("stablehlo.concatenate", parts, aval, f"dimension = {axis} : i64")
    return b.op("stablehlo.optimization_barrier", (joined,), aval)


def join(primitive: Primitive, parts: Sequence[Any], axis: int) -> Array:
    """Concatenate or stack, by one primitive or the other.

    Many arrays of one type are joined eagerly in groups, which share a program: 1,000 vectors take
    0.06 s the first time, not 0.4, and as many more of them next to nothing.
    """
    if len(parts) > MOST_ARRAYS and local.context.trace is eval_trace and _are_alike(parts):
        groups = [join(primitive, group, axis) for group in _groups(parts)]
        return join(concatenate_p, groups, axis)
    return primitive.bind(*parts, **{"axis" if primitive is stack_p else "dimension": axis})


def _are_alike(parts: Sequence[Any]) -> bool:
    """Whether all are arrays of one type."""
    first = parts[0]
    return isinstance(first, Array) and all(
        type(x) is type(first) and x.aval == first.aval for x in parts
    )


def concatenate(operands: Array | Sequence[ArrayLike], dimension: int) -> Array:
    """Join arrays along an existing axis.

    - `operands`: arrays of one dtype, of equal shapes but for `dimension`
    - `dimension`: nonnegative axis

    The result has their dtype. ValueError without operands; TypeError where dtypes, ranks or other
    sizes differ, or the axis is out of range.
    Source: the StableHLO operation `stablehlo.concatenate`.

    >>> lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0)
    Array([1, 2, 3], dtype=int32)
    """
    operands = list(sized("concatenate", operands))
    if not operands:
        raise ValueError(
            "concatenate requires a non-empty sequences of arrays: at least one array."
        )
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    return join(concatenate_p, operands, index(dimension))


split_p = Primitive("split", multiple_results=True)
set_layout(split_p, parts=as_operand, sums=first)


@split_p.shape_rule
def _(x, *, sizes, axis):
    if any(size < 0 for size in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape "
            f"{list(x.shape)}"
        )
    return [resized(x, (*x.shape[:axis], size, *x.shape[axis + 1 :])) for size in sizes]


linear_together(split_p)


@split_p.transpose
def _(cts, x, *, sizes, axis):
    return [concatenate_p.bind(*[instantiate(ct) for ct in cts], dimension=axis)]


@split_p.batch
def _(args, dims, *, sizes, axis):
    (x,), (dim,) = args, dims
    outs = split_p.bind(x, sizes=sizes, axis=axis + (axis >= dim))
    return outs, [dim] * len(outs)


@split_p.lower
def _(b, x, *, sizes, axis):
    outs, parts, start = b.outs, [], 0
    for out, size in zip(outs, sizes, strict=True):
        parts.append(_static_slice(b, x, axis, start, start + size, out))
        start += size
    return parts


def _static_slice(b, x, axis: int, start: int, limit: int, out: ShapedArray):
    limits = [*x.shape, *trailing(x.aval)]
    starts = [0] * len(limits)
    starts[axis], limits[axis] = start, limit
    attributes = (
        f"start_indices = {i64_array(starts)}, limit_indices = {i64_array(limits)}, "
        f"strides = {i64_array([1] * len(limits))}"
    )
    return b.op("stablehlo.slice", (x,), out, attributes)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cut an array along an axis into consecutive parts.

    - `operand`: array of any shape and dtype
    - `sizes`: sizes of the parts along `axis`

    The result is a list of arrays. ValueError for sizes that are negative or do not add up to the
    axis's.
    Source: NumPy's `split`.

    >>> lax.split(jnp.array([1, 2, 3]), (1, 2))
    [Array([1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    sizes = tuple(map(size_of, sizes))
    return list(split_p.bind(operand, sizes=sizes, axis=canonical_axis(axis, np.ndim(operand))))


# -- stack and unstack ------------------------------------------------------------------------

stack_p = Primitive("stack", memoize=SplitAlike)
set_layout(stack_p, sums=alike())


@layout(stack_p, "parts")
def _(avals, out, *, axis):
    parts = all_alike(avals)
    return [*parts[:axis], None, *parts[axis:]]


@stack_p.shape_rule
def _(*avals, axis):
    first = avals[0]
    if any(aval.shape != first.shape for aval in avals):
        shapes = ", ".join([str(aval.shape) for aval in avals])
        raise ValueError(f"stack: arrays must have the same shape, got {shapes}.")
    same_dtypes("stack", avals)
    return _joined(avals, (*first.shape[:axis], len(avals), *first.shape[axis:]))


linear_together(stack_p)


@stack_p.transpose
def _(ct, *operands, axis):
    parts = unstack_p.bind(ct, axis=axis)
    return [part if is_undefined(x) else None for x, part in zip(operands, parts, strict=True)]


@stack_p.batch
def _(args, dims, *, axis):
    lined, dim = _lined_up(args, dims)
    if axis > dim:
        return stack_p.bind(*lined, axis=axis + 1), dim
    return stack_p.bind(*lined, axis=axis), dim + 1


@stack_p.lower
def _(b, *operands, axis):
    out = b.out
    shape = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
    return _end_to_end(b, [b.reshape(x, shape) for x in operands], out, axis)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Join arrays along a new axis.

    - `operands`: arrays of one shape and dtype
    - `axis`: position of the new axis

    ValueError without operands, if shapes differ or the axis is out of range; TypeError if dtypes
    differ.
    Source: NumPy's `stack`.

    >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    if isinstance(operands, Sized):
        check_at_most("the number of arrays", len(operands), 1 << 24)
    operands = list(operands)
    if not operands:
        raise ValueError("stack takes at least one array; none was given.")
    return join(stack_p, operands, canonical_axis(axis, np.ndim(operands[0]) + 1))


unstack_p = Primitive("unstack", multiple_results=True)
set_layout(unstack_p, sums=first)


@layout(unstack_p, "parts")
def _(avals, out, *, axis):
    parts = parts_of(avals[0])
    if parts[axis] is not None:
        operand = avals[0].str_short(short_dtypes=True)
        raise ambiguous(
            "unstack",
            f"unstack operand cannot be sharded on the unstacking axis {axis}. Got operand "
            f"type={operand}",
            avals,
        )
    return [parts[:axis] + parts[axis + 1 :]] * len(out)


@unstack_p.shape_rule
def _(x, *, axis):
    row = resized(x, (*x.shape[:axis], *x.shape[axis + 1 :]))
    return [row] * int(x.shape[axis])


linear_together(unstack_p)


@unstack_p.transpose
def _(cts, x, *, axis):
    return [stack_p.bind(*[instantiate(ct) for ct in cts], axis=axis)]


@unstack_p.batch
def _(args, dims, *, axis):
    (x,), (dim,) = args, dims
    axis += axis >= dim
    outs = unstack_p.bind(x, axis=axis)
    return outs, [dim - (axis < dim)] * len(outs)


@unstack_p.lower
def _(b, x, *, axis):
    outs, parts = b.outs, []
    row = x.aval.update(shape=(*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    for place, out in enumerate(outs):
        part = _static_slice(b, x, axis, place, place + 1, row)
        parts.append(b.reshape(part, out.shape))
    return parts


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Split an array along an axis, which disappears.

    - `x`: array of any shape and dtype
    - `axis`: axis

    The result is a tuple of arrays. ValueError if the axis is out of range.
    Source: NumPy's `unstack`.

    >>> lax.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    axis = canonical_axis(axis, np.ndim(x))
    check_at_most("unstack: the number of results", np.shape(x)[axis], 1 << 20)
    return tuple(unstack_p.bind(x, axis=axis))


def shape_as_value(shape: Sequence[int]) -> Array | np.ndarray:
    """Convert a shape to a vector of integers.

    - `shape`: sequence of integers

    The result is an int32 array of shape (len(shape),). Source: NumPy's `shape`.

    >>> lax.shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    if isinstance(shape, Tracer):
        return shape
    if any(map(is_dim, shape)):
        dtype = dtypes.canonicalize_dtype(np.int64)
        sizes = [n.__jax_array__() if is_dim(n) else n for n in shape]
        return stack([convert_element_type(n, dtype) for n in sizes])
    return np.asarray(canonical_shape(shape), dtypes.canonicalize_dtype(np.int64))
