"""The Cauchy distribution wrapped on the circle. Source: scipy.stats.wrapcauchy."""

from __future__ import annotations

import math

import numpy as np

from minijax import numpy as jnp
from minijax.features.library import library
from minijax.scipy.stats.making import exponential, real_arguments
from minijax.tracebacks import public
from minijax.typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


@library
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """Compute the logarithm of the density of the Cauchy distribution wrapped on [0, 2 pi].

    - `x`: angles, a real array
    - `c`: concentration; NaN unless between 0 and 1

    Both broadcast together; the result has their shape and a floating-point dtype. TypeError for
    what is not an array or number.
    Source: SciPy's `stats.wrapcauchy.logpdf`.

    >>> jax.scipy.stats.wrapcauchy.logpdf(jnp.array([0.0, 1.0]), 0.5).shape
    (2,)
    """
    x, c = real_arguments("wrapcauchy.logpdf", x, c)
    out = jnp.log1p(-c * c) - math.log(2 * math.pi) - jnp.log(1 + c * c - 2 * c * jnp.cos(x))
    out = jnp.where((x >= 0) & (x <= 2 * np.pi), out, -np.inf)
    return jnp.where((c > 0) & (c < 1), out, np.nan)


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
