"""Gathers and scatters whose results types tell apart: the same everywhere, reduced, or summed.

Within `shard_map` (`check_vma`): a gather gives every place the same value, which its type may say,
and the transpose of one whose result is reduced takes a sum that is still to be taken, each place a
part of it.
"""

from __future__ import annotations

from typing import Any

from minijax.core.effects import NamedAxisEffect
from minijax.core.primitive import Primitive
from minijax.features.sharding.layouts import CollectivePrimitive, in_shape_rule, layout, set_layout
from minijax.features.sharding.sharding_rules import parts_of, with_sums
from minijax.features.sharding.unreduced import sums_of
from minijax.lax import collective_lowering
from minijax.lax.rules import linear_in
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.transforms.primitives import moveaxis

__all__ = [
    "all_gather_invariant_p", "all_gather_reduced_p", "gathered_shape", "scattered_shape",
    "unreduced_reduce_scatter_p",
]  # fmt: skip

_SHOWN = ("all_gather_dimension", "axis_name", "axis_size", "scatter_dimension", "tiled")


def _collective(name: str, dimension: str) -> Primitive:
    """A collective along the parameter `dimension`; vectorized, along the next one."""
    p = CollectivePrimitive(name)
    p.printed = lambda params: {key: value for key, value in params.items() if key in _SHOWN}
    p.effects_rule(lambda *, axis_name, **params: frozenset(map(NamedAxisEffect, axis_name)))

    linear_in(p, 0)

    @p.batch
    def _(args, dims, **params):
        params[dimension] += 1
        return p.bind(moveaxis(args[0], dims[0], 0), **params), 0

    return p


def gathered_shape(x: Any, dimension: int, axis_size: int, tiled: bool) -> tuple[int, ...]:
    shape = list(x.shape)
    if tiled:
        shape[dimension] *= axis_size
    else:
        shape.insert(dimension, axis_size)
    return tuple(shape)


def scattered_shape(x: Any, dimension: int, axis_size: int, tiled: bool) -> tuple[int, ...]:
    """The shape of the part of a sum that one place keeps. ValueError if there are other parts."""
    shape = list(x.shape)
    size = shape[dimension]
    if tiled:
        if size % axis_size:
            raise ValueError(
                f"tiled reduce_scatter operand scatter dimension size {size} must be divisible by "
                f"shard_count {axis_size}"
            )
        shape[dimension] = size // axis_size
    else:
        if size != axis_size:
            raise ValueError(
                f"reduce_scatter operand scatter dimension size {size} must match shard count "
                f"{axis_size}"
            )
        del shape[dimension]
    return tuple(shape)


def _typed(x: Any, shape: tuple, mesh: Any, unreduced: frozenset, reduced: frozenset) -> Any:
    """The type of a result, which no axis of the mesh splits but the manual ones."""
    if any(parts_of(x)):
        raise NotImplementedError(
            f"a collective of sums on {x.str_short()}: within shard_map over all axes of the mesh only."
        )
    where = NamedSharding(mesh, PartitionSpec(*[None] * len(shape)))
    return x.update(shape=shape, sharding=with_sums(where, unreduced, reduced))


def _lower_gather(b, x, *, mesh=None, **params):
    return collective_lowering.all_gather(b, x, axis_index_groups=None, **params)


all_gather_reduced_p = _collective("all_gather_reduced", "all_gather_dimension")
set_layout(all_gather_reduced_p, parts=in_shape_rule)
all_gather_reduced_p.lower(_lower_gather)


@layout(all_gather_reduced_p, "varying")
def _(given, *, axis_name, **params):
    return given, given - frozenset(axis_name)


@all_gather_reduced_p.shape_rule
def _(x, *, all_gather_dimension, axis_name, axis_size, tiled, mesh):
    unreduced, reduced = sums_of(x)
    shape = gathered_shape(x, all_gather_dimension, axis_size, tiled)
    return _typed(x, shape, mesh, unreduced, reduced | frozenset(axis_name))


@all_gather_reduced_p.transpose
def _(ct, x, *, all_gather_dimension, **params):
    return [unreduced_reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params)]


# The same everywhere, as types say; its transpose stands in `lax.collective_movement`.
all_gather_invariant_p = _collective("all_gather_invariant", "all_gather_dimension")
all_gather_invariant_p.lower(_lower_gather)


@layout(all_gather_invariant_p, "varying")
def _(given, *, axis_name, **params):
    given |= frozenset(axis_name)
    return given, given - frozenset(axis_name)


@all_gather_invariant_p.shape_rule
def _(x, *, all_gather_dimension, axis_name, axis_size, tiled):
    return x.update(shape=gathered_shape(x, all_gather_dimension, axis_size, tiled))


unreduced_reduce_scatter_p = _collective("unreduced_reduce_scatter", "scatter_dimension")
set_layout(unreduced_reduce_scatter_p, parts=in_shape_rule)


@unreduced_reduce_scatter_p.shape_rule
def _(x, *, scatter_dimension, axis_name, axis_size, tiled, mesh):
    unreduced, reduced = sums_of(x)
    shape = scattered_shape(x, scatter_dimension, axis_size, tiled)
    return _typed(x, shape, mesh, unreduced - frozenset(axis_name), reduced)


@layout(unreduced_reduce_scatter_p, "varying")
def _(given, *, axis_name, **params):
    return given, given | frozenset(axis_name)


@unreduced_reduce_scatter_p.lower
def _(b, x, *, mesh, **params):
    return collective_lowering.reduce_scatter(b, x, axis_index_groups=None, **params)


@unreduced_reduce_scatter_p.transpose
def _(ct, x, *, scatter_dimension, **params):
    return [all_gather_reduced_p.bind(ct, all_gather_dimension=scatter_dimension, **params)]
