"""The generators that XLA has itself, and the keys that are made on top of them.

`rng_bit_generator` is StableHLO's op of that name (Philox on CPUs and GPUs, unless told otherwise);
`rng_uniform` is its `rng`, which is seeded by the device.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.features.queries import is_dim
from minijax.features.sharding.layouts import in_shape_rule, set_layout
from minijax.lax.compare import bitwise_xor
from minijax.lax.joining import concatenate
from minijax.lax.prng import PRNGImpl, mapped_over_keys, register_prng
from minijax.lax.rules import zero_derivative
from minijax.lax.shapes import canonical_shape, expand_dims, reshape, squeeze, transpose
from minijax.lax.slicing import slice as lax_slice
from minijax.lax.threefry import threefry_prng_impl
from minijax.runtime.named_sharding import out_sharding_of
from minijax.transforms.primitives import moveaxis

__all__ = [
    "RandomAlgorithm", "rbg_prng_impl", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform",
    "rng_uniform_p", "unsafe_rbg_prng_impl",
]  # fmt: skip

_WORD = np.dtype(np.uint32)
_PAIR = np.dtype(np.uint64)


class RandomAlgorithm(enum.IntEnum):
    """Algorithms of `rng_bit_generator`; the shape and dtype of its key depend on them.

    Source: the StableHLO attribute `rng_algorithm`.

    >>> lax.RandomAlgorithm.RNG_PHILOX.name
    'RNG_PHILOX'
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


_HLO_NAMES = {
    RandomAlgorithm.RNG_DEFAULT: "DEFAULT",
    RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY",
    RandomAlgorithm.RNG_PHILOX: "PHILOX",
}


def _check_sizes(name: str, shape: tuple) -> None:
    if any(not is_dim(size) and size < 0 for size in shape):
        raise TypeError(f"{name}: sizes must be nonnegative, got shape {shape}.")


# -- rng_bit_generator ----------------------------------------------------------------------------

rng_bit_generator_p = Primitive("rng_bit_generator", multiple_results=True)
set_layout(rng_bit_generator_p, parts=in_shape_rule)
rng_bit_generator_p.rule_transpose = no_rule("it is not linear: it makes random bits")


@rng_bit_generator_p.shape_rule
def _(key, *, shape, dtype, algorithm, out_sharding):
    if key.shape != (4,) or key.dtype != _WORD:
        raise TypeError(
            f"rng_bit_generator takes a key of type uint32[4], got {key.str_short()}: random.key_data"
            "(random.key(seed, impl='rbg')) gives one."
        )
    _check_sizes("rng_bit_generator", shape)
    return [key, ShapedArray(shape, dtype, sharding=out_sharding)]


zero_derivative(rng_bit_generator_p)


@rng_bit_generator_p.batch
def _(args, dims, *, shape, **params):
    # One stream of bits for the whole batch, from its first key: what makes vmap of it fast, and
    # different from a loop.
    keys = moveaxis(args[0], dims[0], 0)
    count = keys.shape[0]
    first = squeeze(lax_slice(keys, (0, 0), (1, 4)), (0,))
    state, bits = rng_bit_generator_p.bind(first, shape=(count, *shape), **params)
    rest = lax_slice(keys, (1, 0), (count, 4))
    return [concatenate([expand_dims(state, (0,)), rest], 0), bits], [0, 0]


@rng_bit_generator_p.lower
def _(b, key, *, shape, dtype, algorithm, out_sharding):
    state_out, bits_out = b.outs
    pairs, state = ShapedArray((2, 2), _WORD), ShapedArray((2,), _PAIR)
    packed = b.op("stablehlo.bitcast_convert", (b.reshape(key, (2, 2)),), state)
    name = _HLO_NAMES[algorithm]
    new, bits = b.op_n(
        "stablehlo.rng_bit_generator",
        (packed,),
        [state, bits_out],
        f"rng_algorithm = #stablehlo<rng_algorithm {name}>",
    )
    unpacked = b.op("stablehlo.bitcast_convert", (new,), pairs)
    return [b.reshape(unpacked, state_out.shape), bits]


def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: Any = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """Generate random bits from a key; which ones depends on the platform.

    - `key`: array of shape (4,) and dtype uint32
    - `shape`: shape of the bits; `dtype`: uint8, uint16, uint32 or uint64
    - `algorithm`: a `RandomAlgorithm`; `out_sharding`: sharding of the bits

    The result is a new key and the bits. TypeError for another dtype.
    Source: the StableHLO operation `stablehlo.rng_bit_generator`.

    >>> key, bits = lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (3,))
    >>> bits.shape
    (3,)
    """
    dtype = dtypes.check_user_dtype_supported(dtype, "rng_bit_generator")
    if not dtypes.issubdtype(dtype, np.unsignedinteger) or dtypes.bit_width(dtype) < 8:
        raise TypeError(
            f"rng_bit_generator: unsupported dtype {dtype}: ask for uint8, uint16, uint32 or uint64."
        )
    state, bits = rng_bit_generator_p.bind(
        key,
        shape=canonical_shape(shape),
        dtype=dtype,
        algorithm=RandomAlgorithm(algorithm),
        out_sharding=out_sharding_of(out_sharding, "rng_bit_generator"),
    )
    return state, bits


