"""`minijax.interpreters.mlir`: lowering rules, registered upstream's way.

A rule is `rule(ctx, *values, **params)`: it builds operations with the MLIR bindings of jaxlib
(`jaxlib.mlir`) and gives a list of values. Its function joins the program's text; see
`features.mlir_rules`. minijax's own rules write text: they are set with `@p.lower`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from io import BytesIO, StringIO
from typing import Any, NamedTuple

import numpy as np

from minijax.core.avals import abstract_token
from minijax.core.effects import Effect
from minijax.core.effects import lowerable as lowerable_effects
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.primitive import Primitive
from minijax.core.staging import trace_to_jaxpr
from minijax.features import mlir_rules as bindings
from minijax.features.effects.kinds import OrderedIOEffect
from minijax.features.mlir_rules import (
    LoweringParameters,
    LoweringRuleContext,
    ModuleContext,
    ShapePolyLoweringState,
    ShardingContext,
    SPMDAxisContext,
    TokenSet,
    dtype_to_ir_type,
    ir,
    ir_type_handlers,
    merge_mlir_modules,
    stablehlo,
)
from minijax.features.mlir_rules import flatten_values as flatten_ir_values
from minijax.lax.callbacks import lower_callback
from minijax.lowering.module import Builder
from minijax.namespace import own_names, shown
from minijax.runtime.mesh import Mesh
from minijax.runtime.mlir_modules import new_context as make_ir_context
from minijax.tree_util import registry as ir_tree_registry

__all__ = [
    "AxisContext", "ConstantHandler", "DEVICE_TO_DEVICE_TYPE", "LoweringParameters",
    "LoweringResult", "LoweringRule", "LoweringRuleContext", "Mesh", "MeshAxisName",
    "ModuleContext", "RECV_FROM_HOST_TYPE", "SEND_TO_HOST_TYPE", "SPMDAxisContext",
    "ShapePolyLoweringState", "ShardingContext", "Token", "TokenSet", "Value",
    "aval_to_ir_type", "aval_to_ir_types", "core_call_lowering", "dense_int_array",
    "dense_int_elements", "dtype_to_ir_type", "emit_python_callback", "flatten_ir_types",
    "flatten_ir_values", "i32_attr", "i64_attr", "ir", "ir_attribute", "ir_constant",
    "ir_constants", "ir_tree_registry", "ir_type_handlers", "jaxpr_subcomp", "lower_fun",
    "lower_jaxpr_to_fun", "lower_jaxpr_to_module", "lowerable_effects", "make_ir_context",
    "merge_mlir_modules", "module_to_bytecode", "module_to_string", "register_constant_handler",
    "register_lowering", "shape_tensor", "token_type", "unflatten_ir_values_like_types",
]  # fmt: skip

Value = Token = ir.Value
ConstantHandler = Callable[[Any, Any], Any]
LoweringRule = Callable[..., Sequence[ir.Value | Sequence[ir.Value]]]
AxisContext = SPMDAxisContext | ShardingContext
MeshAxisName = Any
# How a channel moves data, in a channel handle of StableHLO.
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3

# -- rules ---------------------------------------------------------------------------------------------

_ALIASES = {"gpu": ("gpu", "cuda", "rocm"), "cuda": ("cuda", "gpu"), "rocm": ("rocm",)}
_PLATFORMS = ("cpu", "cuda", "gpu", "rocm", "tpu")


def register_lowering(
    prim: Primitive, rule: Callable, platform: str | None = None, inline: bool = True,
    cacheable: bool = True,
) -> None:  # fmt: skip
    """Set the lowering rule of a primitive, for one platform or for all that have none.

    `rule(ctx, *values, **params)` gives a list of values; what `lower_fun` gives is a rule too.
    NotImplementedError for an unknown platform. `inline` and `cacheable` change nothing here: each
    equation calls a function that its rule built.
    """
    if type(rule) is not _FromFunction:
        rule = bindings.BoundRule(prim, rule)
    if platform is None:
        prim.lower(rule)
        return
    if platform not in _PLATFORMS:
        raise NotImplementedError(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform "
            f"{platform}. Known platforms are: {', '.join(_PLATFORMS)}."
        )
    prim.lower_on(*_ALIASES.get(platform, (platform,)))(rule)


class _FromFunction:
    """A rule from a function of arrays: within minijax's own lowering its program is in place."""

    __slots__ = ("fun", "multiple_results")

    def __init__(self, fun: Callable, multiple_results: bool):
        self.fun = fun
        self.multiple_results = multiple_results

    def _traced(self, avals: Sequence[Any], params: dict) -> ClosedJaxpr:
        def flat(*args):
            out = self.fun(*args, **params)
            return list(out) if self.multiple_results else [out]

        return trace_to_jaxpr(flat, tuple(avals))

    def __call__(self, ctx: Builder | LoweringRuleContext, *operands: Any, **params: Any) -> list:
        if isinstance(ctx, Builder):
            closed = self._traced([x.aval for x in operands], params)
            return ctx.closed_jaxpr(closed, *operands)
        name = getattr(self.fun, "__name__", "fun")
        closed = self._traced(ctx.avals_in, params)
        return bindings.insert(ctx.module_context, name, closed, flatten_ir_values(operands))


