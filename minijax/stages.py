"""`minijax.stages`: the stages of ahead-of-time compilation, as types. Only re-exports.

`jit(f)` is a `Wrapped`; its `.trace(...)` gives `Traced`, whose `.lower()` gives `Lowered`, whose
`.compile()` gives `Compiled`.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from minijax.features.stages.stages import ArgInfo, Compiled, Lowered, Traced
from minijax.namespace import shown

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

CompilerOptions = dict[str, str | bool]


@runtime_checkable
class Wrapped(Protocol):
    """A function that can be called, or staged step by step."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The jaxpr for arguments like these."""
        ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The StableHLO module for arguments like these."""
        ...


__dir__ = shown(__name__)
