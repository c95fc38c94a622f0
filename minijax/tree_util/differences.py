"""How the structures of two pytrees differ, place by place.

Imports `tree_util.nodes` and the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from minijax.tree_util.nodes import (
    FlattenedIndexKey,
    KeyEntry,
    KeyPath,
    PyTreeDef,
    SequenceKey,
    flatten_one_level_with_keys,
    keystr,
)

__all__ = ["Difference", "call_differences", "differences"]


class Difference(NamedTuple):
    """A place at which two structures differ: what each has there, and why that is a difference."""

    path: KeyPath
    one: str
    other: str
    why: str


def differences(
    one: PyTreeDef, other: PyTreeDef, path: KeyPath = (), leaves: Sequence[Sequence[str]] = ()
) -> Iterator[Difference]:
    """Yield the places at which two structures differ, the outermost of those that lie in another.

    `leaves` are what the leaves of each are called.
    """
    if one == other:
        return
    names, other_names = leaves or [["pytree leaf"] * tree.num_leaves for tree in (one, other)]
    node, other_node = one.node_data(), other.node_data()
    if node is None or other_node is None or node[0] is not other_node[0]:
        kinds = _kind(node, names), _kind(other_node, other_names)
        yield Difference(path, *kinds, "their Python types differ")
        return
    children, others = one.children(), other.children()
    keys, other_keys = _keys(one, children), _keys(other, others)
    if len(children) != len(others):
        sizes = [_of_size(node[0], len(part)) for part in (children, others)]
        yield Difference(path, *sizes, _of_other_length(node[0], keys, other_keys))
    elif node != other_node:
        shown = [
            f"{data[0]} with pytree metadata {_metadata(data[1])}" for data in (node, other_node)
        ]
        yield Difference(path, *shown, "the pytree node metadata does not match")
    else:
        rest, other_rest = iter(names), iter(other_names)
        for key, child, other_child in zip(keys, children, others, strict=True):
            below = [
                list(islice(rest, child.num_leaves)),
                list(islice(other_rest, other_child.num_leaves)),
            ]
            yield from differences(child, other_child, (*path, key), below)


def call_differences(
    one: PyTreeDef, other: PyTreeDef, leaf: str = "pytree leaf"
) -> Iterator[tuple[str, str, str, str]]:
    """`differences` of structures of `(args, kwargs)`, each with its place: `args[0]['a']`."""
    pairs = zip(("args", "kwargs"), one.children(), other.children(), strict=True)
    for name, *parts in pairs:
        leaves = [[leaf] * part.num_leaves for part in parts]
        for found in differences(*parts, leaves=leaves):
            yield name + keystr(found.path), *found[1:]


def _kind(node: tuple[type, Any] | None, leaves: Sequence[str]) -> str:
    return leaves[0] if node is None else str(node[0])


def _of_size(kind: type, count: int) -> str:
    if kind in (list, tuple):
        return f"{kind.__name__} of length {count}"
    return f"{kind} with {count} {'children' if count > 1 else 'child'}"


def _of_other_length(kind: type, keys: Sequence[KeyEntry], other_keys: Sequence[KeyEntry]) -> str:
    if kind in (list, tuple):
        return "the lengths do not match"
    why = "the numbers of children do not match"
    names, others = [{getattr(key, "key", None) for key in found} for found in (keys, other_keys)]
    differing = sorted(map(repr, names ^ others))
    if not differing:
        return why
    return f"{why}, with the symmetric difference of key sets: {{{' '.join(differing)}}}"


def _metadata(aux: Any) -> Any:
    """The metadata of a node as it is shown: keys of dicts as a tuple."""
    if isinstance(aux, list):
        return tuple(aux)
    return tuple(map(_metadata, aux)) if isinstance(aux, tuple) else aux


def _keys(tree: PyTreeDef, children: Sequence[PyTreeDef]) -> Sequence[KeyEntry]:
    """Return how the children of a node are reached from it."""
    count = len(children)
    try:
        pairs = flatten_one_level_with_keys(tree.unflatten(range(tree.num_leaves)))[0]
        return [key for key, _ in pairs]
    except Exception:  # a node class that takes no integers: say at least which child
        kind = tree.node_data()[0]
        return [
            (SequenceKey if kind in (list, tuple) else FlattenedIndexKey)(i) for i in range(count)
        ]
