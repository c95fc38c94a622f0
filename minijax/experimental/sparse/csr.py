"""`minijax.experimental.sparse.csr`: CSR and CSC, matrices compressed by rows or by columns.

They have no batch dimensions: BCSR does more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.errors import check_arguments_of
from minijax.experimental.sparse.base import JAXSparse
from minijax.experimental.sparse.coo import (
    check_shape,
    diagonal_length,
    index_of,
    matrix_of,
    promoted,
)
from minijax.lax.sparse.matrices import csr_fromdense_p, csr_matmat_p, csr_matvec_p, csr_todense_p
from minijax.tracebacks import public
from minijax.tree_util import register_pytree_node_class
from minijax.typing import DTypeLike

__all__ = [
    "CSC", "CSR", "csr_fromdense", "csr_fromdense_p", "csr_matmat", "csr_matmat_p", "csr_matvec",
    "csr_matvec_p", "csr_todense", "csr_todense_p",
]  # fmt: skip


class _Compressed(JAXSparse):
    """The fields of CSR and CSC: `data` and `indices` of shape (nse,), and `indptr`."""

    data: Array
    indices: Array
    indptr: Array

    def __init__(self, args: tuple[Array, Array, Array], *, shape: Sequence[int]):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        super().__init__(args, shape=tuple(shape))

    nse = property(lambda self: self.data.size)
    dtype = property(lambda self: self.data.dtype)
    _line = 0  # the axis that is compressed

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        """Zeros: nothing is stored. ValueError unless the shape has two dimensions."""
        shape = check_shape(cls, shape)
        indptr = jnp.zeros(shape[cls._line] + 1, index_dtype)
        return cls((jnp.empty(0, dtype), jnp.empty(0, index_dtype), indptr), shape=shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        """Ones on the diagonal `k`."""
        count = diagonal_length(N, M, k)
        before, lines = (max(k, 0), M) if cls._line else (max(-k, 0), N)
        along = jnp.arange(count, dtype=index_dtype)
        indices = along + index_of(max(-k, 0) if cls._line else max(k, 0), along)
        ends = np.clip(np.arange(lines + 1) - before, 0, count)
        indptr = jnp.asarray(ends, dtype=index_dtype)
        return cls((jnp.ones(count, dtype), indices, indptr), shape=(N, M))

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], dict[str, Any]]:
        return (self.data, self.indices, self.indptr), {"shape": self.shape}

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        if aux_data.keys() != {"shape"}:
            raise ValueError(f"{cls.__name__}.tree_unflatten: invalid {aux_data=}")
        made.shape = aux_data["shape"]
        return made

    def _times(self, other: Any, shape: tuple[int, ...], transpose: bool) -> Array:
        data, other = promoted(self.data, other)
        p = csr_matvec_p if other.ndim == 1 else csr_matmat_p
        return p.bind(data, self.indices, self.indptr, other, shape=shape, transpose=transpose)


def _check_no_axes(cls: type, axes: Any) -> None:
    if axes is not None:
        raise AssertionError(
            f"{cls.__name__}.transpose takes no axes, got {axes}: a matrix has one transpose."
        )


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix by rows: the values `data` and their columns `indices`, of shape (nse,), row
    by row; row `i` has those from `indptr[i]` up to `indptr[i + 1]`.
    """

    _bufs = property(lambda self: (self.data, self.indices, self.indptr))

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
        """The nonzeros of a dense matrix; see `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def todense(self) -> Array:
        """The dense matrix."""
        return csr_todense(self)

    def transpose(self, axes: Any = None) -> CSC:
        """The transpose, which has the same buffers."""
        _check_no_axes(CSR, axes)
        return CSC(self._bufs, shape=self.shape[::-1])

    def __matmul__(self, other: Any) -> Array:
        return self._times(other, self.shape, False)


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix by columns: the buffers are those of the transpose as a CSR."""

    _line = 1

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        """The nonzeros of a dense matrix, column by column; see `csr_fromdense`."""
        mat, nse = matrix_of("csr_fromdense", mat, nse)
        return csr_fromdense(mat.T, nse=nse, index_dtype=index_dtype).T

    def todense(self) -> Array:
        """The dense matrix."""
        return csr_todense(self.T).T

    def transpose(self, axes: Any = None) -> CSR:
        """The transpose, which has the same buffers."""
        _check_no_axes(CSC, axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    def __matmul__(self, other: Any) -> Array:
        return self._times(other, self.shape[::-1], True)


# -- functions ------------------------------------------------------------------------------------


def csr_fromdense(mat: Array, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """The first `nse` nonzeros of a matrix, row by row; all by default.

    Where there are fewer, the rest are zeros after the last row. ConcretizationTypeError if the
    matrix is traced and `nse` not given.
    """
    mat, nse = matrix_of("csr_fromdense", mat, nse)
    bufs = csr_fromdense_p.bind(mat, nse=nse, index_dtype=np.dtype(index_dtype))
    return CSR(tuple(bufs), shape=mat.shape)


def csr_todense(mat: CSR) -> Array:
    """The dense matrix."""
    return csr_todense_p.bind(mat.data, mat.indices, mat.indptr, shape=mat.shape)


def csr_matvec(mat: CSR, v: Array, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a vector of the same dtype; AssertionError if not."""
    return csr_matvec_p.bind(*mat._bufs, v, shape=mat.shape, transpose=transpose)


def csr_matmat(mat: CSR, B: Array, *, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a matrix of the same dtype; AssertionError if not."""
    return csr_matmat_p.bind(*mat._bufs, B, shape=mat.shape, transpose=transpose)


check_arguments_of(globals())


__dir__ = public(__name__)
