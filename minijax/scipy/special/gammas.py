"""Gamma, beta and zeta functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.arguments.functions import check_at_most
from minijax.arguments.values import known_count
from minijax.core.array import Array
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.lax.large_gammas import stirling_rest
from minijax.numpy.promotion import check_arraylike, converted, promote_inexact, promote_shapes
from minijax.scipy.special.exponentials import in_wide
from minijax.transforms.grad import jvp
from minijax.typing import ArrayLike

__all__ = [
    "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma", "gammainc", "gammaincc",
    "gammaln", "gammasgn", "loggamma", "multigammaln", "poch", "polygamma", "zeta",
]  # fmt: skip


def _broadcast(name: str, *args: Any) -> list[Any]:
    """The arguments as floats of one dtype and shape."""
    args = promote_inexact(name, *args)
    shape = jnp.broadcast_shapes(*[np.shape(x) for x in args])
    return [jnp.broadcast_to(x, shape) for x in args]


def _reals(name: str, *args: Any) -> list[Any]:
    """Broadcast as `_broadcast`; ValueError for complex numbers."""
    args = _broadcast(name, *args)
    _check_real(name, args[0])
    return args


def _real(name: str, x: Any) -> Any:
    (x,) = promote_inexact(name, x)
    _check_real(name, x)
    return x


def _check_real(name: str, x: Any) -> None:
    if dtypes.issubdtype(dtypes.dtype(x), np.complexfloating):
        raise ValueError(f"{name} does not support complex-valued inputs. Give real parts.")


@library
def gammaln(x: ArrayLike) -> Array:
    """Compute `log(abs(gamma(x)))`.

    - `x`: real array of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for complex numbers.
    Source: SciPy's `special.gammaln`.

    >>> jax.scipy.special.gammaln(jnp.array([0.0, jnp.inf]))
    Array([inf, inf], dtype=float32)
    """
    (x,) = promote_inexact("gammaln", x)
    return lax.lgamma(x)


@library
def loggamma(x: ArrayLike) -> Array:
    """Compute `log(gamma(x))`; NaN for negative real x.

    - `x`: real array, or complex array, for which the branch is continuous but on the negative real
      axis

    The result has the shape of `x` and a floating-point or complex dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.loggamma`.

    >>> jax.scipy.special.loggamma(jnp.inf)
    Array(inf, dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("loggamma", x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return _loggamma_of_complex(x)
    return jnp.where(x > 0, lax.lgamma(x), np.nan)


_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
)  # fmt: skip


def _loggamma_of_complex(z: Any) -> Any:
    """Return loggamma by Lanczos's series (1964, g = 7) right of 1/2; left of it by reflection
    (Hare 1997).

    In the upper half-plane log(sin(pi z)) = pi (1/2 - z) i - log(2) + log(1 - exp(2 pi i z)) is the
    branch that goes with it; the lower one is its mirror image.
    """
    x, y = lax.real(z), lax.imag(z)
    z = lax.complex(x, abs(y))
    left = x < 0.5
    w = jnp.where(left, 1 - z, z) - 1
    series = _LANCZOS[0] + sum(c / (w + k) for k, c in enumerate(_LANCZOS[1:], 1))
    t = w + 7.5
    right = (w + 0.5) * lax.log(t) - t + lax.log(series) + 0.5 * math.log(2 * math.pi)
    turn = 2j * math.pi * lax.complex(x - lax.round(x), abs(y))
    log_sine = 1j * math.pi * (0.5 - z) - math.log(2) + lax.log(-lax.expm1(turn))
    out = jnp.where(left, math.log(math.pi) - log_sine - right, right)
    out = lax.complex(lax.real(out), jnp.where(jnp.signbit(y), -lax.imag(out), lax.imag(out)))
    pole = (y == 0) & (x <= 0) & (x == lax.round(x))
    return jnp.where(pole, complex(np.nan, np.nan), out).astype(z.dtype)


@library(whole=True)
def gammasgn(x: ArrayLike) -> Array:
    """Compute the sign of `gamma(x)`; NaN at the poles below zero.

    - `x`: real array of any shape

    The result has the shape of `x` and a floating-point dtype. ValueError for complex numbers.
    Source: SciPy's `special.gammasgn`.

    >>> jax.scipy.special.gammasgn(jnp.array([-0.5, 2.0]))
    Array([-1.,  1.], dtype=float32)
    """
    x = _real("gammasgn", x)
    floor = lax.floor(x)
    odd = jnp.mod(floor, 2) != 0
    signs = jnp.where((x < 0) & odd, -1.0, 1.0)
    pole = (x < 0) & (x == floor)
    signs = jnp.where(pole | jnp.isnan(x) | (x == -np.inf), np.nan, signs)
    signs = jnp.where(x == 0, jnp.copysign(1.0, x), signs)
    return signs.astype(x.dtype)


@library
def gamma(x: ArrayLike) -> Array:
    """Compute the gamma function.

    - `x`: real or complex array of any shape

    The result has the shape of `x` and a floating-point or complex dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.gamma`.

    >>> jax.scipy.special.gamma(jnp.inf)
    Array(inf, dtype=float32)
    """
    (x,) = promote_inexact("gamma", x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return lax.exp(_loggamma_of_complex(x))
    return gammasgn(x) * lax.exp(lax.lgamma(x))


@library
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute `log(abs(beta(a, b)))`, accurately where one argument is large.

    - `a`, `b`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. TypeError for complex
    numbers.
    Source: SciPy's `special.betaln`; DLMF 5.11.

    >>> jax.scipy.special.betaln(0.0, 1.0)
    Array(inf, dtype=float32, weak_type=True)
    """
    a, b = _broadcast("betaln", a, b)
    a, b = jnp.minimum(a, b), jnp.maximum(a, b)
    small = lax.lgamma(a) + (lax.lgamma(b) - lax.lgamma(a + b))
    return jnp.where(b < 8, small, _betaln_of_large(a, jnp.where(b < 8, 8, b)))


