"""How arrays print, where they are kept, and questions about types and objects.

May import the ground and `core`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.array import Array

__all__ = [
    "array_repr", "array_str", "can_cast", "get_printoptions", "isscalar", "iterable",
    "printoptions", "save", "savez", "set_printoptions",
]  # fmt: skip

get_printoptions = np.get_printoptions
set_printoptions = np.set_printoptions
printoptions = np.printoptions
can_cast = np.can_cast
save = np.save
savez = np.savez
array_repr = np.array_repr
array_str = np.array_str


def isscalar(element: Any) -> bool:
    """Whether `element` is a scalar: a number, or an array without axes. Source: numpy.isscalar."""
    if isinstance(element, (Array, np.ndarray)) or hasattr(element, "__jax_array__"):
        return np.ndim(element) == 0
    return np.isscalar(element)


def iterable(y: Any) -> bool:
    """Whether `y` can be iterated over. Source: numpy.iterable."""
    try:
        iter(y)
    except TypeError:
        return False
    return True
