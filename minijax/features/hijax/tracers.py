"""Tracers of values of types that libraries define: their members are those that the type gives
them.

A member of the type is one of its tracers: an `aval_property` is read of the tracer, an
`aval_method` is called with it. Operators are methods of the type with one underscore: `x + y` is
`type._add(x, y)`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple

from minijax.core.jaxpr import Var
from minijax.core.staging import JaxprTrace, StagedTracer
from minijax.transforms.batching import BatchTrace, BatchTracer
from minijax.transforms.jvp import JVPTracer

__all__ = [
    "HiBatchTracer", "HiJVPTracer", "HiStagedTracer", "HiTracer", "aval_method", "aval_property",
]  # fmt: skip


class aval_method(NamedTuple):
    """A method of a type that tracers of it have too."""

    fun: Callable


class aval_property(NamedTuple):
    """A property of a type that tracers of it have too."""

    fget: Callable


# What the interpreters ask of their tracers, whatever the type has under these names.
_OWN = frozenset(("_trace", "_var", "aval", "concrete", "described", "origin"))


class HiTracer:
    """Mixed into the tracer classes, in front, for values of types that libraries define."""

    __slots__ = ()
    own: frozenset = _OWN

    def __getattribute__(self, name: str) -> Any:
        if name[:2] == "__" or name in type(self).own:
            return object.__getattribute__(self, name)
        return member(self, name)

    def __getattr__(self, name: str) -> Any:
        if name == "aval":
            raise AttributeError(name)
        return member(self, name)

    def concrete(self) -> None:
        return None

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> Any:
        return self.aval._eq(self, other) if hasattr(type(self.aval), "_eq") else self is other

    def __ne__(self, other: object) -> Any:
        return self.aval._ne(self, other) if hasattr(type(self.aval), "_ne") else self is not other

    def __jax_array__(self) -> Any:
        return member(self, "__jax_array__")()


def member(tracer: HiTracer, name: str) -> Any:
    """Return an attribute of a tracer: a member of its type."""
    aval = object.__getattribute__(tracer, "aval")
    try:
        found = getattr(aval, name)
    except AttributeError:
        raise AttributeError(
            f"{type(tracer).__name__} has no attribute {name}: it stands for a value of type "
            f"{aval.str_short()}, and has the members that this type gives it."
        ) from None
    if type(found) is aval_property:
        return found.fget(tracer)
    if type(found) is aval_method:
        return MethodType(found.fun, tracer)
    return found


def _operator(name: str):
    def call(self, *args):
        return getattr(self.aval, name)(self, *args)

    call.__name__ = f"__{name[1:]}__"
    return call


_ARITHMETIC = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
_OTHERS = (
    "getitem setitem len iter contains neg pos abs invert complex int float index round trunc "
    "floor ceil bool lt le gt ge reversed"
)
for _name in [*_ARITHMETIC.split(), *[f"r{n}" for n in _ARITHMETIC.split()], *_OTHERS.split()]:
    setattr(HiTracer, f"__{_name}__", _operator(f"_{_name}"))


class HiStagedTracer(HiTracer, StagedTracer):
    """Stands for a variable of a type that a library defined."""

    __slots__ = ()

    def __init__(self, trace: JaxprTrace, var: Var):
        super().__init__(trace, var)
        self.aval = var.aval.of_values()


class HiJVPTracer(HiTracer, JVPTracer):
    """A primal value of a type that a library defined, with a tangent."""

    __slots__ = ()
    own = HiTracer.own | {"primal", "tangent", "beneath"}
    beneath = property(lambda self: self.primal)


class HiBatchTracer(HiTracer, BatchTracer):
    """A value of a type that a library defined, mapped as `dim` says."""

    __slots__ = ()
    own = HiTracer.own | {"dim", "value", "beneath"}
    beneath = property(lambda self: self.value)

    def __init__(self, trace: BatchTrace, aval: Any, value: Any, dim: Any):
        self._trace, self.value, self.dim = trace, value, dim
        self.aval = aval.dec_rank(trace.axis.size, dim)
