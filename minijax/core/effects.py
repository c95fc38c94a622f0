"""Effects: what an equation does besides computing its results. Imports nothing.

A jaxpr has the union of its equations' effects. Effects that are not `pure` keep an equation from
being removed when nothing reads its results. What a library's own effects may pass through, it says
by adding their classes to the sets at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = [
    "DebugEffect", "Effect", "EffectTypes", "IOEffect", "JaxprInputEffect", "NamedAxisEffect",
    "OrderedDebugEffect", "OrderedIOEffect", "check_allowed", "control_flow_allowed", "is_impure",
    "is_io", "lowerable", "observable", "ordered", "ordered_types", "remat_allowed",
]  # fmt: skip


class Effect:
    """The base class. Those of `ordered_types` happen in program order, by a token that is threaded."""

    pure = False

    def ends_within(self, jaxpr: Any) -> bool:
        """Whether it is on something that a program makes itself, so that nothing outside sees it."""
        return False


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

    def __repr__(self) -> str:
        return "OrderedDebug"


class IOEffect(Effect):
    """The program acts on the world outside; the order does not matter."""

    def __repr__(self) -> str:
        return "IO"


class OrderedIOEffect(Effect):
    """The program acts on the world outside, in the order of the program."""

    def __repr__(self) -> str:
        return "OrderedIO"


class JaxprInputEffect(Effect):
    """An effect on one input: a variable of the program, or the number of an operand in a rule."""

    __slots__ = ("input",)
    name = "Input"
    of_inputs = True  # whether it can be on inputs only, and not on what a program makes

    def __init__(self, input):
        self.input = input

    def replace(self, *, input) -> JaxprInputEffect:
        """The same effect on another input."""
        return type(self)(input)

    def __eq__(self, other):
        return type(self) is type(other) and self.input == other.input

    def __hash__(self):
        return hash((type(self), self.input))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.input!r})"


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


_SHOWING = (DebugEffect, OrderedDebugEffect, NamedAxisEffect)
_ACTING = (IOEffect, OrderedIOEffect)

ordered_types = EffectTypes(OrderedDebugEffect, OrderedIOEffect)
lowerable = EffectTypes(*_SHOWING, *_ACTING)
control_flow_allowed = EffectTypes(*_SHOWING, *_ACTING)
remat_allowed = EffectTypes(*_SHOWING)


def check_allowed(allowed: EffectTypes, effects: frozenset, where: str) -> None:
    """NotImplementedError where a program in a loop, a branch, ... has effects of other classes."""
    others = allowed.filter_not_in(effects)
    if others:
        raise NotImplementedError(
            f"Effects not supported in {where}: {others}. What is done there may be run any number of "
            "times, or not at all: do it outside."
        )


def is_io(effect: Effect) -> bool:
    """Whether the program acts on the world outside."""
    return isinstance(effect, _ACTING)


def ordered(effects: Iterable[Effect]) -> list[Effect]:
    """The effects for which a token is threaded, always in the same order."""
    return sorted(ordered_types.filter_in(effects), key=repr) if effects else []


def observable(effects: frozenset) -> frozenset:
    """The effects that somebody may wait for: those not `pure`."""
    return frozenset(e for e in effects if not getattr(e, "pure", False))


def is_impure(effects: frozenset) -> bool:
    """Whether an equation with these effects must be kept."""
    return any(not getattr(effect, "pure", False) for effect in effects)
