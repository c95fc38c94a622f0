"""`minijax.extend.mlir`: modules as portable bytes, and MLIR's own bindings.

Re-exports. `ir`, `passmanager` and `dialects.*` are jaxlib's modules, imported when asked for.
"""

from minijax.extend.mlir_names import make_known
from minijax.features.export.portable import (
    deserialize_portable_artifact,
    hlo_to_stablehlo,
    refine_polymorphic_shapes,
    serialize_portable_artifact,
)
from minijax.namespace import shown

__all__ = [
    "deserialize_portable_artifact", "hlo_to_stablehlo", "refine_polymorphic_shapes",
    "serialize_portable_artifact",
]  # fmt: skip

__dir__ = shown(__name__)

__path__: list[str] = []
make_known(__name__)
