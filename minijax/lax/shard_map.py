"""`shard_map`: a function of the parts of arrays, run on each device of a mesh.

The function is traced once, on types of parts; XLA runs it as a manual computation (Shardy's),
within which collectives name mesh axes. With `check_vma` types say over which axes a value varies,
so that what is the same everywhere is known to be: its cotangents are then summed over those axes,
and a result may be declared replicated.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, overload

import numpy as np

from minijax import tree_util
from minijax.arguments.functions import fun_name
from minijax.arrays.array import ArrayImpl
from minijax.arrays.dispatch import concrete, program_for
from minijax.config import local
from minijax.core.avals import abstract_token, get_aval
from minijax.core.caches import ProgramCache
from minijax.core.effects import NamedAxisEffect, is_impure, ordered
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, dce_jaxpr, eval_jaxpr, jaxprs_in_params
from minijax.core.primitive import Primitive
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import eval_trace, is_constant
from minijax.features.effects.kinds import on_each_device
from minijax.features.queries import is_ref
from minijax.features.sharding.constraints import with_types
from minijax.features.sharding.parts import part_aval, whole_aval
from minijax.features.sharding.shardy import sdy_sharding
from minijax.features.sharding.unreduced import sums_of
from minijax.lax import collective_lowering
from minijax.lax.arithmetic import div
from minijax.lax.device_values import DeviceValues
from minijax.lax.parallel import psum_p
from minijax.lax.shapes import reshape
from minijax.lax.spec_errors import (
    Specs,
    check_divisible,
    check_ranks,
    check_specs,
    not_replicated,
)
from minijax.lax.specs import (
    check_given_sums,
    check_sums,
    check_types,
    summands,
    typed_spec,
)
from minijax.lowering.types import physical
from minijax.runtime.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    PartitionSpec,
    axes_of,
    device_mesh,
    get_abstract_mesh,
)
from minijax.runtime.named_sharding import NamedSharding
from minijax.tracebacks import boundary
from minijax.transforms.batching import AxisData, batch_jaxpr
from minijax.transforms.call_rules import needed
from minijax.transforms.grad import as_result, check_callable
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.tangents import (
    Zero,
    is_undefined,
    kinds_of,
    spread_tangents,
    zero_tangent,
)
from minijax.transforms.tracing import any_constant, positional, trace_function
from minijax.transforms.transpose import transpose_jaxpr

__all__ = ["shard_map", "shard_map_p", "within_axes"]

_F = TypeVar("_F", bound=Callable[..., Any])

P = PartitionSpec

# Operands and results are whole arrays; `jaxpr` is on the parts that the specs say.
shard_map_p = Primitive("shard_map", multiple_results=True, holds_programs=True)


# -- specs -----------------------------------------------------------------------------------------


def within_axes(mesh: Any, manual: frozenset, check: bool) -> AbstractContextManager:
    """The axes of a mesh are named while the context lasts, and their types tracked if `check`."""
    varying = local.context.varying
    return named_axes(
        mesh, manual, varying=varying | manual if check else varying,
        mesh=with_types(mesh, manual, AxisType.Manual),
    )  # fmt: skip


@contextmanager
def named_axes(where: Any, manual: frozenset, **fields: Any):
    """The axes of a mesh are named while the context lasts; `fields` of it have other values."""
    context = local.context
    fields["axes"] = (*context.axes, *[pair for pair in where.shape_tuple if pair[0] in manual])
    saved = {name: getattr(context, name) for name in fields}

    def put(values):
        for name, value in values.items():
            setattr(context, name, value)
        context.refresh_key()

    put(fields)
    try:
        yield
    finally:
        put(saved)


# -- the primitive ---------------------------------------------------------------------------------


@shard_map_p.shape_rule
def _(*avals, jaxpr, mesh, out_specs, newly_manual_axes, check_vma, **params):
    return [
        whole_aval(aval, mesh, spec, newly_manual_axes, check_vma)
        for aval, spec in zip(jaxpr.out_avals, out_specs, strict=True)
    ]


@shard_map_p.impl
def _(*args, **params):
    """One program; its results lie as the specs say."""
    arrays = [concrete(x) for x in args]
    avals = tuple([x.aval for x in arrays])
    rest = tuple((name, value) for name, value in params.items() if name != "jaxpr")
    closed = params["jaxpr"].derive(
        ("eager", avals, rest, local.context.key),
        # On a copy: a program whose memo has one that refers to it would be a cycle.
        lambda: trace_to_jaxpr(
            lambda *xs: shard_map_p.bind(*xs, **{**params, "jaxpr": params["jaxpr"].replace()}),
            avals,
        ),
    )
    mesh, places = params["mesh"], None
    if isinstance(mesh, Mesh):
        places = tuple(
            [
                NamedSharding(mesh, spec if aval.explicit is None else aval.explicit.spec)
                for spec, aval in zip(params["out_specs"], closed.out_avals, strict=True)
            ]
        )
    with on_each_device():
        program = program_for(closed, "shard_map", arrays, keep_unused=True, out_shardings=places)
    return program(arrays)


@shard_map_p.effects_rule
def _(*, jaxpr, newly_manual_axes, **params):
    own = {NamedAxisEffect(name) for name in newly_manual_axes}
    return frozenset(effect for effect in jaxpr.effects if effect not in own)


@shard_map_p.lower
def _(b, *operands, jaxpr, mesh, in_specs, out_specs, newly_manual_axes, check_vma):
    outs = b.outs
    name = b.module.mesh_name(mesh)
    free = len(newly_manual_axes) < len(mesh.axis_names)

    effects = ordered(jaxpr.jaxpr.effects)  # their tokens go before all else, whole on every device
    threads = [abstract_token] * len(effects)

    def shown(specs, avals):
        parts = [
            _sdy(name, spec, physical(aval).ndim, free, mesh.axis_names)
            for spec, aval in zip(specs, avals, strict=True)
        ]
        return ", ".join([*[_sdy(name, PartitionSpec(), 0, False, ())] * len(effects), *parts])

    varying = local.context.varying
    varying = varying | newly_manual_axes if check_vma else varying

    def lowered(inner, *parts):
        # References that it makes are removed now: what that traces has the types of the program.
        with named_axes(mesh, newly_manual_axes, varying=varying):
            return inner.closed_jaxpr(jaxpr, *parts)

    def body(inner, *parts):
        inner.tokens.update(zip(effects, parts, strict=False))
        results = lowered(inner, *parts[len(effects) :])
        return [*(inner.tokens[e] for e in effects), *results]

    saved = b.module.manual
    b.module.manual = with_types(mesh, newly_manual_axes, AxisType.Manual)
    try:
        if len(b.module.devices) == mesh.size == 1:  # the whole is the part
            return lowered(b, *operands)
        made = collective_lowering.computation(
            b, [*(b.tokens[e] for e in effects), *operands], [*threads, *jaxpr.in_avals],
            [*threads, *outs], body,
            axes=[n for n in mesh.axis_names if n in newly_manual_axes],
            ins=shown(in_specs, [x.aval for x in operands]), whole=shown(out_specs, outs),
        )  # fmt: skip
    finally:
        b.module.manual = saved
    b.tokens.update(zip(effects, made, strict=False))
    return made[len(effects) :]


def _sdy(name: str, spec: PartitionSpec, ndim: int, free: bool, axes: Sequence[Any]) -> str:
    parts = [*spec.partitions, *[None] * (ndim - len(spec))]
    sums = [axis for axis in axes if axis in spec.unreduced]
    return sdy_sharding(name, parts, sums, open_=free)


def _rebind(args: Sequence[Any], params: dict, jaxpr: ClosedJaxpr, ins: Any, outs: Any) -> list:
    return shard_map_p.bind(
        *args, **{**params, "jaxpr": jaxpr, "in_specs": tuple(ins), "out_specs": tuple(outs)}
    )


def _inside(params: dict):
    return within_axes(params["mesh"], params["newly_manual_axes"], params["check_vma"])


def _where(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [item for item, flag in zip(items, flags, strict=True) if flag]


def _check_differentiable(jaxpr: ClosedJaxpr, check: bool) -> None:
    """ValueError where types that a library defined would hide over which axes values vary."""
    if check and jaxpr.derive("high types", lambda: _has_high_types(jaxpr.jaxpr)):
        raise ValueError(
            "shard_map with check_vma=True cannot differentiate a function with values of a type that "
            "a library defined: it does not say over which mesh axes they vary. Pass check_vma=False."
        )


def _has_high_types(jaxpr: Jaxpr) -> bool:
    return any(
        any(var.aval.is_high for var in eqn.outvars)
        or any(map(_has_high_types, jaxprs_in_params(eqn.params)))
        for eqn in jaxpr.eqns
    )


@shard_map_p.jvp
def _(primals, tangents, **params):
    jaxpr, ins, outs = params["jaxpr"], params["in_specs"], params["out_specs"]
    _check_differentiable(jaxpr, params["check_vma"])
    flags = [type(t) is not Zero for t in tangents]
    with _inside(params):
        made, out_flags = jvp_jaxpr(jaxpr, flags)
    results = _rebind(
        [*primals, *_where(tangents, flags)],
        params, made, [*ins, *_where(ins, flags)], [*outs, *_where(outs, out_flags)],
    )  # fmt: skip
    count = len(outs)
    avals = [get_aval(x) for x in results[:count]]
    return results[:count], spread_tangents(results[count:], out_flags, avals)


@shard_map_p.linearize
def _(trace, primals, tangents, **params):
    jaxpr, ins, outs = params["jaxpr"], params["in_specs"], params["out_specs"]
    _check_differentiable(jaxpr, params["check_vma"])
    flags = [type(t) is not Zero for t in tangents]
    with _inside(params):
        split = linearize_jaxpr(jaxpr, flags)
        primal, linear, extra = _with_ranks(split, len(outs))
    extra_specs = [_residual_spec(aval, params) for aval in extra]
    results = _rebind(primals, params, primal, ins, [*outs, *extra_specs])
    count = len(outs)
    residuals = split.residuals(primals, results[count:])
    specs = split.residuals(ins, extra_specs)
    out = []
    if linear.out_avals:
        out = trace.record(
            shard_map_p,
            [*residuals, *_where(tangents, flags)],
            {
                **params,
                "jaxpr": linear,
                "in_specs": (*specs, *_where(ins, flags)),
                "out_specs": tuple(_where(outs, split.out_nonzeros)),
            },
        )
    avals = [get_aval(x) for x in results[:count]]
    return results[:count], spread_tangents(out, split.out_nonzeros, avals)


def _residual_spec(aval: Any, params: dict) -> PartitionSpec:
    """Residuals are as many as the devices among which they may differ, one after the other."""
    manual, reduced = params["newly_manual_axes"], frozenset()
    axes = manual
    if params["check_vma"]:
        unreduced, reduced = sums_of(aval)
        axes, reduced = (aval.vma | unreduced) & manual, reduced & manual
    return P(tuple(name for name in params["mesh"].axis_names if name in axes), reduced=reduced)


def _with_ranks(split: Any, count: int) -> tuple[ClosedJaxpr, ClosedJaxpr, list[Any]]:
    """The programs of a split, with residuals that are scalars passed as vectors of one element."""
    extra = split.primal.out_avals[count:]
    sources = split.residual_sources
    first = len(split.primal.in_avals)
    scalar = [index >= first and not extra[index - first].shape for index in sources]

    def primal(*args):
        outs = eval_jaxpr(split.primal.jaxpr, split.primal.consts, *args)
        return [*outs[:count], *(x if get_aval(x).ndim else reshape(x, (1,)) for x in outs[count:])]

    def linear(*args):
        residuals = [reshape(x, ()) if s else x for x, s in zip(args, scalar, strict=False)]
        return eval_jaxpr(split.linear.jaxpr, split.linear.consts, *residuals, *args[len(scalar) :])

    avals = [
        aval.update(shape=(1,)) if index < len(scalar) and scalar[index] else aval
        for index, aval in enumerate(split.linear.in_avals)
    ]
    made = trace_to_jaxpr(primal, split.primal.in_avals, split.primal.jaxpr.debug_info)
    return made, trace_to_jaxpr(linear, avals), made.out_avals[count:]


@shard_map_p.partial_eval
def _(trace, args, params):
    return trace.record(shard_map_p, args, params)


@shard_map_p.transpose
def _(cts, *args, **params):
    jaxpr, ins, outs = params["jaxpr"], params["in_specs"], params["out_specs"]
    linear = [is_undefined(a) for a in args]
    known = [not lin for lin in linear]
    flags = kinds_of(cts)
    with _inside(params):
        made, out_flags = transpose_jaxpr(jaxpr, linear, flags)
        back = _adjusted(made, params, known, flags, linear, out_flags)
    given = [*_where(args, known), *_where(cts, flags)]
    in_specs = [*_where(ins, known), *[spec.to_ct_spec() for spec in _where(outs, flags)]]
    out_specs = [spec.to_ct_spec() for spec in _where(_where(ins, linear), out_flags)]
    (back,), operands = needed((back,), list(zip(given, in_specs, strict=True)))
    given, in_specs = [x for x, _ in operands], [spec for _, spec in operands]
    results = iter(_rebind(given, params, back, in_specs, out_specs))
    avals = [a.aval for a in args if is_undefined(a)]
    found = iter(
        [next(results) if f else zero_tangent(a) for f, a in zip(out_flags, avals, strict=True)]
    )
    return [next(found) if lin else None for lin in linear]


def _adjusted(made, params, known, flags, linear, out_flags) -> ClosedJaxpr:
    """The transposed program between cotangents as the specs lay them out.

    A result that is the same over an axis over which its spec splits it was repeated: its
    cotangents are summed. Where types do not say what varies, a cotangent of a result that a spec
    declares replicated is shared among the devices, and those of an operand are summed.
    """
    jaxpr, mesh, manual = params["jaxpr"], params["mesh"], params["newly_manual_axes"]
    outs, ins, check = params["out_specs"], params["in_specs"], params["check_vma"]
    kept = sum(known)
    sizes = mesh.shape

    def unnamed(spec):
        return tuple(name for name in mesh.axis_names if name in manual - spec.split_axes)

    def before(ct, spec, aval):
        if check:
            repeated = tuple(name for name in mesh.axis_names if name in spec.split_axes - aval.vma)
            return psum_p.bind(ct, axes=repeated, axis_index_groups=None) if repeated else ct
        share = int(np.prod([sizes[name] for name in unnamed(spec)]))
        return ct if share == 1 else div(ct, np.asarray(share, get_aval(ct).dtype)[()])

    def after(ct, spec):
        names = () if check else unnamed(spec)
        return psum_p.bind(ct, axes=names, axis_index_groups=None) if names else ct

    def fun(*args):
        pairs = zip(args[kept:], _where(outs, flags), _where(jaxpr.out_avals, flags), strict=True)
        cts = [before(*pair) for pair in pairs]
        results = eval_jaxpr(made.jaxpr, made.consts, *args[:kept], *cts)
        places = _where(_where(ins, linear), out_flags)
        return [after(ct, spec) for ct, spec in zip(results, places, strict=True)]

    avals = list(made.in_avals)
    if check:
        specs = _where(outs, flags)
        avals[kept:] = [
            aval.update(vma=aval.vma | spec.split_axes)
            for aval, spec in zip(avals[kept:], specs, strict=True)
        ]
    return trace_to_jaxpr(fun, avals)


@shard_map_p.dce
def _(used, eqn):
    if not any(used) and not is_impure(eqn.effects):
        return [False] * len(eqn.invars), None
    jaxpr = eqn.params["jaxpr"]

    def make():
        made, ins = dce_jaxpr(jaxpr.jaxpr, used)
        return ClosedJaxpr(made, jaxpr.consts), ins

    made, ins = jaxpr.derive(("dce", tuple(used)), make)
    params = {
        **eqn.params,
        "jaxpr": made,
        "in_specs": tuple(_where(eqn.params["in_specs"], ins)),
        "out_specs": tuple(_where(eqn.params["out_specs"], used)),
    }
    invars, outvars = _where(eqn.invars, ins), _where(eqn.outvars, used)
    return ins, eqn.replace(invars=invars, outvars=outvars, params=params)


@shard_map_p.batch_axis
def _(axis, args, dims, **params):
    """The mapped dimension is not split, or over `spmd_axis_name`, where that is manual."""
    jaxpr, names = params["jaxpr"], axes_of(axis.spmd_name)
    if not params["newly_manual_axes"].issuperset(names):
        names = ()
    with _inside(params):
        if names:
            if any(not spec.split_axes.isdisjoint(names) for spec in params["in_specs"]):
                raise ValueError(
                    "vmap spmd_axis_name cannot appear in shard_map in_specs: got "
                    f"{axis.spmd_name!r} and {params['in_specs']}"
                )
            pieces = math.prod(params["mesh"].shape[name] for name in names)
            if axis.size % pieces:
                raise ValueError(
                    f"a mapped axis of size {axis.size} cannot be split over {axis.spmd_name!r} of "
                    f"size {pieces}, which vmap was given as spmd_axis_name of shard_map."
                )
            axis = AxisData(axis.name, axis.size // pieces, split=axis.split)
            if params["check_vma"]:
                key = ("vary", names, tuple(dims))
                jaxpr = jaxpr.derive(key, lambda: _varying(params["jaxpr"], names, dims))
        made, out_dims = batch_jaxpr(jaxpr, axis, dims)
    part = names or None
    ins = [_with_dim(*pair, part) for pair in zip(params["in_specs"], dims, strict=True)]
    outs = [_with_dim(*pair, part) for pair in zip(params["out_specs"], out_dims, strict=True)]
    return _rebind(args, params, made, ins, outs), out_dims


def _varying(jaxpr: ClosedJaxpr, names: tuple, dims: Sequence[int | None]) -> ClosedJaxpr:
    """The program of arguments of which those that are mapped vary over more mesh axes."""
    avals = [
        aval if dim is None else aval.update(vma=aval.vma.union(names))
        for aval, dim in zip(jaxpr.in_avals, dims, strict=True)
    ]
    run = lambda *xs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *xs)
    return trace_to_jaxpr(run, avals, jaxpr.jaxpr.debug_info)


def _with_dim(spec: PartitionSpec, dim: int | None, part: Any) -> PartitionSpec:
    if dim is None or (dim > len(spec) and part is None):
        return spec
    parts = [*spec.partitions, *[None] * (dim - len(spec))]
    return spec.update(partitions=(*parts[:dim], part, *parts[dim:]))


# -- the function ----------------------------------------------------------------------------------


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec) or _is_opaque_spec(x)


def _is_opaque_spec(x: Any) -> bool:
    """Whether it is the spec of a value that is no array, and says what those of its arrays are."""
    return hasattr(x, "to_lo")


def _flat_specs(what: str, given: Any, tree: Any) -> list[PartitionSpec]:
    """One spec or None for each leaf, from a tree of them that is a prefix."""
    return tree_util.spread_prefix(f"shard_map {what}", given, tree, _is_spec)


def _out_specs(specs: Any, tree: Any) -> list[PartitionSpec]:
    found = _flat_specs("out_specs", specs, tree)
    if any(spec is None for spec in found):
        raise ValueError(
            f"pytree structure error: different types at key path\n    shard_map out_specs\nThe specs "
            f"{specs} have a None, which stands for no array, where the result has one: its tree is {tree}. "
            "Write P() for an array that is not split."
        )
    return found


def chosen_mesh(mesh: Any) -> Any:
    found = mesh
    if found is None:
        found = device_mesh() if local.context.trace.eager else get_abstract_mesh()
        found = get_abstract_mesh() if found.empty else found
    if not isinstance(found, (Mesh, AbstractMesh)):
        raise TypeError(
            "shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` instance for its "
            f"second argument, but got {found} of type {type(found)}."
        )
    if found.empty:
        raise ValueError(
            "The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to set one, or pass "
            "mesh= to shard_map."
        )
    context = found if mesh is None else get_abstract_mesh()
    if not context.empty and _axes(context) != _axes(found):
        raise ValueError(
            f"The context mesh {context} should match the mesh passed to shard_map {found}. Leave "
            "mesh= out: it is then the context mesh."
        )
    return found


def _axes(mesh: Any) -> tuple:
    return mesh.shape_tuple, mesh.axis_types


class _Infer:
    """Stands where specs or axes are to be read off the types of the arguments."""

    def __repr__(self) -> str:
        return "Infer"


Infer = _Infer()


@overload
def shard_map(
    f: _F,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: AbstractSet[Hashable] = frozenset(),
    check_vma: bool = True,
) -> _F: ...
@overload
def shard_map(
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: AbstractSet[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Callable[[_F], _F]: ...
@boundary
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Any = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Map a function over parts of its arguments, one on each device of a mesh.

    - `in_specs`, `out_specs`: `PartitionSpec`s, or prefixes of the pytrees: mesh axes that split
      each dimension of the shapes; `P()` for what every device has whole. `f` gets arguments
      whose spec is None, which may be any objects, as they are
    - `mesh`: mesh, by default the one in force; `axis_names`: axes that `f` sees, by default all
    - `check_vma`: whether to track which values vary over which axes

    Without `f` it is a decorator. ValueError for a dimension that is not divisible, or a replicated
    result that may differ. Source: Shardy's `sdy.manual_computation`.

    >>> mesh = jax.make_mesh((1,), ("i",), (jax.sharding.AxisType.Auto,))
    >>> specs = {"in_specs": jax.P("i"), "out_specs": jax.P()}
    >>> jax.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, **specs)(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names,
            check_vma=check_vma,
        )  # fmt: skip
    if not callable(f):
        raise TypeError(
            f"shard_map requires a callable for its first argument, but got {f} of type {type(f)}."
        )
    check_callable(f)
    traces = ProgramCache()
    on_values: dict[Any, Callable] = {}  # where references are given

    @boundary
    def mapped(*args):
        where = chosen_mesh(mesh)
        manual = frozenset(axis_names) or frozenset(where.axis_names)
        if not manual.issubset(where.axis_names):
            names = frozenset(where.axis_names)
            raise ValueError(
                f"jax.shard_map requires axis_names={manual} to be a subset of "
                f"mesh.axis_names={names}"
            )
        manual -= frozenset(where.manual_axes)  # of a shard_map around this one
        if not callable(out_specs):
            check_specs("out_specs", out_specs, _is_spec, manual)
        leaves, in_tree = tree_util.flatten(args)
        if isinstance(where, AbstractMesh) and local.context.trace.eager:
            _check_on_devices(leaves, where)
        if in_specs is Infer or (in_specs is None and manual.isdisjoint(where.auto_axes)):
            _check_inferable(f, where, manual)
            avals = tuple([get_aval(x) for x in leaves])
            ins = [typed_spec(a) for a in avals]
        else:
            given = tuple(in_specs) if isinstance(in_specs, list) else in_specs
            check_specs("in_specs", given, _is_spec, manual)
            ins = _flat_specs("in_specs", given, in_tree)
            others = [(n, x) for n, x in enumerate(leaves) if type(x) is not ArrayImpl]
            refs = tuple([n for n, x in others if is_ref(getattr(x, "aval", None))])
            if refs:
                key = (where, manual, in_tree, tuple(ins), refs)
                if key not in on_values:
                    last = tuple([P() if ins[n] is None else ins[n] for n in refs])
                    on_values[key] = shard_map(
                        _with_values(f, in_tree, refs), mesh=where, in_specs=tuple(ins),
                        out_specs=(out_specs, last), axis_names=manual, check_vma=check_vma,
                    )  # fmt: skip
                values = [x[...] if n in refs else x for n, x in enumerate(leaves)]
                out, values = on_values[key](*values)
                for n, value in zip(refs, values, strict=True):
                    leaves[n][...] = value
                return out
            if None in ins:
                part, leaves = _with_closed_over(f, in_tree, leaves, ins)
                ins = tuple([spec for spec in ins if spec is not None])
                return shard_map(
                    part, mesh=where, in_specs=ins, out_specs=out_specs, axis_names=manual,
                    check_vma=check_vma,
                )(*leaves)  # fmt: skip
            avals = tuple([get_aval(x) for x in leaves])
            specs = Specs("in_specs", given, in_tree, ins, avals, _is_spec)
            check_ranks(specs, f)
            check_divisible(specs, f, where)
            for _, spec, _ in specs.of_arrays():
                NamedSharding(where, spec)  # each axis at most once
            check_types(where, manual, *_of_arrays(ins, avals))
        if not isinstance(axis_names, (set, frozenset)):
            raise TypeError(
                "`axis_names` argument of shard_map should be of type `frozenset` or `set`. Got type: "
                f"{type(axis_names)}"
            )
        check_given_sums(where, manual, *_of_arrays(ins, avals), check_vma)
        key = (where, manual, in_tree, tuple(ins), avals)
        found = traces.get(key)
        if found is None:
            given = () if callable(out_specs) else tree_util.flatten(out_specs, _is_spec)[0]
            given = [spec for spec in given if not _is_opaque_spec(spec)]
            check_sums("out_specs", where, manual, given)
            values = _device_values(where, manual, ins, leaves, check_vma)
            found = _traced(f, where, manual, check_vma, in_tree, ins, avals, out_specs, values)
            if not found[1] and not (values and values.used):
                traces[key] = found
        jaxpr, consts, outs, out_tree = found
        results = shard_map_p.bind(
            *consts, *leaves,
            check_vma=check_vma, in_specs=(*[P()] * len(consts), *ins), jaxpr=jaxpr, mesh=where,
            newly_manual_axes=manual, out_specs=tuple(outs),
        )  # fmt: skip
        return out_tree.unflatten([as_result(x) for x in results])

    try:
        return functools.wraps(f)(mapped)
    except Exception:
        return mapped


def _check_on_devices(leaves: Sequence[Any], mesh: Any) -> None:
    """ValueError unless the mesh in force or an argument says on which devices a program runs."""
    own = [getattr(x, "sharding", None) for x in leaves]
    if device_mesh().empty and not any(isinstance(where, NamedSharding) for where in own):
        raise ValueError(
            "Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` when passing "
            "`AbstractMesh` to the mesh argument."
        )
    for x, where in zip(leaves, own, strict=True):
        if isinstance(where, NamedSharding) and where.mesh.shape_tuple != mesh.shape_tuple:
            raise ValueError(
                f"Mesh shape of the input {where.mesh.shape_tuple} does not match the mesh shape "
                f"passed to shard_map  {mesh.shape_tuple} for shape {get_aval(x).str_short()}"
            )


def _with_values(f: Callable, in_tree: Any, refs: Sequence[int]) -> Callable:
    """`f` of values in the places of references, of which it also gives what they hold at the end."""

    from minijax.lax.refs import new_ref  # the package works without references

    @functools.wraps(f, updated=())
    def part(*parts):
        cells = {n: new_ref(parts[n]) for n in refs}
        out = f(*in_tree.unflatten([cells.get(n, x) for n, x in enumerate(parts)]))
        return out, tuple([cell[...] for cell in cells.values()])

    return part


def _with_closed_over(
    f: Callable, in_tree: Any, leaves: Sequence[Any], ins: Sequence[Any]
) -> tuple:
    """`f` of those leaves that have a spec, and these; it gets the others as they are."""

    @functools.wraps(f, updated=())
    def part(*mapped):
        rest = iter(mapped)
        pairs = zip(leaves, ins, strict=True)
        return f(*in_tree.unflatten([x if s is None else next(rest) for x, s in pairs]))

    return part, [x for x, s in zip(leaves, ins, strict=True) if s is not None]


def _check_inferable(f: Callable, mesh: Any, manual: frozenset) -> None:
    """TypeError where types do not say how the arguments are split."""
    hidden = [name for name in mesh.auto_axes if name in manual]
    if hidden:
        raise TypeError(
            "shard_map in_specs argument must be a pytree of `jax.sharding.PartitionSpec` instances, "
            f"but it was not given for {fun_name(f)}, and the axes {hidden} of the mesh are of type "
            "AxisType.Auto, of which types say nothing: give in_specs, or make the axes Explicit."
        )


def _of_arrays(specs: Sequence[Any], avals: Sequence[Any]) -> tuple[list, list]:
    """The specs and types of what is an array, and no value of a library's type."""
    pairs = [(s, a) for s, a in zip(specs, avals, strict=True) if not a.is_high]
    return [s for s, _ in pairs], [a for _, a in pairs]


