"""Tracebacks as users read them: their own frames, without those of this package.

May import the ground floor and `core.source`. The setting `traceback_filtering` ("off") shows all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any

from minijax.config import local
from minijax.core.source import is_internal

__all__ = ["boundary", "hide_frames"]

_NOTE = (
    "(The frames inside minijax are left out. To see them set "
    'minijax.config.update("jax_traceback_filtering", "off").)'
)


def hide_frames(error: BaseException) -> None:
    """Leave the frames of this package out of the traceback of an error on its way to the user."""
    if local.context.settings.traceback_filtering == "off":
        return
    kept = []
    step = error.__traceback__
    hidden = False
    while step is not None:
        if is_internal(step.tb_frame.f_code):
            hidden = True
        else:
            kept.append(step)
        step = step.tb_next
    if not hidden:
        return
    shown = None
    for step in reversed(kept):
        shown = TracebackType(shown, step.tb_frame, step.tb_lasti, step.tb_lineno)
    error.__traceback__ = shown
    if _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)


def boundary(fun: Callable) -> Callable:
    """Decorator of what users call: errors leave it without this package's frames."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return call
