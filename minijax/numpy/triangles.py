"""Matrices of zeros and ones, parts above and below a diagonal, and the indices of these."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.functions import check_at_most
from minijax.arguments.values import known_index, known_value
from minijax.core.array import Array
from minijax.core.trace import Tracer
from minijax.errors import shape_error
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.features.sharding.transfer import device_put
from minijax.lax import arithmetic, compare, creation
from minijax.lax.arithmetic import add_p
from minijax.numpy.creation import asarray
from minijax.numpy.division import power
from minijax.numpy.promotion import (
    canonical_shape,
    check_arraylike,
    converted,
    filled_like,
    number_like,
    to_array,
    unwrapped,
)
from minijax.numpy.ranges import (
    arange,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import expanded
from minijax.runtime.platforms import Device
from minijax.runtime.sharding import Sharding
from minijax.typing import ArrayLike, DimSize, DTypeLike

__all__ = [
    "band", "diag_indices", "diag_indices_from", "eye", "identity", "tri", "tril", "tril_indices",
    "tril_indices_from", "triu", "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip


def _size(x: Any, name: str) -> int:
    try:
        return x if is_dim(x) else operator.index(x)
    except TypeError:
        raise shape_error((x,), name) from None


def band(rows: int, columns: int, k: Any, compare_p: Any, lead: tuple[int, ...] = ()) -> Any:
    """Compares row + k with column."""
    sizes = (*lead, rows, columns)
    row = creation.broadcasted_iota(np.int32, sizes, len(lead))
    column = creation.broadcasted_iota(np.int32, sizes, len(lead) + 1)
    if not (isinstance(k, int) and k == 0):
        row = add_p.bind(row, converted(k, dtypes.int32))
    return compare_p.bind(row, column)


def eye(
    N: DimSize,
    M: DimSize | None = None,
    k: int | ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
) -> Array:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    - `N`, `M`: ints, the numbers of rows and columns; M is N by default.
    - `k`: an int, the diagonal: 0 is the main one, positive ones lie above it.
    - `dtype`: dtype of the result, the default float unless given; `device`: its placement.

    Returns an array of shape (N, M). ValueError for negative sizes. Source: NumPy's `eye`.

    >>> jnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    rows = _size(N, "N")
    columns = rows if M is None else _size(M, "M")
    if any(size < 0 for size in (rows, columns) if not is_dim(size)):
        raise ValueError(f"negative dimensions are not allowed, got {N} and {M}")
    found = dtypes.check_user_dtype_supported(dtype, "eye")
    if isinstance(k, (int, np.integer)):
        k = min(max(operator.index(k), -(2**31)), 2**31 - 1)  # beyond, there is no such diagonal
        out = _eye(rows, columns, k, found)
    elif dtypes.issubdtype(getattr(k, "dtype", bool), np.integer) and np.ndim(k) == 0:
        out = _eye_at(rows, columns, k, found)
    else:
        check_arraylike("eye", k)
        raise ValueError(f"k must be a scalar integer; got {k}")
    return out if device is None else device_put(out, device)


@library(static=("rows", "columns", "k", "dtype"))
def _eye(rows, columns, k, dtype):
    return converted(band(rows, columns, k, compare.eq_p), dtype)


@library(static=("rows", "columns", "dtype"))
def _eye_at(rows, columns, k, dtype):
    return converted(band(rows, columns, k, compare.eq_p), dtype)


def identity(n: DimSize, dtype: DTypeLike | None = None) -> Array:
    """Return an identity matrix.

    - `n`: an int; `dtype`: dtype of the result, the default float unless given.

    Returns an array of shape (n, n). ValueError if `n` is negative. Source: NumPy's `identity`.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return a matrix with ones on and below a diagonal and zeros above it.

    - `N`, `M`: ints, the numbers of rows and columns; M is N by default.
    - `k`: an int, the diagonal; `dtype`: dtype of the result, float32 unless given.

    Returns an array of shape (N, M). TypeError if `k` is not an int, or a size is negative. Source:
    NumPy's `tri`.

    >>> jnp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    rows, columns = _rows_and_columns("iota", N, M)
    found = dtypes.float32 if dtype is None else dtypes.check_user_dtype_supported(dtype, "tri")
    if isinstance(k, Tracer) and not k.aval.shape and k.aval.dtype.kind in "iu":
        return converted(band(rows, columns, k, compare.ge_p), found)
    return _tri(rows, columns, _offset("tri", k), found)


@library(static=("rows", "columns", "k", "dtype"))
def _tri(rows, columns, k, dtype):
    return converted(band(rows, columns, k, compare.ge_p), dtype)


def _rows_and_columns(name: str, n: Any, m: Any) -> tuple[Any, Any]:
    """The sizes of a matrix; TypeError for negative ones, as for a shape of `lax`."""
    n, m = canonical_shape((n, n if m is None else m))
    if any(size < 0 for size in (n, m) if not is_dim(size)):
        raise TypeError(
            f"{name} shape must have every element be nonnegative, got ({n}, {m}). Give the numbers "
            "of rows and columns."
        )
    return n, m


def _offset(name: str, k: Any) -> int:
    if isinstance(k, bool):
        raise TypeError(f"{name}: offset must be an integer, got k={k}: the number of a diagonal.")
    return operator.index(k)


def _triangle(name: str, m: Any, k: int, lower: bool) -> Any:
    m, k = to_array(name, m), _offset(name, k)
    if m.aval.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D; got {m.aval.shape}.")
    *lead, rows, columns = m.aval.shape
    zero = filled_like(m, 0)
    if lower:
        return choose_where(band(rows, columns, k, compare.ge_p, tuple(lead)), m, zero)
    below = band(rows, columns, k - 1, compare.ge_p, tuple(lead))
    return choose_where(below, zero, m)


