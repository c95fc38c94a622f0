"""`minijax.experimental.control_deps`: the order in which a program runs operations.

Source: XLA's custom call `control_dep`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from minijax.lax.ffi_calls import ffi_call
from minijax.tracebacks import public

__all__ = ["control_dep", "schedule"]


def control_dep(src: Any, dst: Any) -> Any:
    """Have what makes the array `dst` run after what makes the array `src`. It gives no results."""
    return ffi_call("control_dep", (), has_side_effect=True)(src, dst)


def schedule(ops: Sequence[Any]) -> None:
    """Have what makes these arrays run in the order in which they are given."""
    for src, dst in pairwise(ops):
        control_dep(src, dst)


__dir__ = public(__name__)
