"""Numbers and NumPy arrays with the dtypes that they have in programs, for functions with custom rules.

Such a function may be called on values that no transformation has made arrays of. A Python number
stays one, so that it may be a size, a power or a key of a dictionary, but has a dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import get_aval

__all__ = ["TypedComplex", "TypedFloat", "TypedInt", "typed", "typed_scalar_types"]


def _class_of(kind: type, name: str) -> type:
    """A class of numbers of a Python type, each with a dtype and a weak type."""

    def new(cls: type, value: Any, dtype: Any) -> Any:
        number = kind.__new__(cls, value)
        number.dtype = np.dtype(dtype)
        return number

    members = {
        "__new__": new,
        "__str__": kind.__repr__,
        "__repr__": lambda self: f"{name}({kind(self)}, dtype={self.dtype.name})",
        "__getnewargs__": lambda self: (kind(self), self.dtype),
        "__doc__": f"A {kind.__name__} with a dtype, which is weak.",
        "__module__": __name__,
    }
    return type(name, (kind,), members)


TypedInt = _class_of(int, "TypedInt")
TypedFloat = _class_of(float, "TypedFloat")
TypedComplex = _class_of(complex, "TypedComplex")
typed_scalar_types = {TypedInt, TypedFloat, TypedComplex}

_classes = {int: TypedInt, float: TypedFloat, complex: TypedComplex}


def typed(x: Any) -> Any:
    """Return an argument of a user's function in its dtype: a value of NumPy's in the width of the
    current mode, a Python number with a dtype. TypeError for what is neither an array nor a number,
    OverflowError for an integer that its dtype does not hold.
    """
    if isinstance(x, Array):
        return x
    aval, kind = get_aval(x), _classes.get(type(x))
    if not hasattr(aval, "dtype"):  # of a type of a user's own
        return x
    dtype = aval.dtype
    if kind is not None:
        if kind is TypedInt:
            dtypes.number_as(x, dtype)
        return kind(x, dtype)
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype != dtype:
        return x.astype(dtype)
    return x
