"""Collectives that move values over named axes: ppermute, all_gather, reduce_scatter, all_to_all.

Their batching rules turn them into operations on the mapped dimension.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from minijax import tree_util
from minijax.config import local
from minijax.core.avals import get_aval
from minijax.features.sharding.types import vma_of
from minijax.lax import collective_lowering
from minijax.lax.arithmetic import mul
from minijax.lax.casts import as_names, common_state, state_over
from minijax.lax.dynamic_slicing import dynamic_slice_in_dim
from minijax.lax.gathers import (
    all_gather_invariant_p,
    all_gather_reduced_p,
    gathered_shape,
    scattered_shape,
    unreduced_reduce_scatter_p,
)
from minijax.lax.indexing import GatherDimensionNumbers, gather
from minijax.lax.named_axes import (
    axis_size,
    batch_over,
    bound_names,
    check_bound,
    collective,
    group_size,
    index_groups,
)
from minijax.lax.parallel import axis_index
from minijax.lax.rules import linear_in, scalar_like
from minijax.lax.shapes import permute, reshape
from minijax.lax.slicing import index_in_dim, pad_p
from minijax.lowering.module import lower_by
from minijax.runtime.mesh import get_abstract_mesh
from minijax.transforms.batching import to_front
from minijax.transforms.primitives import reduce_sum_p

__all__ = [
    "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "pbroadcast",
    "pbroadcast_p", "ppermute", "ppermute_p", "pshuffle", "psum_scatter", "pswapaxes", "reduce_scatter_p",
]  # fmt: skip

_T = TypeVar("_T")
AxisNames: TypeAlias = Hashable | tuple[Hashable, ...]

Name = Hashable


ppermute_p = collective(
    "ppermute", lambda *, axis_name, perm: axis_name, collective_lowering.collective_permute
)


@ppermute_p.shape_rule
def _(x, *, axis_name, perm):
    return x


@batch_over(ppermute_p)
def _(axis, x, dim, *, axis_name, perm):
    if len(perm) != axis.size:
        raise AssertionError(
            f"Permutation doesn't match the axis size! ppermute got {len(perm)} pairs, and the axis "
            f"{axis.name!r} has size {axis.size}: over a mapped axis each position must receive a "
            "value."
        )
    if dim is None:
        return x, None
    source = np.empty(axis.size, np.int32)
    for src, dst in perm:
        source[dst] = src
    return _take_rows(x, dim, source), dim


linear_in(ppermute_p, 0)


@ppermute_p.transpose
def _(ct, x, *, axis_name, perm):
    inverse = tuple((dst, src) for src, dst in perm)
    return [ppermute_p.bind(ct, axis_name=axis_name, perm=inverse)]


def _take_rows(x: Any, dim: int, rows: np.ndarray) -> Any:
    """`x` with its slices along one dimension put in another order."""
    offsets = tuple(d for d in range(x.ndim) if d != dim)
    numbers = GatherDimensionNumbers(offsets, (dim,), (dim,))
    sizes = tuple(1 if d == dim else size for d, size in enumerate(x.shape))
    return gather(x, rows[:, None], numbers, sizes, mode="promise_in_bounds")


def ppermute(x: _T, axis_name: AxisNames, perm: Sequence[tuple[int, int]]) -> _T:
    """Send values along a named axis.

    - `x`: pytree of arrays of any shape and dtype
    - `axis_name`: name of an axis of `vmap` or of a mesh
    - `perm`: pairs (source, destination)

    The result has the shapes and dtypes of `x`; positions that receive nothing get zeros.
    ValueError if a position sends or receives twice. Source: the StableHLO operation
    `stablehlo.collective_permute`.

    >>> swap = lambda x: lax.ppermute(x, "i", [(0, 1), (1, 0)])
    >>> jax.vmap(swap, axis_name="i")(jnp.array([4, 5]))
    Array([5, 4], dtype=int32)
    """
    names = bound_names("ppermute", axis_name)
    perm = tuple((int(src), int(dst)) for src, dst in perm)
    sources, targets = [s for s, _ in perm], [d for _, d in perm]
    if len(set(sources)) < len(perm) or len(set(targets)) < len(perm):
        raise ValueError(f"ppermute sources and destinations must be unique, got {list(perm)}.")
    return tree_util.tree_map(lambda leaf: ppermute_p.bind(leaf, axis_name=names, perm=perm), x)


def pshuffle(x: _T, axis_name: AxisNames, perm: Sequence[int]) -> _T:
    """Permute values along a named axis: position `i` of the result comes from `perm[i]`.

    - `x`: pytree of arrays of any shape and dtype
    - `axis_name`: name of an axis of `vmap` or of a mesh
    - `perm`: permutation of the positions

    The result has the shapes and dtypes of `x`. ValueError unless `perm` is a permutation.
    Source: the StableHLO operation `stablehlo.collective_permute`.

    >>> jax.vmap(lambda x: lax.pshuffle(x, "i", [1, 0]), axis_name="i")(jnp.array([4, 5]))
    Array([5, 4], dtype=int32)
    """
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {list(perm)}")
    return ppermute(x, axis_name, [(src, dst) for dst, src in enumerate(perm)])


all_gather_p = collective(
    "all_gather",
    lambda *, axis_name, all_gather_dimension, axis_index_groups, axis_size, tiled: axis_name,
    collective_lowering.all_gather,
)


@all_gather_p.shape_rule
def _(x, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled):
    return x.update(shape=gathered_shape(x, all_gather_dimension, axis_size, tiled))


@batch_over(all_gather_p, "all_gather_dimension")
def _(axis, x, dim, *, all_gather_dimension, axis_name, tiled, **params):
    where = all_gather_dimension
    x, others = to_front(x, dim, axis.size), [name for name in axis_name if name != axis.name]
    for name in reversed(others):
        x = all_gather_p.bind(
            x, all_gather_dimension=0, axis_name=(name,), axis_index_groups=None,
            axis_size=group_size(None, name), tiled=False,
        )  # fmt: skip
    come, rest = list(range(len(others))), range(len(axis_name), x.ndim)
    come.insert(axis_name.index(axis.name), len(others))
    x = permute(x, (*rest[:where], *come, *rest[where:]))
    return _merged(x, where, len(axis_name) + tiled), None


def _merged(x: Any, first: int, count: int) -> Any:
    """`count` dimensions, from `first` on, as one."""
    last = first + count
    if count == 1:
        return x
    return reshape(x, (*x.shape[:first], int(np.prod(x.shape[first:last])), *x.shape[last:]))


linear_in(all_gather_p, 0)


@all_gather_p.transpose
def _(ct, x, *, all_gather_dimension, **params):
    return [reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params)]


def _canonical(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for an array of dimension {ndim}")
    return axis % ndim


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Gather the values from all positions of a named axis.

    - `x`: pytree of arrays of any shape and dtype
    - `axis`: axis along which they are stacked, or concatenated if `tiled`
    - `axis_index_groups`: groups of positions that gather separately
    - `to`: whether the type within `shard_map` is "varying", "invarying" or "reduced" (see `pcast`)

    The result has the shapes of `x` with a new axis of the named axis's size, or a longer axis.
    NameError if the name is unbound. Source: the StableHLO operation `stablehlo.all_gather`.

    >>> jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.array([4, 5]))
    Array([[4, 5],
           [4, 5]], dtype=int32)
    """
    if to not in _GATHERS:
        raise ValueError(
            "Got unexpected `to` value for `jax.lax.all_gather`. Allowed `to` values are: "
            f"{', '.join(_GATHERS)}; got {to!r}."
        )
    names = as_names(axis_name)
    check_bound("all_gather", names)
    if not names:
        return x
    if axis_index_groups is not None and len(names) == 1:
        axis_index_groups = index_groups(axis_index_groups, names)

    def one(leaf):
        ndim = get_aval(leaf).ndim
        where = _canonical(axis, ndim + (not tiled))
        out = leaf
        for name in reversed(names):
            params = {
                "all_gather_dimension": where,
                "axis_name": (name,),
                "axis_size": group_size(axis_index_groups, name),
                "tiled": tiled or out is not leaf,
            }
            out = _GATHERS[to](out, axis_index_groups, params)
        return out

    return tree_util.tree_map(one, x)


