"""Attributes of operations that the user names, in the text of a module.

They are XLA's frontend attributes: strings by name, which stand beside an operation and change
nothing of what it computes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import contextmanager

from minijax.config import local
from minijax.core.hooks import hooks
from minijax.core.primitive import Primitive
from minijax.core.source import joined
from minijax.runtime.escape import key, quoted
from minijax.transforms.primitives import broadcast_in_dim_p

__all__ = ["MarkedScope", "attributes_text", "mark_lines", "marked", "marks_of", "with_attributes"]

_NAME = "mhlo.frontend_attributes = {"
_PAIR = r'("[^"]*"|[^\s{,]+) = ("[^"]*")'


def attributes_text(attributes: Mapping[str, str]) -> str:
    """`mhlo.frontend_attributes = {...}`."""
    pairs = [f"{key(name)} = {quoted(value)}" for name, value in sorted(attributes.items())]
    return f"{_NAME}{', '.join(pairs)}}}"


def with_attributes(line: str, attributes: Mapping[str, str]) -> str:
    """An operation with attributes more; those that it has stay. Another line is given back."""
    head, colon, types = line.rpartition(" : (")
    if not colon or not attributes or not (line[0] == '"' or ' = "' in line[:30]):
        return line
    if not head.endswith("}"):
        return f"{head} {{{attributes_text(attributes)}}}{colon}{types}"
    start = _opening(head)
    inner = head[start + 1 : -1]
    if _NAME not in inner:
        return f"{head[:start]}{{{inner}, {attributes_text(attributes)}}}{colon}{types}"
    before, _, rest = inner.partition(_NAME)
    own, _, after = rest.partition("}")
    pairs = dict(re.findall(_PAIR, own))
    for name, value in sorted(attributes.items()):
        pairs.setdefault(key(name), quoted(value))
    shown = ", ".join([f"{name} = {value}" for name, value in sorted(pairs.items())])
    return f"{head[:start]}{{{before}{_NAME}{shown}}}{after}}}{colon}{types}"


def _opening(head: str) -> int:
    """Return where the braces are opened that the text ends with closing."""
    depth = 0
    for index in range(len(head) - 1, -1, -1):
        depth += (head[index] == "}") - (head[index] == "{")
        if not depth:
            return index
    raise ValueError(f"braces do not match in {head!r}")


def mark_lines(
    lines: list[str], start: int, marks: Mapping[str, str | None], primitive: Primitive
) -> None:
    """Give operations the attributes of their scope.

    Numbers that are repeated to the shape of an operand carry only those that say where a thing is
    computed, unless the equation is there to make them.
    """
    given = {name: value for name, value in marks.items() if value is not None}
    placing = {name: value for name, value in given.items() if name.startswith("_xla_")}
    if placing and "inlineable" in given:
        placing["inlineable"] = given["inlineable"]
    for index in range(start, len(lines)):
        line = lines[index]
        helper = (
            primitive is not broadcast_in_dim_p and ' = "stablehlo.broadcast_in_dim"(' in line[:60]
        )
        lines[index] = with_attributes(line, placing if helper else given)


# -- scopes that carry attributes -----------------------------------------------------------------------


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


def on_scopes(fun: Callable[..., str], *scopes: str) -> MarkedScope:
    """Return the scope that a function of names gives, with the attributes of all scopes."""
    marks = {name: value for scope in scopes for name, value in marks_of(scope).items()}
    names = map(str, scopes)
    return MarkedScope(fun(*names) if any(map(len, scopes)) else "", marks)


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


hooks.fill(mark_lines=mark_lines, on_scopes=on_scopes)
