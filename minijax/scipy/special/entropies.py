"""Logarithms that are finite at zero, entropies and their kin. Of functions like x log(y), the
derivative with respect to y is given where the formula has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax import nn as _nn
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.numpy.promotion import check_arraylike, converted, promote_inexact
from minijax.typing import ArrayLike

__all__ = [
    "boxcox", "boxcox1p", "entr", "expit", "kl_div", "log_softmax", "logit", "rel_entr", "softmax",
    "xlog1py", "xlogy",
]  # fmt: skip


@custom_jvp
@library
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute `x * log(y)`, which is 0 where x is 0 unless y is NaN.

    - `x`, `y`: real or complex arrays that broadcast together

    The result has their common shape and a floating-point or complex dtype. TypeError for what is
    not an array or number.
    Source: SciPy's `special.xlogy`.

    >>> jax.scipy.special.xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 1.0]))
    Array([0., 0.], dtype=float32)
    """
    check_arraylike("xlogy", x, y)
    x, y = _pair("xlogy", x, y)
    # Chosen after multiplying: a difference of two of these is not contracted, and 0 if they agree.
    return jnp.where((x != 0.0) | jnp.isnan(y), lax.mul(x, lax.log(y)), jnp.zeros_like(x))


@custom_jvp
@library
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute `x * log(1 + y)`, which is 0 where x is 0 unless y is NaN.

    - `x`, `y`: real or complex arrays that broadcast together

    The result has their common shape and a floating-point or complex dtype. TypeError for what is
    not an array or number.
    Source: SciPy's `special.xlog1py`.

    >>> jax.scipy.special.xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 0.0]))
    Array([0., 0.], dtype=float32)
    """
    x, y = _pair("xlog1py", x, y)
    return jnp.where((x != 0.0) | jnp.isnan(y), lax.mul(x, lax.log1p(y)), jnp.zeros_like(x))


def _real(name: str, *args: Any) -> list[Any]:
    args = promote_inexact(name, *args)
    if dtypes.issubdtype(dtypes.dtype(args[0]), np.complexfloating):
        raise ValueError(f"{name} does not support complex-valued inputs. Give real parts.")
    return args


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
    return _xlogx(x), t * (lax.log(x) + 1)


@library
def entr(x: ArrayLike) -> Array:
    """Compute `-x * log(x)`, which is 0 at 0 and -inf for negative x.

    - `x`: real array of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: SciPy's `special.entr`.

    >>> jax.scipy.special.entr(jnp.array([-1.0, jnp.inf]))
    Array([-inf, -inf], dtype=float32)
    """
    (x,) = _real("entr", x)
    return jnp.where(x < 0, -np.inf, -_xlogx(x))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute `p * log(p / q)`, 0 where p is 0 <= q, and inf where either is negative.

    - `p`, `q`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.rel_entr`.

    >>> jax.scipy.special.rel_entr(jnp.array([1.0, 0.0, -1.0]), 1.0)
    Array([ 0.,  0., inf], dtype=float32)
    """
    # Called eagerly the products and their difference are programs of their own: within one they
    # would be contracted, and the entropy of p relative to itself not be 0.
    is_strong = np.ndim(p) > 0  # as upstream: whatever the dtype of `p` was
    both, none, p, q = _where_positive(p, q)
    out = _relative(both, none, _xlogx(p), xlogy(p, q))
    return converted(out, out.dtype) if is_strong else out


@library
def _where_positive(p, q):
    p, q = _pair("rel_entr", *_real("rel_entr", p, q))
    both, none = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    return both, none, jnp.where(both, p, 1), jnp.where(both, q, 1)


@library
def _relative(both, none, first, second):
    return jnp.where(none, 0.0, jnp.where(both, first - second, np.inf))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute `p * log(p / q) - p + q`, whose sum is the Kullback-Leibler divergence.

    - `p`, `q`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.kl_div`.

    >>> jax.scipy.special.kl_div(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    p, q = _real("kl_div", p, q)
    out = rel_entr(p, q) - p + q
    return converted(out, out.dtype) if np.ndim(p) else out


@library
def expit(x: ArrayLike) -> Array:
    """Compute `1 / (1 + exp(-x))`.

    - `x`: real or complex array of any shape

    The result has the shape of `x` and a floating-point or complex dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.expit`.

    >>> jax.scipy.special.expit(jnp.array([0.0, jnp.inf]))
    Array([0.5, 1. ], dtype=float32)
    """
    (x,) = promote_inexact("expit", x)
    return lax.logistic(x)


@custom_jvp
@library
def logit(x: ArrayLike) -> Array:
    """Compute `log(x / (1 - x))`, the inverse of `expit`.

    - `x`: real or complex array of any shape

    The result has the shape of `x` and a floating-point or complex dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.logit`.

    >>> jax.scipy.special.logit(jnp.array([0.0, 0.5, 1.0]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    (x,) = promote_inexact("logit", x)
    return lax.log(lax.div(x, lax.sub(lax.full_like(x, 1), x)))


logit.defjvps(lambda t, out, x: jnp.divide(t, x * (1 - x)))


@library
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute `(x**lmbda - 1) / lmbda`, and `log(x)` where `lmbda` is 0.

    - `x`, `lmbda`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.boxcox`.

    >>> jax.scipy.special.boxcox(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x, lmbda = promote_inexact("boxcox", x, lmbda)
    return _boxed(jnp.log(x), lmbda)


@library
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute `((1 + x)**lmbda - 1) / lmbda`, and `log(1 + x)` where `lmbda` is 0.

    - `x`, `lmbda`: real arrays that broadcast together

    The result has the arguments' common shape and a floating-point dtype. TypeError for what is not
    an array or number.
    Source: SciPy's `special.boxcox1p`.

    >>> jax.scipy.special.boxcox1p(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x, lmbda = promote_inexact("boxcox1p", x, lmbda)
    return _boxed(jnp.log1p(x), lmbda)


def _boxed(log: Any, power: Any) -> Any:
    zero = power == 0
    safe = jnp.where(zero, 1, power)
    return jnp.where(zero, log, jnp.expm1(safe * log) / safe)


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Compute `exp(x) / sum(exp(x))` along axes.

    - `x`: real array
    - `axis`: axis or axes, by default all

    The result has the shape of `x` and a floating-point dtype. ValueError for an axis out of range.
    Source: SciPy's `special.softmax`.

    >>> jax.scipy.special.softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    return _nn.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Compute `log(softmax(x))` along axes.

    - `x`: real array
    - `axis`: axis or axes, by default all

    The result has the shape of `x` and a floating-point dtype. ValueError for an axis out of range.
    Source: SciPy's `special.log_softmax`.

    >>> jax.scipy.special.log_softmax(jnp.array([0.0, -jnp.inf]))
    Array([  0., -inf], dtype=float32)
    """
    return _nn.log_softmax(x, axis=axis)
