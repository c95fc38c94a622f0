"""Lowering one program for a platform by both libraries, and what is compared of the two
modules.
"""

import collections
import warnings

import jax
from jaxlib.mlir import ir

import minijax
from tests.cases.platform_programs import types_of
from tests.harness.differential import x64

_SHARDING = ("sdy.sharding", "mhlo.sharding")
# A float of a custom call's attributes is printed with as many digits as it needs: compared as text.


def traced_by(m, function, types):
    """A program as one of the libraries traces it, or its error."""
    args = [m.ShapeDtypeStruct(shape, dtype) for shape, dtype in types_of(types)]
    try:
        return m.jit(lambda *xs: function(m, *xs)).trace(*args)
    except Exception as error:
        return error


def module_of(traced, platform):
    """The module that a traced program is lowered to, or its error."""
    if isinstance(traced, Exception):
        return traced
    try:
        return traced.lower(lowering_platforms=(platform,)).compiler_ir()
    except Exception as error:
        return error


def _config(op, attributes):
    """The configuration of a call, as a dictionary of the typed FFI or as text, and its version."""
    if "mhlo.backend_config" in attributes:
        return 4, str(attributes["mhlo.backend_config"])
    found = dict(_items(attributes))
    version = ir.IntegerAttr(found["api_version"]).value if "api_version" in found else 1
    given = found.get("backend_config")
    if version == 4:
        return 4, "{}" if given is None else str(given)
    return version, ir.StringAttr(given).value if given is not None else ""


def _items(attributes):
    """The pairs of a dictionary of attributes, which jaxlib's versions give in two ways."""
    for entry in attributes:
        yield (entry, attributes[entry]) if isinstance(entry, str) else (entry.name, entry.attr)


def _call(op):
    """Everything that a custom call says, in one canonical tuple."""
    attributes = op.attributes
    names = {name: str(value) for name, value in _items(attributes)}
    target = ir.StringAttr(attributes["call_target_name"]).value
    for name in (
        "call_target_name",
        "backend_config",
        "mhlo.backend_config",
        "api_version",
        *_SHARDING,
    ):
        names.pop(name, None)
    if names.get("has_side_effect") == "false":
        names.pop("has_side_effect")
    for name in ("called_computations", "output_operand_aliases"):
        if names.get(name) == "[]":
            names.pop(name)
    ins = tuple(str(value.type) for value in op.operands)
    outs = tuple(str(value.type) for value in op.results)
    return target, *_config(op, attributes), ins, outs, tuple(sorted(names.items()))


_COLLECTIVES = {
    f"stablehlo.{name}"
    for name in (
        "all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute",
        "partition_id", "reduce_scatter",
    )
}  # fmt: skip


def _collective(op):
    """What a collective says, but for the number of its channel."""
    types = tuple(str(value.type) for value in (*op.operands, *op.results))
    said = {name: str(value) for name, value in _items(op.attributes) if name != "channel_handle"}
    return op.name, types, tuple(sorted(said.items()))


class Counted:
    """The custom calls and collectives of a module: each as often as it is written, those of
    functions as often as these are called."""

    def __init__(self, module):
        with module.context:
            self.functions = {
                ir.StringAttr(op.attributes["sym_name"]).value: op
                for op in module.body.operations
                if op.operation.name == "func.func"
            }
            self.known = {}
            self.calls = self.of("main")

    def of(self, name):
        if name not in self.known:
            calls = collections.Counter()
            self.walk(self.functions[name].operation, calls)
            self.known[name] = calls
        return self.known[name]

    def walk(self, operation, calls):
        for region in operation.regions:
            for block in region.blocks:
                for op in block.operations:
                    op = op.operation
                    if op.name in ("func.call", "call"):
                        calls.update(self.of(ir.FlatSymbolRefAttr(op.attributes["callee"]).value))
                        continue
                    if op.name == "stablehlo.custom_call":
                        calls[_call(op)] += 1
                    elif op.name in _COLLECTIVES:
                        calls[_collective(op)] += 1
                    self.walk(op, calls)


def compare(row, platforms, wide=False):
    """Pairs of a platform and why the two modules for it differ, None where they do not."""
    _, function, types = row
    with x64(wide), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = [traced_by(m, function, types) for m in (minijax, jax)]
        return [(p, _difference(*[module_of(t, p) for t in traced])) for p in platforms]


def _difference(ours, theirs):
    failed = [isinstance(x, Exception) for x in (ours, theirs)]
    if all(failed):
        same = type(ours).__name__ == type(theirs).__name__
        return None if same else f"both fail: ours {_told(ours)}, upstream's {_told(theirs)}"
    if failed[0]:
        return f"ours fails: {_told(ours)}"
    if failed[1]:
        return f"upstream fails: {_told(theirs)}"
    a, b = Counted(ours).calls, Counted(theirs).calls
    if a == b:
        return None
    lines = [f"only ours: {n} x {call}" for call, n in (a - b).items()]
    lines += [f"only upstream's: {n} x {call}" for call, n in (b - a).items()]
    return "\n".join(["custom calls differ:", *lines])


def _told(error):
    return f"{type(error).__name__}: {str(error)[:200]}"
