"""Arithmetic on elements: primitives with their rules, and the functions on them.

Here stand sums and products, rounding, complex parts, extrema, whole powers and roots;
`lax.transcendental` has the rest.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import get_aval
from minijax.core.primitive import not_differentiable
from minijax.features.sharding.constraints import reduced_as
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.unreduced import added, first, multiplied, refused
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
    linear,
    linear_together,
    merged,
    nary_shape,
    own_function,
    same_dtypes,
    scalar_like,
)
from minijax.lowering.module import Value
from minijax.transforms.primitives import full_like_aval
from minijax.transforms.tangents import Zero, is_undefined, zero_like
from minijax.typing import Array, ArrayLike, DTypeLike

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
    """Choice of an implementation of an elementwise function by its accuracy.

    A value of the argument `accuracy` of functions such as `exp`, which keep shape and dtype.
    Source: the StableHLO attribute `result_accuracy`.

    >>> lax.exp(jnp.array([0.0]), accuracy=lax.AccuracyMode.HIGHEST)
    Array([1.], dtype=float32)
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """Bounds on the error of an implementation of an elementwise function.

    - `atol`, `rtol`: absolute and relative error, nonnegative floats
    - `ulps`: error in units of the last place of the result's dtype, a nonnegative integer

    The compiler chooses its most accurate implementation if none is within the bounds. ValueError
    for negative bounds, and without any.
    Source: the StableHLO attribute `result_accuracy`.

    >>> lax.exp(jnp.array([0.0]), accuracy=lax.Tolerance(ulps=2))
    Array([1.], dtype=float32)
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if atol < 0.0 or rtol < 0.0 or ulps < 0:
            raise ValueError(
                f"Tolerances must be non-negative. Got Tolerance({atol=}, {rtol=}, {ulps=})."
            )
        if not (atol or rtol or ulps):
            raise ValueError(
                "At least one of atol, rtol, or ulps must be set: accuracy=None leaves it to the compiler."
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
        raise NotImplementedError(
            f"Accuracy {accuracy} not supported: give an AccuracyMode, a Tolerance or None; got "
            f"{type(accuracy)}."
        )
    return (
        f"result_accuracy = #stablehlo.result_accuracy<{parts}"
        f"mode = #stablehlo.result_accuracy_mode<{mode}>>"
    )


def with_accuracy(p: Any, x: Any, accuracy: Any) -> Any:
    """Bind a primitive; its parameter `accuracy` is left out where nobody asks for it."""
    return p.bind(x) if accuracy is None else p.bind(x, accuracy=accuracy)


def left_out(p: Any, name: str) -> None:
    """A param is None where it is left out; rules in the traces of libraries are given it."""
    p.unstated = {name: None}
    p.printed = lambda params: {k: v for k, v in params.items() if v is not None}


# -- sums and products, linear in each operand ------------------------------------------------

neg_p = elementwise("neg", "stablehlo.negate", [NUMBER])
linear(neg_p, lambda ct, aval: neg_p.bind(ct))

add_p = elementwise(
    "add",
    "stablehlo.add",
    [NUMBER, NUMBER],
    jvp=[lambda t, out, x, y: t, lambda t, out, x, y: t],
)


set_layout(add_p, sums=added)


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
set_layout(mul_p, sums=multiplied)
left_out(mul_p, "out_dtype")


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
    if get_aval(ct).placement is not None:
        known = reduced_as(known, ct)
    params = {} if out_dtype is None else {"out_dtype": linear_one.aval.dtype}
    if is_undefined(x):
        return [collapse_like(mul_p.bind(ct, known, **params), x.aval), None]
    return [None, collapse_like(mul_p.bind(known, ct, **params), y.aval)]


def _divided(op: str) -> Callable[..., Value]:
    """Return the rule that lowers a division, whose divisor may be a constant with zeros.

    MLIR divides constants of integers by the processor's instruction, which a zero traps: the process
    ends. Within a function it does not see that they are constants, and XLA, which inlines it, knows
    what is divided by zero.
    """

    def lower(b, x, y):
        known = b.elements_of(b.ins[-1]) if dtypes.issubdtype(x.dtype, np.integer) else ()
        if (known is not None and np.all(known)) or not all(type(n) is int for n in x.shape):
            return b.op(op, (x, y), b.out)
        return b.call(own_function(b, op, (x, y)), (x, y), [b.out])[0]

    return lower


div_p = elementwise(
    "div",
    _divided("stablehlo.divide"),
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


def neg(x: ArrayLike) -> Array:
    """Negate each element; unsigned integers wrap around.

    - `x`: numeric array of any shape

    The result has the shape and dtype of `x`. TypeError for booleans.
    Source: the StableHLO operation `stablehlo.negate`.

    >>> lax.neg(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """
    return neg_p.bind(x)


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Add two arrays elementwise.

    - `x`, `y`: numeric arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    The result has their shape and dtype. TypeError for booleans, and where dtypes or shapes differ.
    Source: the StableHLO operation `stablehlo.add`.

    >>> lax.add(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([4, 6], dtype=int32)
    """
    return add_p.bind(x, y)


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Subtract two arrays elementwise.

    - `x`, `y`: numeric arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    The result has their shape and dtype. TypeError for booleans, and where dtypes or shapes differ.
    Source: the StableHLO operation `stablehlo.subtract`.

    >>> lax.sub(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([-2, -2], dtype=int32)
    """
    return sub_p.bind(x, y)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Multiply two arrays elementwise.

    - `x`, `y`: numeric arrays of one dtype and shape; scalars and sizes of 1 are broadcast
    - `out_dtype`: dtype in which to compute; with it the dtypes of `x` and `y` may differ

    The result has their shape and dtype, or `out_dtype`. TypeError for booleans, and where dtypes
    or shapes differ.
    Source: the StableHLO operation `stablehlo.multiply`.

    >>> lax.mul(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([3, 8], dtype=int32)
    """
    return mul_p.bind(x, y) if out_dtype is None else mul_p.bind(x, y, out_dtype=out_dtype)


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """Divide two arrays elementwise; quotients of integers are rounded towards zero.

    - `x`, `y`: numeric arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    An integer divided by zero is -1 (all bits set), and the least integer divided by -1 wraps
    around. The result has their shape and dtype. TypeError for booleans, and where dtypes or shapes
    differ.
    Source: the StableHLO operation `stablehlo.divide`.

    >>> lax.div(jnp.array([7, -7, 1]), jnp.array([2, 2, 0]))
    Array([ 3, -3, -1], dtype=int32)
    """
    return div_p.bind(x, y)


def _rem_dy(t, out, x, y):
    quotient = div_p.bind(x, y)
    whole = mul_p.bind(sign_p.bind(quotient), floor_p.bind(abs_p.bind(quotient)))
    return mul_p.bind(t, neg_p.bind(whole))


rem_p = elementwise(
    "rem", _divided("stablehlo.remainder"), [REAL, REAL], jvp=[lambda t, out, x, y: t, _rem_dy]
)


def _lower_mulhi(b, x, y):
    """Multiply in twice the width; 64-bit integers by halves, of which the upper have the sign."""
    aval, bits = b.out, dtypes.bit_width(b.out.dtype)
    kind = "arithmetic" if dtypes.issubdtype(aval.dtype, np.signedinteger) else "logical"

    def operation(name, a, c):
        return b.op(f"stablehlo.{name}", (a, c), a.aval)

    def upper(a, half, kind=kind):
        return operation(f"shift_right_{kind}", a, b.full(half, a.aval))

    def lower(a):
        return operation("and", a, b.full(2**32 - 1, a.aval))

    if bits < 64:
        wide = np.dtype(f"{'u' * (kind == 'logical')}int{max(2 * bits, 8)}")
        product = operation("multiply", b.convert(x, wide), b.convert(y, wide))
        return b.convert(upper(product, bits), aval.dtype)
    (x1, x0), (y1, y0) = (upper(x, 32), lower(x)), (upper(y, 32), lower(y))
    carried = upper(operation("multiply", x0, y0), 32, "logical")
    first = operation("add", operation("multiply", x1, y0), carried)
    second = operation("add", operation("multiply", x0, y1), lower(first))
    high = operation("add", operation("multiply", x1, y1), upper(first, 32))
    return operation("add", high, upper(second, 32))


mulhi_p = elementwise("mulhi", _lower_mulhi, [INTEGER, INTEGER])


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the elementwise remainder of division, with the sign of `x`.

    - `x`, `y`: integer or floating-point arrays of one dtype and shape; scalars and sizes of 1 are
      broadcast

    The result has their shape and dtype. TypeError for other dtypes, and where dtypes or shapes
    differ.
    Source: the StableHLO operation `stablehlo.remainder`.

    >>> lax.rem(jnp.array([7, -7]), jnp.array([2, 2]))
    Array([ 1, -1], dtype=int32)
    """
    return rem_p.bind(x, y)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute the high half of the elementwise product of integers.

    - `x`, `y`: integer arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    The product has twice the width of the operands; the result has their shape and dtype. TypeError
    for other dtypes, and where dtypes or shapes differ.
    Source: Warren, Hacker's Delight, section 8-2.

    >>> lax.mulhi(jnp.array([2**30]), jnp.array([8]))
    Array([2], dtype=int32)
    """
    return mulhi_p.bind(x, y)


# -- signs and rounding -----------------------------------------------------------------------


def _lower_sign(b, x):
    if dtypes.issubdtype(x.dtype, np.unsignedinteger):
        return b.op("stablehlo.minimum", (x, b.full(1, x.aval)), b.out)
    if b.platform == "tpu" and dtypes.issubdtype(x.dtype, np.complexfloating):
        return _lower_direction(b, x)
    return b.op("stablehlo.sign", (x,), b.out)


def _lower_direction(b, x):
    """A complex number over its length, which derivatives of `abs` have computed before."""
    part = x.aval.update(dtype=dtypes.to_real_dtype(x.dtype), weak_type=False)
    length = b.op("stablehlo.abs", (x,), part)
    is_zero = b.compare(length, b.full(0, part), "EQ")
    length = b.op("stablehlo.select", (is_zero, b.full(1, part), length), part)
    parts = [b.op(f"stablehlo.{name}", (x,), part) for name in ("real", "imag")]
    parts = [b.op("stablehlo.divide", (each, length), part) for each in parts]
    return b.op("stablehlo.complex", parts, b.out)


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
    """Choice of where `round` moves a number half way between two integers; the dtype stays.

    Source: the StableHLO operations `round_nearest_afz` and `round_nearest_even`.

    >>> lax.round(jnp.array([2.5]), lax.RoundingMethod.AWAY_FROM_ZERO)
    Array([3.], dtype=float32)
    """

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


def sign(x: ArrayLike) -> Array:
    """Compute the sign of each element: -1, 0 or 1, and NaN for NaN.

    - `x`: numeric array of any shape

    A complex number gives `x / abs(x)`, or 0. The result has the shape and dtype of `x`. TypeError
    for booleans.
    Source: the StableHLO operation `stablehlo.sign`.

    >>> lax.sign(jnp.array([-2.5, 0.0, 3.0]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return sign_p.bind(x)


def floor(x: ArrayLike) -> Array:
    """Round each element down to a whole number.

    - `x`: floating-point array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: the StableHLO operation `stablehlo.floor`.

    >>> lax.floor(jnp.array([1.5, -1.5]))
    Array([ 1., -2.], dtype=float32)
    """
    return floor_p.bind(x)


def ceil(x: ArrayLike) -> Array:
    """Round each element up to a whole number.

    - `x`: floating-point array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: the StableHLO operation `stablehlo.ceil`.

    >>> lax.ceil(jnp.array([1.5, -1.5]))
    Array([ 2., -1.], dtype=float32)
    """
    return ceil_p.bind(x)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Round each element to the nearest whole number.

    - `x`: floating-point array of any shape
    - `rounding_method`: where halves go: away from zero, or to the nearest even number

    The result has the shape and dtype of `x`. TypeError for other dtypes; ValueError for another
    method.
    Source: the StableHLO operations `stablehlo.round_nearest_afz` and `round_nearest_even`.

    >>> lax.round(jnp.array([0.5, 2.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2.], dtype=float32)
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the float next to `x1` in the direction of `x2`, elementwise.

    - `x1`, `x2`: floating-point arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    The result has their shape and dtype. TypeError for other dtypes, and where dtypes or shapes
    differ.
    Source: NumPy's `nextafter`.

    >>> lax.nextafter(jnp.array([1.0]), jnp.array([2.0])) > 1
    Array([ True], dtype=bool)
    """
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
linear_together(complex_p)


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
        return conj_p.bind(ct, input_dtype=get_aval(ct).dtype)
    return real_p.bind(ct)


set_layout(conj_p, sums=first)
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


def real(x: ArrayLike) -> Array:
    """Return the real part of each element.

    - `x`: complex array of any shape

    The result has the shape of `x`, and dtype float32 for complex64 or float64 for complex128.
    TypeError for other dtypes.
    Source: the StableHLO operation `stablehlo.real`.

    >>> lax.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return real_p.bind(x)


def imag(x: ArrayLike) -> Array:
    """Return the imaginary part of each element.

    - `x`: complex array of any shape

    The result has the shape of `x`, and dtype float32 for complex64 or float64 for complex128.
    TypeError for other dtypes.
    Source: the StableHLO operation `stablehlo.imag`.

    >>> lax.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return imag_p.bind(x)


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """Make complex numbers from real and imaginary parts.

    - `x`, `y`: arrays of float32 or float64 of one dtype and shape; scalars and sizes of 1 are
      broadcast

    The result has their shape, and dtype complex64 or complex128. TypeError for other dtypes, and
    where dtypes or shapes differ.
    Source: the StableHLO operation `stablehlo.complex`.

    >>> lax.complex(jnp.array([1.0]), jnp.array([2.0]))
    Array([1.+2.j], dtype=complex64)
    """
    return complex_p.bind(x, y)


def conj(x: ArrayLike) -> Array:
    """Compute the complex conjugate of each element.

    - `x`: array of complex numbers, float32 or float64, of any shape

    The result has the shape of `x` and a complex dtype. TypeError for other dtypes.
    Source: NumPy's `conj`.

    >>> lax.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    return conj_p.bind(x, input_dtype=get_aval(x).dtype)


def abs(x: ArrayLike) -> Array:
    """Compute the absolute value of each element.

    - `x`: array of signed integers, floats or complex numbers

    The result has the shape and dtype of `x`; it is real for complex numbers. TypeError for
    unsigned integers and booleans.
    Source: the StableHLO operation `stablehlo.abs`.

    >>> lax.abs(jnp.array([-2, 3]))
    Array([2, 3], dtype=int32)
    """
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
        """JVP of a choice between operands: equal ones get half each."""
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
        return out, zero_like(out) if total is None else total

    return p


max_p = _extremum("max", "stablehlo.maximum", "GT")
min_p = _extremum("min", "stablehlo.minimum", "LT")


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the elementwise maximum; NaN where either operand is NaN.

    - `x`, `y`: arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    Complex numbers compare by real, then by imaginary part. The result has their shape and dtype.
    TypeError where dtypes or shapes differ.
    Source: the StableHLO operation `stablehlo.maximum`.

    >>> lax.max(jnp.array([1, 5]), jnp.array([3, 4]))
    Array([3, 5], dtype=int32)
    """
    return max_p.bind(x, y)


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the elementwise minimum; NaN where either operand is NaN.

    - `x`, `y`: arrays of one dtype and shape; scalars and sizes of 1 are broadcast

    Complex numbers compare by real, then by imaginary part. The result has their shape and dtype.
    TypeError where dtypes or shapes differ.
    Source: the StableHLO operation `stablehlo.minimum`.

    >>> lax.min(jnp.array([1, 5]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
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
    """Multiply by squaring, from the lowest bit of the exponent up."""
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
set_layout(integer_pow_p, sums=refused)


@integer_pow_p.jvp
def _(primals, tangents, *, y):
    out = integer_pow_p.bind(*primals, y=y)
    if y == 0 or type(tangents[0]) is Zero:
        return out, zero_like(out)
    return out, _integer_pow_jvp(tangents[0], out, *primals, y=y)


_checked_shape = integer_pow_p.rule_shape


@integer_pow_p.shape_rule
def _(x, *, y):
    if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow({x}, {y}): "
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
for _p in (sqrt_p, rsqrt_p, cbrt_p):
    left_out(_p, "accuracy")


def square(x: ArrayLike) -> Array:
    """Multiply each element by itself.

    - `x`: numeric array of any shape

    The result has the shape and dtype of `x`. TypeError for booleans.
    Source: NumPy's `square`.

    >>> lax.square(jnp.array([2, -3]))
    Array([4, 9], dtype=int32)
    """
    return square_p.bind(x)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Raise each element to a fixed integer power, by multiplication.

    - `x`: numeric array of any shape
    - `y`: Python integer, the exponent

    The result has the shape and dtype of `x`. TypeError for booleans, and for integers if `y` is
    negative.
    Source: NumPy's `power`.

    >>> lax.integer_pow(jnp.array([2, 3]), 3)
    Array([ 8, 27], dtype=int32)
    """
    return integer_pow_p.bind(x, y=y)


def reciprocal(x: ArrayLike) -> Array:
    """Compute `1 / x` for each element.

    - `x`: floating-point or complex array of any shape

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: NumPy's `reciprocal`.

    >>> lax.reciprocal(jnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return integer_pow_p.bind(x, y=-1)


def sqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute the square root of each element.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.sqrt`.

    >>> lax.sqrt(jnp.array([4.0, -1.0]))
    Array([ 2., nan], dtype=float32)
    """
    return with_accuracy(sqrt_p, x, accuracy)


def rsqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute the reciprocal of the square root of each element.

    - `x`: floating-point or complex array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for integers and booleans.
    Source: the StableHLO operation `stablehlo.rsqrt`.

    >>> lax.rsqrt(jnp.array([4.0, 0.0]))
    Array([0.5, inf], dtype=float32)
    """
    return with_accuracy(rsqrt_p, x, accuracy)


def cbrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute the real cube root of each element.

    - `x`: floating-point array of any shape
    - `accuracy`: an `AccuracyMode` or a `Tolerance` that the implementation must meet, or None

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: the StableHLO operation `stablehlo.cbrt`.

    >>> lax.cbrt(jnp.array([0.0, 1.0]))
    Array([0., 1.], dtype=float32)
    """
    return with_accuracy(cbrt_p, x, accuracy)
