"""Recording a function as a jaxpr. `JaxprTrace` records every primitive it is given. `PartialTrace`
records only what depends on its own tracers and lets the rest pass to its parent: it splits a
computation in two, which is what linearizing (tangents are unknown) and checkpointing need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.config import local
from minijax.core import source
from minijax.core.avals import AbstractValue, get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo, DropVar, Jaxpr, JaxprEqn, Literal, Var
from minijax.core.primitive import Misplaced, Primitive, no_effects
from minijax.core.trace import Trace, Tracer, check_alive

__all__ = ["JaxprTrace", "PartialTrace", "StagedTracer", "recording_trace", "trace_to_jaxpr"]


class StagedTracer(Tracer):
    """Stands for a variable of the jaxpr that is being recorded."""

    __slots__ = ("_var",)

    def __init__(self, trace: JaxprTrace, var: Var | Literal):
        self._trace = trace
        self.aval = var.aval
        self._var = var

    def __repr__(self) -> str:
        values = self._trace.values
        text = None if values is None else values.text(self)
        return self.described() if text is None else text

    def described(self) -> str:
        return f"JitTracer({self.aval})"

    def concrete(self) -> Any:
        values = self._trace.values
        return None if values is None else values.value(self)


hooks.fill(staged_tracer=StagedTracer)
hooks.method("member_of_tracer", StagedTracer, "__getattr__")

_LITERAL_TYPES = (bool, int, float, complex)


class JaxprTrace(Trace):
    """Records equations; values from outside become constants, numbers become literals.

    `values`, if it is not None, gives the text and the value of those tracers whose value is known.
    """

    __slots__ = ("constants", "debug_info", "effects", "eqns", "in_vars", "values")

    def __init__(self, parent: Trace | None, debug_info: DebugInfo | None = None):
        super().__init__(parent)
        self.debug_info = debug_info or DebugInfo()
        self.eqns: list[JaxprEqn] = []
        self.in_vars: list[Var] = []
        self.constants: dict[int, tuple[Var, Any]] = {}
        self.effects: set = set()
        self.values: Any = None

    def new_arg(self, aval: AbstractValue, source_info: Any = None) -> StagedTracer:
        self.in_vars.append(Var(aval))
        return aval.staged_tracer(self, self.in_vars[-1])

    def process(self, primitive, args, params):
        if primitive.rule_stage is not None:
            return primitive.rule_stage(self, args, params)
        return self.record(primitive, args, params)

    def record(self, primitive: Primitive, args: Sequence[Any], params: dict) -> Any:
        """Append one equation, and return the tracers of its results."""
        atoms = [
            a._var if type(a) is StagedTracer and a._trace is self else self.lift(a) for a in args
        ]
        try:
            out_avals = primitive.out_avals(tuple([atom.aval for atom in atoms]), params)
        except Misplaced as found:
            atoms = hooks.aligned(self, atoms, found)
            out_avals = primitive.out_avals(tuple([atom.aval for atom in atoms]), params)
        context = local.context
        effects = no_effects
        if primitive.rule_effects is not None:
            effects = primitive.effects_of(params, [atom.aval for atom in atoms])
            effects = effects and hooks.on_operands(effects, atoms, params)
        where = context.source or source.capture(3)
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in out_avals]
            result = [var.aval.staged_tracer(self, var) for var in outvars]
        else:
            outvars = [Var(out_avals)]
            result = out_avals.staged_tracer(self, outvars[0])
        eqn = JaxprEqn(atoms, outvars, primitive, params, effects, where, context.scope)
        self.eqns.append(eqn)
        if effects:
            self.effects |= effects
            hooks.recorded(eqn)
        return result

    def lift(self, x: Any) -> Var | Literal:
        """Return the atom that stands for a value from outside of this trace."""
        kind = type(x)
        if kind in _LITERAL_TYPES:
            aval = get_aval(x)
            if kind is int and not -(2**31) <= x < 2**31:
                dtypes.number_as(x, aval.dtype)
            return Literal(x, aval)
        if isinstance(x, Tracer):
            if x._trace is self:
                return x._var
            check_alive(x)
        elif isinstance(x, np.generic) or (kind is np.ndarray and x.ndim == 0):
            aval = get_aval(x)
            return Literal(np.asarray(x, aval.dtype)[()], aval)
        entry = self.constants.get(id(x))
        if entry is None:
            if hooks.is_expression(x):
                return self.lift(x.__jax_array__())
            aval = get_aval(x)
            if not isinstance(aval, AbstractValue):  # the attribute `aval` of a class
                raise TypeError(f"Value {x!r} of type {type(x)} is not a valid JAX type.")
            entry = self.constants[id(x)] = (Var(aval.for_constant(x)), x)
        return entry[0]

    def atom(self, x: Any) -> Var | Literal:
        """Return the atom of any value, of this trace or not."""
        return x._var if isinstance(x, StagedTracer) and x._trace is self else self.lift(x)

    def tracer_of(self, x: Any) -> StagedTracer:
        """Return a tracer of this trace for any value."""
        if isinstance(x, StagedTracer) and x._trace is self:
            return x
        atom = self.lift(x)
        if type(atom) is Literal:
            self.constants[id(x)] = (Var(atom.aval), x)
            atom = self.constants[id(x)][0]
        return atom.aval.staged_tracer(self, atom)

    def literal(self, x: Any, aval: AbstractValue | None = None) -> StagedTracer:
        """Return a tracer of this trace for a number, which stays a literal of the program.

        `aval` is its type where that is not the one that a user's number has in the current mode.
        """
        return StagedTracer(self, self.lift(x) if aval is None else Literal(x, aval))

    def literal_of(self, x: Any) -> Literal | None:
        """Return the literal that a value is in this program; None if it is a variable."""
        if type(x) is StagedTracer:
            return x._var if type(x._var) is Literal else None
        kind = type(x)
        return self.lift(x) if kind in _LITERAL_TYPES or isinstance(x, np.generic) else None

    def closed(self, outs: Sequence[Any]) -> ClosedJaxpr:
        """End the trace, and return the program that computes `outs`."""
        outvars = [self.atom(x) for x in outs]
        pairs = list({id(var): (var, value) for var, value in self.constants.values()}.values())
        constvars, effects = [var for var, _ in pairs], frozenset(self.effects)
        jaxpr = Jaxpr(constvars, self.in_vars, outvars, self.eqns, effects, self.debug_info)
        self.end()
        if self.effects:
            hooks.check_effects(jaxpr)
        mark_unused_outputs(jaxpr)
        return without_unused_constants(ClosedJaxpr(jaxpr, [value for _, value in pairs]))


def mark_unused_outputs(jaxpr: Jaxpr) -> None:
    """Put a `DropVar`, which is printed as `_`, for each output of an equation that nothing reads."""
    read = {v for eqn in jaxpr.eqns for v in eqn.invars}
    read.update(jaxpr.outvars)
    for eqn in jaxpr.eqns:
        for index, var in enumerate(eqn.outvars):
            if var not in read:
                eqn.outvars[index] = DropVar(var)


def without_unused_constants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program without the constants that nothing reads."""
    if not closed.consts:
        return closed
    read = {v for eqn in closed.jaxpr.eqns for v in eqn.invars}
    read.update(closed.jaxpr.outvars)
    kept = [(v, c) for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True) if v in read]
    if len(kept) == len(closed.consts):
        return closed
    closed.jaxpr.constvars = [v for v, _ in kept]
    return ClosedJaxpr(closed.jaxpr, [c for _, c in kept])


