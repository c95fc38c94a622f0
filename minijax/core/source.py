"""Where in the user's program an equation was made, captured cheaply and formatted on demand.

May import the standard library and `config`. Capturing costs a short walk over frames: those of
this package are skipped, and a code object with an instruction offset is kept, never a frame.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from types import CodeType
from typing import NamedTuple

from minijax.config import local

__all__ = ["Source", "capture", "named_scope", "register_exclusion", "summarize"]

_excluded_prefixes: list[str] = [
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
]
_is_internal: dict[CodeType, bool] = {}


class Source(NamedTuple):
    """A place in a program: a code object and an offset into its instructions."""

    code: CodeType
    offset: int

    @property
    def line(self) -> int | None:
        positions = list(self.code.co_positions())
        index = self.offset // 2
        return positions[index][0] if 0 <= index < len(positions) else None


def register_exclusion(path: str) -> None:
    """Treat the files under `path` as library code: they are never named as the user's line."""
    _excluded_prefixes.append(path)
    _is_internal.clear()


def _internal(code: CodeType) -> bool:
    answer = code.co_filename.startswith(tuple(_excluded_prefixes))
    _is_internal[code] = answer
    return answer


def capture(depth: int = 2) -> Source | None:
    """The innermost frame that is not of this package."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        internal = _is_internal.get(code)
        if internal is None:
            internal = _internal(code)
        if not internal:
            return (code, frame.f_lasti)
        frame = frame.f_back
    return None


def summarize(source: tuple[CodeType, int] | None) -> str:
    """`file:line (function)`, or `<unknown>`."""
    if source is None:
        return "<unknown>"
    source = Source(*source)
    return f"{source.code.co_filename}:{source.line} ({source.code.co_qualname})"


@contextmanager
def named_scope(name: str):
    """Prefix the names of all operations traced within by `name/`.

    The names reach the compiled program's metadata, and with it profilers. TypeError unless `name`
    is a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope takes a string, got {name!r} of type {type(name)}")
    context = local.context
    saved = context.scope
    context.scope = f"{saved}/{name}" if saved else name
    try:
        yield
    finally:
        context.scope = saved
