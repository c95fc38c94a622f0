"""Solving, inverses and powers. May import the floors below, `numpy` and `linalg.factors`."""

from __future__ import annotations

import functools
from math import prod
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.custom_derivatives import custom_jvp
from minijax.lax.linalg.elimination import solve_general
from minijax.numpy import reductions, ufuncs
from minijax.numpy.linalg.factors import adjoint, matrix_of, svd
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    converted,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.ranges import eye
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import expanded, moveaxis, reshaped
from minijax.transforms.library import library

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


@library
def solve(a, b):
    """The solution of `a @ x = b`, for a vector `b` or matrices; leading axes broadcast.

    - `a`: `[..., n, n]`; `b`: `[n]` or `[..., n, k]`

    A singular matrix gives infinities or NaN. ValueError if the shapes do not fit. Source:
    numpy.linalg.solve.
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
    if vector:
        return solve_matrices(a, expanded(b, (1,)))[..., 0]
    return solve_matrices(a, b)


@library
def inv(a):
    """The inverses of square matrices. ValueError for others. Source: numpy.linalg.inv."""
    a = matrix_of("inv", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to inv must have shape [..., n, n], got {a.shape}.")
    ones = broadcast_to_shape(eye(a.shape[-1], dtype=a.dtype), a.shape)
    return solve_general(a, ones)


# -- pseudo-inverses ------------------------------------------------------------------------------


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _pinv(a, rtol, hermitian):
    u, s, vh = svd(a, full_matrices=False, hermitian=bool(hermitian))
    bound = expanded(rtol, (rtol.ndim,)) * s[..., 0:1]
    s = choose_where(s > bound, s, np.inf)
    u = u / converted(expanded(s, (s.ndim - 1,)), u.dtype)
    return adjoint(vh) @ adjoint(u)


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
def pinv(a, rtol=None, hermitian=False, *, rcond=None):
    """The Moore-Penrose pseudo-inverse. Source: numpy.linalg.pinv.

    Singular values up to `rtol` times the largest one count as zero; `rtol` broadcasts with the
    leading axes, and is 10 * max(m, n) * eps by default. `rcond` is its older name.
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
    rtol = converted(to_array("pinv", rtol), dtypes.to_real_dtype(a.dtype))
    return _pinv(a, rtol, hermitian)


# -- least squares --------------------------------------------------------------------------------


@library
def _lstsq(a, b, rcond):
    a, b = promote_dtypes_inexact(to_array("lstsq", a), to_array("lstsq", b))
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
    mask = s >= converted(rcond, dtype) * s[0]
    rank = reductions.sum(mask)
    safe = choose_where(mask, s, np.ones((), dtype)[()])
    inverse = expanded(choose_where(mask, 1 / safe, np.zeros((), dtype)[()]), (1,))
    projected = adjoint(u) @ b
    x = adjoint(vh) @ (converted(inverse, projected.dtype) * projected)
    return x, s, rank


def lstsq(a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False) -> tuple:
    """The least-squares solution of `a @ x = b`, of least norm. Source: numpy.linalg.lstsq.

    - `a`: `[m, n]`; `b`: `[m]` or `[m, k]`
    - `rcond`: singular values below it times the largest one count as zero; eps * max(m, n) by
      default, eps if it is negative
    - `numpy_resid`: give no residuals where the rank is less than `n`, as NumPy does; not under `jit`

    Gives `x`, the sums of squared residuals, the rank, and the singular values. TypeError for other
    than matrices.
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
def matrix_power(a, n):
    """Square matrices to an integer power, which may be negative. Source: numpy.linalg.matrix_power.

    TypeError for other matrices and powers.
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


@library(static=("ind",))
def tensorinv(a, ind=2):
    """The inverse of an array as a map on tensors: `tensordot(tensorinv(a, ind), a, ind)` is one.

    The products of the first `ind` sizes and of the others are equal. Source:
    numpy.linalg.tensorinv.
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


@library(static=("axes",))
def tensorsolve(a, b, axes=None):
    """The tensor `x` with `tensordot(a, x, x.ndim) = b`. Source: numpy.linalg.tensorsolve.

    `axes` of `a` are moved to its end first. ValueError if the shapes do not fit.
    """
    check_arraylike("tensorsolve", a, b)
    a, b = to_array("tensorsolve", a), to_array("tensorsolve", b)
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
