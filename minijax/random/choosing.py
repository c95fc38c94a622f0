"""Choosing among given things: permutation, choice, categorical."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import dtypes, lax
from minijax.arguments.values import known_count, known_index
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.features.library import library
from minijax.features.queries import is_dim, max_dim
from minijax.features.sharding.explicit import split_as
from minijax.lax.prng import random_bits_p
from minijax.lax.random_floats import keys_from, unit_uniform
from minijax.numpy.promotion import axis_of, check_arraylike
from minijax.random.continuous import gumbel_mode, gumbel_of
from minijax.random.keys import single_key
from minijax.random.uniforms import (
    converted,
    float_dtype,
    integers_between,
    sample_shape,
)
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.typing import ArrayLike

__all__ = ["categorical", "choice", "permutation"]

# -- permutation --------------------------------------------------------------------------------------


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """Sort by random words, so often that ties among the words do not show."""
    if is_dim(x.size):
        raise NotImplementedError(
            "shape polymorphism for `permutation` or `shuffle` for arrays of non-constant size: "
            f"{x.size}. Export with a constant size, or sort by random words."
        )
    exponent = 3  # the chance of a tie in every round is then below size ** -exponent
    rounds = math.ceil(exponent * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, subkey = keys_from(key, 2)
        words = random_bits_p.bind(subkey, bit_width=32, shape=x.shape)
        _, x = lax.sort_key_val(words, x, dimension=axis)
    return x


@library(static=("name", "count"))
def _shuffled_range(name: str, key: Any, count: int) -> Any:
    return _shuffled(single_key(name, key), lax.iota(dtypes.int_(), max_dim(count, 0)), 0)


def _taken(x: Any, places: Any, axis: int) -> Any:
    return jnp.take(x, places, axis=axis, mode="clip")  # they are all within bounds


@library(static=("axis", "independent"))
def _shuffled_array(key: Any, x: Any, axis: int, independent: bool) -> Any:
    keys = single_key("permutation", key)
    x = jnp.asarray(x)
    if independent or (x.ndim == 1 and not dtypes.is_extended(x.dtype)):
        return _shuffled(keys, x, axis)
    return _taken(x, _shuffled_range("permutation", keys, x.shape[axis]), axis)


def permutation(
    key: ArrayLike,
    x: int | ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Shuffle an array along an axis, or the integers below a number.

    - `key`: key, or its words
    - `x`: array, or an integer for `arange(x)`
    - `independent`: whether each vector along `axis` is shuffled separately

    The result has the shape and dtype of `x`. TypeError for a number that is not an integer;
    ValueError for an axis out of range.
    Source: NumPy's `random.Generator.permutation`.

    >>> jnp.sort(random.permutation(random.key(0), 4))
    Array([0, 1, 2, 3], dtype=int32)
    """
    check_arraylike("permutation", x)
    axis = axis_of(axis, np.ndim(x) or 1)
    if np.ndim(x):
        out = _shuffled_array(key, x, axis, bool(independent))
        return split_as(out, out_sharding, "permutation")
    if not dtypes.issubdtype(get_aval(x).dtype, np.integer):
        raise TypeError(
            "x must be an integer or at least 1-dimensional: permutation got "
            f"{get_aval(x).str_short()}."
        )
    x = known_index(x, "argument x of jax.random.permutation()")
    return split_as(_shuffled_range("permutation", key, x), out_sharding, "permutation")


# -- choice ---------------------------------------------------------------------------------------------


