"""Error functions, the normal distribution, and modified Bessel functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.library import library
from minijax.numpy.promotion import promote_inexact, to_array
from minijax.typing import ArrayLike

__all__ = [
    "erf", "erfc", "erfinv", "i0", "i0e", "i1", "i1e", "log_ndtr", "ndtr", "ndtri",
]  # fmt: skip


def _of_lax(
    name: str, function: Any, doc: str, example: str = "0.0", result: str = "0."
) -> Callable[[ArrayLike], Array]:
    @library
    def fun(x: ArrayLike) -> Array:
        (x,) = promote_inexact(name, x)
        return function(x)

    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = f"""Compute {doc}.

    - `x`: real array of any shape

    The result has the shape of `x` and a floating-point dtype. TypeError for complex numbers.
    Source: SciPy's `special.{name}`.

    >>> jax.scipy.special.{name}(jnp.array([{example}]))
    Array([{result}], dtype=float32)
    """
    return fun


erf = _of_lax("erf", lax.erf, "the error function")
erfc = _of_lax("erfc", lax.erfc, "`1 - erf(x)`, accurately for large x", result="1.")
erfinv = _of_lax("erfinv", lax.erf_inv, "the inverse of the error function; NaN outside [-1, 1]")
i0e = _of_lax("i0e", lax.bessel_i0e, "`exp(-abs(x)) * i0(x)`", "jnp.inf")
i1e = _of_lax("i1e", lax.bessel_i1e, "`exp(-abs(x)) * i1(x)`")
i0 = _of_lax(
    "i0", lambda x: lax.exp(lax.abs(x)) * lax.bessel_i0e(x),
    "the modified Bessel function of order 0", "jnp.nan", "nan",
)  # fmt: skip
i1 = _of_lax(
    "i1", lambda x: lax.exp(lax.abs(x)) * lax.bessel_i1e(x),
    "the modified Bessel function of order 1",
)  # fmt: skip


_SEE = ", see docstring for supported types"


def _float(name: str, x: Any) -> Any:
    x = to_array(name, x)
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"x.dtype={x.dtype} is not supported{'' if name == 'log_ndtr' else _SEE}. Give {name} "
            "float32 or float64."
        )
    return x


def ndtr(x: ArrayLike) -> Array:
    """Compute the distribution function of the normal distribution.

    - `x`: array of float32 or float64, of any shape

    The result has the shape and dtype of `x`. TypeError for other dtypes.
    Source: SciPy's `special.ndtr`.

    >>> jax.scipy.special.ndtr(jnp.array([-jnp.inf, 0.0, jnp.inf]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return _checked_ndtr(x)


@library
def _checked_ndtr(x):
    return _ndtr(_float("ndtr", jnp.asarray(x)))


def _ndtr(x: Any) -> Any:
    half = np.asarray(0.5 * np.sqrt(2.0), x.dtype)
    w = x * half
    z = lax.abs(w)
    near = 1.0 + lax.erf(w)
    far = jnp.where(w > 0, 2.0 - lax.erfc(z), lax.erfc(z))
    return 0.5 * jnp.where(z < half, near, far)


@custom_jvp
@library
def ndtri(p: ArrayLike) -> Array:
    """Compute the inverse of `ndtr`.

    - `p`: array of float32 or float64, of any shape

    The result has the shape and dtype of `p`; NaN outside [0, 1]. TypeError for other dtypes.
    Source: SciPy's `special.ndtri`.

    >>> jax.scipy.special.ndtri(jnp.array([0.0, 0.5, 1.0]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    p = _float("ndtri", jnp.asarray(p))
    return _ndtri(p)


# Rational approximations of S. L. Moshier's Cephes library (netlib.org/cephes, ndtri.c).
_CENTRE = (
    (-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1,
     1.39312609387279679503e1, -1.23916583867381258016e0),
    (1.0, 1.95448858338141759834e0, 4.67627912898881538453e0, 8.63602421390890590575e1,
     -2.25462687854119370527e2, 2.00260212380060660359e2, -8.20372256168333339912e1,
     1.59056225126211695515e1, -1.18331621121330003142e0),
)  # fmt: skip
_TAIL = (
    (4.05544892305962419923e0, 3.15251094599893866154e1, 5.71628192246421288162e1,
     4.40805073893200834700e1, 1.46849561928858024014e1, 2.18663306850790267539e0,
     -1.40256079171354495875e-1, -3.50424626827848203418e-2, -8.57456785154685413611e-4),
    (1.0, 1.57799883256466749731e1, 4.53907635128879210584e1, 4.13172038254672030440e1,
     1.50425385692907503408e1, 2.50464946208309415979e0, -1.42182922854787788574e-1,
     -3.80806407691578277194e-2, -9.33259480895457427372e-4),
)  # fmt: skip
_FAR_TAIL = (
    (3.23774891776946035970e0, 6.91522889068984211695e0, 3.93881025292474443415e0,
     1.33303460815807542389e0, 2.01485389549179081538e-1, 1.23716634817820021358e-2,
     3.01581553508235416007e-4, 2.65806974686737550832e-6, 6.23974539184983293730e-9),
    (1.0, 6.02427039364742014255e0, 3.67983563856160859403e0, 1.37702099489081330271e0,
     2.16236993594496635890e-1, 1.34204006088543189037e-2, 3.28014464682127739104e-4,
     2.89247864745380683936e-6, 6.79019408009981274425e-9),
)  # fmt: skip


def _ratio(x: Any, pair: tuple) -> Any:
    over, under = (
        jnp.polyval(np.asarray(coefficients, x.dtype), x, unroll=16) for coefficients in pair
    )
    return over / under


def _ndtri(p: Any) -> Any:
    upper = p > 1.0 - np.exp(-2.0)
    small = jnp.where(upper, 1.0 - p, p)
    middle = small > np.exp(-2.0)
    safe = jnp.where(small == 0, 0.5, small)
    w = safe - 0.5
    centre = (w + w * (w * w) * _ratio(w * w, _CENTRE)) * -np.sqrt(2.0 * np.pi)
    z = jnp.sqrt(-2.0 * jnp.log(safe))
    first = z - jnp.log(z) / z
    tail = first - jnp.where(z >= 8.0, _ratio(1 / z, _FAR_TAIL), _ratio(1 / z, _TAIL)) / z
    out = jnp.where(middle, centre, tail)
    out = jnp.where(upper, out, -out)
    out = jnp.where(p == 0, -np.inf, jnp.where(p == 1, np.inf, out))
    return jnp.where((p < 0) | (p > 1), np.nan, out).astype(p.dtype)


@ndtri.defjvp
def _(primals, tangents):
    (p,), (t,) = primals, tangents
    out = ndtri(p)
    return out, t * np.asarray(np.sqrt(2 * np.pi), out.dtype) * jnp.exp(jnp.square(out) / 2)


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Compute `log(ndtr(x))`, accurately for very negative x.

    - `x`: array of float32 or float64, of any shape
    - `series_order`: number of terms of the asymptotic series, between 0 and 30

    The result has the shape and dtype of `x`. TypeError for other dtypes or an order that is not an
    integer, ValueError for another order.
    Source: SciPy's `special.log_ndtr`; Abramowitz and Stegun 26.2.12.

    >>> jax.scipy.special.log_ndtr(jnp.array([-jnp.inf]))
    Array([-inf], dtype=float32)
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("series_order must be non-negative.")
    if series_order > 30:
        raise ValueError("series_order must be <= 30.")
    return _log_ndtr(x, series_order)


def _log_ndtr(x, order):
    return _log_ndtr_with_rule(order)(x)


def _log_ndtr_with_rule(order: int) -> Any:
    found = _by_order.get(order)
    if found is None:
        found = custom_jvp(library(lambda x: _log_ndtr_of(x, order)))
        found.defjvps(
            lambda t, out, x: lax.mul(
                jnp.exp(-0.5 * jnp.square(x) - 0.5 * math.log(2 * math.pi) - out), t
            )
        )
        _by_order[order] = found
    return found


_by_order: dict[int, Any] = {}


def _log_ndtr_of(x: Any, order: int) -> Any:
    x = _float("log_ndtr", jnp.asarray(x))
    low, high = (-20.0, 8.0) if x.dtype == np.float64 else (-10.0, 5.0)
    middle = jnp.log(_ndtr(jnp.maximum(x, low)))
    above = -_ndtr(-jnp.maximum(x, high))
    y = jnp.minimum(x, low)
    log_scale = -0.5 * jnp.square(y) - jnp.log(-y) - 0.5 * math.log(2 * math.pi)
    total, term, square = 1.0, 1.0, jnp.square(y)
    for n in range(1, order + 1):
        term = -term * (2 * n - 1) / square
        total = total + term
    below = log_scale + jnp.log(total)
    return jnp.where(x > high, above, jnp.where(x > low, middle, below)).astype(x.dtype)
