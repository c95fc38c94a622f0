"""The Poisson distribution. Source: scipy.stats.poisson."""

from __future__ import annotations

import numpy as np

from minijax import dtypes
from minijax import numpy as jnp
from minijax.features.library import library
from minijax.numpy.promotion import promote_inexact
from minijax.scipy import special
from minijax.scipy.stats.making import discrete, exponential
from minijax.scipy.stats.saddle_point import exactly, poisson
from minijax.tracebacks import public
from minijax.typing import Array, ArrayLike

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


@discrete("mu")
def logpmf(k, mu):
    """The logarithm of the probability mass function."""
    whole = k == jnp.floor(k)
    ways = special.gammaln(k + 1)
    ways = jnp.where(k == 0, exactly(0.0, ways), ways)  # lgamma(1) is rounded
    out = special.xlogy(k, mu) - ways - mu
    near = (
        (k >= 16) & (k < np.inf) & (mu > k / 8) & (mu < 8 * k)
    )  # all but small differences cancel
    out = jnp.where(near, poisson(jnp.where(near, k, 1), jnp.where(near, mu, 1)), out)
    return jnp.where((k >= 0) & whole, out, -np.inf)


@discrete("mu")
def cdf(k, mu):
    """The distribution function."""
    out = special.gammaincc(jnp.floor(k) + 1, mu)
    return jnp.where(k < 0, 0, jnp.where((k == np.inf) & (mu >= 0), 1, out))


pmf = exponential(logpmf, "The probability mass function.")


@library(whole=True)
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Compute the entropy of the Poisson distribution, by its sum or, for large `mu`, expansion.

    - `mu`: means
    - `loc`: the distribution's shift, which does not matter

    Both broadcast together; the result has their shape and a floating-point dtype. TypeError for
    what is not an array or number.
    Source: SciPy's `stats.poisson.entropy`; Evans and Boersma (1988).

    >>> jax.scipy.stats.poisson.entropy(jnp.array([1.0, 2.0])).shape
    (2,)
    """
    mu, loc = promote_inexact("poisson.entropy", mu, loc)
    dtype = mu.dtype
    if dtype.kind == "c":
        raise TypeError(f"poisson.entropy takes real arguments; got dtype {dtype.name}.")
    mu = mu.astype(np.float32 if dtypes.bit_width(dtype) < 32 else dtype)
    is_large = mu >= _LARGE
    small = jnp.where(is_large | ~(mu > 0), 1, mu)[..., None]
    k = np.arange(_TERMS, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(k[1:], 1)))])
    k, logs = k.astype(mu.dtype), logs.astype(mu.dtype)
    log_p = k * jnp.log(small) - small - logs
    total = -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)
    large = jnp.where(is_large, mu, _LARGE)
    rest = jnp.polyval(np.asarray(_EXPANSION[::-1], mu.dtype), 1 / large, unroll=8)
    out = jnp.where(is_large, 0.5 * jnp.log(2 * np.pi * np.e * large) + rest / large, total)
    out = jnp.where(mu == 0, 0, out)
    return (jnp.where(mu >= 0, out, np.nan) + 0 * loc).astype(dtype)


_LARGE, _TERMS = 60, 140
_EXPANSION = (-1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520, -1375 / 1008, -33953 / 5040)

__dir__ = public(__name__)
