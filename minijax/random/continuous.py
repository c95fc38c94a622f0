"""Continuous distributions that are one formula of uniform numbers. Most invert a cumulative
distribution function; where a bound of the uniform numbers is given, it keeps them from where
the inverse is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import dtypes, lax
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.features.library import library
from minijax.lax.random_floats import exponential_of, keys_from, unit_uniform
from minijax.lax.random_floats import normal_of as real_normal_of
from minijax.lax.shapes import canonical_shape
from minijax.numpy.promotion import check_arraylike, check_ranks
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
    uniform_between,
)
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.transforms.jit import jit
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "cauchy", "double_sided_maxwell", "exponential", "gumbel", "laplace", "logistic", "lognormal",
    "maxwell", "normal", "pareto", "rayleigh", "triangular", "truncated_normal", "wald",
    "weibull_min",
]  # fmt: skip

_STATIC = ("shape", "dtype", "out_sharding")

# A boundary within the traced program. XLA simplifies by rearranging what it knows of constants; of
# a parameter of a function it knows nothing, so that samples are the same bits for a parameter that
# is a constant of the program as for one that is an argument of it.
_own_function = partial(jit, static_argnames=("shape", "dtype"))

# -- the normal distribution and its kin --------------------------------------------------------------


def normal_of(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Standard normal samples; complex ones have a variance of one in all."""
    if dtypes.issubdtype(dtype, np.complexfloating):
        real_key, imag_key = keys_from(key, 2)
        part = dtypes.to_real_dtype(dtype)
        real = converted(normal_of(real_key, shape, part), dtype)
        imag = converted(normal_of(imag_key, shape, part), dtype)
        root = dtype.type(part.type(np.sqrt(2)))
        return lax.div(lax.add(real, lax.mul(dtype.type(1j), imag)), root)
    return real_normal_of(key, shape, dtype)


