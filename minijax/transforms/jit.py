"""`jit`: calling a program, and compiling one.

`jit_p` is the primitive that calls a program. `jit` returns a `PjitFunction`, whose calls go

- under another trace, to `_bind`: `jit_p` is applied to the program
- eagerly, if there is an entry for arguments of these types, to the compiled program, after one dict
  lookup: see `cached_calls`
- eagerly otherwise, to `_call`, which makes that entry: `_compile` traces the function, lowers the
  program and compiles it

Both `_bind` and `_compile` take the program from `_traced`, which keeps it.
"""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from minijax import monitoring, tree_util
from minijax.arguments.calls import ArgumentMarks, Call, chosen_device
from minijax.arguments.functions import (
    aval_of_argument,
    avals_of,
    check_callable,
    fun_name,
    named_after,
)
from minijax.arrays.array import ArrayImpl, as_array, as_operand
from minijax.arrays.dispatch import Program, concrete, is_large_constant, program_for
from minijax.config import Context, local
from minijax.core.avals import opaque_types
from minijax.core.caches import ProgramCache, kept_with
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.primitive import CallPrimitive
from minijax.core.source import capture, joined
from minijax.core.staging import recording_trace
from minijax.core.trace import Tracer, check_alive, eval_trace
from minijax.runtime.platforms import Device
from minijax.tracebacks import is_internal
from minijax.transforms.cached_calls import CACHE_MISS_ERRORS, cached_call, entry_of, gather
from minijax.transforms.call_rules import calls_program
from minijax.transforms.tracing import Traced, close_over, trace_function

__all__ = ["PjitFunction", "jit", "jit_p", "without_large_constants"]

# -- the primitive --------------------------------------------------------------------------------

