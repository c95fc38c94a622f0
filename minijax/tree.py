"""Short names for the functions on pytrees: `tree.map` is `tree_util.tree_map`, and so on.

Imports `tree_util` and the standard library only.
"""

import dataclasses
from typing import Any

from minijax.namespace import own_names, shown
from minijax.tree_util import tree_all as all
from minijax.tree_util import tree_broadcast as broadcast
from minijax.tree_util import tree_flatten as flatten
from minijax.tree_util import tree_flatten_with_path as flatten_with_path
from minijax.tree_util import tree_leaves as leaves
from minijax.tree_util import tree_leaves_with_path as leaves_with_path
from minijax.tree_util import tree_map as map
from minijax.tree_util import tree_map_with_path as map_with_path
from minijax.tree_util import tree_reduce as reduce
from minijax.tree_util import tree_reduce_associative as reduce_associative
from minijax.tree_util import tree_structure as structure
from minijax.tree_util import tree_transpose as transpose
from minijax.tree_util import tree_unflatten as unflatten

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose",
    "unflatten",
]  # fmt: skip


def static(**kwargs: Any) -> Any:
    """Declare a dataclass field as metadata for `tree_util.register_dataclass`.

    - `kwargs`: arguments of `dataclasses.field`

    The result is a field whose metadata say `"static": True`. Source: Python's `dataclasses.field`.

    >>> jax.tree.static(default=1).metadata["static"]
    True
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


own_names(__name__)
__dir__ = shown(__name__)
