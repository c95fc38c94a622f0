"""The derivative rules of calls of custom_jvp and custom_vjp functions, as programs."""

from __future__ import annotations

from typing import Any

from minijax import dtypes
from minijax.core.jaxpr import ClosedJaxpr
from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.transforms.make_jaxpr import make_jaxpr
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import Zero, spread_tangents, zero_tangent

__all__ = ["jvp_program", "rule_key", "structs", "vjp_program"]


def _is_still(aval: Any) -> bool:
    """Whether values of this type have no derivative."""
    return aval.to_tangent_aval().dtype == dtypes.float0


def rule_key(rule: Any, program: ClosedJaxpr) -> tuple:
    """Return a key of a rule: a rule may call the function that it belongs to."""
    mapped = []
    while hasattr(rule, "inner"):
        mapped.append(tuple(rule.dims))
        rule = rule.inner
    return rule.fun, tuple(mapped), str(program)


def jvp_program(rule: Any, program: ClosedJaxpr) -> tuple[ClosedJaxpr, list[bool], list[bool]]:
    """The program of primals and tangents, and which inputs and results have tangents."""
    avals = program.in_avals
    moving = [not _is_still(aval) for aval in avals]
    out_moving = [not _is_still(aval) for aval in program.out_avals]

    def flat(*values):
        primals = values[: len(avals)]
        tangents = spread_tangents(values[len(avals) :], moving, avals)
        outs, out_tangents = rule(primals, tangents)
        kept = [instantiate(t) for t, m in zip(out_tangents, out_moving, strict=True) if m]
        return [*outs, *kept]

    steps = [a.to_tangent_aval() for a, m in zip(avals, moving, strict=True) if m]
    return make_jaxpr(flat)(*structs([*avals, *steps])), moving, out_moving


def vjp_program(
    fwd: Any, bwd: Any, program: ClosedJaxpr
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool]]:
    """The programs of the two rules, and which inputs get a cotangent that is not zero."""
    kept: list[Any] = []

    def forward(*primals):
        outs, residuals, info = fwd(primals, [True] * len(primals))
        kept[:] = [info]
        return [*outs, *residuals]

    first = make_jaxpr(forward)(*structs(program.in_avals))
    results = len(program.out_avals)
    held = first.out_avals[results:]
    cts = [aval.to_tangent_aval() for aval in program.out_avals]
    given: list[bool] = []

    def backward(*values):
        residuals, rest = values[: len(held)], values[len(held) :]
        found = bwd(kept[0], residuals, _with_zeros(program.out_avals, rest))
        given[:] = [not (ct is None or isinstance(ct, Zero)) for ct in found]
        return [ct for ct, some in zip(found, given, strict=True) if some]

    second = make_jaxpr(backward)(*structs([*held, *cts]))
    return first, second, given


def _with_zeros(avals: Any, values: Any) -> list[Any]:
    return [zero_tangent(a) if _is_still(a) else x for a, x in zip(avals, values, strict=True)]


def structs(avals: Any) -> list[Any]:
    return [
        ShapeDtypeStruct(a.shape, a.dtype, weak_type=getattr(a, "weak_type", False)) for a in avals
    ]
