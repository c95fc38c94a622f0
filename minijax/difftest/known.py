"""Known differences and undefined cases, read from `known.txt`, with the reason of each.

Rows of the kind "hang" are of programs that upstream does not end: they are not run.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import importlib.resources
import re
from collections.abc import Iterable

from minijax.difftest.programs import Program, arguments_text, text

__all__ = ["Known", "hanging", "known", "reason_for"]

VERDICTS = ("known", "undefined", "upstream", "xla")


@dataclasses.dataclass(frozen=True)
class Known:
    """One row: which operation, kind and text it is about, the verdict, and why."""

    operation: str
    kind: str
    pattern: str
    verdict: str
    reason: str


@functools.cache
def known() -> tuple[Known, ...]:
    """Return the rows of `known.txt`, in order."""
    rows = []
    for line in (
        (importlib.resources.files("minijax.difftest") / "known.txt").read_text().splitlines()
    ):
        if line.strip() and not line.startswith("#"):
            row = Known(*(part.strip() for part in line.split(" | ")))
            if row.verdict not in VERDICTS:
                raise ValueError(f"known.txt: {row.verdict!r} is none of {VERDICTS}.")
            rows.append(row)
    return tuple(rows)


def reason_for(program: Program, kind: str, ours: str = "", theirs: str = "") -> Known | None:
    """Return the row that declares a difference of a program with two outcomes, or None."""
    rows = (row for row in known() if fnmatch.fnmatchcase(kind, row.kind))
    return _first(rows, program, f"\nminijax: {ours}\nupstream: {theirs}")


def hanging(program: Program) -> Known | None:
    """Return the row that says that a program does not end, or None."""
    rows = (row for row in known() if row.kind == "hang")
    return None if program.mode == "abstract" else _first(rows, program)


def _first(rows: Iterable[Known], program: Program, outcomes: str = "") -> Known | None:
    operations = program.operations()
    whole = f"{text(program)}\n{arguments_text(program)}{outcomes}"
    for row in rows:
        named = any(fnmatch.fnmatchcase(name, row.operation) for name in operations)
        if named and re.search(row.pattern, whole):
            return row
    return None