jit_p = CallPrimitive("jit")
_DEFAULTS = {  # of params, which are printed if they have another value
    "donated_invars": (), "keep_unused": False, "inline": False, "compiler_options_kvs": (),
    "device": None, "in_shardings": None, "out_shardings": None,
}  # fmt: skip
_OPTIONS = {  # by param: the argument of `lower_program` that it is
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
        for key, option in _OPTIONS.items()
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
    b.location = b.place(joined(b.scope.rstrip("/"), f"jit({name})"))
    return b.call_jaxpr(jaxpr, name, *operands)


def _derived(params: dict, made: ClosedJaxpr, outs: Any, ins: Sequence[bool] | None) -> dict:
    """Return the params for a derived program: it donates the arguments that it still takes."""
    donated = params["donated_invars"] if ins is not None else ()
    donated = tuple(d for d, kept in zip(donated, ins or (), strict=False) if kept)
    return {**params, "jaxpr": made, "donated_invars": donated}


calls_program(jit_p, _derived)


def without_large_constants(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Make leading arguments of large constants, which are not written into a module."""
    return closed.derive("large", lambda: close_over(closed, is_large_constant))


# -- the function that jit gives ------------------------------------------------------------------


class _Caches:
    """The programs of one function under one set of options; shared by equal `jit` calls."""

    __slots__ = ("called", "fast", "programs", "readers", "traces")

    def __init__(self):
        self.called = ProgramCache()  # True for each key of `programs` that was called
        self.traces = ProgramCache()  # `Traced` by structure, static values and avals of arguments
        self.programs = ProgramCache()  # compiled, by structure, static values and signatures
        self.fast = ProgramCache()  # entries for `__call__`, by what `_key` or a reader returns
        self.readers: dict[Any, Callable | None] = {}  # by structure of frequent arguments

    def clear(self) -> None:
        for cache in (self.traces, self.fast, self.programs, self.called):
            cache.clear()


_P = ParamSpec("_P")
_R = TypeVar("_R")


_OFTEN = 32  # calls after which a reader for the structure of the arguments is made


class PjitFunction(Generic[_P, _R]):
    """A function that is traced and compiled for each new type of its arguments."""

    def __init__(self, fun: Callable, options: dict[str, Any]):
        named_after(fun, self)  # first: it copies what `fun` holds, which may be a jit's
        self.__wrapped__ = self._fun = fun
        self._options = options
        self._marks = ArgumentMarks(fun, options)
        self._has_static = self._marks.has_static
        self._asked = hooks.asked_shardings(options["in_shardings"], options["out_shardings"])
        asked = options["compiler_options"] or {}
        if not isinstance(asked, Mapping):
            raise TypeError(f"compiler_options must be a dict of XLA's options; got {asked!r}.")
        self._params = {
            "inline": options["inline"],
            "keep_unused": bool(options["keep_unused"]),
            "compiler_options_kvs": tuple(sorted(asked.items())),
            "device": options["device"],
        }
        key = (*self._marks.key, *self._params.values(), self._asked)
        self._caches = kept_with(fun, ("jit", key), _Caches)
        self._fast, self._programs = self._caches.fast.tables, self._caches.programs
        self._looked_up = 0  # calls since `_read` was chosen
        self._read: Callable | None = None

    if TYPE_CHECKING:  # slots, which `core.hooks` describes
        trace: Callable[..., Any]
        lower: Callable[..., Any]
        eval_shape: Callable[..., Any]

        def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    else:
        __call__ = cached_call(
            "__call__", "self, /, *args, **kwargs",
            traced="""
                try:
                    return self._bind(context, args, kwargs)
                except Exception as error:
                    hide_frames(error)
                    raise
                """,
            lookup="""
                if self._read is not None:
                    try:
                        key, operands = self._read(args, kwargs)
                    except CACHE_MISS_ERRORS:
                        key, operands = self._key(context, args, kwargs)
                elif len(args) != 1 or type(args[0]) is not ArrayImpl or kwargs or self._has_static:
                    key, operands = self._key(context, args, kwargs)
                else:
                    (x,) = args
                    key, operands = x.signature, [x._buffer]
                """,
            tables="self._fast", given="(args, kwargs)", forgotten="operands = x",
            missed="self._call(context, args, kwargs)",
        )  # fmt: skip

    def _key(self, context, args, kwargs) -> tuple[Any, list]:
        """Return the key of a cached call and the operands; raise one of CACHE_MISS_ERRORS if it has none."""
        marks = self._marks
        statics = marks.static_positions(len(args)) if marks.static_argnums else ()
        self._looked_up += 1
        if self._looked_up == _OFTEN:
            self._looked_up = 0
            self._read = hooks.call_reader(
                self._caches.readers, args, kwargs, statics, marks.static_argnames
            )
        key, operands = [], []
        for n, x in enumerate(args):
            if n in statics:
                key.append(type(x))
                key.append(x)
            elif type(x) is ArrayImpl:
                key.append(x.signature)
                operands.append(x._buffer)
            else:
                gather(x, key, operands, context)
        for name, x in sorted(kwargs.items()):  # as programs take them
            key.append(name)
            if name in marks.static_argnames:
                key.append(type(x))
                key.append(x)
            elif type(x) is ArrayImpl:
                key.append(x.signature)
                operands.append(x._buffer)
            else:
                gather(x, key, operands, context)
        return (key[0] if len(key) == 1 else tuple(key)), operands

    def _call(self, context, args, kwargs):
        """Call it eagerly where there is no entry for arguments of these types yet."""
        if context.settings.disable_jit:
            return self._fun(*args, **kwargs)
        call = self._marks.split(args, kwargs) if self._has_static else None
        leaves, tree = (
            tree_util.flatten((args, kwargs)) if call is None else (call.leaves, call.in_tree)
        )
        if not opaque_types.isdisjoint(map(type, leaves)):
            return self._bind(context, args, kwargs)
        if self._asked is not None:
            self._asked.check(call or self._marks.split(args, kwargs))
        arrays = [a if type(a) is ArrayImpl else self._as_array(a, args, kwargs) for a in leaves]
        statics = () if call is None else call.statics
        key = (tree, statics, *[a.signature for a in arrays])
        self._caches.called[key] = True
        entry = self._programs.get(key)
        if entry is None:
            entry = self._compile(call or self._marks.split(args, kwargs), arrays, key)
        program, out_tree = entry
        if type(program) is Program and program.simple:
            if call is None:  # of the arrays: values of the host would be copied again
                args, kwargs = tree.unflatten(arrays)
            fast = self._caches.fast
            with contextlib.suppress(*CACHE_MISS_ERRORS):
                fast[self._key(context, args, kwargs)[0]] = entry_of(program, out_tree)
            if self._read is not None:
                with contextlib.suppress(*CACHE_MISS_ERRORS):
                    fast[self._read(args, kwargs)[0]] = entry_of(program, out_tree, often=True)
        return out_tree.unflatten(program(arrays))

    def _as_array(self, x: Any, args: tuple, kwargs: dict) -> ArrayImpl:
        """Return a leaf of the arguments of an eager call as an array."""
        if isinstance(x, Tracer):
            return concrete(x)
        try:
            return as_operand(x)
        except (TypeError, OverflowError):
            call = self._marks.split(args, kwargs)
            for index, leaf in enumerate(call.leaves):
                aval_of_argument(
                    leaf, self._fun, call.in_tree, index, "jit", as_array, call.statics
                )
            raise

    def _compile(self, call: Call, arrays: list, key: tuple) -> tuple:
        """Return what is called with these arguments as arrays, and the structure of its results."""
        traced = self._traced(call)
        opaque = not opaque_types.isdisjoint(map(type, traced.consts))
        if opaque or hooks.as_arrays(traced.closed) is not None:
            return (lambda _: self._applied(call, traced)), traced.out_tree
        for c in traced.consts:
            if isinstance(c, Tracer):  # of a trace that has ended, or of another thread's
                check_alive(c)
        asked = {} if self._asked is None else self._asked.params(call, traced.out_tree)
        params = {**self._params, "donated_invars": call.donated, **asked}
        program = program_of(traced.closed, traced.name, params, arrays)
        if traced.consts:
            consts = [*map(as_operand, traced.consts)]
            return (lambda given: program([*consts, *given])), traced.out_tree
        entry = self._programs[key] = (program, traced.out_tree)
        return entry

    def _traced(self, call: Call) -> Traced:
        """Return the program for arguments of these types; traced once, also by several threads."""
        avals = tuple(avals_of("jit", self._fun, call.leaves, call.in_tree, call.statics))
        key = (call.in_tree, call.statics, avals)
        return self._caches.traces.find(key, partial(self._trace, call, avals, key), _is_lasting)

    def _trace(self, call: Call, avals: tuple, key: tuple) -> Traced:
        fun = self._fun
        if local.context.settings.explain_cache_misses:
            hooks.explain_cache_miss(fun, key, self._caches.traces)
        if not isinstance(fun_name(fun), str):
            raise TypeError(
                f"The __name__ of a function under jit must be a string: got {fun_name(fun)!r} of "
                f"type {type(fun_name(fun))}, of {fun}."
            )
        alone = local.context.trace is eval_trace  # and no part of another program
        began = monitoring.begin_stage(monitoring.TRACED, fun_name(fun), alone)
        wrap = self._asked and partial(self._asked.constrain, call)
        traced = trace_function(
            "jit", fun, call.in_tree, avals, statics=call.static_values(), wrap=wrap
        )
        if hasattr(fun, "__code__") and is_internal(fun.__code__):
            where = capture()
            for eqn in traced.closed.jaxpr.eqns:  # which are kept for calls from other lines
                eqn.source = None if eqn.source == where else eqn.source
        monitoring.end_stage(monitoring.TRACED, began, fun_name(fun), alone)
        hooks.note_tracing(self, call, avals, time.time() - began)
        return traced

    def _bind(self, context: Context, args: tuple, kwargs: dict) -> Any:
        """Call it under another trace."""
        if context.settings.disable_jit:
            return self._fun(*args, **kwargs)
        call = self._marks.split(args, kwargs)
        if self._asked is not None:
            self._asked.check(call)
        if self._params["compiler_options_kvs"] and recording_trace() is not None:
            raise ValueError(
                "`compiler_options` can only be passed to top-level `jax.jit`. Got compiler_options="
                f"{dict(self._params['compiler_options_kvs'])} specified on a nested jit with name: "
                f"{fun_name(self._fun)}. Give them to the outermost jit."
            )
        traced = self._traced(call)
        return traced.out_tree.unflatten(self._applied(call, traced))

    def _applied(self, call: Call, traced: Traced) -> list[Any]:
        """Return the leaves of the results of `jit_p`, applied to the program."""
        closed, large = without_large_constants(traced.closed)
        outer = [*large, *traced.consts]
        donated = (False,) * len(outer) + call.donated if call.donated else ()
        hooks.check_arguments("jit", call.leaves, self._fun, call.in_tree, outer, call.statics)
        params = {"jaxpr": closed, "name": traced.name, "donated_invars": donated, **self._params}
        return jit_p.bind(*outer, *call.leaves, **params)

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
        self._caches.clear()

    def _cache_size(self) -> int:
        return len(self._caches.called)


for _stage in ("trace", "lower", "eval_shape", "explain_cache"):
    hooks.method(_stage, PjitFunction, _stage)


def _is_lasting(traced: Traced) -> bool:
    """Whether other calls may use a program, by the types of what it closes over."""
    return all(map(hooks.is_lasting, traced.consts))


_NOT_GIVEN = object()


@overload
def jit(
    fun: Callable[_P, _R], /, *, in_shardings: Any = None, out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None, keep_unused: bool = False,
    device: Device | None = None, backend: str | None = None, inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> PjitFunction[_P, _R]: ...  # fmt: skip
@overload
def jit(
    *, in_shardings: Any = None, out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None, keep_unused: bool = False,
    device: Device | None = None, backend: str | None = None, inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Callable[[Callable[_P, _R]], PjitFunction[_P, _R]]: ...  # fmt: skip
def jit(
    fun: Any = _NOT_GIVEN, /, *, in_shardings: Any = None, out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None, keep_unused: bool = False,
    device: Device | None = None, backend: str | None = None, inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
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
    options = {
        "in_shardings": in_shardings, "out_shardings": out_shardings,
        "static_argnums": static_argnums, "static_argnames": static_argnames,
        "donate_argnums": donate_argnums, "donate_argnames": donate_argnames,
        "keep_unused": keep_unused, "inline": inline, "compiler_options": compiler_options,
        "device": chosen_device(device, backend, in_shardings, out_shardings),
    }  # fmt: skip
    if fun is _NOT_GIVEN:
        return lambda f: jit_of(f, options)
    return jit_of(fun, options)


def jit_of(fun: Callable, options: dict[str, Any]) -> PjitFunction:
    check_callable(fun)
    return PjitFunction(fun, options)
