"""`minijax.interpreters.ad`: derivative rules, registered upstream's way.

A jvp rule is `rule(primals, tangents, **params) -> out, tangent out`; a transpose rule is
`rule(cotangents, *args, **params) -> a cotangent or None for each argument`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.primitive import Primitive
from minijax.deprecated import moved
from minijax.interpreters.tables import RuleTable
from minijax.namespace import shown
from minijax.transforms import grad, primitives
from minijax.transforms.jvp import JVPTrace, JVPTracer
from minijax.transforms.primitives import add_any_p, add_tangents, full_like_aval
from minijax.transforms.tangents import UndefinedPrimal, Zero, zero_like
from minijax.typing import Array, ArrayLike

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p",
    "add_tangents", "defbilinear", "defjvp", "defjvp2", "deflinear", "deflinear2",
    "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal", "jvp", "linearize",
    "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip

primitive_jvps = RuleTable("rule_jvp")
primitive_transposes = RuleTable("rule_transpose")
add_jaxvals_p = add_any_p


def add_jaxvals(x: ArrayLike, y: ArrayLike) -> Array:
    """The sum of two cotangents of one type."""
    return add_any_p.bind(x, y)


def zeros_like_aval(aval: Any) -> Array:
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


def standard_jvp(
    jvprules: Sequence[Any], primitive: Primitive, primals: Any, tangents: Any, **params: Any
) -> tuple[Any, Any]:
    """The rule that `defjvp` gives."""
    adapted = [
        None if rule is None else lambda t, out, *xs, rule=rule, **params: rule(t, *xs, **params)
        for rule in jvprules
    ]
    return standard_jvp2(adapted, primitive, primals, tangents, **params)


def defjvp(primitive: Primitive, *jvprules: Callable | None) -> None:
    """Set the jvp rule from one rule an argument: `rule(tangent, *primals, **params)`, or None."""
    primitive.rule_jvp = functools.partial(standard_jvp, jvprules, primitive)


def standard_jvp2(
    jvprules: Sequence[Any], primitive: Primitive, primals: Any, tangents: Any, **params: Any
) -> tuple[Any, Any]:
    """The rule that `defjvp2` gives."""
    out = primitive.bind(*primals, **params)
    terms = [
        rule(t, out, *primals, **params)
        for rule, t in zip(jvprules, tangents, strict=True)
        if rule is not None and type(t) is not Zero
    ]
    return out, _sum(terms, out)


def defjvp2(primitive: Primitive, *jvprules: Callable | None) -> None:
    """Set the jvp from rules that are given the result: `rule(tangent, out, *primals, **params)`."""
    primitive.rule_jvp = functools.partial(standard_jvp2, jvprules, primitive)


def linear_jvp(primitive: Primitive, primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    """The rule of an operation that is linear in all of its operands."""
    out = primitive.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents):
        return out, _zeros_like(primitive, out)
    return out, primitive.bind(*[instantiate_zeros(t) for t in tangents], **params)


def _zeros_like(primitive: Primitive, out: Any) -> Any:
    return list(map(zero_like, out)) if primitive.multiple_results else zero_like(out)


def defjvp_zero(primitive: Primitive) -> None:
    """Set the rule of an operation whose derivative is zero."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        return out, _zeros_like(primitive, out)

    primitive.rule_jvp = jvp


def linear_transpose(
    transpose_rule: Callable, cotangent: Any, *args: Any, **params: Any
) -> Sequence[Any]:
    """The rule that `deflinear` gives."""
    adapted = lambda ct, *args, **params: transpose_rule(ct, **params)
    return linear_transpose2(adapted, cotangent, *args, **params)


def deflinear(primitive: Primitive, transpose_rule: Callable) -> None:
    """A primitive linear in all its arguments: `transpose_rule(cotangent, **params)`."""
    primitive.rule_jvp = functools.partial(linear_jvp, primitive)
    primitive.rule_transpose = functools.partial(linear_transpose, transpose_rule)


def linear_transpose2(
    transpose_rule: Callable, cotangent: Any, *args: Any, **params: Any
) -> Sequence[Any]:
    """The rule that `deflinear2` gives."""
    if type(cotangent) is Zero:
        return [Zero(x.aval.to_tangent_aval()) for x in args]
    return transpose_rule(cotangent, *args, **params)


def deflinear2(primitive: Primitive, transpose_rule: Callable) -> None:
    """Declare a primitive linear, with `transpose_rule(cotangent, *args, **params)`."""
    primitive.rule_jvp = functools.partial(linear_jvp, primitive)
    primitive.rule_transpose = functools.partial(linear_transpose2, transpose_rule)


def bilinear_transpose(
    lhs_rule: Callable, rhs_rule: Callable, cotangent: Any, x: Any, y: Any, **params: Any
) -> tuple[Any, Any]:
    """The rule that `defbilinear` gives."""
    if is_undefined_primal(x) == is_undefined_primal(y):
        raise AssertionError("the operation is linear in one argument at a time")
    rule, own = (lhs_rule, x) if is_undefined_primal(x) else (rhs_rule, y)
    found = Zero(own.aval) if type(cotangent) is Zero else rule(cotangent, x, y, **params)
    return (found, None) if own is x else (None, found)


def defbilinear(prim: Primitive, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """A primitive linear in each of two arguments, with a transpose rule for either.

    `lhs_rule(cotangent, lhs, rhs, **params)` is called with `lhs` undefined, and the other likewise.
    """
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )
    prim.rule_transpose = functools.partial(bilinear_transpose, lhs_rule, rhs_rule)


def __getattr__(name: str) -> Any:
    return moved(__name__, name)


__dir__ = shown(__name__)
