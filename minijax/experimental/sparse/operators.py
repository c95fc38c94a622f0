"""The operators and methods of BCOO and BCSR: those of dense arrays, sparsified.

It defines nothing: importing it gives the classes their members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from minijax import numpy as jnp
from minijax.experimental.sparse.bcoo import BCOO
from minijax.experimental.sparse.bcsr import BCSR
from minijax.experimental.sparse.transform import sparsify

__all__: list[str] = []


def _swapped(function: Callable) -> Callable:
    return lambda a, b: function(b, a)


def _index(mat: Any, index: Any) -> Any:
    """Return the part of a matrix at an index, as of a dense array."""
    return sparsify(lambda x: x[index])(mat)


def _iterate(mat: BCOO) -> Iterator[Any]:
    if not mat.shape:
        raise TypeError("iteration over a 0-d array")
    return iter([_index(mat, place) for place in range(mat.shape[0])])


def _sum(mat: BCOO, *args: Any, **kwargs: Any) -> Any:
    """The sum of elements along axes, or of all; see `numpy.sum`."""
    return sparsify(lambda x: x.sum(*args, **kwargs))(mat)


def _power(mat: BCOO, exponent: Any) -> Any:
    """The power of each element; an exponent that is an integer stays one."""
    if isinstance(exponent, int):
        return sparsify(lambda x: x**exponent)(mat)
    return sparsify(jnp.power)(mat, exponent)


def _reshape(mat: BCOO, *args: Any, **kwargs: Any) -> Any:
    """The array in another shape; see `numpy.reshape`."""
    return sparsify(lambda x: x.reshape(*args, **kwargs))(mat)


def _astype(mat: BCOO, *args: Any, **kwargs: Any) -> Any:
    """The array in another dtype."""
    return sparsify(lambda x: x.astype(*args, **kwargs))(mat)


_BINARY = {
    "add": jnp.add, "eq": jnp.equal, "ge": jnp.greater_equal, "gt": jnp.greater,
    "le": jnp.less_equal, "lt": jnp.less, "matmul": jnp.matmul, "mul": jnp.multiply,
    "ne": jnp.not_equal, "pow": jnp.power, "sub": jnp.subtract, "truediv": jnp.true_divide,
}  # fmt: skip
_SWAPPED = ("add", "matmul", "mul", "pow", "sub", "truediv")
_METHODS: dict[str, Callable] = {
    "__abs__": sparsify(jnp.abs), "__neg__": sparsify(jnp.negative),
    "__pos__": sparsify(jnp.positive), "__getitem__": _index, "__iter__": _iterate, "sum": _sum,
    "reshape": _reshape, "astype": _astype,
}  # fmt: skip
for _name, _function in _BINARY.items():
    _METHODS[f"__{_name}__"] = sparsify(_function)
    if _name in _SWAPPED:
        _METHODS[f"__r{_name}__"] = sparsify(_swapped(_function))


def _attach(cls: type, names: Any) -> None:
    for name in names:
        setattr(cls, name, _METHODS[name])


_METHODS["__pow__"] = _power
_attach(BCOO, _METHODS)
_attach(BCSR, ("__getitem__", "__matmul__", "__rmatmul__"))
