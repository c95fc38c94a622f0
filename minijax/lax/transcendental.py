"""Transcendental functions of elements: primitives with their rules, and the functions on them.

Derivatives are those of any table of derivatives, written so that what depends on the point alone
is computed once and the tangent is multiplied last.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import get_aval
from minijax.lax.arithmetic import (
    AccuracyMode,
    Tolerance,
    accurate,
    add_p,
    div_p,
    left_out,
    mul_p,
    neg_p,
    rsqrt_p,
    square_p,
    sub_p,
    with_accuracy,
)
from minijax.lax.compare import eq_p, select_n_p
from minijax.lax.convert import to_dtype
from minijax.lax.rules import (
    INEXACT,
    NUMBER,
    check_dtype,
    elementwise,
    merged,
    nary_shape,
    scalar_like,
)
from minijax.transforms.primitives import full_like_aval
from minijax.typing import Array, ArrayLike

__all__ = [
    "acos", "acos_p", "acosh", "acosh_p", "asin", "asin_p", "asinh", "asinh_p", "atan", "atan2",
    "atan2_p", "atan_p", "atanh", "atanh_p", "cos", "cos_p", "cosh", "cosh_p", "exp", "exp2",
    "exp2_p", "exp_p", "expm1", "expm1_p", "log", "log1p", "log1p_p", "log_p", "logistic",
    "logistic_p", "pow", "pow_p", "sin", "sin_p", "sinh", "sinh_p", "tan", "tan_p", "tanh",
    "tanh_p",
]  # fmt: skip


def _one(x: Any) -> np.generic:
    return scalar_like(1, x)


# -- exponentials and logarithms ------------------------------------------------------------------


exp_p = elementwise(
    "exp",
    accurate("stablehlo.exponential"),
    [INEXACT],
    jvp=[lambda t, out, x, **_: mul_p.bind(t, out)],
)


def _lower_exp2(b, x, *, accuracy=None):
    exponent = b.op("stablehlo.multiply", (x, b.full(math.log(2), x.aval)), b.out)
    return accurate("stablehlo.exponential")(b, exponent, accuracy=accuracy)


exp2_p = elementwise(
    "exp2",
    _lower_exp2,
    [INEXACT],
    jvp=[lambda t, out, x, **_: mul_p.bind(t, mul_p.bind(out, scalar_like(math.log(2), out)))],
)
expm1_p = elementwise(
    "expm1",
    accurate("stablehlo.exponential_minus_one"),
    [INEXACT],
    jvp=[lambda t, out, x, **_: mul_p.bind(t, add_p.bind(out, _one(out)))],
)
log_p = elementwise(
    "log", accurate("stablehlo.log"), [INEXACT], jvp=[lambda t, out, x, **_: div_p.bind(t, x)]
)
log1p_p = elementwise(
    "log1p",
    accurate("stablehlo.log_plus_one"),
    [INEXACT],
    jvp=[lambda t, out, x, **_: div_p.bind(t, add_p.bind(x, _one(x)))],
)
logistic_p = elementwise(
    "logistic",
    accurate("stablehlo.logistic"),
    [INEXACT],
    jvp=[lambda t, out, x, **_: mul_p.bind(t, mul_p.bind(out, sub_p.bind(_one(out), out)))],
)


def exp(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Raise e to the power of each element.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.exponential`.

    >>> lax.exp(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return with_accuracy(exp_p, x, accuracy)


def exp2(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Raise 2 to the power of each element.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: NumPy's `exp2`.

    >>> lax.exp2(jnp.array([0.0, 1.0]))
    Array([1., 2.], dtype=float32)
    """
    return with_accuracy(exp2_p, x, accuracy)


