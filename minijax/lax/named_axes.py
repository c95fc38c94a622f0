"""Named axes, as collectives take them: their sizes, groups of indices, and errors of unbound ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, TypeVar

from minijax.config import local
from minijax.core.effects import NamedAxisEffect
from minijax.core.primitive import Primitive
from minijax.features.sharding.layouts import CollectivePrimitive, layout
from minijax.lax.casts import as_names
from minijax.transforms.primitives import moveaxis

__all__ = [
    "AxisNames", "Name", "axis_size", "batch_over", "bound_names", "check_bound", "collective", "group_size", "index_groups",
]  # fmt: skip

_T = TypeVar("_T")
AxisNames: TypeAlias = Hashable | tuple[Hashable, ...]

Name = Hashable


def axis_size(axis_name: Name | Sequence[Name]) -> int:
    """Return the size of a named axis, or the product of the sizes of several.

    - `axis_name`: name of an axis of `vmap` or of a mesh, or several

    The result is a Python integer, which may be used in a shape. NameError if a name is unbound.
    Source: the shapes of `vmap`'s arguments, or the mesh.

    >>> jax.vmap(lambda x: x + lax.axis_size("i"), axis_name="i")(jnp.array([10, 20]))
    Array([12, 22], dtype=int32)
    """
    sizes = dict(local.context.axes)
    total = 1
    for name in as_names(axis_name):
        if isinstance(name, int):
            raise ValueError(
                f"axis {name} is out of bounds for array of dimension 0: it numbers a dimension, "
                "whose size is in the shape of its array. Give names of axes."
            )
        if name not in sizes:
            raise NameError(
                f"unbound axis name: {name}. The axes bound here are {sorted(map(str, sizes))}: "
                "name one with vmap(..., axis_name=...), pmap or shard_map."
            )
        total *= sizes[name]
    return total


def _effects(names: Sequence[Name]) -> frozenset:
    return frozenset(NamedAxisEffect(name) for name in names if not isinstance(name, int))


def _no_groups(groups: Any) -> None:
    if groups is not None:
        raise NotImplementedError(
            "axis_index_groups not supported in vmap collectives: reshape, and sum over an axis."
        )


def index_groups(groups: Any, names: Sequence[Name], *, equal: bool = True) -> Any:
    """Groups of positions along named axes as tuples. ValueError unless each position is in one."""
    if groups is None:
        return None
    groups = tuple(tuple(map(int, group)) for group in groups)
    count = axis_size(names)
    if sorted(index for group in groups for index in group) != list(range(count)):
        raise ValueError(
            f"axis_index_groups must cover all indices exactly once: the axis has the positions 0 to "
            f"{count - 1}, and the groups are {groups}."
        )
    if equal and len(set(map(len, groups))) > 1:
        raise ValueError(
            f"Replica groups must be equally sized, for all but reductions: they are {groups}."
        )
    return groups


def group_size(groups: Any, names: Any) -> int:
    """The number of positions that exchange values with each other."""
    return axis_size(names) if groups is None else len(groups[0])


# Operations whose message begins with other words in upstream.
_FINDING = {"axis_index", "pbroadcast", "pmax", "pmin", "ppermute", "psum"}


def check_bound(function: str, names: Sequence[Name], finds: bool = True) -> None:
    """NameError unless all names are bound; `finds` is false for the sum of a constant."""
    bound = dict(local.context.axes)
    for name in names:
        if name not in bound:
            found = "Found an unbound" if finds and function in _FINDING else "unbound"
            raise NameError(
                f"{found} axis name: {name}. {function} needs it bound by "
                f"vmap(..., axis_name={name!r}), pmap or shard_map."
            )


def bound_names(function: str, axis_name: Any) -> Sequence[Name]:
    """The names, all bound; there may be none."""
    names = as_names(axis_name)
    check_bound(function, names)
    return names


def collective(name: str, axes_of: Callable[..., tuple], lower: Callable) -> Primitive:
    """A collective: its operands must vary over the axes that it names, and its results do."""
    p = CollectivePrimitive(name)
    p.rule_effects = lambda **params: _effects(axes_of(**params))
    p.rule_lower = lower

    @layout(p, "varying")
    def _(axes, **params):
        axes |= frozenset(axes_of(**params))
        return axes, axes

    return p


def batch_over(p: Primitive, *counted: str) -> Callable[[Callable], Callable]:
    """Decorator: `rule(axis, x, dim, **params)` maps a collective over an axis that it names.

    Over another axis it stays, with those of its parameters that count dimensions one further.
    """

    def decorate(rule: Callable) -> Callable:
        @p.batch_axis
        def _(axis, args, dims, **params):
            (x,), (dim,) = args, dims
            if axis.name in as_names(params["axes" if "axes" in params else "axis_name"]):
                _no_groups(params.get("axis_index_groups"))
                return rule(axis, x, dim, **params)
            if counted and dim is not None:
                x, dim = moveaxis(x, dim, 0), 0
                params |= {name: params[name] + 1 for name in counted}
            return p.bind(x, **params), dim

        return rule

    return decorate
