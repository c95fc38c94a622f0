"""`smap`: mapping a function over one axis of a mesh, told by positions as `vmap` is.

It is `shard_map` with its specs made from axes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from minijax import tree_util
from minijax.arguments.functions import named_after
from minijax.core.avals import get_aval
from minijax.features.sharding.sharding_rules import parts_of
from minijax.lax.shard_map import Infer, chosen_mesh, shard_map
from minijax.runtime.mesh import AxisType, PartitionSpec
from minijax.tracebacks import boundary

__all__ = ["smap"]


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: Any = Infer,
    out_axes: Any,
    axis_name: Hashable,
) -> Callable[..., Any]:
    """Map a function over parts of its arguments, split over one axis of the mesh in force.

    - `in_axes`: dimension that is split, None, or pytree of these, for each argument; inferred from
      the arguments' types for an explicit axis
    - `out_axes`: dimension along which results are joined; None for equal ones
    - `axis_name`: mesh axis, for collectives within `f`

    Shapes within `f` are those of the parts. ValueError without a mesh or such an axis, or for a
    dimension that is not divisible; TypeError if axes cannot be inferred. Source: Shardy's
    `sdy.manual_computation`.

    >>> with jax.set_mesh(jax.make_mesh((1,), ("i",), (jax.sharding.AxisType.Auto,))):
    ...     jax.smap(lambda x: x + 1, in_axes=0, out_axes=0, axis_name="i")(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    if f is None:
        return partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    @boundary
    def mapped(*args):
        leaves, in_tree = tree_util.flatten(args)
        if in_axes is Infer:
            _check_explicit(axis_name)
            ins = [_spec_of(x, axis_name) for x in leaves]
        else:
            axes = in_axes if in_axes is None or isinstance(in_axes, int) else tuple(in_axes)
            ins = _specs("in_axes", axes, in_tree, map(_rank, leaves), axis_name)
        results = []

        def flat(*parts):
            outs, tree = tree_util.flatten(f(*in_tree.unflatten(parts)))
            results.append((tree, [_rank(x) for x in outs]))
            return outs

        def out_specs():
            tree, ranks = results[-1]
            return _specs("out_axes", out_axes, tree, ranks, axis_name)

        call = shard_map(
            named_after(f, flat), in_specs=tuple(ins), out_specs=out_specs, axis_names={axis_name}
        )
        outs = call(*leaves)
        return results[-1][0].unflatten(outs)

    return named_after(f, mapped)


def _rank(x: Any) -> int:
    return get_aval(x).ndim


def _specs(
    what: str, axes: Any, tree: Any, ranks: Sequence[int], axis_name: Any
) -> list[PartitionSpec]:
    """One spec for each leaf; ValueError for an axis that is out of bounds."""
    found = []
    for axis, ndim in zip(tree_util.flatten_axes(what, tree, axes), ranks, strict=True):
        if axis is not None and not -ndim <= axis < ndim:
            raise ValueError(
                f"smap {what} has {axis}, which is out of bounds for a value of {ndim} dimensions."
            )
        parts = () if axis is None else (*[None] * (axis % ndim), axis_name)
        found.append(PartitionSpec(*parts))
    return found


def _spec_of(x: Any, axis_name: Any) -> PartitionSpec:
    """Return the dimension that is split over the axis, by the type of a value."""
    parts = parts_of(get_aval(x))
    named = [axis_name in (part if isinstance(part, tuple) else (part,)) for part in parts]
    return PartitionSpec(*[axis_name if here else None for here in named])


def _check_explicit(axis_name: Any) -> None:
    mesh = chosen_mesh(None)
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    if axis_name not in kinds:
        raise ValueError(f"smap over axis_name={axis_name!r}: the mesh has the axes {[*kinds]}.")
    if kinds[axis_name] is not AxisType.Explicit:
        raise TypeError(
            f"in_axes was not specified when axis_name={axis_name!r} was of type "
            f"{kinds[axis_name]}: only types over Explicit axes say it. Give in_axes."
        )
