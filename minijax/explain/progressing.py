"""The progress of a loop, told as it runs."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from minijax import debug
from minijax.arguments.functions import fun_name

__all__ = ["progress"]

_EVERY = 0.5  # seconds between lines


class _Counter:
    """Turns counted on the host; a line at most every half second, and at the end."""

    def __init__(self, name: str, length: int | None, file: TextIO | None):
        self.name, self.length, self.file = name, length, file
        self.done, self.began, self.told = 0, 0.0, 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        if not self.done:
            self.began = self.told = now
        self.done += 1
        last = self.done == self.length
        if last or now - self.told >= _EVERY:
            self.told = now
            self.tell(now, "\n" if last else "")
        if last:
            self.done = 0

    def tell(self, now: float, end: str) -> None:
        taken = max(now - self.began, 1e-9)
        text = f"{self.name}: {self.done}"
        if self.length is not None:
            left = taken / self.done * (self.length - self.done)
            text += f"/{self.length} ({100 * self.done // self.length} %), {left:.0f} s left"
        file = sys.stderr if self.file is None else self.file
        print(f"\r{text}, {self.done / taken:.0f} turns/s", end=end, file=file, flush=True)


def progress(
    body: Callable[..., Any], length: int | None = None, *, name: str | None = None,
    file: TextIO | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Have the body of a loop tell how many of its turns have run.

    - `body`: the body of a `scan`, `fori_loop` or `while_loop`; its results do not change
    - `length`: the number of turns, if it is known; `name`: what is told, by default the body's name
    - `file`: where it is written, by default standard error

    A line is written at most twice a second, and at the end. Each turn calls the host, for about 10
    microseconds. Source: `debug.callback`.

    >>> body = explain.progress(lambda c, x: (c + x, c), 3, file=io.StringIO())
    >>> jax.lax.scan(body, 0, jnp.arange(3))[0]
    Array(3, dtype=int32)
    """
    counter = _Counter(name or fun_name(body), length, file)

    @functools.wraps(body)
    def counted(*args, **kwargs):
        debug.callback(counter)
        return body(*args, **kwargs)

    return counted
