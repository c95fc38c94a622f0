"""`dslice`: what `x[start : start + size]` means where `start` is computed.

Indices of arrays and of references know what it stands for.
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


def dslice(
    start: int | Array | None, size: int | Array | None = None, stride: int | None = None
) -> slice | Slice:
    """Return an index of `size` elements from `start` on, where `start` may be a traced integer.

    - `start`, `size`, `stride`: integers; `ds(None)` is `:`, `ds(j)` is `:j`, `ds(i, j)` is `i:i+j`

    The result is a `slice` or a `Slice` of static size. Reading moves a window that would end
    outside the shape until it lies within; an update of such a window is dropped. TypeError for a
    traced size.
    Source: the StableHLO operation `stablehlo.dynamic_slice`.

    >>> jnp.arange(5)[jax.ds(1, 3)]
    Array([1, 2, 3], dtype=int32)
    """
    if start is None:
        return slice(None)
    if stride is None:
        stride = 1
    if size is None:
        start, size = 0, start
    return Slice(start, size, stride)
