"""`minijax.extend.mlir`: modules as portable bytes, and MLIR's own bindings.

Re-exports, and one function for rules that build operations. `ir`, `passmanager` and `dialects.*`
are jaxlib's modules, imported when asked for.
"""

from typing import Any

from minijax.extend.mlir_names import make_known
from minijax.features import mlir_rules as bindings
from minijax.features.export.portable import (
    deserialize_portable_artifact,
    hlo_to_stablehlo,
    refine_polymorphic_shapes,
    serialize_portable_artifact,
)
from minijax.features.sharding.types import explicit_of
from minijax.interpreters.mlir import LoweringRuleContext
from minijax.namespace import shown

__all__ = [
    "deserialize_portable_artifact", "hlo_to_stablehlo", "lower_with_sharding_in_types",
    "refine_polymorphic_shapes", "serialize_portable_artifact",
]  # fmt: skip

__dir__ = shown(__name__)

__path__: list[str] = []
make_known(__name__)


def lower_with_sharding_in_types(
    ctx: LoweringRuleContext, op: bindings.ir.Value, aval: Any
) -> bindings.ir.Value:
    """A result of a rule, split over the explicit mesh axes that its type names."""
    sharding, text = explicit_of(aval), ctx.module_context.text
    if sharding is None or len(text.devices) == 1 or text.manual:
        return op
    split = lambda b, x: b.split(x, sharding)
    (out,) = bindings.insert_written(ctx.module_context, "split", [aval], split, [op])
    return out
