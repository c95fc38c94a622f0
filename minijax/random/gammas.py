"""The gamma distribution and those that are made of it: beta, Dirichlet, chi-square, F, Student's
t,
generalized normal, and points of a ball.

The samples can be differentiated in the parameters, by implicit differentiation; see
`lax.random_gamma`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.arguments.values import known_index
from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax.random_floats import exponential_of, keys_from, normal_of
from minijax.lax.random_gamma import random_gamma_p
from minijax.lax.shapes import canonical_shape
from minijax.numpy.promotion import check_arraylike
from minijax.random.keys import single_key
from minijax.random.uniforms import (
    check_parameters,
    converted,
    float_dtype,
    parameter,
    sample_shape,
    signs,
    spread,
    sum_last,
    whole_parameter,
)
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t",
]  # fmt: skip

_STATIC = ("shape", "dtype", "out_sharding")

# -- gamma ------------------------------------------------------------------------------------------


def gamma_of(key: Any, a: Any, shape: tuple[int, ...], log_space: bool) -> Any:
    """Samples, or their logarithms, in the dtype of the parameter."""
    return random_gamma_p.bind(key, spread(a, shape), log_space=log_space)


def _gamma(key: Any, a: Any, shape: Any, dtype: Any, name: str, log_space: bool) -> Any:
    keys = single_key(name, key)
    dtype = float_dtype("gamma", dtype)
    check_parameters("gamma", a)
    return gamma_of(keys, converted(a, dtype), sample_shape("gamma", shape, a), log_space)


@library(static=_STATIC, whole=True)
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the gamma distribution: density proportional to `x**(a - 1) * exp(-x)`.

    - `key`: key, or its words
    - `a`: positive shape parameter; for small ones samples underflow to 0: see `loggamma`
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).

    >>> random.gamma(random.key(0), 2.0, shape=(3,)).shape
    (3,)
    """
    check_parameters("gamma", a)
    return _gamma(key, whole_parameter(a, shape, out_sharding), shape, dtype, "gamma", False)


@library(static=_STATIC, whole=True)
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw logarithms of samples of the gamma distribution, accurate for small `a` too.

    - `key`: key, or its words
    - `a`: positive shape parameter
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).

    >>> random.loggamma(random.key(0), 2.0, shape=(3,)).shape
    (3,)
    """
    return _gamma(key, a, shape, dtype, "loggamma", True)


# -- quotients of gammas ----------------------------------------------------------------------------


@library(static=_STATIC, whole=True)
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the beta distribution: density proportional to `x**(a-1) * (1-x)**(b-1)`.

    - `key`: key, or its words
    - `a`, `b`: positive parameters
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: quotients of gamma samples; NumPy's `random.Generator.beta`.

    >>> random.beta(random.key(0), 1.0, 2.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("beta", key)
    dtype = float_dtype("beta", dtype)
    shape = sample_shape("beta", shape, a, b)
    a, b = (parameter("beta", x, dtype, shape) for x in (a, b))
    a_key, b_key = keys_from(keys, 2)
    log_a, log_b = gamma_of(a_key, a, shape, True), gamma_of(b_key, b, shape, True)
    most = lax.max(log_a, log_b)  # scaled by the larger, so that neither is infinite
    part, rest = lax.exp(lax.sub(log_a, most)), lax.exp(lax.sub(log_b, most))
    return lax.div(part, lax.add(part, rest))


@library(static=_STATIC, whole=True)
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the Dirichlet distribution: vectors of probabilities.

    - `key`: key, or its words
    - `alpha`: positive concentrations, of shape (..., n)
    - `shape`: shape of the result without the last axis, by default `alpha.shape[:-1]`
    - `dtype`: floating-point dtype, by default the default one

    The result has shape (*shape, n). ValueError for another dtype or a scalar `alpha`.
    Source: normalized gamma samples; NumPy's `random.Generator.dirichlet`.

    >>> random.dirichlet(random.key(0), jnp.ones(3), (2,)).shape
    (2, 3)
    """
    keys = single_key("dirichlet", key)
    dtype = float_dtype("dirichlet", dtype)
    if alpha is not None:
        check_arraylike("dirichlet", alpha)
    if not np.ndim(alpha):
        raise ValueError(
            "dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0: give the concentrations along "
            "the last axis."
        )
    alpha = whole_parameter(alpha, shape, out_sharding)
    shape = sample_shape("dirichlet", shape, alpha, trailing=1)
    shape = (*shape, np.shape(alpha)[-1])
    alpha = spread(converted(alpha, dtype), shape)
    return _softmax(gamma_of(keys, alpha, shape, True))


def _softmax(x: Any) -> Any:
    """Exponentials over the last axis, divided by their sum."""
    axis = x.ndim - 1
    most = lax.max(x.dtype.type(-np.inf), lax.reduce_max(x, (axis,)))
    powers = lax.exp(lax.sub(x, lax.stop_gradient(_along_last(most, x.shape))))
    return lax.div(powers, _along_last(sum_last(powers), x.shape))


