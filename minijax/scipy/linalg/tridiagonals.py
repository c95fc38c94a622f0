"""Eigenvalues of symmetric tridiagonal matrices."""

from __future__ import annotations

import functools
from typing import Any, Literal, overload

import numpy as np

from minijax import dtypes, random
from minijax.core.array import Array
from minijax.core.trace import Tracer
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.lax import fori_loop
from minijax.lax import linalg as lax_linalg
from minijax.numpy import linalg, reductions, ufuncs
from minijax.numpy.creation import asarray
from minijax.numpy.joining import concatenate
from minijax.numpy.promotion import broadcast_to_shape
from minijax.numpy.ranges import (
    arange,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import expanded
from minijax.typing import ArrayLike

__all__ = ["eigh_tridiagonal"]


@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[False] = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> tuple[Array, Array]: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[True],
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array | tuple[Array, Array]: ...
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array | tuple[Array, Array]:
    """Compute eigenvalues, in rising order, and eigenvectors of a symmetric tridiagonal matrix.

    - `d`, `e`: arrays of float32 or float64, of shapes (n,) and (n - 1,): diagonal and off-diagonal
    - `eigvals_only`: whether to return eigenvalues only
    - `select`: "a" for all, "i" for those numbered `select_range[0]` to `select_range[1]`
    - `tol`: absolute precision, by default the dtype's; `key`: for the start of inverse iteration

    TypeError for other dtypes and shapes, ValueError for another `select`.
    Source: SciPy's `linalg.eigh_tridiagonal`; Barth, Martin and Wilkinson (1967).

    >>> d, e = jnp.array([2.0, 1.0]), jnp.array([0.0])
    >>> jax.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True).shape
    (2,)
    """
    d, e = asarray(d), asarray(e)
    names = d.dtype.name, e.dtype.name
    if names[0] != names[1]:
        raise TypeError(
            "diagonal and off-diagonal values must have same dtype, got "
            f"{names[0]} and {names[1]}: convert one of them."
        )
    if names[0] not in ("float32", "float64"):
        raise TypeError(
            "Only float32 and float64 inputs are supported as inputs to "
            f"jax.scipy.linalg.eigh_tridiagonal, got {names[0]} and {names[1]}"
        )
    size = d.shape[-1] if d.ndim else 0
    if d.ndim != 1 or e.shape != (max(size - 1, 0),):
        raise TypeError(
            f"eigh_tridiagonal takes vectors of n and n - 1 elements; got shapes {d.shape} and "
            f"{e.shape}: use minijax.vmap for a batch."
        )
    first, last = _selected(select, select_range, size)
    # A bound that is not known saves no steps: the values are as exact as the dtype.
    tol = 0.0 if tol is None or isinstance(tol, Tracer) else float(tol)
    if not eigvals_only and key is None:
        key = random.key(0)
    return _solve(d, e, None if eigvals_only else key, first, last, tol)


def _selected(select: str, wanted: Any, size: int) -> tuple[int, int]:
    if select == "a":
        return 0, size
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented")
    if select != "i":
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    if wanted is None:
        raise ValueError("for select='i', select_range must be specified.")
    if wanted[0] > wanted[1]:
        raise ValueError("Got empty index range in select_range.")
    return int(wanted[0]), int(wanted[1]) + 1


@library(static=("first", "last", "tol"), whole=True)
def _solve(d, e, key, first, last, tol):
    count = last - first
    if not d.shape[0] or not count:
        values = d[:0]
        return values if key is None else (values, broadcast_to_shape(d[:0, None], (0, 0)))
    if key is None:
        return _values(d, e, first, count, tol)
    return _values_and_vectors(d, e, key, first, count, tol)


@functools.partial(custom_jvp, nondiff_argnums=(2, 3, 4))
@library(static=("first", "count", "tol"), whole=True)
def _values(d, e, first, count, tol):
    d, e = asarray(d), asarray(e)
    return d if d.shape[0] == 1 else _eigenvalues(d, e, first, count, tol)


@_values.defjvp
def _(first, count, tol, primals, tangents):
    values, vectors = _values_and_vectors(*primals, random.key(0), first, count, tol)
    return values, reductions.sum(vectors * _applied(*tangents, vectors), axis=0)


@functools.partial(custom_jvp, nondiff_argnums=(3, 4, 5))
@library(static=("first", "count", "tol"), whole=True)
def _values_and_vectors(d, e, key, first, count, tol):
    d, e = asarray(d), asarray(e)
    values = _values(d, e, first, count, tol)
    if d.shape[0] == 1:
        return values, expanded(0 * d + 1, (1,))
    return values, _eigenvectors(d, e, values, key)


@_values_and_vectors.defjvp
def _(first, count, tol, primals, tangents):
    values, vectors = _values_and_vectors(*primals, first, count, tol)
    d_dot, e_dot, _ = tangents
    size = d_dot.shape[0]
    # The vector of another eigenvalue enters by the matrix element over the eigenvalues' difference.
    others, basis = values, vectors
    if count != size:
        others, basis = _values_and_vectors(*primals, 0, size, tol)
    changed = _applied(d_dot, e_dot, vectors)
    gaps = values - expanded(others, (1,))
    is_same = gaps == 0
    elements = choose_where(is_same, 0, (basis.T @ changed) / choose_where(is_same, 1, gaps))
    return (values, vectors), (reductions.sum(vectors * changed, axis=0), basis @ elements)


def _applied(d: Any, e: Any, vectors: Any) -> Any:
    """The tridiagonal matrix times `vectors`, its columns."""
    d, e = expanded(asarray(d), (1,)), expanded(asarray(e), (1,))
    zero = vectors[:1] * 0
    below = concatenate([zero, e * vectors[:-1]])
    return d * vectors + below + concatenate([e * vectors[1:], zero])


def _eigenvalues(d: Any, e: Any, first: int, count: int, tol: float) -> Any:
    """Bisection of the intervals of all eigenvalues at once."""
    info = dtypes.finfo(d.dtype)
    size = d.shape[0]
    sizes = ufuncs.abs(e)
    zero = sizes[:1] * 0
    radii = concatenate([zero, sizes]) + concatenate([sizes, zero])
    low, high = reductions.min(d - radii), reductions.max(d + radii)
    largest = ufuncs.abs(low) + ufuncs.abs(high)
    margin = 2 * size * float(info.eps) * largest + float(info.tiny) ** 0.5
    squares = concatenate([zero, e * e])
    least = float(info.tiny) * (1 + reductions.max(squares))  # replaces pivots that vanish
    number = first + arange(count)

    def below(x):
        """Return how many eigenvalues are less than each of `x`: the negative pivots of d - x."""

        def step(i, carry):
            pivots, found = carry
            pivots = d[i] - x - squares[i] / pivots
            pivots = choose_where(ufuncs.abs(pivots) < least, -least, pivots)
            return pivots, found + (pivots < 0)

        ones = broadcast_to_shape(np.ones((), d.dtype)[()], x.shape)
        return fori_loop(0, size, step, (ones, 0 * number))[1]

    def halve(_, carry):
        low, high = carry
        middle = 0.5 * (low + high)
        left = below(middle) > number
        return choose_where(left, low, middle), choose_where(left, middle, high)

    start = broadcast_to_shape(low - margin, (count,)), broadcast_to_shape(high + margin, (count,))
    bits = int(info.nmant) + 4
    steps = bits if not tol else max(4, min(bits, int(np.ceil(np.log2(1 / tol))) + 12))
    low, high = fori_loop(0, steps, halve, start)
    return 0.5 * (low + high)


def _eigenvectors(d: Any, e: Any, values: Any, key: Any) -> Any:
    """Inverse iteration for all eigenvalues at once, then made orthonormal."""
    size, count = d.shape[0], values.shape[0]
    lead = lambda x: broadcast_to_shape(x, (count, size))
    zero = d[:1] * 0
    lower, upper = lead(concatenate([zero, e])), lead(concatenate([e, zero]))
    shifted = lead(d) - expanded(values, (1,))
    x = random.normal(key, (count, size, 1), d.dtype)
    for _ in range(3):
        x = lax_linalg.tridiagonal_solve(lower, shifted, upper, x, perturb_singular=True)
        x = x / linalg.norm(x, axis=1, keepdims=True)
    basis, r = lax_linalg.qr(x[..., 0].T, full_matrices=False)
    signs = ufuncs.sign(linalg.diagonal(r))
    return basis * choose_where(signs == 0, 1, signs)
