"""The Dirichlet distribution. Source: scipy.stats.dirichlet."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.features.library import library
from minijax.numpy.promotion import promote_dtypes_inexact, to_array
from minijax.scipy import special
from minijax.scipy.stats.making import exponential
from minijax.tracebacks import public
from minijax.typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


@library
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Compute the logarithm of the density of the Dirichlet distribution.

    - `x`: proportions along the first axis, of which the last may be left out: an array of shape
      (n, ...) or (n - 1, ...)
    - `alpha`: concentrations, of shape (n,)

    The result has shape (...) and a floating-point dtype. ValueError for other shapes.
    Source: SciPy's `stats.dirichlet.logpdf`.

    >>> jax.scipy.stats.dirichlet.logpdf(jnp.array([0.5, 0.5]), jnp.array([1.0, 1.0])).shape
    ()
    """
    name = "dirichlet.logpdf"
    x, alpha = promote_dtypes_inexact(to_array(name, x), to_array(name, alpha, 1))
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    count = alpha.shape[0]
    if not x.ndim or x.shape[0] not in (count, count - 1):
        raise ValueError(
            "`x` must have either the same number of entries as `alpha` or one entry fewer; got "
            f"x.shape={x.shape}, alpha.shape={alpha.shape}"
        )
    if x.shape[0] == count - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)], axis=0)
    norm = jnp.sum(special.gammaln(alpha)) - special.gammaln(jnp.sum(alpha))
    powers = alpha.reshape(count, *[1] * (x.ndim - 1)) - 1
    out = jnp.sum(special.xlogy(powers, x), axis=0) - norm
    return jnp.where(_is_simplex(x) & ~jnp.any(alpha <= 0), out, -np.inf).astype(x.dtype)


def _is_simplex(x: Any) -> Any:
    return jnp.all(x > 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < 1e-6)


pdf = exponential(
    logpdf,
    """Compute the density of the Dirichlet distribution.

    - `x`: proportions along the first axis, of which the last may be left out: an array of shape
      (n, ...) or (n - 1, ...)
    - `alpha`: concentrations, of shape (n,)

    The result has shape (...) and a floating-point dtype. ValueError for other shapes.
    Source: SciPy's `stats.dirichlet.pdf`.

    >>> jax.scipy.stats.dirichlet.pdf(jnp.array([0.5, 0.5]), jnp.array([1.0, 1.0])).shape
    ()
    """,
)

__dir__ = public(__name__)
