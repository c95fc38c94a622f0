"""Pytrees: nested containers taken apart into leaves and a structure, and put together again.

Node types and their registry stand in `nodes`, prefixes of trees in `prefix`; the rest is here.
Ground floor: imports the standard library and jaxlib's pytree module only.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from jaxlib import _jax

from minijax.tree_util.nodes import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    PyTreeDef,
    SequenceKey,
    default_registry,
    flatten,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    registry,
    unflatten,
)
from minijax.tree_util.prefix import (
    broadcast_prefix,
    flatten_axes,
    prefix_errors,
    tree_broadcast,
    treedef_prefix_errors,
)

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "broadcast_prefix",
    "build_tree",
    "default_registry",
    "flatten",
    "flatten_axes",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "generate_key_paths",
    "is_tree_node",
    "keystr",
    "prefix_errors",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "registry",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
    "unflatten",
]

_T = TypeVar("_T")
_IsLeaf = Callable[[Any], bool] | None


class _Unset:
    def __repr__(self) -> str:
        return "<unset>"


_UNSET: Any = _Unset()

# Taking trees apart and putting them together


def tree_flatten(tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a pytree, left to right, and its structure.

    `None` is an empty node; dictionaries are walked in the order of their sorted keys (ValueError
    where keys cannot be compared). `is_leaf(node)` true stops the walk at that node.
    """
    return flatten(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The pytree of structure `treedef` with these leaves; ValueError if too few or too many."""
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: _IsLeaf = None) -> list[Any]:
    """The leaves of a pytree, left to right."""
    return flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: _IsLeaf = None) -> PyTreeDef:
    """The structure of a pytree."""
    return flatten(tree, is_leaf)[1]


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Like `tree_flatten`, with a `(key path, leaf)` pair in place of each leaf.

    With `is_leaf_takes_path`, the predicate is called as `is_leaf(path, node)`.
    """
    if is_leaf is None or is_leaf_takes_path:
        return registry.flatten_with_path(tree, is_leaf)
    return registry.flatten_with_path(tree, lambda _, node: is_leaf(node))


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The `(key path, leaf)` pairs of a pytree, left to right."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def generate_key_paths(tree: Any) -> list[tuple[KeyPath, Any]]:
    """The `(key path, leaf)` pairs of a pytree: `tree_leaves_with_path` without options."""
    return registry.flatten_with_path(tree)[0]


def build_tree(treedef: PyTreeDef, nested: Any) -> Any:
    """The pytree of structure `treedef` from iterables nested like its nodes."""
    return treedef.from_iterable_tree(nested)


def all_leaves(iterable: Iterable[Any], is_leaf: _IsLeaf = None) -> bool:
    """Whether every element of `iterable` is a leaf."""
    if is_leaf is None:
        return _jax.pytree.all_leaves(registry, iterable)
    items = list(iterable)
    leaves = flatten(items, is_leaf)[0]
    return len(leaves) == len(items) and all(map(operator.is_, leaves, items))


# Mapping and reducing


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: _IsLeaf = None) -> Any:
    """Apply `f` to each leaf of `tree`, and to the subtrees of `rest` at the same places.

    `tree` must be a prefix of each tree in `rest`; ValueError names the path where it is not.
    """
    leaves, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    columns = _columns("tree_map", tree, treedef, rest)
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *columns, strict=True)])


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Like `tree_map`, calling `f(key path, leaf, *others)`."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    if not rest:
        return treedef.unflatten([f(path, x) for path, x in pairs])
    columns = _columns("tree_map_with_path", tree, treedef, rest)
    return treedef.unflatten([f(*kv, *xs) for kv, *xs in zip(pairs, *columns, strict=True)])


def _columns(caller: str, tree: Any, treedef: PyTreeDef, rest: tuple[Any, ...]) -> list[list[Any]]:
    columns = []
    for i, other in enumerate(rest):
        try:
            columns.append(treedef.flatten_up_to(other))
        except ValueError:
            for error in treedef_prefix_errors(tree, treedef, other):
                raise error(f"{caller} tree", f"rest[{i}]") from None
            raise
    return columns


