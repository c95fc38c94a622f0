"""Sizes and types of features, as the rest asks about them: there are none without the feature.

`features.symbolic` has the expressions that sizes may be, `features.references` the references.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import minijax.core
from minijax.errors import InconclusiveDimensionOperation
from minijax.features.slots import slots

__all__ = [
    "Reference", "SizeExpression", "certain", "is_dim", "is_negative", "is_ref", "max_dim",
    "min_dim",
]  # fmt: skip


class SizeExpression:
    """The base class of sizes that are known only when a program is called."""

    __slots__ = ()


def is_dim(x: Any) -> bool:
    """Whether a size depends on variables."""
    return isinstance(x, SizeExpression)


def certain(holds: Callable[[], Any]) -> bool:
    """Whether something holds of sizes, for all values of the variables in them."""
    try:
        return bool(holds())
    except InconclusiveDimensionOperation:
        return False


def is_negative(size: Any) -> bool:
    """Whether a size is below zero, for all values of the variables in it."""
    return certain(lambda: size < 0) if is_dim(size) else size < 0


def max_dim(d1: Any, d2: Any) -> Any:
    """Return the larger of two sizes, whichever it is."""
    return slots.extreme("max", d1, d2) if is_dim(d1) or is_dim(d2) else max(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """Return the smaller of two sizes, whichever it is."""
    return slots.extreme("min", d1, d2) if is_dim(d1) or is_dim(d2) else min(d1, d2)


class Reference:
    """The base class of the values that stand for a reference where no program is recorded."""

    __slots__ = ()


def is_ref(aval: object) -> bool:
    """Whether it is the type of a reference, and not of a value."""
    return getattr(aval, "inner_aval", None) is not None


minijax.core.show(max_dim=max_dim, min_dim=min_dim)