def _betaln_of_large(a: Any, b: Any) -> Any:
    total = a + b
    rest = stirling_rest(b) - stirling_rest(total)
    log_ratio = -(b - 0.5) * jnp.log1p(a / b)
    log_total = jnp.log(total)
    small = lax.lgamma(a) + rest + log_ratio + a - a * log_total
    # Where both are large, the formula for both: lgamma(a) and its neighbours would cancel.
    most = jnp.where(a < 8, 8, a)
    half_log_circle = 0.5 * np.log(2 * np.pi).item()
    powers = (most - 0.5) * jnp.log(most / total) - 0.5 * log_total
    both = powers + log_ratio + (half_log_circle + stirling_rest(most) + rest)
    return jnp.where(a < 8, small, both)


@library
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the beta function `gamma(a) * gamma(b) / gamma(a + b)`.

    - `a`, `b`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. ValueError for complex
    numbers.
    Source: SciPy's `special.beta`.

    >>> jax.scipy.special.beta(0.0, 1.0)
    Array(inf, dtype=float32)
    """
    a, b = _broadcast("beta", a, b)
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    # In float32 at least: the logarithm's digits are the exponent of the result.
    return sign * in_wide(lambda a, b: lax.exp(betaln(a, b)), a, b)


@library
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized incomplete beta function.

    - `a`, `b`, `x`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. ValueError for complex
    numbers.
    Source: SciPy's `special.betainc`.

    >>> jax.scipy.special.betainc(2.0, 2.0, jnp.array([0.0, 1.0]))
    Array([0., 1.], dtype=float32)
    """
    return lax.betainc(*_reals("betainc", a, b, x))


@library
def digamma(x: ArrayLike) -> Array:
    """Compute the derivative of `log(gamma(x))`.

    - `x`: real array of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for complex numbers.
    Source: SciPy's `special.digamma`.

    >>> jax.scipy.special.digamma(jnp.inf)
    Array(inf, dtype=float32, weak_type=True)
    """
    (x,) = promote_inexact("digamma", x)
    return lax.digamma(x)


