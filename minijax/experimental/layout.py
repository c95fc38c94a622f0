"""`minijax.experimental.layout`: the order of an array's dimensions in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import tree_util
from minijax.core.array import Array
from minijax.features.sharding.memory_layouts import check_layout, layout_constraint_p
from minijax.runtime.layouts import Format, Layout
from minijax.tracebacks import public

__all__ = ["Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """`x`, a tree of arrays, whose dimensions lie in this order where it stands in a program.

    `layouts`: a `Layout`, or a tree of them that is a prefix of `x`. Concrete arrays are copied; a
    traced one keeps the layout if a program returns it. ValueError for another number of dimensions,
    for what is no layout, and for leaves that are no arrays.
    Source: XLA's custom call `LayoutConstraint`.
    """
    leaves, tree = tree_util.tree_flatten(x)
    wanted = tree_util.flatten_axes(
        "with_layout_constraint layouts", tree, layouts, is_leaf=lambda node: node is None
    )
    for layout in wanted:
        if not isinstance(layout, Layout):
            raise ValueError(
                "layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
                f"{[type(one) for one in wanted]}: write Layout((0, 1)), from the dimension that "
                "varies slowest to the fastest."
            )
    return tree.unflatten(map(_constrained, leaves, wanted))


def _constrained(x: Any, layout: Layout) -> Any:
    check_layout("with_layout_constraint arguments", layout, np.shape(x))
    if not isinstance(x, Array):
        raise ValueError(
            f"with_layout_constraint in eager mode can only be applied to jax.Arrays. Got {type(x)}: "
            "make an array of it with jnp.asarray."
        )
    return layout_constraint_p.bind(x, layout=layout)


__dir__ = public(__name__)
