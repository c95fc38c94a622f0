"""`minijax.extend.mlir`: modules as portable bytes, and MLIR's own bindings.

Re-exports, and one function for rules that build operations. `ir`, `passmanager` and `dialects.*`
are jaxlib's modules, imported when asked for.
"""

from typing import Any

from minijax.extend.mlir_names import make_known
from minijax.features.export.portable import (
    deserialize_portable_artifact,
    hlo_to_stablehlo,
    refine_polymorphic_shapes,
    serialize_portable_artifact,
)
from minijax.features.sharding.types import explicit_of
from minijax.namespace import shown

__all__ = [
    "deserialize_portable_artifact", "hlo_to_stablehlo", "lower_with_sharding_in_types",
    "refine_polymorphic_shapes", "serialize_portable_artifact",
]  # fmt: skip

__dir__ = shown(__name__)

__path__: list[str] = []
make_known(__name__)


def lower_with_sharding_in_types(ctx: Any, op: Any, aval: Any) -> Any:
    """Return a result of a rule, split over the explicit mesh axes that its type names.

    - `ctx`: a `LoweringRuleContext` of `minijax.interpreters.mlir`; `op`: a value of MLIR
    """
    # MLIR's bindings of operations take time to import.
    from minijax.features import mlir_rules

    sharding, text = explicit_of(aval), ctx.module_context.text
    if sharding is None or len(text.devices) == 1 or text.manual:
        return op
    split = lambda b, x: b.split(x, sharding)
    (out,) = mlir_rules.insert_written(ctx.module_context, "split", [aval], split, [op])
    return out
