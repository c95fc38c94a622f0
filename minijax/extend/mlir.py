"""`minijax.extend.mlir`: modules as portable bytes, and MLIR's own bindings.

Re-exports. `ir`, `passmanager` and `dialects.*` are jaxlib's modules, imported when asked for.
"""

from minijax.lowering.mlir_names import make_known
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

__path__: list[str] = []
make_known(__name__)
