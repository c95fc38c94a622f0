"""Reductions over sliding windows: sum, max and min, and by a traced operation.

For the parameters of windows see `lax.window_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from operator import index
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray, get_aval
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.primitive import Primitive, no_rule
from minijax.core.staging import trace_to_jaxpr
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import as_operand
from minijax.lax.arithmetic import add, add_p, max_p, min_p
from minijax.lax.arithmetic import max as max_of
from minijax.lax.arithmetic import min as min_of
from minijax.lax.compare import ge_p, le_p
from minijax.lax.conv_numbers import padtype_to_pads
from minijax.lax.reductions import combine_by, greatest, least, zero
from minijax.lax.rules import NUMBER, check_dtype, linear_in
from minijax.lax.slicing import pad_p, slice_p
from minijax.lax.variadic import (
    as_strong_as,
    flat_operands,
    halves,
    known_computation,
    map_scalars,
    scalar_program,
    starts_from,
)
from minijax.lax.window_choice import select_and_gather_add_p
from minijax.lax.window_rules import (
    batch_windows,
    dilated,
    lower_window,
    reduce_window_shape_tuple,
    window_shape,
)
from minijax.transforms.jvp import jvp_flat, jvp_jaxpr
from minijax.transforms.primitives import instantiate, to_shape
from minijax.transforms.tangents import Zero, is_float0, spread_tangents, zero_like

__all__ = [
    "reduce_window", "reduce_window_max_p", "reduce_window_min_p", "reduce_window_p",
    "reduce_window_sum_p",
]  # fmt: skip

# -- sum, max and min over windows ----------------------------------------------------------------------


def _window_reduction(
    name: str, combine: Primitive, accepts: Sequence[type], identity: Callable[[Any], np.generic]
) -> Primitive:
    p = Primitive(name)
    set_layout(p, parts=as_operand)

    @p.shape_rule
    def _(x, **window):
        check_dtype(name, x, accepts)
        return ShapedArray(window_shape(name, x, window), x.dtype, x.weak_type)

    p.rule_transpose = no_rule("it is not linear in its operand")
    p.rule_batch = batch_windows(p.bind)

    @p.lower
    def _(b, x, **window):
        out = b.out
        if not window["window_dimensions"]:
            return x
        init = b.constant(identity(x.dtype), x.aval.update(shape=()))

        def body(r, p, q):
            return [combine_by(combine, r, p, q)]

        return lower_window(b, [x], [init], body, [out], window)[0]

    return p


_COMPARABLE = (np.number, np.bool_)
reduce_window_sum_p = _window_reduction("reduce_window_sum", add_p, NUMBER, zero)
reduce_window_max_p = _window_reduction("reduce_window_max", max_p, _COMPARABLE, least)
reduce_window_min_p = _window_reduction("reduce_window_min", min_p, _COMPARABLE, greatest)


linear_in(reduce_window_sum_p, 0)


@reduce_window_sum_p.transpose
def _(ct, x, *, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """Each element is summed into the windows that see it: sum over those, the steps exchanged.

    The cotangent is padded first: XLA would evaluate windows of a constant one as it compiles, in 4 s
    for half a million elements.
    """
    config = []
    for size, count, width, stride, (low, _), base, step in zip(
        x.aval.shape,
        ct.shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
        strict=True,
    ):
        reach = (width - 1) * step
        before = reach - low
        after = dilated(size, base) + reach - before - dilated(count, stride)
        config.append((before, after, stride - 1))
    if any(map(any, config)):
        ct = pad_p.bind(ct, zero(ct.dtype), padding_config=tuple(config))
    out = reduce_window_sum_p.bind(
        ct,
        window_dimensions=window_dimensions,
        window_strides=base_dilation,
        padding=((0, 0),) * len(config),
        base_dilation=(1,) * len(config),
        window_dilation=window_dilation,
    )
    return [out]


def _jvp_extremum(p: Primitive, select: Primitive) -> None:
    """The tangent at the first place in each window that has its extremum."""

    @p.jvp
    def _(primals, tangents, **window):
        (x,), (t,) = primals, tangents
        out = p.bind(x, **window)
        if type(t) is Zero:
            return out, zero_like(out)
        return out, select_and_gather_add_p.bind(t, x, select_prim=select, **window)


_jvp_extremum(reduce_window_max_p, ge_p)
_jvp_extremum(reduce_window_min_p, le_p)

# -- windows of several arrays, reduced by a traced operation -------------------------------------------

reduce_window_p = Primitive("reduce_window", multiple_results=True, holds_programs=True)
set_layout(reduce_window_p, parts=as_operand)


@reduce_window_p.shape_rule
def _(*avals, jaxpr, consts, **window):
    operands = halves(avals)[0]
    shape = window_shape("reduce_window", operands[0], window)
    return [ShapedArray(shape, x.dtype) for x in operands]


reduce_window_p.rule_transpose = no_rule("it is not linear in its operands")


@reduce_window_p.batch
def _(args, dims, **params):
    inits, init_dims = halves(args)[1], halves(dims)[1]
    if any(d is not None for d in init_dims):
        raise NotImplementedError("reduce_window batching is not implemented for initial values")

    def bind(*operands, **params):
        return reduce_window_p.bind(*operands, *inits, **params)

    outs, dim = batch_windows(bind)(halves(args)[0], halves(dims)[0], **params)
    return outs, [dim] * len(outs)


@reduce_window_p.lower
def _(b, *values, jaxpr, consts, **window):
    operands, inits = halves(values)
    outs = b.outs
    if not window["window_dimensions"]:
        return b.closed_jaxpr(jaxpr, *inits, *operands)
    return lower_window(b, operands, inits, lambda r, *xs: r.closed_jaxpr(jaxpr, *xs), outs, window)


@reduce_window_p.jvp
def _(primals, tangents, *, jaxpr, consts, **window):
    """Reduce the tangents along with the values.

    The values are reduced by themselves as well, for they may be the same for many tangents.
    """
    (xs, inits), (ts, init_ts) = halves(primals), halves(tangents)
    outs = reduce_window_p.bind(*primals, jaxpr=jaxpr, consts=consts, **window)
    moving = tuple([not is_float0(get_aval(x).to_tangent_aval()) for x in xs])
    ts, init_ts = (
        [instantiate(t) for t, moves in zip(part, moving, strict=True) if moves]
        for part in (ts, init_ts)
    )
    program = jaxpr.derive(("paired", moving), lambda: _with_tangents(jaxpr, moving))
    both = reduce_window_p.bind(*xs, *ts, *inits, *init_ts, jaxpr=program, consts=(), **window)
    return outs, spread_tangents(both[len(xs) :], moving, list(map(get_aval, outs)))


def _with_tangents(jaxpr: ClosedJaxpr, moving: tuple[bool, ...]) -> ClosedJaxpr:
    """The program on `(*values, *tangents)` accumulated and given, of a program on values."""
    program, _ = jvp_jaxpr(jaxpr, moving * 2, moving * 1)
    count, live = len(moving), sum(moving)

    def flat(*args):
        left, right = halves(args)
        primals = (*left[:count], *right[:count])
        return eval_jaxpr(program.jaxpr, program.consts, *primals, *left[count:], *right[count:])

    avals = jaxpr.in_avals[:count]
    tangent_avals = [a.to_tangent_aval() for a, moves in zip(avals, moving, strict=True) if moves]
    assert len(tangent_avals) == live
    return trace_to_jaxpr(flat, (*avals, *tangent_avals) * 2)


@reduce_window_p.linearize
def _(trace, primals, tangents, *, jaxpr, consts, **window):
    """Reverse mode cannot look into the reduction: write it with slices, which know their own."""
    outs = reduce_window_p.bind(*primals, jaxpr=jaxpr, consts=consts, **window)

    def by_slices(*args):
        return _by_slices(jaxpr, *halves(args), window)

    return outs, jvp_flat(by_slices, primals, tangents)[1]


def _by_slices(jaxpr: ClosedJaxpr, operands, inits, window: dict) -> list[Any]:
    """Reduce windows by combining one slice for each place in a window."""
    shape = reduce_window_shape_tuple(operands[0].shape, **window)
    config = tuple([
        (low, high, step - 1)
        for (low, high), step in zip(window["padding"], window["base_dilation"], strict=True)
    ])  # fmt: skip
    padded = [
        pad_p.bind(x, init, padding_config=config) for x, init in zip(operands, inits, strict=True)
    ]
    strides = window["window_strides"]
    totals = None
    for place in product(*map(range, window["window_dimensions"])):
        starts = [p * step for p, step in zip(place, window["window_dilation"], strict=True)]
        ends = [
            start + dilated(size, stride)
            for start, size, stride in zip(starts, shape, strides, strict=True)
        ]
        if 0 in shape:
            starts = ends = (0,) * len(shape)
        parts = [
            slice_p.bind(x, start_indices=tuple(starts), limit_indices=tuple(ends), strides=strides)
            for x in padded
        ]
        totals = parts if totals is None else map_scalars(jaxpr, totals, parts)
    starts = [to_shape(init, shape) for init in inits]
    return map_scalars(jaxpr, starts, totals)


# What is known of some computations: their windowed reduction, and its identity.
_KNOWN = {
    add: (reduce_window_sum_p, zero),
    max_of: (reduce_window_max_p, least),
    min_of: (reduce_window_min_p, greatest),
}


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce each window of an array by a function.

    - `operand`: array, or pytree of arrays of one shape; `init_value`: identity of `computation`
    - `computation`: as in `reduce`; `lax.add`, `max` and `min` are fastest
    - `window_dimensions`, `window_strides`: shape of the windows and steps between them
    - `padding`: "VALID", "SAME", "SAME_LOWER" or a pair (before, after) for each axis
    - `base_dilation`, `window_dilation`: distances between elements of the operand and of a window

    The result has the operand's dtype, and one element for each window. TypeError for what does not
    fit.
    Source: the StableHLO operation `stablehlo.reduce_window`.

    >>> lax.reduce_window(jnp.array([1, 2, 3, 4]), 0, lax.add, (2,))
    Array([3, 5, 7], dtype=int32)
    """
    flat, inits, tree = flat_operands(operand, init_value)
    if not flat:
        raise ValueError("reduce_window must have at least one operand: got an empty tree.")
    width = tuple(map(index, window_dimensions))
    window = {
        "window_dimensions": width,
        "window_strides": _entries(window_strides, width),
        "padding": (),
        "base_dilation": _entries(base_dilation, width),
        "window_dilation": _entries(window_dilation, width),
    }
    aval = get_aval(flat[0])
    window["padding"] = _pads(padding, aval, window)
    known = known_computation(_KNOWN, computation) if flat[0] is operand else None
    if known is not None and starts_from(inits[0], known[1]):
        return known[0].bind(as_strong_as(operand, inits[0]), **window)
    _check_inits([get_aval(x) for x in flat], [get_aval(x) for x in inits])
    jaxpr = scalar_program("reduce_window", computation, inits, tree)
    return tree.unflatten(reduce_window_p.bind(*flat, *inits, jaxpr=jaxpr, consts=(), **window))


