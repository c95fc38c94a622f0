"""The types of pytree nodes: our own registry in jaxlib's C++, and how a class enters it.

A class registered here is a leaf for any other user of jaxlib in the process, and the reverse.
Imports the standard library and jaxlib's pytree module only.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jaxlib import _jax

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "PyTreeDef",
    "SequenceKey",
    "default_registry",
    "flatten",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "registry",
    "unflatten",
]


if TYPE_CHECKING:

    class PyTreeDef:
        """The structure of a pytree, as jaxlib represents it."""

        num_leaves: int
        num_nodes: int

        def unflatten(self, leaves: Iterable[Any], /) -> Any: ...
        def flatten_up_to(self, tree: Any, /) -> list[Any]: ...
        def children(self) -> list[PyTreeDef]: ...
        def compose(self, inner: PyTreeDef, /) -> PyTreeDef: ...
        def node_data(self) -> tuple[type[Any], Any] | None: ...

else:
    PyTreeDef = _jax.pytree.PyTreeDef

SequenceKey = _jax.pytree.SequenceKey
DictKey = _jax.pytree.DictKey
GetAttrKey = _jax.pytree.GetAttrKey
FlattenedIndexKey = _jax.pytree.FlattenedIndexKey

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]
_T = TypeVar("_T")
_Cls = TypeVar("_Cls", bound=type)

# Every pickled PyTreeDef refers to the registry as the global of this name.
registry = default_registry = _jax.pytree.PyTreeRegistry()
registry.__module__ = "minijax.tree_util"
registry.__name__ = "default_registry"

flatten = registry.flatten
"""`flatten(tree, is_leaf=None) -> (leaves, treedef)`: the C++ method itself, for hot paths."""
unflatten = PyTreeDef.unflatten
"""`unflatten(treedef, leaves) -> tree`: the C++ method itself, for hot paths."""


def is_tree_node(typ: type[Any]) -> bool:
    """Test whether values of exactly a type are nodes of pytrees rather than leaves.

    - `typ`: class

    The result is a boolean. Source: the registry of node types.

    >>> jax.tree_util.is_tree_node(list)
    True
    """
    return registry.is_node(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """Return the direct children of a node and its metadata.

    - `tree`: pytree that is not a leaf

    The result is a pair of an iterable and a hashable object. ValueError if `tree` is a leaf.
    Source: the function with which the node's type is registered.

    >>> jax.tree_util.flatten_one_level({"a": 1, "b": [2]})
    ((1, [2]), ('a', 'b'))
    """
    level = registry.flatten_one_level(tree)
    if level is None:
        raise ValueError(_not_a_node("flatten_one_level", tree))
    return level


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """Return the direct children of a node, with their keys, and its metadata.

    - `tree`: pytree that is not a leaf

    The result is an iterable of pairs (key, child) and a hashable object. ValueError if `tree` is a
    leaf.
    Source: the function with which the node's type is registered.

    >>> jax.tree_util.flatten_one_level_with_keys({"a": 1})
    (((DictKey(key='a'), 1),), ('a',))
    """
    level = registry.flatten_one_level_with_keys(tree)
    if level is None:
        raise ValueError(_not_a_node("flatten_one_level_with_keys", tree))
    if level[1] is type(tree) and isinstance(tree, tuple):
        # jaxlib 0.10 gives every field of a namedtuple the key of the first one.
        return [(GetAttrKey(k), x) for k, x in zip(tree._fields, tree, strict=True)], level[1]
    return level


def _not_a_node(caller: str, tree: Any) -> str:
    return (
        f"{caller}: can't flatten `tree`: it is a leaf of type {type(tree)}. Pass a container, or "
        "register the type (register_pytree_node, register_dataclass)."
    )


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Format a key path as text.

    - `keys`: key path, a tuple of keys
    - `simple`: whether to give bare keys instead of `['a'][0].b`
    - `separator`: text between the keys

    The result is a string. Source: Python's syntax of subscripts and attributes.

    >>> paths, _ = jax.tree_util.tree_flatten_with_path({"a": [5]})
    >>> jax.tree_util.keystr(paths[0][0])
    "['a'][0]"
    """
    if not isinstance(separator, str):
        raise TypeError(f"separator must be a string; got {separator!r}.")
    return separator.join(map(_simple_key if simple else str, keys))


