"""The specs of `shard_map` in terms of types: what splits parts, and over which axes values are
sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.avals import get_aval
from minijax.features.sharding.sharding_rules import parts_of
from minijax.features.sharding.unreduced import NO_SUMS, sums_of
from minijax.lax.casts import cast, vary, vary_unreduced_p
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding

__all__ = ["check_given_sums", "check_sums", "check_types", "summands", "typed_spec"]


def typed_spec(aval: Any) -> PartitionSpec:
    """The spec that a type gives an argument."""
    unreduced, reduced = sums_of(aval)
    return PartitionSpec(*parts_of(aval), unreduced=unreduced, reduced=reduced)


def check_types(mesh: Any, manual: frozenset, specs: Sequence[Any], avals: Sequence[Any]) -> None:
    """ValueError unless types say how arguments are split, and say what `in_specs` say."""
    if not mesh.are_all_axes_explicit or not manual.issuperset(mesh.axis_names):
        return
    for spec, aval in zip(specs, avals, strict=True):
        own, ndim = getattr(aval, "explicit", None), getattr(aval, "ndim", 0)
        if NamedSharding(mesh, spec).explicit_part(ndim) == own:
            continue
        typed = PartitionSpec(*[None] * ndim) if own is None else own.spec
        raise ValueError(
            f"in_specs passed to shard_map: {spec} does not match the specs of the input: "
            f"{typed} for arg: {aval.str_short()}. `in_specs` is an optional argument so you "
            "can omit specifying it and shard_map will infer the in_specs from the arguments. If "
            "you want to reshard your inputs, you can use `jax.reshard` on the arguments and "
            "then pass those args to shard_map."
        )


def check_given_sums(
    mesh: Any, manual: frozenset, specs: Sequence[PartitionSpec], avals: Sequence[Any], check: bool
) -> None:
    """Errors unless the specs of arguments name the sums that these are, where types say it."""
    check_sums("in_specs", mesh, manual, specs)
    for spec, aval in zip(specs, avals, strict=True):
        if check and sums_of(aval) != (spec.unreduced, spec.reduced):
            raise ValueError(
                f"in_specs containing reduced {spec} passed to shard_map should be equal to the "
                f"reduced present on the in_aval {aval.str_short(True)}, and so for unreduced: "
                "reshard the argument, or let shard_map infer in_specs."
            )


def check_sums(what: str, mesh: Any, manual: frozenset, specs: Sequence[Any]) -> None:
    """Errors unless all axes are Explicit outside and Manual within, where specs name sums."""
    spec = next((found for found in specs if getattr(found, "sums", False)), None)
    if spec is None:
        return
    if not mesh.are_all_axes_explicit:
        kind = "unreduced" if spec.unreduced else "reduced"
        raise ValueError(
            f"{kind} in {what} {spec} can only be used when the mesh passed to shard_map contains axis "
            f"names all of type `Explicit`. Got mesh {mesh}: make it with axis_types=(AxisType."
            "Explicit, ...)."
        )
    if not manual.issuperset(mesh.axis_names):
        raise NotImplementedError(
            f"unreduced/reduced can only be passed to {what} when shard_map is in full manual mode. "
            f"Got mesh axis names {mesh.axis_names}, manual_axes: {set(manual)}, specs: {spec}."
        )


def summands(outs: Sequence[Any], specs: Sequence[PartitionSpec]) -> list[Any]:
    """Results, of which those that vary are summands where specs say that a sum is to be taken."""
    found = []
    for x, spec in zip(outs, specs, strict=True):
        aval = get_aval(x)
        missing = spec.unreduced - sums_of(aval)[0]
        if missing - aval.vma:
            raise ValueError(
                f"vary_unreduced_cast only accepts inputs that are varying. Got {aval.str_short(True)}"
                f" for out_specs {spec}: what is the same everywhere is no sum over {set(missing)}."
            )
        if sums_of(aval) != NO_SUMS:
            vary(x, spec.split_axes - aval.vma)  # an error if it cannot be split
        found.append(cast(vary_unreduced_p, x, missing) if missing else x)
    return found