# -- rng_uniform ----------------------------------------------------------------------------------

rng_uniform_p = Primitive("rng_uniform")
rng_uniform_p.rule_transpose = no_rule("it is not linear: it makes random numbers")
rng_uniform_p.rule_jvp = no_rule("rng_uniform has no derivative: use random.uniform")
rng_uniform_p.rule_batch = no_rule(
    "Batching rule for 'rng_uniform' not implemented: it has no key; use random.uniform."
)


@rng_uniform_p.shape_rule
def _(low, high, *, shape):
    if low.dtype != high.dtype:
        raise ValueError(
            "Arguments to rng_uniform must have identical dtypes, got "
            f"{low.dtype.name} and {high.dtype.name}. Convert one of them."
        )
    if low.shape or high.shape:
        raise ValueError(
            f"Arguments to rng_uniform must be scalars; got shapes {low.shape} and {high.shape}."
        )
    _check_sizes("rng_uniform", shape)
    return ShapedArray(shape, low.dtype, low.weak_type and high.weak_type)


_MADE = ("int32", "uint32", "int64", "uint64", "bfloat16", "float16", "float32", "float64")


@rng_uniform_p.lower
def _(b, low, high, *, shape):
    if low.dtype.name not in _MADE:  # on these XLA ends the process
        raise TypeError(
            f"rng_uniform does not make numbers of dtype {low.dtype.name}: it makes "
            f"{', '.join(_MADE)}. Convert the bounds, or use minijax.random.uniform."
        )
    sizes = b.constant(np.array(shape, np.int64), ShapedArray((len(shape),), np.dtype(np.int64)))
    distribution = "rng_distribution = #stablehlo<rng_distribution UNIFORM>"
    return b.op("stablehlo.rng", (low, high, sizes), b.out, distribution)


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Array:
    """Generate uniform random numbers in [a, b) by the device's own generator, which has no key.

    - `a`, `b`: scalars of one dtype, which the result has
    - `shape`: shape of the result

    ValueError unless `a` and `b` are scalars of one dtype.
    Source: the StableHLO operation `stablehlo.rng`.

    >>> lax.rng_uniform(0.0, 1.0, (3,)).shape
    (3,)
    """
    return rng_uniform_p.bind(a, b, shape=canonical_shape(shape))


# -- keys -----------------------------------------------------------------------------------------
# A key is two keys of threefry side by side, which seeds, splits and folds them; bits are XLA's.


def _halves(key: Any) -> Any:
    return reshape(key, (2, 2))


def _seed(seed: Any) -> Any:
    half = threefry_prng_impl.seed(seed)
    return concatenate([half, half], 0)


def _split(key: Any, shape: tuple[int, ...]) -> Any:
    keys = mapped_over_keys(lambda half: threefry_prng_impl.split(half, shape), (_halves(key),), 1)
    order = (*range(1, len(shape) + 1), 0, len(shape) + 1)
    return reshape(transpose(keys, order), (*shape, 4))


def _fold_in(key: Any, data: Any) -> Any:
    fold = mapped_over_keys(lambda half: threefry_prng_impl.fold_in(half, data), (_halves(key),), 1)
    return reshape(fold, (4,))


def _random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    return _bits(key, shape, np.dtype(f"uint{bit_width}"))


def _bits(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return rng_bit_generator_p.bind(
        key, shape=shape, dtype=dtype, algorithm=RandomAlgorithm.RNG_DEFAULT, out_sharding=None
    )[1]


rbg_prng_impl = register_prng(
    PRNGImpl((4,), _seed, _split, _random_bits, _fold_in, name="rbg", tag="rbg")
)

# The unsafe variant makes its new keys from the generator's bits too, every tenth row of them.
_ROWS = 10


def _unsafe_split(key: Any, shape: tuple[int, ...]) -> Any:
    count = prod(shape)
    rows = _bits(key, (_ROWS * count, 4), _WORD)
    chosen = lax_slice(rows, (0, 0), rows.shape, (_ROWS, 1))
    return reshape(chosen, (*shape, 4))


def _unsafe_fold_in(key: Any, data: Any) -> Any:
    rows = _bits(_seed(data), (_ROWS, 4), _WORD)
    last = squeeze(lax_slice(rows, (_ROWS - 1, 0), rows.shape), (0,))
    return bitwise_xor(key, last)


unsafe_rbg_prng_impl = register_prng(
    PRNGImpl(
        (4,), _seed, _unsafe_split, _random_bits, _unsafe_fold_in, name="unsafe_rbg", tag="urbg"
    )
)
