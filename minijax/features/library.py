"""`library`: how the functions of `minijax.numpy` and its kin run.

Called eagerly, such a function runs as ONE compiled program, found by one dict lookup on the
signatures of its arguments and the values of its static ones; within a trace, and with hundreds of
arrays, it is an ordinary function, so that its operations are inlined, unless there are many of them.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from types import CellType, FunctionType, MethodType
from typing import Any, TypeVar, overload

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.calls import NonHashableStatic, non_hashable
from minijax.arguments.functions import aval_of_argument, stage_methods
from minijax.arrays.array import ArrayImpl, as_array, as_operand, scalar_array, small_array
from minijax.arrays.dispatch import program_for
from minijax.config import local, promoting_freely
from minijax.core.caches import ProgramCache
from minijax.core.hooks import hooks
from minijax.core.trace import Tracer
from minijax.errors import ConcretizationTypeError, TracerIntegerConversionError, float0_error
from minijax.features.slots import slots
from minijax.tracebacks import hide_frames
from minijax.transforms.cached_calls import (
    LEAF,
    NUMBERS,
    cached_call,
    entry_of,
)
from minijax.transforms.jit import PjitFunction, jit
from minijax.transforms.tracing import trace_function

__all__ = ["MOST_ARRAYS", "as_jitted", "as_method", "library"]

_PLAIN = frozenset((ArrayImpl, np.ndarray, *NUMBERS))  # what is one operand, no container of them
# Comparing tells neither apart their zeros nor that one NaN is another.
_SIGNED = frozenset((float, complex, np.float16, np.float32, np.float64))
# The errors that a tracer for a static argument causes.
_REFUSALS = (ConcretizationTypeError, TracerIntegerConversionError, NonHashableStatic)
_NO_KEYS = _SIGNED | {ArrayImpl}  # an array in place of a shape cannot be compared at all
# Parameters of which the functions make tuples or numbers, whether or not they say so.
_CONVERTED = {
    "axes", "check_finite", "copy", "correction", "ddof", "dtype", "norm", "out", "out_sharding",
    "overwrite_a", "overwrite_b", "shape",
}  # fmt: skip
# Of more arrays no program is made: its operands are joined faster in groups (`lax.joining.join`).
MOST_ARRAYS = 128
_ABSENT = object()  # the first argument of a call that gives it by name, or none


_F = TypeVar("_F", bound=Callable)


@overload
def library(
    fun: _F,
    *,
    static: Sequence[str] = (),
    converted: Sequence[str] = (),
    whole: bool = False,
    forwards: bool = False,
) -> _F: ...
@overload
def library(
    fun: None = None,
    *,
    static: Sequence[str] = (),
    converted: Sequence[str] = (),
    whole: bool = False,
    forwards: bool = False,
) -> Callable[[_F], _F]: ...
def library(
    fun: Callable[..., Any] | None = None,
    *,
    static: Sequence[str] = (),
    converted: Sequence[str] = (),
    whole: bool = False,
    forwards: bool = False,
) -> Any:
    """Decorator: see the top of this file.

    `static` names the parameters that are no arrays: axes, dtypes, flags, functions. They must be
    hashable when given; a call with one that is not runs operation by operation, and a tracer is
    refused as `jit` refuses one, but for those `converted`: of these the function itself makes
    numbers. Arguments that are None count as static; those that are containers are flattened as
    pytrees. A result is split as the static parameter `out_sharding` says.

    `whole` makes it one jitted function within a trace too. So it should be where there are many
    operations, or loops: each call would record their bodies anew, and what is recorded anew is
    transformed and lowered anew (a program of three `expm` is traced in 0.07 ms instead of 14, the
    gradient of `hyp2f1` in 0.3 instead of 60).

    One that `forwards` gives an array itself where it changes nothing, as upstream's functions do that
    are not jitted there; the results of others have memory of their own.
    """
    if fun is None:
        return functools.partial(
            library,
            static=tuple(static),
            converted=tuple(converted),
            whole=whole,
            forwards=forwards,
        )
    if "out_sharding" in static:
        fun = _splitting(fun)
    general = _Calls(fun, static, converted, forwards)
    cells = (
        _whole(fun, general) if whole else fun,
        general.fun, general.plain, general, general.static_positions, general.alone,
    )  # fmt: skip
    wrapper = (None if static else _of_few(fun, cells)) or _of_any(*cells)
    functools.update_wrapper(wrapper, fun)
    for name, method in _STAGES.items():
        setattr(wrapper, name, MethodType(method, wrapper))
    return wrapper


def as_method(function: Callable, check: Callable[[ArrayImpl], None] | None = None) -> Callable:
    """A function as a method: a second one of the same code, since the array is its first argument.

    `check` is called with the array, and may raise an error. For library functions that is once for
    each signature: calls that find their program do not check again. Other functions take longer.
    """
    cells = _cells(function)
    if check is not None:
        if "general" in cells:
            calls = cells["general"].cell_contents.with_check(check)
            cells["general"], cells["plain"] = CellType(calls), CellType(calls.plain)
        else:
            return _checked_first(function, check)
    made = FunctionType(
        function.__code__, function.__globals__, closure=tuple(cells.values()),
        argdefs=function.__defaults__,
    )  # fmt: skip
    made.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(made, function)


def _checked_first(function: Callable, check: Callable[[ArrayImpl], None]) -> Callable:
    @functools.wraps(function)
    def checked(self, *args, **kwargs):
        try:
            if type(self) is ArrayImpl:
                check(self)
            return function(self, *args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return checked


def _stage(name: str) -> Callable:
    """A method of the jitted function, for a library function."""

    def method(self, /, *args, **kwargs):
        return getattr(as_jitted(self), name)(*args, **kwargs)

    method.__name__ = name
    return method


_STAGES = {name: _stage(name) for name in ("clear_cache", "eval_shape", "lower", "trace")}
stage_methods.update(_STAGES.values())


def as_jitted(fun: Callable) -> PjitFunction | None:
    """`jit` of a library function, whose static parameters are known; None for another function."""
    made = getattr(fun, "lower", None)
    if getattr(made, "__func__", None) is not _STAGES["lower"] or made.__self__ is not fun:
        return None
    return jit(fun, static_argnames=tuple(_cells(fun)["general"].cell_contents.static_names))


def _cells(fun: Any) -> dict[str, CellType]:
    return dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))


def _can_be_static(x: Any) -> bool:
    try:
        hash(x)  # of a tuple, those of its items
    except TypeError:
        return False
    return not isinstance(x, (Tracer, ArrayImpl))


def _is_array(x: Any) -> bool:
    return type(x) in (ArrayImpl, np.ndarray) or isinstance(x, Tracer)


def _is_plain(x: Any) -> bool:
    """Whether this is an array, a number that is surely one of a default dtype, or None."""
    if type(x) is int:
        return -(2**31) <= x < 2**31
    return type(x) in _PLAIN or x is None or isinstance(x, Tracer)


def _whole(fun: Callable, calls: _Calls) -> Callable:
    """`fun` where it is traced: jitted, unless it is given what `jit` does not take."""
    jitted = functools.cache(lambda: jit(fun, static_argnames=tuple(calls.static_names)))

    @functools.wraps(fun)
    def called(*args, **kwargs):
        return (jitted() if calls.suit_jit(args, kwargs) else fun)(*args, **kwargs)

    return called


_HAS_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _of_few(fun: Any, cells: tuple) -> Callable | None:
    """The wrapper of a function of one or two arrays, given by position or as `x` and `y`."""
    fun = inspect.unwrap(fun)
    code = fun.__code__  # a signature takes ten times as long, of 117 functions 3 ms of the import
    count, flags = code.co_argcount, code.co_flags
    make = _BY_COUNT.get(count)
    if make is None or fun.__defaults__ or code.co_kwonlyargcount or flags & _HAS_VARIADIC:
        return None
    wrapper = make(*cells)
    if code.co_posonlyargcount == 0:
        own = wrapper.__code__
        if own.co_varnames[:count] != code.co_varnames[:count]:
            return None
        wrapper.__code__ = own.replace(co_posonlyargcount=0)
        return wrapper
    return wrapper if code.co_posonlyargcount == count else None


def _checked_once(fun: Callable) -> Callable:
    """`fun`, which checks promotion itself where it is restricted; what it calls promotes freely.

    The user's operands are promoted by the function that is called with them; what that one computes
    with the help of others is its own affair. In strict mode too the calls of users are noted.
    """

    @functools.wraps(fun)
    def checked(*args, **kwargs):
        context = local.context
        if context.promotes_freely:
            return fun(*args, **kwargs)
        if context.in_library:
            with promoting_freely():
                return fun(*args, **kwargs)
        context.in_library = True
        try:
            return slots.call_library(fun, args, kwargs)
        finally:
            context.in_library = False

    return checked


def _gather(x: Sequence, key: list, operands: list) -> None:
    """A sequence of arrays, or of lists of them as blocks are, into the key and the operands."""
    key.append(type(x))
    key.append(len(x))
    for item in x:
        if type(item) is list:
            key.append(len(item))
            for leaf in item:
                key.append(leaf.signature)
                operands.append(leaf._buffer)
        else:
            key.append(item.signature)
            operands.append(item._buffer)


# One or two arrays given by position, and any arguments: the first two take fewer steps.
_FACTORY = "fun, checked, plain, general, statics, alone"
_of_one = cached_call(
    "wrapper", "x, /", factory=_FACTORY,
    traced="return fun(x) if context.promotes_freely else checked(x)",
    lookup="""
        a = x if type(x) is ArrayImpl else operand_of(x, context)
        """,
    tables="plain", key="a.signature", operands="[a._buffer]", given="(x,)", forgotten="a",
    missed="general.on_miss(context, (x,), {})",
)  # fmt: skip
_of_two = cached_call(
    "wrapper", "x, y, /", factory=_FACTORY,
    traced="return fun(x, y) if context.promotes_freely else checked(x, y)",
    lookup="""
        a = x if type(x) is ArrayImpl else operand_of(x, context)
        b = y if type(y) is ArrayImpl else operand_of(y, context)
        """,
    tables="plain", key="a.signature, b.signature", operands="[a._buffer, b._buffer]",
    given="(x, y)", forgotten="a = b", missed="general.on_miss(context, (x, y), {})",
)  # fmt: skip
_of_any = cached_call(
    "wrapper", "x=ABSENT, /, *others, **named", factory=_FACTORY,
    traced="""
        run = fun if context.promotes_freely else checked
        try:
            return run(**named) if x is ABSENT else run(x, *others, **named)
        except REFUSALS as error:
            general.check_hashable(error, (x, *others), named)
            raise
        """,
    lookup="""
        count = len(others)
        if not count and type(x) is ArrayImpl:
            key, operands = x.signature, [x._buffer]
        elif alone and type(x) is ArrayImpl:
            key, operands = x.signature, [x._buffer]
            if count == 1:
                (y,) = others
                key = (key, y, type(y))
            elif count == 2:
                y, z = others
                key = (key, y, z, type(y), type(z))
            else:
                key = (key, *others, *map(type, others))
        elif count == 1 and type(x) is type(y := others[0]) is ArrayImpl:
            key, operands = (x.signature, y.signature), [x._buffer, y._buffer]
        else:
            key, operands = [], []
            for place, a in enumerate((x, *others)):
                kind = type(a)
                if kind is not ArrayImpl:
                    if place in statics or a is None:
                        key += (kind, a)
                        continue
                    if kind is list or kind is tuple:
                        gather_items(a, key, operands)
                        continue
                    a = operand_of(a, context)
                key.append(a.signature)
                operands.append(a._buffer)
            key = key[0] if len(key) == 1 else tuple(key)
        if named:
            count = len(named)
            if count == 1:
                ((name, value),) = named.items()
                key = (key, name, value, type(value))
            elif count == 2:
                (name, value), (other, y) = named.items()
                key = (key, name, other, value, y, type(value), type(y))
            elif count == 3:
                (name, value), (other, y), (third, z) = named.items()
                key = (key, name, other, third, value, y, z, type(value), type(y), type(z))
            else:
                values = named.values()
                key = (key, *named, *values, *map(type, values))
        """,
    tables="plain", given="(x, *others)", forgotten="operands = a",
    missed="general.on_miss(context, () if x is ABSENT else (x, *others), named)",
    ABSENT=_ABSENT, REFUSALS=_REFUSALS, gather_items=_gather,
)  # fmt: skip
_BY_COUNT = {1: _of_one, 2: _of_two}


class _Calls:
    """The programs of one function, by their arguments.

    `plain` has those that the least work finds, by the context's key and then by the signatures: of
    calls with arrays, and static keywords. `alone` says that only the first positional argument can be
    an array. `check` is what `as_method` was given.
    """

    __slots__ = (
        "alone", "check", "converted", "forwards", "fun", "kept", "plain", "positional", "programs",
        "static_names", "static_positions",
    )  # fmt: skip

    def __init__(
        self, fun: Callable, static: Sequence[str], converted: Sequence[str], forwards: bool
    ):
        self.forwards = forwards
        code = inspect.unwrap(fun).__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        unknown = {*static, *converted} - set(names)
        if unknown:
            raise TypeError(f"{fun.__name__} has no parameters {unknown}")
        self.fun = _checked_once(fun)
        self.static_names, self.converted = frozenset(static), frozenset(converted)
        self.positional = positional = names[: code.co_argcount]
        self.static_positions = frozenset(i for i, name in enumerate(positional) if name in static)
        varies = bool(code.co_flags & inspect.CO_VARARGS)
        self.alone = not varies and self.static_positions == frozenset(range(1, len(positional)))
        self.programs = ProgramCache()
        self.kept = ProgramCache()
        self.plain = self.kept.tables
        self.check: Callable[[ArrayImpl], None] | None = None

    def with_check(self, check: Callable[[ArrayImpl], None]) -> _Calls:
        """The calls of a method: its programs are the function's."""
        calls = copy.copy(self)
        calls.kept = ProgramCache()
        calls.plain = calls.kept.tables
        calls.check = check
        return calls

    def on_miss(self, context: Any, args: tuple, kwargs: dict) -> Any:
        """A call outside of any trace that `plain` does not have."""
        if self.check is not None and args and type(args[0]) is ArrayImpl:
            self.check(args[0])
        if context.settings.disable_jit:
            return self.fun(*args, **kwargs)
        arrays: list[ArrayImpl] = []
        key: list[Any] = []
        try:
            for place, x in enumerate(args):
                _note(x, place in self.static_positions, arrays, key)
            for name, x in sorted(kwargs.items()):
                key.append(name)
                _note(x, name in self.static_names, arrays, key)
            full: tuple | None = tuple(key)
            entry = self.programs.get(full)
        except (TypeError, ValueError):  # something that is no array, or cannot be hashed
            full = None
        except OverflowError:
            self._check_numbers(args, kwargs)
            raise
        if full is None:  # outside of the handler: let `fun` say so, with no other error as context
            return self._run(args, kwargs)
        if entry is None:
            if len(arrays) > MOST_ARRAYS:
                return self.fun(*args, **kwargs)
            entry = self._compiled(full, args, kwargs, arrays)
            if entry is None:  # let it meet the values as they were given, and speak of them
                return self.fun(*args, **kwargs)
        elif self.check is not None:  # the program may be that of a call of the function
            self._keep(entry, args, kwargs, arrays)
        program, out_tree = entry
        if type(out_tree) is int:  # the number of the operand that is the result
            given = arrays[out_tree]
            if any(x is given for x in tree_util.tree_leaves((args, kwargs))):
                return given
            out_tree = None
        outs = program(arrays)
        return outs[0] if out_tree is None else out_tree.unflatten(outs)

    def _check_numbers(self, args: tuple, kwargs: dict) -> None:
        """OverflowError for a number that its dtype does not hold, with the argument's name."""
        positions, names = self.static_positions, self.static_names
        given = (
            tuple([None if place in positions else x for place, x in enumerate(args)]),
            {name: None if name in names else x for name, x in kwargs.items()},
        )
        leaves, tree = tree_util.flatten(given)
        for index, leaf in enumerate(leaves):
            aval_of_argument(leaf, self.fun, tree, index, "jit")

    def _run(self, args: tuple, kwargs: dict) -> Any:
        """Run the function as it is, unless a flag has no hash.

        If it fails and another static argument has none, the error says so.
        """
        given = {**dict(zip(self.positional, args, strict=False)), **kwargs}
        static = sorted((self.static_names & given.keys()) - self.converted - _CONVERTED)
        unhashable = {name: error for name in static if (error := _hash_error(given[name]))}
        called = self.fun.__name__.lstrip("_")
        if unhashable:
            parameters = inspect.signature(self.fun).parameters
            for name, error in unhashable.items():
                if isinstance(parameters[name].default, bool):
                    raise non_hashable(name, called, given[name], error)
        try:
            return self.fun(*args, **kwargs)
        except (AttributeError, IndexError, TypeError, ValueError):
            for name, error in unhashable.items():
                raise non_hashable(name, called, given[name], error) from None
            raise

    def suit_jit(self, args: tuple, kwargs: dict) -> bool:
        """Whether static arguments can be hashed, and the others are arrays, or lists of them, or None."""
        given = [(x, place in self.static_positions) for place, x in enumerate(args)]
        given += [(x, name in self.static_names) for name, x in kwargs.items()]
        return all(
            _can_be_static(x)
            if static
            else _is_plain(x) or (type(x) in (list, tuple) and all(map(_is_array, x)))
            for x, static in given
        )

    def check_hashable(self, error: Exception, args: tuple, kwargs: dict) -> None:
        """Raise the error of a static argument that is a tracer, where one caused this error."""
        cause = error.error if isinstance(error, NonHashableStatic) else error
        given = {**dict(zip(self.positional, args, strict=False)), **kwargs}
        traced = [
            name
            for name in given
            if name in self.static_names
            and any(isinstance(x, Tracer) for x in tree_util.tree_leaves(given[name]))
        ]
        for name in traced:
            if name not in self.converted:
                function = self.fun.__name__.lstrip("_")
                raise non_hashable(name, function, given[name], cause) from None
        if traced and cause is not error:
            raise cause from None

    def _compiled(self, full, args, kwargs, arrays) -> tuple | None:
        try:
            entry = self._compile(args, kwargs, arrays)
        except Exception as error:
            if any(a.aval.dtype == dtypes.float0 for a in arrays):
                raise float0_error(self.fun.__name__.lstrip("_")) from error
            if isinstance(error, TypeError):
                return None
            raise
        self.programs[full] = entry
        self._keep(entry, args, kwargs, arrays)
        return entry

    def _keep(self, entry, args, kwargs, arrays) -> None:
        """Let the wrapper find the program by itself, if it looks for calls like this."""
        program, out_tree = entry
        if type(out_tree) is int:
            return
        key = self._plain_key(args, kwargs, arrays)
        if key is not None and program.simple:
            self.kept[key] = entry_of(program, out_tree)

    def _compile(self, args: tuple, kwargs: dict, arrays: list[ArrayImpl]) -> tuple:
        """The program for these arguments, which are the arrays but for the static ones."""
        fun = self.fun
        statics: dict = {i: args[i] for i in self.static_positions if i < len(args)}
        statics.update((name, kwargs[name]) for name in self.static_names & kwargs.keys())
        statics = {place: x for place, x in sorted(statics.items(), key=_order)
                   if type(x) is not ArrayImpl}  # fmt: skip
        dynamic = tuple([x for i, x in enumerate(args) if i not in statics])
        named = {name: x for name, x in kwargs.items() if name not in statics}
        in_tree = tree_util.tree_structure((dynamic, named))
        avals = tuple([a.aval for a in arrays])
        traced = trace_function(
            "library", fun, in_tree, avals, statics=statics.items(), hoisted=None
        )
        program = program_for(traced.closed, fun.__name__, arrays, keep_unused=True)
        if traced.out_tree != LEAF:
            return program, traced.out_tree
        jaxpr = traced.closed.jaxpr
        forwarded = self.forwards and jaxpr.outvars[0] in jaxpr.invars
        return program, jaxpr.invars.index(jaxpr.outvars[0]) if forwarded else None

    def _plain_key(self, args, kwargs, arrays) -> Any:
        """The key by which a wrapper looks for a call like this; None if it does not."""
        kinds = [type(x) for x in kwargs.values()]
        if not _NO_KEYS.isdisjoint(kinds):
            return None
        if any(x is not None and name not in self.static_names for name, x in kwargs.items()):
            return None
        key = self._plain_positions(args, arrays)
        if key is None or not kwargs:
            return key
        return (key, *kwargs, *kwargs.values(), *kinds)

    def _plain_positions(self, args, arrays) -> Any:
        """Return the key and operands of a call by its positional arguments alone."""
        if args and type(args[0]) is ArrayImpl and (self.alone or len(args) == 1):
            others = args[1:]
            kinds = [type(x) for x in others]
            if not _NO_KEYS.isdisjoint(kinds):
                return None
            return (arrays[0].signature, *others, *kinds) if others else arrays[0].signature
        key: list[Any] = []
        rest = iter(arrays)
        for place, x in enumerate(args):
            if type(x) is not ArrayImpl and (place in self.static_positions or x is None):
                if type(x) in _SIGNED:
                    return None
                key += (type(x), x)
            elif type(x) in _PLAIN or isinstance(x, np.generic):
                key.append(next(rest).signature)
            elif type(x) in (list, tuple):
                operands: list[Any] = []
                try:
                    _gather(x, key, operands)
                except AttributeError:  # something in it is no array
                    return None
                for _ in operands:
                    next(rest)
            else:
                return None
        return key[0] if len(key) == 1 else tuple(key)


