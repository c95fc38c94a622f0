"""Arithmetic on elements: primitives with their rules, and the functions on them.

May import the floors below, `lax.rules`, `lax.compare` and `lax.convert`. Here stand sums and
products, rounding, complex parts, extrema, whole powers and roots; `lax.transcendental` has the rest.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import not_differentiable
from minijax.core.sums import added, first, multiplied, refused
from minijax.lax.compare import eq_p, ge_p, select_n_p
from minijax.lax.rules import (
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    REAL,
    add_any_broadcast,
    check_dtype,
    collapse_like,
    elementwise,
    expand_to,
    linear,
    merged,
    nary_shape,
    same_dtypes,
    scalar_like,
)
from minijax.transforms.constraints import reduced_as
from minijax.transforms.primitives import full_like_aval, instantiate
from minijax.transforms.tangents import Zero, is_undefined, zero_tangent

__all__ = [
    "AccuracyMode", "RoundingMethod", "Tolerance", "abs", "abs_p", "add", "add_p", "cbrt", "cbrt_p",
    "ceil", "ceil_p", "complex", "complex_p", "conj", "conj_p", "div", "div_p", "floor", "floor_p",
    "imag", "imag_p", "integer_pow", "integer_pow_p", "max", "max_p", "min", "min_p", "mul",
    "mul_p", "mulhi", "mulhi_p", "neg", "neg_p", "nextafter", "nextafter_p", "real", "real_p",
    "reciprocal", "rem", "rem_p", "round", "round_p", "rsqrt", "rsqrt_p", "sign", "sign_p", "sqrt",
    "sqrt_p", "square", "square_p", "sub", "sub_p",
]  # fmt: skip

# -- accuracy ---------------------------------------------------------------------------------


class AccuracyMode(enum.Enum):
    """How accurate an implementation of a function to choose."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """How far off an implementation of a function may be: absolute, relative, in units of the last
    place. A compiler that has none within it chooses its best.
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0.0 or rtol < 0.0 or ulps < 0:
            raise ValueError(
                "Tolerance(atol, rtol, ulps): tolerances must not be negative; got "
                f"{atol}, {rtol}, {ulps}."
            )
        self.atol, self.rtol, self.ulps = atol, rtol, ulps


def accurate(op: str) -> Callable:
    """The lowering rule of an operation that takes `accuracy`."""

    def rule(b, x, *, accuracy=None):
        return b.op(op, (x,), b.out, _accuracy_attribute(accuracy))

    return rule


def _accuracy_attribute(accuracy: AccuracyMode | Tolerance | None) -> str:
    if accuracy is None:
        return ""
    if isinstance(accuracy, AccuracyMode):
        mode, parts = accuracy.name, ""
    elif isinstance(accuracy, Tolerance):
        mode = "TOLERANCE"
        parts = (
            f"atol = {float(accuracy.atol):e}, rtol = {float(accuracy.rtol):e}, "
            f"ulps = {accuracy.ulps}, "
        )
    else:
        raise TypeError(
            f"accuracy must be an AccuracyMode, a Tolerance or None; got {accuracy!r} of type "
            f"{type(accuracy)}."
        )
    return (
        f"result_accuracy = #stablehlo.result_accuracy<{parts}"
        f"mode = #stablehlo.result_accuracy_mode<{mode}>>"
    )


def with_accuracy(p: Any, x: Any, accuracy: Any) -> Any:
    """Bind a primitive; its parameter `accuracy` is left out where nobody asks for it."""
    return p.bind(x) if accuracy is None else p.bind(x, accuracy=accuracy)


# -- sums and products, linear in each operand ------------------------------------------------

neg_p = elementwise("neg", "stablehlo.negate", [NUMBER])
linear(neg_p, lambda ct, aval: neg_p.bind(ct))

add_p = elementwise(
    "add",
    "stablehlo.add",
    [NUMBER, NUMBER],
    jvp=[lambda t, out, x, y: t, lambda t, out, x, y: t],
)


add_p.sums(added)


@add_p.transpose
def _(ct, x, y):
    return [collapse_like(ct, v.aval) if is_undefined(v) else None for v in (x, y)]


sub_p = elementwise(
    "sub",
    "stablehlo.subtract",
    [NUMBER, NUMBER],
    jvp=[lambda t, out, x, y: t, lambda t, out, x, y: neg_p.bind(t)],
)


