"""A stand-in for `jax._src.util`: small functions on lists, names, axes and caches.

They are on upstream's private list and need nothing of minijax but its caches.
"""

from __future__ import annotations

import abc
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from minijax.arguments import functions
from minijax.config import local
from minijax.numpy import moveaxis

__all__ = [
    "HashableFunction", "HashablePartial", "HashableWrapper", "OrderedSet", "StrictABC",
    "StrictABCMeta", "Unhashable", "cache", "canonicalize_axis", "canonicalize_axis_tuple",
    "ceil_of_ratio",
    "clear_all_caches", "concatenate", "curry", "flatten", "foreach", "fun_name", "fun_qual_name",
    "immutable", "maybe_named_axis", "memoize", "merge_lists", "moveaxis",
    "multi_weakref_lru_cache", "partition_list", "pprint_bytes", "register_cache",
    "safe_map", "safe_zip", "set_module", "split_list", "split_list_checked", "stable_unique",
    "subs_list", "subs_list2", "subvals", "test_event", "tuple_delete", "tuple_insert",
    "tuple_update", "unflatten", "unzip2", "unzip3",
    "weakref_lru_cache", "wrap_name", "wraps",
]  # fmt: skip


# Lists.


def _same_length(name: str, args: tuple) -> list[list]:
    lists = [list(arg) for arg in args]
    if not lists:
        raise TypeError(f"{name} takes at least one sequence")
    lengths = [len(one) for one in lists]
    if len(set(lengths)) > 1:
        raise ValueError(f"{name}() arguments are of different lengths: {lengths}")
    return lists


def safe_map(f: Callable, *args: Iterable) -> list:
    """A list of `f` of the elements of sequences, which must be of one length."""
    return list(map(f, *_same_length("safe_map", args)))


def safe_zip(*args: Iterable) -> list[tuple]:
    """A list of the tuples of elements of sequences, which must be of one length."""
    return list(zip(*_same_length("safe_zip", args), strict=True))


def foreach(f: Callable, *args: Iterable) -> None:
    """`safe_map` for what `f` does."""
    safe_map(f, *args)


def unzip2(xys: Iterable[tuple]) -> tuple[tuple, tuple]:
    """Two tuples, of the first and of the second elements."""
    pairs = [(x, y) for x, y in xys]
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def unzip3(xyzs: Iterable[tuple]) -> tuple[tuple, tuple, tuple]:
    """Three tuples, of the first, second and third elements."""
    triples = [(x, y, z) for x, y, z in xyzs]
    return tuple(tuple(t[i] for t in triples) for i in range(3))  # type: ignore[return-value]


def subvals(lst: Sequence, replace: Iterable[tuple[int, Any]]) -> tuple:
    """The sequence with other values at some places."""
    values = list(lst)
    for index, value in replace:
        values[index] = value
    return tuple(values)


def subs_list(subs: Sequence[int | None], src: Sequence, base: Sequence) -> list:
    """Return for each number the element of `src` of this number, for each None the next of `base`.

    AssertionError if some of `base` are left.
    """
    return subs_list2(subs, [None] * len(subs), src, (), base)


def subs_list2(
    subs1: Sequence[int | None], subs2: Sequence[int | None], src1: Sequence, src2: Sequence,
    base: Sequence,
) -> list:  # fmt: skip
    """`subs_list` from two sources; no place has a number for both."""
    rest = iter(base)
    found = []
    for i, j in zip(subs1, subs2, strict=True):
        assert i is None or j is None, f"both sources are named for one place: {i}, {j}"
        found.append(src1[i] if i is not None else src2[j] if j is not None else next(rest))
    assert next(rest, rest) is rest, (
        f"base has {len(base)} elements, more than places without a number"
    )
    return found


def split_list(args: Sequence, ns: Sequence[int]) -> list[list]:
    """Lists of these sizes, from the front, and one of what is left."""
    rest, parts = list(args), []
    for n in ns:
        parts.append(rest[:n])
        rest = rest[n:]
    return [*parts, rest]


def split_list_checked(args: Sequence, ns: Sequence[int]) -> list[list]:
    """Lists of these sizes, which must use up the sequence."""
    if sum(ns) != len(args) or any(n < 0 for n in ns):
        raise AssertionError(f"sizes {list(ns)} do not add up to {len(args)}")
    return split_list(args, ns[:-1])


def partition_list(bs: Sequence[bool], l: Sequence) -> tuple[list, list]:
    """The elements where `bs` is False, and those where it is True."""
    if len(bs) != len(l):
        raise AssertionError(f"{len(bs)} choices for {len(l)} elements")
    parts: tuple[list, list] = [], []
    for b, x in zip(bs, l, strict=True):
        parts[bool(b)].append(x)
    return parts


