"""Exponential, sine and cosine integrals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.numpy.promotion import promote_inexact, to_array
from minijax.typing import ArrayLike

__all__ = ["exp1", "expi", "expn", "sici"]


def _reals(name: str, *args: Any) -> list[Any]:
    args = promote_inexact(name, *args)
    if args[0].dtype.kind == "c":
        raise ValueError(
            f"Argument `x` to sici must be real-valued. Got dtype {args[0].dtype.name}."
            if name == "sici"
            else f"{name} does not support complex-valued inputs. Give x.real."
        )
    return list(args)


def in_wide(fun: Callable, *args: Any) -> Any:
    """`fun` in float32 at least, rounded to the dtype of the arguments."""
    dtype = args[0].dtype
    wide = np.float32 if dtypes.bit_width(dtype) < 32 else dtype
    return fun(*[x.astype(wide) for x in args]).astype(dtype)


def _terms(narrow: int, wide: int, dtype: Any) -> int:
    """Return how many terms give all digits of float32 or float64."""
    return wide if dtype == np.float64 else narrow


def _fraction(n: Any, z: Any, terms: int) -> Any:
    """exp(z) E_n(z) by its continued fraction (DLMF 8.19.17, two steps in one), from its end."""

    def step(i, tail):
        k = lax.convert_element_type(terms - i, n.dtype)
        return k * (n + (k - 1)) / (z + (n + 2 * k) - tail)

    return 1 / (z + n - lax.fori_loop(0, terms, step, jnp.zeros_like(z)))


def _expn_series(n: Any, x: Any, terms: int) -> Any:
    """E_n(x) for 0 < x <= 1 (DLMF 8.19.8; 8.19.10 for n <= 0)."""

    def step(m, carry):
        total, power = carry
        m = lax.convert_element_type(m, x.dtype)
        gap = m - n + 1
        total = total - jnp.where(gap == 0, 0, power / jnp.where(gap == 0, 1, gap))
        return total, power * (-x / (m + 1))

    total, _ = lax.fori_loop(0, terms, step, (jnp.zeros_like(x), jnp.ones_like(x)))
    count = jnp.maximum(n, 1)
    log_x = jnp.log(x)
    size = jnp.exp((count - 1) * log_x - lax.lgamma(count))
    sign = jnp.where(jnp.mod(count, 2) == 1, 1, -1)
    digamma = jnp.where(count == 1, -np.euler_gamma, lax.digamma(count))  # the more exact
    digits = sign * size * (digamma - log_x)
    below = jnp.minimum(n, 0)
    powers = jnp.exp((below - 1) * log_x + lax.lgamma(1 - below))
    return total + jnp.where(n < 1, powers, digits)


def _expn(n: Any, x: Any) -> Any:
    is_small = x <= 1
    small = jnp.where(is_small & (x > 0), x, 1)
    large = jnp.where(is_small | jnp.isnan(x), 1, jnp.minimum(x, 1e6))
    near = _expn_series(n, small, _terms(14, 24, x.dtype))
    far = jnp.exp(-x) * _fraction(n, large, _terms(24, 96, x.dtype))
    at_zero = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), np.inf)
    out = jnp.where(is_small, near, far)
    out = jnp.where(x == 0, at_zero, out)
    unknown = is_small & (x != 0) & (n != jnp.floor(n))  # the series is that of integers
    return jnp.where((x < 0) | unknown | jnp.isnan(x), np.nan, out)


@library(whole=True)
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute the integral of `exp(-x * t) / t**n` from 1 to infinity.

    - `n`: nonnegative integers, or real numbers where x > 1; others give NaN for smaller x
    - `x`: nonnegative real array that broadcasts with `n`

    The result has the arguments' common shape and a floating-point dtype. ValueError for complex
    numbers.
    Source: SciPy's `special.expn`.

    >>> jax.scipy.special.expn(2, 0.0)
    Array(1., dtype=float32)
    """
    n, x = to_array("expn", n), to_array("expn", x)
    return jnp.where((n < 0) & (x > 0) & (x <= 1), np.nan, _expn_with_rule(n, x))


@custom_jvp
def _expn_with_rule(n, x):
    n, x = jnp.broadcast_arrays(*_reals("expn", n, x))
    return in_wide(_expn, n, x)


@_expn_with_rule.defjvp
def _(primals, tangents):
    (n, x), (_, t) = primals, tangents
    out = _expn_with_rule(n, x)
    if dtypes.dtype(t) == dtypes.float0:
        return out, jnp.zeros_like(out)
    return out, _scaled(-_expn_with_rule(n - 1, x), t)


def _scaled(slope: Any, t: Any) -> Any:
    """A tangent times a strongly typed derivative: so are the product and its cotangents."""
    return lax.mul(slope, jnp.broadcast_to(t, slope.shape))


@library(whole=True)
def exp1(x: ArrayLike) -> Array:
    """Compute the integral of `exp(-t) / t` from x to infinity, for x >= 0.

    - `x`: real array of any shape

    The result has the shape of `x` and a floating-point dtype. ValueError for complex numbers.
    Source: SciPy's `special.exp1`.

    >>> jax.scipy.special.exp1(jnp.inf)
    Array(0., dtype=float32)
    """
    return _exp1_with_rule(to_array("exp1", x))


@custom_jvp
def _exp1_with_rule(x):
    (x,) = _reals("exp1", x)
    return in_wide(lambda x: _expn(jnp.ones_like(x), x), x)


@_exp1_with_rule.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    out = _exp1_with_rule(x)
    x = jnp.asarray(x).astype(out.dtype)
    return out, _scaled(-(jnp.exp(-x) / x), t)


