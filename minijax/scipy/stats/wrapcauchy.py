"""The Cauchy distribution wrapped on the circle. Source: scipy.stats.wrapcauchy."""

import math

import numpy as np

from minijax import numpy as jnp
from minijax.numpy.promotion import promote_inexact
from minijax.scipy.stats.making import exponential
from minijax.transforms.library import library

__all__ = ["logpdf", "pdf"]


@library
def logpdf(x, c):
    """The logarithm of the density on [0, 2 pi]; nan unless 0 < c < 1."""
    x, c = promote_inexact("wrapcauchy.logpdf", x, c)
    out = jnp.log1p(-c * c) - math.log(2 * math.pi) - jnp.log(1 + c * c - 2 * c * jnp.cos(x))
    out = jnp.where((x >= 0) & (x <= 2 * np.pi), out, -np.inf)
    return jnp.where((c > 0) & (c < 1), out, np.nan)


pdf = exponential(logpdf, "The density.")
