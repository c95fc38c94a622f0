"""The products and views of `numpy` under the names of the array API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.lax.precision import PrecisionLike
from minijax.namespace import named
from minijax.numpy import linear_algebra, shapes
from minijax.numpy.contraction_paths import UNKNOWN_SIZE
from minijax.numpy.promotion import axis_of, check_arraylike, promote_dtypes, to_array
from minijax.typing import Array, ArrayLike, DTypeLike

__all__ = [
    "cross", "diagonal", "matmul", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace",
    "vecdot",
]  # fmt: skip

vecdot = named(linear_algebra.vecdot, "vecdot", "minijax.numpy.linalg")


def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute products of matrices, or of stacks of them.

    - `x1`, `x2`: arrays of shape (..., n, m) and (..., m, k), or vectors.
    - `precision`: see `lax.Precision`; `preferred_element_type`: dtype of sums and result.

    Returns an array of the promoted dtype. ValueError if the shapes do not fit. Source: NumPy's
    `linalg.matmul`.

    >>> jnp.linalg.matmul(jnp.array([[1, 2]]), jnp.array([[3], [4]]))
    Array([[11]], dtype=int32)
    """
    return linear_algebra.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Sum products over several axes of two arrays.

    - `x1`, `x2`: arrays of any rank.
    - `axes`: the axes to sum over, for each array; an int n stands for the last n and the first n.
    - `precision`, `preferred_element_type`, `out_sharding`: as in `numpy.tensordot`.

    Returns an array with the axes of `x1` that are left and then those of `x2`. Errors are those of
    `numpy.tensordot`. Source: NumPy's `linalg.tensordot`.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1).shape
    (2, 2)
    """
    return linear_algebra.tensordot(
        x1,
        x2,
        axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


@library(static=("axis",), converted=("axis",))
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Compute cross products of vectors of three components.

    - `x1`, `x2`: arrays of shape (..., 3, ...); other axes broadcast.
    - `axis`: an int, the axis of the vectors, -1 by default.

    Returns an array of the broadcast shape and of the promoted dtype. ValueError for another size
    of the axis. Source: NumPy's `linalg.cross`, of the array API standard.

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    check_arraylike("jnp.linalg.outer", x1, x2)
    x1, x2 = to_array("cross", x1), to_array("cross", x2)
    axis_of(axis, min(x1.ndim, x2.ndim))
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
            f"x1.shape[axis]={x1.shape[axis]} and x2.shape[axis]={x2.shape[axis]}"
        )
    return linear_algebra.cross.__wrapped__(x1, x2, axis=axis)


@library
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the outer product of two vectors.

    - `x1`, `x2`: arrays of shapes (m,) and (n,).

    Returns an array of shape (m, n) and of the promoted dtype. ValueError for other arrays. Source:
    NumPy's `linalg.outer`, of the array API standard.

    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    check_arraylike("jnp.linalg.outer", x1, x2)
    x1, x2 = to_array("outer", x1), to_array("outer", x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={x1.ndim} "
            f"x2.ndim={x2.ndim}: use jnp.outer, which flattens."
        )
    return linear_algebra.outer.__wrapped__(x1, x2)


@library
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Swap the last two axes of an array.

    - `x`: array of shape (..., m, n).

    Returns an array of shape (..., n, m). ValueError below two dimensions. Source: NumPy's
    `linalg.matrix_transpose`, of the array API standard.

    >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x = to_array("jnp.linalg.matrix_transpose", x)
    if np.ndim(x) < 2:
        raise ValueError(f"matrix_transpose requires at least 2 dimensions; got ndim={np.ndim(x)}")
    return shapes.matrix_transpose(x)


@library(static=("offset",))
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return the diagonals of the matrices in the last two axes.

    - `x`: array of shape (..., m, n).
    - `offset`: an int, the diagonal: 0 is the main one, positive ones lie above it.

    Returns an array of shape (..., k) and of the dtype of `x`. ValueError below two dimensions.
    Source: NumPy's `linalg.diagonal`, of the array API standard.

    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    check_arraylike("jnp.linalg.diagonal", x)
    return linear_algebra.diagonal(x, offset=offset, axis1=-2, axis2=-1)


@library(static=("offset", "dtype"))
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sum the diagonals of the matrices in the last two axes.

    - `x`: array of shape (..., m, n).
    - `offset`: an int, the diagonal; `dtype`: dtype of the result, as in `sum`.

    Returns an array of shape (...). ValueError below two dimensions. Source: NumPy's
    `linalg.trace`, of the array API standard.

    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    check_arraylike("jnp.linalg.trace", x)
    return linear_algebra.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


# -- chains ---------------------------------------------------------------------------------------


def _order(sizes: list[int]) -> list[list[int]]:
    """Return where to split each run of a chain of matrices, whose sizes are given, for the least
    work, from the left where several ways cost the same.

    Source: the matrix chain problem; Cormen et al., Introduction to Algorithms, 15.2.
    """
    sizes = [UNKNOWN_SIZE if is_dim(size) else size for size in sizes]
    count = len(sizes) - 1
    cost = np.zeros((count, count))
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [
                cost[i][k] + cost[k + 1][j] + float(sizes[i]) * sizes[k + 1] * sizes[j + 1]
                for k in reversed(range(i, j))
            ]
            best = int(np.argmin(options))
            split[i][j], cost[i][j] = j - 1 - best, options[best]
    return split


@library(static=("precision",))
def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike | None = None) -> Array:
    """Multiply a chain of matrices in the order that takes the fewest operations.

    - `arrays`: sequence of at least two matrices; the first and the last may be vectors.
    - `precision`: see `lax.Precision`.

    Returns an array of the promoted dtype: a matrix of shape (m, n), without the axis of a vector.
    ValueError for fewer arrays or shapes that do not fit. Source: NumPy's `linalg.multi_dot`; Hu
    and Shing, Computation of matrix chain products, 1982.

    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)
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
        left, right = product(i, k), product(k + 1, j)
        return linear_algebra.matmul(left, right, precision=precision)

    return product(0, len(arrays) - 1)
