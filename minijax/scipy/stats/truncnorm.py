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
    outside = special.ndtr(a) + special.ndtr(-b)
    middle = jnp.where(outside < 0.125, jnp.log1p(-outside), jnp.log(1 - outside))
    return jnp.where(outside < 0.75, middle, jnp.where(a > 0, right, left))


def _log_shares(z, a, b):
    """The logarithms of the shares of the mass below and above z."""
    z = jnp.clip(z, a, b)
    whole = _log_mass(a, b)
    low, high = _log_mass(a, z) - whole, _log_mass(z, b) - whole
    # Near 0 a difference of logarithms is rounded: there it follows from the other one.
    below = jnp.where(high < -2, jnp.log1p(-jnp.exp(high)), low)
    above = jnp.where(low < -2, jnp.log1p(-jnp.exp(low)), high)
    return below, above


@located("log density", "a b")
def logpdf(z, a, b):
    """The logarithm of the density."""
    out = norm.logpdf(z) - _log_mass(a, b)
    out = jnp.where((z < a) | (z > b), -np.inf, out)
    return jnp.where(a >= b, np.nan, out)


@located("probability", "a b")
def logcdf(z, a, b):
    """The logarithm of the distribution function."""
    out = jnp.where(z <= a, -np.inf, jnp.where(z >= b, 0, _log_shares(z, a, b)[0]))
    return jnp.where(a >= b, np.nan, out)


@located("probability", "a b")
def logsf(z, a, b):
    """The logarithm of the survival function."""
    out = jnp.where(z <= a, 0, jnp.where(z >= b, -np.inf, _log_shares(z, a, b)[1]))
    return jnp.where(a >= b, np.nan, out)


pdf = exponential(logpdf, "The density.")
cdf = exponential(logcdf, "The distribution function.")
sf = exponential(logsf, "The survival function.")

__dir__ = shown(__name__)
