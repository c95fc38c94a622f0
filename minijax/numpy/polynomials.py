"""Polynomials as vectors of coefficients, highest power first.

May import the floors below and most of `numpy`. Those that need linear algebra (roots, fits) stand
in `polynomial_fits`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.lax.control_flow import scan
from minijax.numpy import ufuncs
from minijax.numpy.creation import zeros
from minijax.numpy.division import divide
from minijax.numpy.indexing import IndexHelper
from minijax.numpy.joining import joined
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    converted,
    promote_dtypes,
    promote_dtypes_inexact,
    to_array,
)
from minijax.numpy.ranges import arange
from minijax.numpy.shapes import atleast_1d, broadcast_to, flip
from minijax.numpy.signal import convolve
from minijax.transforms.library import library

__all__ = [
    "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval", "trim_zeros",
]  # fmt: skip


@library(static=("unroll",))
def polyval(p, x, *, unroll=16):
    """The value of a polynomial at `x`, by Horner's rule. Source: numpy.polyval."""
    check_arraylike("polyval", p, x)
    p, x = promote_dtypes_inexact(p, x) if _needs_float(p) else promote_dtypes(p, x)
    p, x = to_array("polyval", p), to_array("polyval", x)
    shape = broadcast_shapes(p.aval.shape[1:], x.aval.shape)
    x = converted(broadcast_to_shape(x, shape), x.aval.dtype)
    p = converted(p, p.aval.dtype)
    start = broadcast_to_shape(np.zeros((), x.aval.dtype)[()], shape)

    def step(total, coefficient):
        return ufuncs.add(ufuncs.multiply(total, x), coefficient), None

    if p.aval.shape[0] <= 16:
        for i in range(p.aval.shape[0]):
            start, _ = step(start, p[i])
        return start
    return scan(step, start, p, unroll=unroll)[0]


def _needs_float(p: Any) -> bool:
    return dtypes.issubdtype(dtypes.dtype(p), np.inexact)


def _summed(a: Any, b: Any) -> Any:
    """The sum of two polynomials: the last coefficients of the longer one and the shorter one's."""
    longer, shorter = (a, b) if a.aval.shape[0] >= b.aval.shape[0] else (b, a)
    count = shorter.aval.shape[0]
    if longer.aval.shape[0] == count:
        return ufuncs.add(a, b)
    return IndexHelper(longer)[-count:].add(shorter) if count else longer


def _pair(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    check_arraylike(name, a, b)
    a, b = promote_dtypes(to_array(name, a), to_array(name, b))
    return atleast_1d(a), atleast_1d(b)


@library
def polyadd(a1, a2):
    """The sum of two polynomials. Source: numpy.polyadd."""
    return _summed(*_pair("polyadd", a1, a2))


@library
def polysub(a1, a2):
    """The difference of two polynomials. Source: numpy.polysub."""
    a, b = _pair("polysub", a1, a2)
    return _summed(a, ufuncs.negative(b))


@library(static=("m",))
def polyder(p, m=1):
    """The m-th derivative of a polynomial. Source: numpy.polyder."""
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"Order of derivative must be positive; polyder got m={m}.")
    check_arraylike("polyder", p)
    (p,) = promote_dtypes_inexact(to_array("polyder", p))
    if not m:
        return p
    length = p.aval.shape[0]
    if m >= length:
        return zeros(0, p.aval.dtype)
    powers = np.arange(length - 1, m - 1, -1)
    factors = np.prod([powers - i for i in range(m)], axis=0)
    factors = factors.reshape((-1,) + (1,) * (p.aval.ndim - 1)).astype(p.aval.dtype)
    return ufuncs.multiply(p[:-m], factors)


@library(static=("m",))
def polyint(p, m=1, k=None):
    """The m-fold integral of a polynomial, with constants `k`. Source: numpy.polyint."""
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"Order of integral must be positive; polyint got m={m}.")
    check_arraylike("polyint", p)
    k = 0 if k is None else k
    p, k = promote_dtypes_inexact(to_array("polyint", p), to_array("polyint", k))
    if not m:
        return p
    k = atleast_1d(k)
    if k.aval.shape == (1,):
        k = broadcast_to(k, (m,))
    if k.aval.shape != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    length = p.aval.shape[0]
    wide = dtypes.to_real_dtype(p.aval.dtype)
    wide = np.dtype(np.float32) if dtypes.bit_width(wide) < 32 else wide
    powers = flip(arange(length + m, dtype=wide))
    # The i-th constant is integrated as often as there are constants before it.
    factors = ufuncs.maximum(powers, 1)
    for step in range(1, m):
        factors = ufuncs.multiply(factors, ufuncs.maximum(powers - step, 1))
    return divide(joined("polyint", [p, k], 0), converted(factors, p.aval.dtype))


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Any:
    """The product of two polynomials. Source: numpy.polymul."""
    check_arraylike("polymul", a1, a2)
    if trim_leading_zeros:
        a1, a2 = (trim_zeros(x, "f") for x in (a1, a2))
    return _polymul(a1, a2)


@library
def _polymul(a1, a2):
    a1, a2 = promote_dtypes_inexact(to_array("polymul", a1), to_array("polymul", a2))
    a1, a2 = (x if x.aval.size else zeros(1, x.aval.dtype) for x in (a1, a2))
    return convolve(atleast_1d(a1), atleast_1d(a2), mode="full")


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> Any:
    """Quotient and remainder of two polynomials. Source: numpy.polydiv.

    `trim_leading_zeros` leaves them out of the remainder, whose values must then be known.
    """
    quotient, rest = _polydiv(u, v)
    if trim_leading_zeros:
        tiny = np.finfo(np.asarray(rest).dtype).eps
        value = np.asarray(rest)
        near = np.abs(value) > np.sqrt(tiny) * 0 + tiny
        rest = rest[int(np.argmax(near)) if near.any() else value.shape[0] :]
    return quotient, rest


@library
def _polydiv(u, v):
    check_arraylike("polydiv", u, v)
    u, v = promote_dtypes_inexact(to_array("polydiv", u), to_array("polydiv", v))
    m, n = u.aval.shape[0] - 1, v.aval.shape[0] - 1
    scale = divide(1, v[0])
    count = max(m - n + 1, 1)
    quotient = zeros(count, u.aval.dtype)
    for k in range(m - n + 1):
        digit = scale * u[k]
        quotient = IndexHelper(quotient)[k].set(digit)
        u = IndexHelper(u)[k : k + n + 1].add(-digit * v)
    return quotient, u


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Without leading ("f") and trailing ("b") zeros. The values must be known.

    Source: numpy.trim_zeros.
    """
    filt = to_array("trim_zeros", filt)
    axes = range(filt.ndim) if axis is None else np.atleast_1d(axis) % filt.ndim
    value = np.asarray(filt)
    index: list[Any] = [slice(None)] * filt.ndim
    for one in axes:
        others = tuple([i for i in range(filt.ndim) if i != one])
        places = np.nonzero((value != 0).any(axis=others))[0]
        length = value.shape[one]
        start = places[0] if "f" in trim.lower() and places.size else 0
        stop = places[-1] + 1 if "b" in trim.lower() and places.size else length
        index[one] = slice(int(start), int(stop)) if places.size else slice(0, 0)
    return filt[tuple(index)]
