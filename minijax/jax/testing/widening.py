"""Numbers of NumPy's for the references: computed in a wide dtype, given back in the operands'
own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["bit_width", "kind_of", "narrow", "operands", "part_dtype", "quiet", "wide", "widened"]

_PARTS = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(float)}


def kind_of(dtype: Any) -> str:
    """The letter that NumPy has for a kind of number, also for the dtypes of `ml_dtypes`."""
    found = np.dtype(dtype)
    if found.kind in "biufc":
        return found.kind
    return found.name[0] if "int" in found.name else "f"


def bit_width(dtype: Any) -> int:
    """Return how many bits an element has, which for int4 and its like is less than it takes in
    memory.
    """
    found, kind = np.dtype(dtype), kind_of(dtype)
    if kind in "iu":
        return int(ml_dtypes.iinfo(found).bits)
    return int(ml_dtypes.finfo(found).bits) if kind == "f" else 8 * found.itemsize


def part_dtype(dtype: Any) -> np.dtype:
    """The dtype of the parts of a complex dtype; any other is its own."""
    return _PARTS.get(np.dtype(dtype), np.dtype(dtype))


def operands(*xs: Any) -> list[np.ndarray]:
    """Arrays of one dtype; Python's numbers take that of the arrays beside them."""
    kinds = {np.dtype(x.dtype) for x in xs if hasattr(x, "dtype")}
    kind = kinds.pop() if len(kinds) == 1 else np.result_type(*map(np.asarray, xs))
    return [np.asarray(x).astype(kind) for x in xs]


def wide(x: np.ndarray) -> np.ndarray:
    """Widen numbers to 64-bit floats, complex numbers of two, or integers that NumPy knows."""
    kind = kind_of(x.dtype)
    if kind in "fc":
        return x.astype(np.complex128 if kind == "c" else np.float64)
    return x if x.dtype.isbuiltin == 1 else x.astype(np.int64)


def narrow(x: Any, dtype: Any) -> np.ndarray:
    """The numbers in a dtype: rounded to it, or the low bits of integers."""
    found, kind = np.asarray(x), np.dtype(dtype)
    if found.dtype.isbuiltin != 1 and kind.isbuiltin != 1:  # `ml_dtypes` does not cast all to all
        found = wide(found)
    return found.astype(kind)


def quiet(function: Callable) -> Callable:
    """Decorator: infinities and NaNs come without warnings, as they do in XLA."""

    @functools.wraps(function)
    def silenced(*args, **kwargs):
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return silenced


def widened(function: Callable, out: Callable[[np.dtype], Any] = lambda dtype: dtype) -> Callable:
    """The function computed on wide operands; `out` says in which dtype the result is given.

    Its parameters after the operands are passed on by name.
    """

    @quiet
    def computed(*xs, **options):
        arrays = operands(*xs)
        found = function(*map(wide, arrays), **options)
        return narrow(found, out(arrays[0].dtype))

    return computed
