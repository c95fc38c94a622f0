"""Where the results of a primitive lie, from where its operands lie: the `layout` rules.

    set_layout(sort_p, parts=along("sort", ...))      # or, for one of the functions,

    @layout(reshape_p, "parts")
    def _(avals, out, *, new_sizes, **params): ...

A primitive without a layout is one on elements. Read `sharding_rules` next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.config import local
from minijax.core.hooks import hooks
from minijax.core.primitive import Misplaced, Primitive
from minijax.features.queries import is_ref
from minijax.features.sharding.memory import MemorySpace, common
from minijax.features.sharding.sharding_rules import as_asked, split_results, with_sums
from minijax.features.sharding.types import NO_AXES, explicit_of, vma_of, with_placement
from minijax.features.sharding.unreduced import any_sums, over_axes

__all__ = ["CollectivePrimitive", "Layout", "in_shape_rule", "layout", "set_layout"]


def in_shape_rule(*args, **params):
    """Stands as the parts of a primitive whose shape rule says how its results are split."""
    raise AssertionError("the shape rule gives it")


class Layout:
    """The layout rule of a primitive, made of the functions that differ between primitives.

    - `parts(avals, out, **params)` -> for the result (for each, if multiple_results) what splits its
      dimensions over explicit mesh axes; see `sharding_rules`
    - `sums(name, avals, asked, **params)` -> the mesh axes over which the results are unreduced, and
      reduced; see `unreduced`
    - `varying(axes, **params)` -> the manual mesh axes over which its operands must vary, given those
      over which any does, and those over which its results vary; by default the same both
    - `memory(name, avals)` -> the memory of the results, or that of each in a list; by default that of
      all operands

    None stands for the rule of operations on elements.
    """

    __slots__ = ("memory", "parts", "primitive", "sums", "varying")

    def __init__(self, primitive: Primitive):
        self.primitive = primitive
        self.parts: Callable | None = None
        self.sums: Callable | None = None
        self.varying: Callable | None = None
        self.memory: Callable = common

    def __call__(self, avals: Sequence[Any], out: Any, params: dict[str, Any]) -> Any:
        """Return the types of the results, split over explicit mesh axes."""
        asked = params.get("out_sharding") or params.get("sharding")
        if asked is None:
            if all(aval.placement is None or aval.placement.explicit is None for aval in avals):
                return out
            return split_results(self, avals, out, params)
        if asked.spec.sums or any_sums(avals):
            asked = with_sums(asked, *over_axes(self, avals, asked, params))
        return as_asked(out, asked)


def set_layout(primitive: Primitive, **functions: Callable) -> None:
    """Set functions of the layout rule of a primitive; none, if it only takes a sharding."""
    if primitive.rule_layout is None:
        primitive.layout(Layout(primitive))
    for name, function in functions.items():
        setattr(primitive.rule_layout, name, function)


def layout(primitive: Primitive, name: str) -> Callable[[Callable], Callable]:
    """Decorator: set one function of the layout rule of a primitive."""

    def decorate(function: Callable) -> Callable:
        set_layout(primitive, **{name: function})
        return function

    return decorate


class CollectivePrimitive(Primitive):
    """A primitive over named axes: its types depend on which of them the types of values tell."""

    __slots__ = ()

    def out_avals(self, avals: tuple, params: dict) -> Any:
        """Return the types of the results, not remembered."""
        return self._typed(avals, params)


def placed_results(primitive: Primitive, avals: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return the types of the results of a primitive, with their placements.

    Raises `Misplaced` for operands that must vary over other axes.
    """
    rule = primitive.rule_layout
    known = rule is not None and rule.parts is in_shape_rule
    if primitive.holds_programs and known:
        return primitive.rule_shape(*avals, **params)
    if not local.context.varying and all(aval.placement is None for aval in avals):
        if (params.get("out_sharding") or params.get("sharding")) is None or known:
            return primitive.rule_shape(*avals, **params)
    axes = outs = NO_AXES.union(*map(_vma_of_value, avals))
    varying = local.context.varying
    if varying and not primitive.holds_programs:
        wanted, collective = axes, rule is not None and rule.varying is not None
        if collective:
            wanted, outs = (names & varying for names in rule.varying(axes, **params))
        if any(_vma_of_value(aval) != wanted and hasattr(aval, "vma") for aval in avals):
            _check_references(primitive, avals, wanted)
            raise Misplaced(wanted, collective)
    if known:
        whole = [_with(aval, vma=NO_AXES) for aval in avals] if axes else avals
        out = primitive.rule_shape(*whole, **params)
        return _each(out, lambda aval: _with(aval, vma=outs)) if outs else out
    _check_meshes(avals)
    space: Any = MemorySpace.Device
    if avals and not any(map(is_ref, avals)):
        space = (common if rule is None else rule.memory)(primitive.name, avals)
    plain = [with_placement(a, None) if a.placement is not None else a for a in avals]
    out = primitive.rule_shape(*plain, **params)
    out = (Layout(primitive) if rule is None else rule)(avals, out, params)
    if type(space) is list:
        return [_with(aval, vma=outs, memory_space=s) for aval, s in zip(out, space, strict=True)]
    if outs or space is not MemorySpace.Device:
        out = _each(out, lambda aval: _with(aval, vma=outs, memory_space=space))
    return out


def _check_meshes(avals: Sequence[Any]) -> None:
    """ValueError for operands whose types are over two meshes."""
    meshes = {where.mesh.abstract_mesh: None for where in map(explicit_of, avals) if where}
    if len(meshes) > 1:
        one, other, *_ = meshes
        raise ValueError(
            f"Mesh for all inputs should be equal. Got one mesh: {one} and another mesh: {other}. "
            f"Operands are of types {', '.join(map(str, avals))}; move them to one mesh with "
            "minijax.device_put(x, sharding)."
        )


def _vma_of_value(aval: Any) -> frozenset:
    """The mesh axes over which a value varies, or the one that a reference is to."""
    return vma_of(aval.inner_aval if is_ref(aval) else aval)


def _check_references(primitive: Primitive, avals: Sequence[Any], wanted: frozenset) -> None:
    """ValueError for a reference to a value that varies over fewer axes than the other operands."""
    ref = next((aval for aval in avals if is_ref(aval) and vma_of(aval.inner_aval) != wanted), None)
    if ref is not None:
        raise ValueError(
            f"{primitive.name}: a value or an index that varies over the mesh axes {set(wanted)} was "
            f"given for a reference of type {ref.str_short(True)}, whose value varies over fewer. "
            "Make the reference of lax.pcast(x, axes, to='varying')."
        )


def _each(out: Any, change: Callable[[Any], Any]) -> Any:
    return list(map(change, out)) if isinstance(out, (list, tuple)) else change(out)


def _with(aval: Any, **stated: Any) -> Any:
    if is_ref(aval):
        return aval.update(inner_aval=aval.inner_aval.update(**stated))
    return aval.update(**stated) if hasattr(aval, "vma") else aval


hooks.fill(layout=placed_results)
