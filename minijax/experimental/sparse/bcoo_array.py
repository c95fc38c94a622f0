"""`BCOO`, the sparse array in batched coordinate format, and how it is made and laid out.

Of an array of shape (batch..., sparse..., dense...) there are `data` of shape (batch..., nse,
dense...) and `indices`, (batch..., nse, n_sparse). Values at one place add up, an index out of
bounds stands for nothing, and a batch dimension of a buffer may be 1 where that of the array is
more: it stands for all. Source: the coordinate format (COO).
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.core.trace import Tracer
from minijax.dtypes import canonicalize_dtype
from minijax.errors import ConcretizationTypeError, check_arguments_of
from minijax.experimental.sparse.base import (
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
)
from minijax.experimental.sparse.util import numbers_of
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.features.vmappable import register_vmappable
from minijax.lax.sparse.bcoo import (
    bcoo_extract_p,
    bcoo_fromdense_p,
    bcoo_todense_p,
    bcoo_transpose_p,
)
from minijax.lax.sparse.bcoo_axes import over_batch
from minijax.lax.sparse.bcoo_order import (
    bcoo_sort_indices_p,
    bcoo_sum_duplicates_p,
    count_groups,
)
from minijax.lax.sparse.info import check_buffers
from minijax.namespace import user_stacklevel
from minijax.tree_util import register_pytree_node_class
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "BCOO", "bcoo_eliminate_zeros", "bcoo_extract", "bcoo_extract_p", "bcoo_fromdense",
    "bcoo_fromdense_p", "bcoo_sort_indices", "bcoo_sort_indices_p", "bcoo_sum_duplicates",
    "bcoo_sum_duplicates_p", "bcoo_todense", "bcoo_todense_p", "bcoo_transpose",
    "bcoo_transpose_p", "bcoo_update_layout", "known_info",
]  # fmt: skip


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array in batched coordinate format; see the module's top.

    - `data`: the values, of shape (batch..., nse, dense...)
    - `indices`: where they stand, integers of shape (batch..., nse, n_sparse)
    - `shape`: that of the array
    - `indices_sorted`, `unique_indices`: what is promised of the indices, which is not checked

    ValueError if the buffers do not fit the shape. A pytree of `data` and `indices`.
    """

    __module__ = "minijax.experimental.sparse.bcoo"
    data: Array
    indices: Array
    nse = property(lambda self: self.indices.shape[-2])
    dtype = property(lambda self: self.data.dtype)
    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)
    indices_sorted: bool
    unique_indices: bool
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _bufs = property(lambda self: (self.data, self.indices))

    def __init__(
        self,
        args: tuple[Array, Array],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices = map(jnp.asarray, args)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        super().__init__(args, shape=tuple(shape))
        check_buffers(self.data, self.indices, self.shape)

    def _described(self) -> str:
        text = f"nse={self.nse}"
        for name in ("n_batch", "n_dense"):
            if count := getattr(self, name):
                text += f", {name}={count}"
        return text

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:  # fmt: skip
        """The elements of a dense array that are not zero; see `bcoo_fromdense`."""
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The values of a matrix of `scipy.sparse`, in its order.

        NotImplementedError for batch and dense dimensions: `update_layout` makes them.
        """
        if n_dense or n_batch:
            raise NotImplementedError(
                "BCOO.fromscipy with nonzero n_dense/n_batch: use update_layout afterwards."
            )
        mat = mat.tocoo()
        places = jnp.column_stack((mat.row, mat.col))
        places = places.astype(index_dtype or places.dtype)
        return cls((jnp.asarray(mat.data), places), shape=mat.shape)

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32",
        n_dense: int = 0, n_batch: int = 0, nse: int = 0,
    ) -> BCOO:  # fmt: skip
        """An array without elements, or with `nse` that are missing; see `sparse.empty`."""
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}")
        batch, end = shape[:n_batch], n_batch + n_sparse
        data = jnp.zeros((*batch, nse, *shape[end:]), dtype)
        row = jnp.asarray(shape[n_batch:end], index_dtype)
        indices = jnp.broadcast_to(row, (*batch, nse, n_sparse))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(
        cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32",
        n_batch: int = 0, n_dense: int = 0,
    ) -> BCOO:  # fmt: skip
        """Ones on the `k`th diagonal of an (N, M) matrix; see `sparse.eye`."""
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0 or n_dense < 0 or n_batch < 0:
            raise ValueError(f"Invalid inputs: shape={(N, M)}, {n_dense=}, {n_batch=}")
        known = {"shape": (N, M), "indices_sorted": True, "unique_indices": True}
        count = min(M - k, N) if k > 0 else min(M, N + k)
        if count <= 0:
            return cls._empty(
                (N, M), dtype=dtype, index_dtype=index_dtype, n_batch=n_batch, n_dense=n_dense
            )
        rows = np.arange(count) - min(k, 0)
        columns = rows + k
        if n_batch == 0 and n_dense == 0:
            data, indices = np.ones(count), np.stack([rows, columns], 1)
        elif n_batch == 0 and n_dense == 1:
            data, indices = np.eye(M)[columns], rows[:, None]
        elif n_batch == 1 and n_dense == 0:
            there = np.isin(np.arange(N), rows)
            data = there[:, None].astype(float)
            indices = np.where(there, np.arange(N) + k, M)[:, None, None]
        else:  # no sparse dimensions
            data = np.expand_dims(np.eye(N, M, k), n_batch)
            indices = np.zeros((*(N, M)[:n_batch], 1, 0))
        buffers = jnp.asarray(data, dtype or float), jnp.asarray(indices, index_dtype)
        return cls(buffers, **known)

    def todense(self) -> Array:
        """The dense array."""
        return bcoo_todense(self)

    def astype(self, *args: Any, **kwargs: Any) -> BCOO:
        """Return the array in another dtype; the arguments are those of `Array.astype`."""
        return BCOO((self.data.astype(*args, **kwargs), self.indices), **known_info(self))

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Permute the axes, reversed by default; batch and dense ones among themselves."""
        order = list(range(self.ndim))[::-1] if axes is None else axes
        return bcoo_transpose(self, permutation=tuple(order))

    def sort_indices(self) -> BCOO:
        """Sort the elements by their indices."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Sum elements of equal indices, in order, and without zeros unless they are kept.

        There are `nse` elements: by default as many as there are places, which cannot be known of a
        traced array. Missing ones are zeros out of bounds; those beyond `nse` are dropped.
        """
        if remove_zeros:
            return bcoo_eliminate_zeros(self, nse=nse)
        return bcoo_sum_duplicates(self, nse=nse)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:  # fmt: skip
        """Change the numbers of batch and dense dimensions; see `bcoo_update_layout`."""
        return bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def tree_flatten(self) -> tuple:
        """The data and the indices, and what is known beside them."""
        return (self.data, self.indices), known_info(self)

    @classmethod
    def tree_unflatten(cls, aux_data: dict, children: Any) -> BCOO:
        """The array of buffers, which are not checked."""
        made = object.__new__(cls)
        made.data, made.indices = children
        vars(made).update(aux_data)
        return made


def known_info(mat: BCOO, **changed: Any) -> dict[str, Any]:
    """The keyword arguments for an array like this one."""
    return {
        "shape": mat.shape,
        "indices_sorted": mat.indices_sorted,
        "unique_indices": mat.unique_indices,
        **changed,
    }


# -- vmap ---------------------------------------------------------------------------------------


def _element(handler: Any, index: Any, mat: BCOO, axis: int | None) -> BCOO:
    """Return the array that a mapped function sees: it has one batch dimension less."""
    if axis is None:
        return mat
    if axis >= mat.n_batch:
        raise ValueError(
            f"Cannot map in_axis={axis} for BCOO array with n_batch={mat.n_batch}. in_axes for "
            "batched BCOO operations must correspond to a batch dimension: see update_layout."
        )
    if axis < 0:
        axis += mat.n_batch
    # A buffer that holds the axis once for all is the same for each element.
    once = lambda x: x.shape[axis] == 1 != mat.shape[axis]
    parts = [
        handler(lax.squeeze(x, (axis,)), None) if once(x) else handler(x, axis)
        for x in (mat.data, mat.indices)
    ]
    shape = (*mat.shape[:axis], *mat.shape[axis + 1 :])
    return BCOO.tree_unflatten(known_info(mat, shape=shape), parts)


def _whole(handler: Any, size: int, mat: BCOO, axis: int | None) -> BCOO:
    """The array of what a mapped function gives: it has one batch dimension more."""
    if axis is None:
        return BCOO.tree_unflatten(
            known_info(mat), [handler(size, x, None) for x in (mat.data, mat.indices)]
        )
    n_batch = mat.n_batch
    if axis > n_batch:
        raise ValueError(
            f"BCOO: cannot add out_axis={axis} for BCOO array with n_batch={n_batch}. BCOO batch "
            "axes must be a contiguous block of leading dimensions."
        )
    axis += n_batch + 1 if axis < 0 else 0
    parts = [handler(size, x, axis) for x in (mat.data, mat.indices)]
    shape = (*mat.shape[:axis], size, *mat.shape[axis:])
    return BCOO.tree_unflatten(known_info(mat, shape=shape), parts)


register_vmappable(BCOO, int, int, _element, _whole, None)


# -- to and from dense arrays -------------------------------------------------------------------


@library(static=("n_batch", "n_dense"))
def _count_stored(mat, n_batch, n_dense):
    """The most elements, or dense blocks of them, that are not zero in one batch."""
    mask = mat != 0
    mask = jnp.any(mask, axis=tuple(range(mask.ndim - n_dense, mask.ndim)))
    return jnp.sum(mask, axis=tuple(range(n_batch, mask.ndim))).max(initial=0)


def bcoo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCOO:  # fmt: skip
    """The elements of a dense array that are not zero: the first `nse` of each batch.

    By default as many as there are: ConcretizationTypeError if the array is traced, for that cannot
    be known. Missing ones are zeros out of bounds. `n_batch` dimensions have indices of their own,
    the last `n_dense` are held densely. Booleans are stored as integers.
    """
    mat = numbers_of(mat)
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} must be non-negative, and "
            f"together no more than the dimensions of shape={mat.shape}."
        )
    if nse is None:
        nse = _count_stored(mat, n_batch, n_dense)
        if isinstance(nse, Tracer):
            raise ConcretizationTypeError(
                "Abstract tracer value encountered where concrete value is expected: the number of "
                "nonzeros of a traced array. The error arose for the nse argument of "
                "bcoo_fromdense. In order for BCOO.fromdense() to be used in traced/compiled code, "
                "you must pass a concrete value to the nse (number of stored elements) argument."
            )
    nse = operator.index(nse)
    buffers = bcoo_fromdense_p.bind(
        mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
        index_dtype=canonicalize_dtype(index_dtype),
    )  # fmt: skip
    return BCOO(buffers, shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array."""
    return bcoo_todense_p.bind(mat.data, mat.indices, spinfo=mat._info)


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """The values of a dense array at the places of a sparse one.

    Of places that occur twice the first has the value and the others zero, unless `assume_unique`,
    by default what `sparr` promises. TypeError if `sparr` is no BCOO, ValueError if shapes differ.
    """
    if not isinstance(sparr, BCOO):
        raise TypeError(
            f"First argument to bcoo_extract should be a BCOO array. Got {type(sparr)=}"
        )
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"shape mismatch: {sparr.shape=} a.shape={arr.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    data = bcoo_extract_p.bind(sparr.indices, arr, assume_unique=bool(unique))
    return BCOO((data, sparr.indices), **known_info(sparr))


# -- order --------------------------------------------------------------------------------------


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its axes permuted: batch, sparse and dense ones each among themselves.

    TypeError for what is no permutation; NotImplementedError where kinds of dimensions mix.
    """
    permutation = tuple(operator.index(d) for d in permutation)
    buffers = bcoo_transpose_p.bind(*mat._bufs, permutation=permutation, spinfo=mat._info)
    sparse = permutation[mat.n_batch : mat.n_batch + mat.n_sparse]
    known = known_info(mat, shape=tuple(mat.shape[d] for d in permutation))
    known["indices_sorted"] &= list(sparse) == sorted(sparse)
    return BCOO(buffers, **known)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with its elements in the order of their indices."""
    buffers = bcoo_sort_indices_p.bind(*mat._bufs, spinfo=mat._info)
    return BCOO(buffers, **known_info(mat, indices_sorted=True))


@library(static=("n_batch", "sizes"))
def _most_groups(indices, n_batch, sizes):
    counts = over_batch(lambda rows: count_groups(rows, sizes), n_batch, indices)
    return jnp.max(counts, initial=0)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with one element for each place, in order; `nse` of them.

    By default as many as there are different places: ValueError if the indices are traced, for that
    cannot be known. Missing ones are zeros out of bounds, those beyond `nse` are dropped.
    """
    if nse is None:
        if isinstance(mat.indices, Tracer):
            raise ValueError(
                "bcoo_sum_duplicates: nse must be specified when using the function within jit, "
                "vmap, and other transformations requiring abstract evaluation."
            )
        sizes = mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]
        nse = int(_most_groups(mat.indices, mat.n_batch, sizes))
    nse = operator.index(nse)
    buffers = bcoo_sum_duplicates_p.bind(*mat._bufs, spinfo=mat._info, nse=nse)
    return BCOO(buffers, shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """Return the array without elements that are zero; see `bcoo_sum_duplicates`."""
    mask = mat.data == 0
    axes = tuple(range(mat.n_batch + 1, mat.data.ndim))
    mask = jnp.all(mask, axis=axes)[..., None]
    bound = jnp.asarray(mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse], mat.indices.dtype)
    indices = jnp.where(mask, bound, mat.indices)
    return bcoo_sum_duplicates(BCOO((mat.data, indices), shape=mat.shape), nse=nse)


