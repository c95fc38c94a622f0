"""Linearizing: run the primal computation once, recording the linear part.

A `JVPTrace` over a `PartialTrace`: what depends on primals alone is computed at once in the outer
trace, what depends on tangents is recorded, and the primal values that it reads (residuals) become
constants of the linear program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.arguments.functions import unnamed
from minijax.config import local
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var, dce_jaxpr, eval_jaxpr
from minijax.core.source import joined, relative
from minijax.core.staging import JaxprTrace, PartialTrace, StagedTracer
from minijax.core.trace import Trace
from minijax.transforms.jvp import JVPTrace, unpair
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import Zero, is_float0, zero_like

__all__ = ["LinearizedJaxpr", "linearize_flat", "linearize_jaxpr", "linearized"]


def linearize_flat(
    fun: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    nonzeros: Sequence[bool] | None = None,
    count: Callable[[], int] | None = None,
    kind: str = "linearize",
) -> tuple[list[Any], list[bool], ClosedJaxpr]:
    """Return results, which of them have a nonzero tangent, and the linear program of those tangents.

    The program takes the tangents of the inputs that `nonzeros` marks (by default those with a
    tangent space) and gives the nonzero ones of the results; its constants are the residuals.

    - `count`: called when `fun` has returned; only so many results are differentiated, and the others
      are auxiliary
    - `kind`: "vjp" if the program will be transposed, for primitives of libraries
    """
    context = local.context
    outer, saved_source, scope = context.trace, context.source, context.scope
    linear = PartialTrace(outer, DebugInfo(kind))
    trace = JVPTrace(linear)
    context.trace, context.scope = trace, joined(scope, "jvp()")
    try:
        args = []
        for index, x in enumerate(primals):
            zero = zero_like(x)
            if is_float0(zero.aval) or (nonzeros is not None and not nonzeros[index]):
                args.append(x)
            else:
                args.append(trace.pair(x, linear.new_arg(zero.aval)))
        outs, tangents = unpair(trace, fun(*args))
        tangents = tangents if count is None else tangents[: count()]
        live = [type(t) is not Zero for t in tangents]
        context.trace = outer
        closed = linear.closed([t for t in tangents if type(t) is not Zero])
    finally:
        trace.end()
        linear.end()
        context.trace, context.source, context.scope = outer, saved_source, scope
    if scope:
        for eqn in closed.jaxpr.eqns:
            eqn.scope = relative(scope, eqn.scope)
    checks = hooks.watch_leaks(trace), hooks.watch_leaks(linear)
    del trace, linear, args, tangents
    for check in checks:
        check()
    return outs, live, closed


class LinearizedJaxpr:
    """A program split for linearization.

    - `primal`: (*inputs) -> (*outputs, *residuals that are not inputs)
    - `linear`: (*residuals, *nonzero tangents in) -> (*nonzero tangents out)
    - `residual_sources`: for each residual of `linear`, the index of the input that it is, or
      the number of inputs plus its index among the residuals that `primal` gives
    - `out_nonzeros`: which outputs have a tangent
    """

    __slots__ = ("linear", "out_nonzeros", "primal", "residual_sources")

    def __init__(self, primal, linear, residual_sources, out_nonzeros):
        self.primal: ClosedJaxpr = primal
        self.linear: ClosedJaxpr = linear
        self.residual_sources: list[int] = residual_sources
        self.out_nonzeros: list[bool] = out_nonzeros

    def residuals(self, inputs: Sequence[Any], extra: Sequence[Any]) -> list[Any]:
        """The arguments that `linear` takes before the tangents."""
        pool = [*inputs, *extra]
        return [pool[index] for index in self.residual_sources]


def linearize_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], instantiate_outs: Sequence[bool] | bool = False
) -> LinearizedJaxpr:
    """Split a program into its primal part and the linear program on its tangents."""
    nonzeros = tuple(nonzeros)
    if isinstance(instantiate_outs, bool):
        instantiate_outs = (instantiate_outs,) * len(closed.out_avals)
    key = ("linearize", nonzeros, tuple(instantiate_outs))
    return closed.derive(key, lambda: linearized(closed, nonzeros, instantiate_outs))


def linearized(closed, nonzeros, wanted) -> LinearizedJaxpr:
    """Split a program anew; `linearize_jaxpr` keeps the result."""
    context = local.context
    saved = context.trace, context.source, context.scope
    outer = JaxprTrace(saved[0], unnamed(closed.jaxpr.debug_info))
    linear = PartialTrace(outer, outer.debug_info)
    trace = JVPTrace(linear)
    try:
        context.source, context.scope = None, ""
        inputs = [outer.new_arg(aval) for aval in closed.in_avals]
        args = [
            trace.pair(x, linear.new_arg(x.aval.to_tangent_aval())) if nz else x
            for x, nz in zip(inputs, nonzeros, strict=True)
        ]
        context.trace = trace
        outs, tangents = unpair(trace, eval_jaxpr(closed.jaxpr, closed.consts, *args))
        context.trace = linear
        tangents = [instantiate(t) if keep else t for t, keep in zip(tangents, wanted, strict=True)]
        context.trace = outer
        live = [type(t) is not Zero for t in tangents]
        program = linear.closed([t for t in tangents if type(t) is not Zero])
        used = dce_jaxpr(program.jaxpr, [True] * sum(live), instantiate=True)[0]
        return _assemble(outer, inputs, outs, program, used, live)
    finally:
        for each in (trace, linear, outer):
            each.end()
        context.trace, context.source, context.scope = saved


def _assemble(
    outer: Trace, inputs: list, outs: list, program: ClosedJaxpr, used: Jaxpr, live: list[bool]
) -> LinearizedJaxpr:
    """Make inputs of the residuals that are tracers of the outer trace, and constants of the others.

    A residual that is an input already is no further output of the primal program.
    """
    read = {v for eqn in used.eqns for v in eqn.invars if type(v) is Var}
    read.update(v for v in used.outvars if type(v) is Var)
    position = {id(x._var): index for index, x in enumerate(inputs)}
    residual_vars, sources, extra, constants = [], [], [], []
    for var, value in zip(program.jaxpr.constvars, program.consts, strict=True):
        if var not in read:
            continue
        if type(value) is StagedTracer and value._trace is outer:
            residual_vars.append(var)
            index = position.get(id(value._var))
            if index is None:
                index = position[id(value._var)] = len(inputs) + len(extra)
                extra.append(value)
            sources.append(index)
        else:
            constants.append((var, value))
    primal = outer.closed([*outs, *extra])
    constvars, invars = [var for var, _ in constants], [*residual_vars, *used.invars]
    linear = used.replace(constvars=constvars, invars=invars)
    return LinearizedJaxpr(
        primal, ClosedJaxpr(linear, [value for _, value in constants]), sources, live
    )
