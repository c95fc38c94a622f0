"""Rules that `scan` and `while` share: they follow from how operands map to the programs of a loop.

A loop carries tangents beside values, and is left without what nothing reads. See `Programs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from minijax.config import local
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, Var, dce_jaxpr
from minijax.core.primitive import CallPrimitive, Programs
from minijax.lax.control_flow.dependence import (
    chosen,
    needed,
    nonzero,
    permuted,
    settle,
    split_list,
)
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import spread_tangents

__all__ = ["loops", "with_tangents"]


def loops(p: CallPrimitive) -> None:
    """Set the jvp rule of a loop, and the one that leaves out what nothing reads."""

    @p.jvp
    def _(primals, tangents, **params):
        args, changed, carry, flags = with_tangents(p, primals, tangents, params)
        outs = p.bind(*args, **changed)
        avals = p.rule_shape(**params)
        ys = len(avals) - len(carry)
        out, out_dot, ys, ys_dot = split_list(outs, len(carry), sum(carry), ys)
        return [*out, *ys], spread_tangents([*out_dot, *ys_dot], flags, avals)

    p.dce(lambda used, eqn: _without_unused(p.programs, used, eqn))


def _programs(params: dict, calls: Programs) -> tuple[dict[str, ClosedJaxpr], ClosedJaxpr, int]:
    """The programs that decide, the body, and which of the groups it takes is carried."""
    *deciding, result = calls.inputs
    place = calls.inputs[result].index(calls.carried)
    return {name: params[name] for name in deciding}, params[result], place


def _sizes(calls: Programs, groups: Sequence[Sequence[Any]]) -> dict[str, int]:
    """The params that say how many operands there are in each group."""
    return {n: len(part) for n, part in zip(calls.counts, groups, strict=False) if type(n) is str}


# -- derivatives ------------------------------------------------------------------------------------


def with_tangents(
    p: CallPrimitive, primals: Sequence[Any], tangents: Sequence[Any], params: dict
) -> tuple[list[Any], dict, list[bool], list[bool]]:
    """Return the operands and params of the loop that carries tangents too.

    Then which carried values have one, and which results.
    """
    calls = p.programs
    numbers = calls.inputs[calls.result]
    groups, dots = calls.groups(primals, params), calls.groups(tangents, params)
    found = [nonzero(dots[n]) for n in numbers]
    programs, carry, flags = _programs_with_tangents(calls, params, found)
    for n, has in zip(numbers, found, strict=True):
        kept = carry if n == calls.carried else has
        steps = chosen(dots[n], kept)
        groups[n] += map(instantiate, steps) if n == calls.carried else steps
    return [*chain(*groups)], {**params, **programs, **_sizes(calls, groups)}, carry, flags


def _programs_with_tangents(calls: Programs, params: dict, found: list) -> tuple:
    """The programs on pairs of primals and tangents, arranged as the primitive takes them."""
    deciding, body, place = _programs(params, calls)

    def make():
        flags = [*found, *[[]] * (3 - len(found))]
        derive = lambda nonzeros, want: jvp_jaxpr(body, nonzeros, want)
        made, carry, out_flags = settle(body, flags, derive)
        counts = [len(part) for part in found]
        dots = [sum(carry) if n == place else sum(part) for n, part in enumerate(found)]
        parts = split_list(made.jaxpr.invars, *counts, *dots[:-1])
        pairs = zip(parts[: len(found)], parts[len(found) :], strict=True)
        ys = len(body.out_avals) - len(carry)
        out, y, d_out, d_y = split_list(made.jaxpr.outvars, len(carry), ys, sum(carry))
        order = [v for values, steps in pairs for v in (*values, *steps)]
        programs = {calls.result: permuted(made, order, [*out, *d_out, *y, *d_y])}
        carried = chosen(body.out_avals[: len(carry)], carry)
        steps = [aval.to_tangent_aval() for aval in carried]
        for name, closed in deciding.items():  # what is carried comes last
            programs[name] = permuted(closed, [*closed.jaxpr.invars, *map(Var, steps)])
        return programs, carry, out_flags

    key = ("loop jvp", *deciding.values(), *map(tuple, found), local.context.key)
    return body.derive(key, make)


# -- dead code ----------------------------------------------------------------------------------------


def _without_unused(calls: Programs, used: Sequence[bool], eqn: JaxprEqn) -> tuple:
    deciding, body, place = _programs(eqn.params, calls)
    if not any(used) and not any(closed.effects for closed in (*deciding.values(), body)):
        return [False] * len(eqn.invars), None
    groups = calls.groups(eqn.invars, eqn.params)
    count = len(groups[calls.carried])
    sizes = [len(groups[n]) for n in calls.inputs[calls.result]]

    def make():
        carry, ys = split_list(used, count)
        for closed in deciding.values():
            tested = needed(closed.jaxpr, [True])
            carry = [a or b for a, b in zip(carry, tested[len(tested) - count :], strict=True)]
        while True:
            inner, used_inputs = dce_jaxpr(body.jaxpr, [*carry, *ys])
            kept = split_list(used_inputs, *sizes[:-1])
            grown = [a or b for a, b in zip(carry, kept[place], strict=True)]
            if grown == carry:
                break
            carry = grown
        # A carried value that is only given out, never read, is still an input of the loop.
        kept[place] = carry
        inner, _ = dce_jaxpr(body.jaxpr, [*carry, *ys], instantiate=[*chain(*kept)])
        programs = {calls.result: ClosedJaxpr(inner, body.consts)}
        for name, closed in deciding.items():
            own = len(closed.in_avals) - count
            programs[name] = permuted(closed, chosen(closed.jaxpr.invars, [True] * own + carry))
        return programs, kept, [*carry, *ys]

    key = ("loop dce", *deciding.values(), tuple(used), *sizes)
    programs, kept, outs = body.derive(key, make)
    flags = [[True] * len(group) for group in groups]
    for n, part in zip(calls.inputs[calls.result], kept, strict=True):
        flags[n] = part
    groups = [chosen(group, part) for group, part in zip(groups, flags, strict=True)]
    new = eqn.replace(
        invars=[*chain(*groups)],
        outvars=chosen(eqn.outvars, outs),
        params={**eqn.params, **programs, **_sizes(calls, groups)},
    )
    return [*chain(*flags)], new
