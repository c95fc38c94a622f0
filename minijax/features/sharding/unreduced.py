"""Results that are sums over mesh axes still to be taken, as part of their types.

A value is *unreduced* over an axis if each device holds a summand of it, and *reduced* if it is
whole there and its cotangent is such a sum. What is linear keeps the one, what works on elements
the other; `reshard` takes the sums, and operations that would have to are a ShardingTypeError,
which says so. A rule `(name, avals, asked, **params)` gives both sets of axes for the results;
`asked` is a sharding that the user gave, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.errors import ShardingTypeError
from minijax.features.sharding.types import explicit_of

__all__ = [
    "NO_SUMS", "added", "alike", "any_sums", "apart", "first", "first_reduced", "multiplied",
    "on_elements", "over_axes", "refused", "sums_of",
]  # fmt: skip

Sums = tuple[frozenset, frozenset]

_NONE: frozenset = frozenset()
NO_SUMS: Sums = (_NONE, _NONE)


def sums_of(aval: Any) -> Sums:
    """The mesh axes over which a value of this type is unreduced, and reduced."""
    explicit = explicit_of(aval)
    return NO_SUMS if explicit is None else (explicit.spec.unreduced, explicit.spec.reduced)


def any_sums(avals: Sequence[Any]) -> bool:
    return any(sums_of(aval) != NO_SUMS for aval in avals)


def over_axes(layout: Any, avals: Sequence[Any], asked: Any, params: dict) -> Sums:
    """The sums that the results of an operation are; what primitives do not say is refused."""
    rule = layout.sums
    if rule is None:
        rule = on_elements if layout.parts is None else refused
        rule = rule if avals else first
    return rule(layout.primitive.name, avals, asked, **params)


def _no_rule(name: str, kind: str) -> NotImplementedError:
    return NotImplementedError(
        f"{kind} rule for {name} is not implemented: take the sum first with minijax.reshard(x, "
        "P(...)), or hide the axes with minijax.sharding.auto_axes."
    )


def refused(name: str, avals: Sequence[Any], asked: Any, **params) -> Sums:
    """Rule of an operation that takes no such operands."""
    raise _no_rule(name, "unreduced/reduced")


def on_elements(name: str, avals: Sequence[Any], asked: Any, **params) -> Sums:
    """Rule of an elementwise operation: it is not linear, and keeps what was reduced."""
    reduced = _reduced(avals)
    if any(sums_of(aval)[0] for aval in avals):
        raise _no_rule(name, "unreduced")
    return _NONE, reduced


def _reduced(avals: Sequence[Any]) -> frozenset:
    """The axes over which operands on elements were reduced: the same for all of them.

    A scalar may stand beside them over Explicit axes, where it is known to be the same everywhere,
    and what is unreduced over these axes, which a product takes.
    """
    found = [aval for aval in avals if sums_of(aval)[1]]
    if not found:
        return _NONE
    reduced = sums_of(found[0])[1]
    if any(sums_of(aval)[1] != reduced for aval in found):
        raise ShardingTypeError(
            "All inputs should be reduced across the same mesh axes. Got specs: "
            f"{', '.join(str(set(sums_of(aval)[1])) for aval in found)}: reshard one of them."
        )
    manual = not reduced.isdisjoint(found[0].explicit.mesh.manual_axes)
    for aval in avals:
        if sums_of(aval)[1] or sums_of(aval)[0] >= reduced:
            continue
        shown = f"Got input type: {aval.str_short()} and reduced spec: {reduced}"
        if reduced & _split_over(aval):
            raise ShardingTypeError(
                "Inputs cannot be sharded/varying on the same axes that another input is reduced "
                "on. Reshard the input which is reduced to be sharded on the mesh axes it is "
                f"reduced on via `jax.sharding.reshard(inp, P(...))`. {shown}"
            )
        if manual or getattr(aval, "ndim", 0):
            raise ShardingTypeError(
                "Inputs cannot be replicated on the same axes that another input is reduced on. "
                f"{shown}: reshard it with P(..., reduced={set(reduced)})."
            )
    return reduced


def _split_over(aval: Any) -> frozenset:
    """The mesh axes that split a dimension of a value of this type."""
    explicit = explicit_of(aval)
    return _NONE if explicit is None else explicit.spec.split_axes


def added(name: str, avals: Sequence[Any], asked: Any, **params) -> Sums:
    """Rule of a sum of two: both are unreduced over the same axes, or neither is."""
    reduced = _reduced(avals)
    left, right = (sums_of(aval)[0] for aval in avals)
    if bool(left) != bool(right):
        one, other = ("lhs", "rhs") if left else ("rhs", "lhs")
        raise ShardingTypeError(
            f"{one} is unreduced while {other} is not. `{name}` operation does not allow this because "
            f"there will be implicit communication. Please reduce {one} via `reshard` before calling "
            f"`{name}`: got {avals[0].str_short()} and {avals[1].str_short()}."
        )
    if left != right:
        raise ShardingTypeError(
            f"lhs and rhs to `{name}` must be unreduced along the same mesh axes. Got lhs={left}, "
            f"rhs={right}: reshard one of them."
        )
    return left, reduced


def multiplied(name: str, avals: Sequence[Any], asked: Any, **params) -> Sums:
    """Rule of a product: an unreduced operand is multiplied by one reduced over the same axes."""
    reduced = _reduced(avals)
    left, right = (sums_of(aval)[0] for aval in avals)
    if left and right:
        raise ShardingTypeError(
            f"lhs and rhs to `{name}` cannot be unreduced since {name} is bilinear. Got lhs={left}, "
            f"rhs={right}: take a sum with minijax.reshard(x, P(...)) first."
        )
    if not left and not right:
        return _NONE, reduced
    one, other = ("LHS", "RHS") if left else ("RHS", "LHS")
    if sums_of(avals[1 if left else 0])[1] != (left or right):
        raise ShardingTypeError(
            f"{other} should be reduced along the same axes {one} is unreduced on. Got "
            f"lhs={avals[0].str_short()} and rhs={avals[1].str_short()}: reshard it with "
            f"P(..., reduced={set(left or right)})."
        )
    return left or right, _NONE


def _asked(own: Sums, asked: Any) -> Sums:
    """The sums of an operand, and those that were asked for."""
    if asked is None:
        return own
    unreduced, reduced = own[0] | asked.spec.unreduced, own[1] | asked.spec.reduced
    return unreduced, reduced - asked.spec.split_axes - unreduced


def first(name: str, avals: Sequence[Any], asked: Any, **params) -> Sums:
    """Rule of an operation that is linear in its first operand, such as slicing, or has none."""
    return _asked(sums_of(avals[0]) if avals else NO_SUMS, asked)


def apart(name: str, avals: Sequence[Any], asked: Any, **params) -> list[Sums]:
    """Rule of an operation on several arrays at once, each with a result of its type."""
    return [sums_of(aval) for aval in avals]


def first_reduced(name: str, avals: Sequence[Any], asked: Any, **params) -> Sums:
    """Rule of an operation that is linear in its first operand but takes no unreduced one."""
    if sums_of(avals[0])[0]:
        raise _no_rule(name, "unreduced")
    return sums_of(avals[0])


def alike(start: int = 0) -> Callable:
    """Return the rule of an operation that is linear in its operands from `start` on, all alike."""

    def rule(name, avals, asked, **params):
        found = {sums_of(aval) for aval in avals[start:]}
        if len(found) > 1:
            raise ShardingTypeError(
                f"All operands should have the same sharding. Got "
                f"{', '.join(aval.str_short() for aval in avals[start:])} for {name}: reshard them."
            )
        return found.pop()

    return rule
