"""Pictures of how an array is spread over devices. May import the floors below."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.lax.debug_callbacks import inspect_array_sharding

__all__ = ["visualize_array_sharding", "visualize_sharding"]


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Print a table of which devices hold which part of an array of one or two axes.

    ValueError for another number of axes. Colors are not used.
    """
    shape = tuple(shape)
    if len(shape) not in (1, 2):
        raise ValueError(f"`visualize_sharding` only works for 1D or 2D sharding; got {shape}.")
    table = _cells(shape, sharding)
    columns = max(len(row) for row in table)
    longest = max(len(cell) for row in table for cell in row)
    wanted = round(scale * 2.5 * shape[-1] / columns)
    width = max(longest + 2, min(max(wanted, min_width), max(max_width // columns, 1)))
    line = "+".join(["-" * width] * columns)
    lines = [f"+{line}+"]
    for row in table:
        lines += ["|" + "|".join(cell.center(width) for cell in row) + "|", f"+{line}+"]
    sys.stdout.write("\n".join(lines) + "\n")


def _cells(shape: tuple[int, ...], sharding: Any) -> list[list[str]]:
    """The names of the devices of each part, by rows."""
    parts: dict[tuple, set] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        starts = tuple(0 if part.start is None else part.start for part in index)
        parts.setdefault(starts, set()).add(device)
    rows: dict[int, dict[int, str]] = {}
    for starts, devices in parts.items():
        kind = next(iter(devices)).platform.upper()
        numbers = ",".join(str(number) for number in sorted(d.id for d in devices))
        row, column = starts if len(starts) == 2 else (0, starts[0])
        rows.setdefault(row, {})[column] = f"{kind} {numbers}"
    return [[row[column] for column in sorted(row)] for _, row in sorted(rows.items())]


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print how an array is spread over devices; see `visualize_sharding`."""
    shape = np.shape(arr)
    inspect_array_sharding(
        arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs)
    )
