"""Threefry, the default generator (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
as 1, 2, 3", 2011). A block of two 32-bit words is enciphered with a key of two: twenty rounds of
add, rotate and xor, in five groups of four, with a word of the key added to each half after
every group. Random bits are the ciphers of counters, so that any number can be made without
those before it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from minijax.config import local
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.features.queries import certain, is_dim
from minijax.lax.arithmetic import add, mul
from minijax.lax.compare import bitwise_or, bitwise_xor, shift_left, shift_right_logical
from minijax.lax.convert import bitcast_convert_type, convert_element_type, to_dtype
from minijax.lax.creation import broadcasted_iota, full, iota
from minijax.lax.joining import concatenate, stack, unstack
from minijax.lax.prng import PRNGImpl, register_prng
from minijax.lax.rules import nary_shape, zero_derivative
from minijax.lax.shapes import expand_dims, reshape
from minijax.lax.slicing import slice as lax_slice
from minijax.transforms.primitives import moveaxis

__all__ = [
    "joined", "places", "seed_words", "threefry2x32_bits_p", "threefry2x32_p", "threefry_2x32",
    "threefry_prng_impl",
]  # fmt: skip

_WORD = np.dtype(np.uint32)
_PAIR = np.dtype(np.uint64)

# -- the cipher -----------------------------------------------------------------------------------

# Rotations of the rounds of even and of odd groups, and the parity constant of the key schedule.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_GROUPS = 5


def _shape_rule(*avals):
    if len(avals) != 4 or any(aval.dtype != _WORD for aval in avals):
        raise TypeError(
            "threefry2x32 takes four arrays of dtype uint32, two key words and two counters; got "
            f"{', '.join(aval.str_short() for aval in avals)}."
        )
    out = ShapedArray(nary_shape("threefry2x32", avals), _WORD)
    return [out, out]


def _cipher(name: str, on_cpu: Callable) -> Primitive:
    """A primitive that enciphers; `on_cpu` writes its rounds for XLA's CPU backend."""
    primitive = Primitive(name, multiple_results=True)
    primitive.rule_transpose = no_rule("it is not linear: it enciphers its operands")
    primitive.shape_rule(_shape_rule)
    zero_derivative(primitive)

    @primitive.batch
    def _(args, dims):
        rank = max(np.ndim(x) - (d is not None) for x, d in zip(args, dims, strict=True))
        lined = []
        for x, dim in zip(args, dims, strict=True):
            if dim is None:
                lined.append(expand_dims(x, (0,)) if np.ndim(x) else x)
            else:
                x = moveaxis(x, dim, 0)
                lined.append(expand_dims(x, range(1, rank + 2 - x.ndim)) if x.ndim <= rank else x)
        return primitive.bind(*lined), [0, 0]

    @primitive.lower
    def _(b, k0, k1, x0, x1):
        out = b.out
        parity = b.full(_PARITY, k0.aval)
        if k0.shape != k1.shape:
            k0, k1 = _to_shape(b, k0, out.shape), _to_shape(b, k1, out.shape)
        keys = [k0, k1, _op(b, "xor", _op(b, "xor", k0, k1), parity)]
        words = [
            _op(b, "add", _to_shape(b, x, out.shape), _to_shape(b, k, out.shape))
            for x, k in ((x0, k0), (x1, k1))
        ]
        rounds = on_cpu if b.platform == "cpu" else _unrolled
        return rounds(b, keys, words)

    return primitive


def _op(b, name, x, y):
    return b.op(f"stablehlo.{name}", (x, y), x.aval)


def _to_shape(b, x, shape):
    return x if x.shape == shape else b.broadcast(x, shape, range(len(shape)) if x.shape else ())


def _four_rounds(b, x0, x1, rotations):
    """Add, rotate, xor, four times; a rotation is given as the two shifts that make it."""
    for left, right in rotations:
        x0 = _op(b, "add", x0, x1)
        low, high = _op(b, "shift_left", x1, left), _op(b, "shift_right_logical", x1, right)
        x1 = _op(b, "xor", x0, _op(b, "or", low, high))
    return x0, x1


