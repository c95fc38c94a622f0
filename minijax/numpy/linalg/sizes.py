"""Norms, determinants, ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.arguments.calls import check_hashable
from minijax.arguments.values import known_value
from minijax.config import override
from minijax.core.array import Array
from minijax.custom_derivatives import custom_jvp
from minijax.features.library import library
from minijax.features.queries import certain
from minijax.lax import linalg as lax_linalg
from minijax.lax.linalg.elimination import take_rows
from minijax.lax.linalg.orthogonal import geqrf_p
from minijax.numpy import float_parts, reductions, ufuncs
from minijax.numpy.linalg.factors import matrix_of, svd, svdvals
from minijax.numpy.linalg.inverses import inv, solve_matrices
from minijax.numpy.linear_algebra import diagonal, matvec
from minijax.numpy.logic import isfinite, isnan
from minijax.numpy.promotion import (
    axis_of,
    broadcast_to_shape,
    check_arraylike,
    converted,
    filled_like,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.ranges import (
    arange,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import expand_dims, expanded, moveaxis
from minijax.numpy.triangles import (
    eye,
)
from minijax.transforms.grad import jvp
from minijax.typing import ArrayLike

__all__ = [
    "SlogdetResult", "cond", "det", "matrix_norm", "matrix_rank", "norm", "slogdet", "vector_norm",
]  # fmt: skip


class SlogdetResult(NamedTuple):
    sign: Array
    logabsdet: Array


# -- norms ----------------------------------------------------------------------------------------


def _root_of_squares(x: Any, axis: Any, keepdims: bool) -> Any:
    squares = ufuncs.real(x * ufuncs.conj(x)) if x.dtype.kind == "c" else x * x
    return ufuncs.sqrt(reductions.sum(squares, axis=axis, keepdims=keepdims))


def _vector_norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    if order is None or (not isinstance(order, str) and order == 2):
        return _root_of_squares(x, axis, keepdims)
    if isinstance(order, str):
        raise ValueError(f"Invalid order '{order}' for vector norm. Give a number, or np.inf.")
    if order == np.inf:
        return reductions.max(ufuncs.abs(x), axis=axis, keepdims=keepdims, initial=0)
    if order == -np.inf:
        return reductions.min(ufuncs.abs(x), axis=axis, keepdims=keepdims)
    if order == 0:
        real = dtypes.to_real_dtype(x.dtype)
        return reductions.sum(x != 0, axis=axis, dtype=real, keepdims=keepdims)
    if order == 1:
        return reductions.sum(ufuncs.abs(x), axis=axis, keepdims=keepdims)
    sizes = ufuncs.abs(x)
    order = converted(order, sizes.dtype)
    total = reductions.sum(sizes**order, axis=axis, keepdims=keepdims)
    return total ** (1 / order)


def _matrix_norm(x: Any, order: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    rows, columns = axes
    if order is None or (isinstance(order, str) and order == "fro"):
        return _root_of_squares(x, axes, keepdims)
    if isinstance(order, str) and order == "nuc":
        return _of_singular_values(x, axes, keepdims, reductions.sum)
    if isinstance(order, str) or order not in (1, -1, 2, -2, np.inf, -np.inf):
        raise ValueError(
            f"Invalid order '{order}' for matrix norm. Give 1, -1, 2, -2, np.inf, -np.inf, 'fro' "
            "or 'nuc'."
        )
    if abs(order) == 2:
        if order > 0:
            most = lambda s, **options: reductions.max(s, initial=0, **options)
        else:
            most = reductions.min
        return _of_singular_values(x, axes, keepdims, most)
    summed, kept = (rows, columns) if abs(order) == 1 else (columns, rows)
    if not keepdims and kept > summed:
        kept -= 1
    sums = reductions.sum(ufuncs.abs(x), axis=summed, keepdims=keepdims)
    if order > 0:
        return reductions.max(sums, axis=kept, keepdims=keepdims, initial=0)
    return reductions.min(sums, axis=kept, keepdims=keepdims)


def _of_singular_values(x: Any, axes: tuple[int, int], keepdims: bool, reduce: Any) -> Any:
    s = svd(moveaxis(x, axes, (-2, -1)), full_matrices=False, compute_uv=False)
    out = reduce(s, axis=-1)
    return expand_dims(out, axes) if keepdims else out


@library(static=("ord", "axis", "keepdims"))
def norm(
    x: ArrayLike,
    ord: int | float | str | None = None,
    axis: Sequence[int] | int | None = None,
    keepdims: bool = False,
) -> Array:
    """Compute the norm of vectors or matrices.

    - `x`: numeric array.
    - `ord`: for vectors a number or np.inf, by default 2; for matrices "fro" (the default), "nuc",
      1, 2, np.inf, or one of these numbers negated.
    - `axis`: an int for vectors or a pair of ints for matrices; None for the whole array.
    - `keepdims`: keep these axes with size 1.

    Returns a real array of the shape of `x` without the axes. Without `ord` and `axis`, it is the
    2-norm of the flattened array. ValueError for a wrong order or number of axes. Source: NumPy's
    `linalg.norm`.

    >>> jnp.linalg.norm(jnp.array([[3.0, 4.0], [0.0, 2.0]]), axis=1)
    Array([5., 2.], dtype=float32)
    """
    check_arraylike("jnp.linalg.norm", x)
    check_hashable("axis", "norm", axis)
    (x,) = promote_dtypes_inexact(to_array("norm", x))
    x = converted(x, x.dtype)
    if axis is None:
        if ord is None:
            return _root_of_squares(x, None, keepdims)
        axes = tuple(range(x.ndim))
    elif isinstance(axis, tuple):
        axes = tuple([axis_of(a, x.ndim) for a in axis])
    else:
        axes = (axis_of(axis, x.ndim),)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError(
        f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, "
        "or two axes to compute a matrix-norm."
    )


@library(static=("keepdims", "ord"))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | int = "fro") -> Array:
    """Compute norms of matrices in the last two axes.

    - `x`: array of shape (..., m, n).
    - `keepdims`: keep the two axes with size 1; `ord`: as for matrices in `norm`, "fro" by default.

    Returns a real array of shape (...). ValueError for a wrong order. Source: NumPy's
    `linalg.matrix_norm`, of the array API standard.

    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float32)
    """
    check_arraylike("jnp.linalg.matrix_norm", x)
    return norm(x, ord=ord, keepdims=keepdims, axis=(-2, -1))


@library(static=("axis", "keepdims", "ord"), converted=("axis", "ord"))
def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: int | str = 2,
) -> Array:
    """Compute norms of vectors along axes.

    - `x`: numeric array of any shape.
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.
    - `ord`: a number or np.inf, 2 by default.

    Returns a real array of the shape of `x` without the axes. ValueError for a wrong order. Source:
    NumPy's `linalg.vector_norm`, of the array API standard.

    >>> jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [0.0, 2.0]]), axis=1)
    Array([5., 2.], dtype=float32)
    """
    check_arraylike("jnp.linalg.vector_norm", x)
    x = to_array("vector_norm", x)
    whole = not isinstance(ord, str) and ord in (1, np.inf, -np.inf)
    if whole and not dtypes.issubdtype(x.dtype, np.inexact):  # these need no fractions
        axis = tuple(axis) if isinstance(axis, Sequence) else axis
        return _vector_norm(x, ord, axis, keepdims)
    if not dtypes.issubdtype(x.dtype, np.inexact):
        x = converted(x, dtypes.float_())
    if axis is None or isinstance(axis, Sequence):
        axes = range(x.ndim) if axis is None else axis
        axes = tuple([axis_of(a, x.ndim) for a in axes])
        return _vector_norm(x, ord, axes, keepdims)
    axis = known_value(axis, "The axis argument must be known statically.")
    return norm(x, ord=ord, axis=axis, keepdims=keepdims)


@library(static=("p",))
def cond(x: ArrayLike, p: Any = None) -> Any:
    """Compute condition numbers of matrices.

    - `x`: array of shape (..., m, n).
    - `p`: None for the ratio of the extreme singular values; otherwise an order of `norm`, for the
      norm of a square matrix times that of its inverse.

    Returns a real array of shape (...). ValueError below two dimensions, for empty matrices, and
    for matrices that are not square where `p` needs an inverse. Source: NumPy's `linalg.cond`.

    >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]])).round()
    Array(2., dtype=float32)
    """
    check_arraylike("cond", x)
    x = to_array("cond", x)
    if x.ndim < 2:
        raise ValueError(
            f"jnp.linalg.cond: input array must be at least 2D; got arr.shape={x.shape}"
        )
    if 0 in x.shape[-2:]:
        raise ValueError(f"jnp.linalg.cond: input array must not be empty; got arr.shape={x.shape}")
    if p is None or (not isinstance(p, str) and p in (2, -2)):
        s = svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"jnp.linalg.cond: for {p=}, array must be square; got arr.shape={x.shape}"
        )
    axes = (-2, -1)
    found = norm(x, ord=p, axis=axes) * norm(inv(x), ord=p, axis=axes)
    unknown = isnan(found) & ~reductions.any(isnan(x), axis=axes)
    return choose_where(unknown, np.inf, found)


@library(static=("hermitian",))
def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Compute ranks of matrices: the number of singular values that are not negligible.

    - `M`: array of shape (..., m, n).
    - `rtol`: array that broadcasts to (...); singular values up to `rtol` times the largest one are
      negligible. By default max(m, n) * eps.
    - `hermitian`: the matrices are Hermitian, which is faster.
    - `tol`: array that broadcasts to (...), in place of `rtol`; singular values up to it are
      negligible.

    Returns an integer array of shape (...). ValueError if both `rtol` and `tol` are given. Source:
    NumPy's `linalg.matrix_rank`.

    >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int32)
    """
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    m = matrix_of("matrix_rank", M)
    if m.ndim < 2:
        return converted(reductions.any(m != 0), np.dtype(np.int32))
    s = svd(m, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        tol = to_array("matrix_rank", tol)
        return reductions.sum(s > expanded(tol, (tol.ndim,)), axis=-1)
    least = None if rtol is None else 0  # an empty matrix has a rank where the bound is given
    if rtol is None:
        rtol = max(m.shape[-2:]) * float(dtypes.finfo(s.dtype).eps)
        rtol = to_array("matrix_rank", np.asarray(rtol, s.dtype))
    rtol = to_array("matrix_rank", rtol)
    largest = reductions.max(s, axis=-1, keepdims=True, initial=least)
    return reductions.sum(s > expanded(rtol, (rtol.ndim,)) * largest, axis=-1)


# -- determinants -----------------------------------------------------------------------------------


def _square(name: str, a: Any) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to {name}() must have shape [..., n, n], got {a.shape}")


def _parity(pivots: Any) -> Any:
    """Return how many rows are swapped: 0 for an even number, 1 for an odd one."""
    swapped = pivots != arange(pivots.shape[-1], dtype=pivots.dtype)
    return reductions.count_nonzero(swapped, axis=-1) % 2


def _signed(odd: Any, dtype: Any) -> Any:
    """1 for an even number, -1 for an odd one."""
    return converted(1 - 2 * odd, dtype)


def _det_small(a: Any) -> Any:
    """The determinant of matrices of up to three rows, from its definition."""
    if a.shape[-1] == 0:
        return broadcast_to_shape(np.ones((), a.dtype)[()], a.shape[:-2])
    if a.shape[-1] == 1:
        return a[..., 0, 0]
    x = [[a[..., i, j] for j in range(a.shape[-1])] for i in range(a.shape[-1])]
    if len(x) == 2:
        return x[0][0] * x[1][1] - x[0][1] * x[1][0]
    return (
        x[0][0] * x[1][1] * x[2][2]
        + x[0][1] * x[1][2] * x[2][0]
        + x[0][2] * x[1][0] * x[2][1]
        - x[0][2] * x[1][1] * x[2][0]
        - x[0][0] * x[1][2] * x[2][1]
        - x[0][1] * x[1][0] * x[2][2]
    )


@custom_jvp
def _det_large(a):
    factors, pivots, _ = lax_linalg.lu(a)
    return reductions.prod(diagonal(factors, 0, -2, -1), axis=-1) * _signed(
        _parity(pivots), a.dtype
    )


@override("default_matmul_precision", "highest")
def _det_jvp(primals, tangents):
    """The trace of adj(a) times the tangent, where adj(a) is det(a) a^-1, or its limit.

    With a = p^T l u and y = l^-1 p t it is, up to the sign of p, the trace of adj(u) y. If one
    diagonal element of u is zero, the k-th, adj(u) is the product of the others times
    v^-1 e_k e_k^T v^-1, where v is u with a one in that place; if there are more, it is zero.
    """
    (a,), (t,) = primals, tangents
    factors, pivots, permutation = lax_linalg.lu(a)
    diagonals = diagonal(factors, 0, -2, -1)
    sign = _signed(_parity(pivots), a.dtype)
    y = lax_linalg.triangular_solve(
        factors, take_rows(t, permutation), left_side=True, lower=True, unit_diagonal=True
    )
    zeros = converted(diagonals == 0, a.dtype)
    v = factors + expanded(zeros, (a.ndim - 1,)) * eye(a.shape[-1], dtype=a.dtype)
    moved = lax_linalg.triangular_solve(v, y, left_side=True)
    null = lax_linalg.triangular_solve(v, zeros, left_side=True)
    limit = reductions.sum(zeros * matvec(moved, null), axis=-1)
    trace = reductions.sum(diagonal(moved, 0, -2, -1), axis=-1)
    count = reductions.count_nonzero(zeros, axis=-1)
    none = np.zeros((), a.dtype)[()]
    trace = choose_where(count == 0, trace, choose_where(count == 1, limit, none))
    product = reductions.prod(diagonals + zeros, axis=-1)
    return reductions.prod(diagonals, axis=-1) * sign, product * sign * trace


_det_large.defjvp(_det_jvp)


@library(whole=True)
def det(a: ArrayLike) -> Array:
    """Compute determinants of square matrices.

    - `a`: array of shape (..., n, n).

    Returns an array of shape (...) and of an inexact dtype; derivatives exist at singular matrices
    too. ValueError if the matrices are not square. Source: NumPy's `linalg.det`.

    >>> jnp.linalg.det(jnp.array([[2.0, 1.0], [0.0, 3.0]]))
    Array(6., dtype=float32)
    """
    a = matrix_of("det", a)
    _square("det", a)
    return _det_small(a) if certain(lambda: a.shape[-1] <= 3) else _det_large(a)


@custom_jvp
def _slogdet_lu(a):
    factors, pivots, _ = lax_linalg.lu(a)
    diagonals = diagonal(factors, 0, -2, -1)
    is_zero = reductions.any(diagonals == 0, axis=-1)
    odd = _parity(pivots)
    if a.dtype.kind == "c":
        directions = diagonals / converted(ufuncs.abs(diagonals), a.dtype)
        sign = reductions.prod(directions, axis=-1) * _signed(odd, a.dtype)
    else:
        odd = odd + reductions.count_nonzero(diagonals < 0, axis=-1)
        sign = _signed(odd % 2, a.dtype)
    sign = choose_where(is_zero, np.zeros((), a.dtype)[()], sign)
    size = reductions.sum(ufuncs.log(ufuncs.abs(diagonals)), axis=-1)
    return sign, choose_where(is_zero, np.asarray(-np.inf, size.dtype)[()], size)


@custom_jvp
def _slogdet_qr(a):
    reflectors, taus = geqrf_p.bind(a)
    diagonals = diagonal(reflectors, 0, -2, -1)
    odd = reductions.count_nonzero(taus != 0, axis=-1)  # each reflector is of determinant -1
    size = reductions.sum(ufuncs.log(ufuncs.abs(diagonals)), axis=-1)
    sign = reductions.prod(ufuncs.sign(diagonals), axis=-1) * _signed(odd % 2, a.dtype)
    return sign, size


@custom_jvp
def _slogdet_small(a):
    """Signs and logarithms of up to two rows, without LAPACK, which takes matrices one by one."""
    scales, exponents = _row_scales(a)
    return _sign_and_size(_det_small(a * scales), exponents)


def _sign_and_size(determinant, exponents):
    size = ufuncs.log(ufuncs.abs(determinant))
    return ufuncs.sign(determinant), size + converted(exponents, size.dtype) * math.log(2)


def _row_scales(a):
    """Powers of two that bring very large and very small rows near 1, and what their exponents come to.

    So no product of elements overflows or vanishes; other rows are left alone.
    """
    largest = reductions.max(ufuncs.abs(a), axis=-1, keepdims=True, initial=0)
    plain = (largest > 0) & isfinite(largest)
    exponents = float_parts.frexp(choose_where(plain, largest, np.ones((), largest.dtype)[()]))[1]
    most = dtypes.finfo(largest.dtype).maxexp - 2
    exponents = ufuncs.minimum(ufuncs.maximum(exponents, -most), most)
    exponents = choose_where(ufuncs.abs(exponents) > most // 8, exponents, 0)
    scales = float_parts.ldexp(np.ones((), largest.dtype)[()], -exponents)
    return converted(scales, a.dtype), reductions.sum(exponents, axis=(-2, -1))


@_slogdet_small.defjvp
def _slogdet_small_jvp(primals, tangents):
    (a,), (t,) = primals, tangents
    scales, exponents = _row_scales(a)
    determinant, change = jvp(_det_small, (a * scales,), (t * scales,))
    return _slogdet_tangents(_sign_and_size(determinant, exponents), change / determinant)


def _slogdet_jvp(primals, tangents, *, rule):
    (a,), (t,) = primals, tangents
    change = reductions.sum(diagonal(solve_matrices(a, t), 0, -2, -1), axis=-1)
    return _slogdet_tangents(rule(a), change)


def _slogdet_tangents(out, change):
    """Signs and logarithms, and their tangents: `change` is that of determinants, by their values."""
    sign, _ = out
    if sign.dtype.kind == "c":
        turn = (change - converted(ufuncs.real(change), change.dtype)) * sign
        return out, (turn, ufuncs.real(change))
    return out, (filled_like(sign, 0), change)


for _rule in (_slogdet_lu, _slogdet_qr):
    _rule.defjvp(lambda primals, tangents, rule=_rule: _slogdet_jvp(primals, tangents, rule=rule))


@library(static=("method",), whole=True)
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Compute signs and logarithms of absolute values of determinants.

    - `a`: array of shape (..., n, n).
    - `method`: "lu" (the default), or "qr" for real matrices.

    Returns a named tuple of sign (of absolute value one for complex matrices, 0 for singular ones)
    and logabsdet, of shape (...). ValueError for another method or matrices that are not square,
    NotImplementedError for complex matrices with "qr". Source: NumPy's `linalg.slogdet`.

    >>> jnp.linalg.slogdet(jnp.array([[0.0, 1.0], [1.0, 0.0]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    a = matrix_of("slogdet", a)
    _square("slogdet", a)
    a = converted(a, a.dtype)
    if method not in (None, "lu", "qr"):
        raise ValueError(
            f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), and 'qr'."
        )
    if method == "qr":
        if a.dtype.kind == "c":
            raise NotImplementedError("slogdet method='qr' not implemented for complex inputs")
        return SlogdetResult(*_slogdet_qr(a))
    small = certain(lambda: a.shape[-1] <= 2)
    return SlogdetResult(*(_slogdet_small if small else _slogdet_lu)(a))
