"""Sharding constraints: where an intermediate value is to lie.

A constraint is the identity; XLA's partitioner (Shardy) splits the value as it says. Applied to a
concrete array it moves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from minijax import tree_util
from minijax.arrays.array import as_array
from minijax.arrays.dispatch import run_primitive
from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.primitive import Primitive
from minijax.core.trace import Tracer, eval_trace
from minijax.features.sharding.layouts import in_shape_rule, set_layout
from minijax.features.sharding.memory import MemorySpace
from minijax.features.sharding.memory_layouts import check_layout, layout_constraint_p, layout_of
from minijax.features.sharding.sharding_rules import parts_of
from minijax.features.sharding.transfer import device_put, put_array
from minijax.features.sharding.types import check_manual, check_size, explicit_of, space_of_type
from minijax.features.sharding.unreduced import NO_SUMS, sums_of
from minijax.runtime.layouts import AutoLayout, Format, Layout, sharding_in
from minijax.runtime.mesh import (
    UNCONSTRAINED,
    AbstractMesh,
    AxisType,
    Mesh,
    PartitionSpec,
    axes_of,
    get_abstract_mesh,
    mesh_of,
)
from minijax.runtime.named_sharding import (
    NamedSharding,
    check_not_empty,
    check_rank,
    no_sharding,
    sharding_of,
    sums_open,
)
from minijax.runtime.sharding import Sharding

__all__ = [
    "constrained", "hidden", "reduced_as", "reshard_p", "retyped", "sharding_constraint_p",
    "with_types", "with_sharding_constraint",
]  # fmt: skip

_T = TypeVar("_T")

sharding_constraint_p = Primitive("sharding_constraint")
set_layout(sharding_constraint_p, parts=in_shape_rule)


@sharding_constraint_p.shape_rule
def _(x, *, sharding):
    """Over explicit axes the type is what was asked for; its own where that is left open."""
    if not isinstance(sharding, NamedSharding) or not sharding.mesh.explicit_axes:
        return x
    asked = [*sharding.spec.partitions, *[None] * (x.ndim - len(sharding.spec))]
    pairs = zip(asked, parts_of(x), strict=True)
    return x.update(
        sharding=sharding.with_parts(
            [own if part is UNCONSTRAINED else part for part, own in pairs]
        )
    )


@sharding_constraint_p.impl
def _(x, *, sharding):
    if isinstance(sharding, NamedSharding) and UNCONSTRAINED in sharding.spec.partitions:
        x = as_array(x)
        mesh = mesh_of(sharding.mesh, x.sharding._device_assignment)
        params = {"sharding": NamedSharding(mesh, sharding.spec)}
        return run_primitive(eval_trace, sharding_constraint_p, (x,), params, use_impl=False)
    array = as_array(x)
    own, mesh = array.sharding, getattr(sharding, "mesh", None)
    if (
        array.committed
        and not isinstance(mesh, AbstractMesh)  # it stands for that of the array, or in force
        and tuple(own._device_assignment) != tuple(sharding._device_assignment)
    ):
        raise ValueError(
            "Received incompatible devices for jitted computation. Got argument x of "
            f"with_sharding_constraint with {own} and a target sharding {sharding}. Move it with "
            "minijax.device_put(x, sharding)."
        )
    return put_array(array, Format(None, sharding), copy=array is x)


@sharding_constraint_p.jvp
def _(primals, tangents, *, sharding):
    (x,), (t,) = primals, tangents
    return sharding_constraint_p.bind(x, sharding=sharding), constrained(t, sharding)


@sharding_constraint_p.transpose
def _(ct, x, *, sharding):
    return [constrained(ct, sharding)]


@sharding_constraint_p.batch_axis
def _(axis, args, dims, *, sharding):
    """The mapped dimension is split over `spmd_axis_name`, or as XLA likes."""
    (x,), (dim,) = args, dims
    if not isinstance(sharding, NamedSharding):
        return sharding_constraint_p.bind(x, sharding=sharding), dim
    parts = [*sharding.spec.partitions, *[None] * (x.ndim - 1 - len(sharding.spec))]
    if axis.spmd_name is None:
        open_ = UNCONSTRAINED if sharding.mesh.auto_axes else parts_of(get_aval(x))[dim]
        parts.insert(dim, open_)
    else:
        if not sharding.spec.split_axes.isdisjoint(axes_of(axis.spmd_name)):
            raise ValueError(
                f"vmap spmd_axis_name {axes_of(axis.spmd_name)} cannot appear in "
                f"with_sharding_constraint spec, but got spec {sharding.spec}"
            )
        parts.insert(dim, axis.spmd_name)
    sharding = NamedSharding(sharding.mesh, sharding.spec.update(partitions=parts))
    return sharding_constraint_p.bind(x, sharding=sharding), dim


@sharding_constraint_p.lower
def _(b, x, *, sharding):
    if not isinstance(sharding, NamedSharding):
        return x
    if b.module.manual and sharding.mesh.axis_sizes == b.module.manual.axis_sizes:
        # Over the same devices under other names.
        names = dict(zip(sharding.mesh.axis_names, b.module.manual.axis_names, strict=True))
        _check_not_manual(sharding.spec, b.module.manual, names)
    return b.split(x, sharding)


def _check_not_manual(spec: Any, mesh: Any, names: dict[Any, Any]) -> None:
    """ValueError if a spec splits over manual axes of a mesh, which has these names for its axes."""
    if manual := tuple(names[a] for a in spec.split_axes if names[a] in mesh.manual_axes):
        raise ValueError(
            f"pspec {spec} contains a manual axes {manual} of mesh which is not allowed. If you "
            "are using a with_sharding_constraint under a shard_map, only use the mesh axis in "
            "PartitionSpec which are not manual."
        )


def constrained(x: Any, sharding: Any) -> Any:
    """`x` with a constraint; None asks for none, and what has no elements that matter needs none.

    Over explicit axes it is split as asked.
    """
    if sharding is None or not hasattr(get_aval(x), "shape") or get_aval(x).dtype.kind == "V":
        return x
    if isinstance(sharding, NamedSharding) and sharding.mesh.are_all_axes_explicit:
        if sharding.explicit_part(np.ndim(x)) != explicit_of(get_aval(x)):
            return reshard_p.bind(x, dst_sharding=sharding, free=False)
    return sharding_constraint_p.bind(x, sharding=sharding)


def _asked(x: Any, sharding: Any) -> Any:
    """`x` constrained as a user asks: over the axes that its type leaves open, and in a layout."""
    if isinstance(sharding, Format):
        what, layout = "with_sharding_constraint arguments", sharding.layout
        if isinstance(layout, AutoLayout):
            raise ValueError(
                f"One of {what} has layout AUTO: a value within a program lies as XLA likes unless a "
                "Layout is given."
            )
        check_layout(what, layout, np.shape(x))
        return layout_constraint_p.bind(_asked(x, sharding.sharding), layout=layout)
    if not isinstance(sharding, NamedSharding) or not hasattr(get_aval(x), "shape"):
        return constrained(x, sharding)
    check_rank("with_sharding_constraint arguments", sharding, np.ndim(x))
    mesh, around = sharding.mesh, get_abstract_mesh()
    check_manual(get_aval(x), sharding)
    in_force = around.shape_tuple == mesh.shape_tuple
    _check_auto(sharding, around, sharding.spec.split_axes.intersection(around.manual_axes))
    if in_force and mesh.are_all_axes_explicit:
        return _asserted(x, sharding)
    _check_auto(sharding, mesh, sharding.explicit_part(np.ndim(x)) is not None)
    if isinstance(x, Tracer):
        return sharding_constraint_p.bind(x, sharding=_beside(sharding, parts_of(get_aval(x))))
    own = getattr(x, "sharding", None)
    if in_force or not isinstance(mesh, AbstractMesh):
        return sharding_constraint_p.bind(x, sharding=sharding)
    if own is None:
        raise ValueError(
            "Target sharding contains a `jax.sharding.AbstractMesh` which requires the input passed "
            f"should be a `jax.Array`. Got {type(x)} with shape {get_aval(x).str_short()}: put it "
            "there with minijax.device_put first."
        )
    if not isinstance(own, NamedSharding):
        raise TypeError(
            "The sharding on the input must be a `NamedSharding` since the target sharding has an "
            f"`AbstractMesh` in it. Got sharding type {type(own)} for shape "
            f"{get_aval(x).str_short()}: put it there with minijax.device_put first, or set a mesh "
            "of devices with minijax.set_mesh."
        )
    if own.mesh.shape_tuple == mesh.shape_tuple:
        sharding = NamedSharding(own.mesh, sharding.spec)
    return sharding_constraint_p.bind(x, sharding=sharding)


def _check_auto(sharding: NamedSharding, mesh: Any, wrong: Any) -> None:
    if wrong:
        raise ValueError(
            "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto "
            f"axes of the mesh. Got spec={sharding.spec} and mesh={mesh}. You probably meant to "
            "use the `reshard` API; over axes that a shard_map splits leave it out."
        )


def _beside(sharding: NamedSharding, parts: Sequence[Any]) -> NamedSharding:
    """Return a sharding with the dimensions that the type says are split left as they are."""
    spec = [*sharding.spec.partitions, *[None] * (len(parts) - len(sharding.spec))]
    return sharding.with_spec([a if p is None else p for a, p in zip(spec, parts, strict=False)])


def _asserted(x: Any, sharding: NamedSharding) -> Any:
    """Over explicit axes the type says already where a value lies: AssertionError if elsewhere."""
    aval = get_aval(x)
    if sharding.explicit_part(aval.ndim) != aval.explicit:
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type "
            f"`Explicit`. The array sharding: {aval.sharding.spec} did not match the sharding "
            f"provided: {sharding.spec}. Please use `jax.sharding.reshard` to shard your input "
            "to the sharding you want."
        )
    return x


# -- types that say it -----------------------------------------------------------------------------

# The operand with the type that `dst_sharding` gives it; `free` says that its own type does not
# tell how it is split, since that is left to XLA.
reshard_p = Primitive("reshard")
reshard_p.printed = lambda params: {}
set_layout(reshard_p, parts=in_shape_rule)


@reshard_p.shape_rule
def _(x, *, dst_sharding, free):
    typed = x.update(sharding=dst_sharding)
    dst_sharding.shard_shape(x.shape)
    given, wanted = sums_of(x)[0], dst_sharding.spec.unreduced
    if dst_sharding.mesh.manual_axes and sums_of(x) != (wanted, dst_sharding.spec.reduced):
        raise NotImplementedError(
            f"reshard from {x.str_short()} to {dst_sharding.spec} within shard_map: change what types "
            "say of manual mesh axes with lax.pcast, and take sums with lax.psum."
        )
    if given - wanted and wanted - given:
        raise NotImplementedError(
            f"reshard from {x.str_short()} to {dst_sharding.spec}: XLA cannot take the sum over some "
            "mesh axes and leave it over others at once. Reshard to P(...) without unreduced first."
        )
    return typed


@reshard_p.impl
def _(x, *, dst_sharding, free):
    x = as_array(x)
    mesh, own = dst_sharding.mesh, x.signature.sharding
    if (
        isinstance(mesh, Mesh)
        and x.committed
        and own._device_assignment != tuple(mesh.devices.flat)
    ):
        places = [
            [d.id for d in devices] for devices in (own._device_assignment, mesh.devices.flat)
        ]
        platform = mesh.devices.flat[0].platform.upper()
        raise ValueError(
            "Received incompatible devices for jitted computation. Got argument args[0] of reshard "
            f"with shape {x.aval.str_short()} and with device ids {places[0]} on platform {platform} "
            f"and jit's context mesh with device ids {places[1]} on platform {platform}. Move it with "
            "minijax.device_put(x, sharding)."
        )
    if isinstance(own, NamedSharding) and own.mesh.shape_tuple == mesh.shape_tuple:
        mesh = own.mesh.update(axis_types=mesh.axis_types)
    spec = dst_sharding.spec
    parts = [*spec.partitions, *[None] * (x.ndim - len(spec))]
    mesh = mesh_of(mesh, own._device_assignment)
    where = NamedSharding(mesh, spec.update(partitions=parts))
    if not isinstance(mesh, Mesh):
        check_size(x.aval.update(sharding=where), own._device_assignment, mesh)
    if (
        sums_open(where) and getattr(own, "mesh", None) != where.mesh
    ):  # the results are over one mesh
        over = own.device_set == where.device_set and isinstance(own, NamedSharding)
        x = put_array(x, where.with_spec(list(own.spec.partitions) if over else []))
    if sums_open(where) or sums_open(own):
        params = {"dst_sharding": where, "free": False}
        return run_primitive(eval_trace, reshard_p, (x,), params, use_impl=False)
    return put_array(x, where)


@reshard_p.jvp
def _(primals, tangents, **params):
    (x,), (t,) = primals, tangents
    return reshard_p.bind(x, **params), reshard_p.bind(t, **params)


@reshard_p.transpose
def _(ct, x, *, dst_sharding, free):
    own = x.aval.to_cotangent_aval().explicit
    if own is not None:
        hides = not dst_sharding.mesh.explicit_axes
        return [reshard_p.bind(ct, dst_sharding=own, free=hides)]
    if free:
        return [hidden(ct, dst_sharding.mesh.axis_names)]
    whole = NamedSharding(dst_sharding.mesh.abstract_mesh, PartitionSpec())  # where it lies already
    return [reshard_p.bind(ct, dst_sharding=whole, free=False)]


@reshard_p.batch_axis
def _(axis, args, dims, *, dst_sharding, free):
    """The mapped dimension is split as that of the arguments of `vmap`."""
    (x,), (dim,) = args, dims
    parts = [*dst_sharding.spec.partitions, *[None] * (x.ndim - 1 - len(dst_sharding.spec))]
    parts.insert(dim, axis.split)
    return reshard_p.bind(x, dst_sharding=dst_sharding.with_parts(parts), free=free), dim


@reshard_p.lower
def _(b, x, *, dst_sharding, free):
    if len(b.module.devices) == 1 or b.module.manual:
        return x
    return b.summands(x, dst_sharding) if dst_sharding.spec.unreduced else b.split(x, dst_sharding)


def retyped(x: Any, aval: Any) -> Any:
    """A cotangent, in the memory and split as the type of its primal says; it itself if it is."""
    space = space_of_type(aval)
    if space_of_type(get_aval(x)) is not space:
        x = device_put(x, space)
    found, wanted = explicit_of(get_aval(x)), explicit_of(aval)
    if wanted is not None and wanted.spec.sums:
        wanted = aval.to_cotangent_aval().explicit
    if found is wanted or found == wanted or get_aval(x).shape != aval.shape:
        return x
    if wanted is None:
        wanted = found.with_spec([])
    return reshard_p.bind(x, dst_sharding=wanted, free=False)


def adds_in_place(aval: Any) -> bool:
    """Whether a type says neither how an array is split nor that it is in the host's memory."""
    return explicit_of(aval) is None and space_of_type(aval) is not MemorySpace.Host