def _unrolled(b, keys, words):
    """The five groups of rounds in a straight line."""
    aval = words[0].aval
    keys = [_to_shape(b, k, aval.shape) for k in keys]
    x0, x1 = words
    for group in range(_GROUPS):
        shifts = [(b.full(r, aval), b.full(32 - r, aval)) for r in _ROTATIONS[group % 2]]
        x0, x1 = _four_rounds(b, x0, x1, shifts)
        x0 = _op(b, "add", x0, keys[(group + 1) % 3])
        x1 = _op(b, "add", _op(b, "add", x1, keys[(group + 2) % 3]), b.full(group + 1, aval))
    return [x0, x1]


def _paired(b, keys, words):
    """The straight line, with one result of 64 bits: nothing is computed twice within a kernel."""
    return list(_unpack(b, _pack(b, *_unrolled(b, keys, words))))


def _rolled(b, keys, words):
    """The five groups of rounds as a loop.

    It carries the two words as one of 64 bits: a loop body with one large result is one kernel, of
    which nothing is computed twice. Keys and rotations move up by one place in each turn.
    """
    aval = words[0].aval
    count = ShapedArray((), _WORD)
    turns = ShapedArray((4,), _WORD)
    pair = _pack(b, *words)
    carry = [
        b.constant(0, count),
        pair,
        keys[1],
        keys[2],
        keys[0],
        *[b.constant(np.array(rotations, _WORD), turns) for rotations in _ROTATIONS],
    ]
    avals = [x.aval for x in carry]

    def cond(r, index, *_):
        return [r.compare(index, r.constant(_GROUPS, count), "LT")]

    def body(r, index, pair, key0, key1, key2, these, others):
        index = _op(r, "add", index, r.constant(1, count))
        x0, x1 = _four_rounds(r, *_unpack(r, pair), _shifts_of(r, these, aval))
        x0 = _op(r, "add", x0, _to_shape(r, key0, aval.shape))
        counted = _op(r, "add", key1, _to_shape(r, index, key1.shape))
        x1 = _op(r, "add", x1, _to_shape(r, counted, aval.shape))
        return [index, _pack(r, x0, x1), key1, key2, key0, others, these]

    regions = [b.region(avals, cond), b.region(avals, body)]
    return list(_unpack(b, b.op_n("stablehlo.while", carry, avals, "", regions)[1]))


def _shifts_of(b, rotations, aval):
    """The left and right shifts of four rotations, from an array of them."""
    for index in range(4):
        bounds = f"start_indices = array<i64: {index}>, limit_indices = array<i64: {index + 1}>"
        one = b.op(
            "stablehlo.slice",
            (rotations,),
            ShapedArray((1,), _WORD),
            f"{bounds}, strides = array<i64: 1>",
        )
        left = b.reshape(one, ())
        right = _op(b, "subtract", b.constant(32, left.aval), left)
        yield b.broadcast(left, aval.shape), b.broadcast(right, aval.shape)


def _pack(b, x0, x1):
    high, low = b.convert(x0, _PAIR), b.convert(x1, _PAIR)
    return _op(b, "or", _op(b, "shift_left", high, b.full(32, high.aval)), low)


def _unpack(b, pair):
    high = _op(b, "shift_right_logical", pair, b.full(32, pair.aval))
    return b.convert(high, _WORD), b.convert(pair, _WORD)


# The cipher whose results are keys, and the one whose results are bits. XLA's CPU backend computes a
# straight line anew in each kernel that uses it. Keys have many uses, and are made of keys: theirs is
# a loop. Bits have few, and are many: in a straight line a million take 0.6 ms, not 4.1, and half as
# long to compile.
threefry2x32_p = _cipher("threefry2x32", _rolled)
threefry2x32_bits_p = _cipher("threefry2x32", _paired)


# -- the generator --------------------------------------------------------------------------------


