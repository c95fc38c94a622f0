"""Source maps of jaxprs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.source import Source
from minijax.experimental.source_mapper.common import Pass, SourceMapDump, register_pass
from minijax.experimental.source_mapper.sourcemap import sourcemap_of
from minijax.namespace import shown
from minijax.transforms.make_jaxpr import make_jaxpr

__all__ = ["canonicalize_filename", "compile_jaxpr", "make_jaxpr_dump"]

__dir__ = shown(__name__)

_NOTE = re.compile(r" +# (?P<file>.*?):(?P<line>\d+):(?P<column>\d+) \([^()]*\)$")


def canonicalize_filename(file_name: str) -> str:
    """The absolute path of a file; what is none, such as a cell of a notebook, stays."""
    return os.path.abspath(file_name) if os.path.exists(file_name) else file_name


def compile_jaxpr(work_dir: str, f: Callable, f_args: Any, f_kwargs: Any, **_: Any) -> ClosedJaxpr:
    return make_jaxpr(f)(*f_args, **f_kwargs)


def make_jaxpr_dump(jaxpr: ClosedJaxpr, **_: Any) -> SourceMapDump:
    """The text of a program, and for each of its lines with an equation where that was made."""
    text = jaxpr.pretty_print()
    if "\n" not in text:
        return SourceMapDump(sourcemap_of([_in_one_line(jaxpr, text)]), text, "jaxpr")
    lines, places = [], []
    for line in jaxpr.pretty_print(source_info=True).splitlines():
        note = _NOTE.search(line)
        text = line[: note.start()] if note else line
        lines.append(text)
        column = len(text) - len(text.lstrip())
        found = note and (
            column, canonicalize_filename(note["file"]), int(note["line"]), int(note["column"])
        )  # fmt: skip
        places.append([found] if found else [])
    return SourceMapDump(sourcemap_of(places), "\n".join(lines), "jaxpr")


def _in_one_line(jaxpr: ClosedJaxpr, text: str) -> list[Any]:
    """The places of the equations of a program that fits on a line."""
    places, column = [], text.find(" let ") + len(" let ")
    for eqn in jaxpr.eqns:
        if eqn.source is not None:
            line, at = Source(*eqn.source).position
            file = canonicalize_filename(eqn.source[0].co_filename)
            places.append((column, file, line or 1, at or 0))
        column = text.find("; ", column) + 2
    return places


register_pass(Pass("jaxpr", compile_jaxpr, make_jaxpr_dump))
