"""Counterparts of upstream's private functions that rules of lowering build operations with.

A rule of a library's primitive is given sizes that are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax.core.avals import get_aval
from minijax.extend.mlir import lower_with_sharding_in_types as lower_with_sharding_in_types
from minijax.features.diagnostics.lowered_programs import dump_module
from minijax.features.diagnostics.lowered_programs import sanitize_name as sanitize_name
from minijax.features.mlir_rules import stablehlo as hlo
from minijax.interpreters import mlir
from minijax.interpreters.mlir import LoweringRuleContext, aval_to_ir_type, ir, ir_constant

AttributeHandler = Callable[[Any], ir.Attribute]

# -- operations ------------------------------------------------------------------------------------


def _integers(xs: Sequence[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get([int(x) for x in xs])


def reshape(ctx: LoweringRuleContext, op: ir.Value, aval_out: Any) -> ir.Value:
    """Reshape a value."""
    return hlo.reshape(aval_to_ir_type(None, aval_out), op)


def broadcast_in_dim(
    ctx: LoweringRuleContext, op: ir.Value, aval_out: Any, *, broadcast_dimensions: Sequence[int]
) -> ir.Value:
    """`op`, with its dimensions at those places of the result, repeated along the others."""
    return hlo.broadcast_in_dim(
        aval_to_ir_type(None, aval_out), op, _integers(broadcast_dimensions)
    )


def multi_broadcast_in_dim(
    ctx: LoweringRuleContext, ops: Sequence[ir.Value], ops_avals: Sequence[Any],
    out_shape: Sequence[int], out_sharding: Any = None,
) -> list[ir.Value]:  # fmt: skip
    """Several values, broadcast to one shape as NumPy does."""
    out = []
    for op, aval in zip(ops, ops_avals, strict=True):
        if tuple(aval.shape) != tuple(out_shape):
            wanted = aval.update(shape=tuple(out_shape))
            places = range(len(out_shape) - aval.ndim, len(out_shape))
            op = broadcast_in_dim(ctx, op, wanted, broadcast_dimensions=places)
        out.append(op)
    return out


def full_like_aval(ctx: LoweringRuleContext, value: Any, aval: Any) -> ir.Value:
    """An array of this type, all of whose elements are `value`."""
    number = ir_constant(np.asarray(value, aval.dtype))
    return broadcast_in_dim(ctx, number, aval, broadcast_dimensions=())


def iota(ctx: LoweringRuleContext, aval_out: Any, *, dimension: int) -> ir.Value:
    """0, 1, ... along a dimension."""
    return hlo.iota(aval_to_ir_type(None, aval_out), mlir.i64_attr(dimension))


def pad(
    ctx: LoweringRuleContext, aval_out: Any, x: ir.Value, padding_value: ir.Value,
    padding_low: Sequence[int], padding_high: Sequence[int], padding_interior: Sequence[int],
) -> ir.Value:  # fmt: skip
    """`x` with so many copies of a value before, after and between the elements of each dimension."""
    return hlo.pad(x, padding_value, *map(_integers, (padding_low, padding_high, padding_interior)))


def slice_op(
    ctx: LoweringRuleContext, x: ir.Value, aval_out: Any, *, start_indices: Sequence[int],
    limit_indices: Sequence[int], strides: Sequence[int],
) -> ir.Value:  # fmt: skip
    """A part of an array."""
    return hlo.slice(x, *map(_integers, (start_indices, limit_indices, strides)))


def dynamic_slice(
    ctx: LoweringRuleContext, aval_out: Any, x: ir.Value, *, start_indices: Sequence[ir.Value]
) -> ir.Value:
    """A part of an array, of the shape of the result, from computed indices on."""
    return hlo.dynamic_slice(x, start_indices, _integers(aval_out.shape))


def dynamic_update_slice(
    ctx: LoweringRuleContext, aval_out: Any, x: ir.Value, update: ir.Value, *,
    start_indices: Sequence[ir.Value],
) -> ir.Value:  # fmt: skip
    """An array with a part replaced, from computed indices on."""
    return hlo.dynamic_update_slice(x, update, start_indices)


def compare_hlo(
    x: ir.Value, y: ir.Value, direction: str, comparison_type: str | None = None
) -> ir.Value:
    """A comparison: `direction` is EQ, NE, GE, GT, LE or LT."""
    if comparison_type is None:
        element = ir.RankedTensorType(x.type).element_type
        signed = isinstance(element, ir.IntegerType) and not (
            element.is_unsigned or element.width == 1
        )
        unsigned = isinstance(element, ir.IntegerType) and not signed
        comparison_type = "SIGNED" if signed else "UNSIGNED" if unsigned else "FLOAT"
    return hlo.compare(
        x,
        y,
        hlo.ComparisonDirectionAttr.get(direction),
        compare_type=hlo.ComparisonTypeAttr.get(comparison_type),
    )


def _extreme(op: Callable, direction: str, x: ir.Value, y: ir.Value) -> ir.Value:
    """The larger or smaller; of complex numbers by their real parts, then by the imaginary ones."""
    if not isinstance(ir.RankedTensorType(x.type).element_type, ir.ComplexType):
        return op(x, y)
    (a, b), (c, d) = ((hlo.real(z), hlo.imag(z)) for z in (x, y))
    tied = hlo.and_(compare_hlo(a, c, "EQ", "FLOAT"), compare_hlo(b, d, direction, "FLOAT"))
    return hlo.select(hlo.or_(compare_hlo(a, c, direction, "FLOAT"), tied), x, y)


max_hlo = partial(_extreme, hlo.maximum, "GT")
min_hlo = partial(_extreme, hlo.minimum, "LT")


def convert_hlo(ctx: LoweringRuleContext, x: ir.Value, aval_in: Any, aval_out: Any) -> ir.Value:
    """A value as another dtype; as bool it says whether it is not zero."""
    if aval_out.dtype == np.bool_ and aval_in.dtype != np.bool_:
        return compare_hlo(x, full_like_aval(ctx, 0, aval_in), "NE")
    return hlo.convert(aval_to_ir_type(None, aval_out), x)


def custom_call(
    call_target_name: str, *, result_types: Sequence[ir.Type], operands: Sequence[ir.Value],
    backend_config: str | bytes | dict[str, ir.Attribute] = "", has_side_effect: bool = False,
    result_shapes: Sequence[ir.Value] | None = None, called_computations: Sequence[str] = (),
    api_version: int = 2, operand_output_aliases: dict[int, int] | None = None,
    operand_layouts: Sequence[Sequence[int]] | None = None,
    result_layouts: Sequence[Sequence[int]] | None = None,
    extra_attributes: dict[str, ir.Attribute] | None = None,
) -> ir.Operation:  # fmt: skip
    """A call of a function that XLA knows by name, with these operands, options and layouts."""
    attributes: dict[str, Any] = {
        "call_target_name": ir.StringAttr.get(call_target_name),
        "has_side_effect": ir.BoolAttr.get(has_side_effect),
        "api_version": mlir.i32_attr(api_version),
        "backend_config": ir.StringAttr.get(""),
        "called_computations": ir.ArrayAttr.get(
            [ir.FlatSymbolRefAttr.get(name) for name in called_computations]
        ),
    }
    if isinstance(backend_config, dict):
        name = "backend_config" if api_version >= 4 else "mhlo.backend_config"
        attributes[name] = ir.DictAttr.get(backend_config)
    elif backend_config:
        attributes["backend_config"] = ir.StringAttr.get(backend_config)
    if operand_output_aliases:
        several = len(result_types) > 1
        attributes["output_operand_aliases"] = ir.ArrayAttr.get(
            [
                hlo.OutputOperandAlias.get(
                    output_tuple_indices=[output] if several else [],
                    operand_index=operand,
                    operand_tuple_indices=[],
                )
                for operand, output in operand_output_aliases.items()
            ]
        )
    operands = list(operands)
    if result_shapes is not None:
        first = len(operands)
        operands += result_shapes
        numbers = range(first, len(operands))
        attributes["indices_of_shape_operands"] = mlir.dense_int_elements(list(numbers))
        operand_layouts = [*(operand_layouts or ()), *[(0,)] * len(result_shapes)]
    if operand_layouts is not None and result_layouts is not None:
        attributes["operand_layouts"] = _layouts(operand_layouts)
        attributes["result_layouts"] = _layouts(result_layouts)
    attributes.update(extra_attributes or {})
    return hlo.CustomCallOp.build_generic(
        results=list(result_types), operands=operands, attributes=attributes
    )


def _layouts(layouts: Sequence[Sequence[int]]) -> ir.Attribute:
    index = ir.IndexType.get()
    return ir.ArrayAttr.get(
        [ir.DenseIntElementsAttr.get(np.asarray(x, np.int64), type=index) for x in layouts]
    )


# -- sizes -----------------------------------------------------------------------------------------


def eval_dynamic_shape(ctx: LoweringRuleContext, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape in numbers."""
    return tuple(map(int, shape))


