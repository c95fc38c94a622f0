"""`explain(f, *args)`: every stage of a program, from the source to what XLA runs.

The stages are lists of lines (`explain.lines`); here they are put in order, and written for a
terminal. `explain.pages` writes them as one HTML page.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from minijax.explain.lines import Book, Line, Span, Stage, sources
from minijax.explain.origins import Applied, watched
from minijax.explain.pages import framed, page
from minijax.explain.parts import PartsTrace, run_steps
from minijax.explain.programs import called, placed, start_of, sub_programs, traced, values_of
from minijax.explain.tables import Report, Table
from minijax.explain.timing import Times
from minijax.explain.work import CostReport, cost_rows
from minijax.features.queries import is_ref
from minijax.lax.refs import new_ref
from minijax.lax.shard_map import shard_map_p
from minijax.stages import Traced

__all__ = ["Explanation", "Stage", "explain"]

_MOST_STAGES = 24  # of programs before and after transforms
_MOST_LINES = 3000  # of one stage
_MOST_TURNS = 1000  # of loops that are looked into for the ranges of values
_COLORS = {"jvp": "36", "transpose": "35", "vmap": "33", "sum": "35", "written": "0"}


class Explanation(Report):
    """The result of `explain`: the stages of a program in order."""

    def __init__(self, name: str, stages: list[Stage], cost: CostReport | None, book: Book):
        self.name, self.stages, self.cost = name, stages, cost
        self.lines = {number: line for line, number in book.kin.items()}

    def __getitem__(self, name: str) -> Stage:
        """The stage of a name, or whose name begins so. KeyError if there is none."""
        for stage in self.stages:
            if stage.name.startswith(name):
                return stage
        raise KeyError(f"There is no stage {name!r}: there are {[s.name for s in self.stages]}.")

    def tables(self) -> list[Table]:
        """Return the tables of the cost."""
        return [] if self.cost is None else self.cost.tables()

    def text(self, width: int | None = None, color: bool | None = None) -> str:
        """Return the stages one below the other, with the user's line and the rule beside them.

        `width` is by default the terminal's; `color` is on where standard output is a terminal.
        """
        width = shutil.get_terminal_size((100, 40)).columns if width is None else width
        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ if color is None else color
        parts = [part for stage in self.stages for part in _section(stage, width, color)]
        parts += [
            "",
            *(line[:width] for table in self.tables()[:1] for line in str(table).split("\n")),
        ]
        return "\n".join(parts)

    __str__ = __repr__ = lambda self: self.text()

    def html(self) -> str:
        """Return one page of HTML that needs nothing else."""
        return page(self.name, self.stages, self.tables())

    def save(self, path: Any) -> Any:
        """Write the page to a file, and return the path."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())
        return path

    def _repr_html_(self) -> str:
        return framed(self.html(), self.name)


