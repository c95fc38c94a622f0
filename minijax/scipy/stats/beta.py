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
    out = jnp.where((z < 0) | (z > 1), -np.inf, out)
    return jnp.where((a > 0) & (b > 0), out, np.nan)


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
    return _upper(z, a, b)


@located("probability", "a b")
def logsf(z, a, b):
    """The logarithm of the survival function."""
    return jnp.log(_upper(z, a, b))


def _upper(z, a, b):
    """One less the distribution function: from below where 1 - z is rounded to 1."""
    z = jnp.clip(z, 0, 1)
    rest = 1 - z
    below = rest == 1
    first, second = jnp.where(below, a, b), jnp.where(below, b, a)
    out = special.betainc(first, second, jnp.where(below, z, rest))
    return jnp.where(below, 1 - out, out)


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
