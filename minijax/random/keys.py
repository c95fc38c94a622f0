"""Making, splitting and wrapping random keys. A key is an element of an array of dtype `key<...>`,
from `key(seed)`; or, as older programs have it, a row of uint32 words, from `PRNGKey(seed)`,
which every function here and in its sisters takes too.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.arrays.array import ArrayImpl
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.features.library import library
from minijax.lax import block_ciphers, rng_bits  # noqa: F401  (their generators)
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
from minijax.namespace import is_present, user_stacklevel
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.typing import ArrayLike, DTypeLike

if is_present("minijax.lax.key_reuse"):
    import_module("minijax.lax.key_reuse")  # the check that a setting turns on

__all__ = [
    "PRNGKey", "bits", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
    "wrap_key_data",
]  # fmt: skip

_WORD = np.dtype(np.uint32)

# -- what all functions of keys share ---------------------------------------------------------------


def as_keys(keys: Any) -> tuple[Any, bool]:
    """Keys as an array of keys, and whether they were given as words."""
    aval = getattr(keys, "aval", None)
    if type(getattr(aval, "dtype", None)) is KeyType:
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
        warnings.warn(message, UserWarning, stacklevel=user_stacklevel())
    if not (hasattr(keys, "dtype") or isinstance(keys, (str, bool, int, float, complex))):
        raise TypeError(f"unexpected PRNG key type {type(keys)}. Make one with random.key(seed).")
    if settings.enable_custom_prng:
        warnings.warn(
            "Raw arrays as random keys to jax.random functions are deprecated. Assuming valid "
            f"{settings.default_prng_impl} key for now.",
            FutureWarning,
            stacklevel=user_stacklevel(),
        )
        return wrapped(keys, resolve_prng(None)), False
    return wrapped(keys, resolve_prng(None)), True


def wrapped(words: Any, impl: PRNGImpl) -> Any:
    """Words as keys. TypeError where they are none."""
    if not all(hasattr(words, name) for name in ("ndim", "shape", "dtype")):
        raise TypeError(
            "JAX encountered invalid PRNG key data: expected key_data to have ndim, shape, and "
            f"dtype attributes. Got {words}. Make a key with random.key(seed)."
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
    if hasattr(seed, "__jax_array__"):
        seed = seed.__jax_array__()
    if isinstance(seed, int) and not isinstance(seed, bool):
        seed = int(seed)
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(
                f"Python int too large to convert to C long. The seed {seed} of {name} has more than 64 "
                "bits."
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
            f"PRNG key seed must be an integer; got {get_aval(seed).str_short()}. Convert it with "
            "int(seed)."
        )
    offset = local.context.settings.random_seed_offset
    return lax.add(seed, lax.convert_element_type(offset, dtype)) if offset else seed


def key(
    seed: int | ArrayLike, *, impl: Hashable | None = None, dtype: str | KeyType | None = None
) -> Array:
    """Make a key from an integer seed.

    - `seed`: integer scalar
    - `impl`: generator: "threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg" or
      "unsafe_rbg"; by default the setting `default_prng_impl`
    - `dtype`: the generator as a key dtype instead

    The result is an array of shape () and dtype `key<...>`. TypeError for a seed that is not an
    integer scalar, ValueError for an unknown generator.
    Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).

    >>> random.key(0).dtype
    key<fry>
    """
    if dtype is not None:
        if impl is not None:
            raise ValueError("Cannot specify both `impl` and `dtype` arguments to jax.random.key")
        impl = dtype
    return _from_seed(_seed_of("key", seed), resolve_prng(impl))


def PRNGKey(seed: int | ArrayLike, *, impl: Hashable | None = None) -> Array:
    """Make a key as an array of words, from an integer seed.

    - `seed`: integer scalar
    - `impl`: generator, as in `key`, which is preferred

    The result has dtype uint32, and shape (2,) for the default generator. TypeError for a seed that
    is not an integer scalar, ValueError for an unknown generator.
    Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).

    >>> random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    impl = resolve_prng(impl)
    made = _from_seed(_seed_of("PRNGKey", seed), impl)
    return made if local.context.settings.enable_custom_prng else random_unwrap_p.bind(made)


# -- between keys and words ---------------------------------------------------------------------------


