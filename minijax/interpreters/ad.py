"""`minijax.interpreters.ad`: derivative rules, registered upstream's way.

May import the floors below. A jvp rule is `rule(primals, tangents, **params) -> out, tangent out`;
a transpose rule is `rule(cotangents, *args, **params) -> a cotangent or None for each argument`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.primitive import Primitive
from minijax.interpreters.tables import RuleTable
from minijax.transforms import grad, primitives
from minijax.transforms.jvp import JVPTrace, JVPTracer
from minijax.transforms.primitives import add_any_p, add_tangents, full_like_aval
from minijax.transforms.tangents import UndefinedPrimal, Zero, zero_like

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p",
    "add_tangents", "defbilinear", "defjvp", "defjvp2", "deflinear", "deflinear2",
    "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal", "jvp", "linearize",
    "primitive_jvps",
    "primitive_transposes", "zeros_like_aval",
]  # fmt: skip

primitive_jvps = RuleTable("rule_jvp")
primitive_transposes = RuleTable("rule_transpose")
add_jaxvals_p = add_any_p


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two cotangents of one type."""
    return add_any_p.bind(x, y)


def zeros_like_aval(aval: Any) -> Any:
    """Zeros of this type."""
    return full_like_aval(0, aval)


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as a value: zeros if it is a symbolic `Zero`."""
    return primitives.instantiate(tangent)


def is_undefined_primal(x: Any) -> bool:
    """Whether an argument of a transpose rule is one of its linear arguments."""
    return type(x) is UndefinedPrimal


def jvp(
    fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False,
    instantiate: bool = True, transform_stack: bool = True,
) -> tuple:  # fmt: skip
    """`(outs, tangents)`, and the auxiliary output if `has_aux`, as `minijax.jvp`.

    Of a `WrappedFun` the function is called. Tangents that are zero are arrays of zeros:
    `instantiate` and `transform_stack` are accepted and have no effect.
    """
    return grad.jvp(_called(fun), tuple(primals), tuple(tangents), has_aux)


def linearize(
    traceable: Callable, primals_ft: Sequence[Any], has_aux: bool = False, is_vjp: bool = False
) -> tuple:
    """`(outs, linear function)`, and the auxiliary output if `has_aux`, as `minijax.linearize`.

    With `is_vjp` the function is that of cotangents, as `minijax.vjp`.
    """
    transform = grad.vjp if is_vjp else grad.linearize
    return transform(_called(traceable), *primals_ft, has_aux=has_aux)


def _called(fun: Callable) -> Callable:
    return getattr(fun, "call_wrapped", fun)


def get_primitive_transpose(p: Primitive) -> Callable:
    """The transpose rule of a primitive. NotImplementedError if it has none."""
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for {p.name!r} not implemented"
        ) from None


def _sum(terms: Sequence[Any], primal_out: Any) -> Any:
    total = zero_like(primal_out)
    for term in terms:
        total = add_tangents(total, term)
    return total


def defjvp(primitive: Primitive, *jvprules: Callable | None) -> None:
    """Set the jvp rule from one rule an argument: `rule(tangent, *primals, **params)`, or None."""
    adapted = [
        None if rule is None else lambda t, out, *xs, rule=rule, **params: rule(t, *xs, **params)
        for rule in jvprules
    ]
    defjvp2(primitive, *adapted)


def defjvp2(primitive: Primitive, *jvprules: Callable | None) -> None:
    """The same for rules that are given the result: `rule(tangent, out, *primals, **params)`."""

    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        terms = [
            rule(t, out, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=True)
            if rule is not None and type(t) is not Zero
        ]
        return out, _sum(terms, out)

    primitive.rule_jvp = jvp


def _linear_jvp(primitive: Primitive) -> Callable:
    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            zeros = [zero_like(x) for x in out] if primitive.multiple_results else zero_like(out)
            return out, zeros
        return out, primitive.bind(*[instantiate_zeros(t) for t in tangents], **params)

    return jvp


def deflinear(primitive: Primitive, transpose_rule: Callable) -> None:
    """A primitive linear in all its arguments: `transpose_rule(cotangent, **params)`."""
    deflinear2(primitive, lambda ct, *args, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable) -> None:
    """The same for `transpose_rule(cotangent, *args, **params)`."""
    primitive.rule_jvp = _linear_jvp(primitive)

    def transpose(ct, *args, **params):
        if type(ct) is Zero:
            return [Zero(x.aval.to_tangent_aval()) for x in args]
        return transpose_rule(ct, *args, **params)

    primitive.rule_transpose = transpose


def defbilinear(prim: Primitive, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """A primitive linear in each of two arguments, with a transpose rule for either.

    `lhs_rule(cotangent, lhs, rhs, **params)` is called with `lhs` undefined, and the other likewise.
    """
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )

    def transpose(ct, x, y, **params):
        if is_undefined_primal(x) == is_undefined_primal(y):
            raise AssertionError(f"{prim} is linear in one argument at a time")
        if type(ct) is Zero:
            return [Zero(a.aval) if is_undefined_primal(a) else None for a in (x, y)]
        if is_undefined_primal(x):
            return [lhs_rule(ct, x, y, **params), None]
        return [None, rhs_rule(ct, x, y, **params)]

    prim.rule_transpose = transpose
