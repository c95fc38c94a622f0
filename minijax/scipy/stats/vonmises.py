"""The von Mises distribution on the circle. Source: scipy.stats.vonmises."""

from __future__ import annotations

import numpy as np

from minijax import numpy as jnp
from minijax.features.library import library
from minijax.numpy.promotion import promote_inexact
from minijax.scipy import special
from minijax.scipy.stats.making import exponential
from minijax.tracebacks import public
from minijax.typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


@library
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """Compute the logarithm of the density of the von Mises distribution on the circle.

    - `x`: angles, a real array
    - `kappa`: concentration; NaN if negative

    Both broadcast together; the result has their shape and a floating-point dtype. TypeError for
    what is not an array or number.
    Source: SciPy's `stats.vonmises.logpdf`.

    >>> jax.scipy.stats.vonmises.logpdf(jnp.array([0.0, 1.0]), 2.0).shape
    (2,)
    """
    x, kappa = promote_inexact("vonmises.logpdf", x, kappa)
    out = kappa * (jnp.cos(x) - 1) - jnp.log(2 * np.pi * special.i0e(kappa))
    return jnp.where(kappa >= 0, out, np.nan)


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
