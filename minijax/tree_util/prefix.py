"""Prefixes of pytrees: spreading the leaves of a prefix over a tree, and saying where it is none.

Imports `tree_util.nodes` and the standard library only.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax.tree_util.nodes import KeyPath, PyTreeDef, flatten, flatten_one_level_with_keys, keystr

__all__ = [
    "broadcast_prefix",
    "flatten_axes",
    "prefix_errors",
    "spread_prefix",
    "tree_broadcast",
    "treedef_prefix_errors",
]

_is_none = functools.partial(operator.is_, None)


def tree_broadcast(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Repeat the leaves of a prefix over the structure of a pytree.

    - `prefix_tree`: pytree whose leaves stand for subtrees of `full_tree`
    - `full_tree`: pytree
    - `is_leaf`: function that is true of nodes of the prefix to be treated as leaves

    The result has the structure of `full_tree`. ValueError, with the path, unless `prefix_tree` is
    a prefix.
    Source: NumPy's broadcasting, for pytrees.

    >>> jax.tree_util.tree_broadcast([1, 2], [(0, 0), {"a": 0}])
    [(1, 1), {'a': 2}]
    """
    full_def = flatten(full_tree)[1]
    return full_def.unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any]:
    """The leaves of `tree_broadcast(prefix_tree, full_tree, is_leaf)`, left to right."""
    leaves, full_def = flatten(full_tree)
    full = "full_tree", leaves
    return spread_prefix("broadcast_prefix prefix_tree", prefix_tree, full_def, is_leaf, full)


def spread_prefix(
    name: str, prefix_tree: Any, treedef: PyTreeDef, is_leaf: Callable[[Any], bool] | None,
    full: tuple[str, Sequence[Any]] | None = None,
) -> list[Any]:  # fmt: skip
    """One entry of `prefix_tree`, called `name` in errors, for each leaf of `treedef`.

    `full` are the name and the leaves of the full tree, where there is one.
    """
    leaves, prefix_def = flatten(prefix_tree, is_leaf)
    out = _broadcast(leaves, prefix_def, treedef)
    if out is None:
        raise ValueError(_found(name, prefix_tree, prefix_def, treedef, full)[0])
    return out


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[..., ValueError]]:
    """Return where `prefix_tree` is not a prefix of `full_tree`: one maker of a ValueError for
    each place.

    A maker is called with the name to give the prefix, and optionally one for the full tree.
    """
    return treedef_prefix_errors(prefix_tree, flatten(prefix_tree, is_leaf)[1], full_tree)


def flatten_axes(
    name: str, treedef: PyTreeDef, axis_tree: Any, *, kws: bool = False,
    is_leaf: Callable[[Any], bool] = _is_none,
) -> list[Any]:  # fmt: skip
    """One entry of `axis_tree` for each leaf of `treedef`, of which it must be a prefix.

    `None` in `axis_tree` is a leaf. With `kws`, both are pairs (positional, keyword), and the paths
    in errors count from the positional arguments. ValueError names the paths that do not fit.
    """
    if axis_tree is None or type(axis_tree) is int:
        return [axis_tree] * treedef.num_leaves
    axes, axes_def = flatten(axis_tree, is_leaf)
    out = _broadcast(axes, axes_def, treedef)
    if out is not None:
        return out
    # The caller wrote the positional half of a pair only: its own key is no part of the paths.
    found = _found(name, axis_tree, axes_def, treedef, skipped=int(kws))
    raise ValueError(
        f"{name} specification must be a tree prefix of the corresponding value; \n"
        f"  Mismatch details ({len(found)} found):\n  " + "\n  ".join(found)
    )


def _found(
    name: str, prefix: Any, prefix_def: PyTreeDef, treedef: PyTreeDef,
    full: tuple[str, Sequence[Any]] | None = None, skipped: int = 0,
) -> list[str]:  # fmt: skip
    """Say of each place where a prefix does not fit what is there."""
    full_name, kinds = "the value", ["a leaf"] * treedef.num_leaves
    if full is not None:
        full_name, kinds = full[0], _kinds(full[1])
    return [
        _message(name, full_name, path[skipped:], *rest)
        for path, *rest in _mismatches((), prefix, prefix_def, treedef, kinds)
    ]


def _kinds(leaves: Sequence[Any]) -> list[str]:
    return [f"a leaf of type {_type_name(type(x))}" for x in leaves]


