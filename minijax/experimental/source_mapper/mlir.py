"""Source maps of MLIR, from the places that its text gives."""

from __future__ import annotations

import re

from minijax.experimental.source_mapper.sourcemap import SourceMap, sourcemap_of
from minijax.namespace import shown

__all__ = ["create_mlir_sourcemap"]

__dir__ = shown(__name__)

_DEFINED = re.compile(r"#loc(?P<id>\d*) = loc\((?P<what>.*)\)$")
_FILE = re.compile(r'"(?P<file>[^"]*)":(?P<line>\d+):(?P<column>\d+)')
_OTHER = re.compile(r"#loc(?P<id>\d+)")
_USED = re.compile(r"loc\(#loc(?P<id>\d+)\)$")


def create_mlir_sourcemap(mlir_dump: str) -> SourceMap:
    """Return for each line of a module's text with an operation, where that was made.

    The text is one with debug info. A call is where the callee is, a named place what it names.
    """
    lines = mlir_dump.split("\n")
    defined = {m["id"]: m["what"] for m in map(_DEFINED.match, lines) if m}
    places = []
    for line in lines:
        used = _USED.search(line.rstrip())
        found = _place(defined, used["id"]) if used and not line.startswith("#loc") else None
        column = len(line) - len(line.lstrip())
        places.append([(column, *found)] if found else [])
    return sourcemap_of(places)


def _place(defined: dict[str, str], number: str) -> tuple[str, int, int] | None:
    """The file, line and column that a numbered place comes to."""
    for _ in range(len(defined)):
        what = defined.get(number, "")
        found = _FILE.search(what)
        if found:
            if found["file"] == "-":  # what MLIR calls a text that is in no file
                return None
            return found["file"], int(found["line"]), int(found["column"])
        other = _OTHER.search(what)
        if other is None:
            return None
        number = other["id"]
    return None
