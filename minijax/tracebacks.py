"""Tracebacks as users read them: their own frames, without those of this package.

The setting `traceback_filtering` says how: frames are left out; left out and kept by the cause of
the error ("remove_frames"); marked for tools that know `__tracebackhide__` ("tracebackhide"); or
all shown ("off").
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

from minijax.config import local
from minijax.namespace import names_so_far, shown, written_in

__all__ = [
    "UnfilteredStackTrace", "as_defined", "boundary", "ended_at_user", "filter_traceback", "hide_frames",
    "is_internal", "public", "register_exclusion",
]  # fmt: skip

internal_code: dict[CodeType, bool] = {}  # what `is_internal` found


class _Prefixes(list):
    """Paths of library code; what was found out by them before is forgotten when they change."""

    def append(self, path: str) -> None:
        super().append(path)
        internal_code.clear()

    def remove(self, path: str) -> None:
        super().remove(path)
        internal_code.clear()


# The package, and what stands between its own functions where a context manager decorates them.
excluded_prefixes = _Prefixes(
    [os.path.dirname(os.path.abspath(__file__)) + os.sep, contextlib.__file__]
)


def register_exclusion(path: str) -> None:
    """Treat the files under `path` as library code: they are never named as the user's line."""
    excluded_prefixes.append(path)


def is_internal(code: CodeType) -> bool:
    """Whether this is code of the package, or of a library that asked to be left out."""
    answer = internal_code.get(code)
    if answer is None:
        answer = internal_code[code] = code.co_filename.startswith(tuple(excluded_prefixes))
    return answer


_NOTE = (
    "(The frames inside minijax are left out. To see them set "
    'minijax.config.update("jax_traceback_filtering", "off").)'
)


class UnfilteredStackTrace(Exception):
    """The cause of an error whose traceback was filtered: its own traceback has all frames."""


def _steps(traceback: TracebackType | None) -> list[TracebackType]:
    steps = []
    while traceback is not None:
        steps.append(traceback)
        traceback = traceback.tb_next
    return steps


def _joined(steps: list[TracebackType], rest: TracebackType | None = None) -> TracebackType | None:
    for step in reversed(steps):
        rest = TracebackType(rest, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return rest


def _keep_all(error: BaseException, steps: list[TracebackType]) -> None:
    """Let the cause of the error have the frames that are to be left out of it."""
    cause = error.__cause__
    if not isinstance(cause, UnfilteredStackTrace):
        cause = UnfilteredStackTrace("The traceback with the frames inside minijax.")
        cause.__cause__, cause.__suppress_context__ = error.__cause__, error.__suppress_context__
        cause.__context__ = error.__context__
        error.__cause__ = cause
    known = {id(step.tb_frame) for step in _steps(cause.__traceback__)}
    cause.__traceback__ = _joined(
        [step for step in steps if id(step.tb_frame) not in known], cause.__traceback__
    )


_DEEP = (
    ": containers, or transformed functions within each other, are nested too deeply for Python's "
    "limit. Nest fewer, with lax.scan or lax.fori_loop for many, or raise it: sys.setrecursionlimit."
)


def filter_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package and of files that are left out."""
    return _joined([s for s in _steps(traceback) if not is_internal(s.tb_frame.f_code)])


def hide_frames(error: BaseException) -> None:
    """Leave the frames of this package out of the traceback of an error on its way to the user."""
    if type(error) is SystemError and isinstance(error.__cause__, RecursionError):
        raise RecursionError(  # jaxlib's walk over a tree says it twice
            "Containers of an argument are nested too deeply, or hold themselves: "
            f"{error.__cause__}{_DEEP}"
        ) from None
    if type(error) is RecursionError and error.args and not str(error.args[0]).endswith(_DEEP):
        error.args = (f"{error.args[0]}{_DEEP}",)
    mode = local.context.settings.traceback_filtering
    if mode == "off":
        return
    steps = _steps(error.__traceback__)
    hidden = [step for step in steps if is_internal(step.tb_frame.f_code)]
    if not hidden:
        return
    if mode == "tracebackhide":
        for step in hidden:
            step.tb_frame.f_locals["__tracebackhide__"] = True
        return
    if mode == "remove_frames":
        _keep_all(error, steps)
    error.__traceback__ = filter_traceback(error.__traceback__)
    if mode != "remove_frames" and _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)


_F = TypeVar("_F", bound=Callable[..., Any])


def boundary(fun: _F) -> _F:
    """Decorator of what users call: errors leave it without this package's frames.

    The function is a default and not a free variable: libraries that intercept calls (Qwix) replace
    the code of public functions in place, and Python takes other code only with as many free variables.
    """

    @functools.wraps(fun)
    def call(*args: Any, __fun: Any = fun, **kwargs: Any) -> Any:
        try:
            return __fun(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return cast(_F, call)


_boundaries: dict[Callable, Callable] = {}
_CALL = boundary(len).__code__


def _ends_at_user(code: CodeType) -> bool:
    """Whether a function hides frames itself: a boundary, or one that `cached_call` made."""
    return code is _CALL or "<cached call" in code.co_filename


def ended_at_user(value: Any, module: str) -> Any:
    """Return a function of a public module so that its errors end at the user's line.

    It is the module's own from then on, by whose name it is pickled. Other values, and functions that
    the module has under other names than their own, are given as they are.
    """
    if type(value) is not FunctionType or _ends_at_user(value.__code__):
        return value
    if not written_in(inspect.unwrap(value)).startswith("minijax."):  # as those of NumPy
        return value
    made = _boundaries.get(value)
    if made is None:
        names, name = names_so_far(sys.modules[module]), value.__qualname__
        if names.get(name, value) is not value or not (name in names or name in names["__all__"]):
            return value
        made = names[name] = _boundaries[value] = boundary(value)
        made.__module__ = module
    return made


def as_defined(fun: Any) -> Any:
    """Return the function that a boundary calls, by which the library knows it; others as they are."""
    return fun.__wrapped__ if getattr(fun, "__code__", None) is _CALL else fun


def public(module: str) -> Callable[[], list[str]]:
    """Have errors of the functions in the `__all__` of a module end at the user's line.

    Returns the `__dir__` of the module, as `shown` does. Within the package the functions are called
    as they were defined, without a further frame.
    """
    names = names_so_far(sys.modules[module])
    for name in names["__all__"]:
        if name in names:
            names[name] = ended_at_user(names[name], module)
    return shown(module)
