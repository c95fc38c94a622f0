"""Decompositions of matrices. May import the floors below and `numpy`'s promotion and shapes."""

from __future__ import annotations

from typing import Any, NamedTuple

from minijax.core.array import Array
from minijax.lax import linalg as lax_linalg
from minijax.lax.linalg.orthogonal import geqrf_p
from minijax.numpy import ufuncs
from minijax.numpy.promotion import check_arraylike, promote_dtypes_inexact, to_array
from minijax.numpy.shapes import expanded, flip, swapaxes
from minijax.numpy.sorting import argsort
from minijax.numpy.taking import take_along_axis
from minijax.transforms.library import library

__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "adjoint", "cholesky", "eig", "eigh",
    "eigvals", "eigvalsh", "matrix_of", "qr", "svd", "svdvals",
]  # fmt: skip


class EigResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    Q: Array
    R: Array


class SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array


def matrix_of(name: str, a: Any) -> Any:
    """One argument, checked, in a floating or complex dtype."""
    check_arraylike(f"jnp.linalg.{name}", a)
    return promote_dtypes_inexact(to_array(name, a))[0]


def adjoint(a: Any) -> Any:
    return ufuncs.conj(swapaxes(a, -1, -2))


@library(static=("upper", "symmetrize_input"))
def cholesky(a, *, upper=False, symmetrize_input=True):
    """The triangular `l` with `l @ l^H = a`, or `u` with `u^H @ u = a` if `upper`.

    NaN where `a` is not positive definite. `symmetrize_input`: factor `(a + a^H) / 2`; else only
    one triangle is read. Source: numpy.linalg.cholesky.
    """
    a = matrix_of("cholesky", a)
    factor = lax_linalg.cholesky(adjoint(a) if upper else a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


def _is_lower(uplo: str | None) -> bool:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {uplo}")
    return uplo != "U"


@library(static=("UPLO", "symmetrize_input"))
def eigh(a, UPLO=None, symmetrize_input=True):
    """Rising eigenvalues, and eigenvectors as columns, of Hermitian matrices.

    `UPLO`: the triangle that is read, without `symmetrize_input`. Source: numpy.linalg.eigh.
    """
    a = matrix_of("eigh", a)
    lower = _is_lower(UPLO)
    v, w = lax_linalg.eigh(a, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@library(static=("UPLO", "symmetrize_input"))
def eigvalsh(a, UPLO="L", *, symmetrize_input=True):
    """Rising eigenvalues of Hermitian matrices; see `eigh`. Source: numpy.linalg.eigvalsh."""
    matrix_of("eigvalsh", a)
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@library
def eig(a):
    """Eigenvalues, and eigenvectors as columns, both complex, of square matrices; on CPU only.

    Source: numpy.linalg.eig.
    """
    a = matrix_of("eig", a)
    w, v = lax_linalg.eig(a, compute_left_eigenvectors=False)
    return EigResult(w, v)


@library
def eigvals(a):
    """Complex eigenvalues of square matrices; on CPU only. Source: numpy.linalg.eigvals."""
    a = matrix_of("eigvals", a)
    return lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@library(static=("mode",))
def qr(a, mode="reduced"):
    """The factors `Q` (orthonormal columns) and `R` (upper triangular) of `a = Q @ R`.

    `mode`: "reduced" (or "full", as NumPy once called it), "complete" for a square `Q`, "r" for `R`
    alone, "raw" for LAPACK's reflectors (transposed) and their scalars. Source: numpy.linalg.qr.
    """
    a = matrix_of("qr", a)
    if mode == "raw":
        reflectors, taus = geqrf_p.bind(a)
        return QRResult(swapaxes(reflectors, -1, -2), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(
            f"Unsupported QR decomposition mode {mode!r}: give 'reduced', 'complete', 'r' or 'raw'."
        )
    q, r = lax_linalg.qr(a, pivoting=False, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@library(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(a, full_matrices=True, compute_uv=True, hermitian=False, subset_by_index=None):
    """Singular values and vectors: `a = (U * S) @ Vh`, the values falling.

    `hermitian`: use `eigh`, which is faster. Source: numpy.linalg.svd.
    """
    a = matrix_of("svd", a)
    if hermitian:
        return _hermitian_svd(a, compute_uv, subset_by_index)
    found = lax_linalg.svd(
        a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
    )
    return SVDResult(*found) if compute_uv else found


def _hermitian_svd(a: Any, compute_uv: bool, subset_by_index: Any) -> Any:
    v, w = lax_linalg.eigh(a, subset_by_index=subset_by_index)
    s = ufuncs.abs(w)
    order = flip(argsort(s), -1)
    s = take_along_axis(s, order, -1)
    if not compute_uv:
        return s
    signs = take_along_axis(ufuncs.sign(w), order, -1)
    columns = expanded(order, (order.ndim - 1,))
    u = take_along_axis(v, columns, -1)
    vh = adjoint(u * expanded(signs, (signs.ndim - 1,)))
    return SVDResult(u, s, vh)


@library
def svdvals(x, /):
    """The falling singular values of matrices. Source: numpy.linalg.svdvals."""
    x = matrix_of("svdvals", x)
    return lax_linalg.svd(x, full_matrices=False, compute_uv=False)
