"""`shard_alike`: two arrays that XLA is to split in the same way."""

from __future__ import annotations

from typing import Any

from minijax import tree_util
from minijax.core.avals import get_aval
from minijax.core.primitive import Primitive
from minijax.transforms.primitives import broadcast_batch, instantiate, moveaxis
from minijax.transforms.tangents import Zero

__all__ = ["shard_alike", "shard_alike_p"]

shard_alike_p = Primitive("shard_alike", multiple_results=True)


@shard_alike_p.shape_rule
def _(x, y):
    return [x, y]


@shard_alike_p.jvp
def _(primals, tangents):
    tangents = _alike(tangents)
    return shard_alike_p.bind(*primals), tangents


@shard_alike_p.transpose
def _(cts, x, y):
    return _alike(cts)


def _alike(pair: Any) -> Any:
    """A pair of tangents, or of cotangents, one of which is not zero."""
    if all(type(t) is Zero for t in pair):
        return list(pair)
    return shard_alike_p.bind(*map(instantiate, pair))


@shard_alike_p.batch_axis
def _(axis, args, dims):
    dim = next(d for d in dims if d is not None)
    lined = [
        broadcast_batch(x, axis.size, dim) if d is None else moveaxis(x, d, dim)
        for x, d in zip(args, dims, strict=True)
    ]
    return shard_alike_p.bind(*lined), [dim, dim]


@shard_alike_p.lower
def _(b, x, y):
    if len(b.module.devices) > 1:
        b.module.channels += 1  # a number that nothing else in the module has
        for each in (x, y):
            group = f"group_id={b.module.channels}"
            b.statements(f"sdy.sharding_group {each.name} {group} : {each.type}", [])
    return [x, y]


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """The two trees of arrays, each pair of which is split over devices in the same way.

    ValueError for trees or shapes that differ. Source: Shardy's `sharding_group`.
    """
    x_leaves, x_tree = tree_util.flatten(x)
    y_leaves, y_tree = tree_util.flatten(y)
    if x_tree != y_tree:
        raise ValueError(f"Trees should be equal. Got x_tree: {x_tree}, y_tree: {y_tree}")
    pairs = []
    for one, other in zip(x_leaves, y_leaves, strict=True):
        shapes = get_aval(one).shape, get_aval(other).shape
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"The leaves shapes of `x` and `y` should match. Got `x` leaf shape: {shapes[0]} "
                f"and `y` leaf shape: {shapes[1]}: reshape or broadcast one."
            )
        pairs.append(shard_alike_p.bind(one, other))
    return tuple([x_tree.unflatten([pair[n] for pair in pairs]) for n in (0, 1)])
