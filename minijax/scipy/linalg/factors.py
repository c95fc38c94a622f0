"""Decompositions under SciPy's names. Flags that say what may be overwritten, or checked, change
nothing.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any, Literal, overload

import numpy as np

from minijax import dtypes
from minijax.config import override
from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax import (
    cond,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    fori_loop,
)
from minijax.lax import linalg as lax_linalg
from minijax.lax.linalg.elimination import solve_with_lu
from minijax.lax.linalg.orthogonal import geqp3_p, geqrf_p
from minijax.lax.slicing import pad_p
from minijax.namespace import user_stacklevel
from minijax.numpy import ufuncs
from minijax.numpy.creation import asarray
from minijax.numpy.joining import concatenate, stack
from minijax.numpy.linalg.factors import adjoint
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_ranks,
    converted,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.ranges import (
    arange,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import expanded, matrix_transpose
from minijax.numpy.triangles import (
    eye,
    tril,
    triu,
)
from minijax.transforms.vmap import vmap
from minijax.typing import ArrayLike

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "eigh", "hessenberg", "lu", "lu_factor", "lu_solve",
    "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve_triangular", "svd",
]  # fmt: skip


def inexact(a: Any) -> Any:
    """An array, or what can be made one, in a floating or complex dtype."""
    return promote_dtypes_inexact(asarray(a))[0]


# -- cholesky ---------------------------------------------------------------------------------------


@library(static=("lower", "overwrite_a", "check_finite"))
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Factor Hermitian positive definite matrices: `u^H @ u = a`, or `l @ l^H = a` if `lower`.

    - `a`: array of shape (..., n, n), of which only that triangle is read
    - `overwrite_a`, `check_finite`: ignored

    The result has the shape of `a` and an inexact dtype, and is NaN where a matrix is not positive
    definite. ValueError unless matrices are square.
    Source: SciPy's `linalg.cholesky`.

    >>> jax.scipy.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    a = inexact(a)
    if lower:
        return lax_linalg.cholesky(a, symmetrize_input=False)
    return adjoint(lax_linalg.cholesky(ufuncs.conj(matrix_transpose(a)), symmetrize_input=False))


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Factor Hermitian positive definite matrices, for `cho_solve`.

    - `a`: array of shape (..., n, n)
    - `lower`: whether the factor is lower triangular; `overwrite_a`, `check_finite`: ignored

    The result is the factor, of the shape of `a` and an inexact dtype, and `lower`. ValueError
    unless matrices are square.
    Source: SciPy's `linalg.cho_factor`.

    >>> jax.scipy.linalg.cho_factor(jnp.array([[4.0]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower=lower), lower


def warn_of_vectors(name: str, b: Any) -> None:
    """FutureWarning for right sides that are several vectors."""
    if b.ndim > 1:
        warnings.warn(
            f"jax.scipy.linalg.{name}: batched 1D solves with b.ndim > 1 are deprecated, and in the "
            "future will be treated as a batched 2D solve. Give b[..., None], and take x[..., 0].",
            FutureWarning,
            stacklevel=user_stacklevel(),
        )


def _systems(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Square matrices and right sides with the same leading axes; and whether `b` is vectors."""
    vector = b.ndim == 1 or b.ndim == a.ndim - 1
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or not b.ndim:
        raise ValueError(
            f"{name} takes square matrices [..., n, n]; got shapes {a.shape} and {b.shape}."
        )
    check_ranks(name, a, b, core=(2, 1 if vector else 2))
    if vector:
        warn_of_vectors(name, b)
        b = expanded(b, (b.ndim,))
    if b.shape[-2] != a.shape[-1]:
        raise ValueError(
            f"{name}: right sides must have {a.shape[-1]} rows; got shapes {a.shape} and {b.shape}."
        )
    if a.ndim > 2 or b.ndim > 2:
        lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a = broadcast_to_shape(a, (*lead, *a.shape[-2:]))
        b = broadcast_to_shape(b, (*lead, *b.shape[-2:]))
    return a, b, vector


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve `a @ x = b`, given the result of `cho_factor`.

    - `c_and_lower`: the factor of shape (n, n), and whether it is lower triangular
    - `b`: array of shape (n,) or (n, k); `overwrite_b`, `check_finite`: ignored

    The result has the shape of `b` and an inexact dtype. ValueError for other shapes.
    Source: SciPy's `linalg.cho_solve`.

    >>> jax.scipy.linalg.cho_solve((jnp.array([[2.0]]), False), jnp.array([8.0]))
    Array([2.], dtype=float32)
    """
    c, lower = c_and_lower
    return _cho_solve(c, b, bool(lower))


@library(static=("lower",))
def _cho_solve(c, b, lower):
    c, b = promote_dtypes_inexact(asarray(c), asarray(b))
    c, b, vector = _systems("cho_solve", c, b)
    solve = functools.partial(lax_linalg.triangular_solve, c, left_side=True, lower=lower)
    for on_adjoint in (not lower, lower):  # a is c @ c^H if lower, else c^H @ c
        b = solve(b, transpose_a=on_adjoint, conjugate_a=on_adjoint)
    return b[..., 0] if vector else b


@library(static=("trans", "lower", "unit_diagonal", "overwrite_b", "debug", "check_finite"))
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """Solve `op(a) @ x = b` for triangular matrices.

    - `a`: array of shape (..., n, n); the triangle that `lower` does not name is not read, nor the
      diagonal if `unit_diagonal`
    - `b`: array of shape (..., n, k), or of one dimension less than `a`; leading axes broadcast
    - `trans`: 0 or "N" for `a`, 1 or "T" for its transpose, 2 or "C" for its adjoint
    - `overwrite_b`, `debug`, `check_finite`: ignored

    The result has an inexact dtype. ValueError for other shapes or another `trans`.
    Source: SciPy's `linalg.solve_triangular`.

    >>> jax.scipy.linalg.solve_triangular(jnp.diag(jnp.array([2.0, 4.0])), jnp.array([2.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"Invalid 'trans' value {trans}: give 0, 1 or 2.")
    a, b = promote_dtypes_inexact(asarray(a), asarray(b))
    a, b, vector = _systems("solve_triangular", a, b)
    x = lax_linalg.triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=trans not in (0, "N"),
        conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal,
    )
    return x[..., 0] if vector else x


# -- eigh, svd ----------------------------------------------------------------------------------------


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: Literal[False] = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    *,
    eigvals_only: Literal[True],
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]: ...
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """Compute eigenvalues, in rising order, and eigenvectors of Hermitian matrices.

    - `a`: array of shape (..., n, n), of which the triangle that `lower` names is read
    - `eigvals_only`: whether to return eigenvalues only
    - `b`, `eigvals`, `type`: not supported; `overwrite_a`, `turbo`, `check_finite` and others:
      ignored

    The result has shapes (..., n) and (..., n, n), with eigenvectors as columns. TypeError unless
    matrices are square, NotImplementedError for generalized problems.
    Source: SciPy's `linalg.eigh`.

    >>> jax.scipy.linalg.eigh(jnp.diag(jnp.array([2.0, 1.0])), eigvals_only=True)
    Array([1., 2.], dtype=float32)
    """
    if b is not None:
        raise NotImplementedError("Only the b=None case of eigh is implemented")
    if type != 1:
        raise NotImplementedError("Only the type=1 case of eigh is implemented.")
    if eigvals is not None:
        raise NotImplementedError("Only the eigvals=None case of eigh is implemented.")
    return _eigh(a, lower=bool(lower), eigvals_only=bool(eigvals_only))


