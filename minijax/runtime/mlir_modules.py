"""Modules as text and as MLIR objects. jaxlib's MLIR bindings are imported when first asked for.

The bindings are only for looking, and for rules that users write with them (`features.mlir_rules`):
programs go to the compiler as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from minijax.runtime.versions import _jax

__all__ = [
    "as_hlo", "described", "dialects", "hlo_with_metadata", "interpreted", "new_context", "parse", "pretty", "shared_context", "types",
]  # fmt: skip


@cache
def dialects() -> Any:
    """The registry of the dialects that contexts know; others may be added to it."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry


def new_context() -> Any:
    """A context that knows the dialects of programs."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    context = ir.Context()
    context.append_dialect_registry(dialects())
    context.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    return context


@cache
def shared_context() -> Any:
    """The context of all modules that are made here."""
    return new_context()


def parse(text: str) -> Any:
    """The MLIR module that a text stands for."""
    from jaxlib.mlir import ir

    context = shared_context()
    with context, ir.Location.unknown(context):
        return ir.Module.parse(text)


def types(texts: list[str]) -> list[Any]:
    """The MLIR types that texts stand for."""
    from jaxlib.mlir import ir

    with shared_context():
        return [ir.Type.parse(text) for text in texts]


def pretty(text: str, debug_info: bool = False) -> str:
    """Format a module in MLIR's own layout."""
    return parse(text).operation.get_asm(enable_debug_info=debug_info)


def described(text: str, names: Sequence[str]) -> Any:
    """The MLIR module that a text stands for, whose `main` says what its results are called.

    What the text gives no place has an unknown one, rather than its place in the text.
    """
    from jaxlib.mlir import ir

    module = parse(text)
    with module.context:
        unknown = ir.Location.unknown()

        def is_line_of_text(where: Any) -> bool:
            return isinstance(where, ir.FileLineColLoc) and where.filename == "-"

        def forget_line_of_text(op: Any) -> Any:
            if is_line_of_text(op.location):
                op.location = unknown
            for block in (block for region in op.regions for block in region):
                for argument in block.arguments:
                    if is_line_of_text(argument.location):
                        argument.set_location(unknown)
            return ir.WalkResult.ADVANCE

        module.operation.walk(forget_line_of_text)
        for function in module.body.operations:
            attributes = function.attributes
            if attributes["sym_name"].value == "main":
                _name_results(attributes, names)
    return module


def _name_results(attributes: Any, names: Sequence[str]) -> None:
    from jaxlib.mlir import ir

    count = len(attributes["function_type"].value.results)
    if count != len(names):  # of types that libraries define, results are several
        return
    known = attributes["res_attrs"] if "res_attrs" in attributes else [{}] * count
    attributes["res_attrs"] = ir.ArrayAttr.get(
        [
            ir.DictAttr.get(
                {
                    **{each.name: each.attr for each in old},
                    "jax.result_info": ir.StringAttr.get(name.encode(errors="backslashreplace")),
                }
            )
            for old, name in zip(known, names, strict=True)
        ]
    )


def as_hlo(text: str) -> Any:
    """The XlaComputation of a module."""
    return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)


def hlo_with_metadata(text: str) -> str:
    """A module in HLO's notation, with the name and the line of each operation."""
    from jaxlib._hlo import HloPrintOptions

    options = HloPrintOptions()
    options.print_percent = options.print_program_shape = options.print_operand_shape = False
    return as_hlo(text).as_hlo_module().to_string(options)


def interpreted(module: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Run a module by the StableHLO reference interpreter, which aborts the process on custom calls."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with module.context:
        found = stablehlo.eval_module(module, [ir.DenseElementsAttr.get(x) for x in arrays])
        return [np.array(ir.DenseElementsAttr(x)) for x in found]
