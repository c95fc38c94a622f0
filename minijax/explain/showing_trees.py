"""How trees show themselves in a notebook, by themselves and through Treescope."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import ArrayImpl
from minijax.explain.tables import quantity

__all__ = ["register_treescope", "shown_tree", "summary"]

_MOST_CHILDREN = 100
_MOST_NODES = 2000  # of a whole tree
_MOST_OPEN = 2  # levels that are unfolded
_INDENTED = "margin-left: 1em"


def shown_tree(tree: Any) -> str:
    """Nested lists of a tree, which fold; a leaf is one line."""
    return f'<div style="font-family: monospace">{_node("", tree, 0, itertools.count())}</div>'


def _node(name: str, tree: Any, depth: int, count: Iterator[int]) -> str:
    head = f"<b>{html.escape(name)}</b> " if name else ""
    if tree is None or not tree_util.is_tree_node(type(tree)):
        return f'<div style="{_INDENTED}">{head}{html.escape(summary(tree))}</div>'
    children, _ = tree_util.flatten_one_level_with_keys(tree)
    children = list(children)
    leaves = [x for x in tree_util.tree_leaves(tree) if hasattr(x, "nbytes")]
    size = quantity(sum(x.nbytes for x in leaves), "B")
    head += f"{html.escape(type(tree).__name__)} of {len(children)}, {size}"
    inner = ""
    for key, child in children[:_MOST_CHILDREN]:
        if next(count) >= _MOST_NODES:
            break
        inner += _node(tree_util.keystr((key,)), child, depth + 1, count)
    more = len(children) - _MOST_CHILDREN
    inner += f"<div>… {more} more</div>" if more > 0 else ""
    opened = " open" if depth < _MOST_OPEN else ""
    return f'<details{opened} style="{_INDENTED}"><summary>{head}</summary>{inner}</details>'


def summary(x: Any) -> str:
    """One line for a leaf: the type of an array, the text of anything else; no value is fetched."""
    if isinstance(x, ArrayImpl):
        return x.aval.str_short() + (" weak" if x.aval.weak_type else "")
    if isinstance(x, np.ndarray):
        return f"np {x.dtype.name}[{','.join(map(str, x.shape))}]"
    text = repr(x)
    return text if len(text) < 80 else text[:80] + "…"


# -- Treescope -------------------------------------------------------------------------------------


def register_treescope() -> None:
    """Have Treescope show arrays: their edges alone are brought to the host, and their sharding."""
    from treescope import ndarray_adapters, rendering_parts, type_registries

    class Adapter(ndarray_adapters.NDArrayAdapter):
        def get_axis_info_for_array_data(self, array):
            axis = ndarray_adapters.PositionalAxisInfo
            return tuple(axis(number, size) for number, size in enumerate(array.shape))

        def get_array_data_with_truncation(self, array, mask, edge_items_per_axis):
            data = _edges(array, edge_items_per_axis)
            if mask is None:
                seen = np.ones(data.shape, bool)
            else:
                seen = _edges(np.broadcast_to(mask, array.shape), edge_items_per_axis)
            for axis, kept in enumerate(edge_items_per_axis):
                if kept is not None:
                    seen[(slice(None),) * axis + (kept,)] = False
            return data, seen

        def get_array_summary(self, array, fast):
            return summary(array)

        def get_numpy_dtype(self, array):
            return array.dtype if isinstance(array.dtype, np.dtype) else None

        def should_autovisualize(self, array):
            return isinstance(array.dtype, np.dtype) and not array.is_deleted()

        def get_sharding_info_for_array_data(self, array):
            if array.is_deleted() or len(array.devices()) < 2:
                return None
            slices = array.sharding.devices_indices_map(array.shape)
            return ndarray_adapters.ShardingInfo(
                array.sharding.shard_shape(array.shape),
                {device.id: index for device, index in slices.items()},
                next(iter(slices)).platform.upper(),
                array.sharding.is_fully_replicated,
            )

    def handler(node, path, subtree_renderer):
        line = rendering_parts.text(f"<{summary(node)}>")
        return rendering_parts.build_one_line_tree_node(line=line, path=path)

    type_registries.NDARRAY_ADAPTER_REGISTRY[ArrayImpl] = Adapter()
    type_registries.TREESCOPE_HANDLER_REGISTRY[ArrayImpl] = handler


def _edges(array: Any, edge_items: Sequence[int | None]) -> np.ndarray:
    """The first and the last items along each axis that is shortened, with one between them."""
    for axis, (kept, size) in enumerate(zip(edge_items, array.shape, strict=True)):
        if kept is not None:
            rows = [*range(kept + 1), *range(size - kept, size)]
            array = array[(slice(None),) * axis + (np.array(rows),)]
    return np.array(array)