def _gathered(x: Any, groups: Any, params: dict) -> Any:
    return all_gather_p.bind(x, axis_index_groups=groups, **params)


def _gathered_invariant(x: Any, groups: Any, params: dict) -> Any:
    if groups is not None:
        raise NotImplementedError(
            "all_gather with axis_index_groups gives what varies: to='varying'."
        )
    return all_gather_invariant_p.bind(x, **params)


def _gathered_reduced(x: Any, groups: Any, params: dict) -> Any:
    aval, (name,) = get_aval(x), params["axis_name"]
    if groups is not None or state_over(aval, name) != "varying":
        raise ValueError(
            f"all_gather_reduced only accepts inputs that are varying. Got {aval.str_short(True)}: use "
            "it within shard_map with check_vma=True, without axis_index_groups."
        )
    return all_gather_reduced_p.bind(x, mesh=get_abstract_mesh(), **params)


_GATHERS = {
    "varying": _gathered,
    "invarying": _gathered_invariant,
    "reduced": _gathered_reduced,
}


@all_gather_invariant_p.transpose
def _(ct, x, *, all_gather_dimension, axis_name, axis_size, tiled):
    """Each place has its own part of the cotangent, which is the same everywhere."""
    (name,) = axis_name
    dimension = all_gather_dimension
    size = x.aval.shape[dimension] if tiled else 1
    part = dynamic_slice_in_dim(ct, mul(axis_index(name), np.int32(size)), size, dimension)
    return [part if tiled else reshape(part, x.aval.shape)]


