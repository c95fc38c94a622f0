"""Types that say of mesh axes whether a value varies over them, is a sum, or was one.

Within `shard_map` a value is the same at each place of a mesh axis, or *varies*; it is *unreduced*
where each place has a summand of it, and *reduced* where it is whole and its cotangent such a sum
(`features.sharding.unreduced`). Casts change what types say, and no value; collectives, in `lax.parallel`, move
and sum values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from minijax import tree_util
from minijax.config import local
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.primitive import Misplaced, Primitive
from minijax.core.staging import StagedTracer, recording_trace
from minijax.features.queries import is_ref
from minijax.features.sharding.layouts import CollectivePrimitive, in_shape_rule, layout, set_layout
from minijax.features.sharding.sharding_rules import with_sums
from minijax.features.sharding.types import vma_of
from minijax.features.sharding.unreduced import first, sums_of
from minijax.lax import collective_lowering
from minijax.lax.rules import broadcasting_batch, linear_in
from minijax.runtime.mesh import PartitionSpec, get_abstract_mesh
from minijax.runtime.named_sharding import NamedSharding

__all__ = [
    "as_names", "cast", "common_state", "ordered", "pcast", "preduced_p", "pvary", "pvary_p",
    "reduced_vary_p", "state_over", "unreduced_psum_p", "vary", "vary_unreduced_p", "varying_alike",
]  # fmt: skip

Name = Hashable


def as_names(axis_name: Any) -> tuple[Name, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


# -- whether values vary over the axes of a mesh ----------------------------------------------------

pvary_p = CollectivePrimitive("pvary")  # its transpose, a sum, stands in `lax.parallel`
set_layout(pvary_p, sums=first)


@pvary_p.shape_rule
def _(x, *, axes):
    return x


@layout(pvary_p, "varying")
def _(given, *, axes):
    return given, given | frozenset(axes)


@pvary_p.impl
def _(x, *, axes):
    return x


linear_in(pvary_p, 0)
pvary_p.rule_batch = broadcasting_batch(pvary_p)


@pvary_p.lower
def _(b, x, *, axes):
    return x


def ordered(axes: Iterable[Name]) -> tuple[Name, ...]:
    return tuple(sorted(axes, key=str))


def vary(x: Any, axes: frozenset, summed: bool = False) -> Any:
    """`x`, varying over more axes; if `summed`, over those too over which it is reduced."""
    if not axes:
        return x
    unreduced, reduced = sums_of(get_aval(x))
    for kind, found in (("unreduced", unreduced & axes), ("reduced", reduced & axes)):
        if found and not (summed and kind == "reduced"):
            raise ValueError(
                f"pvary cannot accept args which are {kind}. Got {get_aval(x).str_short(True)} and "
                f"axes={set(axes)}: take the sum with lax.psum, or cast it with lax.pcast."
            )
    if reduced & axes:
        x = cast(reduced_vary_p, x, reduced & axes)
        axes = axes - reduced
    return pvary_p.bind(x, axes=ordered(axes)) if axes else x


def varying_alike(tree: Any) -> Any:
    """A pytree whose leaves vary over the axes over which one of them does."""
    leaves, structure = tree_util.tree_flatten(tree)
    own = [vma_of(get_aval(leaf)) for leaf in leaves]
    axes = frozenset().union(*own)
    return structure.unflatten([vary(x, axes - has) for x, has in zip(leaves, own, strict=True)])


def aligned(trace: Any, atoms: Sequence[Any], found: Misplaced) -> list[Any]:
    """Return operands that vary over the axes that an operation needs."""
    axes, collective = found.args
    try:
        return [
            trace.atom(vary(StagedTracer(trace, atom), axes - vma_of(atom.aval), not collective))
            if vma_of(atom.aval) != axes and hasattr(atom.aval, "vma") and not is_ref(atom.aval)
            else atom
            for atom in atoms
        ]  # fmt: skip
    except Exception as error:
        raise error from None


hooks.fill(aligned=aligned, varied=lambda x, aval: vary(x, vma_of(aval) - vma_of(get_aval(x))))


# -- sums over the axes of a mesh that are still to be taken ------------------------------------------


def _cast(name: str, transposed: Callable) -> Primitive:
    """The identity between types that differ in what they say of mesh axes."""
    p = CollectivePrimitive(name)
    set_layout(p, parts=in_shape_rule)
    p.printed = lambda params: {"axes": params["axes"]}
    p.impl(lambda x, **params: x)
    p.lower(lambda b, x, **params: x)
    p.rule_batch = broadcasting_batch(p)
    p.transpose(lambda ct, x, **params: [transposed(ct, **params)])
    linear_in(p, 0)
    return p


# Each place has a summand of the result; each place has the value, whose cotangent is such a sum;
# that value, of which each place makes something of its own; and the sum over all places.
vary_unreduced_p = _cast("vary_unreduced_cast_p", lambda ct, **p: reduced_vary_p.bind(ct, **p))
preduced_p = _cast("preduced", lambda ct, **params: unreduced_psum_p.bind(ct, **params))
reduced_vary_p = _cast("reduced_vary_cast_p", lambda ct, **p: vary_unreduced_p.bind(ct, **p))
unreduced_psum_p = _cast("unreduced_psum", lambda ct, **params: preduced_p.bind(ct, **params))


@unreduced_psum_p.lower
def _(b, x, *, axes, mesh):
    return collective_lowering.all_reduce("stablehlo.add")(b, x, axes=axes, axis_index_groups=None)


@layout(vary_unreduced_p, "varying")
def _(given, *, axes, mesh):
    return given, given - frozenset(axes)


@layout(reduced_vary_p, "varying")
def _(given, *, axes, mesh):
    return given, given | frozenset(axes)


def _change(p: Primitive, change: Callable[[frozenset, frozenset, frozenset], tuple]) -> None:
    """The shape rule: what becomes of the axes of sums."""

    @p.shape_rule
    def _(x, *, axes, mesh):
        where = x.explicit or NamedSharding(mesh, PartitionSpec(*[None] * x.ndim))
        return x.update(sharding=with_sums(where, *change(*sums_of(x), frozenset(axes))))


_change(vary_unreduced_p, lambda unreduced, reduced, axes: (unreduced | axes, reduced))
_change(preduced_p, lambda unreduced, reduced, axes: (unreduced, reduced | axes))
_change(reduced_vary_p, lambda unreduced, reduced, axes: (unreduced, reduced - axes))
_change(unreduced_psum_p, lambda unreduced, reduced, axes: (unreduced - axes, reduced))


def cast(p: Primitive, x: Any, axes: Iterable[Name]) -> Any:
    """`x` with another type over axes of the mesh in force."""
    return p.bind(x, axes=ordered(axes), mesh=get_abstract_mesh())


def pvary(x: Any, axis_name: Any) -> Any:
    """A tree of values, from now on of a type that varies over mesh axes; they do not change.

    Its transpose is `psum`: what varies over an axis has a cotangent for each place of it.
    """
    names = frozenset(as_names(axis_name)) & local.context.varying

    def one(leaf):
        return vary(leaf, names - getattr(get_aval(leaf), "vma", frozenset()))

    return tree_util.tree_map(one, x)


_CASTS = {
    ("invarying", "varying"): pvary_p,
    ("invarying", "reduced"): preduced_p,
    ("reduced", "varying"): reduced_vary_p,
    ("varying", "unreduced"): vary_unreduced_p,
}


def state_over(aval: Any, name: Name) -> str:
    """Return the state of a type over a mesh axis: varying, unreduced, reduced or invarying."""
    unreduced, reduced = sums_of(aval)
    if name in getattr(aval, "vma", ()):
        return "varying"
    return "unreduced" if name in unreduced else "reduced" if name in reduced else "invarying"


def common_state(function: str, aval: Any, names: Sequence[Name]) -> str:
    """Return the state of a type over several mesh axes; ValueError if it is not the same for all."""
    states = {state_over(aval, name) for name in names}
    if len(states) > 1:
        raise ValueError(
            f"jax.lax.{function} can only accept axis_name which corresponds to one of varying, "
            f"unreduced, reduced or invarying state of the input. Got input type: "
            f"{aval.str_short()}, axes: {tuple(names)} and input state: {sorted(states)}: name one kind "
            "of axes after the other."
        )
    return states.pop()


def _check_bound(called: str, names: Sequence[Name]) -> None:
    """NameError, or a ValueError where nothing is traced, for axes that no function is mapped over."""
    bound = dict(local.context.axes)
    for name in names:
        if name in bound:
            continue
        if recording_trace() is None:
            raise ValueError(
                f"{called} should be called under jax.shard_map. No axis {name!r} is mapped over here."
            )
        raise NameError(
            f"Found an unbound axis name: {name}. To fix this, please call {called} under "
            "`jax.shard_map`."
        )


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """Cast values within `shard_map` to a type that states how they depend on mesh axes.

    - `x`: pytree of arrays of any shape and dtype, which stay
    - `axis_name`: name of a mesh axis, or several
    - `to`: "varying" (each device has its own value), "unreduced" (each holds a summand, and `psum`
      gives the value) or "reduced" (equal everywhere, with an unreduced cotangent)

    ValueError for other casts; NameError outside of shard_map. Source: the Shardy dialect's manual computation.

    >>> f = jax.shard_map(lambda x: lax.pcast(x, "i", to="varying") + 1, in_specs=jax.P(),
    ...     mesh=jax.make_mesh((1,), ("i",)), out_specs=jax.P("i"))
    >>> f(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    if to not in ("varying", "unreduced", "reduced"):
        raise ValueError(
            f"Got unexpected `to` value. Allowed `to` values are: varying, unreduced, reduced; got "
            f"{to!r}."
        )
    names = as_names(axis_name)
    if not names:
        return x
    if not local.context.varying.issuperset(names):
        _check_bound("preduced" if to == "reduced" else "pvary", names)
        if to == "varying":  # where types say nothing of these axes
            return pvary(x, axis_name)
        raise ValueError(
            f"Unsupported pcast from=invarying, to={to!r}: types say nothing of the axes {names} "
            "here. Cast within shard_map with check_vma=True."
        )

    def one(leaf):
        state = common_state("pcast", get_aval(leaf), names)
        p = _CASTS.get((state, to))
        if p is None:
            raise ValueError(
                f"Unsupported pcast from={state}, to={to!r} over axes {names} of a "
                f"value of type {get_aval(leaf).str_short()}. There are casts from invarying to "
                "varying or reduced, from reduced to varying, and from varying to unreduced."
            )
        return vary(leaf, frozenset(names)) if p is pvary_p else cast(p, leaf, names)

    return tree_util.tree_map(one, x)
