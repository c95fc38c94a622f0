"""Distributions of counts: geometric, Poisson, binomial, multinomial.

Counts are drawn for a whole array at a time: a loop goes on until each of its elements has a
sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import dtypes, lax
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.features.library import library
from minijax.lax.prng import random_clone_p, random_split_p
from minijax.lax.random_floats import keys_from, unit_uniform
from minijax.lax.shapes import canonical_shape
from minijax.numpy.promotion import check_arraylike, promote_dtypes_inexact
from minijax.random.keys import single_key
from minijax.random.uniforms import converted, float_dtype, sample_shape, spread
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.typing import ArrayLike, DTypeLike

__all__ = ["binomial", "geometric", "multinomial", "poisson"]

# -- what they share --------------------------------------------------------------------------------


def _full(value: float, like: Any) -> Any:
    return lax.full_like(like, value)


def _inexact(p: Any) -> Any:
    """A chance as an array of floats."""
    p = jnp.asarray(p)
    return converted(p, dtypes.to_inexact_dtype(p.dtype))


def _loop(
    missing: Callable, step: Callable, state: tuple[Any, ...], limit: float
) -> tuple[Any, ...]:
    """Repeat `step` while any element of `missing(*state)` is True, `limit` times at most."""
    last = np.int32(min(limit, 2**31 - 1))

    def go_on(carry):
        count, *state = carry
        some = missing(*state)
        some = lax.reduce_or(some, tuple(range(some.ndim)))
        return lax.bitwise_and(some, lax.lt(count, last))

    def body(carry):
        count, *state = carry
        return lax.add(count, np.int32(1)), *step(*state)

    return lax.while_loop(go_on, body, (np.int32(0), *state))[1:]


def _loop_until_found(step: Callable, key: Any, start: Any, limit: float) -> Any:
    """Repeat `key, out = step(key, out)` while elements are negative, which those found are not.

    A step with a second result, which elements are found, would compute its numbers once for each.
    """
    missing = lambda _key, out: lax.lt(out, out.dtype.type(0))
    return _loop(missing, step, (key, start), limit)[1]


def _any(*conditions: Any) -> Any:
    out = conditions[0]
    for condition in conditions[1:]:
        out = lax.bitwise_or(out, condition)
    return out


def _proposal(u: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """The proposal of transformed rejection, about zero; and the distance of u to the next end."""
    dtype = get_aval(u).dtype
    half = dtype.type(0.5)
    u = lax.sub(u, half)
    us = lax.sub(half, lax.abs(u))
    return lax.mul(lax.add(lax.div(lax.mul(dtype.type(2), a), us), b), u), us


def _log_ratio(scale: Any, v: Any, us: Any, a: Any, b: Any) -> Any:
    """The logarithm of v over the density of the proposal."""
    return lax.log(lax.div(lax.mul(v, scale), lax.add(lax.div(a, lax.mul(us, us)), b)))


# -- geometric --------------------------------------------------------------------------------------


@library(static=("shape", "dtype", "out_sharding"))
def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw numbers of trials of probability `p` until one succeeds: 1, 2, ...

    - `key`: key, or its words
    - `p`: probabilities
    - `shape`: shape of the result, by default the shape of `p`
    - `dtype`: integer dtype, by default int32

    ValueError for another dtype or shapes that do not broadcast.
    Source: NumPy's `random.Generator.geometric`.

    >>> random.geometric(random.key(0), 1.0, shape=(2,))
    Array([1, 1], dtype=int32)
    """
    keys = single_key("geometric", key)
    dtype = dtypes.int_() if dtype is None else dtypes.check_user_dtype_supported(dtype)
    if not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(f"dtype argument to `geometric` must be an int dtype, got {dtype.name}")
    check_arraylike("geometric", p)
    p = _inexact(p)
    shape = sample_shape("geometric", shape, p)
    u = unit_uniform(keys, shape, float_dtype("uniform", p.dtype))
    u = lax.select(lax.eq(u, u.dtype.type(0)), _full(1, u), u)
    trials = lax.floor(lax.div(lax.log(u), spread(lax.log1p(lax.neg(p)), shape)))
    return converted(lax.add(trials, u.dtype.type(1)), dtype)


# -- Poisson ----------------------------------------------------------------------------------------


