"""`scan_p`: a loop of known length that carries values, reads slices and stacks results.

Here are the primitive and its rules; the functions on it (`scan`, `map`) stand in `scan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax.config import local
from minijax.core.avals import ShapedArray
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, dce_jaxpr, eval_jaxpr
from minijax.core.primitive import CallPrimitive, Programs
from minijax.core.staging import trace_to_jaxpr
from minijax.features.sharding.unreduced import any_sums, sums_of
from minijax.lax.control_flow.common import run_inline
from minijax.lax.control_flow.dependence import (
    carry_reached,
    chosen,
    merge,
    needed,
    nonzero,
    partition,
    permuted,
    reached,
    settle,
    split_list,
    split_program,
)
from minijax.lax.control_flow.loop_lowering import lower_scan
from minijax.lax.control_flow.loop_rules import loops
from minijax.lax.creation import iota
from minijax.lax.dynamic_slicing import dynamic_index_in_dim
from minijax.transforms.batching import batch_jaxpr, to_front
from minijax.transforms.jit import jit_p
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.primitives import instantiate, moveaxis
from minijax.transforms.tangents import (
    UndefinedPrimal,
    Zero,
    cotangent_types,
    cotangents_of,
    is_undefined,
    kinds_of,
    spread_tangents,
    sums_among,
)
from minijax.transforms.transpose import backward_pass

__all__ = ["scan_p"]

# Operands: constants, the initial carry, the arrays that are read in slices. `jaxpr` takes the
# constants, the carry and one slice of each array, and gives the carry and what is stacked.
_PROGRAMS = Programs(("num_consts", "num_carry"), jaxpr=(0, 1, 2), carried=1, mapped=2)
scan_p = CallPrimitive("scan", _PROGRAMS)


def _no_rows(avals: Sequence[Any]) -> None:
    """An error if slices are sums over Explicit axes that are still to be taken."""
    for aval in avals:
        if sums_of(aval)[0] and not aval.explicit.mesh.manual_axes:
            raise NotImplementedError(
                "unreduced rule for dynamic_slice is not implemented: scan would take slices of type "
                f"{aval.str_short()}. Take the sum first with minijax.reshard(x, P(...))."
            )


@scan_p.shape_rule
def _(*avals, jaxpr, length, num_carry, **params):
    out = jaxpr.out_avals
    if any_sums(out) or any_sums(avals):
        pairs = (
            zip(avals, jaxpr.in_avals, strict=False) if len(avals) == len(jaxpr.in_avals) else ()
        )
        _no_rows([row for x, row in pairs if x.shape != row.shape])
    if isinstance(length, int) and length < 0 and out[num_carry:]:
        raise ValueError(
            f"scan: invalid tensor dimension size: `length` is {length}, and no result can have so "
            "many rows. Give a `length` of 0 or more."
        )
    return [*out[:num_carry], *(aval.with_axis(0, length) for aval in out[num_carry:])]


scan_p.lower(lower_scan)


# -- derivatives ------------------------------------------------------------------------------------


loops(scan_p)


def _out_avals(jaxpr, length, num_carry):
    return scan_p.rule_shape(jaxpr=jaxpr, length=length, num_carry=num_carry)


class _Split:
    """A scan in two: one that is run now and gives residuals, and one that takes them.

    - `first`: the body of the scan that is run; its last outputs are stacked residuals
    - `hoisted`: (*constants) -> the residuals that no step changes; None if there are none
    - `second`: the body of the other scan: (*constant residuals, *its constants, *its carry,
      *stacked residuals, *its slices)
    - `consts`, `xs`: where those residuals are found; see `_find`
    """

    __slots__ = ("consts", "first", "hoisted", "second", "xs")


def _take_apart(
    first: ClosedJaxpr, second: ClosedJaxpr, sources: Sequence[int], ins: Sequence[int],
    outs: Sequence[int], second_ins: Sequence[int],
) -> _Split:  # fmt: skip
    """Decide for each residual of `second` how it gets from the one scan to the other.

    `ins` counts the constants, carried values and slices of `first`; `outs` its carried and stacked
    outputs, after which residuals come; `second_ins` the inputs of `second` after the residuals.
    """
    jaxpr = first.jaxpr
    total = sum(ins)
    varying = reached(jaxpr, [False] * ins[0] + [True] * (total - ins[0]), variables=True)
    for eqn in jaxpr.eqns:  # one of whose results varies is not hoisted for the others
        if eqn.effects or not varying.isdisjoint((*eqn.outvars, *eqn.invars)):
            varying.update(eqn.outvars)
    results, extra = jaxpr.outvars[: sum(outs)], jaxpr.outvars[sum(outs) :]
    stacked, hoisted = _Listed(results[outs[0] :]), _Listed(())
    split = _Split()
    split.consts, split.xs = [], []
    residuals, rest = split_list(second.jaxpr.invars, len(sources))
    const_vars, xs_vars = [], []
    for var, source in zip(residuals, sources, strict=True):
        if source < ins[0]:
            split.consts.append(("const", source))
        elif ins[0] + ins[1] <= source < total:
            split.xs.append(("xs", source - ins[0] - ins[1]))
        else:
            value = jaxpr.invars[source] if source < total else extra[source - total]
            if value in varying:
                split.xs.append(("ys", stacked.place(value)))
            else:
                split.consts.append(("hoisted", hoisted.place(value)))
        is_const = len(split.consts) > len(const_vars)
        (const_vars if is_const else xs_vars).append(var)
    split.first = permuted(first, outvars=[*results[: outs[0]], *stacked.values])
    wanted = hoisted.values
    split.hoisted = _hoist(first, wanted, ins[0], varying) if wanted else None
    consts, carry, xs = split_list(rest, *second_ins[:2])
    split.second = permuted(second, [*const_vars, *consts, *carry, *xs_vars, *xs])
    return split


class _Listed:
    """A list of variables, each of which is added once."""

    def __init__(self, values: Sequence[Any]):
        self.values = list(values)
        self._places = {id(x): k for k, x in reversed(list(enumerate(values)))}

    def place(self, value: Any) -> int:
        place = self._places.setdefault(id(value), len(self.values))
        if place == len(self.values):
            self.values.append(value)
        return place


def _hoist(first: ClosedJaxpr, wanted: list, num_consts: int, varying: set) -> ClosedJaxpr:
    """The program of values that depend on constants only."""
    jaxpr = first.jaxpr
    eqns = [eqn for eqn in jaxpr.eqns if not eqn.effects and varying.isdisjoint(eqn.outvars)]
    inner = Jaxpr(jaxpr.constvars, jaxpr.invars[:num_consts], wanted, eqns)
    return ClosedJaxpr(dce_jaxpr(inner, [True] * len(wanted), instantiate=True)[0], first.consts)


def _run_first(split: _Split, consts, init, xs, num_ys: int, params: dict) -> tuple:
    """Run the first scan. Gives its results, and the residuals: constants, and slices."""
    hoisted = run_inline(split.hoisted, "hoisted", *consts) if split.hoisted is not None else []
    outs = []
    if split.first.out_avals or split.first.effects:
        outs = scan_p.bind(
            *consts, *init, *xs, jaxpr=split.first, num_consts=len(consts), num_carry=len(init),
            **params,
        )  # fmt: skip
    ys = outs[len(init) :]
    pools = {"const": consts, "hoisted": hoisted, "xs": xs, "ys": ys}
    found = [[pools[kind][i] for kind, i in places] for places in (split.consts, split.xs)]
    return outs[: len(init) + num_ys], found[0], found[1]


@scan_p.linearize
def _(trace, primals, tangents, *, jaxpr, length, num_consts, num_carry, **params):
    params["length"] = length
    counts = (num_consts, num_carry)
    flags = split_list(nonzero(tangents), *counts)
    split, carry, out_flags = _linearized(jaxpr, flags)
    consts, init, xs = split_list(primals, *counts)
    num_ys = len(jaxpr.out_avals) - num_carry
    outs, const_residuals, xs_residuals = _run_first(split, consts, init, xs, num_ys, params)
    consts_dot, init_dot, xs_dot = split_list(tangents, *counts)
    dots = []
    if split.second.out_avals:
        const_args = [*const_residuals, *chosen(consts_dot, flags[0])]
        init_args = [instantiate(t) for t in chosen(init_dot, carry)]
        xs_args = [*xs_residuals, *chosen(xs_dot, flags[2])]
        dots = trace.record(
            scan_p,
            [*const_args, *init_args, *xs_args],
            dict(params, jaxpr=split.second, num_consts=len(const_args), num_carry=len(init_args)),
        )
    return outs, spread_tangents(dots, out_flags, _out_avals(jaxpr, length, num_carry))


def _linearized(jaxpr: ClosedJaxpr, flags: list) -> tuple[_Split, list[bool], list[bool]]:
    def make():
        def derive(nonzeros, want):
            split = linearize_jaxpr(jaxpr, nonzeros, want)
            return split, split.out_nonzeros

        made, carry, out_flags = settle(jaxpr, flags, derive)
        ins = [len(part) for part in flags]
        outs = (ins[1], len(jaxpr.out_avals) - ins[1])
        second_ins = (sum(flags[0]), sum(carry), sum(flags[2]))
        split = _take_apart(made.primal, made.linear, made.residual_sources, ins, outs, second_ins)
        return split, carry, out_flags

    key = ("scan linearize", tuple(map(tuple, flags)), local.context.key)
    return jaxpr.derive(key, make)


# -- partial evaluation and transposition -----------------------------------------------------------


def _split_scan(args, unknown, jaxpr, num_consts, num_carry, params) -> tuple:
    """Run what does not depend on the unknown arguments.

    Gives the known results, which results are unknown, and the arguments and params of a scan of
    the rest; of those arguments, which are unknown is the caller's to see.
    """
    counts = (num_consts, num_carry)
    flags = split_list(unknown, *counts)
    carry = carry_reached(jaxpr.jaxpr, *flags)

    def make():
        wanted = [*carry, *[False] * (len(jaxpr.out_avals) - num_carry)]
        made = split_program(jaxpr, [*flags[0], *carry, *flags[2]], wanted)
        second_ins = [sum(flags[0]), sum(carry), sum(flags[2])]
        sizes = (num_consts, num_carry, len(flags[2]))
        ins = [size - count for size, count in zip(sizes, second_ins, strict=True)]
        num_ys = sum(not flag for flag in made.out_unknown[num_carry:])
        outs = (ins[1], num_ys)
        split = _take_apart(made.known, made.unknown, made.sources, ins, outs, second_ins)
        return split, made.out_unknown, num_ys

    key = ("scan split", tuple(map(tuple, flags)), local.context.key)
    split, out_unknown, num_ys = jaxpr.derive(key, make)
    parts = [
        partition(part, flag)
        for part, flag in zip(split_list(args, *counts), (flags[0], carry, flags[2]), strict=True)
    ]
    known, const_residuals, xs_residuals = _run_first(
        split, *[part[0] for part in parts], num_ys, params
    )
    (_, consts), (_, init), (_, xs) = parts
    rest = [*const_residuals, *consts], init, [*xs_residuals, *xs]
    places = [len(const_residuals), 0, len(xs_residuals)]
    return known, out_unknown, split.second, rest, places, carry


@scan_p.partial_eval
def _(trace, args, params):
    unknown = [trace.is_unknown(a) for a in args]
    if all(unknown):
        return trace.record(scan_p, args, params)
    rest = dict(params)
    jaxpr, num_consts, num_carry = (rest.pop(n) for n in ("jaxpr", "num_consts", "num_carry"))
    known, out_unknown, second, (consts, init, xs), _, _ = _split_scan(
        args, unknown, jaxpr, num_consts, num_carry, rest
    )
    outs = trace.record(
        scan_p,
        [*consts, *init, *xs],
        dict(rest, jaxpr=second, num_consts=len(consts), num_carry=len(init)),
    )
    return merge(known, outs, out_unknown)


@scan_p.transpose
def _(cts, *args, jaxpr, num_consts, num_carry, **params):
    linear = [is_undefined(a) for a in args]
    counts = (num_consts, num_carry)
    summed = [a.aval.placement is None for a in args if is_undefined(a) and a.sum is not None]
    if any(split_list(sums_among(args), *counts)[2]) and all(summed):
        return _transposed_by_index(cts, args, counts, jaxpr, params)
    carry = carry_reached(jaxpr.jaxpr, *split_list(linear, *counts))
    if all(carry):
        consts, init, xs = split_list(args, *counts)
        return _transposed(cts, consts, init, xs, jaxpr, params)
    # Some of what is carried is known, such as a counter: run that first.
    _, out_unknown, second, rest, places, carry = _split_scan(
        args, linear, jaxpr, num_consts, num_carry, params
    )
    results = _transposed(chosen(cts, out_unknown), *rest, second, params)
    _, consts, _, init, _, xs = split_list(
        results, places[0], len(rest[0]) - places[0], places[1], len(rest[1]), places[2]
    )
    flags = split_list(linear, *counts)
    return [
        *merge([None] * (num_consts - len(consts)), consts, flags[0]),
        *merge([None] * (num_carry - len(init)), init, carry),
        *merge([None] * (len(flags[2]) - len(xs)), xs, flags[2]),
    ]


def _transposed_by_index(cts, args, counts: tuple, jaxpr: ClosedJaxpr, params: dict) -> list[Any]:
    """The cotangents of a scan where those of slices are added to what there is already.

    The arrays that these are slices of become constants, which the body reads at its index: their
    sums are carried, and each step adds to one slice in place. Nothing is stacked.
    """
    consts, init, xs = split_list(args, *counts)
    read = sums_among(xs)
    rest = [not flag for flag in read]
    whole = chosen(xs, read)
    in_consts, in_carry, in_xs = split_list(jaxpr.in_avals, *counts)
    parts = in_consts, [a.aval for a in whole], in_carry, [_INDEX], chosen(in_xs, rest)

    def fun(*values):
        consts, arrays, carry, (index,), slices = split_list(values, *map(len, parts[:4]))
        at = partial(
            dynamic_index_in_dim, index=index, keepdims=False, allow_negative_indices=False
        )
        slices = merge(slices, map(at, arrays), read)
        return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts, *carry, *slices)

    avals = [a for part in parts for a in part]
    make = lambda: trace_to_jaxpr(fun, avals, jaxpr.jaxpr.debug_info)
    body = jaxpr.derive(("scan by index", tuple(read), tuple(avals), local.context.key), make)
    given = [*consts, *whole, *init, iota(np.int32, params["length"]), *chosen(xs, rest)]
    num_consts = len(consts) + len(whole)
    results = scan_p.rule_transpose(
        cts, *given, jaxpr=body, num_consts=num_consts, num_carry=len(init), **params
    )
    of_consts, of_whole, of_init, _, others = split_list(results, *map(len, parts[:4]))
    return [*of_consts, *of_init, *merge(others, of_whole, read)]


_INDEX = ShapedArray((), np.dtype(np.int32))


def _transposed(cts, consts, init, xs, jaxpr: ClosedJaxpr, params: dict) -> list[Any]:
    """The cotangents of a scan that is linear in all that it carries.

    It is a scan the other way round that carries the cotangents of the carry and, summed so far,
    those of the constants, and that stacks those of the slices.
    """
    consts_lin, xs_lin = ([is_undefined(a) for a in part] for part in (consts, xs))
    ct_carry, ct_ys = split_list(cts, len(init))
    kinds = kinds_of(ct_carry), kinds_of(ct_ys)
    made = _transposed_body(jaxpr, consts_lin, xs_lin, *kinds)
    known = [[a for a in part if not is_undefined(a)] for part in (consts, xs)]
    sums = [
        instantiate(Zero(a.aval.to_cotangent_aval())) if a.sum is None else a.sum
        for a in chosen(chosen(consts, consts_lin), made.consts)
    ]
    starts = [instantiate(ct) for ct in chosen(ct_carry, made.carry)]
    outs = scan_p.bind(
        *known[0], *sums, *starts, *known[1], *chosen(ct_ys, kinds[1]),
        **dict(params, reverse=not params["reverse"]),
        jaxpr=made.body, num_consts=len(known[0]), num_carry=len(sums) + len(starts),
    )  # fmt: skip
    sums, starts, slices = split_list(outs, len(sums), len(starts))
    spaced = lambda found, flags: iter(merge([None] * flags.count(False), found, flags))
    starts, ct_xs = spaced(starts, made.carry), spaced(slices, made.xs)
    return [
        *cotangents_of(consts, spaced(sums, made.consts)),
        *[ct if is_undefined(a) else None for a, ct in zip(init, starts, strict=True)],
        *[next(ct_xs) if is_undefined(a) else None for a in xs],
    ]


class _TransposedBody:
    """`body`, and which linear constants, carried values and linear slices get a cotangent."""

    __slots__ = ("body", "carry", "consts", "xs")


def _transposed_body(jaxpr: ClosedJaxpr, consts_lin, xs_lin, ct_carry, ct_ys) -> _TransposedBody:
    key = (
        "scan transpose", tuple(consts_lin), tuple(xs_lin), tuple(ct_carry), tuple(ct_ys),
        local.context.key,
    )  # fmt: skip
    return jaxpr.derive(key, lambda: _transpose_body(jaxpr, consts_lin, xs_lin, ct_carry, ct_ys))


def _transpose_body(jaxpr: ClosedJaxpr, consts_lin, xs_lin, ct_carry, ct_ys) -> _TransposedBody:
    made = _TransposedBody()
    made.carry = list(ct_carry)
    sizes = len(consts_lin), len(ct_carry)
    while True:
        consts, back, _ = split_list(needed(jaxpr.jaxpr, [*made.carry, *ct_ys]), *sizes)
        grown = [a or b for a, b in zip(made.carry, back, strict=True)]
        if grown == made.carry:
            break
        made.carry = grown
    made.consts = chosen(consts, consts_lin)
    in_consts, in_carry, in_xs = split_list(jaxpr.in_avals, *sizes)
    out_carry, out_ys = split_list(jaxpr.out_avals, sizes[1])
    parts = (
        [a for a, lin in zip(in_consts, consts_lin, strict=True) if not lin],
        cotangent_types(chosen(in_consts, consts_lin), made.consts),
        cotangent_types(out_carry, made.carry),
        [a for a, lin in zip(in_xs, xs_lin, strict=True) if not lin],
        cotangent_types(out_ys, ct_ys),
    )

    def fun(*args):
        known, sums, ct_out, slices, ct_y = split_list(args, *[len(part) for part in parts[:4]])
        values = [
            *_undefined_among(known, in_consts, consts_lin),
            *map(UndefinedPrimal, in_carry),
            *_undefined_among(slices, in_xs, xs_lin),
        ]
        cts = [
            *spread_tangents(ct_out, made.carry, out_carry),
            *spread_tangents(ct_y, ct_ys, out_ys),
        ]
        of_consts = chosen(chosen(jaxpr.jaxpr.invars[: sizes[0]], consts_lin), made.consts)
        so_far = dict(zip(of_consts, sums, strict=True))
        body = _carrying(jaxpr.jaxpr, sizes[0], out_carry)
        found = backward_pass(body, jaxpr.consts, values, cts, sums=so_far)
        consts, carry, xs = split_list(found, *sizes)
        sums = chosen(chosen(consts, consts_lin), made.consts)
        carry = [instantiate(ct) for ct in chosen(carry, made.carry)]
        xs = chosen(xs, xs_lin)
        made.xs = nonzero(xs)
        return [*sums, *carry, *chosen(xs, made.xs)]

    made.body = trace_to_jaxpr(fun, [a for part in parts for a in part], jaxpr.jaxpr.debug_info)
    return made


def _carrying(jaxpr: Jaxpr, start: int, avals: Sequence[Any]) -> Jaxpr:
    """The body with strong types of those carried values that it takes as weak and gives as strong.

    Only an initial value is weak then, and a cotangent that is carried is that of a strong value.
    """
    stop = start + len(avals)
    strong = [
        isinstance(aval, ShapedArray) and var.aval.weak_type and not aval.weak_type
        for var, aval in zip(jaxpr.invars[start:stop], avals, strict=True)
    ]
    return _strengthened(jaxpr, [False] * start + strong) if any(strong) else jaxpr


def _strengthened(jaxpr: Jaxpr, strong: Sequence[bool]) -> Jaxpr:
    """The program with strong types of these arguments, also where it hands them to a jitted one."""
    retyped = {
        var: Var(var.aval.update(weak_type=False))
        for var, change in zip(jaxpr.invars, strong, strict=False)
        if change
    }
    new = lambda vs: [v if type(v) is Literal else retyped.get(v, v) for v in vs]
    eqns = []
    for eqn in jaxpr.eqns:
        passed = [type(v) is not Literal and v in retyped for v in eqn.invars]
        params = eqn.params
        if eqn.primitive is jit_p and any(passed):
            closed = params["jaxpr"]
            params = params | {"jaxpr": closed.replace(jaxpr=_strengthened(closed.jaxpr, passed))}
        eqns.append(eqn.replace(invars=new(eqn.invars), params=params))
    return jaxpr.replace(invars=new(jaxpr.invars), eqns=eqns, outvars=new(jaxpr.outvars))


def _undefined_among(known, avals, linear):
    rest = iter(known)
    return [UndefinedPrimal(a) if lin else next(rest) for a, lin in zip(avals, linear, strict=True)]


# -- vectorizing ----------------------------------------------------------------------------------


@scan_p.batch_axis
def _(axis, args, dims, *, jaxpr, num_consts, num_carry, **params):
    consts, init, xs = split_list(args, num_consts, num_carry)
    const_dims, init_dims, xs_dims = split_list(dims, num_consts, num_carry)
    # Axis 0 of an array that is read in slices is the loop's own.
    xs = [moveaxis(x, 0, 1) if dim == 0 else x for x, dim in zip(xs, xs_dims, strict=True)]
    xs_dims = [None if dim is None else max(dim - 1, 0) for dim in xs_dims]
    made, carry, out_dims = batch_loop_body(jaxpr, axis, const_dims, init_dims, xs_dims)
    init = [
        to_front(x, dim, axis.size) if batched else x
        for x, dim, batched in zip(init, init_dims, carry, strict=True)
    ]
    outs = scan_p.bind(
        *consts, *init, *xs, jaxpr=made, num_consts=num_consts, num_carry=num_carry, **params
    )
    return outs, [
        *out_dims[:num_carry],
        *(None if dim is None else dim + 1 for dim in out_dims[num_carry:]),
    ]


def batch_loop_body(
    jaxpr: ClosedJaxpr, axis, const_dims, init_dims, xs_dims=(), at_least: Sequence[bool] = ()
) -> tuple[ClosedJaxpr, list[bool], list[int | None]]:
    """The body mapped over an axis, which carried values have the axis (in front), and out dims."""
    flags = [[dim is not None for dim in part] for part in (const_dims, init_dims, xs_dims)]
    if at_least:
        flags[1] = [a or b for a, b in zip(flags[1], at_least, strict=True)]
    carry = carry_reached(jaxpr.jaxpr, *flags, mapped=True)  # a start; it grows to what is needed
    others = [False] * (len(jaxpr.out_avals) - len(carry))
    while True:
        carry_dims = [0 if batched else None for batched in carry]
        made, out_dims = batch_jaxpr(
            jaxpr, axis, [*const_dims, *carry_dims, *xs_dims], [*carry, *others]
        )
        grown = [a or d is not None for a, d in zip(carry, out_dims, strict=False)]
        if grown == carry:
            return made, carry, out_dims
        carry = grown
