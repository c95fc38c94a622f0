"""The negative binomial distribution. Source: scipy.stats.nbinom."""

import numpy as np

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import discrete, exponential
from minijax.tracebacks import public

__all__ = ["logpmf", "pmf"]


@discrete("n p")
def logpmf(k, n, p):
    """The logarithm of the probability mass function."""
    ways = special.gammaln(k + n) - special.gammaln(n) - special.gammaln(k + 1)
    out = ways + special.xlogy(n, p) + special.xlog1py(k, -p)
    return jnp.where(k < 0, -np.inf, out)


pmf = exponential(logpmf, "The probability mass function.")

__dir__ = public(__name__)
