"""Work of a program, equation by equation and line by line: operations, bytes, intensity, times.

The rules are those of `minijax.experimental.roofline`, for what it knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from minijax import lax
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn
from minijax.core.primitive import Primitive
from minijax.experimental.roofline.roofline import RooflineRuleContext, RooflineShape, roofline_rule
from minijax.explain.programs import bytes_of, inlined, line_of, placed, short, sub_programs
from minijax.explain.tables import Report, Table, quantity
from minijax.explain.timing import STAGES, Times, timed
from minijax.features.source_info import NameStack
from minijax.lax.control_flow.solves import linear_solve_p
from minijax.lax.fft import fft_p
from minijax.lax.linalg import (
    definite,
    elimination,
    general,
    hermitian,
    orthogonal,
    singular_values,
)
from minijax.lax.linalg.triangular import triangular_solve_p
from minijax.lax.shard_map import shard_map_p

__all__ = ["CostReport", "CostRow", "cost", "cost_rows"]

# An operation for each element, of the result and of the operand, where roofline counts none.
_BY_RESULT = frozenset((
    lax.acosh_p, lax.asinh_p, lax.atan2_p, lax.atanh_p, lax.bessel_i1e_p, lax.clamp_p,
    lax.exp2_p, lax.igamma_p, lax.igammac_p, lax.nextafter_p, lax.pow_p, lax.population_count_p,
    lax.polygamma_p, lax.shift_left_p, lax.shift_right_arithmetic_p, lax.shift_right_logical_p,
    lax.tanh_p, lax.zeta_p,
))  # fmt: skip
_BY_OPERAND = frozenset((
    lax.argmax_p, lax.argmin_p, lax.reduce_and_p, lax.reduce_max_p, lax.reduce_min_p,
    lax.reduce_or_p, lax.reduce_prod_p, lax.reduce_xor_p,
))  # fmt: skip

# Of an m by n matrix, m >= n (Golub and Van Loan, Matrix Computations): the algorithms of LAPACK.
_BY_MATRIX: dict[Primitive, Callable[[int, int], float]] = {
    definite.cholesky_p: lambda m, n: n**3 / 3,
    elimination.lu_p: lambda m, n: m * n**2 - n**3 / 3,
    general.eig_p: lambda m, n: 25 * n**3,
    general.hessenberg_p: lambda m, n: 10 / 3 * n**3,
    general.schur_p: lambda m, n: 25 * n**3,
    hermitian.eigh_p: lambda m, n: 9 * n**3,
    hermitian.tridiagonal_p: lambda m, n: 4 / 3 * n**3,
    orthogonal.geqrf_p: lambda m, n: 2 * m * n**2 - 2 / 3 * n**3,
    orthogonal.householder_product_p: lambda m, n: 2 * m * n**2 - 2 / 3 * n**3,
    orthogonal.qr_p: lambda m, n: 4 * m * n**2 - 4 / 3 * n**3,
    singular_values.svd_p: lambda m, n: 6 * m * n**2 + 20 * n**3,
}


class CostRow(NamedTuple):
    """The cost of one equation in all of its turns; `unknown` if a loop around it may turn oftener."""

    eqn: JaxprEqn
    line: tuple[str, int]
    turns: int
    flops: float
    bytes: float
    unknown: bool

    @property
    def intensity(self) -> float:
        """Operations for each byte that is read or written."""
        return self.flops / self.bytes if self.bytes else 0.0


class CostReport(Report):
    """The result of `cost`."""

    def __init__(self, rows: list[CostRow], times: Times, xla: dict | None):
        self.rows, self.xla = rows, xla
        self.seconds, self.seconds_by_line = times.seconds, times.by_line

    flops = property(lambda self: sum(row.flops for row in self.rows))
    bytes = property(lambda self: sum(row.bytes for row in self.rows))

    def by_line(self) -> dict[tuple[str, int], tuple[float, float]]:
        """Return FLOPs and bytes by the user's line, the most FLOPs first."""
        found: dict[tuple[str, int], tuple[float, float]] = {}
        for row in self.rows:
            flops, moved = found.get(row.line, (0.0, 0.0))
            found[row.line] = (flops + row.flops, moved + row.bytes)
        return dict(sorted(found.items(), key=lambda item: item[1], reverse=True))

    def tables(self) -> list[Table]:
        """Return the costs by line, then by equation."""
        times = ", ".join(f"{name} {1e3 * value:.1f} ms" for name, value in self.seconds.items())
        at_least = "at least " if any(row.unknown for row in self.rows) else ""
        title = f"cost: {at_least}{quantity(self.flops, 'FLOP')}, {quantity(self.bytes, 'B')}"
        title += f"; {times}" if times else ""
        cells = lambda flops, moved: (
            quantity(flops), quantity(moved, "B"), f"{flops / moved:.2f}" if moved else "",
        )  # fmt: skip
        costs = self.by_line()
        stages = [stage for stage in STAGES if self.seconds_by_line[stage]]
        known = dict.fromkeys([*costs, *(x for s in stages for x in self.seconds_by_line[s])])
        lines = [
            [short(line), *cells(*costs.get(line, (0.0, 0.0))),
             *(f"{1e3 * self.seconds_by_line[s].get(line, 0.0):.2f}" for s in stages)]
            for line in known
        ]  # fmt: skip
        eqns = [
            [row.eqn.primitive, row.eqn.outvars[0].aval.str_short(True) if row.eqn.outvars else "",
             f"≥{row.turns}" if row.unknown else row.turns, *cells(row.flops, row.bytes),
             short(row.line)]
            for row in self.rows
        ]  # fmt: skip
        numbers = [">FLOPs", ">bytes", ">FLOP/B"]
        return [
            Table(title, ["line", *numbers, *(f">{stage} ms" for stage in stages)], lines),
            Table("by equation", ["equation", "result", ">turns", *numbers, "line"], eqns),
        ]


