"""Where a tracer comes from, in sentences for errors.

`origin` is for errors that arise while the program is recorded, `creation` for those after it.
"""

from __future__ import annotations

from typing import Any

from minijax.core import source
from minijax.core.hooks import hooks
from minijax.core.jaxpr import JaxprEqn, Var
from minijax.core.staging import JaxprTrace, StagedTracer
from minijax.core.trace import Tracer
from minijax.features.slots import slots
from minijax.transforms.batching import BatchTracer
from minijax.transforms.jvp import JVPTracer

__all__ = ["creation", "origin"]

_MOST = 5  # operations that are listed


def origin(tracer: Tracer) -> str:
    """Return the function that is being traced, and the arguments or operations a tracer depends on."""
    seen, staged = _staged(tracer)
    if staged is None:
        return " ".join(seen)
    trace, var = staged._trace, staged._var
    traced = f"The error occurred while tracing the function {_function(trace)}. "
    arguments, first = _dependence(trace, var)
    if arguments:
        names = _listed([_argument(trace, index) for index in arguments])
        traced += (
            "This concrete value was not available in Python because it depends on the value"
            f"{'s' if len(arguments) > 1 else ''} of the argument{names}."
        )
    elif first:
        lines = [
            f"  operation {eqn}\n    from line {source.summarize(eqn.source)}" for eqn in first
        ]
        if len(lines) > _MOST:
            lines[_MOST:] = ["(Additional originating lines are not shown.)"]
        traced += "This value became a tracer due to JAX operations on these lines:\n\n"
        traced += "\n\n".join(lines)
    eqn = _maker(trace, var)
    if eqn is not None:
        seen.append(f"It was made by {eqn.primitive} at {source.summarize(eqn.source)}.")
    return "\n".join(filter(None, (traced, " ".join(seen))))


def creation(tracer: Tracer) -> str:
    """Return the argument that a tracer was, or the line of the operation that made it.

    That of a value that vmap or jvp computes at once is known in strict mode alone.
    """
    seen, staged = _staged(tracer)
    if staged is None:
        place = slots.made_at(_innermost(tracer))
        if place is not None:
            seen.append(f"It was made at {source.summarize(place)}.")
    if staged is not None:
        trace, var = staged._trace, staged._var
        eqn = _maker(trace, var)
        if eqn is not None:
            made = f"It was made by {eqn.primitive} at {source.summarize(eqn.source)}, in"
        elif var in trace.in_vars:
            made = f"It is the argument {_argument(trace, trace.in_vars.index(var))} of"
        else:
            made = "It belongs to"
        seen.append(f"{made} {_function(trace)}.")
    return " ".join(seen)


def _staged(tracer: Tracer) -> tuple[list[str], StagedTracer | None]:
    """Return the recorded tracer that one of vmap or grad is made of, and sentences on the way to it."""
    seen = []
    inner: object = tracer
    while isinstance(inner, (BatchTracer, JVPTracer)):
        if isinstance(inner, BatchTracer):
            seen.append(
                f"It is batched over axis {inner.dim} of {inner.value.aval.str_short()} by vmap."
            )
            inner = inner.value
        else:
            inner = inner.primal if isinstance(inner.primal, Tracer) else inner.tangent
    if isinstance(inner, StagedTracer):
        return seen, inner
    return seen or ["It belongs to a function under grad, jvp, vjp or linearize."], None


def _innermost(value: Any) -> Any:
    """Return the array that a tracer of vmap or jvp is made of."""
    while isinstance(value, (BatchTracer, JVPTracer)):
        value = value.value if isinstance(value, BatchTracer) else value.primal
    return value


def _function(trace: JaxprTrace) -> str:
    info = trace.debug_info
    place = f" at {info.place}" if info.place else ""
    doing = f" for {info.traced_for}" if info.traced_for else ""
    return f"{info.func_name or '<unknown>'}{place}{doing}"


def _argument(trace: JaxprTrace, index: int) -> str:
    names = trace.debug_info.arg_names
    return names[index] if names and index < len(names) else f"number {index}"


def _listed(names: list[str]) -> str:
    *most, last = names
    if not most:
        return f" {last}"
    return f"s {', '.join(most)}{',' if len(most) > 1 else ''} and {last}"


def _outputs(eqn: JaxprEqn) -> list[Var]:
    return [getattr(found, "var", found) for found in eqn.outvars]


def _maker(trace: JaxprTrace, var: Var) -> JaxprEqn | None:
    return next((eqn for eqn in trace.eqns if any(var is out for out in _outputs(eqn))), None)


def _dependence(trace: JaxprTrace, var: Var) -> tuple[list[int], list[JaxprEqn]]:
    """Return the arguments that a variable depends on, and the operations on constants alone."""
    needed, first = {id(var)}, []
    for eqn in reversed(trace.eqns):
        if not needed.isdisjoint(map(id, _outputs(eqn))):
            read = [x for x in eqn.invars if isinstance(x, Var)]
            needed.update(map(id, read))
            if not read:
                first.append(eqn)
    return [i for i, x in enumerate(trace.in_vars) if id(x) in needed], first[::-1]


hooks.fill(origin=origin)
