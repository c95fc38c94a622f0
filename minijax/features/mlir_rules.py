"""Lowering rules that build operations with MLIR's Python bindings, within modules that are text.

minijax's own rules write text (`lowering.module`); a rule that a library wrote for upstream is
given a function of its own in a small module of MLIR objects, whose text then joins the program.
Loaded by `interpreters.mlir`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, sdy, stablehlo

from minijax.core.array import Array
from minijax.core.avals import AbstractToken, ShapedArray, get_aval
from minijax.core.effects import ordered
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import Primitive
from minijax.features.source_info import NameStack
from minijax.lowering.module import Builder, Module, Value, write_function
from minijax.lowering.types import dense, element_type, physical
from minijax.runtime.mlir_modules import shared_context

__all__ = [
    "BoundRule", "LoweringParameters", "LoweringRuleContext", "ModuleContext", "ShapePolyLoweringState",
    "ShardingContext", "TokenSet", "aval_to_ir_types", "constant", "dtype_to_ir_type", "insert",
    "make_private", "merge_mlir_modules", "rename", "sdy",
]  # fmt: skip

# -- what a rule is told -----------------------------------------------------------------------------


class LoweringParameters(NamedTuple):
    """Options of lowering a program; minijax has no choice here."""

    override_lowering_rules: tuple | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


class ShapePolyLoweringState(NamedTuple):
    """The names of symbolic dimensions, of which there are none, and the platforms."""

    dim_vars: tuple[str, ...] = ()
    lowering_platforms: tuple[str, ...] | None = None


class ShardingContext(NamedTuple):
    """Over how many devices a program runs, XLA placing its parts."""

    num_devices: int
    device_assignment: tuple | None = None
    abstract_mesh: Any = None


class SPMDAxisContext(NamedTuple):
    """The mesh of the program, and the axes over which `shard_map` is at work."""

    mesh: Any
    manual_axes: frozenset = frozenset()


class TokenSet:
    """The tokens of ordered effects: immutable, in a fixed order."""

    __slots__ = ("_tokens",)

    def __init__(self, tokens: dict[Any, Any] | None = None):
        self._tokens = dict(tokens or {})

    @classmethod
    def create(cls, effects: Sequence[Any]) -> TokenSet:
        """New tokens, which wait for nothing."""
        return cls({effect: stablehlo.create_token() for effect in effects})

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Any) -> Any:
        return self._tokens[effect]

    def items(self) -> list[tuple[Any, Any]]:
        return list(self._tokens.items())

    def effects(self) -> set[Any]:
        return set(self._tokens)

    def subset(self, effects: Iterable[Any]) -> TokenSet:
        return TokenSet({effect: self._tokens[effect] for effect in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """These tokens, with those of `tokens` in the place of the earlier ones."""
        return TokenSet({**self._tokens, **tokens._tokens})


@dataclasses.dataclass
class ModuleContext:
    """The module that a rule adds to."""

    platforms: Sequence[str]
    backend: Any = None
    axis_context: Any = None
    keepalives: list[Any] = dataclasses.field(default_factory=list)
    host_callbacks: list[Any] = dataclasses.field(default_factory=list)
    lowering_parameters: LoweringParameters = LoweringParameters()
    context: Any = None
    module: Any = None
    shape_poly_state: ShapePolyLoweringState = ShapePolyLoweringState()
    text: Module | None = None  # the program that it becomes a part of

    def __post_init__(self):
        self.context = self.context or shared_context()
        if self.module is None:
            self.module = ir.Module.create(loc=ir.Location.unknown(self.context))
        if self.text is None:
            self.text = Module.make("part", self.platforms[0])
        self.symbol_table = ir.SymbolTable(self.module.operation)
        self.ip = ir.InsertionPoint(self.module.body)

    @classmethod
    def of(cls, text: Module) -> ModuleContext:
        """A new part of a program."""
        manual = text.manual
        where = (
            ShardingContext(len(text.devices))
            if manual is None
            else SPMDAxisContext(manual, frozenset(manual.axis_names))
        )
        backend = getattr(text.devices[0], "client", None)
        return cls(
            (text.platform,), backend, where, text.keepalives, text.host_callbacks, text=text
        )

    def new_channel(self) -> int:
        """The number of one more channel of collectives."""
        self.text.channels += 1
        return self.text.channels

    def add_keepalive(self, keepalive: Any) -> None:
        """Keep an object alive for as long as the program."""
        self.keepalives.append(keepalive)

    def add_host_callback(self, host_callback: Any) -> None:
        self.host_callbacks.append(host_callback)

    def replace(self, **changes: Any) -> ModuleContext:
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass
class LoweringRuleContext:
    """The equation that a rule lowers: its types, and the module that it adds to."""

    module_context: ModuleContext
    primitive: Primitive | None
    avals_in: Sequence[Any]
    avals_out: Any
    tokens_in: TokenSet
    tokens_out: TokenSet | None = None
    name_stack: NameStack = NameStack()
    traceback: Any = None
    const_lowering: dict = dataclasses.field(default_factory=dict)
    axis_size_env: dict | None = None
    dim_var_values: Sequence[Any] = ()
    jaxpr_eqn_ctx: Any = None
    platforms: Sequence[str] | None = None

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        """Say which tokens come after the equation."""
        self.tokens_out = tokens_out

    def replace(self, **changes: Any) -> LoweringRuleContext:
        return dataclasses.replace(self, **changes)

    def is_forward_compat(self) -> bool:
        """Whether the program must be understood by older versions: never here."""
        return False


# -- types and constants -----------------------------------------------------------------------------


def dtype_to_ir_type(dtype: Any) -> ir.Type:
    """The element type of a dtype. TypeError if there is none."""
    try:
        return ir.Type.parse(element_type(np.dtype(dtype)))
    except NotImplementedError:
        raise TypeError(f"No dtype_to_ir_type handler for dtype: {dtype}") from None


def _array_type(aval: ShapedArray) -> ir.Type:
    stored = physical(aval)
    return ir.RankedTensorType.get(stored.shape, dtype_to_ir_type(stored.dtype))


ir_type_handlers: dict[type, Callable] = {
    ShapedArray: _array_type,
    AbstractToken: lambda aval: stablehlo.TokenType.get(),
}


def aval_to_ir_types(aval: Any) -> tuple[ir.Type, ...]:
    """The types of the values that stand for one of a type: one, for arrays."""
    handler = next((ir_type_handlers[k] for k in type(aval).__mro__ if k in ir_type_handlers), None)
    if handler is None:
        raise TypeError(
            f"No ir_type_handler for aval type: {type(aval)}: add one to ir_type_handlers."
        )
    found = handler(aval)
    return (found,) if isinstance(found, ir.Type) else tuple(found)


def constant(value: Any, aval: ShapedArray | None = None) -> ir.Value:
    """A constant operation at the insertion point, of this type or the value's own."""
    if aval is None:  # NumPy's arrays keep their dtypes, whether or not 64-bit ones are enabled
        kept = isinstance(value, (np.ndarray, np.generic))
        aval = ShapedArray(value.shape, value.dtype) if kept else get_aval(value)
    stored = physical(aval)
    if isinstance(value, Array) and stored is not aval:
        value = value._stored
    array = np.asarray(value)
    if array.dtype != stored.dtype:
        array = np.zeros(array.shape, bool) if array.dtype.kind == "V" else array
        array = array.astype(np.bool_ if element_type(stored.dtype) == "i1" else stored.dtype)
    array = np.broadcast_to(array, stored.shape)
    kind = _array_type(aval)
    written = f'%0 = "stablehlo.constant"() <{{value = {dense(array)} : {kind}}}> : () -> {kind}'
    made = ir.Operation.parse(written)
    ir.InsertionPoint.current.insert(made)
    return made.results[0]


