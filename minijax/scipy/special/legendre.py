"""Associated Legendre functions, which upstream is about to drop: lpmn, lpmn_values."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.library import library

__all__ = ["lpmn", "lpmn_values"]


def _checked(m: int, n: int, z: Any) -> Array:
    z = jnp.asarray(z)
    if z.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"z.dtype={z.dtype} is not supported, see docstring for supported types. The "
            "associated Legendre functions take float32 and float64, z.astype(float)."
        )
    if z.ndim != 1:
        raise ValueError(f"z must be a 1D array. Its shape is {z.shape}: give z.ravel().")
    if m != n:
        raise NotImplementedError(
            f"Computations for m!=n are not yet supported. Got m={m} and n={n}: give the larger "
            "for both, and take a part of the result."
        )
    if n < 0:
        raise IndexError(f"the degree of a Legendre function is not negative; got n={n}.")
    return z


def lpmn(m: int, n: int, z: Array) -> tuple[Array, Array]:
    """The associated Legendre functions of the first kind, and their derivatives, at a vector.

    Both of shape (m + 1, n + 1, len(z)): order, degree, point; zero where the order is above the
    degree, NaN beyond [-1, 1]. `m` and `n` must be equal. NotImplementedError, ValueError and
    TypeError as for `lpmn_values`. Source: scipy.special.lpmn; DLMF 14.10.
    """
    return _values_and_slopes(int(n), _checked(m, n, z))


def lpmn_values(m: int, n: int, z: Array, is_normalized: bool) -> Array:
    """The associated Legendre functions of the first kind at a vector, as in `lpmn`.

    With `is_normalized`, those of spherical harmonics: of norm 1 on the sphere with exp(i m phi).
    NotImplementedError unless m == n; ValueError unless `z` is a vector; TypeError unless it has
    float32 or float64.
    """
    return _values(int(n), _checked(m, n, z), bool(is_normalized))


@library(static=("n", "normalized"), whole=True)
def _values(n, z, normalized):
    return _legendre(n, z, normalized)


@library(static=("n",), whole=True)
def _values_and_slopes(n, z):
    values = _legendre(n, z, False)
    order, degree = (x[..., None].astype(z.dtype) for x in np.indices((n + 1, n + 1)))
    zeros = jnp.zeros_like(values[:1])
    below = lax.concatenate([-values[1:2] if n else zeros, values[:-1]], 0)
    above = lax.concatenate([values[1:], zeros], 0)
    # The function of order -1 is that of order 1, by -1 / (l (l + 1)).
    weight = np.where(order == 0, 1, (degree + order) * (degree - order + 1))
    slopes = (weight * below - above) / (2 * jnp.sqrt(1 - z * z))
    # At the ends: by the order 0, 1, 2 or more.
    parity = jnp.where(degree % 2 == 0, z, jnp.ones_like(z))
    at_ends = jnp.select(
        [order == 0, order == 1, order == 2],
        [
            parity * (degree * (degree + 1) / 2),
            jnp.where(degree % 2 == 0, jnp.ones_like(z), z) * np.inf,
            parity * (-(degree - 1) * degree * (degree + 1) * (degree + 2) / 4),
        ],
        jnp.zeros_like(z),
    )
    slopes = jnp.where(jnp.abs(z) == 1, at_ends, slopes)
    return values, jnp.where((order > degree) | (degree == 0), jnp.zeros_like(z), slopes)


def _legendre(n: int, z: Any, normalized: bool) -> Any:
    """Values by order, degree and point: each degree follows from the two before it."""
    degree, order = np.arange(1, n + 1, dtype=np.float64)[:, None], np.arange(n + 1.0)
    gap = np.maximum(degree - order, 1)
    if normalized:
        first, diagonal = np.sqrt(0.25 / np.pi), np.sqrt((2 * degree + 1) / (2 * degree))
        squares = np.where(order < degree, degree**2 - order**2, 1)
        one_before = np.sqrt((4 * degree**2 - 1) / squares)
        last = np.where(order < degree - 1, (degree - 1) ** 2 - order**2, 0)
        two_before = one_before * np.sqrt(last / np.maximum(4 * (degree - 1) ** 2 - 1, 1))
    else:
        first, diagonal = 1.0, 2 * degree - 1
        one_before, two_before = (2 * degree - 1) / gap, (degree + order - 1) / gap
    tables = [x.astype(z.dtype)[..., None] for x in (one_before, two_before, -diagonal)]
    sine = jnp.sqrt(1 - z * z)
    row = lax.broadcasted_iota(np.int32, (n + 1, 1), 0)

    def step(carry, given):
        last, before_last, corner = carry
        level, one, two, down = given
        corner = down * sine * corner
        inner = jnp.where(row < level, one * z * last - two * before_last, jnp.zeros_like(z))
        out = jnp.where(row == level, corner, inner)
        return (out, last, corner), out

    start = jnp.where(row == 0, jnp.full_like(z, first), jnp.zeros_like(z))
    levels = np.arange(1, n + 1, dtype=np.int32)
    carry = start, jnp.zeros_like(start), jnp.full_like(z[None], first)
    _, rest = lax.scan(step, carry, (levels, *tables))
    return jnp.moveaxis(lax.concatenate([start[None], rest], 0), 0, 1)