def wrap_key_data(
    key_bits_array: Array, *, impl: Hashable | None = None, dtype: str | KeyType | None = None
) -> Array:
    """Make keys from their words.

    - `key_bits_array`: array of dtype uint32 and shape (..., words): 2 words for the default
      generator
    - `impl`, `dtype`: generator, as in `key`

    The result is an array of keys of shape (...,). TypeError for another dtype or number of words.
    Source: the key formats of the generators.

    >>> random.wrap_key_data(jnp.zeros((3, 2), jnp.uint32)).shape
    (3,)
    """
    if dtype is not None:
        if impl is not None:
            raise ValueError(
                "Cannot specify both `impl` and `dtype` arguments to jax.random.wrap_key_data"
            )
        impl = dtype
    return wrapped(key_bits_array, resolve_prng(impl))


def key_data(keys: ArrayLike) -> Array:
    """Return the words of keys.

    - `keys`: array of keys of any shape

    The result has the shape of `keys` with an axis of words added, and dtype uint32. TypeError
    unless `keys` are keys.
    Source: the key formats of the generators.

    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    wrapped_keys, words = as_keys(keys)
    return keys if words and type(keys) is ArrayImpl else random_unwrap_p.bind(wrapped_keys)


def key_impl(keys: ArrayLike) -> str | PRNGSpec:
    """Return the generator of keys: its name, or an object to give as `impl`.

    - `keys`: array of keys of any shape

    TypeError unless `keys` are keys.
    Source: the dtype of `keys`.

    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    impl = as_keys(keys)[0].dtype._impl
    return impl.name if prngs.get(impl.name) is impl else PRNGSpec(impl)


def key_dtype(impl_spec: Hashable | None = None) -> KeyType:
    """Return the dtype of the keys of a generator.

    - `impl_spec`: generator, by default the setting `default_prng_impl`

    ValueError for an unknown generator.
    Source: the key formats of the generators.

    >>> random.key_dtype("rbg")
    key<rbg>
    """
    return resolve_prng(impl_spec).dtype


def clone(key: Any) -> Array:
    """Return a key as one that has not been used, for deliberate reuse.

    - `key`: array of keys of any shape, or its words

    The result has the shape, dtype and value of `key`.
    Source: the rule that a key is used once, checked with `debug_key_reuse`.

    >>> random.key_data(random.clone(random.key(7)))
    Array([0, 7], dtype=uint32)
    """
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


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """Make new keys, independent of each other and of the given one.

    - `key`: key, or its words
    - `num`: number of keys, or their shape

    The result is an array of keys of shape (num,) or `num`. ValueError for an array of several
    keys, TypeError for a negative number.
    Source: Claessen and Palka, Splittable pseudorandom number generators (2013).

    >>> random.split(random.key(0), 3).shape
    (3,)
    """
    shape = tuple(map(size_of, num)) if isinstance(num, (tuple, list)) else (size_of(num),)
    return _split(key, shape)


@library
def _fold_in(key: Any, data: Any) -> Any:
    keys, as_words = as_keys(key)
    if keys.shape:
        raise ValueError(_not_single("fold_in", key))
    if data is None:
        raise ValueError("None is not a valid value for jnp.array: fold_in takes an integer.")
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


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Make a new key from a key and an integer.

    - `key`: key, or its words
    - `data`: integer scalar, taken as uint32

    The result is a key of the dtype and shape of `key`. OverflowError for a Python integer out of
    the range of uint32, TypeError unless `data` is a scalar.
    Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).

    >>> random.fold_in(random.key(0), 3).shape
    ()
    """
    if isinstance(data, int) and not isinstance(data, bool):
        if not 0 <= data < 2**32:
            raise OverflowError(
                f"Python integer {data} out of bounds for uint32: give fold_in data modulo 2**32."
            )
        if data >= 2**31 or type(data) is not int:
            data = np.uint32(data)
    return _fold_in(key, data)


# -- bits -----------------------------------------------------------------------------------------------


@library(static=("shape", "dtype", "out_sharding"))
def bits(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Draw random bits as unsigned integers.

    - `key`: key, or its words
    - `shape`: shape of the result, by default a scalar
    - `dtype`: unsigned integer dtype, by default uint32, or uint64 in 64-bit mode

    ValueError for another dtype.
    Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011), for the default
    generator.

    >>> random.bits(random.key(0), (3,)).dtype
    dtype('uint32')
    """
    keys = single_key("bits", key)
    dtype = dtypes.uint() if dtype is None else dtypes.check_user_dtype_supported(dtype)
    if not dtypes.issubdtype(dtype, np.unsignedinteger):
        raise ValueError(
            f"dtype argument to `bits` must be an unsigned int dtype, got {dtype.name}"
        )
    width = max(dtypes.bit_width(dtype), 8)
    return random_bits_p.bind(keys, bit_width=width, shape=canonical_shape(shape))
