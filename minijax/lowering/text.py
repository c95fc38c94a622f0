"""Modules as text and as MLIR objects. Imports jaxlib's MLIR bindings, when first asked.

The bindings are only for looking: programs go to the compiler as text.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["as_hlo", "parse", "pretty"]


@cache
def _bindings():
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    return ir, context


def parse(text: str) -> Any:
    """The MLIR module that a text stands for."""
    ir, context = _bindings()
    with context, ir.Location.unknown(context):
        return ir.Module.parse(text)


def pretty(text: str, debug_info: bool = False) -> str:
    """The same module in MLIR's own layout."""
    return parse(text).operation.get_asm(enable_debug_info=debug_info)


def as_hlo(text: str) -> Any:
    """The XlaComputation of a module."""
    from jaxlib._jax import mlir

    return mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
