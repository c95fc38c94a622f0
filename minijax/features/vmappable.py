"""Types of data that `vmap` takes apart by functions of their own. An object of such a type is a
leaf, for `vmap` even one that is a pytree elsewhere; an axis specification of its own type
stands for it in `in_axes` and `out_axes`. Going in, `to_elt(handler, get_index, x, spec)` makes
the element that the function sees, calling `handler(part, axis)` for each array in it; coming
out, `from_elt(handler, size, element, spec)` makes the whole, by `handler(size, part, axis)`.
Both run twice, to find the arrays and to put others in their places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import tree_util
from minijax.core.hooks import hooks

__all__ = [
    "MappingSpec",
    "elements",
    "flatten",
    "is_spec",
    "is_vmappable",
    "register_vmappable",
    "unregister_vmappable",
    "wholes",
]


class MappingSpec:
    """The base class of what stands in place of an axis for values of types that are no arrays'."""


class Vmappable(NamedTuple):
    spec_type: type
    axis_size_type: type
    to_elt: Callable
    from_elt: Callable
    make_iota: Callable | None


registered: dict[type, Vmappable] = {}


def register_vmappable(
    data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable, from_elt: Callable,
    make_iota: Callable | None,
) -> None:  # fmt: skip
    """Have `vmap` take objects of a type apart; see the module's top.

    `axis_size_type` and `make_iota` are for sizes that are no integers, which minijax has not.
    """
    registered[data_type] = Vmappable(spec_type, axis_size_type, to_elt, from_elt, make_iota)


def unregister_vmappable(data_type: type) -> None:
    """Forget a type; nothing if it is not known."""
    registered.pop(data_type, None)


def is_vmappable(x: Any) -> bool:
    """Whether it is an object of a registered type."""
    return type(x) in registered


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves and the structure of a tree, with objects of registered types as leaves."""
    if not registered:
        return tree_util.flatten(tree)
    return tree_util.tree_flatten(tree, is_leaf=is_vmappable)


def is_spec(x: Any) -> bool:
    """Whether it stands in a tree of axes for an object of a registered type."""
    if isinstance(x, MappingSpec):
        return True
    return any(type(x) is known.spec_type for known in registered.values())


class Elements:
    """Arguments, with the arrays in objects of registered types in their places."""

    def __init__(self, leaves: Sequence[Any], axes: Sequence[Any]):
        self._given = list(zip(leaves, axes, strict=True))
        self.leaves: list[Any] = []
        self.axes: list[Any] = []

        def keep(x, axis):
            self.leaves.append(x)
            self.axes.append(axis)
            return x

        self._run(keep, lambda: np.int32(0))

    def made(self, values: Iterable[Any], index: Callable[[], Any]) -> list[Any]:
        """The arguments with these values as arrays; `index()` gives the place along the axis."""
        rest: Iterator[Any] = iter(values)
        return self._run(lambda x, axis: next(rest), index)

    def _run(self, handle: Callable[[Any, Any], Any], index: Callable[[], Any]) -> list[Any]:
        def handler(x, axis):
            known = registered.get(type(x))
            return handle(x, axis) if known is None else known.to_elt(handler, index, x, axis)

        return [handler(x, axis) for x, axis in self._given]


class Wholes:
    """Results, with the arrays in objects of registered types in their places."""

    def __init__(self, leaves: Sequence[Any], axes: Sequence[Any], size: int):
        self._given, self._size = list(zip(leaves, axes, strict=True)), size
        self.leaves: list[Any] = []
        self.axes: list[Any] = []

        def keep(x, axis):
            self.leaves.append(x)
            self.axes.append(axis)
            return x

        self._run(keep)

    def made(self, values: Iterable[Any]) -> list[Any]:
        """The results with these values as arrays."""
        rest: Iterator[Any] = iter(values)
        return self._run(lambda x, axis: next(rest))

    def _run(self, handle: Callable[[Any, Any], Any]) -> list[Any]:
        def handler(size, x, axis):
            known = registered.get(type(x))
            return handle(x, axis) if known is None else known.from_elt(handler, size, x, axis)

        return [handler(self._size, x, axis) for x, axis in self._given]


def elements(leaves: Sequence[Any], axes: Sequence[Any]) -> Elements | None:
    """Arguments taken apart; None if none is of a registered type."""
    if not registered or not any(type(x) in registered for x in leaves):
        return None
    return Elements(leaves, axes)


def wholes(leaves: Sequence[Any], axes: Callable[[], Sequence[Any]], size: int) -> Wholes | None:
    """Results taken apart; None if none is of a registered type."""
    if not registered or not any(type(x) in registered for x in leaves):
        return None
    return Wholes(leaves, axes(), size)


hooks.fill(flatten_mapped=flatten, is_axis_spec=is_spec, elements=elements, wholes=wholes)
