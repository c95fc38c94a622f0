"""Types that libraries define ("hi types"): what they say of themselves, and how they are known.

A value of such a type is an object of a registered class. Where a program is recorded it is one
variable; when the program is compiled it becomes the arrays that the type says it is made of
(`features.hijax.lowering`). Of a value that changes in place, the state (what is known of it now) is part of
the variable's type, and is followed while programs are recorded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from minijax.core.avals import AbstractValue, aval_makers, get_aval, opaque_types
from minijax.core.trace import Trace
from minijax.features.hijax.qdd import MutableState, cur_qdd, hi_types, state_now, state_of
from minijax.features.hijax.tracers import (
    HiBatchTracer,
    HiJVPTracer,
    HiStagedTracer,
    aval_method,
    aval_property,
)
from minijax.features.references.cells import cell_makers
from minijax.features.vmappable import MappingSpec

__all__ = [
    "AvalMutableQDD", "AvalQDD", "HiPspec", "HiType", "MappingSpec", "MutableHiType",
    "MutableState", "aval_method", "aval_property", "check_same_state", "is_hi_value", "left_out",
    "register_hitype", "state_of",
]  # fmt: skip


class HiPspec:
    """The base class of what stands in `in_specs` and `out_specs` for a value of a library's type."""

    def to_lo(self) -> tuple:
        """A PartitionSpec for each of the arrays that the value is made of."""
        raise NotImplementedError(f"{type(self).__name__} must override the method `to_lo`.")

    def to_tangent_spec(self) -> HiPspec:
        raise NotImplementedError(f"{type(self).__name__} must override `to_tangent_spec`.")

    def to_ct_spec(self) -> HiPspec:
        raise NotImplementedError(f"{type(self).__name__} must override `to_ct_spec`.")


def left_out(self: Any, method: str) -> AssertionError:
    """Return the error of a method that a subclass has to define."""
    return AssertionError(f"must override: {type(self).__name__} has no method `{method}`")


class _Declared(AbstractValue):
    """The answers of types that libraries define to what the core asks of any type."""

    is_high = True
    has_qdd = False
    weak_type = False
    staged_tracer, jvp_tracer, batch_tracer = HiStagedTracer, HiJVPTracer, HiBatchTracer
    inner_aval = explicit = None
    vma: frozenset = frozenset()

    def __hash__(self) -> int:
        raise left_out(self, "__hash__")

    def __eq__(self, other: object) -> bool:
        raise left_out(self, "__eq__")

    def __repr__(self) -> str:
        fields = ",".join([f"{name}={value}" for name, value in vars(self).items()])
        return f"{type(self).__name__}({fields})"

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return str(self)

    def to_tangent_aval(self) -> AbstractValue:
        raise left_out(self, "to_tangent_aval")

    def to_ct_aval(self) -> AbstractValue:
        return self.to_tangent_aval()

    def to_cotangent_aval(self) -> AbstractValue:
        return self.to_ct_aval()


