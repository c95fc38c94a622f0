"""The Pareto distribution. Source: scipy.stats.pareto."""

import numpy as np

from minijax import numpy as jnp
from minijax.namespace import shown
from minijax.scipy.stats.making import exponential, located

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@located("log density", "b")
def logpdf(z, b):
    """The logarithm of the density."""
    out = jnp.where(z < 1, -np.inf, jnp.log(b) - (b + 1) * jnp.log(z))
    return jnp.where(b > 0, out, np.nan)


@located("probability", "b")
def logsf(z, b):
    """The logarithm of the survival function."""
    return jnp.where(z < 1, 0, -b * jnp.log(z))


@located("probability", "b")
def sf(z, b):
    """The survival function."""
    return jnp.where(b > 0, jnp.where(z < 1, 1, z ** (-b)), np.nan)


@located("probability", "b")
def cdf(z, b):
    """The distribution function."""
    return jnp.where(z < 1, 0, 1 - z ** (-b))


@located("probability", "b")
def logcdf(z, b):
    """The logarithm of the distribution function."""
    return jnp.where(z < 1, -np.inf, jnp.log1p(-(z ** (-b))))


@located("quantile", "b", argument="q")
def ppf(q, b):
    """The inverse of the distribution function."""
    return jnp.where(jnp.isnan(q) | (q < 0) | (q > 1), np.nan, (1 - q) ** (-1 / b))


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
