"""The rules that a program runs: the cells of a table of primitive by rule.

`recording` wraps the rules of all primitives while it is entered; this and `faults` are the two modules here
that know how minijax is built. `Table` counts distinct programs by cell and names the cells seldom run, with
the reasons that `seldom.txt` gives. `values` counts calls by function, dtype and class of special values.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import fnmatch
import functools
import importlib.resources
from collections.abc import Iterable, Iterator

import ml_dtypes

from minijax import lax
from minijax.core.primitive import ByPlatform, NoRule, Primitive, all_primitives
from minijax.difftest import programs
from minijax.difftest.generating import generate
from minijax.difftest.programs import Program, kind_of
from minijax.difftest.running import library
from minijax.features.sharding.layouts import in_shape_rule

__all__ = ["PLATFORMS", "RULES", "Table", "cells_of", "recording", "replaced_rules", "values"]

PLATFORMS = ("cuda", "rocm", "tpu")
RULES = (
    "shape", "jvp", "linearize", "partial_eval", "transpose", "batch", "layout", "lower",
    *(f"lower {name}" for name in PLATFORMS),
)  # fmt: skip
ENOUGH = 20  # programs that run a cell
Cell = tuple[str, str]


def slot_of(primitive: Primitive, rule: str) -> str:
    """Return the attribute of a primitive that holds a rule; batching has two."""
    told_the_axis = rule == "batch" and primitive.rule_batch_axis is not None
    return "rule_batch_axis" if told_the_axis else f"rule_{rule}"


def rule_of(primitive: Primitive, rule: str):
    """Return the function of a cell, or None for one that holds a reason or nothing."""
    rule, _, platform = rule.partition(" ")
    found = getattr(primitive, slot_of(primitive, rule), None)
    if rule == "layout":  # none is that of operations on elements
        found = None if found is None or found.parts is in_shape_rule else found.parts
    if isinstance(found, ByPlatform):
        found = found.rules.get(platform or "cpu", None if platform else found.default)
    elif platform:  # it has the rule of all platforms
        return None
    return None if found is None or isinstance(found, NoRule) or not callable(found) else found


class _Watched(ByPlatform):
    """A lowering rule that records for which platform it ran."""

    def __init__(self, rule, name: str, cells: set[Cell]):
        own = isinstance(rule, ByPlatform)
        super().__init__(name, rule.default if own else rule)
        self.rules, self.cells = rule.rules if own else {}, cells

    __slots__ = ("cells",)

    def __call__(self, builder, *operands, **params):
        platform = builder.platform
        self.cells.add((self.name, "lower" if platform == "cpu" else f"lower {platform}"))
        return super().__call__(builder, *operands, **params)


@contextlib.contextmanager
def replaced_rules(changes: dict[Cell, object]) -> Iterator[None]:
    """Put functions into cells, with empty caches, for as long as the context is entered."""
    module = library("minijax")
    kept = {}
    for (name, rule), function in changes.items():
        slot = slot_of(all_primitives[name], rule)
        kept[name, slot] = old = getattr(all_primitives[name], slot)
        if rule == "layout":
            changed = copy.copy(old)
            changed.parts, function = function, changed
        setattr(all_primitives[name], slot, function)
    module.clear_caches()
    try:
        yield
    finally:
        for (name, slot), function in kept.items():
            setattr(all_primitives[name], slot, function)
        module.clear_caches()


@contextlib.contextmanager
def recording() -> Iterator[set[Cell]]:
    """Record the cells that run."""
    cells: set[Cell] = set()
    for name in lax.__all__:  # some are imported when they are first asked for
        getattr(lax, name)

    def watched(cell: Cell, function):
        def run(*args, **params):
            cells.add(cell)
            return function(*args, **params)

        return functools.update_wrapper(run, function) if hasattr(function, "__name__") else run

    changes = {}
    for name, primitive in all_primitives.items():
        if primitive.rule_lower is not None:
            changes[name, "lower"] = _Watched(primitive.rule_lower, name, cells)
        for rule in RULES[: RULES.index("lower")]:
            function = rule_of(primitive, rule)
            if function is not None:
                changes[name, rule] = watched((name, rule), function)
    with replaced_rules(changes):
        yield cells


def cells_of(program: Program, platforms: tuple[str, ...] = ()) -> frozenset[Cell]:
    """Return the cells that tracing a program runs, and lowering it for the CPU and for other platforms."""
    module = library("minijax")
    with recording() as cells, module.enable_x64(program.x64), contextlib.suppress(Exception):
        traced = module.jit(programs.compiled(program, module)).trace(*programs.arguments(program))
        traced.lower()
        for platform in platforms:
            with contextlib.suppress(Exception):
                traced.lower(lowering_platforms=(platform,))
    return frozenset(cells)


@functools.cache
def _reasons() -> tuple[tuple[str, str, str], ...]:
    """Return the rows of `seldom.txt`: globs of primitives and rules, and why programs seldom run them."""
    table = (importlib.resources.files("minijax.difftest") / "seldom.txt").read_text()
    lines = [line for line in table.splitlines() if line.strip() and not line.startswith("#")]
    return tuple(tuple(part.strip() for part in line.split(" | ")) for line in lines)


def reason_of(cell: Cell) -> str:
    """Return why a cell is seldom run, or nothing."""
    matches = fnmatch.fnmatchcase
    found = (
        why for name, rule, why in _reasons() if matches(cell[0], name) and matches(cell[1], rule)
    )
    return next(found, "")


class Table:
    """Counts of the distinct programs that ran each cell."""

    def __init__(self, ran: Iterable[frozenset[Cell]] = ()):
        self.counts = collections.Counter(cell for cells in ran for cell in cells)
        held = [
            (name, rule)
            for name in sorted(all_primitives)
            for rule in RULES
            if rule_of(all_primitives[name], rule) is not None
        ]
        self.cells = dict.fromkeys([*held, *sorted(self.counts.keys() - set(held))])

    @classmethod
    def of(cls, seed: int, count: int, platforms: tuple[str, ...] = PLATFORMS) -> Table:
        """Return the table of the first composed programs of a seed."""
        return cls(cells_of(generate(seed, number), platforms) for number in range(count))

    def seldom(self, enough: int = 1) -> list[Cell]:
        """Return the cells that hold a rule, were run by fewer programs, and have no reason for it."""
        return [c for c in self.cells if self.counts[c] < enough and not reason_of(c)]

    def never(self) -> list[Cell]:
        """Return the cells that hold a rule, were never run, and have no reason for it."""
        return self.seldom()

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Yield primitives with a word for each rule: a count, or "-" for a cell without a rule."""
        for name in sorted({name for name, _ in self.cells}):
            cells = [(name, rule) for rule in RULES]
            yield name, [str(self.counts[c]) if c in self.cells else "-" for c in cells]

    def __str__(self) -> str:
        lines = ["primitive".ljust(28) + "".join(rule.rjust(13) for rule in RULES)]
        for name, words in self.rows():
            lines.append((name.ljust(28) + "".join(word.rjust(13) for word in words)).rstrip())
        return "\n".join(lines)