def tree_reduce(
    function: Callable[[_T, Any], _T], tree: Any, initializer: _T = _UNSET, is_leaf: _IsLeaf = None
) -> _T:
    """`functools.reduce` over the leaves; TypeError if there are none and no `initializer`."""
    leaves = flatten(tree, is_leaf)[0]
    if initializer is _UNSET:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[_T, _T], _T], tree: Any, *, identity: _T = _UNSET, is_leaf: _IsLeaf = None
) -> _T:
    """Reduce the leaves with an associative operation, as a balanced binary tree of calls.

    `identity` is the result for a tree without leaves; without it such a tree is a TypeError.
    """
    leaves = flatten(tree, is_leaf)[0]
    if leaves:
        return _reduce_halves(operation, leaves)
    if identity is _UNSET:
        raise TypeError(
            "tree_reduce_associative: `tree` has no leaves and `identity` was not given. Pass "
            "identity=, the result for an empty tree."
        )
    return identity


def _reduce_halves(operation: Callable[[Any, Any], Any], xs: list[Any]) -> Any:
    if len(xs) == 1:
        return xs[0]
    half = len(xs) // 2
    return operation(_reduce_halves(operation, xs[:half]), _reduce_halves(operation, xs[half:]))


def tree_all(tree: Any, *, is_leaf: _IsLeaf = None) -> bool:
    """Whether every leaf is true."""
    return all(flatten(tree, is_leaf)[0])


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Turn a tree of structure outer-of-inner into one of structure inner-of-outer.

    With `inner_treedef=None` the inner structure is that of the first child. TypeError if the
    number of leaves is not that of outer-of-inner.
    """
    if inner_treedef is None:
        children = outer_treedef.flatten_up_to(pytree_to_transpose)
        if not children:
            raise IndexError(
                f"tree_transpose: no inner structure to infer: `outer_treedef` {outer_treedef} has "
                "no leaves. Pass inner_treedef."
            )
        inner_treedef = flatten(children[0])[1]
    leaves, treedef = flatten(pytree_to_transpose)
    m, n = outer_treedef.num_leaves, inner_treedef.num_leaves
    if len(leaves) != m * n:
        raise TypeError(
            "tree_transpose: Mismatch: `pytree_to_transpose` has the structure\n"
            f"  {treedef}\nbut outer_treedef of inner_treedef is\n"
            f"  {outer_treedef.compose(inner_treedef)}\n"
            "Pass treedefs whose composition is the structure of the tree."
        )
    return inner_treedef.unflatten([outer_treedef.unflatten(leaves[j::n]) for j in range(n)])


# Structures


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose elements have the given structures."""
    treedefs = list(treedefs)
    for treedef in treedefs:
        if not isinstance(treedef, PyTreeDef):  # of None the process would end
            raise RuntimeError(
                f"treedef_tuple takes structures, got {treedef!r} of type {type(treedef)}: "
                "tree_structure(tree) gives one."
            )
    return _jax.pytree.treedef_tuple(registry, treedefs)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the direct children; empty for a leaf."""
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is a single entry: a leaf, or a node without children (`None`)."""
    return treedef.num_nodes == 1


class _Opaque:
    """A `functools.partial` hidden from `functools.partial`, which would merge it into the new one.

    Merged, its arguments would become leaves; kept whole, it stays part of the structure.
    """

    def __init__(self, fun: functools.partial[Any]):
        self.fun = fun
        self.func, self.args, self.keywords = fun.func, fun.args, fun.keywords

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.fun == other.fun if isinstance(other, _Opaque) else self.fun == other

    def __hash__(self) -> int:
        return hash(self.fun)

    def __repr__(self) -> str:
        return f"_Opaque({self.fun!r})"


@register_pytree_node_class
class Partial(functools.partial):
    """A `functools.partial` that is a pytree: its arguments are children, its function metadata.

    So a function with bound arrays can be passed to, and returned from, transformed functions. A
    `functools.partial` (or `Partial`) given as `func` is not merged but stays whole.
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> Partial:
        if isinstance(func, functools.partial):
            func = _Opaque(func)
        return super().__new__(cls, func, *args, **kw)

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.args, self.keywords), self.func

    @classmethod
    def tree_unflatten(cls, func: Callable[..., Any], children: Any) -> Partial:
        args, keywords = children
        return cls(func, *args, **keywords)
