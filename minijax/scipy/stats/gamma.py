"""The gamma distribution. Source: scipy.stats.gamma."""

import numpy as np

from minijax import numpy as jnp
from minijax.namespace import shown
from minijax.scipy import special
from minijax.scipy.stats.making import exponential, located

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@located("log density", "a")
def logpdf(z, a):
    """The logarithm of the density."""
    safe = jnp.where(z >= 0, z, 1)
    out = special.xlogy(a - 1, safe) - safe - special.gammaln(a)
    return jnp.where(z < 0, -np.inf, out)


def _shape(a):
    return jnp.where(a > 0, a, np.nan)


@located("probability", "a")
def cdf(z, a):
    """The distribution function."""
    return special.gammainc(_shape(a), jnp.clip(z, 0))


@located("probability", "a")
def logcdf(z, a):
    """The logarithm of the distribution function."""
    return jnp.log(special.gammainc(_shape(a), jnp.clip(z, 0)))


@located("probability", "a")
def sf(z, a):
    """The survival function."""
    return special.gammaincc(_shape(a), jnp.clip(z, 0))


@located("probability", "a")
def logsf(z, a):
    """The logarithm of the survival function."""
    return jnp.log(special.gammaincc(_shape(a), jnp.clip(z, 0)))


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
