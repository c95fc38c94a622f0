"""Making, splitting and wrapping random keys. May import the floors below.

A key is an element of an array of dtype `key<...>`, from `key(seed)`; or, as older programs have it,
a row of uint32 words, from `PRNGKey(seed)`, which every function here and in its sisters takes too.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import minijax.lax.key_reuse  # noqa: F401  (the check that a setting turns on)
from minijax import dtypes, lax
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.lax.prng import (
    KeyType,
    PRNGImpl,
    PRNGSpec,
    prngs,
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
    resolve_prng,
)
from minijax.lax.shapes import as_value, canonical_shape, size_of
from minijax.transforms.library import library

__all__ = [
    "PRNGKey", "bits", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
    "wrap_key_data",
]  # fmt: skip

_WORD = np.dtype(np.uint32)

# -- what all functions of keys share ---------------------------------------------------------------


def as_keys(keys: Any) -> tuple[Any, bool]:
    """Keys as an array of keys, and whether they were given as words."""
    aval = getattr(keys, "aval", None)
    if aval is not None and type(aval.dtype) is KeyType:
        return keys, False
    settings = local.context.settings
    if settings.legacy_prng_key != "allow":
        message = (
            "Legacy uint32 key array passed as key to jax.random function. Please create keys "
            "using jax.random.key(). If use of a raw key array was intended, set "
            'jax_legacy_prng_key="allow".'
        )
        if settings.legacy_prng_key == "error":
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=2)
    if settings.enable_custom_prng:
        warnings.warn(
            "Raw arrays as random keys to jax.random functions are deprecated. Assuming valid "
            f"{settings.default_prng_impl} key for now.",
            FutureWarning,
            stacklevel=2,
        )
        return wrapped(keys, resolve_prng(None)), False
    return wrapped(keys, resolve_prng(None)), True


def wrapped(words: Any, impl: PRNGImpl) -> Any:
    """Words as keys. TypeError where they are none."""
    if not all(hasattr(words, name) for name in ("ndim", "shape", "dtype")):
        raise TypeError(
            "JAX encountered invalid PRNG key data: expected key_data to have ndim, shape, and "
            f"dtype attributes. Got {words}: unexpected PRNG key type {type(words)}. Make a key "
            "with random.key(seed)."
        )
    count = len(impl.key_shape)
    if words.ndim < count:
        raise TypeError(
            f"JAX encountered invalid PRNG key data: expected key_data.ndim >= {count}; got "
            f"ndim={words.ndim}: wrap the words of random.key_data(key)."
        )
    if tuple(words.shape[words.ndim - count :]) != impl.key_shape:
        raise TypeError(
            "JAX encountered invalid PRNG key data: expected key_data.shape to end with "
            f"{impl.key_shape}; got shape={tuple(words.shape)} for impl={impl!r}."
        )
    if words.dtype != _WORD:
        raise TypeError(
            "JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got "
            f"dtype={words.dtype}: convert it with .astype('uint32')."
        )
    return random_wrap_p.bind(words, impl=impl)


def single_key(name: str, key: Any) -> Any:
    """One key, for a function that draws from it. ValueError for an array of several."""
    keys, _ = as_keys(key)
    if keys.shape:
        raise ValueError(_not_single(name, key))
    return keys


def _not_single(name: str, key: Any) -> str:
    return (
        f"{name} accepts a single key, but was given a key array of shape {key.shape} != (). "
        "Use jax.vmap for batching."
    )


# -- from seeds -------------------------------------------------------------------------------------


@library(static=("impl",))
def _from_seed(seed: Any, impl: PRNGImpl) -> Any:
    return random_seed_p.bind(seed, impl=impl)


def _seed_of(name: str, seed: Any) -> Any:
    """A seed as a value that fits the mode: with 64 bits off, the low half of a wide one."""
    if isinstance(seed, int) and not isinstance(seed, bool):
        seed = int(seed)
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(
                f"{name}: the seed {seed} is too large: Python int too large to convert to C long. "
                "Give one of at most 64 bits."
            )
        if not local.context.settings.enable_x64:
            seed = (seed + 2**31) % 2**32 - 2**31
        shape, dtype = (), dtypes.int_()
    else:
        if isinstance(seed, (list, tuple)):
            seed = np.asarray(seed)
        elif seed is None:
            raise ValueError(f"{name}: None is not a valid seed: give an integer.")
        aval = get_aval(seed)
        shape, dtype = aval.shape, aval.dtype
    if type(dtype) is KeyType:
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if shape:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {shape} != (). Use "
            "jax.vmap for batching"
        )
    if not (dtypes.issubdtype(dtype, np.integer) or dtype == dtypes.bool_):
        raise TypeError(
            f"PRNG key seed must be an integer; got {get_aval(seed).str_short()}: convert it with "
            "int(seed)."
        )
    offset = local.context.settings.random_seed_offset
    return lax.add(seed, lax.convert_element_type(offset, dtype)) if offset else seed


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """A key (a scalar of dtype `key<...>`) from an integer seed.

    `impl` names the generator ("threefry2x32", "rbg", "unsafe_rbg"), by default the setting
    `default_prng_impl`; `dtype` gives it as a key dtype instead. TypeError for a seed that is no
    scalar integer, ValueError for an unknown generator.
    """
    if dtype is not None:
        if impl is not None:
            raise ValueError("Cannot specify both `impl` and `dtype` arguments to jax.random.key")
        impl = dtype
    return _from_seed(_seed_of("key", seed), resolve_prng(impl))


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """A key as its words (uint32[2] for the default generator), from an integer seed; see `key`."""
    impl = resolve_prng(impl)
    made = _from_seed(_seed_of("PRNGKey", seed), impl)
    return made if local.context.settings.enable_custom_prng else random_unwrap_p.bind(made)


# -- between keys and words ---------------------------------------------------------------------------


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """Words (uint32, with the key's shape at the end) as an array of keys; see `key_data`."""
    if dtype is not None:
        if impl is not None:
            raise ValueError(
                "Cannot specify both `impl` and `dtype` arguments to jax.random.wrap_key_data"
            )
        impl = dtype
    return wrapped(key_bits_array, resolve_prng(impl))


def key_data(keys: Any) -> Array:
    """The words of an array of keys: uint32[..., n]."""
    return random_unwrap_p.bind(as_keys(keys)[0])


def key_impl(keys: Any) -> str | PRNGSpec:
    """The generator that keys are of: its name, or an object to give as `impl`."""
    impl = as_keys(keys)[0].dtype._impl
    return impl.name if prngs.get(impl.name) is impl else PRNGSpec(impl)


def key_dtype(impl_spec: Any = None) -> KeyType:
    """The dtype of keys of a generator, by default the one of the setting."""
    return resolve_prng(impl_spec).dtype


def clone(key: Any) -> Array:
    """The same key, as one that has not been used: for when a key is used twice on purpose."""
    return random_clone_p.bind(as_value(key))


# -- new keys from a key ------------------------------------------------------------------------------


def _rewrapped(made: Any, as_words: bool) -> Any:
    return random_unwrap_p.bind(made) if as_words else made


@library(static=("shape",))
def _split(key: Any, shape: tuple[int, ...]) -> Any:
    keys, as_words = as_keys(key)
    if keys.shape:
        raise ValueError(_not_single("split", key))
    return _rewrapped(random_split_p.bind(keys, shape=shape), as_words)


def split(key: Any, num: int | Sequence[int] = 2) -> Array:
    """`num` new keys, independent of each other and of the given one; `num` may be a shape."""
    shape = tuple(map(size_of, num)) if isinstance(num, (tuple, list)) else (size_of(num),)
    return _split(key, shape)


@library
def _fold_in(key: Any, data: Any) -> Any:
    keys, as_words = as_keys(key)
    if keys.shape:
        raise ValueError(_not_single("fold_in", key))
    shape = np.shape(data)
    if shape:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {shape} != (). Use "
            "jax.vmap for batching."
        )
    if dtypes.issubdtype(get_aval(data).dtype, np.complexfloating):
        raise TypeError(f"fold_in takes an integer, got {get_aval(data).str_short()}.")
    data = lax.convert_element_type(data, _WORD)
    return _rewrapped(random_fold_in_p.bind(keys, data), as_words)


