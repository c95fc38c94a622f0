"""Tracers that outlive their trace: what holds them, where they are from, the error for a use."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial

from minijax import errors
from minijax.config import local
from minijax.core import source
from minijax.core.hooks import hooks
from minijax.core.jaxpr import Var
from minijax.core.staging import JaxprTrace
from minijax.core.trace import Trace, Tracer

__all__ = ["escaped_tracer", "leaked", "origin", "watch_leaks"]


def watch_leaks(trace: Trace) -> Callable[[], None]:
    """Return what to call once a trace has ended and all that its maker held of it is dropped.

    Under the setting `check_tracer_leaks` that raises if something else still holds tracers of it.
    """
    if not local.context.settings.check_tracer_leaks:
        return _nothing
    return partial(_report_leaks, weakref.ref(trace))


def _nothing() -> None:
    pass


def _report_leaks(ended: weakref.ref[Trace]) -> None:
    gc.collect()
    trace = ended()
    if trace is None:
        return
    tracers = leaked(trace)
    if tracers:
        shown = " ".join(f"{x.described()}: {x.origin()}" for x in tracers[:5])
        raise Exception(
            f"Leaked trace {type(trace).__name__}. Leaked tracer(s): {shown} Something outside of "
            "the traced function (a global, an attribute, a closure, a list) keeps them: return "
            "values instead."
        )


def leaked(trace: Trace) -> list[Tracer]:
    """The tracers of a trace that something still holds."""
    return [x for x in gc.get_referrers(trace) if isinstance(x, Tracer) and x._trace is trace]


def escaped_tracer(tracer: Tracer) -> errors.UnexpectedTracerError:
    """Return the error for a tracer whose trace has ended, or is another thread's."""
    begin = (
        "Encountered an unexpected tracer. A function transformed by JAX had a side effect, "
        "allowing for a reference to an intermediate value with type "
        f"{tracer.aval.str_short()} to escape the scope of the transformation: "
    )
    if tracer._trace.alive:
        how = "it was used on another thread than the one that traces the function."
        advice = "Trace on one thread: start threads outside of the function, and pass them arrays."
    else:
        how = "it leaked, and was used after its end."
        advice = (
            "A function under jit, grad, vmap or another transformation may not store its "
            "values in globals, attributes or closures: return them instead. To find the place, "
            "set minijax.config.update('jax_check_tracer_leaks', True)."
        )
    parts = f"{begin}{how} It is {tracer.described()}.", tracer.origin(), advice
    return errors.UnexpectedTracerError(" ".join(filter(None, parts)))


def origin(trace: JaxprTrace, var: Var) -> str:
    """Return where `var` comes from: an argument by name, or the line of the equation that made it."""
    name = trace.debug_info.func_name or "the traced function"
    doing = f" for {trace.debug_info.traced_for}" if trace.debug_info.traced_for else ""
    for index, candidate in enumerate(trace.in_vars):
        if candidate is var:
            names = trace.debug_info.arg_names
            which = names[index] if names and index < len(names) else f"number {index}"
            return f"It is the argument {which} of {name}, traced{doing}{_defined(trace)}."
    for eqn in trace.eqns:
        if any(var in (found, getattr(found, "var", None)) for found in eqn.outvars):
            place = source.summarize(eqn.source)
            return f"It was made by {eqn.primitive} at {place}, in {name}, traced{doing}."
    return f"It belongs to {name}, traced{doing}."


def _defined(trace: JaxprTrace) -> str:
    place = trace.debug_info.place
    return f", defined at {place}" if place else ""


hooks.fill(escaped_tracer=escaped_tracer, origin=origin, watch_leaks=watch_leaks)
