"""`minijax.typing`: names for annotations.

Core layer: imports the ground layer and `core.array` only, so that every layer above can use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, Union

import numpy as np

from minijax.core.array import Array
from minijax.dtypes import DTypeLike
from minijax.namespace import shown

__all__ = ["ArrayLike", "DTypeLike"]


# The arguments of `minijax.numpy` that stand for an array: no lists and no strings. Users' annotations
# join names of types in quotes to a Union, not to a `|` of types.
ArrayLike: TypeAlias = Union[  # noqa: UP007
    Array, np.ndarray, np.bool_, np.number, bool, int, float, complex
]

DimSize: TypeAlias = int | Any  # an integer or a symbolic size
Shape: TypeAlias = Sequence[DimSize]
Axis: TypeAlias = int | Sequence[int] | None


class UnaryFunction(Protocol):
    """A function of one array."""

    __name__: str

    def __call__(self, x: ArrayLike, /) -> Array: ...


class BinaryFunction(Protocol):
    """A function of two arrays that broadcast."""

    __name__: str

    def __call__(self, x: ArrayLike, y: ArrayLike, /) -> Array: ...


__dir__ = shown(__name__)
