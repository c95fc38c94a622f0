"""`minijax.extend.lowering`: what lowering rules with MLIR's bindings work in. Re-exports.

A library that brings a dialect adds it to `upstream_dialects` before anything is lowered.
"""

from minijax.features.mlir_rules import LoweringRuleContext
from minijax.features.mlir_rules import ir as _ir
from minijax.runtime.mlir_modules import dialects as _dialects

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]

JaxIrContext = _ir.Context
upstream_dialects = _dialects()
