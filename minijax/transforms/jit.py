"""`jit`: calling a sub-program, and compiling one.

`jit_p` is the primitive that calls a program; each interpreter transforms the program once and
calls the result. `PjitFunction` is what `jit` gives: on a cached call it costs one dict lookup and
the execution; see `entries`.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from minijax import monitoring, tree_util
from minijax.arrays.array import ArrayImpl, as_array, lent_array
from minijax.arrays.dispatch import (
    Program,
    concrete,
    is_large_constant,
    program_for,
)
from minijax.config import Context, local
from minijax.core.array import Array
from minijax.core.avals import AbstractValue, ShapedArray, get_aval, opaque_types
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.primitive import CallPrimitive
from minijax.core.source import capture
from minijax.core.staging import recording_trace, trace_to_jaxpr
from minijax.core.trace import Tracer, check_alive, eval_trace, is_constant
from minijax.runtime import platforms
from minijax.runtime.platforms import Device
from minijax.runtime.released import released
from minijax.tracebacks import hide_frames, is_internal
from minijax.transforms.arguments import (
    aval_of_argument,
    check_callable,
    debug_info,
    fun_name,
    named_after,
    place_of,
    resolve_static,
)
from minijax.transforms.cached_calls import (
    CACHE_MISS_ERRORS,
    NUMBERS,
    entry_of,
    gather,
    new_array,
    operand_of,
)
from minijax.transforms.call_rules import calls_program
from minijax.transforms.codegen_calls import ARRAY, HOST, STATIC, reader

__all__ = ["PjitFunction", "close_over_tracers", "jit", "jit_p", "without_large_constants"]

# -- the primitive --------------------------------------------------------------------------------

jit_p = CallPrimitive("jit")
_DEFAULTS = {
    "donated_invars": (), "keep_unused": False, "inline": False, "compiler_options_kvs": (),
    "device": None, "in_shardings": None, "out_shardings": None,
}  # fmt: skip
_ASKED = {
    "donated_invars": "donated", "compiler_options_kvs": "options", "keep_unused": "keep_unused",
    "device": "device", "in_shardings": "in_shardings", "out_shardings": "out_shardings",
}  # fmt: skip
jit_p.printed = lambda params: {
    name: value for name, value in params.items() if _DEFAULTS.get(name, params) != value
}


@jit_p.impl
def _(*args, jaxpr, name, **params):
    arrays = [a if type(a) is ArrayImpl else concrete(a) for a in args]
    return program_of(jaxpr, name, params, arrays)(arrays)


def program_of(jaxpr, name, params, arrays) -> Program:
    chosen = {
        option: params[key]
        for key, option in _ASKED.items()
        if params.get(key, _DEFAULTS[key]) != _DEFAULTS[key]
    }
    return program_for(jaxpr, name, arrays, **chosen)


@jit_p.stage
def _(trace, args, params):
    if params["inline"]:
        closed = params["jaxpr"]
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)
    return trace.record(jit_p, args, params)


@jit_p.lower
def _(b, *operands, jaxpr, name, **params):
    return b.call_jaxpr(jaxpr, name, *operands)


def _derived(params: dict, made: ClosedJaxpr, outs: Any, ins: Sequence[bool] | None) -> dict:
    """The params for a program made of the one called: what is donated, if it takes the same."""
    donated = params["donated_invars"] if ins is not None else ()
    donated = tuple(d for d, kept in zip(donated, ins or (), strict=False) if kept)
    return {**params, "jaxpr": made, "donated_invars": donated}


calls_program(jit_p, _derived)


def close_over(closed: ClosedJaxpr, wanted: Callable[[Any], bool]) -> tuple[ClosedJaxpr, list[Any]]:
    """Make leading arguments of the constants that `wanted` picks; gives those constants too."""
    pairs = list(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    picked = [(v, c) for v, c in pairs if wanted(c)]
    if not picked:
        return closed, []
    others = [(v, c) for v, c in pairs if not wanted(c)]
    jaxpr = closed.jaxpr.replace(
        constvars=[v for v, _ in others], invars=[*(v for v, _ in picked), *closed.jaxpr.invars]
    )
    return ClosedJaxpr(jaxpr, [c for _, c in others]), [c for _, c in picked]


def close_over_tracers(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Make leading arguments of those constants that are tracers of outer traces, or no arrays."""
    return close_over(closed, lambda c: not is_constant(c))


