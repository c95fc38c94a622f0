"""Boxes: values that hold a pytree of arrays, which may become another one, of another structure.

A box is to a reference what a Python variable is to an array: it may be given anything. It goes
into functions under `jit`, `scan` and the like as an argument or by closure, and is the smallest
example of a type whose values change (`experimental.hijax`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minijax import tree_util
from minijax.core.avals import AbstractValue, get_aval
from minijax.core.effects import Effect, control_flow_allowed
from minijax.core.primitive import no_rule
from minijax.core.trace import Tracer
from minijax.features.hijax.lowering import HiPrimitive
from minijax.features.hijax.qdd import cur_qdd
from minijax.features.hijax.types import (
    AvalMutableQDD,
    AvalQDD,
    MutableHiType,
    aval_method,
    register_hitype,
)

__all__ = ["Box", "BoxTy", "BoxTypeState", "box_get", "box_set", "new_box"]


@dataclass(frozen=True)
class BoxTypeState:
    """The content of a box at one point: the types of the leaves, and the structure."""

    leaf_avals: tuple[AbstractValue, ...]
    treedef: Any

    def to_tangent_qdd(self) -> BoxTypeState:
        return BoxTypeState(tuple(a.to_tangent_aval() for a in self.leaf_avals), self.treedef)

    def normalize(self) -> BoxTypeState:
        return BoxTypeState(tuple(a.normalize() for a in self.leaf_avals), self.treedef)


class _AlsoTracers(type):
    """A tracer of a box counts as one."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is Box or (isinstance(x, Tracer) and type(x.aval) is BoxTy)


class Box(metaclass=_AlsoTracers):
    """Holds a pytree of arrays: `get()` gives it, `set(value)` replaces it."""

    def __new__(cls, init_val: Any = None) -> Any:
        box = new_box()
        box_set(box, init_val)
        return box

    @classmethod
    def _holding(cls, leaves: list[Any], tree: Any) -> Box:
        box = object.__new__(cls)
        box._leaves, box._tree = leaves, tree
        return box

    def get(self) -> Any:
        """Return the content of the box."""
        return box_get(self)

    def set(self, value: Any) -> None:
        """Let the box hold a pytree of arrays."""
        box_set(self, value)

    def cur_qdd(self) -> BoxTypeState:
        """Return what is known of the content of the box."""
        return BoxTypeState(tuple(map(get_aval, self._leaves)), self._tree)

    type_state = cur_qdd
    ty = property(lambda self: BoxTy())


@dataclass(frozen=True)
class BoxTy(MutableHiType):
    """The type of boxes. What they hold is in their state."""

    get = aval_method(lambda box: box_get(box))
    set = aval_method(lambda box, value: box_set(box, value))

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return "BoxTy"

    def lo_ty_qdd(self, state: BoxTypeState, /) -> list[AbstractValue]:
        return [low for aval in state.leaf_avals for low in aval.lo_ty()]

    def new_from_loval(self, state: BoxTypeState, /, *vals: Any) -> Box:
        return Box._holding(_raised(state, vals), state.treedef)

    def read_loval(self, state: BoxTypeState, val: Box, /) -> list[Any]:
        pairs = zip(state.leaf_avals, val._leaves, strict=True)
        return [low for aval, leaf in pairs for low in aval.lower_val(leaf)]

    def update_from_loval(self, state: BoxTypeState, val: Box, /, *lo_vals: Any) -> None:
        val._leaves, val._tree = _raised(state, lo_vals), state.treedef

    def to_tangent_aval(self) -> BoxTy:
        return BoxTy()


def _raised(state: BoxTypeState, values: Any) -> list[Any]:
    rest = iter(values)
    return [aval.raise_val(*[next(rest) for _ in aval.lo_ty()]) for aval in state.leaf_avals]


register_hitype(Box, lambda box: BoxTy())

# -- the primitives -------------------------------------------------------------------------------


class BoxEffect(Effect):
    """A box is read or changed."""

    def __repr__(self) -> str:
        return "Box"


_EFFECTS = frozenset((BoxEffect(),))
control_flow_allowed.add_type(BoxEffect)


class _NewBox(HiPrimitive):
    def abstract_eval(self, *, treedef: Any) -> tuple:
        return AvalQDD(BoxTy(), BoxTypeState((), treedef)), _EFFECTS

    def to_lojax(self, *, treedef: Any) -> Box:
        return Box._holding([], treedef)


class _BoxSet(HiPrimitive):
    multiple_results = True

    def abstract_eval(self, box: AvalMutableQDD, *leaves: AbstractValue, treedef: Any) -> tuple:
        box.mutable_qdd.update(BoxTypeState(leaves, treedef))
        return [], _EFFECTS

    def to_lojax(self, box: Box, *leaves: Any, treedef: Any) -> list:
        box._leaves, box._tree = list(leaves), treedef
        return []

    def jvp(self, primals: tuple, tangents: tuple, **params: Any) -> tuple:
        raise Exception(
            "can't differentiate Box.set operation, did you forget jax.lax.stop_gradient? A box of "
            "outside cannot hold a value that is differentiated."
        )


class _BoxGet(HiPrimitive):
    multiple_results = True

    def abstract_eval(self, box: AvalMutableQDD, *, avals: tuple) -> tuple:
        return list(avals), _EFFECTS

    def to_lojax(self, box: Box, *, avals: tuple) -> list:
        return list(box._leaves)


_new_box_p, _box_set_p, _box_get_p = _NewBox("new_box"), _BoxSet("box_set"), _BoxGet("box_get")
for _primitive in (_new_box_p, _box_set_p, _box_get_p):
    _primitive.batch(no_rule("a box holds whole arrays: use it outside of vmap"))
    _primitive.lower(no_rule("it is made operations on what the box holds before it is compiled"))


def new_box() -> Box:
    """A box that holds None."""
    return _new_box_p.bind(treedef=tree_util.tree_structure(None))


def box_set(box: Box, val: Any) -> None:
    """Let a box hold a pytree of arrays."""
    leaves, tree = tree_util.tree_flatten(val)
    _box_set_p.bind(box, *leaves, treedef=tree)


def box_get(box: Box) -> Any:
    """Return the content of a box."""
    state = cur_qdd(box)
    return state.treedef.unflatten(_box_get_p.bind(box, avals=state.leaf_avals))
