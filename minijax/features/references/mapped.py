"""References among the arguments that vmap maps. Within the mapped function each is a cell that
starts with the value of the reference, which gets what the cells hold at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.hooks import hooks
from minijax.features.references.cells import Ref

__all__ = ["MappedRefs"]


class MappedRefs:
    """The references, the numbers of their leaves, and the cells within."""

    __slots__ = ("cells", "refs")

    def __init__(self, refs: dict[int, Any]):
        self.refs = refs
        self.cells: list[Ref] = []

    def read(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves, with values for the references."""
        return [self.refs[n][...] if n in self.refs else x for n, x in enumerate(leaves)]

    def within(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the arguments within the mapped function, with cells for the values."""
        self.cells = [Ref(leaves[n]) for n in self.refs]
        made = dict(zip(self.refs, self.cells, strict=True))
        return [made.get(n, x) for n, x in enumerate(leaves)]

    def last(self) -> list[Any]:
        return [cell._value for cell in self.cells]

    def keep(
        self, outs: Sequence[Any], found: Sequence[Any], dims: Sequence[Any], place: Callable
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Write the last values, which follow the results; gives the results and their axes."""
        count = len(outs) - len(self.refs)
        for (n, ref), x, dim in zip(self.refs.items(), outs[count:], found[count:], strict=True):
            ref[...] = place(x, dim, dims[n])
        return outs[:count], found[:count]


def _mapped(leaves: Sequence[Any], dims: Sequence[int | None]) -> MappedRefs | None:
    """The references that are mapped; None if there are none."""
    refs = {
        n: x
        for n, (x, dim) in enumerate(zip(leaves, dims, strict=True))
        if dim is not None and isinstance(x, Ref)
    }
    return MappedRefs(refs) if refs else None


hooks.fill(mapped_cells=_mapped)
