"""`minijax.ffi`: compiled functions that programs call by name, through XLA's foreign functions.

Registering is for the process; `ffi_call` is the function, `ffi_lowering` makes a lowering
rule of a target for a primitive of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minijax.features.operations import layouts_text
from minijax.interpreters.mlir import (
    LoweringRuleContext,
    aval_to_ir_type,
    flatten_ir_values,
    ir,
    ir_attribute,
    stablehlo,
)
from minijax.lax.ffi_calls import ffi_call
from minijax.runtime import foreign
from minijax.runtime.foreign import include_dir, pycapsule
from minijax.tracebacks import public

__all__ = [
    "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
    "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type",
    "register_ffi_type_id",
]  # fmt: skip


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Make a function known to XLA by name.

    `fn` is a PyCapsule (see `pycapsule`), or a dictionary of those for the stages of a call.
    `api_version` is 1 for the typed interface, 0 for the one before. Other arguments are jaxlib's.
    """
    foreign.register_target(name, fn, platform, api_version, **kwargs)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Say that a target may be called on the parts of a batch that lie on different devices."""
    foreign.register_batch_partitionable(name)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Make a type of state known to XLA: a dictionary with `type_id` and perhaps `type_info`."""
    foreign.register_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Make a type known to XLA by the PyCapsule of its id."""
    foreign.register_type(name, {"type_id": obj}, platform)


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., ir.OpView]:
    """A function `(ctx, *values, **attributes)` that adds the call of a target to a module.

    Layouts list dimensions from the one that varies fastest; rows vary slowest by default.
    `backend_config` are further attributes. Other arguments are those of StableHLO's `custom_call`.
    """

    def lower(ctx: LoweringRuleContext, *operands: Any, **attributes: Any) -> ir.OpView:
        values = flatten_ir_values(operands)
        outs = list(ctx.avals_out)
        options = {"api_version": 4, "has_side_effect": False, **lowering_args}
        config = backend_config
        if config is None or isinstance(config, Mapping):
            made = {name: ir_attribute(x) for name, x in {**(config or {}), **attributes}.items()}
            config = ir.DictAttr.get(made)
        else:
            config = ir.StringAttr.get(config)
        layouts = {
            "operand_layouts": _layouts(operand_layouts, ctx.avals_in, skip_ffi_layout_processing),
            "result_layouts": _layouts(result_layouts, outs, skip_ffi_layout_processing),
        }
        fields = {
            "call_target_name": ir.StringAttr.get(call_target_name),
            "has_side_effect": ir.BoolAttr.get(options.pop("has_side_effect")),
            "api_version": ir.IntegerAttr.get(
                ir.IntegerType.get_signless(32), options.pop("api_version")
            ),
            "backend_config": config,
            **{name: value for name, value in layouts.items() if value is not None},
            **{name: ir_attribute(value) for name, value in options.items()},
        }
        types = [aval_to_ir_type(ctx.module_context, aval) for aval in outs]
        return stablehlo.CustomCallOp.build_generic(
            results=types, operands=values, attributes=fields
        )

    return lower


def _layouts(layouts: Sequence[Any] | None, avals: Sequence[Any], given: bool) -> Any:
    if layouts is None:
        if given:
            return None
        layouts = [range(getattr(aval, "ndim", 0))[::-1] for aval in avals]
    return ir.Attribute.parse(layouts_text(layouts))


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable:
    """A lowering rule, for `mlir.register_lowering`, that calls a target.

    The params of the equation are attributes of the call. See `build_ffi_lowering_function`.
    """
    build = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(ctx: LoweringRuleContext, *operands: Any, **params: Any) -> Sequence[Any]:
        return list(build(ctx, *operands, **params).results)

    return rule


__dir__ = public(__name__)
