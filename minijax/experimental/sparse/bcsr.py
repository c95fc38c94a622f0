"""`minijax.experimental.sparse.bcsr`: BCSR, batches of matrices compressed by rows."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.dtypes import canonicalize_dtype
from minijax.errors import check_arguments_of
from minijax.experimental.sparse.base import JAXSparse
from minijax.experimental.sparse.bcoo import (
    BCOO,
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_eliminate_zeros,
    bcoo_sum_duplicates,
)
from minijax.experimental.sparse.util import SparseInfo, numbers_of, stored_elements
from minijax.features.vmappable import register_vmappable
from minijax.lax.sparse.bcsr import (
    BCSRProperties,
    bcoo_to_bcsr,
    bcsr_dot_general_p,
    bcsr_extract_p,
    bcsr_fromdense_p,
    bcsr_to_bcoo,
    bcsr_todense_p,
    check_bcsr,
    check_bcsr_indices,
)
from minijax.numpy.promotion import promote_dtypes
from minijax.tracebacks import public
from minijax.tree_util import register_pytree_node_class
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "BCSR", "BCSRProperties", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general",
    "bcsr_dot_general_p", "bcsr_eliminate_zeros", "bcsr_extract", "bcsr_extract_p",
    "bcsr_fromdense", "bcsr_fromdense_p", "bcsr_sum_duplicates", "bcsr_todense", "bcsr_todense_p",
]  # fmt: skip


@register_pytree_node_class
class BCSR(JAXSparse):
    """Matrices compressed by rows, with batch dimensions in front and dense ones behind.

    Of an array of shape (batch..., rows, columns, dense...) there are the `data`, of shape
    (batch..., nse, dense...), the columns `indices`, (batch..., nse), and `indptr`,
    (batch..., rows + 1): row `i` has the elements from `indptr[i]` up to `indptr[i + 1]`. Elements
    after the last row stand for nothing. `indices_sorted` and `unique_indices` are promises.
    """

    data: Array
    indices: Array
    indptr: Array

    def __init__(
        self,
        args: tuple[Array, Array, Array],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        super().__init__(args, shape=tuple(shape))
        check_bcsr(self.data, self.indices, self.indptr, self.shape)

    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = property(lambda self: 2)
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim)
    nse = property(lambda self: self.indices.shape[-1])
    dtype = property(lambda self: self.data.dtype)
    _bufs = property(lambda self: (self.data, self.indices, self.indptr))
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _sparse_shape = property(lambda self: tuple(self.shape[self.n_batch : self.n_batch + 2]))

    def _described(self) -> str:
        counts = (("nse", self.nse), ("n_batch", self.n_batch), ("n_dense", self.n_dense))
        return ", ".join(f"{name}={n}" for name, n in counts if n or name == "nse")

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:  # fmt: skip
        """The nonzeros of a dense array; see `bcsr_fromdense`."""
        return bcsr_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Convert from BCOO; NotImplementedError unless the array has two sparse dimensions."""
        if arr.n_sparse != 2:
            raise NotImplementedError(
                f"BSCR.from_bcoo requires n_sparse=2; got {arr.n_sparse=}: change it by update_layout."
            )
        arr = arr.sort_indices()
        indices, indptr = bcoo_to_bcsr(arr.indices, arr.shape[arr.n_batch], arr.indices.dtype)
        return cls((arr.data, indices, indptr), shape=arr.shape)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """The values of a matrix of `scipy.sparse`. NotImplementedError with `n_dense`, `n_batch`."""
        if n_dense != 0 or n_batch != 0:
            raise NotImplementedError("BCSR from_scipy_sparse with nonzero n_dense/n_batch.")
        if mat.ndim != 2:
            raise ValueError(f"BCSR from_scipy_sparse requires 2D array; {mat.ndim}D is given.")
        mat = mat.tocsr()
        data = jnp.asarray(mat.data)
        indices, indptr = (
            jnp.asarray(x, dtype=index_dtype or jnp.int32) for x in (mat.indices, mat.indptr)
        )
        return cls((data, indices, indptr), shape=mat.shape)

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32",
        n_dense: int = 0, n_batch: int = 0, nse: int = 0,
    ) -> BCSR:  # fmt: skip
        """Zeros, with room for `nse` elements in each batch."""
        shape = tuple(shape)
        if n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}")
        if len(shape) - n_dense - n_batch != 2:
            raise ValueError("BCSR sparse.empty: must have 2 sparse dimensions.")
        batch, (rows, columns), dense = (
            shape[:n_batch], shape[n_batch : n_batch + 2], shape[n_batch + 2 :],
        )  # fmt: skip
        data = jnp.zeros((*batch, nse, *dense), dtype)
        indices = jnp.full((*batch, nse), columns, index_dtype)
        return cls((data, indices, jnp.zeros((*batch, rows + 1), index_dtype)), shape=shape)

    def to_bcoo(self) -> BCOO:
        """Convert to BCOO."""
        indices = bcsr_to_bcoo(self.indices, self.indptr)
        return BCOO((self.data, indices), shape=self.shape)

    def todense(self) -> Array:
        """The dense array."""
        return bcsr_todense(self)

    def transpose(self, *args: Any, **kwargs: Any) -> BCSR:
        """NotImplementedError: convert it by `to_bcoo`, which has a transpose."""
        raise NotImplementedError("Transpose is not implemented.")

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Sum elements of equal indices, in order; there are `nse`, by default as many as needed.

        ValueError if it is traced and `nse` not given.
        """
        return (bcsr_eliminate_zeros if remove_zeros else bcsr_sum_duplicates)(self, nse=nse)

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], dict[str, Any]]:
        return self._bufs, self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> BCSR:
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        if aux_data.keys() != {"shape", "indices_sorted", "unique_indices"}:
            raise ValueError(f"BCSR.tree_unflatten: invalid {aux_data=}")
        vars(made).update(aux_data)
        return made


def _check_axis(name: str, axis: Any, mat: BCSR) -> None:
    if axis is not None and not 0 <= axis < mat.n_batch:
        raise ValueError(
            f"Cannot map {name}={axis} for BCSR array with n_batch={mat.n_batch}. in_axes for "
            "batched BCSR operations must correspond to a batched dimension."
        )


def _to_element(handler: Any, index: Any, mat: BCSR, axis: Any) -> BCSR:
    """Return the array that a mapped function sees: one entry along a batch dimension."""
    if axis is None:
        return mat
    _check_axis("in_axis", axis, mat)
    flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
    parts = tuple(handler(x, axis) for x in mat._bufs)
    shape = (*mat.shape[:axis], *mat.shape[axis + 1 :])
    return BCSR.tree_unflatten({"shape": shape, **flags}, parts)


def _from_element(handler: Any, size: int, element: BCSR, axis: Any) -> BCSR:
    """Return the result of a mapped function, with its mapped axis as a batch dimension."""
    if axis is None:
        return element
    if axis > element.n_batch:
        raise ValueError(
            f"BCSR: cannot add out_axis={axis} for BCSR array with n_batch={element.n_batch}. BCSR "
            "batch axes must be a contiguous block of leading dimensions."
        )
    flags = {"indices_sorted": element.indices_sorted, "unique_indices": element.unique_indices}
    parts = tuple(handler(size, x, axis) for x in element._bufs)
    shape = (*element.shape[:axis], size, *element.shape[axis:])
    return BCSR.tree_unflatten({"shape": shape, **flags}, parts)


register_vmappable(BCSR, int, int, _to_element, _from_element, None)


# -- functions ------------------------------------------------------------------------------------


def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: DTypeLike = jnp.int32,
) -> BCSR:  # fmt: skip
    """The first `nse` nonzeros of each batch, row by row; as many as any batch has by default.

    ValueError unless two dimensions are left between `n_batch` and `n_dense`;
    ConcretizationTypeError if the array is traced and `nse` not given.
    """
    mat = numbers_of(mat)
    if n_batch < 0 or n_dense < 0 or mat.ndim - n_batch - n_dense != 2:
        raise ValueError(
            f"bcsr_fromdense: must have 2 sparse dimensions. Of shape {mat.shape}, {n_batch=} and "
            f"{n_dense=} leave {mat.ndim - n_batch - n_dense}."
        )
    nse = stored_elements(mat, nse, "bcsr_fromdense", n_batch, n_dense)
    bufs = bcsr_fromdense_p.bind(
        mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
        index_dtype=canonicalize_dtype(index_dtype),
    )  # fmt: skip
    return BCSR(tuple(bufs), shape=mat.shape)


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array."""
    return bcsr_todense_p.bind(*mat._bufs, spinfo=mat._info)


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Return the elements of a dense array at the indices of a BCSR array; zero where out of
    bounds.
    """
    indices, indptr, mat = map(jnp.asarray, (indices, indptr, mat))
    check_bcsr_indices(indices, indptr, mat.shape)
    return bcsr_extract_p.bind(indices, indptr, mat)


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Sum elements of equal indices, in order; see `BCSR.sum_duplicates`."""
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse=nse))


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """Sum elements of equal indices, in order, and leave out those that are zero."""
    return BCSR.from_bcoo(bcoo_eliminate_zeros(mat.to_bcoo(), nse=nse))


