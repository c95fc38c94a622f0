"""Symbolic zeros and undefined primals: what stands for a value in derivative programs.

See `transforms.primitives` for the operations on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import AbstractValue, ShapedArray, get_aval

__all__ = [
    "Summed", "UndefinedPrimal", "Zero", "cotangent_types", "cotangents_of", "is_undefined",
    "kinds_of", "spread_tangents", "sums_among", "zero_like", "zero_tangent",
]  # fmt: skip


class Zero:
    """A tangent or cotangent known to be zero: never computed unless a program needs it."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"

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


def spread_tangents(
    given: Iterable[Any], nonzeros: Sequence[bool], avals: Sequence[AbstractValue]
) -> list[Any]:
    """Put symbolic zeros, of values of these types, between the tangents that are not zero."""
    rest = iter(given)
    return [next(rest) if nz else zero_tangent(a) for a, nz in zip(avals, nonzeros, strict=True)]


class UndefinedPrimal:
    """A linear argument of an equation that is being transposed: it has a type and no value.

    `sum`, if it is not None, is its cotangent so far, which a loop carries. A rule may add to that and
    return the sum as `Summed`. The transpose of reading a few elements of an array then writes these
    elements only, instead of an array that is zero everywhere else.
    """

    __slots__ = ("aval", "sum")

    def __init__(self, aval: AbstractValue, sum: Any = None):
        self.aval, self.sum = aval, sum

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval.str_short()})"


class Summed:
    """A cotangent that includes the one so far: see `UndefinedPrimal`."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def is_undefined(x: Any) -> bool:
    """Whether an argument of a transpose rule is one of its linear arguments."""
    return type(x) is UndefinedPrimal


def kinds_of(cts: Sequence[Any]) -> list[Any]:
    """Return for each cotangent False if it is `Zero`, or else "weak" or "strong", after its type."""
    weak = lambda ct: getattr(get_aval(ct), "weak_type", False)
    return [type(ct) is not Zero and ("weak" if weak(ct) else "strong") for ct in cts]


def cotangent_types(avals: Iterable[AbstractValue], kinds: Sequence[Any]) -> list[AbstractValue]:
    """The types of the cotangents of values of these types that are not zero, by their kinds."""
    pairs = ((a.to_cotangent_aval(), kind) for a, kind in zip(avals, kinds, strict=False) if kind)
    return [aval.strip_weak_type() if kind == "strong" else aval for aval, kind in pairs]


def sums_among(args: Sequence[Any]) -> list[bool]:
    """Return which arguments of a transpose rule have a `sum`."""
    return [is_undefined(a) and a.sum is not None for a in args]


def cotangents_of(args: Sequence[Any], found: Iterable[Any]) -> list[Any]:
    """Return the result of a transpose rule: `found` for undefined arguments, None for the others.

    Cotangents of arguments with a `sum` have been added to that.
    """
    rest = iter(found)
    given = [next(rest) if is_undefined(a) else None for a in args]
    pairs = zip(given, sums_among(args), strict=True)
    return [Summed(ct) if flag and ct is not None else ct for ct, flag in pairs]


def float0_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """The only value that a tangent of an integer or boolean array has."""
    return np.zeros(shape, dtypes.float0)


def is_float0(aval: AbstractValue) -> bool:
    return isinstance(aval, ShapedArray) and aval.dtype == dtypes.float0
