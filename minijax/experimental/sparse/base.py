"""`JAXSparse`, what sparse arrays of every format have in common, and their warnings and errors.

The operators stand here as "not implemented": a format defines those that it has, and `sparsify`
gives BCOO and BCSR theirs.
"""

from __future__ import annotations

import abc
import math
import operator
from collections.abc import Sequence
from typing import Any

from minijax.core.array import Array
from minijax.core.trace import Tracer
from minijax.lax.sparse.info import SparseInfo

__all__ = [
    "CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError", "SparseEfficiencyWarning",
    "SparseInfo",
]  # fmt: skip


class SparseEfficiencyError(ValueError):
    """An operation would make a sparse array that stores far more than it needs."""


class SparseEfficiencyWarning(UserWarning):
    """An operation makes a sparse array that stores far more than it needs."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation on an accelerator takes a slower way than it could."""


def _size(n: Any) -> Any:
    """A size of a shape; the value of a concrete array, by which programs could not be found again."""
    return operator.index(n) if isinstance(n, Array) and not isinstance(n, Tracer) else n


class JAXSparse(abc.ABC):
    """The base class of sparse arrays: shape, size and ndim, `T`, and operators.

    A format gives `nse` (the number of specified elements), `dtype`, `todense`, `transpose`,
    `tree_flatten` and `tree_unflatten`. An operator that it does not define raises
    NotImplementedError.
    """

    data: Array
    shape: tuple[int, ...]
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, args: tuple[Array, ...], *, shape: Sequence[int]):
        self.shape = tuple(map(_size, shape))

    @property
    @abc.abstractmethod
    def nse(self) -> int:
        """The number of specified elements."""

    @property
    @abc.abstractmethod
    def dtype(self) -> Any:
        """The dtype of the elements."""

    @abc.abstractmethod
    def tree_flatten(self) -> tuple:
        """The buffers, and what is known beside them."""

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> JAXSparse:
        """The array of buffers."""

    @abc.abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> JAXSparse:
        """The array with its axes permuted."""

    @abc.abstractmethod
    def todense(self) -> Array:
        """The dense array."""

    @property
    def size(self) -> int:
        """The number of elements of the dense array."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def T(self) -> JAXSparse:
        """The transpose."""
        return self.transpose()

    def block_until_ready(self) -> JAXSparse:
        """Wait until its buffers are computed."""
        for buffer in self.tree_flatten()[0]:
            buffer.block_until_ready()
        return self

    def _described(self) -> str:
        return f"nse={self.nse}"

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            text = f"{name}({self.dtype.name}{list(self.shape)}, {self._described()})"
        except Exception:  # its places are held by something that is no array
            return f"{name}(<invalid>)"
        if isinstance(self.data, Tracer):
            return f"{type(self.data).__name__}[{text}]"
        return text

    def __len__(self) -> int:
        return self.shape[0]


def _not_implemented(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self)}.{name}")

    method.__name__ = method.__qualname__ = name
    return method


for _name in (
    "sum", "__neg__", "__pos__", "__matmul__", "__rmatmul__", "__mul__", "__rmul__", "__add__",
    "__radd__", "__sub__", "__rsub__", "__getitem__",
):  # fmt: skip
    setattr(JAXSparse, _name, _not_implemented(_name))
