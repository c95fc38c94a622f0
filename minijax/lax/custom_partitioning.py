"""`custom_partitioning`: functions that say how they are split over the devices of a mesh.

Over several devices a call is one operation; Shardy chooses shardings by its rule, and XLA's
partitioner then asks for the program of one device.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arguments.functions import fun_name
from minijax.config import local, overridden
from minijax.core.primitive import Primitive, Programs, no_rule
from minijax.features.sharding.constraints import with_types
from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.lax.programs import as_program
from minijax.lax.shard_map import within_axes
from minijax.lax.sharding_rules import SdyShardingRule, parse_rule
from minijax.lowering.module import Module, write_function
from minijax.lowering.types import tensor_type
from minijax.runtime import partitioners
from minijax.runtime.escape import quoted
from minijax.runtime.gspmd import GSPMDSharding
from minijax.runtime.mesh import AxisType, Mesh, PartitionSpec, device_mesh
from minijax.runtime.mlir_modules import types
from minijax.runtime.named_sharding import named_of_hlo
from minijax.runtime.sharding import Sharding
from minijax.transforms.tracing import positional, trace_function

__all__ = ["custom_partitioning", "custom_partitioning_p"]

custom_partitioning_p = Primitive("custom_partitioning", programs=Programs(call=(0,), ruled=True))
custom_partitioning_p.rule_jvp = no_rule(
    "Differentiation rule for 'custom_partitioning' not implemented: give the function one with "
    "`custom_jvp` or `custom_vjp`."
)
custom_partitioning_p.rule_transpose = no_rule("it is not known to be linear in its operands")
custom_partitioning_p.rule_batch = no_rule(
    "Batching rule for 'custom_partitioning' not implemented: give the function one with "
    "`custom_vmap`, or partition the mapped function."
)


@custom_partitioning_p.lower
def _(b, *operands, call, **params):
    if len(b.module.devices) == 1 or b.module.manual is not None:
        return b.closed_jaxpr(call, *operands)
    mesh, outs = _mesh_of(b.module), b.outs
    rule = _rule_text(params, mesh, operands, outs)
    avals = [x.aval for x in operands]
    platform, overrides = b.platform, local.context.overrides

    def run(ins, results):
        with overridden(overrides):  # in a thread of the partitioner's own
            return _partitioned(params, mesh, platform, avals, outs, ins, results)

    number, entry = partitioners.register(run)
    b.module.keepalives.append(entry)
    results = b.custom_call(
        partitioners.TARGET, operands, outs, config=quoted(str(number)), api_version=2
    )
    if rule is not None:
        # The rule of an operation is no part of what StableHLO says of it.
        head, _, tail = b.lines[-1].rpartition(" : (")
        b.lines[-1] = f"{head} {{sdy.sharding_rule = {rule}}} : ({tail}"
    return results


def _mesh_of(module: Module) -> Mesh:
    """The mesh of the arguments, or that in force; else one with a single axis of all devices."""
    meshes = [mesh for mesh in module.meshes if isinstance(mesh, Mesh)]
    meshes += [device_mesh()] if not device_mesh().empty else []
    devices = np.array(module.devices, dtype=object)
    mesh = next(iter(meshes), None) or Mesh(devices, ("devices",))
    return with_types(mesh, mesh.axis_names, AxisType.Auto)


def _rule_text(
    params: dict, mesh: Mesh, operands: Sequence[Any], outs: Sequence[Any]
) -> str | None:
    rule = params["sharding_rule"]
    if params["infer_sharding_from_operands"] or params["propagate_user_sharding"]:
        raise NotImplementedError(
            "Shardy is used, but sharding propagation callbacks instead of sharding_rule are "
            "provided. Need to provide sharding_rule to migrate to Shardy. For instance: "
            'f.def_partition(partition, sharding_rule="i j -> i j").'
        )
    if rule is None:
        return None
    if callable(rule):
        written = types([x.type for x in operands]), types([tensor_type(aval) for aval in outs])
        rule = rule(*params["static_args"], mesh, *written)
        rule = parse_rule(rule) if isinstance(rule, str) else rule
        if not isinstance(rule, SdyShardingRule):
            raise ValueError(
                "sharding_rule callable must produce either an SdyShardingRule object or an "
                "Einsum-like notation string."
            )
    return rule.text([x.shape for x in operands], [aval.shape for aval in outs])


# -- while XLA's partitioner runs ------------------------------------------------------------------


def _partitioned(
    params: dict, mesh: Mesh, platform: str, avals: Sequence[Any], outs: Sequence[Any],
    in_hlos: Sequence[Any], out_hlos: Sequence[Any],
) -> tuple[str, list[Any], list[Any]]:  # fmt: skip
    """The program of one device, and the shardings of its arguments and results."""
    decode = params["decode_shardings"]

    def described(avals, hlos):
        return [_described(aval, hlo, mesh, decode) for aval, hlo in zip(avals, hlos, strict=True)]

    in_tree, out_tree = params["in_tree"], params["out_tree"]
    mesh, lower_fn, out_places, in_places = params["partition"](
        *params["static_args"], mesh, in_tree.unflatten(described(avals, in_hlos)),
        out_tree.unflatten(described(outs, out_hlos)),
    )  # fmt: skip
    ins = _places("argument", in_places, avals)
    results = _places("result", out_places, outs)
    parts = [a.update(shape=s.shard_shape(a.shape)) for a, s in zip(avals, ins, strict=True)]

    tree = positional(in_tree.children())
    with within_axes(mesh, frozenset(mesh.axis_names), False):
        closed = trace_function("custom_partitioning", lower_fn, tree, parts, hoisted=None).closed
    found = [(aval.shape, aval.dtype) for aval in closed.out_avals]
    wanted = [(s.shard_shape(a.shape), a.dtype) for a, s in zip(outs, results, strict=True)]
    if found != wanted:
        shown = [a.update(shape=shape) for a, (shape, _) in zip(outs, wanted, strict=True)]
        raise ValueError(
            f"Mismatch in result shapes. {closed.out_avals} vs {shown}: what the partition of "
            "a custom_partitioning computes, and what its result shardings make of the results."
        )
    module = Module.make("partition", platform, devices=tuple(mesh.devices.flat))
    module.manual = with_types(mesh, mesh.axis_names, AxisType.Manual)
    module.functions.append(write_function(module, "main", closed, public=True))
    hlos = [
        [s._to_xla_hlo_sharding(a.ndim) for a, s in zip(each, places, strict=True)]
        for each, places in ((avals, ins), (outs, results))
    ]
    return module.text(), *hlos


def _described(aval: Any, hlo: Any, mesh: Mesh, decode: bool) -> ShapeDtypeStruct:
    """The type of a value, with how it is split: by name if that can be."""
    where = named_of_hlo(hlo, mesh, aval.ndim, mesh.devices.flat[0].default_memory().kind)
    if where is None or not decode:
        where = GSPMDSharding(mesh.devices.flat, hlo)
    else:
        parts = where.spec.partitions
        where = where.update(spec=PartitionSpec(*parts, *[None] * (aval.ndim - len(parts))))
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=where)


def _places(what: str, given: Any, avals: Sequence[Any]) -> list[Any]:
    found = tree_util.tree_leaves(given, is_leaf=lambda x: isinstance(x, Sharding) or x is None)
    if len(found) != len(avals) or not all(isinstance(x, Sharding) for x in found):
        raise ValueError(
            f"the partition of a custom_partitioning gives a sharding for each {what}, of which there "
            f"are {len(avals)}; got {given}."
        )
    return found


# -- the decorator ---------------------------------------------------------------------------------


class custom_partitioning:
    """Decorator: a function that says how it is split over devices; see `def_partition`.

    Arguments named by `static_argnums` are Python values; what `def_partition` is given gets them
    first. Over one device, and within `shard_map`, it is the function itself.
    """

    def __init__(self, fun: Callable, static_argnums: Sequence[int] = ()):
        self.fun, self.static_argnums = fun, tuple(static_argnums)
        self._defined: dict[str, Any] | None = None
        update_wrapper(self, fun, updated=())

    def def_partition(
        self, partition: Callable, infer_sharding_from_operands: Callable | None = None,
        propagate_user_sharding: Callable | None = None, decode_shardings: bool = True,
        sharding_rule: Any = None, *, reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (), permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> Callable:  # fmt: skip
        """Say how the function is split.

        - `partition(mesh, arg_shapes, result_shape)` is given types with the shardings chosen, as the
          trees of arguments and results; it gives the mesh, the function of one device, and the
          shardings of the result and of the arguments that this is for
        - `sharding_rule`: an `SdyShardingRule`, a string like "... i k, k j -> ... i j", or a
          function `(mesh, argument types, result types)` of one of these
        - `reduction_factors`, `need_replication_factors`, `permutation_factors` and sizes are for a
          string; see `SdyShardingRule`
        - `decode_shardings`: give shardings by name where that can be

        The other two are for XLA's older partitioner, and not called. ValueError for a string that is
        no rule.
        """
        special = {
            "reduction_factors": reduction_factors, "permutation_factors": permutation_factors,
            "need_replication_factors": need_replication_factors,
        }  # fmt: skip
        options = {**{k: v for k, v in special.items() if v != ()}, **factor_sizes}
        if sharding_rule is None or callable(sharding_rule) or (
            isinstance(sharding_rule, SdyShardingRule)
        ):  # fmt: skip
            if options:
                raise ValueError(
                    f"Unknown keyword arguments: {options}: they are for a string rule."
                )
        else:
            sharding_rule = parse_rule(sharding_rule, **options)
        by_rule = sharding_rule is not None
        self._defined = {
            "partition": partition, "decode_shardings": decode_shardings,
            "propagate_user_sharding": None if by_rule else propagate_user_sharding,
            "infer_sharding_from_operands": None if by_rule else infer_sharding_from_operands,
            "sharding_rule": sharding_rule,
        }  # fmt: skip
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not callable(self.fun):
            raise TypeError(f"{self.fun!r} is not a callable object: give a function to split.")
        if self._defined is None:
            raise AttributeError(
                f"{fun_name(self.fun)} is a custom_partitioning that no partition was defined for: "
                "call its def_partition first."
            )
        args = self._by_position(args, kwargs)
        chosen = sorted({n % len(args) for n in self.static_argnums} if args else ())
        statics = tuple([args[n] for n in chosen])
        for value in statics:
            hash(value)
        arrays = tuple([x for n, x in enumerate(args) if n not in chosen])
        pairs = tuple(zip(chosen, statics, strict=True))
        call = as_program("custom_partitioning", self.fun, arrays, {}, pairs)
        if call.consts:
            raise ValueError(
                f"{fun_name(self.fun)}, a custom_partitioning, refers to arrays of outside that are traced "
                "or large: pass them as arguments, so that they can be split."
            )
        outs = custom_partitioning_p.bind(
            *call.operands, call=call.closed, static_args=statics,
            in_tree=tree_util.tree_structure(arrays), out_tree=call.out_tree, **self._defined,
        )  # fmt: skip
        return call.results(outs)

    def _by_position(self, args: tuple, kwargs: dict) -> tuple:
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"keyword arguments could not be resolved to positions: {sorted(bound.kwargs)} of "
                f"{fun_name(self.fun)} have none."
            )
        return bound.args

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("fun", "_defined", "static_argnums"):
            raise AttributeError(name)
        return getattr(self.fun, name)
