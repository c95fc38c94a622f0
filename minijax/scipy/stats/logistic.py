"""The logistic distribution. Source: scipy.stats.logistic."""

from minijax import lax
from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@located("log density")
def logpdf(z):
    """The logarithm of the density."""
    return -(2 * jnp.logaddexp(z / 2, -z / 2))


@located("probability")
def cdf(z):
    """The distribution function."""
    return lax.logistic(z)


@located("probability")
def sf(z):
    """The survival function."""
    return lax.logistic(-z)


@located("quantile")
def ppf(x):
    """The inverse of the distribution function."""
    return special.logit(x)


@located("quantile")
def isf(x):
    """The inverse of the survival function."""
    return -special.logit(x)


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