# -- bcoo_update_layout -------------------------------------------------------------------------


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:  # fmt: skip
    """The array with other numbers of batch and dense dimensions; by default those that it has.

    To have more of them means to hold many zeros, unless the new ones are of size 0 or 1:
    SparseEfficiencyError then, or with `on_inefficient` "warn" a SparseEfficiencyWarning, with None
    nothing. ValueError for numbers that do not fit.
    """
    new_batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    new_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    _check_layout(mat, new_batch, new_dense, on_inefficient)
    if (new_batch, new_dense) == (mat.n_batch, mat.n_dense):
        return mat
    if new_dense < mat.n_dense:
        mat = _dense_to_sparse(mat, mat.n_dense - new_dense)
    if new_batch < mat.n_batch:
        mat = _batch_to_sparse(mat, new_batch)
    if new_dense > mat.n_dense:
        mat = _sparse_to_dense(mat, new_dense)
    if new_batch > mat.n_batch:
        mat = _sparse_to_batch(mat, new_batch)
    return mat


def _check_layout(mat: BCOO, n_batch: int, n_dense: int, on_inefficient: str | None) -> None:
    for name, count in (("n_batch", n_batch), ("n_dense", n_dense)):
        if count < 0:
            raise ValueError(f"{name} must be non-negative; got {count}")
    if n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"sum of {n_batch=} and {n_dense=} cannot be larger than mat.ndim={mat.ndim}."
        )
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"{on_inefficient=}; expected one of ['error', 'warn', None].")
    added = {
        "n_dense": (mat.n_dense, n_dense, mat.shape[mat.ndim - n_dense : mat.ndim - mat.n_dense]),
        "n_batch": (mat.n_batch, n_batch, mat.shape[mat.n_batch : n_batch]),
    }
    for name, (before, after, sizes) in added.items():
        if after <= before or max(sizes, default=0) <= 1 or on_inefficient is None:
            continue
        kind, what = (
            ("error", "'warn' or None") if on_inefficient == "error" else ("warning", "None")
        )
        text = (
            f"For matrix of shape {mat.shape}, increasing {name} from {before} to {after} results "
            f"in inefficient storage. To disable this {kind}, set the on_inefficient argument of "
            f"bcoo_update_layout to {what}."
        )
        if on_inefficient == "error":
            raise SparseEfficiencyError(text)
        warnings.warn(text, category=SparseEfficiencyWarning, stacklevel=user_stacklevel())


