"""Traces and tracers, on which every transform is built.

There is no stack of traces: the current trace is `local.context.trace` (the state of the thread, see
`config.Context`), each trace holds the one it was made in (`parent`), and each tracer knows its trace.
A trace gives meaning to a primitive by `process`; while it works on the values within its tracers it
makes its parent current.
"""

from __future__ import annotations

import operator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import numpy as np

from minijax.config import local, set_outermost
from minijax.core.array import Array
from minijax.core.avals import opaque_types
from minijax.core.hooks import hooks
from minijax.core.primitive import Primitive

__all__ = [
    "EvalTrace", "Trace", "Tracer", "check_alive", "current", "eval_trace", "is_constant", "set_trace",
]  # fmt: skip


class Trace:
    """The base class of interpreters: one instance for each run of a transform.

    It is `alive` until its transform has ended. An interpreter overrides `process`.
    """

    __slots__ = ("__weakref__", "alive", "parent", "thread")
    has_cells = False  # whether references are objects there, which hold their value of now
    eager = False  # whether operations are run at once, and nothing is traced
    maps = False  # whether it computes the elements along an axis together
    adjective, other = "traced", "an outer"  # how messages call its values, and values of others

    def __init__(self, parent: Trace | None = None) -> None:
        self.parent = parent
        self.alive = True
        self.thread = get_ident()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Apply a primitive to values and tracers, of this trace and of those outside of it.

        What stands here is for the traces of libraries, which follow upstream: they override
        `process_primitive`, which is called with the outermost trace as the current one.
        """
        with set_trace(local.context.outermost):
            return primitive.hand_to(self, args, params)

    def process_primitive(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must override the method `process`.")

    def pass_to_parent(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Apply a primitive that none of this trace's tracers reaches, in the parent."""
        context = local.context
        saved = context.trace
        context.trace = self.parent
        try:
            return self.parent.process(primitive, args, params)
        finally:
            context.trace = saved

    def end(self) -> None:
        self.alive = False


class EvalTrace(Trace):
    """The outermost trace: runs a primitive at once. `config.set_outermost` may put another one there."""

    __slots__ = ()
    eager = True


hooks.method("run_primitive", EvalTrace, "process")  # `arrays.dispatch.run_primitive`


eval_trace = EvalTrace(None)
set_outermost(eval_trace)


def current() -> Trace:
    return local.context.trace


@contextmanager
def set_trace(trace: Trace):
    """Make `trace` current while the context lasts."""
    context = local.context
    saved = context.trace
    context.trace = trace
    try:
        yield trace
    finally:
        context.trace = saved


class Tracer(Array):
    """Stands for an array in a trace."""

    __slots__ = ("_trace", "aval")

    def __init__(self, trace: Trace, aval: Any) -> None:
        self._trace, self.aval = trace, aval

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"

    def described(self) -> str:
        """The tracer in messages: without values that would have to be computed for them."""
        return repr(self)

    def origin(self) -> str:
        """Sentences on where this tracer comes from, for error messages."""
        return hooks.origin(self)

    def concrete(self) -> Any:
        """The value, where the trace knows it (as under an un-jitted `grad`); else None."""
        return None

    def value_for(self, asked: str) -> Any:
        """The value, or an error that says what `asked` for it if the trace does not know it."""
        value = self.concrete()
        if value is None:
            raise hooks.unknown_value(self, asked)
        return value

    def __bool__(self) -> Any:
        return bool(self.value_for("bool"))

    def __index__(self) -> Any:
        return operator.index(self.value_for("index"))

    def __int__(self) -> Any:
        return int(self.value_for("int"))

    def __float__(self) -> Any:
        raise hooks.unknown_value(self, "float")  # it would lose the derivative

    def __complex__(self) -> Any:
        raise hooks.unknown_value(self, "complex")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise hooks.unknown_value(self, "__array__")

    def item(self, *args: Any) -> Any:
        return np.asarray(self.value_for("item")).item(*args)

    def tolist(self) -> Any:
        raise hooks.unknown_value(self, "tolist")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def is_constant(x: Any) -> bool:
    """Whether a program that is kept may hold this value: an array that is not being traced."""
    return not isinstance(x, Tracer) and type(x) not in opaque_types


def check_alive(tracer: Tracer) -> None:
    """UnexpectedTracerError if the trace of this tracer has ended, or is another thread's."""
    if not tracer._trace.alive or tracer._trace.thread != get_ident():
        raise hooks.escaped_tracer(tracer)
