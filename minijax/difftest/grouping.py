"""Many programs judged at the cost of a few: types one by one, values by the group.

Most of what a program costs is compilation, and most of that is spent on each module rather than on what is
in it. So the programs of a group that both libraries accept are compiled as one module of each. A program
that differs there, or that no group compiles with, is judged again alone: a finding is never a group's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.difftest import programs
from minijax.difftest.comparing import compare
from minijax.difftest.judging import Finding, judge, tolerance_of
from minijax.difftest.programs import Program
from minijax.difftest.running import Outcome, failure, library, outcome, settings

__all__ = ["judge_all"]

_LIBRARIES = ("minijax", "jax")


@dataclasses.dataclass(frozen=True)
class _Traced:
    """A program that both libraries accept: by library its compiled function; its inputs."""

    index: int
    program: Program
    functions: dict[str, Callable]
    arguments: tuple

    @property
    def setting(self) -> tuple[bool, bool]:
        """Programs of one module have this in common: 64-bit mode, and whether several devices take part."""
        return self.program.x64, "mesh" in programs.text(self.program)


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
    if tuple(subjects) != _LIBRARIES or len(together) == 1:
        return [judge(program, subjects=subjects) for program in together]
    found: list[Finding | None] = [None] * len(together)
    traced: list[_Traced] = []
    for index, program in enumerate(together):
        same, accepted = _types(index, program)
        if not same:
            found[index] = judge(program)
        elif accepted is not None and program.mode != "abstract":
            traced.append(accepted)
    traced.sort(key=lambda t: t.setting)  # stable
    for _, group in itertools.groupby(traced, key=lambda t: t.setting):
        for member in _suspects(list(group)):
            found[member.index] = judge(member.program)
    return found


def _types(index: int, program: Program) -> tuple[bool, _Traced | None]:
    """Return whether both libraries agree on types, and the program if both accept it."""
    try:
        arguments = programs.arguments(program)
    except Exception:
        return False, None
    functions, outcomes = {}, []
    for name in _LIBRARIES:
        module = library(name)
        functions[name] = module.jit(programs.compiled(program, module))
        try:
            with settings(module, program):
                # What is traced here is not traced again within a group.
                outcomes.append(outcome(module, module.eval_shape(functions[name], *arguments)))
        except Exception as error:
            outcomes.append(failure(error))
    if compare(*outcomes) is not None:
        return False, None
    accepted = None if outcomes[0].error else _Traced(index, program, functions, arguments)
    return True, accepted


def _suspects(group: list[_Traced]) -> list[_Traced]:
    """Return those members of a group that have to be judged alone."""
    if len(group) == 1:
        return group
    given = _given(group)
    if given is None:  # one of them does not compile: halves tell which
        middle = len(group) // 2
        return _suspects(group[:middle]) + _suspects(group[middle:])
    return [
        member
        for member, ours, theirs in zip(group, *given, strict=True)
        if compare(ours, theirs, tolerance_of(member.program)) is not None
    ]


def _given(group: list[_Traced]) -> list[list[Outcome]] | None:
    """Return by library what the members of a group give, or None where one of them raises."""
    inputs = [member.arguments for member in group]
    with contextlib.ExitStack() as stack:
        for name in _LIBRARIES:
            stack.enter_context(settings(library(name), group[0].program))
        try:
            lowered = [
                library(name).jit(_together([m.functions[name] for m in group])).lower(inputs)
                for name in _LIBRARIES
            ]
            return [
                [outcome(library(name), result) for result in whole.compile()(inputs)]
                for name, whole in zip(_LIBRARIES, lowered, strict=True)
            ]
        except Exception:
            return None


def _together(functions: list[Callable]) -> Callable[[list[tuple]], list[Any]]:
    return lambda inputs: [f(*args) for f, args in zip(functions, inputs, strict=True)]
