"""The arguments of functions that transforms refer to. Everything here runs when a function is
transformed or traced, never on a cached call.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from types import CellType, CodeType, FunctionType
from typing import Any

from minijax import tree_util
from minijax.core.array import Array
from minijax.core.avals import AbstractValue, ShapedArray, get_aval
from minijax.core.jaxpr import DebugInfo

__all__ = [
    "LaterArguments", "argument_names", "as_ints", "as_names", "aval_of_argument", "avals_of",
    "check_at_most", "check_callable", "check_results", "debug_info", "fun_name",
    "infer_argnums_and_argnames", "named_after", "path_of", "place_of", "signature_of",
    "unnamed",
]  # fmt: skip


def fun_name(fun: Callable, default: str = "<unnamed function>") -> str:
    """The name that a function shows in errors and in programs."""
    name = getattr(fun, "__name__", None)
    if name is None:
        inner = getattr(fun, "func", None)
        name = fun_name(inner) if inner is not None else default
    return name


# What `lower` and the like of functions that are compiled as a whole are bound to them from; a
# function that is made of such a one does not have them.
stage_methods: set[Callable] = set()


def named_after(fun: Callable, wrapper: Any, name: str | None = None) -> Any:
    """`wrapper` with the name, signature and attributes of `fun`; a partial has its function's.

    Attributes that are named like methods of the wrapper are left out.
    """
    with contextlib.suppress(Exception):
        functools.update_wrapper(wrapper, fun, updated=())
        own = type(wrapper)
        for key, value in getattr(fun, "__dict__", {}).items():
            if not hasattr(own, key) and getattr(value, "__func__", None) not in stage_methods:
                wrapper.__dict__[key] = value
        wrapper.__wrapped__ = fun
    if name is not None or not hasattr(fun, "__name__"):
        wrapper.__name__ = wrapper.__qualname__ = fun_name(fun) if name is None else name
    return wrapper


def check_callable(fun: Any) -> None:
    """TypeError unless it is a function that returns its result."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun} of type {type(fun)}.")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(
            f"Expected a function, got a generator function: {fun}. Return the values instead of "
            "yielding them."
        )


MOST_ARGUMENTS = 1 << 16  # that may be named as static, donated or differentiated


def check_at_most(name: str, value: int, most: int) -> None:
    """ValueError for a number of steps, axes or parts that would take for ever to write out."""
    if value > most:
        raise ValueError(f"{name} must be at most {most}; got {value}.")


def signature_of(fun: Callable) -> inspect.Signature | None:
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def as_ints(name: str, value: Any) -> tuple[int, ...]:
    """One integer or several as a tuple; TypeError otherwise."""
    if value is None:
        return ()
    try:
        return (operator.index(value),)
    except TypeError:
        pass
    try:
        found = tuple(operator.index(item) for item in islice(value, MOST_ARGUMENTS + 1))
    except TypeError:
        raise TypeError(
            f"{name} must be an integer or a sequence of integers; got {value!r}."
        ) from None
    check_at_most(f"the number of {name}", len(found), MOST_ARGUMENTS)
    return found


