"""The rules of primitives that call programs, such as `jit_p`.

Each of them makes another program of the one called, by `jvp_jaxpr`, `batch_jaxpr` and the like, which
is kept with it, and applies the primitive to that. Params that depend on the program are `derived`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.jaxpr import ClosedJaxpr, dce_jaxpr, eval_jaxpr
from minijax.core.primitive import CallPrimitive
from minijax.transforms.batching import batch_jaxpr
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.tangents import (
    Zero,
    cotangents_of,
    is_undefined,
    kinds_of,
    spread_tangents,
    sums_among,
)
from minijax.transforms.transpose import transpose_jaxpr

__all__ = ["agreeing", "calls_program", "needed"]

Places = Sequence[int | None]


def agreeing(programs: Sequence[ClosedJaxpr], derive: Callable, count: int) -> tuple:
    """Return a derived program for each of the branches of a choice, all with the same results.

    `derive(program, wanted)` returns it, and which of `count` results it has; it is called again for
    the branches that lack a result of another one.
    """
    found = [derive(program, [False] * count) for program in programs]
    union = [any(flags) for flags in zip(*(flags for _, flags in found), strict=True)]
    made = [
        other if list(flags) == union else derive(program, union)[0]
        for program, (other, flags) in zip(programs, found, strict=True)
    ]
    return tuple(made), union


def calls_program(p: CallPrimitive, derived: Callable[..., dict] | None = None) -> None:
    """Set the rules of a primitive that calls a program.

    The rules for jvp and dce also hold for a primitive that calls one of several programs.

    `derived(params, made, outs, ins)` returns the params for `made`, a program derived from the one in
    `params`. `outs` has, for each result of `made`, the index of the result of the other program that
    it is, or is the tangent of; None for other results. `ins` says which arguments `made` still takes;
    it is None if it takes other ones.
    """
    calls, name = p.programs, p.programs.result
    if derived is None:
        derived = lambda params, made, outs, ins: {**params, name: made}

    def bind(params: dict, made: ClosedJaxpr, args: Sequence[Any], outs: Places, ins: Any = None):
        return p.bind(*args, **derived(params, made, outs, ins))

    p.derived = derived

    @p.jvp
    def _(primals, tangents, **params):
        held = params[name]
        steps = calls.given(name, calls.groups(tangents, params)) if calls.counts else tangents
        flags = [type(t) is not Zero for t in steps]
        avals = (held[0] if type(held) is tuple else held).out_avals
        count = len(avals)
        if type(held) is tuple:
            derive = lambda program, wanted: jvp_jaxpr(program, flags, wanted)
            made, nonzeros = agreeing(held, derive, count)
        else:
            made, nonzeros = jvp_jaxpr(held, flags)
        given = [t for t in steps if type(t) is not Zero]
        outs = [*range(count), *_marked(nonzeros)]
        results = bind(params, made, [*primals, *given], outs)
        return results[:count], spread_tangents(results[count:], nonzeros, avals)

    @p.linearize
    def _(trace, primals, tangents, **params):
        jaxpr = params["jaxpr"]
        split = linearize_jaxpr(jaxpr, [type(t) is not Zero for t in tangents])
        count = len(jaxpr.out_avals)
        extra = len(split.primal.out_avals) - count
        results = bind(params, split.primal, primals, [*range(count), *[None] * extra])
        residuals = split.residuals(primals, results[count:])
        given = [t for t in tangents if type(t) is not Zero]
        out = []
        if split.linear.out_avals:
            of_linear = derived(params, split.linear, _marked(split.out_nonzeros), None)
            out = trace.record(p, [*residuals, *given], of_linear)
        return results[:count], spread_tangents(out, split.out_nonzeros, jaxpr.out_avals)

    @p.partial_eval
    def _(trace, args, params):
        if all(trace.is_unknown(a) for a in args):
            return trace.record(p, args, params)
        closed = params["jaxpr"]
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    @p.transpose
    def _(cts, *args, **params):
        linear = [is_undefined(a) for a in args]
        summed = sums_among(args)
        made, out_nonzeros = transpose_jaxpr(params["jaxpr"], linear, kinds_of(cts), summed)
        known = [a for a, lin in zip(args, linear, strict=True) if not lin]
        given = [ct for ct in cts if type(ct) is not Zero]
        sums = [a.sum for a, flag in zip(args, summed, strict=True) if flag]
        (made,), given = needed((made,), [*known, *given, *sums])
        results = bind(params, made, given, [None] * len(made.out_avals))
        avals = [a.aval for a in args if is_undefined(a)]
        return cotangents_of(args, spread_tangents(results, out_nonzeros, avals))

    @p.batch_axis
    def _(axis, args, dims, **params):
        made, out_dims = batch_jaxpr(params["jaxpr"], axis, dims)
        outs = range(len(made.out_avals))
        return bind(params, made, args, outs, [True] * len(args)), out_dims

    @p.dce
    def _(used, eqn):
        made, ins = _used_parts(calls.held(name, eqn.params), used)
        if not any(used) and not any(program.effects for program in made):
            return [False] * len(eqn.invars), None
        ins = [*[True] * (len(eqn.invars) - len(ins)), *ins]  # the index of a choice is in front
        made = made if type(eqn.params[name]) is tuple else made[0]
        params = derived(eqn.params, made, _marked(used), ins)
        invars = [v for v, keep in zip(eqn.invars, ins, strict=True) if keep]
        outvars = [v for v, keep in zip(eqn.outvars, used, strict=True) if keep]
        return ins, eqn.replace(invars=invars, outvars=outvars, params=params)


def needed(programs: tuple, args: Sequence[Any]) -> tuple[tuple, list[Any]]:
    """Return programs without the inputs that none of them reads, and the arguments that are left."""
    made, ins = _used_parts(programs, [True] * len(programs[0].out_avals))
    return programs if all(ins) else made, [x for x, used in zip(args, ins, strict=True) if used]


def _used_parts(programs: tuple, used: Sequence[bool]) -> tuple[tuple, list[bool]]:
    """Return the parts of programs that the used results need, and the inputs that these take."""

    def make():
        found = [dce_jaxpr(program.jaxpr, used) for program in programs]
        kept = [any(flags) for flags in zip(*(flags for _, flags in found), strict=True)]
        if len(programs) > 1:
            found = [dce_jaxpr(program.jaxpr, used, kept) for program in programs]
        pairs = zip(found, programs, strict=True)
        return tuple([ClosedJaxpr(jaxpr, other.consts) for (jaxpr, _), other in pairs]), kept

    return programs[0].derive(("dce", tuple(used), programs[1:]), make)


def _marked(which: Sequence[bool]) -> list[int]:
    return [index for index, marked in enumerate(which) if marked]
