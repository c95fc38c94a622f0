"""Structures of pytrees in exported programs: classes register how their nodes are written.

A structure becomes nested lists that JSON can hold; nothing of a class but its registered
name and what its functions write of it is kept, and reading runs no other code.
"""

from __future__ import annotations

import base64
import collections
import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from minijax import tree_util
from minijax.tree_util import PyTreeDef

__all__ = [
    "read_tree", "register_namedtuple_serialization", "register_pytree_node_serialization",
    "write_tree",
]  # fmt: skip

_T = TypeVar("_T")


class _Registration(NamedTuple):
    nodetype: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    from_children: Callable[[Any, Any], Any] | None


_by_type: dict[type, _Registration] = {}
_by_name: dict[str, _Registration] = {}


def register_pytree_node_serialization(
    nodetype: type[_T], *, serialized_name: str, serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type[_T]:  # fmt: skip
    """Say how nodes of a class, which is registered as a pytree, are kept by `Exported.serialize`.

    - `serialized_name`: what stands for the class; it must be registered under this name to read
    - `serialize_auxdata`, `deserialize_auxdata`: what its flattening gives besides children, as bytes
    - `from_children(auxdata, children)`: makes an instance; the registered one by default

    Gives the class, as a decorator. ValueError if class or name are taken, or it is no pytree.
    """
    if nodetype in _by_type:
        raise ValueError(
            f"Duplicate serialization registration for type `{nodetype}`. Previous registration was "
            f"with serialized_name `{_by_type[nodetype].name}`."
        )
    if serialized_name in _by_name:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{serialized_name}`. Previous "
            f"registration was for type `{_by_name[serialized_name].nodetype}`."
        )
    if from_children is None and not tree_util.nodes.is_tree_node(nodetype):
        raise ValueError(
            "If `from_children` is not present, you must call first "
            f"`jax.tree_util.register_pytree_node` for `{nodetype}`"
        )
    made = _Registration(
        nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children
    )
    _by_type[nodetype] = _by_name[serialized_name] = made
    return nodetype


def register_namedtuple_serialization(nodetype: type[_T], *, serialized_name: str) -> type[_T]:
    """Register a `collections.namedtuple` for serialization. ValueError for any other class."""
    if not _is_namedtuple(nodetype):
        raise ValueError(
            "Use `jax.export.register_pytree_node_serialization` for types other than "
            "`collections.namedtuple`."
        )
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: b"",
        deserialize_auxdata=lambda _: nodetype,
        from_children=lambda _, children: nodetype(*children),
    )


def _is_namedtuple(kind: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=lambda keys: json.dumps(_text_keys(keys)).encode(),
    deserialize_auxdata=lambda data: tuple(json.loads(data)),
)


def _text_keys(keys: Any) -> list[str]:
    """Keys of a dictionary; TypeError unless they are strings."""
    for key in keys:
        if not isinstance(key, str):
            raise TypeError(
                "Serialization is supported only for dictionaries with string keys. Found key "
                f"{key} of type {type(key)}."
            )
    return list(keys)


def write_tree(tree: PyTreeDef) -> Any:
    """A structure as what JSON can hold: "*" a leaf, null None, lists that begin with a word others."""
    node = tree.node_data()
    if node is None:
        return "*"
    kind, aux = node
    if kind is type(None):
        return None
    children = list(map(write_tree, tree.children()))
    if kind in (tuple, list):
        return [kind.__name__, *children]
    if kind is dict:
        return ["dict", _text_keys(aux), *children]
    found = _by_type.get(kind)
    if found is None:
        raise ValueError(
            f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`. Use "
            "`export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization`."
        )
    data = found.write(aux)
    if not isinstance(data, (bytes, bytearray)):
        raise ValueError(
            "The custom serialization function for `node_type` must return a `bytes` object. It "
            f"returned a {type(data)}: `serialize_auxdata` of {kind}, called with {aux!r}."
        )
    written = base64.b64encode(data).decode()
    return ["node", found.name, written, *children]


def read_tree(written: Any) -> PyTreeDef:
    """The structure that `write_tree` wrote. ValueError for a class that is not registered here."""
    if written == "*":
        return tree_util.tree_structure(0)
    if written is None:
        return tree_util.tree_structure(None)
    word, *rest = written
    if word in ("tuple", "list"):
        node, children = ({"tuple": tuple, "list": list}[word], None), rest
    elif word == "dict":
        node, children = (dict, rest[0]), rest[1:]
    else:
        name, data, *children = rest
        found = _by_name.get(name)
        if found is None:
            raise ValueError(
                "Cannot deserialize a PyTreeDef containing an unregistered type, "
                f"`{name}`. Use `export.register_pytree_node_serialization` or "
                "`export.register_namedtuple_serialization`."
            )
        aux = found.read(base64.b64decode(data))
        if found.from_children is not None:
            kept = [
                tree_util.tree_unflatten(t, [0] * t.num_leaves) for t in map(read_tree, children)
            ]
            return tree_util.tree_structure(found.from_children(aux, kept))
        node = (found.nodetype, aux)
    made = list(map(read_tree, children))
    return PyTreeDef.from_node_data_and_children(tree_util.registry, node, made)
