"""The generalized normal distribution. Source: scipy.stats.gennorm."""

from __future__ import annotations

import numpy as np

from minijax import numpy as jnp
from minijax.features.library import library
from minijax.namespace import shown
from minijax.numpy.promotion import promote_inexact
from minijax.scipy import special
from minijax.scipy.stats.making import exponential
from minijax.typing import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf"]


@library
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Compute the logarithm of the density of the generalized normal distribution.

    - `x`: real array
    - `beta`: positive exponent

    Both broadcast together; the result has their shape and a floating-point dtype. TypeError for
    what is not an array or number.
    Source: SciPy's `stats.gennorm.logpdf`.

    >>> jax.scipy.stats.gennorm.logpdf(jnp.array([0.0, 1.0]), 2.0).shape
    (2,)
    """
    x, beta = promote_inexact("gennorm.logpdf", x, beta)
    return jnp.log(0.5 * beta) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


@library
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Compute the distribution function of the generalized normal distribution.

    - `x`: real array
    - `beta`: positive exponent

    Both broadcast together; the result has their shape and a floating-point dtype. TypeError for
    what is not an array or number.
    Source: SciPy's `stats.gennorm.cdf`.

    >>> jax.scipy.stats.gennorm.cdf(jnp.array([-jnp.inf, jnp.inf]), 2.0)
    Array([0., 1.], dtype=float32)
    """
    x, beta = promote_inexact("gennorm.cdf", x, beta)
    out = 0.5 * (1 + jnp.sign(x) * special.gammainc(1 / beta, jnp.abs(x) ** beta))
    return jnp.where(beta > 0, out, np.nan)


pdf = exponential(logpdf, "The density.")

__dir__ = shown(__name__)
