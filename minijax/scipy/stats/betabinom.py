"""The beta-binomial distribution. Source: scipy.stats.betabinom."""

import numpy as np

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import discrete, exponential
from minijax.scipy.stats.saddle_point import binomial, exactly, stirling_error
from minijax.tracebacks import public

__all__ = ["logpmf", "pmf"]


def _some(k, n, a, b):
    """The logarithm of the probability of some and not all, from the binomial one of their mean."""
    one, two, total = k + a, n - k + b, n + a + b
    apart = k * b - a * (n - k)  # from the mean, in units of a + b
    powers = a * _log_ratio(apart, a * total, (one / a) * ((a + b) / total))
    powers += b * _log_ratio(-apart, b * total, (two / b) * ((a + b) / total))
    root = 0.5 * jnp.log((total / (a + b)) * (a / one) * (b / two))
    errors = stirling_error(one) + stirling_error(two) - stirling_error(total)
    errors += stirling_error(a + b) - stirling_error(a) - stirling_error(b)
    return binomial(k, n, one / total, two / total) + powers + root + errors


def _log_ratio(more, base, ratio):
    """The logarithm of `1 + more / base`, which is `ratio` too."""
    # XLA's log1p of float64 loses 100 units of the last place where its argument is near -0.4.
    is_near = jnp.abs(more) < 0.25 * base
    return jnp.where(is_near, jnp.log1p(jnp.where(is_near, more / base, 0)), jnp.log(ratio))


def _none(n, a, b):
    """The logarithm of the probability of none: of `beta(a, n + b) / beta(a, b)`."""
    total = n + a + b
    part = a / total
    log_rest = jnp.where(part < 0.25, jnp.log1p(-part), jnp.log((n + b) / total))
    powers = (b - 0.5) * jnp.log1p(n * part / b) - a * jnp.log1p(n / (a + b))
    errors = stirling_error(n + b) - stirling_error(b) + stirling_error(a + b)
    return n * log_rest + powers + errors - stirling_error(total)


@discrete("n a b")
def logpmf(k, n, a, b):
    """The logarithm of the probability mass function."""
    k = jnp.floor(k)
    usual = (n > 0) & (n < np.inf) & (a > 1e-30) & (a < np.inf) & (b > 1e-30) & (b < np.inf)
    some = usual & (k >= 1) & (n - k >= 1)
    ends = usual & ((k == 0) | (k == n))
    ways = -jnp.log(n + 1) - special.betaln(n - k + 1, k + 1)
    out = ways + special.betaln(k + a, n - k + b) - special.betaln(a, b)
    out = jnp.where(n == 0, 0, out)
    inner = [jnp.where(some, x, other) for x, other in ((k, 1), (n, 2), (a, 1), (b, 1))]
    out = jnp.where(some, _some(*inner), out)
    first, last = jnp.where(k == 0, a, b), jnp.where(k == 0, b, a)
    none = _none(*[jnp.where(ends, x, 1) for x in (n, first, last)])
    out = jnp.where(ends, exactly(none, out), out)
    out = jnp.where((k >= 0) & (k <= n), out, -np.inf)
    return jnp.where((n >= 0) & (a > 0) & (b > 0) & ~jnp.isnan(k), out, np.nan)


pmf = exponential(logpmf, "The probability mass function.")

__dir__ = public(__name__)
