"""Forward-mode differentiation. A `JVPTracer` holds a primal and a tangent; `JVPTrace` applies the
jvp rule of each primitive, with its parent as the current trace. A result whose tangent is a
symbolic zero is no tracer at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from minijax import dtypes
from minijax.arguments.functions import unnamed
from minijax.arrays.array import as_value
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import AbstractValue, get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.primitive import NoRule, Primitive, checked_pair
from minijax.core.staging import PartialTrace, trace_to_jaxpr
from minijax.core.trace import EvalTrace, Trace, Tracer, check_alive
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import Zero, zero_like

__all__ = ["JVPTrace", "JVPTracer", "jvp_flat", "jvp_jaxpr"]

_NUMBERS = dtypes.python_scalar_dtypes
_OF_THE_MODE = (int, float, complex, np.generic, np.ndarray)  # each mode gives them its dtype


class JVPTracer(Tracer):
    """A primal value with a tangent that is not known to be zero."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, aval: AbstractValue, primal: Any, tangent: Any):
        self._trace = trace
        self.aval = aval
        self.primal = primal
        self.tangent = tangent

    def concrete(self) -> Any:
        return self.primal.concrete() if isinstance(self.primal, Tracer) else self.primal

    def __repr__(self) -> str:
        primal = self.primal.described() if isinstance(self.primal, Tracer) else self.primal
        if self._trace.linear is None:
            t = self.tangent.described() if isinstance(self.tangent, Tracer) else self.tangent
            return f"JVPTracer(primal={primal}, tangent={t})"
        tangent = get_aval(self.tangent).str_short(True)
        return f"GradTracer(primal={primal}, typeof(tangent)={tangent})"


hooks.fill(jvp_tracer=JVPTracer)


class JVPTrace(Trace):
    """Pushes tangents forward. With a `PartialTrace` as its parent, `linear`, it linearizes: primals
    are computed at once, and the operations on tangents are recorded.
    """

    __slots__ = ("linear", "shared")
    adjective, other = "differentiated", "a non-differentiated"

    def __init__(self, parent: Trace):
        super().__init__(parent)
        self.linear = parent if type(parent) is PartialTrace else None
        outer = parent.parent if self.linear is not None else parent
        # Equal subexpressions are shared within a nested trace: each level of an n-fold derivative
        # then costs a constant factor of the number of distinct expressions, not of all of them.
        # In the outermost, sharing would only keep intermediate values alive.
        self.shared: dict | None = None if type(outer) is EvalTrace else {}

    def end(self) -> None:
        self.alive = False
        self.shared = None  # its tracers refer to the trace, which must not refer to them

    def process(self, primitive, args, params):
        primals, tangents, active = [], [], False
        for a in args:
            if isinstance(a, JVPTracer):
                if a._trace is self:
                    primal = a.primal
                    if self.linear is not None and isinstance(primal, _OF_THE_MODE):
                        if get_aval(primal).dtype != a.aval.dtype:  # the mode has changed
                            primal = hooks.array_of(primal, not local.context.settings.enable_x64)
                    primals.append(primal)
                    tangents.append(a.tangent)
                    active = True
                    continue
                check_alive(a)
            primals.append(a)
            tangents.append(None)
        context = local.context
        context.trace = self.parent
        try:
            if not active:
                return self.parent.process(primitive, args, params)
            if self.shared is None or primitive.effects_of(params, map(get_aval, args)):
                return self.apply(primitive, primals, tangents, params)
            return self.share(primitive, args, primals, tangents, params)
        finally:
            context.trace = self

    def share(self, primitive, args, primals, tangents, params):
        try:
            key = (primitive, *[id(a) for a in args], *params.items())
            known = self.shared.get(key)
        except TypeError:  # params that cannot be hashed
            return self.apply(primitive, primals, tangents, params)
        if known is None:
            result = self.apply(primitive, primals, tangents, params)
            if any(type(a) is JVPTracer and dtypes.is_extended(a.aval.dtype) for a in args):
                return result  # each use counts where cotangents are added by a rule of the dtype's
            self.shared[key] = known = (result, args)  # args: so that no id is used again
        return known[0]

    def apply(self, primitive: Primitive, primals: list, tangents: list, params: dict) -> Any:
        user_rules = primitive.user_rules
        for index, tangent in enumerate(tangents):
            if tangent is None:
                tangents[index] = zero_like(primals[index])
            elif type(tangent) in _NUMBERS and not user_rules:
                aval = get_aval(primals[index])
                if not aval.weak_type:  # a number as a tangent makes nothing weak
                    tangent = np.asarray(tangent, aval.dtype)
                tangents[index] = as_value(tangent)
        if user_rules:
            primals, tangents = tuple(primals), tuple(tangents)
        rule = primitive.rule_jvp
        if self.linear is not None and primitive.rule_linearize is not None:
            found = primitive.rule_linearize(self.linear, primals, tangents, **params)
        elif rule is None or type(rule) is NoRule:
            _refuse(primitive)
        else:
            found = rule(primals, tangents, **params)
        if type(found) is not tuple:
            found = checked_pair(primitive, "jvp", "results and tangents", found)
        out, tangent_out = found
        if primitive.multiple_results:
            return [self.pair(x, t) for x, t in zip(out, tangent_out, strict=True)]
        return self.pair(out, tangent_out)

    def pair(self, primal: Any, tangent: Any) -> Any:
        if type(tangent) is Zero:
            return primal
        aval = primal.aval if isinstance(primal, Array) else get_aval(primal)
        return aval.jvp_tracer(self, aval, primal, tangent)


