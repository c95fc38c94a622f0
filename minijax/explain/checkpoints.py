"""A program as it would be with a `checkpoint` around what a line of the user's computes.

Each time that the line runs is one checkpoint: its operands are kept, and the backward part
computes again what it reads of the line, behind an optimization barrier, as `checkpoint` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, dce_jaxpr
from minijax.explain.programs import Flat, inlined, is_backward, line_of
from minijax.features.checkpoint.checkpoint import remat_p
from minijax.lax import optimization_barrier_p, scan_p

__all__ = ["checkpointed", "flattened"]

_Place = tuple[str, int]


def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replace calls by what they call, other than those of `checkpoint`."""
    return _closed(inlined(closed, keeping=remat_p))


def checkpointed(closed: ClosedJaxpr, line: _Place) -> ClosedJaxpr | None:
    """Return the program with a checkpoint around a line, or None where that changes nothing."""
    flat = inlined(closed, keeping=remat_p)
    eqns = flat.eqns
    for run in _runs(eqns, line):
        eqns = _after(eqns, run, _inner(run, flat.eqns, flat.outvars))
    for number, eqn in enumerate(flat.eqns):
        if eqn.primitive is scan_p and not is_backward(eqn):
            eqns = _over_scans(eqns, number, eqn, line)
    return None if eqns is flat.eqns else _closed(flat._replace(eqns=eqns))


def _closed(flat: Flat) -> ClosedJaxpr:
    jaxpr = Jaxpr([v for v, _ in flat.constants], flat.invars, flat.outvars, flat.eqns)
    kept = dce_jaxpr(jaxpr, [True] * len(flat.outvars), instantiate=True)[0]
    return ClosedJaxpr(kept, [value for _, value in flat.constants])


def _runs(eqns: Iterable[JaxprEqn], line: _Place) -> list[list[JaxprEqn]]:
    """Forward equations of a line, for each time that it runs: then its instructions begin again."""
    found: list[list[JaxprEqn]] = []
    before = None
    for eqn in eqns:
        if line_of(eqn) == line and not is_backward(eqn):
            if before is None or eqn.source[1] < before:
                found.append([])
            before = eqn.source[1]
            found[-1].append(eqn)
    return found


def _made(eqns: Iterable[JaxprEqn]) -> set[Var]:
    return {v for eqn in eqns for v in eqn.outvars}


def _inner(run: Sequence[JaxprEqn], eqns: Iterable[JaxprEqn], results: Iterable[Any]) -> set[Var]:
    """Return what a run makes for itself and the backward part alone: its results are kept anyway."""
    own = set(run)
    others = [e for e in eqns if not is_backward(e) and e not in own]
    read = [*results, *(v for e in others for v in e.invars)]
    return _made(run).difference(_variables(read))


def _variables(atoms: Iterable[Any]) -> list[Var]:
    return list(dict.fromkeys(v for v in atoms if type(v) is not Literal))


def _again(
    run: Sequence[JaxprEqn], wanted: Iterable[Var], operands: Callable[[list[Var]], dict[Var, Var]],
    ties: Sequence[Var],
) -> tuple[list[JaxprEqn], dict[Var, Var]]:  # fmt: skip
    """Compute `wanted` of a run again, once the variables `ties` are known.

    `operands` says which variables hold what the run reads. Returns the equations, and what stands
    for which variable: for the ties as well, which are behind the barrier.
    """
    wanted, made = list(wanted), _made(run)
    inner = _variables(v for eqn in run for v in eqn.invars if v not in made)
    needed = dce_jaxpr(Jaxpr([], inner, wanted, list(run)), [True] * len(wanted))[0]
    names = operands(list(needed.invars))
    held = [*names.values(), *ties]
    behind = [Var(v.aval) for v in held]
    eqns = [JaxprEqn(held, behind, optimization_barrier_p, {})] if held else []
    held = [*names, *ties]
    names = dict(zip(held, behind, strict=True))
    for eqn in needed.eqns:
        outs = [Var(v.aval) for v in eqn.outvars]
        eqns.append(eqn.replace(invars=[_read(names, v) for v in eqn.invars], outvars=outs))
        names.update(zip(eqn.outvars, outs, strict=True))
    return eqns, {v: names[v] for v in (*wanted, *ties)}


def _read(names: dict[Var, Var], atom: Any) -> Any:
    return atom if type(atom) is Literal else names.get(atom, atom)


def _after(eqns: list[JaxprEqn], run: list[JaxprEqn], made: set[Var]) -> list[JaxprEqn]:
    """Compute a run of a line again where the backward part first reads what it has `made`."""
    reading = [
        n
        for n, e in enumerate(eqns)
        if is_backward(e) and not made.isdisjoint(_variables(e.invars))
    ]
    if not reading:
        return eqns
    wanted = _variables(v for n in reading for v in eqns[n].invars if v in made)
    first, ties = _entered(eqns, run, reading[0])
    again, names = _again(run, wanted, lambda read: dict(zip(read, read, strict=True)), ties)
    later = [
        e.replace(invars=[_read(names, v) for v in e.invars]) if is_backward(e) else e
        for e in eqns[first:]
    ]
    return [*eqns[:first], *again, *later]


