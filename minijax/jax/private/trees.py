"""Counterparts of upstream's private functions on pytrees; `names` says which."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from minijax.tree_util import (
    KeyPath,
    PyTreeDef,
    broadcast_prefix,
    flatten,
    flatten_one_level_with_keys,
    treedef_is_leaf,
    unflatten,
)

__all__ = [
    "broadcast_flattened_prefix_with_treedef", "equality_errors", "equality_errors_pytreedef",
    "treedef_is_strict_leaf",
]  # fmt: skip

_IsLeaf = Callable[[Any], bool] | None
Difference = tuple[KeyPath, str, str, str]


class _Leaf:
    """The type of the placeholders for leaves of a structure that comes without any."""


def equality_errors(tree1: Any, tree2: Any, is_leaf: _IsLeaf = None) -> Iterator[Difference]:
    """Return where the structures of two trees differ: the path, what each has there, and why they
    differ.
    """
    return _differences((), tree1, tree2, is_leaf)


def equality_errors_pytreedef(tree1: PyTreeDef, tree2: PyTreeDef) -> Iterator[Difference]:
    """`equality_errors` of two structures."""
    one, other = [unflatten(tree, [_Leaf()] * tree.num_leaves) for tree in (tree1, tree2)]
    return _differences((), one, other, None)


def _node(tree: Any, is_leaf: _IsLeaf) -> tuple[type, Any] | None:
    """The kind and metadata of the node at the top; None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    return flatten(tree, lambda part: part is not tree)[1].node_data()


def _kind(tree: Any) -> str:
    return "pytree leaf" if isinstance(tree, _Leaf) else str(type(tree))


def _differences(path: KeyPath, one: Any, other: Any, is_leaf: _IsLeaf) -> Iterator[Difference]:
    node, other_node = _node(one, is_leaf), _node(other, is_leaf)
    if node is None and other_node is None:
        return
    if node is None or other_node is None or node[0] is not other_node[0]:
        yield path, _kind(one), _kind(other), "their Python types differ"
        return
    parts, other_parts = [list(flatten_one_level_with_keys(tree)[0]) for tree in (one, other)]
    if len(parts) != len(other_parts):
        why = _of_other_length(type(one), parts, other_parts)
        yield path, _children(type(one), parts), _children(type(one), other_parts), why
    elif node != other_node:
        has, other_has = [
            f"{_kind(one)} with pytree metadata {_shown(n[1])}" for n in (node, other_node)
        ]
        yield path, has, other_has, "the pytree node metadata does not match"
    else:
        for (key, part), (_, other_part) in zip(parts, other_parts, strict=True):
            yield from _differences((*path, key), part, other_part, is_leaf)


def _shown(metadata: Any) -> Any:
    return tuple(metadata) if isinstance(metadata, list) else metadata


def _children(kind: type, parts: list[tuple[Any, Any]]) -> str:
    if kind in (list, tuple):
        return f"{kind.__name__} of length {len(parts)}"
    return f"{kind} with {len(parts)} {'child' if len(parts) == 1 else 'children'}"


def _of_other_length(kind: type, parts: list, other_parts: list) -> str:
    if kind in (list, tuple):
        return "the lengths do not match"
    names, others = [
        {getattr(key, "key", getattr(key, "name", key)) for key, _ in found}
        for found in (parts, other_parts)
    ]
    extra = ", ".join(sorted(map(repr, names ^ others)))
    why = "the numbers of children do not match, with the symmetric difference of key sets"
    return f"{why}: {{{extra}}}"


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