# -- modules within modules ----------------------------------------------------------------------------


def _symbols(module: ir.Module) -> list[Any]:
    return [op for op in module.body.operations if "sym_name" in op.attributes]


def make_private(function: Any) -> None:
    function.attributes["sym_visibility"] = ir.StringAttr.get("private")


def _name_of(op: Any) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def rename(module: ir.Module, choose: Callable[[str], str]) -> dict[str, str]:
    """Give each function of a module another name, everywhere; from the old to the new."""
    found = _symbols(module)
    names: dict[str, str] = {}
    # First to names that nobody has: an old name may be another's new one.
    for count, op in enumerate(found):
        names[_name_of(op)] = f"__minijax_{count}"
        _to_name(module, op, f"__minijax_{count}")
    chosen = {}
    for old, op in zip(names, found, strict=True):
        chosen[old] = choose(old)
        _to_name(module, op, chosen[old])
    return chosen


def _forget_meshes(module: ir.Module, known: ir.Module) -> None:
    """Take out of a module the meshes that another declares under the same names."""
    declared = {str(op) for op in _meshes(known)}
    for op in _meshes(module):
        if str(op) in declared:
            op.operation.erase()


def _meshes(module: ir.Module) -> list[Any]:
    return [op for op in module.body.operations if isinstance(op, sdy.MeshOp)]


