"""`minijax.extend.mlir`: modules as portable bytes. Re-exports."""

from minijax.lowering.portable import (
    deserialize_portable_artifact,
    hlo_to_stablehlo,
    refine_polymorphic_shapes,
    serialize_portable_artifact,
)

__all__ = [
    "deserialize_portable_artifact", "hlo_to_stablehlo", "refine_polymorphic_shapes",
    "serialize_portable_artifact",
]  # fmt: skip