def bcsr_dot_general(
    lhs: BCSR | Array, rhs: Array, *, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> Array:  # fmt: skip
    """The product of a BCSR array and a dense one; see `lax.dot_general`.

    NotImplementedError for a sparse array on the right; TypeError if the shapes do not fit.
    `precision` has no meaning for sparse arrays.
    """
    del out_sharding
    if isinstance(rhs, JAXSparse):
        if isinstance(lhs, (JAXSparse, Array, np.ndarray)):
            raise NotImplementedError(
                "bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs."
            )
    if not isinstance(lhs, JAXSparse):
        return lax.dot_general(
            lhs, rhs, dimension_numbers=dimension_numbers, precision=precision,
            preferred_element_type=preferred_element_type,
        )  # fmt: skip
    if not isinstance(lhs, BCSR) or not isinstance(rhs, (Array, np.ndarray)):
        raise NotImplementedError(
            "bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs."
        )
    (contract_l, contract_r), (batch_l, batch_r) = dimension_numbers
    numbers = tuple(
        tuple(tuple(map(operator.index, dims)) for dims in pair)
        for pair in ((contract_l, contract_r), (batch_l, batch_r))
    )
    data, rhs = promote_dtypes(lhs.data, rhs)
    kind = data.dtype if preferred_element_type is None else np.dtype(preferred_element_type)
    return bcsr_dot_general_p.bind(
        data, lhs.indices, lhs.indptr, rhs, dimension_numbers=numbers,
        preferred_element_type=kind, lhs_spinfo=lhs._info,
    )  # fmt: skip


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """The array repeated along new dimensions; see `lax.broadcast_in_dim`.

    NotImplementedError if new ones are neither batch dimensions nor of size 1.
    """
    made = bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )
    return BCSR.from_bcoo(made)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Arrays joined along a batch or sparse dimension; NotImplementedError along a dense one."""
    if not all(isinstance(mat, BCSR) for mat in operands):
        raise TypeError(f"bcsr_concatenate takes a sequence of BCSR arrays; got {operands!r}.")
    made = bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension)
    return BCSR.from_bcoo(made)


check_arguments_of(globals())


__dir__ = public(__name__)
