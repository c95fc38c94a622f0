"""Keeping a saved value in another memory, and getting it back. On a CPU, where there is one
memory, both do nothing.
"""

from __future__ import annotations

from typing import Any

from minijax.arrays.array import as_array
from minijax.arrays.dispatch import moved
from minijax.core.jaxpr import JaxprEqn, Var
from minijax.core.primitive import Primitive, no_effects
from minijax.features.checkpoint.policies import Offloadable
from minijax.features.sharding.transfer import annotated
from minijax.runtime import sharding

__all__ = ["fetch", "memory_kind_p", "offload"]

memory_kind_p = Primitive("memory_kind")


@memory_kind_p.shape_rule
def _(x, *, kind):
    return x


@memory_kind_p.impl
def _(x, *, kind):
    x = as_array(x)
    where = x.sharding
    if type(where) is not sharding.SingleDeviceSharding or where.device.platform == "cpu":
        return x
    target = where.with_memory_kind(kind)
    if target == where:
        return x
    return moved(x, target)


@memory_kind_p.jvp
def _(primals, tangents, *, kind):
    return memory_kind_p.bind(*primals, kind=kind), tangents[0]


@memory_kind_p.transpose
def _(ct, x, *, kind):
    return [ct]


@memory_kind_p.batch
def _(args, dims, *, kind):
    return memory_kind_p.bind(*args, kind=kind), dims[0]


@memory_kind_p.lower
def _(b, x, *, kind):
    return annotated(b, x, x.aval, kind)


def offload(x: Any, where: Offloadable) -> Any:
    """The value, in the memory it is to be kept in."""
    return memory_kind_p.bind(x, kind=where.dst)


def fetch(stored: Var, var: Var, where: Offloadable) -> JaxprEqn:
    """The equation that brings a stored value back."""
    return JaxprEqn([stored], [var], memory_kind_p, {"kind": where.src}, no_effects)