def reduced_as(x: Any, other: Any) -> Any:
    """A scalar beside a tangent or cotangent: reduced over the axes over which that is or was summed."""
    where = explicit_of(get_aval(other))
    if where is None or not where.spec.sums or np.ndim(x) or sums_of(get_aval(x)) != NO_SUMS:
        return x
    spec = PartitionSpec(reduced=where.spec.unreduced | where.spec.reduced)
    return reshard_p.bind(x, dst_sharding=where.with_spec(spec), free=False)


def hidden(x: Any, axes: Sequence[Any]) -> Any:
    """`x` as it lies, with a type that does not say how it is split over some axes."""
    explicit = explicit_of(get_aval(x))
    if explicit is None:
        return x
    mesh, spec = with_types(explicit.mesh, axes, AxisType.Auto), explicit.spec
    if spec.sums:  # those are taken: what is left to XLA is a whole value
        spec = spec.update(
            unreduced=spec.unreduced.difference(axes), reduced=spec.reduced.difference(axes)
        )
    return reshard_p.bind(x, dst_sharding=NamedSharding(mesh, spec), free=False)


def _is_of_type(x: Any, aval: Any) -> bool:
    """Whether a tangent or cotangent is split as its type is, or may be split so.

    What is no array may, and what is not split where no mesh is in force.
    """
    found = get_aval(x)
    if not isinstance(x, Array) or (explicit_of(found) is None and get_abstract_mesh().empty):
        return sums_of(found) == sums_of(aval)
    return explicit_of(found) == explicit_of(aval)