def _poisson_by_products(key: Any, lam: Any, dtype: np.dtype, limit: int) -> Any:
    """The number of uniform factors until their product is below exp(-lam)."""
    end = lax.neg(lam)

    def step(key, count, log_product):
        key, subkey = keys_from(key, 2)
        more = lax.add(count, dtype.type(1))
        count = lax.select(lax.gt(log_product, end), more, count)
        u = unit_uniform(subkey, lam.shape, lam.dtype)
        return key, count, lax.add(log_product, lax.log(u))

    start = (key, lax.full(lam.shape, 0, dtype), _full(0, lam))
    count = _loop(lambda _key, _count, product: lax.gt(product, end), step, start, limit)[1]
    return lax.sub(count, dtype.type(1))


def _poisson_by_rejection(key: Any, lam: Any, dtype: np.dtype, limit: int) -> Any:
    """Hörmann's PTRS, for `lam` of 10 or more."""
    real = lam.dtype.type
    log_lam = lax.log(lam)
    b = lax.add(real(0.931), lax.mul(real(2.53), lax.sqrt(lam)))
    a = lax.add(real(-0.059), lax.mul(real(0.02483), b))
    inverse_alpha = lax.add(real(1.1239), lax.div(real(1.1328), lax.sub(b, real(3.4))))
    v_r = lax.sub(real(0.9277), lax.div(real(3.6224), lax.sub(b, real(2))))
    zero, one = real(0), real(1)

    def step(key, out):
        key, u_key, v_key = keys_from(key, 3)
        u = unit_uniform(u_key, lam.shape, lam.dtype)
        v = unit_uniform(v_key, lam.shape, lam.dtype)
        k, us = _proposal(u, a, b)
        k = lax.floor(lax.add(lax.add(k, lam), real(0.43)))
        s = _log_ratio(inverse_alpha, v, us, a, b)
        t = lax.sub(lax.add(lax.neg(lam), lax.mul(k, log_lam)), lax.lgamma(lax.add(k, one)))
        surely = lax.bitwise_and(lax.ge(us, real(0.07)), lax.le(v, v_r))
        never = _any(lax.lt(k, zero), lax.bitwise_and(lax.lt(us, real(0.013)), lax.gt(v, us)))
        found = _any(surely, lax.bitwise_and(lax.bitwise_not(never), lax.le(s, t)))
        return key, lax.select(found, k, out)

    return converted(_loop_until_found(step, key, _full(-1, lam), limit), dtype)


@library(static=("shape", "dtype", "out_sharding"), whole=True)
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples of the Poisson distribution.

    - `key`: key, or its words
    - `lam`: means; those that are not positive give 0 or -1
    - `shape`: shape of the result, by default the shape of `lam`
    - `dtype`: integer dtype, by default int32

    ValueError for another dtype, NotImplementedError for keys of another generator than threefry.
    Source: Knuth, The Art of Computer Programming, for means below 10; Hörmann, The transformed
    rejection method for generating Poisson random variables (1993).

    >>> random.poisson(random.key(0), 0.0, shape=(2,))
    Array([0, 0], dtype=int32)
    """
    keys = single_key("poisson", key)
    impl = keys.dtype._impl
    if impl.name != "threefry2x32":
        raise NotImplementedError(
            f"`poisson` is only implemented for the threefry2x32 RNG, not {impl.tag}: make the key "
            'with impl="threefry2x32".'
        )
    dtype = dtypes.int_() if dtype is None else dtypes.check_user_dtype_supported(dtype)
    if not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(
            f"Invalid integer data type {dtype.kind!r}. poisson gives counts; ask for int32."
        )
    check_arraylike("poisson", lam)
    shape = np.shape(lam) if shape is None else canonical_shape(shape)
    lam = jnp.broadcast_to(converted(lam, dtypes.float32), shape)
    few = lax.bitwise_or(lax.ne(lam, lam), lax.lt(lam, np.float32(10)))
    limit = int(dtypes.iinfo(dtype).max)
    small = _poisson_by_products(keys, lax.select(few, lam, _full(0, lam)), dtype, limit)
    again = random_clone_p.bind(keys)  # of the two samples one is used
    large = _poisson_by_rejection(again, lax.select(few, _full(1e5, lam), lam), dtype, limit)
    count = lax.select(few, small, large)
    return lax.select(lax.eq(lam, np.float32(0)), lax.full_like(count, 0), count)


# -- binomial ---------------------------------------------------------------------------------------

# What Stirling's formula for log(k!) lacks, for k below 10.
_STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.010411265261972,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k: Any) -> Any:
    """Return the error of Stirling's formula for log(k!); for k of 10 or more, that at 9."""
    real = k.dtype.type
    nine, one = real(9), real(1)
    low = lax.clamp(real(0), k, nine)
    after = lax.add(low, one)
    square = lax.mul(after, after)
    series = lax.sub(real(1 / 360), lax.div(real(1 / 1260), square))
    series = lax.div(lax.sub(real(1 / 12), lax.div(series, square)), after)
    places = converted(lax.floor(low), dtypes.int32)
    table = jnp.take(np.array(_STIRLING, k.dtype), places, mode="clip")
    return lax.select(lax.le(k, nine), table, series)