@sub_p.transpose
def _(ct, x, y):
    return [
        collapse_like(ct, x.aval) if is_undefined(x) else None,
        neg_p.bind(collapse_like(ct, y.aval)) if is_undefined(y) else None,
    ]


def _lower_mul(b, x, y, *, out_dtype=None):
    if out_dtype is not None:
        x, y = b.convert(x, b.out.dtype), b.convert(y, b.out.dtype)
    return b.op("stablehlo.multiply", (x, y), b.out)


mul_p = elementwise(
    "mul",
    _lower_mul,
    [NUMBER, NUMBER],
    jvp=[
        lambda t, out, x, y, **params: mul_p.bind(t, y, **params),
        lambda t, out, x, y, **params: mul_p.bind(x, t, **params),
    ],
)
mul_p.sums(multiplied)
mul_p.printed = lambda params: {k: v for k, v in params.items() if v is not None}


@mul_p.shape_rule
def _(x, y, *, out_dtype=None):
    for position, aval in enumerate((x, y)):
        check_dtype("mul", aval, NUMBER, position)
    if out_dtype is None:
        same_dtypes("mul", (x, y))
    dtype = x.dtype if out_dtype is None else dtypes.canonicalize_dtype(out_dtype)
    return merged((x, y), nary_shape("mul", (x, y)), dtype)


@mul_p.transpose
def _(ct, x, y, *, out_dtype=None):
    linear_one, known = (x, y) if is_undefined(x) else (y, x)
    if ShapedArray.split_seen:
        known = reduced_as(known, ct)
    params = {} if out_dtype is None else {"out_dtype": linear_one.aval.dtype}
    if is_undefined(x):
        return [collapse_like(mul_p.bind(ct, known, **params), x.aval), None]
    return [None, collapse_like(mul_p.bind(known, ct, **params), y.aval)]


div_p = elementwise(
    "div",
    "stablehlo.divide",
    [NUMBER, NUMBER],
    jvp=[
        lambda t, out, x, y: div_p.bind(t, y),
        # Nothing the size of the result is kept for the backward pass but the result itself.
        lambda t, out, x, y: mul_p.bind(div_p.bind(neg_p.bind(t), y), out),
    ],
)


@div_p.transpose
def _(ct, x, y):
    return [collapse_like(div_p.bind(ct, y), x.aval), None]


def neg(x: Any) -> Any:
    """Elementwise `-x`; unsigned integers wrap. StableHLO `negate`."""
    return neg_p.bind(x)


def add(x: Any, y: Any) -> Any:
    """Elementwise `x + y`. StableHLO `add`. For operands see `eq`."""
    return add_p.bind(x, y)


def sub(x: Any, y: Any) -> Any:
    """Elementwise `x - y`. StableHLO `subtract`. For operands see `eq`."""
    return sub_p.bind(x, y)


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """Elementwise `x * y`; with `out_dtype`, computed in that dtype. StableHLO `multiply`.

    For operands see `eq`; with `out_dtype` their dtypes may differ.
    """
    return mul_p.bind(x, y) if out_dtype is None else mul_p.bind(x, y, out_dtype=out_dtype)


def div(x: Any, y: Any) -> Any:
    """Elementwise `x / y`; of integers, the quotient rounded towards zero. StableHLO `divide`.

    For integers `x / 0` is -1, and the overflow of the least one divided by -1 wraps.
    """
    return div_p.bind(x, y)


def _rem_dy(t, out, x, y):
    quotient = div_p.bind(x, y)
    whole = mul_p.bind(sign_p.bind(quotient), floor_p.bind(abs_p.bind(quotient)))
    return mul_p.bind(t, neg_p.bind(whole))


rem_p = elementwise(
    "rem", "stablehlo.remainder", [REAL, REAL], jvp=[lambda t, out, x, y: t, _rem_dy]
)
mulhi_p = elementwise("mulhi", "chlo.mulhi", [INTEGER, INTEGER])


def rem(x: Any, y: Any) -> Any:
    """Elementwise remainder of `div`, with the sign of `x`. StableHLO `remainder`."""
    return rem_p.bind(x, y)


def mulhi(x: Any, y: Any, /) -> Any:
    """The high half of the product of integers, whose width is twice theirs."""
    return mulhi_p.bind(x, y)


