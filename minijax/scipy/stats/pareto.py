"""The Pareto distribution. Source: scipy.stats.pareto."""

import math

from minijax import numpy as jnp
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_SUPPORT = (1, 2, math.inf)


@located("log density", "b", support=_SUPPORT, valid=lambda b: b > 0)
def logpdf(z, b):
    """The logarithm of the density."""
    return jnp.log(b) - (b + 1) * jnp.log(z)


@located("probability", "b", support=_SUPPORT)
def logsf(z, b):
    """The logarithm of the survival function."""
    return -b * jnp.log(z)


@located("probability", "b", support=_SUPPORT, valid=lambda b: b > 0)
def sf(z, b):
    """The survival function."""
    return z ** (-b)


@located("probability", "b", support=_SUPPORT)
def cdf(z, b):
    """The distribution function."""
    return 1 - z ** (-b)


@located("probability", "b", support=_SUPPORT)
def logcdf(z, b):
    """The logarithm of the distribution function."""
    return jnp.log1p(-(z ** (-b)))


@located("quantile", "b", argument="q", support=(0, 0.5, 1))
def ppf(q, b):
    """The inverse of the distribution function."""
    return (1 - q) ** (-1 / b)


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