class PartialTrace(JaxprTrace):
    """Records what depends on its tracers; its parent computes the rest at once."""

    __slots__ = ()

    def process(self, primitive, args, params):
        for a in args:
            if isinstance(a, StagedTracer) and a._trace is self:
                break
        else:
            return self.pass_to_parent(primitive, args, params)
        if primitive.rule_partial_eval is not None:
            return primitive.rule_partial_eval(self, args, params)
        return self.record(primitive, args, params)

    def is_unknown(self, x: Any) -> bool:
        return isinstance(x, StagedTracer) and x._trace is self


def recording_trace() -> JaxprTrace | None:
    """Return the innermost trace that records a whole program; None if there is none."""
    trace = local.context.trace
    while trace is not None and type(trace) is not JaxprTrace:
        trace = trace.parent
    return trace


def _refuse(info: DebugInfo | None) -> None:
    name = (info and info.func_src_info) or "at a place unknown"
    raise RuntimeError(
        f"re-tracing function {name} for `{(info and info.traced_for) or 'jit'}`, but 'no_tracing' is "
        "set: call it before with arguments of these types, or leave the context."
    )


def trace_to_jaxpr(
    fun: Callable[..., Sequence[Any]],
    in_avals: Sequence[AbstractValue],
    debug_info: DebugInfo | None = None,
    values: Any = None,
) -> ClosedJaxpr:
    """Record `fun`, a function of flat values. Constants may be tracers of outer traces.

    For `values` see `JaxprTrace`.
    """
    context = local.context
    if context.settings.no_tracing:
        _refuse(debug_info)
    saved, saved_source, saved_scope = context.trace, context.source, context.scope
    trace = JaxprTrace(saved, debug_info)
    trace.values = values
    context.trace, context.source, context.scope = trace, None, context.marks
    try:
        outs = fun(*[trace.new_arg(aval) for aval in in_avals])
        closed = trace.closed(outs)
    finally:
        trace.alive = False
        context.trace, context.source, context.scope = saved, saved_source, saved_scope
    check = hooks.watch_leaks(trace)  # if asked for: whether anything still refers to the trace
    del trace, outs
    check()
    return closed
