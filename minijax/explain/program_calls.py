"""Calls of programs and of objects that carry more than operands, in programs written as Python.

Rules of Python that such a call holds, for mapping or for splitting, are taken from `callbacks`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from minijax import tree_util
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import Primitive
from minijax.explain.custom_rules import structs
from minijax.explain.literals import literal, struct_text, tuple_text
from minijax.features.custom_rules.closures import linear_call_p
from minijax.features.custom_rules.common import call_function
from minijax.features.custom_rules.custom_batching import custom_vmap_p
from minijax.features.custom_rules.optimize_remat import remat_opt_p
from minijax.features.hijax.primitives import call_hi_primitive_p
from minijax.lax.composites import composite_p
from minijax.lax.compute_on import compute_on_p
from minijax.lax.custom_partitioning import custom_partitioning_p
from minijax.lax.exported import call_exported_p
from minijax.lax.ffi_calls import ffi_call_p
from minijax.lax.fused import fused_p
from minijax.lax.metadata import xla_metadata_call_p, xla_metadata_value_p
from minijax.lax.sharding_rules import SdyShardingRule
from minijax.lax.window_choice import select_and_scatter_p
from minijax.transforms.make_jaxpr import make_jaxpr

__all__ = ["RULES"]


def _given(params: dict[str, Any]) -> str:
    return "".join(f", {name}={literal(value)}" for name, value in params.items())


def _composite(body, eqn, operands, *, jaxpr, name, attributes, version):
    function = body.module.function(jaxpr, "composite")
    given = "".join(
        f", {key}={literal(tree.unflatten(leaves))}" for key, leaves, tree in attributes
    )
    if given:
        function = f"lambda *xs, **attributes: {function}(*xs)"
    return f"lax.composite({function}, {name!r}, {version})({', '.join(operands)}{given})"


def _compute_on(
    body, eqn, operands, *, jaxpr, out_memory_spaces, compute_type, compiler_options_json
):
    given = {"compute_type": compute_type, "out_memory_spaces": out_memory_spaces}
    if compiler_options_json is not None:
        given["compiler_options"] = json.loads(compiler_options_json)
    function = body.module.function(jaxpr, "elsewhere")
    return f"compute_on2({function}{_given(given)})({', '.join(operands)})"


def _fused(body, eqn, operands, *, jaxpr, out_spaces):
    function = body.module.function(jaxpr, "fusion")
    return f"fused(out_spaces={literal(out_spaces)})({function})({', '.join(operands)})"


def _marked_call(body, eqn, operands, *, jaxpr, **meta):
    function = body.module.function(jaxpr, "marked")
    return f"xla_metadata_call({function}{_given(meta)})({', '.join(operands)})"


def _marked_value(body, eqn, operands, *, xla_metadata_kvs):
    return f"set_xla_metadata({operands[0]}{_given(dict(xla_metadata_kvs))})"


def _forward(body, eqn, operands, *, fwd_jaxpr, **params):
    """A forward rule, which may give way to its function as long as residuals are not read."""
    return f"{body.module.function(fwd_jaxpr, 'forward')}({', '.join(operands)})"


def _linear_call(body, eqn, operands, *, callee, transpose, num_callee_consts, num_res):
    fixed = num_callee_consts + num_res
    groups = [("residuals", fixed), ("xs", len(operands) - fixed)]
    avals = [v.aval for v in eqn.invars[num_callee_consts:fixed]]
    cts = [v.aval.to_tangent_aval() for v in eqn.outvars]
    run = lambda *xs: call_function(transpose, xs[num_callee_consts:])
    program = make_jaxpr(run)(*structs([v.aval for v in eqn.invars[:num_callee_consts]]),
                              *structs([*avals, *cts]))  # fmt: skip
    names = [body.module.function(callee, "linear", groups),
             body.module.function(program, "transposed", [("residuals", fixed), ("cts", len(cts))])]  # fmt: skip
    given = tuple_text(operands[:fixed]), tuple_text(operands[fixed:])
    return f"jax.custom_derivatives.linear_call({', '.join([*names, *given])})"


# -- functions with rules of Python ----------------------------------------------------------------


def _custom_vmap(body, eqn, operands, *, call, rule, in_tree, out_tree, num_consts):
    module, key = body.module, (id(rule), id(call))
    name = module.ruled.get(key)
    if name is None:
        name = module.function(call, "mapped", decorator="jax.custom_batching.custom_vmap")
        module.ruled[key] = name

        def on_leaves(size, batched, *args):
            outs, flags = rule(size, batched[num_consts:], args[num_consts:])
            return tuple(outs), tuple(flags)

        chosen = module.callback(on_leaves, f"{name}_rule")
        module.definitions.append(f"{name}.def_vmap({chosen})\n")
    return f"{name}({', '.join(operands)})"


def _custom_partitioning(
    body, eqn, operands, *, call, static_args, in_tree, out_tree, partition, decode_shardings,
    sharding_rule, propagate_user_sharding, infer_sharding_from_operands,
):  # fmt: skip
    module = body.module
    key = (id(call), partition, sharding_rule)
    name = module.ruled.get(key)
    if name is None:
        name = module.function(call, "partitioned", decorator="custom_partitioning")
        module.ruled[key] = name

        def on_leaves(mesh, arg_shapes, result_shape):
            mesh, lower_fn, outs, ins = partition(
                *static_args, mesh, in_tree.unflatten(arg_shapes), out_tree.unflatten(result_shape)
            )
            one_device = lambda *xs: tuple(tree_util.tree_leaves(lower_fn(*in_tree.unflatten(xs))))
            return mesh, one_device, tuple(out_tree.flatten_up_to(outs)), tuple(
                in_tree.flatten_up_to(ins)
            )  # fmt: skip

        given = [module.callback(on_leaves, f"{name}_partition")]
        if isinstance(sharding_rule, SdyShardingRule):
            given.append(f"sharding_rule={_sharding_rule(sharding_rule)}")
        elif sharding_rule is not None:
            chosen = module.callback(partial(sharding_rule, *static_args), f"{name}_rule")
            given.append(f"sharding_rule={chosen}")
        given += [] if decode_shardings else ["decode_shardings=False"]
        module.definitions.append(f"{name}.def_partition({', '.join(given)})\n")
    return f"{name}({', '.join(operands)})"


def _sharding_rule(rule: SdyShardingRule) -> str:
    """The rule as a string, with what is said of its factors."""

    def mapping(dims: Sequence[Any]) -> str:
        return " ".join(d if isinstance(d, str) else f"({' '.join(d)})" for d in dims)

    sides = (", ".join(map(mapping, x)) for x in (rule.operand_mappings, rule.result_mappings))
    names = ("reduction_factors", "need_replication_factors", "permutation_factors")
    kinds = {name: value for name, value in zip(names, rule.special, strict=True) if value}
    return f"{' -> '.join(sides)!r}{_given({**kinds, **rule.factor_sizes})}"


# -- objects, and functions of other languages -------------------------------------------------------


def _exported(body, eqn, operands, *, exported):
    module = body.module
    name = module.ruled.get(id(exported))
    if name is None:
        module.ruled[id(exported)] = name = module.new_name("exported")
        held = module.held(exported.serialize(), name)
        module.constant_lines.append(f"{name} = export.deserialize({held})")
    args = module.arguments(exported.in_tree, operands)
    return f"jax.tree.leaves({name}.call({', '.join(args)}))"


def _high_primitive(body, eqn, operands, *, _prim):
    named = body.module.callback(_prim, type(_prim).__name__)
    return f"jax.tree.leaves({named}(*{body.module.tree(_prim.in_tree, operands)}))"


def _ffi_call(
    body, eqn, operands, *, target_name, result_avals, has_side_effect, vmap_method,
    input_layouts, output_layouts, input_output_aliases, custom_call_api_version,
    legacy_backend_config, attributes,
):  # fmt: skip
    given = {}
    if has_side_effect:
        given["has_side_effect"] = True
    if vmap_method is not None:
        given["vmap_method"] = vmap_method
    for name, layouts, avals in (
        ("input_layouts", input_layouts, [v.aval for v in eqn.invars]),
        ("output_layouts", output_layouts, result_avals),
    ):
        usual = [tuple(range(a.ndim))[::-1] for a in avals]
        if list(map(tuple, layouts)) != usual:
            given[name] = tuple(tuple(x)[::-1] for x in layouts)
    if input_output_aliases:
        given["input_output_aliases"] = dict(input_output_aliases)
    if custom_call_api_version != 4:
        given["custom_call_api_version"] = custom_call_api_version
    if legacy_backend_config is not None:
        given["legacy_backend_config"] = legacy_backend_config
    outs = tuple_text(struct_text(a) for a in result_avals)
    values = _given({name: value.value for name, value in attributes})
    call = f"jax.ffi.ffi_call({target_name!r}, {outs}{_given(given)})"
    return f"{call}({', '.join(operands)}{values})"


def _select_and_scatter(
    body, eqn, operands, *, select_jaxpr, select_consts, scatter_jaxpr, scatter_consts, **window
):
    kinds = {"select": (select_jaxpr, select_consts), "scatter": (scatter_jaxpr, scatter_consts)}
    given = {}
    for name, (jaxpr, consts) in kinds.items():
        closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, consts)
        function = body.module.function(closed, name)
        types = ", ".join(struct_text(a) for a in closed.in_avals)
        given[name] = f"{name}_jaxpr=jax.make_jaxpr({function})({types}).jaxpr, {name}_consts=()"
    return (
        f"primitives.select_and_scatter_p.bind({', '.join(operands)}, {given['select']}, "
        f"{given['scatter']}{_given(window)})"
    )


RULES: dict[Primitive, Callable] = {
    call_exported_p: _exported,
    call_hi_primitive_p: _high_primitive,
    composite_p: _composite,
    compute_on_p: _compute_on,
    custom_partitioning_p: _custom_partitioning,
    custom_vmap_p: _custom_vmap,
    ffi_call_p: _ffi_call,
    fused_p: _fused,
    linear_call_p: _linear_call,
    remat_opt_p: _forward,
    select_and_scatter_p: _select_and_scatter,
    xla_metadata_call_p: _marked_call,
    xla_metadata_value_p: _marked_value,
}
