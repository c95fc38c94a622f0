"""`minijax.experimental.hijax`: names for libraries that define types and primitives of their own.

May import the floors below. A `HiPrimitive` on arrays is what its `to_lojax` computes, written in
place. Types may be declared, but values of them are not traced: a transformation refuses them as it
refuses any object that is no array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minijax.core.avals import AbstractValue, ShapedArray
from minijax.core.primitive import Primitive
from minijax.interpreters.ad import Zero, instantiate_zeros, is_undefined_primal

__all__ = [
    "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType", "MutableHiType",
    "ShapedArray", "Zero", "aval_method", "aval_property", "control_flow_allowed_effects",
    "instantiate_zeros", "is_undefined_primal", "register_hitype",
]  # fmt: skip


class HiType(AbstractValue):
    """The base class of a library's types."""

    __slots__ = ()


class MutableHiType(AbstractValue):
    """The base class of a library's types of values that change."""

    __slots__ = ()


class AvalQDD(NamedTuple):
    """A type, and what is known of the state of a value that changes."""

    aval: AbstractValue
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type, and where what is known of the state is kept."""

    aval: AbstractValue
    mutable_qdd: Any


class aval_method(NamedTuple):
    """A method of a type that tracers of it have too."""

    fun: Callable


class aval_property(NamedTuple):
    """A property of a type that tracers of it have too."""

    fget: Callable


class HiPrimitive(Primitive):
    """A primitive that stands for what its method `to_lojax` computes of its operands."""

    __slots__ = ("__dict__",)

    def bind(self, *args: Any, **params: Any) -> Any:
        return self.to_lojax(*args, **params)

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must override the method `to_lojax`.")


class _EffectTypes:
    """Classes of effects, as a set that can be added to."""

    def __init__(self) -> None:
        self._classes: set[type] = set()

    def add_type(self, effect: type) -> None:
        self._classes.add(effect)

    def contains(self, effect: Any) -> bool:
        return isinstance(effect, tuple(self._classes))


control_flow_allowed_effects = _EffectTypes()
_types: dict[type, Callable] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Declare which type the values of a class have."""
    _types[val_cls] = typeof_fn
