"""`call_exported`: calling a program that was exported, now or by another process.

The program is opaque: it is no sub-program that interpreters look into, and its derivative is
another exported program (see `minijax.export`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.arrays.dispatch import concrete, program_for
from minijax.core.avals import ShapedArray, abstract_token
from minijax.core.caches import kept_with
from minijax.core.effects import ordered
from minijax.core.primitive import Primitive, no_rule
from minijax.core.staging import trace_to_jaxpr
from minijax.features.export.modules import merge
from minijax.features.sharding.layouts import in_shape_rule, set_layout
from minijax.features.symbolic.dims import evaluate
from minijax.features.symbolic.lowering import is_symbolic, solved
from minijax.lax.dims import dim_as_value_p
from minijax.lowering.module import Value
from minijax.lowering.types import physical, tensor_type
from minijax.runtime.gpus import platform_name

__all__ = ["call_exported_p", "dim_as_value_p", "sizes_of"]

call_exported_p = Primitive("call_exported", multiple_results=True, memoize=False)
set_layout(call_exported_p, parts=in_shape_rule)
call_exported_p.effects_rule(
    lambda *, exported: frozenset((*exported.ordered_effects, *exported.unordered_effects))
)
call_exported_p.rule_jvp = no_rule(
    "an exported program is differentiated by the one that `vjp()` gives, in reverse mode only",
    TypeError,
)
call_exported_p.rule_transpose = no_rule("an exported program is not known to be linear")
call_exported_p.rule_batch = no_rule(
    "Batching rule for 'call_exported' not implemented: export the mapped function, or call the "
    "exported one in a loop such as jax.lax.map."
)


@call_exported_p.shape_rule
def _(*avals, exported):
    if not any(map(is_symbolic, exported.in_avals)):
        return list(exported.out_avals)
    values = sizes_of(exported, avals)
    sized = lambda aval: tuple([evaluate(size, values) for size in aval.shape])
    return [aval.update(shape=sized(aval)) for aval in exported.out_avals]


def sizes_of(exported: Any, avals: Sequence[Any]) -> dict[str, Any]:
    """The values of the dimension variables of an exported program, for arguments of these types."""
    known, _ = solved([aval.shape for aval in exported.in_avals])
    values: dict[str, Any] = {}
    for name, (place, axis, factor, rest) in known.items():
        values[name] = (avals[place].shape[axis] - evaluate(rest, values)) // factor
    return values


@call_exported_p.impl
def _(*args, exported):
    """Run the program of a single call, compiled for arguments as they lie."""
    arrays = [concrete(x) for x in args]
    key = tuple([x.signature for x in arrays])
    programs = kept_with(exported, "call")
    program = programs.get(key)
    if program is None:
        # Kept without its jaxpr, which refers to what was exported.
        avals = tuple([x.aval for x in arrays])
        closed = trace_to_jaxpr(lambda *xs: call_exported_p.bind(*xs, exported=exported), avals)
        name = f"call_exported_{exported.fun_name}"
        program = programs[key] = program_for(closed, name, arrays)
    return program(arrays)


@call_exported_p.lower
def _(b, *operands, exported):
    module = b.module
    index = _place(module, exported)
    _check_devices(module, exported)
    split = len(module.devices) > 1 and module.manual is None
    if split:
        operands = [
            _split(b, x, where)
            for x, where in zip(operands, exported._in_named_shardings, strict=True)
        ]
    given = [_sized(b, operands[i], exported.in_avals[i]) for i in exported.module_kept_var_idx]
    effects = ordered(frozenset(exported.ordered_effects))
    given = [*(b.tokens[effect] for effect in effects), *given]
    if len(exported.platforms) > 1:
        given.insert(0, b.constant(np.int32(index), ShapedArray((), np.dtype(np.int32))))
    module.takes_platform |= exported.uses_global_constants
    module.refines |= exported.uses_global_constants
    wanted = list(b.outs)
    outs = [*(abstract_token for _ in effects), *exported.out_avals]
    results = b.call(_function(module, exported), given, outs)
    b.tokens.update(zip(effects, results[: len(effects)], strict=True))
    results = list(map(functools.partial(_sized, b), results[len(effects) :], wanted))
    if split:
        pairs = zip(results, exported._out_named_shardings, strict=True)
        results = [_split(b, x, where) for x, where in pairs]
    return results


def _place(module: Any, exported: Any) -> int:
    """Return the platform that the program is called on; ValueError if it is not one of its own."""
    device = module.devices[0]
    used = tuple([platform_name(name, device) for name in module.platforms])
    own = platform_name(module.platform, device)
    unchecked = any(repr(check) == "platform" for check in exported.disabled_safety_checks)
    if not unchecked and not set(used) <= set(exported.platforms):
        raise ValueError(
            f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but "
            f"it is used on '{used}'."
        )
    return exported.platforms.index(own) if own in exported.platforms else 0


def _check_devices(module: Any, exported: Any) -> None:
    count = len(module.devices)
    if exported.nr_devices not in (1, count):
        raise ValueError(
            f"Function {exported.fun_name} was exported for {exported.nr_devices} devices and is "
            f"called in a context with {count} devices, which is not allowed."
        )


def _sized(b: Any, x: Any, aval: Any) -> Any:
    """The value as one of another type, whose sizes are known where those of `x` are not, or not."""
    if tensor_type(aval) == x.type:
        return x if x.aval is aval else Value(x.name, aval)
    return b.op("stablehlo.convert", (x,), aval)


def _split(b: Any, x: Any, where: Any) -> Any:
    """The value, split as the program was exported for."""
    if where is None or not physical(x.aval).ndim:
        return x
    return b.split(x, where)[0]


def _function(module: Any, exported: Any) -> str:
    """The function of the program in the module, written there once."""
    key = ("exported", exported)
    if key not in module.by_key:
        artifact = exported.mlir_module_serialized
        module.by_key[key] = merge(module, artifact, f"call_exported_{exported.fun_name}")
    return module.by_key[key]
