"""In which memory of a device a value lies, as far as its type says. Types say `<host>` of what was
put into the memory of the host. Operations stay in one memory.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

__all__ = ["HOST_KIND", "MemorySpace", "common", "of_each", "of_first", "space_of", "within"]

HOST_KIND = "pinned_host"  # what shardings call the memory of the host


class MemorySpace(enum.Enum):
    """The memory of the device, that of the host, or either."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


def space_of(kind: str | None) -> MemorySpace:
    """The memory that a sharding's memory kind names."""
    return MemorySpace.Host if kind == HOST_KIND else MemorySpace.Device


def _of(aval: Any) -> MemorySpace:
    return getattr(aval, "memory_space", MemorySpace.Device)


def is_said(avals: Sequence[Any]) -> bool:
    """Whether these are types of values in a memory, and none says something else under the name."""
    return all(isinstance(_of(aval), MemorySpace) for aval in avals)


def common(name: str, avals: Sequence[Any]) -> MemorySpace:
    """The memory of the operands; ValueError if it is not the same. Scalars go with the others."""
    arrays = [aval for aval in avals if getattr(aval, "ndim", 0)] or avals
    first = arrays[0]
    for other in arrays[1:]:
        if _of(other) is not _of(first):
            if not first.ndim:
                return MemorySpace.Device
            raise ValueError(
                f"memory_space of all inputs passed to `{name}` must be the same. Got one operand "
                f"with type: {first.str_short()} and another operand with type: "
                f"{other.str_short()}. Move one with device_put(x, minijax.memory.Space.Device)."
            )
    return _of(first)


def of_first(name: str, avals: Sequence[Any]) -> MemorySpace:
    """The memory of the first operand, whatever that of the others is."""
    return _of(avals[0])


def of_each(name: str, avals: Sequence[Any]) -> list[MemorySpace]:
    """The memory of each operand, which is that of its result."""
    return list(map(_of, avals))


def within(out: Any, space: MemorySpace) -> Any:
    """The type of a result, or of each of several, in a memory."""
    if isinstance(out, (list, tuple)):
        return [within(aval, space) for aval in out]
    return out.update(memory_space=space) if hasattr(out, "memory_space") else out
