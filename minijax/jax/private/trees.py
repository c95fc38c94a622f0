"""Counterparts of upstream's private functions on pytrees; `names` says which."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from minijax.tree_util import (
    Difference,
    PyTreeDef,
    broadcast_prefix,
    differences,
    flatten,
    treedef_is_leaf,
    unflatten,
)

__all__ = [
    "broadcast_flattened_prefix_with_treedef", "equality_errors", "equality_errors_pytreedef",
    "treedef_is_strict_leaf",
]  # fmt: skip

_IsLeaf = Callable[[Any], bool] | None


class _Leaf:
    """The type of the placeholders for leaves of a structure that comes without any."""


def equality_errors(tree1: Any, tree2: Any, is_leaf: _IsLeaf = None) -> Iterator[Difference]:
    """Return where the structures of two trees differ: the path, what each has there, and why they
    differ.
    """
    (leaves1, one), (leaves2, other) = flatten(tree1, is_leaf), flatten(tree2, is_leaf)
    return differences(
        one, other, leaves=[list(map(_type_of, each)) for each in (leaves1, leaves2)]
    )


def _type_of(leaf: Any) -> str:
    return str(type(leaf))


def equality_errors_pytreedef(tree1: PyTreeDef, tree2: PyTreeDef) -> Iterator[Difference]:
    """`equality_errors` of two structures."""
    return differences(tree1, tree2)


def treedef_is_strict_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is one leaf: not None, nor anything else without leaves."""
    return treedef_is_leaf(treedef) and treedef.num_leaves == 1


def broadcast_flattened_prefix_with_treedef(
    prefix_leaves: list[Any], prefix_treedef: PyTreeDef, full_treedef: PyTreeDef
) -> list[Any]:
    """The leaves of a prefix, each as often as the tree has leaves below it. ValueError if it is none."""
    full = unflatten(full_treedef, [_Leaf()] * full_treedef.num_leaves)
    # A box is a leaf, whatever it holds.
    boxes = unflatten(prefix_treedef, [[leaf].__iter__ for leaf in prefix_leaves])
    return [next(box()) for box in broadcast_prefix(boxes, full)]
