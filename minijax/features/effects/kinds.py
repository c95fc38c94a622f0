"""Effects of programs that show something, or act on the world outside."""

from __future__ import annotations

from minijax.core.effects import (
    Effect,
    control_flow_allowed,
    lowerable,
    ordered_types,
    remat_allowed,
)

__all__ = ["DebugEffect", "IOEffect", "OrderedDebugEffect", "OrderedIOEffect", "is_io"]


class DebugEffect(Effect):
    """Something is shown while the program runs; the order does not matter."""

    def __repr__(self) -> str:
        return "Debug"


class OrderedDebugEffect(Effect):
    """Something is shown while the program runs, in the order of the program."""

    def __repr__(self) -> str:
        return "OrderedDebug"


class IOEffect(Effect):
    """The program acts on the world outside; the order does not matter."""

    def __repr__(self) -> str:
        return "IO"


class OrderedIOEffect(Effect):
    """The program acts on the world outside, in the order of the program."""

    def __repr__(self) -> str:
        return "OrderedIO"


def is_io(effect: Effect) -> bool:
    """Whether the program acts on the world outside."""
    return isinstance(effect, (IOEffect, OrderedIOEffect))


for _kind in (DebugEffect, OrderedDebugEffect, IOEffect, OrderedIOEffect):
    for _types in (lowerable, control_flow_allowed):
        _types.add_type(_kind)
for _kind in (DebugEffect, OrderedDebugEffect):
    remat_allowed.add_type(_kind)
for _kind in (OrderedDebugEffect, OrderedIOEffect):
    ordered_types.add_type(_kind)
