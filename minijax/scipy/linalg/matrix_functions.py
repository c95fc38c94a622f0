"""Functions of matrices, and equations between them."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial
from typing import Any, Literal, overload

import numpy as np

from minijax import dtypes
from minijax.config import override
from minijax.features.library import library
from minijax.lax import cond, custom_linear_solve, fori_loop, stop_gradient, switch
from minijax.lax import linalg as lax_linalg
from minijax.numpy import linalg, reductions, ufuncs
from minijax.numpy.creation import asarray
from minijax.numpy.linalg.factors import adjoint
from minijax.numpy.linear_algebra import diag
from minijax.numpy.logic import isfinite
from minijax.numpy.promotion import (
    check_ranks,
    converted,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.ranges import (
    arange,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import expanded
from minijax.numpy.triangles import (
    eye,
    triu,
)
from minijax.numpy.ufunc_objects import minimum
from minijax.scipy.linalg.factors import (
    cho_factor,
    cho_solve,
    rsf2csf,
    schur,
    solve_triangular,
    warn_of_vectors,
)
from minijax.transforms.grad import jvp
from minijax.transforms.vmap import vmap
from minijax.typing import Array, ArrayLike

__all__ = [
    "det", "expm", "expm_frechet", "funm", "inv", "solve", "solve_sylvester", "sqrtm",
]  # fmt: skip


def _batched(function: Callable, *arrays: Any) -> Any:
    """A function of matrices, mapped over leading axes."""
    for _ in range(arrays[0].ndim - 2):
        function = vmap(function)
    return function(*arrays)


# -- the exponential ----------------------------------------------------------------------------------

# By dtype, the degrees of Pade approximants, and the 1-norms up to which each is exact to rounding.
# Source: Higham, "The scaling and squaring method for the matrix exponential revisited" (2005),
# tables 2.3 and 2.4.
_DEGREES = {
    "float64": ((3, 5, 7, 9, 13), (1.495585217958292e-2, 2.539398330063230e-1,
                                   9.504178996162932e-1, 2.097847961257068, 5.371920351148152)),
    "float32": ((3, 5, 7), (4.258730016922831e-1, 1.880152677804762, 3.925724783138660)),
}  # fmt: skip
_DEGREES["complex128"], _DEGREES["complex64"] = _DEGREES["float64"], _DEGREES["float32"]


def _coefficients(degree: int) -> list[float]:
    """The numerator of the diagonal Pade approximant of exp, scaled to whole numbers."""
    m = degree
    scale = factorial(2 * m) // factorial(m)
    return [
        float(scale * factorial(2 * m - k) * comb(m, k) // factorial(2 * m)) for k in range(m + 1)
    ]


def _pade(degree: int) -> Callable:
    """Return the function from a matrix to the odd and the even part of the numerator."""
    c = _coefficients(degree)

    def parts(a):
        one = eye(a.shape[0], dtype=a.dtype)
        a2 = a @ a
        if degree == 13:
            a4 = a2 @ a2
            a6 = a4 @ a2
            high = a6 @ (c[13] * a6 + c[11] * a4 + c[9] * a2)
            odd = a @ (high + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one)
            high = a6 @ (c[12] * a6 + c[10] * a4 + c[8] * a2)
            return odd, high + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * one
        powers = [one, a2]
        while 2 * len(powers) < degree + 1:
            powers.append(powers[-1] @ a2)
        odd = sum([c[2 * k + 1] * x for k, x in enumerate(powers)][1:], c[1] * one)
        even = sum([c[2 * k] * x for k, x in enumerate(powers)][1:], c[0] * one)
        return a @ odd, even

    return parts


@override("default_matmul_precision", "highest")
def _exponential(a: Any, upper_triangular: bool, max_squarings: int) -> Any:
    degrees, bounds = _DEGREES[a.dtype.name]
    if not a.shape[0]:
        return a
    size = reductions.max(reductions.sum(ufuncs.abs(a), axis=0))
    count = ufuncs.floor(ufuncs.log2(size / bounds[-1]))
    count = choose_where(count > 0, count, np.zeros((), count.dtype)[()])  # zero for NaN too
    a = a / converted(2**count, a.dtype)
    which = reductions.sum(size > np.asarray(bounds[:-1], size.dtype))
    odd, even = switch(which, [_pade(degree) for degree in degrees], a)
    if upper_triangular:
        out = solve_triangular(even - odd, odd + even)
    else:
        out = linalg.solve(even - odd, odd + even)

    def step(i, x):
        return cond(i < count, lambda x: x @ x, lambda x: x, x)

    out = fori_loop(0, max_squarings, step, out)
    return choose_where(count > max_squarings, np.asarray(np.nan, out.dtype)[()], out)


@library(static=("upper_triangular", "max_squarings"), whole=True)
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Compute the exponentials of square matrices.

    - `A`: array of shape (..., n, n)
    - `upper_triangular`: whether matrices are upper triangular
    - `max_squarings`: largest number of halvings; NaN where more are needed

    The result has the shape of `A` and an inexact dtype. ValueError unless matrices are square.
    Source: SciPy's `linalg.expm`; Higham (2005).

    >>> jax.scipy.linalg.expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    A = to_array("expm", A)
    (A,) = promote_dtypes_inexact(A)
    A = converted(A, A.dtype)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={A.shape}.")
    if A.dtype.name not in _DEGREES:
        raise TypeError(f"A.dtype={A.dtype.name} is not supported: expm takes {list(_DEGREES)}.")
    return _batched(lambda a: _exponential(a, upper_triangular, max_squarings), A)


@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[True] = True
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[False]
) -> Array: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]: ...
@library(static=("method", "compute_expm"), whole=True)
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """Compute the exponential of a matrix, and its derivative in a direction.

    - `A`, `E`: arrays of shape (n, n): matrix and direction
    - `method`: ignored
    - `compute_expm`: whether to return the exponential too

    The results have the shape of `A` and an inexact dtype. ValueError for other shapes.
    Source: SciPy's `linalg.expm_frechet`.

    >>> jax.scipy.linalg.expm_frechet(jnp.zeros((2, 2)), jnp.eye(2))[1]
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    A, E = asarray(A), asarray(E)
    for name, x in (("A", A), ("E", E)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(
                f"expected {name} to be a (batched) square matrix, got {name}.shape={x.shape}"
            )
    if A.shape != E.shape:
        raise ValueError(
            f"expected A and E to be the same shape, got A.shape={A.shape} E.shape={E.shape}"
        )
    out, t = jvp(expm, (A,), (E,))
    return (out, t) if compute_expm else t


# -- functions by the Schur form ----------------------------------------------------------------------


def _fill(start: Any, entry: Callable) -> Any:
    """An upper triangular matrix from its diagonal, column by column and up from the diagonal.

    `entry(i, j, rows, columns)` is given the matrix so far, zero where it is unknown.
    """

    def column(j, f):
        def element(k, f):
            i = j - 1 - k
            value = entry(i, j, f[i, :], f[:, j])
            return f.at[i, j].set(value)

        return fori_loop(0, j, element, f)

    return fori_loop(0, start.shape[0], column, start)


@library(static=("blocksize",), converted=("blocksize",), whole=True)
@override("default_matmul_precision", "highest")
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Compute the principal square root of a matrix.

    - `A`: array of shape (n, n)
    - `blocksize`: must be 1

    The result is complex and has the shape of `A`. ValueError unless the matrix is square,
    NotImplementedError for another block size.
    Source: SciPy's `linalg.sqrtm`; Bjoerck and Hammarling (1983).

    >>> jax.scipy.linalg.sqrtm(jnp.eye(2)).dtype
    dtype('complex64')
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    A = to_array("sqrtm", A)
    form, vectors = schur(converted(A, dtypes.to_complex_dtype(A.dtype)))
    roots = ufuncs.sqrt(diag(form))

    def entry(i, j, row, column):
        total = roots[i] + roots[j]
        is_zero = total == 0
        value = (form[i, j] - reductions.sum(row * column)) / choose_where(is_zero, 1, total)
        return choose_where(is_zero, 0, value)

    return vectors @ _fill(diag(roots), entry) @ adjoint(vectors)


def funm(A: ArrayLike, func: Callable[..., Any], disp: bool = True) -> Array | tuple[Array, Array]:
    """Compute a function of a matrix, given for numbers, by its Schur form.

    - `A`: array of shape (n, n); eigenvalues that repeat lose accuracy
    - `func`: function of complex arrays, elementwise
    - `disp`: if False, an estimate of the relative error is returned too

    The result is complex and has the shape of `A`. ValueError unless the matrix is square.
    Source: SciPy's `linalg.funm`; Parlett (1976).

    >>> jax.scipy.linalg.funm(jnp.eye(2), jnp.exp).shape
    (2, 2)
    """
    A = asarray(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"expected square array_like input; funm got shape {A.shape}")
    out, error = _funm(A, func)
    return out if disp else (out, error)


@library(static=("func",), whole=True)
def _funm(A, func):
    form, vectors = schur(A)
    if A.dtype.kind != "c":  # real eigenvalues stay real: functions may have branch cuts there
        form, vectors = rsf2csf(form, vectors)
    values, at = diag(form), func(diag(form))
    at = converted(asarray(at), form.dtype)

    def entry(i, j, row, column):
        # The row and the column hold what is known of the result: zero in place (i, j).
        total = reductions.sum(form[i, :] * column - row * form[:, j])
        gap = values[j] - values[i]
        is_zero = gap == 0
        return choose_where(is_zero, total, total / choose_where(is_zero, 1, gap))

    found = _fill(diag(at), entry)
    out = vectors @ found @ adjoint(vectors)
    return out, _funm_error(form, values, out)


def _funm_error(form: Any, values: Any, out: Any) -> Any:
    eps = float(dtypes.finfo(form.dtype).eps)
    size = form.shape[0]
    gaps = ufuncs.abs(expanded(values, (0,)) - expanded(values, (1,)))
    above = expanded(arange(size), (1,)) < expanded(arange(size), (0,))
    least = reductions.min(choose_where(above, gaps, np.inf), initial=np.inf)
    least = minimum(least, ufuncs.abs(form[0, 0]))
    least = choose_where(least == 0, eps, least)
    error = eps / least * linalg.norm(triu(form, 1), 1)
    error = ufuncs.clip(error, eps, 1)
    return choose_where(reductions.all(isfinite(out)), error, np.inf)


# -- equations --------------------------------------------------------------------------------------------


@library(static=("overwrite_a", "check_finite"))
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the determinants of square matrices.

    - `a`: array of shape (..., n, n); `overwrite_a`, `check_finite`: ignored

    The result has shape (...) and an inexact dtype. ValueError unless matrices are square.
    Source: SciPy's `linalg.det`.

    >>> jax.scipy.linalg.det(jnp.diag(jnp.array([2.0, 3.0])))
    Array(6., dtype=float32)
    """
    return linalg.det(a)


@library(static=("overwrite_a", "check_finite"))
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the inverses of square matrices.

    - `a`: array of shape (..., n, n); `overwrite_a`, `check_finite`: ignored

    The result has the shape of `a` and an inexact dtype. ValueError unless matrices are square.
    Source: SciPy's `linalg.inv`.

    >>> jax.scipy.linalg.inv(jnp.diag(jnp.array([2.0, 4.0])))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return linalg.inv(a)


_SOLVE = (
    "lower", "overwrite_a", "overwrite_b", "debug", "check_finite", "assume_a",
)  # fmt: skip


@library(static=_SOLVE)
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve `a @ x = b`.

    - `a`: array of shape (..., n, n)
    - `b`: array of shape (n,) or (..., n, k)
    - `assume_a`: "gen", "sym", "her" or "pos", which uses Cholesky's factorization
    - `lower`: triangle to read with "pos"; `overwrite_a`, `overwrite_b`, `debug`, `check_finite`:
      ignored

    The result has the shape of `b` and an inexact dtype. ValueError for other shapes or `assume_a`.
    Source: SciPy's `linalg.solve`.

    >>> jax.scipy.linalg.solve(jnp.diag(jnp.array([2.0, 4.0])), jnp.array([2.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    known = ["gen", "sym", "her", "pos"]
    if assume_a not in known:
        raise ValueError(f"Expected assume_a to be one of {known}; got {assume_a!r}")
    if assume_a != "pos":
        return linalg.solve.__wrapped__(a, b)
    a, b = promote_dtypes_inexact(asarray(a), asarray(b))
    if a.ndim < 2 or b.ndim not in (a.ndim, a.ndim - 1) or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            "The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m]; "
            f"got a={a.shape} and b={b.shape}"
        )
    vector = b.ndim == a.ndim - 1
    check_ranks("solve", a, b, core=(2, 1 if vector else 2))
    if vector:
        warn_of_vectors("cho_solve", b)
        b = expanded(b, (b.ndim,))
    x = _solve_definite(a, b, lower)
    return x[..., 0] if vector else x


@override("default_matmul_precision", "highest")
def _solve_definite(a: Any, b: Any, lower: bool) -> Any:
    """The solution for Hermitian positive definite matrices; derivatives are the equation's."""
    factor = cho_factor(stop_gradient(a), lower=lower)

    def backward(_, y):  # the transpose of a Hermitian matrix is its conjugate
        return ufuncs.conj(cho_solve(factor, ufuncs.conj(y)))

    return custom_linear_solve(
        lambda x: a @ x, b, solve=lambda _, y: cho_solve(factor, y), transpose_solve=backward
    )


@library(static=("method", "tol"), whole=True)
def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solve `A @ x + x @ B = C`.

    - `A`, `B`, `C`: arrays of shapes (..., m, m), (..., n, n) and (..., m, n)
    - `method`: "schur", or "eigen" for diagonalizable matrices
    - `tol`: distance of an eigenvalue of `A` and one of `-B` below which the result is NaN

    The result has shape (..., m, n) and an inexact dtype. ValueError for other shapes.
    Source: SciPy's `linalg.solve_sylvester`; Bartels and Stewart (1972).

    >>> jax.scipy.linalg.solve_sylvester(jnp.eye(1), jnp.eye(1), jnp.array([[4.0]]))
    Array([[2.]], dtype=float32)
    """
    A, B, C = promote_dtypes_inexact(*[asarray(x) for x in (A, B, C)])
    fits = min(A.ndim, B.ndim, C.ndim) >= 2 and A.shape[:-1] == C.shape[:-1]
    fits = fits and A.shape[-1] == A.shape[-2] and B.shape[-2] == B.shape[-1] == C.shape[-1]
    if not fits:
        raise ValueError(
            f"Incompatible shapes for Sylvester equation: A: {A.shape} B: {B.shape} C: {C.shape}"
        )
    if method not in ("schur", "eigen"):
        raise ValueError(
            f'Unrecognized method {method}. The two valid methods are either "schur" or "eigen".'
        )
    run = _sylvester_schur if method == "schur" else _sylvester_eigen
    x = _batched(lambda a, b, c: run(a, b, c, tol), A, B, C)
    return x if A.dtype.kind == "c" else ufuncs.real(x)


def _sums(first: Any, second: Any, tol: float) -> tuple[Any, Any]:
    """All sums of eigenvalues, and whether the equation has no one solution."""
    sums = expanded(first, (1,)) + expanded(second, (0,))
    return sums, reductions.any(ufuncs.abs(sums) < tol)


def _sylvester_schur(a, b, c, tol):
    r, u = schur(a, output="complex")
    s, v = schur(b, output="complex")
    _, singular = _sums(diag(r), diag(s), tol)
    right = adjoint(u) @ converted(c, r.dtype) @ v
    one = eye(a.shape[0], dtype=r.dtype)

    def column(j, y):
        """The j-th column of the solution: earlier ones are known, later ones are still zero."""
        left = right[:, j] - y @ s[:, j]
        found = lax_linalg.triangular_solve(r + s[j, j] * one, left, left_side=True)
        return y.at[:, j].set(found)

    y = fori_loop(0, b.shape[0], column, 0 * right)
    return choose_where(singular, np.nan, u @ y @ adjoint(v))


def _sylvester_eigen(a, b, c, tol):
    w, u = linalg.eig(a)
    m, v = linalg.eig(b)
    sums, singular = _sums(w, m, tol)
    inner = linalg.solve(u, converted(c, u.dtype)) @ v / sums
    x = u @ inner @ linalg.inv(v)
    return choose_where(singular, np.nan, x)