def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: Sequence[int] = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Draw slices of an array along an axis, or integers below a number.

    - `key`: key, or its words
    - `a`: array, or an integer for `arange(a)`
    - `shape`: shape of the samples, by default one
    - `replace`: whether a slice may be drawn repeatedly
    - `p`: probabilities, of shape (a.shape[axis],), by default equal ones

    The result has the dtype of `a`. ValueError for more samples than slices without replacement,
    for an empty `a`, and for a `p` of another shape.
    Source: NumPy's `random.Generator.choice`.

    >>> random.choice(random.key(0), jnp.array([4, 5]), (3,), p=jnp.array([0.0, 1.0]))
    Array([5, 5, 5], dtype=int32)
    """
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    check_arraylike("choice", a, *(() if p is None else (p,)))
    a = jnp.asarray(a) if hasattr(a, "__jax_array__") else a
    shape = sample_shape("choice", shape)
    if np.ndim(a):
        axis, items = axis_of(axis, np.ndim(a)), a
        count = np.shape(a)[axis]
    else:
        count, items = known_count(a, "The error occurred in jax.random.choice()"), None
    wanted = math.prod(shape)
    if count <= 0 and wanted:
        raise ValueError(f"a must be greater than 0 unless no samples are taken: choice got {a!r}.")
    if not replace and wanted > count:
        raise ValueError(
            f"Cannot take a larger sample (size {wanted}) than population (size {count}) when "
            "'replace=False': ask for fewer, or replace."
        )
    if p is not None and np.shape(p) != (count,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. p has "
            f"shape {np.shape(p)} and a.shape[axis] is {count}."
        )
    if items is None:
        most = dtypes.iinfo(dtypes.int_())
        if count > most.max:
            raise OverflowError(
                f"Python int {count} too large to convert to {most.dtype}: turn on jax_enable_x64."
            )
        if not wanted:
            single_key("choice", key)
            return jnp.zeros(shape, jnp.result_type(a))
        if p is None and replace:
            return _below(key, count, shape)
    return _chosen(key, items, p, count, shape, bool(replace), axis, mode)


@library(static=("shape",))
def _below(key: Any, count: Any, shape: tuple[int, ...]) -> Any:
    """Draw integers below a number, by one program for all numbers."""
    return integers_between(single_key("choice", key), shape, dtypes.int_(), 0, count)


@library(static=("count", "shape", "replace", "axis", "mode"))
def _chosen(
    key: Any,
    items: Any,
    p: Any,
    count: int,
    shape: tuple[int, ...],
    replace: bool,
    axis: int,
    mode: str | None,
) -> Any:
    keys = single_key("choice", key)
    if p is None and not replace and np.ndim(items) == 1:
        shuffled = _shuffled(keys, jnp.asarray(items), 0)
        return lax.reshape(shuffled[: math.prod(shape)], shape)
    if p is None:
        places = _equal_places(keys, count, shape, replace)
    else:
        places = _places(keys, jnp.asarray(p), shape, replace, mode)
    return places if items is None else _taken(jnp.asarray(items), places, axis)


def _equal_places(key: Any, count: int, shape: tuple[int, ...], replace: bool) -> Any:
    if replace:
        return integers_between(key, shape, dtypes.int_(), 0, count)
    return lax.reshape(_shuffled_range("choice", key, count)[: math.prod(shape)], shape)


def _places(key: Any, p: Any, shape: tuple[int, ...], replace: bool, mode: str | None) -> Any:
    """Draw by inverting the cumulative chances; without replacement, the largest of log chances
    with Gumbel noise.
    """
    p = converted(
        p, float_dtype("uniform" if replace else "gumbel", dtypes.to_inexact_dtype(p.dtype))
    )
    if replace:
        total = jnp.cumsum(p)
        level = lax.sub(total.dtype.type(1), unit_uniform(key, shape, total.dtype))
        return converted(jnp.searchsorted(total, lax.mul(total[-1], level)), dtypes.int_())
    noise = gumbel_of(key, p.shape, p.dtype, gumbel_mode(mode))
    best = lax.top_k(lax.add(noise, lax.log(p)), math.prod(shape))[1]
    return lax.reshape(converted(best, dtypes.int_()), shape)


# -- categorical ----------------------------------------------------------------------------------------


@library(static=("axis", "shape", "replace", "mode", "out_sharding"), converted=("replace",))
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Sequence[int] | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw indices of categories, given unnormalized logarithms of probabilities.

    - `key`: key, or its words
    - `logits`: array of shape (..., categories) for the default `axis`
    - `shape`: shape of the result, to which the other dimensions of the logits are broadcast
    - `replace`: if False, samples along the leading dimensions that `shape` adds are distinct
    - `mode`: "low" or "high", as in `gumbel`

    The result has the default integer dtype, int32 without replacement. ValueError for shapes that do
    not broadcast, or too few categories.
    Source: Gumbel, Statistical Theory of Extreme Values (1954): the greatest of logits and Gumbel
    samples.

    >>> random.categorical(random.key(0), jnp.array([0.0, -jnp.inf]), shape=(3,))
    Array([0, 0, 0], dtype=int32)
    """
    check_arraylike("categorical", logits)
    keys = single_key("categorical", key)
    logits = jnp.asarray(logits)
    rank = logits.ndim
    if not -rank <= axis < rank:
        raise IndexError(
            f"index {axis} is out of bounds for axis 0 with size {rank}: the axis of categorical, "
            f"whose logits have shape {logits.shape}."
        )
    axis %= rank
    dtype = float_dtype("gumbel", logits.dtype)
    mode = gumbel_mode(mode)
    batch = logits.shape[:axis] + logits.shape[axis + 1 :]
    shape = batch if shape is None else sample_shape("categorical", shape, np.empty(batch))
    prefix = shape[: len(shape) - len(batch)]
    extent = logits.shape[axis]
    if replace:
        inner = list(shape[len(prefix) :])
        inner.insert(axis, extent)
        noise = gumbel_of(keys, (*prefix, *inner), dtype, mode)
        scores = jnp.add(noise, lax.expand_dims(logits, range(len(prefix))))
        return jnp.argmax(scores, axis=axis + len(prefix))
    taken = math.prod(prefix)
    if taken > extent:
        raise ValueError(
            f"Number of samples without replacement ({taken}) cannot exceed number of categories "
            f"({extent}). Ask for fewer, or replace."
        )
    scores = lax.add(logits, gumbel_of(keys, logits.shape, dtype, mode))
    best = jnp.moveaxis(lax.top_k(scores, taken, axis=axis)[1], axis, 0)
    return lax.reshape(best, shape)
