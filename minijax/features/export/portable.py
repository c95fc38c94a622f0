"""Modules as portable bytes, as jaxlib reads and writes them. Imports jaxlib's MLIR functions."""

from __future__ import annotations

from jaxlib._jax.mlir import (
    deserialize_portable_artifact,
    hlo_to_stablehlo,
    refine_polymorphic_shapes,
    serialize_portable_artifact,
)

from minijax.core.hooks import hooks
from minijax.runtime.mlir_modules import parse

__all__ = [
    "deserialize_portable_artifact", "hlo_to_stablehlo", "refine_polymorphic_shapes", "refined",
    "serialize_portable_artifact",
]  # fmt: skip


def refined(text: str) -> str:
    """A module in which all sizes are written, as they follow from the arguments of `main`."""
    made = refine_polymorphic_shapes(text.encode(), True, True, "\nsdy.mesh @" in text)
    return parse(made).operation.get_asm(large_elements_limit=None)


hooks.fill(refined=refined)
