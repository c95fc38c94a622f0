"""Activations: functions of each element. Called eagerly each is one compiled program. `relu`,
`relu6` and `log1mexp` have derivative rules of their own, for the points where the formula has
no derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.numpy.promotion import (
    axis_of,
    check_arraylike,
    check_ranks,
    converted,
    promote_inexact,
    to_array,
)
from minijax.typing import ArrayLike

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "leaky_relu", "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu",
    "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus",
    "swish",
]  # fmt: skip


@library
def identity(x: ArrayLike) -> Array:
    """Return `x` as an array.

    - `x`: array or number of any shape and dtype

    The result has the shape and dtype of `x`. TypeError for other objects.
    Source: NumPy's `asarray`.

    >>> nn.identity(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return to_array("identity", x)


def _gated(t: Any, inside: Any) -> Any:
    """The tangent where `inside`, and zero elsewhere."""
    return lax.select(inside, t, lax.full_like(t, 0))


@custom_jvp
@library
def relu(x: ArrayLike) -> Array:
    """Compute `max(x, 0)`; its derivative at 0 is 0.

    - `x`: array of real numbers, of any shape

    The result has the shape and dtype of `x`. TypeError for what is not an array or number.
    Source: Bertoin et al., arXiv:2106.12915 (2021), for the derivative.

    >>> nn.relu(jnp.array([-1, 2]))
    Array([0, 2], dtype=int32)
    """
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, out, x: _gated(t, lax.gt(x, lax.full_like(x, 0))))


