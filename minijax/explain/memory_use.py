"""Memory of a program: bytes alive at each equation, the peak, and what a backward pass keeps.

The model is XLA's, without its schedule: equations run in their order, arguments are kept to the
end, chains of operations on elements are fused into what reads them, and a result takes the memory
of an operand of its size that nothing reads any more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax import lax
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
from minijax.transforms.primitives import add_any_p

__all__ = ["MemoryReport", "MemoryRow", "Residual", "memory"]

_VIEWS = frozenset((
    lax.copy_p, lax.reshape_p, lax.squeeze_p, lax.stop_gradient_p,
))  # fmt: skip
# Computed again by each of their readers.
_CHEAP = frozenset((
    lax.abs_p, lax.add_p, add_any_p, lax.and_p, lax.bitcast_convert_type_p,
    lax.broadcast_in_dim_p, lax.clamp_p, lax.concatenate_p, lax.convert_element_type_p,
    lax.dynamic_slice_p, lax.eq_p, lax.floor_p, lax.gather_p, lax.ge_p, lax.gt_p, lax.imag_p,
    lax.integer_pow_p, lax.iota_p, lax.is_finite_p, lax.le_p, lax.lt_p, lax.max_p, lax.min_p,
    lax.mul_p, lax.ne_p, lax.neg_p, lax.not_p, lax.or_p, lax.pad_p, lax.real_p, lax.rev_p,
    lax.round_p, lax.select_n_p, lax.shift_left_p, lax.shift_right_arithmetic_p,
    lax.shift_right_logical_p, lax.sign_p, lax.slice_p, lax.square_p, lax.sub_p,
    lax.transpose_p, lax.xor_p,
))  # fmt: skip
# Fused where there is one reader.
_COSTLY = frozenset((
    lax.acos_p, lax.asin_p, lax.atan_p, lax.atan2_p, lax.cbrt_p, lax.ceil_p, lax.cos_p,
    lax.cosh_p, lax.div_p, lax.erf_p, lax.erfc_p, lax.exp_p, lax.exp2_p, lax.expm1_p,
    lax.lgamma_p, lax.log_p, lax.log1p_p, lax.logistic_p, lax.pow_p, lax.rem_p, lax.rsqrt_p,
    lax.sin_p, lax.sinh_p, lax.sqrt_p, lax.tan_p, lax.tanh_p,
))  # fmt: skip
_FUSED = _CHEAP | _COSTLY
_MOVES = frozenset((
    lax.broadcast_in_dim_p, lax.concatenate_p, lax.dynamic_slice_p, lax.gather_p, lax.pad_p,
    lax.rev_p, lax.slice_p, lax.transpose_p,
))  # fmt: skip


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
    """A plan of the memory of a program: the values that take some, and when."""

    def __init__(self, flat: Flat, fused: bool):
        self.flat, self.fused = flat, fused
        self.base = {*flat.invars, *(v for v, _ in flat.constants)}
        self.arguments = sum(map(bytes_of, self.base))
        self.readers: dict[Var, list[JaxprEqn]] = {}
        for eqn in flat.eqns:
            for var in dict.fromkeys(v for v in eqn.invars if type(v) is not Literal):
                self.readers.setdefault(var, []).append(eqn)
        self.outputs = {v for v in flat.outvars if type(v) is not Literal}
        self.through: dict[Var, tuple[Var, ...]] = {}  # what is read instead, to compute it again
        self.stored = set(self.base)
        for eqn in flat.eqns:
            self.place(eqn)
        self.walk()
        self.residuals = self._residuals()
        self.savings = self._savings()

    # -- fusion ------------------------------------------------------------------------------------

    def place(self, eqn: JaxprEqn) -> None:
        """Decide whether the results of an equation lie in memory, and who computes them again."""
        primitive, outs = eqn.primitive, eqn.outvars
        if primitive in _VIEWS:
            source = self.read(eqn)
            if outs[0] not in self.outputs or not self.base.issuperset(source):
                self.through[outs[0]] = source
                return
        if primitive not in _FUSED or not self.fused or outs[0] in self.outputs:
            self.stored.update(outs)
            return
        (out,) = outs
        readers = self.readers.get(out, [])
        taken = [self.takes_in(reader, out) for reader in readers]
        products = all(reader.primitive is lax.dot_general_p for reader in readers)
        folded = primitive is lax.transpose_p and products
        if folded or (all(taken) and (primitive in _CHEAP or len(readers) == 1)):
            self.through[out] = self.read(eqn)
            return
        self.stored.add(out)
        whole = [v for v in self.read(eqn) if bytes_of(v) >= bytes_of(out)]
        if primitive in _CHEAP and len(whole) <= 1 and any(taken):
            self.through[out] = self.read(eqn)

    def takes_in(self, reader: JaxprEqn, var: Var) -> bool:
        """Whether an equation is compiled together with the one that makes what it reads."""
        if reader.primitive in _VIEWS:
            (out,) = reader.outvars
            after = self.readers.get(out, ())
            return out not in self.outputs and all(self.takes_in(r, out) for r in after)
        if self._reduces(reader):
            return len(self.readers[var]) == 1
        return reader.primitive in _FUSED

    def _reduces(self, eqn: JaxprEqn) -> bool:
        """Whether an equation is a reduction, or is compiled as a part of one."""
        if eqn.primitive.name.startswith(("reduce_", "arg")):
            return True
        if eqn.primitive not in _FUSED or eqn.outvars[0] in self.outputs:
            return False
        readers = self.readers.get(eqn.outvars[0], ())
        return len(readers) == 1 and self._reduces(readers[0])

    def read(self, eqn: JaxprEqn) -> tuple[Var, ...]:
        """Return the values in memory that computing an equation reads."""
        found: dict[Var, None] = {}
        for var in eqn.invars:
            if type(var) is Literal:
                continue
            again = var in self.through and (var not in self.stored or self.takes_in(eqn, var))
            found.update(dict.fromkeys(self.through[var] if again else (var,)))
        return tuple(found)

    # -- liveness ----------------------------------------------------------------------------------

    def schedule(self) -> list[JaxprEqn]:
        """The equations that store something, in the order of XLA's CPU backend: breadth first."""
        units = [
            e for e in self.flat.eqns if not e.outvars or not self.stored.isdisjoint(e.outvars)
        ]
        users: dict[Var, list[JaxprEqn]] = {}
        missing = {}
        for eqn in units:
            missing[eqn] = len(self.read(eqn))
            for var in self.read(eqn):
                users.setdefault(var, []).append(eqn)
        order = [eqn for eqn in units if not missing[eqn]]
        ready = [*self.flat.invars, *(v for v, _ in self.flat.constants)]
        made = iter(order)
        while True:
            for var in ready:
                for eqn in sorted(users.get(var, ()), key=self._turned):
                    missing[eqn] -= 1
                    if not missing[eqn]:
                        order.append(eqn)
            eqn = next(made, None)
            if eqn is None:
                return order
            ready = eqn.outvars

    def _turned(self, eqn: JaxprEqn) -> bool:
        """Whether XLA folds a transpose into a product, which then comes after others."""
        readers = self.readers.get(eqn.outvars[0], ()) if eqn.outvars else ()
        turned = any(reader.primitive is lax.transpose_p for reader in readers)
        return turned and eqn.primitive is lax.dot_general_p

    def walk(self) -> None:
        """Add up what is alive, equation by equation."""
        order = self.schedule()
        reads = [self.read(eqn) for eqn in order]
        last = {var: number for number, read in enumerate(reads) for var in read}
        results = [self.through.get(v, (v,)) if v not in self.stored else (v,)
                   for v in self.flat.outvars if type(v) is not Literal]  # fmt: skip
        kept = self.base | {v for found in results for v in found}
        sizes = {v: bytes_of(v) for eqn in order for v in eqn.outvars if v not in kept}
        shares: list[int] = []
        for number in reversed(range(len(order))):
            shares.append(self._share(order[number], number, reads[number], last, kept, sizes))
        shares.reverse()
        ending: dict[int, list[Var]] = {}
        for var in sizes:
            ending.setdefault(last.get(var, -1), []).append(var)
        now = self.arguments + sum(map(bytes_of, self.flat.outvars))
        self.peak, self.rows = now, []
        for number, eqn in enumerate(order):
            new = [v for v in eqn.outvars if v in sizes]
            made = sum(sizes[v] for v in new)
            inner = max([_inner_peak(p, eqn, self.fused) for p in _bodies(eqn)], default=0)
            alive = now + made - shares[number] + inner
            self.peak = max(self.peak, alive)
            self.rows.append(MemoryRow(eqn, line_of(eqn), alive, sum(map(bytes_of, eqn.outvars))))
            ended = [*ending.get(number, ()), *(v for v in new if v not in last)]
            now += made - sum(sizes[v] for v in ended)

    def _share(self, eqn: JaxprEqn, number: int, read: tuple, last: dict, kept: set, sizes: dict):
        """Bytes of results that take the memory of an operand that is read for the last time.

        An operand whose memory a result of the program takes, takes none of its own.
        """
        primitive = eqn.primitive
        if primitive in _MOVES or not (primitive in _FUSED or primitive.rule_steps is not None):
            return 0
        free = [v for v in read if last[v] == number and sizes.get(v)]
        shared = 0
        for out in eqn.outvars:
            size = bytes_of(out)
            same = next((v for v in free if sizes[v] == size), None)
            if same is None:
                continue
            free.remove(same)
            if sizes.get(out):
                shared += size
            else:
                sizes[same] = 0
        return shared

    # -- residuals ---------------------------------------------------------------------------------

    def _residuals(self) -> list[Residual]:
        """Return the values made in the forward part that the backward part reads."""
        read: set[Var] = set()
        for eqn in self.flat.eqns:
            if is_backward(eqn) and not self.stored.isdisjoint(eqn.outvars):
                read.update(self.read(eqn))
        return [
            Residual(eqn, _origin(eqn, place), var.aval, bytes_of(var))
            for eqn in self.flat.eqns
            if not is_backward(eqn)
            for place, var in enumerate(eqn.outvars)
            if var in read
        ]

    def _savings(self) -> dict[tuple[str, int], int]:
        """Return by line the bytes of residuals made there, without the operands needed to compute
        them again.
        """
        kept = {v for r in self.residuals for v in r.eqn.outvars} | self.base
        found: dict[tuple[str, int], int] = {}
        for line in {r.line for r in self.residuals}:
            here = [e for e in self.flat.eqns if line_of(e) == line and not is_backward(e)]
            own = {v for eqn in here for v in eqn.outvars}
            needed = {v for eqn in here for v in self.read(eqn)} - own - kept
            made = sum(r.bytes for r in self.residuals if r.line == line)
            found[line] = max(0, made - sum(map(bytes_of, needed)))
        return found


def _bodies(eqn: JaxprEqn) -> list[ClosedJaxpr]:
    return [] if eqn.primitive.rule_steps is None else list(sub_programs(eqn))


def _inner_peak(program: ClosedJaxpr, eqn: JaxprEqn, fused: bool) -> int:
    """Bytes that one turn of a loop, or a branch, takes beside its operands and the results."""
    plan = _Plan(inlined(program), fused)
    taken = plan.peak - plan.arguments
    calls = eqn.primitive.programs
    if calls.mapped is not None:  # rows that are sliced for what cannot take the slicing in
        for var in calls.groups(plan.flat.invars, eqn.params)[calls.mapped]:
            if not all(plan.takes_in(reader, var) for reader in plan.readers.get(var, ())):
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