def with_types(mesh: Any, axes: Sequence[Any], kind: AxisType) -> Any:
    pairs = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return mesh.update(axis_types=tuple(kind if name in axes else old for name, old in pairs))


# -- what users write ------------------------------------------------------------------------------


def flat_shardings(
    what: str, given: Any, tree: Any, *, named: str | None = None, kws: bool = False
) -> list[Any]:
    """One sharding, or None, for each leaf, from a tree of them that is a prefix.

    With `kws`, both are pairs of positional and keyword arguments. `named` is what the tree is
    called where it does not fit.
    """
    return list(map(sharding_in, flat_places(what, given, tree, named=named, kws=kws)))


def flat_places(
    what: str, given: Any, tree: Any, *, named: str | None = None, kws: bool = False
) -> list[Any]:
    """`flat_shardings`, with the `Format`s that have a layout."""
    is_leaf = lambda x: x is None or isinstance(x, (Sharding, PartitionSpec))
    spread = tree_util.flatten_axes(named or what, tree, given, kws=kws, is_leaf=is_leaf)
    return [_place_of(where, what) for where in spread]


def _place_of(where: Any, what: str) -> Any:
    sharding = sharding_of(sharding_in(where), what)
    check_not_empty(sharding, what)
    layout = layout_of(where)
    return sharding if layout is None else Format(layout, sharding)


