"""`minijax.interpreters.partial_eval`: programs from functions of which some inputs are known.

Functions are `extend.linear_util.WrappedFun`s on flat values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.config import local
from minijax.core.avals import AbstractValue, get_aval
from minijax.core.effects import is_impure
from minijax.core.jaxpr import Jaxpr, JaxprEqn, Var, dce_jaxpr
from minijax.core.primitive import Primitive
from minijax.core.staging import PartialTrace, StagedTracer, trace_to_jaxpr
from minijax.core.staging import StagedTracer as DynamicJaxprTracer
from minijax.core.staging import StagedTracer as JaxprTracer
from minijax.interpreters.tables import RuleTable
from minijax.namespace import shown

__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "Val", "custom_partial_eval_rules", "dce_jaxpr",
    "dce_jaxpr_call_rule", "dce_jaxpr_closed_call_rule", "dce_jaxpr_consts", "dce_rules",
    "partial_eval_jaxpr_custom_rules", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]  # fmt: skip

Val = Any
custom_partial_eval_rules = RuleTable("rule_partial_eval")
# Rules of splitting an equation under checkpoint. Here that asks the policy of every primitive alike,
# so that what libraries register is kept for them to find, and not called.
partial_eval_jaxpr_custom_rules: dict[Primitive, Callable] = {}
dce_rules = RuleTable("rule_dce")


class PartialVal(tuple):
    """A value that is known, `(None, value)`, or of which the type is, `(type, None)`."""

    __slots__ = ()

    def __new__(cls, xs: tuple[AbstractValue | None, Any]):
        aval, value = xs
        if (aval is None) == (value is None) and aval is not None:
            raise ValueError("a PartialVal is a type or a value, not both")
        return super().__new__(cls, (aval, value))

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: AbstractValue) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self[1] if self[0] is None else None

    def get_aval(self) -> AbstractValue:
        return get_aval(self[1]) if self[0] is None else self[0]


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Run what depends on known inputs alone, and record the rest.

    Returns the program `(unknown inputs) -> (unknown results)`, what is known of each result, and
    the values of the program's constants. `instantiate` asks for results as unknown in any case.
    """
    context = local.context
    outer = context.trace
    trace = PartialTrace(outer, fun.debug_info)
    context.trace = trace
    try:
        args = [p.get_known() if p.is_known() else trace.new_arg(p.get_aval()) for p in pvals]
        outs = list(fun.call_wrapped(*args))
        if isinstance(instantiate, bool):
            instantiate = [instantiate] * len(outs)
        staged = [
            (type(out) is StagedTracer and out._trace is trace) or want
            for out, want in zip(outs, instantiate, strict=True)
        ]
        context.trace = outer
        closed = trace.closed([out for out, keep in zip(outs, staged, strict=True) if keep])
        out_pvals = [
            PartialVal.unknown(get_aval(out)) if keep else PartialVal.known(out)
            for out, keep in zip(outs, staged, strict=True)
        ]
        return closed.jaxpr, out_pvals, closed.consts
    finally:
        trace.end()
        context.trace = outer


def trace_to_jaxpr_dynamic(
    fun: Any, in_avals: Sequence[AbstractValue], **unused: Any
) -> tuple[Jaxpr, list[AbstractValue], list[Any]]:
    """The program of a function for inputs of these types, its result types and its constants."""
    closed = trace_to_jaxpr(fun.call_wrapped, tuple(in_avals), fun.debug_info)
    return closed.jaxpr, closed.out_avals, closed.consts


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Keep what the used outputs need. Returns the program, and which constants and inputs it reads."""
    made, used_inputs = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read: set[Any] = {v for eqn in made.eqns for v in eqn.invars} | set(made.outvars)
    used_consts = [var in read for var in made.constvars]
    kept: list[Var] = [v for v, used in zip(made.constvars, used_consts, strict=True) if used]
    return made.replace(constvars=kept), used_consts, used_inputs


# -- rules for primitives that call a program ------------------------------------------------------------


def _pruned_call(
    used_outputs: Sequence[bool], eqn: JaxprEqn, wrap: Callable[[Jaxpr], Any], jaxpr: Jaxpr
) -> tuple[list[bool], JaxprEqn | None]:
    impure = is_impure(eqn.effects)
    if not any(used_outputs) and not impure:
        return [False] * len(eqn.invars), None
    made, used_inputs = dce_jaxpr(jaxpr, used_outputs)
    if not any(used_inputs) and not any(used_outputs) and not impure:
        return used_inputs, None
    kept = eqn.replace(
        invars=[v for v, used in zip(eqn.invars, used_inputs, strict=True) if used],
        outvars=[v for v, used in zip(eqn.outvars, used_outputs, strict=True) if used],
        params={**eqn.params, "call_jaxpr": wrap(made)},
        effects=made.effects,
    )
    return used_inputs, kept


def dce_jaxpr_call_rule(
    used_outputs: Sequence[bool], eqn: JaxprEqn
) -> tuple[list[bool], JaxprEqn | None]:
    """The rule, for `dce_rules`, of a primitive that calls the jaxpr `call_jaxpr`.

    Gives which inputs are used, and the equation without the others; None if it is of no use.
    """
    return _pruned_call(used_outputs, eqn, lambda made: made, eqn.params["call_jaxpr"])


def dce_jaxpr_closed_call_rule(
    used_outputs: Sequence[bool], eqn: JaxprEqn
) -> tuple[list[bool], JaxprEqn | None]:
    """DCE rule of a primitive whose `call_jaxpr` is a closed one."""
    closed = eqn.params["call_jaxpr"]
    return _pruned_call(used_outputs, eqn, lambda made: closed.replace(jaxpr=made), closed.jaxpr)


__dir__ = shown(__name__)
