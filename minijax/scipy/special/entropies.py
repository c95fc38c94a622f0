"""Logarithms that are finite at zero, entropies and their kin. May import the floors below, `numpy`
and `nn`.

Of functions like x log(y), the derivative with respect to y is given where the formula has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import lax
from minijax import nn as _nn
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.promotion import check_arraylike, promote_inexact
from minijax.transforms.custom_jvp import custom_jvp
from minijax.transforms.library import library

__all__ = [
    "boxcox", "boxcox1p", "entr", "expit", "kl_div", "log_softmax", "logit", "rel_entr", "softmax",
    "xlog1py", "xlogy",
]  # fmt: skip


@custom_jvp
@library
def xlogy(x: Any, y: Any) -> Array:
    """x * log(y), and 0 where x is 0 unless y is NaN. Source: scipy.special.xlogy."""
    check_arraylike("xlogy", x, y)
    x, y = _pair("xlogy", x, y)
    # Chosen after multiplying: a difference of two of these is not contracted, and 0 if they agree.
    return jnp.where((x != 0.0) | jnp.isnan(y), lax.mul(x, lax.log(y)), jnp.zeros_like(x))


@custom_jvp
@library
def xlog1py(x: Any, y: Any) -> Array:
    """x * log(1 + y), and 0 where x is 0 unless y is NaN. Source: scipy.special.xlog1py."""
    x, y = _pair("xlog1py", x, y)
    return jnp.where((x != 0.0) | jnp.isnan(y), lax.mul(x, lax.log1p(y)), jnp.zeros_like(x))


def _pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    x, y = promote_inexact(name, x, y)
    shape = jnp.broadcast_shapes(np.shape(x), np.shape(y))
    return jnp.broadcast_to(x, shape), jnp.broadcast_to(y, shape)


@xlogy.defjvp
def _(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    out = xlogy(x, y)
    return out, (x_dot * lax.log(y) + y_dot * x / y).astype(out.dtype)


@xlog1py.defjvp
def _(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    out = xlog1py(x, y)
    return out, (x_dot * lax.log1p(y) + y_dot * x / (1 + y)).astype(out.dtype)


@custom_jvp
def _xlogx(x: Any) -> Array:
    return xlogy(x, x)


@_xlogx.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    out = _xlogx(x)
    return out, (t * (lax.log(x) + 1)).astype(out.dtype)


@library
def entr(x: Any) -> Array:
    """-x log(x), 0 at 0, and -inf for negative x. Source: scipy.special.entr."""
    (x,) = promote_inexact("entr", x)
    return jnp.where(x < 0, -np.inf, -_xlogx(x))


def rel_entr(p: Any, q: Any) -> Array:
    """p log(p / q), 0 where p is 0 <= q, else inf. Source: scipy.special.rel_entr."""
    # Called eagerly the products and their difference are programs of their own: within one they
    # would be contracted, and the entropy of p relative to itself not be 0.
    both, none, p, q = _where_positive(p, q)
    return _relative(both, none, _xlogx(p), xlogy(p, q))


@library
def _where_positive(p, q):
    p, q = _pair("rel_entr", p, q)
    both, none = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    return both, none, jnp.where(both, p, 1), jnp.where(both, q, 1)


@library
def _relative(both, none, first, second):
    return jnp.where(none, 0.0, jnp.where(both, first - second, np.inf))


def kl_div(p: Any, q: Any) -> Array:
    """p log(p / q) - p + q, whose sum is the Kullback-Leibler divergence. Source:
    scipy.special.kl_div.
    """
    p, q = promote_inexact("kl_div", p, q)
    return rel_entr(p, q) - p + q


@library
def expit(x: Any) -> Array:
    """1 / (1 + exp(-x)). Source: scipy.special.expit."""
    (x,) = promote_inexact("expit", x)
    return lax.logistic(x)


@custom_jvp
@library
def logit(x: Any) -> Array:
    """log(x / (1 - x)), the inverse of `expit`. Source: scipy.special.logit."""
    (x,) = promote_inexact("logit", x)
    return lax.log(lax.div(x, lax.sub(lax.full_like(x, 1), x)))


logit.defjvps(lambda t, out, x: t / (x * (1 - x)))


@library
def boxcox(x: Any, lmbda: Any) -> Array:
    """(x**lmbda - 1) / lmbda, and log(x) where lmbda is 0. Source: scipy.special.boxcox."""
    x, lmbda = promote_inexact("boxcox", x, lmbda)
    return _boxed(jnp.log(x), lmbda)


@library
def boxcox1p(x: Any, lmbda: Any) -> Array:
    """((1 + x)**lmbda - 1) / lmbda, and log(1 + x) where lmbda is 0. Source: scipy.special.boxcox1p."""
    x, lmbda = promote_inexact("boxcox1p", x, lmbda)
    return _boxed(jnp.log1p(x), lmbda)


def _boxed(log: Any, power: Any) -> Any:
    zero = power == 0
    safe = jnp.where(zero, 1, power)
    return jnp.where(zero, log, jnp.expm1(safe * log) / safe)


def softmax(x: Any, /, *, axis: Any = None) -> Array:
    """exp(x) / sum(exp(x)) along axes, all by default. Source: scipy.special.softmax."""
    return _nn.softmax(x, axis=axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Array:
    """log(softmax(x)) along axes, all by default. Source: scipy.special.log_softmax."""
    return _nn.log_softmax(x, axis=axis)