def check_asked(what: str, given: Any) -> None:
    """Refuse leaves of a tree of shardings that are none, before there is a mesh to refer to."""
    for where in tree_util.tree_leaves(given):
        if isinstance(where, (Layout, AutoLayout)):
            raise ValueError(
                "`jax.jit` does not accept device-local layouts directly. Create a `Format` instance "
                f"wrapping this device-local layout and pass that to `jit` instead. Got {where}"
            )
        if not isinstance(where, (Sharding, PartitionSpec, Format)):
            raise no_sharding(where, what)
        check_not_empty(sharding_in(where), what)


def check_ranks(what: str, places: Sequence[Any], values: Sequence[Any], names: Any) -> None:
    """ValueError if a sharding of several has more dimensions than the value that it is for."""
    for index, (where, value) in enumerate(zip(places, values, strict=True)):
        if where is not None:
            check_rank(what, where, np.ndim(value), names[index] if names else "")


def with_sharding_constraint(x: _T, shardings: Any) -> _T:
    """Return arrays laid out over devices as shardings say.

    - `x`: pytree of arrays of any shape and dtype, which stay
    - `shardings`: sharding for all, or pytree of them that is a prefix of `x`; a `PartitionSpec`
      refers to the mesh in force (`set_mesh`)

    ValueError where a dimension cannot be split so.
    Source: the Shardy operation `sdy.sharding_constraint`.

    >>> mesh = jax.make_mesh((1,), ("i",), (jax.sharding.AxisType.Auto,))
    >>> lax.with_sharding_constraint(jnp.array([1, 2]), jax.NamedSharding(mesh, jax.P("i")))
    Array([1, 2], dtype=int32)
    """
    leaves, tree = tree_util.flatten(x)
    places = flat_places("with_sharding_constraint shardings", shardings, tree)
    if None in places:
        raise ValueError(
            "One of with_sharding_constraint arguments got sharding None which is not allowed. "
            "Please only pass `jax.sharding.Sharding` instances."
        )
    return tree.unflatten([_asked(leaf, where) for leaf, where in zip(leaves, places, strict=True)])


hooks.fill(
    as_primal_placed=retyped,
    is_cotangent_of=_is_of_type,
    adds_in_place=adds_in_place,
)
