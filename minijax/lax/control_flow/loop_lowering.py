"""How loops are written in StableHLO: `scan_p` and `while_p` as `stablehlo.while`.

The regions of a loop read what lies outside of it directly, so that constants and the arrays that
are read in slices are not part of its state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray
from minijax.features.queries import certain, is_dim
from minijax.features.sharding.lowering import SummingBuilder
from minijax.features.sharding.unreduced import sums_of
from minijax.lax.control_flow.dependence import ordered_effects, split_list
from minijax.lowering.module import Builder, Value, i64_array
from minijax.lowering.types import physical
from minijax.transforms.primitives import reduce_by

__all__ = ["lower_scan", "lower_while", "while_op"]

_BOOL = ShapedArray((), np.dtype(np.bool_))


def while_op(
    b: Builder,
    state: Sequence[Value],
    proceed: Callable[..., Value],
    step: Callable[..., Sequence[Value]],
    effects: Sequence[Any] = (),
) -> list[Value]:
    """`stablehlo.while` on a state; the tokens of ordered effects go along at its end."""
    count = len(state)
    operands = [*state, *(b.tokens[e] for e in effects)]

    def condition(r, *values):
        r.tokens.update(zip(effects, values[count:], strict=True))
        return [proceed(r, *values[:count])]

    def body(r, *values):
        r.tokens.update(zip(effects, values[count:], strict=True))
        results = step(r, *values[:count])
        return [*results, *(r.tokens[e] for e in effects)]

    avals = [x.aval for x in operands]
    if not operands:  # a loop without a state ends at once or never; StableHLO wants one operand
        operands = [b.constant(np.zeros((), np.bool_), _BOOL)]
        avals = [_BOOL]
        inner = body
        condition, body = (lambda r, x: [proceed(r)]), (lambda r, x: [*inner(r), x])
    b.location = b.place(b.scope + "while")
    regions = [
        b.region(avals, f, isolated=False, scope=scope)
        for f, scope in ((condition, "while/cond/"), (body, "while/body/"))
    ]
    results = b.op_n("stablehlo.while", operands, avals, "", regions)
    b.tokens.update(zip(effects, results[count:], strict=False))
    return results[:count]


# -- scan -------------------------------------------------------------------------------------------


def lower_scan(b, *args, jaxpr, length, num_consts, num_carry, reverse, unroll):
    outs = b.outs
    unroll = 1 if is_dim(length) else max(unroll, 1)
    consts, carry, xs = split_list(args, num_consts, num_carry)
    effects = ordered_effects(jaxpr.jaxpr)
    # Written once and called, a body that stands in the text many times stays one function.
    apart = min(unroll, length) > 1 and not effects
    unrolled = certain(lambda: length < 2 * unroll)  # a loop of one iteration is none

    def apply(r, carry, slices):
        operands = (*consts, *carry, *slices)
        if apart:
            results = r.call_jaxpr(jaxpr, "scan_body", *operands)
        else:
            results = r.closed_jaxpr(jaxpr, *operands)
        return split_list(results, num_carry)

    if unrolled:
        return _unrolled(b, apply, carry, xs, length, reverse, outs[num_carry:])
    index_aval = ShapedArray(
        (), np.dtype(np.int32 if is_dim(length) or length < 2**31 else np.int64)
    )

    def index(r, i):
        return r.size(i) if is_dim(i) else r.constant(np.asarray(i, index_aval.dtype), index_aval)

    def at(r, i):
        """The place in the arrays of the step number `i`."""
        if not reverse:
            return i
        return r.op("stablehlo.subtract", (index(r, length - 1), i), index_aval)

    def one(r, i, carry, buffers):
        place, zero = at(r, i), index(r, 0)
        carry, ys = apply(r, carry, [_slice(r, x, place, zero) for x in xs])
        filled = []
        for buf, y, aval in zip(buffers, ys, outs[num_carry:], strict=True):
            s = _summing(r, aval, y)
            filled.append(_update(s, _told(s, buf, aval), y, place, zero))
        return carry, filled

    def step(r, i, *state):
        carry, buffers = split_list(state, num_carry)
        for k in range(unroll):
            this = i if k == 0 else r.op("stablehlo.add", (i, index(r, k)), index_aval)
            carry, buffers = one(r, this, carry, buffers)
        return [r.op("stablehlo.add", (i, index(r, unroll)), index_aval), *carry, *buffers]

    rest = 0 if is_dim(length) else length % unroll
    whole = length - rest
    state = [
        index(b, 0),
        *carry,
        *[_told(b, empty(b, aval), aval) for aval in outs[num_carry:]],
    ]
    proceed = lambda r, i, *_: r.compare(i, index(r, whole), "LT", "SIGNED")
    _, *state = while_op(b, state, proceed, step, effects)
    carry, buffers = split_list(state, num_carry)
    for i in range(rest):
        carry, buffers = one(b, index(b, whole + i), carry, buffers)
    return [*carry, *buffers]


def empty(b: Builder, aval: Any) -> Value:
    """An array that is to be filled."""
    stored = physical(aval)
    value = b.full(np.zeros((), stored.dtype), stored)
    return Value(value.name, aval)


def _unrolled(b, apply, carry, xs, length, reverse, y_avals):
    """All steps one after the other, without a loop."""
    rows: list[Any] = [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        carry, rows[i] = apply(b, carry, [_row(b, x, i) for x in xs])
    ys = []
    for k, aval in enumerate(y_avals):
        if length == 0:
            ys.append(empty(b, aval))
            continue
        s = _summing(b, aval, *[row[k] for row in rows])
        parts = [s.reshape(row[k], (1, *row[k].shape)) for row in rows]
        whole = parts[0]
        if length > 1:
            whole = s.op("stablehlo.concatenate", parts, aval, "dimension = 0 : i64")
        ys.append(whole)
    return [*carry, *ys]


def _told(b: Builder, x: Value, aval: Any) -> Value:
    """A value of this type; if it is a sum over mesh axes, XLA is told so in each region."""
    if not sums_of(aval)[0] or b.module.manual:
        return x
    (x,) = b.split(x, aval.explicit)
    if isinstance(b, SummingBuilder) and b.summed is not None:
        b.summed[0].add(x.name)
    return x


def _summing(b: Builder, aval: Any, *values: Value) -> Builder:
    """Return the builder of what is made of these values, sums over mesh axes if a result of the
    type is one.
    """
    if sums_of(aval)[0] and not b.module.manual:
        return b.summing({x.name for x in values}, aval.explicit)
    return b


def _row(b: Builder, x: Value, i: int) -> Value:
    shape = physical(x.aval).shape
    attributes = (
        f"start_indices = {i64_array((i, *(0,) * (len(shape) - 1)))}, "
        f"limit_indices = {i64_array((i + 1, *shape[1:]))}, "
        f"strides = {i64_array((1,) * len(shape))}"
    )
    out = x.aval.update(shape=(1, *x.shape[1:]))
    return b.reshape(b.op("stablehlo.slice", (x,), out, attributes), x.shape[1:])


def _slice(b: Builder, x: Value, i: Value, zero: Value) -> Value:
    shape = physical(x.aval).shape
    starts = [i, *[zero] * (len(shape) - 1)]
    attributes = f"slice_sizes = {i64_array((1, *shape[1:]))}"
    out = x.aval.update(shape=(1, *x.shape[1:]))
    return b.reshape(b.op("stablehlo.dynamic_slice", (x, *starts), out, attributes), x.shape[1:])


def _update(b: Builder, buffer: Value, y: Value, i: Value, zero: Value) -> Value:
    starts = [i, *[zero] * (len(physical(buffer.aval).shape) - 1)]
    row = b.reshape(y, (1, *y.shape))
    return b.op("stablehlo.dynamic_update_slice", (buffer, row, *starts), buffer.aval)


# -- while --------------------------------------------------------------------------------------------


def lower_while(b, *args, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    cond_consts, body_consts, carry = split_list(args, cond_nconsts, body_nconsts)
    effects = ordered_effects(cond_jaxpr.jaxpr, body_jaxpr.jaxpr)

    def proceed(r, *carry):
        return r.closed_jaxpr(cond_jaxpr, *cond_consts, *carry)[0]

    def step(r, *carry):
        return r.closed_jaxpr(body_jaxpr, *body_consts, *carry)

    flags = cond_jaxpr.out_avals[0]
    if not flags.shape and not ordered_effects(cond_jaxpr.jaxpr):
        return while_op(b, carry, proceed, step, effects)
    # The predicate is part of the state: the condition of an operation gives no tokens, and a
    # predicate with batch axes, which all that is carried then has in front, says which elements
    # go on: the loop runs while any does, and those that are done keep their values.
    first = proceed(b, *carry)

    def any_proceeds(r, active, *carry):
        if not flags.shape:
            return active
        return reduce_by(r, "stablehlo.or", active, False, range(len(flags.shape)), _BOOL)

    def step_active(r, active, *carry):
        made = step(r, *carry)
        if flags.shape:
            made = [_select(r, active, x, y) for x, y in zip(made, carry, strict=True)]
        return [proceed(r, *made), *made]

    return while_op(b, [first, *carry], any_proceeds, step_active, effects)[1:]


def _select(b: Builder, flag: Value, x: Value, y: Value) -> Value:
    if x.name == y.name:
        return x
    shape = physical(x.aval).shape
    wide = b.broadcast(flag, shape, range(len(flag.shape)))
    return b.op("stablehlo.select", (wide, x, y), x.aval)
