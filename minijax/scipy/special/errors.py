"""The complex error function and its relatives: wofz, erfcx, dawsn, fresnel, owens_t.

May import the floors below and `numpy`. All but Owen's function come from one quadrature.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.promotion import promote_inexact
from minijax.transforms.custom_jvp import custom_jvp
from minijax.transforms.library import library

__all__ = ["dawsn", "erfcx", "fresnel", "owens_t", "wofz"]

# The trapezoid rule for w(z) = i/pi * integral of exp(-t^2) / (z - t), with what its poles add, has
# 12 nodes a side for 64 bits: Al Azah and Chandler-Wilde, "Computation of the complex error
# function using modified trapezoidal rules" (2021). Nodes lie at whole steps or between them: an
# element takes those that are far from it.
_STEP = np.sqrt(np.pi / 12)
_POLES = np.pi / _STEP  # the height up to which a pole counts
_BETWEEN = (np.arange(12) + 0.5) * _STEP
_WHOLE = np.arange(12) * _STEP
_BETWEEN_WEIGHTS = np.exp(-(_BETWEEN**2))
_WHOLE_WEIGHTS = np.exp(-(_WHOLE**2)) * np.where(np.arange(12) == 0, 0.5, 1)


def _wide(x: Any) -> Any:
    """In float32 or complex64 at least, and not weak."""
    is_low = x.dtype.kind != "c" and dtypes.bit_width(x.dtype) < 32
    return x.astype(np.float32 if is_low else x.dtype)


def _real(name: str, x: Any) -> Any:
    (x,) = promote_inexact(name, x)
    if x.dtype.kind == "c":
        raise ValueError(
            f"{name} does not support complex-valued inputs; got {x.dtype.name}: give x.real."
        )
    return x


def _nodes(x: Any) -> tuple[Any, Any, Any]:
    """For places x on the real axis: whether the nodes lie between steps, nodes and weights."""
    turns = x / _STEP
    is_between = jnp.abs(turns - jnp.round(turns)) < 0.25
    pick = is_between[..., None]
    nodes = jnp.where(pick, _BETWEEN.astype(x.dtype), _WHOLE.astype(x.dtype))
    return (
        is_between,
        nodes,
        jnp.where(pick, _BETWEEN_WEIGHTS.astype(x.dtype), _WHOLE_WEIGHTS.astype(x.dtype)),
    )


def _w_of_quadrant(x: Any, y: Any) -> Any:
    """w(x + iy) for x, y >= 0."""
    is_far = jnp.maximum(x, y) > 1e3
    z = lax.complex(x, y)
    r = 1 / jnp.where(is_far, z, 1e3)
    square = r * r
    far = (1j / np.sqrt(np.pi)) * r * (1 + square * (0.5 + 0.75 * square))
    x, y = jnp.where(is_far, 1, x), jnp.where(is_far, 1, y)
    z = lax.complex(x, y)
    is_between, nodes, weights = _nodes(x)
    total = jnp.sum(weights / ((z * z)[..., None] - nodes * nodes), axis=-1)
    out = (2j * _STEP / np.pi) * z * total
    counts = y < _POLES
    height = jnp.where(counts, y, 0)
    # exp(-2 pi i z / h), which the poles have by their distance.
    angle = (-2 * np.pi / _STEP) * x
    size = jnp.exp((2 * np.pi / _STEP) * height)
    sign = jnp.where(is_between, 1.0, -1.0).astype(x.dtype) * size
    below = lax.complex(1 + sign * jnp.cos(angle), sign * jnp.sin(angle))
    pole = 2 * _exp_of_square(x, height) / below
    return jnp.where(is_far, far, out + jnp.where(counts, pole, 0))


def _exp_of_square(x: Any, y: Any) -> Any:
    """exp(-z^2)."""
    size, angle = jnp.exp((y - x) * (y + x)), -2 * x * y
    return lax.complex(size * jnp.cos(angle), size * jnp.sin(angle))


def _w(x: Any, y: Any) -> Any:
    out = _w_of_quadrant(jnp.abs(x), jnp.abs(y))
    out = jnp.where((x < 0) ^ (y < 0), jnp.conj(out), out)
    below = y < 0
    return jnp.where(below, 2 * _exp_of_square(x, jnp.where(below, y, 0)) - out, out)


@custom_jvp
@library
def wofz(z: Any) -> Array:
    """The Faddeeva function exp(-z^2) erfc(-iz), complex. Source: scipy.special.wofz; Al Azah and
    Chandler-Wilde (2021).
    """
    (z,) = promote_inexact("wofz", z)
    z = _wide(z)
    return _w(jnp.real(z), jnp.imag(z))


@wofz.defjvp
def _(primals, tangents):
    (z,), (t,) = primals, tangents
    out = wofz(z)
    z, t = jnp.asarray(z).astype(out.dtype), t.astype(out.dtype)
    return out, (2j / np.sqrt(np.pi) - 2 * z * out) * t


@custom_jvp
@library
def erfcx(x: Any) -> Array:
    """exp(x^2) erfc(x), for real or complex x. Source: scipy.special.erfcx."""
    (x,) = promote_inexact("erfcx", x)
    wide = _wide(x)
    if x.dtype.kind == "c":
        return _w(-jnp.imag(wide), jnp.real(wide))
    return _scaled_erfc(wide).astype(x.dtype)


def _scaled_erfc(x: Any) -> Any:
    """w on the upper half of the imaginary axis: there all that is added is positive."""
    y = jnp.abs(x)
    r = 1 / jnp.maximum(y, 1)
    near = jnp.minimum(y, 1)
    # With y^2 divided out from 1 on, since it may overflow.
    under = jnp.where(y < 1, near * near, 1)[..., None]
    nodes = jnp.where(y < 1, 1, r * r)[..., None] * (_BETWEEN**2).astype(x.dtype)
    total = jnp.sum(_BETWEEN_WEIGHTS.astype(x.dtype) / (under + nodes), axis=-1)
    out = (2 * _STEP / np.pi) * jnp.where(y < 1, near, r) * total
    height = jnp.minimum(y, _POLES)
    pole = 2 * jnp.exp(height * height) / (1 + jnp.exp((2 * np.pi / _STEP) * height))
    out = out + jnp.where(y < _POLES, pole, 0)
    return jnp.where(x < 0, 2 * jnp.exp(x * x) - out, out)


@erfcx.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    out = erfcx(x)
    slope = 2 * jnp.asarray(x).astype(out.dtype) * out - 2 / np.sqrt(np.pi)
    return out, slope * t.astype(out.dtype)


@custom_jvp
@library
def dawsn(x: Any) -> Array:
    """Dawson's integral, exp(-x^2) times that of exp(t^2) from 0 to x. Source:
    scipy.special.dawsn.
    """
    x = _real("dawsn", x)
    return _dawson(_wide(x)).astype(x.dtype)


_DAWSON = [(-2.0) ** k / float(np.prod(np.arange(1.0, 2 * k + 2, 2))) for k in range(14)]


def _dawson(x: Any) -> Any:
    is_small = jnp.abs(x) < 0.5
    small = jnp.where(is_small, x, 0)
    series = small * jnp.polyval(np.asarray(_DAWSON[::-1], x.dtype), small * small, unroll=16)
    y = jnp.where(is_small, 1, jnp.abs(x))
    r = 1 / y
    place = jnp.minimum(y, 30)
    is_between, nodes, weights = _nodes(place)
    total = jnp.sum(weights / (1 - jnp.square(nodes * jnp.minimum(r, 2)[..., None])), axis=-1)
    angle = place * (np.pi / _STEP)
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    ratio = jnp.where(is_between, sine, -cosine) / jnp.where(is_between, cosine, sine)
    pole = 0.5 * np.sqrt(np.pi) * jnp.exp(-place * place) * ratio
    out = (_STEP / np.sqrt(np.pi)) * total * r + pole
    return jnp.where(is_small, series, jnp.sign(x) * out)


@dawsn.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    out = dawsn(x)
    return out, (1 - 2 * jnp.asarray(x).astype(out.dtype) * out) * t.astype(out.dtype)


# -- Fresnel's integrals ---------------------------------------------------------------------------


@custom_jvp
@library
def fresnel(x: Any) -> tuple[Array, Array]:
    """The integrals of sin(pi t^2 / 2) and of cos(pi t^2 / 2) from 0 to x.

    NotImplementedError for complex and 8-bit dtypes. Source: scipy.special.fresnel.
    """
    (x,) = promote_inexact("fresnel", x)
    if x.dtype.kind == "c":
        raise NotImplementedError("Support for complex-valued inputs is not implemented yet.")
    if dtypes.bit_width(x.dtype) < 16:
        raise NotImplementedError(
            f"Support for {x.dtype.name} dtype is not implemented yet: give float32."
        )
    sine, cosine = _fresnel(_wide(x))
    return sine.astype(x.dtype), cosine.astype(x.dtype)


def _fresnel_series(first: int) -> np.ndarray:
    """Coefficients of x^4 in the series of S (`first` = 1) or C (0), highest first."""
    out, term = [], (np.pi / 2) ** first
    for n in range(12):
        k = 2 * n + first
        out.append(term / (2 * k + 1))
        term *= -((np.pi / 2) ** 2) / ((k + 1) * (k + 2))
    return np.asarray(out[::-1])


_S_SERIES, _C_SERIES = _fresnel_series(1), _fresnel_series(0)


def _fresnel(x: Any) -> tuple[Any, Any]:
    y = jnp.abs(x)
    is_small = y < 1.2
    small = jnp.where(is_small, y, 0)
    square = small * small
    fourth = square * square
    sine = small * square * jnp.polyval(_S_SERIES.astype(x.dtype), fourth, unroll=16)
    cosine = small * jnp.polyval(_C_SERIES.astype(x.dtype), fourth, unroll=16)
    # C + iS = (1 + i) / 2 (1 - exp(i pi x^2 / 2) w((1 + i) sqrt(pi) x / 2)).
    large = jnp.where(is_small, 2, y)
    diagonal = (np.sqrt(np.pi) / 2) * large
    turned = jnp.minimum(large, 1e18)
    angle = (np.pi / 2) * jnp.mod(turned * turned, 4)
    w = _w_of_quadrant(diagonal, jnp.where(jnp.isinf(large), 0, diagonal))
    rest = lax.complex(jnp.cos(angle), jnp.sin(angle)) * w * ((1 + 1j) / 2)
    rest = jnp.where(jnp.isinf(large), 0, rest)
    sign = jnp.sign(x)
    sine = jnp.where(is_small, sine, 0.5 - jnp.imag(rest))
    cosine = jnp.where(is_small, cosine, 0.5 - jnp.real(rest))
    return sign * sine, sign * cosine


@fresnel.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    sine, cosine = fresnel(x)
    wide = _wide(jnp.asarray(x).astype(sine.dtype))
    angle = (np.pi / 2) * jnp.mod(wide * wide, 4)
    slopes = [f(angle).astype(sine.dtype) * t.astype(sine.dtype) for f in (jnp.sin, jnp.cos)]
    return (sine, cosine), tuple(slopes)


# -- Owen's function -------------------------------------------------------------------------------


@custom_jvp
@library
def owens_t(h: Any, a: Any) -> Array:
    """Owen's T: the probability that X > h and 0 < Y < aX for normal X and Y. Source:
    scipy.special.owens_t; Patefield and Tandy (2000).
    """
    h, a = promote_inexact("owens_t", h, a)
    if h.dtype.kind == "c":
        raise ValueError(
            f"owens_t does not support complex-valued inputs; got {h.dtype.name}: give real parts."
        )
    return _owens_t(_wide(h), _wide(a))


_OWEN_PLACES, _OWEN_WEIGHTS = (part[13:] for part in np.polynomial.legendre.leggauss(26))


def _owens_t(h: Any, a: Any) -> Any:
    h, size = jnp.abs(h), jnp.abs(a)
    is_steep = size > 1
    # From T(h, a) + T(ah, 1 / a), which is known.
    both = jnp.where((h == 0) | (size == 0), 0, h * size)
    slope = jnp.where(is_steep, 1 / jnp.where(is_steep, size, 1), size)
    base = jnp.where(is_steep, both, h)
    squares = 1 + jnp.square(slope[..., None] * _OWEN_PLACES.astype(h.dtype))
    terms = jnp.exp(-0.5 * jnp.square(base)[..., None] * squares) / squares
    flat = slope * jnp.sum(_OWEN_WEIGHTS.astype(h.dtype) * terms, axis=-1) / (2 * np.pi)
    root = np.sqrt(0.5)
    p, q = 0.5 * lax.erfc(h * root), 0.5 * lax.erfc(both * root)
    near = 0.25 - 0.25 * lax.erf(h * root) * lax.erf(both * root)
    total = jnp.where(h < 0.67, near, 0.5 * (p + q) - p * q)
    out = jnp.where(is_steep, total - flat, flat)
    return jnp.sign(a) * out


@owens_t.defjvp
def _(primals, tangents):
    (h, a), (h_dot, a_dot) = primals, tangents
    out = owens_t(h, a)
    h, a = (jnp.asarray(x).astype(out.dtype) for x in (h, a))
    square = 1 + a * a
    by_a = jnp.exp(-0.5 * h * h * square) / (2 * np.pi * square)
    by_h = -jnp.exp(-0.5 * h * h) * lax.erf(a * h * np.sqrt(0.5)) / (2 * np.sqrt(2 * np.pi))
    return out, by_h * h_dot.astype(out.dtype) + by_a * a_dot.astype(out.dtype)
