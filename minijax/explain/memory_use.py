"""Memory of a program: bytes in use at each instruction, the peak, and what a backward pass keeps.

The figures are of the program that XLA compiles: which buffers it has and where they lie is read from
its own buffer assignment, or worked out where a compiler does not show that, as those of GPUs; the
user's line of each is read from the names of its operations.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from minijax.core.jaxpr import ClosedJaxpr
from minijax.explain.buffers import Buffer, assignment, buffers, in_use
from minijax.explain.checkpoints import checkpointed, flattened
from minijax.explain.lines import Book
from minijax.explain.origins import Origins
from minijax.explain.programs import short, traced
from minijax.explain.tables import Report, Table, quantity
from minijax.stages import Traced, Wrapped

__all__ = ["MemoryReport", "MemoryRow", "Residual", "memory"]

_MARK = re.compile(r"_k(\d+)[a-z]?_")
_MOST_LINES = 3  # whose checkpoints are compiled to see what they save
_LEAST_SHARE = 0.05  # of all residuals that a line must keep for that

_Place = tuple[str, int]
_NOWHERE = "<compiler>", 0


class MemoryRow(NamedTuple):
    """One instruction of XLA's program: bytes in use while it runs, and bytes that it takes anew."""

    name: str
    opcode: str
    line: _Place
    alive: int
    made: int


class Residual(NamedTuple):
    """A value that the forward part makes and the backward part reads."""

    name: str
    line: _Place
    bytes: int


class MemoryReport(Report):
    """The result of `memory`. Sizes are bytes, on each device.

    - `peak`: the most in use at once
    - `arguments`, `results`: those that are in use from the beginning to the end
    - `rows`: each instruction that takes memory, in the order in which they run
    - `residuals`: values that the backward part reads of the forward part
    """

    def __init__(self, stage: Traced):
        self._stage = stage
        book = Book(Origins())
        compiled = stage.with_jaxpr(book.marked(stage.jaxpr)).lower().compile()
        self._lines = {number: line for line, number in book.kin.items()}
        self._sizes = compiled.memory_analysis()
        self.arguments = self._sizes.argument_size_in_bytes
        self.results = self._sizes.output_size_in_bytes - self._sizes.alias_size_in_bytes
        self._is_shown = bool(assignment(compiled))
        found, order = buffers(compiled, _MARK.search)
        lasting = self.arguments + self.results
        made: dict[Any, list[Buffer]] = {}
        for buffer in found:
            made.setdefault(buffer.maker, []).append(buffer)
        self.rows: list[MemoryRow] = []
        self.peak, self._held = lasting, []
        for instruction, (taken, held) in zip(order, in_use(found, len(order)), strict=True):
            if lasting + taken > self.peak:
                self.peak, self._held = lasting + taken, held
            new = made.get(instruction, [])
            if new:
                size = sum(buffer.size for buffer in new)
                line = self._line(max(new, key=lambda buffer: buffer.size).op_name)
                row = MemoryRow(instruction.name, instruction.opcode, line, lasting + taken, size)
                self.rows.append(row)
        self.residuals = [
            Residual(b.maker.name, self._line(b.op_name), b.size) for b in _residuals(found)
        ]

    def _line(self, op_name: str) -> _Place:
        """The user's line of an operation; the innermost, where calls are around it."""
        marks = _MARK.findall(op_name)
        return self._lines.get(int(marks[-1]), _NOWHERE) if marks else _NOWHERE

    @property
    def xla(self) -> int:
        """XLA's own figure: arguments, results and temporaries, with gaps between them."""
        return self.arguments + self.results + self._sizes.temp_size_in_bytes

    def at_peak(self) -> dict[_Place, int]:
        """Return the bytes that each line's values take at the peak, the most first."""
        return _summed((self._line(buffer.op_name), buffer.size) for buffer in self._held)

    def by_line(self) -> dict[_Place, int]:
        """Return the most bytes in use at any instruction of a line, the most first."""
        found: dict[_Place, int] = {}
        for row in self.rows:
            found[row.line] = max(found.get(row.line, 0), row.alive)
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @functools.cached_property
    def savings(self) -> dict[_Place, int]:
        """Bytes by which the peak falls with a `checkpoint` around a line, the most first.

        The lines that keep the most are tried: the program is compiled with each.
        """
        kept = _summed((residual.line, residual.bytes) for residual in self.residuals)
        least = _LEAST_SHARE * sum(kept.values())
        tried = [line for line, size in kept.items() if size >= least and line != _NOWHERE]
        found: dict[_Place, int] = {}
        before = None
        for line in tried[:_MOST_LINES]:
            changed = checkpointed(self._stage.jaxpr, line)
            if changed is not None:
                before = before or self._total(flattened(self._stage.jaxpr))
                found[line] = before - self._total(changed)
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _total(self, closed: ClosedJaxpr) -> int:
        sizes = self._stage.with_jaxpr(closed).lower().compile().memory_analysis()
        return sizes.temp_size_in_bytes

    def tables(self) -> list[Table]:
        """Return the bytes at the peak by line, residuals by line, and the instructions."""
        bar = lambda size: "█" * round(20 * size / max(self.peak, 1))
        size = functools.partial(quantity, unit="B")
        fixed = {"arguments": self.arguments, "results": self.results}
        held = {short(line): taken for line, taken in self.at_peak().items()} | fixed
        lines = [[name, size(taken), bar(taken)] for name, taken in held.items()]
        kept = _summed((residual.line, residual.bytes) for residual in self.residuals)
        lasting = [[short(line), size(taken), self._saving(line)] for line, taken in kept.items()]
        rows = [
            [row.name, size(row.made), size(row.alive), bar(row.alive), short(row.line)]
            for row in self.rows
        ]
        total = size(sum(kept.values()))
        title = f"memory: peak {size(self.peak)} in XLA's program"
        if not self._is_shown:
            title += f", worked out from its instructions; XLA plans {size(self.xla)}"
        head = ["line", ">kept", ">a checkpoint saves"]
        return [
            Table(title, ["made by", ">at the peak", ""], lines),
            *([Table(f"residuals: {total}", head, lasting)] if lasting else []),
            Table("by instruction", ["instruction", ">made", ">in use", "", "line"], rows),
        ]

    def _saving(self, line: _Place) -> str:
        saved = self.savings.get(line)
        if saved is not None and saved < 0:
            return f"none, {quantity(-saved, 'B')} more"
        return quantity(saved, "B")


