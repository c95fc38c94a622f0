"""`reduce`: arrays reduced together by an operation that is traced.

The operation is kept as a program on scalars; operations that are known are reductions with
primitives of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import ArrayImpl
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.caches import kept_with
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.primitive import Primitive, no_rule
from minijax.core.trace import Tracer
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import kept_axes
from minijax.lax.arithmetic import add, mul
from minijax.lax.arithmetic import max as max_of
from minijax.lax.arithmetic import min as min_of
from minijax.lax.compare import bitwise_and, bitwise_or, bitwise_xor
from minijax.lax.convert import to_dtype
from minijax.lax.joining import concatenate_p, split_p
from minijax.lax.reductions import (
    all_ones,
    greatest,
    least,
    no_ones,
    one,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_sum,
    reduce_sum_p,
    reduce_xor_p,
    zero,
)
from minijax.lax.shapes import permute, reshaped
from minijax.lowering.module import i64_array
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.tracebacks import as_defined
from minijax.transforms.batching import AxisData, batch_flat, mapped_size, to_front
from minijax.transforms.jvp import jvp_flat
from minijax.transforms.primitives import moveaxis, reduced_aval, to_shape
from minijax.transforms.tracing import positional, trace_function

__all__ = ["reduce", "reduce_p"]

reduce_p = Primitive("reduce", multiple_results=True, holds_programs=True)
set_layout(reduce_p, parts=kept_axes("dimensions"))


@reduce_p.shape_rule
def _(*avals, computation, jaxpr, dimensions):
    operands, inits = halves(avals)
    out = []
    for x, init in zip(operands, inits, strict=True):
        aval = reduced_aval("reduce", x, dimensions, x.weak_type and init.weak_type)
        out.append(aval)
    return out


def halves(items: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Operands and initial values, which a variadic reduction takes one after the other."""
    half = len(items) // 2
    return items[:half], items[half:]


@reduce_p.lower
def _(b, *values, computation, jaxpr, dimensions):
    outs = b.outs
    scalars = [x.aval.update(shape=()) for x in halves(values)[0]]
    region = b.region(scalars * 2, lambda r, *args: r.closed_jaxpr(jaxpr, *args))
    attributes = f"dimensions = {i64_array(dimensions)}"
    return b.op_n("stablehlo.reduce", values, outs, attributes, [region])


reduce_p.rule_transpose = no_rule("it is not linear in its operands")


@reduce_p.batch
def _(args, dims, *, jaxpr, dimensions, **params):
    size = mapped_size(args, dims)
    operands, inits = halves(args)
    operand_dims, init_dims = halves(dims)
    operands = [to_front(x, d, size) for x, d in zip(operands, operand_dims, strict=True)]
    dimensions = tuple([axis + 1 for axis in dimensions])
    if all(d is None for d in init_dims):
        outs = reduce_p.bind(*operands, *inits, jaxpr=jaxpr, dimensions=dimensions, **params)
    else:
        # Initial values that differ cannot be XLA's, which takes scalars: combine with them last.
        count = prod([operands[0].shape[axis] for axis in dimensions])
        inits = [
            moveaxis(x, d, 0) if d is not None else x for x, d in zip(inits, init_dims, strict=True)
        ]
        outs = _by_halving(jaxpr, operands, inits, dimensions, count)
    return outs, [0] * len(outs)


@reduce_p.jvp
def _(primals, tangents, *, jaxpr, dimensions, **params):
    outs = reduce_p.bind(*primals, jaxpr=jaxpr, dimensions=dimensions, **params)
    shape = get_aval(primals[0]).shape
    count = prod([shape[axis] for axis in dimensions])

    def halving(*args):
        return _by_halving(jaxpr, *halves(args), dimensions, count)

    return outs, jvp_flat(halving, primals, tangents)[1]