def _binomial_by_waiting(key: Any, n: Any, p: Any, limit: float) -> Any:
    """The number of waiting times, each geometric, that fit in n."""
    log_failure = lax.log1p(lax.neg(p))
    one = p.dtype.type(1)

    def missing(_key, _count, total):
        return lax.le(total, n)

    def step(key, count, total):
        subkey, key = keys_from(key, 2)
        count = lax.select(lax.le(total, n), lax.add(count, one), count)
        u = unit_uniform(subkey, p.shape, p.dtype)
        return key, count, lax.add(total, lax.ceil(lax.div(lax.log(u), log_failure)))

    start = (key, _full(0, p), _full(0, p))
    return lax.sub(_loop(missing, step, start, limit)[1], one)


def _binomial_by_rejection(key: Any, n: Any, p: Any, limit: float) -> Any:
    """Hörmann's BTRS, for n * p of 10 or more and p of 1/2 at most."""
    real = p.dtype.type
    zero, half, one = real(0), real(0.5), real(1)
    width = lax.sqrt(lax.mul(lax.mul(n, p), lax.sub(one, p)))
    b = lax.add(real(1.15), lax.mul(real(2.53), width))
    a = lax.add(lax.add(real(-0.0873), lax.mul(real(0.0248), b)), lax.mul(real(0.01), p))
    center = lax.add(lax.mul(n, p), half)
    v_r = lax.sub(real(0.92), lax.div(real(4.2), b))
    odds = lax.div(p, lax.sub(one, p))
    alpha = lax.mul(lax.add(real(2.83), lax.div(real(5.1), b)), width)
    mode = lax.floor(lax.mul(lax.add(n, one), p))

    def log_density(k):
        """The logarithm of the chance of k, over that of the mode."""

        def after(x):
            return lax.add(lax.sub(n, x), one)

        def term(weight, above, below):
            return lax.mul(weight, lax.log(lax.div(above, below)))

        out = term(lax.add(mode, half), lax.add(mode, one), lax.mul(odds, after(mode)))
        out = lax.add(out, term(lax.add(n, one), after(mode), after(k)))
        out = lax.add(out, term(lax.add(k, half), lax.mul(odds, after(k)), lax.add(k, one)))
        out = lax.add(lax.add(out, _stirling_tail(mode)), _stirling_tail(lax.sub(n, mode)))
        return lax.sub(lax.sub(out, _stirling_tail(k)), _stirling_tail(lax.sub(n, k)))

    def step(key, out):
        key, u_key, v_key = keys_from(key, 3)
        u = unit_uniform(u_key, p.shape, p.dtype)
        v = unit_uniform(v_key, p.shape, p.dtype)
        k, us = _proposal(u, a, b)
        k = lax.floor(lax.add(k, center))
        surely = lax.bitwise_and(lax.ge(us, real(0.07)), lax.le(v, v_r))
        never = _any(lax.lt(k, zero), lax.gt(k, n))
        fits = lax.le(_log_ratio(alpha, v, us, a, b), log_density(k))
        found = _any(surely, lax.bitwise_and(lax.bitwise_not(never), fits))
        return key, lax.select(found, k, out)

    return _loop_until_found(step, key, _full(-1, p), limit)


