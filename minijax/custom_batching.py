"""Functions with batching rules of their own: the names of `jax.custom_batching`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax import lax, tree_util
from minijax.features.custom_rules.custom_batching import custom_vmap
from minijax.tracebacks import public

__all__ = ["custom_vmap", "sequential_vmap"]


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function that vmap applies to one element after the other, by `lax.map`, instead of to all
    at once.
    """
    wrapped = custom_vmap(f)

    @wrapped.def_vmap
    def rule(axis_size: int, in_batched: list, *args: Any) -> tuple[Any, Any]:
        leaves, tree = tree_util.tree_flatten(args)
        flags = tree_util.tree_leaves(in_batched)
        mapped = [x for x, flag in zip(leaves, flags, strict=True) if flag]

        def one(elements):
            rest = iter(elements)
            given = [next(rest) if flag else x for x, flag in zip(leaves, flags, strict=True)]
            return wrapped(*tree.unflatten(given))

        out = lax.map(one, mapped)
        return out, tree_util.tree_map(lambda _: True, out)

    return wrapped


__dir__ = public(__name__)
