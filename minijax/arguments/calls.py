"""Calls of compiled functions: which of their arguments are static, and which are donated."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from minijax import tree_util
from minijax.arguments.functions import fun_name, resolve_static
from minijax.core.trace import Tracer
from minijax.namespace import user_stacklevel
from minijax.runtime import platforms

__all__ = [
    "ArgumentMarks", "Call", "NonHashableStatic", "Static", "check_hashable", "chosen_device",
    "non_hashable",
]  # fmt: skip


class NonHashableStatic(ValueError):
    """A static argument that has no hash, as lists, arrays and tracers; `error` is what failed."""

    error: Exception


def non_hashable(name: str, function: str, value: Any, error: Exception) -> NonHashableStatic:
    """Return the error for the static argument `name` of a function, whose hash raised `error`."""
    about = f"It is the argument {name} of {function}: "
    if isinstance(value, Tracer):
        said = f"TypeError: unhashable type: '{type(value).__name__}'\n{value.origin()}\n"
        said = f"{said}{about}give a value that is known"
    else:
        said = f"{type(error).__name__}: {error}\n{about}pass a tuple for a list"
    made = NonHashableStatic(
        "Non-hashable static arguments are not supported. An error occurred while trying to "
        f"hash an object of type {type(value)}, {value}. The error was:\n"
        f"{said}, or do not mark the argument static."
    )
    made.error = error
    return made


def check_hashable(name: str, function: str, value: Any) -> None:
    """NonHashableStatic unless the static argument `name` of a function has a hash."""
    try:
        hash(value)
    except TypeError as error:
        raise non_hashable(name, function, value, error) from None


class Static:
    """The value of a static argument in a cache key: equal only to one of the same type."""

    __slots__ = ("hash", "value")

    def __init__(self, value: Any, name: str, function: str):
        self.value = value
        try:
            self.hash = hash((type(value), value))
        except TypeError as error:
            raise non_hashable(name, function, value, error) from None

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        mine, others = self.value, other.value
        return mine is others or (type(mine) is type(others) and mine == others)


class Call:
    """The arguments of one call: the leaves of those that are not static, and the static ones.

    - `leaves`, `in_tree`: leaves and structure of `(args, kwargs)` without static arguments
    - `statics`: pairs of position or name and `Static`, which are part of cache keys
    - `donated`: whether each leaf is donated; empty if none is
    - `named`: names of the keyword arguments that are not static; `name`: the function's
    """

    __slots__ = ("donated", "in_tree", "leaves", "name", "named", "statics")

    def static_values(self) -> list[tuple[int | str, Any]]:
        """Return the static arguments, by position or name."""
        return [(where, static.value) for where, static in self.statics]


class ArgumentMarks:
    """The arguments of a function that are static, and those that are donated.

    `options` has `static_argnums` and the other three; `key` is what they say, hashable.
    """

    __slots__ = (
        "_static_positions", "donate_argnames", "donate_argnums", "fun", "has_static", "key",
        "static_argnames", "static_argnums",
    )  # fmt: skip

    def __init__(self, fun: Callable, options: dict[str, Any]):
        self.fun = fun
        self.static_argnums, self.static_argnames = resolve_static(
            fun, options["static_argnums"], options["static_argnames"], "static"
        )
        self.donate_argnums, self.donate_argnames = resolve_static(
            fun, options["donate_argnums"], options["donate_argnames"], "donate"
        )
        _check_apart(self.static_argnames, self.donate_argnames)
        self.has_static = bool(self.static_argnums or self.static_argnames)
        self.key = (
            self.static_argnums, self.static_argnames, self.donate_argnums, self.donate_argnames,
        )  # fmt: skip
        self._static_positions: dict[int, Sequence[int]] = {}

    def static_positions(self, count: int) -> Sequence[int]:
        """Return the positions of the static arguments in a call with so many."""
        found = self._static_positions.get(count)
        if found is None:
            found = sorted({n % count for n in self.static_argnums if -count <= n < count})
            self._static_positions[count] = found
        return found

    def split(self, args: tuple, kwargs: dict) -> Call:
        """Split off the static arguments and flatten the others."""
        call = Call()
        call.statics, dynamic = (), args
        call.name = function = fun_name(self.fun)
        if self.has_static:
            numbers = self.static_positions(len(args))
            positional = [(n, Static(args[n], f"number {n}", function)) for n in numbers]
            named = [
                (name, Static(kwargs[name], name, function))
                for name in self.static_argnames
                if name in kwargs
            ]
            call.statics = (*positional, *named)
            dynamic = tuple(a for n, a in enumerate(args) if n not in numbers)
            static_names = {name for name, _ in named}
            kwargs = {k: v for k, v in kwargs.items() if k not in static_names}
        call.named = list(kwargs)
        call.leaves, call.in_tree = tree_util.flatten((dynamic, kwargs))
        call.donated = self._donated(args, dynamic, kwargs, call.statics)
        return call

    def _donated(self, args, dynamic, kwargs, statics) -> tuple[bool, ...]:
        if not (self.donate_argnums or self.donate_argnames):
            return ()
        static_numbers = {n for n, _ in statics if isinstance(n, int)}
        wanted = {n % len(args) for n in self.donate_argnums if -len(args) <= n < len(args)}
        numbers = [n for n in range(len(args)) if n not in static_numbers]
        marks = []
        for number, arg in zip(numbers, dynamic, strict=True):
            marks += [number in wanted] * len(tree_util.tree_leaves(arg))
        for name in sorted(kwargs):
            marks += [name in self.donate_argnames] * len(tree_util.tree_leaves(kwargs[name]))
        return tuple(marks) if any(marks) else ()


def _check_apart(static: Sequence[str], donated: Sequence[str]) -> None:
    """ValueError if an argument is both static and donated."""
    both = set(static) & set(donated)
    if both:
        raise ValueError(
            f"static_argnames and donate_argnames cannot intersect. Argument names "
            f"{both} appear in both static_argnames and donate_argnames: a static argument has no "
            "memory that a result could take over."
        )


def chosen_device(device: Any, backend: str | None, in_shardings: Any, out_shardings: Any) -> Any:
    """Return the device that `jit` is asked for, or None; ValueError for shardings beside it."""
    if (device is not None or backend is not None) and not (in_shardings is out_shardings is None):
        raise ValueError(
            f"If backend or device is specified on jit, then "
            f"{'in_shardings' if in_shardings is not None else 'out_shardings'} should not be "
            "specified. It says where the function runs."
        )
    if device is not None and backend is not None:
        raise ValueError(
            f"can't specify both a device and a backend for jit, got device={device!r} and "
            f"backend={backend!r}."
        )
    if device is not None or backend is not None:
        warnings.warn(
            "backend and device argument on jit is deprecated. Put the operands on a device with "
            "jax.device_put, or give in_shardings.",
            DeprecationWarning,
            stacklevel=user_stacklevel(),
        )
    if device is None and backend is not None:
        return platforms.backend(backend).local_devices()[0]
    return device