def memory(f: Callable[..., Any], *args: Any, **kwargs: Any) -> MemoryReport:
    """Show the memory that a compiled function takes, by instruction and by the user's line.

    - `args`, `kwargs`: arrays and pytrees as `f` takes them, or `ShapeDtypeStruct`s

    `f` is compiled and not run. The report has `.peak`, `.at_peak()`, `.by_line()` and `.rows` in
    bytes. Where `f` computes a gradient, `.residuals` are what its backward part reads of the
    forward part, and `.savings` by how much a `checkpoint` around a line lowers the peak. TypeError
    where `f` cannot be traced, RuntimeError where the compiler does not show its program.
    Source: liveness of the values in XLA's buffer assignment. The compilers of GPUs do not show theirs:
    rows and peak are then worked out from the program, within 10 % for most, and `.xla` is XLA's total.

    >>> explain.memory(lambda x: jnp.sin(x) @ x, jnp.ones((8, 8))).peak
    768
    """
    jitted = isinstance(f, Wrapped)  # with its own donated arguments and shardings
    return MemoryReport(f.trace(*args, **kwargs) if jitted else traced(f, args, kwargs))


def _residuals(found: Iterable[Buffer]) -> Iterator[Buffer]:
    """Yield the buffers of the forward part that the backward part reads."""
    backward = lambda name: "transpose(" in name
    for buffer in found:
        if buffer.op_name and not backward(buffer.op_name) and any(map(backward, buffer.readers)):
            yield buffer


def _summed(pairs: Iterable[tuple[_Place, int]]) -> dict[_Place, int]:
    found: dict[_Place, int] = {}
    for line, size in pairs:
        found[line] = found.get(line, 0) + size
    return dict(sorted(found.items(), key=lambda item: -item[1]))