# -- signs and rounding -----------------------------------------------------------------------


def _lower_sign(b, x):
    if dtypes.issubdtype(x.dtype, np.unsignedinteger):
        return b.op("stablehlo.minimum", (x, b.full(1, x.aval)), b.out)
    return b.op("stablehlo.sign", (x,), b.out)


def _along(direction, t, part):
    """The part of complex `t` along a direction (`real_p`), or across it (`imag_p`)."""
    conjugate = conj_p.bind(direction, input_dtype=get_aval(direction).dtype)
    return part.bind(mul_p.bind(t, conjugate))


def _sign_jvp(t, out, x):
    """Zero for real numbers. A complex one turns by the part of `t` across it."""
    if not dtypes.issubdtype(get_aval(x).dtype, np.complexfloating):
        return None
    length = abs_p.bind(x)
    ones = full_like_aval(1, get_aval(length))
    length = select_n_p.bind(eq_p.bind(length, scalar_like(0, length)), length, ones)
    angle = div_p.bind(_along(out, t, imag_p), length)
    return mul_p.bind(out, complex_p.bind(full_like_aval(0, get_aval(angle)), angle))


sign_p = elementwise("sign", _lower_sign, [NUMBER], jvp=[_sign_jvp])
floor_p = elementwise("floor", "stablehlo.floor", [FLOAT])
ceil_p = elementwise("ceil", "stablehlo.ceil", [FLOAT])


class RoundingMethod(enum.IntEnum):
    """Where a number half way between two integers is rounded to."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _lower_round(b, x, *, rounding_method):
    away = rounding_method is RoundingMethod.AWAY_FROM_ZERO
    name = "stablehlo.round_nearest_afz" if away else "stablehlo.round_nearest_even"
    return b.op(name, (x,), b.out)


round_p = elementwise("round", _lower_round, [FLOAT])
nextafter_p = elementwise(
    "nextafter",
    "chlo.next_after",
    [FLOAT, FLOAT],
    jvp=not_differentiable("Differentiation rule for 'nextafter' not implemented"),
)


def sign(x: Any) -> Any:
    """-1, 0 or 1 by the sign of each element; NaN stays; for complex `x`, `x / abs(x)` or 0."""
    return sign_p.bind(x)


def floor(x: Any) -> Any:
    """The greatest whole number not above each float. StableHLO `floor`."""
    return floor_p.bind(x)


def ceil(x: Any) -> Any:
    """The least whole number not below each float. StableHLO `ceil`."""
    return ceil_p.bind(x)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest whole number; halves go as `rounding_method` says. StableHLO `round_nearest_*`."""
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


def nextafter(x1: Any, x2: Any) -> Any:
    """The float next to each of `x1` in the direction of `x2`. Source: `numpy.nextafter`."""
    return nextafter_p.bind(x1, x2)


# -- complex numbers ------------------------------------------------------------------------------

_COMPLEX = (np.complexfloating,)
_PARTS = (np.float32, np.float64)
_to_complex = dtypes.to_complex_dtype


def _no_part(ct: Any) -> np.generic:
    """The other part of a complex cotangent, whose type is not weak."""
    return np.zeros((), get_aval(ct).dtype)[()]


real_p = elementwise("real", "stablehlo.real", [_COMPLEX], result=dtypes.to_real_dtype)
linear(real_p, lambda ct, aval: complex_p.bind(ct, _no_part(ct)))

imag_p = elementwise("imag", "stablehlo.imag", [_COMPLEX], result=dtypes.to_real_dtype)
linear(imag_p, lambda ct, aval: complex_p.bind(_no_part(ct), neg_p.bind(ct)))

complex_p = elementwise("complex", "stablehlo.complex", [_PARTS, _PARTS], result=_to_complex)


@complex_p.jvp
def _(primals, tangents):
    out = complex_p.bind(*primals)
    shape = get_aval(out).shape
    tx, ty = (expand_to(instantiate(t), shape) for t in tangents)
    return out, complex_p.bind(tx, ty)


@complex_p.transpose
def _(ct, x, y):
    return [
        collapse_like(real_p.bind(ct), x.aval) if is_undefined(x) else None,
        neg_p.bind(collapse_like(imag_p.bind(ct), y.aval)) if is_undefined(y) else None,
    ]


