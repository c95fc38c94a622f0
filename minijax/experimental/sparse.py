"""`minijax.experimental.sparse`: sparse arrays as values and indices, for products with dense ones.

May import the floors below and `numpy`. Of upstream's module there is the class `BCOO` without batch
and dense dimensions: making one, going back, transposing, sorting, scaling and `@` with dense arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.core.trace import Tracer
from minijax.errors import ConcretizationTypeError
from minijax.tree_util import register_pytree_node_class

__all__ = ["BCOO"]


@register_pytree_node_class
class BCOO:
    """A sparse array: `data` of shape (nse,) and the `indices`, (nse, ndim), where they stand.

    Values at one place add up; an index out of bounds stands for nothing. ValueError if the shapes
    do not fit. A pytree of `data` and `indices`. `n_batch` and `n_dense` are 0: NotImplementedError
    for others. Source: the coordinate format (COO).
    """

    n_batch = n_dense = 0
    __array_ufunc__ = None  # NumPy leaves `dense @ sparse` to this class

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        wanted = (*self.data.shape, len(self.shape))
        if self.data.ndim != 1 or self.indices.shape != wanted:
            raise ValueError(
                f"Invalid data.shape={self.data.shape} and indices.shape={self.indices.shape} for "
                f"a BCOO of shape {self.shape}: give (nse,) and (nse, {len(self.shape)})."
            )

    nse = property(lambda self: self.data.shape[0])
    dtype = property(lambda self: self.data.dtype)
    ndim = n_sparse = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))
    T = property(lambda self: self.transpose())

    def __repr__(self) -> str:
        return f"BCOO({self.dtype.name}{list(self.shape)}, nse={self.nse})"

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:  # fmt: skip
        """The nonzeros of a dense array: the first `nse` of them, all by default.

        ConcretizationTypeError if the array is traced and `nse` is not given.
        """
        _check_plain(n_batch, n_dense)
        mat = jnp.asarray(mat)
        if nse is None and isinstance(mat, Tracer):
            raise ConcretizationTypeError(
                "BCOO.fromdense cannot count the nonzeros of a traced array: give their number as "
                "nse, which must be known when the program is recorded."
            )
        count = int(jnp.count_nonzero(mat)) if nse is None else nse
        places = jnp.nonzero(mat, size=count, fill_value=mat.shape)
        data = mat.at[places].get(mode="fill", fill_value=0)
        indices = jnp.stack(places, axis=-1).astype(index_dtype)
        return cls((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The values of a matrix of `scipy.sparse`, in its order."""
        _check_plain(n_batch, n_dense)
        mat = mat.tocoo()
        places = jnp.stack([jnp.asarray(mat.row), jnp.asarray(mat.col)], axis=1)
        return cls((mat.data, places.astype(index_dtype or places.dtype)), shape=mat.shape)

    def _with(self, data: Any, indices: Any = None, shape: Any = None, **known: bool) -> BCOO:
        indices = self.indices if indices is None else indices
        flags = {"indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}
        return BCOO((data, indices), shape=shape or self.shape, **{**flags, **known})

    def todense(self) -> Array:
        """The dense array."""
        places = tuple(jnp.moveaxis(self.indices, -1, 0))
        return jnp.zeros(self.shape, self.dtype).at[places].add(self.data, mode="drop")

    def astype(self, dtype: Any) -> BCOO:
        """The same in another dtype."""
        return self._with(self.data.astype(dtype))

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """With its axes permuted, reversed by default."""
        order = list(range(self.ndim))[::-1] if axes is None else list(axes)
        shape = tuple([self.shape[axis] for axis in order])
        in_order = self.indices_sorted and order == sorted(order)
        return self._with(
            self.data, self.indices[:, np.array(order)], shape, indices_sorted=in_order
        )

    def sort_indices(self) -> BCOO:
        """With its values in the order of their places."""
        if self.indices_sorted:
            return self
        order = jnp.lexsort(tuple(jnp.moveaxis(self.indices, -1, 0))[::-1])
        return self._with(self.data[order], self.indices[order], indices_sorted=True)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """With one value for each place, in order; `nse` places, as many as there are by default."""
        found, where = jnp.unique(
            self.indices, axis=0, size=nse, return_inverse=True, fill_value=np.array(self.shape)
        )
        sums = jnp.zeros(len(found), self.dtype).at[where].add(self.data, mode="drop")
        if nse is None and remove_zeros:
            kept = np.flatnonzero(np.asarray(sums))
            found, sums = found[kept], sums[kept]
        return self._with(sums, found, indices_sorted=True, unique_indices=True)

    def __neg__(self) -> BCOO:
        return self._with(-self.data)

    def __mul__(self, other: Any) -> BCOO:
        if isinstance(other, BCOO) or jnp.ndim(other):
            return NotImplemented
        return self._with(self.data * other)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Array:
        if isinstance(other, BCOO):
            return NotImplemented
        if not isinstance(other, (Array, np.ndarray)):
            raise TypeError(f"matmul requires ndarray arguments, got {type(other)} at position 1.")
        other = jnp.asarray(other)
        if self.ndim != 2 or other.ndim not in (1, 2) or other.shape[0] != self.shape[1]:
            raise TypeError(
                f"a sparse matrix of shape {self.shape} times an array of shape "
                f"{other.shape}: give a vector or a matrix with {self.shape[-1]} rows."
            )
        rows, columns = self.indices[:, 0], self.indices[:, 1]
        data = self.data if other.ndim == 1 else self.data[:, None]
        terms = data * other.at[columns].get(mode="fill", fill_value=0)
        out = jnp.zeros((self.shape[0], *other.shape[1:]), terms.dtype)
        return out.at[rows].add(terms, mode="drop", indices_are_sorted=self.indices_sorted)

    def __rmatmul__(self, other: Any) -> Array:
        return (self.T @ jnp.asarray(other).T).T

    def tree_flatten(self) -> tuple:
        flags = {"indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}
        return (self.data, self.indices), {"shape": self.shape, **flags}

    @classmethod
    def tree_unflatten(cls, known: dict, children: Any) -> BCOO:
        made = object.__new__(cls)
        made.data, made.indices = children
        vars(made).update(known)
        return made


def _check_plain(n_batch: int, n_dense: int) -> None:
    if n_batch or n_dense:
        raise NotImplementedError(
            f"n_batch={n_batch}, n_dense={n_dense}: minijax has sparse arrays without batch and "
            "dense dimensions only. Use vmap for a batch."
        )