def _to_name(module: ir.Module, op: Any, name: str) -> None:
    ir.SymbolTable.replace_all_symbol_uses(_name_of(op), name, module.operation)
    ir.SymbolTable.set_symbol_name(op, name)


def merge_mlir_modules(
    dst_module: ir.Module, sym_name: str, src_module: ir.Module, dst_symtab: Any = None
) -> str:
    """Move the functions of one module into another: the name that its "main" has there.

    They become private, and get other names where the other module has theirs already; `sym_name`
    is the wish for "main". Both are of one context. `src_module` is of no use afterwards.
    """
    _forget_meshes(src_module, dst_module)
    taken = {_name_of(op) for op in _symbols(dst_module)}

    def choose(old: str) -> str:
        wanted = base = sym_name if old == "main" else old
        count = 0
        while wanted in taken:
            wanted, count = f"{base}_{count}", count + 1
        taken.add(wanted)
        return wanted

    names = rename(src_module, choose)
    for op in list(src_module.body.operations):
        if isinstance(op, func.FuncOp):
            make_private(op)
        op.operation.detach_from_parent()
        dst_module.body.append(op)
        if dst_symtab is not None:
            dst_symtab.insert(op)
    return names["main"]


def insert(
    ctx: ModuleContext, name: str, closed: ClosedJaxpr, operands: Sequence[ir.Value]
) -> list[ir.Value]:
    """Call, at the insertion point, a function that computes a program; its results."""
    function = insert_function(ctx, name, closed)
    types = [t for aval in closed.out_avals for t in aval_to_ir_types(aval)]
    call = func.CallOp(types, ir.FlatSymbolRefAttr.get(function), list(operands))
    return list(call.results)


def insert_function(ctx: ModuleContext, name: str, closed: ClosedJaxpr) -> str:
    """The name of a new function in the module that computes a program."""
    return merge_mlir_modules(ctx.module, name, parse_program(ctx, closed))


def parse_program(ctx: ModuleContext, closed: ClosedJaxpr, name: str = "part") -> ir.Module:
    """A module of MLIR objects whose `main` computes a program."""
    text = _part_of(ctx, name)
    text.functions.append(write_function(text, "main", closed, public=True))
    return _parsed(ctx, text)


def insert_written(
    ctx: ModuleContext, name: str, avals: Sequence[Any], body: Callable[..., list[Value]],
    operands: Sequence[ir.Value],
) -> list[ir.Value]:  # fmt: skip
    """Call, at the insertion point, a function whose body `body(builder, *values)` writes as text."""
    text = _part_of(ctx, name)
    builder = text.builder(text)
    args = [Value(f"%arg{i}", aval) for i, aval in enumerate(avals)]
    results = body(builder, *args)
    signature = ", ".join(f"{x.name}: {x.type}" for x in args)
    types = ", ".join(x.type for x in results)
    head = f"func.func public @main({signature}) -> ({types}) {{"
    names = ", ".join(x.name for x in results)
    end = f"return {names} : {types}" if results else "return"
    text.functions.append("\n".join([head, *builder.prologue, *builder.lines, end, "}"]))
    function = merge_mlir_modules(ctx.module, name, _parsed(ctx, text))
    out = [t for x in results for t in aval_to_ir_types(x.aval)]
    return list(func.CallOp(out, ir.FlatSymbolRefAttr.get(function), list(operands)).results)