# -- functions by dtypes and special values ----------------------------------------------------------

VALUES = (
    "plain", "zero", "-0", "one", "inf", "-inf", "nan", "subnormal", "smallest", "largest", "empty",
)  # fmt: skip


def class_of(element: str, dtype: str) -> str:
    """Return the class of `VALUES` of one element of an input."""
    if element.startswith("complex"):
        parts = [class_of(part.strip(), "float64") for part in element[8:-1].split(",")]
        return next((part for part in parts if part != "plain"), "plain")
    if element in ("True", "False", "inf", "-inf", "nan"):
        return element if "n" in element else "plain"
    number = float(element)
    if number == 0:
        return "-0" if element.startswith("-") else "zero"
    if number == 1:
        return "one"
    info = ml_dtypes.finfo(dtype) if kind_of(dtype) in "fc" else ml_dtypes.iinfo(dtype)
    if number in (float(info.max), float(info.min)):
        return "largest"
    tiny = float(getattr(info, "tiny", 0.0))
    if abs(number) <= tiny:
        return "smallest" if abs(number) == tiny else "subnormal"
    return "plain"


def values(made: Iterable[Program]) -> collections.Counter[tuple[str, str, str]]:
    """Return how many single calls there are by function, dtype and class of values."""
    counts: collections.Counter = collections.Counter()
    for program in made:
        (call,) = program.main.body
        seen = {
            (call.operation, value.type.dtype, word)
            for value in program.values
            for word in ({class_of(e, value.type.dtype) for e in value.elements} or {"empty"})
        }
        counts.update(seen)
    return counts
