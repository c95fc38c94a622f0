"""The order of an array's dimensions in memory, as data. Programs are compiled with XLA's own
choice of layouts; what was chosen can be read from an array.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

__all__ = ["AutoLayout", "Format", "Layout", "format_of", "layout_format"]


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
    """The layout of an array in memory, and where its parts are."""

    layout: Layout | AutoLayout | None = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if not (self.layout is None or isinstance(self.layout, (Layout, AutoLayout))):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are `None`, "
                f"`Layout.AUTO` or an instance of `Layout`. Got {self.layout!r}."
            )
        if self.sharding is not None and not hasattr(self.sharding, "memory_kind"):
            raise TypeError(
                "Invalid value received for the sharding argument. Expected values are `None` or an "
                f"instance of `jax.Sharding`. Got {self.sharding!r} of type {type(self.sharding)}."
            )


def format_of(buffer: Any, sharding: Any) -> Format:
    """Return how a buffer of jaxlib's lies in memory."""
    return layout_format(buffer._pjrt_layout, sharding)


def layout_format(layout: Any, sharding: Any) -> Format:
    """Return a layout of jaxlib's as a `Format`."""
    found = layout._xla_layout()
    order = tuple(reversed(found.minor_to_major()))
    tiling = tuple(map(tuple, found.tiling()))
    return Format(Layout(order, tiling, found.element_size_in_bits()), sharding)
