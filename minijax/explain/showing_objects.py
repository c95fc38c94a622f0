"""How arrays, programs, trees and shardings show themselves in a notebook.

`%load_ext minijax.explain` registers these with IPython: the classes themselves are as they are.
"""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import ArrayImpl
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.explain.lines import Book, Span, Stage
from minijax.explain.origins import Origins
from minijax.explain.page_style import STYLE
from minijax.explain.pages import rows_of
from minijax.explain.showing_shardings import drawn_mesh, drawn_sharding
from minijax.explain.showing_trees import shown_tree
from minijax.explain.tables import Table, quantity
from minijax.features.stages.stages import Compiled, Lowered, Traced
from minijax.random import key_data
from minijax.runtime.mesh import AbstractMesh, Mesh
from minijax.runtime.named_sharding import NamedSharding
from minijax.runtime.sharding import Sharding
from minijax.transforms.jit import PjitFunction

__all__ = ["SHOWN", "html_of"]

_LARGEST = 1 << 20  # elements of an array that is brought to the host
_PIXELS = 48  # along an edge of a picture


def html_of(x: Any) -> str | None:
    """Return the HTML that shows an object in a notebook; None for those that show themselves.

    - `x`: an array, tree, sharding, mesh, jaxpr, jitted function or a stage of its compilation

    An array is shown by its type, sharding, range and number of NaN, with a small picture; one of
    more than a million elements, that lies on several devices, or that is still being computed, is
    not brought to the host.
    """
    for kind, show in SHOWN.items():
        if isinstance(x, kind):
            return show(x)
    if x is None or hasattr(x, "_repr_html_") or not tree_util.is_tree_node(type(x)):
        return None
    return shown_tree(x)


# -- arrays ----------------------------------------------------------------------------------------


def _array(x: ArrayImpl) -> str:
    weak = ", weak type" if x.aval.weak_type else ""
    head = f"<b>{html.escape(x.aval.str_short())}</b>{weak}, {quantity(x.nbytes, 'B')}"
    if x.is_deleted():
        return f"<div>{head}, deleted</div>"
    where = html.escape(_placed(x))
    if len(x.devices()) > 1:
        return f"<div>{head}<br>{where}<br>{drawn_sharding(x.sharding, x.shape)}</div>"
    if not getattr(x, "is_ready", lambda: True)():  # random keys do not say
        return f"<div>{head}, being computed<br>{where}</div>"
    if x.size > _LARGEST:
        return f"<div>{head}<br>{where}</div>"
    if not isinstance(x.dtype, np.dtype):
        return f"<div>{head}<br>{where}<pre>{html.escape(_words(x))}</pre></div>"
    values = np.asarray(x)
    if x.size <= 16:
        shown = html.escape(np.array2string(values, precision=4, separator=", "))
        return f"<div>{head}<br>{where}<pre>{shown}</pre></div>"
    told = html.escape(str(Span(values)))
    return f"<div>{head}<br>{where}<br>{told}<br>{_picture(values)}</div>"


def _words(keys: ArrayImpl) -> str:
    """The first keys of an array of them, as hexadecimal words."""
    data = np.asarray(key_data(keys)).reshape(keys.size, -1)
    rows = [" ".join(f"{word:08x}" for word in row) for row in data[:4]]
    return "\n".join([*rows, *["…"] * (len(data) > 4)])


def _placed(x: ArrayImpl) -> str:
    devices = sorted(map(str, x.devices()))
    if len(devices) == 1:
        return devices[0]
    spec = getattr(x.sharding, "spec", None)
    return f"{spec if spec is not None else type(x.sharding).__name__} on {len(devices)} devices"


def _picture(values: np.ndarray) -> str:
    """A small picture of an array: its last two axes, light for large; red for NaN."""
    if values.dtype.kind == "c":
        values = np.abs(values)
    flat = np.atleast_2d(values.astype(np.float32, copy=False))
    flat = flat.reshape(-1, flat.shape[-1])
    rows = np.linspace(0, len(flat) - 1, min(len(flat), _PIXELS)).astype(int)
    columns = np.linspace(0, flat.shape[1] - 1, min(flat.shape[1], 4 * _PIXELS)).astype(int)
    flat = flat[rows][:, columns]
    good = np.isfinite(flat)
    low, high = (flat[good].min(), flat[good].max()) if good.any() else (0.0, 1.0)
    level = np.where(good, (flat - low) / (high - low or 1.0), 0.0)
    gray = (255 * level).astype(np.uint8)
    red = np.where(good, gray, 255).astype(np.uint8)
    others = np.where(good, gray, 0).astype(np.uint8)
    pixels = np.stack([red, others, others], -1)
    height, width = max(8, 4 * len(rows)), 4 * len(columns)
    source = base64.b64encode(_png(pixels)).decode()
    return (
        f'<img alt="values" width="{width}" height="{height}" style="image-rendering: pixelated" '
        f'src="data:image/png;base64,{source}">'
    )


def _png(pixels: np.ndarray) -> bytes:
    """A PNG file of rows of red, green and blue."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        ends = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + ends

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 6)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


# -- programs --------------------------------------------------------------------------------------


def _program(x: ClosedJaxpr | Jaxpr) -> str:
    lines = "".join(rows_of(Stage("jaxpr", "jaxpr", Book(Origins()).program(x)), 1000))
    page = f"<style>{STYLE}</style><div class='code'>{lines}</div>"
    source = html.escape(page, quote=True)
    height = min(480, 40 + 20 * len(x.eqns))
    return f'<iframe srcdoc="{source}" style="width: 100%; height: {height}px; border: 0"></iframe>'


def _jitted(x: PjitFunction) -> str:
    listing = x.explain_cache()
    rows = [[types, count] for types, count in listing.entries]
    title = f"jit of {listing.name}: {len(rows)} traced, {listing.programs} compiled"
    return Table(title, ["arguments", ">equations"], rows)._repr_html_()


def _stage(x: Any) -> str:
    found = {"arguments": getattr(x, "in_avals", None), "results": getattr(x, "out_avals", None)}
    rows = [
        [name, ", ".join(aval.str_short(True) for aval in tree_util.tree_leaves(avals))]
        for name, avals in found.items()
        if avals is not None
    ]
    return Table(type(x).__name__, ["", "types"], rows)._repr_html_()


def _sharding(x: Sharding) -> str:
    text = f"<div>{html.escape(repr(x))}</div>"
    return text + drawn_mesh(x.mesh) if isinstance(x, NamedSharding) else text


SHOWN: dict[type, Callable[[Any], str]] = {
    ArrayImpl: _array,
    ClosedJaxpr: _program,
    Jaxpr: _program,
    PjitFunction: _jitted,
    Traced: _stage,
    Lowered: _stage,
    Compiled: _stage,
    Sharding: _sharding,
    Mesh: drawn_mesh,
    AbstractMesh: drawn_mesh,
}