def _broadcast(leaves: list[Any], prefix_def: PyTreeDef, full_def: PyTreeDef) -> list[Any] | None:
    """Repeat each leaf of a prefix for the leaves under it; None if it is not a prefix."""
    if prefix_def == full_def:
        return leaves
    out: list[Any] = []
    return out if _spread(prefix_def, full_def, iter(leaves), out) else None


def _spread(
    prefix_def: PyTreeDef, full_def: PyTreeDef, leaves: Iterator[Any], out: list[Any]
) -> bool:
    node = prefix_def.node_data()
    if node is None:
        out += [next(leaves)] * full_def.num_leaves
        return True
    children, full_children = prefix_def.children(), full_def.children()
    if len(children) != len(full_children) or node != full_def.node_data():
        return False
    for child, full_child in zip(children, full_children, strict=True):
        if not _spread(child, full_child, leaves, out):
            return False
    return True


def treedef_prefix_errors(
    prefix: Any, prefix_def: PyTreeDef, full: Any
) -> list[Callable[..., ValueError]]:
    """`prefix_errors` for a prefix whose structure is at hand."""
    leaves, full_def = flatten(full)

    def maker(mismatch: tuple[Any, ...]) -> Callable[..., ValueError]:
        return lambda name, full_name="the full tree": ValueError(
            _message(name, full_name, *mismatch)
        )

    return [maker(m) for m in _mismatches((), prefix, prefix_def, full_def, _kinds(leaves))]


def _mismatches(
    path: KeyPath, prefix: Any, prefix_def: PyTreeDef, full_def: PyTreeDef, kinds: list[str]
) -> Iterator[tuple[KeyPath, str, str, str, str]]:
    """Yield (path, what differs, what the prefix has, what the full tree has, hint).

    `kinds` describes the leaves of `full_def` in order.
    """
    node = prefix_def.node_data()
    if node is None:
        return
    full_node = full_def.node_data()
    children, full_children = prefix_def.children(), full_def.children()
    if full_node is None or node[0] is not full_node[0]:
        what = "types"
    elif len(children) != len(full_children):
        listed = node[0] in (list, tuple)
        what = f"lengths of {node[0].__name__}" if listed else "numbers of pytree children"
    elif node != full_node:
        what = "pytree metadata"
    else:
        start = 0
        pairs = flatten_one_level_with_keys(prefix)[0]
        for (key, part), *defs in zip(pairs, children, full_children, strict=True):
            stop = start + defs[-1].num_leaves
            yield from _mismatches((*path, key), part, *defs, kinds[start:stop])
            start = stop
        return
    seen = _describe(prefix_def, "")
    full_seen = _describe(full_def, kinds[0] if full_node is None else "")
    yield path, what, seen, full_seen, _hint(node, full_node)


def _message(
    name: str, full_name: str, path: KeyPath, what: str, seen: str, full_seen: str, hint: str
) -> str:
    return (
        f"pytree structure error: different {what} at key path\n    {name}{keystr(path)}\n"
        f"  there {name} has: {seen}\n  and {full_name} has: {full_seen}\n  {hint}"
    )


def _describe(treedef: PyTreeDef, leaf: str) -> str:
    node = treedef.node_data()
    if node is None:
        return leaf
    kind, aux = node
    count = len(treedef.children())
    if kind is type(None):
        return "None, an empty pytree"
    if kind in (list, tuple):
        return f"{kind.__name__} of length {count}"
    if kind is dict:
        return f"dict with the keys {aux}"
    children = "1 child" if count == 1 else f"{count} children"
    metadata = "" if aux is None else f" and metadata {aux!r}"
    return f"{_type_name(kind)} with {children}{metadata}"


def _hint(node: tuple[type, Any], full_node: tuple[type, Any] | None) -> str:
    if node[0] is type(None):
        return "To treat None as a leaf, pass is_leaf=lambda x: x is None, where there is is_leaf."
    same = "Give both the same structure there, or put one leaf for the whole subtree."
    if node[0] is dict and full_node is not None and full_node[0] is dict:
        extra = [k for k in node[1] if k not in full_node[1]]
        lacking = [k for k in full_node[1] if k not in node[1]]
        return f"Keys that only the first has: {extra}, only the second: {lacking}. {same}"
    return same


def _type_name(kind: type) -> str:
    prefix = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{prefix}{kind.__qualname__}"
