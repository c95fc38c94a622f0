"""How arrays print, where they are kept, and questions about types and objects."""

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
    """Test whether an object is a scalar: a number, or an array without dimensions.

    - `element`: any object, such as an array of any shape.

    Returns a bool. Source: NumPy's `isscalar`.

    >>> jnp.isscalar(jnp.array(1.0)), jnp.isscalar(jnp.array([1.0]))
    (True, False)
    """
    if hasattr(element, "__jax_array__"):
        return np.ndim(element.__jax_array__()) == 0
    if isinstance(element, (Array, np.ndarray)):
        return np.ndim(element) == 0
    return np.isscalar(element)


def iterable(y: Any) -> bool:
    """Test whether an object can be iterated over.

    - `y`: any object, such as an array of any shape.

    Returns a bool. Source: NumPy's `iterable`.

    >>> jnp.iterable(jnp.ones(2)), jnp.iterable(2.0)
    (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True
