"""The generalized normal distribution. Source: scipy.stats.gennorm."""

from __future__ import annotations

import numpy as np

from minijax import numpy as jnp
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.numpy.promotion import promote_inexact
from minijax.scipy import special
from minijax.scipy.stats.making import exponential
from minijax.tracebacks import public
from minijax.transforms.grad import jvp
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
    return jnp.where(beta > 0, _cdf(x, beta), np.nan)


def _by_tails(x, beta):
    tail = 0.5 * special.gammaincc(1 / beta, jnp.abs(x) ** beta)
    return jnp.where(x < 0, tail, 1 - tail)


_cdf = custom_jvp(_by_tails)


@_cdf.defjvp
def _(primals, tangents):
    (x, beta), (t, t_beta) = primals, tangents
    power = jnp.abs(x) ** beta
    inner = (power > 0) & (power < np.inf)  # at zero and infinity it is the same for all beta
    inner_x = jnp.where(inner, x, 1)
    by_beta = jvp(lambda beta: _by_tails(inner_x, beta), (beta,), (t_beta,))[1]
    return _cdf(x, beta), pdf(x, beta) * t + jnp.where(inner, by_beta, 0)


pdf = exponential(logpdf, "The density.")

__dir__ = public(__name__)
