"""`minijax.experimental.sparse.random`: sparse arrays of random values at random places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minijax import dtypes, random
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.experimental.sparse.bcoo import BCOO
from minijax.tracebacks import public
from minijax.transforms.vmap import vmap
from minijax.typing import DTypeLike

__all__ = ["random_bcoo"]


def random_bcoo(
    key: Array, shape: Sequence[int], *, dtype: DTypeLike = jnp.float64, indices_dtype: DTypeLike | None = None,
    nse: int | float = 0.2, n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True,
    sorted_indices: bool = False, generator: Callable[..., Array] = random.uniform, **kwds: Any,
) -> BCOO:  # fmt: skip
    """A sparse array of random values at random places.

    - `nse`: how many elements each batch specifies; a float below 1 is a fraction of all
    - `unique_indices`: whether the places of a batch must differ
    - `generator(key, shape, dtype, **kwds)`: gives the values

    ValueError if `nse` or the numbers of dimensions do not fit the shape.
    """
    shape = tuple(shape)
    n_sparse = len(shape) - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise ValueError(f"Invalid {n_batch=}, {n_dense=} for {shape=}")
    batch, dense = shape[:n_batch], shape[n_batch + n_sparse :]
    sizes = shape[n_batch : n_batch + n_sparse]
    count = math.prod(sizes)
    if not 0 <= nse < count:  # as upstream's, which leaves out arrays that specify all
        raise ValueError(f"got {nse=}, expected to be between 0 and {count}")
    if 0 < nse < 1:
        nse = math.ceil(nse * count)
    if not isinstance(nse, int):
        raise AssertionError(f"got {nse=}: give an integer, or a fraction between 0 and 1.")

    def places(key: Array) -> Array:
        if not n_sparse:
            return jnp.zeros((nse, 0), indices_dtype)
        if unique_indices:
            flat = random.choice(key, count, shape=(nse,), replace=False)
        else:
            flat = random.randint(key, (nse,), 0, count)
        columns = [column.astype(indices_dtype) for column in jnp.unravel_index(flat, sizes)]
        return jnp.stack(columns, axis=-1)

    first, *_ = keys = random.split(key, 1 + math.prod(batch))
    data = generator(first, shape=(*batch, nse, *dense), dtype=dtype, **kwds)
    indices = vmap(places)(keys[1:]).reshape(*batch, nse, n_sparse)
    mat = BCOO((data, indices.astype(indices_dtype or dtypes.int_())), shape=shape)
    return mat.sort_indices() if sorted_indices else mat


__dir__ = public(__name__)