def binomial_of(key: Any, n: Any, p: Any, dtype: np.dtype) -> Any:
    """Samples for arrays of one shape and dtype, of a p above 1/2 by counting the failures."""
    real = p.dtype.type
    zero, one = real(0), real(1)
    limit = float(dtypes.finfo(dtype).max)
    rare = lax.lt(p, real(0.5))
    q = lax.select(rare, p, lax.sub(one, p))
    n_invalid = _any(lax.ne(n, n), lax.lt(n, zero))
    endless = lax.eq(lax.abs(n), real(np.inf))
    q_nan = lax.ne(q, q)
    q_invalid = _any(q_nan, lax.lt(q, zero))
    q = lax.select(q_invalid, _full(0.01, q), q)
    q = lax.select(lax.eq(q, zero), _full(0, q), q)  # not -0.0, whose logarithms have another sign
    n = lax.select(endless, _full(0, n), lax.floor(n))  # no sampler would end
    few = _any(n_invalid, lax.le(lax.mul(n, q), real(10)))
    small = _binomial_by_waiting(key, lax.select(few, n, _full(0, n)), q, limit)
    again = random_clone_p.bind(key)  # of the two samples one is used
    large = _binomial_by_rejection(
        again, lax.select(few, _full(10000, n), n), lax.select(few, _full(0.5, q), q), limit
    )
    out = converted(lax.select(few, small, large), dtype)
    invalid = _any(q_invalid, n_invalid)
    out = lax.select(invalid, _full(np.nan, out), out)
    out = lax.select(lax.bitwise_and(endless, lax.bitwise_not(invalid)), _full(np.inf, out), out)
    direct = _any(rare, n_invalid, q_nan, endless)
    return lax.select(direct, out, lax.sub(converted(n, dtype), out))


@library(static=("shape", "dtype"), whole=True)
def binomial(
    key: Array,
    n: ArrayLike,
    p: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw numbers of successes in `n` trials of probability `p`.

    - `key`: key, or its words
    - `n`, `p`: numbers of trials and probabilities
    - `shape`: shape of the result, to which both are broadcast; by default their common shape
    - `dtype`: floating-point dtype of the result; the default one unless given

    NaN where `n` is negative or `p` is not in [0, 1]. ValueError for another dtype.
    Source: Hörmann, The generation of binomial random variates (1993); Kachitvichyanukul and
    Schmeiser, Binomial random variate generation (1988).

    >>> random.binomial(random.key(0), 5, 1.0, shape=(2,))
    Array([5., 5.], dtype=float32)
    """
    keys = single_key("binomial", key)
    check_arraylike("binomial", n, p)
    dtype = float_dtype("binomial", dtype)
    shape = sample_shape("binomial", shape, n, p)
    p = _inexact(p)
    if dtypes.issubdtype(p.dtype, np.complexfloating):
        raise TypeError("binomial does not accept a complex p: give its real part.")
    n, p = lax.stop_gradient((spread(converted(n, p.dtype), shape), spread(p, shape)))  # it counts
    return binomial_of(keys, n, p, dtype)


@library(static=("shape", "dtype", "unroll"), converted=("unroll",), whole=True)
def multinomial(
    key: Array,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Draw how often each outcome occurs in `n` trials.

    - `key`: key, or its words
    - `n`: numbers of trials
    - `p`: weights of the outcomes, of shape (..., outcomes)
    - `shape`: shape of the result, with the axis of outcomes; by default the shape of `p`
    - `dtype`: dtype of the result; `unroll`: as in `lax.scan`

    The result has the default floating dtype unless `dtype` is given. ValueError for shapes that do
    not broadcast.
    Source: NumPy's `random.Generator.multinomial`.

    >>> random.multinomial(random.key(0), 5, jnp.array([1.0, 0.0]))
    Array([5., 0.], dtype=float32)
    """
    keys = single_key("multinomial", key)
    check_arraylike("multinomial", n, p)
    dtype = dtypes.float_() if dtype is None else dtypes.check_user_dtype_supported(dtype)
    n, p = promote_dtypes_inexact(jnp.asarray(n), jnp.asarray(p))
    if shape is None and not np.ndim(p):
        raise ValueError(
            "axis -1 is out of bounds for array of dimension 0: p needs an axis of weights."
        )
    shape = np.shape(p) if shape is None else canonical_shape(shape)
    n, p = jnp.broadcast_to(n, shape[:-1]), jnp.broadcast_to(p, shape)
    chances = jnp.moveaxis(p, -1, 0)
    left = lax.cumsum(chances, axis=0, reverse=True)  # of each outcome and those after it
    ratios = lax.div(chances, lax.select(lax.eq(left, left.dtype.type(0)), _full(1, left), left))

    def draw(rest, of_outcome):
        ratio, subkey = of_outcome
        count = binomial_of(subkey, rest, ratio, rest.dtype)
        return lax.sub(rest, count), count

    subkeys = random_split_p.bind(keys, shape=(ratios.shape[0],))
    counts = lax.scan(draw, n, (ratios, subkeys), unroll=unroll)[1]
    return converted(jnp.moveaxis(counts, 0, -1), dtype)
