"""Effects: what an equation does besides computing its results. Imports nothing.

A jaxpr has the union of its equations' effects. Effects that are not `pure` keep an equation from
being removed when nothing reads its results. The sets at the end say what effects may pass through;
who defines effects adds their classes to these (`features.effects`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    "Effect", "EffectTypes", "NamedAxisEffect", "check_allowed", "control_flow_allowed",
    "is_impure", "lowerable", "observable", "ordered", "ordered_types", "remat_allowed",
]  # fmt: skip


class Effect:
    """The base class. Effects of `ordered_types` happen in program order: a token is threaded."""

    pure = False

    def shown(self, name: Callable[[Any], str]) -> str:
        """Return the text of the effect in a jaxpr, where `name` gives the names of variables."""
        return str(self)

    @classmethod
    def ended_within(cls, jaxpr: Any, effects: Iterable[Any]) -> Iterable[Any]:
        """Return those of this class on objects that the program makes, not observed outside."""
        return ()


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


class EffectTypes:
    """A set of classes of effects, which can be added to; an effect of a subclass is in it too."""

    def __init__(self, *types: type):
        self._types = types

    def add_type(self, effect_type: type) -> None:
        """Have effects of this class in it from now on."""
        if effect_type not in self._types:
            self._types = (*self._types, effect_type)

    def contains(self, effect: Effect) -> bool:
        return isinstance(effect, self._types)

    def filter_in(self, effects: Iterable[Effect]) -> list[Effect]:
        return [effect for effect in effects if isinstance(effect, self._types)]

    def filter_not_in(self, effects: Iterable[Effect]) -> list[Effect]:
        return [effect for effect in effects if not isinstance(effect, self._types)]

    def __repr__(self) -> str:
        return f"EffectTypes({', '.join(sorted(t.__name__ for t in self._types))})"


ordered_types = EffectTypes()
lowerable = EffectTypes(NamedAxisEffect)
control_flow_allowed = EffectTypes(NamedAxisEffect)
remat_allowed = EffectTypes(NamedAxisEffect)


def check_allowed(allowed: EffectTypes, effects: frozenset, where: str) -> None:
    """NotImplementedError where a program in a loop, a branch, ... has effects of other classes."""
    others = allowed.filter_not_in(effects)
    if others:
        raise NotImplementedError(
            f"Effects not supported in {where}: {others}. What is done there may be run any number of "
            "times, or not at all: do it outside."
        )


def ordered(effects: Iterable[Effect]) -> list[Effect]:
    """The effects for which a token is threaded, always in the same order."""
    return sorted(ordered_types.filter_in(effects), key=repr) if effects else []


def observable(effects: frozenset) -> frozenset:
    """The effects that somebody may wait for: those not `pure`."""
    return frozenset(e for e in effects if not getattr(e, "pure", False))


def is_impure(effects: frozenset) -> bool:
    """Whether an equation with these effects must be kept."""
    return any(not getattr(effect, "pure", False) for effect in effects)
