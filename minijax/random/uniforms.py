"""Uniform numbers, integers and coins. A uniform float has random bits for its mantissa and the
exponent of one: it lies in [1, 2), evenly spaced. An integer from a span is the remainder of a
number of twice the bits, made of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.features.library import library
from minijax.features.sharding.explicit import reshard
from minijax.features.sharding.sharding_rules import parts_of
from minijax.lax.prng import random_bits_p
from minijax.lax.random_floats import keys_from, unit_uniform
from minijax.lax.shapes import broadcast_shapes, canonical_shape
from minijax.numpy.promotion import check_arraylike
from minijax.random.keys import single_key
from minijax.runtime.mesh import PartitionSpec, get_abstract_mesh
from minijax.runtime.named_sharding import NamedSharding
from minijax.typing import ArrayLike, DTypeLike

__all__ = ["bernoulli", "rademacher", "randint", "uniform"]

# -- what all samplers share ------------------------------------------------------------------------


def float_dtype(name: str, dtype: Any, *, complex_too: bool = False) -> np.dtype:
    """The canonical dtype of samples. ValueError if it is not floating."""
    dtype = dtypes.float_() if dtype is None else dtypes.check_user_dtype_supported(dtype)
    if not dtypes.issubdtype(dtype, np.inexact if complex_too else np.floating):
        kinds = "float or complex" if complex_too else "float"
        raise ValueError(f"dtype argument to `{name}` must be a {kinds} dtype, got {dtype.name}")
    return dtype


def sample_shape(name: str, shape: Any, *params: Any, trailing: int = 0) -> tuple[int, ...]:
    """The shape of samples: what was asked for, or that of the parameters if None.

    ValueError if the parameters, without `trailing` dimensions, do not broadcast to it.
    """
    shapes = [np.shape(x)[: np.ndim(x) - trailing] for x in params]
    if shape is None:
        return broadcast_shapes(*shapes)
    shape = canonical_shape(shape)
    if shapes and any(size < 0 for size in shape if isinstance(size, int)):
        raise TypeError(
            "Only non-negative indices are allowed when broadcasting static shapes, but got shape "
            f"{shape}. Give {name} a shape of sizes of 0 or more."
        )
    if all(found == () for found in shapes):
        return shape
    if broadcast_shapes(shape, *shapes) != shape:
        shown = ", ".join(map(str, shapes))
        raise ValueError(
            f"{name}: the parameters, of shapes {shown}, must broadcast to the shape argument "
            f"{shape} without changing it: leave shape out, or give their broadcast shape."
        )
    return shape


def check_parameters(name: str, *params: Any) -> None:
    """ValueError for a parameter that is None; TypeError for one that is no array or number."""
    for position, x in enumerate(params):
        if x is None:
            raise ValueError(
                f"Invalid argument to dtype: None. The parameter of {name} at position {position} is "
                "None: give an array or a number, or leave it out if it has a default."
            )
    check_arraylike(name, *params)


def converted(x: Any, dtype: np.dtype) -> Any:
    """An array or number of another dtype; real ones have no imaginary part, even of a number."""
    if type(x) is complex and not dtypes.issubdtype(dtype, np.complexfloating):
        x = x.real
    return lax.convert_element_type(x, dtype)


def parameter(name: str, x: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
    """A parameter of a distribution in the dtype of its samples: a number, or of their shape.

    TypePromotionError for one of a dtype that does not fit in that of the samples.
    """
    x = safely_converted(name, x, dtype)
    return spread(x, shape) if np.ndim(x) else x


def safely_converted(name: str, x: Any, dtype: np.dtype) -> Any:
    """A parameter in the dtype of the samples. TypePromotionError where that may lose digits."""
    check_parameters(name, x)
    if dtypes.lattice_result_type(x, dtype)[0] != dtype:
        found = get_aval(x).dtype
        raise dtypes.TypePromotionError(
            f"In arguments to {name}, cannot safely cast argument of type {found.name} to "
            f"{dtype.name}: convert it, or ask for samples of a wider dtype."
        )
    return converted(x, dtype)


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """A parameter broadcast to the shape of the samples, as NumPy does."""
    found = np.shape(x)
    if found == shape:
        return x
    dims = tuple(range(len(shape) - len(found), len(shape)))
    return lax.broadcast_in_dim(x, shape, dims)


def whole_parameter(x: Any, shape: Any, out_sharding: Any) -> Any:
    """A parameter of samples of which neither shape nor sharding is given: whole on each device.

    Such samples of several distributions are not split, as upstream's, whatever the parameters are.
    """
    if shape is None and out_sharding is None and any(parts_of(get_aval(x))):
        return x if get_abstract_mesh().empty else reshard(x, PartitionSpec())
    return x


def sum_last(x: Any) -> Any:
    """The sum over the last axis; short floats are added up in float32."""
    dtype = get_aval(x).dtype
    axis = (np.ndim(x) - 1,)
    if dtypes.bit_width(dtype) < 32:
        return converted(lax.reduce_sum(converted(x, dtypes.float32), axis), dtype)
    return lax.reduce_sum(x, axis)


# -- uniform ------------------------------------------------------------------------------------------


def uniform_between(
    key: Any, shape: tuple[int, ...], dtype: np.dtype, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Samples of [minval, maxval), bounds that broadcast against the shape."""
    floats = unit_uniform(key, shape, dtype)
    if type(minval) is type(maxval) is float and (minval, maxval) == (0.0, 1.0):
        return floats
    rank = max(np.ndim(minval), np.ndim(maxval))
    if rank:
        _check_bounds(shape, rank, minval, maxval)
    low = _with_rank(converted(minval, dtype), len(shape))
    high = _with_rank(converted(maxval, dtype), len(shape))
    scaled = lax.add(lax.mul(floats, lax.sub(high, low)), low)
    return lax.max(low, lax.reshape(scaled, shape))


