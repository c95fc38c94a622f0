"""Solving, inverses and powers."""

from __future__ import annotations

import functools
from math import prod
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.config import override
from minijax.custom_derivatives import custom_jvp
from minijax.features.library import library
from minijax.lax.linalg.elimination import solve_general
from minijax.numpy import reductions, ufuncs
from minijax.numpy.creation import asarray
from minijax.numpy.linalg.factors import adjoint, matrix_of, svd
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    check_dtypes,
    check_ranks,
    converted,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import expanded, moveaxis, reshaped
from minijax.numpy.triangles import (
    eye,
)
from minijax.typing import Array, ArrayLike

__all__ = [
    "inv", "lstsq", "matrix_power", "pinv", "solve", "solve_matrices", "tensorinv", "tensorsolve",
]  # fmt: skip


def solve_matrices(a: Any, b: Any) -> Any:
    """The solution of `a @ x = b` for matrices, whose leading axes broadcast.

    One matrix with many right sides is eliminated once.
    """
    rows = a.shape[-1]
    if a.ndim == 2 < b.ndim:
        b = moveaxis(b, -2, 0)
        rest = b.shape[1:]
        x = solve_general(a, reshaped(b, (rows, prod(rest))))
        return moveaxis(reshaped(x, (rows, *rest)), 0, -2)
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = broadcast_to_shape(a, (*lead, *a.shape[-2:]))
    b = broadcast_to_shape(b, (*lead, *b.shape[-2:]))
    return solve_general(a, b)


@library(whole=True)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve linear systems a @ x = b.

    - `a`: array of shape (..., n, n); `b`: array of shape (n,) or (..., n, k). Leading axes
      broadcast.

    Returns an array of the shape of `b` after broadcasting, of an inexact dtype; infinities or NaN
    for a singular matrix. ValueError if the shapes do not fit. Source: NumPy's `linalg.solve`.

    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    check_arraylike("jnp.linalg.solve", a, b)
    a, b = promote_dtypes_inexact(to_array("solve", a), to_array("solve", b))
    if a.ndim < 2:
        raise ValueError(
            f"left hand array must be at least two dimensional; got a.shape={a.shape}. solve takes "
            "matrices [..., n, n]."
        )
    vector = b.ndim == 1
    rows = a.shape[-2]
    fits = b.ndim and a.shape[-1] == rows == b.shape[0 if vector else -2]
    if not fits:
        hint = ""
        if a.ndim > 2 and b.ndim == a.ndim - 1:
            hint = " A batch of vectors is solved with solve(a, b[..., None])[..., 0]."
        raise ValueError(
            f"Invalid shapes for solve: {a.shape}, {b.shape}; wanted [..., n, n] and [n] or "
            f"[..., n, k].{hint}"
        )
    check_ranks("solve", a, b, core=(2, 1 if vector else 2))
    if vector:
        return solve_matrices(a, expanded(b, (1,)))[..., 0]
    return solve_matrices(a, b)


