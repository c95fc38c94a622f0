"""The Laplace distribution. Source: scipy.stats.laplace."""

import math

from minijax import numpy as jnp
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "logpdf", "pdf"]


@located("log density")
def logpdf(z):
    """The logarithm of the density."""
    return -jnp.abs(z) - math.log(2)


@located("probability")
def cdf(z):
    """The distribution function."""
    return jnp.where(z <= 0, 0.5 * jnp.exp(z), 1 - 0.5 * jnp.exp(-z))


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
