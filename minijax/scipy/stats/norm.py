"""The normal distribution. Source: scipy.stats.norm."""

import math

import numpy as np

from minijax import dtypes
from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import exponential, located
from minijax.tracebacks import public

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _need_float(q):
    if dtypes.dtype(q) not in (np.float32, np.float64):
        raise TypeError(
            f"x.dtype={dtypes.dtype(q)} is not supported, see docstring for supported types: "
            "give probabilities of float32 or float64."
        )


@located("log density")
def logpdf(z):
    """The logarithm of the density."""
    return -(0.5 * (math.log(2 * math.pi) + jnp.square(z)))


@located("probability")
def cdf(z):
    """The distribution function."""
    return special.ndtr(z)


@located("probability")
def logcdf(z):
    """The logarithm of the distribution function."""
    return special.log_ndtr(z)


@located("probability")
def sf(z):
    """The survival function."""
    return special.ndtr(-z)


@located("probability")
def logsf(z):
    """The logarithm of the survival function."""
    return special.log_ndtr(-z)


@located("quantile", argument="q", check=_need_float)
def ppf(q):
    """The inverse of the distribution function."""
    return _wide(special.ndtri(q))


@located("quantile", argument="q", check=_need_float)
def isf(q):
    """The inverse of the survival function."""
    return _wide(0 - special.ndtri(q))


def _wide(z):
    """Quantiles in the default floating dtype, which upstream gives them whatever the argument's."""
    return z.astype(dtypes.canonicalize_dtype(np.float64))


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