def expm1(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute `exp(x) - 1` for each element, precisely near zero.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.exponential_minus_one`.

    >>> lax.expm1(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return with_accuracy(expm1_p, x, accuracy)


def log(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute the natural logarithm of each element.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.log`.

    >>> lax.log(jnp.array([1.0, 0.0]))
    Array([  0., -inf], dtype=float32)
    """
    return with_accuracy(log_p, x, accuracy)


def log1p(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute `log(1 + x)` for each element, precisely near zero.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.log_plus_one`.

    >>> lax.log1p(jnp.array([0.0, -1.0]))
    Array([  0., -inf], dtype=float32)
    """
    return with_accuracy(log1p_p, x, accuracy)


def logistic(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute `1 / (1 + exp(-x))` for each element.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.logistic`.

    >>> lax.logistic(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return with_accuracy(logistic_p, x, accuracy)


# -- powers ---------------------------------------------------------------------------------------


def _lower_pow(b, x, y):
    return b.op("stablehlo.power", (x, b.convert(y, x.dtype)), b.out)


def _pow_dx(t, out, x, y):
    dtype = get_aval(x).dtype
    if get_aval(y).dtype == dtype:
        x, y = to_dtype(x, dtype, False), to_dtype(y, dtype, False)
        slope = mul_p.bind(y, pow_p.bind(x, sub_p.bind(y, _one(y))))
    else:
        # A whole power: its slope is zero where the exponent is, even at 0 and at infinity.
        ones = full_like_aval(1, get_aval(y))
        exponent = select_n_p.bind(eq_p.bind(y, scalar_like(0, y)), y, ones)
        factor = to_dtype(y, dtype)
        slope = mul_p.bind(factor, pow_p.bind(x, sub_p.bind(exponent, _one(y))))
    return mul_p.bind(t, slope)


def _pow_dy(t, out, x, y):
    ones = full_like_aval(1, get_aval(x))
    base = select_n_p.bind(eq_p.bind(x, scalar_like(0, x)), x, ones)
    moved = mul_p.bind(t, mul_p.bind(log_p.bind(base), out))
    return to_dtype(moved, get_aval(x).dtype, False)


pow_p = elementwise("pow", _lower_pow, [INEXACT, NUMBER], jvp=[_pow_dx, _pow_dy])


@pow_p.shape_rule
def _(x, y):
    check_dtype("pow", x, INEXACT, 0)
    check_dtype("pow", y, NUMBER, 1)
    if x.dtype != y.dtype and not dtypes.issubdtype(y.dtype, np.integer):
        raise TypeError(
            "the first argument to pow must have an inexact dtype (float or complex), and the "
            "second argument must have an inexact or integer dtype, and two inexact dtypes must "
            f"match, but got {x.dtype.name} and {y.dtype.name} respectively. Convert one of them."
        )
    return merged((x, y), nary_shape("pow", (x, y)), x.dtype)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Raise each element of `x` to the power `y`.

    - `x`: floating-point or complex array
    - `y`: array of the dtype of `x` or of integers, of the same shape; scalars are broadcast

    The result has the shape and dtype of `x`. TypeError for other dtypes, and where shapes differ.
    Source: the StableHLO operation `stablehlo.power`.

    >>> lax.pow(jnp.array([2.0, 3.0]), jnp.array([3, 2]))
    Array([8., 9.], dtype=float32)
    """
    return pow_p.bind(x, y)


# -- trigonometric functions ----------------------------------------------------------------------


def _circular(op: str) -> Callable:
    """Sine or cosine: of complex numbers, by the addition theorem."""
    real_op = accurate(op)

    def rule(b, z, *, accuracy=None):
        out = b.out
        if not dtypes.issubdtype(out.dtype, np.complexfloating):
            return real_op(b, z, accuracy=accuracy)
        part = out.update(dtype=dtypes.to_real_dtype(out.dtype))
        x, y = (b.op(f"stablehlo.{name}", (z,), part) for name in ("real", "imag"))
        sin, cos = (b.op(f"stablehlo.{name}", (x,), part) for name in ("sine", "cosine"))
        sinh, cosh = (b.op(f"chlo.{name}", (y,), part) for name in ("sinh", "cosh"))
        first, second = (sin, cos) if op == "stablehlo.sine" else (cos, sin)
        real = b.op("stablehlo.multiply", (first, cosh), part)
        imag = b.op("stablehlo.multiply", (second, sinh), part)
        # On the imaginary axis sin(x) is zero, whatever it is multiplied by.
        zero = b.full(0, part)
        on_axis = b.compare(x, zero, "EQ")
        if op == "stablehlo.sine":
            real = b.op("stablehlo.select", (on_axis, zero, real), part)
        else:
            imag = b.op("stablehlo.negate", (imag,), part)
            imag = b.op("stablehlo.select", (on_axis, zero, imag), part)
        return b.op("stablehlo.complex", (real, imag), out)

    return rule


sin_p = elementwise(
    "sin",
    _circular("stablehlo.sine"),
    [INEXACT],
    jvp=[lambda t, out, x, **params: mul_p.bind(t, cos_p.bind(x, **params))],
)
cos_p = elementwise(
    "cos",
    _circular("stablehlo.cosine"),
    [INEXACT],
    jvp=[lambda t, out, x, **params: neg_p.bind(mul_p.bind(t, sin_p.bind(x, **params)))],
)
tan_p = elementwise(
    "tan",
    accurate("stablehlo.tan"),
    [INEXACT],
    jvp=[lambda t, out, x, **_: mul_p.bind(t, add_p.bind(square_p.bind(out), _one(out)))],
)
asin_p = elementwise(
    "asin",
    "chlo.asin",
    [INEXACT],
    jvp=[lambda t, out, x: mul_p.bind(t, rsqrt_p.bind(sub_p.bind(_one(x), square_p.bind(x))))],
)
acos_p = elementwise(
    "acos",
    "chlo.acos",
    [INEXACT],
    jvp=[
        lambda t, out, x: mul_p.bind(
            t, neg_p.bind(rsqrt_p.bind(sub_p.bind(_one(x), square_p.bind(x))))
        )
    ],
)
atan_p = elementwise(
    "atan",
    "chlo.atan",
    [INEXACT],
    jvp=[lambda t, out, x: div_p.bind(t, add_p.bind(square_p.bind(x), _one(x)))],
)


def _atan2_slope(x, y, numerator):
    return div_p.bind(numerator, add_p.bind(square_p.bind(x), square_p.bind(y)))


atan2_p = elementwise(
    "atan2",
    "stablehlo.atan2",
    [INEXACT, INEXACT],
    jvp=[
        lambda t, out, x, y: mul_p.bind(t, _atan2_slope(x, y, y)),
        lambda t, out, x, y: mul_p.bind(t, _atan2_slope(x, y, neg_p.bind(x))),
    ],
)


def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute the sine of each element, in radians.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.sine`.

    >>> lax.sin(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return with_accuracy(sin_p, x, accuracy)


def cos(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute the cosine of each element, in radians.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.cosine`.

    >>> lax.cos(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return with_accuracy(cos_p, x, accuracy)


def tan(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute the tangent of each element, in radians.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.tan`.

    >>> lax.tan(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return with_accuracy(tan_p, x, accuracy)


def asin(x: ArrayLike) -> Array:
    """Compute the angle, in radians, whose sine is each element.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`; NaN for floats outside [-1, 1]. TypeError for
    integers and booleans.
    Source: NumPy's `arcsin`.

    >>> lax.asin(jnp.array([0.0, 2.0]))
    Array([ 0., nan], dtype=float32)
    """
    return asin_p.bind(x)


def acos(x: ArrayLike) -> Array:
    """Compute the angle, in radians, whose cosine is each element.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`; NaN for floats outside [-1, 1]. TypeError for
    integers and booleans.
    Source: NumPy's `arccos`.

    >>> lax.acos(jnp.array([1.0, 2.0]))
    Array([ 0., nan], dtype=float32)
    """
    return acos_p.bind(x)


def atan(x: ArrayLike) -> Array:
    """Compute the angle, in radians, whose tangent is each element.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: NumPy's `arctan`.

    >>> lax.atan(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return atan_p.bind(x)


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the angle of the point (y, x), in radians: `atan(x / y)` in its quadrant.

    - `x`, `y`: floating-point or complex arrays of one dtype and shape; scalars and sizes of 1 are
      broadcast

    The result has their shape and dtype. TypeError for other dtypes, and where dtypes or shapes
    differ.
    Source: the StableHLO operation `stablehlo.atan2`.

    >>> lax.atan2(jnp.array([0.0, 0.0]), jnp.array([1.0, 2.0]))
    Array([0., 0.], dtype=float32)
    """
    return atan2_p.bind(x, y)


# -- hyperbolic functions -------------------------------------------------------------------------

sinh_p = elementwise(
    "sinh", "chlo.sinh", [INEXACT], jvp=[lambda t, out, x: mul_p.bind(t, cosh_p.bind(x))]
)
cosh_p = elementwise(
    "cosh", "chlo.cosh", [INEXACT], jvp=[lambda t, out, x: mul_p.bind(t, sinh_p.bind(x))]
)


def _tanh_jvp(t, out, x, *, accuracy=None):
    if accuracy is None:
        slope = mul_p.bind(add_p.bind(out, _one(out)), sub_p.bind(_one(out), out))
    else:  # the result may be off by more than 1 - out: derive from the logistic function
        halves = [
            logistic_p.bind(mul_p.bind(scalar_like(sign, x), x), accuracy=accuracy)
            for sign in (2, -2)
        ]
        slope = mul_p.bind(scalar_like(4, x), mul_p.bind(*halves))
    return mul_p.bind(t, slope)


tanh_p = elementwise("tanh", accurate("stablehlo.tanh"), [INEXACT], jvp=[_tanh_jvp])
for _p in (exp_p, exp2_p, expm1_p, log_p, log1p_p, logistic_p, sin_p, cos_p, tan_p, tanh_p):
    left_out(_p, "accuracy")
asinh_p = elementwise(
    "asinh",
    "chlo.asinh",
    [INEXACT],
    jvp=[lambda t, out, x: mul_p.bind(t, rsqrt_p.bind(add_p.bind(square_p.bind(x), _one(x))))],
)
acosh_p = elementwise(
    "acosh",
    "chlo.acosh",
    [INEXACT],
    jvp=[
        # Not 1 / sqrt(x * x - 1), which has another branch, and overflows.
        lambda t, out, x: mul_p.bind(
            t,
            mul_p.bind(rsqrt_p.bind(sub_p.bind(x, _one(x))), rsqrt_p.bind(add_p.bind(x, _one(x)))),
        )
    ],
)
atanh_p = elementwise(
    "atanh",
    "chlo.atanh",
    [INEXACT],
    jvp=[
        lambda t, out, x: div_p.bind(t, mul_p.bind(add_p.bind(_one(x), x), sub_p.bind(_one(x), x)))
    ],
)


def sinh(x: ArrayLike) -> Array:
    """Compute the hyperbolic sine of each element.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: NumPy's `sinh`.

    >>> lax.sinh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return sinh_p.bind(x)


def cosh(x: ArrayLike) -> Array:
    """Compute the hyperbolic cosine of each element.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: NumPy's `cosh`.

    >>> lax.cosh(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return cosh_p.bind(x)


def tanh(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute the hyperbolic tangent of each element.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.tanh`.

    >>> lax.tanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return with_accuracy(tanh_p, x, accuracy)


def asinh(x: ArrayLike) -> Array:
    """Compute the number whose hyperbolic sine is each element.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: NumPy's `arcsinh`.

    >>> lax.asinh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return asinh_p.bind(x)


def acosh(x: ArrayLike) -> Array:
    """Compute the number whose hyperbolic cosine is each element; NaN for a float below 1.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: NumPy's `arccosh`.

    >>> lax.acosh(jnp.array([1.0, 0.0]))
    Array([ 0., nan], dtype=float32)
    """
    return acosh_p.bind(x)


def atanh(x: ArrayLike) -> Array:
    """Compute the number whose hyperbolic tangent is each element.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`; NaN for floats outside [-1, 1]. TypeError for
    integers and booleans.
    Source: NumPy's `arctanh`.

    >>> lax.atanh(jnp.array([0.0, 2.0]))
    Array([ 0., nan], dtype=float32)
    """
    return atanh_p.bind(x)
