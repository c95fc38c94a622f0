"""The multinomial distribution. Source: scipy.stats.multinomial."""

from __future__ import annotations

import numpy as np

from minijax import dtypes
from minijax import numpy as jnp
from minijax.features.library import library
from minijax.numpy.promotion import (
    check_arraylike,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
    to_array,
)
from minijax.scipy import special
from minijax.scipy.stats.making import exponential
from minijax.tracebacks import public
from minijax.typing import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


@library
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Compute the logarithm of the probability mass function of the multinomial distribution.

    - `x`: integer array of counts, of shape (..., outcomes)
    - `n`: integer array of numbers of draws, which broadcasts to shape (...)
    - `p`: probabilities of the outcomes, of shape (..., outcomes)

    The result has shape (...) and a floating-point dtype; each vector of counts is compared with
    its own `n`. ValueError unless `x` and `n` are of integer dtypes.
    Source: SciPy's `stats.multinomial.logpmf`.

    >>> jax.scipy.stats.multinomial.logpmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5])).shape
    ()
    """
    name = "multinomial.logpmf"
    check_arraylike(name, x, n, p)
    x, n, p = (to_array(name, a, i) for i, a in enumerate((x, n, p)))
    x, n = promote_dtypes_numeric(x, n)
    if not all(dtypes.issubdtype(a.dtype, np.integer) for a in (x, n)):
        raise ValueError(
            f"x and n must be of integer type; got x.dtype={x.dtype.name}, n.dtype={n.dtype.name}"
        )
    (p,) = promote_dtypes_inexact(p)
    x = jnp.atleast_1d(x)
    possible = jnp.all(x >= 0, axis=-1) & (jnp.sum(x, axis=-1) == n)
    # Selected here too, not in the results alone: 0 times an infinite derivative is NaN.
    p = jnp.where(possible[..., None], p, 1)
    counts, draws = x.astype(p.dtype), n.astype(p.dtype)
    terms = special.xlogy(counts, p) - special.gammaln(counts + 1)
    out = special.gammaln(draws + 1) + jnp.sum(terms, axis=-1)
    return jnp.where(possible, out, -np.inf)


pmf = exponential(
    logpmf,
    """Compute the probability mass function of the multinomial distribution.

    - `x`: integer array of counts, of shape (..., outcomes)
    - `n`: integer array of numbers of draws, which broadcasts to shape (...)
    - `p`: probabilities of the outcomes, of shape (..., outcomes)

    The result has shape (...) and a floating-point dtype. ValueError unless `x` and `n` are of integer
    dtypes.
    Source: SciPy's `stats.multinomial.pmf`.

    >>> jax.scipy.stats.multinomial.pmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5])).shape
    ()
    """,
)

__dir__ = public(__name__)