@library
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized lower incomplete gamma function.

    - `a`, `x`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. TypeError for complex
    numbers.
    Source: SciPy's `special.gammainc`.

    >>> jax.scipy.special.gammainc(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.igamma(*_broadcast("gammainc", a, x))


@library
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized upper incomplete gamma function.

    - `a`, `x`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. TypeError for complex
    numbers.
    Source: SciPy's `special.gammaincc`.

    >>> jax.scipy.special.gammaincc(1.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.igammac(*_broadcast("gammaincc", a, x))


@library
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative of order n of `digamma(x)`.

    - `n`: array of nonnegative integers
    - `x`: real array that broadcasts with `n`

    The result has the arguments' common shape and a floating-point dtype. ValueError unless `n` has
    an integer dtype.
    Source: SciPy's `special.polygamma`.

    >>> jax.scipy.special.polygamma(1, 0.0)
    Array(inf, dtype=float32, weak_type=True)
    """
    check_arraylike("polygamma", n, x)
    if not dtypes.issubdtype(jnp.asarray(n).dtype, np.integer):
        raise ValueError(
            "Argument `n` to polygamma must be of integer type. Got dtype "
            f"{jnp.asarray(n).dtype.name}."
        )
    return lax.polygamma(*_reals("polygamma", n, x))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Compute the Hurwitz zeta function: the sum of `(k + q)**-x` over k >= 0.

    - `x`, `q`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. NotImplementedError
    without `q`.
    Source: SciPy's `special.zeta`.

    >>> jax.scipy.special.zeta(1.0, 2.0)
    Array(inf, dtype=float32, weak_type=True)
    """
    if q is None:
        raise NotImplementedError(
            "Riemann zeta function not implemented; pass q != None to compute the Hurwitz Zeta "
            "function. With q=1 it is Riemann's."
        )
    return _zeta(x, q)


@custom_jvp
@library
def _zeta(x, q):
    return lax.zeta_p.bind(*promote_shapes("zeta", *promote_inexact("zeta", x, q)))


@_zeta.defjvp
def _zeta_jvp(primals, tangents):
    out = _zeta(*primals)
    return converted(out, out.dtype), jvp(_zeta_series, primals, tangents)[1]


@library
def _zeta_series(x, q):
    s, q = _broadcast("zeta", x, q)
    k = np.arange(_ZETA_TERMS, dtype=np.float64).astype(s.dtype)
    head = jnp.sum((q[..., None] + k) ** -s[..., None], axis=-1)
    end = q + np.asarray(_ZETA_TERMS, s.dtype)
    first = end ** (1 - s) / (s - 1)
    total, factor = head + first + 0.5 * end**-s, s / end
    power = end**-s
    for j, ratio in enumerate(_BERNOULLI_OVER_FACTORIAL):
        total = total + np.asarray(ratio, s.dtype) * factor * power
        factor = factor * ((s + (2 * j + 1)) / end) * ((s + (2 * j + 2)) / end)
    return total


# Euler and Maclaurin's formula (DLMF 25.11.28), which can be differentiated: how many terms are
# summed, and B_2j / (2j)! of the rest.
_ZETA_TERMS = 16
_BERNOULLI_OVER_FACTORIAL = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000,
)  # fmt: skip


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """Compute the logarithm of the gamma function of d dimensions.

    - `a`: real array
    - `d`: known positive integer

    The result has the shape of `a` and a floating-point dtype. TypeError for a traced `d`.
    Source: SciPy's `special.multigammaln`.

    >>> jax.scipy.special.multigammaln(jnp.array([3.0, 4.0]), 2).shape
    (2,)
    """
    d = known_count(d, "d argument of multigammaln")
    check_at_most("multigammaln: d", d, 1 << 20)
    return _multigammaln(a, d)


@library(static=("d",))
def _multigammaln(a, d):
    (a,) = promote_inexact("multigammaln", a)
    constant = np.asarray(0.25 * d * (d - 1) * np.log(np.pi), a.dtype)
    halves = np.arange(d, dtype=np.float64).astype(a.dtype) / np.asarray(2, a.dtype)
    return jnp.sum(gammaln(jnp.expand_dims(a, -1) - halves), axis=-1) + constant


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Compute `n!`; 0 for negative n.

    - `n`: real array of any shape
    - `exact`: must be False

    The result has the shape of `n` and a floating-point dtype. NotImplementedError for `exact`.
    Source: SciPy's `special.factorial`.

    >>> jax.scipy.special.factorial(-1)
    Array(0., dtype=float32, weak_type=True)
    """
    if exact:
        raise NotImplementedError(
            "factorial with exact=True is not supported: integers here have a fixed width. Use "
            "math.factorial."
        )
    return _factorial(n)


@library
def _factorial(n):
    (n,) = promote_inexact("factorial", n)
    return jnp.where(n < 0, 0, lax.exp(lax.lgamma(n + 1)))


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Compute the number of sets of `k` elements that can be chosen of `N`.

    - `N`, `k`: real arrays that broadcast together
    - `repetition`: whether elements may be chosen repeatedly

    The result has the arguments' common shape and a floating-point dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.comb`.

    >>> jax.scipy.special.comb(5, 2).shape
    ()
    """
    return _comb(N, k, repetition=bool(repetition))


@library(static=("repetition",))
def _comb(N, k, *, repetition):
    enough = None if repetition else jnp.less_equal(k, N)  # of integers that are no floats
    N, k = _broadcast("comb", N, k)
    if repetition:
        N = N + k - 1
        enough = k <= N
    possible = enough & (N >= 0) & (k >= 0)
    n, m = jnp.where(possible, N, 1), jnp.where(possible, k, 0)
    count = lax.exp(lax.lgamma(n + 1) - lax.lgamma(m + 1) - lax.lgamma(n - m + 1))
    return jnp.where(possible, count, 0)


@custom_jvp
@library(whole=True)
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Compute the Pochhammer symbol `gamma(z + m) / gamma(z)`.

    - `z`, `m`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.poch`.

    >>> jax.scipy.special.poch(2.0, 0.0)
    Array(1., dtype=float32)
    """
    z, m = _reals("poch", z, m)
    top, bottom = gamma(z + m), gamma(z)
    by_logarithms = gammasgn(z + m) * gammasgn(z) * lax.exp(lax.lgamma(z + m) - lax.lgamma(z))
    ratio = jnp.where(jnp.isinf(top) | jnp.isinf(bottom), by_logarithms, top / bottom)
    return jnp.where(m == 0, np.asarray(1, z.dtype), ratio)


@poch.defjvp
def _(primals, tangents):
    (z, m), (z_dot, m_dot) = primals, tangents
    out = poch(z, m)
    top = digamma(z + m)
    return out, (out * ((top - digamma(z)) * z_dot + top * m_dot)).astype(out.dtype)