def _by_halving(
    jaxpr: ClosedJaxpr,
    operands: Sequence[Any],
    inits: Sequence[Any],
    axes: Sequence[int],
    count: int,
) -> list[Any]:
    """Reduce by operations on whole arrays, whose derivatives are known.

    Initial values are scalars, or as long as axis 0 of the operands.
    """
    xs = []
    for x in operands:
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        shape = (count, *(x.shape[axis] for axis in kept))
        xs.append(reshaped(permute(x, [*axes, *kept]), shape))
    while count > 1:
        # The first half with the second; the one in the middle is left over, if there is one.
        half, odd = divmod(count, 2)
        sizes = (half, 1, half) if odd else (half, half)
        parts = [split_p.bind(x, sizes=sizes, axis=0) for x in xs]
        xs = map_scalars(jaxpr, [p[0] for p in parts], [p[-1] for p in parts])
        if odd:
            xs = [concatenate_p.bind(x, p[1], dimension=0) for x, p in zip(xs, parts, strict=True)]
        count = half + odd
    starts = [
        to_shape(init, x.shape[1:], range(np.ndim(init))) for init, x in zip(inits, xs, strict=True)
    ]
    if count == 0:
        return starts
    return map_scalars(jaxpr, starts, [reshaped(x, x.shape[1:]) for x in xs])


