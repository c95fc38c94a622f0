"""The beta-binomial distribution. Source: scipy.stats.betabinom."""

import numpy as np

from minijax import numpy as jnp
from minijax.namespace import shown
from minijax.scipy import special
from minijax.scipy.stats.making import discrete, exponential

__all__ = ["logpmf", "pmf"]


@discrete("n a b")
def logpmf(k, n, a, b):
    """The logarithm of the probability mass function."""
    k = jnp.floor(k)
    ways = -jnp.log(n + 1) - special.betaln(n - k + 1, k + 1)
    ways = jnp.where((k == 0) & (n == 0), 0, ways)  # lgamma(1) is rounded
    out = ways + special.betaln(k + a, n - k + b) - special.betaln(a, b)
    out = jnp.where((k >= 0) & (k <= n), out, -np.inf)
    return jnp.where((n >= 0) & (a > 0) & (b > 0) & ~jnp.isnan(k), out, np.nan)


pmf = exponential(logpmf, "The probability mass function.")

__dir__ = shown(__name__)
