"""Memory of a program: bytes alive at each equation, the peak, and what a backward pass keeps.

The model is XLA's, without its schedule: equations run in their order, arguments are kept to the
end, chains of operations on elements are fused into what reads them, and a result takes the memory
of an operand of its size that nothing reads any more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var
from minijax.explain.programs import (
    Flat,
    bytes_of,
    inlined,
    is_backward,
    line_of,
    short,
    sub_programs,
    traced,
)
from minijax.explain.tables import Report, Table, quantity
from minijax.stages import Traced

__all__ = ["MemoryReport", "MemoryRow", "Residual", "memory"]

_VIEWS = frozenset("copy expand_dims reshape squeeze stop_gradient".split())
_CHEAP = frozenset(
    "abs add add_any and bitcast_convert_type broadcast_in_dim clamp concatenate "
    "convert_element_type dynamic_slice eq floor gather ge gt imag integer_pow iota is_finite le "
    "lt max min mul ne neg not or pad real rev round select_n shift_left "
    "shift_right_arithmetic shift_right_logical sign slice square sub transpose xor".split()
)  # computed again by each of their readers
_COSTLY = frozenset(
    "acos asin atan atan2 cbrt ceil cos cosh div erf erfc exp exp2 expm1 lgamma log log1p logistic "
    "pow rem rsqrt sin sinh sqrt tan tanh".split()
)  # fused where there is one reader
_FUSED = _CHEAP | _COSTLY
_MOVES = frozenset("broadcast_in_dim concatenate dynamic_slice gather pad rev slice transpose".split())


class MemoryRow(NamedTuple):
    """One equation: bytes alive while it runs, and bytes that it takes anew."""

    eqn: JaxprEqn
    line: tuple[str, int]
    alive: int
    made: int


class Residual(NamedTuple):
    """A value that the forward part makes and the backward part reads."""

    eqn: JaxprEqn
    line: tuple[str, int]
    aval: Any
    bytes: int


class MemoryReport(Report):
    """The result of `memory`."""

    def __init__(self, stage: Traced, plan: _Plan):
        self._stage = stage
        self.rows, self.peak = plan.rows, plan.peak
        self.arguments, self.residuals = plan.arguments, plan.residuals
        self.savings: dict[tuple[str, int], int] = plan.savings

    @functools.cached_property
    def xla(self) -> int:
        """XLA's own figure: arguments, outputs and temporaries of the compiled program."""
        stats = self._stage.lower().compile().memory_analysis()
        return (
            stats.argument_size_in_bytes + stats.output_size_in_bytes
            + stats.temp_size_in_bytes - stats.alias_size_in_bytes
        )  # fmt: skip

    def by_line(self) -> dict[tuple[str, int], int]:
        """Return the most bytes alive at any equation of a line, the most first."""
        found: dict[tuple[str, int], int] = {}
        for row in self.rows:
            found[row.line] = max(found.get(row.line, 0), row.alive)
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def tables(self) -> list[Table]:
        """Return peaks by line, residuals by line, and the equations."""
        bar = lambda size: "█" * round(20 * size / max(self.peak, 1))
        size = functools.partial(quantity, unit="B")
        title = f"memory: peak {size(self.peak)}, of which arguments {size(self.arguments)}"
        lines = [[short(line), size(alive), bar(alive)] for line, alive in self.by_line().items()]
        kept: dict[tuple[str, int], int] = {}
        for residual in self.residuals:
            kept[residual.line] = kept.get(residual.line, 0) + residual.bytes
        lasting = [
            [short(line), size(kept[line]), size(self.savings[line])]
            for line in sorted(kept, key=lambda line: -kept[line])
        ]
        eqns = [
            [row.eqn.primitive, row.eqn.outvars[0].aval.str_short(True) if row.eqn.outvars else "",
             size(row.made), size(row.alive), bar(row.alive), short(row.line)]
            for row in self.rows
        ]  # fmt: skip
        total = size(sum(kept.values()))
        return [
            Table(title, ["line", ">alive", ""], lines),
            Table(f"residuals: {total}", ["line", ">kept", ">a checkpoint saves"], lasting),
            Table("by equation", ["equation", "result", ">made", ">alive", "", "line"], eqns),
        ]