def _check_bounds(shape: tuple[int, ...], rank: int, minval: Any, maxval: Any) -> None:
    found = np.shape(minval), np.shape(maxval)
    try:
        common = broadcast_shapes(shape, *found)
        if common == shape or (not shape and set(common) == {1}):
            return
    except ValueError:
        pass
    raise (TypeError if rank <= len(shape) else ValueError)(
        f"uniform: minval and maxval, of shapes {found[0]} and {found[1]}, are incompatible shapes "
        f"for broadcasting to the shape argument {shape}: give the shape that they broadcast to."
    )


def _with_ranks(x: Any, y: Any, rank: int) -> tuple[Any, Any]:
    """Two bounds, both numbers or both of this rank."""
    if np.ndim(x) == np.ndim(y) == 0:
        return x, y
    return lax.broadcast_to_rank(x, rank), lax.broadcast_to_rank(y, rank)


def _with_rank(x: Any, rank: int) -> Any:
    """Leading axes of size one where there are too few; numbers stay."""
    found = np.ndim(x)
    return x if found == 0 or found >= rank else lax.broadcast_to_rank(x, rank)


@library(static=("shape", "dtype", "out_sharding"))
def uniform(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples uniformly from [minval, maxval).

    - `key`: key, or its words
    - `shape`: shape of the result, by default a scalar
    - `dtype`: floating-point dtype, by default the default one
    - `minval`, `maxval`: bounds that broadcast to `shape`

    ValueError for another dtype, TypeError for bounds that do not broadcast.
    Source: NumPy's `random.Generator.uniform`.

    >>> random.uniform(random.key(0), (3,)).shape
    (3,)
    """
    keys = single_key("uniform", key)
    dtype = float_dtype("uniform", dtype)
    check_parameters("uniform", minval, maxval)
    return uniform_between(keys, canonical_shape(shape), dtype, minval, maxval)


# -- integers -------------------------------------------------------------------------------------------


@library(static=("shape", "dtype", "out_sharding"))
def randint(
    key: ArrayLike,
    shape: Sequence[int],
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw integers uniformly from [minval, maxval).

    - `key`: key, or its words
    - `shape`: shape of the result
    - `minval`, `maxval`: bounds that broadcast to `shape`; where maxval <= minval the result is
      minval
    - `dtype`: integer dtype, by default int32

    TypeError for another dtype, ValueError for bounds that do not broadcast.
    Source: NumPy's `random.Generator.integers`.

    >>> random.randint(random.key(0), (4,), 0, 10)
    Array([9, 0, 2, 3], dtype=int32)
    """
    keys = single_key("randint", key)
    dtype = dtypes.int_() if dtype is None else dtypes.check_user_dtype_supported(dtype)
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype.name}")
    shape = canonical_shape(shape)
    shape = sample_shape("randint", shape, minval, maxval)
    return integers_between(keys, shape, dtype, minval, maxval)


