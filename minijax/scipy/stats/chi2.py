"""The chi-squared distribution. Source: scipy.stats.chi2."""

import math

import numpy as np

from minijax import numpy as jnp
from minijax.namespace import shown
from minijax.scipy import special
from minijax.scipy.stats.making import exponential, located

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@located("log density", "df")
def logpdf(z, df):
    """The logarithm of the density."""
    half = df / 2
    safe = jnp.where(z >= 0, z, 1)
    out = special.xlogy(half - 1, safe) - safe / 2 - special.gammaln(half) - half * math.log(2)
    return jnp.where(z < 0, -np.inf, out)


@located("probability", "df")
def cdf(z, df):
    """The distribution function."""
    return special.gammainc(jnp.where(df > 0, df, np.nan) / 2, jnp.clip(z, 0) / 2)


@located("probability", "df")
def logcdf(z, df):
    """The logarithm of the distribution function."""
    return jnp.log(special.gammainc(jnp.where(df > 0, df, np.nan) / 2, jnp.clip(z, 0) / 2))


@located("probability", "df")
def sf(z, df):
    """The survival function."""
    return special.gammaincc(df / 2, jnp.clip(z, 0) / 2)


@located("probability", "df")
def logsf(z, df):
    """The logarithm of the survival function."""
    return jnp.log(special.gammaincc(df / 2, jnp.clip(z, 0) / 2))


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
