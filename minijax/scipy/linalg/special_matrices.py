"""Matrices of a known form. May import the floors below and `numpy`."""

from __future__ import annotations

from math import comb
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.lax.slicing import pad_p
from minijax.numpy import ufuncs
from minijax.numpy.creation import asarray
from minijax.numpy.joining import concatenate
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    converted,
    promote_dtypes,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.ranges import arange
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import atleast_1d, expanded, flip
from minijax.transforms.library import library

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
    if not np.ndim(x):
        raise ValueError(f"{name}: its arguments must be at least 1-dimensional, got a scalar.")


def _joined(first: Any, second: Any) -> Any:
    """Vectors end to end; leading axes broadcast."""
    lead = broadcast_shapes(first.shape[:-1], second.shape[:-1])
    first = broadcast_to_shape(first, (*lead, first.shape[-1]))
    return concatenate([first, broadcast_to_shape(second, (*lead, second.shape[-1]))], axis=-1)


def _grid(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(rows)[:, None], np.arange(columns)[None, :]


@library
def toeplitz(c, r=None):
    """Matrices that are constant along diagonals: first column `c`, first row `r` (conj(c)).

    Vectors stand in the last axis. `r[0]` is not read. Source: scipy.linalg.toeplitz.
    """
    check_arraylike("toeplitz", c)
    c, r = _vectors("toeplitz", c, ufuncs.conj(c) if r is None else r)
    rows, columns = c.shape[-1], r.shape[-1]
    i, j = _grid(rows, columns)
    return _joined(flip(c, -1), r[..., 1:])[..., rows - 1 - i + j]


@library
def hankel(c, r=None):
    """Matrices that are constant along anti-diagonals: first column `c`, last row `r` (zeros).

    `r[0]` is not read. Source: scipy.linalg.hankel.
    """
    _need_axis("hankel", c)
    if r is not None:
        _need_axis("hankel", r)
    c, r = _vectors("hankel", c, to_array("hankel", c) * 0 if r is None else r)
    i, j = _grid(c.shape[-1], r.shape[-1])
    return _joined(c, r[..., 1:])[..., i + j]


@library
def circulant(c):
    """Matrices whose columns are the vectors `c`, each turned by one more. Source:
    scipy.linalg.circulant.
    """
    check_arraylike("circulant", c)
    c = atleast_1d(to_array("circulant", c))
    size = c.shape[-1]
    i, j = _grid(size, size)
    return c[..., (i - j) % max(size, 1)]


@library(static=("n", "mode"))
def convolution_matrix(a, n, mode="full"):
    """The matrix that convolves `a` with a vector of `n` elements, as `numpy.convolve` in a mode.

    Source: scipy.linalg.convolution_matrix.
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
    i, j = _grid(size + n - 1 - before - after, n)
    config = (*((0, 0, 0),) * (a.ndim - 1), (n - 1, n - 1, 0))
    padded = pad_p.bind(a, np.zeros((), a.dtype)[()], padding_config=config)
    return padded[..., i + before - j + n - 1]


@library
def companion(a):
    """The companion matrix of a polynomial, whose eigenvalues are its roots.

    Source: scipy.linalg.companion. ValueError for fewer than two coefficients.
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
def fiedler(a):
    """The distances of all pairs of elements. Source: scipy.linalg.fiedler."""
    check_arraylike("fiedler", a)
    a = atleast_1d(to_array("fiedler", a))
    return ufuncs.abs(expanded(a, (a.ndim,)) - expanded(a, (a.ndim - 1,)))


def _fiedler_plan(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Where ones stand, and which coefficient stands where (0 for none), for `size` rows."""
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
def fiedler_companion(a):
    """A companion matrix of a polynomial with five diagonals. Source:
    scipy.linalg.fiedler_companion.
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
def leslie(f, s):
    """Leslie's matrix of a population: fecundities `f` in the first row, survival rates `s` below
    the diagonal. Source: scipy.linalg.leslie.
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
def block_diag(*arrs):
    """A matrix with the arrays as blocks on its diagonal; vectors are rows. Source:
    scipy.linalg.block_diag.
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


def _size(name: str, n: Any) -> int:
    try:
        size = index(n)
    except TypeError:
        raise TypeError(f"{name} takes a whole number of rows; got {n!r}.") from None
    if size < 0:
        raise TypeError(f"{name} takes a nonnegative number of rows; got {size}.")
    return size


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """The matrix of the discrete Fourier transform; `scale`: None, "sqrtn" or "n" to divide by.

    Source: scipy.linalg.dft.
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


def hadamard(n: int, dtype: Any = int) -> Array:
    """Sylvester's matrix of ones and minus ones with orthogonal rows. Source: scipy.linalg.hadamard.

    ValueError unless `n` is a power of two.
    """
    size = int(n)
    if size != n or size < 1 or size & (size - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    matrix = np.ones((1, 1), np.int64)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return asarray(matrix, dtype=dtypes.check_user_dtype_supported(dtype, "hadamard"))


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix of contrasts, with orthonormal rows; `full` adds the row of the mean.

    Source: scipy.linalg.helmert.
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
    """Hilbert's matrix, 1 / (i + j + 1). Source: scipy.linalg.hilbert."""
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
    """The inverse of Hilbert's matrix, whose entries are whole. Source: scipy.linalg.invhilbert."""
    size = _size("invhilbert", n)

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
    size = _size(name, n)
    table = symmetric(size) if kind in (None, "symmetric") else _table(size, lower)
    return (table.T if kind == "upper" else table).astype(np.float64)


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a matrix: "symmetric", "lower" or "upper"; float32 always.

    Source: scipy.linalg.pascal.
    """

    def symmetric(size):
        return _table(size, lambda i, j: comb(i + j, i))

    return asarray(_pascal("pascal", n, kind, comb, symmetric), dtype=np.float32)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal`, whose entries are whole. Source: scipy.linalg.invpascal."""

    def lower(i, j):
        return (-1) ** (i + j) * comb(i, j)

    def symmetric(size):
        factor = _table(size, lower)
        return factor.T @ factor if size else factor

    return _floats(_pascal("invpascal", n, kind, lower, symmetric))
