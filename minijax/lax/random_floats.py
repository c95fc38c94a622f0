"""Floats made of random bits: uniform, normal and exponential ones, each a formula of the bits.

`keys` may be one key or an array of them: each gives its own samples, at its place, so that what is
written here for one key holds for many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.lax.arithmetic import add, max, mul, neg, sub
from minijax.lax.compare import bitwise_or, shift_right_logical
from minijax.lax.convert import bitcast_convert_type, convert_element_type
from minijax.lax.joining import unstack
from minijax.lax.prng import random_bits_p, random_split_p
from minijax.lax.special import erf_inv
from minijax.lax.transcendental import log1p

__all__ = ["exponential_of", "keys_from", "normal_of", "unit_uniform"]


def keys_from(keys: Any, count: int) -> list[Any]:
    """New keys from each of `keys`: a list of arrays of their shape."""
    return list(unstack(random_split_p.bind(keys, shape=(count,)), axis=keys.ndim))


def unit_uniform(keys: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Samples of [0, 1): random bits for the mantissa of a float of [1, 2), less 1.

    TypeError for floats of another width than 8, 16, 32 or 64 bits.
    """
    info = dtypes.finfo(dtype)
    if info.bits not in (8, 16, 32, 64):
        raise TypeError(
            f"uniform only accepts 8-, 16-, 32-, or 64-bit dtypes, got {dtype.name}: convert the "
            "samples of a wider one."
        )
    word = np.dtype(f"uint{info.bits}")
    width = 8 if info.nmant < 8 else info.bits  # a short mantissa needs no more
    bits = random_bits_p.bind(keys, bit_width=width, shape=shape)
    if width != info.bits:
        bits = convert_element_type(bits, word)
    mantissa = shift_right_logical(bits, word.type(width - info.nmant))
    one = dtype.type(1)
    floats = bitcast_convert_type(bitwise_or(mantissa, np.asarray(one).view(word)[()]), dtype)
    return sub(floats, one)


def normal_of(keys: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Real standard normal samples, by inverting their cumulative distribution function."""
    low = np.nextafter(dtype.type(-1), dtype.type(0), dtype=dtype)
    u = unit_uniform(keys, shape, dtype)
    u = max(low, add(mul(u, dtype.type(1) - low), low))
    return mul(dtype.type(np.sqrt(2)), erf_inv(u))


def exponential_of(keys: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Samples of the exponential distribution of rate 1."""
    return neg(log1p(neg(unit_uniform(keys, shape, dtype))))