def _words(pair_of_words: Any) -> tuple[Any, Any]:
    return tuple(unstack(pair_of_words))


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The cipher of an array of counters: its first half is enciphered together with its second.

    `keypair` holds the two words of the key; `count` is an array of uint32, of any shape.
    TypeError for another dtype.
    """
    k0, k1 = keypair
    aval = get_aval(count)
    if any(get_aval(x).dtype != _WORD for x in (k0, k1, count)):
        raise TypeError(
            "threefry_2x32 requires uint32 arguments, got "
            f"{', '.join(get_aval(x).str_short() for x in (k0, k1, count))}: convert them."
        )
    flat = reshape(count, (aval.size,))
    odd = aval.size % 2
    if odd:
        flat = concatenate([flat, full((1,), 0, _WORD)], 0)
    half = flat.shape[0] // 2
    outs = threefry2x32_p.bind(k0, k1, *_halves(flat, half))
    out = concatenate(outs, 0)
    return reshape(lax_slice(out, (0,), (aval.size,)) if odd else out, aval.shape)


def _halves(flat: Any, half: int) -> tuple[Any, Any]:
    return lax_slice(flat, (0,), (half,)), lax_slice(flat, (half,), (2 * half,))


def seed_words(seed: Any) -> tuple[Any, Any]:
    """The higher and the lower word of a seed; the higher is zero unless the seed has 64 bits."""
    aval = get_aval(seed)
    low = convert_element_type(seed, _WORD)
    high = np.uint32(0)
    if aval.dtype.itemsize == 8:
        width = to_dtype(aval.dtype.type(32), aval.dtype)  # a constant is narrowed without x64
        high = convert_element_type(shift_right_logical(seed, width), _WORD)
    return high, low


def _seed(seed: Any) -> Any:
    return stack(seed_words(seed))


def _fold_in(key: Any, data: Any) -> Any:
    k0, k1 = _words(key)
    zero = np.zeros(1, np.uint32)
    return concatenate(threefry2x32_p.bind(k0, k1, zero, reshape(data, (1,))), 0)


def _split(key: Any, shape: tuple[int, ...]) -> Any:
    if local.context.settings.threefry_partitionable:
        return stack(threefry2x32_p.bind(*_words(key), *places(shape)), axis=len(shape))
    words = threefry_2x32(_words(key), iota(_WORD, 2 * prod(shape)))
    return reshape(words, (*shape, 2))


def places(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The place of each element of an array in row-major order: its higher and its lower word.

    Every element is computed from its own place alone, so that the parts of an array that is spread
    over devices are made where they lie.
    """
    wide = certain(lambda: prod(shape) > 2**32)
    dtype = _PAIR if wide else _WORD
    place, stride = None, 1
    for axis in reversed(range(len(shape))):
        if shape[axis] != 1:
            part = broadcasted_iota(dtype, shape, axis)
            by = stride.__jax_array__().astype(dtype) if is_dim(stride) else dtype.type(stride)
            part = part if stride == 1 else mul(part, by)
            place = part if place is None else add(place, part)
        stride *= shape[axis]
    if place is None:
        place = full(shape, 0, dtype)
    high = np.uint32(0)
    if wide:
        high = convert_element_type(shift_right_logical(place, _PAIR.type(32)), _WORD)
        place = convert_element_type(place, _WORD)
    return high, place


def _random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    if local.context.settings.threefry_partitionable:
        x0, x1 = threefry2x32_bits_p.bind(*_words(key), *places(shape))
        if bit_width == 64:
            return joined(x0, x1)
        bits = bitwise_xor(x0, x1)
        return bits if bit_width == 32 else convert_element_type(bits, f"uint{bit_width}")
    size = prod(shape)
    count = -(-size * bit_width // 32)
    if count >= 2**32:
        raise NotImplementedError(
            f"random bits of shape {shape} need more than 2**32 words, which needs "
            "threefry_partitionable: turn that setting on."
        )
    words = threefry_2x32(_words(key), iota(_WORD, count))
    if bit_width == 64:
        bits = joined(*_halves(words, size))
    elif bit_width == 32:
        bits = words
    else:
        parts = reshape(bitcast_convert_type(words, f"uint{bit_width}"), (count * 32 // bit_width,))
        bits = lax_slice(parts, (0,), (size,))
    return reshape(bits, shape)


def joined(high: Any, low: Any) -> Any:
    """Pairs of words as numbers of 64 bits."""
    high = shift_left(convert_element_type(high, _PAIR), _PAIR.type(32))
    return bitwise_or(high, convert_element_type(low, _PAIR))


threefry_prng_impl = register_prng(
    PRNGImpl((2,), _seed, _split, _random_bits, _fold_in, name="threefry2x32", tag="fry")
)
