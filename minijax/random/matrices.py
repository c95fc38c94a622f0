"""Random vectors and matrices made with linear algebra: orthogonal, multivariate normal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.arguments.values import known_index
from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax.shapes import broadcast_shapes, canonical_shape
from minijax.numpy import linalg
from minijax.numpy.promotion import promote_dtypes_inexact
from minijax.random.continuous import normal_of
from minijax.random.keys import single_key
from minijax.random.uniforms import check_parameters, float_dtype, whole_parameter
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.typing import ArrayLike, DTypeLike

__all__ = ["multivariate_normal", "orthogonal"]


@library(static=("n", "shape", "dtype", "m", "out_sharding"), converted=("n", "m"))
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw orthogonal (for complex dtypes, unitary) matrices from the Haar measure.

    - `key`: key, or its words
    - `n`, `m`: numbers of rows and columns, `m` by default `n`
    - `shape`: leading shape of the result, by default none
    - `dtype`: floating-point or complex dtype, by default the default one

    The result has shape (*shape, n, m): columns, or rows if there are fewer, are orthonormal.
    ValueError for another dtype or negative sizes.
    Source: Mezzadri, How to generate random matrices from the classical compact groups (2007).

    >>> random.orthogonal(random.key(0), 3, shape=(2,)).shape
    (2, 3, 3)
    """
    keys = single_key("orthogonal", key)
    dtype = float_dtype("orthogonal", dtype, complex_too=True)
    m, given = n if m is None else m, m
    n, m = (known_index(size, "The error occurred in jax.random.orthogonal()") for size in (n, m))
    if n < 0 or m < 0:
        raise ValueError(
            f"negative dimensions are not allowed, got {n} and {given}: orthogonal has n={n}, m={m}."
        )
    shape = (*canonical_shape(shape), max(n, m), min(n, m))
    q, r = linalg.qr(normal_of(keys, shape, dtype))
    signs = lax.sign(jnp.diagonal(r, axis1=-2, axis2=-1))
    q = lax.mul(q, lax.broadcast_in_dim(signs, q.shape, (*range(q.ndim - 2), q.ndim - 1)))
    return jnp.swapaxes(q, -2, -1) if n < m else q


_METHODS = ("cholesky", "eigh", "svd")


def _root(cov: Any, method: str) -> Any:
    """A matrix that times its transpose is `cov`."""
    if method == "cholesky":
        return linalg.cholesky(cov)
    if method == "svd":
        vectors, values, _ = linalg.svd(cov)
    else:
        values, vectors = linalg.eigh(cov)
    return jnp.multiply(vectors, jnp.sqrt(jnp.expand_dims(values, -2)))


@library(static=("shape", "dtype", "method", "out_sharding"))
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw normal vectors with a given mean and covariance.

    - `key`: key, or its words
    - `mean`, `cov`: arrays of shapes (..., n) and (..., n, n)
    - `shape`: shape of the result without the last axis, by default their common one
    - `dtype`: floating-point dtype, by default that of `mean` and `cov`
    - `method`: factorization of the covariance: "cholesky" is the fastest, "svd" and "eigh" accept
      singular ones

    The result has shape (*shape, n). ValueError for shapes that do not fit or another method.
    Source: NumPy's `random.Generator.multivariate_normal`.

    >>> random.multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
    (3, 2)
    """
    keys = single_key("multivariate_normal", key)
    check_parameters("multivariate_normal", mean, cov)
    mean, cov = promote_dtypes_inexact(jnp.asarray(mean), jnp.asarray(cov))
    mean, cov = (whole_parameter(x, shape, out_sharding) for x in (mean, cov))
    dtype = float_dtype("multivariate_normal", mean.dtype if dtype is None else dtype)
    if method not in _METHODS:
        raise ValueError(f"method must be one of {set(_METHODS)}")
    _check_vectors(mean, cov)
    batch = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    shape = batch if shape is None else canonical_shape(shape)
    _check_broadcast(shape, mean, cov)
    normal = normal_of(keys, (*shape, mean.shape[-1]), dtype)
    return jnp.add(mean, jnp.einsum("...ij,...j->...i", _root(cov, method), normal))


def _check_vectors(mean: Any, cov: Any) -> None:
    if mean.ndim < 1:
        raise ValueError(
            f"multivariate_normal requires mean.ndim >= 1, got mean.ndim == {mean.ndim}"
        )
    if cov.ndim < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {cov.ndim}")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError(
            "multivariate_normal requires cov.shape == (..., n, n) for "
            f"n={n}, but got cov.shape == {cov.shape}. mean.shape is {mean.shape}."
        )


def _check_broadcast(shape: tuple[int, ...], mean: Any, cov: Any) -> None:
    found = broadcast_shapes(shape, mean.shape[:-1], cov.shape[:-2])
    if found != shape:
        raise ValueError(
            "multivariate_normal: the shapes of mean and cov, without their last axes, must broadcast "
            f"to the shape argument {shape} without changing it; they give {found}."
        )