def integers_between(
    key: Any, shape: tuple[int, ...], dtype: np.dtype, minval: Any, maxval: Any
) -> Any:
    """Uniform integers: a number of twice the bits, modulo the span, above the lower bound."""
    info = dtypes.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    if type(minval) is int and type(maxval) is int:
        _check_fits("minval", minval)
        _check_fits("maxval", maxval)
    else:
        minval, maxval = (dtypes.int_().type(x) if type(x) is int else x for x in (minval, maxval))
    if info.bits < 32:  # drawn as int32, in which the bound past the largest exists
        low, high = (_as_dtype(x, dtypes.int32) for x in (minval, maxval))
        low, high = _clipped(low, least, most), _clipped(high, least, most + 1)
        return converted(integers_between(key, shape, dtypes.int32, low, high), dtype)
    word = np.dtype(f"uint{info.bits}")
    if type(minval) is int and type(maxval) is int:
        low, span, inverse, factor, every = _plan_for_numbers(minval, maxval, dtype, word)
    else:
        low, span, inverse, factor, every = _plan(
            *_with_ranks(minval, maxval, len(shape)), dtype, word
        )
    upper_key, lower_key = keys_from(key, 2)
    upper = random_bits_p.bind(upper_key, bit_width=info.bits, shape=shape)
    lower = random_bits_p.bind(lower_key, bit_width=info.bits, shape=shape)
    upper = lax.mul(_remainder(upper, span, inverse), factor)
    offset = _remainder(lax.add(upper, _remainder(lower, span, inverse)), span, inverse)
    if every is not None:
        offset = lax.select(spread(every, shape), lower, offset)
    return lax.add(low, converted(offset, dtype))


def _remainder(x: Any, span: Any, inverse: Any) -> Any:
    """`x` modulo `span`, by whose `inverse`, (2**bits - 1) // span, the quotient is at most 1 too low.

    Processors have no division of vectors: 786,432 integers take 1.1 ms so, and 6.3 ms by `rem`.
    """
    rest = lax.sub(x, lax.mul(lax.mulhi(x, inverse), span))
    return lax.select(lax.ge(rest, span), lax.sub(rest, span), rest)


