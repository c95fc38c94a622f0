"""The Cauchy distribution. Source: scipy.stats.cauchy."""

import math

import numpy as np

from minijax import numpy as jnp
from minijax.namespace import shown
from minijax.scipy.stats.making import exponential, located

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@located("log density")
def logpdf(z):
    """The logarithm of the density."""
    return -math.log(math.pi) - jnp.log1p(z * z)


@located("probability")
def cdf(z):
    """The distribution function."""
    return 0.5 + jnp.arctan(z) / np.pi


@located("probability")
def sf(z):
    """The survival function."""
    return 0.5 - jnp.arctan(z) / np.pi


@located("probability")
def logcdf(z):
    """The logarithm of the distribution function."""
    return jnp.log(0.5 + jnp.arctan(z) / np.pi)


@located("probability")
def logsf(z):
    """The logarithm of the survival function."""
    return jnp.log(0.5 - jnp.arctan(z) / np.pi)


@located("quantile", argument="q")
def ppf(q):
    """The inverse of the distribution function."""
    return jnp.tan(np.pi * (q - 0.5))


@located("quantile", argument="q")
def isf(q):
    """The inverse of the survival function."""
    return jnp.tan(np.pi * (0.5 - q))


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
