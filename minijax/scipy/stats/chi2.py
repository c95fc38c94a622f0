"""The chi-squared distribution. Source: scipy.stats.chi2."""

import math
from functools import partial

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


_SUPPORT = (0, 1, math.inf)
_probability = partial(
    located, "probability", "df", support=_SUPPORT, ends=False, valid=lambda df: df > 0
)


@located("log density", "df", support=_SUPPORT)
def logpdf(z, df):
    """The logarithm of the density."""
    half = df / 2
    return special.xlogy(half - 1, z) - z / 2 - special.gammaln(half) - half * math.log(2)


@_probability()
def cdf(z, df):
    """The distribution function."""
    return special.gammainc(df / 2, z / 2)


@_probability()
def logcdf(z, df):
    """The logarithm of the distribution function."""
    return jnp.log(special.gammainc(df / 2, z / 2))


@_probability()
def sf(z, df):
    """The survival function."""
    return special.gammaincc(df / 2, z / 2)


@_probability()
def logsf(z, df):
    """The logarithm of the survival function."""
    return jnp.log(special.gammaincc(df / 2, z / 2))


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
