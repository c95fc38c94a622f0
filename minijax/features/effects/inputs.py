"""Effects on inputs of a program, in terms of the operands of an equation or of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.effects import Effect
from minijax.core.hooks import hooks
from minijax.core.jaxpr import Atom, Jaxpr, Literal, jaxprs_in_params

__all__ = ["JaxprInputEffect", "numbered", "on_operands"]


class JaxprInputEffect(Effect):
    """An effect on one input: a variable of the program, or the number of an operand in a rule."""

    __slots__ = ("input",)
    name = "Input"
    of_inputs = True  # whether it can be on inputs only, and not on what a program makes

    def __init__(self, input):
        self.input = input

    def replace(self, *, input) -> JaxprInputEffect:
        """Return the effect on another input."""
        return type(self)(input)

    def shown(self, name: Callable[[Any], str]) -> str:
        return str(self.replace(input=name(self.input)))

    def __eq__(self, other):
        return type(self) is type(other) and self.input == other.input

    def __hash__(self):
        return hash((type(self), self.input))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.input!r})"


def on_operands(effects: frozenset, atoms: Sequence[Atom], params: dict[str, Any]) -> frozenset:
    """The effects of an equation, those on inputs in terms of its operands.

    Rules give the number of an operand, or a variable of a program in the params; the inputs of such
    a program are the last operands of the equation.
    """
    own = [e for e in effects if isinstance(e, JaxprInputEffect)]
    if not own:
        return effects
    given: dict[Any, Atom] = {}
    for jaxpr in jaxprs_in_params(params):
        given.update(zip(reversed(jaxpr.invars), reversed(atoms), strict=False))
    place = lambda x: atoms[x] if type(x) is int else given.get(x, x)
    moved = [e.replace(input=place(e.input)) for e in own]
    return effects.difference(own).union(e for e in moved if type(e.input) is not Literal)


def check_inputs(jaxpr: Jaxpr) -> None:
    """ValueError for an effect on an input that is no input of the program."""
    for effect in jaxpr.effects:
        if isinstance(effect, JaxprInputEffect) and effect.of_inputs:
            if effect.input not in (*jaxpr.constvars, *jaxpr.invars):
                raise ValueError(
                    f"`JaxprInputEffect` {effect} does not have a corresponding jaxpr input. It is on "
                    f"a value that the program computes, or makes: pass that as an argument. {jaxpr}"
                )


def numbered(jaxpr: Jaxpr) -> frozenset:
    """The effects of a program whose inputs are the first operands; see `on_operands`."""
    place = {v: n for n, v in enumerate(jaxpr.invars)}
    moved = lambda e: e.replace(input=place.get(e.input, e.input))
    return frozenset(moved(e) if isinstance(e, JaxprInputEffect) else e for e in jaxpr.effects)


hooks.fill(on_operands=on_operands, check_effects=check_inputs)
