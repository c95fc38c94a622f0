"""Which rules of which primitives a program runs: the cells of a table of primitive by rule.

`recording` wraps the rules of all primitives while it is entered; this and `faults` are the two modules here
that know how minijax is built. `Table` counts distinct programs by cell and names the cells never run.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import re
from collections.abc import Iterable, Iterator

from minijax.core.primitive import ByPlatform, NoRule, Primitive, all_primitives
from minijax.difftest import programs
from minijax.difftest.generating import generate
from minijax.difftest.programs import Program
from minijax.difftest.running import library

__all__ = ["RULES", "Table", "cells_of", "recording", "replaced_rules"]

RULES = ("shape", "jvp", "linearize", "partial_eval", "transpose", "batch", "lower")
Cell = tuple[str, str]


def rule_of(primitive: Primitive, rule: str):
    """Return the function of a cell, or None for one that holds a reason or nothing."""
    found = getattr(primitive, f"rule_{rule}", None)
    if isinstance(found, ByPlatform):
        found = found.rules.get("cpu", found.default)
    return None if found is None or isinstance(found, NoRule) or not callable(found) else found


@contextlib.contextmanager
def replaced_rules(changes: dict[Cell, object]) -> Iterator[None]:
    """Put functions into cells, with empty caches, for as long as the context is entered."""
    module = library("minijax")
    kept = {}
    for (name, rule), function in changes.items():
        primitive = all_primitives[name]
        kept[name, rule] = getattr(primitive, f"rule_{rule}")
        setattr(primitive, f"rule_{rule}", function)
    module.clear_caches()
    try:
        yield
    finally:
        for (name, rule), function in kept.items():
            setattr(all_primitives[name], f"rule_{rule}", function)
        module.clear_caches()


@contextlib.contextmanager
def recording() -> Iterator[set[Cell]]:
    """Record the cells that run."""
    cells: set[Cell] = set()

    def watched(cell: Cell, function):
        def run(*args, **params):
            cells.add(cell)
            return function(*args, **params)

        return functools.update_wrapper(run, function) if hasattr(function, "__name__") else run

    changes = {}
    for name, primitive in all_primitives.items():
        for rule in RULES:
            function = rule_of(primitive, rule)
            if function is not None:
                changes[name, rule] = watched((name, rule), function)
    with replaced_rules(changes):
        yield cells


def cells_of(program: Program) -> frozenset[Cell]:
    """Return the cells that tracing and lowering a program runs."""
    module = library("minijax")
    with recording() as cells, module.enable_x64(program.x64), contextlib.suppress(Exception):
        function = programs.compiled(program, module)
        module.jit(function).lower(*programs.arguments(program))
    return frozenset(cells)


class Table:
    """How many distinct programs ran each cell."""

    def __init__(self, ran: Iterable[frozenset[Cell]] = ()):
        self.counts = collections.Counter(cell for cells in ran for cell in cells)

    @classmethod
    def of(cls, seed: int, count: int) -> Table:
        """Return the table of the first composed programs of a seed."""
        return cls(cells_of(generate(seed, number)) for number in range(count))

    def never(self) -> list[Cell]:
        """Return the cells that hold a rule and were never run."""
        every = [(name, rule) for name in sorted(all_primitives) for rule in RULES]
        return [
            (name, rule)
            for name, rule in every
            if rule_of(all_primitives[name], rule) is not None and not self.counts[name, rule]
        ]

    def __str__(self) -> str:
        names = sorted({name for name, _ in self.counts} | {name for name, _ in self.never()})
        lines = ["primitive".ljust(28) + "".join(rule.rjust(13) for rule in RULES)]
        for name in names:
            words = []
            for rule in RULES:
                held = rule_of(all_primitives[name], rule) is not None
                words.append((str(self.counts[name, rule]) if held else "-").rjust(13))
            lines.append(re.sub(r"\s+$", "", name.ljust(28) + "".join(words)))
        return "\n".join(lines)
