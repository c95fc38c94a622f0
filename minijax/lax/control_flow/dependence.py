"""Questions about programs, and taking them apart: what the rules of control flow are built from.

Which outputs depend on which inputs is found on the equations, without tracing, so that the rule of
a loop traces its body once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.arguments.functions import unnamed
from minijax.config import local
from minijax.core.avals import AbstractValue
from minijax.core.effects import ordered
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, dce_jaxpr, eval_jaxpr, subjaxprs
from minijax.core.primitive import NoRule, Primitive
from minijax.core.staging import JaxprTrace, PartialTrace, StagedTracer
from minijax.namespace import written_in
from minijax.transforms.tangents import Zero, is_float0

__all__ = [
    "SplitProgram", "carry_reached", "chosen", "has_tangent", "merge", "needed", "nonzero",
    "ordered_effects", "partition", "permuted", "reached", "settle", "split_list",
    "split_program",
]  # fmt: skip

# -- lists ------------------------------------------------------------------------------------------


def split_list(items: Sequence[Any], *counts: int) -> list[list[Any]]:
    """The first `counts[0]` items, the next `counts[1]`, ..., and the rest."""
    parts, start = [], 0
    for count in counts:
        parts.append(list(items[start : start + count]))
        start += count
    parts.append(list(items[start:]))
    return parts


def partition(items: Sequence[Any], flags: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """The items whose flag is false, and those whose flag is true."""
    off, on = [], []
    for item, flag in zip(items, flags, strict=True):
        (on if flag else off).append(item)
    return off, on


def merge(off: Sequence[Any], on: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The inverse of `partition`."""
    rest_off, rest_on = iter(off), iter(on)
    return [next(rest_on) if flag else next(rest_off) for flag in flags]


# -- which values of a program depend on which ------------------------------------------------------

_HOUSE = __name__.partition(".")[0]


def has_tangent(aval: AbstractValue) -> bool:
    return not is_float0(aval.to_tangent_aval())


def reached(
    jaxpr: Jaxpr,
    flags: Sequence[bool],
    *,
    tangents: bool = False,
    effect: Any = None,
    variables: bool = False,
    mapped: bool = False,
) -> Any:
    """Return which outputs depend on the flagged inputs (`variables`: the set of variables).

    With `tangents`, only values that have a tangent space count. An equation with the effect
    `effect` depends on what is asked for, whatever its inputs. With `mapped`, only outputs that
    surely have a mapped axis if the flagged inputs do: fewer than depend on them, where a result is
    the same along the axis by a rule for a collective, or by one that a library brought.
    """
    marked = {v for v, flag in zip(jaxpr.invars, flags, strict=True) if flag}
    for eqn in jaxpr.eqns:
        if marked.isdisjoint(eqn.invars) and not (effect is not None and effect in eqn.effects):
            continue
        outvars = eqn.outvars
        if mapped:
            outvars = chosen(outvars, _mapped(eqn, [v in marked for v in eqn.invars]))
        elif _splits(eqn.primitive, tangents):
            how = {"tangents": tangents, "effect": effect}
            outvars = chosen(outvars, _through(eqn, [v in marked for v in eqn.invars], **how))
        if tangents:
            outvars = [v for v in outvars if has_tangent(v.aval)]
        marked.update(outvars)
    return marked if variables else [v in marked for v in jaxpr.outvars]


def _splits(primitive: Primitive, tangents: bool) -> bool:
    """Whether a call gives tangents, or else is partially evaluated, as the programs in it say.

    What loops or chooses is not evaluated in part where its operands are unknown.
    """
    calls = primitive.programs
    if calls is None or calls.ruled:
        return False
    return tangents or (not calls.counts and primitive.rule_partial_eval is not None)


def _through(eqn: JaxprEqn, flags: list[bool], **how: Any) -> list[bool]:
    """Return which results of an equation that calls programs depend on the flagged operands."""
    calls, params = eqn.primitive.programs, eqn.params
    groups = calls.groups(flags, params)
    programs = [_opened(program) for program in calls.held(calls.result, params)]
    if calls.carried is not None:
        numbers = calls.inputs[calls.result]
        place = numbers.index(calls.carried)
        before, after = (
            [x for n in part for x in groups[n]] for part in (numbers[:place], numbers[place + 1 :])
        )
        carry = carry_reached(programs[0], before, groups[calls.carried], after, **how)
        groups[calls.carried] = carry
    given = calls.given(calls.result, groups)
    found = [reached(program, given, **how) for program in programs]
    outs = [any(each) for each in zip(*found, strict=True)]
    return outs if calls.carried is None else [*carry, *outs[len(carry) :]]


