"""Effects: what an equation does besides computing its results. Imports nothing.

A jaxpr has the union of its equations' effects. Effects that are not `pure` keep an equation from
being removed when nothing reads its results.
"""

from __future__ import annotations

__all__ = ["Effect", "NamedAxisEffect", "is_impure"]


class Effect:
    """The base class. `ordered` effects happen in program order, by a token that is threaded."""

    pure = False
    ordered = False


class NamedAxisEffect(Effect):
    """The equation communicates over a named axis: it has a meaning only where that is bound."""

    __slots__ = ("name",)
    pure = True

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, NamedAxisEffect) and self.name == other.name

    def __hash__(self):
        return hash((NamedAxisEffect, self.name))

    def __repr__(self) -> str:
        return f"NamedAxisEffect({self.name!r})"


def is_impure(effects: frozenset) -> bool:
    """Whether an equation with these effects must be kept."""
    return any(not getattr(effect, "pure", False) for effect in effects)
