"""Tracers that outlive their trace: what holds them, and the error for a use."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial

from minijax import errors
from minijax.config import local
from minijax.core.hooks import hooks
from minijax.core.trace import Trace, Tracer
from minijax.features.diagnostics.origins import creation

__all__ = ["escaped_tracer", "leaked", "watch_leaks"]


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
        shown = " ".join(f"{x.described()}: {creation(x)}" for x in tracers[:5])
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
    parts = f"{begin}{how} It is {tracer.described()}.", creation(tracer), advice
    return errors.UnexpectedTracerError(" ".join(filter(None, parts)))


hooks.fill(escaped_tracer=escaped_tracer, watch_leaks=watch_leaks)
