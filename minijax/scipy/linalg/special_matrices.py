"""Matrices of a known form."""

from __future__ import annotations

from math import comb
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.functions import check_at_most
from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax.control_flow import platform_dependent
from minijax.lax.creation import counted
from minijax.lax.slicing import pad_p
from minijax.numpy import ufuncs
from minijax.numpy.creation import asarray, zeros_like
from minijax.numpy.joining import concatenate
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    check_ranks,
    converted,
    promote_dtypes,
    promote_dtypes_inexact,
    to_array,
    unwrapped,
)
from minijax.numpy.ranges import (
    arange,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import atleast_1d, expanded, flip
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
    "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert", "invpascal",
    "leslie", "pascal", "toeplitz",
]  # fmt: skip


def _vectors(name: str, *arrays: Any) -> list[Any]:
    """Arguments, checked, as arrays of at least one axis in one dtype that is not weak."""
    check_arraylike(name, *arrays)
    found = promote_dtypes(*[atleast_1d(to_array(name, x)) for x in arrays])
    return [converted(x, x.dtype) for x in found]


def _need_axis(name: str, x: Any) -> None:
    check_arraylike(name, x)
    if not np.ndim(unwrapped(x)):
        raise ValueError(f"{name}: its arguments must be at least 1-dimensional, got a scalar.")


def _joined(first: Any, second: Any) -> Any:
    """Vectors end to end; leading axes broadcast."""
    lead = broadcast_shapes(first.shape[:-1], second.shape[:-1])
    first = broadcast_to_shape(first, (*lead, first.shape[-1]))
    return concatenate([first, broadcast_to_shape(second, (*lead, second.shape[-1]))], axis=-1)


def _windows(x: Any, rows: int, columns: int) -> Any:
    """`x[..., (i + j) % n]` for each row `i` and column `j`, of at most `n`, the length of `x`."""
    i, j = _grid(rows, columns)
    places = (i + j) % max(x.shape[-1], 1)
    return platform_dependent(
        x, cpu=lambda x: x[..., places], default=lambda x: _moving(x, rows, columns)
    )


def _moving(x: Any, rows: int, columns: int) -> Any:
    """The windows without a gather, which accelerators do one by one.

    A vector that is repeated and cut into rows of one element more moves by one from row to row.
    """
    *lead, size = x.shape
    repeated = broadcast_to_shape(x[..., None, :], (*lead, rows + 1, size))
    flat = repeated.reshape(*lead, (rows + 1) * size)[..., : rows * (size + 1)]
    return flat.reshape(*lead, rows, size + 1)[..., :columns]


def _grid(rows: int, columns: int) -> tuple[Any, Any]:
    return counted(rows)[:, None], counted(columns)[None, :]