def _hash_error(x: Any) -> TypeError | None:
    try:
        hash(x)
    except TypeError as error:
        return error
    return None


def _order(place: tuple[int | str, Any]) -> tuple:
    """Sort positions before names."""
    return isinstance(place[0], str), place[0]


def _note(x: Any, is_static: bool, arrays: list, key: list) -> None:
    """An argument, in the key of its call, and among the arrays if it is some."""
    kind = type(x)
    if kind is ArrayImpl:
        arrays.append(x)
        key.append(x.signature)
    elif is_static or x is None:
        key.append(kind)
        key.append(repr(x) if kind in _SIGNED else x)
    elif kind in NUMBERS:
        x = scalar_array(x)
        arrays.append(x)
        key.append(x.signature)
    else:
        _add(x, arrays, key)


def _splitting(fun: Callable) -> Callable:
    """`fun`, whose result is split as its argument `out_sharding` says."""

    name = fun.__name__
    name = f"jnp.{name}" if fun.__module__.startswith("minijax.numpy.") else name

    @functools.wraps(fun)
    def split(*args, **kwargs):
        where = kwargs.get("out_sharding")
        out = fun(*args, **kwargs)
        return out if where is None else hooks.placed_as(out, where, name)

    return split


def _concrete(x: Any) -> ArrayImpl:
    """A number, an array or an object that becomes one, as an array of ours."""
    if type(x) is ArrayImpl:
        return x
    return as_array(x.__jax_array__() if hasattr(x, "__jax_array__") else x)


def _add(x: Any, arrays: list, key: list) -> None:
    """An argument that is neither a number nor an array of ours."""
    if isinstance(x, (np.ndarray, np.generic)):
        x = small_array(x) if type(x) is np.ndarray else as_operand(x)
        arrays.append(x)
        key.append(x.signature)
        return
    leaves, tree = tree_util.flatten(x)
    if tree != LEAF:
        key.append(tree)
    for leaf in leaves:
        leaf = _concrete(leaf)
        arrays.append(leaf)
        key.append(leaf.signature)