def memory(f: Callable[..., Any], *args: Any, fused: bool = True, **kwargs: Any) -> MemoryReport:
    """Estimate the memory that a function takes, by equation and by the user's line.

    - `args`, `kwargs`: arrays and pytrees as `f` takes them, or `ShapeDtypeStruct`s
    - `fused`: whether chains of operations on elements take no memory, as in a compiled program

    The report has `.peak`, `.rows` and `.by_line()` in bytes. Where `f` computes a gradient,
    `.residuals` are what its backward part reads of the forward part, and `.savings` the bytes by
    line that a `checkpoint` around that line would not keep. `.xla` compiles it and is XLA's figure.
    TypeError where `f` cannot be traced. Source: liveness analysis of the jaxpr.

    >>> explain.memory(lambda x: jnp.sin(x) @ x, jnp.ones((8, 8))).peak
    768
    """
    stage = traced(f, args, kwargs)
    return MemoryReport(stage, _Plan(inlined(stage.jaxpr), fused))


class _Plan:
    """Which values of a program take memory, and when."""

    def __init__(self, flat: Flat, fused: bool):
        self.flat = flat
        self.base = {*flat.invars, *(v for v, _ in flat.constants)}
        self.arguments = sum(map(bytes_of, self.base))
        self.readers: dict[Var, list[JaxprEqn]] = {}
        for eqn in flat.eqns:
            for var in {v for v in eqn.invars if type(v) is not Literal}:
                self.readers.setdefault(var, []).append(eqn)
        self.outputs = {v for v in flat.outvars if type(v) is not Literal}
        self.roots: dict[Var, tuple[Var, ...]] = {v: (v,) for v in self.base}
        for eqn in flat.eqns:
            through = self.virtual(eqn, fused)
            for var in eqn.outvars:
                self.roots[var] = self.read(eqn.invars) if through else (var,)
        self.walk(fused)
        self.residuals = self._residuals()
        self.savings = self._savings()

    def read(self, atoms: Iterable[Any]) -> tuple[Var, ...]:
        """Return the values in memory that computing these needs."""
        found = dict.fromkeys(r for v in atoms if type(v) is not Literal for r in self.roots[v])
        return tuple(found)

    def virtual(self, eqn: JaxprEqn, fused: bool) -> bool:
        """Whether the result of an equation never lies in memory of its own."""
        name = eqn.primitive.name
        if len(eqn.outvars) != 1:
            return False
        (out,) = eqn.outvars
        source = self.read(eqn.invars)
        if name in _VIEWS and out not in self.outputs:
            return True
        if name in _VIEWS and len(source) == 1 and source[0] not in self.base | self.outputs:
            return True
        if not fused or name not in _FUSED or out in self.outputs:
            return False
        readers = self.readers.get(out, ())
        if name == "transpose" and all(r.primitive.name == "dot_general" for r in readers):
            return True
        if name in _COSTLY and len(readers) > 1:
            return False
        return all(self._takes_in(reader) for reader in readers)

    def _takes_in(self, reader: JaxprEqn) -> bool:
        """Whether an equation is compiled together with what it reads."""
        name = reader.primitive.name
        if name in _VIEWS:
            (out,) = reader.outvars
            after = self.readers.get(out, ())
            return out not in self.outputs and all(self._takes_in(r) for r in after)
        return name in _FUSED or name.startswith(("reduce_", "arg"))

    def walk(self, fused: bool) -> None:
        """Add up what is alive, equation by equation."""
        last: dict[Var, int] = {}
        for number, eqn in enumerate(self.flat.eqns):
            if not all(self.roots[v] != (v,) for v in eqn.outvars):
                last.update(dict.fromkeys(self.read(eqn.invars), number))
        end = len(self.flat.eqns)
        last.update(dict.fromkeys(self.read(self.flat.outvars), end))
        copied = [v for v in self.flat.outvars if type(v) is Literal or self.roots[v][0] in self.base]
        ending: dict[int, list[Var]] = {}
        for var, number in last.items():
            if var not in self.base:
                ending.setdefault(number, []).append(var)
        now = self.peak = self.arguments + sum(map(bytes_of, copied))
        self.rows = []
        for number, eqn in enumerate(self.flat.eqns):
            made = sum(bytes_of(v) for v in eqn.outvars if self.roots[v] == (v,))
            ended = ending.get(number, [])
            shared = self._shared(eqn, ended)
            inner = max([_inner_peak(p, eqn, fused) for p in _bodies(eqn)], default=0)
            alive = now + made - shared + inner
            self.peak = max(self.peak, alive)
            self.rows.append(MemoryRow(eqn, line_of(eqn), alive, made))
            now += made - sum(map(bytes_of, ended))
            now -= sum(bytes_of(v) for v in eqn.outvars if self.roots[v] == (v,) and v not in last)

    def _shared(self, eqn: JaxprEqn, ended: list[Var]) -> int:
        """Bytes of operands, read for the last time, whose memory the results take."""
        name = eqn.primitive.name
        if name in _MOVES or not (name in _FUSED or eqn.primitive.rule_steps is not None):
            return 0
        free = [bytes_of(v) for v in ended]
        shared = 0
        for size in [bytes_of(v) for v in eqn.outvars if self.roots[v] == (v,)]:
            if size in free:
                free.remove(size)
                shared += size
        return shared

    def _residuals(self) -> list[Residual]:
        """What the backward part reads of what the forward part made."""
        read: set[Var] = set()
        for eqn in self.flat.eqns:
            if is_backward(eqn):
                read.update(self.read(eqn.invars))
        return [
            Residual(eqn, _origin(eqn, place), var.aval, bytes_of(var))
            for eqn in self.flat.eqns
            if not is_backward(eqn)
            for place, var in enumerate(eqn.outvars)
            if var in read
        ]

    def _savings(self) -> dict[tuple[str, int], int]:
        """By line, residuals made there without the operands that computing them again needs."""
        kept = {v for r in self.residuals for v in r.eqn.outvars} | self.base
        found: dict[tuple[str, int], int] = {}
        for line in {r.line for r in self.residuals}:
            here = [e for e in self.flat.eqns if line_of(e) == line and not is_backward(e)]
            own = {v for eqn in here for v in eqn.outvars}
            needed = {v for eqn in here for v in self.read(eqn.invars)} - own - kept
            made = sum(r.bytes for r in self.residuals if r.line == line)
            found[line] = max(0, made - sum(map(bytes_of, needed)))
        return found


def _bodies(eqn: JaxprEqn) -> list[ClosedJaxpr]:
    return [] if eqn.primitive.rule_steps is None else list(sub_programs(eqn))


def _inner_peak(program: ClosedJaxpr, eqn: JaxprEqn, fused: bool) -> int:
    """Bytes that one turn of a loop, or a branch, takes beside its operands and the results."""
    plan = _Plan(inlined(program), fused)
    taken = plan.peak - plan.arguments
    before = eqn.params.get("num_consts", 0) + eqn.params.get("num_carry", 0)
    if "length" in eqn.params:  # rows that are sliced for what cannot take the slicing in
        for var in plan.flat.invars[before:]:
            if not all(plan._takes_in(reader) for reader in plan.readers.get(var, ())):
                taken += bytes_of(var)
    return taken


def _origin(eqn: JaxprEqn, place: int) -> tuple[str, int]:
    """The line of a result, within the body of a loop if that is where it is made."""
    for program in _bodies(eqn):
        flat = inlined(program)
        if place < len(flat.outvars):
            made = [e for e in flat.eqns if flat.outvars[place] in e.outvars]
            if made:
                return _origin(made[0], made[0].outvars.index(flat.outvars[place]))
    return line_of(eqn)
