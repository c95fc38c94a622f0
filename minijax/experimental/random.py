"""`minijax.experimental.random`: a generator that keeps its own state, as NumPy's do.

The state is a counter in a reference; each draw folds its value of now into a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes, random, tree_util
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.core.trace import current, eval_trace
from minijax.features.queries import is_ref
from minijax.features.references.cells import Ref
from minijax.lax.refs import addupdate, new_ref
from minijax.tracebacks import public

__all__ = ["StatefulPRNG", "stateful_rng"]

Size = int | Sequence[int] | None


@dataclass(frozen=True, slots=True)
class StatefulPRNG:
    """A generator whose draws differ from each other; made by `stateful_rng`.

    It is a pytree of a key and of the reference to its counter, and goes where references go.
    ValueError for parts of another kind.
    """

    _base_key: Array
    _counter: Ref

    def __post_init__(self):
        if not (isinstance(self._base_key, Array) or is_ref(getattr(self._counter, "aval", None))):
            return  # a tree of something else
        if not dtypes.issubdtype(getattr(self._base_key, "dtype", bool), dtypes.prng_key):
            raise ValueError(f"Expected base_key to be a typed PRNG key; got {self._base_key}")
        if not isinstance(self._counter, Ref):
            raise ValueError(f"Expected counter to be a scalar integer ref; got {self._counter}")

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key of `minijax.random`, or an array of them."""
        if self._base_key.shape:
            raise ValueError(
                "cannot operate on split stateful generator: map a function over it with minijax.vmap."
            )
        shape = tuple(shape) if isinstance(shape, Sequence) else (index(shape),)
        key = random.fold_in(self._base_key, self._counter[...])
        addupdate(self._counter, ..., self._counter.dtype.type(1))
        return random.split(key, shape) if shape else key

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Generators of their own in one, of that shape: for `vmap`."""
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(jnp.zeros(keys.shape, np.int32)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of generators of their own."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]

    def random(self, size: Size = None, dtype: Any = float) -> Array:
        """Numbers from 0 to 1, which is left out."""
        return random.uniform(self.key(), _shape(size), dtype)

    def uniform(
        self, low: Any = 0, high: Any = 1, size: Size = None, *, dtype: Any = float
    ) -> Array:
        """Numbers from `low` to `high`, which is left out."""
        return random.uniform(self.key(), _shape(size, low, high), dtype, low, high)

    def normal(
        self, loc: Any = 0, scale: Any = 1, size: Size = None, *, dtype: Any = float
    ) -> Array:
        """Numbers of the normal distribution of this mean and standard deviation."""
        numbers = random.normal(self.key(), _shape(size, loc, scale), dtype)
        loc, scale = (jnp.asarray(x).astype(numbers.dtype) for x in (loc, scale))
        return loc + scale * numbers

    def integers(self, low: Any, high: Any = None, size: Size = None, *, dtype: Any = int) -> Array:
        """Integers from `low` to `high`, which is left out; from 0 to `low` if it alone is given."""
        low, high = (0, low) if high is None else (low, high)
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)


tree_util.register_dataclass(StatefulPRNG, ["_base_key", "_counter"], [])


def _shape(size: Size, *bounds: Any) -> tuple[int, ...]:
    if size is None:
        return np.broadcast_shapes(*map(np.shape, bounds))
    return tuple(size) if isinstance(size, Sequence) else (size,)


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator, from a seed: an integer; without one, from what the system has of randomness.

    `impl` names the kind of its keys, as for `minijax.random.key`. TypeError without a seed while a
    program is traced.
    """
    if seed is None:
        if current() is not eval_trace:
            raise TypeError(
                "When used within transformed code, jax.experimental.random.stateful_rng() requires "
                "an explicit seed to be set: else each run of the program would draw the same."
            )
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


__dir__ = public(__name__)
