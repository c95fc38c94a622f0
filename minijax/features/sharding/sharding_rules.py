"""How results are split over explicit mesh axes, as part of their types.

The *parts* of an array are what splits each of its dimensions: None, a mesh axis, or several. A
sharding rule gives the parts of a result from the types of the operands; most primitives share one
of the rules here. What would need communication that the program did not ask for is a
ShardingTypeError, which says how to ask.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.avals import ShapedArray, get_aval
from minijax.core.hooks import hooks
from minijax.dtypes import short_name
from minijax.errors import ShardingTypeError
from minijax.features.sharding.types import explicit_of
from minijax.features.sharding.unreduced import NO_SUMS, Sums, any_sums, over_axes, sums_of
from minijax.runtime.mesh import PartitionSpec, axes_of, get_abstract_mesh

__all__ = [
    "SplitAlike", "all_alike", "along", "ambiguous", "as_operand", "as_operands", "batched", "batched_sharding",
    "check_distinct", "common_sharding", "cotangent_sharding", "elementwise", "kept_axes", "leading", "leading_parts",
    "merge", "of_cases", "parts_of",
    "split_results",
    "whole", "with_sums",
]  # fmt: skip

Parts = list[Any]

_REMEDY = (
    "Say how the result is to be split with `out_sharding` where the function takes it, change an "
    "operand with minijax.sharding.reshard(x, P(...)), or leave it to XLA with "
    "minijax.sharding.auto_axes."
)


def parts_of(aval: Any) -> Parts:
    """Return the mesh axes that split each dimension of a value of this type."""
    explicit = explicit_of(aval)
    if explicit is None:
        return [None] * getattr(aval, "ndim", 0)
    return list(explicit.spec.partitions)


def with_sums(where: Any, unreduced: frozenset, reduced: frozenset) -> Any:
    """A sharding of arrays that are, or were, summed over these mesh axes."""
    return where.with_spec(where.spec.update(unreduced=unreduced, reduced=reduced))


def whole(aval: Any) -> Any:
    """The type without its split."""
    return aval if explicit_of(aval) is None else aval.update(sharding=None)


def as_asked(out: ShapedArray, asked: Any) -> ShapedArray:
    """The result of an operation that was told how to split it. ValueError if it cannot be so."""
    typed = out.update(sharding=asked)
    asked.shard_shape(out.shape)
    return typed


def split_results(layout: Any, avals: Sequence[Any], out: Any, params: dict) -> Any:
    """Return the types of results, from their types as wholes and the layout rule of a primitive."""
    primitive, rule = layout.primitive, layout.parts
    if rule is None:
        several = [elementwise(primitive.name, avals, aval) for aval in _listed(out)]
        found = several if primitive.multiple_results else several[0]
    else:
        found = rule(avals, out, **params)
    sums = over_axes(layout, avals, None, params) if any_sums(avals) else NO_SUMS
    if not primitive.multiple_results:
        return _placed(primitive.name, avals, out, found, sums)
    each = sums if isinstance(sums, list) else [sums] * len(out)
    triples = zip(out, found, each, strict=True)
    return [_placed(primitive.name, avals, *triple) for triple in triples]


def _listed(out: Any) -> Sequence[Any]:
    return out if isinstance(out, (list, tuple)) else [out]


def _placed(name: str, avals: Sequence[Any], out: Any, parts: Parts, sums: Sums) -> Any:
    """`out` split so; an error where two dimensions want one axis, or a size is no multiple."""
    if sums is NO_SUMS and all(part is None for part in parts):
        return out
    mesh = next(filter(None, map(explicit_of, avals)))
    sizes = mesh.mesh.shape
    names = [n for part in parts for n in _names(part)]
    if len(set(names)) < len(names):
        shown = [
            str(size) + (f"@{','.join(_names(part))}" if part else "")
            for size, part in zip(out.shape, parts, strict=True)
        ]
        raise ShardingTypeError(
            f"{name} operation with inputs: {shown_types(avals, short_dtypes=True)} produces an "
            f"illegally sharded result: {short_name(out.dtype)}[{','.join(shown)}]: a mesh "
            f"axis can split one dimension only. {_REMEDY}"
        )
    for size, part in zip(out.shape, parts, strict=True):
        count = math.prod([sizes[axis] for axis in _names(part)])
        if size % count and name in _DOING:
            raise ShardingTypeError(
                f"{_DOING[name]} on sharded dims where out dim ({size}) is not divisible "
                f"by mesh axes ({count}) with spec ({part}) is not implemented. Got input type="
                f"{avals[0].str_short(short_dtypes=True)} and output shape={out.shape}. Operands "
                f"are {shown_types(avals)}. {_REMEDY}"
            )
    where = mesh.with_spec(parts)
    return out.update(sharding=where if sums is NO_SUMS else with_sums(where, *sums))


def _names(part: Any) -> tuple:
    return () if part is None else part if isinstance(part, tuple) else (part,)


def shown_types(avals: Sequence[Any], short_dtypes: bool = False) -> str:
    return ", ".join(aval.str_short(short_dtypes=short_dtypes) for aval in avals)


_DOING = {  # what changes the sizes of dimensions, as errors call it
    "slice": "slicing", "pad": "padding", "dynamic_slice": "dynamic_slice",
    "conv_general_dilated": "conv_general_dilated", "reduce_window": "reduce_window",
    "reduce_window_sum": "reduce_window", "reduce_window_max": "reduce_window",
    "reduce_window_min": "reduce_window", "split": "split",
}  # fmt: skip


def ambiguous(name: str, why: str, avals: Sequence[Any]) -> ShardingTypeError:
    """The error of an operation on split arrays whose result could be split in several ways."""
    return ShardingTypeError(f"{why}. Operands of {name} are {shown_types(avals)}. {_REMEDY}")


def batched_sharding(where: Any, x: Any, dim: int, out_dim: int | None = None) -> Any:
    """A sharding that was asked for a result, with the batch axis `dim` of an operand at `out_dim`."""
    if where is None:
        return None
    parts = list(where.spec.partitions)
    parts.insert(dim if out_dim is None else out_dim, parts_of(x.aval)[dim])
    return where.with_parts(parts)


def cotangent_sharding(aval: ShapedArray, places: Sequence[int], *operands: Any) -> Any:
    """Return how to split the cotangent of a value of this type, its dimensions in the order
    `places`.
    """
    where = next(filter(None, map(explicit_of, (aval, *map(get_aval, operands)))), None)
    if where is None:
        return None
    parts = parts_of(aval)
    found = where.with_spec([parts[place] for place in places])
    unreduced, reduced = sums_of(aval)
    return with_sums(found, reduced, unreduced) if unreduced or reduced else found


def mapped_axis(leaves: Sequence[Any], dims: Sequence[int | None], spmd_name: Any) -> Any:
    """Return the mesh axes that split the mapped axis; the types of all arguments must agree."""
    found = {
        parts_of(get_aval(x))[dim]: None
        for x, dim in zip(leaves, dims, strict=True)
        if isinstance(dim, int)  # and no spec of a type that a library defined
    }
    if len(found) > 1:
        raise ValueError(
            "Mapped away dimension of inputs passed to vmap should be sharded the same. Got "
            f"inconsistent axis specs: {' vs '.join(map(str, found))}. Reshard the arguments."
        )
    split = next(iter(found), None)
    if None not in (split, spmd_name) and axes_of(split) != axes_of(spmd_name):
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed. "
            f"Got spmd_axis_name={axes_of(spmd_name)} and arrays sharded on "
            f"explicit_mesh_axis={axes_of(split)}"
        )
    return split


# -- rules that many primitives share ----------------------------------------------------------


def merge(name: str, avals: Sequence[Any], places: Sequence[Parts]) -> Parts:
    """Parts of dimensions that correspond: those that are split must be so alike."""
    out = []
    for found in zip(*places, strict=True):
        kinds = {part for part in found if part is not None}
        if len(kinds) > 1:
            shown = ", ".join(str(tuple(parts)) for parts in places)
            raise ShardingTypeError(
                f"{name} got incompatible shardings for broadcasting: {shown}. Operands are of "
                f"types {shown_types(avals)}; make them agree with "
                "minijax.sharding.reshard(x, P(...))."
            )
        out.append(kinds.pop() if kinds else None)
    return out


def common_sharding(shape: tuple[int, ...], *arrays: Any) -> Any:
    """The sharding of arrays that are broadcast to a shape together; None if none is split."""
    avals = [get_aval(x) for x in arrays]
    split = [aval for aval in avals if explicit_of(aval) is not None]
    if not split:
        return None
    places = []
    for aval in split:
        new = len(shape) - aval.ndim
        kept = zip(parts_of(aval), aval.shape, shape[new:], strict=True)
        places.append([None] * new + [part if size == n else None for part, size, n in kept])
    return explicit_of(split[0]).with_parts(merge("broadcast_shardings", split, places))


class SplitAlike(dict):
    """Keeps the types that a primitive with the rule `all_alike` gives.

    Not those for operands that are split differently, which depend on the mesh in force.
    """

    def __setitem__(self, key: tuple, out: Any) -> None:
        if len({aval.placement for aval in key[0]}) == 1:
            super().__setitem__(key, out)


def all_alike(avals: Sequence[Any]) -> Parts:
    """Parts of operands that are split alike; ShardingTypeError for others.

    Where no mesh is in force, those that are not split go with those that are. A primitive with this
    rule keeps its types in `SplitAlike`.
    """
    places = [parts_of(aval) for aval in avals]
    if get_abstract_mesh().empty:
        places = [parts for parts in places if any(parts)] or places[:1]
    if any(parts != places[0] for parts in places):
        raise ShardingTypeError(
            "All operands should have the same sharding. Got shardings "
            f"{', '.join(str(aval.sharding) for aval in avals)}: make them agree with "
            "minijax.sharding.reshard(x, P(...))."
        )
    return places[0]


def of_cases(avals: Sequence[Any], out: ShapedArray) -> Parts:
    """Parts of a choice between arrays, that are split alike; what is whole may be split as others.

    The first of `avals` says which is chosen: it is split as the arrays are, or a scalar.
    """
    which, *cases = avals
    split = [case for case in cases if any(parts_of(case))]
    if any(parts_of(case) != parts_of(split[0]) for case in split):
        raise ShardingTypeError(
            "select cases must have the same shardings, got "
            f"[{', '.join(str(case.sharding) for case in cases)}]. Operands are of types "
            f"{shown_types(avals)}. {_REMEDY}"
        )
    parts = parts_of(which)
    if split and any(parts) and parts != parts_of(split[0]):
        raise ShardingTypeError(
            "select `which` must be scalar or have the same sharding as cases, got `which` sharding "
            f"{which.sharding} but case sharding {split[0].sharding}. Operands are of types "
            f"{shown_types(avals)}. {_REMEDY}"
        )
    return parts_of(split[0]) if split else parts if any(parts) else [None] * out.ndim


def check_distinct(where: Any, parts: Parts) -> None:
    """DuplicateSpecError for parts that name an axis of the mesh twice."""
    names = [name for part in parts for name in _names(part)]
    if len(set(names)) < len(names):
        where.with_spec(parts)


def elementwise(name: str, avals: Sequence[Any], out: ShapedArray) -> Parts:
    """Sharding of an elementwise operation: operands have the shape of the result, or ones, or
    none.
    """
    places, shape = [], out.shape
    for aval in avals:
        parts, sizes = parts_of(aval), getattr(aval, "shape", ())
        if not any(parts):
            continue
        if len(sizes) != len(shape) or any(s not in (1, n) for s, n in zip(sizes, shape)):
            raise ambiguous(name, "it is not known how its result is split", avals)
        places.append([p if s == n else None for p, s, n in zip(parts, sizes, shape)])
    return merge(name, avals, places) if places else [None] * len(shape)


def as_operand(avals: Sequence[Any], out: Any, **params) -> Any:
    """The rule of an operation that keeps the order of dimensions, such as slicing or padding."""
    parts = parts_of(avals[0])
    return [parts] * len(out) if isinstance(out, (list, tuple)) else parts


def as_operands(avals: Sequence[Any], out: Any, **params) -> Any:
    """The rule of an operation on several arrays at once, each with a result of its type."""
    return [parts_of(aval) for aval in avals]


def leading(avals: Sequence[Any], out: Any, **params) -> Parts:
    """The rule of an operation that adds or removes trailing dimensions, which are whole."""
    return (parts_of(avals[0]) + [None] * out.ndim)[: out.ndim]


def kept_axes(names: str | Sequence[str]) -> Callable:
    """The rule of a reduction: the axes that the parameter of this name lists are gone."""

    def rule(avals, out, **params):
        axes = params[names]
        axes = (axes,) if isinstance(axes, int) else axes
        places = [
            [part for axis, part in enumerate(parts_of(aval)) if axis not in axes]
            for aval in avals
            if getattr(aval, "ndim", 0)
        ]
        return places[: len(out)] if isinstance(out, (list, tuple)) else places[0]

    return rule


def along(name: str, axis_of: Callable[..., Sequence[int]], why: str = "") -> Callable:
    """The rule of an operation along axes, `axis_of(first operand, **params)`, that must be whole.

    The other dimensions are those of the operands, which agree. `why` is said of one that is split,
    by its `type`, its `sharding` and its first `axis`.
    """
    why = why or f"{name} takes operands that are not split along the axes that it runs over"

    def rule(avals, out, **params):
        axes = [axis % avals[0].ndim for axis in axis_of(avals[0], **params)]
        for aval in avals:
            parts = parts_of(aval)
            if aval.ndim == avals[0].ndim and any(parts[axis] for axis in axes):
                shown = {"type": aval.str_short(), "sharding": aval.sharding, "axis": axes[0]}
                raise ambiguous(name, why.format(**shown), avals)
        arrays = [aval for aval in avals if aval.ndim == avals[0].ndim]
        parts = merge(name, arrays, [parts_of(aval) for aval in arrays])
        return [parts] * len(out) if isinstance(out, (list, tuple)) else parts

    return rule


def leading_parts(name: str, avals: Sequence[Any], core: int) -> Parts:
    """Parts of the dimensions before the last `core`, which are those of all operands."""
    leads = [tuple(parts_of(aval)[: max(aval.ndim - core, 0)]) for aval in avals]
    length = max(map(len, leads))
    longest = dict.fromkeys(found for found in leads if len(found) == length)
    if len(longest) > 1:
        raise ambiguous(
            name,
            f"All inputs to {name} must have the same batch sharding, but got "
            f"{' and '.join(map(str, longest))}",
            avals,
        )
    (parts,) = longest
    return list(parts)


def batched(name: str, core: int) -> Callable:
    """The rule of an operation on the last `core` dimensions, such as a factorization.

    The leading dimensions are those of the operands, which agree; the last are whole.
    """

    def rule(avals, out, **params):
        for index, aval in enumerate(avals):
            if any(parts_of(aval)[max(aval.ndim - core, 0) :]):
                raise ambiguous(
                    name,
                    f"Input {index} to {name} must be unsharded on non-batch dimensions, but got "
                    f"{PartitionSpec(*parts_of(aval))}",
                    avals,
                )
        lead = leading_parts(name, avals, core)
        fitted = [(lead + [None] * aval.ndim)[: aval.ndim] for aval in _listed(out)]
        return fitted if isinstance(out, (list, tuple)) else fitted[0]

    return rule


hooks.fill(mapped_axis=mapped_axis, unplaced=whole)