def _refuse(primitive: Primitive) -> NoReturn:
    rule = primitive.rule_jvp
    if type(rule) is NoRule:
        raise rule.error(rule.reason)
    raise NotImplementedError(
        f"Differentiation rule for {primitive.name!r} not implemented: give it one with "
        f"@{primitive.name}_p.jvp, or wrap the call in custom_jvp or custom_vjp."
    )


def jvp_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Return the results and their tangents (perhaps `Zero`) of a function on flat values."""
    context = local.context
    parent = context.trace
    trace = JVPTrace(parent)
    context.trace = trace
    try:
        outs = fun(*[trace.pair(x, t) for x, t in zip(primals, tangents, strict=True)])
        results = unpair(trace, outs)
    finally:
        trace.end()
        context.trace = parent
    check = hooks.watch_leaks(trace)
    del trace, outs
    check()
    return results


def unpair(trace: JVPTrace, outs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the primals and the tangents of the results of a function under a trace."""
    primals, tangents = [], []
    for out in outs:
        if isinstance(out, JVPTracer) and out._trace is trace:
            primals.append(out.primal)
            tangents.append(out.tangent)
        else:
            primals.append(out)
            tangents.append(zero_like(out))
    return primals, tangents


def jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: Sequence[bool], instantiate_outs: Sequence[bool] | bool = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program `(*primals, *nonzero tangents) -> (*outs, *nonzero tangents out)`.

    Returns it with which output tangents are not zero. `instantiate_outs` asks for some of them
    in any case.
    """
    nonzeros = tuple(nonzeros)
    if isinstance(instantiate_outs, bool):
        instantiate_outs = (instantiate_outs,) * len(closed.out_avals)
    key = ("jvp", nonzeros, tuple(instantiate_outs))
    return closed.derive(key, lambda: _make_jvp_jaxpr(closed, nonzeros, instantiate_outs))


def _make_jvp_jaxpr(closed, nonzeros, wanted):
    out_nonzeros: list[bool] = []

    def fun(*args):
        primals, rest = args[: len(nonzeros)], iter(args[len(nonzeros) :])
        tangents = [
            next(rest) if nz else zero_like(x) for x, nz in zip(primals, nonzeros, strict=True)
        ]
        outs, tangents_out = jvp_flat(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, tangents
        )
        tangents_out = [
            instantiate(t) if keep else t for t, keep in zip(tangents_out, wanted, strict=True)
        ]
        out_nonzeros.extend(type(t) is not Zero for t in tangents_out)
        return [*outs, *(t for t in tangents_out if type(t) is not Zero)]

    dots = [a.to_tangent_aval() for a, nz in zip(closed.in_avals, nonzeros, strict=True) if nz]
    made = trace_to_jaxpr(fun, [*closed.in_avals, *dots], unnamed(closed.jaxpr.debug_info))
    return made, out_nonzeros
