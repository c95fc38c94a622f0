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
    safe = jnp.where(z < 0, 1, z)
    out = special.xlogy(a - 1, safe) - safe - special.gammaln(a)
    return jnp.where(z < 0, -np.inf, out)


def probability(z, a, valid, *, above):
    """The distribution function, or the survival function; NaN where the shape is not valid."""
    out = (special.gammaincc if above else special.gammainc)(a, jnp.clip(z, 0))
    out = jnp.where(z == np.inf, 0 if above else 1, out)
    return jnp.where(valid, out, np.nan)


@located("probability", "a")
def cdf(z, a):
    """The distribution function."""
    return probability(z, a, a > 0, above=False)


@located("probability", "a")
def logcdf(z, a):
    """The logarithm of the distribution function."""
    return jnp.log(probability(z, a, a > 0, above=False))


@located("probability", "a")
def sf(z, a):
    """The survival function."""
    return probability(z, a, a > 0, above=True)


@located("probability", "a")
def logsf(z, a):
    """The logarithm of the survival function."""
    return jnp.log(probability(z, a, a > 0, above=True))


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
