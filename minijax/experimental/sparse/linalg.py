"""`minijax.experimental.sparse.linalg`: sparse systems of equations, and the greatest
eigenvalues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.stages.struct import ShapeDtypeStruct, eval_shape
from minijax.lax.sparse.solve import spsolve_p
from minijax.numpy.promotion import check_arraylike
from minijax.tracebacks import public

__all__ = ["lobpcg_standard", "spsolve", "spsolve_p"]


def spsolve(
    data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1
) -> Array:
    """The solution `x` of `a @ x = b`, for a square matrix `a` as CSR: `data, indices, indptr`.

    It runs on the host, by SciPy, which must be installed; on NVIDIA's GPUs by cuSOLVER, for which
    `tol` (what counts as singular) and `reorder` (0 to 3: how elements are reordered against
    fill-in) are. ValueError if shapes or dtypes do not fit. `vmap` does not apply.
    """
    return spsolve_p.bind(data, indices, indptr, b, tol=tol, reorder=reorder)


# -- LOBPCG -----------------------------------------------------------------------------------------


def lobpcg_standard(
    A: Array | Callable[[Array], Array], X: Array, m: int = 100, tol: Array | float | None = None
) -> tuple[Array, Array, Any]:
    """The greatest eigenvalues of a symmetric matrix, and their eigenvectors.

    - `A`: the matrix (n, n), or a function that gives its product with an (n, j) array
    - `X`: (n, k), linearly independent: where to start; there must be `0 < 5 k < n`
    - `m`: the most iterations
    - `tol`: a pair is converged if `|A v - w v| < tol * 10 * n * (w + |A v|)`; by default the
      epsilon of the dtype

    Gives the eigenvalues (k,), the eigenvectors (n, k), and the number of iterations. ValueError if
    shapes or dtypes do not fit. Sources: Knyazev, "Toward the optimal preconditioned eigensolver"
    (2001), without preconditioner; for the first directions, the block reflections of Schreiber and
    Parlett (1988).
    """
    apply = A if callable(A) else (lambda x: _times(A, x))
    _check(apply, X, A)
    n = X.shape[0]
    tol = jnp.finfo(X.dtype).eps if tol is None else tol
    X, _ = jnp.linalg.qr(X)
    theta, AX = _quotients(apply, X)

    def converged(X: Array, AX: Array, theta: Array) -> Array:
        residual = jnp.linalg.norm(AX - X * theta, axis=0)
        return jnp.all(residual < tol * 10 * n * (theta + jnp.linalg.norm(AX, axis=0)))

    def go_on(state: Any) -> Array:
        i, _, _, _, _, done = state
        return (i < m) & ~done

    def body(state: Any) -> Any:
        i, X, P, AX, theta, _ = state
        X, P, AX, theta = _step(apply, X, P, AX - X * theta)
        return i + 1, X, P, AX, theta, converged(X, AX, theta)

    state = (0, X, _other_directions(X), AX, theta, jnp.asarray(False))
    i, X, _, _, theta, _ = lax.while_loop(go_on, body, state)
    return theta, X, i


def _times(a: Array, b: Array) -> Array:
    return lax.dot(a, b, precision=lax.Precision.HIGHEST)


def _check(apply: Callable, X: Array, A: Any) -> None:
    check_arraylike("lobpcg_standard", X, *([] if callable(A) else [A]))
    if np.ndim(X) != 2:
        raise ValueError(f"X must be an (n, k) array, got one of shape {np.shape(X)}.")
    n, k = X.shape
    out = eval_shape(apply, ShapeDtypeStruct((n, 1), X.dtype))
    dtype = A.dtype if not callable(A) else out.dtype
    if dtype != X.dtype and (callable(A) or out.dtype != X.dtype):
        raise ValueError(f"A, X must have same dtypes (were {dtype.name}, {X.dtype.name})")
    if out.shape != (n, 1):
        raise ValueError(f"A must be ({n}, {n}) matrix A, got output {out.shape}")
    if k == 0:
        raise ValueError("must have search dim > 0, got 0")
    if k * 5 >= n:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {k * 5}, {n})")


def _quotients(apply: Callable, X: Array) -> tuple[Array, Array]:
    AX = apply(X)
    return jnp.sum(X * AX, axis=0), AX


def _other_directions(X: Array) -> Array:
    """Return as many orthonormal columns that are orthogonal to those of `X`.

    They are the next columns of the reflection `H = 1 - 2 W (W^T W)^-1 W^T` that takes the columns
    of `X` to its first ones: with `Z` the polar factor of the square on top of `X`, `W = X + [Z; 0]`.
    """
    k = X.shape[1]
    u, s, vt = jnp.linalg.svd(X[:k])
    w = X.at[:k].add(_times(u, vt))
    w = _times(w, vt.T * (2 * (1 + s)) ** -0.5)
    P = -2 * _times(w, w[k : 2 * k].T)
    return P.at[k : 2 * k].add(jnp.eye(k, dtype=X.dtype))


def _step(apply: Callable, X: Array, P: Array, R: Array) -> tuple[Array, Array, Array, Array]:
    """The best `k` vectors within the span of `X`, of residuals, and of the last change."""
    k = X.shape[1]
    others = jnp.concatenate([P, R], axis=1)
    lengths = jnp.linalg.norm(others, axis=0)
    others = others / jnp.where(lengths > 0, lengths, 1)
    basis, _ = jnp.linalg.qr(jnp.concatenate([X, others], axis=1))
    image = apply(basis)
    small = _times(basis.T, image)
    values, vectors = jnp.linalg.eigh((small + small.T) / 2)
    theta, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    change = _times(basis[:, k:], vectors[k:])
    return _times(basis, vectors), change, _times(image, vectors), theta


__dir__ = public(__name__)
