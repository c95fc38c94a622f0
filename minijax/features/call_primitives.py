"""`call` and `closed_call`: calls of programs that each transform sees through.

Libraries bind them with functions, as `subfuns`; a call is an equation only in a program that is
being recorded, and evaluating it evaluates the program that it holds.
"""

from __future__ import annotations

from typing import Any

from minijax.config import local
from minijax.core.avals import get_aval
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from minijax.core.primitive import Primitive, Programs, no_rule
from minijax.core.staging import JaxprTrace, trace_to_jaxpr

__all__ = ["call_p", "closed_call_p"]


class _SeenThrough(Primitive):
    """Runs the function or the program given; while a program is recorded, is an equation of it."""

    __slots__ = ("closed",)
    call_primitive = True

    def __init__(self, name: str, *, closed: bool):
        super().__init__(name, programs=Programs(call_jaxpr=(0,)))
        self.closed = closed  # whether the program in its params has its constants with it
        for set_rule in (self.jvp, self.batch, self.transpose):
            set_rule(no_rule("evaluating it evaluates the program that it holds"))
        self.lower(self._lowered)

    def bind(self, *args, subfuns: tuple = (), call_jaxpr: Any = None, **params):
        trace = local.context.trace
        if type(trace) is not JaxprTrace:
            if subfuns:
                return list(subfuns[0].call_wrapped(*args))
            program = _as_closed(call_jaxpr)
            return eval_jaxpr(program.jaxpr, program.consts, *args)
        if subfuns:
            call = lambda *xs: list(subfuns[0].call_wrapped(*xs))
            made = trace_to_jaxpr(call, [get_aval(x) for x in args])
            jaxpr = made.jaxpr.replace(constvars=[], invars=[*made.constvars, *made.invars])
            args = (*made.consts, *args)
            call_jaxpr = ClosedJaxpr(jaxpr) if self.closed else jaxpr
        return trace.process(self, args, {"call_jaxpr": call_jaxpr, **params})

    @staticmethod
    def _lowered(b, *operands, call_jaxpr, name="call", **params):
        return b.call_jaxpr(_as_closed(call_jaxpr), name, *operands)


def _as_closed(program: Jaxpr | ClosedJaxpr) -> ClosedJaxpr:
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program)


call_p = _SeenThrough("call", closed=False)
closed_call_p = _SeenThrough("closed_call", closed=True)
