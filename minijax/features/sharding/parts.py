"""The types of the parts of arrays that devices hold, and of arrays from those of their parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.features.sharding.constraints import with_types
from minijax.features.sharding.sharding_rules import parts_of, with_sums
from minijax.features.sharding.types import MEMBERS, explicit_of, vma_of
from minijax.runtime.mesh import AxisType, PartitionSpec, axes_of
from minijax.runtime.named_sharding import NamedSharding

__all__ = ["part_aval", "pieces", "whole_aval"]


def pieces(mesh: Any, spec: PartitionSpec, ndim: int) -> list[int]:
    """Return how many parts each dimension is split into."""
    sizes = mesh.shape
    parts = [*spec.partitions, *[None] * (ndim - len(spec))]
    return [int(np.prod([sizes[name] for name in axes_of(part)])) for part in parts]


def part_aval(aval: Any, mesh: Any, spec: PartitionSpec, manual: frozenset, check: bool) -> Any:
    """The type of the part of an array that a device holds."""
    if aval.is_high:
        return aval.shard(mesh, manual, check, spec)
    shape = tuple(s // n for s, n in zip(aval.shape, pieces(mesh, spec, aval.ndim), strict=True))
    vma = vma_of(aval) | spec.split_axes if check else vma_of(aval)
    rest = None
    explicit = explicit_of(aval)
    if explicit is not None:  # over the axes that are not manual
        own = explicit.spec.partitions
        parts = [tuple(n for n in axes_of(p) if n not in manual) for p in own]
        rest = explicit.with_spec(parts)
    if spec.sums and check:
        within = NamedSharding(
            with_types(mesh, manual, AxisType.Manual).abstract_mesh, PartitionSpec()
        )
        rest = with_sums(rest or within, spec.unreduced, spec.reduced)
    return aval.update(shape=shape, vma=vma, sharding=rest)


def whole_aval(
    aval: Any, mesh: Any, spec: PartitionSpec, manual: frozenset, check: bool = True
) -> Any:
    """The type of the array whose part on a device is of a type."""
    if aval.is_high:
        return aval.unshard(mesh, check, spec)
    shape = tuple(s * n for s, n in zip(aval.shape, pieces(mesh, spec, aval.ndim), strict=True))
    own = [axes_of(part) for part in [*spec.partitions, *[None] * (aval.ndim - len(spec))]]
    rest = [axes_of(part) for part in parts_of(aval)]
    parts = [(*one, *other) for one, other in zip(own, rest, strict=True)]
    whole = PartitionSpec(*parts, unreduced=spec.unreduced, reduced=spec.reduced)
    return aval.update(shape=shape, vma=vma_of(aval) - manual, sharding=NamedSharding(mesh, whole))


def _shard(aval: Any) -> Any:
    def shard(mesh: Any, manual: Any, check: bool, spec: PartitionSpec) -> Any:
        return part_aval(aval, mesh, spec, frozenset(manual), check)

    return shard


def _unshard(aval: Any) -> Any:
    def unshard(mesh: Any, check: bool, spec: PartitionSpec) -> Any:
        return whole_aval(aval, mesh, spec, frozenset(mesh.axis_names), check)

    return unshard


# Types that libraries define ask it of those they are made of.
MEMBERS.update(shard=_shard, unshard=_unshard)
