"""`minijax.experimental.layout`: the order of an array's dimensions in memory, as data.

May import nothing but the standard library. Programs are compiled with XLA's own choice of layouts.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

__all__ = ["Format", "Layout"]


class AutoLayout:
    """Leave the layout to the compiler."""

    def __repr__(self) -> str:
        return "AUTO"


@dataclasses.dataclass(frozen=True)
class Layout:
    """Dimensions from the one that varies slowest to the fastest, and how they are tiled."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO: ClassVar[AutoLayout] = AutoLayout()

    def update(self, **changes: Any) -> Layout:
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True)
class Format:
    """How an array lies in memory: its layout, and where its parts are."""

    layout: Layout | AutoLayout | None = None
    sharding: Any = None
