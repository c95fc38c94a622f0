"""The beta distribution. Source: scipy.stats.beta."""

import numpy as np

from minijax import numpy as jnp
from minijax.namespace import shown
from minijax.scipy import special
from minijax.scipy.stats.making import exponential, located

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@located("log density", "a b")
def logpdf(z, a, b):
    """The logarithm of the density."""
    out = special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)
    return jnp.where((z < 0) | (z > 1), -np.inf, out)


@located("probability", "a b")
def cdf(z, a, b):
    """The distribution function."""
    return special.betainc(a, b, jnp.clip(z, 0, 1))


@located("probability", "a b")
def logcdf(z, a, b):
    """The logarithm of the distribution function."""
    return jnp.log(special.betainc(a, b, jnp.clip(z, 0, 1)))


@located("probability", "a b")
def sf(z, a, b):
    """The survival function."""
    return special.betainc(b, a, 1 - jnp.clip(z, 0, 1))


@located("probability", "a b")
def logsf(z, a, b):
    """The logarithm of the survival function."""
    return jnp.log(special.betainc(b, a, 1 - jnp.clip(z, 0, 1)))


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
