"""Division, remainders and powers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arrays.array import ArrayImpl
from minijax.core.avals import get_aval
from minijax.features.library import library
from minijax.lax import arithmetic, compare
from minijax.lax.arithmetic import add_p, div_p, mul_p, rem_p, sub_p
from minijax.lax.compare import and_p, select_n_p, shift_right_logical_p
from minijax.lax.control_flow import cond, while_loop
from minijax.lax.reductions import reduce_or_p
from minijax.lax.transcendental import pow_p
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    check_ranks,
    common_dtype,
    converted,
    filled_like,
    number_like,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
    promote_pair,
    promote_pair_inexact,
    promote_shapes,
    settled,
    typed_as,
    unwrapped,
)
from minijax.typing import Array, ArrayLike

__all__ = [
    "divide", "divmod", "float_power", "floor_divide", "fmod", "gcd", "lcm", "mod", "pow",
    "power", "remainder", "true_divide",
]  # fmt: skip


@library
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divide elements.

    - `x1`, `x2`: arrays that broadcast; integers become floats.

    Returns an array of the broadcast shape, of the promoted inexact dtype. Source: NumPy's
    `divide`.

    >>> jnp.divide(jnp.array([1, 6]), jnp.array([2, 4]))
    Array([0.5, 1.5], dtype=float32)
    """
    x1, x2 = promote_pair_inexact("true_divide", x1, x2)
    return div_p.bind(x1, x2)


true_divide = divide


def _numeric_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """A pair in one dtype that is not bool."""
    x, y = promote_pair(name, x, y)
    if get_aval(x).dtype == dtypes.bool_:
        x, y = promote_dtypes_numeric(x, y)
    return x, y


def _category(x: Any) -> str:
    dtype = get_aval(x).dtype
    for kind, category in (
        ("unsigned", np.unsignedinteger),
        ("signed", np.signedinteger),
        ("float", np.floating),
    ):
        if dtypes.issubdtype(dtype, category):
            return kind
    return "complex"


def _same_shape(x: Any, y: Any) -> tuple[Any, Any]:
    shape = broadcast_shapes(np.shape(x), np.shape(y))
    return broadcast_to_shape(x, shape), broadcast_to_shape(y, shape)


@library
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divide elements and round down to an integer.

    - `x1`, `x2`: real arrays that broadcast.

    Returns an array of the broadcast shape and of the promoted dtype. TypeError for complex dtypes.
    Source: NumPy's `floor_divide`.

    >>> jnp.floor_divide(jnp.array([7, -7]), jnp.array([2, 2]))
    Array([ 3, -4], dtype=int32)
    """
    x1, x2 = _numeric_pair("floor_divide", x1, x2)
    kind = _category(x1)
    if kind == "unsigned":
        return div_p.bind(x1, x2)
    if kind == "signed":
        q = div_p.bind(x1, x2)
        differ = compare.ne_p.bind(*promote_shapes("", arithmetic.sign(x1), arithmetic.sign(x2)))
        rest = rem_p.bind(x1, x2)
        inexact = compare.ne_p.bind(rest, number_like(rest, 0))
        down = and_p.bind(differ, inexact)
        return select_n_p.bind(down, q, sub_p.bind(q, _one_like(q)))
    if kind == "float":
        return _float_divmod(x1, x2)[0]
    raise TypeError(
        "floor_divide does not support complex-valued inputs: "
        f"got dtype {get_aval(x1).dtype.name}. Divide, and take the floor of each part."
    )


def _one_like(x: Any) -> Any:
    """One, as weakly typed as `x`."""
    return converted(1, x.aval.dtype, x.aval.weak_type)


def _float_divmod(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Quotient and remainder of floats: the remainder has the sign of the divisor."""
    x1, x2 = _same_shape(x1, x2)
    rest = rem_p.bind(x1, x2)
    by_zero = compare.eq_p.bind(x2, number_like(x2, 0))
    exact = select_n_p.bind(by_zero, sub_p.bind(x1, rest), x1)
    q = div_p.bind(exact, x2)
    nonzero = compare.ne_p.bind(rest, number_like(rest, 0))
    differ = compare.ne_p.bind(arithmetic.sign(x2), arithmetic.sign(rest))
    down = and_p.bind(nonzero, differ)
    rest = select_n_p.bind(down, rest, add_p.bind(rest, x2))
    q = select_n_p.bind(down, q, sub_p.bind(q, _one_like(q)))
    return arithmetic.round(q), rest


