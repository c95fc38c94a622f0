"""Polynomials by linear algebra: roots, poly, polyfit."""

from __future__ import annotations

import operator
from typing import Any, Literal, overload

import numpy as np

from minijax import dtypes
from minijax.arguments.calls import Static
from minijax.features.library import library
from minijax.numpy import linalg, reductions, ufuncs
from minijax.numpy.division import divide
from minijax.numpy.indexing import IndexHelper
from minijax.numpy.joining import joined
from minijax.numpy.linear_algebra import diag, outer
from minijax.numpy.promotion import check_arraylike, converted, promote_dtypes_inexact, to_array
from minijax.numpy.ranges import (
    arange,
)
from minijax.numpy.searching import known
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import atleast_1d, roll
from minijax.numpy.signal import convolve
from minijax.numpy.sorting import argsort
from minijax.numpy.triangles import (
    vander,
)
from minijax.typing import Array, ArrayLike

__all__ = ["poly", "polyfit", "roots"]


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Compute the roots of a polynomial as eigenvalues of its companion matrix.

    - `p`: array of shape (n,), coefficients from the highest power down.
    - `strip_zeros`: leave out leading zeros, for which `p` must not be traced; otherwise they give
      NaN.

    Returns a complex array of shape (n - 1,), or fewer if zeros are left out. ValueError if `p` is
    not one-dimensional. Source: NumPy's `roots`.

    >>> jnp.sort(jnp.roots(jnp.array([1, -3, 2])).real).round()
    Array([1., 2.], dtype=float32)
    """
    (p,) = promote_dtypes_inexact(atleast_1d(to_array("roots", p)))
    if p.ndim != 1:
        raise ValueError(f"Input must be a rank-1 array. Got shape {p.shape}.")
    if p.shape[0] < 2:
        return converted(p[:0], dtypes.to_complex_dtype(p.dtype))
    if not strip_zeros:
        return _all_roots(p)
    places = np.nonzero(known(p, "roots", "Pass strip_zeros=False."))[0]
    if not places.size:
        return converted(p[:0], dtypes.to_complex_dtype(p.dtype))
    return _stripped_roots(p, int(places[0]), p.shape[0] - 1 - int(places[-1]))


@library(static=("leading", "trailing"))
def _stripped_roots(p, leading, trailing):
    count = p.aval.shape[0]
    p = p[leading : count - trailing]
    dtype = dtypes.to_complex_dtype(p.aval.dtype)
    found = _companion_roots(p) if p.aval.shape[0] > 1 else converted(p[:0], dtype)
    zero = converted(to_array("roots", np.zeros(trailing)), dtype)
    return joined("roots", [found, zero], 0)


def _companion_roots(p: Any) -> Any:
    """The roots of a polynomial that begins and ends with no zero: eigenvalues of its companion."""
    size = p.aval.shape[0] - 1
    matrix = diag(to_array("roots", np.ones((size - 1,), p.aval.dtype)), -1)
    matrix = IndexHelper(matrix)[0, :].set(divide(-p[1:], p[0]))
    return linalg.eigvals(matrix)


@library
def _all_roots(p):
    """The roots with NaN for each leading zero, which are known only when it runs."""
    count = p.aval.shape[0]
    nonzero = p != 0
    leading = reductions.argmax(nonzero)
    any_ = reductions.any(nonzero)
    leading = choose_where(any_, leading, count - 1)
    p = roll(p, -leading)
    found = _companion_roots(p)
    # Leading zeros became trailing ones, whose roots are zeros: as many of these are not there.
    order = ufuncs.abs(found)
    places = arange(count - 1)
    found = found[argsort(-order)]
    missing = places >= count - 1 - leading
    return choose_where(missing, complex(np.nan, np.nan), found)


@library(whole=True)
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Return the polynomial with given roots, or the characteristic polynomial of a matrix.

    - `seq_of_zeros`: array of shape (n,), the roots, or a matrix of shape (n, n).

    Returns an array of shape (n + 1,) and of an inexact dtype, coefficients from the highest power
    down. ValueError for other shapes. Source: NumPy's `poly`.

    >>> jnp.poly(jnp.array([1, 2]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    check_arraylike("poly", seq_of_zeros)
    (zeros_,) = promote_dtypes_inexact(atleast_1d(to_array("poly", seq_of_zeros)))
    shape = zeros_.aval.shape
    if len(shape) == 2 and shape[0] == shape[1] and shape[0]:
        zeros_ = linalg.eigvals(zeros_)
    elif len(shape) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array. poly got "
                         f"shape {shape}.")  # fmt: skip
    if not zeros_.aval.size:
        return to_array("poly", np.ones((), zeros_.aval.dtype))
    out = to_array("poly", np.ones((1,), zeros_.aval.dtype))
    one = out
    for i in range(zeros_.aval.shape[0]):
        out = convolve(out, joined("poly", [one, -zeros_[i : i + 1]], 0), mode="full")
    return out


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool = False,
) -> Array | tuple[Array, ...]: ...
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool = False,
) -> Array | tuple[Array, ...]:
    """Fit a polynomial to points by least squares.

    - `x`: array of shape (n,); `y`: array of shape (n,) or (n, k).
    - `deg`: an int, the degree; `w`: array of shape (n,), weights of the residuals.
    - `rcond`: singular values below `rcond` times the largest one count as zero.
    - `full`: also return residuals, rank, singular values and `rcond`; `cov`: also return the
      covariance.

    Returns an array of shape (deg + 1,) or (deg + 1, k), coefficients from the highest power down.
    ValueError if `deg` is negative, TypeError if the shapes do not fit. Source: NumPy's `polyfit`.

    >>> jnp.polyfit(jnp.arange(3.0), jnp.array([1.0, 3.0, 5.0]), 1).round()
    Array([2., 1.], dtype=float32)
    """
    for name, value in [("cov", cov), ("deg", deg), ("full", full), ("rcond", rcond)]:
        Static(value, name, "polyfit")  # ValueError for what has no hash
    deg = operator.index(deg)
    if deg < 0:
        raise ValueError(f"expected deg >= 0; polyfit got {deg}.")
    check_arraylike("polyfit", x, y)
    if np.ndim(x) != 1:
        raise TypeError(f"expected 1D vector for x; polyfit got shape {np.shape(x)}.")
    if not np.size(x):
        raise TypeError("expected non-empty vector for x")
    if np.ndim(y) not in (1, 2):
        raise TypeError(f"expected 1D or 2D array for y; polyfit got shape {np.shape(y)}.")
    if np.shape(x)[0] != np.shape(y)[0]:
        raise TypeError(f"expected x and y to have same length: got {np.shape(x)}, {np.shape(y)}.")
    if w is not None:
        check_arraylike("polyfit", w)
        if np.ndim(w) != 1:
            raise TypeError(f"expected a 1-d array for weights; got shape {np.shape(w)}.")
        if np.shape(w)[0] != np.shape(y)[0]:
            raise TypeError("expected w and y to have the same length")
    return _polyfit(x, y, w, rcond, deg, bool(full), cov if isinstance(cov, str) else bool(cov))


@library(static=("rcond", "deg", "full", "cov"), whole=True)
def _polyfit(x, y, w, rcond, deg, full, cov):
    x, y = promote_dtypes_inexact(to_array("polyfit", x), to_array("polyfit", y))
    if rcond is None:
        rcond = x.aval.shape[0] * float(dtypes.finfo(x.aval.dtype).eps)
    left = vander(x, deg + 1)
    right = y
    if w is not None:
        (w,) = promote_dtypes_inexact(to_array("polyfit", w))
        left = left * w[:, None]
        right = right * (w[:, None] if right.aval.ndim == 2 else w)
    scale = ufuncs.sqrt(reductions.sum(left * left, axis=0))
    left = left / scale
    c, residuals, rank, singular = linalg.lstsq(left, right, rcond)
    c = (c.T / scale).T
    if full:
        return c, residuals, rank, singular, to_array("polyfit", rcond)
    if not cov:
        return c
    base = linalg.inv(left.T @ left) / outer(scale, scale)
    if cov == "unscaled":
        factor = 1
    else:
        count, order = left.aval.shape
        if count <= order:
            raise ValueError(
                "the number of data points must exceed order to scale the covariance matrix"
            )
        factor = residuals / (count - order)
        factor = factor[0] if y.aval.ndim == 1 else factor
    if y.aval.ndim == 1:
        return c, base * factor
    return c, base[:, :, None] * factor
