"""Times of the stages of compilation, by the user's line."""

from __future__ import annotations

import gc
import itertools
import re
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from minijax.config import override
from minijax.core.staging import JaxprTrace
from minijax.explain.lines import Book
from minijax.explain.origins import Origins, anew
from minijax.explain.programs import line_of, start_of, traced
from minijax.lowering.module import Builder
from minijax.stages import Compiled, Traced

__all__ = ["STAGES", "Times", "timed"]

STAGES = ("trace", "lower", "compile")
_MARK = re.compile(r'op_name="[^"]*_k(\d+)[a-z]?_(?![^"]*_k\d)')
_numbers = itertools.count(1)

_Line = tuple[str, int]


class Times:
    """Seconds of each stage, and how they are shared by the user's lines."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.by_line: dict[str, dict[_Line, float]] = {stage: {} for stage in STAGES}

    def add(self, stage: str, seconds: float, shares: dict[_Line, float]) -> None:
        """Note a stage: its seconds are those of the lines by their shares."""
        self.seconds[stage] = seconds
        whole = sum(shares.values())
        self.by_line[stage] = {line: seconds * x / whole for line, x in shares.items() if whole}


class _Clock:
    """Seconds by line: the time until an equation is done is that of its line.

    With `prepared`, what comes before the first equation is no line's.
    """

    def __init__(self, code: CodeType, start: Any, prepared: bool):
        self.code, self.start, self.seconds = code, start, dict[_Line, float]()
        self.last = None if prepared else time.perf_counter()

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if frame.f_code is not self.code:
            return
        if self.last is None:
            self.last = time.perf_counter()
        elif event == "return":
            eqn = frame.f_locals.get("eqn")
            if eqn is not None:
                line, now = line_of(eqn, self.start), time.perf_counter()
                self.seconds[line] = self.seconds.get(line, 0.0) + now - self.last
                self.last = time.perf_counter()


def _shares(
    code: CodeType, run: Callable[[], Any], start: Any, prepared: bool = False
) -> dict[_Line, float]:
    """Run something under a clock that is told of each equation. The clock itself takes time.

    `start` is the place of those that have none. A garbage collection would be some line's alone.
    """
    before, collects, clock = sys.getprofile(), gc.isenabled(), _Clock(code, start, prepared)
    gc.disable()
    sys.setprofile(clock)
    try:
        run()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return clock.seconds


def _seconds(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return run(), time.perf_counter() - start


def timed(
    f: Callable, args: Any, kwargs: dict[str, Any], compile: bool
) -> tuple[Traced, Compiled | None, Times]:
    """Trace, lower and compile a function anew, and time it.

    Each of the first two is done twice: under a clock for the shares of lines, and for its time. The
    time of the compiler is shared by the instructions of its program.
    """
    times, start = Times(), start_of(f)
    name = f"{getattr(f, '__name__', 'f')}_{next(_numbers)}"  # is not found in a cache
    with anew():
        shares = _shares(JaxprTrace.record.__code__, lambda: traced(f, args, kwargs), start)
    with anew():
        stage, seconds = _seconds(lambda: traced(f, args, kwargs, name))
    times.add("trace", seconds, shares)
    if not compile:
        return stage, None, times
    book = Book(Origins())
    marked = stage.with_jaxpr(book.marked(stage.jaxpr))
    shares = _shares(Builder.eqn.__code__, marked.lower, start, prepared=True)
    lowered, seconds = _seconds(marked.lower)
    times.add("lower", seconds, shares)
    with override("enable_compilation_cache", False):
        compiled, seconds = _seconds(lowered.compile)
    lines = {number: line for line, number in book.kin.items()}
    counts: dict[_Line, float] = {}
    for number in _MARK.findall(compiled.as_text()):
        line = lines[int(number)]
        counts[line] = counts.get(line, 0.0) + 1
    times.add("compile", seconds, counts)
    return stage, compiled, times
