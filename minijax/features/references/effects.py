"""Effects on references, by which equations keep their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minijax.core.effects import control_flow_allowed, lowerable, remat_allowed
from minijax.core.jaxpr import Jaxpr
from minijax.features.effects.inputs import JaxprInputEffect
from minijax.features.queries import is_ref

__all__ = ["AccumEffect", "FreezeEffect", "ReadEffect", "RefEffect", "WriteEffect"]


class RefEffect(JaxprInputEffect):
    """The equation reads a reference or changes it, so that it is kept, in its place."""

    __slots__ = ()
    of_inputs = False

    def __str__(self) -> str:
        return f"{self.name}<{self.input}>"

    @classmethod
    def ended_within(cls, jaxpr: Jaxpr, effects: Iterable[Any]) -> Iterable[Any]:
        own = [e for e in effects if type(e) is cls]
        if not any(is_ref(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)):
            return own
        made = {var for eqn in jaxpr.eqns for var in eqn.outvars}
        return [e for e in own if e.input in made]


class ReadEffect(RefEffect):
    """The equation reads the reference."""

    __slots__ = ()
    name = "Read"


class WriteEffect(RefEffect):
    """The equation writes to the reference."""

    __slots__ = ()
    name = "Write"


class AccumEffect(RefEffect):
    """The equation adds to the reference."""

    __slots__ = ()
    name = "Accum"


class FreezeEffect(RefEffect):
    """The equation takes the value of the reference, which ends there."""

    __slots__ = ()
    name = "Freeze"


for _types in (lowerable, control_flow_allowed, remat_allowed):
    _types.add_type(RefEffect)