def _part_of(ctx: ModuleContext, name: str) -> Module:
    """A module in the making that counts on with what is numbered."""
    text = Module.make(name, ctx.platforms[0], devices=ctx.text.devices)
    text.manual, text.channels = ctx.text.manual, ctx.text.channels
    text.keepalives, text.host_callbacks = ctx.keepalives, ctx.host_callbacks
    text.share_meshes(ctx.text)
    return text


def _parsed(ctx: ModuleContext, text: Module) -> ir.Module:
    ctx.text.channels = text.channels
    with ctx.context, ir.Location.unknown(ctx.context):
        return ir.Module.parse(text.text())


# -- rules ---------------------------------------------------------------------------------------------


def flatten_values(values: Iterable[Any]) -> list[ir.Value]:
    """Values, and sequences of values, in one list."""
    out: list[ir.Value] = []
    for value in values:
        out.extend([value] if isinstance(value, ir.Value) else value)
    return out


class BoundRule:
    """A lowering rule that is called as upstream's are: `rule(ctx, *values, **params) -> values`."""

    __slots__ = ("primitive", "rule")

    def __init__(self, primitive: Primitive, rule: Callable):
        self.primitive = primitive
        self.rule = rule

    def __call__(self, b: Builder, *operands: Value, **params: Any) -> list[Value]:
        outs = b.outs
        effects = ordered(self.primitive.effects_of(params, [x.aval for x in operands]))
        tokens = [b.tokens[effect] for effect in effects]
        name = self._write(b.module, effects, [x.aval for x in operands], outs, params)
        avals = [*(token.aval for token in tokens), *outs]
        results = b.call(name, (*tokens, *operands), avals)
        b.tokens.update(zip(effects, results[: len(effects)], strict=True))
        return results[len(effects) :]

    def _write(
        self, text: Module, effects: list, avals: list[Any], outs: list[Any], params: dict
    ) -> str:
        """Write the function that the rule builds into the program; its name there."""
        with shared_context() as context, ir.Location.unknown(context):
            part = ModuleContext.of(text)
            token = stablehlo.TokenType.get()
            ins = [t for aval in avals for t in aval_to_ir_types(aval)]
            wanted = [
                *(token for _ in effects),
                *(t for aval in outs for t in aval_to_ir_types(aval)),
            ]
            with part.ip:
                function = func.FuncOp("main", ([*(token for _ in effects), *ins], wanted))
            with ir.InsertionPoint(function.add_entry_block()):
                arguments = list(function.arguments)
                given = TokenSet(dict(zip(effects, arguments, strict=False)))
                ctx = LoweringRuleContext(part, self.primitive, tuple(avals), list(outs), given)
                found = self._values(ctx, arguments[len(effects) :], params)
                after = ctx.tokens_out or given
                func.ReturnOp([*(after.get(effect) for effect in effects), *found])
            self._check(found, wanted[len(effects) :])
            make_private(function)
            part.module.operation.verify()
            if _meshes(part.module):
                _forget_meshes(part.module, ir.Module.parse("\n".join(text.declarations())))
            base = self.primitive.name
            own = {"main": base} | {
                _name_of(op): f"{base}_{_name_of(op)}" for op in _meshes(part.module)
            }
            names = rename(part.module, lambda old: text.unique(own.get(old, old)))
            text.functions.extend(
                op.operation.get_asm(large_elements_limit=None)
                for op in part.module.body.operations
            )
        return names["main"]

    def _values(self, ctx: LoweringRuleContext, operands: list, params: dict) -> list[ir.Value]:
        found = self.rule(ctx, *operands, **params)
        if isinstance(found, (ir.Value, ir.OpView)):
            found = [found] if isinstance(found, ir.Value) else found.results
        if found is None or any(value is None for value in found):
            raise ValueError(
                f"The lowering rule of {self.primitive.name!r} gave {found}: it must give a list of "
                "the values of its results."
            )
        return flatten_values(
            value.results if isinstance(value, ir.OpView) else value for value in found
        )

    def _check(self, found: list[ir.Value], wanted: list[ir.Type]) -> None:
        types = [value.type for value in found]
        if types != wanted:
            raise ValueError(
                f"The lowering rule of {self.primitive.name!r} gave values of the types "
                f"{list(map(str, types))}; the types of its results are {list(map(str, wanted))}."
            )
