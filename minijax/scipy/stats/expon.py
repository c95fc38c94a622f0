"""The exponential distribution. Source: scipy.stats.expon."""

import numpy as np

from minijax import numpy as jnp
from minijax.namespace import shown
from minijax.scipy.stats.making import exponential, located

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@located("log density")
def logpdf(z):
    """The logarithm of the density."""
    return jnp.where(z < 0, -np.inf, -z)


@located("probability")
def cdf(z):
    """The distribution function."""
    return jnp.where(z < 0, 0, -jnp.expm1(-z))


@located("probability")
def logcdf(z):
    """The logarithm of the distribution function."""
    return jnp.where(z < 0, -np.inf, jnp.log1p(-jnp.exp(-z)))


@located("probability")
def sf(z):
    """The survival function."""
    return jnp.where(z < 0, 1, jnp.exp(-z))


@located("probability")
def logsf(z):
    """The logarithm of the survival function."""
    return jnp.where(z < 0, 0, 0 - z)


@located("quantile", argument="q")
def ppf(q):
    """The inverse of the distribution function."""
    return jnp.where(jnp.isnan(q) | (q < 0) | (q > 1), np.nan, 0 - jnp.log1p(-q))


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
