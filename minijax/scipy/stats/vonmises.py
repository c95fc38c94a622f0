"""The von Mises distribution on the circle. Source: scipy.stats.vonmises."""

import numpy as np

from minijax import numpy as jnp
from minijax.numpy.promotion import promote_inexact
from minijax.scipy import special
from minijax.scipy.stats.making import exponential
from minijax.transforms.library import library

__all__ = ["logpdf", "pdf"]


@library
def logpdf(x, kappa):
    """The logarithm of the density; nan for negative kappa."""
    x, kappa = promote_inexact("vonmises.logpdf", x, kappa)
    out = kappa * (jnp.cos(x) - 1) - jnp.log(2 * np.pi * special.i0e(kappa))
    return jnp.where(kappa >= 0, out, np.nan)


pdf = exponential(logpdf, "The density.")
