"""Traces and tracers: the machine that every transform is built on.

There is no stack of traces: the current trace is thread-local, each trace holds the one it was made
in (`parent`), and each tracer knows its trace. A trace gives meaning to a primitive by `process`;
while it works on its parent's values it makes the parent current.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np

from minijax import errors
from minijax.config import local, set_outermost
from minijax.core.array import Array
from minijax.core.avals import opaque_types
from minijax.core.hooks import hooks
from minijax.core.primitive import Primitive
from minijax.namespace import named

__all__ = [
    "EvalTrace", "Trace", "Tracer", "check_alive", "current", "ensure_compile_time_eval",
    "eval_context", "eval_trace", "is_constant", "set_trace", "unknown_value", "watch_leaks",
]  # fmt: skip


class Trace:
    """An interpreter that is at work; `alive` until its transform has ended."""

    __slots__ = ("__weakref__", "alive", "parent", "thread")
    has_cells = False  # whether values that change in place are objects there
    maps = False  # whether it evaluates for all positions along an axis at once
    adjective, other = "traced", "an outer"  # what messages call its values, and those of others

    def __init__(self, parent: Trace | None = None) -> None:
        self.parent = parent
        self.alive = True
        self.thread = get_ident()

    main = property(lambda self: self)  # libraries tell levels apart by it

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Apply a primitive. Traces that libraries define have `process_primitive`."""
        return self.process_primitive(primitive, args, params)

    def process_primitive(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must override the method `process`.")

    def pass_to_parent(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Leave the primitive to the parent, which is current meanwhile."""
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
    """The outermost trace: runs a primitive at once."""

    __slots__ = ()


hooks.method("run_primitive", EvalTrace, "process")


eval_trace = EvalTrace(None)
set_outermost(eval_trace)


def watch_leaks(trace: Trace) -> Callable[[], None]:
    """Under `check_tracer_leaks`: what to call once the trace has ended and all that its maker held
    of it is dropped. It raises if something else still holds tracers of the trace.
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


class CompileTimeTrace(Trace):
    """Runs operations on known values at once, and leaves the others to the trace of a tracer."""

    __slots__ = ()

    def process(self, primitive, args, params):
        traces = [x._trace for x in args if isinstance(x, Tracer)]
        chosen = max(traces, key=_depth) if traces else eval_trace
        with set_trace(chosen):
            return chosen.process(primitive, args, params)


def _depth(trace: Trace | None) -> int:
    return 0 if trace is None else 1 + _depth(trace.parent)


def ensure_compile_time_eval() -> Any:
    """Compute operations on known values at once within a `with` block, even while tracing.

    Values of any shape and dtype that do not depend on traced arguments stay concrete.
    Source: partial evaluation (Jones, Gomard and Sestoft, 1993).

    >>> with jax.ensure_compile_time_eval():
    ...     jnp.ones(3).sum()
    Array(3., dtype=float32)
    """
    return set_trace(eval_trace if current() is eval_trace else CompileTimeTrace(eval_trace))


eval_context = named(ensure_compile_time_eval, "eval_context", __name__)


_UNKNOWN = "Abstract tracer value encountered where concrete value is expected:"
_REMEDIES = {
    kind: f"Use x.astype({kind}) to convert within a traced program"
    for kind in ("int", "float", "complex")
}


class Tracer(Array):
    """Stands for an array in a trace."""

    __slots__ = ("_trace", "aval")

    def __init__(self, trace: Trace, aval: Any) -> None:
        self._trace, self.aval = trace, aval

    @property
    def sharding(self) -> Any:
        raise AttributeError(
            f"The 'sharding' attribute is not available on traced array with shape "
            f"{self.aval.str_short()}: it is known once the program runs. What types say of it is in "
            "minijax.typeof(x)."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"

    def described(self) -> str:
        """The tracer in messages: without values that would have to be computed for them."""
        return repr(self)

    def origin(self) -> str:
        """One sentence on where this tracer comes from, for error messages."""
        return ""

    def __bool__(self) -> Any:
        if self.aval.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() "
                f"or a.all(); got {self.described()}."
            )
        known = self.concrete()
        if known is not None:
            return bool(known)
        raise errors.TracerBoolConversionError(
            _conversion_message(
                self,
                "Attempted boolean conversion of",
                "Its truth value was asked for (an `if`, `while`, `and`, `or`, `not` or `assert`).",
                "Use minijax.lax.cond, minijax.lax.while_loop or minijax.numpy.where; or, if the "
                "argument need not be traced, mark it static (static_argnums, static_argnames).",
            )
        )

    def __index__(self) -> Any:
        if self.aval.ndim or self.aval.dtype.kind not in "iu":
            raise TypeError(
                f"Only integer scalar arrays can be converted to a scalar index; got {self.described()}."
            )
        known = self.concrete()
        if known is not None:
            return known.__index__()
        raise errors.TracerIntegerConversionError(
            _conversion_message(
                self,
                "The __index__() method was called on",
                "It was used as a Python integer (an index, a shape, `range`).",
                "Mark the argument static, or index with an array: minijax.numpy.asarray(x)[i].",
            )
        )

    def _to_scalar(self, kind: str):
        if self.aval.ndim and kind in _REMEDIES:
            raise TypeError(
                "Only scalar arrays can be converted to Python scalars; got "
                f"arr.ndim={self.aval.ndim}: {self.described()}. Index it first."
            )
        known = self.concrete()
        if known is not None:
            return known
        raise errors.ConcretizationTypeError(
            _conversion_message(
                self,
                _UNKNOWN,
                f"It was given to `{kind}()`, which needs its value.",
                _REMEDIES.get(kind, "Return it and convert it outside of the traced program")
                + ", or mark the argument static (static_argnums, static_argnames).",
            )
        )

    def __int__(self) -> Any:
        return int(self._to_scalar("int"))

    def __float__(self) -> Any:
        return float(self._to_scalar("float"))

    def __complex__(self) -> Any:
        return complex(self._to_scalar("complex"))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise errors.TracerArrayConversionError(
            _conversion_message(
                self,
                "The numpy.ndarray conversion method __array__() was called on",
                "A NumPy function or `numpy.asarray` does that.",
                "Call the function of the same name in minijax.numpy, or compute this outside of "
                "the transformed function.",
            )
        )

    def concrete(self) -> Any:
        """The value, where the trace knows it (as under an un-jitted `grad`); else None."""
        return None

    def item(self, *args: Any) -> Any:
        known = self.concrete()
        if known is not None:
            return np.asarray(known).item(*args)
        self._to_scalar("item")

    def tolist(self) -> Any:
        known = self.concrete()
        return np.asarray(known).tolist() if known is not None else self._to_scalar("tolist")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def _only_concrete(name: str) -> Callable:
    def refuse(self, *args, **kwargs):
        raise errors.ConcretizationTypeError(
            _conversion_message(
                self, _UNKNOWN, f"`{name}` was asked of it.", "Only concrete arrays hold a buffer."
            )
        )

    refuse.__name__ = name
    return refuse


for _name in ("delete", "devices", "is_deleted", "on_device_size_in_bytes", "unsafe_buffer_pointer",
              "__reduce__", "addressable_data", "__dlpack__", "tobytes"):  # fmt: skip
    setattr(Tracer, _name, _only_concrete(_name))


def _not_available(name: str) -> Callable:
    def refuse(self):
        raise AttributeError(
            _conversion_message(
                self, f"The {name!r} method is not available on", "", "Ask it of the results."
            )
        )

    return refuse


for _name in ("block_until_ready", "copy_to_host_async"):
    setattr(Tracer, _name, property(_not_available(_name)))
for _name in ("addressable_shards", "committed", "global_shards", "is_fully_addressable",
              "is_fully_replicated", "traceback"):  # fmt: skip
    setattr(Tracer, _name, property(_only_concrete(_name)))


def _conversion_message(tracer: Tracer, refused: str, seen: str, remedy: str) -> str:
    """The first words are upstream's: libraries' tests look for them."""
    shown = tracer.aval.str_short()
    parts = (
        f"{refused} traced array with shape {shown}: {tracer.described()}.",
        seen,
        tracer.origin(),
        remedy,
    )
    return " ".join(filter(None, parts))


def unknown_value(x: Any) -> str:
    """The first words on a tracer whose value is asked for, as libraries' tests look for them."""
    return f"{_UNKNOWN} traced array with shape {str(x.aval).replace('~', '')}."


def is_constant(x: Any) -> bool:
    """Whether a program that is kept may hold a value: an array of now, which stays what it is."""
    return not isinstance(x, Tracer) and type(x) not in opaque_types


def check_alive(tracer: Tracer) -> None:
    """UnexpectedTracerError if the trace of this tracer has ended, or is another thread's."""
    if tracer._trace.alive and tracer._trace.thread != get_ident():
        raise errors.UnexpectedTracerError(
            "Encountered an unexpected tracer. A function transformed by JAX had a side effect, "
            "allowing for a reference to an intermediate value with type "
            f"{tracer.aval.str_short()} to escape the scope of the transformation: it was used on "
            f"another thread than the one that traces the function. It is {tracer.described()}. "
            f"{tracer.origin()} Trace on one thread: start threads outside of the function, and "
            "pass them arrays."
        )
    if not tracer._trace.alive:
        origin = tracer.origin()
        raise errors.UnexpectedTracerError(
            "Encountered an unexpected tracer. A function transformed by JAX had a side effect, "
            "allowing for a reference to an intermediate value with type "
            f"{tracer.aval.str_short()} to escape the scope of the transformation: "
            f"it leaked, and was used after its end. It is {tracer.described()}. "
            + (origin + " " if origin else "")
            + "A function under jit, grad, vmap or another transformation may not store its "
            "values in globals, attributes or closures: return them instead. To find the place, "
            "set minijax.config.update('jax_check_tracer_leaks', True)."
        )
