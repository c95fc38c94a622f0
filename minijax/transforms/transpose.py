"""Transposing linear programs: the backward pass of reverse mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minijax.arguments.functions import unnamed
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from minijax.core.primitive import NoRule, wrong_result
from minijax.core.source import joined, transposed
from minijax.core.staging import trace_to_jaxpr
from minijax.transforms.primitives import add_tangents
from minijax.transforms.tangents import Summed, UndefinedPrimal, Zero, cotangent_types, is_undefined

__all__ = ["UNWANTED", "backward_pass", "transpose_equation", "transpose_jaxpr"]

UNWANTED = object()  # in place of a sink: the cotangent is not computed


def backward_pass(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cotangents: Sequence[Any],
    *, outermost: bool = False, sinks: Mapping[Var, Any] | None = None,
    sums: Mapping[Var, Any] | None = None,
) -> list[Any]:  # fmt: skip
    """Pull the cotangents of the outputs back to the arguments that are `UndefinedPrimal`.

    Returns a cotangent, or `Zero`, for each of those, and None for the others. Equations that do not
    depend on an undefined argument are evaluated first.

    - `outermost`: whether the program is the user's function, not one within it; the names of
      operations then say that they are transposed
    - `sinks`: by variable of an argument, a function that is called with each contribution to its
      cotangent, or `UNWANTED`
    - `sums`: by variable of an argument, a value to which its cotangent is added: see
      `UndefinedPrimal`
    """
    known: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    for var, value in zip(jaxpr.invars, args, strict=True):
        if not is_undefined(value):
            known[var] = value
    linear = _forward(jaxpr, known)
    pending: dict[Var, Any] = {}
    if sinks:
        unwanted = [var for var, sink in sinks.items() if sink is UNWANTED]
        linear = _reached(linear, set(jaxpr.invars).difference(known, unwanted))
        pending = _WithSinks(sinks)
    if sums:
        pending.update(sums)
    context = local.context
    outer, outer_scope = context.source, context.scope
    try:
        for var, ct in zip(jaxpr.outvars, cotangents, strict=True):
            if type(var) is not Literal and var not in known:
                if var in pending:  # a result twice: their sum is of the line that made it
                    context.source = next((e.source for e in linear if var in e.outvars), outer)
                pending[var] = add_tangents(pending.get(var), ct)
        for eqn in reversed(linear):
            context.source = eqn.source
            scope = transposed(eqn.scope) if outermost else eqn.scope
            context.scope = joined(outer_scope, scope) if scope else outer_scope
            transpose_equation(eqn, known, pending, sums)
    finally:
        context.source, context.scope = outer, outer_scope
    return [
        _cotangent(pending.get(var), var.aval) if is_undefined(value) else None
        for var, value in zip(jaxpr.invars, args, strict=True)
    ]


class _WithSinks(dict):
    """Cotangents by variable, where those of some variables are handed on at once."""

    def __init__(self, sinks: Mapping[Var, Any]):
        super().__init__()
        self.sinks = sinks

    def __setitem__(self, var: Var, ct: Any) -> None:
        sink = self.sinks.get(var)
        if sink is None:
            super().__setitem__(var, ct)
        elif sink is not UNWANTED and type(ct) is not Zero:
            sink(ct)


def _reached(linear: list, sources: set) -> list:
    """Return the equations that depend on any of the variables."""
    found = []
    for eqn in linear:
        if any(type(var) is not Literal and var in sources for var in eqn.invars):
            sources.update(eqn.outvars)
            found.append(eqn)
    return found


def _cotangent(ct: Any, aval: Any) -> Any:
    return Zero(aval.to_cotangent_aval()) if ct is None else ct


def _forward(jaxpr: Jaxpr, known: dict[Var, Any]) -> list:
    """Evaluate the equations on known values, and return the others."""
    linear = []
    context = local.context
    outer, outer_scope = context.source, context.scope
    for eqn in jaxpr.eqns:
        values = []
        for var in eqn.invars:
            if type(var) is Literal:
                values.append(var.value())
            elif var in known:
                values.append(known[var])
            else:
                linear.append(eqn)
                break
        else:
            context.source = eqn.source or outer
            context.scope = joined(outer_scope, eqn.scope)
            try:
                out = eqn.primitive.bind(*values, **eqn.params)
            finally:
                context.source, context.scope = outer, outer_scope
            outs = out if eqn.primitive.multiple_results else [out]
            known.update(zip(eqn.outvars, outs, strict=True))
    return linear


def _pass_zeros_on(eqn, known: dict, pending: dict) -> None:
    """Give the operands of an equation whose cotangents are all zero a zero cotangent.

    A custom rule further back is then still run. Primitives that hold programs end this.
    """
    if not eqn.primitive.holds_programs:
        for var in eqn.invars:
            if type(var) is not Literal and var not in known:
                pending.setdefault(var, _cotangent(None, var.aval))


def transpose_equation(eqn, known: dict, pending: dict, sums: Mapping[Var, Any] | None) -> None:
    """Pull the cotangents of the results of a linear equation back to its operands.

    `pending` has the cotangents so far by variable: those of the results are taken out of it.
    """
    cotangents = [pending.pop(var, None) for var in eqn.outvars]
    if all(ct is None for ct in cotangents):
        return
    if all(ct is None or type(ct) is Zero for ct in cotangents):
        if not eqn.primitive.transposes_zeros:
            _pass_zeros_on(eqn, known, pending)
            return
    cotangents = [_cotangent(ct, var.aval) for ct, var in zip(cotangents, eqn.outvars, strict=True)]
    args = []
    for var in eqn.invars:
        if type(var) is Literal:
            args.append(var.value())
        elif var in known:
            args.append(known[var])
        elif sums and var in sums and _may_add(var, eqn.invars[: len(args)], cotangents):
            args.append(UndefinedPrimal(var.aval, pending[var]))
        else:
            args.append(UndefinedPrimal(var.aval))
    primitive = eqn.primitive
    rule = primitive.rule_transpose
    if rule is None or type(rule) is NoRule:
        raise (rule.error if rule else NotImplementedError)(
            f"Transpose rule (for reverse-mode differentiation) for {primitive.name!r} not "
            f"implemented: {rule.reason if rule else f'give it one with @{primitive.name}_p.transpose.'}"
        )
    ct_in = cotangents if primitive.multiple_results else cotangents[0]
    results = rule(ct_in, *args, **eqn.params)
    if not isinstance(results, (list, tuple)) or len(results) != len(args):
        wanted = f"a list of {len(args)} cotangents, one for each operand (or Zero, or None)"
        raise wrong_result(primitive, "transpose", wanted, results)
    for var, arg, ct in zip(eqn.invars, args, results, strict=True):
        if type(ct) is Summed:
            pending[var] = ct.value
        elif type(ct) is Zero and is_undefined(arg):
            pending.setdefault(var, ct)
        elif is_undefined(arg) and ct is not None:
            placed = ct.aval if isinstance(ct, Array) else get_aval(ct)
            if placed.placement is not None or var.aval.placement is not None:
                ct = hooks.as_primal_placed(ct, var.aval)
            pending[var] = add_tangents(pending.get(var), ct)


def _may_add(var: Var, before: Sequence[Any], cotangents: Sequence[Any]) -> bool:
    """Whether a rule may add to a sum itself: for the first use of a variable in an equation only."""
    if var in before:
        return False
    avals = (var.aval, *map(get_aval, cotangents))
    return all(aval.placement is None or hooks.adds_in_place(aval) for aval in avals)


def transpose_jaxpr(
    closed: ClosedJaxpr, linear: Sequence[bool], ct_kinds: Sequence[Any],
    summed: Sequence[bool] = (),
) -> tuple[ClosedJaxpr, list[bool]]:  # fmt: skip
    """Return the program `(*known arguments, *nonzero cotangents, *sums) -> (*nonzero cotangents)`.

    `linear` marks the linear inputs, `summed` those of them whose cotangents are added to a sum that
    is an argument; `ct_kinds` are of the cotangents (`kinds_of`). Returns also which linear inputs
    have a nonzero cotangent.
    """
    key = ("transpose", tuple(linear), tuple(ct_kinds), tuple(summed))
    return closed.derive(key, lambda: _make_transposed(closed, *key[1:]))


def _make_transposed(closed, linear, ct_kinds, summed):
    in_avals, out_avals, out_nonzeros = closed.in_avals, closed.out_avals, []

    def fun(*args):
        rest = iter(args)
        values = [
            UndefinedPrimal(aval) if lin else next(rest)
            for aval, lin in zip(in_avals, linear, strict=True)
        ]
        cts = [
            next(rest) if nz else Zero(aval.to_cotangent_aval())
            for aval, nz in zip(out_avals, ct_kinds, strict=True)
        ]
        sums = {
            var: next(rest) for var, flag in zip(closed.jaxpr.invars, summed, strict=False) if flag
        }
        results = backward_pass(closed.jaxpr, closed.consts, values, cts, sums=sums)
        results = [ct for ct, lin in zip(results, linear, strict=True) if lin]
        out_nonzeros.extend(type(ct) is not Zero for ct in results)
        return [ct for ct in results if type(ct) is not Zero]

    avals = [aval for aval, lin in zip(in_avals, linear, strict=True) if not lin]
    avals += cotangent_types(out_avals, ct_kinds)
    avals += cotangent_types(in_avals, summed)
    made = trace_to_jaxpr(fun, avals, unnamed(closed.jaxpr.debug_info))
    return made, out_nonzeros
