"""Many programs judged at the cost of a few: types one by one, values by the group.

Most of what a program costs is compilation, and most of that is spent on each module rather than on what is
in it. So the programs of a group that a library accepts are compiled as one module. A program that differs
from another library's is judged again alone: a finding is never a group's.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.difftest import programs
from minijax.difftest.comparing import compare
from minijax.difftest.judging import Finding, judge, tolerance_of
from minijax.difftest.programs import Program
from minijax.difftest.running import Outcome, failure, library, outcome, settings

__all__ = ["differ", "judge_all", "outcomes"]

Outcomes = tuple[Outcome, Outcome]  # by `eval_shape`, and compiled

_LIBRARIES = ("minijax", "jax")


def judge_all(
    together: Sequence[Program], subjects: tuple[str, str] = _LIBRARIES
) -> list[Finding | None]:
    """Judge programs as `judge` does, with fewer compilations.

    - `together`: programs of `generate`; a dozen or so
    - `subjects`: names of the two that are compared; others than the two libraries are asked one by one

    Returns a list of `Finding` or None. Source: this package.

    >>> difftest.judge_all([difftest.generate(0, 1), difftest.generate(0, 2)])
    [None, None]
    """
    if subjects != _LIBRARIES or len(together) == 1:
        return [judge(program, subjects=subjects) for program in together]
    given = [outcomes(together, name) for name in subjects]
    return [
        judge(program) if differ(program, ours, theirs) else None
        for program, ours, theirs in zip(together, *given, strict=True)
    ]


def differ(program: Program, ours: Outcomes, theirs: Outcomes) -> bool:
    """Return whether what two libraries give for a program has to be looked at."""
    tolerance = tolerance_of(program)
    return any(compare(a, b, tolerance) is not None for a, b in zip(ours, theirs, strict=True))


def outcomes(together: Sequence[Program], name: str) -> list[Outcomes]:
    """Return what programs give under a library, compiled as few modules.

    - `together`: programs of `generate`
    - `name`: "minijax" or "jax"

    Returns for each the outcomes of `run` by "abstract" and by "compiled"; the second is the first where
    the program is abstract or refused. Source: this package.
    """
    module = library(name)
    traced = [_traced(index, program, module) for index, program in enumerate(together)]
    values = [member.types for member in traced]
    accepted = [m for m in traced if not m.types.error and m.program.mode != "abstract"]
    accepted.sort(key=_setting)  # stable
    for _, group in itertools.groupby(accepted, key=_setting):
        members = list(group)
        for member, value in zip(members, _values(members, module), strict=True):
            values[member.index] = value
    return [(member.types, value) for member, value in zip(traced, values, strict=True)]


@dataclasses.dataclass(frozen=True)
class _Traced:
    """A program under a library: its compiled function, its inputs, and the types that it gives."""

    index: int
    program: Program
    function: Callable
    arguments: tuple
    types: Outcome


def _setting(member: _Traced) -> tuple[bool, bool]:
    """Programs of one module have this in common: 64-bit mode, and whether several devices take part."""
    return member.program.x64, "mesh" in programs.text(member.program)


def _traced(index: int, program: Program, module) -> _Traced:
    function = module.jit(programs.compiled(program, module))
    arguments = ()
    try:
        arguments = programs.arguments(program)
        with settings(module, program):
            # What is traced here is not traced again within a group.
            types = outcome(module, module.eval_shape(function, *arguments))
    except Exception as error:
        types = failure(error)
    return _Traced(index, program, function, arguments, types)


def _values(group: list[_Traced], module) -> list[Outcome]:
    """Return what the members of a group give; those that do not compile are found by halving it."""
    inputs = [member.arguments for member in group]
    functions = [member.function for member in group]
    with settings(module, group[0].program):
        try:
            results = module.jit(_together(functions)).lower(inputs).compile()(inputs)
            return [outcome(module, result) for result in results]
        except Exception as error:
            if len(group) == 1:
                return [failure(error)]
    middle = len(group) // 2
    return _values(group[:middle], module) + _values(group[middle:], module)


def _together(functions: list[Callable]) -> Callable[[list[tuple]], list[Any]]:
    return lambda inputs: [f(*args) for f, args in zip(functions, inputs, strict=True)]
