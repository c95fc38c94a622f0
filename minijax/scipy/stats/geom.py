"""The geometric distribution. Source: scipy.stats.geom."""

import numpy as np

from minijax import numpy as jnp
from minijax.scipy import special
from minijax.scipy.stats.making import discrete, exponential
from minijax.tracebacks import public

__all__ = ["logpmf", "pmf"]


@discrete("p")
def logpmf(k, p):
    """The logarithm of the probability mass function."""
    out = special.xlog1py(k - 1, -p) + jnp.log(p)
    return jnp.where(k <= 0, -np.inf, out)


pmf = exponential(logpmf, "The probability mass function.")

__dir__ = public(__name__)