def _lower_conj(b, x, *, input_dtype):
    out = b.out
    part = out.update(dtype=dtypes.to_real_dtype(out.dtype))
    if not dtypes.issubdtype(x.dtype, np.complexfloating):
        return b.op("stablehlo.complex", (x, b.full(0, part)), out)
    imaginary = b.op("stablehlo.negate", (b.op("stablehlo.imag", (x,), part),), part)
    return b.op("stablehlo.complex", (b.op("stablehlo.real", (x,), part), imaginary), out)


conj_p = elementwise(
    "conj", _lower_conj, [(np.float32, np.complexfloating, np.float64)], result=_to_complex
)


def _conj_transpose(ct, aval, *, input_dtype):
    if dtypes.issubdtype(input_dtype, np.complexfloating):
        return conj_p.bind(ct, input_dtype=ct.dtype)
    return real_p.bind(ct)


conj_p.sums(first)
linear(conj_p, _conj_transpose)


def _abs_jvp(t, out, x):
    if not dtypes.issubdtype(get_aval(x).dtype, np.complexfloating):
        return select_n_p.bind(ge_p.bind(x, scalar_like(0, x)), neg_p.bind(t), t)
    return _along(sign_p.bind(x), t, real_p)


abs_p = elementwise(
    "abs",
    "stablehlo.abs",
    [(np.signedinteger, np.floating, np.complexfloating)],
    result=dtypes.to_real_dtype,
    jvp=[_abs_jvp],
)


def real(x: Any) -> Any:
    """The real part of each complex number. StableHLO `real`."""
    return real_p.bind(x)


def imag(x: Any) -> Any:
    """The imaginary part of each complex number. StableHLO `imag`."""
    return imag_p.bind(x)


def complex(x: Any, y: Any) -> Any:
    """Complex numbers of real parts `x` and imaginary parts `y`, float32 or float64."""
    return complex_p.bind(x, y)


def conj(x: Any) -> Any:
    """The complex conjugate of each element; float32 and float64 become complex."""
    return conj_p.bind(x, input_dtype=get_aval(x).dtype)


def abs(x: Any) -> Any:
    """The absolute value of each element: for complex numbers, a real one. StableHLO `abs`."""
    return abs_p.bind(x)


# -- extrema --------------------------------------------------------------------------------------


def _lower_extremum(op: str, direction: str) -> Callable:
    def rule(b, x, y):
        out = b.out
        if not dtypes.issubdtype(out.dtype, np.complexfloating):
            return b.op(op, (x, y), out)
        # Complex numbers are ordered by their real parts, then by their imaginary ones.
        part = out.update(dtype=dtypes.to_real_dtype(out.dtype))
        boolean = out.update(dtype=dtypes.bool_)
        xr, yr, xi, yi = (
            b.op(f"stablehlo.{name}", (v,), part) for name in ("real", "imag") for v in (x, y)
        )
        same = b.compare(xr, yr, "EQ")
        by_imag, by_real = b.compare(xi, yi, direction), b.compare(xr, yr, direction)
        first = b.op("stablehlo.select", (same, by_imag, by_real), boolean)
        return b.op("stablehlo.select", (first, x, y), out)

    return rule


def _extremum(name: str, op: str, direction: str):
    p = elementwise(name, _lower_extremum(op, direction), [(np.number, np.bool_)] * 2)

    @p.jvp
    def _(primals, tangents):
        """Where the operands are equal, each gets half."""
        x, y = primals
        out = p.bind(x, y)
        zero, one, two = (full_like_aval(value, get_aval(out)) for value in (0, 1, 2))
        total = None
        for t, own, rival in ((tangents[0], x, y), (tangents[1], y, x)):
            if type(t) is not Zero:
                chosen = select_n_p.bind(eq_p.bind(own, out), zero, one)
                part = mul_p.bind(
                    t, div_p.bind(chosen, select_n_p.bind(eq_p.bind(rival, out), one, two))
                )
                total = part if total is None else add_any_broadcast(total, part)
        return out, zero_tangent(get_aval(out)) if total is None else total

    return p


max_p = _extremum("max", "stablehlo.maximum", "GT")
min_p = _extremum("min", "stablehlo.minimum", "LT")


