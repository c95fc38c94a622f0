"""The uniform distribution on [loc, loc + scale]. Source: scipy.stats.uniform."""

from minijax import numpy as jnp
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "logpdf", "pdf", "ppf"]

_SUPPORT = (0, 0.5, 1)


@located("log density", support=_SUPPORT)
def logpdf(z):
    """The logarithm of the density."""
    return -jnp.zeros_like(z)


@located("probability", support=_SUPPORT)
def cdf(z):
    """The distribution function."""
    return z.astype(z.dtype)  # of no weak type


@located("quantile", argument="q", support=_SUPPORT)
def ppf(q):
    """The inverse of the distribution function."""
    return q


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