def _along_last(x: Any, shape: tuple[int, ...]) -> Any:
    """Repeat a value along a new last axis."""
    return lax.broadcast_in_dim(x, shape, range(x.ndim))


def chisquare_of(key: Any, df: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    two = dtype.type(2)
    return lax.mul(lax.exp(gamma_of(key, lax.div(df, two), shape, True)), two)


@library(static=_STATIC, whole=True)
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the chi-square distribution.

    - `key`: key, or its words
    - `df`: positive degrees of freedom
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: twice gamma samples; NumPy's `random.Generator.chisquare`.

    >>> random.chisquare(random.key(0), 3.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("chisquare", key)
    dtype = float_dtype("chisquare", dtype)
    shape = sample_shape("chisquare", shape, df)
    return chisquare_of(keys, parameter("chisquare", df, dtype, shape), shape, dtype)


@library(static=_STATIC, whole=True)
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the F distribution: quotients of chi-square samples over their degrees.

    - `key`: key, or its words
    - `dfnum`, `dfden`: positive degrees of freedom of numerator and denominator
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: NumPy's `random.Generator.f`.

    >>> random.f(random.key(0), 2.0, 3.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("f", key)
    dtype = float_dtype("f", dtype)
    shape = sample_shape("f", shape, dfnum, dfden)
    dfnum, dfden = (parameter("f", x, dtype, shape) for x in (dfnum, dfden))
    below, above = keys_from(keys, 2)
    above, below = (
        lax.div(chisquare_of(part, df, shape, dtype), spread(df, shape))
        for part, df in ((above, dfnum), (below, dfden))
    )
    return lax.div(above, below)


@library(static=_STATIC, whole=True)
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of Student's t distribution.

    - `key`: key, or its words
    - `df`: positive degrees of freedom
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: NumPy's `random.Generator.standard_t`.

    >>> random.t(random.key(0), 3.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("t", key)
    dtype = float_dtype("t", dtype)
    shape = sample_shape("t", shape, df)
    half = lax.div(parameter("t", df, dtype, shape), dtype.type(2))
    normal_key, gamma_key = keys_from(keys, 2)
    normal = normal_of(normal_key, shape, dtype)
    spread_half = spread(half, shape)
    return lax.mul(normal, lax.sqrt(lax.div(spread_half, gamma_of(gamma_key, half, shape, False))))


# -- powers of gammas -------------------------------------------------------------------------------


def generalized_normal_of(key: Any, p: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    gamma_key, sign_key = keys_from(key, 2)
    root = jnp.divide(1, p)
    size = gamma_of(gamma_key, converted(root, dtype), shape, False)
    return jnp.multiply(signs(sign_key, shape, dtype), jnp.power(size, root))


@library(static=_STATIC, whole=True)
def generalized_normal(
    key: ArrayLike,
    p: float,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the generalized normal distribution: density in `exp(-abs(x)**p)`.

    - `key`: key, or its words
    - `p`: positive exponent
    - `shape`: shape of the result, by default a scalar
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype.
    Source: SciPy's `stats.gennorm`.

    >>> random.generalized_normal(random.key(0), 2.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("generalized_normal", key)
    dtype = float_dtype("generalized_normal", dtype)
    check_arraylike("generalized_normal", p)
    shape = sample_shape("gamma", canonical_shape(shape), p)
    return generalized_normal_of(keys, jnp.asarray(p), shape, dtype)


def ball(
    key: ArrayLike,
    d: int,
    p: float = 2,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw points uniformly from the unit ball of a norm.

    - `key`: key, or its words
    - `d`: dimension; `p`: order of the norm
    - `shape`: leading shape of the result, by default none
    - `dtype`: floating-point dtype, by default the default one

    The result has shape (*shape, d). ValueError for another dtype.
    Source: Barthe, Guedon, Mendelson and Naor, A probabilistic approach to the geometry of the
    l_p^n-ball (2005).

    >>> random.ball(random.key(0), 3, shape=(2,)).shape
    (2, 3)
    """
    return _ball(key, d, p, shape, dtype, out_sharding=out_sharding)


# A default order is an operand too: XLA makes products of powers by a constant, which round otherwise.
@library(static=("d", *_STATIC), converted=("d",), whole=True)
def _ball(key, d, p, shape, dtype, *, out_sharding):
    keys = single_key("ball", key)
    dtype = float_dtype("ball", dtype)
    check_arraylike("ball", p)
    shape, p = canonical_shape(shape), jnp.asarray(p)
    normal_key, radius_key = keys_from(keys, 2)
    points = generalized_normal_of(
        normal_key, p, (*shape, known_index(d, "The error occurred in jax.random.ball()")), dtype
    )
    e = exponential_of(radius_key, shape, dtype)
    total = jnp.add(jnp.sum(jnp.power(jnp.abs(points), p), axis=-1), e)
    radius = jnp.power(total, jnp.divide(1, p))
    return jnp.divide(points, jnp.expand_dims(radius, -1))
