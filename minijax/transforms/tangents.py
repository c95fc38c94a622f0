"""Symbolic zeros and undefined primals: what stands for a value in derivative programs.

May import the floors below. See `transforms.primitives` for the operations on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import AbstractValue, ShapedArray, get_aval

__all__ = ["UndefinedPrimal", "Zero", "is_undefined", "tangent_aval", "zero_like", "zero_tangent"]


class Zero:
    """A tangent or cotangent known to be zero: never computed unless a program needs it."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"

    @staticmethod
    def from_primal_value(x: Any) -> Zero:
        return zero_tangent(get_aval(x))


def zero_tangent(aval: AbstractValue) -> Zero:
    """The zero tangent of a value of this type; one object per type."""
    memo = aval.__dict__
    zero = memo.get("zero")
    if zero is None:
        zero = memo["zero"] = Zero(aval.to_tangent_aval())
    return zero


def zero_like(x: Any) -> Zero:
    """The zero tangent of a value."""
    return zero_tangent(get_aval(x))


def tangent_aval(x: Any) -> AbstractValue:
    return get_aval(x).to_tangent_aval()


class UndefinedPrimal:
    """A linear argument of an equation that is being transposed: it has a type and no value."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval.str_short()})"


def is_undefined(x: Any) -> bool:
    """Whether an argument of a transpose rule is one of its linear arguments."""
    return type(x) is UndefinedPrimal


def float0_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """The only value that a tangent of an integer or boolean array has."""
    return np.zeros(shape, dtypes.float0)


def is_float0(aval: AbstractValue) -> bool:
    return isinstance(aval, ShapedArray) and aval.dtype == dtypes.float0
