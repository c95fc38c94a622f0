"""The Dirichlet distribution. Source: scipy.stats.dirichlet."""

from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.numpy.promotion import promote_dtypes_inexact, to_array
from minijax.scipy import special
from minijax.scipy.stats.making import exponential
from minijax.transforms.library import library

__all__ = ["logpdf", "pdf"]


@library
def logpdf(x, alpha):
    """The logarithm of the density of proportions x, which stand in the first axis.

    The last of them may be left out. ValueError unless `alpha` is a vector of that size.
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
    return jnp.where(_is_simplex(x) & jnp.all(alpha > 0), out, -np.inf).astype(x.dtype)


def _is_simplex(x: Any) -> Any:
    return jnp.all(x > 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < 1e-6)


pdf = exponential(logpdf, "The density.")