@library(whole=True)
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Make matrices that are constant along diagonals.

    - `c`: first column, array of shape (..., m)
    - `r`: first row, array of shape (..., n), whose first element is not read; by default `conj(c)`

    The result has shape (..., m, n) and their common dtype. TypeError for what is not an array.
    Source: SciPy's `linalg.toeplitz`.

    >>> jax.scipy.linalg.toeplitz(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([[1, 3],
           [2, 1]], dtype=int32)
    """
    check_arraylike("toeplitz", c)
    c, r = _vectors("toeplitz", c, ufuncs.conj(c) if r is None else r)
    check_ranks("toeplitz", c, r)
    return flip(_windows(_joined(flip(c, -1), r[..., 1:]), c.shape[-1], r.shape[-1]), -2)


@library(whole=True)
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Make matrices that are constant along anti-diagonals.

    - `c`: first column, array of shape (..., m)
    - `r`: last row, array of shape (..., n), whose first element is not read; by default zeros

    The result has shape (..., m, n) and their common dtype. TypeError for what is not an array.
    Source: SciPy's `linalg.hankel`.

    >>> jax.scipy.linalg.hankel(jnp.array([1, 2]))
    Array([[1, 2],
           [2, 0]], dtype=int32)
    """
    _need_axis("hankel", c)
    if r is not None:
        _need_axis("hankel", r)
    c, r = _vectors("hankel", c, zeros_like(to_array("hankel", c)) if r is None else r)
    return _windows(_joined(c, r[..., 1:]), c.shape[-1], r.shape[-1])


@library(whole=True)
def circulant(c: ArrayLike) -> Array:
    """Make matrices whose columns are a vector, each rotated by one more.

    - `c`: array of shape (..., n)

    The result has shape (..., n, n) and the dtype of `c`. TypeError for what is not an array.
    Source: SciPy's `linalg.circulant`.

    >>> jax.scipy.linalg.circulant(jnp.array([1, 2]))
    Array([[1, 2],
           [2, 1]], dtype=int32)
    """
    check_arraylike("circulant", c)
    c = atleast_1d(to_array("circulant", c))
    size = c.shape[-1]
    return flip(_windows(flip(c, -1), size, size), -2)


@library(static=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Make the matrix that convolves a vector of `n` elements with `a`.

    - `a`: array of shape (..., m)
    - `n`: positive integer
    - `mode`: "full", "valid" or "same", as in NumPy's `convolve`

    The result has shape (..., rows, n) and the dtype of `a`. ValueError for another mode or `n`.
    Source: SciPy's `linalg.convolution_matrix`.

    >>> jax.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    n = index(n)
    if n <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    _need_axis("convolution_matrix", a)
    (a,) = _vectors("convolution_matrix", a)
    size = a.shape[-1]
    if not size:
        raise ValueError(f"len(a) must be at least 1; got shape {a.shape}.")
    cut = min(n, size) - 1
    before, after = {"full": (0, 0), "valid": (cut, cut), "same": (cut // 2, cut - cut // 2)}[mode]
    config = (*((0, 0, 0),) * (a.ndim - 1), (n - 1, n - 1, 0))
    padded = pad_p.bind(a, np.zeros((), a.dtype)[()], padding_config=config)
    return flip(_windows(padded[..., before:], size + n - 1 - before - after, n), -1)


@library
def companion(a: ArrayLike) -> Array:
    """Make the companion matrix of a polynomial, whose eigenvalues are its roots.

    - `a`: coefficients, array of shape (..., n), the leading one first

    The result has shape (..., n - 1, n - 1) and an inexact dtype. ValueError for fewer than two
    coefficients.
    Source: SciPy's `linalg.companion`.

    >>> jax.scipy.linalg.companion(jnp.array([1.0, 2.0, 3.0]))
    Array([[-2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    check_arraylike("companion", a)
    a = atleast_1d(to_array("companion", a))
    (a,) = promote_dtypes_inexact(a)
    a = converted(a, a.dtype)
    if a.shape[-1] < 2:
        raise ValueError(
            f"The length of `a` along the last axis must be at least 2; got shape {a.shape}."
        )
    first = -a[..., 1:] / a[..., :1]
    return _first_row_and_subdiagonal(first, np.ones((1, 1), a.dtype))


def _first_row_and_subdiagonal(first: Any, below: Any) -> Any:
    """Matrices that are zero but for their first row and the diagonal below the main one."""
    size = first.shape[-1]
    lead = broadcast_shapes(first.shape[:-1], below.shape[:-2])
    i, j = expanded(arange(size), (1,)), expanded(arange(size), (0,))
    rest = choose_where(i == j + 1, below, np.zeros((), first.dtype)[()])
    out = broadcast_to_shape(rest, (*lead, size, size))
    return out.at[..., 0, :].set(first)


@library
def fiedler(a: ArrayLike) -> Array:
    """Make the matrix of distances of all pairs of elements.

    - `a`: array of shape (..., n)

    The result has shape (..., n, n) and the dtype of `a`. TypeError for what is not an array.
    Source: SciPy's `linalg.fiedler`.

    >>> jax.scipy.linalg.fiedler(jnp.array([1, 3]))
    Array([[0, 2],
           [2, 0]], dtype=int32)
    """
    check_arraylike("fiedler", a)
    a = atleast_1d(to_array("fiedler", a))
    return ufuncs.abs(expanded(a, (a.ndim,)) - expanded(a, (a.ndim - 1,)))


def _fiedler_plan(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where ones stand, and which coefficient stands where (0 for none), for `size` rows."""
    ones, places = np.zeros((size, size)), np.zeros((size, size), np.int64)
    for i in range(3, size, 2):
        ones[i, i - 2] = 1
    for i in range(0, size - 2, 2):
        ones[i, i + 2] = 1
    for i in range(2, size, 2):
        places[i, i - 1] = i + 1
    for i in range(0, size - 1, 2):
        places[i, i + 1] = i + 2
    if size > 1:
        ones[1, 0] = 1
    if size:
        places[0, 0] = 1
    return ones, places


@library
def fiedler_companion(a: ArrayLike) -> Array:
    """Make a companion matrix of a polynomial with five diagonals.

    - `a`: coefficients, array of shape (n,), the leading one first

    The result has shape (n - 1, n - 1) and an inexact dtype. TypeError for what is not an array.
    Source: SciPy's `linalg.fiedler_companion`.

    >>> jax.scipy.linalg.fiedler_companion(jnp.array([1.0, 2.0, 3.0]))
    Array([[-2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    check_arraylike("fiedler_companion", a)
    a = atleast_1d(to_array("fiedler_companion", a))
    (a,) = promote_dtypes_inexact(a)
    a = converted(a, a.dtype)
    if not a.shape[-1]:
        raise ValueError(
            "fiedler_companion requires the last axis of 'a' to have nonzero length, but got an "
            f"array of shape {a.shape}."
        )
    ones, places = _fiedler_plan(a.shape[-1] - 1)
    scaled = a / a[..., :1]
    mask = (places > 0).astype(a.dtype)
    return ones.astype(a.dtype) - scaled[..., places] * mask


@library
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Make Leslie's matrix of a population.

    - `f`: fecundities, array of shape (..., n): the first row
    - `s`: survival rates, array of shape (..., n - 1): below the diagonal

    The result has shape (..., n, n) and their common dtype. ValueError for other shapes.
    Source: SciPy's `linalg.leslie`.

    >>> jax.scipy.linalg.leslie(jnp.array([1.0, 2.0]), jnp.array([0.5]))
    Array([[1. , 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    check_arraylike("leslie", f, s)
    f, s = _vectors("leslie", f, s)
    size = f.shape[-1]
    if size < 2:
        raise ValueError(
            f"The length of f along the last axis must be at least 2; got shape {f.shape}."
        )
    if s.shape[-1] != size - 1:
        raise ValueError(
            "Incorrect lengths for f and s. The length of s along the last axis must be one less "
            f"than the length of f; got f shape {f.shape} and s shape {s.shape}."
        )
    below = expanded(concatenate([s[..., :1], s], axis=-1), (s.ndim,))
    return _first_row_and_subdiagonal(f, below)


@library
def block_diag(*arrs: ArrayLike) -> Array:
    """Make a matrix with arrays as blocks on its diagonal.

    - `arrs`: arrays of shapes (m, n); a vector is a row, a number a block of size 1

    The result has their common dtype. ValueError for more than two dimensions.
    Source: SciPy's `linalg.block_diag`.

    >>> jax.scipy.linalg.block_diag(jnp.array([[1, 2]]), jnp.array([3]))
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    blocks = arrs if arrs else (np.zeros((1, 0)),)
    check_arraylike("block_diag", *blocks)
    blocks = promote_dtypes(*[asarray(x) for x in blocks])
    for place, x in enumerate(blocks):
        if x.ndim > 2:
            raise ValueError(
                "Arguments to jax.scipy.linalg.block_diag must have at most 2 dimensions, got shape "
                f"{x.shape} at argument {place}."
            )
    blocks = [x if x.ndim == 2 else x.reshape(1, -1) for x in blocks]
    columns = sum([x.shape[1] for x in blocks])
    rows, done = [], 0
    for x in blocks:
        after = columns - done - x.shape[1]
        zero = np.zeros((), x.dtype)[()]
        x = converted(x, x.dtype)
        rows.append(pad_p.bind(x, zero, padding_config=((0, 0, 0), (done, after, 0))))
        done += columns - done - after
    return concatenate(rows, axis=0)


# -- without arguments but the size -----------------------------------------------------------------


def _floats(values: np.ndarray) -> Array:
    return asarray(values, dtype=dtypes.canonicalize_dtype(np.float64))


def _size(name: str, n: Any, least: int | None = 0) -> int:
    try:
        size = index(n)
    except TypeError:
        raise TypeError(f"{name} takes a whole number of rows; got {n!r}.") from None
    if least is not None and size < least:
        raise TypeError(f"{name} takes a nonnegative number of rows; got {size}.")
    check_at_most(f"{name}: the number of rows", size, 1 << 16)
    return size


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Make the matrix of the discrete Fourier transform.

    - `n`: number of rows
    - `scale`: None, or "sqrtn" or "n" to divide by
    - `dtype`: complex dtype, by default the default one

    The result has shape (n, n). ValueError for another scale.
    Source: SciPy's `linalg.dft`.

    >>> jax.scipy.linalg.dft(2).shape
    (2, 2)
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    dtype = np.dtype(dtypes.canonicalize_dtype(np.complex128 if dtype is None else dtype))
    if dtype.kind != "c":
        raise ValueError(f"dtype must be a complex floating-point type; got {dtype.name}.")
    size = max(int(n), 0)
    places = np.arange(size)
    matrix = np.exp(-2j * np.pi * ((places[:, None] * places) % max(size, 1)) / max(size, 1))
    divisor = {None: 1.0, "sqrtn": np.sqrt(max(size, 1)), "n": float(max(size, 1))}[scale]
    return asarray(matrix / divisor, dtype=dtype)


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Make Sylvester's matrix of 1 and -1 with orthogonal rows.

    - `n`: power of two
    - `dtype`: dtype of the result

    The result has shape (n, n). ValueError for another `n`.
    Source: SciPy's `linalg.hadamard`.

    >>> jax.scipy.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    size = int(n)
    if size != n or size < 1 or size & (size - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    check_at_most("hadamard: n", size, 1 << 16)
    matrix = np.ones((1, 1), np.int64)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return asarray(matrix, dtype=dtypes.check_user_dtype_supported(dtype, "hadamard"))


def helmert(n: int, full: bool = False) -> Array:
    """Make Helmert's matrix of contrasts, whose rows are orthonormal.

    - `n`: positive number of columns
    - `full`: whether to prepend the row of the mean

    The result has shape (n - 1, n) or (n, n) and the default floating dtype. ValueError for another
    `n`.
    Source: SciPy's `linalg.helmert`.

    >>> jax.scipy.linalg.helmert(3).shape
    (2, 3)
    """
    size = index(n)
    if size < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")
    places = np.arange(size)
    matrix = np.tril(np.ones((size, size)), -1) - np.diag(places)
    lengths = (places * (places + 1)).astype(np.float64)
    matrix[0], lengths[0] = 1, size
    matrix = matrix / np.sqrt(lengths)[:, None]
    return _floats(matrix if full else matrix[1:])


def hilbert(n: int) -> Array:
    """Make Hilbert's matrix, of elements `1 / (i + j + 1)`.

    - `n`: nonnegative number of rows

    The result has shape (n, n) and the default floating dtype. TypeError for a negative `n`.
    Source: SciPy's `linalg.hilbert`.

    >>> jax.scipy.linalg.hilbert(3).shape
    (3, 3)
    """
    i, j = _grid(_size("hilbert", n), _size("hilbert", n))
    return _floats(1.0 / (i + j + 1))


def _table(size: int, entry: Any) -> np.ndarray:
    """A square table of whole numbers of any size."""
    out = np.empty((size, size), object)
    for i in range(size):
        for j in range(size):
            out[i, j] = entry(i, j)
    return out


def invhilbert(n: int) -> Array:
    """Make the inverse of Hilbert's matrix, whose elements are integers.

    - `n`: nonnegative number of rows

    The result has shape (n, n) and the default floating dtype; it is empty for a
    negative `n`.
    Source: SciPy's `linalg.invhilbert`.

    >>> jax.scipy.linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    size = max(_size("invhilbert", n, least=None), 0)

    def entry(i, j):
        size_of = comb(size + i, size - j - 1) * comb(size + j, size - i - 1)
        return (-1) ** (i + j) * (i + j + 1) * size_of * comb(i + j, i) ** 2

    return _floats(_table(size, entry).astype(np.float64))


_KINDS = (None, "symmetric", "lower", "upper")


def _pascal(name: str, n: Any, kind: str | None, lower: Any, symmetric: Any) -> np.ndarray:
    if kind not in _KINDS:
        raise ValueError(
            f"Expected kind to be one of: ['symmetric', 'lower', 'upper']; {name} got {kind}"
        )
    size = max(_size(name, n, least=None), 0)
    table = symmetric(size) if kind in (None, "symmetric") else _table(size, lower)
    return (table.T if kind == "upper" else table).astype(np.float64)


def pascal(n: int, kind: str | None = None) -> Array:
    """Make the matrix of Pascal's triangle.

    - `n`: number of rows; a negative one counts as 0
    - `kind`: "symmetric" (the default), "lower" or "upper"

    The result has shape (n, n) and dtype float32. ValueError for another kind.
    Source: SciPy's `linalg.pascal`.

    >>> jax.scipy.linalg.pascal(3, "lower")
    Array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 2., 1.]], dtype=float32)
    """

    def symmetric(size):
        return _table(size, lambda i, j: comb(i + j, i))

    return asarray(_pascal("pascal", n, kind, comb, symmetric), dtype=np.float32)


def invpascal(n: int, kind: str | None = None) -> Array:
    """Make the inverse of `pascal`, whose elements are integers.

    - `n`: number of rows; a negative one counts as 0
    - `kind`: "symmetric" (the default), "lower" or "upper"

    The result has shape (n, n) and dtype float32. ValueError for another kind.
    Source: SciPy's `linalg.invpascal`.

    >>> jax.scipy.linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """

    def lower(i, j):
        return (-1) ** (i + j) * comb(i, j)

    def symmetric(size):
        factor = _table(size, lower)
        return factor.T @ factor if size else factor

    return _floats(_pascal("invpascal", n, kind, lower, symmetric))
