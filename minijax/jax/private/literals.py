"""Counterpart of `jax._src.literals`: numbers and NumPy arrays that know their type.

Where upstream's programs hold such numbers, ours hold Python's own with their type beside them;
these classes are for libraries that make them or look for them, and what functions with custom rules
are given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray, aval_makers
from minijax.features.custom_rules.typed_values import (
    TypedComplex,
    TypedFloat,
    TypedInt,
    typed_scalar_types,
)

__all__ = ["TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray", "typed_scalar_types"]


class TypedNdArray(np.ndarray):
    """A NumPy array with the type that it has in programs, whatever the mode is."""

    aval: ShapedArray
    weak_type: bool

    def __new__(cls, val: Any, aval: ShapedArray | None = None) -> TypedNdArray:
        array = np.asarray(val)
        made = (array if aval is None else array.astype(aval.dtype)).view(cls)
        made.aval = aval or ShapedArray(made.shape, made.dtype)
        made.weak_type = made.aval.weak_type
        return made

    def __array_finalize__(self, source: Any) -> None:
        self.aval, self.weak_type = ShapedArray(self.shape, self.dtype), False

    def __repr__(self) -> str:
        return (
            f"TypedNdArray({np.array2string(np.asarray(self), separator=', ')}, dtype={self.dtype})"
        )


aval_makers[TypedNdArray] = lambda x: x.aval
