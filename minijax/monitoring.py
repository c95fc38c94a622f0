"""`minijax.monitoring`: events that a program or the library records, and who listens to them.

The library records how long each trace, lowering and compilation takes, and what the disk cache was
asked for, under the names that upstream uses, and logs it; an event that nobody listens to costs a
test of an empty list.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from minijax.config import local
from minijax.tracebacks import public

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs", "record_event_time_span",
    "record_scalar", "register_event_duration_secs_listener", "register_event_listener",
    "register_event_time_span_listener", "register_scalar_listener",
    "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]  # fmt: skip

_events: list[Callable] = []
_durations: list[Callable] = []
_spans: list[Callable] = []
_scalars: list[Callable] = []

TRACED = "/jax/core/compile/jaxpr_trace_duration"
LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"

_log = logging.getLogger("minijax")
_ENDED = {  # what is logged
    TRACED: "Finished tracing %s for jit in %.9f sec",
    LOWERED: "Finished jaxpr to MLIR module conversion %s in %.9f sec",
    COMPILED: "Finished XLA compilation of %s in %.9f sec",
}


def _call(listeners: list[Callable], *args: Any, **kwargs: Any) -> None:
    for listener in tuple(listeners):
        listener(*args, **kwargs)


def _forget(listeners: list[Callable], callback: Callable) -> None:
    # Upstream raises an AssertionError for a callback that does not listen.
    assert callback in listeners, f"{callback!r} is not registered"
    listeners.remove(callback)


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell those who listen to events that it happened."""
    _call(_events, event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell those who listen to durations how many seconds it took."""
    _call(_durations, event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tell those who listen to time spans when it began and ended, in seconds since the epoch."""
    _call(_spans, event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell those who listen to scalars a value."""
    _call(_scalars, event, value, **kwargs)


def register_event_listener(callback: Callable) -> None:
    """Call `callback(event, **kwargs)` for each event."""
    _events.append(callback)


def register_event_duration_secs_listener(callback: Callable) -> None:
    """Call `callback(event, duration, **kwargs)` for each duration."""
    _durations.append(callback)


def register_event_time_span_listener(callback: Callable) -> None:
    """Call `callback(event, start_time, end_time, **kwargs)` for each time span."""
    _spans.append(callback)


def register_scalar_listener(callback: Callable) -> None:
    """Call `callback(event, value, **kwargs)` for each scalar."""
    _scalars.append(callback)


def unregister_event_listener(callback: Callable) -> None:
    """No longer call it for events. AssertionError unless it was registered."""
    _forget(_events, callback)


def unregister_event_duration_listener(callback: Callable) -> None:
    """No longer call it for durations. AssertionError unless it was registered."""
    _forget(_durations, callback)


def unregister_event_time_span_listener(callback: Callable) -> None:
    """No longer call it for time spans. AssertionError unless it was registered."""
    _forget(_spans, callback)


def unregister_scalar_listener(callback: Callable) -> None:
    """No longer call it for scalars. AssertionError unless it was registered."""
    _forget(_scalars, callback)


def clear_event_listeners() -> None:
    """Forget all listeners."""
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()


def begin_stage(event: str, fun_name: str, told: bool = True) -> float:
    """Return the time, in seconds since the epoch, at which a stage begins, and record it if `told`."""
    began = time.time()
    if _scalars and told:
        record_scalar(event, began, fun_name=fun_name)
    return began


def end_stage(event: str, began: float, fun_name: str, told: bool = True) -> None:
    """Record that a stage which began at this time has ended, if `told`."""
    if not told:
        return
    log(_ENDED[event], fun_name, time.time() - began)
    if _durations or _spans:
        ended = time.time()
        record_event_duration_secs(event, ended - began, fun_name=fun_name)
        record_event_time_span(event, began, ended, fun_name=fun_name)


def log(message: str, *args: Any, loud: bool | None = None) -> None:
    """Log a message about a compilation: as a warning if `loud`, by default under `log_compiles`,
    else at level DEBUG.
    """
    loud = local.context.settings.log_compiles if loud is None else loud
    _log.log(logging.WARNING if loud else logging.DEBUG, message, *args, stacklevel=2)


def log_compiling(name: str, signatures: Sequence[Any], asked: Sequence[Any] | None) -> None:
    """Say what is about to be compiled, for arguments of these types and with these shardings."""
    if local.context.settings.log_compiles or _log.isEnabledFor(logging.DEBUG):
        types = tuple(one.aval for one in signatures)
        words = [
            "UnspecifiedValue" if one is None else repr(one) for one in asked or [None] * len(types)
        ]
        mapping = ", ".join(words) + "," * (len(words) == 1)
        told = "Compiling jit(%s) with global shapes and types %s. Argument mapping: (%s)."
        log(told, name, types, mapping)


@cache
def record_first(event: str) -> None:
    """Record an event of a kind that is recorded once in a process."""
    record_event(event)


__dir__ = public(__name__)
