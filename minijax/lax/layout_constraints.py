"""`layout_constraint`: in which order the dimensions of a value lie in memory within a program."""

from __future__ import annotations

from minijax.core.primitive import Primitive
from minijax.lax.rules import linear
from minijax.lowering.types import physical

__all__ = ["layout_constraint_p"]

layout_constraint_p = Primitive("layout_constraint")


@layout_constraint_p.shape_rule
def _(x, *, layout):
    return x


linear(layout_constraint_p, lambda ct, aval, *, layout: layout_constraint_p.bind(ct, layout=layout))


@layout_constraint_p.batch
def _(args, dims, *, layout):
    # The batch dimension varies slowest, so that each element lies as was asked.
    (x,), (dim,) = args, dims
    order = (dim, *[d + (d >= dim) for d in layout.major_to_minor])
    return layout_constraint_p.bind(x, layout=layout.update(major_to_minor=order)), dim


@layout_constraint_p.lower
def _(b, x, *, layout):
    rank = physical(x.aval).ndim
    order = (*layout.major_to_minor, *range(len(layout.major_to_minor), rank))
    given = tuple(range(rank))
    return b.custom_call(
        "LayoutConstraint", (x,), b.outs, config='""', api_version=1,
        layouts=([given[::-1]], [order[::-1]]),
    )[0]  # fmt: skip
