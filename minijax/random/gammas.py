"""The gamma distribution and those that are made of it: beta, Dirichlet, chi-square, F, Student's t,
generalized normal, and points of a ball.

May import the floors below, `minijax.numpy`, `random.keys` and `random.uniforms`. The samples can be
differentiated in the parameters, by implicit differentiation; see `lax.random_gamma`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.core.array import Array
from minijax.lax.random_floats import exponential_of, keys_from, normal_of
from minijax.lax.random_gamma import random_gamma_p
from minijax.lax.shapes import canonical_shape
from minijax.numpy.promotion import check_arraylike
from minijax.random.keys import single_key
from minijax.random.uniforms import (
    converted,
    float_dtype,
    parameter,
    sample_shape,
    signs,
    spread,
    sum_last,
)
from minijax.transforms.library import library

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
    check_arraylike("gamma", a)
    return gamma_of(keys, converted(a, dtype), sample_shape("gamma", shape, a), log_space)


@library(static=_STATIC)
def gamma(
    key: Any,
    a: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Samples of the gamma distribution: density proportional to x**(a - 1) * exp(-x).

    For small `a` samples underflow to zero: see `loggamma`. ValueError for a dtype that is not
    floating. Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
    """
    return _gamma(key, a, shape, dtype, "gamma", False)


@library(static=_STATIC)
def loggamma(
    key: Any,
    a: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Logarithms of samples of the gamma distribution, exact for small `a` too."""
    return _gamma(key, a, shape, dtype, "loggamma", True)


# -- quotients of gammas ----------------------------------------------------------------------------


@library(static=_STATIC)
def beta(
    key: Any,
    a: Any,
    b: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Samples of the beta distribution: density proportional to x**(a - 1) * (1 - x)**(b - 1)."""
    keys = single_key("beta", key)
    dtype = float_dtype("beta", dtype)
    shape = sample_shape("beta", shape, a, b)
    a, b = (parameter("beta", x, dtype, shape) for x in (a, b))
    a_key, b_key = keys_from(keys, 2)
    log_a, log_b = gamma_of(a_key, a, shape, True), gamma_of(b_key, b, shape, True)
    most = lax.max(log_a, log_b)  # scaled by the larger, so that neither is infinite
    part, rest = lax.exp(lax.sub(log_a, most)), lax.exp(lax.sub(log_b, most))
    return lax.div(part, lax.add(part, rest))


@library(static=_STATIC)
def dirichlet(
    key: Any,
    alpha: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Samples of the Dirichlet distribution: vectors of chances that add up to one.

    `alpha` has the concentrations along its last axis; `shape` is that of the result without that
    axis, by default that of the rest of `alpha`. ValueError for an `alpha` without axes.
    """
    keys = single_key("dirichlet", key)
    dtype = float_dtype("dirichlet", dtype)
    if not np.ndim(alpha):
        check_arraylike("dirichlet", alpha)
        raise ValueError(
            "dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0: give the concentrations along "
            "the last axis."
        )
    shape = sample_shape("dirichlet", shape, alpha, trailing=1)
    shape = (*shape, np.shape(alpha)[-1])
    alpha = parameter("dirichlet", alpha, dtype, shape)
    return _softmax(gamma_of(keys, alpha, shape, True))


def _softmax(x: Any) -> Any:
    """Exponentials over the last axis, divided by their sum."""
    axis = x.ndim - 1
    most = lax.max(x.dtype.type(-np.inf), lax.reduce_max(x, (axis,)))
    powers = lax.exp(lax.sub(x, lax.stop_gradient(_along_last(most, x.shape))))
    return lax.div(powers, _along_last(sum_last(powers), x.shape))


def _along_last(x: Any, shape: tuple[int, ...]) -> Any:
    """The same for every place of a last axis."""
    return lax.broadcast_in_dim(x, shape, range(x.ndim))


def chisquare_of(key: Any, df: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    two = dtype.type(2)
    return lax.mul(lax.exp(gamma_of(key, lax.div(df, two), shape, True)), two)


@library(static=_STATIC)
def chisquare(
    key: Any,
    df: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Samples of the chi-square distribution with `df` degrees of freedom."""
    keys = single_key("chisquare", key)
    dtype = float_dtype("chisquare", dtype)
    shape = sample_shape("chisquare", shape, df)
    return chisquare_of(keys, parameter("chisquare", df, dtype, shape), shape, dtype)


@library(static=_STATIC)
def f(
    key: Any,
    dfnum: Any,
    dfden: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Samples of the F distribution: quotients of two chi-square samples, each over its degrees."""
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


@library(static=_STATIC)
def t(
    key: Any,
    df: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Samples of Student's t distribution with `df` degrees of freedom."""
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


@library(static=_STATIC)
def generalized_normal(
    key: Any,
    p: Any,
    shape: Sequence[int] = (),
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Samples of the generalized normal distribution: density proportional to exp(-|x|**p)."""
    keys = single_key("generalized_normal", key)
    dtype = float_dtype("generalized_normal", dtype)
    shape = sample_shape("gamma", shape, p)
    check_arraylike("generalized_normal", p)
    return generalized_normal_of(keys, jnp.asarray(p), shape, dtype)


@library(static=("d", *_STATIC))
def ball(
    key: Any,
    d: int,
    p: Any = 2,
    shape: Sequence[int] = (),
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Points that are uniform within the unit ball of dimension `d` in the norm of order `p`.

    The result has shape `(*shape, d)`. Source: Barthe, Guedon, Mendelson and Naor, "A probabilistic
    approach to the geometry of the l_p^n-ball", 2005.
    """
    keys = single_key("ball", key)
    dtype = float_dtype("ball", dtype)
    check_arraylike("ball", p)
    shape, p = canonical_shape(shape), jnp.asarray(p)
    normal_key, radius_key = keys_from(keys, 2)
    points = generalized_normal_of(normal_key, p, (*shape, d), dtype)
    e = exponential_of(radius_key, shape, dtype)
    total = jnp.add(jnp.sum(jnp.power(jnp.abs(points), p), axis=-1), e)
    radius = jnp.power(total, jnp.divide(1, p))
    return jnp.divide(points, jnp.expand_dims(radius, -1))
