"""`minijax.extend.source_info_util`: places in the user's program, and names of scopes.

May import `core`.
"""

from __future__ import annotations

from minijax.config import local
from minijax.core import source
from minijax.core.source import NameStack, SourceInfo, named_scope, register_exclusion

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
    "new_name_stack", "new_source_info", "register_exclusion", "summarize",
]  # fmt: skip

extend_name_stack = named_scope


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