def _simple_key(key: Any) -> str:
    match key:
        case SequenceKey(bare) | DictKey(bare) | GetAttrKey(bare) | FlattenedIndexKey(bare):
            return str(bare)
    return str(key)


# Registering node types


def register_pytree_node(
    nodetype: type[_T],
    flatten_func: Callable[[_T], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], _T],
    flatten_with_keys_func: Callable[[_T], tuple[Any, Any]] | None = None,
) -> None:
    """Register a class as a type of pytree nodes.

    - `nodetype`: class; values of exactly this type become nodes
    - `flatten_func(x)`: returns (children, metadata); metadata are hashable and comparable
    - `unflatten_func(metadata, children)`: returns the value
    - `flatten_with_keys_func(x)`: returns ([(key, child), ...], metadata)

    ValueError if the class is registered already. Source: the registry of node types.

    >>> box = type("Box", (list,), {})
    >>> jax.tree_util.register_pytree_node(box, lambda x: (list(x), None), lambda _, xs: box(xs))
    >>> jax.tree.leaves(box([1, 2]))
    [1, 2]
    """
    _check_class("register_pytree_node", nodetype)
    registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_with_keys(
    nodetype: type[_T],
    flatten_with_keys: Callable[[_T], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], _T],
    flatten_func: Callable[[_T], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Register a class as a type of pytree nodes whose children have keys.

    - `nodetype`: class; values of exactly this type become nodes
    - `flatten_with_keys(x)`: returns ([(key, child), ...], metadata)
    - `unflatten_func(metadata, children)`: returns the value
    - `flatten_func(x)`: returns (children, metadata), by default without the keys

    ValueError if the class is registered already. Source: `register_pytree_node`.

    >>> box, keyed = type("Box", (list,), {}), lambda x: (list(enumerate(x)), None)
    >>> jax.tree_util.register_pytree_with_keys(box, keyed, lambda _, xs: box(xs))
    >>> jax.tree.leaves_with_path(box([5]))
    [((0,), 5)]
    """

    def without_keys(x: _T) -> tuple[Iterable[Any], Any]:
        pairs, aux = flatten_with_keys(x)
        return [child for _, child in pairs], aux

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: _Cls) -> _Cls:
    """Register a class with methods to flatten and unflatten as a type of pytree nodes.

    - `cls`: class with `tree_flatten(self)`, which returns (children, metadata), and the class
      method `tree_unflatten(metadata, children)`

    The result is the class, so that this is a decorator. ValueError if it is registered already.
    Source: `register_pytree_node`.

    >>> methods = {"tree_flatten": lambda x: (list(x), None)}
    >>> methods["tree_unflatten"] = lambda _, xs: box(xs)
    >>> box = jax.tree_util.register_pytree_node_class(type("Box", (list,), methods))
    >>> jax.tree.leaves(box([1, 2]))
    [1, 2]
    """
    _check_class("register_pytree_node_class", cls)
    register_pytree_node(cls, cls.tree_flatten, cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: _Cls) -> _Cls:
    """Register a class with methods that flatten with keys as a type of pytree nodes; a decorator.

    - `cls`: class with `tree_flatten_with_keys(self)`, which returns ([(key, child), ...],
      metadata), the class method `tree_unflatten(metadata, children)`, and perhaps
      `tree_flatten(self)`

    The result is the class. ValueError if it is registered already. Source:
    `register_pytree_with_keys`.

    >>> methods = {"tree_flatten_with_keys": lambda x: (list(enumerate(x)), None)}
    >>> methods["tree_unflatten"] = lambda _, xs: box(xs)
    >>> box = jax.tree_util.register_pytree_with_keys_class(type("Box", (list,), methods))
    >>> jax.tree.leaves(box([1, 2]))
    [1, 2]
    """
    _check_class("register_pytree_with_keys_class", cls)
    register_pytree_with_keys(
        cls, cls.tree_flatten_with_keys, cls.tree_unflatten, getattr(cls, "tree_flatten", None)
    )
    return cls


def register_static(cls: _Cls) -> _Cls:
    """Register a hashable class as nodes without children: values belong to the structure.

    - `cls`: class with `__hash__` and `__eq__`

    The result is the class, so that this is a decorator. ValueError if it is registered already.
    Source: `register_pytree_node`.

    >>> tag = jax.tree_util.register_static(type("Tag", (str,), {}))
    >>> jax.tree.leaves([1, tag("a")])
    [1]
    """
    _check_class("register_static", cls)
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x, lambda x: ((), x))
    return cls


def register_dataclass(
    nodetype: _Cls,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> _Cls:
    """Register a class built by keyword from its fields as a type of pytree nodes; a decorator.

    - `nodetype`: class, such as a dataclass
    - `data_fields`: names of the children; `drop_fields`: names of fields lost when flattened
    - `meta_fields`: names of metadata, hashable and comparable; by default a dataclass's fields are
      children, or metadata if declared with `field(metadata={"static": True})`

    TypeError if one list is given without the other, or none for a class that is not a dataclass;
    ValueError if the lists overlap or are not the fields. Source: Python's `dataclasses`.

    >>> import dataclasses
    >>> pair = dataclasses.make_dataclass("Pair", ["a", "b"])
    >>> jax.tree.leaves(jax.tree_util.register_dataclass(pair)(1, 2))
    [1, 2]
    """
    given = (data_fields is not None) + (meta_fields is not None)
    if given == 1:
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is "
            f"specified. Got {data_fields=} {meta_fields=}. Give both of them, or neither."
        )
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if not given:
        if not is_dataclass:
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is not "
                f"a dataclass. Got {nodetype=}."
            )
        kept = [f for f in dataclasses.fields(nodetype) if f.name not in drop_fields]
        data_fields = [f.name for f in kept if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in kept if f.metadata.get("static", False)]
    _check_class("register_dataclass", nodetype)
    _check_fields(nodetype, set(data_fields), set(meta_fields), set(drop_fields), is_dataclass)
    registry.register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    return nodetype


def _check_fields(
    nodetype: type, data: set[str], meta: set[str], drop: set[str], is_dataclass: bool
) -> None:
    if data & meta:
        raise ValueError(
            "data_fields and meta_fields must not overlap. Overlapping fields: "
            f"{data & meta} of {nodetype}. Put each field in one of them."
        )
    if not is_dataclass:
        return
    wanted = {f.name for f in dataclasses.fields(nodetype) if f.init} - drop
    missing, extra = sorted(wanted - data - meta), sorted((data | meta) - wanted)
    if missing or extra:
        raise ValueError(
            "data_fields and meta_fields must include all dataclass fields with ``init=True`` and "
            f"only them.{_fields('Missing', missing)}"
            f"{' Add them to drop_fields to suppress this error.' if missing else ''}"
            f"{_fields('Unexpected', extra)} The class is {nodetype}."
        )


def _fields(kind: str, names: list[str]) -> str:
    return f" {kind} fields: {{{', '.join(map(repr, names))}}}." if names else ""


def _check_class(caller: str, nodetype: Any) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(
            f"{caller}: the type to register must be a class; got {nodetype!r} of type "
            f"{type(nodetype)}. Pass the class itself."
        )


def _flatten_ordered(x: collections.OrderedDict[Any, Any]) -> tuple[Any, Any]:
    return list(x.values()), tuple(x)


def _flatten_ordered_with_keys(x: collections.OrderedDict[Any, Any]) -> tuple[Any, Any]:
    return [(DictKey(k), v) for k, v in x.items()], tuple(x)


def _flatten_default(x: collections.defaultdict[Any, Any]) -> tuple[Any, Any]:
    keys = tuple(sorted(x))
    return [x[k] for k in keys], (x.default_factory, keys)


def _flatten_default_with_keys(x: collections.defaultdict[Any, Any]) -> tuple[Any, Any]:
    keys = tuple(sorted(x))
    return [(DictKey(k), x[k]) for k in keys], (x.default_factory, keys)


# None, tuples, namedtuples, lists and dicts are built into the C++ registry.
registry.register_node(
    collections.OrderedDict,
    _flatten_ordered,
    lambda keys, values: collections.OrderedDict(zip(keys, values, strict=True)),
    _flatten_ordered_with_keys,
)
registry.register_node(
    collections.defaultdict,
    _flatten_default,
    lambda aux, values: collections.defaultdict(aux[0], zip(aux[1], values, strict=True)),
    _flatten_default_with_keys,
)
