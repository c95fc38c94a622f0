"""The progress of a loop, told as it runs."""

from __future__ import annotations

import functools
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

from minijax import debug, new_ref
from minijax.arguments.functions import fun_name
from minijax.core.avals import ShapedArray
from minijax.core.primitive import Primitive, no_rule
from minijax.core.trace import Trace, Tracer, current, set_trace
from minijax.lax.callbacks import lower_callback

__all__ = ["progress"]

_EVERY = 0.5  # seconds between lines
_KEPT = 64  # runs of one loop that are counted at once: those before them were aborted
_LOOPS = ("scan", "map", "fori_loop", "while_body")  # as traces name them


class _Counter:
    """Turns of each run of a loop, counted on the host."""

    def __init__(self, name: str, length: int | None, file: TextIO | None):
        self.name, self.length, self.file = name, length, file
        self.numbers = itertools.count(1)
        self.runs: dict[int, tuple[int, float]] = {}  # turns that are done, when the first began
        self.told = 0.0

    def begin(self) -> tuple[np.ndarray]:
        """Return the number of a new run."""
        return (np.asarray(next(self.numbers), np.int32),)

    def turn(self, run: Any, nested: bool) -> None:
        """Count a turn; write a line at most every half second, and at the end of an outer loop."""
        now, run = time.monotonic(), int(run)
        done, began = self.runs.get(run, (0, now))
        if not (done or (nested and self.told)):
            self.told = now
        done += 1
        self.runs[run] = done, began
        last = done == self.length
        if (last and not nested) or (done > 1 and now - self.told >= _EVERY):
            self.told = now
            self.tell(done, now - began, "\n" if last and not nested else "")
        if last or len(self.runs) > _KEPT:
            del self.runs[run if last else next(iter(self.runs))]

    def tell(self, done: int, taken: float, end: str) -> None:
        taken = max(taken, 1e-9)
        text = f"{self.name}: {done}"
        if self.length is not None:
            left = taken / done * (self.length - done)
            text += f"/{self.length} ({100 * done // self.length} %), {left:.0f} s left"
        text += f", {done / taken:.0f} turns/s"
        file = sys.stderr if self.file is None else self.file
        print(f"\r{text:<60}", end=end, file=file, flush=True)


begin_p = Primitive("begin_progress", memoize=False)
begin_p.rule_jvp = begin_p.rule_transpose = begin_p.rule_batch = no_rule("it has no operands")


@begin_p.shape_rule
def _(*, counter):
    return ShapedArray((), np.int32)


@begin_p.effects_rule
def _(**params):
    return frozenset((debug.DebugEffect(),))


@begin_p.impl
def _(*, counter):
    return counter.begin()[0]


@begin_p.lower
def _(b, *, counter):
    return lower_callback(b, (), counter.begin)[0]


def _loop(trace: Trace | None) -> Trace | None:
    """Return the innermost trace, from this one outwards, of the body of a loop."""
    while trace is not None:
        if getattr(getattr(trace, "debug_info", None), "traced_for", None) in _LOOPS:
            return trace
        trace = trace.parent
    return None


def progress(
    body: Callable[..., Any], length: int | None = None, *, name: str | None = None,
    file: TextIO | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Have the body of a loop tell how many of its turns have run.

    - `body`: the body of a `scan`, `fori_loop` or `while_loop`; its results do not change
    - `length`: the number of turns, if it is known; `name`: what is told, by default the body's name
    - `file`: where it is written, by default standard error

    A line is written at most twice a second, and at the end of a loop that is within no other. Each
    turn calls the host, for about 10 microseconds; outside of `jit` a loop is traced at each call.
    Source: `debug.callback`.

    >>> body = explain.progress(lambda c, x: (c + x, c), 3, file=io.StringIO())
    >>> jax.lax.scan(body, 0, jnp.arange(3))[0]
    Array(3, dtype=int32)
    """
    counter = _Counter(name or fun_name(body), length, file)

    @functools.wraps(body)
    def counted(*args, **kwargs):
        run, nested, loop = np.int32(0), False, _loop(current())
        if loop is not None:
            nested = _loop(loop.parent) is not None
            with set_trace(loop.parent):  # once, before the loop runs
                run = begin_p.bind(counter=counter)
                # A program that closes over a reference is not kept for other runs.
                run = run if isinstance(run, Tracer) else new_ref(run)
        debug.callback(counter.turn, run[...], nested)
        return body(*args, **kwargs)

    return counted
