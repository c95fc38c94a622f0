"""Shardings in types: changing them, and leaving them to XLA for a while.

Over the Explicit axes of a mesh the type of an array says how it is split, and operations derive
the types of their results (`features.sharding.sharding_rules`). `reshard` goes from one such type to another;
`auto_axes` hides them from a function, within which XLA splits values as it likes; `explicit_axes`
shows them again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arguments.functions import fun_name
from minijax.arrays.array import ArrayImpl, as_array
from minijax.config import local
from minijax.core.avals import get_aval, opaque_types
from minijax.core.hooks import hooks
from minijax.core.staging import recording_trace
from minijax.core.trace import Tracer, eval_trace
from minijax.features.sharding.constraints import constrained, hidden, reshard_p, with_types
from minijax.features.sharding.transfer import put_array
from minijax.features.sharding.types import check_manual, check_size, explicit_of
from minijax.runtime.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    PartitionSpec,
    entered_mesh,
    get_abstract_mesh,
    mesh_of,
)
from minijax.runtime.named_sharding import NamedSharding, out_sharding_of
from minijax.runtime.platforms import Device
from minijax.runtime.sharding import Sharding
from minijax.transforms.jit import jit

__all__ = [
    "auto_axes",
    "constant_at",
    "explicit_axes",
    "left_to_xla",
    "made_at",
    "reshard",
    "split_as",
]


def split_as(x: Any, where: Any, name: str = "reshard", *, new: bool = True) -> Any:
    """`x`, split as a sharding, or a PartitionSpec over the mesh in force, says; None says nothing.

    `new`: whether nothing but the mesh in force says over which devices.
    """
    if where is None:
        return x
    known, eager = explicit_of(get_aval(x)), local.context.trace is eval_trace
    new = new and known is None
    where = out_sharding_of(where, name, new)
    if where.mesh.empty:  # the sharding of a type says so
        return x
    if not where.mesh.explicit_axes:
        if new and get_abstract_mesh().empty:  # nothing says over which devices
            return x
        return put_array(x, where) if eager else constrained(x, where)
    placed = new and (eager or isinstance(where.mesh, Mesh))
    if where.explicit_part(np.ndim(x)) == known and not placed:
        return x
    return reshard_p.bind(x, dst_sharding=where, free=False)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Move arrays to shardings over explicit mesh axes.

    - `xs`: pytree of arrays of any shape and dtype, which stay
    - `out_shardings`: `NamedSharding`, or `PartitionSpec` over the mesh in force, for all, or
      pytree of these that is a prefix of `xs`

    ValueError where a dimension cannot be split so, or an axis is not explicit: use
    `with_sharding_constraint` there.
    Source: the Shardy operation `sdy.reshard`.

    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
    >>> jax.reshard(jnp.array([1, 2]), sharding)
    Array([1, 2], dtype=int32)
    """
    leaves, tree = tree_util.flatten(xs)
    is_leaf = lambda x: x is None or isinstance(x, (NamedSharding, PartitionSpec))
    given = tree_util.broadcast_prefix(out_shardings, xs, is_leaf=is_leaf)
    places = [out_sharding_of(where, "reshard") for where in given]
    for where in places:
        if where is None or where.mesh.empty:
            raise ValueError(
                "Reshard should only be used with out_shardings which are non-None and have a "
                f"non-empty mesh. Got sharding {where}."
            )
    for x, where in zip(leaves, places, strict=True):
        check_manual(get_aval(x), where)
    if recording_trace() is not None:  # its devices are those of the program
        places = [NamedSharding(w.mesh.abstract_mesh, w.spec) for w in places]
    return tree.unflatten(
        [
            reshard_p.bind(x, dst_sharding=where, free=False)
            for x, where in zip(leaves, places, strict=True)
        ]
    )


# -- modes -----------------------------------------------------------------------------------------


def _mesh_for(what: str, arrays: Sequence[Any], axes: Any, asked: Any) -> tuple[Any, tuple]:
    """The mesh in force, of the arguments, or of the shardings asked for; and the axes that are meant,
    all by default. ValueError if shardings are over another mesh than that in force.
    """
    mesh, asked = local.context.mesh, [getattr(where, "mesh", None) for where in asked]
    asked = [other for other in asked if isinstance(other, (Mesh, AbstractMesh))]
    if mesh is None:
        found = [explicit_of(get_aval(x)) for x in arrays]
        over = [where.mesh for where in found if where is not None]
        over += [other for other in asked if other.explicit_axes]
        mesh = over[0] if over else AbstractMesh((), ())
    elif others := [m for m in asked if m.abstract_mesh != mesh.abstract_mesh and not mesh.empty]:
        raise ValueError(
            f"Context mesh {mesh.abstract_mesh} must match the mesh passed to shardings "
            f"{others[0].abstract_mesh}. Recommended approach is to use `jax.set_mesh` and give {what} "
            "a PartitionSpec, which is over the mesh in force."
        )
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    for name in names:
        if name not in mesh.axis_names and not mesh.empty:
            raise KeyError(name)
    return mesh, names


