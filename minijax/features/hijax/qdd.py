"""The states of values that change in place: what is known of one at a point of a program."""

from __future__ import annotations

import weakref
from typing import Any

from minijax.core.staging import StagedTracer
from minijax.features.hijax.tracers import HiTracer
from minijax.features.references.cells import as_seen

__all__ = ["MutableState", "cur_qdd", "hi_types", "state_now", "state_of", "within"]

hi_types: set[type] = set()  # the classes that libraries registered


class MutableState:
    """The state of a value that changes, while a program is recorded: at the start, and now."""

    __slots__ = ("__weakref__", "cur_val", "init_val")

    def __init__(self, init_val: Any, cur_val: Any = None):
        self.init_val = init_val
        self.cur_val = init_val if cur_val is None else cur_val

    def update(self, val: Any) -> None:
        self.cur_val = val

    def __repr__(self) -> str:
        return f"MutableState({self.init_val} -> {self.cur_val})"


_states: weakref.WeakKeyDictionary[Any, MutableState] = weakref.WeakKeyDictionary()


def state_of(var: Any) -> MutableState:
    """The state of a variable of a type that changes, which the rules of primitives update."""
    state = _states.get(var)
    if state is None:
        state = _states[var] = MutableState(var.aval.qdd)
    return state


def within(x: Any) -> Any:
    """An object of a registered class as the current trace is to see it."""
    return as_seen(x) if type(x) in hi_types else x


def cur_qdd(x: Any) -> Any:
    """The state of now of a value that changes: of an object, or of a tracer of one."""
    return state_now(within(x))


def state_now(x: Any) -> Any:
    """Return the state of an object itself, or that of a tracer of one."""
    while isinstance(x, HiTracer) and not isinstance(x, StagedTracer):
        x = x.beneath
    if isinstance(x, StagedTracer):
        return state_of(x._var).cur_val
    if type(x) in hi_types:
        return x.cur_qdd() if hasattr(type(x), "cur_qdd") else x.type_state()
    raise TypeError(f"cur_qdd takes a value of a type that changes in place, got {x!r}.")
