"""The order of an array's dimensions in memory, as data.

Buffers and compiled programs know it; a module says of its arguments and results which one they
have, or that XLA is to choose. An array whose layout is not the one that its device prefers has a
`Format` as its place: see `placed`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from minijax.runtime.sharding import Sharding

__all__ = [
    "AutoLayout", "Format", "Layout", "format_of", "place_for", "placed", "preferred", "sharding_in",
]  # fmt: skip


class AutoLayout:
    """Leave the layout to the compiler. There is one object, also of copies and in other processes."""

    def __new__(cls) -> Any:
        return getattr(Layout, "AUTO", None) or object.__new__(cls)

    def __repr__(self) -> str:
        return "AUTO"


@dataclasses.dataclass(frozen=True)
class Layout:
    """Dimensions from the one that varies slowest to the fastest, and how they are tiled."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO: ClassVar[AutoLayout]

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))
        if self.tiling is not None:
            object.__setattr__(self, "tiling", tuple(map(tuple, self.tiling)))

    @staticmethod
    def from_pjrt_layout(pjrt_layout: Any) -> Layout:
        """Return a layout of jaxlib's."""
        found = pjrt_layout._xla_layout()
        order = tuple(reversed(found.minor_to_major()))
        return Layout(order, found.tiling(), found.element_size_in_bits())

    def update(self, **changes: Any) -> Layout:
        return dataclasses.replace(self, **changes)

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError unless values of this shape have as many dimensions."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError(
                "Length of major_to_minor and the rank of the value should match. Got "
                f"major_to_minor={self.major_to_minor} and shape={tuple(aval_shape)}: write one "
                "number for each dimension, from the one that varies slowest to the fastest."
            )

    def as_xla(self) -> str:
        """Return the layout in XLA's notation, which begins with the dimension that varies fastest."""
        tiles = "".join(f"({','.join(map(str, tile))})" for tile in self.tiling or ())
        bits = self.sub_byte_element_size_in_bits
        after = (f"T{tiles}" if tiles else "") + (f"E({bits})" if bits else "")
        order = ",".join(map(str, reversed(self.major_to_minor)))
        return f"{{{order}:{after}}}" if after else f"{{{order}}}"


Layout.AUTO = AutoLayout()


@dataclasses.dataclass(frozen=True)
class Format:
    """The layout of an array in memory, and where its parts are."""

    layout: Layout | AutoLayout | None = None
    sharding: Any = None

    def __post_init__(self) -> None:
        layout, sharding = self.layout, self.sharding
        if not (layout is None or isinstance(layout, (Layout, AutoLayout))):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are `None`, "
                f"`Layout.AUTO` or an instance of `Layout`. Got {layout!r} of type {type(layout)}."
            )
        if not (sharding is None or isinstance(sharding, Sharding)):
            raise TypeError(
                "Invalid value received for the sharding argument. Expected values are `None` or an "
                f"instance of `jax.Sharding`. Got {sharding!r} of type {type(sharding)}."
            )
        if sharding is None and isinstance(layout, Layout):
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {type(layout)}. Please pass a "
                "`jax.sharding.NamedSharding` or `jax.sharding.SingleDeviceSharding` to the sharding "
                f"argument. Got sharding {sharding}"
            )


def sharding_in(place: Any) -> Any:
    """Return the sharding of a `Format`; of anything else, itself."""
    return place.sharding if isinstance(place, Format) else place


def format_of(buffer: Any, sharding: Any) -> Format:
    """Return how a buffer of jaxlib's lies in memory."""
    return Format(Layout.from_pjrt_layout(buffer._pjrt_layout), sharding)


def placed(layout: Any, sharding: Any, aval: Any) -> Any:
    """Return the place of an array that has a layout of jaxlib's: its sharding alone, where it is the
    layout that the device prefers for arrays of this type.
    """
    found = _without_bits(layout)
    return sharding if found == preferred(sharding, aval) else Format(found, sharding)


def place_for(given: Format, aval: Any) -> Any:
    """Return the place of an array that lies as a user's `Format` with a layout says."""
    layout, sharding = given.layout, given.sharding
    layout = layout.update(tiling=layout.tiling or (), sub_byte_element_size_in_bits=0)
    return sharding if layout == preferred(sharding, aval) else Format(layout, sharding)


def preferred(sharding: Any, aval: Any) -> Layout:
    """Return the layout that a device has arrays of this type in unless another is asked for.

    It is row-major where there are no devices yet, and for symbolic sizes.
    """
    known = all(isinstance(size, int) for size in aval.shape)
    for device in sharding._device_assignment[:known]:
        of = getattr(device.client, "get_default_layout", None)
        if of is not None:
            return _without_bits(of(aval.dtype, sharding.shard_shape(aval.shape), device))
    return Layout(tuple(range(len(aval.shape))), ())


def _without_bits(layout: Any) -> Layout:
    """Return a layout of jaxlib's without the size of its elements, which the dtype determines."""
    return Layout.from_pjrt_layout(layout).update(sub_byte_element_size_in_bits=0)