def merge_lists(bs: Sequence[bool], l0: Sequence, l1: Sequence) -> list:
    """The inverse of `partition_list`."""
    if sum(map(bool, bs)) != len(l1) or len(bs) != len(l0) + len(l1):
        raise AssertionError(f"{list(bs)} does not merge {len(l0)} and {len(l1)} elements")
    sources = iter(l0), iter(l1)
    return [next(sources[bool(b)]) for b in bs]


def concatenate(xs: Iterable[Sequence]) -> list:
    """One list of the elements of lists."""
    return [x for part in xs for x in part]


flatten = concatenate


def unflatten(xs: Iterable, ns: Sequence[int]) -> list[list]:
    """Lists of these sizes, which must use up `xs`."""
    source = list(xs)
    if len(source) != sum(ns):
        raise AssertionError(f"{len(source)} elements do not make lists of sizes {list(ns)}")
    rest = iter(source)
    return [[next(rest) for _ in range(n)] for n in ns]


def stable_unique(it: Iterable) -> Iterator:
    """Each element once, in order of first occurrence."""
    return iter(dict.fromkeys(it))


def tuple_insert(t: tuple, idx: int, val: Any) -> tuple:
    assert 0 <= idx <= len(t), (idx, len(t))
    return (*t[:idx], val, *t[idx:])


def tuple_delete(t: tuple, idx: int) -> tuple:
    assert 0 <= idx < len(t), (idx, len(t))
    return (*t[:idx], *t[idx + 1 :])


def tuple_update(t: tuple, idx: int, val: Any) -> tuple:
    assert 0 <= idx < len(t), (idx, len(t))
    return (*t[:idx], val, *t[idx + 1 :])


# Axes and numbers.


def maybe_named_axis(axis: Any, if_pos: Callable, if_named: Callable) -> Any:
    """Apply the first function to a number, the second to a name."""
    try:
        number = operator.index(axis)
    except TypeError:
        return if_named(axis)
    return if_pos(number)


def canonicalize_axis(axis: Any, num_dims: int) -> int:
    """An axis counted from the front; ValueError if it is out of bounds."""
    index = operator.index(axis)
    if not -num_dims <= index < num_dims:
        raise ValueError(f"axis {index} is out of bounds for array of dimension {num_dims}")
    return index % num_dims if num_dims else index


def canonicalize_axis_tuple(
    axis: int | Sequence[int] | None, ndim: int, allow_duplicate: bool = False
) -> tuple[int, ...]:
    """Axes counted from the front; None is all of them."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, Sequence) else (axis,)
    axes = tuple(canonicalize_axis(one, ndim) for one in given)
    if not allow_duplicate and len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis: {axes}")
    return axes


def ceil_of_ratio(x: int, y: int) -> int:
    return -(-x // y)


def pprint_bytes(num_bytes: float) -> str:
    """A number of bytes in its unit."""
    size = float(num_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.2f}{unit}"
        size /= 1000
    return f"{size:.2f}TB"


# Functions and names.


def curry(f: Callable) -> Callable:
    """`f(x)(y)` for `f(x, y)`."""
    return functools.partial(functools.partial, f)


def wrap_name(transform_name: str, name: str) -> str:
    return f"{transform_name}({name})"


def fun_name(fun: Callable, default_name: str = "<unnamed function>") -> str:
    """The name of a function, through partial applications."""
    return functions.fun_name(fun, default_name)


def fun_qual_name(fun: Callable) -> str:
    """The name of a function with the names of what it is in."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__qualname__", None) or fun_name(fun)


def wraps(
    wrapped: Callable, namestr: str | None = None, docstr: str | None = None, **kwargs: Any
) -> Callable:
    """`functools.wraps` with templates of `{fun}` and `{doc}` for the name and the docstring."""

    def decorate(fun):
        functools.update_wrapper(fun, wrapped)
        name, doc = fun_name(wrapped), getattr(wrapped, "__doc__", "") or ""
        fun.__name__ = name if namestr is None else namestr.format(fun=name)
        if docstr is not None:
            fun.__doc__ = docstr.format(fun=name, doc=doc, **kwargs)
        return fun

    return decorate


def set_module(module: str) -> Callable:
    """Decorator: the object says that it is of this module."""

    def decorate(thing):
        if module:
            thing.__module__ = module
        return thing

    return decorate


