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
from minijax.tracebacks import is_internal

__all__ = [
    "MarkedScope", "NameStack", "Source", "SourceInfo", "capture", "joined", "marked",
    "named_scope", "relative", "summarize", "transposed",
]  # fmt: skip


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


class NameStack(NamedTuple):
    """The scopes that operations are recorded under, outermost first."""

    stack: tuple[str, ...] = ()

    @classmethod
    def of(cls, scope: str) -> NameStack:
        return cls(tuple(scope.split("/")) if len(scope) else ())

    def extend(self, name: str) -> NameStack:
        return NameStack((*self.stack, name))

    def __str__(self) -> str:
        return "/".join(self.stack)


class SourceInfo(NamedTuple):
    """A place in a program and the scopes there."""

    where: Any
    name_stack: NameStack

    traceback = property(lambda self: self.where)  # upstream's name


def capture(depth: int = 2) -> Source | None:
    """The innermost frame that is not of this package."""
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
    """`file:line:column (function)`, or `<unknown>`."""
    if source is None:
        return "<unknown>"
    source = Source(*source)
    line, column = source.position
    return f"{source.code.co_filename}:{line}:{column} ({source.code.co_qualname})"


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
            f"named_scope name argument must be a string: got {name!r} of type {type(name)}."
        )
    return _scope(name if type(name) in (str, MarkedScope) else str(name))


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
    """The scope `inner` within the scope `outer`."""
    if type(outer) is not str or type(inner) is not str:
        marks = {**marks_of(outer), **marks_of(inner)}
        return MarkedScope(joined(str(outer), str(inner)), marks)
    if not outer or not inner:
        return outer or inner
    head, is_open, tail = outer.rpartition("()")
    if not is_open or tail.strip(")"):
        return f"{outer}/{inner}"
    first, slash, rest = inner.partition("/")
    return f"{head}({first}){tail}{slash}{rest}"


def relative(outer: str, scope: str) -> str:
    """The `inner` that `joined` to `outer` gives `scope`."""
    if type(scope) is not str:
        return MarkedScope(relative(str(outer), str(scope)), scope.marks)
    head, is_open, tail = outer.rpartition("()")
    if not is_open or tail.strip(")"):
        return scope.removeprefix(outer).removeprefix("/")
    first, slash, rest = scope.removeprefix(head + "(").partition("/")
    return first.removesuffix(")" + tail) + slash + rest


def transposed(scope: str) -> str:
    """The scope of the transpose of an operation."""
    if type(scope) is not str:
        return MarkedScope(transposed(str(scope)) if len(scope) else "", scope.marks)
    first, slash, rest = scope.partition("/")
    return f"transpose({first}){slash}{rest}"


class MarkedScope(str):
    """A scope whose operations carry attributes, by name, into the compiled program.

    One with the value None is left out, as if no outer scope had it. Such a scope is true even where
    it has no name.
    """

    __slots__ = ("marks",)

    def __new__(cls, names: str, marks: dict[str, str | None]):
        scope = super().__new__(cls, names)
        scope.marks = marks
        return scope

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return self[:]

    def __reduce__(self):
        return MarkedScope, (self[:], self.marks)


def marks_of(scope: str) -> dict[str, str | None]:
    """The attributes that operations of a scope carry."""
    return {} if type(scope) is str else scope.marks


@contextmanager
def marked(marks: dict[str, str | None]):
    """Have all operations carry these attributes, those of programs that are traced within too."""
    if not marks:
        yield
        return
    context = local.context
    saved = context.scope, context.marks
    context.scope = joined(saved[0], MarkedScope("", marks))
    context.marks = joined(saved[1], MarkedScope("", marks))
    context.refresh_key()
    try:
        yield
    finally:
        context.scope, context.marks = saved
        context.refresh_key()
