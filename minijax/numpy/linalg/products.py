"""The products and views of `numpy` under the names of the array API. May import the rest of `numpy`."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.numpy import linear_algebra, shapes
from minijax.numpy.linear_algebra import matmul, tensordot, vecdot
from minijax.numpy.promotion import check_arraylike, promote_dtypes, to_array
from minijax.transforms.library import library

__all__ = [
    "cross", "diagonal", "matmul", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace",
    "vecdot",
]  # fmt: skip


@library(static=("axis",))
def cross(x1, x2, /, *, axis=-1):
    """The cross product of vectors of three components. Source: numpy.linalg.cross."""
    check_arraylike("jnp.linalg.outer", x1, x2)
    x1, x2 = to_array("cross", x1), to_array("cross", x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
            f"x1.shape[axis]={x1.shape[axis]} and x2.shape[axis]={x2.shape[axis]}"
        )
    return linear_algebra.cross(x1, x2, axis=axis)


@library
def outer(x1, x2, /):
    """All products of two vectors. ValueError for other arrays. Source: numpy.linalg.outer."""
    check_arraylike("jnp.linalg.outer", x1, x2)
    x1, x2 = to_array("outer", x1), to_array("outer", x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={x1.ndim} "
            f"x2.ndim={x2.ndim}: use jnp.outer, which flattens."
        )
    return linear_algebra.outer(x1, x2)


@library
def matrix_transpose(x, /):
    """The last two axes swapped. Source: numpy.linalg.matrix_transpose."""
    check_arraylike("jnp.linalg.matrix_transpose", x)
    return shapes.matrix_transpose(x)


@library(static=("offset",))
def diagonal(x, /, *, offset=0):
    """The diagonals of the matrices in the last two axes. Source: numpy.linalg.diagonal."""
    check_arraylike("jnp.linalg.diagonal", x)
    return linear_algebra.diagonal(x, offset=offset, axis1=-2, axis2=-1)


@library(static=("offset", "dtype"))
def trace(x, /, *, offset=0, dtype=None):
    """The sums over the diagonals of the last two axes. Source: numpy.linalg.trace."""
    check_arraylike("jnp.linalg.trace", x)
    return linear_algebra.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


# -- chains ---------------------------------------------------------------------------------------


def _order(sizes: list[int]) -> list[list[int]]:
    """Where to split each run of a chain of matrices, whose sizes are given, for the least work.

    Source: the matrix chain problem; Cormen et al., Introduction to Algorithms, 15.2.
    """
    count = len(sizes) - 1
    cost = np.zeros((count, count))
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [
                cost[i][k] + cost[k + 1][j] + float(sizes[i]) * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            best = int(np.argmin(options))
            split[i][j], cost[i][j] = i + best, options[best]
    return split


@library(static=("precision",))
def multi_dot(arrays, *, precision=None):
    """The product of a chain of matrices, in the order that takes the fewest operations.

    The first and the last array may be vectors. ValueError for fewer than two arrays, and for
    others. Source: numpy.linalg.multi_dot.
    """
    arrays = list(arrays)
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    arrays = promote_dtypes(*[to_array("multi_dot", x) for x in arrays]) if arrays else []
    if len(arrays) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(arrays)}")
    inner = all(x.ndim == 2 for x in arrays[1:-1])
    if not inner or any(arrays[i].ndim not in (1, 2) for i in (0, -1)):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first and last "
            "array which may be 1 or 2 dimensional. Got array shapes "
            f"{[x.shape for x in arrays]}"
        )
    for x, y in zip(arrays, arrays[1:], strict=False):
        if x.shape[-1] != y.shape[0]:
            raise ValueError(
                "multi_dot: last dimension of each array must match first dimension of following "
                f"array. Got array shapes {[x.shape for x in arrays]}"
            )
    first, *_, last = arrays
    rows = first.shape[0] if first.ndim == 2 else 1
    sizes = [rows, first.shape[-1], *[x.shape[-1] for x in arrays[1:-1]]]
    sizes.append(last.shape[1] if last.ndim == 2 else 1)
    split = _order(sizes)

    def product(i: int, j: int) -> Any:
        if i == j:
            return arrays[i]
        k = split[i][j]
        return matmul(product(i, k), product(k + 1, j), precision=precision)

    return product(0, len(arrays) - 1)
