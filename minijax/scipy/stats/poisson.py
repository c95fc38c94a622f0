"""The Poisson distribution. Source: scipy.stats.poisson."""

import numpy as np

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import discrete, exponential

__all__ = ["cdf", "logpmf", "pmf"]


@discrete("mu")
def logpmf(k, mu):
    """The logarithm of the probability of k."""
    whole = k == jnp.floor(k)
    out = special.xlogy(k, mu) - special.gammaln(k + 1) - mu
    return jnp.where((k >= 0) & whole, out, -np.inf)


@discrete("mu")
def cdf(k, mu):
    """The distribution function."""
    out = special.gammaincc(jnp.floor(k) + 1, mu)
    return jnp.where(k < 0, 0, out)


pmf = exponential(logpmf, "The probability of k.")