@custom_jvp
@library
def relu6(x: ArrayLike) -> Array:
    """Compute `min(max(x, 0), 6)`; its derivative at 0 and at 6 is 0.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Krizhevsky, Convolutional Deep Belief Networks on CIFAR-10 (2010).

    >>> nn.relu6(jnp.array([-1.0, 9.0]))
    Array([0., 6.], dtype=float32)
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, out, x: _gated(t, (x > 0) & (x < 6)))


@custom_jvp
@library
def log1mexp(x: ArrayLike) -> Array:
    """Compute `log(1 - exp(-x))`, accurately for all x >= 0; NaN for x < 0.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Maechler, Accurately computing log(1 - exp(-|a|)) (2012).

    >>> nn.log1mexp(jnp.array([0.0, -1.0]))
    Array([-inf,  nan], dtype=float32)
    """
    x = to_array("log1mexp", x)
    near = jnp.log(-jnp.expm1(-x))
    return jnp.where(x < float(np.log(2.0)), near, jnp.log1p(-jnp.exp(-x)))


log1mexp.defjvps(lambda t, out, x: t / jnp.expm1(x))


@library
def softplus(x: ArrayLike) -> Array:
    """Compute `log(1 + exp(x))`, a smooth `relu`, without overflow.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: NumPy's `logaddexp`.

    >>> nn.softplus(jnp.array([-jnp.inf, jnp.inf]))
    Array([ 0., inf], dtype=float32)
    """
    x = to_array("softplus", x)
    out = jnp.logaddexp(x, 0)
    return out if x.dtype == np.bool_ or x.aval.weak_type else converted(out, out.dtype)


@library
def sparse_plus(x: ArrayLike) -> Array:
    """Compute 0 below -1, `x` above 1, and `(x + 1)**2 / 4` between: a `softplus` with exact zeros.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Martins and Astudillo, arXiv:1602.02068 (2016).

    >>> nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    x = to_array("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@library
def soft_sign(x: ArrayLike) -> Array:
    """Compute `x / (abs(x) + 1)`.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Bergstra et al., Quadratic Polynomials Learn Better Image Features (2009).

    >>> nn.soft_sign(jnp.array([1.0, -1.0]))
    Array([ 0.5, -0.5], dtype=float32)
    """
    x = to_array("soft_sign", x)
    return x / (jnp.abs(x) + 1)


@library
def sigmoid(x: ArrayLike) -> Array:
    """Compute `1 / (1 + exp(-x))`.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`. TypeError for integers.
    Source: SciPy's `special.expit`.

    >>> nn.sigmoid(jnp.array([0.0, jnp.inf]))
    Array([0.5, 1. ], dtype=float32)
    """
    return lax.logistic(x)


@library
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Compute 0 below -1, 1 above 1, and `(x + 1) / 2` between: the derivative of `sparse_plus`.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Martins and Astudillo, arXiv:1602.02068 (2016).

    >>> nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = to_array("sparse_sigmoid", x)
    return 0.5 * jnp.clip(x + 1.0, 0.0, 2.0)


@library
def silu(x: ArrayLike) -> Array:
    """Compute `x * sigmoid(x)`.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`. TypeError for integers.
    Source: Hendrycks and Gimpel, arXiv:1606.08415 (2016).

    >>> nn.silu(jnp.array([0.0, jnp.inf]))
    Array([ 0., inf], dtype=float32)
    """
    x = to_array("silu", x)
    return x * sigmoid(x)


swish = silu


@library
def mish(x: ArrayLike) -> Array:
    """Compute `x * tanh(softplus(x))`.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Misra, arXiv:1908.08681 (2019).

    >>> nn.mish(jnp.array([0.0, jnp.inf]))
    Array([ 0., inf], dtype=float32)
    """
    x = to_array("mish", x)
    return x * jnp.tanh(softplus(x))


@library
def log_sigmoid(x: ArrayLike) -> Array:
    """Compute `log(sigmoid(x))`, accurately for all x.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: the identity with `-softplus(-x)`.

    >>> nn.log_sigmoid(jnp.array([-jnp.inf]))
    Array([-inf], dtype=float32)
    """
    x = to_array("log_sigmoid", x)
    return -softplus(-x)


@library
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Compute `x` where positive and `alpha * (exp(x) - 1)` elsewhere.

    - `x`: array of real numbers, of any shape
    - `alpha`: array that broadcasts with `x`, by default 1

    The result has their common shape and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Clevert et al., arXiv:1511.07289 (2015).

    >>> nn.elu(jnp.array([-jnp.inf, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    check_ranks("elu", x, alpha)
    x = to_array("elu", x)
    # The exponential of a large x, though not taken, would spoil the derivative.
    below = jnp.where(x > 0, 0.0, x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(below))


@library
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Compute `x` where not negative and `negative_slope * x` elsewhere.

    - `x`: array of real numbers, of any shape
    - `negative_slope`: array that broadcasts with `x`, by default 0.01

    The result has their common shape and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Maas et al., Rectifier Nonlinearities Improve Neural Network Acoustic Models (2013).

    >>> nn.leaky_relu(jnp.array([-2.0, 2.0]), 0.5)
    Array([-1.,  2.], dtype=float32)
    """
    check_ranks("leaky_relu", x, negative_slope)
    x = to_array("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


@library
def hard_tanh(x: ArrayLike) -> Array:
    """Clip `x` to [-1, 1]; the derivative at the ends is 1.

    - `x`: array of real numbers, of any shape

    The result has the shape and dtype of `x`. TypeError for what is not an array or number.
    Source: Collobert, Large Scale Machine Learning (2004).

    >>> nn.hard_tanh(jnp.array([-3.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    x = to_array("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@library
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Compute `max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)`.

    - `x`: array of real numbers, of any shape
    - `alpha`: array that broadcasts with `x`, by default 1

    The result has their common shape and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Barron, arXiv:1704.07483 (2017).

    >>> nn.celu(jnp.array([-jnp.inf, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    check_ranks("celu", x, alpha)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


# The fixed point of mean 0 and variance 1 (Klambauer et al. 2017, arXiv:1706.02515).
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@library
def selu(x: ArrayLike) -> Array:
    """Compute a scaled `elu` that keeps mean and variance over layers.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Klambauer et al., arXiv:1706.02515 (2017).

    >>> nn.selu(jnp.array([0.0, jnp.inf]))
    Array([ 0., inf], dtype=float32)
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@library(static=("approximate",), converted=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Compute `x` times the normal distribution function of `x`.

    - `x`: array of real numbers, of any shape
    - `approximate`: whether to approximate it by a hyperbolic tangent

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Hendrycks and Gimpel, arXiv:1606.08415 (2016).

    >>> nn.gelu(jnp.array([0.0, jnp.inf]))
    Array([ 0., inf], dtype=float32)
    """
    (x,) = promote_inexact("gelu", x)
    dtype = x.dtype
    if approximate:
        root = np.sqrt(2 / np.pi).astype(dtype)
        cubic = root * (x + 0.044715 * (x**3))
        return x * (0.5 * (1.0 + jnp.tanh(cubic)))
    root = np.sqrt(0.5).astype(dtype)
    return jnp.asarray(0.5 * x * lax.erfc(-x * root), dtype=dtype)


@library(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Multiply the first half along an axis by the sigmoid of the second.

    - `x`: array of real numbers
    - `axis`: axis of even size, by default the last

    The result has half the size along `axis` and a floating-point dtype. AssertionError for an odd
    size.
    Source: Dauphin et al., arXiv:1612.08083 (2016).

    >>> nn.glu(jnp.array([2.0, 0.0]))
    Array([1.], dtype=float32)
    """
    x = to_array("glu", x)
    axis_of(axis, x.ndim)
    if x.shape[axis] % 2:
        raise AssertionError(
            f"glu: axis size must be divisible by 2; got an x of shape {x.shape} and axis={axis}."
        )
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


@library
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Compute `(x + sqrt(x**2 + b)) / 2`, a smooth `relu` without exponentials.

    - `x`: array of real numbers, of any shape
    - `b`: smoothness, an array that broadcasts with `x`, by default 4

    The result has their common shape and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Barron, arXiv:2112.11687 (2021).

    >>> nn.squareplus(jnp.array([0.0, 1.5]))
    Array([1., 2.], dtype=float32)
    """
    check_arraylike("squareplus", x, b)
    x, b = to_array("squareplus", x), to_array("squareplus", b, 1)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@library
def hard_sigmoid(x: ArrayLike) -> Array:
    """Compute `relu6(x + 3) / 6`, which is piecewise linear.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Howard et al., arXiv:1905.02244 (2019).

    >>> nn.hard_sigmoid(jnp.array([-3.0, 0.0, 3.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = to_array("hard_sigmoid", x)
    return relu6(x + 3.0) / 6.0


@library
def hard_silu(x: ArrayLike) -> Array:
    """Compute `x * hard_sigmoid(x)`.

    - `x`: array of real numbers, of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for what is not an array
    or number.
    Source: Howard et al., arXiv:1905.02244 (2019).

    >>> nn.hard_silu(jnp.array([0.0, 3.0]))
    Array([0., 3.], dtype=float32)
    """
    x = to_array("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu
