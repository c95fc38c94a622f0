"""Functions with orders and parameters: bernoulli, bessel_jn, hyp1f1, hyp2f1, spence,
sph_harm_y.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.arguments.functions import check_at_most
from minijax.arguments.values import known_index, known_value
from minijax.core.array import Array
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.numpy.promotion import promote_inexact
from minijax.transforms.grad import jvp
from minijax.typing import ArrayLike

__all__ = ["bernoulli", "bessel_jn", "hyp1f1", "hyp2f1", "spence", "sph_harm_y"]

_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330,
)  # fmt: skip


def bernoulli(n: int) -> Array:
    """Compute the Bernoulli numbers 0 to n, of which number 1 is -1/2.

    - `n`: nonnegative integer

    The result has shape (n + 1,) and the default floating dtype. ValueError for negative `n`.
    Source: SciPy's `special.bernoulli`.

    >>> jax.scipy.special.bernoulli(2).shape
    (3,)
    """
    n = known_index(n, "Argument n of bernoulli")
    if n < 0:
        raise ValueError(f"n must be a non-negative integer. Got {n}.")
    check_at_most("bernoulli: n", n, 1 << 20)
    out = np.zeros(n + 1)
    out[0] = 1.0
    out[1:2] = -0.5
    out[2:21:2] = _BERNOULLI[: len(out[2:21:2])]
    for k in range(22, n + 1, 2):  # by Riemann's zeta function of k
        if k > 258:
            out[k] = (-1) ** (k // 2 + 1) * np.inf
            continue
        zeta = 1 + 2.0**-k + 3.0**-k
        size = (
            math.exp(math.lgamma(k + 1) - k * math.log(2 * math.pi))
            if k > 170
            else (math.factorial(k) / (2 * math.pi) ** k)
        )
        out[k] = (-1) ** (k // 2 + 1) * 2 * size * zeta
    with np.errstate(over="ignore"):
        return jnp.asarray(out.astype(dtypes.canonicalize_dtype(np.float64)))


@library(static=("v", "n_iter"), whole=True)
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Compute the Bessel functions of the first kind of orders 0 to v.

    - `z`: real array
    - `v`: integer
    - `n_iter`: order from which Miller's recurrence runs down, well above |z|

    The result has shape (v + 1, *z.shape) and a floating-point dtype. TypeError for complex `z` and
    orders that are not integers.
    Source: Zhang and Jin, Computation of Special Functions (1996); DLMF 10.74(iv).

    >>> jax.scipy.special.bessel_jn(jnp.ones(2), v=3).shape
    (4, 2)
    """
    v, n_iter = operator.index(v), operator.index(n_iter)
    (z,) = promote_inexact("bessel_jn", z)
    if z.dtype.kind == "c":
        raise TypeError(f"bessel_jn takes real arguments; got dtype {z.dtype.name}.")
    dtype = z.dtype
    wide = z.astype(np.float32 if dtypes.bit_width(dtype) < 32 else dtype)
    return _bessel(wide, v, n_iter).astype(dtype)


@functools.partial(custom_jvp, nondiff_argnums=(1, 2))
def _bessel(z: Any, v: int, n_iter: int) -> Any:
    is_zero = z == 0
    inverse = 2 / jnp.where(is_zero, 1, z)
    tiny = float(dtypes.finfo(z.dtype).tiny)
    orders = np.arange(1, n_iter + 2).reshape(-1, *[1] * z.ndim)
    # The first order k that the dtype has: where (z / 2)**k / k! is in its range.
    sizes = -jnp.log(jnp.abs(inverse)) * orders - np.vectorize(math.lgamma)(orders + 1)
    first = jnp.sum(~(sizes < math.log(tiny)), axis=0)
    zeros = jnp.zeros_like(z)

    def begun(k):
        return jnp.where(first == k, tiny**0.5, zeros)

    def step(i, carry):
        above, current, total, kept = carry
        k = n_iter - i
        below = lax.convert_element_type(k + 1, z.dtype) * inverse * current - above
        below = jnp.where(k < first, below, begun(k))
        total = total + jnp.where(k % 2 == 0, 2 * below, 0)
        kept = lax.dynamic_update_index_in_dim(kept, below, lax.min(k, v + 1), 0)
        return current, below, total, kept

    start = (zeros, begun(n_iter + 1), zeros, jnp.broadcast_to(zeros, (v + 2, *z.shape)))
    _, last, total, kept = lax.fori_loop(0, n_iter + 1, step, start)
    orders = np.zeros(v + 1)
    orders[:1] = 1
    at_zero = orders.reshape(-1, *[1] * z.ndim).astype(z.dtype)
    return jnp.where(is_zero, at_zero, kept[:-1] / (total - last))


@_bessel.defjvp
def _(v, n_iter, primals, tangents):
    (z,), (t,) = primals, tangents
    values = _bessel(z, v + 1, n_iter)
    # The derivative is half of the difference of the neighbours, and order -1 is -J_1.
    before = jnp.concatenate([-values[1:2], values[: max(v, 0)]])
    return values[:-1], 0.5 * (before - values[1:]) * t


# -- hypergeometric functions ----------------------------------------------------------------------


def _by_partials(fun: Callable, name: str) -> Callable:
    """`fun` of several floats, whose loops cannot be reversed, made differentiable in both modes.

    Its partial derivatives are taken forward, and what is left is linear.
    """

    @custom_jvp
    @functools.wraps(fun)
    def made(*args: ArrayLike) -> Array:
        args = [jnp.asarray(x) for x in promote_inexact(name, *args)]
        dtype = args[0].dtype
        if dtype.kind == "c":
            raise ValueError(
                f"{name} does not support complex-valued inputs. Got {dtype.name}: give real parts."
            )
        wide = np.float32 if dtypes.bit_width(dtype) < 32 else dtype
        shape = jnp.broadcast_shapes(*[x.shape for x in args])
        return fun(*[jnp.broadcast_to(x, shape).astype(wide) for x in args]).astype(dtype)

    @made.defjvp
    def _(primals, tangents):
        out = made(*primals)
        total = jnp.zeros_like(out)
        primals = [jnp.broadcast_to(jnp.asarray(x), out.shape).astype(out.dtype) for x in primals]
        for place, t in enumerate(tangents):
            if dtypes.dtype(t) == dtypes.float0:
                continue
            ones = [jnp.full_like(x, float(i == place)) for i, x in enumerate(primals)]
            _, partial = jvp(made.fun, primals, ones)
            total = total + partial * jnp.asarray(t).astype(out.dtype)
        return out, total

    return library(whole=True)(made)


def _sum(step: Callable, first: Any, limit: int) -> Any:
    """The sum of a first term and of others, each `step(k, term)` of the one before, until these vanish."""
    eps = float(dtypes.finfo(first.dtype).eps) / 16

    def go_on(carry):
        k, term, total = carry
        return (k < limit) & jnp.any(jnp.abs(term) > eps * jnp.abs(total))

    def add(carry):
        k, term, total = carry
        term = step(k.astype(first.dtype), term)
        return k + 1, term, total + term

    return lax.while_loop(go_on, add, (jnp.zeros((), np.int32), first, first))[2]


def _hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    # Kummer's transformation makes the argument positive, so that little cancels.
    is_negative = x < 0
    first, y = jnp.where(is_negative, b - a, a), jnp.abs(x)
    is_large = y > 100
    near, far = jnp.where(is_large, 1, y), jnp.where(is_large, y, 200)

    def grow(k, term):
        return term * ((first + k) / (b + k) * near / (k + 1))

    one = jnp.ones_like(x)
    series = _sum(grow, one, 500)
    # DLMF 13.7.1.
    tail = _sum(lambda k, t: t * ((b - first + k) * (1 - first + k) / (far * (k + 1))), one, 40)
    growth = jnp.where(is_negative, 0, far) + (first - b) * jnp.log(far)
    sign = _gamma_sign(b) * _gamma_sign(first)
    large = sign * jnp.exp(lax.lgamma(b) - lax.lgamma(first) + growth) * tail
    near_out = jnp.where(is_negative, jnp.exp(jnp.where(is_negative, -near, 0)), 1) * series
    out = jnp.where(is_large, large, near_out)
    out = jnp.where((b <= 0) & (b == jnp.floor(b)), np.inf, out)
    return jnp.where((a == 0) | (x == 0) | (b == np.inf), 1 + 0 * x * a, out)


def _gamma_sign(x: Any) -> Any:
    return jnp.where((x < 0) & (jnp.mod(jnp.floor(x), 2) == 1), -1, 1).astype(x.dtype)


hyp1f1 = _by_partials(_hyp1f1, "hyp1f1")
hyp1f1.__name__ = hyp1f1.__qualname__ = "hyp1f1"
hyp1f1.__doc__ = """Compute Kummer's confluent hypergeometric function 1F1(a; b; x).

- `a`, `b`, `x`: real arrays that broadcast together

The result has their common shape and a floating-point dtype; it is 1 where `a` is zero, also if `b`
is. ValueError for complex numbers.
Source: SciPy's `special.hyp1f1`; DLMF 13.2.

>>> jax.scipy.special.hyp1f1(1.0, 1.0, 0.0)
Array(1., dtype=float32)
"""


def _hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    is_whole = (c <= 0) & (c == jnp.floor(c))
    is_pole = is_whole & ((c == 0) | ((a != 0) & (b != 0)))
    c = jnp.where(is_whole, 1, c)
    is_polynomial = ((a <= 0) & (a == jnp.floor(a))) | ((b <= 0) & (b == jnp.floor(b)))
    # Pfaff's transformation brings negative arguments between 0 and 1.
    is_negative = (x < 0) & ~is_polynomial
    second = jnp.where(is_negative, c - b, b)
    y = jnp.where(is_negative, x / (x - 1), x)
    # Euler's makes the terms fall faster; of series with many negative factors, that with fewer cancels less.
    least, least_of_euler = jnp.minimum(a, second), jnp.minimum(c - a, c - second)
    cancels = (jnp.minimum(least, least_of_euler) < -4) & (y < 0.9)
    is_euler = jnp.where(cancels, least_of_euler > least, c - a - second < 0) & ~is_polynomial
    p, q = jnp.where(is_euler, c - a, a), jnp.where(is_euler, c - second, second)
    inside = (jnp.abs(y) < 1) | is_polynomial
    y = jnp.where(inside, y, 0)
    # Half of Euler's factor goes before the series, which may be as large as that is small.
    rest = jnp.where(is_euler, 1 - y, 1)
    factor = rest ** jnp.where(is_euler, (c - a - second) / 2, 0)
    series = _sum(lambda k, t: t * ((p + k) * (q + k) / ((c + k) * (k + 1)) * y), factor, 20000)
    out = series * factor
    out = out * jnp.where(is_negative, (1 - jnp.where(is_negative, x, 0)) ** -a, 1)
    at_one = _gauss(a, b, c)
    out = jnp.where(inside, out, jnp.where(x == 1, at_one, np.inf))
    return jnp.where(x == 0, 1, jnp.where(is_pole, np.inf, out))


def _gauss(a: Any, b: Any, c: Any) -> Any:
    """2F1 at 1 (DLMF 15.4.20)."""
    top = [c, c - a - b]
    under = [c - a, c - b]
    sign = math.prod([_gamma_sign(x) for x in (*top, *under)])
    logs = sum(lax.lgamma(x) for x in top) - sum(lax.lgamma(x) for x in under)
    return jnp.where(c - a - b > 0, sign * jnp.exp(logs), np.inf)


hyp2f1 = _by_partials(_hyp2f1, "hyp2f1")
hyp2f1.__name__ = hyp2f1.__qualname__ = "hyp2f1"
hyp2f1.__doc__ = """Compute Gauss's hypergeometric function 2F1(a, b; c; x) for x <= 1.

- `a`, `b`, `c`, `x`: real arrays that broadcast together

The result has their common shape and a floating-point dtype. Close to x = 1 it takes many terms.
ValueError for complex numbers.
Source: SciPy's `special.hyp2f1`; DLMF 15.

>>> jax.scipy.special.hyp2f1(1.0, 1.0, 1.0, 0.0)
Array(1., dtype=float32)
"""


# -- Spence's function -----------------------------------------------------------------------------


@library
def spence(x: Array) -> Array:
    """Compute the integral of `log(t) / (1 - t)` from 1 to x.

    - `x`: array of float32 or float64, of any shape

    The result has the shape and dtype of `x`; NaN for negative x. TypeError for other dtypes.
    Source: SciPy's `special.spence`; DLMF 25.12.

    >>> jax.scipy.special.spence(jnp.array([-1.0]))
    Array([nan], dtype=float32)
    """
    return _spence_with_rule(jnp.asarray(x))


@custom_jvp
def _spence_with_rule(x):
    x = jnp.asarray(x)
    x = x.astype(x.dtype)
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"x.dtype={x.dtype} is not supported, see docstring for supported types. Give float32 "
            "or float64."
        )
    return _spence(x)


_DEBYE = [number / math.factorial(2 * k + 3) for k, number in enumerate(_BERNOULLI)]


def _spence(x: Any) -> Any:
    is_large = x > 2
    y = jnp.where(is_large, 1 / jnp.where(is_large, x, 1), x)
    # Between 1/2 and 2 it is a series of log(x), whose coefficients are Bernoulli's numbers.
    is_small = y < 0.5
    log = jnp.log(jnp.where(is_large | (x > 0), x, 1))
    log = jnp.where(is_large, -log, log)  # that of y, which may be too small for a float
    small = jnp.where(is_small, y, 0)
    # XLA's log1p of float64 is off by up to 128 units between -0.42 and -0.29.
    inner = -jnp.where(small > 0.25, jnp.log(1 - small), jnp.log1p(-small))
    inner = jnp.where(is_small, inner, 0 - log)
    square = inner * inner
    tail = jnp.polyval(np.asarray(_DEBYE[::-1], x.dtype), square, unroll=16)
    series = inner - 0.25 * square + inner * square * tail
    out = jnp.where(is_small, np.pi**2 / 6 + log * inner - series, series)
    out = jnp.where(is_large, -0.5 * log * log - out, out)
    out = jnp.where(x == np.inf, -np.inf, out)
    return jnp.where((x < 0) | jnp.isnan(x), np.nan, out)