@library(whole=True)
def inv(a: ArrayLike) -> Array:
    """Compute inverses of square matrices.

    - `a`: array of shape (..., n, n).

    Returns an array of the shape of `a`, of an inexact dtype; infinities or NaN for a singular
    matrix. ValueError if the matrices are not square. Source: NumPy's `linalg.inv`.

    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    a = matrix_of("inv", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to inv must have shape [..., n, n], got {a.shape}.")
    ones = broadcast_to_shape(eye(a.shape[-1], dtype=a.dtype), a.shape)
    return solve_general(a, ones)


# -- pseudo-inverses ------------------------------------------------------------------------------


@functools.partial(custom_jvp, nondiff_argnums=(2,))
@override("default_matmul_precision", "highest")
def _pinv(a, rtol, hermitian):
    u, s, vh = svd(a, full_matrices=False, hermitian=bool(hermitian))
    bound = expanded(rtol, (rtol.ndim,)) * s[..., 0:1]
    s = choose_where(s > bound, s, np.inf)
    u = u / converted(expanded(s, (s.ndim - 1,)), u.dtype)
    return adjoint(vh) @ adjoint(u)


@override("default_matmul_precision", "highest")
def _pinv_jvp(hermitian, primals, tangents):
    """Source: Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973), equation 4.12.

    The products are grouped so that none is larger than the matrix.
    """
    a, rtol = primals
    t, _ = tangents
    p = _pinv(a, rtol, hermitian)
    if hermitian:
        t = (t + adjoint(t)) / 2
    if a.shape[-2] >= a.shape[-1]:
        inner = p @ adjoint(p)
        first = inner @ adjoint(t)
        first = first - (first @ a) @ p
        left = adjoint(t) - (p @ a) @ adjoint(t)
        second = (left @ adjoint(p)) @ p
    else:
        inner = adjoint(p) @ p
        first = adjoint(t) - (adjoint(t) @ a) @ p
        first = p @ (adjoint(p) @ first)
        second = adjoint(t) @ inner
        second = second - p @ (a @ second)
    return p, first + second - (p @ t) @ p


_pinv.defjvp(_pinv_jvp)


@library(static=("hermitian",))
def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """Compute Moore-Penrose pseudo-inverses of matrices.

    - `a`: array of shape (..., m, n).
    - `rtol`: array that broadcasts to (...); singular values up to `rtol` times the largest one
      count as zero. By default 10 * max(m, n) * eps.
    - `hermitian`: the matrices are Hermitian, which is faster; `rcond`: older name of `rtol`.

    Returns an array of shape (..., n, m), of an inexact dtype. ValueError if both `rtol` and
    `rcond` are given. Source: NumPy's `linalg.pinv`.

    >>> jnp.linalg.pinv(jnp.array([[0.5, 0.0], [0.0, 0.0]])).round()
    Array([[2., 0.],
           [0., 0.]], dtype=float32)
    """
    if rcond is not None and rtol is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    rtol = rcond if rtol is None else rtol
    a = matrix_of("pinv", a)
    rows, columns = a.shape[-2:]
    if rtol is None:
        rtol = 10.0 * max(rows, columns) * float(dtypes.finfo(a.dtype).eps)
    a = converted(a, a.dtype)
    if 0 in a.shape:
        return broadcast_to_shape(np.zeros((), a.dtype)[()], (*a.shape[:-2], columns, rows))
    rtol = asarray(rtol) if isinstance(rtol, (list, tuple)) else to_array("pinv", rtol)
    rtol = converted(rtol, dtypes.to_real_dtype(a.dtype))
    return _pinv(a, rtol, hermitian)


# -- least squares --------------------------------------------------------------------------------


@library(whole=True)
@override("default_matmul_precision", "highest")
def _lstsq(a, b, rcond):
    a, b = promote_dtypes_inexact(to_array("lstsq", a), to_array("lstsq", b))
    if not (a.ndim and b.ndim):
        raise ValueError(f"lstsq takes a matrix and vectors; got shapes {a.shape} and {b.shape}.")
    if a.shape[0] != b.shape[0]:
        raise ValueError(
            f"Leading dimensions of input arrays must match: lstsq got {a.shape} and {b.shape}."
        )
    vector = b.ndim == 1
    if vector:
        b = expanded(b, (1,))
    if a.ndim != 2:
        raise TypeError(
            f"{a.ndim}-dimensional array given. Array must be two-dimensional: {a.shape}."
        )
    if b.ndim != 2:
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional.")
    dtype = dtypes.to_real_dtype(a.dtype)
    if 0 in a.shape:
        s = to_array("lstsq", np.zeros((0,), dtype))
        rank = reductions.sum(s != 0)
        x = broadcast_to_shape(np.zeros((), a.dtype)[()], (a.shape[1], b.shape[1]))
    else:
        x, s, rank = _minimum_norm(a, b, rcond, dtype)
    left = b - a @ x
    resid = reductions.sum(ufuncs.real(left * ufuncs.conj(left)), axis=0)
    return (x[:, 0] if vector else x), resid, rank, s


def _minimum_norm(a: Any, b: Any, rcond: Any, dtype: Any) -> tuple[Any, Any, Any]:
    eps = float(dtypes.finfo(dtype).eps)
    if rcond is None:
        rcond = eps * max(a.shape)
    else:
        rcond = choose_where(rcond < 0, eps, rcond)
    u, s, vh = svd(a, full_matrices=False)
    mask = (s > 0) & (s >= converted(rcond, dtype) * s[0])
    rank = reductions.sum(mask)
    safe = choose_where(mask, s, np.ones((), dtype)[()])
    inverse = expanded(choose_where(mask, 1 / safe, np.zeros((), dtype)[()]), (1,))
    projected = adjoint(u) @ b
    x = adjoint(vh) @ (converted(inverse, projected.dtype) * projected)
    return x, s, rank


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Compute the least-squares solution of a @ x = b that has the least norm.

    - `a`: array of shape (m, n); `b`: array of shape (m,) or (m, k).
    - `rcond`: singular values below `rcond` times the largest one count as zero; eps * max(m, n) by
      default, eps if negative.
    - `numpy_resid`: return no residuals where the rank is below n, as NumPy does; not under `jit`.

    Returns the tuple (x, residuals, rank, singular values): x of shape (n,) or (n, k), and the sums
    of squared residuals. ValueError if the leading sizes differ, TypeError for other numbers of
    dimensions. Source: NumPy's `linalg.lstsq`.

    >>> jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))[0].round()
    Array([2.], dtype=float32)
    """
    check_arraylike("jnp.linalg.lstsq", a, b)
    x, resid, rank, s = _lstsq(a, b, rcond)
    if numpy_resid:
        rows, columns = np.shape(a)
        if rows <= columns or int(rank) < columns:
            resid = resid[:0]
    return x, resid, rank, s