def _entries(given: Any, width: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * len(width) if given is None else tuple(map(index, given))


def _pads(padding: Any, aval: ShapedArray, window: dict) -> tuple[tuple[int, int], ...]:
    if isinstance(padding, str):
        return _named_pads(padding, aval, *window.values())
    return tuple([(index(low), index(high)) for low, high in padding])


@lru_cache(4096)
def _named_pads(padding, aval, width, strides, _, base, step) -> tuple[tuple[int, int], ...]:
    unpadded = {
        "window_dimensions": width, "window_strides": strides, "padding": ((0, 0),) * aval.ndim,
        "base_dilation": base, "window_dilation": step,
    }  # fmt: skip
    window_shape("reduce_window", aval, unpadded)
    widths = [dilated(*pair) for pair in zip(width, step, strict=True)]
    return tuple(padtype_to_pads(aval.shape, widths, strides, padding))  # before `base_dilation`


def _check_inits(avals: Sequence[ShapedArray], inits: Sequence[ShapedArray]) -> None:
    shown = f"Got operands {', '.join(map(str, avals))}, init_values {', '.join(map(str, inits))}"
    if any(aval.shape for aval in inits):
        raise TypeError(
            "reduce_window expected init_values to be scalars but init_values have shapes "
            f"{[aval.shape for aval in inits]}. {shown}."
        )
    if any(aval.dtype != init.dtype for aval, init in zip(avals, inits, strict=True)):
        raise TypeError(
            f"reduce_window got inconsistent dtypes for operands and init_values: {shown}: convert "
            "the initial values."
        )
    if any(aval.shape != avals[0].shape for aval in avals):
        raise TypeError(f"Operands must have equal shapes; {shown}.")