reduce_scatter_p = collective(
    "reduce_scatter",
    lambda *, axis_name, scatter_dimension, axis_index_groups, axis_size, tiled: axis_name,
    collective_lowering.reduce_scatter,
)


@reduce_scatter_p.shape_rule
def _(x, *, scatter_dimension, axis_name, axis_index_groups, axis_size, tiled):
    return x.update(shape=scattered_shape(x, scatter_dimension, axis_size, tiled))


@batch_over(reduce_scatter_p, "scatter_dimension")
def _(axis, x, dim, *, scatter_dimension, axis_name, tiled, **params):
    where = scatter_dimension
    total = reduce_sum_p.bind(to_front(x, dim, axis.size), axes=(0,), out_sharding=None)
    total = _cut(total, where, [_size(axis, name) for name in axis_name], tiled)
    place = where  # of the dimension for a name, once those of the names before it are scattered
    for name in axis_name:
        if name == axis.name:
            place += 1
        else:
            total = reduce_scatter_p.bind(
                total, scatter_dimension=place, axis_name=(name,), axis_index_groups=None,
                axis_size=_size(axis, name), tiled=False,
            )  # fmt: skip
    return total, where


def _size(axis: Any, name: Name) -> int:
    return axis.size if name == axis.name else axis_size(name)


def _cut(x: Any, where: int, sizes: Sequence[int], tiled: bool) -> Any:
    """Dimension `where` as one for each of some sizes, and, if `tiled`, one for what is left."""
    if len(sizes) + tiled == 1:
        return x
    parts = [x.shape[where] // int(np.prod(sizes))] if tiled else []
    return reshape(x, (*x.shape[:where], *sizes, *parts, *x.shape[where + 1 :]))


linear_in(reduce_scatter_p, 0)


@reduce_scatter_p.transpose
def _(ct, x, *, scatter_dimension, **params):
    return [all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params)]


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Sum over a named axis, and keep one part of the sum at each position.

    - `x`: pytree of arrays
    - `scatter_dimension`: axis that is split; unless `tiled` it has the named axis's size and
      disappears
    - `axis_index_groups`: groups of positions that are summed separately

    The result has the dtypes of `x`. NameError if the name is unbound.
    Source: the StableHLO operation `stablehlo.reduce_scatter`.

    >>> jax.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    names = as_names(axis_name)
    if not names:
        return x
    check_bound("psum_scatter", names)
    axis_index_groups = index_groups(axis_index_groups, names)
    bind = functools.partial(
        reduce_scatter_p.bind,
        axis_name=names,
        axis_index_groups=axis_index_groups,
        axis_size=group_size(axis_index_groups, names),
        tiled=tiled,
    )

    def one(leaf):
        aval = get_aval(leaf)
        dimension = _canonical(scatter_dimension, aval.ndim)
        checked = axis_index_groups is None and local.context.varying.issuperset(names)
        if checked and common_state("psum_scatter", aval, names) == "unreduced":
            return unreduced_reduce_scatter_p.bind(
                leaf, scatter_dimension=dimension, axis_name=names, axis_size=axis_size(names),
                tiled=tiled, mesh=get_abstract_mesh(),
            )  # fmt: skip
        return bind(leaf, scatter_dimension=dimension)

    return tree_util.tree_map(one, x)


