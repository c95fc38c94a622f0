"""`explain.recompiles`: the functions that were traced more than once, and why."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from minijax.explain.programs import short
from minijax.explain.tables import Report, Table
from minijax.features.diagnostics.recompilations import Change, Record, records, show, written

__all__ = ["RecompilesReport", "recompiles"]


class RecompilesReport(Report):
    """The result of `recompiles`: `.records`, the one that took longest first."""

    def __init__(self, found: list[Record]):
        self.records = found

    @property
    def changes(self) -> list[Change]:
        """The reasons of all tracings but the first of each function."""
        return [change for record in self.records for change, *_ in record.changes]

    def tables(self) -> list[Table]:
        """Return a table of the functions, and one of the reasons for each."""
        functions = [
            [record.name, short(record.place), record.count, f"{1e3 * record.seconds:.1f}"]
            for record in self.records
        ]
        head = ["function", "line", ">traced", ">ms"]
        tables = [Table(f"traced more than once: {len(functions)}", head, functions)]
        for record in self.records:
            rows = [
                [c.cause, c.what, c.remedy, os.path.basename(caller)]
                for c, _, caller in record.changes
            ]
            title = f"{record.name} at {short(record.place)}"
            tables.append(Table(title, ["cause", "what changed", "remedy", "called at"], rows))
        return tables


def recompiles(
    f: Callable[..., Any] | None = None, *, tell: bool | None = None
) -> RecompilesReport:
    """List functions that were traced more than once: which argument, what it was, what to write.

    - `f`: a function, jitted or not; by default all
    - `tell`: whether each third, sixth, twelfth, ... tracing of a function is told on standard error
      as it happens; by default it is on a terminal and in a notebook

    The report has `.records` and `.changes`: the cause, what changed, and the remedy. Functions that
    are defined anew on one line count as one. Source: the keys of the caches of `jit`.

    >>> f = jax.jit(lambda n: n * 2)
    >>> _ = f(1), f(2.0)
    >>> [change.cause for change in explain.recompiles(f).changes]
    ['dtype']
    """
    if tell is not None:
        show(tell)
    found = [record for record in records.values() if record.count > 1]
    if f is not None:
        f, _ = written(f)
        code = getattr(getattr(f, "__func__", f), "__code__", None)
        place = code and (code.co_filename, code.co_firstlineno)
        found = [record for record in found if record.place == place]
    return RecompilesReport(sorted(found, key=lambda record: -record.seconds))
