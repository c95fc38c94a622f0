"""The binomial distribution. Source: scipy.stats.binom."""

import numpy as np

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import discrete, exponential
from minijax.scipy.stats.saddle_point import binomial, exactly
from minijax.tracebacks import public

__all__ = ["logpmf", "pmf"]


@discrete("n p")
def logpmf(k, n, p):
    """The logarithm of the probability mass function."""
    given, is_inside = k, (k >= 0) & (k <= n)
    k = jnp.where(is_inside, k, 0)  # where its derivatives are finite
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    many = -jnp.log1p(n) - special.betaln(n - k + 1, k + 1)  # where gammaln(n) may overflow
    ways = jnp.where(n > 1e4, many, ways)
    chance = special.xlogy(k, p) + special.xlog1py(n - k, -p)
    ways = jnp.where((k == 0) | (k == n), exactly(0.0, ways), ways)  # lgamma(1) is rounded
    out = jnp.where(chance == 0, 0, ways + chance)
    mean, other = n * p, n * (1 - p)
    near = (k >= 1) & (n - k >= 1) & (n < np.inf) & (mean > 1e-3 * k) & (other > 1e-3 * (n - k))
    inner = [jnp.where(near, x, other) for x, other in ((k, 1), (n, 2), (p, 0.5))]
    out = jnp.where(near, binomial(*inner, 1 - inner[2]), out)
    out = jnp.where(is_inside, out, -np.inf)
    return jnp.where((n >= 0) & (p >= 0) & (p <= 1) & ~jnp.isnan(given), out, np.nan)


pmf = exponential(logpmf, "The probability mass function.")

__dir__ = public(__name__)
