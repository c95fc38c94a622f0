"""Transposing linear programs: the backward pass of reverse mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from minijax.core.primitive import NoRule, wrong_result
from minijax.core.source import joined, transposed
from minijax.core.staging import trace_to_jaxpr
from minijax.transforms.primitives import add_tangents
from minijax.transforms.tangents import Summed, UndefinedPrimal, Zero, is_undefined

__all__ = ["UNWANTED", "backward_pass", "transpose_equation", "transpose_jaxpr"]

UNWANTED = object()  # in place of a sink: the cotangent is not to be computed


def backward_pass(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cotangents: Sequence[Any],
    *, outermost: bool = False, sinks: Mapping[Var, Any] | None = None,
    sums: Mapping[Var, Any] | None = None,
) -> list[Any]:  # fmt: skip
    """Pull the cotangents of the outputs back to the arguments that are `UndefinedPrimal`.

    Returns a cotangent, or `Zero`, for each of those, and None for the others. Equations that no
    undefined argument reaches are evaluated first: what they give are residuals. `outermost` is for
    what the user asked for, and not for programs within: the names of operations then tell. `sinks`
    has, of some arguments, what each contribution to the cotangent is handed to, or `UNWANTED`;
    `sums` those to which what is found is added: see `UndefinedPrimal`.
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
        pending = dict(sums)
    else:
        sums = {}
    for var, ct in zip(jaxpr.outvars, cotangents, strict=True):
        if type(var) is not Literal and var not in known:
            pending[var] = add_tangents(pending.get(var), ct)
    context = local.context
    outer, outer_scope = context.source, context.scope
    try:
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
    """The equations that any of the variables reach."""
    found = []
    for eqn in linear:
        if any(type(var) is not Literal and var in sources for var in eqn.invars):
            sources.update(eqn.outvars)
            found.append(eqn)
    return found


def _cotangent(ct: Any, aval: Any) -> Any:
    return Zero(aval.to_cotangent_aval()) if ct is None else ct


def _forward(jaxpr: Jaxpr, known: dict[Var, Any]) -> list:
    """Evaluate what depends on known values; gives the equations that are left."""
    linear = []
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
            out = eqn.primitive.bind(*values, **eqn.params)
            outs = out if eqn.primitive.multiple_results else [out]
            known.update(zip(eqn.outvars, outs, strict=True))
    return linear


def _pass_zeros_on(eqn, known: dict, pending: dict) -> None:
    """All cotangents are zero: so are those of the operands, and a custom rule further back is still
    to be run. What holds programs ends them: there may be none within.
    """
    if not eqn.primitive.holds_programs:
        for var in eqn.invars:
            if type(var) is not Literal and var not in known:
                pending.setdefault(var, _cotangent(None, var.aval))


def transpose_equation(eqn, known: dict, pending: dict, sums: Mapping[Var, Any]) -> None:
    """Add what the results of a linear equation have pending to what its operands have."""
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
        reason = rule.reason if rule else f"give it one with @{primitive.name}_p.transpose"
        error = rule.error if rule else NotImplementedError
        raise error(
            f"Transpose rule (for reverse-mode differentiation) for {primitive.name!r} not "
            f"implemented: {reason}"
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
    """Whether a rule may add to a sum itself: once in an equation, and where it is placed alike."""
    if var in before:
        return False
    avals = (var.aval, *map(get_aval, cotangents))
    return all(aval.placement is None or hooks.adds_freely(aval) for aval in avals)


def transpose_jaxpr(
    closed: ClosedJaxpr, linear: Sequence[bool], ct_nonzeros: Sequence[bool],
    summed: Sequence[bool] = (),
) -> tuple[ClosedJaxpr, list[bool]]:  # fmt: skip
    """The program `(*known arguments, *nonzero cotangents, *sums) -> (*nonzero cotangents in)`.

    `linear` marks the linear inputs, `summed` those whose cotangents are added to sums that are
    given. Returns also which of those have a nonzero cotangent.
    """
    linear, ct_nonzeros, summed = tuple(linear), tuple(ct_nonzeros), tuple(summed)
    key = ("transpose", linear, ct_nonzeros, summed, local.context.key)
    return closed.derive(key, lambda: _make_transposed(closed, linear, ct_nonzeros, summed))


def _make_transposed(closed, linear, ct_nonzeros, summed):
    out_nonzeros: list[bool] = []
    in_avals, out_avals = closed.in_avals, closed.out_avals

    def fun(*args):
        rest = iter(args)
        values = [
            UndefinedPrimal(aval) if lin else next(rest)
            for aval, lin in zip(in_avals, linear, strict=True)
        ]
        cts = [
            next(rest) if nz else Zero(aval.to_cotangent_aval())
            for aval, nz in zip(out_avals, ct_nonzeros, strict=True)
        ]
        sums = {
            var: next(rest) for var, flag in zip(closed.jaxpr.invars, summed, strict=False) if flag
        }
        results = backward_pass(closed.jaxpr, closed.consts, values, cts, sums=sums)
        results = [ct for ct, lin in zip(results, linear, strict=True) if lin]
        out_nonzeros.extend(type(ct) is not Zero for ct in results)
        return [ct for ct in results if type(ct) is not Zero]

    avals = [aval for aval, lin in zip(in_avals, linear, strict=True) if not lin] + [
        aval.to_cotangent_aval() for aval, nz in zip(out_avals, ct_nonzeros, strict=True) if nz
    ]
    avals += [
        aval.to_cotangent_aval() for aval, flag in zip(in_avals, summed, strict=False) if flag
    ]
    made = trace_to_jaxpr(fun, avals, closed.jaxpr.debug_info)
    return made, out_nonzeros
