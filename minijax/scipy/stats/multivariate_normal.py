"""The normal distribution of vectors. Source: scipy.stats.multivariate_normal."""

from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.promotion import promote_dtypes_inexact, to_array
from minijax.scipy.linalg import solve_triangular
from minijax.transforms.library import library

__all__ = ["logpdf", "pdf"]


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Array:
    """The logarithm of the density of vectors x.

    - `mean`: a vector, or a number, for which x and `cov` are numbers as well
    - `cov`: the covariance, positive definite; a number stands for as much in every direction

    NotImplementedError if `allow_singular` is given.
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "allow_singular argument of multivariate_normal.logpdf is not supported: leave it out, "
            "and give a positive definite covariance."
        )
    return _logpdf(x, mean, cov)


@library
def _logpdf(x, mean, cov):
    name = "multivariate_normal.logpdf"
    args = [to_array(name, a, i) for i, a in enumerate((x, mean, cov))]
    x, mean, cov = promote_dtypes_inexact(*args)
    log_of_circle = np.log(2 * np.pi).astype(x.dtype)
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
        columns = apart.reshape(-1, size).T
        whitened = solve_triangular(root, columns, lower=True).T.reshape(*lead, size)
    else:
        root = jnp.broadcast_to(root, (*lead, size, size))
        whitened = solve_triangular(root, apart[..., None], lower=True)[..., 0]
    log_det = jnp.sum(jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * (jnp.sum(whitened * whitened, axis=-1) + size * log_of_circle) - log_det


@library
def pdf(x, mean, cov):
    """The density."""
    return jnp.exp(_logpdf(x, mean, cov))
