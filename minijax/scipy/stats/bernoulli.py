"""The Bernoulli distribution. Source: scipy.stats.bernoulli."""

from __future__ import annotations

import numpy as np

from minijax import numpy as jnp
from minijax.core.avals import get_aval
from minijax.features.library import library
from minijax.numpy.promotion import converted
from minijax.scipy import special
from minijax.scipy.stats.making import discrete, exponential, real_arguments, settled
from minijax.tracebacks import public
from minijax.typing import Array, ArrayLike

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


@discrete("p")
def logpmf(k, p):
    """The logarithm of the probability mass function."""
    out = special.xlogy(k, p) + special.xlog1py(1 - k, -p)
    out = jnp.where((k == 0) | (k == 1), out, -np.inf)
    return jnp.where((p >= 0) & (p <= 1) & ~jnp.isnan(k), out, np.nan)


@library
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """Compute the distribution function of the Bernoulli distribution; NaN unless `p` is in [0, 1].

    - `k`: real array
    - `p`: probability of success

    Both broadcast together; the result has their shape and a floating-point dtype. TypeError for
    what is not an array or number.
    Source: SciPy's `stats.bernoulli.cdf`.

    >>> jax.scipy.stats.bernoulli.cdf(jnp.array([-1.0, 0.0, 1.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    k, p = real_arguments("bernoulli.cdf", k, p)
    out = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    out = jnp.where(jnp.isnan(k) | jnp.isnan(p) | (p < 0) | (p > 1), np.nan, out)
    return settled("bernoulli.cdf", out, k)


@library
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """Compute the inverse of the distribution function of the Bernoulli distribution.

    - `q`: real array of probabilities
    - `p`: probability of success

    Both broadcast together; the result has their shape and a floating-point dtype. TypeError for
    what is not an array or number.
    Source: SciPy's `stats.bernoulli.ppf`.

    >>> jax.scipy.stats.bernoulli.ppf(jnp.array([0.25, 0.75]), 0.5)
    Array([0., 1.], dtype=float32)
    """
    q, p = real_arguments("bernoulli.ppf", q, p)
    bad = jnp.isnan(q) | jnp.isnan(p) | (p < 0) | (p > 1) | (q < 0) | (q > 1)
    out = jnp.where(bad, np.nan, jnp.where(q <= 1 - p, 0, 1))
    out = converted(out, get_aval(q).dtype, get_aval(q).weak_type and get_aval(p).weak_type)
    return settled("bernoulli.ppf", out, q)


pmf = exponential(logpmf, "The probability mass function.")

__dir__ = public(__name__)
