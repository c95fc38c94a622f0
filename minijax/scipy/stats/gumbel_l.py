"""The left-skewed Gumbel distribution. Source: scipy.stats.gumbel_l."""

import numpy as np

from minijax import numpy as jnp
from minijax.nn import log1mexp
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@located("log density")
def logpdf(z):
    """The logarithm of the density."""
    return z - jnp.exp(z)


@located("probability")
def logsf(z):
    """The logarithm of the survival function."""
    return -jnp.exp(z)


@located("probability")
def sf(z):
    """The survival function."""
    return jnp.exp(-jnp.exp(z))


@located("probability")
def logcdf(z):
    """The logarithm of the distribution function."""
    return jnp.where(z == np.inf, 0, log1mexp(jnp.exp(z)))  # positive, as the logarithm of 1


@located("probability")
def cdf(z):
    """The distribution function."""
    return -jnp.expm1(-jnp.exp(z))


@located("quantile", argument="p")
def ppf(p):
    """The inverse of the distribution function."""
    return jnp.log(-jnp.log1p(-p))


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
