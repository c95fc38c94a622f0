"""`library`: how the functions of `minijax.numpy` and its kin run.

May import the floors below and `transforms.jit`. Called eagerly, such a function runs as ONE
compiled program, found by one dict lookup on the signatures of its arguments and the values of its
static ones; within a trace it is an ordinary function, so that its operations are inlined.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import ArrayImpl, as_array, scalar_array, small_array
from minijax.arrays.dispatch import check_executed, program_for
from minijax.config import local
from minijax.core.jaxpr import DebugInfo
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import eval_trace
from minijax.core.tracebacks import hide_frames
from minijax.transforms.explicit import split_as

__all__ = ["library", "program_table"]

_NUMBERS = dtypes.python_scalar_dtypes
_PLAIN = frozenset((ArrayImpl, *_NUMBERS))  # what is one operand, and no container of them
# Comparing tells neither apart their zeros nor that one NaN is another.
_SIGNED = frozenset((float, complex, np.float16, np.float32, np.float64))
_LEAF = tree_util.tree_structure(0)
_registered: list[dict] = []


class _Pytree:
    """The place of an argument that is a container of arrays."""

    __slots__ = ("count", "tree")

    def __init__(self, tree, count):
        self.tree, self.count = tree, count


_ARRAY = object()  # the place of an argument that is an array


_F = TypeVar("_F", bound=Callable)


@overload
def library(fun: _F, *, static: Sequence[str] = ()) -> _F: ...
@overload
def library(fun: None = None, *, static: Sequence[str] = ()) -> Callable[[_F], _F]: ...
def library(fun: Callable | None = None, *, static: Sequence[str] = ()) -> Any:
    """Decorator: see the top of this file.

    `static` names the parameters that are no arrays: axes, dtypes, flags, functions. They must be
    hashable when given; a call with one that is not runs operation by operation. Arguments that are
    None count as static; those that are containers are flattened as pytrees. A result is split as
    the static parameter `out_sharding` says.
    """
    if fun is None:
        return functools.partial(library, static=tuple(static))
    if "out_sharding" in static:
        fun = _splitting(fun)
    general = _Calls(fun, static)
    plain, mixed = general.plain, bool(general.static_places)

    def wrapper(*args, **kwargs):
        context = local.context
        if context.trace is not eval_trace:
            return fun(*args, **kwargs)
        try:
            if kwargs:
                values = kwargs.values()
                key = (
                    context.key,
                    *[a.signature for a in args],
                    *kwargs,
                    *values,
                    *map(type, values),
                )
                execute, handlers, signature, tree = plain[key]
                operands = [a._buffer for a in args]
            elif len(args) == 1:
                (x,) = args
                execute, handlers, signature, tree = plain[(context.key, x.signature)]
                operands = [x._buffer]
            elif mixed:
                key = (
                    context.key,
                    *[a.signature if type(a) is ArrayImpl else (type(a), a) for a in args],
                )
                execute, handlers, signature, tree = plain[key]
                operands = [a._buffer for a in args if type(a) is ArrayImpl]
            elif len(args) == 2:
                x, y = args
                if type(y) in _NUMBERS:
                    y = scalar_array(y)
                key = (context.key, x.signature, y.signature)
                execute, handlers, signature, tree = plain[key]
                operands = [x._buffer, y._buffer]
            else:
                arrays = [scalar_array(a) if type(a) in _NUMBERS else a for a in args]
                key = (context.key, *[a.signature for a in arrays])
                execute, handlers, signature, tree = plain[key]
                operands = [a._buffer for a in arrays]
        except (KeyError, AttributeError, TypeError):
            pass
        else:
            try:
                results = execute(operands).consume_with_handlers(handlers)
            except Exception as error:
                check_executed(args, error)
                raise
            if tree is None:
                return ArrayImpl(results[0], signature)
            return tree.unflatten(map(ArrayImpl, results, signature))
        if context.settings.disable_jit:
            return fun(*args, **kwargs)
        try:
            return general(context, args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    functools.update_wrapper(wrapper, fun)
    return wrapper


class _Calls:
    """The programs of one function, by their arguments.

    `plain` has those that the least work finds: of calls with arrays, and static keywords.
    """

    __slots__ = ("fun", "plain", "programs", "static_names", "static_places")

    def __init__(self, fun: Callable, static: Sequence[str]):
        code = inspect.unwrap(fun).__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        unknown = set(static) - set(names)
        if unknown:
            raise TypeError(f"{fun.__name__} has no parameters {unknown}")
        self.fun = fun
        self.static_names = frozenset(static)
        positional = names[: code.co_argcount]
        self.static_places = frozenset(i for i, name in enumerate(positional) if name in static)
        self.programs: dict[tuple, tuple] = {}
        self.plain: dict[tuple, tuple] = {}
        _registered.extend((self.programs, self.plain))

    def __call__(self, context: Any, args: tuple, kwargs: dict) -> Any:
        arrays: list[ArrayImpl] = []
        key: list[Any] = [context.key]
        try:
            for place, x in enumerate(args):
                _note(x, place in self.static_places, arrays, key)
            for name, x in kwargs.items():
                key.append(name)
                _note(x, name in self.static_names, arrays, key)
            full = tuple(key)
            entry = self.programs.get(full)
        except TypeError:  # something that is no array, or cannot be hashed: let `fun` say so
            return self.fun(*args, **kwargs)
        if entry is None:
            entry = self._compiled(context, full, args, kwargs, arrays)
            if entry is None:  # let it meet the values as they were given, and speak of them
                return self.fun(*args, **kwargs)
        program, out_tree = entry
        if not program.simple:
            outs = program(arrays)
            return outs[0] if out_tree is None else out_tree.unflatten(outs)
        try:
            results = program.execute([a._buffer for a in arrays]).consume_with_handlers(
                program.handlers
            )
        except Exception as error:
            check_executed(arrays, error)
            raise
        if out_tree is None:
            return ArrayImpl(results[0], program.out_signatures[0])
        return out_tree.unflatten(map(ArrayImpl, results, program.out_signatures))

    def _compiled(self, context, full, args, kwargs, arrays) -> tuple | None:
        try:
            entry = _compile(self.fun, self.static_places, self.static_names, args, kwargs, arrays)
        except TypeError:
            return None
        self.programs[full] = entry
        program, out_tree = entry
        key = self._plain_key(context, args, kwargs, arrays)
        if key is not None and program.simple:
            signatures = program.out_signatures
            signature = signatures[0] if out_tree is None else signatures
            self.plain[key] = program.execute, program.handlers, signature, out_tree
        return entry

    def _plain_key(self, context, args, kwargs, arrays) -> tuple | None:
        """The key by which `wrapper` looks for a call like this; None if it does not."""
        kinds = [type(x) for x in kwargs.values()]
        if not _SIGNED.isdisjoint(kinds):
            return None
        if any(x is not None and name not in self.static_names for name, x in kwargs.items()):
            return None
        if len(arrays) == len(args) and all(type(x) in _PLAIN for x in args):
            if kwargs or len(args) == 1 or not self.static_places or not _numbers_in(args):
                signatures = [a.signature for a in arrays]
                return (context.key, *signatures, *kwargs, *kwargs.values(), *kinds)
            return None
        if kwargs or not all(
            type(x) is ArrayImpl
            or x is None
            or (place in self.static_places and type(x) not in _SIGNED)
            for place, x in enumerate(args)
        ):
            return None
        return (
            context.key,
            *[a.signature if type(a) is ArrayImpl else (type(a), a) for a in args],
        )


def _numbers_in(args: tuple) -> bool:
    return any(type(x) is not ArrayImpl for x in args)


def _note(x: Any, is_static: bool, arrays: list, key: list) -> None:
    """An argument, in the key of its call, and among the arrays if it is some."""
    kind = type(x)
    if kind is ArrayImpl:
        arrays.append(x)
        key.append(x.signature)
    elif is_static or x is None:
        key.append(kind)
        key.append(repr(x) if kind in _SIGNED else x)
    elif kind in _NUMBERS:
        x = scalar_array(x)
        arrays.append(x)
        key.append(x.signature)
    else:
        _add(x, arrays, key)


def _splitting(fun: Callable) -> Callable:
    """`fun`, whose result is split as its argument `out_sharding` says."""

    @functools.wraps(fun)
    def split(*args, **kwargs):
        where = kwargs.get("out_sharding")
        out = fun(*args, **kwargs)
        return out if where is None else split_as(out, where, fun.__name__)

    return split


def _add(x: Any, arrays: list, key: list) -> None:
    """An argument that is neither a number nor an array of ours."""
    if isinstance(x, (np.ndarray, np.generic)) or hasattr(x, "__jax_array__"):
        x = small_array(x) if type(x) is np.ndarray else as_array(x)
        arrays.append(x)
        key.append(x.signature)
        return
    leaves, tree = tree_util.flatten(x)
    if tree == _LEAF:
        x = as_array(x)
        arrays.append(x)
        key.append(x.signature)
        return
    key.append(tree)
    for leaf in leaves:
        leaf = leaf if type(leaf) is ArrayImpl else as_array(leaf)
        arrays.append(leaf)
        key.append(leaf.signature)


def _places(x: Any, is_static: bool) -> Any:
    """What stands at the place of an argument: the value, or a mark that it is given as arrays."""
    if type(x) is not ArrayImpl and (is_static or x is None):
        return x
    leaves, tree = tree_util.flatten(x)
    return _ARRAY if tree == _LEAF else _Pytree(tree, len(leaves))


def _compile(fun, static_places, static_names, args, kwargs, arrays) -> tuple:
    positional = [_places(x, i in static_places) for i, x in enumerate(args)]
    named = {name: _places(x, name in static_names) for name, x in kwargs.items()}
    trees = []

    def flat(*leaves):
        rest = iter(leaves)

        def fill(place):
            if place is _ARRAY:
                return next(rest)
            if type(place) is _Pytree:
                return place.tree.unflatten([next(rest) for _ in range(place.count)])
            return place

        given = [fill(place) for place in positional]
        outs, tree = tree_util.flatten(
            fun(*given, **{name: fill(place) for name, place in named.items()})
        )
        trees.append(tree)
        return outs

    closed = trace_to_jaxpr(
        flat, tuple([a.aval for a in arrays]), DebugInfo("library", fun.__name__)
    )
    program = program_for(closed, fun.__name__, arrays, keep_unused=True)
    return program, None if trees[0] == _LEAF else trees[0]


def program_table() -> dict:
    """A new table of compiled programs, which is emptied with the others."""
    table: dict = {}
    _registered.append(table)
    return table


def clear_library_caches() -> None:
    for programs in _registered:
        programs.clear()