@library
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the remainder of floor division, which has the sign of the divisor.

    - `x1`, `x2`: real arrays that broadcast.

    Returns x1 - floor(x1 / x2) * x2, of the broadcast shape and of the promoted dtype. TypeError
    for complex dtypes. Source: NumPy's `remainder`.

    >>> jnp.remainder(jnp.array([7, -7]), jnp.array([3, 3]))
    Array([1, 2], dtype=int32)
    """
    x1, x2 = _numeric_pair("remainder", x1, x2)
    rest = _rest(x1, x2)
    nonzero = compare.ne_p.bind(rest, number_like(rest, 0))
    signs = [compare.lt_p.bind(x, number_like(x, 0)) for x in (rest, x2)]
    differ = compare.ne_p.bind(*signs)
    up = and_p.bind(differ, nonzero)
    return select_n_p.bind(up, rest, add_p.bind(rest, x2))


mod = remainder


@library
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the remainder of division towards zero, which has the sign of the dividend.

    - `x1`, `x2`: real arrays that broadcast.

    Returns an array of the broadcast shape and of the promoted dtype. TypeError for complex dtypes.
    Source: NumPy's `fmod`.

    >>> jnp.fmod(jnp.array([7, -7]), jnp.array([3, 3]))
    Array([ 1, -1], dtype=int32)
    """
    check_arraylike("fmod", x1, x2)
    truths = all(get_aval(x).dtype == dtypes.bool_ for x in (x1, x2))
    x1, x2 = _numeric_pair("fmod", x1, x2)
    if truths or not dtypes.issubdtype(get_aval(x2).dtype, np.integer):
        return rem_p.bind(x1, x2)
    return _rest(*_same_shape(x1, x2))


def _rest(x1: Any, x2: Any) -> Any:
    """The remainder with the sign of x1; 0 for integers divided by zero."""
    if dtypes.issubdtype(get_aval(x2).dtype, np.integer):
        is_zero = compare.eq_p.bind(x2, number_like(x2, 0))
        x2 = select_n_p.bind(is_zero, _spread(x2), filled_like(x2, 1))
    return rem_p.bind(x1, x2)


def _spread(x: Any) -> Any:
    return broadcast_to_shape(x, np.shape(x))


@library
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """Compute quotient and remainder of floor division.

    - `x1`, `x2`: real arrays that broadcast.

    Returns a pair of arrays of the broadcast shape and of the promoted dtype, as of `floor_divide`
    and `remainder`. TypeError for complex dtypes. Source: NumPy's `divmod`.

    >>> jnp.divmod(jnp.array([7, -7]), jnp.array([3, 3]))
    (Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x1, x2 = _numeric_pair("divmod", x1, x2)
    if _category(x1) == "float":
        return _float_divmod(x1, x2)
    return floor_divide(x1, x2), remainder(x1, x2)


# -- powers -----------------------------------------------------------------------------------


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Raise elements to powers.

    - `x1`, `x2`: arrays that broadcast, bases and exponents. A known integer scalar as exponent
      becomes repeated multiplication.

    Returns an array of the broadcast shape and of the promoted dtype. TypeError for integers with a
    known negative scalar exponent; with other negative exponents the result of integers is
    undefined. Source: NumPy's `power`.

    >>> jnp.power(jnp.array([2, 3]), jnp.array([3, 2]))
    Array([8, 9], dtype=int32)
    """
    kind = type(x2)
    if kind is int or kind is bool:
        return _integer_power(x1, int(x2))
    if isinstance(x2, (np.integer, np.ndarray, ArrayImpl)):
        if not x2.shape and x2.dtype.kind in "iu":
            return _integer_power(x1, int(x2))
    out = _power(x1, x2)
    # By repeated multiplication, of which weakly typed operands do not come back weakly typed.
    return converted(out, out.dtype) if out.dtype.kind in "iu" else out


pow = power


@library(static=("y",))
def _integer_power(x, y):
    check_arraylike("power", x)
    if not isinstance(x, Array) or x.aval.dtype == dtypes.bool_:
        (x,) = promote_dtypes_numeric(x)
    return arithmetic.integer_pow(x, y)


@library
def _power(x1, x2):
    check_arraylike("power", x1, x2)
    x1, x2 = unwrapped(x1), unwrapped(x2)
    a, b = get_aval(x1), get_aval(x2)
    inexact_base = dtypes.issubdtype(a.dtype, np.inexact)
    if inexact_base and dtypes.issubdtype(b.dtype, np.integer):
        return _power_with_integer(x1, x2)
    x1, x2 = promote_shapes("power", *promote_dtypes_numeric(x1, x2))
    if not dtypes.issubdtype(get_aval(x1).dtype, np.integer):
        return pow_p.bind(x1, x2)
    return settled(_integers_to_integers(*_same_shape(x1, x2)))


def _power_with_integer(x1: Any, x2: Any) -> Any:
    """An inexact base with an array of integers as exponents."""
    common_dtype((x1, x2))  # for its check: the base keeps its dtype
    base = x1 if isinstance(x1, Array) else promote_dtypes(x1, x2)[0]
    x1, x2 = promote_shapes("power", base, x2)
    if not hasattr(x2, "dtype"):
        x2 = converted(x2, get_aval(x2).dtype)
    return pow_p.bind(x1, x2)


