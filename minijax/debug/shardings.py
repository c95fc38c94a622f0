"""Pictures of how an array is spread over devices."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.lax.debug_callbacks import inspect_array_sharding
from minijax.runtime.sharding import Sharding

__all__ = ["visualize_array_sharding", "visualize_sharding"]


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Print a table of which devices hold which part of an array of one or two axes.

    - `scale`: of the table; `min_width`, `max_width`: of a column and of the table, in characters
    - `use_color`, `color_map`: whether parts have colors, and a function from numbers in [0, 1] to
      their RGBA, by default Matplotlib's tab20b if that is installed

    ValueError for another number of axes. Drawn with rich where it is installed, plainly otherwise.
    """
    shape = tuple(shape)
    if len(shape) not in (1, 2):
        raise ValueError(
            f"`visualize_sharding` only works for shapes with 1 and 2 dimensions. The shape is {shape}."
        )
    table = _cells(shape, sharding)
    columns = max(len(row) for row in table)
    aspect = shape[1] / shape[0] if len(shape) == 2 and shape[0] else 0.0
    width = int(min(max(2.5 * int(10 * scale * aspect) / columns, min_width), max_width)) - 2
    height = int(10 * scale / len(table)) - 1 if len(shape) == 2 else 1
    try:
        console = importlib.import_module("rich.console").Console(width=max_width)
    except ImportError:
        sys.stdout.write(_plain(table, max(width, *[len(cell) for row in table for cell in row])))
        return
    shows_colors = use_color and (console.is_terminal or console.is_jupyter)
    colors = _colors(table, color_map) if shows_colors else {}
    console.print(_rich(table, width, max(height, 1), colors), end="")


def _plain(table: list[list[str]], width: int) -> str:
    """The table in ASCII, with columns of this width."""
    line = "+".join(["", *["-" * width] * max(map(len, table)), ""])
    rows = ["|".join(["", *[cell.center(width) for cell in row], ""]) for row in table]
    return "\n".join([line, *[text for row in rows for text in (row, line)], ""])


def _rich(table: list[list[str]], width: int, height: int, colors: dict[str, Any]) -> Any:
    """The table as an object of rich's, with cells of this size."""
    square, Padding = _of_rich("box.SQUARE"), _of_rich("padding.Padding")
    drawn = _of_rich("table.Table")(
        show_header=False, show_lines=True, padding=0, pad_edge=False, box=square
    )
    top, bottom = (height - 1) // 2, height // 2
    for row in table:
        sides = [max(width - len(cell), 0) for cell in row]
        drawn.add_row(
            *[
                Padding(
                    cell, (top, side - side // 2, bottom, side // 2), style=colors.get(cell, "none")
                )
                for cell, side in zip(row, sides, strict=True)
            ]
        )
    return drawn


def _of_rich(path: str) -> Any:
    """An object of a module of rich's, which is loaded when a picture is drawn."""
    module, _, name = path.partition(".")
    return getattr(importlib.import_module(f"rich.{module}"), name)


def _colors(table: list[list[str]], color_map: Any) -> dict[str, Any]:
    """The style of each cell; none without a map of colors."""
    if color_map is None:
        try:
            color_map = importlib.import_module("matplotlib").colormaps["tab20b"]
        except ImportError:
            return {}
    cells = sorted({cell for row in table for cell in row})
    found = {}
    for number, cell in enumerate(cells):
        parts = [round(255 * part) for part in color_map(number / len(cells))[:3]]
        text = "black" if sum(parts) > 380 else "white"
        found[cell] = _of_rich("style.Style")(color=text, bgcolor="rgb({},{},{})".format(*parts))
    return found


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
