"""The gamma distribution. Source: scipy.stats.gamma."""

import math
from functools import partial

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


_SUPPORT = (0, 1, math.inf)
_probability = partial(
    located, "probability", "a", support=_SUPPORT, ends=False, valid=lambda a: a > 0
)


@located("log density", "a", support=_SUPPORT)
def logpdf(z, a):
    """The logarithm of the density."""
    return special.xlogy(a - 1, z) - z - special.gammaln(a)


@_probability()
def cdf(z, a):
    """The distribution function."""
    return special.gammainc(a, z)


@_probability()
def logcdf(z, a):
    """The logarithm of the distribution function."""
    return jnp.log(special.gammainc(a, z))


@_probability()
def sf(z, a):
    """The survival function."""
    return special.gammaincc(a, z)


@_probability()
def logsf(z, a):
    """The logarithm of the survival function."""
    return jnp.log(special.gammaincc(a, z))


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
