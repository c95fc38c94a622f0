"""Modules that outlive the process: as portable bytes, for several platforms."""

from __future__ import annotations

from collections.abc import Sequence

from minijax.features.export import portable
from minijax.features.slots import slots

__all__ = ["for_platforms"]


def for_platforms(texts: Sequence[str], platforms: Sequence[str]) -> str:
    """Return one module that chooses among those of several platforms when it runs."""
    # MLIR's bindings of operations take time to import.
    from minijax.features.export import modules

    return modules.for_platforms(texts, platforms)


slots.fill(for_platforms=for_platforms)
