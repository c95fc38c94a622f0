"""Modules as portable bytes, as jaxlib reads and writes them. Imports jaxlib's MLIR functions."""

from __future__ import annotations

from jaxlib._jax.mlir import (
    deserialize_portable_artifact,
    hlo_to_stablehlo,
    refine_polymorphic_shapes,
    serialize_portable_artifact,
)

__all__ = [
    "deserialize_portable_artifact", "hlo_to_stablehlo", "refine_polymorphic_shapes",
    "serialize_portable_artifact",
]  # fmt: skip
