"""The chi-squared distribution. Source: scipy.stats.chi2."""

import math

import numpy as np

from minijax import numpy as jnp
from minijax.namespace import shown
from minijax.scipy import special
from minijax.scipy.stats.gamma import probability
from minijax.scipy.stats.making import exponential, located

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@located("log density", "df")
def logpdf(z, df):
    """The logarithm of the density."""
    half = df / 2
    safe = jnp.where(z < 0, 1, z)
    out = special.xlogy(half - 1, safe) - safe / 2 - special.gammaln(half) - half * math.log(2)
    return jnp.where(z < 0, -np.inf, out)


@located("probability", "df")
def cdf(z, df):
    """The distribution function."""
    return probability(z / 2, df / 2, df > 0, above=False)


@located("probability", "df")
def logcdf(z, df):
    """The logarithm of the distribution function."""
    return jnp.log(probability(z / 2, df / 2, df > 0, above=False))


@located("probability", "df")
def sf(z, df):
    """The survival function."""
    return probability(z / 2, df / 2, df > 0, above=True)


@located("probability", "df")
def logsf(z, df):
    """The logarithm of the survival function."""
    return jnp.log(probability(z / 2, df / 2, df > 0, above=True))


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