@library(static=_STATIC)
def normal(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the standard normal distribution.

    - `key`: key, or its words
    - `shape`: shape of the result, by default a scalar
    - `dtype`: floating-point or complex dtype, by default the default one

    Complex samples have a variance of 1/2 in each part. ValueError for another dtype.
    Source: `erf_inv` of uniform samples.

    >>> random.normal(random.key(0), shape=(3,)).shape
    (3,)
    """
    keys = single_key("normal", key)
    return normal_of(keys, canonical_shape(shape), float_dtype("normal", dtype, complex_too=True))


@library(static=_STATIC)
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = np.float32(1.0),
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples whose logarithm is normal.

    - `key`: key, or its words
    - `sigma`: standard deviation of the logarithm
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point or complex dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: the exponential of normal samples.

    >>> random.lognormal(random.key(0), shape=(3,)).shape
    (3,)
    """
    keys = single_key("lognormal", key)
    dtype = float_dtype("lognormal", dtype, complex_too=True)
    shape = sample_shape("lognormal", shape, sigma)
    return _lognormal(keys, parameter("lognormal", sigma, dtype, shape), shape, dtype)


@_own_function
def _lognormal(key: Any, sigma: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return lax.exp(lax.mul(normal_of(key, shape, dtype), sigma))


@library(static=_STATIC)
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw standard normal samples on the condition that they lie in (lower, upper).

    - `key`: key, or its words
    - `lower`, `upper`: bounds
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: `erf_inv` of uniform samples.

    >>> random.truncated_normal(random.key(0), -1.0, 1.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("truncated_normal", key)
    dtype = float_dtype("truncated_normal", dtype)
    check_parameters("truncated_normal", lower, upper)
    shape = sample_shape("truncated_normal", shape, lower, upper)
    check_ranks("truncated_normal", lower, upper)
    lower, upper = (converted(x, dtype) for x in (lower, upper))
    return _truncated_normal(keys, lower, upper, shape, dtype)


@_own_function
def _truncated_normal(key: Any, lower: Any, upper: Any, shape: Any, dtype: Any) -> Any:
    root = dtype.type(np.sqrt(2))
    low, high = (lax.erf(lax.div(x, root)) for x in (lower, upper))
    out = lax.mul(root, lax.erf_inv(uniform_between(key, shape, dtype, low, high)))
    # Rounding must not carry a sample out of the open interval.
    least, most = (
        lax.nextafter(lax.stop_gradient(x), get_aval(x).dtype.type(towards))
        for x, towards in ((lower, np.inf), (upper, -np.inf))
    )
    least, most = (spread(x, shape) if x.ndim else x for x in (least, most))
    return lax.min(most, lax.max(least, out))


def maxwell_of(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    parts = normal_of(key, (*shape, 3), dtype)
    return lax.sqrt(sum_last(lax.mul(parts, parts)))


@library(static=_STATIC)
def maxwell(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the Maxwell distribution: lengths of normal vectors in three dimensions.

    - `key`: key, or its words
    - `shape`: shape of the result, by default a scalar
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype.
    Source: SciPy's `stats.maxwell`.

    >>> random.maxwell(random.key(0), shape=(3,)).shape
    (3,)
    """
    keys = single_key("maxwell", key)
    return maxwell_of(keys, canonical_shape(shape), float_dtype("maxwell", dtype))


@library(static=("shape", "dtype"))
def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw samples of the Maxwell distribution with a random sign, scaled and shifted.

    - `key`: key, or its words
    - `loc`, `scale`: parameters, which promote with the samples
    - `shape`: leading shape of the result, by default the parameters' common shape
    - `dtype`: floating-point dtype, by default the default one

    The result has shape (*shape, *parameters' shape). ValueError for another dtype.
    Source: SciPy's `stats.maxwell`.

    >>> random.double_sided_maxwell(random.key(0), 0.0, jnp.ones(2), shape=(3,)).shape
    (3, 2)
    """
    keys = single_key("double_sided_maxwell", key)
    dtype = float_dtype("double_sided_maxwell", dtype)
    params = sample_shape("double_sided_maxwell", None, loc, scale)
    shape = (*(canonical_shape(shape) or params), *params)
    size_key, sign_key = keys_from(keys, 2)
    size = maxwell_of(size_key, shape, dtype)
    size = lax.mul(signs(sign_key, shape, dtype), size)
    check_arraylike("double_sided_maxwell", loc, scale)
    return jnp.add(jnp.multiply(size, jnp.asarray(scale)), jnp.asarray(loc))


@library(static=_STATIC)
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the Wald (inverse Gaussian) distribution of scale 1.

    - `key`: key, or its words
    - `mean`: positive mean
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: Michael, Schucany and Haas, Generating random variates using transformations with
    multiple roots (1976).

    >>> random.wald(random.key(0), 1.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("wald", key)
    dtype = float_dtype("wald", dtype)
    shape = sample_shape("wald", shape, mean)
    return _wald(keys, parameter("wald", mean, dtype, shape), shape, dtype)


@_own_function
def _wald(key: Any, mean: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    mean = spread(mean, shape)
    normal_key, uniform_key = keys_from(key, 2)
    v = normal_of(normal_key, shape, dtype)
    u = unit_uniform(uniform_key, shape, dtype)
    two, four = dtype.type(2), dtype.type(4)
    y, square = lax.mul(v, v), lax.mul(mean, mean)
    root = lax.sqrt(lax.add(lax.mul(lax.mul(four, mean), y), lax.mul(square, lax.mul(y, y))))
    x = lax.sub(lax.add(mean, lax.div(lax.mul(square, y), two)), lax.mul(lax.div(mean, two), root))
    first = lax.le(u, lax.div(mean, lax.add(mean, x)))
    return lax.select(first, x, lax.div(square, x))


# -- inverses of cumulative distribution functions --------------------------------------------------


@library(static=_STATIC)
def exponential(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the exponential distribution of rate 1.

    - `key`: key, or its words
    - `shape`: shape of the result, by default a scalar
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype.
    Source: NumPy's `random.Generator.exponential`.

    >>> random.exponential(random.key(0), shape=(3,)).shape
    (3,)
    """
    keys = single_key("exponential", key)
    return exponential_of(keys, canonical_shape(shape), float_dtype("exponential", dtype))


@library(static=_STATIC)
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the Pareto distribution: density `b / x**(b + 1)` for x >= 1.

    - `key`: key, or its words
    - `b`: positive exponent
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: SciPy's `stats.pareto`.

    >>> random.pareto(random.key(0), 2.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("pareto", key)
    dtype = float_dtype("pareto", dtype)
    shape = sample_shape("pareto", shape, b)
    e = exponential_of(keys, shape, dtype)
    return lax.exp(lax.div(e, parameter("pareto", b, dtype, shape)))


@library(static=_STATIC)
def laplace(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the Laplace distribution: density `exp(-abs(x)) / 2`.

    - `key`: key, or its words
    - `shape`: shape of the result, by default a scalar
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype.
    Source: NumPy's `random.Generator.laplace`.

    >>> random.laplace(random.key(0), shape=(3,)).shape
    (3,)
    """
    keys = single_key("laplace", key)
    dtype = float_dtype("laplace", dtype)
    low = dtype.type(-1) + dtype.type(dtypes.finfo(dtype).epsneg)
    u = uniform_between(keys, canonical_shape(shape), dtype, low, dtype.type(1))
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


@library(static=_STATIC)
def cauchy(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the Cauchy distribution: density `1 / (pi * (x**2 + 1))`.

    - `key`: key, or its words
    - `shape`: shape of the result, by default a scalar
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype.
    Source: NumPy's `random.Generator.standard_cauchy`.

    >>> random.cauchy(random.key(0), shape=(3,)).shape
    (3,)
    """
    keys = single_key("cauchy", key)
    dtype = float_dtype("cauchy", dtype)
    low = dtype.type(dtypes.finfo(dtype).eps)
    u = uniform_between(keys, canonical_shape(shape), dtype, low, dtype.type(1))
    return lax.tan(lax.mul(dtype.type(np.pi), lax.sub(u, dtype.type(0.5))))


@library(static=_STATIC)
def logistic(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the logistic distribution: density `exp(-x) / (1 + exp(-x))**2`.

    - `key`: key, or its words
    - `shape`: shape of the result, by default a scalar
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype.
    Source: NumPy's `random.Generator.logistic`.

    >>> random.logistic(random.key(0), shape=(3,)).shape
    (3,)
    """
    keys = single_key("logistic", key)
    dtype = float_dtype("logistic", dtype)
    low = dtype.type(dtypes.finfo(dtype).tiny)
    u = uniform_between(keys, canonical_shape(shape), dtype, low, dtype.type(1))
    return lax.sub(lax.log(u), lax.log1p(lax.neg(u)))


def gumbel_of(key: Any, shape: tuple[int, ...], dtype: np.dtype, mode: str = "low") -> Any:
    info = dtypes.finfo(dtype)
    tiny = dtype.type(info.tiny)
    if mode == "low":
        u = uniform_between(key, shape, dtype, tiny, dtype.type(1))
        return lax.neg(lax.log(lax.neg(lax.log(u))))
    # The smallest numbers get bits below the spacing of uniform floats, from a second draw.
    coarse, fine = lax.unstack(unit_uniform(key, (2, *shape), dtype))
    exact = lax.add(lax.add(coarse, lax.mul(dtype.type(info.eps), fine)), tiny)
    u = lax.select(lax.ge(coarse, dtype.type(0.5)), coarse, exact)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(u)))))


def gumbel_mode(mode: str | None) -> str:
    """Return the mode asked for, by default that of the setting `high_dynamic_range_gumbel`."""
    if mode is None:
        return "high" if local.context.settings.high_dynamic_range_gumbel else "low"
    if mode not in ("high", "low"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}; give 'high' or 'low'.")
    return mode


@library(static=(*_STATIC, "mode"))
def gumbel(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the Gumbel distribution: density `exp(-(x + exp(-x)))`.

    - `key`: key, or its words
    - `shape`: shape of the result, by default a scalar
    - `dtype`: floating-point dtype, by default the default one
    - `mode`: "low", or "high" for a tail with the bits of two draws; by default as the setting
      `high_dynamic_range_gumbel` says

    ValueError for another dtype or mode.
    Source: NumPy's `random.Generator.gumbel`.

    >>> random.gumbel(random.key(0), shape=(3,)).shape
    (3,)
    """
    keys = single_key("gumbel", key)
    mode = gumbel_mode(mode)
    return gumbel_of(keys, canonical_shape(shape), float_dtype("gumbel", dtype), mode)


@library(static=_STATIC)
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the Rayleigh distribution: `x * exp(-x**2 / (2 * scale**2)) / scale**2`.

    - `key`: key, or its words
    - `scale`: positive scale
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: NumPy's `random.Generator.rayleigh`.

    >>> random.rayleigh(random.key(0), 2.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("rayleigh", key)
    dtype = float_dtype("rayleigh", dtype)
    shape = sample_shape("rayleigh", shape, scale)
    u = unit_uniform(keys, shape, dtype)
    scale = parameter("rayleigh", scale, dtype, shape)
    return lax.mul(scale, lax.sqrt(lax.mul(lax.log(u), dtype.type(-2))))


@library(static=("shape", "dtype"))
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw samples of the Weibull distribution: cumulative `1 - exp(-(x / scale)**concentration)`.

    - `key`: key, or its words
    - `scale`, `concentration`: positive parameters, which promote with the samples and broadcast
    - `shape`: shape of the samples, by default a scalar
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype.
    Source: SciPy's `stats.weibull_min`.

    >>> random.weibull_min(random.key(0), 1.0, 2.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("weibull_min", key)
    dtype = float_dtype("weibull_min", dtype)
    shape = canonical_shape(shape)
    e = exponential_of(keys, shape, dtype)
    check_arraylike("weibull_min", scale, concentration)
    power = jnp.divide(1, jnp.asarray(concentration))
    return jnp.multiply(jnp.power(e, power), jnp.asarray(scale))


@library(static=_STATIC)
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the triangular distribution over [left, right], densest at `mode`.

    - `key`: key, or its words
    - `left`, `mode`, `right`: increasing numbers
    - `shape`: shape of the result, to which parameters are broadcast; by default their common shape
    - `dtype`: floating-point dtype, by default the default one

    ValueError for another dtype or parameters that do not broadcast.
    Source: NumPy's `random.Generator.triangular`.

    >>> random.triangular(random.key(0), 0.0, 1.0, 2.0, shape=(3,)).shape
    (3,)
    """
    keys = single_key("triangular", key)
    dtype = float_dtype("triangular", dtype)
    shape = sample_shape("triangular", shape, left, mode, right)
    left, mode, right = (
        spread(parameter("triangular", x, dtype, shape), shape) for x in (left, mode, right)
    )
    width = lax.sub(right, left)
    rising, falling = lax.sub(mode, left), lax.sub(right, mode)
    u = unit_uniform(keys, shape, dtype)
    up = lax.add(left, lax.sqrt(lax.mul(lax.mul(u, width), rising)))
    rest = lax.sub(dtype.type(1), u)
    down = lax.sub(right, lax.sqrt(lax.mul(lax.mul(rest, width), falling)))
    return lax.select(lax.lt(u, lax.div(rising, width)), up, down)
