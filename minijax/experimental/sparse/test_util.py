"""`minijax.experimental.sparse.test_util`: random sparse arrays and layouts, for tests.

`minijax.jax.testing.sparse` has the test case that upstream shows here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import numpy as jnp
from minijax.experimental.sparse.base import JAXSparse
from minijax.experimental.sparse.bcoo import BCOO
from minijax.experimental.sparse.bcsr import BCSR
from minijax.namespace import shown

__all__ = [
    "SparseLayout", "is_sparse", "iter_bcsr_layouts", "iter_sparse_layouts", "iter_subsets",
    "rand_bcoo", "rand_bcsr", "rand_sparse",
]  # fmt: skip

__dir__ = shown(__name__)


class SparseLayout(NamedTuple):
    """The numbers of dimensions of each kind."""

    n_batch: int
    n_dense: int
    n_sparse: int


def is_sparse(x: Any) -> bool:
    """Whether it is a sparse array."""
    return isinstance(x, JAXSparse)


def iter_subsets(s: Sequence) -> Iterable[tuple]:
    """All subsets, by size."""
    return itertools.chain.from_iterable(itertools.combinations(s, n) for n in range(len(s) + 1))


def iter_sparse_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """Every layout that BCOO can have of a shape."""
    for n_batch in range(min_n_batch, len(shape) + 1):
        for n_dense in range(len(shape) + 1 - n_batch):
            yield SparseLayout(n_batch, n_dense, len(shape) - n_batch - n_dense)


def iter_bcsr_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """Every layout that BCSR can have of a shape."""
    for n_batch in range(min_n_batch, len(shape) - 1):
        yield SparseLayout(n_batch, len(shape) - n_batch - 2, 2)


def _normal(rng: np.random.RandomState) -> Callable:
    def draw(shape: Sequence[int], dtype: Any) -> np.ndarray:
        return np.asarray(3 * rng.randn(*shape)).astype(dtype)

    return draw


def rand_sparse(
    rng: np.random.RandomState, nse: int | float = 0.5, post: Callable = lambda x: x,
    rand_method: Callable = _normal,
) -> Callable:  # fmt: skip
    """A function `(shape, dtype)` that gives dense arrays of which `nse` elements are not zero.

    `nse` below 1 is a fraction of all; `rand_method(rng)` gives the function that draws values.
    """

    def draw(shape: Sequence[int], dtype: Any, nse: int | float = nse) -> Any:
        values = np.array(rand_method(rng)(shape, dtype))
        size = int(np.prod(shape))
        zeros = size - (int(nse * size) if nse < 1 else nse)
        places = rng.choice(size, size=min(max(zeros, 0), size), replace=False)
        values.ravel()[places] = 0
        return post(values)

    return draw


def _rand(cls: type, rng: Any, rand_method: Callable, nse: int | float, options: dict) -> Callable:
    dense = rand_sparse(rng, nse, jnp.asarray, rand_method)
    return lambda shape, dtype: cls.fromdense(dense(shape, dtype), **options)


def rand_bcoo(
    rng: np.random.RandomState, rand_method: Callable = _normal, nse: int | float = 0.5,
    n_batch: int = 0, n_dense: int = 0,
) -> Callable:  # fmt: skip
    """A function `(shape, dtype)` that gives random BCOO arrays."""
    return _rand(BCOO, rng, rand_method, nse, {"n_batch": n_batch, "n_dense": n_dense})


def rand_bcsr(
    rng: np.random.RandomState, rand_method: Callable = _normal, nse: int | float = 0.5,
    n_batch: int = 0, n_dense: int = 0,
) -> Callable:  # fmt: skip
    """A function `(shape, dtype)` that gives random BCSR arrays."""
    return _rand(BCSR, rng, rand_method, nse, {"n_batch": n_batch, "n_dense": n_dense})
