"""`ensure_compile_time_eval`: operations on known values that run at once while a program is traced."""

from __future__ import annotations

from typing import Any

import minijax.core
from minijax.core.trace import Trace, Tracer, current, eval_trace, set_trace
from minijax.namespace import named

__all__ = ["ensure_compile_time_eval"]


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


minijax.core.show(
    ensure_compile_time_eval=ensure_compile_time_eval,
    eval_context=named(ensure_compile_time_eval, "eval_context", "minijax.core"),
)
