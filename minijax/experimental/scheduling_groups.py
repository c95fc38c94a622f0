"""`minijax.experimental.scheduling_groups`: parts of programs that XLA is told of by name."""

from __future__ import annotations

from collections.abc import Callable

from minijax.lax.metadata import xla_metadata_call, xla_metadata_call_p
from minijax.tracebacks import public

__all__ = ["scheduling_group", "xla_metadata_call", "xla_metadata_call_p"]


def scheduling_group(name: str) -> Callable[[Callable], Callable]:
    """Decorator: XLA is to schedule the operations of the function together, as the group `name`."""
    return xla_metadata_call(scheduling_group=name)


__dir__ = public(__name__)
