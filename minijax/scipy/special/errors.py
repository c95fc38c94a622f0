"""The complex error function and its relatives: wofz, erfcx, dawsn, fresnel, owens_t.

All but Owen's function come from one quadrature.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.numpy.promotion import promote_inexact, to_array
from minijax.typing import ArrayLike

__all__ = ["dawsn", "erfcx", "fresnel", "owens_t", "wofz"]


class _Rule:
    """The trapezoid rule for w(z) = i/pi * integral of exp(-t^2) / (z - t), with what its poles
    add.

    Al Azah and Chandler-Wilde, "Computation of the complex error function using modified trapezoidal
    rules" (2021). Nodes lie at whole steps or between them: an element takes those that are far from
    it. 12 nodes a side are enough for 64 bits.
    """

    def __init__(self, count: int):
        self.step = math.sqrt(math.pi / count)
        self.height = math.pi / self.step  # up to which a pole counts
        self.between = (np.arange(count) + 0.5) * self.step
        self.whole = np.arange(count) * self.step
        self.between_weights = np.exp(-(self.between**2))
        self.whole_weights = np.exp(-(self.whole**2)) * np.where(np.arange(count) == 0, 0.5, 1)

    def is_between(self, x: Any) -> Any:
        """Whether nodes between steps are the far ones, for places x on the real axis."""
        turns = x / self.step
        return jnp.abs(turns - jnp.round(turns)) < 0.25

    def squares_and_weights(self, is_between: Any, dtype: Any) -> list[tuple[Any, Any]]:
        """Return the square and the weight of each node, among those that an element takes."""
        between = np.stack([self.between**2, self.between_weights], axis=1).astype(dtype)
        whole = np.stack([self.whole**2, self.whole_weights], axis=1).astype(dtype)
        return [
            (jnp.where(is_between, a, c), jnp.where(is_between, b, d))
            for (a, b), (c, d) in zip(between, whole, strict=True)
        ]

    def pole(self, x: Any, y: Any, is_between: Any) -> tuple[Any, Any]:
        """2 / (1 +- exp(-2 pi i z / step)) at z = x + iy, above and below the line over the size of
        the exponential; zero from the height on.
        """
        counts = y < self.height
        angle = (-2 * math.pi / self.step) * x
        size = jnp.exp((-2 * math.pi / self.step) * jnp.where(counts, y, 0))
        sign = jnp.where(is_between, 1.0, -1.0).astype(x.dtype)
        p, q = size + sign * jnp.cos(angle), sign * jnp.sin(angle)
        share = jnp.where(counts, 2 * size, 0) / (p * p + q * q)
        return share * p, -share * q


_RULES = {32: _Rule(6), 64: _Rule(12)}


def _rule(x: Any) -> _Rule:
    return _RULES[dtypes.bit_width(x.dtype)]


def _wide(x: Any) -> Any:
    """Convert to float32 or complex64 at least, and not weak."""
    is_low = x.dtype.kind != "c" and dtypes.bit_width(x.dtype) < 32
    return x.astype(np.float32 if is_low else x.dtype)


def _real(name: str, x: Any) -> Any:
    (x,) = promote_inexact(name, x)
    if x.dtype.kind == "c":
        raise ValueError(
            f"{name} does not support complex-valued inputs; got {x.dtype.name}: give x.real."
        )
    return x


# Real and imaginary parts are computed apart: a division of complex numbers, which XLA makes safe
# from overflow, takes as long as ten of real ones.


def _w_of_quadrant(x: Any, y: Any) -> tuple[Any, Any]:
    """w(x + iy) for x, y >= 0."""
    rule = _rule(x)
    larger = jnp.maximum(x, y)
    is_far = larger > 1e3
    far = _w_far_out(jnp.where(is_far, x, 1e3), jnp.where(is_far, y, 1e3))
    x, y = jnp.where(is_far, 1, x), jnp.where(is_far, 1, y)
    is_between = rule.is_between(x)
    across, along = 2 * x * y, (x - y) * (x + y)  # z^2
    real = imag = 0.0
    for square, weight in rule.squares_and_weights(is_between, x.dtype):
        gap = along - square
        share = weight / (gap * gap + across * across)
        real, imag = real + share * gap, imag - share * across
    scale = 2 * rule.step / math.pi
    real, imag = -scale * (x * imag + y * real), scale * (x * real - y * imag)
    # The poles add exp(-z^2) times `pole`.
    p, q = rule.pole(x, y, is_between)
    height = jnp.minimum(y, rule.height)
    size = jnp.exp((height - x) * (height + x))
    a, b = size * jnp.cos(across), -size * jnp.sin(across)
    real, imag = real + a * p - b * q, imag + a * q + b * p
    return jnp.where(is_far, far[0], real), jnp.where(is_far, far[1], imag)


def _w_far_out(x: Any, y: Any) -> tuple[Any, Any]:
    """Three terms of the series in r = 1 / z: i / sqrt(pi) r (1 + r^2 / 2 + 3 r^4 / 4)."""
    larger = jnp.maximum(x, y)
    p, q = (jnp.where(part == larger, 1, part / larger) for part in (x, y))
    share = 1 / (larger * (p * p + q * q))
    p, q = p * share, -q * share  # r
    a, b = p * p - q * q, 2 * p * q  # its square
    c, d = 0.5 + 0.75 * a, 0.75 * b
    a, b = 1 + a * c - b * d, a * d + b * c
    scale = 1 / math.sqrt(math.pi)
    return -scale * (p * b + q * a), scale * (p * a - q * b)


def _exp_of_square(x: Any, y: Any) -> tuple[Any, Any]:
    """exp(-z^2)."""
    size, angle = jnp.exp((y - x) * (y + x)), -2 * x * y
    return size * jnp.cos(angle), size * jnp.sin(angle)


def _w(x: Any, y: Any) -> Any:
    real, imag = _w_of_quadrant(jnp.abs(x), jnp.abs(y))
    imag = jnp.where((x < 0) ^ (y < 0), -imag, imag)
    below = y < 0
    other_real, other_imag = _exp_of_square(x, jnp.where(below, y, 0))
    real = jnp.where(below, 2 * other_real - real, real)
    return lax.complex(real, jnp.where(below, 2 * other_imag - imag, imag))


@library(whole=True)
def wofz(z: ArrayLike) -> Array:
    """Compute the Faddeeva function `exp(-z**2) * erfc(-1j * z)`.

    - `z`: real or complex array of any shape

    The result has the shape of `z` and a complex dtype. TypeError for what is not an array or
    number.
    Source: SciPy's `special.wofz`; Al Azah and Chandler-Wilde (2021).

    >>> jax.scipy.special.wofz(jnp.array([1j, 2.0])).shape
    (2,)
    """
    return _wofz_with_rule(to_array("wofz", z))


@custom_jvp
def _wofz_with_rule(z):
    (z,) = promote_inexact("wofz", z)
    z = _wide(z)
    if z.dtype.kind != "c":  # exp(-x^2) and, by 2 / sqrt(pi), Dawson's integral
        return lax.complex(jnp.exp(-z * z), (2 / math.sqrt(math.pi)) * _dawson(z))
    return _w(jnp.real(z), jnp.imag(z))


@_wofz_with_rule.defjvp
def _(primals, tangents):
    (z,), (t,) = primals, tangents
    out = _wofz_with_rule(z)
    z, t = jnp.asarray(z).astype(out.dtype), jnp.asarray(t).astype(out.dtype)
    return out, (2j / math.sqrt(math.pi) - 2 * z * out) * t


@library
def erfcx(x: ArrayLike) -> Array:
    """Compute `exp(x**2) * erfc(x)`.

    - `x`: real or complex array of any shape

    The result has the shape of `x` and a floating-point or complex dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.erfcx`.

    >>> jax.scipy.special.erfcx(jnp.inf)
    Array(0., dtype=float32)
    """
    return _erfcx_with_rule(to_array("erfcx", x))


@custom_jvp
def _erfcx_with_rule(x):
    (x,) = promote_inexact("erfcx", x)
    wide = _wide(x)
    if x.dtype.kind == "c":
        return _w(-jnp.imag(wide), jnp.real(wide))
    return _scaled_erfc(wide).astype(x.dtype)


def _scaled_erfc(x: Any) -> Any:
    """w on the upper half of the imaginary axis: there all that is added is positive."""
    rule = _rule(x)
    y = jnp.abs(x)
    r = 1 / jnp.maximum(y, 1)
    near = jnp.minimum(y, 1)
    # With y^2 divided out from 1 on, since it may overflow.
    under, factor = jnp.where(y < 1, near * near, 1), jnp.where(y < 1, 1, r * r)
    nodes = zip((rule.between**2).tolist(), rule.between_weights.tolist(), strict=True)
    total = sum(weight / (under + factor * square) for square, weight in nodes)
    out = (2 * rule.step / math.pi) * jnp.where(y < 1, near, r) * total
    height = jnp.minimum(y, rule.height)
    pole = 2 * jnp.exp(height * height) / (1 + jnp.exp((2 * math.pi / rule.step) * height))
    out = out + jnp.where(y < rule.height, pole, 0)
    return jnp.where(x < 0, 2 * jnp.exp(x * x) - out, out)


@_erfcx_with_rule.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    out = _erfcx_with_rule(x)
    slope = 2 * jnp.asarray(x).astype(out.dtype) * out - 2 / math.sqrt(math.pi)
    return out, slope * jnp.asarray(t).astype(out.dtype)


@library
def dawsn(x: ArrayLike) -> Array:
    """Compute Dawson's integral: `exp(-x**2)` times the integral of `exp(t**2)` from 0 to x.

    - `x`: real array of any shape

    The result has the shape of `x` and a floating-point dtype. ValueError for complex numbers.
    Source: SciPy's `special.dawsn`.

    >>> jax.scipy.special.dawsn(0.0)
    Array(0., dtype=float32)
    """
    return _dawsn_with_rule(to_array("dawsn", x))


@custom_jvp
def _dawsn_with_rule(x):
    x = _real("dawsn", x)
    return _dawson(_wide(x)).astype(x.dtype)


_DAWSON = [(-2.0) ** k / float(np.prod(np.arange(1.0, 2 * k + 2, 2))) for k in range(14)]


def _dawson(x: Any) -> Any:
    is_small = jnp.abs(x) < 0.5
    small = jnp.where(is_small, x, 0)
    series = small * jnp.polyval(np.asarray(_DAWSON[::-1], x.dtype), small * small, unroll=16)
    y = jnp.where(is_small, 1, jnp.abs(x))
    r = 1 / y
    rule, place = _rule(x), jnp.minimum(y, 30)
    is_between, factor = rule.is_between(place), jnp.square(jnp.minimum(r, 2))
    nodes = rule.squares_and_weights(is_between, x.dtype)
    total = sum(weight / (1 - square * factor) for square, weight in nodes)
    angle = place * (math.pi / rule.step)
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    ratio = jnp.where(is_between, sine, -cosine) / jnp.where(is_between, cosine, sine)
    pole = 0.5 * math.sqrt(math.pi) * jnp.exp(-place * place) * ratio
    out = (rule.step / math.sqrt(math.pi)) * total * r + pole
    return jnp.where(is_small, series, jnp.sign(x) * out)


@_dawsn_with_rule.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    out = _dawsn_with_rule(x)
    return out, (1 - 2 * jnp.asarray(x).astype(out.dtype) * out) * jnp.asarray(t).astype(out.dtype)


# -- Fresnel's integrals ---------------------------------------------------------------------------


@custom_jvp
@library
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the integrals of `sin(pi * t**2 / 2)` and `cos(pi * t**2 / 2)` from 0 to x.

    - `x`: real array of any shape

    The result is a pair of arrays of the shape of `x` and a floating-point dtype.
    NotImplementedError for complex and 8-bit dtypes.
    Source: SciPy's `special.fresnel`.

    >>> jax.scipy.special.fresnel(0.0)
    (Array(0., dtype=float32), Array(0., dtype=float32))
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
    out, term = [], (math.pi / 2) ** first
    for n in range(12):
        k = 2 * n + first
        out.append(term / (2 * k + 1))
        term *= -((math.pi / 2) ** 2) / ((k + 1) * (k + 2))
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
    p, q = _fresnel_far(jnp.where(is_small, 2, y))
    sign = jnp.where(x < 0, -1, 1).astype(x.dtype)  # as SciPy, 0 and not -0 at -0
    sine = jnp.where(is_small, sine, 0.5 - 0.5 * (p + q))
    cosine = jnp.where(is_small, cosine, 0.5 - 0.5 * (p - q))
    return sign * sine, sign * cosine


def _fresnel_angle(x: Any) -> Any:
    """pi x^2 / 2, less whole turns: of x^2 without that of the nearest whole number, but for parity."""
    whole = jnp.round(x)
    rest = x - whole
    return (math.pi / 2) * jnp.mod(jnp.mod(whole, 2) + rest * (2 * whole + rest), 4)


def _fresnel_far(x: Any) -> tuple[Any, Any]:
    """1 - (1 - i) (C + iS), which is exp(i angle) w(z) for z = (1 + i) sqrt(pi) x / 2.

    As in `_w_of_quadrant`; since z^2 = i angle, the poles add `pole` alone.
    """
    rule = _rule(x)
    x = jnp.minimum(x, 1e18)
    place = (math.sqrt(math.pi) / 2) * x
    is_between = rule.is_between(place)
    theta = 2 * place * place
    real = imag = 0.0
    for square, weight in rule.squares_and_weights(is_between, x.dtype):
        share = weight / (square * square + theta * theta)
        real, imag = real + share * square, imag + share
    imag = imag * theta
    scale = (2 * rule.step / math.pi) * place
    a, b = scale * (imag + real), scale * (imag - real)
    angle = _fresnel_angle(x)
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    p, q = rule.pole(place, place, is_between)
    return a * cosine - b * sine + p, a * sine + b * cosine + q


@fresnel.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    is_low = dtypes.bit_width(x.dtype) < 32
    angle = _fresnel_angle(x.astype(np.float32) if is_low else x)
    slopes = jnp.sin(angle), jnp.cos(angle)
    return fresnel(x), tuple([(s.astype(x.dtype) if is_low else s) * t for s in slopes])


# -- Owen's function -------------------------------------------------------------------------------


@library
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Compute Owen's T: the probability that X > h and 0 < Y < a * X for normal X and Y.

    - `h`, `a`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. ValueError for complex
    numbers.
    Source: SciPy's `special.owens_t`; Patefield and Tandy (2000).

    >>> jax.scipy.special.owens_t(1.0, 0.0)
    Array(0., dtype=float32)
    """
    return _owens_t_with_rule(to_array("owens_t", h), to_array("owens_t", a, 1))


@custom_jvp
def _owens_t_with_rule(h, a):
    h, a = map(jnp.asarray, promote_inexact("owens_t", h, a))
    if h.dtype.kind == "c":
        raise ValueError(
            f"owens_t does not support complex-valued inputs; got {h.dtype.name}: give real parts."
        )
    return _owens_t(_wide(h), _wide(a))


def _half_rule(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights of Gauss's rule for the integrals of even functions from 0 to 1."""
    places, weights = np.polynomial.legendre.leggauss(2 * count)
    return places[count:], weights[count:]


# By dtype: how far the normal density reaches, to all digits, and a rule for it up to there.
_OWEN_RULES = {4: (6.0, _half_rule(13)), 8: (9.0, _half_rule(28))}


def _owens_t(h: Any, a: Any) -> Any:
    reach, (places, weights) = _OWEN_RULES[h.dtype.itemsize]
    h, size = jnp.abs(h), jnp.abs(a)
    is_steep = size > 1
    # From T(h, a) + T(ah, 1 / a), which is known.
    both = jnp.where((h == 0) | (size == 0), 0, h * size)
    slope = jnp.where(is_steep, 1 / jnp.where(is_steep, size, 1), size)
    base = jnp.minimum(jnp.where(is_steep, both, h), 1e6)  # finite: exp(-base**2) is zero by then
    end = jnp.where(slope * base > reach, reach / jnp.where(base > 0, base, 1), slope)
    squares = jnp.square(end[..., None] * places.astype(h.dtype))
    half = -0.5 * jnp.square(base)
    terms = jnp.exp(half[..., None] * squares) / (1 + squares)
    integral = end * jnp.sum(weights.astype(h.dtype) * terms, axis=-1)
    flat = jnp.exp(half) * integral / (2 * math.pi)
    root = math.sqrt(0.5)
    p, q = 0.5 * lax.erfc(h * root), 0.5 * lax.erfc(both * root)
    near = 0.25 - 0.25 * lax.erf(h * root) * lax.erf(both * root)
    total = jnp.where(h < 0.67, near, 0.5 * (p + q) - p * q)
    out = jnp.where(is_steep, total - flat, flat)
    return jnp.sign(a) * out


@_owens_t_with_rule.defjvp
def _(primals, tangents):
    (h, a), (h_dot, a_dot) = primals, tangents
    out = _owens_t_with_rule(h, a)
    h, a = (jnp.asarray(x).astype(out.dtype) for x in (h, a))
    square = 1 + a * a
    by_a = jnp.exp(-0.5 * h * h * square) / (2 * math.pi * square)
    by_h = -jnp.exp(-0.5 * h * h) * lax.erf(a * h * math.sqrt(0.5)) / (2 * math.sqrt(2 * math.pi))
    return out, (by_h * h_dot + by_a * a_dot).astype(out.dtype)
