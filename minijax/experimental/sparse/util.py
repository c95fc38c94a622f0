"""`minijax.experimental.sparse.util`: what the formats and the transforms of sparse arrays
share.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax, tree_util
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.core.trace import Tracer
from minijax.errors import ConcretizationTypeError
from minijax.experimental.sparse.base import (
    CuSparseEfficiencyWarning,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
)
from minijax.features.stages.struct import ShapeDtypeStruct, eval_shape
from minijax.lax.sparse.matrices import csr_rows
from minijax.lax.sparse.places import take_at
from minijax.tracebacks import public
from minijax.transforms.vmap import vmap

__all__ = [
    "CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning", "SparseInfo",
    "broadcasting_vmap", "nfold_vmap",
]  # fmt: skip


def nfold_vmap(fun: Callable, N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Callable:
    """`fun` mapped over `N` leading axes; those of size 1 broadcast, if `broadcasted`."""
    mapping = broadcasting_vmap if broadcasted else vmap
    for _ in range(N):
        fun = mapping(fun, in_axes=in_axes)
    return fun


def broadcasting_vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable:
    """`vmap`, where arguments may have size 1 along the mapped axis while others have more."""

    @functools.wraps(fun)
    def batched(*args: Any) -> Any:
        leaves, tree = tree_util.tree_flatten(args)
        places = [0 if in_axes is None else in_axes] * len(args)
        if isinstance(in_axes, (tuple, list)):
            places = list(in_axes)
        axes = tree_util.tree_leaves(
            [tree_util.tree_map(lambda _, a=a: -1 if a is None else a, x)
             for a, x in zip(places, args, strict=True)]
        )  # fmt: skip
        sizes = {x.shape[a] for x, a in zip(leaves, axes, strict=True) if a >= 0}
        if len(sizes - {1}) > 1:
            raise ValueError(f"broadcasting_vmap: got mapped axes of sizes {sorted(sizes)}")
        if sizes == {1} or len(sizes) < 2:
            return vmap(fun, in_axes=in_axes, out_axes=out_axes)(*args)
        found = [
            (x, None) if a < 0 else ((lax.squeeze(x, (a,)), None) if x.shape[a] == 1 else (x, a))
            for x, a in zip(leaves, axes, strict=True)
        ]

        def flat(*xs: Any) -> Any:
            return fun(*tree.unflatten(xs))

        given, mapped = zip(*found, strict=True)
        return vmap(flat, in_axes=tuple(mapped), out_axes=out_axes)(*given)

    return batched


def _count_stored_elements_per_batch(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Array:
    """Return how many elements each batch has that are stored: where any of its dense part is
    nonzero.
    """
    mat = jnp.asarray(mat)
    mask = mat != 0
    if n_dense > 0:
        mask = mask.any(axis=tuple(range(mask.ndim - n_dense, mask.ndim)))
    return mask.sum(axis=tuple(range(n_batch, mask.ndim)))


def _count_stored_elements(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Array:
    """The number of stored elements of the batch that has most."""
    counts = _count_stored_elements_per_batch(mat, n_batch, n_dense)
    return counts.max(initial=0) if counts.ndim else counts


def numbers_of(mat: Any) -> Array:
    """The array that is stored for a dense one: booleans as integers, which can be added."""
    mat = jnp.asarray(mat)
    return jnp.where(mat, 1, 0) if mat.dtype == np.bool_ else mat


def stored_elements(mat: Any, nse: Any, name: str, n_batch: int = 0, n_dense: int = 0) -> int:
    """`nse` as a number: that of the nonzeros if it is not given.

    ConcretizationTypeError if the array is traced, and `nse` not given.
    """
    if nse is None and isinstance(mat, Tracer):
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: the number of "
            f"nonzeros of a traced array, of type {mat.aval.str_short()}. The error arose for the "
            f"nse argument of {name}: give their number, which must be known when the program is "
            "recorded."
        )
    if nse is None:
        nse = int(_count_stored_elements(mat, n_batch, n_dense))
    return operator.index(nse)


def _csr_to_coo(indices: Array, indptr: Array) -> tuple[Array, Array]:
    """The rows and the columns of the elements of a CSR matrix."""
    return csr_rows(indices, indptr), indices


def _csr_extract(indices: Array, indptr: Array, mat: Array) -> Array:
    """Return the elements of a dense matrix at the indices of a CSR one."""
    return _coo_extract(*_csr_to_coo(indices, indptr), mat)


def _coo_extract(row: Array, col: Array, mat: Array) -> Array:
    """Return the elements of a dense matrix at the indices of a COO one."""
    return take_at(mat, (row, col))


def _dot_general_validated_shape(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> tuple[int, ...]:
    """The shape of a product; TypeError if the operands do not fit."""
    operands = [ShapeDtypeStruct(tuple(shape), np.float32) for shape in (lhs_shape, rhs_shape)]
    product = functools.partial(lax.dot_general, dimension_numbers=dimension_numbers)
    return eval_shape(product, *operands).shape


__dir__ = public(__name__)
