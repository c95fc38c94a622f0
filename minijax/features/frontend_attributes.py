"""Attributes of operations that the user names, in the text of a module.

They are XLA's frontend attributes: strings by name, which stand beside an operation and change
nothing of what it computes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from minijax.core.hooks import hooks
from minijax.runtime.escape import key, quoted

__all__ = ["attributes_text", "mark_lines", "with_attributes"]

_NAME = "mhlo.frontend_attributes = {"
_PAIR = re.compile(r'("[^"]*"|[^\s{,]+) = ("[^"]*")')


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
    pairs = dict(_PAIR.findall(own))
    for name, value in sorted(attributes.items()):
        pairs.setdefault(key(name), quoted(value))
    shown = ", ".join([f"{name} = {value}" for name, value in sorted(pairs.items())])
    return f"{head[:start]}{{{before}{_NAME}{shown}}}{after}}}{colon}{types}"


def _opening(head: str) -> int:
    """Where the braces are opened that the text ends with closing."""
    depth = 0
    for index in range(len(head) - 1, -1, -1):
        depth += (head[index] == "}") - (head[index] == "{")
        if not depth:
            return index
    raise ValueError(f"braces do not match in {head!r}")


def mark_lines(
    lines: list[str], start: int, marks: Mapping[str, str | None], makes_broadcasts: bool
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
        helper = not makes_broadcasts and ' = "stablehlo.broadcast_in_dim"(' in line[:60]
        lines[index] = with_attributes(line, placing if helper else given)


hooks.fill(mark_lines=mark_lines)