class HashableFunction:
    """A function that equals others of the same code and `closure`."""

    def __init__(self, f: Callable, closure: Hashable):
        self.f, self.closure = f, closure

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is HashableFunction
            and self.f.__code__ == other.f.__code__
            and self.closure == other.closure
        )

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.closure))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<hashable {self.f.__name__} with closure={self.closure}>"


class HashablePartial:
    """A partial application that equals others of the same code and arguments."""

    def __init__(self, f: Callable, *args: Any, **kwargs: Any):
        self.f, self.args, self.kwargs = f, args, kwargs

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is HashablePartial
            and self.f.__code__ == other.f.__code__
            and self.args == other.args
            and self.kwargs == other.kwargs
        )

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.args, tuple(sorted(self.kwargs.items()))))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


class HashableWrapper:
    """A value by its hash, or by its identity if it has none."""

    def __init__(self, x: Any):
        self.x = x
        try:
            self.hash: int | None = hash(x)
        except TypeError:
            self.hash = None

    def __hash__(self) -> int:
        return id(self.x) if self.hash is None else self.hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HashableWrapper):
            return False
        return self.x is other.x if self.hash is None else self.x == other.x


class Unhashable:
    """A value without a hash, equal to others of equal values."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, val: Any):
        self.val = val

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Unhashable) and self.val == other.val


def immutable(cls: type) -> type:
    """Decorator: attributes of instances cannot be set or deleted, and a deep copy is the instance."""

    def refuse_set(self, name, value):
        raise AttributeError(f"cannot assign to field {name!r}")

    def refuse_delete(self, name):
        raise AttributeError(f"cannot delete field {name!r}")

    cls.__setattr__, cls.__delattr__ = refuse_set, refuse_delete
    cls.__deepcopy__ = lambda self, memo: self
    return cls


class OrderedSet:
    """A set that is walked in order of insertion."""

    def __init__(self, iterable: Iterable = ()):
        self._members = dict.fromkeys(iterable)

    def add(self, elt: Any) -> None:
        self._members[elt] = None

    def update(self, elts: Iterable) -> None:
        self._members.update(dict.fromkeys(elts))

    def __iter__(self) -> Iterator:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, elt: Any) -> bool:
        return elt in self._members


class StrictABCMeta(abc.ABCMeta):
    """`ABCMeta` without virtual subclasses: `isinstance` is plain inheritance."""

    def register(cls, subclass: type) -> Any:
        raise NotImplementedError(f"{cls} does not support virtual subclasses")

    __instancecheck__ = type.__instancecheck__  # type: ignore[assignment]


class StrictABC(metaclass=StrictABCMeta):
    __slots__ = ()


# Caches: what they give may depend on the settings, so these are part of the key.

_caches: list[Any] = []


def register_cache(cache: Any, for_what: str) -> None:
    """A cache, with `cache_clear`, that `clear_all_caches` empties."""
    _caches.append(cache)


def clear_all_caches() -> None:
    for known in _caches:
        known.cache_clear()


def _keyed(f: Callable, maxsize: int | None, in_key: Any) -> Callable:
    @functools.lru_cache(maxsize)
    def kept(key, *args, **kwargs):
        return f(*args, **kwargs)

    @functools.wraps(f)
    def call(*args, **kwargs):
        return kept(local.context.key if in_key else None, *args, **kwargs)

    call.cache_clear = kept.cache_clear  # type: ignore[attr-defined]
    call.cache_info = kept.cache_info  # type: ignore[attr-defined]
    register_cache(call, fun_qual_name(f))
    return call


def cache(max_size: int | None = 4096, trace_context_in_key: Any = True) -> Callable:
    """Decorator: results are kept by the arguments and, unless told otherwise, the settings."""
    return lambda f: _keyed(f, max_size, trace_context_in_key)


def memoize(f: Callable) -> Callable:
    """Results are kept without bound, by the arguments and the settings."""
    return _keyed(f, None, True)


def weakref_lru_cache(
    f: Callable | None = None, *, maxsize: int | None = 2048, trace_context_in_key: bool = True,
    explain: Callable | None = None,
) -> Callable:  # fmt: skip
    """`cache`, as a decorator with or without options."""
    if f is None:
        return functools.partial(
            weakref_lru_cache, maxsize=maxsize, trace_context_in_key=trace_context_in_key
        )
    return _keyed(f, maxsize, trace_context_in_key)


def multi_weakref_lru_cache(
    call: Callable, *, maxsize: int | None = 2048, trace_context_in_key: bool = True
) -> Callable:
    """`cache`, as a decorator."""
    return _keyed(call, maxsize, trace_context_in_key)


def test_event(name: str, *args: Any) -> None:
    """Something happened that a test may count; here none listens."""
