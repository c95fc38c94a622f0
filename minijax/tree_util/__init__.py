"""Pytrees: nested containers taken apart into leaves and a structure, and put together again.

Node types and their registry stand in `nodes`, prefixes of trees in `prefix`; the rest is here.
Imports the standard library and jaxlib's pytree module only.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from jaxlib import _jax

from minijax.namespace import shown
from minijax.tracebacks import hide_frames
from minijax.tree_util.differences import Difference, call_differences, differences
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
    spread_prefix,
    tree_broadcast,
    treedef_prefix_errors,
)

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all_leaves", "default_registry", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip

_T = TypeVar("_T")
_IsLeaf = Callable[[Any], bool] | None


class _Unset:
    def __repr__(self) -> str:
        return "<unset>"


_UNSET: Any = _Unset()

# Taking trees apart and putting them together


def _flattened(tree: Any, is_leaf: _IsLeaf) -> tuple[list[Any], PyTreeDef]:
    try:
        return flatten(tree, is_leaf)
    except SystemError as error:  # jaxlib says twice that the containers are nested too deeply
        if not isinstance(error.__cause__, RecursionError):
            raise
        cause = error.__cause__
    raise cause from None


def tree_flatten(tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves of a pytree, left to right, and its structure.

    - `tree`: pytree; None is a node without children, dictionaries are walked by sorted keys
    - `is_leaf`: function that is true of nodes to be treated as leaves

    The result is a list and a `PyTreeDef`. ValueError for keys that cannot be compared.
    Source: pre-order traversal.

    >>> jax.tree_util.tree_flatten({"b": 1, "a": [2, None]})
    ([2, 1], PyTreeDef({'a': [*, None], 'b': *}))
    """
    return _flattened(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Build the pytree of a structure from its leaves.

    - `treedef`: a `PyTreeDef`
    - `leaves`: iterable of leaves, left to right

    The result is a pytree. ValueError for too few or too many leaves.
    Source: pre-order traversal.

    >>> jax.tree_util.tree_unflatten(jax.tree.structure([1, (2,)]), [5, 6])
    [5, (6,)]
    """
    try:
        return treedef.unflatten(leaves)
    except AttributeError:
        _check_structures("tree_unflatten", treedef)
        raise


def tree_leaves(tree: Any, is_leaf: _IsLeaf = None) -> list[Any]:
    """Return the leaves of a pytree, left to right.

    - `tree`: pytree
    - `is_leaf`: function that is true of nodes to be treated as leaves

    The result is a list. ValueError for keys that cannot be compared.
    Source: pre-order traversal.

    >>> jax.tree_util.tree_leaves({"b": 1, "a": [2, None]})
    [2, 1]
    """
    return _flattened(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: _IsLeaf = None) -> PyTreeDef:
    """Return the structure of a pytree.

    - `tree`: pytree
    - `is_leaf`: function that is true of nodes to be treated as leaves

    The result is a `PyTreeDef`. ValueError for keys that cannot be compared.
    Source: pre-order traversal.

    >>> jax.tree_util.tree_structure([1, (2,)])
    PyTreeDef([*, (*,)])
    """
    return _flattened(tree, is_leaf)[1]


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Return the leaves of a pytree with their key paths, left to right, and its structure.

    - `tree`: pytree
    - `is_leaf`: function that is true of nodes to be treated as leaves
    - `is_leaf_takes_path`: whether it is called as `is_leaf(path, node)`

    The result is a list of pairs (path, leaf) and a `PyTreeDef`. ValueError for keys that cannot be
    compared.
    Source: pre-order traversal.

    >>> jax.tree_util.tree_flatten_with_path([5])
    ([((SequenceKey(idx=0),), 5)], PyTreeDef([*]))
    """
    if is_leaf is None or is_leaf_takes_path:
        return registry.flatten_with_path(tree, is_leaf)
    return registry.flatten_with_path(tree, lambda _, node: is_leaf(node))


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return the leaves of a pytree with their key paths, left to right.

    - `tree`: pytree
    - `is_leaf`: function that is true of nodes to be treated as leaves
    - `is_leaf_takes_path`: whether it is called as `is_leaf(path, node)`

    The result is a list of pairs (path, leaf). ValueError for keys that cannot be compared.
    Source: pre-order traversal.

    >>> jax.tree_util.tree_leaves_with_path({"a": 5})
    [((DictKey(key='a'),), 5)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def generate_key_paths(tree: Any) -> list[tuple[KeyPath, Any]]:
    """The `(key path, leaf)` pairs of a pytree: `tree_leaves_with_path` without options."""
    return registry.flatten_with_path(tree)[0]


def build_tree(treedef: PyTreeDef, nested: Any) -> Any:
    """The pytree of structure `treedef` from iterables nested like its nodes."""
    _check_structures("build_tree", treedef)
    return treedef.from_iterable_tree(nested)


def all_leaves(iterable: Iterable[Any], is_leaf: _IsLeaf = None) -> bool:
    """Test whether every element of an iterable is a leaf.

    - `iterable`: iterable of any objects
    - `is_leaf`: function that is true of nodes to be treated as leaves

    The result is a boolean. Source: Python's `all`.

    >>> jax.tree_util.all_leaves([1, [2]])
    False
    """
    if is_leaf is None:
        return _jax.pytree.all_leaves(registry, iterable)
    items = list(iterable)
    leaves = flatten(items, is_leaf)[0]
    return len(leaves) == len(items) and all(map(operator.is_, leaves, items))


# Mapping and reducing


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: _IsLeaf = None) -> Any:
    """Apply a function to each leaf of a pytree, and to the subtrees of others there.

    - `f`: function of a leaf of `tree` and a subtree of each of `rest`
    - `tree`: pytree, a prefix of each pytree in `rest`
    - `is_leaf`: function that is true of nodes to be treated as leaves

    The result has the structure of `tree`. ValueError, with the path, unless `tree` is a prefix.
    Source: Python's `map`, for pytrees.

    >>> jax.tree_util.tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    leaves, treedef = _flattened(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    try:
        columns = _columns("tree_map", tree, treedef, rest)
    except Exception as error:  # as of a `boundary`, of which no frame is paid for here
        hide_frames(error)
        raise
    return treedef.unflatten([f(*xs) for xs in zip(leaves, *columns, strict=True)])


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to each key path and leaf of a pytree, and to the subtrees of others there.

    - `f`: function of a key path, a leaf of `tree` and a subtree of each of `rest`
    - `tree`: pytree, a prefix of each pytree in `rest`
    - `is_leaf`, `is_leaf_takes_path`: as in `tree_flatten_with_path`

    The result has the structure of `tree`. ValueError, with the path, unless `tree` is a prefix.
    Source: Python's `map`, for pytrees.

    >>> jax.tree_util.tree_map_with_path(lambda path, x: len(path) * x, [1, (2,)])
    [1, (4,)]
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    if not rest:
        return treedef.unflatten([f(path, x) for path, x in pairs])
    try:
        columns = _columns("tree_map_with_path", tree, treedef, rest)
    except Exception as error:  # as of a `boundary`, of which no frame is paid for here
        hide_frames(error)
        raise
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
    """Reduce the leaves of a pytree, left to right.

    - `function`: function of the value so far and a leaf
    - `tree`: pytree
    - `initializer`: first value, by default the first leaf
    - `is_leaf`: function that is true of nodes to be treated as leaves

    TypeError if there are no leaves and no `initializer`. Source: Python's `functools.reduce`.

    >>> jax.tree_util.tree_reduce(lambda total, x: total + x, [1, (2, 3)])
    6
    """
    leaves = flatten(tree, is_leaf)[0]
    if initializer is _UNSET:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[_T, _T], _T], tree: Any, *, identity: _T = _UNSET, is_leaf: _IsLeaf = None
) -> _T:
    """Reduce the leaves of a pytree with an associative operation, as a binary tree of calls.

    - `operation`: associative function of two values
    - `tree`: pytree
    - `identity`: result for a pytree without leaves
    - `is_leaf`: function that is true of nodes to be treated as leaves

    TypeError if there are no leaves and no `identity`. Source: Python's `functools.reduce`.

    >>> jax.tree_util.tree_reduce_associative(lambda x, y: x + y, [1, (2, 3)])
    6
    """
    leaves = flatten(tree, is_leaf)[0]
    if leaves:
        return _reduce_halves(operation, leaves)
    if identity is _UNSET:
        raise TypeError(
            "Must specify identity for parallel reduction of empty sequence. Pass identity=, the "
            "result for an empty tree."
        )
    return identity


def _reduce_halves(operation: Callable[[Any, Any], Any], xs: list[Any]) -> Any:
    if len(xs) == 1:
        return xs[0]
    half = len(xs) // 2
    return operation(_reduce_halves(operation, xs[:half]), _reduce_halves(operation, xs[half:]))


def tree_all(tree: Any, *, is_leaf: _IsLeaf = None) -> bool:
    """Test whether every leaf is true.

    - `tree`: pytree
    - `is_leaf`: function that is true of nodes to be treated as leaves

    The result is a boolean. Source: Python's `all`.

    >>> jax.tree_util.tree_all([True, {"a": 0}])
    False
    """
    return all(flatten(tree, is_leaf)[0])


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Turn a pytree of structure outer-of-inner into one of structure inner-of-outer.

    - `outer_treedef`: structure of the outer tree
    - `inner_treedef`: structure of the inner trees, or None for that of the first
    - `pytree_to_transpose`: pytree

    TypeError unless the pytree has the structure outer-of-inner.
    Source: transposition of a matrix, for pytrees.

    >>> outer, inner = jax.tree.structure([0, 0]), jax.tree.structure((0, 0))
    >>> jax.tree_util.tree_transpose(outer, inner, [(1, 2), (3, 4)])
    ([1, 3], [2, 4])
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
    _check_structures("tree_transpose", outer_treedef, inner_treedef)
    m, n = outer_treedef.num_leaves, inner_treedef.num_leaves
    if len(leaves) != m * n:
        raise TypeError(
            f"Mismatch\n{treedef}\n != \n{outer_treedef.compose(inner_treedef)}\n"
            "tree_transpose: the first is the structure of `pytree_to_transpose`, the other one that "
            "of outer_treedef of inner_treedef. "
            "Pass treedefs whose composition is the structure of the tree."
        )
    return inner_treedef.unflatten([outer_treedef.unflatten(leaves[j::n]) for j in range(n)])


# Structures


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose elements have given structures.

    - `treedefs`: iterable of `PyTreeDef`

    The result is a `PyTreeDef`. Source: Python's `tuple`.

    >>> jax.tree_util.treedef_tuple([jax.tree.structure(1), jax.tree.structure([2])])
    PyTreeDef((*, [*]))
    """
    treedefs = list(treedefs)
    for treedef in treedefs:
        if not isinstance(treedef, PyTreeDef):  # of None the process would end
            raise RuntimeError(
                f"treedef_tuple takes structures, got {treedef!r} of type {type(treedef)}: "
                "tree_structure(tree) gives one."
            )
    return _jax.pytree.treedef_tuple(registry, treedefs)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the direct children.

    - `treedef`: a `PyTreeDef`

    The result is a list, empty for a leaf. Source: `PyTreeDef.children`.

    >>> jax.tree_util.treedef_children(jax.tree.structure([1, (2,)]))
    [PyTreeDef(*), PyTreeDef((*,))]
    """
    _check_structures("treedef_children", treedef)
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Test whether a structure is a single entry: a leaf, or a node without children such as None.

    - `treedef`: a `PyTreeDef`

    The result is a boolean. Source: `PyTreeDef.num_nodes`.

    >>> jax.tree_util.treedef_is_leaf(jax.tree.structure(1))
    True
    """
    _check_structures("treedef_is_leaf", treedef)
    return treedef.num_nodes == 1


def _check_structures(name: str, *treedefs: Any) -> None:
    for treedef in treedefs:
        if not isinstance(treedef, PyTreeDef):
            raise TypeError(
                f"{name} takes structures of pytrees, as tree_structure gives them; got "
                f"{treedef!r} of type {type(treedef).__name__}."
            )


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
    """Bind arguments to a function, as a pytree whose children they are.

    - `func`: function; a `functools.partial` is not merged but stays whole
    - `args`, `kw`: pytrees, bound to its first parameters and by keyword

    The result can be passed to, and returned from, transformed functions. TypeError unless `func`
    is callable. Source: Python's `functools.partial`.

    >>> jax.tree.leaves(jax.tree_util.Partial(jnp.add, 1))
    [1]
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


__dir__ = shown(__name__)
