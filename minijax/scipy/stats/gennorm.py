"""The generalized normal distribution. Source: scipy.stats.gennorm."""

from minijax import numpy as jnp
from minijax.numpy.promotion import promote_inexact
from minijax.scipy import special
from minijax.scipy.stats.making import exponential
from minijax.transforms.library import library

__all__ = ["cdf", "logpdf", "pdf"]


@library
def logpdf(x, beta):
    """The logarithm of the density, with respect to x."""
    x, beta = promote_inexact("gennorm.logpdf", x, beta)
    return jnp.log(0.5 * beta) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


@library
def cdf(x, beta):
    """The distribution function."""
    x, beta = promote_inexact("gennorm.cdf", x, beta)
    return 0.5 * (1 + jnp.sign(x) * special.gammainc(1 / beta, jnp.abs(x) ** beta))


pdf = exponential(logpdf, "The density.")
