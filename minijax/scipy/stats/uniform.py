"""The uniform distribution on [loc, loc + scale]. Source: scipy.stats.uniform."""

import numpy as np

from minijax import numpy as jnp
from minijax.namespace import shown
from minijax.scipy.stats.making import exponential, located

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@located("log density")
def logpdf(z):
    """The logarithm of the density."""
    return jnp.where((z < 0) | (z > 1), -np.inf, -jnp.zeros_like(z))


@located("probability")
def cdf(z):
    """The distribution function."""
    return jnp.clip(z, 0.0, 1.0).astype(z.dtype)  # of no weak type


@located("quantile", argument="q")
def ppf(q):
    """The inverse of the distribution function."""
    return jnp.where(jnp.isnan(q) | (q < 0) | (q > 1), np.nan, q)


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
