"""Generators from the ciphers Philox and Threefry on blocks of two and four words (Salmon, Moraes,
Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011). As with the default generator,
`threefry`, all is the cipher of a counter: of the place of an element, of the number of a new key,
of the data folded in. Bits have their counter in the first words of a block, new keys in the last,
so that the two have nothing in common where a block has four words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from minijax.core.avals import get_aval
from minijax.lax.arithmetic import add, mul, mulhi
from minijax.lax.compare import bitwise_or, bitwise_xor, shift_left, shift_right_logical
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full
from minijax.lax.joining import stack, unstack
from minijax.lax.prng import PRNGImpl, register_prng
from minijax.lax.threefry import joined, places, seed_words
from minijax.transforms.primitives import to_shape

__all__ = ["philox2x32", "philox4x32", "threefry4x32"]

_Words = Sequence[Any]
_ZERO = np.uint32(0)

# -- the ciphers: the words of a key and of a block, to the words of a block -------------------------

# Philox: factors of the words that are multiplied, and what is added to the key before each round.
_ROUNDS = 10
_FACTOR = np.uint32(0xD256D193)
_FACTORS = np.uint32(0xD2511F53), np.uint32(0xCD9E8D57)
_STEPS = 0x9E3779B9, 0xBB67AE85  # the golden ratio, and the root of three less one

# Threefry on four words: the rotations of eight rounds, and the parity of the key schedule.
_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_PARITY = np.uint32(0x1BD11BDA)


def _mixed(*words: Any) -> Any:
    return reduce(bitwise_xor, words)


def _keys_of_round(key: _Words, index: int, like: Any) -> _Words:
    """The words of the key of a round of Philox, for a block of words like this one."""
    shape = get_aval(like).shape
    steps = [np.uint32(step * index % 2**32) for step in _STEPS]
    return [to_shape(add(word, step), shape) for word, step in zip(key, steps, strict=False)]


def philox2x32(key: _Words, block: _Words) -> _Words:
    """Philox-2x32 with ten rounds."""
    left, right = block
    for index in range(_ROUNDS):
        low, high = mul(left, _FACTOR), mulhi(left, _FACTOR)
        left, right = _mixed(high, right, *_keys_of_round(key, index, left)), low
    return left, right


def philox4x32(key: _Words, block: _Words) -> _Words:
    """Philox-4x32 with ten rounds."""
    a, b, c, d = block
    for index in range(_ROUNDS):
        keys = _keys_of_round(key, index, a)
        low, high = mul(a, _FACTORS[0]), mulhi(a, _FACTORS[0])
        other_low, other_high = mul(c, _FACTORS[1]), mulhi(c, _FACTORS[1])
        a, b, c, d = _mixed(other_high, b, keys[0]), other_low, _mixed(high, d, keys[1]), low
    return a, b, c, d


def threefry4x32(key: _Words, block: _Words) -> _Words:
    """Threefry-4x32 with twenty rounds."""
    shape = get_aval(block[0]).shape
    keys = [to_shape(word, shape) for word in (*key, _mixed(*key, _PARITY))]
    words = list(map(add, block, keys))
    for index in range(20):
        # Pairs of neighbours and pairs across take turns.
        pairs = ((0, 1), (2, 3)) if index % 2 == 0 else ((0, 3), (2, 1))
        for (one, other), count in zip(pairs, _ROTATIONS[index % 8], strict=True):
            words[one] = add(words[one], words[other])
            words[other] = bitwise_xor(_rotated(words[other], count), words[one])
        if index % 4 == 3:
            group = index // 4 + 1
            words = [add(word, keys[(group + place) % 5]) for place, word in enumerate(words)]
            words[3] = add(words[3], np.uint32(group))
    return words


def _rotated(word: Any, count: int) -> Any:
    left, right = np.uint32(count), np.uint32(32 - count)
    return bitwise_or(shift_left(word, left), shift_right_logical(word, right))


# -- the generators --------------------------------------------------------------------------------


def _generator(
    cipher: Callable, key_words: int, block_words: int, tag: str,
    seeded: Callable[[_Words, _Words], tuple[_Words, _Words]],
    of_64_bits: Callable[[_Words], _Words],
) -> PRNGImpl:  # fmt: skip
    """The generator from a cipher.

    `seeded` gives the key and the block whose cipher is the key of a seed, from its words and
    zeros; `of_64_bits` the higher and the lower words of numbers of 64 bits from a cipher.
    """
    none = [_ZERO] * (block_words - 2)

    def blocks(shape: tuple[int, ...], first: bool) -> _Words:
        high, low = places(shape)
        counter = [high if np.shape(high) == np.shape(low) else full(shape, 0, np.uint32), low]
        rest = [full(shape, 0, np.uint32) for _ in none]
        return [*counter, *rest] if first else [*rest, *counter]

    def keyed(words: _Words, axis: int = 0) -> Any:
        return stack(words[:key_words], axis=axis)

    def seed(given: Any) -> Any:
        return keyed(cipher(*seeded(seed_words(given), none)))

    def split(key: Any, shape: tuple[int, ...]) -> Any:
        return keyed(cipher(unstack(key), blocks(shape, first=False)), len(shape))

    def fold_in(key: Any, data: Any) -> Any:
        return keyed(cipher(unstack(key), [*none, _ZERO, data]))

    def random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
        words = cipher(unstack(key), blocks(shape, first=True))
        if bit_width == 64:
            return joined(*of_64_bits(words))
        return convert_element_type(_mixed(*words), f"uint{bit_width}")

    name = cipher.__name__
    return register_prng(
        PRNGImpl((key_words,), seed, split, random_bits, fold_in, name=name, tag=tag)
    )


def _counter(key_words: int) -> Callable[[_Words, _Words], tuple[_Words, _Words]]:
    """A seed is enciphered as a counter, under a key of zeros."""
    return lambda words, none: ([_ZERO] * key_words, [*words, *none])


_generator(philox2x32, 1, 2, "phx2", _counter(1), lambda words: words)
_generator(philox4x32, 2, 4, "phx4", _counter(2), lambda words: words[:2])
_generator(
    threefry4x32, 4, 4, "fry4", lambda words, none: ([*words, *none], [_ZERO] * 4),
    lambda words: (_mixed(words[0], words[2]), _mixed(words[1], words[3])),
)  # fmt: skip
