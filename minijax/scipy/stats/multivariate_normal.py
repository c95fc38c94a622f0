"""The multivariate normal distribution. Source: scipy.stats.multivariate_normal."""

from __future__ import annotations

import math

import numpy as np

from minijax import numpy as jnp
from minijax.features.library import library
from minijax.numpy.promotion import check_ranks, promote_dtypes_inexact, to_array
from minijax.scipy.linalg import solve_triangular
from minijax.tracebacks import public
from minijax.typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """Compute the logarithm of the density of the multivariate normal distribution.

    - `x`: vectors, an array of shape (..., n), or numbers if `mean` is one
    - `mean`: vector of shape (..., n), or a number
    - `cov`: positive definite covariance of shape (..., n, n), or a number, a variance in all
      directions
    - `allow_singular`: must be None

    The result has shape (...) and a floating-point dtype. ValueError for other shapes,
    NotImplementedError for `allow_singular`.
    Source: SciPy's `stats.multivariate_normal.logpdf`.

    >>> jax.scipy.stats.multivariate_normal.logpdf(jnp.ones(2), jnp.zeros(2), jnp.eye(2)).shape
    ()
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "allow_singular argument of multivariate_normal.logpdf is not supported: leave it out, "
            "and give a positive definite covariance."
        )
    return _logpdf(x, mean, cov)


@library
def _logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    name = "multivariate_normal.logpdf"
    args = [to_array(name, a, i) for i, a in enumerate((x, mean, cov))]
    check_ranks(name, x, mean)
    x, mean, cov = promote_dtypes_inexact(*args)
    log_of_circle = float(np.log(2 * np.pi))
    if not mean.ndim:
        return -0.5 * (jnp.square(x - mean) / cov + log_of_circle + jnp.log(cov))
    size = mean.shape[-1]
    if not cov.ndim:
        distance = jnp.sum(jnp.square(x - mean), axis=-1) / cov
        return -0.5 * (distance + size * (log_of_circle + jnp.log(cov)))
    if cov.ndim < 2 or cov.shape[-2:] != (size, size):
        raise ValueError(
            "multivariate_normal.logpdf got incompatible shapes: the covariance of a mean of shape "
            f"{mean.shape} must have shape (..., {size}, {size}); got {cov.shape}."
        )
    root = jnp.linalg.cholesky(cov)
    apart = x - mean
    lead = jnp.broadcast_shapes(apart.shape[:-1], cov.shape[:-2])
    apart = jnp.broadcast_to(apart, (*lead, size))
    if cov.ndim == 2:  # one matrix for all vectors, as columns of one system
        columns = apart.reshape(math.prod(lead), size).T
        whitened = solve_triangular(root, columns, lower=True).T.reshape(*lead, size)
    else:
        root = jnp.broadcast_to(root, (*lead, size, size))
        whitened = solve_triangular(root, apart[..., None], lower=True)[..., 0]
    log_det = jnp.sum(jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * (jnp.sum(whitened * whitened, axis=-1) + size * log_of_circle) - log_det


@library
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Compute the density of the multivariate normal distribution.

    - `x`: vectors, an array of shape (..., n), or numbers if `mean` is one
    - `mean`: vector of shape (..., n), or a number
    - `cov`: positive definite covariance of shape (..., n, n), or a number, a variance in all
      directions

    The result has shape (...) and a floating-point dtype. ValueError for other shapes.
    Source: SciPy's `stats.multivariate_normal.pdf`.

    >>> jax.scipy.stats.multivariate_normal.pdf(jnp.ones(2), jnp.zeros(2), jnp.eye(2)).shape
    ()
    """
    return jnp.exp(_logpdf.__wrapped__(x, mean, cov))


__dir__ = public(__name__)