def _plan(minval: Any, maxval: Any, dtype: np.dtype, word: np.dtype) -> tuple[Any, ...]:
    """Return the constants that `integers_between` needs for its bounds.

    The lower bound; the span; its inverse (see `_remainder`); 2**bits modulo the span; and where the
    span is that of all integers, which is 0 in their bits, so that 1 stands for it. An upper bound
    past the largest integer counts as one past it.
    """
    info = dtypes.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    minval, maxval = (
        x if dtypes.issubdtype(get_aval(x).dtype, np.integer) else _as_dtype(x, dtype)
        for x in (minval, maxval)
    )
    low, high = (_as_dtype(_clipped(x, least, most), dtype) for x in (minval, maxval))
    some, every = lax.gt(high, low), None
    span = _as_dtype(lax.sub(high, low), word)
    one = lax.full_like(span, 1)
    span = lax.select(some, span, one)
    if int(dtypes.iinfo(get_aval(maxval).dtype).max) > most:
        past = lax.bitwise_and(lax.gt(maxval, get_aval(maxval).dtype.type(most)), some)
        span = lax.add(span, _as_dtype(past, word))
        every = lax.eq(span, word.type(0))
        span = lax.select(every, one, span)
    root = lax.rem(word.type(1 << dtypes.bit_width(word) // 2), span)
    inverse = lax.div(word.type(dtypes.iinfo(word).max), span)
    return low, span, inverse, lax.rem(lax.mul(root, root), span), every


def _plan_for_numbers(minval: int, maxval: int, dtype: np.dtype, word: np.dtype) -> tuple[Any, ...]:
    """Return the constants for Python numbers, of which all is known now."""
    info = dtypes.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    low, high = min(max(minval, least), most), min(max(maxval, least), most)
    modulus = 1 << dtypes.bit_width(word)
    span = (high - low + (maxval > most)) % modulus if high > low else 1
    every = None if span else np.True_
    span = span or 1
    root = (1 << dtypes.bit_width(word) // 2) % span
    inverse, factor = (modulus - 1) // span, root * root % modulus % span
    return dtype.type(low), word.type(span), word.type(inverse), word.type(factor), every


def _check_fits(name: str, bound: int) -> None:
    limits = dtypes.iinfo(dtypes.int_())
    if not int(limits.min) <= bound <= int(limits.max):
        raise OverflowError(
            "An overflow was encountered while parsing an argument to a jitted computation, whose "
            f"argument path is {name}. Got {type(bound)} with value {bound}. It does not fit "
            f"{dtypes.int_().name}: give it as an array of a wider dtype."
        )


def _as_dtype(x: Any, dtype: np.dtype) -> Any:
    """`x` converted; of a Python number, the number with the low bits, still a Python one."""
    return int(np.int64(x).astype(dtype)) if type(x) is int else converted(x, dtype)


def _clipped(x: Any, least: int, most: int) -> Any:
    """`x` within the bounds, of which those that its dtype cannot pass are left out."""
    if type(x) is int:
        return min(max(x, least), most)
    info = dtypes.iinfo(get_aval(x).dtype)
    kind = get_aval(x).dtype.type
    if least > int(info.min):
        x = lax.max(x, kind(least))
    return lax.min(x, kind(most)) if most < int(info.max) else x


# -- coins ------------------------------------------------------------------------------------------------


@library(static=("shape", "mode", "out_sharding"))
def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: Sequence[int] | None = None,
    mode: str = "low",
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw booleans that are True with probability `p`.

    - `key`: key, or its words
    - `p`: floating-point probabilities
    - `shape`: shape of the result, by default the shape of `p`
    - `mode`: "low", or "high" so that probabilities below the spacing of floats count too

    The result has dtype bool. TypeError if `p` is not floating-point, ValueError for another mode
    or shapes that do not broadcast.
    Source: NumPy's `random.Generator.binomial` with n = 1.

    >>> random.bernoulli(random.key(0), jnp.array([0.0, 1.0]))
    Array([False,  True], dtype=bool)
    """
    if mode not in ("high", "low"):
        raise ValueError(f"got {mode=}, expected 'high' or 'low'")
    keys = single_key("bernoulli", key)
    check_parameters("bernoulli", p)
    found = get_aval(p).dtype
    if not dtypes.issubdtype(found, np.floating):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {found.name}.")
    return coins(keys, converted(p, found), sample_shape("bernoulli", shape, p), mode)


def coins(key: Any, p: Any, shape: tuple[int, ...], mode: str = "low") -> Any:
    dtype = get_aval(p).dtype
    p = _with_rank(p, len(shape))
    if mode == "low":
        return lax.lt(unit_uniform(key, shape, dtype), p)
    coarse, fine = lax.unstack(unit_uniform(key, (2, *shape), dtype))
    fine = lax.mul(fine, dtype.type(dtypes.finfo(dtype).eps))
    return lax.lt(fine, lax.sub(p, coarse))


@library(static=("shape", "dtype", "out_sharding"))
def rademacher(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw samples that are 1 or -1 with equal probability.

    - `key`: key, or its words
    - `shape`: shape of the result, by default a scalar
    - `dtype`: numeric dtype, by default int32

    Source: Bernoulli samples of probability 1/2.

    >>> abs(random.rademacher(random.key(0), (3,)))
    Array([1, 1, 1], dtype=int32)
    """
    keys = single_key("rademacher", key)
    dtype = dtypes.int_() if dtype is None else dtypes.check_user_dtype_supported(dtype)
    return signs(keys, canonical_shape(shape), dtype)


def signs(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    heads = coins(key, dtypes.float_().type(0.5), shape)
    values = dtypes.int_() if dtype == np.bool_ else dtype  # booleans have no products
    one = values.type(1)
    found = lax.sub(lax.mul(converted(heads, values), values.type(2)), one)
    return converted(found, dtype)
