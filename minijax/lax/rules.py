"""Shapes of rules that many primitives share. A file of primitives names its operations as data;
the functions here turn a line of that data into a primitive with all of its rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arrays.dispatch import run_primitive
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import NoRule, Primitive, no_rule
from minijax.core.trace import eval_trace
from minijax.features.sharding.constraints import reduced_as
from minijax.features.sharding.types import explicit_of
from minijax.runtime.escape import quoted, symbol
from minijax.transforms.primitives import (
    add_any_p,
    add_tangents,
    instantiate,
    moveaxis,
    reduce_sum_p,
    scalar_of_type,
    to_shape,
)
from minijax.transforms.tangents import Zero, is_undefined, zero_like, zero_tangent

__all__ = [
    "BITS", "FLOAT", "INEXACT", "INTEGER", "NUMBER", "ORDERED", "REAL", "add_any_broadcast",
    "broadcasting_batch", "broadcasting_lower", "check_dtype", "collapse_like", "defjvp",
    "elementwise", "expand_like", "expand_to", "linear", "linear_in", "linear_together", "merged",
    "nary_shape", "ndim_of", "own_function", "same_dtypes", "scalar_like", "shape_of", "widened", "zero_derivative",
]  # fmt: skip

# Groups of dtypes that operations accept, by the scalar categories of `dtypes.issubdtype`.
_NAMES = {np.bool_: "bool", np.number: "integer, floating, complexfloating"}

NUMBER = (np.number,)
FLOAT = (np.floating,)
INEXACT = (np.floating, np.complexfloating)
INTEGER = (np.integer,)
BITS = (np.integer, np.bool_)
REAL = (np.integer, np.floating)
ORDERED = (np.integer, np.floating, np.bool_)


# -- shapes and dtypes ------------------------------------------------------------------------


def check_dtype(
    name: str, aval: ShapedArray, accepted: Sequence[type], position: int | None = None
) -> None:
    """TypeError unless the dtype is of one of the accepted categories."""
    if not any(dtypes.issubdtype(aval.dtype, kind) for kind in accepted):
        kinds = ", ".join(_NAMES.get(kind, kind.__name__) for kind in accepted)
        where = "" if position is None else f" at position {position}"
        raise TypeError(
            f"{name} does not accept dtype {aval.dtype.name}{where}. Accepted dtypes{where} are "
            f"subtypes of {kinds}. Convert the operand, {aval.str_short()}, with .astype(...)."
        )


def nary_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The common shape of operands: each has it, or is a scalar, or has ones in places of it."""
    shape = avals[0].shape
    for aval in avals[1:]:
        if aval.shape != shape:
            return _broadcast_shape(name, avals)
    return shape


def _broadcast_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    shapes = [aval.shape for aval in avals if aval.shape]
    if len({len(shape) for shape in shapes}) > 1:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got "
            f"{ {len(shape) for shape in shapes} }: their shapes are "
            f"{', '.join(str(aval.shape) for aval in avals)}. Use the function of minijax.numpy, "
            "or reshape."
        )
    out = []
    for sizes in zip(*shapes, strict=True):
        chosen = {size for size in sizes if size != 1}
        if len(chosen) > 1:
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: "
                f"{', '.join(str(aval.shape) for aval in avals)}. Each dimension must be the same, "
                "or 1."
            )
        out.append(chosen.pop() if chosen else 1)
    return tuple(out)


_PROMOTING = {
    "atan2": "arctan2", "bitwise_and": "bitwise_and", "div": "divide", "eq": "equal",
    "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less", "max": "maximum",
    "min": "minimum", "mul": "multiply", "ne": "not_equal", "pow": "power", "rem": "fmod",
    "select": "where", "select_n": "where", "sub": "subtract",
}  # fmt: skip


