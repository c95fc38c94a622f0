"""The truncated normal distribution. Source: scipy.stats.truncnorm."""

from functools import partial

import numpy as np

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats import norm
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_difference(x, y):
    """log(exp(x) - exp(y)), for x >= y."""
    gap = jnp.where(y == -np.inf, -np.inf, y - x)  # both may be
    return x + jnp.log1p(-jnp.exp(gap))


def _log_mass(a, b):
    """The logarithm of the normal mass between a and b, taken where it is small."""
    log_ndtr = _log_ndtr
    left = _log_difference(log_ndtr(b), log_ndtr(a))
    right = _log_difference(log_ndtr(-a), log_ndtr(-b))
    outside = special.ndtr(a) + special.ndtr(-b)
    middle = jnp.where(outside < 0.125, jnp.log1p(-outside), jnp.log(1 - outside))
    return jnp.where(outside < 0.75, middle, jnp.where(a > 0, right, left))


def _log_ndtr(z):
    """The logarithm of the normal mass below z, with no derivative where there is none."""
    is_end = z == -np.inf
    return jnp.where(is_end, -np.inf, special.log_ndtr(jnp.where(is_end, 0, z)))


def _log_shares(z, a, b):
    """The logarithms of the shares of the mass below and above z."""
    whole = _log_mass(a, b)
    low, high = _log_mass(a, z) - whole, _log_mass(z, b) - whole
    # Near 0 a difference of logarithms is rounded: there it follows from the other one.
    below = jnp.where(high < -2, jnp.log1p(-jnp.exp(high)), low)
    above = jnp.where(low < -2, jnp.log1p(-jnp.exp(low)), high)
    return below, above


def _support(a, b):
    least = jnp.where(a == -np.inf, jnp.minimum(b, 0) - 1, a)
    most = jnp.where(b == np.inf, jnp.maximum(a, 0) + 1, b)
    return a, (least + most) / 2, b


_density, _probability = (
    partial(located, kind, "a b", support=_support, ends=ends, valid=lambda a, b: a < b)
    for kind, ends in (("log density", True), ("probability", False))
)


@_density()
def logpdf(z, a, b):
    """The logarithm of the density."""
    return norm.logpdf(z) - _log_mass(a, b)


@_probability()
def logcdf(z, a, b):
    """The logarithm of the distribution function."""
    return _log_shares(z, a, b)[0]


@_probability()
def logsf(z, a, b):
    """The logarithm of the survival function."""
    return _log_shares(z, a, b)[1]


pdf = exponential(logpdf, "The density.")
cdf = exponential(logcdf, "The distribution function.")
sf = exponential(logsf, "The survival function.")

__dir__ = public(__name__)
