"""The Cauchy distribution. Source: scipy.stats.cauchy."""

import math

import numpy as np

from minijax import numpy as jnp
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _below(z):
    """The mass below z: 1/2 and an angle, which cancel in the tail, where it is -1 / (pi z)."""
    if z.dtype.kind == "c":
        return 0.5 + jnp.arctan(z) / np.pi
    return jnp.arctan2(1, -z) / np.pi


def _log_below(z):
    """The logarithm of the mass below z."""
    if z.dtype.kind == "c":
        return jnp.log(_below(z))
    # Each argument is harmless where it is not the one that counts: selected, as a maximum would
    # halve the derivative at its tie.
    bound = -1 / float(jnp.finfo(z.dtype).eps)
    tail = -jnp.log(-jnp.where(z < bound, z, bound)) - math.log(math.pi)
    middle = jnp.where((z >= bound) & (z < 0), z, bound)
    left = jnp.where(z < bound, tail, jnp.log(_below(middle)))
    right = jnp.where(z == np.inf, 0, jnp.log1p(-_below(-jnp.where(z < 0, 0, z))))
    return jnp.where(z < 0, left, right)


def _quantile(q, offset):
    """tan(pi offset), which is that of q from 1/2; in the tails by the distance from 0 or 1, not rounded."""
    middle = jnp.tan(np.pi * offset)
    if q.dtype.kind == "c":
        return middle
    rest = jnp.abs(jnp.where(q < 0.5, q, 1 - q))
    tail = jnp.sign(offset) / jnp.tan(np.pi * rest)
    return jnp.where((rest < 0.25) & (q >= 0) & (q <= 1), tail, middle)


@located("log density")
def logpdf(z):
    """The logarithm of the density."""
    return -math.log(math.pi) - jnp.log1p(z * z)


@located("probability")
def cdf(z):
    """The distribution function."""
    return _below(z)


@located("probability")
def sf(z):
    """The survival function."""
    return _below(-z)


@located("probability")
def logcdf(z):
    """The logarithm of the distribution function."""
    return _log_below(z)


@located("probability")
def logsf(z):
    """The logarithm of the survival function."""
    return _log_below(-z)


@located("quantile", argument="q")
def ppf(q):
    """The inverse of the distribution function."""
    return _quantile(q, q - 0.5)


@located("quantile", argument="q")
def isf(q):
    """The inverse of the survival function."""
    return _quantile(q, 0.5 - q)


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
