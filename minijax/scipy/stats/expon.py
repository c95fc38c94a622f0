"""The exponential distribution. Source: scipy.stats.expon."""

import math

from minijax import numpy as jnp
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_SUPPORT = (0, 1, math.inf)


@located("log density", support=_SUPPORT)
def logpdf(z):
    """The logarithm of the density."""
    return -z


@located("probability", support=_SUPPORT)
def cdf(z):
    """The distribution function."""
    return -jnp.expm1(-z)


@located("probability", support=_SUPPORT)
def logcdf(z):
    """The logarithm of the distribution function."""
    is_small = z < 0.7  # about log(2)
    small, large = jnp.where(is_small, z, 0.7), jnp.where(is_small, 0.7, z)
    return jnp.where(is_small, jnp.log(-jnp.expm1(-small)), jnp.log1p(-jnp.exp(-large)))


@located("probability", support=_SUPPORT)
def sf(z):
    """The survival function."""
    return jnp.exp(-z)


@located("probability", support=_SUPPORT)
def logsf(z):
    """The logarithm of the survival function."""
    return 0 - z


@located("quantile", argument="q", support=(0, 0.5, 1))
def ppf(q):
    """The inverse of the distribution function."""
    return 0 - jnp.log1p(-q)


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
