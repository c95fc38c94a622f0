"""Random keys: their dtypes and the primitives on them. A key array is an ordinary array whose
dtype is a `KeyType`, such as `key<fry>`; in memory a key is a row of 32-bit words. What the
words mean is the business of a `PRNGImpl`: four functions on the words of one key, which the
primitives map over arrays of keys. `lax.threefry` and `lax.rng_bits` hold the implementations
that there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.config import local
from minijax.core.avals import ShapedArray
from minijax.core.caches import ProgramCache
from minijax.core.primitive import Primitive, no_rule
from minijax.core.staging import trace_to_jaxpr
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import leading
from minijax.features.sharding.types import without_placement
from minijax.lax.rules import broadcasting_batch, nary_shape, zero_derivative
from minijax.lowering.module import Value
from minijax.lowering.types import physical
from minijax.transforms.batching import AxisData, batch_flat, mapped_size, to_front
from minijax.transforms.primitives import moveaxis, to_shape

__all__ = [
    "KeyType", "PRNGImpl", "PRNGSpec", "key_type", "mapped_over_keys", "prngs", "random_bits_p", "random_clone_p",
    "random_fold_in_p", "random_seed_p", "random_split_p", "random_unwrap_p", "random_wrap_p",
    "register_prng",
]  # fmt: skip

_WORD = np.dtype(np.uint32)

# -- implementations and the dtypes of their keys -------------------------------------------------


class PRNGImpl:
    """A pseudo-random number generator: functions on the words of one key (uint32[*key_shape]).

    - seed(seeds) -> words
    - split(words, shape) -> words of new keys, uint32[*shape, *key_shape]
    - random_bits(words, bit_width, shape) -> unsigned integers of that width
    - fold_in(words, data) -> words; `data` is a uint32 scalar
    """

    __slots__ = ("dtype", "fold_in", "key_shape", "name", "random_bits", "seed", "split", "tag")

    def __init__(
        self,
        key_shape: tuple[int, ...],
        seed: Callable,
        split: Callable,
        random_bits: Callable,
        fold_in: Callable,
        name: str = "<unnamed>",
        tag: str = "?",
    ):
        self.key_shape = tuple(key_shape)
        self.seed = seed
        self.split = split
        self.random_bits = random_bits
        self.fold_in = fold_in
        self.name = name
        self.tag = tag
        self.dtype = KeyType(self)

    def __str__(self) -> str:
        return self.tag

    def __repr__(self) -> str:
        return f"PRNGImpl(name={self.name!r}, tag={self.tag!r}, key_shape={self.key_shape})"


class PRNGSpec:
    """The result of `key_impl` for an implementation that has no registered name."""

    __slots__ = ("_impl",)

    def __init__(self, impl: PRNGImpl):
        self._impl = impl

    def __eq__(self, other):
        return isinstance(other, PRNGSpec) and self._impl is other._impl

    def __hash__(self):
        return hash((PRNGSpec, self._impl))

    def __str__(self) -> str:
        return str(self._impl)

    def __repr__(self) -> str:
        return f"PRNGSpec({self._impl.name!r})"


class KeyType(dtypes.ExtendedDType):
    """The dtype of arrays of random keys of one implementation; one object for each."""

    __slots__ = (
        "__weakref__", "_impl", "_rules", "itemsize", "name", "physical_element_aval",
    )  # fmt: skip

    type = dtypes.prng_key
    kind = "K"  # NumPy has no such letter: it belongs to no category of numbers

    def __init__(self, impl: PRNGImpl):
        self._impl = impl
        self._rules = type(self)
        self.name = f"key<{impl.tag}>"
        self.itemsize = prod(impl.key_shape) * _WORD.itemsize
        self.physical_element_aval = ShapedArray(impl.key_shape, _WORD)

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return object.__hash__(self)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self):
        return key_type, (self._impl.name,)

    def zeros(self, aval: ShapedArray) -> Any:
        """Keys whose words are all zero."""
        return self.full(aval, 0)

    def full(self, aval: ShapedArray, word: int) -> Any:
        """Keys whose words are all this number."""
        words = to_shape(_WORD.type(word), (*aval.shape, *self._impl.key_shape))
        return random_wrap_p.bind(words, impl=self._impl)


prngs: dict[str, PRNGImpl] = {}


def register_prng(impl: PRNGImpl) -> PRNGImpl:
    """Make an implementation known by its name."""
    if impl.name in prngs:
        raise ValueError(f"PRNG with name {impl.name} already registered: {prngs[impl.name]!r}")
    prngs[impl.name] = impl
    return impl


def resolve_prng(spec: Any) -> PRNGImpl:
    """The implementation that a name, a key dtype, a `PRNGSpec` or None (the default) stands for."""
    if spec is None:
        return prngs[local.context.settings.default_prng_impl]
    if isinstance(spec, PRNGImpl):
        return spec
    if isinstance(spec, (PRNGSpec, KeyType)):
        return spec._impl
    if isinstance(spec, str):
        if spec in prngs:
            return prngs[spec]
        known = ", ".join(f'"{name}"' for name in prngs)
        raise ValueError(
            f'unrecognized PRNG implementation "{spec}". Did you mean one of: {known}?'
        )
    raise TypeError(
        f"unrecognized type {type(spec)} for specifying PRNG implementation. Pass a name such as "
        '"threefry2x32", or what key_impl(keys) gives.'
    )


def key_type(spec: Any = None) -> KeyType:
    """The dtype of keys of an implementation."""
    return resolve_prng(spec).dtype


# -- what the primitives share --------------------------------------------------------------------


def _impl_of(name: str, keys: ShapedArray) -> PRNGImpl:
    if type(keys.dtype) is not KeyType:
        raise TypeError(
            f"{name} takes an array of random keys, got {keys.str_short()}: make one with "
            "random.key(seed), or wrap words with random.wrap_key_data."
        )
    return keys.dtype._impl


def _constant_in_keys(p: Primitive) -> None:
    """Rules of a primitive that has no derivative."""
    zero_derivative(p)
    p.rule_transpose = no_rule("it is not linear: it makes random bits of its operands")


_traced = ProgramCache()


def mapped_over_keys(fun: Callable, operands: Sequence[Any], depth: int | Sequence[int]) -> Any:
    """`fun` of one key, mapped over leading axes: `depth` of each operand, or a number for all.

    An operand with fewer of them than the others is the same for all of their elements.
    """
    depths = [depth] * len(operands) if isinstance(depth, int) else list(depth)
    most = max(depths)
    if most == 0:
        return fun(*operands)
    dims = [0 if one == most else None for one in depths]
    size = next(x.shape[0] for x, dim in zip(operands, dims, strict=True) if dim == 0)
    inner = [one - (dim == 0) for one, dim in zip(depths, dims, strict=True)]
    axis = AxisData(None, size)
    outs, out_dims = batch_flat(
        lambda *xs: [mapped_over_keys(fun, xs, inner)], axis, operands, dims
    )
    return to_front(outs[0], out_dims[0], size)


def _lower_with(
    b, impl: PRNGImpl, which: str, operands: Sequence[Value], depth: int | tuple[int, ...], *extra
) -> Value:
    """Call the function that one of the four makes, traced on words and mapped over keys."""
    out = b.out
    words = [Value(x.name, physical(x.aval)) for x in operands]
    avals = without_placement([x.aval for x in words])
    key = (impl, which, avals, depth, extra)
    closed = _traced.get(key)
    if closed is None:
        fun = getattr(impl, which)
        closed = _traced[key] = trace_to_jaxpr(
            lambda *xs: [mapped_over_keys(lambda *one: fun(*one, *extra), xs, depth)], avals
        )
        made, wanted = closed.out_avals[0], physical(out)
        if (made.shape, made.dtype) != (wanted.shape, wanted.dtype):
            raise TypeError(
                f"{which} of the PRNG implementation {impl.name!r} gave {made.str_short()} where "
                f"{wanted.str_short()} is wanted."
            )
    name = f"{impl.name}_{which}"
    return Value(b.call_jaxpr(closed, name, *words)[0].name, out)


def _renamed(b, x: Value) -> Value:
    """Return the words under another type."""
    return Value(x.name, b.out)


# -- seed, split, fold_in, bits -------------------------------------------------------------------

random_seed_p = Primitive("random_seed")
_constant_in_keys(random_seed_p)
random_seed_p.rule_batch = broadcasting_batch(random_seed_p)


@random_seed_p.shape_rule
def _(seeds, *, impl):
    if not dtypes.issubdtype(seeds.dtype, np.integer) and seeds.dtype != np.bool_:
        raise TypeError(
            f"PRNG key seed must be an integer; got {seeds.str_short()}: convert it with "
            ".astype(int)."
        )
    return ShapedArray(seeds.shape, impl.dtype)


@random_seed_p.lower
def _(b, seeds, *, impl):
    return _lower_with(b, impl, "seed", [seeds], len(seeds.shape))


random_split_p = Primitive("random_split")
set_layout(random_split_p, parts=leading)
_constant_in_keys(random_split_p)
random_split_p.rule_batch = broadcasting_batch(random_split_p)


@random_split_p.shape_rule
def _(keys, *, shape):
    _impl_of("random_split", keys)
    return ShapedArray((*keys.shape, *_checked_shape("random_split", shape)), keys.dtype)


def _checked_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(size < 0 for size in shape):
        raise TypeError(f"{name}: the shape {shape} has a negative size: give sizes of 0 or more.")
    return shape


@random_split_p.lower
def _(b, keys, *, shape):
    return _lower_with(b, keys.dtype._impl, "split", [keys], len(keys.shape), shape)


random_fold_in_p = Primitive("random_fold_in")
_constant_in_keys(random_fold_in_p)


@random_fold_in_p.shape_rule
def _(keys, msgs):
    _impl_of("random_fold_in", keys)
    if msgs.dtype != _WORD:
        raise TypeError(
            f"random_fold_in takes data of dtype uint32, got {msgs.str_short()}: convert it."
        )
    return ShapedArray(nary_shape("random_fold_in", (keys, msgs)), keys.dtype)


@random_fold_in_p.batch
def _(args, dims):
    size = mapped_size(args, dims)
    lined = [
        x if d is None and not np.ndim(x) else to_front(x, d, size)
        for x, d in zip(args, dims, strict=True)
    ]
    ranks = [np.ndim(x) for x in lined]
    if ranks[0] != ranks[1] and min(ranks):  # a scalar under vmap: give it the axes of the other
        lined = [_with_rank(x, max(ranks)) for x in lined]
    return random_fold_in_p.bind(*lined), 0


def _with_rank(x: Any, rank: int) -> Any:
    """Axes of size one after those there are."""
    if x.ndim == rank:
        return x
    shape = (*x.shape, *(1,) * (rank - x.ndim))
    return to_shape(x, shape, range(x.ndim))


@random_fold_in_p.lower
def _(b, keys, msgs):
    # What is one number stays one: a generator may make other bits of it for each key otherwise.
    impl, shape, out = keys.dtype._impl, b.out.shape, b.out
    full = [
        x if x.shape in (shape, ()) else b.broadcast(x, shape, range(len(shape)))
        for x in (keys, msgs)
    ]
    b.out = out
    return _lower_with(b, impl, "fold_in", full, tuple([len(x.shape) for x in full]))


random_bits_p = Primitive("random_bits")
set_layout(random_bits_p, parts=leading)
_constant_in_keys(random_bits_p)
random_bits_p.rule_batch = broadcasting_batch(random_bits_p)


@random_bits_p.shape_rule
def _(keys, *, bit_width, shape):
    _impl_of("random_bits", keys)
    if bit_width not in (8, 16, 32, 64):
        raise TypeError(
            f"random_bits: bit_width is {bit_width}; random bits come 8, 16, 32 or 64 to a number."
        )
    full = (*keys.shape, *_checked_shape("random_bits", shape))
    return ShapedArray(full, np.dtype(f"uint{bit_width}"))


@random_bits_p.lower
def _(b, keys, *, bit_width, shape):
    return _lower_with(
        b, keys.dtype._impl, "random_bits", [keys], len(keys.shape), bit_width, shape
    )


# -- between keys and words -----------------------------------------------------------------------

random_wrap_p = Primitive("random_wrap")
set_layout(random_wrap_p, parts=leading)
_constant_in_keys(random_wrap_p)
random_wrap_p.lower(lambda b, x, *, impl: _renamed(b, x))


@random_wrap_p.shape_rule
def _(words, *, impl):
    count = len(impl.key_shape)
    if (
        words.dtype != _WORD
        or words.ndim < count
        or words.shape[words.ndim - count :] != (impl.key_shape)
    ):
        raise TypeError(
            f"random_wrap takes uint32 words whose trailing dimensions are {impl.key_shape} for "
            f"keys of {impl.name}; got {words.str_short()}."
        )
    return ShapedArray(words.shape[: words.ndim - count], impl.dtype)


@random_wrap_p.batch
def _(args, dims, *, impl):
    (x,), (dim,) = args, dims
    return random_wrap_p.bind(moveaxis(x, dim, 0), impl=impl), 0


random_unwrap_p = Primitive("random_unwrap")
set_layout(random_unwrap_p, parts=leading)
_constant_in_keys(random_unwrap_p)
random_unwrap_p.rule_batch = broadcasting_batch(random_unwrap_p)
random_unwrap_p.lower(_renamed)


@random_unwrap_p.shape_rule
def _(keys):
    _impl_of("random_unwrap", keys)
    return physical(keys)


random_clone_p = Primitive("random_clone")
_constant_in_keys(random_clone_p)
random_clone_p.rule_batch = broadcasting_batch(random_clone_p)
random_clone_p.lower(_renamed)


@random_clone_p.shape_rule
def _(keys):
    return keys
