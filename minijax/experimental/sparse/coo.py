"""`minijax.experimental.sparse.coo`: COO, matrices as values, rows and columns.

It is the simplest of the formats, without batch dimensions: BCOO does more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.errors import check_arguments_of
from minijax.experimental.sparse.base import JAXSparse
from minijax.experimental.sparse.util import numbers_of, stored_elements
from minijax.lax.sparse.matrices import (
    COOInfo,
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
)
from minijax.numpy.promotion import promote_dtypes
from minijax.tracebacks import public
from minijax.tree_util import register_pytree_node_class
from minijax.typing import DTypeLike

__all__ = [
    "COO", "COOInfo", "coo_fromdense", "coo_fromdense_p", "coo_matmat", "coo_matmat_p",
    "coo_matvec", "coo_matvec_p", "coo_todense", "coo_todense_p",
]  # fmt: skip


@register_pytree_node_class
class COO(JAXSparse):
    """A sparse matrix: its values `data`, and where they stand, `row` and `col`, each of shape
    (nse,). Values at one place add up. `rows_sorted` and `cols_sorted` promise an order.
    """

    data: Array
    row: Array
    col: Array

    def __init__(
        self,
        args: tuple[Array, Array, Array],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ):
        self.data, self.row, self.col = map(jnp.asarray, args)
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted
        super().__init__(args, shape=tuple(shape))

    nse = property(lambda self: self.data.size)
    dtype = property(lambda self: self.data.dtype)
    _info = property(
        lambda self: COOInfo(
            shape=self.shape, rows_sorted=self._rows_sorted, cols_sorted=self._cols_sorted
        )
    )
    _bufs = property(lambda self: (self.data, self.row, self.col))

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """The nonzeros of a dense matrix; see `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def _sort_indices(self) -> COO:
        """Sort the elements by rows, and by columns in each."""
        if self._rows_sorted:
            return self
        row, col, data = lax.sort((self.row, self.col, self.data), num_keys=2)
        return type(self)((data, row, col), shape=self.shape, rows_sorted=True)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        """Zeros: nothing is stored. ValueError unless the shape has two dimensions."""
        shape = check_shape(cls, shape)
        data, places = jnp.empty(0, dtype), jnp.empty(0, index_dtype)
        return cls((data, places, places), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        """Ones on the diagonal `k`."""
        count = diagonal_length(N, M, k)
        along = jnp.arange(count, dtype=index_dtype)
        row, col = along + index_of(max(-k, 0), along), along + index_of(max(k, 0), along)
        data = jnp.ones(count, dtype)
        return cls((data, row, col), shape=(N, M), rows_sorted=True, cols_sorted=True)

    def todense(self) -> Array:
        """The dense matrix."""
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The transpose. NotImplementedError if `axes` are given."""
        if axes is not None:
            raise NotImplementedError("axes argument to transpose()")
        return COO(
            (self.data, self.col, self.row),
            shape=self.shape[::-1],
            rows_sorted=self._cols_sorted,
            cols_sorted=self._rows_sorted,
        )

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], dict[str, Any]]:
        return self._bufs, self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> COO:
        made = object.__new__(cls)
        made.data, made.row, made.col = children
        if aux_data.keys() != {"shape", "rows_sorted", "cols_sorted"}:
            raise ValueError(f"COO.tree_unflatten: invalid {aux_data=}")
        made.shape = aux_data["shape"]
        made._rows_sorted = aux_data["rows_sorted"]
        made._cols_sorted = aux_data["cols_sorted"]
        return made

    def __matmul__(self, other: Any) -> Array:
        data, other = promoted(self.data, other)
        made = COO((data, self.row, self.col), **self._info._asdict())
        return coo_matvec(made, other) if other.ndim == 1 else coo_matmat(made, other)


# -- what COO and CSR share ---------------------------------------------------------------------


def promoted(data: Array, other: Any) -> list[Array]:
    """The values of a matrix and what it is multiplied with, in one dtype.

    NotImplementedError for another sparse array, or unless it is a vector or a matrix.
    """
    if isinstance(other, JAXSparse):
        raise NotImplementedError("matmul between two sparse objects.")
    data, other = promote_dtypes(data, jnp.asarray(other))
    if other.ndim not in (1, 2):
        raise NotImplementedError(f"matmul with object of shape {other.shape}")
    return [data, other]


def check_shape(cls: type, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a matrix, as a tuple; ValueError if it is none."""
    shape = tuple(shape)
    if len(shape) != 2:
        raise ValueError(f"{cls.__name__} must have ndim=2; got {shape=}")
    return shape


def diagonal_length(rows: int, columns: int, k: int) -> int:
    """The number of elements on diagonal `k` of a matrix."""
    return max(0, min(rows, columns - k) if k >= 0 else min(rows + k, columns))


def index_of(value: int, like: Array) -> Any:
    """A number in the dtype of an array of indices."""
    return np.asarray(value).astype(like.dtype)


def matrix_of(name: str, mat: Any, nse: Any) -> tuple[Any, int]:
    """A dense matrix, and how many of its elements to store."""
    if not hasattr(mat, "dtype"):
        raise AttributeError(
            f"{name} takes an array, got {mat!r} of type {type(mat).__name__}, which has no dtype: "
            "convert it with minijax.numpy.asarray."
        )
    mat = numbers_of(mat)
    nse = stored_elements(mat, nse, name)
    if mat.ndim != 2:
        raise AssertionError(f"{name} takes a matrix, got an array of shape {mat.shape}.")
    return mat, nse


# -- functions ------------------------------------------------------------------------------------


def coo_fromdense(mat: Array, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32) -> COO:
    """The first `nse` nonzeros of a matrix, row by row; all by default.

    Where there are fewer, the rest are zeros at (0, 0). ConcretizationTypeError if the matrix is
    traced and `nse` not given.
    """
    mat, nse = matrix_of("coo_fromdense", mat, nse)
    bufs = coo_fromdense_p.bind(mat, nse=nse, index_dtype=index_dtype)
    return COO(tuple(bufs), shape=mat.shape, rows_sorted=True)


def coo_todense(mat: COO) -> Array:
    """The dense matrix."""
    return coo_todense_p.bind(*_buffers(mat), spinfo=mat._info)


def coo_matvec(mat: COO, v: Array, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a vector of the same dtype; AssertionError if not."""
    return coo_matvec_p.bind(*_buffers(mat), v, spinfo=mat._info, transpose=transpose)


def coo_matmat(mat: COO, B: Array, *, transpose: bool = False) -> Array:
    """The matrix, or its transpose, times a matrix of the same dtype; AssertionError if not."""
    return coo_matmat_p.bind(*_buffers(mat), B, spinfo=mat._info, transpose=transpose)


def _buffers(mat: COO) -> tuple[Array, Array, Array]:
    return mat.data, mat.row, mat.col


check_arguments_of(globals())


__dir__ = public(__name__)