def without_large_constants(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Make leading arguments of large constants, which are not to be written into a program."""
    return closed.derive("large", lambda: close_over(closed, is_large_constant))


# -- the function that jit gives ------------------------------------------------------------------


class Static:
    """The value of a static argument in a cache key: equal only to one of the same type."""

    __slots__ = ("hash", "value")

    def __init__(self, value: Any, name: str, function: str):
        self.value = value
        try:
            self.hash = hash((type(value), value))
        except TypeError as error:
            raise ValueError(
                "Non-hashable static arguments are not supported, and are used in a jitted "
                f"function: argument {name} of {function} is static and has the value {value!r} of "
                f"type {type(value)}: {type(error).__name__}: {error}. Pass a tuple for a list, or "
                "do not mark the argument static."
            ) from None

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        return type(self.value) is type(other.value) and self.value == other.value


class _Traced:
    """One tracing of a function: its program, how its results are put together."""

    __slots__ = ("closed", "consts", "name", "out_tree")

    def __init__(self, closed, consts, out_tree, name):
        self.closed: ClosedJaxpr = closed
        self.consts: list[Any] = consts  # tracers of outer traces; passed as leading arguments
        self.out_tree = out_tree
        self.name = name


class _Cache:
    """What is known of one function under one set of options; shared by equal `jit` calls."""

    __slots__ = ("__weakref__", "fast", "locks", "programs", "readers", "traces")

    def __init__(self):
        self.traces: dict[tuple, _Traced] = {}
        self.fast: dict[tuple, tuple] = {}  # for calls with arrays only
        self.programs: dict[tuple, tuple] = {}
        self.readers: dict[Any, Callable | None] = {}  # by structures of arguments met often
        self.locks: dict[tuple, Any] = {}

    def clear(self) -> None:
        for kept in (self.traces, self.fast, self.programs, self.readers):
            kept.clear()


_caches: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_all_caches: weakref.WeakSet = weakref.WeakSet()


def cache_for(fun: Callable, options: tuple) -> _Cache:
    try:
        by_options = _caches.get(fun)
        if by_options is None:
            by_options = _caches[fun] = {}
    except TypeError:  # cannot be hashed or referred to weakly: no sharing
        by_options = {}
    cache = by_options.get(options)
    if cache is None:
        cache = by_options[options] = _Cache()
        _all_caches.add(cache)
    return cache


def clear_jit_caches() -> None:
    for cache in list(_all_caches):
        cache.clear()


class Call:
    """The arguments of one call, taken apart."""

    __slots__ = ("donated", "in_tree", "leaves", "name", "named", "static_kwargs", "statics")


_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Static:
    """Stands for a static argument among the leaves of a call."""


_STATIC = _Static()
_KINDS = {ArrayImpl: ARRAY, np.ndarray: HOST, **dict.fromkeys(NUMBERS, HOST), _Static: STATIC}


def _operand(x: Any) -> tuple:
    """The signature and the buffer of a value of the host, as an operand of a call."""
    if type(x) is np.ndarray:
        lent = lent_array(x)
        if lent is not None:
            return lent
    x = operand_of(x, local.context)
    return x.signature, x._buffer


_OFTEN = 32  # calls after which their structure is worth lines of its own


class PjitFunction(Generic[_P, _R]):
    """A function that is traced and compiled for each new type of its arguments."""

    def __init__(self, fun: Callable, options: dict[str, Any]):
        named_after(fun, self)  # first: it copies what `fun` holds, which may be a jit's
        self.__wrapped__ = self._fun = fun
        self._options = options
        self._static_argnums, self._static_argnames = resolve_static(
            fun, options["static_argnums"], options["static_argnames"], "static"
        )
        self._donate_argnums, self._donate_argnames = resolve_static(
            fun, options["donate_argnums"], options["donate_argnames"], "donate"
        )
        _check_apart(self._static_argnames, self._donate_argnames)
        self._asked = hooks.asked_shardings(options["in_shardings"], options["out_shardings"])
        self._static_places: dict[int, Sequence[int]] = {}
        self._has_static = bool(self._static_argnums or self._static_argnames)
        asked = options["compiler_options"] or {}
        if not isinstance(asked, Mapping):
            raise TypeError(f"compiler_options must be a dict of XLA's options; got {asked!r}.")
        self._params = {
            "inline": options["inline"],
            "keep_unused": options["keep_unused"],
            "compiler_options_kvs": tuple(sorted(asked.items())),
            "device": options["device"],
        }
        key = (
            self._static_argnums, self._static_argnames, self._donate_argnums,
            self._donate_argnames, *self._params.values(), self._asked,
        )  # fmt: skip
        self._cache = cache_for(fun, key)
        self._fast, self._programs = self._cache.fast, self._cache.programs
        self._looked_up = 0  # calls since `_read` was chosen
        self._read: Callable | None = None

    if TYPE_CHECKING:  # slots, which `core.hooks` describes
        trace: Callable[..., Any]
        lower: Callable[..., Any]
        eval_shape: Callable[..., Any]

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        context = local.context
        try:
            if context.trace is not eval_trace:
                return self._bind(context, args, kwargs)
            try:
                if self._read is not None:
                    try:
                        key, operands = self._read(context.key, args, kwargs)
                    except CACHE_MISS_ERRORS:
                        key, operands = self._key(context, args, kwargs)
                elif len(args) != 1 or type(args[0]) is not ArrayImpl or kwargs or self._has_static:
                    key, operands = self._key(context, args, kwargs)
                else:
                    (x,) = args
                    key, operands = (context.key, x.signature), [x._buffer]
                execute, handlers, signature, many = self._fast[key]
            except CACHE_MISS_ERRORS:
                pass
            else:
                try:
                    next(released)
                    results = execute(operands).consume_with_handlers(handlers)
                except Exception as error:
                    hooks.check_executed(tree_util.tree_leaves((args, kwargs)), error)
                    raise
                if many is not None:
                    return many(results)
                out = new_array(ArrayImpl)
                (out._buffer,) = results
                out.signature = signature
                return out
            operands = x = None  # perhaps copies of large arrays of the host, which are made again
            # Outside of the handler: errors from here on have no other as context.
            return self._call(context, args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def _key(self, context, args, kwargs) -> tuple[tuple, list]:
        """By what a call finds its entry, and the operands; one of `CACHE_MISS_ERRORS` where it has no such."""
        self._looked_up += 1
        if self._looked_up == _OFTEN:
            self._write_out(args, kwargs)
        key, operands = [context.key], []
        statics = self._static_among(len(args)) if self._static_argnums else ()
        for n, x in enumerate(args):
            if n in statics:
                key.append(type(x))
                key.append(x)
            elif type(x) is ArrayImpl:
                key.append(x.signature)
                operands.append(x._buffer)
            else:
                gather(x, key, operands, context)
        for name, x in kwargs.items():
            key.append(name)
            if name in self._static_argnames:
                key.append(type(x))
                key.append(x)
            elif type(x) is ArrayImpl:
                key.append(x.signature)
                operands.append(x._buffer)
            else:
                gather(x, key, operands, context)
        return tuple(key), operands

    def _write_out(self, args: tuple, kwargs: dict) -> None:
        """Look up calls of the structure of this one, which are made often, by lines of their own."""
        self._looked_up = 0
        statics = self._static_among(len(args)) if self._static_argnums else ()
        leaves, tree = tree_util.flatten(
            (
                tuple([_STATIC if n in statics else x for n, x in enumerate(args)]),
                {n: _STATIC if n in self._static_argnames else x for n, x in kwargs.items()},
            )
        )
        self._read = None
        kinds = tuple([_KINDS.get(type(x)) for x in leaves])
        if None in kinds:
            return
        readers = self._cache.readers
        if (tree, kinds) not in readers:
            readers[tree, kinds] = reader(tree, kinds, _operand)
        self._read = readers[tree, kinds]

    def _static_among(self, count: int) -> Sequence[int]:
        """The numbers of the static arguments among so many."""
        found = self._static_places.get(count)
        if found is None:
            found = sorted({n % count for n in self._static_argnums if -count <= n < count})
            self._static_places[count] = found
        return found

    def _call(self, context, args, kwargs):
        """An eager call that is not simply of arrays met before."""
        if context.settings.disable_jit:
            return self._fun(*args, **kwargs)
        call = self._take_apart(args, kwargs) if self._has_static else None
        leaves, tree = (
            tree_util.flatten((args, kwargs)) if call is None else (call.leaves, call.in_tree)
        )
        if not opaque_types.isdisjoint(map(type, leaves)):
            return self._bind(context, args, kwargs)
        arrays = [a if type(a) is ArrayImpl else self._as_array(a, args, kwargs) for a in leaves]
        statics = () if call is None else call.statics
        key = (context.key, tree, statics, *[a.signature for a in arrays])
        entry = self._programs.get(key)
        if entry is None:
            entry = self._compile(call or self._take_apart(args, kwargs), arrays, key)
        program, out_tree = entry
        if type(program) is Program and program.simple:
            if call is None:  # not the values of the host, which would be copied again
                args, kwargs = tree.unflatten(arrays)
            with contextlib.suppress(*CACHE_MISS_ERRORS):
                self._fast[self._key(context, args, kwargs)[0]] = entry_of(program, out_tree)
            if self._read is not None:
                with contextlib.suppress(*CACHE_MISS_ERRORS):
                    key, _ = self._read(context.key, args, kwargs)
                    self._fast[key] = entry_of(program, out_tree, often=True)
        return out_tree.unflatten(program(arrays))

    def _as_array(self, x: Any, args: tuple, kwargs: dict) -> ArrayImpl:
        """A leaf of the arguments of an eager call as an array."""
        if isinstance(x, Tracer):
            return concrete(x)
        try:
            return as_array(x)
        except (TypeError, OverflowError):
            call = self._take_apart(args, kwargs)
            for index, leaf in enumerate(call.leaves):
                aval_of_argument(leaf, self._fun, call.in_tree, index, "jit", as_array)
            raise

    def _compile(self, call: Call, arrays: list, key: tuple) -> tuple:
        """Trace and compile for these arguments."""
        traced = self._traced(call)
        opaque = not opaque_types.isdisjoint(map(type, traced.consts))
        if opaque or hooks.as_arrays(traced.closed) is not None:
            return (lambda _: self._applied(call, traced)), traced.out_tree
        for c in traced.consts:
            if isinstance(c, Tracer):  # of a trace that has ended, or of another thread's
                check_alive(c)
        params = dict(self._params, donated_invars=call.donated)
        if self._asked is not None:
            params |= self._asked.params(call, traced.out_tree)
        program = program_of(traced.closed, traced.name, params, arrays)
        entry = (program, traced.out_tree)
        if traced.consts:
            return _with_constants(program, traced), traced.out_tree
        self._programs[key] = entry
        return entry

    def _take_apart(self, args: tuple, kwargs: dict) -> Call:
        """Split off the static arguments and flatten the others."""
        call = Call()
        call.statics, dynamic = (), args
        call.static_kwargs = {}
        call.name = function = fun_name(self._fun)
        if self._has_static:
            numbers = self._static_among(len(args))
            positional = [(n, Static(args[n], f"number {n}", function)) for n in numbers]
            named = [
                (name, Static(kwargs[name], name, function))
                for name in self._static_argnames
                if name in kwargs
            ]
            call.statics = (*positional, *named)
            dynamic = tuple(a for n, a in enumerate(args) if n not in numbers)
            static_names = {name for name, _ in named}
            call.static_kwargs = {name: kwargs[name] for name in static_names}
            kwargs = {k: v for k, v in kwargs.items() if k not in static_names}
        call.named = list(kwargs)
        call.leaves, call.in_tree = tree_util.flatten((dynamic, kwargs))
        call.donated = self._donated(args, dynamic, kwargs, call.statics)
        return call

    def _donated(self, args, dynamic, kwargs, statics) -> tuple[bool, ...]:
        if not (self._donate_argnums or self._donate_argnames):
            return ()
        static_numbers = {n for n, _ in statics if isinstance(n, int)}
        wanted = {n % len(args) for n in self._donate_argnums if -len(args) <= n < len(args)}
        numbers = [n for n in range(len(args)) if n not in static_numbers]
        marks = []
        for number, arg in zip(numbers, dynamic, strict=True):
            marks += [number in wanted] * len(tree_util.tree_leaves(arg))
        for name in sorted(kwargs):
            marks += [name in self._donate_argnames] * len(tree_util.tree_leaves(kwargs[name]))
        return tuple(marks) if any(marks) else ()

    def _traced(self, call: Call) -> _Traced:
        """The program for arguments of these types; traced at most once, also by many threads."""
        fun, tree = self._fun, call.in_tree
        avals = tuple(
            [
                aval_of_argument(x, fun, tree, i, "jit").for_argument(x)
                for i, x in enumerate(call.leaves)
            ]
        )
        cache = self._cache
        key = (local.context.key, call.in_tree, call.statics, avals)
        traced = cache.traces.get(key)
        if traced is not None:
            return traced
        lock = cache.locks.setdefault(key, threading.RLock())
        with lock:
            traced = cache.traces.get(key)
            if traced is None:
                if local.context.settings.explain_cache_misses:
                    hooks.explain_cache_miss(self._fun, key, cache.traces)
                traced = self._trace(call, avals)
                if all(map(hooks.is_lasting, traced.consts)):
                    cache.traces[key] = traced
        cache.locks.pop(key, None)
        return traced

    def _trace(self, call: Call, avals: tuple) -> _Traced:
        fun, in_tree = self._fun, call.in_tree
        found = []

        def flat(*leaves):
            if self._asked is not None:
                leaves = self._asked.constrain_arguments(leaves, call)
            args, kwargs = in_tree.unflatten(leaves)
            if call.statics:
                args = list(args)
                for number, static in call.statics:
                    if isinstance(number, int):
                        args.insert(number, static.value)
                kwargs = {**kwargs, **call.static_kwargs}
            outs, out_tree = tree_util.flatten(fun(*args, **kwargs))
            found.append(out_tree)
            check_results(outs, fun, out_tree, "jit")
            if self._asked is not None:
                outs = self._asked.constrain_results(outs, out_tree)
            return outs

        began = time.time()
        if not isinstance(fun_name(fun), str):
            raise TypeError(
                f"The __name__ of a function under jit must be a string: got {fun_name(fun)!r} of "
                f"type {type(fun_name(fun))}, of {fun}."
            )
        closed = trace_to_jaxpr(flat, avals, debug_info("jit", fun, in_tree))
        if hasattr(fun, "__code__") and is_internal(fun.__code__):
            where = capture()
            for eqn in closed.jaxpr.eqns:  # which are kept for calls from other lines
                eqn.source = None if eqn.source == where else eqn.source
        monitoring.record_stage(monitoring.TRACED, began, fun_name(fun))
        hooks.note_tracing(self, call, avals, time.time() - began)
        closed, tracers = close_over_tracers(closed)
        return _Traced(closed, tracers, found[0], fun_name(fun))

    def _bind(self, context: Context, args: tuple, kwargs: dict) -> Any:
        """The call within another trace: one equation, or the equations themselves if inline."""
        if context.settings.disable_jit:
            return self._fun(*args, **kwargs)
        call = self._take_apart(args, kwargs)
        if self._params["compiler_options_kvs"] and recording_trace() is not None:
            raise ValueError(
                "`compiler_options` can only be passed to top-level `jax.jit`: got "
                f"{dict(self._params['compiler_options_kvs'])} for {fun_name(self._fun)}, which is called within "
                "another traced function. Give them to the outermost jit."
            )
        traced = self._traced(call)
        return traced.out_tree.unflatten(self._applied(call, traced))

    def _applied(self, call: Call, traced: _Traced) -> list[Any]:
        """The leaves of the results of a call, by the primitive."""
        closed, large = without_large_constants(traced.closed)
        outer = [*large, *traced.consts]
        donated = (False,) * len(outer) + call.donated if call.donated else ()
        hooks.check_arguments("jit", call.leaves, self._fun, call.in_tree, outer)
        return jit_p.bind(
            *outer,
            *call.leaves,
            jaxpr=closed,
            name=traced.name,
            donated_invars=donated,
            **self._params,
        )

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<PjitFunction of {self._fun!r}>"

    def __reduce__(self):
        return jit_of, (self._fun, self._options)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._fun)

    def clear_cache(self) -> None:
        """Forget every program of this function."""
        self._cache.clear()

    def _cache_size(self) -> int:
        return len(self._cache.traces)


for _stage in ("trace", "lower", "eval_shape", "explain_cache"):
    hooks.method(_stage, PjitFunction, _stage)


def _check_apart(static: Sequence[str], donated: Sequence[str]) -> None:
    """ValueError if an argument is both static and donated."""
    both = set(static) & set(donated)
    if both:
        raise ValueError(
            f"static_argnames and donate_argnames cannot intersect: {sorted(both)} are in both. A "
            "static argument has no memory that a result could take over; leave it out of one."
        )


def _with_constants(program: Program, traced: _Traced) -> Callable:
    def call(arrays):
        return program([*map(as_array, traced.consts), *arrays])

    return call


def _aval_of_result(out: Any) -> AbstractValue:
    aval = get_aval(out)
    described = (
        isinstance(aval, ShapedArray) and hasattr(out, "aval") and not isinstance(out, Array)
    )
    if described or not isinstance(aval, AbstractValue):  # a symbolic zero, a variable of a jaxpr
        raise TypeError
    return aval


def check_results(outs: Sequence[Any], fun: Callable, out_tree: Any, transform: str) -> None:
    """TypeError unless every result is an array or a number; ValueError for a reference."""
    for index, out in enumerate(outs):
        try:
            aval = _aval_of_result(out)
        except TypeError:
            paths = tree_util.generate_key_paths(out_tree.unflatten(outs))
            path = tree_util.keystr(list(paths)[index][0])
            where = f" at output component {path}" if path else ""
            raise TypeError(
                f"function {place_of(fun)} traced for {transform} returned a value of type "
                f"{type(out)}{where}, which is not a valid JAX type: return arrays and numbers only."
            ) from None
        aval.check_result(fun, transform)


_NOT_GIVEN = object()


@overload
def jit(
    fun: Callable[_P, _R],
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> PjitFunction[_P, _R]: ...
@overload
def jit(
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Callable[[Callable[_P, _R]], PjitFunction[_P, _R]]: ...
def jit(
    fun: Any = _NOT_GIVEN,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compile `fun` with XLA when it is first called with arguments of new shapes and dtypes.

    - `static_argnums`, `static_argnames`: arguments that are compile-time constants; each new value
      (they must be hashable) is a new program
    - `donate_argnums`, `donate_argnames`: arguments whose memory the results may take over
    - `keep_unused`: whether the program keeps arguments that nothing reads
    - `in_shardings`, `out_shardings`: shardings of arguments and results, or prefixes of the
      pytrees
    - `inline`: whether to leave no call in a jaxpr; `compiler_options`: options of XLA

    TypeError unless `fun` is callable; ValueError for an argument that does not exist, and when a
    static value cannot be hashed. Source: XLA.

    >>> jax.jit(lambda x: x + 1)(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    if (device is not None or backend is not None) and not (in_shardings is out_shardings is None):
        raise ValueError(
            f"If backend or device is specified on jit, then "
            f"{'in_shardings' if in_shardings is not None else 'out_shardings'} should not be "
            "specified: it says where the function runs."
        )
    options = {
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "device": device_of(device, backend),
        "inline": inline,
        "compiler_options": compiler_options,
    }
    if fun is _NOT_GIVEN:
        return lambda f: jit_of(f, options)
    return jit_of(fun, options)


def jit_of(fun: Callable, options: dict[str, Any]) -> PjitFunction:
    check_callable(fun)
    return PjitFunction(fun, options)


def device_of(device: Any, backend: str | None) -> Any:
    if device is not None or backend is not None:
        warnings.warn(
            "The arguments device and backend of jit are deprecated: put the operands on a device, "
            "or give in_shardings.",
            DeprecationWarning,
            stacklevel=4,
        )
    if device is None and backend is not None:
        return platforms.backend(backend).local_devices()[0]
    return device