@_spence_with_rule.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    x = jnp.asarray(x)
    is_one, is_inside = x == 1, (x >= 0) & (x < np.inf)
    inner = jnp.where(is_inside & ~is_one, x, 2)
    slope = jnp.where(is_inside, jnp.log(inner) / (1 - inner), 0)
    slope = jnp.where(is_one, -1, slope)
    return _spence_with_rule(x), (slope * t).astype(x.dtype)


# -- spherical harmonics ---------------------------------------------------------------------------


def sph_harm_y(
    n: Array,
    m: Array,
    theta: Array,
    phi: Array,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Compute the orthonormal spherical harmonics.

    - `n`, `m`: integer vectors of degrees and orders
    - `theta`, `phi`: vectors of angles from the pole and around it, of the same shape
    - `n_max`: largest degree, to which larger ones are cut; needed where `n` is traced

    The result is complex and has their shape. ValueError for shapes that differ.
    Source: SciPy's `special.sph_harm_y`; DLMF 14.30.

    >>> n, angles = jnp.array([1, 2]), jnp.array([0.0, 1.0])
    >>> jax.scipy.special.sph_harm_y(n, n, angles, angles).shape
    (2,)
    """
    if diff_n is not None:
        raise NotImplementedError(
            "The 'diff_n' argument to jax.scipy.special.sph_harm_y is not supported. Leave it out."
        )
    where = (
        "The `n_max` argument of `jnp.scipy.special.sph_harm` must be statically specified to use "
        "`sph_harm` within JAX transformations."
    )
    if n_max is None:
        n_max = np.max(np.asarray(known_value(n, where)))
    return _sph_harm_y(n, m, theta, phi, known_index(n_max, where))


@library(static=("n_max",), whole=True)
def _sph_harm_y(n, m, theta, phi, n_max):
    n, m, theta, phi = (jnp.asarray(x) for x in (n, m, theta, phi))
    if not any(x.ndim for x in (n, m, theta, phi)):
        raise TypeError("sph_harm_y takes vectors: len() of unsized object; give theta[None].")
    for label, x in (("n", n), ("m", m)):
        if not dtypes.issubdtype(x.dtype, np.integer):
            raise TypeError(
                f"sph_harm_y: {label} must have integer or boolean type, got dtype {x.dtype.name}."
            )
    theta, phi = promote_inexact("sph_harm_y", theta, phi)
    if theta.dtype not in (np.float32, np.float64):
        raise TypeError(f"sph_harm_y takes float32 and float64; got dtype {theta.dtype.name}.")
    theta, phi = theta.astype(theta.dtype), phi.astype(theta.dtype)
    shape = jnp.broadcast_shapes(*[x.shape for x in (n, m, theta, phi)])
    n, m = jnp.minimum(n, n_max), jnp.broadcast_to(m, shape)
    order = jnp.abs(m)
    cosine, sine = (jnp.broadcast_to(f(theta), shape) for f in (jnp.cos, jnp.sin))
    sine = jnp.abs(sine)  # the angle is the cosine's, beyond 0 and pi too
    mm = (order * order).astype(theta.dtype)

    def step(k, carry):
        before, current = carry
        at = lax.convert_element_type(k, theta.dtype)
        # Along the diagonal up to the order, and then up in degree: both orthonormal.
        diagonal = -jnp.sqrt((2 * at + 1) / (2 * at)) * sine * current
        gap = jnp.where(k > order, at * at - mm, 1)
        older = jnp.where(k > order + 1, (at - 1) ** 2 - mm, 0)
        up = jnp.sqrt((4 * at * at - 1) / gap) * cosine * current
        safe = jnp.where(older > 0, older, 1)
        ratio = (2 * at + 1) / jnp.where(k > 1, 2 * at - 3, 1) * safe / gap
        down = jnp.where(older > 0, jnp.sqrt(jnp.where(older > 0, ratio, 1)), 0) * before
        is_diagonal = k <= order
        found = jnp.where(is_diagonal, diagonal, up - down)
        before = jnp.where(is_diagonal, 0, current)
        done = k > n
        return jnp.where(done, carry[0], before), jnp.where(done, current, found)

    first = jnp.full(shape, np.sqrt(0.25 / np.pi), theta.dtype)
    _, legendre = lax.fori_loop(1, n_max + 1, step, (jnp.zeros_like(first), first))
    legendre = jnp.where(order > n, 0, legendre)
    legendre = jnp.where((m < 0) & (m % 2 == 1), -legendre, legendre)
    angle = m.astype(theta.dtype) * phi
    out = lax.complex(legendre * jnp.cos(angle), legendre * jnp.sin(angle))
    return out.astype(np.promote_types(out.dtype, dtypes.canonicalize_dtype(np.complex128)))
