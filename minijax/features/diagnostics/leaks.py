"""Tracers that outlive their trace: what holds them, and the error for a use."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

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
    if ended() is None:
        return
    gc.collect()  # cycles that nothing holds
    trace = ended()
    if trace is None:
        return
    tracers = leaked(trace)
    if tracers:
        del tracers[5:]
        shown = " ".join([f"{x.described()}: {creation(x)}" for x in tracers])
        holders = dict.fromkeys([_holder(x, tracers) for x in tracers])
        kept = " and ".join(filter(None, holders)) or (
            "something outside of the traced function (a global, an attribute, a closure, a list)"
        )
        raise Exception(
            f"Leaked trace {type(trace).__name__}. Leaked tracer(s): {shown} What keeps them is "
            f"{kept}: return values instead."
        )


def leaked(trace: Trace) -> list[Tracer]:
    """The tracers of a trace that something still holds."""
    return [x for x in gc.get_referrers(trace) if isinstance(x, Tracer) and x._trace is trace]


def _holder(value: Any, ours: list) -> str:
    """Return the variable, attribute or global that holds a value, also within containers, or "".

    `ours` is the list that the caller has of it.
    """
    path, seen = "", {id(ours)}
    while id(value) not in seen:
        seen.add(id(value))
        referrers = [x for x in gc.get_referrers(value) if id(x) not in seen]
        for holder in referrers:
            if type(holder) is CellType:
                found = _closure(holder, path)
                if found:
                    return found
            name = _name_within(holder, value)
            if name is None:
                continue
            if type(holder) is dict and isinstance(name, str):
                owner = next(filter(_has(name, value), gc.get_referrers(holder)), None)
            else:
                owner = holder if _has(name, value)(holder) else None
            if isinstance(owner, ModuleType):
                return f"the global `{name}{path}` of {owner.__name__}"
            if owner is not None:
                kind = owner if isinstance(owner, type) else type(owner)
                return f"the attribute `{name}{path}` of {kind.__qualname__}"
            value, path = holder, f"[{name!r}]{path}"
            break
        else:
            value = next((x for x in referrers if isinstance(x, Tracer)), value)
        del referrers
    return ""


def _name_within(holder: Any, value: Any) -> Any:
    """The key, index or attribute under which something holds a value."""
    if isinstance(holder, (list, tuple)):
        pairs = enumerate(holder)
    elif isinstance(holder, (FrameType, FunctionType, CellType, Tracer, Trace)):
        return None
    else:
        pairs = (holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})).items()
    return next((name for name, x in list(pairs) if x is value), None)


def _has(name: Any, value: Any) -> Callable[[Any], bool]:
    return lambda x: getattr(x, "__dict__", {}).get(name) is value


def _closure(cell: CellType, path: str) -> str:
    """The variable of a function's closure that a cell is."""
    for closure in gc.get_referrers(cell):
        for f in gc.get_referrers(closure) if type(closure) is tuple else ():
            if type(f) is FunctionType and f.__closure__ is closure:
                code = f.__code__
                name = code.co_freevars[closure.index(cell)]
                return (
                    f"`{name}{path}`, which {f.__qualname__} "
                    f"({code.co_filename}:{code.co_firstlineno}) closes over"
                )
    return ""


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