def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    out_sharding: Any = None,
) -> Callable[..., Any]:
    """`f` with some axes of the mesh (all by default) left to XLA within it.

    Its arguments have types that do not say how they are split over these axes; `out_sharding` (a
    prefix of the tree of its results) says how results are. TypeError without it.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f, updated=())
    def wrapped(*args, out_sharding=out_sharding, **kwargs):
        if out_sharding is None:
            raise TypeError(
                "Missing required keyword argument: 'out_sharding'. auto_axes must be told how the "
                f"results of {fun_name(f)} are split: give it to auto_axes or to the call."
            )
        leaves, tree = tree_util.flatten((args, kwargs))
        shardings = tree_util.tree_leaves(out_sharding)
        mesh, names = _mesh_for("auto_axes", leaves, axes, shardings)
        if mesh.empty:  # no types, that say more than XLA is to know
            return f(*args, **kwargs)
        free = with_types(mesh, names, AxisType.Auto)

        leaves = _on(free, leaves)
        with entered_mesh(free):
            given, named = tree.unflatten([hidden(x, names) for x in leaves])
            outs = f(*given, **named)
        return _typed(outs, out_sharding, mesh, free=True)

    return wrapped


def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    in_sharding: Any = None,
) -> Callable[..., Any]:
    """`f` with some axes of the mesh (all by default) in the types of values within it.

    `in_sharding` (a prefix of the tree of its positional arguments) says how these are split.
    TypeError without it. Outside, types say nothing of the results over these axes.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f, updated=())
    def wrapped(*args, in_sharding=in_sharding, **kwargs):
        if in_sharding is None:
            raise TypeError(
                "Missing required keyword argument: 'in_sharding'. explicit_axes must be told how "
                f"the arguments of {fun_name(f)} are split: give it to explicit_axes or to the call."
            )
        mesh, names = _mesh_for("explicit_axes", tree_util.tree_leaves(args), axes, ())
        if mesh.empty:
            raise ValueError(
                "Context mesh cannot be empty. Please use `jax.set_mesh` API to enter into a mesh "
                "context when using `explicit_axes` API."
            )
        typed = with_types(mesh, names, AxisType.Explicit)
        leaves, tree = tree_util.flatten(args)

        args = tree.unflatten(_on(typed, leaves))
        prefix = in_sharding if isinstance(in_sharding, tuple) else (in_sharding,) * len(args)
        with entered_mesh(typed):
            outs = f(*_typed(args, prefix, typed, free=True), **kwargs)
        free = [name for name in names if name not in mesh.explicit_axes]
        return tree_util.tree_map(lambda x: hidden(x, free), outs) if free else outs

    return wrapped


def _on(mesh: Any, leaves: Sequence[Any]) -> Sequence[Any]:
    """Arguments of a function that runs now: arrays, and over the devices of the mesh."""
    if local.context.trace is not eval_trace:
        return leaves
    return [_array_on(mesh, x) for x in leaves]


def _array_on(mesh: Any, x: Any) -> Any:
    if type(x) in opaque_types or explicit_of(get_aval(x)) is not None:
        return x
    x = as_array(x)
    own, spec = x.sharding, PartitionSpec(*[None] * x.ndim)
    if isinstance(own, NamedSharding) and own.mesh.shape_tuple == mesh.shape_tuple:
        mesh, spec = own.mesh.update(axis_types=mesh.axis_types), own.spec
    elif x.committed:
        return x
    else:
        mesh = mesh_of(mesh, own._device_assignment)
        if not isinstance(mesh, Mesh):
            where = NamedSharding(mesh, spec)
            check_size(x.aval.update(sharding=where), own._device_assignment)
    return put_array(x, NamedSharding(mesh, spec))


def constant_at(x: Any, where: Any) -> Any:
    """A new array on a device, or as a sharding says; within a program it lies as XLA likes."""
    if not isinstance(where, (Sharding, Device)):
        raise AttributeError(
            f"{type(where).__name__!r} object has no attribute '_is_concrete': a new array is placed on "
            f"a device or as a Sharding says, not by {where!r}. A PartitionSpec is given as "
            "out_sharding."
        )
    if isinstance(getattr(where, "mesh", None), AbstractMesh):
        return split_as(x, where, "broadcast_in_dim")
    return x if isinstance(x, Tracer) else put_array(x, where)


def made_at(make: Callable, where: Any, name: str) -> Any:
    """`make(sharding)`, a new array of a type that a user asked for as `out_sharding`."""
    where = out_sharding_of(where, name, new=True)
    if where is None or not get_abstract_mesh().empty:
        return make(where)
    return split_as(make(None), where)  # over the devices of the operands, if there are any


def left_to_xla(fun: Callable, where: Any, name: str, *args: Any) -> Any:
    """`fun(*args)`, split as a user asked for where types alone would not say how."""
    where = out_sharding_of(where, name)
    known = any(explicit_of(get_aval(x)) is not None for x in args)
    if not where.mesh.explicit_axes or not (known or local.context.mesh):
        return split_as(fun(*args), where, name, new=name != ".get")
    call = auto_axes(fun, out_sharding=where)
    eager = local.context.trace is eval_trace and all(type(x) is ArrayImpl for x in args)
    return (jit(call) if eager else call)(*args)


def _typed(outs: Any, shardings: Any, mesh: Any, *, free: bool) -> Any:
    """Values whose split was left to XLA, with types that say it."""
    is_leaf = lambda x: x is None or isinstance(x, (NamedSharding, PartitionSpec))
    leaves, tree = tree_util.flatten(outs)
    given = tree_util.broadcast_prefix(shardings, outs, is_leaf=is_leaf)
    for where in given:
        if not isinstance(where, (NamedSharding, PartitionSpec)):
            out_sharding_of(where, "reshard")
    typed = [
        reshard_p.bind(
            x,
            dst_sharding=NamedSharding(mesh, w) if isinstance(w, PartitionSpec) else w,
            free=free,
        )
        for x, w in zip(leaves, given, strict=True)
    ]
    return tree.unflatten(typed)


hooks.fill(placed_as=split_as)
