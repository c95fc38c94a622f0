"""The multinomial distribution. Source: scipy.stats.multinomial."""

import numpy as np

from minijax import dtypes
from minijax import numpy as jnp
from minijax.numpy.promotion import check_arraylike, promote_dtypes_inexact, to_array
from minijax.scipy import special
from minijax.scipy.stats.making import exponential
from minijax.transforms.library import library

__all__ = ["logpmf", "pmf"]


@library
def logpmf(x, n, p):
    """The logarithm of the probability of the counts x, along the last axis, in n draws.

    Each vector of counts is judged by itself, as in SciPy; upstream compares n with all.
    ValueError unless `x` and `n` are of integer dtypes.
    """
    name = "multinomial.logpmf"
    check_arraylike(name, x, n, p)
    x, n, p = (to_array(name, a, i) for i, a in enumerate((x, n, p)))
    if not all(dtypes.issubdtype(a.dtype, np.integer) for a in (x, n)):
        raise ValueError(
            f"x and n must be of integer type; got x.dtype={x.dtype.name}, n.dtype={n.dtype.name}"
        )
    (p,) = promote_dtypes_inexact(p)
    counts, draws = x.astype(p.dtype), n.astype(p.dtype)
    terms = special.xlogy(counts, p) - special.gammaln(counts + 1)
    out = special.gammaln(draws + 1) + jnp.sum(terms, axis=-1)
    possible = jnp.all(x >= 0, axis=-1) & (jnp.sum(x, axis=-1) == n)
    return jnp.where(possible, out, -np.inf)


pmf = exponential(logpmf, "The probability of the counts.")
