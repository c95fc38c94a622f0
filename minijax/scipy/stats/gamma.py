"""The gamma distribution. Source: scipy.stats.gamma."""

import numpy as np

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import exponential, located

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@located("log density", "a")
def logpdf(z, a):
    """The logarithm of the density."""
    safe = jnp.where(z >= 0, z, 1)
    out = special.xlogy(a - 1, safe) - safe - special.gammaln(a)
    return jnp.where(z < 0, -np.inf, out)


@located("probability", "a")
def cdf(z, a):
    """The distribution function."""
    return special.gammainc(a, jnp.clip(z, 0))


@located("probability", "a")
def logcdf(z, a):
    """The logarithm of the distribution function."""
    return jnp.log(special.gammainc(a, jnp.clip(z, 0)))


@located("probability", "a")
def sf(z, a):
    """1 - cdf."""
    return special.gammaincc(a, jnp.clip(z, 0))


@located("probability", "a")
def logsf(z, a):
    """The logarithm of 1 - cdf."""
    return jnp.log(special.gammaincc(a, jnp.clip(z, 0)))


pdf = exponential(logpdf, "The density.")
