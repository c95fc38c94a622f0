"""Where in the user's program an equation was made, captured cheaply and formatted on demand.

Capturing costs a short walk over frames: those of this package are skipped, and a code object with
an instruction offset is kept, never a frame.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import CodeType
from typing import Any, NamedTuple

from minijax import tracebacks
from minijax.config import local
from minijax.core.hooks import hooks
from minijax.tracebacks import is_internal

__all__ = ["Source", "capture", "joined", "named_scope", "relative", "summarize", "transposed"]


# A name of this module, since Python calls methods of imported names more slowly.
_known = tracebacks.internal_code


class Source(NamedTuple):
    """A place in a program: a code object and an offset into its instructions."""

    code: CodeType
    offset: int

    @property
    def position(self) -> tuple[int | None, int | None]:
        """The line, from one, and the column, from zero."""
        positions = list(self.code.co_positions())
        index = self.offset // 2
        line, _, column, _ = positions[index] if 0 <= index < len(positions) else (0, 0, 0, 0)
        return line, column


def capture(depth: int = 2) -> Source | None:
    """Return the place of the innermost frame that is not of this package."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        internal = _known.get(code)
        if internal is None:
            internal = is_internal(code)
        if not internal:
            return (code, frame.f_lasti)
        frame = frame.f_back
    return None


def summarize(source: tuple[CodeType, int] | None) -> str:
    """`file:line:column (function)`, without a column that is zero, or `<unknown>`."""
    if source is None:
        return "<unknown>"
    source = Source(*source)
    line, column = source.position
    place = f"{line}:{column}" if column else line
    return f"{source.code.co_filename}:{place} ({source.code.co_qualname})"


def named_scope(name: str) -> Any:
    """Prefix the names of the operations traced within a `with` block.

    - `name`: prefix, which appears in compiled programs and profiles

    Values, shapes and dtypes do not change. TypeError unless `name` is a string.
    Source: the locations of StableHLO operations.

    >>> with jax.named_scope("layer"):
    ...     jnp.array([1, 2]) + 1
    Array([2, 3], dtype=int32)
    """
    if not isinstance(name, str):
        raise TypeError(
            f"named_scope name argument must be a string. Got {name!r} of type {type(name)}."
        )
    return _scope(name if hasattr(name, "marks") else str(name))


@contextmanager
def _scope(name: str):
    context = local.context
    saved = context.scope
    context.scope = joined(saved, name)
    try:
        yield
    finally:
        context.scope = saved


# A transformation is an open scope, as in `jvp()`: the next one that is entered stands within its
# parentheses, `jvp(layer)/inner`.


def joined(outer: str, inner: str) -> str:
    """Return the scope `inner` within the scope `outer`."""
    if type(outer) is not str or type(inner) is not str:
        return hooks.on_scopes(joined, outer, inner)
    if not outer or not inner:
        return outer or inner
    head, is_open, tail = outer.rpartition("()")
    if not is_open or tail.strip(")"):
        return f"{outer}/{inner}"
    first, slash, rest = inner.partition("/")
    return f"{head}({first}){tail}{slash}{rest}"


def relative(outer: str, scope: str) -> str:
    """Return the `inner` for which `joined(outer, inner)` is `scope`."""
    if type(scope) is not str:
        return hooks.on_scopes(relative, outer, scope)
    head, is_open, tail = outer.rpartition("()")
    if not is_open or tail.strip(")"):
        return scope.removeprefix(outer).removeprefix("/")
    first, slash, rest = scope.removeprefix(head + "(").partition("/")
    return first.removesuffix(")" + tail) + slash + rest


def transposed(scope: str) -> str:
    """Return the scope of the transpose of an operation."""
    if type(scope) is not str:
        return hooks.on_scopes(transposed, scope)
    first, slash, rest = scope.partition("/")
    return f"transpose({first}){slash}{rest}"
