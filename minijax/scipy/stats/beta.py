"""The beta distribution. Source: scipy.stats.beta."""

from functools import partial

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


_density, _probability = (
    partial(
        located, kind, "a b", support=(0, 0.5, 1), ends=ends, valid=lambda a, b: (a > 0) & (b > 0)
    )
    for kind, ends in (("log density", True), ("probability", False))
)


@_density()
def logpdf(z, a, b):
    """The logarithm of the density."""
    return special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)


@_probability()
def cdf(z, a, b):
    """The distribution function."""
    return special.betainc(a, b, z)


@_probability()
def logcdf(z, a, b):
    """The logarithm of the distribution function."""
    return jnp.log(special.betainc(a, b, z))


@_probability()
def sf(z, a, b):
    """The survival function."""
    return _upper(z, a, b)


@_probability()
def logsf(z, a, b):
    """The logarithm of the survival function."""
    return jnp.log(_upper(z, a, b))


def _upper(z, a, b):
    """One less the distribution function: from below where 1 - z is rounded to 1."""
    rest = 1 - z
    below = rest == 1
    first, second = jnp.where(below, a, b), jnp.where(below, b, a)
    out = special.betainc(first, second, jnp.where(below, z, rest))
    return jnp.where(below, 1 - out, out)


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