def map_scalars(jaxpr: ClosedJaxpr, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    """A program on scalars, applied to each element of arrays of one shape."""
    run = functools.partial(eval_jaxpr, jaxpr.jaxpr, jaxpr.consts)
    for size in reversed(left[0].shape):
        run = functools.partial(_map_first, run, size)
    return run(*left, *right)


def _map_first(run: Callable, size: int, *args: Any) -> list[Any]:
    """A function of arrays, batched over the first axis of arguments and results."""
    outs, dims = batch_flat(run, AxisData(None, size), args, [0] * len(args))
    return [to_front(x, d, size) for x, d in zip(outs, dims, strict=True)]


def scalar_program(
    name: str, computation: Callable, inits: Sequence[Any], tree: Any
) -> ClosedJaxpr:
    """The program of `computation(accumulated, value)` on scalars like the initial values.

    One is kept for each function and type. NotImplementedError if it refers to tracers.
    """
    avals = tuple([get_aval(x) for x in inits])
    return kept_with(computation, name).find(
        (tree, avals), lambda: _trace_computation(name, computation, avals, tree)
    )


def _trace_computation(name: str, computation: Callable, avals: tuple, tree: Any) -> ClosedJaxpr:
    traced = trace_function(name, computation, positional((tree, tree)), avals * 2, hoisted=None)
    closed = traced.closed
    if traced.out_tree != tree:
        raise ValueError(
            f"{name}: the computation must give a result structured like the initial values, "
            f"{tree}; it gave {traced.out_tree}."
        )
    if any(isinstance(x, Tracer) for x in closed.consts):
        raise NotImplementedError(
            f"{name}: reduction computations can't close over Tracers: the computation may refer to "
            "its two arguments and to known values only. Apply what is traced to the result."
        )
    for aval, out in zip(avals, closed.out_avals, strict=True):
        if out.shape or out.dtype != aval.dtype:
            raise TypeError(
                f"{name}: the computation must give {aval.str_short()} for two of them; it gave "
                f"{out.str_short()}: convert its result."
            )
    return closed


def known_scalar(x: Any) -> np.ndarray | None:
    """The value of a number or a concrete scalar array, in its own dtype; None if it is traced."""
    if isinstance(x, Array) and not isinstance(x, ArrayImpl):
        return None
    aval = get_aval(x)
    if aval.shape or isinstance(aval.dtype, dtypes.ExtendedDType):
        return None
    with np.errstate(over="ignore"):
        return np.asarray(x).astype(aval.dtype)


# What is known of some computations: their reduction, and the identity it starts from.
_KNOWN = {
    add: (reduce_sum_p, zero),
    mul: (reduce_prod_p, one),
    max_of: (reduce_max_p, least),
    min_of: (reduce_min_p, greatest),
    bitwise_and: (reduce_and_p, all_ones),
    bitwise_or: (reduce_or_p, no_ones),
    bitwise_xor: (reduce_xor_p, no_ones),
}


def flat_operands(operands: Any, init_values: Any) -> tuple[list[Any], list[Any], Any]:
    """The leaves of operands and of their initial values; ValueError if their trees differ."""
    flat, tree = tree_util.flatten(operands)
    inits, init_tree = tree_util.flatten(init_values)
    if tree != init_tree:
        raise ValueError(
            f"Operands must have the same tree structure as init_values: {tree} vs. {init_tree}."
        )
    return flat, inits, tree


def known_computation(table: dict, computation: Any) -> Any:
    try:
        return table.get(as_defined(computation))
    except TypeError:  # a computation that cannot be hashed
        return None


def as_strong_as(x: Any, init: Any) -> Any:
    """A weakly typed operand is converted where the initial value is strongly typed."""
    aval = get_aval(x)
    return to_dtype(x, aval.dtype, aval.weak_type and get_aval(init).weak_type)


_starts: dict[tuple, bool] = {}


def starts_from(init: Any, identity: Callable[[Any], np.generic]) -> bool:
    """Whether an initial value is known, and the identity of its operation in its own dtype."""
    kind = type(init)
    if kind is float or kind is int:
        key = (identity, kind, init, get_aval(init).dtype)
        found = _starts.get(key)
        if found is None and len(_starts) < 1000:
            found = _starts[key] = _starts_from(init, identity)
        return found if found is not None else _starts_from(init, identity)
    return _starts_from(init, identity)


def _starts_from(init: Any, identity: Callable[[Any], np.generic]) -> bool:
    value = known_scalar(init)
    return value is not None and bool(value == identity(value.dtype))


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Any:
    """Reduce arrays over some of their axes by a function.

    - `operands`: pytree of arrays of one shape; `dimensions`: axes, left out of the result
    - `init_values`: scalars, structured like `operands`: the identity of `computation`
    - `computation`: associative function of two pytrees of scalars, in an unspecified order; it
      must not refer to traced values. `lax.add`, `mul`, `max`, `min` and the bitwise ones are
      fastest

    The result has the structure and dtypes of `operands`. ValueError or TypeError where structures,
    shapes or dtypes do not fit.
    Source: the StableHLO operation `stablehlo.reduce`.

    >>> lax.reduce(jnp.array([1, 2, 3]), 0, lax.add, (0,))
    Array(6, dtype=int32)
    """
    flat, inits, tree = flat_operands(operands, init_values)
    dimensions = tuple(dimensions)
    known = known_computation(_KNOWN, computation) if flat and flat[0] is operands else None
    if known is not None and starts_from(inits[0], known[1]):
        x = as_strong_as(operands, inits[0])
        if known[0] is reduce_sum_p:
            return reduce_sum(x, dimensions, out_sharding=out_sharding)
        return known[0].bind(x, axes=dimensions)
    _check_operands(flat, inits)
    ndim = np.ndim(flat[0])
    if any(not -ndim <= axis < ndim for axis in dimensions):
        raise IndexError(
            f"reduce: dimensions {dimensions} are out of bounds for operands of shape "
            f"{np.shape(flat[0])}."
        )
    jaxpr = scalar_program("reduce", computation, inits, tree)
    outs = reduce_p.bind(
        *flat,
        *inits,
        computation=computation,
        jaxpr=jaxpr,
        dimensions=tuple([axis % ndim for axis in dimensions]),
    )
    return tree.unflatten(outs)


def _check_operands(operands: Sequence[Any], inits: Sequence[Any]) -> None:
    avals, starts = [get_aval(x) for x in operands], [get_aval(x) for x in inits]
    shown = f"operands {', '.join(map(str, avals))} and init_values {', '.join(map(str, starts))}"
    if not avals:
        raise ValueError("reduce needs at least one operand, got an empty tree.")
    if any(aval.shape for aval in starts):
        raise ValueError(
            f"reduce found non-scalar initial value: "
            f"{[aval.shape for aval in starts]}. It got {shown}."
        )
    if any(x.dtype != start.dtype for x, start in zip(avals, starts, strict=True)):
        raise TypeError(
            f"reduce operand dtypes should match corresponding initial value dtypes, got {shown}: "
            "convert the initial values."
        )
    if any(aval.shape != avals[0].shape for aval in avals):
        raise TypeError(f"Operands must have equal shapes, got {shown}.")
