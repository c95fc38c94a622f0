"""The incomplete gamma functions P(a, x) and Q(a, x) of large a, by Temme's uniform expansion.

With mu = x / a - 1, eta**2 / 2 = phi = mu - log(1 + mu), eta of the sign of mu, and
E = exp(-a phi) / sqrt(2 pi a): Q = erfc(eta sqrt(a / 2)) / 2 + E S and P = 1 - Q, where S is the sum of
d[k, n] eta**n / a**k. Source: DLMF 8.12; Gil, Segura and Temme (2012), section 2.2.1.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from minijax.lax.arithmetic import abs, add, div, max, min, mul, neg, sign, sqrt, square, sub
from minijax.lax.compare import eq, lt, select
from minijax.lax.rules import scalar_like
from minijax.lax.transcendental import exp, log1p

__all__ = ["FARTHEST", "LARGE", "Uniform", "log1p_apart", "stirling_rest"]

LARGE = 1e4  # from here on the powers below are exact
FARTHEST = 0.6  # the |mu| beyond which E is 0, and the series and the fraction are short
_POWERS, _TERMS = 4, 24
# By the size of the dtype: the powers of 1 / a and of eta, and the terms of the logarithm.
_SIZES = {4: (2, 12, 10), 8: (_POWERS, _TERMS, 24)}


@functools.cache
def _coefficients() -> tuple[list[float], ...]:
    """The d[k, n], by the recurrences of DLMF 8.12.11 and of Gil, Segura and Temme."""
    from fractions import Fraction  # here: it takes 2.5 ms, of every start if above

    count = _TERMS + 2 * _POWERS + 2
    alpha = [Fraction(0), Fraction(1)]
    for n in range(2, count + 1):
        inner = sum((j * alpha[j] * alpha[n - j + 1] for j in range(2, n)), Fraction(0))
        alpha.append((alpha[n - 1] - inner) / (n + 1))
    first = [Fraction(-1, 3), *((n + 2) * alpha[n + 2] for n in range(1, count - 1))]
    stirling = [1, Fraction(1, 12), Fraction(1, 288), Fraction(-139, 51840)]
    rows = [first]
    for k in range(1, _POWERS):
        last = rows[-1]
        weight = (-1) ** k * stirling[k]
        rows.append([weight * first[n] + (n + 2) * last[n + 2] for n in range(len(last) - 2)])
    return tuple([float(d) for d in row[:_TERMS]] for row in rows)


def _polynomial(coefficients: list[Any], x: Any) -> Any:
    out = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = add(mul(out, x), c)
    return out


_STIRLING = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
)  # fmt: skip


def stirling_rest(x: Any) -> Any:
    """Return the remainder of Stirling's formula (DLMF 5.11.1) for log(gamma(x)).

    It has the digits of float64 from 8 on, those of float32 from 4 on.
    """
    inverse = div(scalar_like(1, x), x)
    return mul(_polynomial([scalar_like(c, x) for c in _STIRLING], square(inverse)), inverse)


def log1p_apart(mu: Any) -> Any:
    """mu - log(1 + mu), which for small mu is the small difference of two like numbers."""
    limit = scalar_like(FARTHEST, mu)
    near = max(min(mu, limit), neg(limit))
    close = _near_log1p_apart(near, _SIZES[mu.dtype.itemsize][2])
    return select(eq(mu, near), close, sub(mu, log1p(mu)))


def _near_log1p_apart(mu: Any, count: int) -> Any:
    half = div(mu, add(mu, scalar_like(2, mu)))
    terms = [scalar_like(1 / (2 * i + 3), mu) for i in range(count)]
    cubed = mul(half, square(half))
    return sub(mul(mu, half), mul(scalar_like(2, mu), mul(cubed, _polynomial(terms, square(half)))))


class Uniform:
    """The terms of the expansion, for operands a >= `LARGE` and positive x, both finite."""

    def __init__(self, a: Any, x: Any):
        def number(value):
            return scalar_like(value, x)

        self.a = a
        powers, terms, logarithm = _SIZES[x.dtype.itemsize]
        self.coefficients = [row[:terms] for row in _coefficients()[:powers]]
        mu = div(sub(x, a), a)
        self.mu = mu = max(min(mu, number(FARTHEST)), number(-FARTHEST))
        self.phi = _near_log1p_apart(mu, logarithm)
        self.eta = eta = mul(sign(mu), sqrt(mul(number(2), self.phi)))
        self.inverse = inverse = div(number(1), a)
        self.powers = [_polynomial([number(d) for d in row], eta) for row in self.coefficients]
        self.total = _polynomial(self.powers, inverse)
        ratio = mul(inverse, number(1 / (2 * math.pi)))
        self.factor = mul(exp(neg(mul(a, self.phi))), sqrt(ratio))

    def value(self, erfc: Any, upper: bool) -> Any:
        """Q if `upper`, else P."""
        half = scalar_like(0.5, self.a)
        place = mul(self.eta, sqrt(mul(self.a, half)))
        rest = mul(self.factor, self.total)
        if upper:
            return add(mul(half, erfc(place)), rest)
        return sub(mul(half, erfc(neg(place))), rest)

    def weight(self) -> Any:
        """x**a exp(-x) / gamma(a), by Stirling's series of gamma(a)."""
        return div(mul(self.factor, self.a), self._stirling())

    def slope(self) -> Any:
        """The derivative of P in a, divided by the weight."""

        def number(value):
            return scalar_like(value, self.a)

        slopes = [
            _polynomial([number(n * d) for n, d in enumerate(row)][1:], self.eta)
            for row in self.coefficients
        ]
        by_eta = _polynomial(slopes, self.inverse)
        by_inverse = _polynomial(
            [mul(number(k), power) for k, power in enumerate(self.powers)][1:], self.inverse
        )
        at_zero = lt(abs(self.eta), number(float(np.finfo(self.a.dtype).tiny)))
        one = add(mul(number(0), self.eta), number(1))
        ratio = select(at_zero, one, div(self.mu, select(at_zero, one, self.eta)))
        inside = sub(log1p(self.mu), mul(number(0.5), self.inverse))
        out = add(sub(ratio, mul(number(0.5), self.eta)), mul(self.total, inside))
        out = sub(out, mul(mul(by_eta, ratio), self.inverse))
        out = sub(out, mul(by_inverse, square(self.inverse)))
        return neg(div(mul(out, self._stirling()), self.a))

    def _stirling(self) -> Any:
        """gamma(a) / (sqrt(2 pi / a) (a / e)**a)."""
        terms = (1, 1 / 12, 1 / 288, -139 / 51840)
        return _polynomial([scalar_like(c, self.a) for c in terms], self.inverse)