def _grid(sizes: Sequence[int], dtype: Any) -> Array | np.ndarray:
    """All the indices into an array of these sizes, one to a row."""
    if any(map(is_dim, sizes)):
        columns = [lax.broadcasted_iota(dtype, sizes, axis) for axis in range(len(sizes))]
        return jnp.stack(columns, axis=-1).reshape(prod(sizes), len(sizes))
    return np.stack([*np.indices(sizes)], axis=-1).reshape(prod(sizes), len(sizes)).astype(dtype)


def _dense_to_sparse(mat: BCOO, count: int) -> BCOO:
    """The first `count` dense dimensions as sparse ones."""
    at = mat.n_batch
    sizes = mat.data.shape[at + 1 : at + 1 + count]
    rest = mat.data.shape[at + 1 + count :]
    nse = mat.nse * prod(sizes)
    data = mat.data.reshape((*mat.data.shape[:at], nse, *rest))
    batch = mat.indices.shape[:at]
    shape = (*batch, mat.nse, prod(sizes))
    old = jnp.broadcast_to(mat.indices[..., None, :], (*shape, mat.n_sparse))
    new = jnp.broadcast_to(_grid(sizes, mat.indices.dtype), (*shape, count))
    indices = lax.concatenate([old, new], at + 2).reshape((*batch, nse, mat.n_sparse + count))
    return BCOO((data, indices), shape=mat.shape)