all_to_all_p = collective(
    "all_to_all",
    lambda *, axis_name, split_axis, concat_axis, axis_index_groups, tiled: as_names(axis_name),
    collective_lowering.all_to_all,
)


@all_to_all_p.shape_rule
def _(x, *, split_axis, concat_axis, axis_name, axis_index_groups, tiled):
    shape = list(x.shape)
    size = group_size(axis_index_groups, axis_name)
    if tiled:
        if shape[split_axis] % size:
            raise ValueError(
                f"tiled all_to_all: dimension {split_axis} of an operand of shape {x.shape} must "
                f"be divisible by the size {size} of axis {axis_name!r}."
            )
        shape[split_axis] //= size
        shape[concat_axis] *= size
    else:
        del shape[split_axis]
        shape.insert(concat_axis, size)
    return x.update(shape=tuple(shape), weak_type=False)


@batch_over(all_to_all_p, "split_axis", "concat_axis")
def _(axis, x, dim, *, axis_name, split_axis, concat_axis, tiled, **params):
    x, names, split = to_front(x, dim, axis.size), as_names(axis_name), split_axis + 1
    x = _cut(x, split, [_size(axis, name) for name in names], tiled)
    # One dimension for each name: first of the places that parts go to, then of those they come from.
    places = list(range(split, split + len(names)))
    for name, place in zip(names, places, strict=True):
        if name != axis.name:
            x = all_to_all_p.bind(
                x, axis_name=name, split_axis=place, concat_axis=place,
                axis_index_groups=None, tiled=False,
            )  # fmt: skip
    rest = [d for d in range(1, x.ndim) if d not in places]
    own = places[names.index(axis.name)]
    come = [0 if place == own else place for place in places]
    x = permute(x, (own, *rest[:concat_axis], *come, *rest[concat_axis:]))
    return _merged(x, 1 + concat_axis, len(names) + tiled), 0


linear_in(all_to_all_p, 0)