def lower_fun(fun: Callable, multiple_results: bool = True) -> Callable:
    """A lowering rule from a function of arrays: it is traced, and its program is the rule's.

    Within another rule it is called as one, `lower_fun(fun)(ctx, *values)`, for values of the types
    `ctx.avals_in`.
    """
    return _FromFunction(fun, multiple_results)


# -- types ---------------------------------------------------------------------------------------------


def aval_to_ir_types(ctx: ModuleContext | None, aval: Any) -> tuple[ir.Type, ...]:
    """The MLIR types of what stands for a value of this type."""
    return bindings.aval_to_ir_types(aval)


def aval_to_ir_type(ctx: ModuleContext | None, aval: Any) -> ir.Type:
    """Return the MLIR type of an aval that one value stands for, as for arrays."""
    (found,) = bindings.aval_to_ir_types(aval)
    return found


def flatten_ir_types(xs: Iterable[Any]) -> list[ir.Type]:
    """Types, and sequences of types, in one list."""
    return [t for x in xs for t in ([x] if isinstance(x, ir.Type) else x)]


def unflatten_ir_values_like_types(xs: Iterable[ir.Value], ys: Sequence[Any]) -> list[Any]:
    """Values in the form of types: a value for each type, a tuple for each sequence of types."""
    values = iter(xs)
    out = [next(values) if isinstance(y, ir.Type) else tuple([next(values) for _ in y]) for y in ys]
    if next(values, None) is not None:
        raise ValueError("there are more values than types")
    return out


token_type = stablehlo.TokenType.get
dense_int_array = ir.DenseI64ArrayAttr.get


# -- attributes and constants ------------------------------------------------------------------------


