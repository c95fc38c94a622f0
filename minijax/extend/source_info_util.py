"""`minijax.extend.source_info_util`: places in the user's program, and names of scopes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minijax.config import local
from minijax.core import source
from minijax.core.source import joined
from minijax.features.source_info import NameStack, SourceInfo
from minijax.namespace import shown
from minijax.tracebacks import register_exclusion

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
    "new_name_stack", "new_source_info", "register_exclusion", "reset_name_stack",
    "set_name_stack", "summarize", "transform_name_stack", "user_context",
]  # fmt: skip

__dir__ = shown(__name__)


@contextmanager
def _scope(scope: str) -> Iterator[NameStack]:
    context = local.context
    saved, context.scope = context.scope, scope
    try:
        yield NameStack.of(scope)
    finally:
        context.scope = saved


def extend_name_stack(name: str) -> Any:
    """Context manager: one more scope within those there are; it gives them all."""
    return _scope(joined(local.context.scope, name))


def transform_name_stack(name: str) -> Any:
    """Context manager: the scope of a transformation, which the next ones stand within."""
    return _scope(joined(local.context.scope, f"{name}()"))


def set_name_stack(name_stack: NameStack) -> Any:
    """Context manager: these scopes in the place of those there are."""
    return _scope(joined(local.context.marks, str(name_stack)))


def reset_name_stack() -> Any:
    """Context manager: no scopes."""
    return _scope(local.context.marks)


@contextmanager
def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """Context manager: operations within are recorded as made at a place, under these scopes.

    `traceback` is that of a `SourceInfo`; None leaves the place as it is.
    """
    context = local.context
    saved = context.source, context.scope
    context.source = traceback or saved[0]
    if name_stack is not None:
        context.scope = joined(context.marks, str(name_stack))
    try:
        yield
    finally:
        context.source, context.scope = saved


def new_name_stack(name: str = "") -> NameStack:
    return NameStack((name,) if name else ())


def current_name_stack() -> NameStack:
    return NameStack.of(local.context.scope)


def current() -> SourceInfo:
    """The user's line that is being run."""
    return SourceInfo(source.capture(2), current_name_stack())


def new_source_info() -> SourceInfo:
    """No place, under no scope."""
    return SourceInfo(None, NameStack())


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """`file:line (function)`."""
    return source.summarize(source_info.where)
