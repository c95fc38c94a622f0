"""The layout rules of the primitives that the transforms need themselves."""

from __future__ import annotations

from minijax.core.hooks import hooks
from minijax.errors import ShardingTypeError
from minijax.features.sharding.layouts import layout, set_layout
from minijax.features.sharding.sharding_rules import batched_sharding, kept_axes, parts_of
from minijax.features.sharding.unreduced import added, first, sums_of
from minijax.runtime.mesh import axes_of
from minijax.transforms.primitives import (
    add_any_p,
    broadcast_in_dim_p,
    reduce_sum_p,
    transpose_p,
)

set_layout(add_any_p, sums=added)
set_layout(broadcast_in_dim_p, sums=first)


@layout(broadcast_in_dim_p, "parts")
def _(avals, out, *, broadcast_dimensions, **params):
    (x,), parts = avals, [None] * out.ndim
    for axis, (d, part) in enumerate(zip(broadcast_dimensions, parts_of(x), strict=True)):
        parts[d] = part if x.shape[axis] == out.shape[d] else None
    return parts


set_layout(reduce_sum_p, parts=kept_axes("axes"))


@layout(reduce_sum_p, "sums")
def _(name, avals, asked, *, axes, out_sharding):
    """Asked to, it leaves the sum over mesh axes that split what it sums over."""
    (x,) = avals
    unreduced, reduced = sums_of(x)
    if asked is None or not asked.spec.unreduced:
        return unreduced, reduced
    parts = parts_of(x)
    summed = {name for axis in axes for name in axes_of(parts[axis])}
    if not asked.spec.unreduced <= summed | unreduced:
        raise ShardingTypeError(
            "out_sharding's unreduced axes should be in operand's specs that were summed over. Got "
            f"operand={x.str_short()}, axes={tuple(axes)}, unreduced_spec={asked.spec.unreduced}: "
            "name mesh axes that split the dimensions which are summed."
        )
    return unreduced | asked.spec.unreduced, reduced


set_layout(transpose_p, sums=first)


@layout(transpose_p, "parts")
def _(avals, out, *, permutation):
    parts = parts_of(avals[0])
    return [parts[axis] for axis in permutation]


hooks.fill(batched_sharding=batched_sharding)