# Exponents below 2 to the power of this are raised without a loop, in one pass over the arrays.
_LOW_BITS = 6


@library(whole=True)
def _integers_to_integers(x: Any, y: Any) -> Any:
    """Square and multiply, one step for each bit of the largest exponent."""
    bits = dtypes.bit_width(y.aval.dtype)
    if bits <= 8:
        return _low_bits_power(x, y, bits)
    is_high = _any_nonzero(shift_right_logical_p.bind(y, number_like(y, _LOW_BITS)))
    return cond(is_high, _any_bits_power, partial(_low_bits_power, bits=_LOW_BITS), x, y)


def _power_step(base: Any, exponent: Any, out: Any) -> Any:
    one = number_like(exponent, 1)
    odd = compare.eq_p.bind(and_p.bind(exponent, one), one)
    return select_n_p.bind(odd, out, mul_p.bind(out, base))


def _low_bits_power(x: Any, y: Any, bits: int) -> Any:
    out = filled_like(x, 1)
    for _ in range(bits):
        out = _power_step(x, y, out)
        x, y = mul_p.bind(x, x), shift_right_logical_p.bind(y, number_like(y, 1))
    return out


def _any_bits_power(x: Any, y: Any) -> Any:
    def step(state):
        base, exponent, out = state
        shifted = shift_right_logical_p.bind(exponent, number_like(exponent, 1))
        return mul_p.bind(base, base), shifted, _power_step(base, exponent, out)

    return while_loop(lambda state: _any_nonzero(state[1]), step, (x, y, filled_like(x, 1)))[2]


def _any_nonzero(x: Any) -> Any:
    return reduce_or_p.bind(compare.ne_p.bind(x, number_like(x, 0)), axes=tuple(range(x.aval.ndim)))


@library
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Raise elements to powers in an inexact dtype.

    - `x`, `y`: arrays that broadcast, bases and exponents; integers become floats.

    Returns an array of the broadcast shape, of floating-point or complex dtype. Source: NumPy's
    `float_power`.

    >>> jnp.float_power(jnp.array([2, 4]), jnp.array([-1, 0]))
    Array([0.5, 1. ], dtype=float32)
    """
    check_arraylike("float_power", x, y)
    args = x, y
    x, y = promote_dtypes_inexact(x, y)
    return typed_as(pow_p.bind(*promote_shapes("float_power", x, y)), *args)


# -- common divisors --------------------------------------------------------------------------


def _integer_pair(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    check_arraylike(name, x1, x2)
    x1, x2 = promote_dtypes(x1, x2)
    if not dtypes.issubdtype(get_aval(x1).dtype, np.integer):
        raise ValueError(
            f"Arguments to jax.numpy.{name} must be integers. Got dtype "
            f"{get_aval(x1).dtype.name}: convert them with .astype(int)."
        )
    return _same_shape(x1, x2)


def _absolute(x: Any) -> Any:
    unsigned = dtypes.issubdtype(x.aval.dtype, np.unsignedinteger)
    return x if unsigned else arithmetic.abs(x)


@library(whole=True)
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the greatest common divisor of integers.

    - `x1`, `x2`: integer arrays that broadcast.

    Returns a nonnegative array of the broadcast shape and of the promoted dtype. ValueError for
    other dtypes. Source: NumPy's `gcd`.

    >>> jnp.gcd(jnp.array([12, 7]), jnp.array([18, 0]))
    Array([6, 7], dtype=int32)
    """
    x1, x2 = _integer_pair("gcd", x1, x2)

    def step(pair):
        x, y = pair
        zero = compare.eq_p.bind(y, number_like(y, 0))
        safe = select_n_p.bind(zero, y, filled_like(y, 1))
        return select_n_p.bind(zero, y, x), select_n_p.bind(zero, rem_p.bind(x, safe), y)

    start = (_absolute(x1), _absolute(x2))
    return settled(while_loop(lambda pair: _any_nonzero(pair[1]), step, start)[0])


@library
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the least common multiple of integers.

    - `x1`, `x2`: integer arrays that broadcast.

    Returns a nonnegative array of the broadcast shape and of the promoted dtype. ValueError for
    other dtypes. Source: NumPy's `lcm`.

    >>> jnp.lcm(jnp.array([4, 7]), jnp.array([6, 0]))
    Array([12,  0], dtype=int32)
    """
    check_ranks("lcm", x1, x2)
    x1, x2 = _integer_pair("lcm", x1, x2)
    x1, x2 = _absolute(x1), _absolute(x2)
    divisor = gcd(x1, x2)
    zero = compare.eq_p.bind(divisor, number_like(divisor, 0))
    one = filled_like(x1, 1)
    safe = select_n_p.bind(zero, divisor, one)
    multiple = mul_p.bind(x1, div_p.bind(x2, safe))
    return settled(select_n_p.bind(zero, multiple, divisor))
