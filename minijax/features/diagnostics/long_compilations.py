"""A line about a compilation that takes long, where somebody watches: which, how large, how long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from minijax.core.hooks import hooks
from minijax.features.diagnostics.recompilations import is_watched

__all__ = ["compiling"]

_AFTER = 2.0  # seconds
_SMALL = 5000  # characters of a module that is compiled in less


def _nothing() -> None:
    pass


def compiling(lowered: Any) -> Callable[[], None]:
    """Tell of a compilation that is not done after two seconds, and when it is."""
    if len(lowered.text) < _SMALL or not is_watched():
        return _nothing
    began = time.monotonic()
    operations = lowered.text.count(" = ")
    what = f"jit({lowered.name})"
    told = []

    def tell() -> None:
        told.append(what)
        platform = lowered.devices[0].platform
        print(
            f"compiling {what} for {platform}, {operations} operations ...",
            end="", file=sys.stderr, flush=True,
        )  # fmt: skip

    timer = threading.Timer(_AFTER, tell)
    timer.daemon = True
    timer.start()

    def done() -> None:
        timer.cancel()
        if told:
            print(f" {time.monotonic() - began:.1f} s", file=sys.stderr)

    return done


hooks.fill(compiling=compiling)