def _opened(program: Jaxpr | ClosedJaxpr) -> Jaxpr:
    return program.jaxpr if type(program) is ClosedJaxpr else program


def _may_refuse(jaxpr: Jaxpr) -> bool:
    """Whether to differentiate an equation may fail: by a rule of a user's, or for want of one."""
    for eqn in jaxpr.eqns:
        if not any(has_tangent(v.aval) for v in eqn.invars):
            continue
        rule = eqn.params.get("jvp", eqn.params.get("fwd"))  # of a function with custom rules
        rule = eqn.primitive.rule_jvp if rule is None else getattr(rule, "fun", rule)
        if type(rule) is NoRule or _brought(rule):
            return True
    return any(map(_may_refuse, subjaxprs(jaxpr)))


def _brought(rule: Any) -> bool:
    """Whether a rule is none of this library's."""
    return written_in(rule).partition(".")[0] != _HOUSE


def _mapped(eqn: JaxprEqn, flags: list[bool]) -> list[bool]:
    """Return which results of an equation surely have a mapped axis that the flagged operands have."""
    calls = eqn.primitive.programs
    if calls is not None:
        outs = _through(eqn, flags, mapped=True)
        return [True] * len(outs) if _decided_apart(eqn, flags, outs) else outs
    rule = eqn.primitive.rule_batch_axis or eqn.primitive.rule_batch
    return [not (eqn.effects or _brought(rule))] * len(eqn.outvars)


def _decided_apart(eqn: JaxprEqn, flags: list[bool], outs: list[bool]) -> bool:
    """Whether each element along a mapped axis chooses, or ends, for itself."""
    calls = eqn.primitive.programs
    groups = calls.groups(flags, eqn.params)
    if calls.carried is not None:
        groups[calls.carried] = outs[: len(groups[calls.carried])]
    *deciding, _ = calls.inputs
    for name in deciding:
        (program,) = calls.held(name, eqn.params)
        if any(reached(_opened(program), calls.given(name, groups), mapped=True)):
            return True
    inputs = {number for numbers in calls.inputs.values() for number in numbers}
    return any(any(group) for number, group in enumerate(groups) if number not in inputs)


def carry_reached(
    jaxpr: Jaxpr,
    consts: Sequence[bool],
    carry: Sequence[bool],
    xs: Sequence[bool] = (),
    **how: Any,
) -> list[bool]:
    """Return which carried values of a loop depend on what is flagged, after any number of steps."""
    carry = list(carry)
    while True:
        outs = reached(jaxpr, [*consts, *carry, *xs], **how)
        grown = [old or new for old, new in zip(carry, outs, strict=False)]
        if grown == carry:
            return carry
        carry = grown


def needed(jaxpr: Jaxpr, flags: Sequence[bool]) -> list[bool]:
    """Return which inputs the flagged outputs depend on."""
    marked = {v for v, flag in zip(jaxpr.outvars, flags, strict=True) if flag}
    for eqn in reversed(jaxpr.eqns):
        if not marked.isdisjoint(eqn.outvars):
            marked.update(eqn.invars)
    return [v in marked for v in jaxpr.invars]


# -- splitting a program in what is known and what is not -------------------------------------------


class SplitProgram:
    """A program of which some inputs are unknown, in two.

    - `known`: (*known inputs) -> (*known outputs, *residuals that are no inputs)
    - `unknown`: (*residuals, *unknown inputs) -> (*unknown outputs)
    - `sources`: for each residual its index among the known inputs, or their number plus its index
      among the residuals that `known` gives
    - `out_unknown`: which outputs are unknown
    """

    __slots__ = ("known", "out_unknown", "sources", "unknown")

    def __init__(self, known, unknown, sources, out_unknown):
        self.known: ClosedJaxpr = known
        self.unknown: ClosedJaxpr = unknown
        self.sources: list[int] = sources
        self.out_unknown: list[bool] = out_unknown


def split_program(
    closed: ClosedJaxpr, unknown: Sequence[bool], instantiate: Sequence[bool] | None = None
) -> SplitProgram:
    """Partial evaluation; the outputs that `instantiate` marks count as unknown in any case."""
    unknown = tuple(unknown)
    wanted = tuple(instantiate) if instantiate is not None else (False,) * len(closed.out_avals)
    key = ("split", unknown, wanted, local.context.key)
    return closed.derive(key, lambda: _split(closed, unknown, wanted))