def as_names(name: str, value: Any) -> tuple[str, ...]:
    """One string or several as a tuple; TypeError otherwise."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable):
        names = tuple(islice(value, MOST_ARGUMENTS + 1))
        if all(isinstance(item, str) for item in names):
            check_at_most(f"the number of {name}", len(names), MOST_ARGUMENTS)
            return names
    raise TypeError(f"{name} must be a string or a sequence of strings; got {value!r}.")


def resolve_static(
    fun: Callable, argnums: Any, argnames: Any, what: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of marked arguments, each inferred from the other by the signature."""
    numbers = as_ints(f"{what}_argnums", argnums)
    names = as_names(f"{what}_argnames", argnames)
    signature = signature_of(fun)
    if signature is None:
        return numbers, names
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
    known = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    unknown = {name for name in names if name not in known and not keywords}
    if unknown:
        unnamed = unknown & {p.name for p in parameters if p.kind is p.POSITIONAL_ONLY}
        reason = "These are positional-only" if unnamed else "Function does not take these args"
        raise ValueError(
            f"Jitted function has invalid argnames {unnamed or unknown} in {what}_argnames. "
            f"{reason}. {fun_name(fun)} takes {sorted(known)} by name."
        )
    for number in numbers:
        if not variadic and not -len(positional) <= number < len(positional):
            raise ValueError(
                f"Jitted function has {what}_argnums={numbers}, but only accepts "
                f"{len(positional)} positional arguments. {number} is no position in a call of "
                f"{fun_name(fun)}."
            )
    return infer_argnums_and_argnames(signature, argnums, argnames)


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: Any, argnames: Any
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of some arguments; where only one of the two is given, it tells the other."""
    numbers, names = as_ints("argnums", argnums), as_names("argnames", argnames)
    parameters = sig.parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if argnums is None:
        numbers = tuple(i for i, p in enumerate(positional) if p.name in names)
    elif argnames is None and not any(n < 0 for n in numbers):
        names = tuple(
            positional[n].name
            for n in numbers
            if n < len(positional) and positional[n].kind is not inspect.Parameter.POSITIONAL_ONLY
        )
    return numbers, names


def argument_names(
    fun: Callable, in_tree: Any, statics: Iterable[tuple[int | str, Any]] = ()
) -> list[str] | None:
    """A name for each leaf of `(args, kwargs)`, such as `x` or `params['w']`.

    `statics` are the arguments that stand beside these, by position or name.
    """
    try:
        args, kwargs = in_tree.unflatten(range(in_tree.num_leaves))
    except Exception:
        return None
    signature = signature_of(fun)
    apart = {where for where, _ in statics if isinstance(where, int)}
    count = len(args) + len(apart)
    positional, named, others = [], set(), ""
    if signature is not None:
        for p in signature.parameters.values():
            if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD):
                named.add(p.name)
            elif p.kind is p.VAR_KEYWORD:
                others = p.name
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                positional.append(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                positional.extend(f"{p.name}[{i}]" for i in range(count - len(positional)))
    names = []
    numbers = [number for number in range(count) if number not in apart]
    for number, arg in zip(numbers, args, strict=True):
        base = positional[number] if number < len(positional) else f"args[{number}]"
        for path, _ in tree_util.generate_key_paths(arg):
            names.append(base + tree_util.keystr(path))
    for key in sorted(kwargs):
        base = f"{others}[{key!r}]" if others and key not in named else key
        for path, _ in tree_util.generate_key_paths(kwargs[key]):
            names.append(base + tree_util.keystr(path))
    return names


def path_of(fun: Callable, in_tree: Any, index: int, statics: Iterable = ()) -> str:
    """The name of one leaf of `(args, kwargs)` in an error message; see `argument_names`."""
    names = argument_names(fun, in_tree, statics)
    return names[index] if names and index < len(names) else f"number {index}"


def place_of(fun: Callable) -> str:
    """The name of a function, and where its source stands if that is known."""
    return debug_info("", fun).func_src_info


def aval_of_argument(
    x: Any, fun: Callable, in_tree: Any, index: int, transform: str, aval_of: Callable = get_aval,
    statics: Iterable = (),
) -> Any:  # fmt: skip
    """The type of one leaf of the arguments of `fun`; an error says which of them is at fault."""
    try:
        return aval_of(x)
    except TypeError as error:
        raise TypeError(
            f"Error interpreting argument to {fun} as an abstract array. The problematic value is "
            f"of type {type(x)} and was passed to the function at path "
            f"{path_of(fun, in_tree, index, statics)}. Cannot interpret value of type {type(x)} as an "
            "abstract array; it does not have a dtype attribute. It is an argument of "
            f"{fun_name(fun)}, called under {transform}. {error} That is static_argnums or "
            "static_argnames; a class that holds arrays is registered as a pytree, as with "
            "minijax.tree_util.register_dataclass."
        ) from None
    except OverflowError as error:
        raise OverflowError(
            "An overflow was encountered while parsing an argument to a jitted computation, whose "
            f"argument path is {path_of(fun, in_tree, index, statics)}. Got {type(x)} with value {x}. {error}"
        ) from None


def avals_of(
    transform: str, fun: Callable, leaves: Sequence[Any], in_tree: Any, statics: Iterable = (),
    aval_of: Callable = get_aval,
) -> list[Any]:  # fmt: skip
    """The types of all leaves, as those of arguments of programs."""
    return [
        aval_of_argument(x, fun, in_tree, i, transform, aval_of, statics).for_argument(x)
        for i, x in enumerate(leaves)
    ]


def debug_info(
    traced_for: str, fun: Callable, in_tree: Any = None, statics: Iterable = ()
) -> DebugInfo:
    """Return what error messages say of a traced function; names are found only when asked for."""
    return _LazyDebugInfo(traced_for, fun, in_tree, [(where, None) for where, _ in statics])


class _LazyDebugInfo(DebugInfo):
    """Refers to the function weakly: programs outlive it in caches that it keys.

    Of one that is gone its code says the line, and the names of arguments.
    """

    __slots__ = ("_definition", "_fun", "_names", "_statics", "_tree", "out_tree")

    def __init__(self, traced_for: str, fun: Callable, in_tree: Any, statics: Sequence = ()):
        self.traced_for = traced_for
        self.func_name, self._definition = fun_name(fun), _definition(fun)
        self._tree, self._names, self._statics, self.out_tree = in_tree, None, statics, None
        try:
            self._fun = (weakref.WeakMethod if inspect.ismethod(fun) else weakref.ref)(fun)
        except TypeError:
            self._fun = lambda: None

    @property
    def arg_names(self) -> tuple[str, ...] | None:
        if self._names is None and self._tree is not None:
            fun = self._fun()
            if fun is None and self._definition[0] is not None:
                fun = _with_parameters(*self._definition)
            names = None if fun is None else argument_names(fun, self._tree, self._statics)
            self._names = None if names is None else tuple(names)
        return self._names

    @property
    def result_paths(self) -> tuple[str, ...] | None:
        if self.out_tree is None:
            return None
        results = self.out_tree.unflatten(range(self.out_tree.num_leaves))
        return tuple(
            [f"result{tree_util.keystr(path)}" for path, _ in tree_util.generate_key_paths(results)]
        )

    @property
    def place(self) -> str:
        code, *_ = self._definition
        return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""

    def __reduce__(self) -> Any:
        return DebugInfo, (self.traced_for, self.func_src_info, self.arg_names, self.result_paths)


def _definition(fun: Any) -> tuple[CodeType | None, int, tuple[str, ...]]:
    """The code of a function, and how many and which of its arguments are given already."""
    count, names, fun = 0, (), inspect.unwrap(fun)
    while isinstance(fun, functools.partial):
        count, names = count + len(fun.args), (*names, *fun.keywords)
        fun = inspect.unwrap(fun.func)
    return getattr(fun, "__code__", None), count + inspect.ismethod(fun), names


def _with_parameters(code: CodeType, count: int, names: Sequence[str]) -> Callable:
    """A function of the parameters of one that was defined so, each of which has a default."""
    end = code.co_argcount
    cells = tuple([CellType() for _ in code.co_freevars])
    made = FunctionType(code, {}, code.co_name, (None,) * end, cells)
    made.__kwdefaults__ = dict.fromkeys(code.co_varnames[end : end + code.co_kwonlyargcount])
    return functools.partial(made, *(None,) * count, **dict.fromkeys(names))


class LaterArguments(DebugInfo):
    """Debug info of a program with `count` more arguments before the others, which have no names."""

    __slots__ = ("_count", "_info")

    def __init__(self, info: DebugInfo, count: int):
        self.traced_for, self.func_name = info.traced_for, info.func_name
        self._info, self._count = info, count

    @property
    def arg_names(self) -> tuple[str, ...] | None:
        names = self._info.arg_names
        return None if names is None else ("",) * self._count + tuple(names)

    result_paths = property(lambda self: self._info.result_paths)
    place = property(lambda self: self._info.place)


def unnamed(info: DebugInfo) -> DebugInfo:
    """Debug info of a program derived from another, with other arguments and results."""
    return DebugInfo(info.traced_for, info.func_src_info)


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
        aval.check_result(fun, transform, out_tree, index)
