"""`dslice`: what `x[start : start + size]` means where `start` is computed.

May import the ground floor and `core`. Indices of arrays and of references know what it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minijax import tree_util
from minijax.core.array import Array

__all__ = ["Slice", "dslice"]


@dataclass
class Slice:
    """`size` places from `start` on, `stride` apart. `start` may be traced; the size is static."""

    start: Any
    size: Any
    stride: int = 1

    def __post_init__(self):
        if self.stride < 0:
            raise ValueError(
                f"`stride` must be >= 0; got {self.stride}: reverse the result instead."
            )

    @property
    def is_dynamic_start(self) -> bool:
        return isinstance(self.start, Array)

    @property
    def is_dynamic_size(self) -> bool:
        return isinstance(self.size, Array)

    def tree_flatten(self):
        dynamic = (self.is_dynamic_start, self.is_dynamic_size)
        parts = (self.start, self.size)
        children = tuple([p if d else None for p, d in zip(parts, dynamic, strict=True)])
        static = tuple([None if d else p for p, d in zip(parts, dynamic, strict=True)])
        return children, (*static, self.stride)

    @classmethod
    def tree_unflatten(cls, static, children) -> Slice:
        start, size = (s if c is None else c for s, c in zip(static, children, strict=False))
        found = object.__new__(cls)  # without the check: the leaves may be anything
        found.start, found.size, found.stride = start, size, static[2]
        return found

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """The places that a slice names on an axis of this size."""
        start, stop, step = slc.indices(size)
        if step < 1:
            raise ValueError(f"the step must be positive; got {slc}: reverse the result instead.")
        return cls(start, max((stop - start + step - 1) // step, 0), step)


tree_util.register_pytree_node(Slice, Slice.tree_flatten, Slice.tree_unflatten)


def dslice(start: Any, size: Any = None, stride: int | None = None) -> slice | Slice:
    """An index that names `size` places from `start` on, where `start` may be a traced integer.

    `dslice(None)` is `:`, `dslice(j)` is `:j`, `dslice(i, j)` is `i:i+j`, and `dslice(i, j, s)` names
    `j` places `s` apart. Reading moves a window that would end outside to where it lies within;
    an update of such a window is dropped.
    """
    if start is None:
        return slice(None)
    if stride is None:
        stride = 1
    if size is None:
        start, size = 0, start
    return Slice(start, size, stride)