def _section(stage: Stage, width: int, color: bool) -> Iterator[str]:
    """A stage as text: beside the program stand lines and rules where the width allows it."""
    title = f"── {stage.name} ".ljust(width, "─")
    yield f"\033[1m{title}\033[0m" if color else title
    notes = [f"{line.where}  {line.made}".strip() for line in stage.lines]
    beside = width >= 72 and any(notes)
    room = width - min(width // 2, max(map(len, notes), default=0) + 2) if beside else width
    for line, note in zip(stage.lines, notes, strict=True):
        text, value = "  " * line.depth + line.text, f"   # {line.value}" if line.value else ""
        most = (room - 2 if beside and note else width) - len(value)
        text = (text if len(text) <= most else text[: max(most - 1, 0)] + "…") + value
        if beside and note:
            text = text[: room - 2].ljust(room) + note[: width - room]
        code = _COLORS.get(line.transform, "0")
        yield f"\033[{code}m{text}\033[0m" if color and code != "0" else text
        if note and not beside:
            yield ("  " * (line.depth + 2) + f"# {note}")[:width]
    yield ""


def explain(
    f: Callable[..., Any], *args: Any, values: bool = False, compile: bool = True, **kwargs: Any
) -> Explanation:
    """Show a function at every stage, from its source to the program that XLA runs.

    - `args`, `kwargs`: arrays and pytrees as `f` takes them, or `ShapeDtypeStruct`s
    - `values`: whether to run it, and to show the range of each value and how many are NaN, in loops
      over their turns, in a `shard_map` over all devices
    - `compile`: whether to show XLA's optimised program

    The stages are the source, the program before and after each transform within `f` and around it,
    the whole jaxpr, StableHLO, XLA's program, and the cost. Each equation has the user's line, the
    transform and the rule that made it; a stage that this platform has none of says why. The result is
    shown as text, or as a page in a notebook; `.save(path)` writes the page. TypeError where `f` cannot
    be traced.

    >>> print(explain(jax.grad(jnp.sin), 1.0)["jaxpr"].lines[1].made)
    jvp of sin
    """
    stage, seen = watched(lambda: traced(f, args, kwargs))
    book = Book(seen)
    closed = stage.jaxpr
    if values:
        leaves = zip(closed.in_avals, values_of(f, args, kwargs), strict=True)
        _note_values(book, closed, [new_ref(x) if is_ref(aval) else x for aval, x in leaves])
    programs = _programs(seen.applied, closed)
    name = getattr(f, "__name__", type(f).__name__)
    start = start_of(f)
    programs = [(title, placed(program, start)) for title, program in programs]
    stages = [Stage(title, "jaxpr", _cut(book.program(p)), p) for title, p in programs]
    stages += list(_modules(book, stage, compile))
    stages.insert(0, Stage("source", "python", sources(book, f)))
    cost = CostReport(list(cost_rows(closed, 1, False)), Times(), None)
    return Explanation(name, stages, cost, book)


def _cut(lines: list[Line]) -> list[Line]:
    if len(lines) <= _MOST_LINES:
        return lines
    kept = lines[:_MOST_LINES]
    opened = sum(line.opens for line in kept) - sum(line.closes for line in kept)
    more = Line(f"… {len(lines) - _MOST_LINES} more lines")
    return [*kept, more, *[Line("", closes=True)] * opened]


def _programs(applied: Sequence[Applied], whole: ClosedJaxpr) -> list[tuple[str, ClosedJaxpr]]:
    """The programs before and after each transform, inner ones first; equal ones appear once."""
    found: list[tuple[str, ClosedJaxpr]] = []

    def visit(each: Applied) -> None:
        for inner in each.inner:
            visit(inner)
        for side, program in (("before", each.before), ("after", each.after)):
            if program is not None:
                found.append((f"{side} {each.transform} of {each.name}", program))

    for each in applied:
        visit(each)
    kept: dict[str, tuple[list[str], ClosedJaxpr]] = {}
    for title, program in found[: 4 * _MOST_STAGES]:
        titles, _ = kept.setdefault(_shape_of(program), ([], program))
        if title not in titles:
            titles.append(title)
    kept.pop(_shape_of(whole), None)
    rows = [(", ".join(titles[:3]), program) for titles, program in kept.values()]
    return [*rows[:_MOST_STAGES], ("jaxpr", whole)]


def _shape_of(program: ClosedJaxpr) -> str:
    """The text of a program with its constants among its inputs, so that equal ones have equal texts."""
    jaxpr = program.jaxpr
    inputs = [*jaxpr.constvars, *jaxpr.invars]
    return str(jaxpr.replace(constvars=[], invars=sorted(inputs, key=_first_use(jaxpr))))


def _first_use(jaxpr: Any) -> Callable[[Any], int]:
    order: dict[Any, int] = {}
    for eqn in jaxpr.eqns:
        for var in eqn.invars:
            if type(var) is not Literal:
                order.setdefault(var, len(order))
    return lambda var: order.get(var, len(order))


def _modules(book: Book, stage: Traced, compile: bool) -> Iterator[Stage]:
    """StableHLO, and the program that XLA makes of it; or why this platform has no such program."""

    def shown(title: str, kind: str, text: Callable[[], str]) -> Stage:
        try:
            return Stage(title, kind, _cut(book.module(text())))
        except Exception as error:  # of a lowering, of XLA, or of a callback
            told = f"{type(error).__name__}: {error}".splitlines()
            return Stage(title, kind, [Line(line) for line in told])

    lower = functools.cache(lambda: stage.with_jaxpr(book.marked(stage.jaxpr)).lower())
    yield shown("StableHLO", "mlir", lambda: lower().as_text(debug_info=True))
    if compile:
        yield shown("optimised HLO", "hlo", lambda: lower().compile().as_text())


class _EnoughError(Exception):
    """Raised within loops that turn for too long."""


def _note_values(book: Book, closed: ClosedJaxpr, args: Sequence[Any]) -> None:
    """Run a program equation by equation, and note the ranges of results.

    Those within loops and branches are of all turns, or of the first ones where there are very many.
    """
    turns = 0

    def run(program: ClosedJaxpr, *args: Any) -> list[Any]:
        env = dict(zip(program.constvars, program.consts, strict=True))
        env.update(zip(program.invars, args, strict=True))
        read = lambda v: v.value() if type(v) is Literal else env[v]
        for eqn in program.eqns:
            ins, inner = [read(v) for v in eqn.invars], called(eqn)
            if inner is not None:
                outs = run(inner, *ins)
            else:
                out = eqn.primitive.bind(*ins, **eqn.params)
                outs = out if eqn.primitive.multiple_results else [out]
                if all(effect.pure for effect in eqn.effects):
                    within(eqn, ins)
            env.update(zip(eqn.outvars, outs, strict=True))
            for var, value in zip(eqn.outvars, outs, strict=True):
                book.values.setdefault(var, Span()).add(value)
        return [read(v) for v in program.outvars]

    def within(eqn: JaxprEqn, ins: Sequence[Any]) -> None:
        try:
            if eqn.primitive is shard_map_p:
                parts = PartsTrace(eqn)
                (program,) = sub_programs(eqn)
                with parts.entered():
                    run(program, *parts.split(eqn, ins))
            elif eqn.primitive.rule_steps is not None:
                run_steps(eqn, ins, turn)
        except _EnoughError:
            made = (v for p in sub_programs(eqn) for e in p.eqns for v in e.outvars)
            for var in filter(book.values.__contains__, made):
                book.values[var].is_part = True

    def turn(program: ClosedJaxpr, *args: Any) -> list[Any]:
        nonlocal turns
        turns += 1
        if turns > _MOST_TURNS:
            raise _EnoughError
        return run(program, *args)

    run(closed, *args)
