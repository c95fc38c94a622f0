"""`minijax.extend.random`: generators of random bits of one's own. A generator is four functions on
the words of one key; see `lax.prng`. What `define_prng_impl` gives is taken as `impl=` by
`random.key` and `random.wrap_key_data`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from minijax.lax.prng import PRNGImpl, PRNGSpec, random_seed_p
from minijax.lax.rng_bits import rbg_prng_impl, unsafe_rbg_prng_impl
from minijax.lax.threefry import threefry2x32_p, threefry_2x32, threefry_prng_impl
from minijax.namespace import shown
from minijax.numpy import asarray

__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p",
    "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl",
]  # fmt: skip

_defined: dict[tuple, PRNGSpec] = {}


def define_prng_impl(
    *, key_shape: tuple[int, ...], seed: Callable, split: Callable, random_bits: Callable,
    fold_in: Callable, name: str = "<unnamed>", tag: str = "?",
) -> Hashable:  # fmt: skip
    """A generator from its functions; equal arguments give the same one. It gets no global name.

    Keys are words, uint32[*key_shape]:

    - `seed(seeds) -> words`, for an integer scalar
    - `split(words, shape) -> words` of new keys, uint32[*shape, *key_shape]
    - `random_bits(words, bit_width, shape)` -> unsigned integers of that width
    - `fold_in(words, data) -> words`, for a uint32 scalar
    - `tag` stands in the name of the dtype, as in `key<tag>`
    """
    parts = (tuple(key_shape), seed, split, random_bits, fold_in, name, tag)
    if parts not in _defined:
        _defined[parts] = PRNGSpec(PRNGImpl(*parts))
    return _defined[parts]


def random_seed(seeds: Any, impl: PRNGImpl) -> Any:
    """Keys of a generator from integer seeds, one for each. TypeError for anything but integers."""
    if not isinstance(impl, PRNGImpl):
        raise AttributeError(
            f"random_seed takes a generator such as threefry_prng_impl, not {impl!r}: for what "
            "define_prng_impl gives, use random.key(seed, impl=...)."
        )
    return random_seed_p.bind(asarray(seeds), impl=impl)


def seed_with_impl(impl: PRNGImpl, seed: Any) -> Any:
    """A key of a generator from an integer seed."""
    return random_seed(seed, impl)


__dir__ = shown(__name__)