def _split(closed: ClosedJaxpr, unknown: tuple, wanted: tuple) -> SplitProgram:
    context = local.context
    saved = context.trace, context.source, context.scope
    outer = JaxprTrace(saved[0], closed.jaxpr.debug_info)
    inner = PartialTrace(outer)
    try:
        context.source, context.scope = None, ""
        args = [
            (inner if flag else outer).new_arg(aval)
            for aval, flag in zip(closed.in_avals, unknown, strict=True)
        ]
        context.trace = inner
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        out_unknown = [flag or inner.is_unknown(x) for x, flag in zip(outs, wanted, strict=True)]
        known_outs, unknown_outs = partition(outs, out_unknown)
        program = inner.closed(unknown_outs)
        context.trace = outer
        inputs = [x for x, flag in zip(args, unknown, strict=True) if not flag]
        return _assemble(outer, inputs, known_outs, program, out_unknown)
    finally:
        inner.end()
        outer.end()
        context.trace, context.source, context.scope = saved


def _assemble(outer, inputs, known_outs, program: ClosedJaxpr, out_unknown) -> SplitProgram:
    jaxpr = program.jaxpr
    used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), instantiate=True)[0]
    read = {v for eqn in used.eqns for v in eqn.invars}
    read.update(used.outvars)
    position = {id(x._var): index for index, x in enumerate(inputs)}
    residuals, sources, extra, constants = [], [], [], []
    for var, value in zip(jaxpr.constvars, program.consts, strict=True):
        if var not in read:
            continue
        if type(value) is StagedTracer and value._trace is outer:
            residuals.append(var)
            index = position.setdefault(id(value._var), len(inputs) + len(extra))
            if index == len(inputs) + len(extra):
                extra.append(value)
            sources.append(index)
        else:
            constants.append((var, value))
    known = outer.closed([*known_outs, *extra])
    unknown = used.replace(
        constvars=[var for var, _ in constants], invars=[*residuals, *used.invars]
    )
    closed = ClosedJaxpr(unknown, [value for _, value in constants])
    return SplitProgram(known, closed, sources, out_unknown)


def permuted(
    closed: ClosedJaxpr, invars: Sequence[Any] | None = None, outvars: Sequence[Any] | None = None
) -> ClosedJaxpr:
    """Return the equations with other inputs and outputs, given as variables of the program."""
    jaxpr = closed.jaxpr
    return ClosedJaxpr(
        Jaxpr(
            jaxpr.constvars,
            jaxpr.invars if invars is None else invars,
            jaxpr.outvars if outvars is None else outvars,
            jaxpr.eqns,
            jaxpr.effects,
            unnamed(jaxpr.debug_info),
        ),
        closed.consts,
    )


def ordered_effects(*jaxprs: Jaxpr) -> list[Any]:
    """The effects among those of these programs for which a token is threaded."""
    return ordered(frozenset().union(*(jaxpr.effects for jaxpr in jaxprs)))


# -- tangents that may be symbolic zeros ------------------------------------------------------------


def settle(jaxpr: ClosedJaxpr, flags: Sequence[Sequence[bool]], derive: Callable) -> tuple:
    """A derived body whose carry has a tangent on input exactly where it has one on output.

    `flags` says which constants, carried values and slices have one; `derive(flags, instantiate)`
    gives the derived program and which of its outputs have one. Which carried values will have one
    is read off the equations, so that in general the body is traced once; where a rule may refuse
    a tangent that is none, it is found by tracing, from below. Returns the derived program, the
    flags of the carry, and those of the outputs.
    """
    consts, floor, xs = flags
    count = len(floor)
    others = [False] * (len(jaxpr.out_avals) - count)
    carry = carry_reached(jaxpr.jaxpr, consts, floor, xs, tangents=True)
    if carry != list(floor) and _may_refuse(jaxpr.jaxpr):
        carry = list(floor)
    grown = False
    while True:
        made, outs = derive([*consts, *carry, *xs], [False] * len(jaxpr.out_avals))
        if list(outs[:count]) == carry:
            return made, carry, list(outs)
        wanted = [a or b for a, b in zip(floor, outs, strict=False)]
        more = any(new and not old for new, old in zip(wanted, carry, strict=True))
        if more:
            carry, grown = [a or b for a, b in zip(wanted, carry, strict=True)], True
        elif wanted == carry or grown:
            made, outs = derive([*consts, *carry, *xs], [*carry, *others])
            return made, carry, list(outs)
        else:
            carry = wanted


def nonzero(tangents: Sequence[Any]) -> list[bool]:
    return [type(t) is not Zero for t in tangents]


def chosen(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [x for x, flag in zip(items, flags, strict=True) if flag]
