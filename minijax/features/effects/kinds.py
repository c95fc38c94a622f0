"""Effects of programs that show something, or act on the world outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from minijax.core.effects import (
    Effect,
    EffectTypes,
    control_flow_allowed,
    lowerable,
    ordered_types,
    remat_allowed,
)

__all__ = [
    "DebugEffect", "IOEffect", "OrderedDebugEffect", "OrderedIOEffect", "check_shardable", "is_io",
    "on_each_device", "shardable",
]  # fmt: skip


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
shardable = EffectTypes(OrderedIOEffect)
_eager: ContextVar[bool] = ContextVar("_eager", default=False)


@contextmanager
def on_each_device() -> Iterator[None]:
    """Let all ordered effects be those of every device: the order is that of an eager call."""
    token = _eager.set(True)
    try:
        yield
    finally:
        _eager.reset(token)


def check_shardable(effect: Effect, devices: Sequence[Any]) -> None:
    """ValueError where a program for several devices has an ordered effect that each would have."""
    if len(devices) > 1 and not (_eager.get() or shardable.contains(effect)):
        raise ValueError(
            "The following ordered effects are not supported for more than 1 device: "
            f"[{effect!r}]. Leave out ordered=True, or use io_callback."
        )