@library(static=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return the lower triangle of matrices, with zeros above it.

    - `m`: array of shape (..., rows, columns).
    - `k`: an int, the last diagonal to keep; 0 is the main one, positive ones lie above it.

    Returns an array of the shape and dtype of `m`. ValueError below two dimensions. Source: NumPy's
    `tril`.

    >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return _triangle("tril", m, k, True)


@library(static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return the upper triangle of matrices, with zeros below it.

    - `m`: array of shape (..., rows, columns).
    - `k`: an int, the first diagonal to keep; 0 is the main one, positive ones lie above it.

    Returns an array of the shape and dtype of `m`. ValueError below two dimensions. Source: NumPy's
    `triu`.

    >>> jnp.triu(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    return _triangle("triu", m, k, False)


def _indices_of(mask: np.ndarray) -> tuple[Array, ...]:
    return tuple([asarray(part) for part in np.nonzero(mask)])


def _lower(n: Any, m: Any, k: int) -> np.ndarray:
    """Return where a matrix lies below a diagonal."""
    n, m = (
        known_value(size, f"{name} argument of jnp.triu_indices")
        for name, size in (("n", n), ("m", m))
    )
    rows, columns = _rows_and_columns("broadcast_in_dim", n, m)
    check_at_most("the number of elements of the matrix", rows * columns, 1 << 32)
    return np.tri(rows, columns, k, dtype=bool)


def _diagonal(k: Any) -> int:
    return known_index(k, "k argument of jnp.triu_indices")


def tril_indices(n: DimSize, k: DimSize = 0, m: DimSize | None = None) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of a matrix.

    - `n`, `m`: ints, the numbers of rows and columns; m is n by default.
    - `k`: an int, the last diagonal to include.

    Returns a pair of integer arrays of shape (count,): rows and columns. TypeError if a size is
    negative. Source: NumPy's `tril_indices`.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _indices_of(_lower(n, m, _diagonal(k)))


def triu_indices(n: DimSize, k: DimSize = 0, m: DimSize | None = None) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of a matrix.

    - `n`, `m`: ints, the numbers of rows and columns; m is n by default.
    - `k`: an int, the first diagonal to include.

    Returns a pair of integer arrays of shape (count,): rows and columns. TypeError if a size is
    negative. Source: NumPy's `triu_indices`.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _indices_of(~_lower(n, m, _diagonal(k) - 1))


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = np.shape(unwrapped(arr))
    if len(shape) != 2:
        raise ValueError(f"Only 2-D inputs are accepted by {name}; got shape {shape}.")
    return tuple(shape)


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of a given matrix.

    - `arr`: array of shape (n, m); `k`: an int, the last diagonal to include.

    Returns a pair of integer arrays of shape (count,). ValueError unless `arr` is two-dimensional.
    Source: NumPy's `tril_indices_from`.

    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    check_arraylike("tril_indices_from", arr)
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of a given matrix.

    - `arr`: array of shape (n, m); `k`: an int, the first diagonal to include.

    Returns a pair of integer arrays of shape (count,). ValueError unless `arr` is two-dimensional.
    Source: NumPy's `triu_indices_from`.

    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    check_arraylike("triu_indices_from", arr)
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array.

    - `n`: an int, the size of each axis; `ndim`: an int, the number of axes, 2 by default.

    Returns a tuple of ndim integer arrays of shape (n,). ValueError if `n` or `ndim` is negative.
    Source: NumPy's `diag_indices`.

    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n = known_index(n, "'n' argument of jnp.diag_indices()")
    ndim = known_index(ndim, "'ndim' argument of jnp.diag_indices()")
    if n < 0 or ndim < 0:
        raise ValueError(
            f"{'n' if n < 0 else 'ndim'} argument to diag_indices must be nonnegative, got "
            f"{n if n < 0 else ndim}."
        )
    return (arange(n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of a given array.

    - `arr`: array of shape (n, ..., n), of at least two dimensions.

    Returns a tuple of arr.ndim integer arrays of shape (n,). ValueError for other shapes. Source:
    NumPy's `diag_indices_from`.

    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    check_arraylike("diag_indices_from", arr)
    sizes = np.shape(unwrapped(arr))
    if len(sizes) < 2:
        raise ValueError(f"input array must be at least 2-d; got shape {sizes}.")
    if len(set(sizes)) != 1:
        raise ValueError(f"All dimensions of input must be of equal length; got shape {sizes}.")
    return diag_indices(sizes[0], len(sizes))


@library(static=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Return a Vandermonde matrix: powers of a vector's elements as columns.

    - `x`: numeric array of shape (n,).
    - `N`: an int, the number of columns, n by default.
    - `increasing`: order of the powers, from N - 1 down to 0 by default.

    Returns an array of shape (n, N) and of the dtype of `x`. ValueError if `x` is not
    one-dimensional or `N` is negative, TypeError for booleans. Source: NumPy's `vander`.

    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = to_array("vander", x)
    if x.aval.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array; vander got shape {x.aval.shape}.")
    columns = x.aval.shape[0] if N is None else operator.index(N)
    if columns < 0:
        raise ValueError(f"N must be nonnegative; vander got {columns}.")
    dtype = x.aval.dtype
    if dtype == dtypes.bool_:
        raise TypeError("vander does not accept dtype bool: convert it with .astype(int).")
    exponents = creation.iota(dtype if dtype.kind in "iu" else np.int32, columns)
    if not increasing:
        exponents = arithmetic.sub(number_like(exponents, columns - 1), exponents)
    return power(expanded(x, (1,)), expanded(exponents, (0,)))