def same_dtypes(name: str, avals: Sequence[ShapedArray]) -> None:
    """TypeError unless all operands have one dtype."""
    first = avals[0].dtype
    if any(aval.dtype != first for aval in avals):
        other = _PROMOTING.get(name, name)
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got "
            f"{', '.join(aval.dtype.name for aval in avals)}. (Tip: jnp.{other} is a similar "
            "function that does automatic type promotion on inputs). Or convert them."
        )


def merged(avals: Sequence[ShapedArray], shape: tuple[int, ...], dtype: Any) -> ShapedArray:
    """The aval of a result: weak if all operands are."""
    return ShapedArray(shape, dtype, all(aval.weak_type for aval in avals))


def scalar_like(value: complex, x: Any) -> Any:
    """A number as a scalar of the dtype of an array or number; weak where that is."""
    aval = get_aval(x)
    return scalar_of_type(value, aval.dtype, aval.weak_type)


# -- primitives that work on elements -------------------------------------------------------------


def elementwise(
    name: str,
    op: str | Callable,
    accepts: Sequence[Sequence[type]],
    *,
    result: Callable[[np.dtype], np.dtype] | None = None,
    jvp: Sequence[Callable | None] | NoRule | None = None,
    attributes: str = "",
) -> Primitive:
    """A primitive that works on elements, with all of its rules.

    - `op`: the StableHLO or CHLO operation, or a lowering rule, which finds operands of full shape
    - `accepts`: for each operand, the categories of dtype it takes
    - `result`: from the first operand's dtype to the result's; the same by default
    - `jvp`: for each operand, `(t, out, *operands) -> tangent`, or None where it is zero; or a
      `NoRule`. Without it, the tangent of the result is zero.
    """
    p = Primitive(name)

    @p.shape_rule
    def _(*avals, **params):
        for position, (aval, accepted) in enumerate(zip(avals, accepts, strict=True)):
            check_dtype(name, aval, accepted, position if len(avals) > 1 else None)
        if len(avals) > 1:
            same_dtypes(name, avals)
        dtype = avals[0].dtype
        return merged(avals, nary_shape(name, avals), dtype if result is None else result(dtype))

    if isinstance(jvp, NoRule):
        p.rule_jvp = jvp
    else:
        defjvp(p, *(jvp or [None] * len(accepts)))
    p.rule_transpose = no_rule("it is not linear in its operands")
    p.rule_batch = broadcasting_batch(p)
    if callable(op):
        p.lower(broadcasting_lower(op))
    else:

        @p.lower
        @broadcasting_lower
        def _(b, *operands, **params):
            return b.op(op, operands, b.out, attributes)

    return p


def broadcasting_lower(rule: Callable) -> Callable:
    """Give the rule operands of the full shape: scalars and ones are broadcast first."""

    def lower(b, *operands, **params):
        shape = b.out.shape
        for x in operands:
            if x.aval.shape != shape:
                operands = [_to_shape(b, x, shape) for x in operands]
                break
        return rule(b, *operands, **params)

    return lower


def _to_shape(b, x, shape):
    if x.shape == shape:
        return x
    dims = () if not x.shape else range(len(shape))
    return b.broadcast(x, shape, dims)


def widened(op: str, bits: int = 16) -> Callable:
    """Lower to `op`, computed in float32 for operands narrower than `bits`."""

    def rule(b, *operands, **params):
        out = b.out
        if dtypes.bit_width(out.dtype) >= bits:
            return b.op(op, operands, out)
        wide = [b.convert(x, dtypes.float32) for x in operands]
        return b.convert(b.op(op, wide, out.update(dtype=dtypes.float32)), out.dtype)

    return rule


