"""A program under both libraries: run, compared and, where they differ, judged.

Abstract evaluation comes first, since it is cheap and finds most differences; what both refuse is not
compiled. A difference of floats is tried by `triage` before it counts.
"""

from __future__ import annotations

import dataclasses

from minijax.difftest import signatures
from minijax.difftest.comparing import Difference, Tolerance, compare
from minijax.difftest.known import reason_for
from minijax.difftest.programs import Program
from minijax.difftest.running import Outcome, run

__all__ = ["Finding", "judge"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """A difference with its program, both outcomes, and what is thought of it.

    - `verdict`: "minijax" (a bug here), "upstream", "xla", "ill-conditioned", "undefined", "known" or "open"
    - `evidence`: sentences that say why
    """

    program: Program
    difference: Difference
    ours: Outcome
    theirs: Outcome
    verdict: str = "open"
    evidence: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """Findings with the same key are one: kind and operations."""
        return (self.difference.kind, *self.program.operations())


def judge(
    program: Program, quick: bool = False, subjects: tuple[str, str] = ("minijax", "jax")
) -> Finding | None:
    """Run a program under both libraries and compare.

    - `program`: of `generate`
    - `quick`: leave out triage and the witness, as shrinking does
    - `subjects`: names of the two libraries

    Returns a `Finding` or None. Source: this package.

    >>> difftest.judge(difftest.generate(0, 1))
    """
    first, second = subjects
    stages = ("abstract",) if program.mode == "abstract" else ("abstract", "compiled")
    tolerance = tolerance_of(program)
    for how in stages:
        ours, theirs = run(program, first, how), run(program, second, how)
        difference = compare(ours, theirs, tolerance)
        if difference is not None:
            return _judged(program, difference, ours, theirs, tolerance, quick)
        if ours.error:
            break
    return None


def _judged(program, difference, ours, theirs, tolerance, quick) -> Finding | None:
    from minijax.difftest import triage, witness  # they run programs

    finding = Finding(program, difference, ours, theirs)
    row = reason_for(program, difference.kind)
    if row is not None:
        return dataclasses.replace(finding, verdict=row.verdict, evidence=(row.reason,))
    if difference.kind in ("value", "special", "integer"):
        if program.mode == "composed":
            finding = triage.triaged(finding, tolerance)
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