eval_dynamic_shape_as_ivals = eval_dynamic_shape


def eval_dynamic_shape_as_vals(
    ctx: LoweringRuleContext, shape: Sequence[int]
) -> tuple[ir.Value, ...]:
    """A shape as 32-bit integers of the program."""
    return tuple(ir_constant(np.asarray(size, np.int32)) for size in shape)


def eval_dynamic_shape_as_tensor(ctx: LoweringRuleContext, shape: Sequence[int]) -> ir.Value:
    """A shape as one vector of 32-bit integers."""
    return mlir.shape_tensor(None, shape)


# -- rules -----------------------------------------------------------------------------------------


def delegate_lowering(
    ctx: LoweringRuleContext, lowering_fun: Callable, *args: Any, **ctx_override_kwargs: Any
) -> Any:
    """Call another rule on these operands, in this context except for what is named."""
    inner = ctx.replace(**ctx_override_kwargs)
    found = lowering_fun(inner, *args)
    if inner.tokens_out is not None:
        ctx.set_tokens_out(inner.tokens_out)
    return found


def len_ir_types(x: Any) -> int:
    """Return how many MLIR types a type is."""
    return 1 if isinstance(x, ir.Type) else len(x)


def ir_consts(consts: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """Constants of these types."""
    return [ir_constant(x, aval=aval) for x, aval in zip(consts, avals, strict=True)]


def register_attribute_handler(type_: type, handler_fun: AttributeHandler) -> None:
    """Have `ir_attribute` make attributes of a type by `handler_fun(value)`."""
    mlir._ATTRIBUTES[type_] = handler_fun


def get_attribute_handler(type_: type) -> AttributeHandler:
    """Return the function that makes attributes of this type; KeyError if there is none."""
    return mlir._ATTRIBUTES[type_]


def get_constant_handler(type_: type) -> Callable:
    """Return the function that makes constants of this type; KeyError if there is none."""
    if type_ in mlir._constant_handlers:
        return mlir._constant_handlers[type_]
    if not issubclass(type_, (np.ndarray, np.generic, bool, int, float, complex)):
        raise KeyError(type_)
    return lambda val, aval=None: ir_constant(val, aval=get_aval(val) if aval is None else aval)


# -- modules ---------------------------------------------------------------------------------------


def dump_module_to_file(module: ir.Module, stage_name: str) -> str | None:
    """Write a module into the folder that `jax_dump_ir_to` names; its path, None if there is none."""
    name = ir.StringAttr(module.operation.attributes["sym_name"]).value
    return dump_module(name, stage_name, mlir.module_to_string(module))


def dump_module_message(module: ir.Module, stage_name: str) -> str:
    """A sentence on where a module was written."""
    name = dump_module_to_file(module, stage_name)
    if name is None:
        return "Define JAX_DUMP_IR_TO to dump the module."
    return f"The module was dumped to {name}."
