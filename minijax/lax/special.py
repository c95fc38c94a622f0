"""Special functions of elements: error, gamma, beta, zeta and Bessel functions.

Those that CHLO has are lowered to it. The others are programs of primitives that stand here,
written from the formulas of the NIST Digital Library of Mathematical Functions (DLMF); operands
narrower than 32 bits are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.avals import get_aval
from minijax.core.primitive import not_differentiable
from minijax.features.library import library
from minijax.lax.arithmetic import (
    abs,
    add,
    div,
    integer_pow,
    max,
    min,
    mul,
    neg,
    rsqrt,
    sign,
    square,
    sub,
)
from minijax.lax.compare import bitwise_and, bitwise_not, bitwise_or, eq, ge, gt, le, lt, ne, select
from minijax.lax.control_flow.loops import while_loop
from minijax.lax.convert import convert_element_type, to_dtype
from minijax.lax.large_gammas import FARTHEST, LARGE, Uniform, log1p_apart, stirling_rest
from minijax.lax.reductions import reduce_or
from minijax.lax.rules import FLOAT, elementwise, own_function, scalar_like, widened
from minijax.lax.shapes import broadcast
from minijax.lax.transcendental import exp, log, log1p
from minijax.lowering.module import lower_by
from minijax.runtime.escape import symbol
from minijax.transforms.primitives import full_like_aval
from minijax.typing import Array, ArrayLike

__all__ = [
    "bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "digamma", "digamma_p",
    "erf", "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p", "igamma", "igamma_grad_a",
    "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p", "lgamma", "lgamma_p", "polygamma",
    "polygamma_p", "random_gamma_grad", "regularized_incomplete_beta_p", "zeta", "zeta_p",
]  # fmt: skip

# -- programs on elements -------------------------------------------------------------------------


def _program(fun: Callable) -> Callable:
    """A lowering rule from a function on floats, computed in float32 at least."""

    def wide(*operands):
        dtype = operands[0].dtype
        if dtypes.bit_width(dtype) >= 32:
            return fun(*operands)
        out = fun(*[convert_element_type(x, np.float32) for x in operands])
        return convert_element_type(out, dtype)

    return lower_by(wide)


# From this number of elements on an operation of fifty or more is a kernel of its own on CPUs. Within
# others XLA computes it once for each of them, and does not vectorize it if the last axis is short:
# `random.normal` of 786,432 takes 1.3 ms where it took 1.8, and of shape (262144, 3) 1.5 instead of 9.5.
_MANY = 4097


def _kernel(op: str) -> Callable:
    """Lower to `op`, as a function of vectors that XLA does not inline where elements are many."""

    def rule(b, x):
        out, module = b.out, b.module
        many = type(out.size) is int and out.size >= _MANY
        if not many or b.platform != "cpu" or module.exported or len(module.devices) > 1:
            return b.op(op, (x,), out)
        flat = out.update(shape=(out.size,))
        vector = b.reshape(x, flat.shape)
        callee = f"callee = {symbol(own_function(b, op, [vector]))}"
        kept = 'mhlo.frontend_attributes = {inlineable = "false"}'
        (result,) = b.op_n("func.call", [vector], [flat], callee, extra=kept)
        return b.reshape(result, out.shape)

    return rule


def _full(value: float, like: Any) -> Any:
    return full_like_aval(value, get_aval(like))


def _where(condition: Any, on_true: Any, on_false: Any, like: Any) -> Any:
    """`select`, where either value may be a Python number."""
    values = [_full(v, like) if isinstance(v, float) else v for v in (on_true, on_false)]
    return select(condition, *values)


def _iterate(step: Callable, active: Any, state: Sequence[Any], limit: int) -> list[Any]:
    """Repeat `step(count, *state) -> (converged, *state)`, element by element.

    An element keeps its state once it has converged; at most `limit` steps. `active` says which
    elements take part.
    """

    def go_on(carry):
        count, active = carry[:2]
        some = reduce_or(active, tuple(range(active.ndim)))
        return bitwise_and(lt(count, np.int32(limit)), some)

    def body(carry):
        count, active, *state = carry
        count = add(count, np.int32(1))
        converged, *new = step(convert_element_type(count, state[0].dtype), *state)
        kept = [select(active, n, s) for n, s in zip(new, state, strict=True)]
        return count, bitwise_and(active, bitwise_not(converged)), *kept

    return list(while_loop(go_on, body, (np.int32(0), active, *state))[2:])


def _eps(x: Any) -> np.generic:
    return scalar_like(float(np.finfo(x.dtype).eps), x)


# -- error functions ------------------------------------------------------------------------------


def _gaussian(scale: float, sign: float = -1.0) -> Callable:
    """The derivative `scale * exp(sign * v**2)`, where `v` is the argument or the result."""

    def rule(t, out, x):
        exponent = neg(square(x)) if sign < 0 else square(out)
        return mul(t, mul(scalar_like(scale, out), exp(exponent)))

    return rule


_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)
erf_p = elementwise("erf", "chlo.erf", [FLOAT], jvp=[_gaussian(_TWO_BY_ROOT_PI)])
erfc_p = elementwise("erfc", widened("chlo.erfc"), [FLOAT], jvp=[_gaussian(-_TWO_BY_ROOT_PI)])
erf_inv_p = elementwise(
    "erf_inv", _kernel("chlo.erf_inv"), [FLOAT], jvp=[_gaussian(math.sqrt(math.pi) / 2, 1.0)]
)


def erf(x: ArrayLike) -> Array:
    """Compute the error function of each element.

    - `x`: floating-point array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: DLMF 7.2.1.

    >>> lax.erf(jnp.array([0.0, jnp.inf]))
    Array([0., 1.], dtype=float32)
    """
    return erf_p.bind(x)


def erfc(x: ArrayLike) -> Array:
    """Compute `1 - erf(x)` for each element, precisely where that is near zero.

    - `x`: floating-point array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: DLMF 7.2.2.

    >>> lax.erfc(jnp.array([0.0, jnp.inf]))
    Array([1., 0.], dtype=float32)
    """
    return erfc_p.bind(x)


def erf_inv(x: ArrayLike) -> Array:
    """Compute the number whose error function is each element.

    - `x`: floating-point array of any shape

    The result has the shape and dtype of `x`; NaN outside [-1, 1]. TypeError for other dtypes.
    Source: DLMF 7.17.

    >>> lax.erf_inv(jnp.array([0.0, 1.0, 2.0]))
    Array([ 0., inf, nan], dtype=float32)
    """
    return erf_inv_p.bind(x)


# -- gamma, digamma, polygamma, zeta --------------------------------------------------------------

lgamma_p = elementwise(
    "lgamma", _kernel("chlo.lgamma"), [FLOAT], jvp=[lambda t, out, x: mul(t, digamma(x))]
)
digamma_p = elementwise(
    "digamma",
    _kernel("chlo.digamma"),
    [FLOAT],
    jvp=[lambda t, out, x: mul(t, polygamma(scalar_like(1, x), x))],
)


def _no_derivative(message: str) -> Callable:
    def rule(t, out, *operands):
        raise ValueError(message)

    return rule


polygamma_p = elementwise(
    "polygamma",
    "chlo.polygamma",
    [FLOAT, FLOAT],
    jvp=[
        _no_derivative("polygamma gradient with respect to m is not supported"),
        lambda t, out, m, x: mul(t, polygamma(add(m, scalar_like(1, m)), x)),
    ],
)
zeta_p = elementwise(
    "zeta",
    "chlo.zeta",
    [FLOAT, FLOAT],
    jvp=not_differentiable("Differentiation rule for 'zeta' not implemented."),
)


def lgamma(x: ArrayLike) -> Array:
    """Compute the logarithm of the absolute value of the gamma function of each element.

    - `x`: floating-point array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: DLMF 5.2.1.

    >>> lax.lgamma(jnp.array([0.0, jnp.inf]))
    Array([inf, inf], dtype=float32)
    """
    return lgamma_p.bind(x)


def digamma(x: ArrayLike) -> Array:
    """Compute the derivative of `lgamma` at each element.

    - `x`: floating-point array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: DLMF 5.2.2.

    >>> lax.digamma(jnp.array([-1.0, jnp.inf]))
    Array([nan, inf], dtype=float32)
    """
    return digamma_p.bind(x)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative of `digamma` of order `m`, elementwise.

    - `m`: orders, whole numbers given as floats
    - `x`: floating-point array of the shape and dtype of `m`

    The result has their shape and dtype. TypeError for other dtypes, and where dtypes or shapes
    differ.
    Source: DLMF 5.15.1.

    >>> lax.polygamma(1.0, 0.0)
    Array(inf, dtype=float32, weak_type=True)
    """
    return polygamma_p.bind(m, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Compute the Hurwitz zeta function: the sum of `(n + q)**-x` over n >= 0, elementwise.

    - `x`, `q`: floating-point arrays of one dtype and shape; scalars are broadcast

    The result has their shape and dtype. TypeError for other dtypes, and where dtypes or shapes
    differ.
    Source: DLMF 25.11.1.

    >>> lax.zeta(1.0, 2.0)
    Array(inf, dtype=float32, weak_type=True)
    """
    return zeta_p.bind(x, q)


# -- the incomplete gamma functions ---------------------------------------------------------------
#
# With w = x**a exp(-x) / gamma(a): P(a, x) = w / a * S by the series S of DLMF 8.7.1, good for
# small x, and Q(a, x) = 1 - P(a, x) = w * F by the continued fraction F of DLMF 8.9.2, good for
# large x, evaluated by Lentz's method. Each is differentiated term by term in a. Both need about
# sqrt(a) steps where x is near a: from some a on, `large_gammas` takes their place.

_MOST_STEPS = 1 << 14
_MOST_FRACTIONS = 2000


def _series(a: Any, x: Any, active: Any, slope: bool) -> tuple[Any, Any]:
    """S = sum of x**n / ((a + 1) ... (a + n)), and its derivative in a if wanted."""
    eps = _eps(x)

    def step(n, total, term, *rest):
        place = add(a, n)
        ratio = div(x, place)
        new = mul(term, ratio)
        done = le(new, mul(eps, total))
        if not slope:
            return done, add(total, new), new
        dtotal, dterm = rest
        dnew = sub(mul(dterm, ratio), div(new, place))
        done = bitwise_and(done, le(abs(dnew), mul(eps, abs(dtotal))))
        return done, add(total, new), new, add(dtotal, dnew), dnew

    one, zero = _full(1.0, x), _full(0.0, x)
    state = [one, one, zero, zero] if slope else [one, one]
    total, _, *rest = _iterate(step, active, state, _MOST_STEPS)
    return total, rest[0] if slope else None


def _fraction(a: Any, x: Any, active: Any, slope: bool) -> tuple[Any, Any]:
    """F = 1 / (b0 + a1 / (b1 + ...)), and its derivative in a if wanted.

    a_n = n (a - n) and b_n = x + 2 n + 1 - a. Lentz: F is the product of c_n d_n.
    """
    eps, one, two = _eps(x), scalar_like(1, x), scalar_like(2, x)
    start = add(sub(x, a), one)

    def step(n, total, c, d, *rest):
        upper = mul(n, sub(a, n))
        lower = add(start, mul(two, n))
        new_d = div(one, add(mul(upper, d), lower))
        new_c = add(lower, div(upper, c))
        factor = mul(new_c, new_d)
        done = le(abs(sub(factor, one)), eps)
        if not slope:
            return done, mul(total, factor), new_c, new_d
        logarithmic, dc, dd = rest
        new_dd = neg(mul(square(new_d), sub(add(mul(n, d), mul(upper, dd)), one)))
        new_dc = sub(div(sub(n, mul(upper, div(dc, c))), c), one)
        change = add(div(new_dd, new_d), div(new_dc, new_c))
        done = bitwise_and(done, le(abs(change), mul(eps, abs(logarithmic))))
        return done, mul(total, factor), new_c, new_d, add(logarithmic, change), new_dc, new_dd

    first = div(_full(1.0, x), start)
    huge = _full(1 / float(np.finfo(x.dtype).tiny) ** 0.5, x)
    zero = _full(0.0, x)
    state = [first, huge, first]
    if slope:
        state += [first, zero, square(first)]
    total, _, _, *rest = _iterate(step, active, state, _MOST_FRACTIONS)
    return total, mul(total, rest[0]) if slope else None


def _log_weight(a: Any, x: Any) -> Any:
    return sub(sub(mul(a, log(x)), x), lgamma(a))


class _Regions:
    """The elements of (a, x) that take each formula, and safe operands where they take none.

    P is 0 at the `start` (x is 0, or a infinite), and 1 at the `end` (x is infinite, or a is 0).
    """

    def __init__(self, a: Any, x: Any):
        zero, one, infinity = (scalar_like(v, x) for v in (0, 1, math.inf))
        nan = bitwise_or(ne(a, a), ne(x, x))
        self.start = bitwise_or(eq(x, zero), eq(a, infinity))
        self.end = bitwise_or(eq(x, infinity), eq(a, zero))
        negative = bitwise_or(lt(x, zero), lt(a, zero))
        undecided = bitwise_and(self.start, self.end)
        self.invalid = bitwise_or(nan, bitwise_or(negative, undecided))
        inside = bitwise_not(bitwise_or(self.invalid, bitwise_or(self.start, self.end)))
        near = le(abs(sub(div(x, a), one)), scalar_like(FARTHEST, x))
        self.huge = bitwise_and(inside, bitwise_and(near, ge(a, scalar_like(LARGE, a))))
        self.uniform = Uniform(_where(self.huge, a, LARGE, a), _where(self.huge, x, LARGE, x))
        inside = bitwise_and(inside, bitwise_not(self.huge))
        self.a, self.x = _where(inside, a, 1.0, a), _where(inside, x, 1.0, x)
        self.large = bitwise_and(ge(self.x, one), gt(self.x, self.a))
        self.by_fraction = bitwise_and(inside, self.large)
        self.by_series = bitwise_and(inside, bitwise_not(self.large))


def _incomplete_gamma(a: Any, x: Any, upper: bool) -> Any:
    """P(a, x), or Q(a, x) if `upper`."""
    r = _Regions(a, x)
    weight = exp(_log_weight(r.a, r.x))
    small = div(mul(weight, _series(r.a, r.x, r.by_series, False)[0]), r.a)
    large = mul(weight, _fraction(r.a, r.x, r.by_fraction, False)[0])
    one = scalar_like(1, x)
    if upper:
        out = select(r.large, large, sub(one, small))
    else:
        out = select(r.large, sub(one, large), small)
    out = select(r.huge, r.uniform.value(erfc_p.bind, upper), out)
    out = _where(r.end, 0.0 if upper else 1.0, out, x)
    out = _where(r.start, 1.0 if upper else 0.0, out, x)
    return _where(r.invalid, math.nan, out, x)


def _slopes(r: _Regions) -> tuple[Any, Any]:
    """Return the derivative of P in a, divided by w / a and by w: by the series and by the
    fraction.
    """
    a, x = r.a, r.x
    log_x = log(x)
    total, dtotal = _series(a, x, r.by_series, True)
    one = scalar_like(1, x)
    small = add(mul(total, sub(log_x, digamma(add(a, one)))), dtotal)
    total, dtotal = _fraction(a, x, r.by_fraction, True)
    large = neg(add(mul(total, sub(log_x, digamma(a))), dtotal))
    return small, large


def _gamma_slope(a: Any, x: Any) -> Any:
    """The derivative of P(a, x) in a."""
    r = _Regions(a, x)
    small, large = _slopes(r)
    weight = exp(_log_weight(r.a, r.x))
    out = select(r.large, mul(weight, large), mul(div(weight, r.a), small))
    huge = r.uniform.weight()
    out = select(r.huge, mul(huge, r.uniform.slope()), out)
    weight = select(r.huge, huge, weight)
    flat = bitwise_or(eq(weight, scalar_like(0, x)), bitwise_or(r.start, r.end))
    invalid = bitwise_or(r.invalid, eq(a, scalar_like(0, x)))
    return _where(invalid, math.nan, _where(flat, 0.0, out, x), x)


@library
def random_gamma_grad(a: Any, x: Any) -> Any:
    """Compute the derivative in `a` of samples `x` of the gamma distribution of shape `a`.

    - `a`, `x`: floating-point arrays of one dtype and shape; scalars are broadcast

    The result has their shape and dtype. NaN unless `a` is positive and `x` not negative. TypeError
    for other dtypes, and where dtypes differ; ValueError where shapes do.
    Source: implicit differentiation (Figurnov, Mohamed and Mnih, 2018).

    >>> lax.random_gamma_grad(jnp.array([-1.0]), jnp.array([1.0]))
    Array([nan], dtype=float32)
    """
    dtype = get_aval(x).dtype
    if get_aval(a).dtype != dtype:
        raise TypeError(
            "random_gamma_grad requires arguments to have the same dtypes, got "
            f"{get_aval(a).dtype.name}, {dtype.name}. Convert one with .astype(...)."
        )
    if np.ndim(a) and np.ndim(x) and np.shape(a) != np.shape(x):
        raise ValueError(
            f"Incompatible shapes for broadcasting: shapes=[{np.shape(a)}, {np.shape(x)}]. "
            "random_gamma_grad takes arrays of one shape."
        )
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"random_gamma_grad does not accept dtype {dtype.name}. Accepted dtypes are subtypes of "
            "floating: convert it with .astype(...)."
        )
    shape = np.shape(a) or np.shape(x)
    a, x = (v if np.shape(v) == shape else broadcast(v, shape) for v in (a, x))
    if dtypes.bit_width(dtype) < 32:
        out = random_gamma_grad(*(convert_element_type(v, np.float32) for v in (a, x)))
        return convert_element_type(out, dtype)
    r = _Regions(a, x)
    small, large = _slopes(r)
    slope = select(r.large, large, div(small, r.a))
    out = neg(select(r.huge, mul(x, r.uniform.slope()), mul(r.x, slope)))
    out = _where(r.start, 0.0, out, x)
    out = _where(bitwise_or(r.invalid, r.end), math.nan, out, x)
    return to_dtype(out, dtype, (get_aval(a).weak_type and get_aval(x).weak_type) or None)


def _density(a: Any, x: Any) -> Any:
    """The derivative of P(a, x) in x."""
    exponent = mul(sub(a, scalar_like(1, a)), log(x))
    return exp(sub(sub(exponent, x), lgamma(a)))


igamma_p = elementwise(
    "igamma",
    _program(lambda a, x: _incomplete_gamma(a, x, upper=False)),
    [FLOAT, FLOAT],
    jvp=[
        lambda t, out, a, x: mul(t, igamma_grad_a(a, x)),
        lambda t, out, a, x: mul(t, _density(a, x)),
    ],
)
igammac_p = elementwise(
    "igammac",
    _program(lambda a, x: _incomplete_gamma(a, x, upper=True)),
    [FLOAT, FLOAT],
    jvp=[
        lambda t, out, a, x: mul(t, neg(igamma_grad_a(a, x))),
        lambda t, out, a, x: mul(t, neg(_density(a, x))),
    ],
)
igamma_grad_a_p = elementwise(
    "igamma_grad_a",
    _program(_gamma_slope),
    [FLOAT, FLOAT],
    jvp=not_differentiable("Differentiation rule for 'igamma_grad_a' not implemented."),
)


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized lower incomplete gamma function P(a, x).

    - `a`, `x`: floating-point arrays of one dtype and shape; scalars are broadcast

    The result has their shape and dtype. NaN unless `a` is positive and `x` not negative. TypeError
    for other dtypes, and where dtypes or shapes differ.
    Source: DLMF 8.2.4.

    >>> lax.igamma(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return igamma_p.bind(a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    - `a`, `x`: floating-point arrays of one dtype and shape; scalars are broadcast

    The result has their shape and dtype. NaN unless `a` is positive and `x` not negative. TypeError
    for other dtypes, and where dtypes or shapes differ.
    Source: DLMF 8.2.4.

    >>> lax.igammac(1.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return igammac_p.bind(a, x)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative of `igamma` with respect to `a`.

    - `a`, `x`: floating-point arrays of one dtype and shape; scalars are broadcast

    The result has their shape and dtype. NaN unless `a` is positive and `x` not negative. TypeError
    for other dtypes, and where dtypes or shapes differ.
    Source: DLMF 8.2.4.

    >>> lax.igamma_grad_a(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return igamma_grad_a_p.bind(a, x)


# -- the incomplete beta function -----------------------------------------------------------------


_LARGE_FACTORIAL = 8.0  # from here on Stirling's series is exact


def _log_factorial(a: Any) -> Any:
    """lgamma(a + 1), which is 0 where a + 1 is rounded to 1: lgamma(1) is not."""
    one = scalar_like(1, a)
    after = add(a, one)
    return _where(eq(after, one), 0.0, lgamma(after), a)


def _beta_fraction(a: Any, b: Any, x: Any, active: Any) -> Any:
    """1 / (1 + d1 / (1 + ...)) of DLMF 8.17.22, two terms at a step; good for x < a / (a + b)."""
    eps, one, two = _eps(x), scalar_like(1, x), scalar_like(2, x)
    tiny = scalar_like(float(np.finfo(x.dtype).tiny) ** 0.5, x)

    def away(v):  # from zero
        return select(lt(abs(v), tiny), _full(float(tiny), v), v)

    def term(upper, total, c, d):
        d = div(one, away(add(mul(upper, d), one)))
        c = away(add(div(upper, c), one))
        return mul(total, mul(c, d)), c, d

    def step(m, total, c, d):
        before = sub(m, one)
        place = add(a, mul(two, before))
        odd = neg(
            div(
                mul(mul(add(a, before), add(add(a, b), before)), x),
                mul(place, add(place, one)),
            )
        )
        place = add(place, two)
        even = div(mul(mul(m, sub(b, m)), x), mul(sub(place, one), place))
        total, c, d = term(odd, total, c, d)
        total, c, d = term(even, total, c, d)
        return le(abs(sub(mul(c, d), one)), eps), total, c, d

    start, huge = _full(1.0, x), _full(1 / float(tiny), x)
    return _iterate(step, active, [start, huge, start], _MOST_FRACTIONS)[0]


def _beta_weight(a: Any, b: Any, x: Any, rest: Any, log_x: Any, log_rest: Any) -> Any:
    """(a + b)! / (a! b!) x**a rest**b, for positive operands and rest = 1 - x.

    By logarithms of factorials, which are near 1 for the smallest a and b. Where b, or a, is large
    these would cancel; what is left of them by Stirling's formula is small.
    Source: Loader (2000), with a gamma density where the other is small.
    """
    total = add(a, b)
    factorials = sub(add(_log_factorial(a), _log_factorial(b)), _log_factorial(total))
    small_both = sub(add(mul(a, log_x), mul(b, log_rest)), factorials)

    def number(value):
        return scalar_like(value, x)

    b_is_most = ge(b, a)
    least, most, least_x = min(a, b), max(a, b), select(b_is_most, x, rest)
    is_large = ge(most, number(_LARGE_FACTORIAL))
    excess = sub(mul(a, rest), mul(b, x))  # of a over (a + b) x, and of (a + b) rest over b
    excess = select(b_is_most, excess, neg(excess))
    most, total = (_where(is_large, v, _LARGE_FACTORIAL, v) for v in (most, total))
    common = sub(stirling_rest(total), stirling_rest(most))
    common = add(common, mul(number(0.5), log1p(div(least, most))))
    common = sub(common, mul(most, log1p_apart(div(excess, most))))
    mean = mul(total, least_x)
    density = sub(sub(mul(least, log(mean)), mean), _log_factorial(least))
    both = ge(least, number(_LARGE_FACTORIAL))
    least = _where(both, least, _LARGE_FACTORIAL, least)
    half_log = mul(number(0.5), log(mul(number(2 * math.pi), least)))
    apart = mul(least, log1p_apart(neg(div(excess, least))))
    large_both = neg(add(add(apart, half_log), stirling_rest(least)))
    large = add(common, select(both, large_both, density))
    return exp(select(is_large, large, small_both))


def _betainc(a: Any, b: Any, x: Any) -> Any:
    zero, one, infinity = (scalar_like(v, x) for v in (0, 1, math.inf))
    nan = bitwise_or(ne(a, a), bitwise_or(ne(b, b), ne(x, x)))
    outside = bitwise_or(lt(x, zero), gt(x, one))
    # In the limit all weight lies at 0, or at 1.
    low = bitwise_or(eq(a, zero), eq(b, infinity))
    high = bitwise_or(eq(b, zero), eq(a, infinity))
    invalid = bitwise_or(bitwise_or(lt(a, zero), lt(b, zero)), bitwise_or(nan, outside))
    invalid = bitwise_or(invalid, bitwise_and(low, high))
    at_zero = bitwise_or(eq(x, zero), bitwise_and(high, lt(x, one)))
    at_one = bitwise_or(eq(x, one), bitwise_and(low, gt(x, zero)))
    inside = bitwise_not(bitwise_or(invalid, bitwise_or(at_zero, at_one)))
    a, b = _where(inside, a, 1.0, x), _where(inside, b, 1.0, x)
    x = _where(inside, x, 0.5, x)
    mirrored = gt(x, div(add(a, one), add(add(a, b), scalar_like(2, x))))
    a, b = select(mirrored, b, a), select(mirrored, a, b)
    rest = sub(one, x)
    log_x = select(mirrored, log1p(neg(x)), log(x))
    log_rest = select(mirrored, log(x), log1p(neg(x)))
    x, rest = select(mirrored, rest, x), select(mirrored, x, rest)
    # The weight over a alone would underflow: it is divided by a! b! / (a + b)! and by 1 + a / b.
    weight = _beta_weight(a, b, x, rest, log_x, log_rest)
    out = div(mul(weight, _beta_fraction(a, b, x, inside)), add(one, div(a, b)))
    out = select(mirrored, sub(one, out), out)
    out = _where(at_one, 1.0, _where(at_zero, 0.0, out, x), x)
    return _where(invalid, math.nan, out, x)


def _betainc_dx(t, out, a, b, x):
    one = scalar_like(1, x)
    exponent = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))
    return mul(t, exp(sub(exponent, sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b))))))


_BETA_MESSAGE = "Betainc gradient with respect to a and b not supported."
regularized_incomplete_beta_p = elementwise(
    "regularized_incomplete_beta",
    _program(_betainc),
    [FLOAT, FLOAT, FLOAT],
    jvp=[_no_derivative(_BETA_MESSAGE), _no_derivative(_BETA_MESSAGE), _betainc_dx],
)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized incomplete beta function I_x(a, b).

    - `a`, `b`, `x`: floating-point arrays of one dtype and shape; scalars are broadcast

    The result has their shape and dtype. NaN unless `a` and `b` are positive and `x` lies between 0
    and 1. TypeError for other dtypes, and where dtypes or shapes differ.
    Source: DLMF 8.17.2.

    >>> lax.betainc(2.0, 2.0, jnp.array([0.0, 1.0]))
    Array([0., 1.], dtype=float32)
    """
    return regularized_incomplete_beta_p.bind(a, b, x)


# -- Bessel functions -----------------------------------------------------------------------------

# Chebyshev coefficients, computed to 40 digits: of exp(-x) I0(x) for x in [0, 8], in x / 4 - 1;
# and of sqrt(x) exp(-x) I0(x) for x > 8, in 16 / x - 1. The first is halved in the sum.
_I0E_SMALL = (
    0.676795274409476085, -0.304682672343198399, 0.171620901522208775, -0.0949010970480476444,
    0.0493052842396707085, -0.0237374148058994688, 0.0105464603945949983, -0.00432430999505057594,
    0.0016394756169413358, -0.000576375574538582366, 0.000188502885095841656,
    -0.000057541950100821037, 0.0000164484480707288971, -4.41673835845875056e-6,
    1.11738753912010372e-6, -2.67079385394061173e-7, 6.04699502254191895e-8,
    -1.30002500998624804e-8, 2.65982372468238665e-9, -5.18979560163526291e-10,
    9.67580903537323691e-11, -1.72682629144155571e-11, 2.95505266312963983e-12,
    -4.85644678311192946e-13, 7.67618549860493562e-14, -1.16853328779934517e-14,
    1.71539128555513303e-15, -2.43127984654795469e-16, 3.3307945188222381e-17,
    -4.41534164647933938e-18,
)  # fmt: skip
_I0E_LARGE = (
    0.804490411014108832, 0.00336911647825569409, 0.0000688975834691682398, 2.89137052083475648e-6,
    2.04891858946906374e-7, 2.26666899049817806e-8, 3.39623202570838635e-9, 4.94060238822496959e-10,
    1.18891471078464383e-11, -3.14991652796324136e-11, -1.32158118404477131e-11,
    -1.79417853150680612e-12, 7.18012445138366623e-13, 3.8527783827421427e-13,
    1.54008621752140983e-14, -4.15056934728722209e-14, -9.55484669882830765e-15,
    3.81168066935262242e-15, 1.77256013305652638e-15, -3.42548561967721913e-16,
    -2.82762398051658348e-16, 3.46122286769746109e-17, 4.46562142029676e-17,
    -4.83050448594418207e-18, -7.23318048787475395e-18,
)  # fmt: skip


def _chebyshev(coefficients: Sequence[float], t: Any) -> Any:
    """The sum of c_n T_n(t), the first halved, by Clenshaw's recurrence; small terms left out."""
    least = float(np.finfo(t.dtype).eps) * 1e-2
    used = [c for c in coefficients if math.fabs(c) > least]
    twice = mul(t, scalar_like(2, t))
    later = last = _full(0.0, t)
    for c in reversed(used[1:]):
        later, last = last, add(sub(mul(twice, last), later), scalar_like(c, t))
    return add(sub(mul(t, last), later), scalar_like(used[0] / 2, t))


def _i0e(x: Any) -> Any:
    x = abs(x)
    one, eight = scalar_like(1, x), scalar_like(8, x)
    small = _chebyshev(_I0E_SMALL, sub(mul(x, scalar_like(0.25, x)), one))
    beyond = _where(le(x, eight), 8.0, x, x)
    large = _chebyshev(_I0E_LARGE, sub(div(scalar_like(16, x), beyond), one))
    return select(le(x, eight), small, mul(large, rsqrt(beyond)))


bessel_i0e_p = elementwise(
    "bessel_i0e",
    _program(_i0e),
    [FLOAT],
    jvp=[lambda t, out, x: mul(t, sub(bessel_i1e(x), mul(sign(x), out)))],
)


def _i1e_jvp(t, out, x):
    """I1(x) tends to x / 2 at zero, where the formula divides by zero."""
    aval = get_aval(x)
    eps = scalar_like(float(dtypes.finfo(aval.dtype).eps), x)
    away = gt(abs(x), eps)
    safe = select(away, x, full_like_aval(eps, aval))
    slope = sub(bessel_i0e(safe), mul(out, add(sign(safe), integer_pow(safe, -1))))
    return mul(t, select(away, slope, full_like_aval(0.5, aval)))


bessel_i1e_p = elementwise("bessel_i1e", widened("chlo.bessel_i1e"), [FLOAT], jvp=[_i1e_jvp])


def bessel_i0e(x: ArrayLike) -> Array:
    """Compute `exp(-abs(x)) * I0(x)`, the scaled modified Bessel function of order 0.

    - `x`: floating-point array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: DLMF 10.25.2.

    >>> lax.bessel_i0e(jnp.array([jnp.inf]))
    Array([0.], dtype=float32)
    """
    return bessel_i0e_p.bind(x)


def bessel_i1e(x: ArrayLike) -> Array:
    """Compute `exp(-abs(x)) * I1(x)`, the scaled modified Bessel function of order 1.

    - `x`: floating-point array of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: DLMF 10.25.2.

    >>> lax.bessel_i1e(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return bessel_i1e_p.bind(x)
