"""`minijax.experimental.layout`: the order of an array's dimensions in memory."""

from __future__ import annotations

from typing import Any

from minijax import tree_util
from minijax.core.avals import get_aval
from minijax.lax.layout_constraints import layout_constraint_p
from minijax.namespace import shown
from minijax.runtime.layouts import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """`x`, a tree of arrays, whose dimensions lie in this order where it stands in a program.

    `layouts`: a `Layout`, or a tree of them that is a prefix of `x`. What a program takes and gives
    keeps the default order. ValueError for another number of dimensions, and for what is no layout.
    Source: XLA's custom call `LayoutConstraint`.
    """
    leaves, tree = tree_util.tree_flatten(x)
    wanted = tree_util.broadcast_prefix(layouts, x, is_leaf=lambda node: node is None)
    for layout in wanted:
        if not isinstance(layout, Layout):
            raise ValueError(
                "layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
                f"{[type(one) for one in wanted]}: write Layout((0, 1)), from the dimension that "
                "varies slowest to the fastest."
            )
    return tree.unflatten(map(_constrained, leaves, wanted))


def _constrained(x: Any, layout: Layout) -> Any:
    order, aval = layout.major_to_minor, get_aval(x)
    if len(order) != aval.ndim:
        raise ValueError(
            "One of with_layout_constraint arguments is incompatible with its layout annotation "
            f"{layout}: Length of major_to_minor and the rank of the value should match. Got "
            f"major_to_minor={order} and shape={aval.shape}."
        )
    if sorted(order) != list(range(aval.ndim)):
        raise ValueError(
            f"with_layout_constraint: major_to_minor={order} is no permutation of the dimensions "
            f"0 to {aval.ndim - 1} of a value of shape {aval.shape}."
        )
    return layout_constraint_p.bind(x, layout=layout)


__dir__ = shown(__name__)