def _device_values(mesh, manual, ins, leaves, check) -> DeviceValues | None:
    """Return the values that tracers know where nothing else is being traced or compiled."""
    if (
        local.context.trace is not eval_trace
        or not isinstance(mesh, Mesh)
        or not manual.issuperset(mesh.axis_names)
        or any(not is_constant(x) for x in leaves)
    ):
        return None

    def run(part, out_specs):
        return shard_map(part, mesh=mesh, in_specs=tuple(ins), out_specs=out_specs, check_vma=check)

    return DeviceValues(mesh, leaves, run)


def _traced(f, mesh, manual, check, in_tree, ins, avals, out_specs, values) -> tuple:
    def wrap(run, trees):
        def flat(*parts):
            outs = run(*parts)
            if callable(out_specs) or not check:
                return outs
            specs = _out_specs(out_specs, trees[-1])
            if any(map(_is_opaque_spec, specs)):
                return outs
            return summands(outs, specs)

        return flat

    parts = [
        part_aval(aval, mesh, spec, manual, check) for aval, spec in zip(avals, ins, strict=True)
    ]
    with within_axes(mesh, manual, check):
        traced = trace_function(
            "shard_map", f, positional(in_tree.children()), parts,
            wrap=wrap, hoisted=any_constant, values=values,
        )  # fmt: skip
    closed, consts, out_tree = traced.closed, traced.consts, traced.out_tree
    if callable(out_specs):  # pmap knows them once the function has been traced
        out_specs = out_specs()
    outs = _out_specs(out_specs, out_tree)
    specs = Specs("out_specs", out_specs, out_tree, outs, closed.out_avals, _is_spec)
    check_ranks(specs, f)
    for _, spec, _ in specs.of_arrays():
        NamedSharding(mesh, spec)
    if check:
        _check_replicated(f, mesh, manual, specs)
    return closed, consts, outs, out_tree


def _check_replicated(f, mesh, manual, specs: Specs) -> None:
    """ValueError for results that may differ between devices where their specs say they do not."""
    found = []
    for index, spec, aval in specs.of_arrays():
        unreduced, reduced = sums_of(aval)
        if spec.reduced - reduced:
            raise ValueError(
                "out_specs passed to shard_map should be equal to the reduced present on the "
                f"out_aval. Got out_specs={spec} and out_aval={aval.str_short(True)}: cast the "
                "result with lax.pcast(x, axes, to='reduced')."
            )
        unsaid = (aval.vma & manual) - spec.split_axes
        if unsaid or unreduced - spec.unreduced or reduced - spec.reduced:
            found.append((index, (aval.vma & manual) | unreduced | reduced))
    if found:
        raise not_replicated(specs, f, mesh, found)