@library(static=("lower", "eigvals_only"))
def _eigh(a, *, lower, eigvals_only):
    v, w = lax_linalg.eigh(inexact(a), lower=lower)
    return w if eigvals_only else (w, v)


_SVD = (
    "full_matrices", "compute_uv", "overwrite_a", "check_finite", "lapack_driver",
)  # fmt: skip


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]: ...
@library(static=_SVD)
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:
    """Compute singular values and vectors: `a = (u * s) @ vh`.

    - `a`: array of shape (..., m, n)
    - `full_matrices`: whether `u` and `vh` are square; otherwise they have min(m, n) columns or
      rows
    - `compute_uv`: if False, only `s` is returned
    - `overwrite_a`, `check_finite`, `lapack_driver`: ignored

    The result is `u`, the falling `s` and `vh`, of an inexact dtype. TypeError for fewer than two
    dimensions.
    Source: SciPy's `linalg.svd`.

    >>> jax.scipy.linalg.svd(jnp.diag(jnp.array([2.0, 3.0])), compute_uv=False)
    Array([3., 2.], dtype=float32)
    """
    return lax_linalg.svd(inexact(a), full_matrices=full_matrices, compute_uv=compute_uv)


# -- lu -------------------------------------------------------------------------------------------------


@overload
def lu(
    a: ArrayLike,
    permute_l: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def lu(
    a: ArrayLike, permute_l: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@overload
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...
@library(static=("permute_l", "overwrite_a", "check_finite"))
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """Factor matrices: `a = p @ l @ u` with a permutation `p`.

    - `a`: array of shape (..., m, n); `overwrite_a`, `check_finite`: ignored
    - `permute_l`: whether to return `p @ l` and `u` only

    The results have shapes (..., m, m), (..., m, k) and (..., k, n) with k = min(m, n), and an
    inexact dtype. TypeError for fewer than two dimensions.
    Source: SciPy's `linalg.lu`.

    >>> [x.shape for x in jax.scipy.linalg.lu(jnp.ones((3, 2)))]
    [(3, 3), (3, 2), (2, 2)]
    """
    a = inexact(a)
    factors, _, permutation = lax_linalg.lu(a)
    rows, columns = a.shape[-2:]
    k = min(rows, columns)
    real = dtypes.to_real_dtype(a.dtype)
    places = expanded(permutation, (permutation.ndim - 1,))
    p = converted(expanded(arange(rows), (1,)) == places, real)
    lower = tril(factors, -1)[..., :, :k] + eye(rows, k, dtype=a.dtype)
    upper = triu(factors)[..., :k, :]
    return (converted(p, a.dtype) @ lower, upper) if permute_l else (p, lower, upper)


@library(static=("overwrite_a", "check_finite"))
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Factor matrices with partial pivoting, for `lu_solve`.

    - `a`: array of shape (..., m, n); `overwrite_a`, `check_finite`: ignored

    The result is both factors in one array of the shape of `a`, and int32 pivots. TypeError for
    fewer than two dimensions.
    Source: SciPy's `linalg.lu_factor`.

    >>> jax.scipy.linalg.lu_factor(jnp.array([[0.0, 1.0], [2.0, 0.0]]))[1]
    Array([1, 1], dtype=int32)
    """
    factors, pivots, _ = lax_linalg.lu(inexact(a))
    return factors, pivots


def lu_solve(
    lu_and_piv: tuple[Array, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve `op(a) @ x = b`, given the result of `lu_factor`.

    - `lu_and_piv`: factors and pivots
    - `b`: array of shape (n,) or (n, k); `overwrite_b`, `check_finite`: ignored
    - `trans`: 0 for `a`, 1 for its transpose, 2 for its adjoint

    The result has the shape of `b` and an inexact dtype. ValueError for other shapes or another
    `trans`.
    Source: SciPy's `linalg.lu_solve`.

    >>> factors = jax.scipy.linalg.lu_factor(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> jax.scipy.linalg.lu_solve(factors, jnp.array([3.0, 4.0]))
    Array([2., 3.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    factors, pivots = lu_and_piv
    return _lu_solve(factors, pivots, b, int(trans))


@library(static=("trans",))
def _lu_solve(factors, pivots, b, trans):
    factors, b = promote_dtypes_inexact(asarray(factors), asarray(b))
    if factors.ndim < 2 or not b.ndim:
        raise ValueError(
            f"lu_solve takes what lu_factor gives and right sides; got shapes {factors.shape} and "
            f"{b.shape}."
        )
    size = factors.shape[-1]
    permutation = lax_linalg.lu_pivots_to_permutation(asarray(pivots), size)
    factors, b, vector = _systems("lu_solve", factors, b)
    permutation = broadcast_to_shape(permutation, (*factors.shape[:-2], size))
    x = solve_with_lu(factors, permutation, b, trans)
    return x[..., 0] if vector else x


# -- qr -------------------------------------------------------------------------------------------------


@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: Literal["full", "economic"] = "full",
    pivoting: Literal[False] = False,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    *,
    mode: Literal["r"],
    pivoting: Literal[False] = False,
    check_finite: bool = True,
) -> tuple[Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: Literal["full", "economic"] = "full",
    *,
    pivoting: Literal[True],
    check_finite: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    *,
    mode: Literal["r"],
    pivoting: Literal[True],
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array] | tuple[Array, Array] | tuple[Array, Array, Array]: ...
@library(static=("overwrite_a", "lwork", "mode", "pivoting", "check_finite"))
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array] | tuple[Array, Array] | tuple[Array, Array, Array]:
    """Factor matrices: `a = q @ r` with orthonormal columns of `q` and upper triangular `r`.

    - `a`: array of shape (..., m, n)
    - `mode`: "full", "economic" (`q` has min(m, n) columns) or "r" (`r` only, in a tuple)
    - `pivoting`: whether to return the order of columns too
    - `overwrite_a`, `lwork`, `check_finite`: ignored

    The results have an inexact dtype. ValueError for another mode, TypeError for fewer than two
    dimensions.
    Source: SciPy's `linalg.qr`.

    >>> [x.shape for x in jax.scipy.linalg.qr(jnp.ones((3, 2)), mode="economic")]
    [(3, 2), (2, 2)]
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(
            f"Unsupported QR decomposition mode {mode!r}: give 'full', 'r' or 'economic'."
        )
    q, *rest = lax_linalg.qr(inexact(a), pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


@overload
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: Literal[False] = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array]: ...
@overload
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    *,
    pivoting: Literal[True],
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array, Array]: ...
@overload
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...
@library(
    static=("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c"),
    converted=("pivoting", "conjugate"),
)
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """Compute `c @ q` (mode "right") or `q @ c` ("left"), and `r`, without forming `q`.

    - `a`: array of shape (m, n), whose `q` has min(m, n) columns
    - `c`: vector or matrix
    - `pivoting`: whether to return the order of columns too
    - `conjugate`: whether to conjugate `q`; `overwrite_a`, `overwrite_c`: ignored

    The results have an inexact dtype. ValueError for another mode, or shapes that do not fit.
    Source: SciPy's `linalg.qr_multiply`.

    >>> [x.shape for x in jax.scipy.linalg.qr_multiply(jnp.ones((3, 2)), jnp.ones(3))]
    [(2,), (2, 2)]
    """
    if mode not in ("right", "left"):
        raise ValueError(f"mode must be 'right' or 'left', got {mode!r}")
    a, c = promote_dtypes_inexact(asarray(a), asarray(c))
    if a.ndim < 2 or not c.ndim:
        raise ValueError(
            f"qr_multiply takes a matrix, and a vector or matrix; got shapes {a.shape}, {c.shape}."
        )
    left = mode == "left"
    rows, columns = a.shape[-2:]
    k = min(rows, columns)
    vector = c.ndim == 1
    if vector:
        c = expanded(c, (1 if left else 0,))
    found, wanted = (c.shape[-2], k) if left else (c.shape[-1], rows)
    if found != wanted:
        raise ValueError(
            f"Array shapes are not compatible for {'Q @ c' if left else 'c @ Q'} operation: a has "
            f"shape {a.shape} so Q has {wanted} {'columns' if left else 'rows'}, but c has {found} "
            f"{'rows' if left else 'columns'} (expected {wanted})."
        )
    if pivoting:
        zeros = broadcast_to_shape(np.int32(0), (*a.shape[:-2], columns))
        reflectors, places, taus = geqp3_p.bind(a, zeros, use_magma=None)
        rest = (places - 1,)
    else:
        reflectors, taus = geqrf_p.bind(a)
        rest = ()
    r = triu(reflectors)[..., :k, :]
    product = _reflected(reflectors[..., :, :k], taus, c, left, conjugate, k)
    return (product[..., 0] if left else product[..., 0, :]) if vector else product, r, *rest


def _reflected(reflectors, taus, c, left, conjugate, k):
    rows = reflectors.shape[-2]
    if left and rows > k:
        zeros = broadcast_to_shape(
            np.zeros((), c.dtype)[()], (*c.shape[:-2], rows - k, c.shape[-1])
        )
        c = concatenate([c, zeros], axis=-2)
    c = ufuncs.conj(c) if conjugate else c
    out = lax_linalg.ormqr(reflectors, taus, c, left=left)
    out = ufuncs.conj(out) if conjugate else out
    return out if left else out[..., :, :k]


# -- schur, hessenberg -----------------------------------------------------------------------------------


@library(static=("output",))
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Compute the Schur form and vectors of square matrices: `a = z @ t @ z^H`.

    - `a`: array of shape (..., n, n)
    - `output`: "real" or "complex"

    The result is `t` and `z`, of the shape of `a` and an inexact dtype. ValueError for another
    output, and unless matrices are square.
    Source: SciPy's `linalg.schur`.

    >>> jax.scipy.linalg.schur(jnp.diag(jnp.array([1.0, 2.0])))[0]
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(
            f"Expected 'output' to be either 'real' or 'complex', got output={output!r}."
        )
    if output == "complex":
        a = to_array("schur", a)
        a = converted(a, dtypes.to_complex_dtype(a.dtype))
    return lax_linalg.schur(a)


@library(static=("check_finite",), whole=True)
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Convert a real Schur form and its vectors to complex ones, with a triangular form.

    - `T`, `Z`: arrays of shape (n, n): the form and the vectors; `check_finite`: ignored

    The results have the same shape and a complex dtype. ValueError for other shapes.
    Source: SciPy's `linalg.rsf2csf`.

    >>> jax.scipy.linalg.rsf2csf(jnp.eye(2), jnp.eye(2))[0].dtype
    dtype('complex64')
    """
    t, z = asarray(T), asarray(Z)
    for name, x in (("T", t), ("Z", z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Input '{name}' must be square.")
    if t.shape != z.shape:
        raise ValueError(f"Input array shapes must match: Z: {z.shape} vs. T: {t.shape}")
    t, z = promote_dtypes_inexact(t, z)
    dtype = dtypes.to_complex_dtype(t.dtype)
    t, z = converted(t, dtype), converted(z, dtype)
    run = _complex_form
    for _ in range(t.ndim - 2):
        run = vmap(run)
    return run(t, z)


def _block(t: Any, m: Any) -> Any:
    """The block of two rows and columns that ends in row `m`."""
    return dynamic_slice(t, (m - 1, m - 1), (2, 2))


def _complex_form(t: Any, z: Any) -> tuple[Any, Any]:
    """Each block on the diagonal is made triangular by a rotation that uses one of its eigenvalues."""
    size = t.shape[-1]
    eps = float(dtypes.finfo(t.dtype).eps)
    places = arange(size)

    def rotate(m, t, z):
        block = _block(t, m)
        shifts = lax_linalg.eig(
            block, compute_left_eigenvectors=False, compute_right_eigenvectors=False
        )[0]
        mu, below = shifts[0] - block[1, 1], block[1, 0]
        length = ufuncs.sqrt(ufuncs.real(mu * ufuncs.conj(mu) + below * ufuncs.conj(below)))
        c, s = mu / length, below / length
        g = stack([stack([ufuncs.conj(c), s]), stack([-s, c])])
        rows = dynamic_slice_in_dim(t, m - 1, 2, 0)
        rows = choose_where(expanded(places >= m - 1, (0,)), g @ rows, rows)
        t = dynamic_update_slice_in_dim(t, rows, m - 1, 0)
        h = adjoint(g)
        columns = dynamic_slice_in_dim(t, m - 1, 2, 1)
        columns = choose_where(expanded(places <= m, (1,)), columns @ h, columns)
        t = dynamic_update_slice_in_dim(t, columns, m - 1, 1)
        turned = dynamic_slice_in_dim(z, m - 1, 2, 1) @ h
        return t, dynamic_update_slice_in_dim(z, turned, m - 1, 1)

    def step(i, carry):
        t, z = carry
        m = size - 1 - i
        block = _block(t, m)
        scale = ufuncs.abs(block[0, 0]) + ufuncs.abs(block[1, 1])
        is_block = ufuncs.abs(block[1, 0]) > eps * scale
        t, z = cond(is_block, rotate, lambda m, t, z: (t, z), m, t, z)
        gone = (expanded(places, (1,)) == m) & (expanded(places, (0,)) == m - 1)
        return choose_where(gone, np.zeros((), t.dtype)[()], t), z

    return fori_loop(0, max(size - 1, 0), step, (t, z))


@overload
def hessenberg(
    a: ArrayLike,
    *,
    calc_q: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]: ...
@library(static=("calc_q", "overwrite_a", "check_finite"))
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """Reduce square matrices to upper Hessenberg form: `a = q @ h @ q^H`.

    - `a`: array of shape (..., n, n); `overwrite_a`, `check_finite`: ignored
    - `calc_q`: whether to return `q` too

    The results have the shape of `a` and an inexact dtype. ValueError unless matrices are square.
    Source: SciPy's `linalg.hessenberg`.

    >>> jax.scipy.linalg.hessenberg(jnp.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    a = to_array("hessenberg", a)
    if a.ndim < 2:
        raise TypeError(f"Input 0 to hessenberg must have rank at least 2, but got shape={a.shape}")
    size = a.shape[-1]
    if not size:
        return (a, a) if calc_q else a
    reduced, taus = lax_linalg.hessenberg(a)
    h = triu(reduced, -1)
    if not calc_q:
        return h
    lead = reduced.shape[:-2]
    one = broadcast_to_shape(np.ones((), h.dtype)[()], (*lead, 1, 1))
    if size == 1:
        return h, one
    inner = lax_linalg.householder_product(reduced[..., 1:, :-1], taus)
    config = (*((0, 0, 0),) * len(lead), (1, 0, 0), (1, 0, 0))
    inner = pad_p.bind(inner, np.zeros((), h.dtype)[()], padding_config=config)
    return h, dynamic_update_slice(inner, one, (0,) * inner.ndim)


# -- polar ------------------------------------------------------------------------------------------------


@library(static=("side", "method", "eps", "max_iterations"), whole=True)
@override("default_matmul_precision", "highest")
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Compute the polar decomposition `a = u @ p`, or `a = p @ u` with `side="left"`.

    - `a`: array of shape (m, n)
    - `method`: "qdwh", for m >= n (m < n with "left"), or "svd"
    - `eps`, `max_iterations`: as in `lax.linalg.qdwh`

    The result is `u` with orthonormal columns or rows, and the positive semidefinite `p`.
    ValueError for another side or method, NotImplementedError for "qdwh" and other shapes.
    Source: SciPy's `linalg.polar`.

    >>> [x.shape for x in jax.scipy.linalg.polar(jnp.ones((3, 2)))]
    [(3, 2), (2, 2)]
    """
    a = asarray(a)
    if a.ndim < 2:
        raise ValueError("The input `a` must be at least a 2-D array.")
    if side not in ("right", "left"):
        raise ValueError("The argument `side` must be either 'right' or 'left'.")
    rows, columns = a.shape[-2:]
    right = side == "right"
    if method == "svd":
        u, s, vh = lax_linalg.svd(inexact(a), full_matrices=False)
        s = converted(expanded(s, (s.ndim - 1,)), u.dtype)
        return u @ vh, (adjoint(vh) * s @ vh if right else u * s @ adjoint(u))
    if method != "qdwh":
        raise ValueError(f"Unknown polar decomposition method {method}.")
    if (rows < columns) == right:
        raise NotImplementedError(
            "method='qdwh' only supports mxn matrices with m >= n where side='right' and m < n "
            f"where side='left', got {(rows, columns)} with side={side!r}: give method='svd'."
        )
    run = lambda x: lax_linalg.qdwh(x, max_iterations=max_iterations, eps=eps)[:2]
    for _ in range(a.ndim - 2):
        run = vmap(run)
    u, p = run(a if right else adjoint(a))
    return (u, p) if right else (adjoint(u), adjoint(p))