@all_to_all_p.transpose
def _(ct, x, *, split_axis, concat_axis, **params):
    return [all_to_all_p.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)]


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Split an axis over a named axis, and join what arrives along another axis.

    - `x`: pytree of arrays of any dtype
    - `split_axis`: axis to split; unless `tiled` it has the named axis's size and disappears
    - `concat_axis`: axis of the result where the parts are stacked, or concatenated if `tiled`
    - `axis_index_groups`: groups of positions that exchange separately

    ValueError unless the sizes fit. Source: the StableHLO operation `stablehlo.all_to_all`.

    >>> x = jnp.array([[0, 1], [2, 3]])
    >>> jax.vmap(lambda row: lax.all_to_all(row, "i", 0, 0), axis_name="i")(x)
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    names = bound_names("all_to_all", axis_name)
    axis_index_groups = index_groups(axis_index_groups, names)
    size = group_size(axis_index_groups, names)
    name = names[0] if len(names) == 1 else tuple(names)

    def one(leaf):
        shape = get_aval(leaf).shape
        split, concat = _canonical(split_axis, len(shape)), _canonical(concat_axis, len(shape))
        if not tiled and shape[split] != size:
            raise ValueError(
                f"all_to_all requires the size of the mapped axis axis_name to equal "
                f"x.shape[split_axis], but they are {size} and {shape[split]} respectively."
            )
        if shape[split] % size:
            raise ValueError(
                f"The size of all_to_all split_axis ({shape[split]}) has to be divisible by the size "
                f"of the named axis {axis_name} ({size})"
            )
        return all_to_all_p.bind(
            leaf,
            axis_name=name,
            split_axis=split,
            concat_axis=concat,
            axis_index_groups=axis_index_groups,
            tiled=tiled,
        )

    return tree_util.tree_map(one, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchange a named axis with an array axis of its size.

    - `x`: pytree of arrays of any dtype
    - `axis_name`: name of an axis of `vmap` or of a mesh
    - `axis`: axis of the arrays; `axis_index_groups`: groups of positions that exchange separately

    The result has the shapes and dtypes of `x`. ValueError unless the sizes are equal.
    Source: the StableHLO operation `stablehlo.all_to_all`.

    >>> x = jnp.array([[0, 1], [2, 3]])
    >>> jax.vmap(lambda row: lax.pswapaxes(row, "i", 0), axis_name="i")(x)
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


@lower_by
def _from_gathered(x, *, axis_name, axis_size, source):
    rows = all_gather_p.bind(
        x, all_gather_dimension=0, axis_name=axis_name, axis_index_groups=None,
        axis_size=axis_size, tiled=False,
    )  # fmt: skip
    return index_in_dim(rows, source, keepdims=False)


pbroadcast_p = collective(
    "pbroadcast", lambda *, axis_name, axis_size, source: axis_name, _from_gathered
)
pbroadcast_p.lower_on("cuda", "rocm")(collective_lowering.collective_broadcast)


@pbroadcast_p.shape_rule
def _(x, *, axis_name, axis_size, source):
    return x


@batch_over(pbroadcast_p)
def _(axis, x, dim, *, axis_name, axis_size, source):
    sizes = [axis.size if name == axis.name else group_size(None, name) for name in axis_name]
    places = dict(zip(axis_name, np.unravel_index(source, sizes), strict=True))
    place = int(places.pop(axis.name))
    if dim is not None:
        x = index_in_dim(x, place, dim, keepdims=False)
    for name, place in places.items():
        x = pbroadcast(x, name, int(place))
    return x, None


linear_in(pbroadcast_p, 0)


@pbroadcast_p.transpose
def _(ct, x, *, axis_name, axis_size, source):
    """The sum goes to the source, and zeros to the others."""
    rows = pad_p.bind(
        reshape(ct, (1, *ct.shape)), scalar_like(0, ct),
        padding_config=((source, axis_size - 1 - source, 0), *((0, 0, 0),) * ct.ndim),
    )  # fmt: skip
    out = reduce_scatter_p.bind(
        rows, scatter_dimension=0, axis_name=axis_name, axis_index_groups=None,
        axis_size=axis_size, tiled=False,
    )  # fmt: skip
    return [out]


def pbroadcast(x: _T, axis_name: AxisNames, source: int) -> _T:
    """Return the value that `x` has at one position of a named axis, at all positions.

    - `x`: pytree of arrays of any shape and dtype
    - `axis_name`: name of an axis of `vmap` or of a mesh, or several
    - `source`: position along it, or along several as one, the last of which varies fastest

    The result has the shapes and dtypes of `x`. NameError if a name is unbound; IndexError if there
    is no such position. Source: the StableHLO operation `stablehlo.collective_broadcast`.

    >>> jax.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([4, 5]))
    Array([5, 5], dtype=int32)
    """
    names = bound_names("pbroadcast", axis_name)
    check_bound("pbroadcast", names)
    size, source = axis_size(names), operator.index(source)
    if not -size <= source < size:
        raise IndexError(f"pbroadcast: source {source} is not a position of {size} along {names}.")
    for leaf in tree_util.tree_leaves(x):
        if unvarying := local.context.varying.intersection(names) - vma_of(get_aval(leaf)):
            raise ValueError(
                "Collective pbroadcast must be applied to a device-varying type, but got "
                f"{get_aval(leaf).str_short()}, which is the same all over {sorted(unvarying)}. It "
                "is what pbroadcast would return; or cast it with lax.pcast(x, axes, to='varying')."
            )
    params = {"axis_name": names, "axis_size": size, "source": source % size}
    return tree_util.tree_map(lambda leaf: pbroadcast_p.bind(leaf, **params), x)
