"""`minijax.typing`: names for annotations. May import the ground floor and `core`."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from minijax.core.array import Array

__all__ = ["ArrayLike", "DTypeLike"]


@runtime_checkable
class _HasDType(Protocol):
    """Anything with a `dtype`."""

    @property
    def dtype(self) -> np.dtype: ...


# What a function of minijax.numpy takes for an array: no lists and no strings.
ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex

# What names a dtype.
DTypeLike = str | type[Any] | np.dtype | _HasDType
