"""Keeping a saved value in the memory of the host, and getting it back."""

from __future__ import annotations

from typing import Any

from minijax.core.jaxpr import JaxprEqn, Var
from minijax.core.primitive import no_effects
from minijax.features.checkpoint.decisions import Offloadable
from minijax.features.sharding.memory import space_of
from minijax.features.sharding.transfer import device_put_p
from minijax.runtime.buffers import CopySemantics

__all__ = ["fetch", "offload", "stored_as"]


def _into(kind: str) -> dict[str, Any]:
    """The parameters of a copy of one value into the memory of this kind."""
    return {
        "devices": (space_of(kind),),
        "srcs": (None,),
        "copy_semantics": (CopySemantics.ALWAYS_COPY,),
    }


def offload(x: Any, where: Offloadable) -> Any:
    """The value, in the memory it is to be kept in."""
    (out,) = device_put_p.bind(x, **_into(where.dst))
    return out


def stored_as(var: Var, where: Offloadable) -> Var:
    """A variable for a value that is stored."""
    return Var(var.aval.update(memory_space=space_of(where.dst)))


def fetch(stored: Var, var: Var, where: Offloadable) -> JaxprEqn:
    """The equation that brings a stored value back."""
    return JaxprEqn([stored], [var], device_put_p, _into(where.src), no_effects)
