"""How shardings and meshes show themselves in a notebook: which device holds which part."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minijax.runtime.mesh import Mesh

__all__ = ["drawn_mesh", "drawn_sharding", "partition"]

_MOST_PARTS = 16  # along an edge of a drawing
_CELL = "border: 1px solid #8888; padding: .15em .6em; text-align: center"


def drawn_mesh(mesh: Any) -> str:
    """A table of the devices of a mesh, its first axis down and all others across."""
    names = ", ".join(f"{name}: {size}" for name, size in mesh.shape.items())
    head = f"<div>{type(mesh).__name__} <b>({html.escape(names)})</b></div>"
    if not isinstance(mesh, Mesh) or not mesh.devices.size:
        return head
    rows = np.atleast_1d(mesh.devices)
    rows = rows.reshape(len(rows), -1)
    return head + _table([[[device.id] for device in row] for row in rows])


def drawn_sharding(sharding: Any, shape: Sequence[int]) -> str:
    """A table of the parts of an array along its first two axes, each with its devices."""
    parts = partition(sharding, shape)
    edges = [sorted({index[axis] for index, _ in parts}) for axis in range(2)]
    if not parts or max(map(len, edges)) > _MOST_PARTS:
        return ""
    cells: list[list[list[int]]] = [[[] for _ in edges[1]] for _ in edges[0]]
    for (row, column), device in parts:
        cells[edges[0].index(row)][edges[1].index(column)].append(device)
    return _table(cells)


def partition(sharding: Any, shape: Sequence[int]) -> list[tuple[tuple[int, int], int]]:
    """Return the start of each device's part along the first two axes, and the device's number."""
    found = []
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        starts = [part.start or 0 for part in index[:2]]
        found.append(((*starts, 0, 0)[:2], device.id))
    return found


def _table(rows: Iterable[Iterable[list[int]]]) -> str:
    body = ""
    for row in rows:
        body += "<tr>"
        for devices in row:
            hue = 47 * min(devices, default=0) % 360
            text = ", ".join(map(str, sorted(devices)[:8])) + (" …" if len(devices) > 8 else "")
            body += f'<td style="{_CELL}; background: hsl({hue} 60% 50% / .3)">{text}</td>'
        body += "</tr>"
    return f'<table style="border-collapse: collapse">{body}</table>'
