"""The static fields of a sparse array in the format BCOO, and whether its buffers fit them.

Of an array of shape (batch..., sparse..., dense...) there are the `data`, of shape (batch..., nse,
dense...), and the `indices`, (batch..., nse, n_sparse). A batch dimension of a buffer may be 1
where that of the array is more: it stands for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.features.queries import is_dim
from minijax.lax.convert import convert_element_type
from minijax.lax.joining import shape_as_value

__all__ = ["BCOOProperties", "SparseInfo", "as_row", "check_buffers", "check_indices"]


class SparseInfo(NamedTuple):
    """The shape of a sparse array, and what is promised of its indices."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False

    def deeper(self, size: int) -> SparseInfo:
        """The fields of as many arrays as `size`, along a new first axis."""
        return self._replace(shape=(size, *self.shape))


def as_row(sizes: Sequence[Any], dtype: Any) -> Any:
    """Sizes, some of which may be symbolic, as a vector."""
    if any(map(is_dim, sizes)):
        return convert_element_type(shape_as_value(tuple(sizes)), dtype)
    return np.asarray(sizes, dtype)


class BCOOProperties(NamedTuple):
    """The numbers of dimensions of each kind, and of specified elements."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


def check_indices(indices: Any, shape: Sequence[int]) -> BCOOProperties:
    """Return the sizes that the indices have for this shape; ValueError if they do not fit it."""
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"BCOO indices must be integers; got dtype {indices.dtype.name}.")
    shape = tuple(shape)
    if indices.ndim < 2:
        raise ValueError(
            f"Invalid indices.shape={indices.shape}: BCOO indices have the shape "
            "(batch..., nse, n_sparse), two dimensions at least."
        )
    *batch, nse, n_sparse = indices.shape
    n_batch, n_dense = len(batch), len(shape) - len(batch) - n_sparse
    if n_dense < 0:
        raise ValueError(
            f"Invalid indices.shape={indices.shape}: {n_batch} batch and {n_sparse} sparse "
            f"dimensions are more than those of shape={shape}."
        )
    _check_batch("indices", batch, shape, indices.shape)
    return BCOOProperties(n_batch, n_sparse, n_dense, nse)


def check_buffers(data: Any, indices: Any, shape: Sequence[int]) -> BCOOProperties:
    """Return the sizes that the buffers have for this shape; ValueError if they do not fit it."""
    shape = tuple(shape)
    props = check_indices(indices, shape)
    n_batch, n_sparse, n_dense, nse = props
    wanted = (nse, *shape[n_batch + n_sparse :])
    if len(data.shape) != n_batch + 1 + n_dense or tuple(data.shape[n_batch:]) != wanted:
        raise ValueError(
            f"Invalid data.shape={tuple(data.shape)} for nse={nse}, n_batch={n_batch}, "
            f"n_dense={n_dense}: of an array of shape={shape} it is (batch..., nse, dense...)."
        )
    _check_batch("data", data.shape[:n_batch], shape, data.shape)
    return props


def _check_batch(name: str, batch: Sequence[int], shape: tuple, found: Any) -> None:
    if any(n not in (1, size) for n, size in zip(batch, shape, strict=False)):
        raise ValueError(
            f"{name} batch dimensions not compatible for {name}.shape={tuple(found)}, "
            f"shape={shape}: each must be the same, or 1."
        )
