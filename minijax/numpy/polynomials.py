"""Polynomials as vectors of coefficients, highest power first.

Those that need linear algebra (roots, fits) stand in `polynomial_fits`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.functions import check_at_most
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.lax.control_flow import scan
from minijax.numpy import ufuncs
from minijax.numpy.creation import zeros
from minijax.numpy.division import divide
from minijax.numpy.indexing import IndexHelper
from minijax.numpy.joining import joined
from minijax.numpy.promotion import (
    axes_of,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    check_ranks,
    converted,
    promote_dtypes,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.ranges import (
    arange,
)
from minijax.numpy.searching import known
from minijax.numpy.shapes import atleast_1d, broadcast_to, flip
from minijax.numpy.signal import convolve
from minijax.typing import Array, ArrayLike

__all__ = [
    "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval", "trim_zeros",
]  # fmt: skip


@library(static=("unroll",), whole=True)
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluate polynomials by Horner's rule.

    - `p`: array of shape (n, ...), coefficients from the highest power down.
    - `x`: array that broadcasts with p[0], where to evaluate.
    - `unroll`: an int, the number of steps that are unrolled in the loop.

    Returns an array of the promoted dtype and of the broadcast shape. Source: NumPy's `polyval`.

    >>> jnp.polyval(jnp.array([1, 2, 3]), jnp.array([0, 10]))
    Array([  3, 123], dtype=int32)
    """
    check_arraylike("polyval", p, x)
    p, x = promote_dtypes_inexact(p, x) if _needs_float(p) else promote_dtypes(p, x)
    p, x = to_array("polyval", p), to_array("polyval", x)
    _check_axis("polyval", p)
    if p.aval.ndim > 1:
        check_ranks("polyval", p, x, core=(1, 0))
    shape = broadcast_shapes(p.aval.shape[1:], x.aval.shape)
    x = converted(broadcast_to_shape(x, shape), x.aval.dtype)
    p = converted(p, p.aval.dtype)
    start = broadcast_to_shape(np.zeros((), x.aval.dtype)[()], shape)

    def step(total, coefficient):
        return ufuncs.add(ufuncs.multiply(total, x), coefficient), None

    count = p.aval.shape[0]
    if not is_dim(count) and count <= 16:
        for i in range(count):
            start, _ = step(start, p[i])
        return start
    return scan(step, start, p, unroll=unroll)[0]


def _needs_float(p: Any) -> bool:
    return dtypes.issubdtype(dtypes.dtype(p), np.inexact)


def _summed(a: Any, b: Any) -> Any:
    """The sum of two polynomials: the last coefficients of the longer one and the shorter one's."""
    longer, shorter = (a, b) if a.aval.shape[0] >= b.aval.shape[0] else (b, a)
    count = shorter.aval.shape[0]
    if longer.aval.shape == shorter.aval.shape:
        return ufuncs.add(a, b)
    return IndexHelper(longer)[-count:].add(shorter) if count else longer


def _pair(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    check_arraylike(name, a, b)
    a, b = promote_dtypes(to_array(name, a), to_array(name, b))
    for p in (a, b):
        _check_axis(name, p)
    return a, b


@library
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Add polynomials.

    - `a1`, `a2`: arrays of coefficients, from the highest power down.

    Returns an array of the longer shape and of the promoted dtype. Source: NumPy's `polyadd`.

    >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([10]))
    Array([ 1,  2, 13], dtype=int32)
    """
    return _summed(*_pair("polyadd", a1, a2))


@library
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Subtract polynomials.

    - `a1`, `a2`: arrays of coefficients, from the highest power down.

    Returns an array of the longer shape and of the promoted dtype. Source: NumPy's `polysub`.

    >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([10]))
    Array([ 1,  2, -7], dtype=int32)
    """
    a, b = _pair("polysub", a1, a2)
    return _summed(a, ufuncs.negative(b))


def _check_axis(name: str, p: Any) -> None:
    if not p.aval.ndim:
        raise IndexError(
            f"tuple index out of range: {name} takes coefficients of shape (n, ...); got a scalar."
        )


def _check_sized(name: str, *ps: Any) -> None:
    if not all(p.aval.ndim for p in ps):
        raise TypeError(
            f"len() of unsized object: {name} takes arrays of coefficients, no scalars."
        )


def _check_vector(name: str, p: Any) -> None:
    if p.aval.ndim != 1:
        raise TypeError(f"{name} takes coefficients of shape (n,); got shape {p.aval.shape}.")


