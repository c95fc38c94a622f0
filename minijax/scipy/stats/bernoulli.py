"""The distribution of one trial that succeeds with probability p. Source: scipy.stats.bernoulli."""

import numpy as np

from minijax import numpy as jnp
from minijax.numpy.promotion import converted, promote_inexact
from minijax.scipy import special
from minijax.scipy.stats.making import discrete, exponential
from minijax.transforms.library import library

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


@discrete("p")
def logpmf(k, p):
    """The logarithm of the probability of k."""
    out = special.xlogy(k, p) + special.xlog1py(1 - k, -p)
    return jnp.where((k == 0) | (k == 1), out, -np.inf)


@library
def cdf(k, p):
    """The distribution function; nan unless p is a probability."""
    k, p = promote_inexact("bernoulli.cdf", k, p)
    out = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(jnp.isnan(k) | jnp.isnan(p) | (p < 0) | (p > 1), np.nan, out)


@library
def ppf(q, p):
    """The inverse of the distribution function."""
    q, p = promote_inexact("bernoulli.ppf", q, p)
    bad = jnp.isnan(q) | jnp.isnan(p) | (p < 0) | (p > 1) | (q < 0) | (q > 1)
    out = jnp.where(bad, np.nan, jnp.where(q <= 1 - p, 0, 1))
    return converted(out, q.dtype, q.aval.weak_type)


pmf = exponential(logpmf, "The probability of k.")
