"""Activations: functions of each element. May import the floors below and `numpy`.

Called eagerly each is one compiled program. `relu`, `relu6` and `log1mexp` have derivative rules of
their own, for the points where the formula has no derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.promotion import check_arraylike, converted, promote_inexact, to_array
from minijax.transforms.custom_jvp import custom_jvp
from minijax.transforms.library import library

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "leaky_relu", "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu",
    "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus",
    "swish",
]  # fmt: skip


@library
def identity(x: Any) -> Array:
    """`x` as an array."""
    return to_array("identity", x)


def _gated(t: Any, inside: Any) -> Any:
    """The tangent where `inside`, and zero elsewhere."""
    return lax.select(inside, t, lax.full_like(t, 0))


@custom_jvp
@library
def relu(x: Any) -> Array:
    """max(x, 0). Its derivative at 0 is 0 (Bertoin et al. 2021, arXiv:2106.12915)."""
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, out, x: _gated(t, lax.gt(x, lax.full_like(x, 0))))


@custom_jvp
@library
def relu6(x: Any) -> Array:
    """min(max(x, 0), 6). Its derivative at 0 and at 6 is 0."""
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, out, x: _gated(t, (x > 0) & (x < 6)))


@custom_jvp
@library
def log1mexp(x: Any) -> Array:
    """log(1 - exp(-x)), accurate for all x >= 0; nan for x < 0.

    Source: Maechler 2012, "Accurately computing log(1 - exp(-|a|))".
    """
    x = to_array("log1mexp", x)
    near = jnp.log(-jnp.expm1(-x))
    return jnp.where(x < np.log(2.0), near, jnp.log1p(-jnp.exp(-x)))


log1mexp.defjvps(lambda t, out, x: t / lax.expm1(jnp.asarray(x, t.dtype)))


@library
def softplus(x: Any) -> Array:
    """log(1 + exp(x)), a smooth `relu`."""
    x = to_array("softplus", x)
    out = jnp.logaddexp(x, 0.0)
    return out if x.dtype == np.bool_ or x.aval.weak_type else converted(out, out.dtype)


@library
def sparse_plus(x: Any) -> Array:
    """0 below -1, x above 1, and (x + 1)**2 / 4 between: a `softplus` with exact zeros."""
    x = to_array("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@library
def soft_sign(x: Any) -> Array:
    """x / (|x| + 1)."""
    x = to_array("soft_sign", x)
    return x / (jnp.abs(x) + 1)


@library
def sigmoid(x: Any) -> Array:
    """1 / (1 + exp(-x)). TypeError for integers."""
    return lax.logistic(x)


@library
def sparse_sigmoid(x: Any) -> Array:
    """0 below -1, 1 above 1, and (x + 1) / 2 between: the derivative of `sparse_plus`."""
    x = to_array("sparse_sigmoid", x)
    return 0.5 * jnp.clip(x + 1.0, 0.0, 2.0)


@library
def silu(x: Any) -> Array:
    """x * sigmoid(x) (Hendrycks and Gimpel 2016, arXiv:1606.08415). TypeError for integers."""
    x = to_array("silu", x)
    return x * sigmoid(x)


swish = silu


@library
def mish(x: Any) -> Array:
    """x * tanh(softplus(x)) (Misra 2019, arXiv:1908.08681)."""
    x = to_array("mish", x)
    return x * jnp.tanh(softplus(x))


@library
def log_sigmoid(x: Any) -> Array:
    """log(sigmoid(x)), accurate for all x."""
    x = to_array("log_sigmoid", x)
    return -softplus(-x)


@library
def elu(x: Any, alpha: Any = 1.0) -> Array:
    """x where positive, else alpha * (exp(x) - 1) (Clevert et al. 2015, arXiv:1511.07289)."""
    x = to_array("elu", x)
    # The exponential of a large x, though not taken, would spoil the derivative.
    below = jnp.where(x > 0, 0.0, x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(below))


@library
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """x where not negative, else negative_slope * x."""
    x = to_array("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


@library
def hard_tanh(x: Any) -> Array:
    """x clipped to [-1, 1]. Its derivative at the ends is 1."""
    x = to_array("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@library
def celu(x: Any, alpha: Any = 1.0) -> Array:
    """max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1) (Barron 2017, arXiv:1704.07483)."""
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


# The fixed point of mean 0 and variance 1 (Klambauer et al. 2017, arXiv:1706.02515).
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@library
def selu(x: Any) -> Array:
    """A scaled `elu` that keeps mean and variance (Klambauer et al. 2017, arXiv:1706.02515)."""
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@library(static=("approximate",))
def gelu(x: Any, approximate: bool = True) -> Array:
    """x times the normal distribution function of x, or its approximation by tanh.

    Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.
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
def glu(x: Any, axis: int = -1) -> Array:
    """The first half along an axis, times the sigmoid of the second (arXiv:1612.08083).

    AssertionError if the size of the axis is odd.
    """
    x = to_array("glu", x)
    if x.shape[axis] % 2:
        raise AssertionError(
            f"glu: axis size must be divisible by 2; got an x of shape {x.shape} and axis={axis}."
        )
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


@library
def squareplus(x: Any, b: Any = 4) -> Array:
    """(x + sqrt(x**2 + b)) / 2, a smooth `relu` without exponentials (arXiv:2112.11687)."""
    check_arraylike("squareplus", x, b)
    x, b = to_array("squareplus", x), to_array("squareplus", b, 1)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@library
def hard_sigmoid(x: Any) -> Array:
    """relu6(x + 3) / 6, piecewise linear."""
    x = to_array("hard_sigmoid", x)
    return relu6(x + 3.0) / 6.0


@library
def hard_silu(x: Any) -> Array:
    """x * hard_sigmoid(x) (Howard et al. 2019, arXiv:1905.02244)."""
    x = to_array("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu
