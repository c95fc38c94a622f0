"""Effects: what an equation does besides computing its results. Imports nothing.

A jaxpr has the union of its equations' effects. Effects that are not `pure` keep an equation from
being removed when nothing reads its results.
"""

from __future__ import annotations

__all__ = [
    "DebugEffect", "Effect", "IOEffect", "NamedAxisEffect", "OrderedDebugEffect", "OrderedIOEffect",
    "RefEffect", "is_impure", "observable", "ordered",
]  # fmt: skip


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


class DebugEffect(Effect):
    """Something is shown while the program runs; the order does not matter."""

    def __repr__(self) -> str:
        return "Debug"


class OrderedDebugEffect(Effect):
    """Something is shown while the program runs, in the order of the program."""

    ordered = True

    def __repr__(self) -> str:
        return "OrderedDebug"


class IOEffect(Effect):
    """The program acts on the world outside; the order does not matter."""

    def __repr__(self) -> str:
        return "IO"


class OrderedIOEffect(Effect):
    """The program acts on the world outside, in the order of the program."""

    ordered = True

    def __repr__(self) -> str:
        return "OrderedIO"


class RefEffect(Effect):
    """The equation reads a reference or changes it, so that it is kept, in its place."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


def ordered(effects: frozenset) -> list[Effect]:
    """The effects for which a token is threaded, always in the same order."""
    if not effects:
        return []
    return sorted([e for e in effects if getattr(e, "ordered", False)], key=repr)


def observable(effects: frozenset) -> frozenset:
    """The effects that somebody may wait for: those not `pure`."""
    return frozenset(e for e in effects if not getattr(e, "pure", False))


def is_impure(effects: frozenset) -> bool:
    """Whether an equation with these effects must be kept."""
    return any(not getattr(effect, "pure", False) for effect in effects)