def max(x: Any, y: Any) -> Any:
    """Elementwise maximum; NaN if either is. Complex numbers compare as pairs. StableHLO op."""
    return max_p.bind(x, y)


def min(x: Any, y: Any) -> Any:
    """Elementwise minimum; NaN if either is. Complex numbers compare as pairs. StableHLO op."""
    return min_p.bind(x, y)


# -- whole powers and roots -----------------------------------------------------------------------


def _square_lower(b, x):
    if dtypes.issubdtype(x.dtype, np.integer):
        return b.op("stablehlo.multiply", (x, x), b.out)
    return b.op("chlo.square", (x,), b.out)


square_p = elementwise(
    "square",
    _square_lower,
    [NUMBER],
    jvp=[lambda t, out, x: mul_p.bind(t, mul_p.bind(scalar_like(2, out), x))],
)


def _lower_integer_pow(b, x, *, y):
    """By squaring, from the lowest bit of the exponent up."""
    out = b.out
    if y == 0:
        return b.full(1, out)
    product, base, rest = None, x, -y if y < 0 else y
    while True:
        if rest & 1:
            product = base if product is None else b.op("stablehlo.multiply", (product, base), out)
        rest >>= 1
        if not rest:
            break
        base = b.op("stablehlo.multiply", (base, base), out)
    return b.op("stablehlo.divide", (b.full(1, out), product), out) if y < 0 else product


def _integer_pow_jvp(t, out, x, *, y):
    if y == 1:
        return t
    power = x if y == 2 else integer_pow_p.bind(x, y=y - 1)
    return mul_p.bind(t, mul_p.bind(scalar_like(y, out), power))


integer_pow_p = elementwise("integer_pow", _lower_integer_pow, [NUMBER])
integer_pow_p.sums(refused)


@integer_pow_p.jvp
def _(primals, tangents, *, y):
    out = integer_pow_p.bind(*primals, y=y)
    if y == 0 or type(tangents[0]) is Zero:
        return out, zero_tangent(get_aval(out))
    return out, _integer_pow_jvp(tangents[0], out, *primals, y=y)


_checked_shape = integer_pow_p.rule_shape


@integer_pow_p.shape_rule
def _(x, *, y):
    if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow({x.str_short()}, {y}): "
            "convert to a floating dtype."
        )
    return _checked_shape(x, y=y)


sqrt_p = elementwise(
    "sqrt",
    accurate("stablehlo.sqrt"),
    [INEXACT],
    jvp=[lambda t, out, x, **_: mul_p.bind(t, div_p.bind(scalar_like(0.5, out), out))],
)
rsqrt_p = elementwise(
    "rsqrt",
    accurate("stablehlo.rsqrt"),
    [INEXACT],
    jvp=[
        lambda t, out, x, **_: mul_p.bind(t, mul_p.bind(scalar_like(-0.5, out), div_p.bind(out, x)))
    ],
)
cbrt_p = elementwise(
    "cbrt",
    accurate("stablehlo.cbrt"),
    [FLOAT],
    jvp=[
        lambda t, out, x, **_: mul_p.bind(
            t, mul_p.bind(scalar_like(1 / 3, out), integer_pow_p.bind(out, y=-2))
        )
    ],
)


def square(x: Any) -> Any:
    """Elementwise `x * x`."""
    return square_p.bind(x)


def integer_pow(x: Any, y: int) -> Any:
    """Each element to the fixed whole power `y`, by multiplication.

    TypeError for integers to a negative power.
    """
    return integer_pow_p.bind(x, y=y)


def reciprocal(x: Any) -> Any:
    """Elementwise `1 / x`, for floating and complex arrays."""
    return integer_pow_p.bind(x, y=-1)


def sqrt(x: Any, *, accuracy: Any = None) -> Any:
    """The square root of each element. StableHLO `sqrt`."""
    return with_accuracy(sqrt_p, x, accuracy)


def rsqrt(x: Any, *, accuracy: Any = None) -> Any:
    """One over the square root of each element. StableHLO `rsqrt`."""
    return with_accuracy(rsqrt_p, x, accuracy)


def cbrt(x: Any, *, accuracy: Any = None) -> Any:
    """The real cube root of each float. StableHLO `cbrt`."""
    return with_accuracy(cbrt_p, x, accuracy)
