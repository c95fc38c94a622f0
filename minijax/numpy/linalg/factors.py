"""Decompositions of matrices."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax import linalg as lax_linalg
from minijax.lax.linalg.orthogonal import geqrf_p
from minijax.numpy import ufuncs
from minijax.numpy.promotion import check_arraylike, promote_dtypes_inexact, to_array
from minijax.numpy.shapes import expanded, flip, swapaxes
from minijax.numpy.sorting import argsort
from minijax.numpy.taking import take_along_axis
from minijax.typing import ArrayLike

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
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Compute the Cholesky factors of Hermitian positive-definite matrices.

    - `a`: array of shape (..., n, n).
    - `upper`: return u with u^H @ u = a instead of the lower triangular l with l @ l^H = a.
    - `symmetrize_input`: factor (a + a^H) / 2; otherwise only one triangle is read.

    Returns an array of the shape of `a`, of an inexact dtype, with NaN where a matrix is not
    positive definite. TypeError if the matrices are not square. Source: NumPy's `linalg.cholesky`.

    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 2.0]]))
    Array([[2., 0.],
           [1., 1.]], dtype=float32)
    """
    a = matrix_of("cholesky", a)
    factor = lax_linalg.cholesky(adjoint(a) if upper else a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


def _is_lower(uplo: str | None) -> bool:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {uplo}")
    return uplo != "U"


@library(static=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Compute eigenvalues and eigenvectors of Hermitian matrices.

    - `a`: array of shape (..., n, n).
    - `UPLO`: "L" or "U", the triangle that is read if `symmetrize_input` is False.
    - `symmetrize_input`: use (a + a^H) / 2.

    Returns a named tuple of eigenvalues, real, of shape (..., n) in ascending order, and
    eigenvectors as columns, of shape (..., n, n). ValueError for another `UPLO`, TypeError if the
    matrices are not square. Source: NumPy's `linalg.eigh`.

    >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    a = matrix_of("eigh", a)
    lower = _is_lower(UPLO)
    v, w = lax_linalg.eigh(a, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@library(static=("UPLO", "symmetrize_input"))
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Compute the eigenvalues of Hermitian matrices.

    - `a`: array of shape (..., n, n); `UPLO`, `symmetrize_input`: as in `eigh`.

    Returns a real array of shape (..., n) in ascending order. Errors are those of `eigh`. Source:
    NumPy's `linalg.eigvalsh`.

    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float32)
    """
    matrix_of("eigvalsh", a)
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@library
def eig(a: ArrayLike) -> EigResult:
    """Compute eigenvalues and right eigenvectors of square matrices; on CPU only.

    - `a`: array of shape (..., n, n).

    Returns a named tuple of eigenvalues, of shape (..., n), and eigenvectors as columns, of shape
    (..., n, n), both complex. ValueError if the matrices are not square. Source: NumPy's
    `linalg.eig`.

    >>> jnp.linalg.eig(jnp.array([[1.0, 0.0], [0.0, 2.0]])).eigenvalues
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    a = matrix_of("eig", a)
    w, v = lax_linalg.eig(a, compute_left_eigenvectors=False)
    return EigResult(w, v)


@library
def eigvals(a: ArrayLike) -> Array:
    """Compute the eigenvalues of square matrices; on CPU only.

    - `a`: array of shape (..., n, n).

    Returns a complex array of shape (..., n). ValueError if the matrices are not square. Source:
    NumPy's `linalg.eigvals`.

    >>> jnp.linalg.eigvals(jnp.array([[1.0, 0.0], [0.0, 2.0]]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    a = matrix_of("eigvals", a)
    return lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(
    a: ArrayLike, mode: Literal["reduced", "complete", "full", "raw"] = "reduced"
) -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: str) -> Array | QRResult: ...
@library(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Compute the QR factors of matrices, a = Q @ R.

    - `a`: array of shape (..., m, n); k = min(m, n).
    - `mode`: "reduced" (the default): Q of shape (..., m, k), R of shape (..., k, n); "complete": Q
      of shape (..., m, m), R of shape (..., m, n); "r": R alone; "raw": LAPACK's reflectors,
      transposed, and their scalars.

    Returns a named tuple of Q, with orthonormal columns, and R, upper triangular. ValueError for
    another mode. Source: NumPy's `linalg.qr`.

    >>> q, r = jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> bool(jnp.allclose(q @ r, jnp.array([[3.0, 1.0], [4.0, 2.0]])))
    True
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


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult: ...
@library(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Compute the singular value decomposition of matrices, a = (U * S) @ Vh.

    - `a`: array of shape (..., m, n); k = min(m, n).
    - `full_matrices`: U of shape (..., m, m) and Vh of shape (..., n, n); otherwise (..., m, k) and
      (..., k, n).
    - `compute_uv`: False returns S alone.
    - `hermitian`: `a` is Hermitian, which is faster.
    - `subset_by_index`: pair (start, end) of the singular values to return.

    Returns a named tuple of U, S, real, of shape (..., k) in descending order, and Vh. Source:
    NumPy's `linalg.svd`.

    >>> jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False).round()
    Array([4., 3.], dtype=float32)
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
def svdvals(x: ArrayLike, /) -> Array:
    """Compute the singular values of matrices.

    - `x`: array of shape (..., m, n).

    Returns a real array of shape (..., min(m, n)) in descending order. Source: NumPy's
    `linalg.svdvals`.

    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]])).round()
    Array([4., 3.], dtype=float32)
    """
    x = matrix_of("svdvals", x)
    return lax_linalg.svd(x, full_matrices=False, compute_uv=False)
