"""The truncated normal distribution. Source: scipy.stats.truncnorm."""

import numpy as np

from minijax import numpy as jnp
from minijax.namespace import shown
from minijax.scipy import special
from minijax.scipy.stats import norm
from minijax.scipy.stats.making import exponential, located

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_difference(x, y):
    """log(exp(x) - exp(y)), for x >= y."""
    gap = jnp.where(y == -np.inf, -np.inf, y - x)  # both may be
    return x + jnp.log1p(-jnp.exp(gap))


def _log_mass(a, b):
    """The logarithm of the normal mass between a and b, taken where it is small."""
    log_ndtr = special.log_ndtr
    left = _log_difference(log_ndtr(b), log_ndtr(a))
    right = _log_difference(log_ndtr(-a), log_ndtr(-b))
    return jnp.where(a > 0, right, left)


@located("log density", "a b")
def logpdf(z, a, b):
    """The logarithm of the density."""
    out = norm.logpdf(z) - _log_mass(a, b)
    out = jnp.where((z < a) | (z > b), -np.inf, out)
    return jnp.where(a >= b, np.nan, out)


@located("probability", "a b")
def logcdf(z, a, b):
    """The logarithm of the distribution function."""
    low = _log_mass(a, jnp.clip(z, a, b)) - _log_mass(a, b)
    out = jnp.where(z <= a, -np.inf, jnp.where(z >= b, 0, low))
    return jnp.where(a >= b, np.nan, out)


@located("probability", "a b")
def logsf(z, a, b):
    """The logarithm of the survival function."""
    high = _log_mass(jnp.clip(z, a, b), b) - _log_mass(a, b)
    out = jnp.where(z <= a, 0, jnp.where(z >= b, -np.inf, high))
    return jnp.where(a >= b, np.nan, out)


pdf = exponential(logpdf, "The density.")
cdf = exponential(logcdf, "The distribution function.")
sf = exponential(logsf, "The survival function.")

__dir__ = shown(__name__)