def cost(f: Callable[..., Any], *args: Any, compile: bool = True, **kwargs: Any) -> CostReport:
    """Count the work of a function by equation and by the user's line, and time its stages.

    - `args`, `kwargs`: arrays and pytrees as `f` takes them, or `ShapeDtypeStruct`s
    - `compile`: whether to compile it, for the time and for XLA's own figures (`.xla`)

    The report has `.rows`, `.by_line()`, `.flops`, `.bytes`, `.seconds` and `.seconds_by_line`. The
    body of a `scan` counts once for each step, that of a `while_loop` once and is marked, that of a
    `shard_map` once for each device; of a `cond` the dearest branch counts. Bytes are those of operands and results, as if nothing were
    fused. XLA's time is shared by the instructions of its program. TypeError where `f` cannot be
    traced. Source: the rules of `experimental.roofline`.

    >>> explain.cost(lambda x: x @ x, jnp.ones((8, 8)), compile=False).flops
    1024.0
    """
    stage, compiled, times = timed(f, args, kwargs, compile)
    xla = None if compiled is None else compiled.cost_analysis()
    return CostReport(list(cost_rows(stage.jaxpr, 1, False)), times, xla)


def cost_rows(closed: ClosedJaxpr, turns: int, unknown: bool) -> Iterator[CostRow]:
    for eqn in inlined(closed).eqns:
        programs = [] if eqn.primitive.rule_steps is None else list(sub_programs(eqn))
        if eqn.primitive is shard_map_p:  # each device runs it
            sizes, axes = eqn.params["mesh"].shape, eqn.params["newly_manual_axes"]
            (program,) = sub_programs(eqn)
            yield from cost_rows(program, turns * math.prod(sizes[a] for a in axes), unknown)
        elif eqn.primitive is linear_solve_p:
            yield from cost_rows(placed(eqn.params["jaxprs"].solve, eqn.source), turns, unknown)
        elif not programs:
            flops, moved = _once(eqn)
            yield CostRow(eqn, line_of(eqn), turns, turns * flops, turns * moved, unknown)
        elif eqn.primitive.programs.carried is None:
            each = [list(cost_rows(program, turns, unknown)) for program in programs]
            yield from max(each, key=lambda rows: sum(row.flops for row in rows))
        else:
            times = eqn.params.get("length")
            for program in programs:
                yield from cost_rows(program, turns * (times or 1), unknown or times is None)


def _once(eqn: JaxprEqn) -> tuple[float, float]:
    """The operations of one turn of an equation, and the bytes of its operands and results."""
    primitive, ins, outs = eqn.primitive, eqn.invars, eqn.outvars
    moved = sum(map(bytes_of, ins)) + sum(map(bytes_of, outs))
    if primitive in _BY_RESULT or primitive in _BY_OPERAND:
        return float(math.prod((outs if primitive in _BY_RESULT else ins)[0].aval.shape)), moved
    if primitive in _BY_MATRIX or primitive in (triangular_solve_p, fft_p):
        return _dense(eqn), moved
    rule = roofline_rule(eqn.primitive)
    avals = [[v.aval for v in ins], [v.aval for v in outs]]
    if rule is None or not all(hasattr(a, "dtype") for a in avals[0]):
        return 0.0, moved
    context = RooflineRuleContext(
        name_stack=NameStack.of(eqn.scope), primitive=eqn.primitive, avals_in=avals[0],
        avals_out=avals[1],
    )  # fmt: skip
    try:
        found = rule(context, *map(RooflineShape.from_aval, avals[0]), **eqn.params)
    except (AttributeError, NotImplementedError, TypeError):  # a collective, outside of a mesh
        return 0.0, moved
    return float(found.unfused_flops), float(found.unfused_hbm_bytes or moved)


def _dense(eqn: JaxprEqn) -> float:
    """The operations of linear algebra, and of Fourier transforms; complex ones count four times."""
    *batch, m, n = (1, *eqn.invars[0].aval.shape)
    if eqn.primitive is fft_p:
        size = math.prod(eqn.params["fft_lengths"])
        elements = max(math.prod(v.aval.shape) for v in (*eqn.invars, *eqn.outvars))
        real = any(v.aval.dtype.kind == "f" for v in (*eqn.invars, *eqn.outvars))
        return 5.0 * elements * math.log2(max(size, 1)) / (1 + real)
    if eqn.primitive is triangular_solve_p:
        count = n * math.prod(eqn.invars[1].aval.shape)
    else:
        count = math.prod(batch) * _BY_MATRIX[eqn.primitive](max(m, n), min(m, n))
    return round(count) * (4.0 if eqn.invars[0].aval.dtype.kind == "c" else 1.0)