def own_function(b: Any, op: str, operands: Sequence[Any]) -> str:
    """Write a private function of one operation, on operands of one type, and return its name."""
    kind = operands[0].type
    args = [f"%{place}" for place in range(len(operands))]
    parameters, out = ", ".join([f"{x}: {kind}" for x in args]), f"%{len(args)}"

    def write(name: str) -> str:
        return (
            f"func.func private {symbol(name)}({parameters}) -> {kind} {{\n"
            f"{out} = {quoted(op)}({', '.join(args)}) : "
            f"({', '.join([kind] * len(args))}) -> {kind}{b.location}\n"
            f'"func.return"({out}) : ({kind}) -> ()\n}}'
        )

    return b.module.function((op, len(args), kind, b.location), op.rpartition(".")[2], write)


# -- derivatives --------------------------------------------------------------------------------


def defjvp(p: Primitive, *rules: Callable | None) -> None:
    """Set the jvp rule of a primitive from one partial derivative for each operand.

    A rule `(t, out, *operands, **params)` gives what the tangent `t` of its operand adds to the
    tangent of the result. None, for a rule or given by it, stands for a derivative that is zero.
    """
    if len(rules) == 1 and rules[0] is not None:
        rule = rules[0]

        @p.jvp
        def _(primals, tangents, **params):
            out = p.bind(*primals, **params)
            t = tangents[0]
            if type(t) is Zero:
                return out, zero_like(out)
            t_out = rule(t, out, *primals, **params)
            return out, zero_like(out) if t_out is None else t_out

        return

    @p.jvp
    def _(primals, tangents, **params):
        out = p.bind(*primals, **params)
        aval, total = get_aval(out), None
        for rule, t in zip(rules, tangents, strict=True):
            if rule is not None and type(t) is not Zero:
                part = rule(t, out, *primals, **params)
                if part is not None:
                    if aval.placement is not None:
                        part = expand_like(part, out)
                    total = part if total is None else add_any_broadcast(total, part)
        if total is None:
            return out, zero_tangent(aval)
        return out, expand_to(total, aval.shape)


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an array or number."""
    try:
        return x.shape
    except AttributeError:
        return np.shape(x)


@add_any_p.impl
def _(x, y):
    # Eagerly, as `add`: the sum is weak if both are. In a program it has the type of the first one.
    if get_aval(x).weak_type and not get_aval(y).weak_type:
        x, y = y, x
    return run_primitive(eval_trace, add_any_p, (x, y), {}, use_impl=False)


def add_any_broadcast(x: Any, y: Any) -> Any:
    """The sum of two tangents, either of which may be of a smaller, broadcastable shape."""
    if shape_of(x) == shape_of(y):
        return add_tangents(x, y)
    shapes = shape_of(x), shape_of(y)
    try:
        shape = np.broadcast_shapes(*shapes)
    except TypeError:  # NumPy knows no symbolic sizes
        pairs = itertools.zip_longest(*map(reversed, shapes), fillvalue=1)
        shape = tuple([b if a == 1 else a for a, b in pairs][::-1])
    return add_tangents(expand_to(x, shape), expand_to(y, shape))


def expand_to(x: Any, shape: tuple[int, ...]) -> Any:
    """A scalar, or an array with ones in places, broadcast to a shape of its rank."""
    found = shape_of(x)
    if found == shape:
        return x
    dims = () if not found else tuple(range(len(shape)))
    return to_shape(x, shape, dims)


def expand_like(x: Any, out: Any) -> Any:
    """A tangent of an operand, broadcast to the shape of a result and split as that is.

    Broadcast as `expand_to` does, it would be whole along the repeated dimensions, and so would be
    its cotangent: gathered, only to be summed along them.
    """
    aval = get_aval(out)
    if shape_of(x) == aval.shape:
        return x
    where = explicit_of(aval)
    where = where and where.with_spec(where.spec.partitions)
    dims = range(aval.ndim) if shape_of(x) else ()
    return to_shape(reduced_as(x, out), aval.shape, dims, where)


def collapse_like(ct: Any, aval: ShapedArray) -> Any:
    """A cotangent summed to the shape of an operand that was broadcast by its operation."""
    if type(ct) is Zero or np.shape(ct) == aval.shape:
        return ct
    if not aval.shape:
        return reduce_sum_p.bind(ct, axes=tuple(range(ct.ndim)), out_sharding=None)
    axes = tuple(axis for axis, size in enumerate(aval.shape) if size == 1 != ct.shape[axis])
    kept = tuple(axis for axis in range(ct.ndim) if axis not in axes)
    summed = reduce_sum_p.bind(ct, axes=axes, out_sharding=None)
    return to_shape(summed, aval.shape, kept)


def linear_in(p: Primitive, *places: int) -> None:
    """The derivative of a primitive that is linear in each of the operands at these places, and not
    differentiable by the others: it is applied to each tangent, and the results are added.
    """

    @p.jvp
    def _(primals, tangents, **params):
        out = p.bind(*primals, **params)
        total = None
        for place in places:
            if type(tangents[place]) is not Zero:
                given = list(primals)
                given[place] = tangents[place]
                total = add_tangents(total, p.bind(*given, **params))
        return out, zero_like(out) if total is None else total


def linear_together(p: Primitive, start: int = 0, stop: int | None = None) -> None:
    """The derivative of a primitive that is linear in `operands[start:stop]` taken together, and not
    differentiable by the others: it is applied to the tangents in place of these operands.
    """

    @p.jvp
    def _(primals, tangents, **params):
        outs = p.bind(*primals, **params)
        given = list(primals)
        given[start:stop] = tangents[start:stop]
        if all(type(t) is Zero for t in given[start:stop]):
            return outs, _zero_tangents(p, outs)
        return outs, p.bind(*[instantiate(t) for t in given], **params)


def zero_derivative(p: Primitive) -> None:
    """The derivative of a primitive whose results have no tangents, or tangents of zero."""

    @p.jvp
    def _(primals, tangents, **params):
        outs = p.bind(*primals, **params)
        return outs, _zero_tangents(p, outs)


def _zero_tangents(p: Primitive, outs: Any) -> Any:
    return list(map(zero_like, outs)) if p.multiple_results else zero_like(outs)


def linear(p: Primitive, transpose: Callable) -> None:
    """Rules of a primitive that is linear in its only operand: it is its own derivative."""
    linear_in(p, 0)

    @p.transpose
    def _(ct, x, **params):
        assert is_undefined(x)
        return [transpose(ct, x.aval, **params)]


# -- batching -----------------------------------------------------------------------------------


def broadcasting_batch(p: Primitive) -> Callable:
    """The batching rule of an operation on elements: line the batch axes up."""

    def batch(args, dims, **params):
        if len(args) == 1:
            return p.bind(*args, **params), dims[0]
        ndim = max(ndim_of(x) - (d is not None) for x, d in zip(args, dims, strict=True))
        full = [
            d for x, d in zip(args, dims, strict=True) if d is not None and ndim_of(x) == ndim + 1
        ]
        place = full[0] if full else 0
        lined = [_line_up(x, d, ndim, place) for x, d in zip(args, dims, strict=True)]
        return p.bind(*lined, **params), place

    return batch


def ndim_of(x: Any) -> int:
    """The number of dimensions of an array or number."""
    try:
        return x.ndim
    except AttributeError:
        return get_aval(x).ndim


def _line_up(x: Any, dim: int | None, ndim: int, place: int) -> Any:
    """The batch axis at `place`, and axes of size one so that the others align."""
    if dim is None:
        if ndim_of(x) == 0:
            return x
        shape = list(x.shape)
        shape.insert(place, 1)
        dims = tuple([axis for axis in range(ndim + 1) if axis != place])
        return to_shape(x, shape, dims)
    if x.ndim == ndim + 1:
        return moveaxis(x, dim, place)
    # A scalar of each element of the batch.
    shape = [1] * (ndim + 1)
    shape[place] = x.shape[0]
    return to_shape(x, shape, (place,))