@custom_jvp
@library(whole=True)
def expi(x: ArrayLike) -> Array:
    """Compute the integral of `exp(t) / t` from -inf to x, its principal value for x > 0.

    - `x`: real array of any shape

    The result has the shape of `x` and a floating-point dtype. ValueError for complex numbers.
    Source: SciPy's `special.expi`.

    >>> jax.scipy.special.expi(0.0)
    Array(-inf, dtype=float32)
    """
    (x,) = _reals("expi", x)
    return in_wide(_expi, x)


def _expi(x: Any) -> Any:
    limit = 40 if x.dtype == np.float64 else 17
    near = jnp.where((x > 0) & (x < limit), x, 1)

    def step(i, carry):
        total, power = carry
        k = lax.convert_element_type(i + 1, x.dtype)
        power = power * (near / k)
        return total + power / k, power

    carry = (jnp.zeros_like(x), jnp.ones_like(x))
    total, _ = lax.fori_loop(0, _terms(60, 130, x.dtype), step, carry)
    series = np.euler_gamma + jnp.log(near) + total

    far = jnp.where(x >= limit, x, limit)

    def shrink(i, total):
        return 1 + total * (lax.convert_element_type(limit - i, x.dtype) / far)

    divergent = lax.fori_loop(0, limit, shrink, jnp.ones_like(x))
    asymptotic = jnp.exp(far) / far * divergent
    out = jnp.where(x < limit, series, asymptotic)
    negative = -_expn(jnp.ones_like(x), jnp.where(x < 0, -x, 1))
    out = jnp.where(x < 0, negative, jnp.where(x == 0, -np.inf, out))
    return jnp.where(jnp.isnan(x), x, jnp.where(x == np.inf, np.inf, out))


@expi.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return expi(x), jnp.exp(x) / x * t


@custom_jvp
@library(whole=True)
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the sine and cosine integrals.

    - `x`: real array of any shape

    The result is a pair of arrays of the shape of `x` and a floating-point dtype; the second is
    that of |x|. ValueError for complex numbers.
    Source: SciPy's `special.sici`.

    >>> jax.scipy.special.sici(0.0)
    (Array(0., dtype=float32), Array(-inf, dtype=float32))
    """
    (x,) = _reals("sici", x)
    dtype = x.dtype
    wide = x.astype(np.float32 if dtypes.bit_width(dtype) < 32 else dtype)
    sine, cosine = _sici(wide)
    return sine.astype(dtype), cosine.astype(dtype)


def _sici_series(first: int) -> np.ndarray:
    """Coefficients of x^2 of Si(x) / x, or of (Ci(x) - log(x) - gamma) / x^2, highest first."""
    out, term = [], 1.0 if first == 1 else -0.5
    for i in range(17):
        k = 2 * i + first
        out.append(term / k)
        term *= -1 / ((k + 1) * (k + 2))
    return np.asarray(out[::-1])


_SI, _CI = _sici_series(1), _sici_series(2)


def _half_line(step: float, least: float) -> list[tuple[float, float]]:
    """Nodes s and weights w, so that sums of w F(s) are integrals of exp(-s) F(s) over s > 0.

    The trapezoid rule in u for s = exp(u - exp(-u)); weights below `least` are left out. Source:
    Takahasi and Mori, "Double exponential formulas for numerical integration" (1974).
    """
    u = np.arange(-4, 5, step)
    nodes = np.exp(u - np.exp(-u))
    weights = step * np.exp(-nodes) * nodes * (1 + np.exp(-u))
    counts = weights > least
    return list(zip(nodes[counts].tolist(), weights[counts].tolist(), strict=True))


_NARROW, _WIDE = _half_line(0.36, 1e-9), _half_line(0.2, 1e-18)


def _auxiliary(x: Any) -> tuple[Any, Any]:
    """The integrals of exp(-xt) / (1 + t^2), and of t times it, over t > 0, for x >= 4: in s = xt,
    where all terms of the quadrature are positive. Source: DLMF 6.7.13 and 6.7.14.
    """
    inverse = 1 / x
    square = inverse * inverse
    f = g = 0.0
    for node, weight in _WIDE if x.dtype == np.float64 else _NARROW:
        share = weight / (1 + (node * node) * square)
        f, g = f + share, g + node * share
    return inverse * f, square * g


def _sici(x: Any) -> tuple[Any, Any]:
    y = jnp.abs(x)
    is_small = y <= 4
    small = jnp.where(is_small, y, 1)
    square = small * small
    sine = small * jnp.polyval(_SI.astype(x.dtype), square, unroll=32)
    cosine = square * jnp.polyval(_CI.astype(x.dtype), square, unroll=32)
    cosine = cosine + jnp.log(small) + np.euler_gamma
    large = jnp.where(is_small | jnp.isinf(y), 4, y)
    f, g = _auxiliary(large)
    c, s = jnp.cos(large), jnp.sin(large)
    is_finite = jnp.isfinite(y)
    far_sine, far_cosine = np.pi / 2 - (f * c + g * s), f * s - g * c
    sine = jnp.where(is_small, sine, jnp.where(is_finite, far_sine, np.pi / 2))
    cosine = jnp.where(is_small, cosine, jnp.where(is_finite, far_cosine, 0))
    sine = jnp.where(x == 0, x, jnp.sign(x) * sine)
    cosine = jnp.where(x == -np.inf, np.nan, jnp.where(jnp.isnan(x), x, cosine))
    return jnp.where(jnp.isnan(x), x, sine), cosine


@sici.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    safe = jnp.where(x == 0, 1, x)
    return sici(x), (jnp.where(x == 0, 1, jnp.sin(safe) / safe) * t, jnp.cos(x) / x * t)