# -- powers and tensors -----------------------------------------------------------------------------


@library(static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Raise square matrices to an integer power, by repeated squaring.

    - `a`: array of shape (..., n, n).
    - `n`: an int; negative powers invert the matrices first, 0 gives identity matrices.

    Returns an array of the shape of `a`. TypeError for other matrices and powers. Source: NumPy's
    `linalg.matrix_power`.

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    check_arraylike("jnp.linalg.matrix_power", a)
    a = to_array("matrix_power", a)
    if a.ndim < 2:
        raise TypeError(
            f"{a.ndim}-dimensional array given. Array must be at least two-dimensional."
        )
    if a.shape[-1] != a.shape[-2]:
        raise TypeError(f"Last 2 dimensions of the array must be square: got {a.shape}.")
    try:
        n = index(n)
    except TypeError:
        raise TypeError(f"exponent must be an integer, got {n}") from None
    if n == 0:
        return broadcast_to_shape(eye(a.shape[-1], dtype=a.dtype), a.shape)
    if n < 0:
        a, n = inv(a), -n
    result, square = None, a
    while n:
        n, odd = divmod(n, 2)
        if odd:
            result = square if result is None else result @ square
        if n:
            square = square @ square
    return result


@library(static=("ind",), converted=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Compute the inverse of an array as a linear map between tensors.

    - `a`: array whose first `ind` sizes have the product of its other sizes.
    - `ind`: an int, 2 by default.

    Returns an array of shape a.shape[ind:] + a.shape[:ind], whose `tensordot` with `a` over `ind`
    axes is the identity. ValueError for other shapes or a nonpositive `ind`. Source: NumPy's
    `linalg.tensorinv`.

    >>> jnp.linalg.tensorinv(2.0 * jnp.eye(2), ind=1)
    Array([[0.5, 0. ],
           [0. , 0.5]], dtype=float32)
    """
    check_arraylike("tensorinv", a)
    a = to_array("tensorinv", a)
    ind = index(ind)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    first, rest = a.shape[:ind], a.shape[ind:]
    if prod(first) != prod(rest):
        raise ValueError(
            "tensorinv is only possible when the product of the first `ind` dimensions equals that "
            f"of the remaining dimensions. got arr.shape={a.shape} with ind={ind}."
        )
    return reshaped(inv(reshaped(a, (prod(first), prod(rest)))), (*rest, *first))


@library(static=("axes",), converted=("axes",))
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """Solve the tensor equation tensordot(a, x, x.ndim) = b.

    - `a`: array of shape b.shape + x.shape, where both parts have equal products.
    - `b`: array of any shape.
    - `axes`: sequence of axes of `a` that are moved to its end first.

    Returns x, an array of an inexact dtype. ValueError if the shapes do not fit. Source: NumPy's
    `linalg.tensorsolve`.

    >>> jnp.linalg.tensorsolve(2.0 * jnp.eye(2), jnp.array([2.0, 4.0]))
    Array([1., 2.], dtype=float32)
    """
    check_arraylike("tensorsolve", a, b)
    a, b = to_array("tensorsolve", a), to_array("tensorsolve", b)
    check_dtypes(a, b)
    if axes is not None:
        a = moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
        if a.shape[: b.ndim] != b.shape:
            raise ValueError(
                "After moving axes to end, leading shape of a must match shape of b. got "
                f"a.shape={a.shape}, b.shape={b.shape}"
            )
    first, rest = a.shape[: b.ndim], a.shape[b.ndim :]
    if prod(first) != prod(rest):
        raise ValueError(
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); got "
            f"a.shape={a.shape}, b.ndim={b.ndim}."
        )
    x = solve(reshaped(a, (prod(first), prod(rest))), reshaped(b, (b.size,)))
    return reshaped(x, rest)