class HiType(_Declared):
    """The base class of a library's types. A subclass can be hashed and compared, and defines

    - `lo_ty()`: the types of the arrays that a value is made of; `lower_val(value)` gives them, and
      `raise_val(*arrays)` makes the value of them
    - `to_tangent_aval()`: the type of its tangents, and, if that is a type of the library's too,
      `vspace_zero()` and `vspace_add(x, y)` there
    - `dec_rank(size, spec)` and `inc_rank(size, spec)`: the type of an element of a mapped value, and
      of the values of this type together, for `vmap`; `leading_axis_spec()`, for `scan`
    """

    def lo_ty(self) -> list[AbstractValue]:
        raise left_out(self, "lo_ty")

    def lower_val(self, hi_val: Any) -> list[Any]:
        raise left_out(self, "lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        raise left_out(self, "raise_val")

    def vspace_zero(self) -> Any:
        raise left_out(self, "vspace_zero")

    def vspace_add(self, x: Any, y: Any) -> Any:
        raise left_out(self, "vspace_add")

    def dec_rank(self, size: int | None, spec: Any) -> HiType:
        raise left_out(self, "dec_rank")

    def inc_rank(self, size: int | None, spec: Any) -> HiType:
        raise left_out(self, "inc_rank")

    def leading_axis_spec(self) -> Any:
        raise left_out(self, "leading_axis_spec")

    def shard(self, mesh: Any, manual_axes: frozenset, check_vma: bool, spec: Any) -> HiType:
        raise left_out(self, "shard")

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> HiType:
        raise left_out(self, "unshard")

    def nospec(self, mesh: Any, check_vma: bool, all_names: tuple) -> Any:
        raise left_out(self, "nospec")

    def with_axis(self, axis: Any, size: int, split: Any = None) -> HiType:
        return self.inc_rank(size, self.leading_axis_spec() if axis == 0 else axis)


class MutableHiType(_Declared):
    """The base class of a library's types of values that change. A subclass defines, for a state,

    - `lo_ty_qdd(state)`: the types of the arrays that a value in that state is made of
    - `read_loval(state, value)` gives them, `new_from_loval(state, *arrays)` makes a new value, and
      `update_from_loval(state, value, *arrays)` puts others in their places

    and its values have a method `cur_qdd()` or `type_state()` that gives their state of now.
    """

    has_qdd = True
    is_writer = False
    type_state = aval_method(cur_qdd)

    def for_constant(self, value: Any) -> AvalQDD:
        return AvalQDD(self, state_now(value))

    def for_argument(self, value: Any) -> AvalQDD:
        return AvalQDD(self, cur_qdd(value))

    def lo_ty_qdd(self, state: Any, /) -> list[AbstractValue]:
        raise left_out(self, "lo_ty_qdd")

    def lo_ty(self) -> list[AbstractValue]:
        raise TypeError(
            f"which arrays a value of type {self} is made of depends on its state: see lo_ty_qdd"
        )

    def new_from_loval(self, state: Any, /, *vals: Any) -> Any:
        raise left_out(self, "new_from_loval")

    def read_loval(self, state: Any, val: Any, /) -> list[Any]:
        raise left_out(self, "read_loval")

    def update_from_loval(self, state: Any, val: Any, /, *lo_vals: Any) -> None:
        raise left_out(self, "update_from_loval")


# -- the state of values that change --------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class AvalQDD(_Declared):
    """A type, and a state: that of a variable at the place where it is bound."""

    aval: AbstractValue
    qdd: Any

    has_qdd = True

    def lo_ty(self) -> list[AbstractValue]:
        return self.aval.lo_ty_qdd(self.qdd)

    def read_loval(self, val: Any) -> list[Any]:
        return self.aval.read_loval(self.qdd, val)

    def new_from_loval(self, *lovals: Any) -> Any:
        return self.aval.new_from_loval(self.qdd, *lovals)

    lower_val, raise_val = read_loval, new_from_loval

    def new_cell(self, values: Iterator[Any], trace: Trace) -> Any:
        """Return an object in this state, made of the next of the values."""
        return self.new_from_loval(*[next(values) for _ in self.lo_ty()])

    def of_values(self) -> AbstractValue:
        return self.aval

    def to_tangent_aval(self) -> AvalQDD:
        return AvalQDD(self.aval.to_tangent_aval(), self.qdd.to_tangent_qdd())

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return self.aval.str_short(short_dtypes)


@dataclasses.dataclass(frozen=True)
class AvalMutableQDD:
    """A type, and where the state is kept: what rules of primitives are given."""

    aval: AbstractValue
    mutable_qdd: MutableState


def check_same_state(name: str, aval: AvalQDD, last: AvalQDD) -> None:
    """TypeError if the body of a loop changes of what arrays a value is made, or their structure."""
    made = [[low.strip_weak_type() for low in each.lo_ty()] for each in (aval, last)]
    kinds = type(aval.qdd), type(last.qdd)
    if made[0] != made[1] or kinds[0] is not kinds[1]:
        raise TypeError(
            f"the body of {name} changes the type of a value that it changes in place, from "
            f"{aval.qdd} to {last.qdd}: keep the structure, shapes and dtypes of what it holds the "
            "same in each step."
        )


class CellObject:
    """An object that changes in place, as a cell (`features.references`)."""

    __slots__ = ("aval", "object")
    written = True

    def __init__(self, x: Any, aval: AvalQDD):
        self.object, self.aval = x, aval

    def values(self) -> list[Any]:
        """Return the arrays that the object is made of."""
        return self.aval.read_loval(self.object)

    def keep(self, last: AvalQDD, values: Iterator[Any], written: bool) -> None:
        """Put the next of the values into the object, which is in this state now."""
        self.aval.aval.update_from_loval(
            last.qdd, self.object, *[next(values) for _ in last.lo_ty()]
        )

    def check_settled(self, name: str, last: AvalQDD) -> None:
        """Raise TypeError if the body of a loop leaves the object in another state."""
        check_same_state(name, self.aval, last)


def _cell_of(x: Any) -> CellObject | None:
    aval = get_aval(x).for_constant(x)
    return CellObject(x, aval) if type(aval) is AvalQDD else None


# -- the values -----------------------------------------------------------------------------------


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Declare which type the values of a class have: objects of it go wherever arrays go."""
    hi_types.add(val_cls)
    aval_makers[val_cls] = typeof_fn
    opaque_types.add(val_cls)
    cell_makers[val_cls] = _cell_of


def is_hi_value(x: Any) -> bool:
    """Whether it is an object of a registered class, and no tracer."""
    return type(x) in hi_types
