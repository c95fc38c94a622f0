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

from minijax import tree_util
from minijax.arguments.functions import fun_name
from minijax.arrays.array import ArrayImpl, as_array
from minijax.config import local
from minijax.core.avals import get_aval, opaque_types
from minijax.core.hooks import hooks
from minijax.core.staging import recording_trace
from minijax.core.trace import eval_trace
from minijax.features.sharding.constraints import constrained, hidden, reshard_p, with_types
from minijax.features.sharding.transfer import put_array
from minijax.features.sharding.types import check_manual, explicit_of
from minijax.runtime.mesh import AxisType, PartitionSpec, entered_mesh, mesh_of
from minijax.runtime.named_sharding import NamedSharding, out_sharding_of
from minijax.transforms.jit import jit

__all__ = ["auto_axes", "explicit_axes", "left_to_xla", "reshard", "split_as"]


def split_as(x: Any, where: Any, name: str = "reshard") -> Any:
    """`x`, split as a sharding, or a PartitionSpec over the mesh in force, says; None says nothing."""
    if where is None:
        return x
    where = out_sharding_of(where, name)
    if where.mesh.empty:  # the sharding of a type says so
        return x
    if local.context.trace is eval_trace and not where.mesh.explicit_axes:
        return put_array(x, where)
    return constrained(x, where)


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
        _check_explicit(where)
    if recording_trace() is not None:  # its devices are those of the program
        places = [NamedSharding(w.mesh.abstract_mesh, w.spec) for w in places]
    return tree.unflatten(
        [
            reshard_p.bind(x, dst_sharding=where, free=False)
            for x, where in zip(leaves, places, strict=True)
        ]
    )


def _check_explicit(where: Any) -> None:
    if not isinstance(where, NamedSharding):
        return
    types = dict(zip(where.mesh.axis_names, where.mesh.axis_types, strict=True))
    for part in where.spec.partitions:
        for name in part if isinstance(part, tuple) else (part,):
            if name in types and types[name] is not AxisType.Explicit:
                raise ValueError(
                    "PartitionSpec passed to reshard cannot contain axis names that are of type "
                    f"Auto or Manual. Got PartitionSpec: {where.spec} with axis name: {name} of "
                    f"type: AxisType.{types[name].name}. Use with_sharding_constraint, or make the "
                    "mesh with axis_types=(AxisType.Explicit, ...)."
                )


# -- modes -----------------------------------------------------------------------------------------


def _mesh_for(what: str, arrays: Sequence[Any], axes: Any) -> tuple[Any, tuple]:
    """The mesh in force, or that of the arguments; and the axes that are meant, all by default."""
    mesh = local.context.mesh
    if mesh is None:
        found = [explicit_of(get_aval(x)) for x in arrays]
        mesh = next((where.mesh for where in found if where is not None), None)
    if mesh is None or mesh.empty:
        raise ValueError(
            f"{what} needs a mesh: set one with minijax.set_mesh(mesh), or pass arrays that are "
            "split over its explicit axes."
        )
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    for name in names:
        if name not in mesh.axis_names:
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
        mesh, names = _mesh_for("auto_axes", leaves, axes)
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
        mesh, names = _mesh_for("explicit_axes", tree_util.tree_leaves(args), axes)
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
        mesh = mesh_of(mesh)
    return put_array(x, NamedSharding(mesh, spec))


def left_to_xla(fun: Callable, where: Any, name: str, *args: Any) -> Any:
    """`fun(*args)`, split as a user asked for where types alone would not say how."""
    where = out_sharding_of(where, name)
    if not where.mesh.explicit_axes:
        return split_as(fun(*args), where, name)
    call = auto_axes(fun, out_sharding=where)
    eager = local.context.trace is eval_trace and all(type(x) is ArrayImpl for x in args)
    return (jit(call) if eager else call)(*args)


def _typed(outs: Any, shardings: Any, mesh: Any, *, free: bool) -> Any:
    """Values whose split was left to XLA, with types that say it."""
    is_leaf = lambda x: x is None or isinstance(x, (NamedSharding, PartitionSpec))
    leaves, tree = tree_util.flatten(outs)
    given = tree_util.broadcast_prefix(shardings, outs, is_leaf=is_leaf)
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
