"""Blocks of the value in a reference: windows whose start may be computed.

An index made of integers and of windows without gaps is read by one `dynamic_slice` and written by
one `dynamic_update_slice`: both move a block that would end outside to where it lies within. Other
indices are those of arrays; a window among them, or with gaps, is so many places, of which each is
moved when it is read, and left out when it is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minijax.core.array import Array
from minijax.lax.arithmetic import add_p, mul_p
from minijax.lax.creation import full, iota
from minijax.lax.dynamic_slices import Slice
from minijax.lax.dynamic_slicing import dynamic_slice, dynamic_update_slice
from minijax.lax.shapes import reshape

__all__ = [
    "Block", "Places", "block_of", "check_windows", "places_of", "read_block", "read_places",
    "write_block", "write_places",
]  # fmt: skip


class Block(NamedTuple):
    """The bounds of a block, and its shape without the axes of integers."""

    starts: list[Any]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]


def _full(index: tuple, ndim: int) -> list[Any] | None:
    """One entry for each axis; None if some entry adds an axis, or takes several."""
    entries = list(index)
    if any(entry is None or type(entry) is bool for entry in entries):
        return None
    dots = [n for n, entry in enumerate(entries) if entry is Ellipsis]
    where = dots[0] if dots else len(entries)
    rest = [slice(None)] * (ndim - len(entries) + len(dots))
    return entries[:where] + rest + entries[where + len(dots) :]


def _window(entry: Any, size: int) -> tuple[Any, int, bool] | None:
    """Start and size of what an entry names on its axis, and whether it keeps the axis."""
    if isinstance(entry, int):
        return (entry + size if entry < 0 else entry), 1, False
    if type(entry) is Slice:
        return (entry.start, entry.size, True) if entry.stride == 1 else None
    if isinstance(entry, slice):
        start, stop, step = entry.indices(size)
        return (start, max(stop - start, 0), True) if step == 1 else None
    if isinstance(entry, (Array, np.integer)) and entry.ndim == 0 and entry.dtype.kind in "iu":
        return entry, 1, False
    return None


def block_of(shape: tuple[int, ...], index: tuple) -> Block | None:
    """The block that an index names; None unless it is one, with a start that is computed."""
    entries = _full(index, len(shape))
    if entries is None or len(entries) != len(shape):
        return None
    windows = [_window(entry, size) for entry, size in zip(entries, shape, strict=True)]
    if not all(windows) or all(isinstance(start, int) for start, _, _ in windows):
        return None
    if any(size > whole for (_, size, _), whole in zip(windows, shape, strict=True)):
        return None
    kind = next(start.dtype for start, _, _ in windows if not isinstance(start, int))
    return Block(
        [kind.type(start) if isinstance(start, int) else start for start, _, _ in windows],
        tuple([size for _, size, _ in windows]),
        tuple([size for _, size, kept in windows if kept]),
    )


def read_block(value: Any, block: Block) -> Any:
    found = dynamic_slice(value, block.starts, block.sizes)
    return found if block.shape == block.sizes else reshape(found, block.shape)


def write_block(value: Any, block: Block, new: Any, how: str) -> Any:
    """`value` with a block set to `new`, or with `new` added to it."""
    new = new if block.shape == block.sizes else reshape(new, block.sizes)
    if how == "add":
        new = add_p.bind(dynamic_slice(value, block.starts, block.sizes), new)
    return dynamic_update_slice(value, new, block.starts)


class Places(NamedTuple):
    """Windows as places along their axes, and the index of the rest."""

    windows: tuple[tuple[int, Any], ...]
    rest: tuple


def places_of(shape: tuple[int, ...], index: tuple) -> Places | None:
    """An index that has windows with a computed start; None if it is not one."""
    entries = _full(index, len(shape))
    if entries is None:
        return None
    windows = []
    for axis, entry in enumerate(entries):
        if type(entry) is Slice and not isinstance(entry.start, int):
            steps = mul_p.bind(
                iota(np.int32, entry.size), full((entry.size,), entry.stride, np.int32)
            )
            where = add_p.bind(steps, full((entry.size,), entry.start, np.int32))
            windows.append((axis, where))
            entries[axis] = slice(None)
    return Places(tuple(windows), tuple(entries)) if windows else None


def read_places(value: Any, places: Places) -> Any:
    for axis, where in places.windows:
        value = value[(*[slice(None)] * axis, where)]
    return value[places.rest]


def write_places(value: Any, places: Places, new: Any, how: str) -> Any:
    """`value` with these places set to `new`, or with `new` added to them."""
    if not places.windows:
        return getattr(value.at[places.rest], how)(new)
    (axis, where), *others = places.windows
    index = (*[slice(None)] * axis, where)
    part = write_places(value[index], Places(tuple(others), places.rest), new, how)
    return value.at[index].set(part)


def check_windows(shape: tuple[int, ...], index: tuple) -> None:
    """ValueError for more entries than axes, and for a window with a known start that ends outside."""
    terms = tuple([entry for entry in index if entry is not None and entry is not Ellipsis])
    if len(terms) > len(shape):
        raise ValueError(
            f"`indices` must not be longer than `shape`: indices={terms}, shape={shape}. Give one "
            "index an axis."
        )
    entries = _full(index, len(shape)) or ()
    for entry, dim in zip(entries, shape, strict=False):
        if type(entry) is not Slice:
            continue
        start, size, stride = entry.start, entry.size, entry.stride
        if isinstance(size, Array):
            raise NotImplementedError(
                f"A window of a reference has a size that is known, got {entry!r}: take the largest "
                "one, and mask what is beyond."
            )
        if not isinstance(start, int):
            if size > dim:
                raise ValueError(f"Out of bound slice: size={size}, dim={dim}.")
            continue
        if start < 0:
            raise TypeError(
                f"slice start_indices must have every element be nonnegative, got {start}: windows "
                "count from the front."
            )
        if size and start + (size - 1) * stride + 1 > dim:
            raise ValueError(
                f"Out of bound slice: start={start}, size={size}, stride={stride}, dim={dim}."
            )
