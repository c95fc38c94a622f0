"""A program under both libraries: run, compared and, where they differ, judged.

Abstract evaluation comes first, since it is cheap and finds most differences; what both refuse is not
compiled. A difference of floats is tried by `triage` before it counts.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from minijax.difftest import programs, signatures
from minijax.difftest.comparing import Difference, Tolerance, compare
from minijax.difftest.known import reason_for
from minijax.difftest.programs import Program
from minijax.difftest.running import Outcome, library, settings
from minijax.difftest.subjects import run

__all__ = ["Finding", "judge"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """A difference with its program, both outcomes, and what is thought of it.

    - `verdict`: "minijax" (a bug here), "upstream", "xla", "ill-conditioned", "undefined", "known" or "open"
    - `evidence`: sentences that say why
    - `listed`: whether `known.txt` has it
    """

    program: Program
    difference: Difference
    ours: Outcome
    theirs: Outcome
    verdict: str = "open"
    evidence: tuple[str, ...] = ()
    subjects: tuple[str, str] = ("minijax", "jax")
    listed: bool = False

    @property
    def settled(self) -> bool:
        """Whether it is no difference to report: listed, ill-conditioned or undefined."""
        return self.listed or self.verdict in ("ill-conditioned", "undefined", "known")

    @property
    def key(self) -> tuple[str, ...]:
        """Findings with the same key are one: kind and operations."""
        return (self.difference.kind, *self.program.operations())


def judge(
    program: Program, quick: bool = False, subjects: tuple[str, str] = ("minijax", "jax")
) -> Finding | None:
    """Run a program under both libraries and compare.

    - `program`: of `generate`
    - `quick`: leave out the witness and most of triage, as shrinking does
    - `subjects`: names of the two that are compared (see `subjects`); the second may be "algebra", which
      compares what must be equal within minijax

    Returns a `Finding` or None. Source: this package.

    >>> difftest.judge(difftest.generate(0, 1))
    """
    first, second = subjects
    if second == "algebra":
        return _algebraic(program)
    stages = ("abstract",) if program.mode == "abstract" else ("abstract", "compiled")
    tolerance = tolerance_of(program)
    for how in stages:
        ours, theirs = run(program, first, how), run(program, second, how)
        difference = compare(ours, theirs, tolerance)
        if difference is not None:
            finding = Finding(program, difference, ours, theirs, subjects=subjects)
            return _judged(finding, tolerance, quick)
        if ours.error:
            break
    return None


def _algebraic(program: Program) -> Finding | None:
    """Return what differs within minijax for the inputs and for others near to them."""
    from minijax.difftest import checking, triage  # they run programs

    module = library("minijax")
    function, found = programs.compiled(program, module), ()
    with settings(module, program):
        for arguments in (
            programs.arguments(program),
            *map(partial(triage.perturbed, program), range(2)),
        ):
            report = checking.check(function, *arguments, upstream=False, differences=False)
            found = [check for check in report.findings if not found or check in found]
            if not found:
                return None
    difference = Difference("algebra", found[0].transform, f"{found[0].oracle}: {found[0].detail}")
    ours = run(program, "minijax")
    return Finding(program, difference, ours, ours, "minijax", subjects=("minijax", "algebra"))


def _judged(finding: Finding, tolerance: Tolerance, quick: bool) -> Finding:
    from minijax.difftest import triage, witness  # they run programs

    program, difference = finding.program, finding.difference
    row = reason_for(program, difference.kind, str(finding.ours), str(finding.theirs))
    if row is not None:
        return dataclasses.replace(
            finding, verdict=row.verdict, evidence=(row.reason,), listed=True
        )
    if difference.kind in ("value", "special", "integer"):
        if program.mode == "composed":
            finding = triage.triaged(finding, tolerance, quick)
        if finding.verdict == "open" and (program.mode == "single" or not quick):
            finding = witness.witnessed(finding)
    return finding


def tolerance_of(program: Program) -> Tolerance:
    """Return the tolerance of a program: by element for single calls of functions that are so defined."""
    if program.mode == "single":
        name = next(iter(program.operations()), "")
        if "elementwise" in _flags().get(name, ()):
            return Tolerance(ulps=4.0, elementwise=True)
        return Tolerance(ulps=16.0)
    return Tolerance()


def _flags() -> dict[str, frozenset[str]]:
    return {row.operation: row.flags for row in signatures.functions()}