def _batch_to_sparse(mat: BCOO, n_batch: int) -> BCOO:
    """The batch dimensions after the first `n_batch` as sparse ones."""
    sizes = mat.shape[n_batch : mat.n_batch]
    lead = lambda x: x.shape[:n_batch]
    wide = lambda x: jnp.broadcast_to(x, (*lead(x), *sizes, *x.shape[mat.n_batch :]))
    data, indices = wide(mat.data), wide(mat.indices)
    grid = _grid(sizes, indices.dtype).reshape((*sizes, 1, len(sizes)))
    new = jnp.broadcast_to(grid, (*indices.shape[:-1], len(sizes)))
    indices = lax.concatenate([new, indices], indices.ndim - 1)
    nse = prod(sizes) * mat.nse
    data = data.reshape((*lead(data), nse, *data.shape[mat.n_batch + 1 :]))
    indices = indices.reshape((*lead(indices), nse, indices.shape[-1]))
    return BCOO((data, indices), shape=mat.shape)


def _sparse_to_dense(mat: BCOO, n_dense: int) -> BCOO:
    """The last sparse dimensions as dense ones: each element stands alone in its block."""
    count = n_dense - mat.n_dense
    at, kept = mat.n_batch, mat.n_sparse - count
    sizes = mat.shape[at + kept : at + mat.n_sparse]
    here = _grid(sizes, mat.indices.dtype).reshape((*sizes, count))
    place = mat.indices[..., kept:]
    place = place.reshape((*place.shape[:-1], *[1] * count, count))
    held = jnp.all(place == here, axis=-1)
    data = mat.data.reshape((*mat.data.shape[: at + 1], *[1] * count, *mat.data.shape[at + 1 :]))
    held = held.reshape((*held.shape, *[1] * mat.n_dense))
    data = jnp.where(held, data, jnp.zeros_like(data, shape=()))
    return BCOO((data, mat.indices[..., :kept]), shape=mat.shape)


def _sparse_to_batch(mat: BCOO, n_batch: int) -> BCOO:
    """The first sparse dimensions as batch ones: each batch has all elements, and zeros of others."""
    count, at = n_batch - mat.n_batch, mat.n_batch
    sizes = mat.shape[at:n_batch]
    here = _grid(sizes, mat.indices.dtype).reshape((*sizes, 1, count))
    ones = [1] * count
    place = mat.indices[..., :count]
    place = place.reshape((*place.shape[:at], *ones, *place.shape[at:]))
    held = jnp.all(place == here, axis=-1)
    held = held.reshape((*held.shape, *[1] * mat.n_dense))
    data = mat.data.reshape((*mat.data.shape[:at], *ones, *mat.data.shape[at:]))
    data = jnp.where(held, data, jnp.zeros_like(data, shape=()))
    rest = mat.indices[..., count:]
    rest = rest.reshape((*rest.shape[:at], *ones, *rest.shape[at:]))
    indices = jnp.broadcast_to(rest, (*rest.shape[:at], *sizes, *rest.shape[n_batch:]))
    return BCOO((data, indices), shape=mat.shape)


check_arguments_of(globals())