def fold_in(key: Any, data: Any) -> Array:
    """A new key from a key and an integer, which is taken as uint32.

    OverflowError for a Python integer outside of that range.
    """
    if isinstance(data, int) and not isinstance(data, bool):
        if not 0 <= data < 2**32:
            raise OverflowError(
                f"fold_in: Python integer {data} out of bounds for uint32: take it modulo 2**32."
            )
        if data >= 2**31 or type(data) is not int:
            data = np.uint32(data)
    return _fold_in(key, data)


# -- bits -----------------------------------------------------------------------------------------------


@library(static=("shape", "dtype", "out_sharding"))
def bits(
    key: Any, shape: Sequence[int] = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Random bits, as unsigned integers of this shape and dtype (uint32, or uint64 with x64 on).

    ValueError for a dtype that is no unsigned integer's.
    """
    keys = single_key("bits", key)
    dtype = dtypes.uint() if dtype is None else dtypes.check_user_dtype_supported(dtype, "bits")
    if not dtypes.issubdtype(dtype, np.unsignedinteger):
        raise ValueError(
            f"dtype argument to `bits` must be an unsigned int dtype, got {dtype.name}"
        )
    width = max(dtypes.bit_width(dtype), 8)
    return random_bits_p.bind(keys, bit_width=width, shape=canonical_shape(shape))
