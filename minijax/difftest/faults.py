"""Faults planted in the rules of minijax one at a time, read from `faults.txt`: are they found?

A row is `primitive | rule | change`. A change of `CHANGES` acts on what the rule gives: `negate`, `double`,
`drop` (zeros), `conjugate`, `reverse`, `swap` on its arrays, `dtype`, `weak`, `shape` on its avals. The others
act on what the rule is given: `operands` swaps the last two, `param NAME EXPRESSION` replaces a parameter
(its value is `x`), and `as PRIMITIVE` takes the rule of another primitive.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

import minijax
from minijax import numpy as jnp
from minijax.core.primitive import all_primitives
from minijax.difftest import coverage, grouping
from minijax.difftest.generating import MODES, Profile, generate
from minijax.difftest.judging import Finding, judge
from minijax.difftest.programs import Program
from minijax.difftest.running import library

__all__ = ["Fault", "Score", "faults", "hunt", "planted"]


@dataclasses.dataclass(frozen=True)
class Fault:
    """One row: a primitive, a rule of it, and how it is made wrong."""

    primitive: str
    rule: str
    change: str

    def __str__(self) -> str:
        return f"{self.primitive} {self.rule}: {self.change}"


@dataclasses.dataclass(frozen=True)
class Score:
    """A fault, the finding of the first program that shows it (or None), and how many were tried.

    - `tried`: programs in order, of which only those that run the rule had to be run
    - `reached`: how many of them run the rule
    """

    fault: Fault
    finding: Finding | None
    tried: int
    reached: int


@functools.cache
def faults() -> tuple[Fault, ...]:
    """Return the rows of `faults.txt`, in order."""
    table = (importlib.resources.files("minijax.difftest") / "faults.txt").read_text()
    lines = [line for line in table.splitlines() if line.strip() and not line.startswith("#")]
    return tuple(Fault(*(part.strip() for part in line.split("|"))) for line in lines)


def _on_arrays(change: Callable) -> Callable:
    """Return a change of the tangents, cotangents or batched results that a rule gives."""

    def whole(out, rule):
        each = lambda x: change(x) if isinstance(x, minijax.Array) else x
        if rule == "jvp":
            return (out[0], _mapped(each, out[1]))
        if rule == "batch":
            return (_mapped(each, out[0]), out[1])
        return _mapped(each, out)

    return whole


def _mapped(each, out):
    return type(out)(map(each, out)) if type(out) in (list, tuple) else each(out)


def _swapped(out, rule):
    """Give the arrays of the same shape to one another."""
    found = [
        x for x in (out if isinstance(out, list | tuple) else ()) if isinstance(x, minijax.Array)
    ]
    if len(found) < 2 or found[0].shape != found[1].shape:
        return _on_arrays(jnp.negative)(out, rule)
    return [found[1 - found.index(x)] if any(x is y for y in found[:2]) else x for x in out]


def _on_avals(change: Callable) -> Callable:
    return lambda out, rule: _mapped(change, out)


def _inexact(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


CHANGES = {
    "negate": _on_arrays(lambda x: -x if _inexact(x) else x),
    "double": _on_arrays(lambda x: x + x if _inexact(x) else x),
    "drop": _on_arrays(lambda x: jnp.zeros_like(x) if _inexact(x) else x),
    "conjugate": _on_arrays(lambda x: jnp.conj(x) if jnp.iscomplexobj(x) else x),
    "reverse": _on_arrays(lambda x: jnp.flip(x) if x.ndim and jnp.size(x) > 1 else x),
    "swap": _swapped,
    "dtype": _on_avals(
        lambda a: a.update(dtype=np.dtype("float16" if a.dtype == "float32" else "float32"))
    ),
    "weak": _on_avals(lambda a: a.update(weak_type=not a.weak_type)),
    "shape": _on_avals(
        lambda a: a.update(shape=(*a.shape[:-1], a.shape[-1] + 1) if a.shape else (1,))
    ),
}


def wrong(fault: Fault) -> Callable:
    """Return the rule of a fault."""
    library("minijax")  # all modules have brought their primitives
    rule = coverage.rule_of(all_primitives[fault.primitive], fault.rule)
    words = fault.change.split(" ", 2)
    if fault.change in CHANGES:
        return lambda *args, **params: CHANGES[fault.change](rule(*args, **params), fault.rule)
    if words[0] == "as":
        return coverage.rule_of(all_primitives[words[1]], fault.rule)
    if words[0] == "operands":
        if fault.rule in ("jvp", "batch"):
            turned = lambda xs: (*xs[:-2], xs[-1], xs[-2])
            return lambda xs, ys, **params: rule(turned(xs), turned(ys), **params)
        return lambda *args, **params: rule(*args[:-2], args[-1], args[-2], **params)
    if words[0] == "param":
        change = eval(f"lambda x: {words[2]}")
        return lambda *args, **params: rule(*args, **params | {words[1]: change(params[words[1]])})
    raise ValueError(f"{fault}: see minijax.difftest.faults for the changes there are.")


def planted(fault: Fault):
    """Return a context in which a fault is in place."""
    return coverage.replaced_rules({(fault.primitive, fault.rule): wrong(fault)})


def hunt(
    rows: Iterable[Fault],
    seed: int = 0,
    count: int = 2000,
    attempts: int = 400,
    profile: Profile = Profile(),
    say: Callable = lambda score: None,
) -> list[Score]:
    """Plant faults one at a time and run programs until one is found.

    - `rows`: of `faults`
    - `seed`, `count`: the programs: three composed ones, then a single call
    - `profile`: how these programs are drawn
    - `attempts`: how many programs that run the rule are tried
    - `say`: is called with each score

    Returns a list of `Score`. Source: mutation testing.
    """
    pool = _Pool(seed, count, profile)
    scores = []
    for fault in rows:
        score = _hunted(fault, pool, attempts)
        scores.append(score)
        say(score)
    return scores


_GROUP = 4  # programs that are compiled together
_EVERY = 64  # programs after which upstream's caches are emptied


class _Pool:
    """Programs with the cells that they run and with what both libraries give while no fault is planted."""

    def __init__(self, seed: int, count: int, profile: Profile):
        self.seed, self.count, self.profile = seed, count, profile
        self.programs: list[Program] = []
        self.cells: list[frozenset] = []
        self.upstream: dict[int, tuple] = {}
        self.clean: dict[int, bool] = {}

    def reaching(self, cell) -> Iterator[int]:
        """Yield the numbers of programs that run a cell."""
        for number in range(self.count):
            if number == len(self.programs):
                # Single calls run no rule of a transform, and abstract ones those of shapes only.
                mode = MODES[number % 4 == 3]
                self.programs.append(generate(self.seed, number, mode, self.profile))
                self.cells.append(coverage.cells_of(self.programs[-1]))
            if cell in self.cells[number]:
                yield number

    def theirs(self, numbers: list[int]) -> list[tuple]:
        """Return what upstream gives for programs."""
        asked = [n for n in numbers if n not in self.upstream]
        given = grouping.outcomes([self.programs[n] for n in asked], "jax")
        if len(self.upstream) % _EVERY + len(asked) >= _EVERY:
            library("jax").clear_caches()
        self.upstream.update(zip(asked, given, strict=True))
        return [self.upstream[n] for n in numbers]

    def same(self, number: int) -> bool:
        """Whether both libraries agree on a program while no fault is planted."""
        if number not in self.clean:
            program = self.programs[number]
            (ours,) = grouping.outcomes([program], "minijax")
            self.clean[number] = not grouping.differ(program, ours, self.upstream[number])
        return self.clean[number]


def _hunted(fault: Fault, pool: _Pool, attempts: int) -> Score:
    reached = 0
    found = itertools.islice(pool.reaching((fault.primitive, fault.rule)), attempts)
    while numbers := list(itertools.islice(found, _GROUP)):
        made = [pool.programs[number] for number in numbers]
        theirs = pool.theirs(numbers)
        with planted(fault):
            ours = grouping.outcomes(made, "minijax")
        for number, program, a, b in zip(numbers, made, ours, theirs, strict=True):
            reached += 1
            if not grouping.differ(program, a, b) or not pool.same(number):
                continue
            with planted(fault):
                finding = judge(program, True)
            if finding is not None and not finding.settled:
                return Score(fault, finding, number + 1, reached)
    return Score(fault, None, pool.count, reached)