@library(static=("m",))
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Differentiate a polynomial.

    - `p`: array of shape (n,), coefficients from the highest power down.
    - `m`: an int, how often, 1 by default.

    Returns an array of shape (max(n - m, 0),). ValueError if `m` is negative. Source: NumPy's
    `polyder`.

    >>> jnp.polyder(jnp.array([1, 2, 3]))
    Array([2., 2.], dtype=float32)
    """
    check_arraylike("polyder", p)
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"Order of derivative must be positive; polyder got m={m}.")
    (p,) = promote_dtypes_inexact(to_array("polyder", p))
    if not m:
        return p
    if not p.aval.ndim:
        _check_vector("polyder", p)
    length = p.aval.shape[0]
    if m >= length and p.aval.ndim == 1:
        return zeros(0, p.aval.dtype)
    powers = np.arange(length - 1, m - 1, -1)
    factors = np.prod([powers - i for i in range(m)], axis=0) if m < length else powers[:0]
    return ufuncs.multiply(p[:-m], factors.astype(p.aval.dtype))  # along the last axis, as upstream


@library(static=("m",))
def polyint(p: ArrayLike, m: int = 1, k: int | ArrayLike | None = None) -> Array:
    """Integrate a polynomial.

    - `p`: array of shape (n,), coefficients from the highest power down.
    - `m`: an int, how often, 1 by default.
    - `k`: integration constants, a scalar or an array of shape (m,); zeros by default.

    Returns an array of shape (n + m,), of an inexact dtype. ValueError if `m` is negative or the
    number of constants differs. Source: NumPy's `polyint`.

    >>> jnp.polyint(jnp.array([6, 4, 3]))
    Array([2., 2., 3., 0.], dtype=float32)
    """
    k = 0 if k is None else k
    check_arraylike("polyint", p, k)
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"Order of integral must be positive (see polyder); got m={m}.")
    check_at_most("polyint: m", m, 1 << 14)
    p, k = promote_dtypes_inexact(to_array("polyint", p), to_array("polyint", k))
    k = atleast_1d(k)
    if k.aval.shape == (1,):
        k = broadcast_to(k, (m,))
    if k.aval.shape != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if not m:
        return p
    _check_vector("polyint", p)
    length = p.aval.shape[0]
    wide = dtypes.to_real_dtype(p.aval.dtype)
    wide = np.dtype(np.float32) if dtypes.bit_width(wide) < 32 else wide
    powers = flip(arange(length + m, dtype=wide))
    # The i-th constant is integrated as often as there are constants before it.
    factors = ufuncs.maximum(powers, 1)
    for step in range(1, m):
        factors = ufuncs.multiply(factors, ufuncs.maximum(powers - step, 1))
    return divide(joined("polyint", [p, k], 0), converted(factors, p.aval.dtype))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Multiply polynomials.

    - `a1`, `a2`: arrays of shapes (m,) and (n,), coefficients from the highest power down.
    - `trim_leading_zeros`: leave out leading zeros first; the arrays must not be traced then.

    Returns an array of shape (m + n - 1,), of an inexact dtype. Source: NumPy's `polymul`.

    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([1., 5., 6.], dtype=float32)
    """
    check_arraylike("polymul", a1, a2)
    if trim_leading_zeros:
        a1, a2 = (trim_zeros(x, "f") for x in (a1, a2))
    return _polymul(a1, a2)


@library
def _polymul(a1, a2):
    a1, a2 = promote_dtypes_inexact(to_array("polymul", a1), to_array("polymul", a2))
    _check_sized("polymul", a1, a2)
    a1, a2 = (x if x.aval.shape[0] else zeros(1, x.aval.dtype) for x in (a1, a2))
    return convolve(a1, a2, mode="full")


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Divide polynomials.

    - `u`, `v`: arrays of shapes (m,) and (n,), coefficients from the highest power down.
    - `trim_leading_zeros`: leave out leading zeros of the remainder; the arrays must not be traced
      then.

    Returns a pair of arrays of an inexact dtype, the quotient of shape (m - n + 1,) and the
    remainder, of shape (m,) unless trimmed. Source: NumPy's `polydiv`.

    >>> jnp.polydiv(jnp.array([1.0, 5.0, 6.0]), jnp.array([1.0, 2.0]))
    (Array([1., 3.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    quotient, rest = _polydiv(u, v)
    if trim_leading_zeros:
        tiny = dtypes.finfo(rest.dtype).eps
        value = np.asarray(rest)
        near = np.abs(value) > tiny
        rest = rest[int(np.argmax(near)) if near.any() else value.shape[0] :]
    return quotient, rest


@library
def _polydiv(u, v):
    check_arraylike("polydiv", u, v)
    u, v = promote_dtypes_inexact(to_array("polydiv", u), to_array("polydiv", v))
    _check_sized("polydiv", u, v)
    m, n = u.aval.shape[0] - 1, v.aval.shape[0] - 1
    scale = divide(1, v[0])
    count = max(m - n + 1, 1)
    quotient = zeros(count, u.aval.dtype)
    for k in range(m - n + 1):
        digit = scale * u[k]
        quotient = IndexHelper(quotient)[k].set(digit)
        u = IndexHelper(u)[k : k + n + 1].add(-digit * v)
    return quotient, u


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """Remove leading and trailing zeros of an array.

    - `filt`: array whose values are known, that is, not traced.
    - `trim`: "f" removes them at the front, "b" at the back, "fb" (the default) at both.
    - `axis`: an int, a sequence of ints, or None for all axes.

    Returns an array of the dtype of `filt`. ConcretizationTypeError for a traced array. Source:
    NumPy's `trim_zeros`.

    >>> jnp.trim_zeros(jnp.array([0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    filt = to_array("trim_zeros", filt)
    if not isinstance(trim, str):
        raise TypeError(f"trim_zeros: trim must be a string such as 'fb'; got {trim!r}.")
    axes = axes_of(axis, filt.ndim)
    value = known(filt, "trim_zeros", "Find the places of its zeros outside of the program.")
    if not {"f", "b"} & set(trim.lower()):
        return filt
    index: list[Any] = [slice(None)] * filt.ndim
    for one in axes:
        others = tuple([i for i in range(filt.ndim) if i != one])
        places = np.nonzero((value != 0).any(axis=others))[0]
        length = value.shape[one]
        start = places[0] if "f" in trim.lower() and places.size else 0
        stop = places[-1] + 1 if "b" in trim.lower() and places.size else length
        index[one] = slice(int(start), int(stop)) if places.size else slice(0, 0)
    return filt[tuple(index)]