def i32_attr(i: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_elements(xs: Any) -> ir.Attribute:
    """`dense<[...]>` of 64-bit integers."""
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def _array_attribute(val: np.ndarray) -> ir.Attribute:
    return ir.Attribute.parse(
        f"{bindings.dense(val)} : tensor<{''.join(f'{n}x' for n in val.shape)}"
        f"{bindings.element_type(val.dtype)}>"
    )


def _scalar_attribute(val: np.generic) -> ir.Attribute:
    kind = dtype_to_ir_type(val.dtype)
    if val.dtype == np.bool_:
        return ir.BoolAttr.get(bool(val))
    if val.dtype.kind == "c":
        raise TypeError(f"Unsupported scalar attribute type: {type(val)}")
    return (ir.IntegerAttr if val.dtype.kind in "iu" else ir.FloatAttr).get(kind, val.item())


_ATTRIBUTES: dict[type, Callable[[Any], ir.Attribute]] = {
    bool: ir.BoolAttr.get,
    int: i64_attr,
    float: lambda val: ir.FloatAttr.get(ir.F64Type.get(), val),
    str: ir.StringAttr.get,
    bytes: ir.StringAttr.get,
    np.ndarray: _array_attribute,
    np.dtype: lambda val: ir.TypeAttr.get(dtype_to_ir_type(val)),
    np.generic: _scalar_attribute,
    list: lambda val: ir.ArrayAttr.get([ir_attribute(x) for x in val]),
    tuple: lambda val: ir.ArrayAttr.get([ir_attribute(x) for x in val]),
    dict: lambda val: ir.DictAttr.get({key: ir_attribute(x) for key, x in val.items()}),
    ir.Attribute: lambda val: val,
}


def ir_attribute(val: Any) -> ir.Attribute:
    """A Python value as an MLIR attribute. TypeError for a type that has none."""
    for kind in type(val).__mro__:
        if kind in _ATTRIBUTES:
            return _ATTRIBUTES[kind](val)
    raise TypeError(f"No attribute handler defined for type: {type(val)}")


_constant_handlers: dict[type, ConstantHandler] = {}


def register_constant_handler(type_: type, handler_fun: ConstantHandler) -> None:
    """Have `ir_constant` make constants of a type by `handler_fun(value, aval)`."""
    _constant_handlers[type_] = handler_fun


def ir_constants(
    val: Any, *, const_lowering: dict | None = None, aval: Any = None
) -> tuple[ir.Value, ...]:
    """The constants that stand for a value, at the insertion point; TypeError if it has none.

    `const_lowering` has values that are lowered already, by `(id(value), aval)`.
    """
    if const_lowering and (id(val), aval) in const_lowering:
        return tuple(flatten_ir_values([const_lowering[id(val), aval]]))
    for kind in type(val).__mro__:
        if kind in _constant_handlers:
            return tuple(flatten_ir_values([_constant_handlers[kind](val, aval)]))
    if isinstance(val, (str, bytes, list, tuple, dict, type(None))):
        raise TypeError(f"No constant handler for type: {type(val)}")
    return (bindings.constant(val, aval),)


def ir_constant(
    val: Any, *, const_lowering: dict | None = None, aval: Any = None
) -> ir.Value:  # fmt: skip
    """The constant that stands for a value, for types of which one value does."""
    (found,) = ir_constants(val, const_lowering=const_lowering, aval=aval)
    return found


def shape_tensor(ctx: ModuleContext | None, sizes: Sequence[Any]) -> ir.Value:
    """A vector of 32-bit integers from numbers and scalar values."""
    if all(isinstance(size, (int, np.integer)) for size in sizes):
        return ir_constant(np.asarray(sizes, np.int32))
    one = ir.RankedTensorType.get([1], i32_attr(0).type)
    scalar = ir.RankedTensorType.get([], i32_attr(0).type)
    parts = []
    for size in sizes:
        if not isinstance(size, ir.Value):
            size = ir_constant(np.int32(size))
        elif size.type != scalar:
            size = stablehlo.convert(scalar, size)
        parts.append(stablehlo.reshape(one, size))
    return stablehlo.concatenate(parts, i64_attr(0)) if len(parts) > 1 else parts[0]


# -- programs ------------------------------------------------------------------------------------------


class LoweringResult(NamedTuple):
    """A module, and what must live as long as the program."""

    module: ir.Module
    keepalive: Any
    host_callbacks: list[Any]
    shape_poly_state: ShapePolyLoweringState


def _closed(jaxpr: ClosedJaxpr | Jaxpr) -> ClosedJaxpr:
    """A program without constants to be given: those that it has become arguments."""
    if isinstance(jaxpr, ClosedJaxpr):
        return jaxpr
    invars = [*jaxpr.constvars, *jaxpr.invars]
    return ClosedJaxpr(Jaxpr([], invars, jaxpr.outvars, jaxpr.eqns, jaxpr.effects), [])


def jaxpr_subcomp(
    ctx: ModuleContext, jaxpr: Jaxpr, name_stack: Any, tokens: TokenSet,
    consts_for_constvars: Sequence[Any], *args: Any, dim_var_values: Sequence[Any] = (),
    const_lowering: dict | None = None, outer_traceback: Any = None,
) -> tuple[list[Any], TokenSet]:  # fmt: skip
    """Compute a jaxpr at the insertion point: its results, and the tokens afterwards."""
    operands = flatten_ir_values([*consts_for_constvars, *args])
    return bindings.insert(ctx, "jaxpr", _closed(jaxpr), operands), tokens


def core_call_lowering(
    ctx: LoweringRuleContext, *args: Any, name: str, backend: Any = None,
    call_jaxpr: ClosedJaxpr | Jaxpr,
) -> list[Any]:  # fmt: skip
    """The rule of a primitive that calls the program `call_jaxpr`."""
    operands = flatten_ir_values(args)
    return bindings.insert(ctx.module_context, name, _closed(call_jaxpr), operands)


def emit_python_callback(
    ctx: LoweringRuleContext, callback: Callable, token: ir.Value | None,
    operands: Sequence[ir.Value], operand_avals: Sequence[Any], result_avals: Sequence[Any], *,
    has_side_effect: bool, returns_token: bool = True, partitioned: bool = False,
    sharding: Any = None,
) -> tuple[list[ir.Value], ir.Value | None, Any]:  # fmt: skip
    """A call of `callback(*NumPy arrays) -> arrays` when the program runs, at the insertion point.

    Gives the results, the token after the call if one was given for what comes before it, and the
    function, which must live as long as the program (`ctx.module_context.add_keepalive`).
    """
    _refuse("emit_python_callback", {"partitioned": partitioned, "sharding": sharding})

    def run(*arrays):
        found = callback(*map(np.asarray, arrays))
        return [_fitting(x, aval) for x, aval in zip(found, result_avals, strict=True)]

    effect = None if token is None else OrderedIOEffect()

    def body(b, *values):
        if effect is not None:
            b.tokens[effect], *values = values
        outs = lower_callback(
            b, values, run, effect=effect, pure=not has_side_effect, outs=result_avals
        )
        return outs if effect is None else [b.tokens[effect], *outs]

    tokens = [] if token is None else [token]
    avals = [*(abstract_token for _ in tokens), *operand_avals]
    found = bindings.insert_written(
        ctx.module_context, "callback", avals, body, [*tokens, *flatten_ir_values(operands)]
    )
    after = found.pop(0) if tokens else None
    return found, after if returns_token else None, run


def _fitting(value: Any, aval: Any) -> np.ndarray:
    array = np.asarray(value)
    if (array.shape, array.dtype) != (aval.shape, aval.dtype):
        raise RuntimeError(
            f"Incorrect return value of a callback: expected {aval.dtype.name}{list(aval.shape)}, "
            f"and it gave {array.dtype.name}{list(array.shape)}."
        )
    return np.ascontiguousarray(array).reshape(aval.shape)


def _refuse(function: str, options: dict[str, Any]) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise NotImplementedError(
            f"{function} takes no {', '.join(given)} here: lower with jit(...).lower(...)."
        )


def lower_jaxpr_to_fun(
    ctx: ModuleContext, name: str, jaxpr: ClosedJaxpr, effects: Sequence[Effect] = (), *,
    num_const_args: int = 0, main_function: bool = False, in_avals: Sequence[Any] = (),
    **options: Any,
) -> Any:  # fmt: skip
    """A function in the module that computes a program: the operation, under a name of its own.

    It is private, unless `main_function`. Shardings and layouts are not taken.
    """
    _refuse("lower_jaxpr_to_fun", {"effects": effects, **options})
    chosen = bindings.insert_function(ctx, name, jaxpr)
    found = next(op for op in bindings._symbols(ctx.module) if bindings._name_of(op) == chosen)
    if main_function:
        found.attributes["sym_visibility"] = ir.StringAttr.get("public")
    return found


def lower_jaxpr_to_module(
    module_name: str, jaxpr: ClosedJaxpr, *, num_const_args: int = 0,
    in_avals: Sequence[Any] = (), ordered_effects: Sequence[Effect] = (),
    platforms: Sequence[str] = ("cpu",), backend: Any = None, axis_context: Any = None,
    donated_args: Sequence[bool] = (), lowering_parameters: Any = None, **options: Any,
) -> LoweringResult:  # fmt: skip
    """A module whose `main` computes a program, on one device. Shardings are not taken."""
    options.pop("replicated_args", None)
    if options.get("num_partitions") == 1:
        del options["num_partitions"]
    for name in ("arg_names", "result_names", "all_default_mem_kind"):
        options.pop(name, None)
    _refuse("lower_jaxpr_to_module", {"donated_args": any(donated_args), **options})
    ctx = ModuleContext(tuple(platforms))
    module = bindings.parse_program(ctx, jaxpr, module_name)
    return LoweringResult(module, ctx.keepalives, ctx.host_callbacks, ctx.shape_poly_state)


def module_to_string(module: ir.Module, enable_debug_info: bool | None = None) -> str:
    """The text of a module, with where its operations come from unless that is declined."""
    output = StringIO()
    debug = True if enable_debug_info is None else enable_debug_info
    module.operation.print(file=output, enable_debug_info=debug)
    return output.getvalue()


def module_to_bytecode(module: ir.Module) -> bytes:
    """MLIR's own serialization of a module."""
    output = BytesIO()
    module.operation.write_bytecode(file=output)
    return output.getvalue()


own_names(__name__)
__dir__ = shown(__name__)
