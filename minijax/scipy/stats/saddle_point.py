"""Probabilities of counts without the cancellation of large logarithms of gamma functions.

Source: Loader, Fast and accurate computation of binomial probabilities (2000).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.lax.large_gammas import stirling_rest

__all__ = ["binomial", "exactly", "poisson", "stirling_error"]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_ATANH = tuple(1 / (2 * j + 1) for j in range(1, 9))  # of even powers, without the first


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """The polynomial with these coefficients, from the constant on, in the dtype of `x`, weak or not."""
    return reduce(lambda value, c: value * x + c, reversed(coefficients))


def exactly(value: Any, x: Any) -> Any:
    """Return `value`, which is `x` without rounding errors, with the derivatives of `x`."""
    return lax.stop_gradient(value) + (x - lax.stop_gradient(x))


def stirling_error(x: Any) -> Any:
    """Compute `log(x!) - log(sqrt(2 pi x) (x / e)**x)`, for positive x."""
    least = 8 if dtypes.bit_width(x.dtype) == 64 else 4
    is_small = x < least
    small = jnp.where(is_small, x, 1)
    # The recurrence of the gamma function in steps of one: no step has a large logarithm to cancel.
    steps = [(small + (j + 0.5)) * jnp.log1p(1 / (small + j)) - 1 for j in range(least)]
    large = jnp.where(is_small, small + least, x)
    return stirling_rest(large) + jnp.where(is_small, sum(steps), 0)


@custom_jvp
def _deviance(x: Any, mean: Any) -> Any:
    """Compute `x log(x / mean) + mean - x`, for positive arguments, by a series where they are near."""
    half = 0.5 * x - 0.5 * mean
    ratio = half / (0.5 * x + 0.5 * mean)
    rest = _polynomial((0.0, *_ATANH), ratio**2)
    near = 2 * ratio * (half + x * rest)
    return jnp.where(jnp.abs(ratio) < 0.1, near, x * jnp.log(x / mean) - 2 * half)


_deviance.defjvps(
    lambda t, out, x, mean: t * jnp.log(x / mean), lambda t, out, x, mean: t * ((mean - x) / mean)
)


def poisson(k: Any, mean: Any) -> Any:
    """Compute the logarithm of Poisson's probability of k events, at least one."""
    return -_deviance(k, mean) - stirling_error(k) - _HALF_LOG_2PI - 0.5 * jnp.log(k)


def binomial(k: Any, n: Any, p: Any, q: Any) -> Any:
    """Compute the logarithm of the probability of k of n events, some and not all; `q` is 1 - `p`."""
    rest = n - k
    errors = stirling_error(n) - stirling_error(k) - stirling_error(rest)
    root = _HALF_LOG_2PI + 0.5 * jnp.log(k * (rest / n))
    return errors - _deviance(k, n * p) - _deviance(rest, n * q) - root