def _entered(
    eqns: Sequence[JaxprEqn], run: Sequence[JaxprEqn], reading: int
) -> tuple[int, list[Var]]:
    """Return where the backward part of a run begins, and the cotangent that it begins with.

    That is at the equation `reading` or before it, where the cotangent is made on another line, or by
    another run, of which the instructions come in the reverse order.
    """
    line, last = line_of(run[-1]), eqns.index(run[-1])
    makers = {
        v: n for n, e in enumerate(eqns[:reading]) if is_backward(e) and n > last for v in e.outvars
    }
    while True:
        ties = [v for v in _variables(eqns[reading].invars) if v in makers][:1]
        maker = makers[ties[0]] if ties else reading
        if line_of(eqns[maker]) != line or eqns[maker].source[1] <= eqns[reading].source[1]:
            return reading, ties
        reading = maker


# -- loops -----------------------------------------------------------------------------------------


class _Scan:
    """A scan taken apart: its operands and its body's variables by their parts."""

    def __init__(self, eqn: JaxprEqn):
        self.eqn, params = eqn, eqn.params
        consts, carry = params["num_consts"], params["num_carry"]
        self.body = inlined(params["jaxpr"], keeping=remat_p)
        cut = lambda row: (row[:consts], row[consts : consts + carry], row[consts + carry :])
        self.consts, self.carry, self.rows = map(list, cut(self.body.invars))
        self.outer_consts, self.outer_carry, self.outer_rows = map(list, cut(eqn.invars))
        self.stacked = list(self.body.outvars[carry:])
        self.outer_stacked = list(eqn.outvars[carry:])
        self.constants = list(self.body.constants)

    def stack(self, var: Var) -> Var:
        """The stacked values of a variable of the body in all turns."""
        if var not in self.stacked:
            self.stacked.append(var)
            shape = self.eqn.params["length"], *var.aval.shape
            self.outer_stacked.append(Var(var.aval.update(shape=shape)))
        return self.outer_stacked[self.stacked.index(var)]

    def rebuilt(self, eqns: list[JaxprEqn]) -> JaxprEqn:
        """The equation of the scan with other equations in its body."""
        count = len(self.carry)
        flat = Flat(
            self.constants, [*self.consts, *self.carry, *self.rows], eqns,
            [*self.body.outvars[:count], *self.stacked],
        )  # fmt: skip
        params = {**self.eqn.params, "jaxpr": _closed(flat), "num_consts": len(self.consts)}
        return self.eqn.replace(
            invars=[*self.outer_consts, *self.outer_carry, *self.outer_rows],
            outvars=[*self.eqn.outvars[:count], *self.outer_stacked], params=params,
        )  # fmt: skip


def _over_scans(eqns: list[JaxprEqn], number: int, eqn: JaxprEqn, line: _Place) -> list[JaxprEqn]:
    """Compute a line in the body of a forward scan again in the bodies of backward ones."""
    scan = _Scan(eqn)
    runs = _runs(scan.body.eqns, line)
    body = scan.body.eqns
    results = scan.body.outvars[: len(scan.carry)]
    made = {v for run in runs for v in _inner(run, body, results)}
    kept = {
        outer: inner
        for outer, inner in zip(scan.outer_stacked, scan.stacked, strict=True)
        if inner in made
    }
    changed: dict[JaxprEqn, JaxprEqn] = {}
    for later in eqns:
        if later.primitive is scan_p and is_backward(later):
            backward = _Scan(later)
            if not kept.keys().isdisjoint(backward.outer_rows):
                changed[later] = _back_over(scan, backward, kept, runs)
    if not changed:
        return eqns
    changed[eqn] = scan.rebuilt(body)
    return [changed.get(e, e) for e in eqns]


def _back_over(
    scan: _Scan, backward: _Scan, kept: dict[Var, Var], runs: list[list[JaxprEqn]]
) -> JaxprEqn:
    def operand(var: Var) -> Var:
        """Return the variable of the backward body that holds one of the forward body."""
        mine = Var(var.aval)
        constant = dict(scan.body.constants).get(var)
        if constant is not None:
            backward.constants.append((mine, constant))
        elif var in scan.consts:
            backward.consts.append(mine)
            backward.outer_consts.append(scan.outer_consts[scan.consts.index(var)])
        else:
            read = var in scan.rows
            outer = scan.outer_rows[scan.rows.index(var)] if read else scan.stack(var)
            backward.rows.append(mine)
            backward.outer_rows.append(outer)
        return mine

    replaced: dict[Var, Var] = {}
    made: list[JaxprEqn] = []
    stands = {
        inner: kept[outer]
        for inner, outer in zip(backward.rows, backward.outer_rows, strict=True)
        if outer in kept
    }
    for run in runs:
        wanted = dict.fromkeys(v for v in stands.values() if v in _made(run))
        if wanted:
            operands = lambda read: {v: operand(v) for v in read}
            again, names = _again(run, wanted, operands, backward.carry[:1])
            made += again
            replaced |= {inner: names[v] for inner, v in stands.items() if v in wanted}
    eqns = [e.replace(invars=[_read(replaced, v) for v in e.invars]) for e in backward.body.eqns]
    return backward.rebuilt([*made, *eqns])
