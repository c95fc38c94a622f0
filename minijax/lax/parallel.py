"""Collectives over named axes: the primitives with their rules, and the functions on them.

May import the floors below and the files of `lax`. An axis is named by `vmap(axis_name=...)`, whose
batching rules stand here: they turn a collective into an operation on the mapped dimension.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.config import local
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.effects import NamedAxisEffect
from minijax.core.primitive import Primitive, no_rule, not_differentiable
from minijax.core.sums import first, sums_of
from minijax.lax import manual
from minijax.lax.arithmetic import add_p, div, mul, mul_p
from minijax.lax.casts import (
    as_names,
    pcast,
    pvary,
    pvary_p,
    state_over,
    unreduced_psum_p,
    vary,
)
from minijax.lax.convert import convert_element_type
from minijax.lax.dynamic_slicing import dynamic_slice_in_dim
from minijax.lax.filling import iota_p
from minijax.lax.gathers import (
    all_gather_invariant_p,
    all_gather_reduced_p,
    scattered_shape,
    unreduced_reduce_scatter_p,
)
from minijax.lax.indexing import GatherDimensionNumbers, gather
from minijax.lax.reductions import reduce_max, reduce_min, reduce_sum
from minijax.lax.shapes import reshape
from minijax.lax.slicing import slice_in_dim
from minijax.runtime.mesh import get_abstract_mesh
from minijax.transforms.batching import to_front
from minijax.transforms.primitives import instantiate, moveaxis, reduce_sum_p, transpose_p

__all__ = [
    "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "axis_index", "axis_index_p",
    "axis_size", "pbroadcast", "pcast", "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "ppermute",
    "ppermute_p", "pshuffle", "psum", "psum_p", "psum_scatter", "pswapaxes", "pvary", "pvary_p", "reduce_scatter_p",
]  # fmt: skip

Name = Hashable


# -- named axes ---------------------------------------------------------------------------------


def axis_size(axis_name: Name | Sequence[Name]) -> int:
    """The size of a named axis, or the product over several. NameError if a name is unbound."""
    sizes = dict(local.context.axes)
    total = 1
    for name in as_names(axis_name):
        if name not in sizes:
            raise NameError(
                f"unbound axis name: {name}. The axes bound here are {sorted(map(str, sizes))}: "
                "name one with vmap(..., axis_name=...), pmap or shard_map."
            )
        total *= sizes[name]
    return total


def _effects(names: Sequence[Name]) -> frozenset:
    return frozenset(NamedAxisEffect(name) for name in names if not isinstance(name, int))


def _no_groups(groups: Any) -> None:
    if groups is not None:
        raise NotImplementedError("axis_index_groups is not supported in vmap collectives")


def _check_bound(function: str, names: Sequence[Name]) -> None:
    bound = dict(local.context.axes)
    for name in names:
        if name not in bound:
            raise NameError(
                f"Found an unbound axis name: {name}. {function} needs it bound by "
                f"vmap(..., axis_name={name!r}), pmap or shard_map."
            )


def _collective(name: str, axes_of: Callable[..., tuple], lower: Callable) -> Primitive:
    """A collective: its operands must vary over the axes that it names, and its results do."""
    p = Primitive(name)
    p.rule_effects = lambda **params: _effects(axes_of(**params))
    p.rule_lower = lower

    @p.varying
    def _(axes, **params):
        axes |= frozenset(axes_of(**params))
        return axes, axes

    return p


# -- reductions: psum, pmax, pmin ------------------------------------------------------------------


def _reduction(name: str, reduce: Callable, unmapped: Callable | None, op: str) -> Primitive:
    """A collective that reduces; `unmapped(x, size)` is its value on what does not vary."""
    p = _collective(name, lambda *, axes, axis_index_groups: axes, manual.all_reduce(op))

    @p.varying
    def _(given, *, axes, axis_index_groups):
        given |= frozenset(axes)
        return given, given if axis_index_groups is not None else given - frozenset(axes)

    @p.shape_rule
    def _(x, *, axes, axis_index_groups):
        return x.strip_weak_type()

    @p.batch_axis
    def _(axis, args, dims, *, axes, axis_index_groups):
        (x,), (dim,) = args, dims
        if axis.name not in axes:
            return p.bind(x, axes=axes, axis_index_groups=axis_index_groups), dim
        _no_groups(axis_index_groups)
        if dim is not None:
            x = reduce(x, (dim,))
        elif unmapped is not None:
            x = unmapped(x, axis.size)
        rest = tuple(name for name in axes if name != axis.name)
        return (p.bind(x, axes=rest, axis_index_groups=None) if rest else x), None

    return p


def _sum(name: str) -> Primitive:
    times = lambda x, size: mul_p.bind(x, _like(x, size))
    return _reduction(name, reduce_sum, times, "stablehlo.add")


def _like(x: Any, number: int) -> Any:
    """A number of the dtype and weak type of a value."""
    aval = get_aval(x)
    return dtypes.scalar_type_of(aval)(number) if aval.weak_type else aval.dtype.type(number)


psum_p = _sum("psum")
psum_invariant_p = _sum("psum_invariant")  # over axes for which types say whether a value varies
psum_invariant_p.printed = lambda params: {"axes": params["axes"]}
pmax_p = _reduction("pmax", reduce_max, None, "stablehlo.maximum")
pmin_p = _reduction("pmin", reduce_min, None, "stablehlo.minimum")
for _p in (pmax_p, pmin_p):
    _p.rule_jvp = not_differentiable(f"Differentiation rule for {_p.name!r} not implemented")
    _p.rule_transpose = no_rule("it is not linear")


def _set_sum_rules(p: Primitive) -> None:
    @p.jvp
    def _(primals, tangents, **params):
        (x,), (t,) = primals, tangents
        return p.bind(x, **params), p.bind(instantiate(t), **params)

    p.transpose(_transpose_sum)


def _transpose_sum(ct, x, *, axes, axis_index_groups):
    varying = local.context.varying if axis_index_groups is None else frozenset()
    rest = tuple(name for name in axes if name not in varying)
    if rest:
        ct = psum_p.bind(ct, axes=rest, axis_index_groups=axis_index_groups)
    return [vary(ct, varying & frozenset(axes))]


for _p in (psum_p, psum_invariant_p):
    _p.sums(first)
    _set_sum_rules(_p)


@pvary_p.transpose
def _(ct, x, *, axes):
    return [sum_over(ct, axes)]


def sum_over(x: Any, axes: tuple) -> Any:
    """The sum over mesh axes, within a body over these."""
    unreduced, _ = sums_of(get_aval(x))
    if unreduced.intersection(axes):
        states = {state_over(get_aval(x), name) for name in axes}
        if len(states) > 1:
            raise ValueError(
                "minijax.lax.psum can only accept axis_name which corresponds to one of varying, "
                "unreduced, reduced or invarying state of the input. Got input type: "
                f"{get_aval(x).str_short()}, axes: {axes} and input state: {sorted(states)}: sum over "
                "one kind of axes after the other."
            )
        return unreduced_psum_p.bind(x, axes=tuple(axes), mesh=get_abstract_mesh())
    invariant = frozenset(axes) <= local.context.varying
    p = psum_invariant_p if invariant else psum_p
    return p.bind(x, axes=axes, axis_index_groups=None)


def _reduce(function: str, p: Primitive, x: Any, axis_name: Any, groups: Any) -> Any:
    names = as_names(axis_name)
    _check_bound(function, names)
    groups = tuple(map(tuple, groups)) if groups is not None else None
    return tree_util.tree_map(lambda leaf: p.bind(leaf, axes=names, axis_index_groups=groups), x)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of `x` (a tree of arrays) over one named axis or several.

    A Python number gives its multiple by the size, at trace time. Booleans are summed as integers.
    """
    names = as_names(axis_name)
    _check_bound("psum", names)

    def one(leaf):
        if dtypes.is_python_scalar(leaf):
            return leaf * (len(axis_index_groups[0]) if axis_index_groups else axis_size(names))
        if get_aval(leaf).dtype == np.bool_:
            leaf = convert_element_type(leaf, dtypes.int_())
        if axis_index_groups is None:
            return sum_over(leaf, names)
        return _reduce("psum", psum_p, leaf, names, axis_index_groups)

    return tree_util.tree_map(one, x)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of `x` (a tree of arrays) over one named axis or several."""
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    size = len(axis_index_groups[0]) if axis_index_groups else axis_size(axis_name)

    def mean(leaf):
        if dtypes.is_python_scalar(leaf) and not isinstance(leaf, complex):
            leaf = float(leaf)
        aval = get_aval(leaf)
        if not dtypes.issubdtype(aval.dtype, np.inexact):
            leaf = convert_element_type(leaf, dtypes.to_inexact_dtype(aval.dtype))
        return div(leaf, _like(leaf, size))

    return tree_util.tree_map(mean, total)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The maximum of `x` (a tree of arrays) over one named axis or several."""
    return _reduce("pmax", pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The minimum of `x` (a tree of arrays) over one named axis or several."""
    return _reduce("pmin", pmin_p, x, axis_name, axis_index_groups)


# -- axis_index ----------------------------------------------------------------------------------

axis_index_p = _collective("axis_index", lambda *, axis_name: (axis_name,), manual.axis_index)
axis_index_p.rule_jvp = not_differentiable("it takes no operands")
axis_index_p.rule_transpose = no_rule("it takes no operands")


@axis_index_p.shape_rule
def _(*, axis_name):
    return ShapedArray((), np.dtype(np.int32))


@axis_index_p.batch_axis
def _(axis, args, dims, *, axis_name):
    if axis_name != axis.name:
        return axis_index_p.bind(axis_name=axis_name), None
    indices = iota_p.bind(dtype=np.dtype(np.int32), shape=(axis.size,), dimension=0, sharding=None)
    return indices, 0


def axis_index(axis_name: Any) -> Any:
    """The position along a named axis, an int32 scalar; over several, counted row by row."""
    names = as_names(axis_name)
    _check_bound("axis_index", names)
    total = None
    for name in names:
        index = axis_index_p.bind(axis_name=name)
        total = index if total is None else add_p.bind(mul(total, axis_size(name)), index)
    return total


# -- movement: ppermute, all_gather, all_to_all, reduce_scatter ---------------------------------------

ppermute_p = _collective(
    "ppermute", lambda *, axis_name, perm: axis_name, manual.collective_permute
)


@ppermute_p.shape_rule
def _(x, *, axis_name, perm):
    return x


@ppermute_p.batch_axis
def _(axis, args, dims, *, axis_name, perm):
    (x,), (dim,) = args, dims
    if axis.name not in axis_name:
        return ppermute_p.bind(x, axis_name=axis_name, perm=perm), dim
    if len(perm) != axis.size:
        raise AssertionError(
            f"ppermute: the permutation has {len(perm)} pairs, and the axis {axis.name!r} has size "
            f"{axis.size}: over a mapped axis each position must receive a value."
        )
    if dim is None:
        return x, None
    source = np.empty(axis.size, np.int32)
    for src, dst in perm:
        source[dst] = src
    return _take_rows(x, dim, source), dim


@ppermute_p.jvp
def _(primals, tangents, **params):
    (x,), (t,) = primals, tangents
    return ppermute_p.bind(x, **params), ppermute_p.bind(instantiate(t), **params)


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


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send `x` (a tree of arrays) along a named axis: `perm` has pairs (source, destination).

    What receives nothing gets zeros. ValueError if a position sends or receives twice.
    """
    names = as_names(axis_name)
    _check_bound("ppermute", names)
    perm = tuple((int(src), int(dst)) for src, dst in perm)
    sources, targets = [s for s, _ in perm], [d for _, d in perm]
    if len(set(sources)) < len(perm) or len(set(targets)) < len(perm):
        raise ValueError(f"ppermute sources and destinations must be unique, got {list(perm)}.")
    return tree_util.tree_map(lambda leaf: ppermute_p.bind(leaf, axis_name=names, perm=perm), x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Permute `x` along a named axis: position `i` of the result comes from `perm[i]`."""
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {list(perm)}")
    return ppermute(x, axis_name, [(src, dst) for dst, src in enumerate(perm)])


all_gather_p = _collective(
    "all_gather",
    lambda *, axis_name, all_gather_dimension, axis_index_groups, axis_size, tiled: axis_name,
    manual.all_gather,
)


@all_gather_p.shape_rule
def _(x, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled):
    shape = list(x.shape)
    if tiled:
        shape[all_gather_dimension] *= axis_size
    else:
        shape.insert(all_gather_dimension, axis_size)
    return x.update(shape=tuple(shape))


@all_gather_p.batch_axis
def _(axis, args, dims, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled):
    (x,), (dim,) = args, dims
    where = all_gather_dimension
    if axis.name not in axis_name:
        if dim is not None:
            x, where = moveaxis(x, dim, 0), where + 1
        out = all_gather_p.bind(
            x, all_gather_dimension=where, axis_name=axis_name,
            axis_index_groups=axis_index_groups, axis_size=axis_size, tiled=tiled,
        )  # fmt: skip
        return out, (None if dim is None else 0)
    _no_groups(axis_index_groups)
    x = moveaxis(to_front(x, dim, axis.size), 0, where)
    if tiled:
        shape = (*x.shape[:where], x.shape[where] * x.shape[where + 1], *x.shape[where + 2 :])
        x = reshape(x, shape)
    return x, None


@all_gather_p.jvp
def _(primals, tangents, **params):
    (x,), (t,) = primals, tangents
    return all_gather_p.bind(x, **params), all_gather_p.bind(instantiate(t), **params)


@all_gather_p.transpose
def _(ct, x, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled):
    out = reduce_scatter_p.bind(
        ct, scatter_dimension=all_gather_dimension, axis_name=axis_name,
        axis_index_groups=axis_index_groups, axis_size=axis_size, tiled=tiled,
    )  # fmt: skip
    return [out]


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
    """Gather the values of `x` (a tree of arrays) over a named axis, everywhere.

    They are stacked along a new dimension `axis`, or concatenated along it if `tiled`. Within
    `shard_map` the type of the result varies, or says with `to="invarying"` or `to="reduced"` that it
    is the same everywhere (`pcast`).
    """
    if to not in _GATHERS:
        raise ValueError(
            "Got unexpected `to` value for `minijax.lax.all_gather`. Allowed `to` values are: "
            f"{', '.join(_GATHERS)}; got {to!r}."
        )
    names = as_names(axis_name)
    _check_bound("all_gather", names)

    def one(leaf):
        ndim = get_aval(leaf).ndim
        where = _canonical(axis, ndim + (not tiled))
        out = leaf
        for name in reversed(names):
            params = {
                "all_gather_dimension": where,
                "axis_name": (name,),
                "axis_size": axis_size(name),
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


reduce_scatter_p = _collective(
    "reduce_scatter",
    lambda *, axis_name, scatter_dimension, axis_index_groups, axis_size, tiled: axis_name,
    manual.reduce_scatter,
)


@reduce_scatter_p.shape_rule
def _(x, *, scatter_dimension, axis_name, axis_index_groups, axis_size, tiled):
    return x.update(shape=scattered_shape(x, scatter_dimension, axis_size, tiled))


@reduce_scatter_p.batch_axis
def _(axis, args, dims, *, scatter_dimension, axis_name, axis_index_groups, axis_size, tiled):
    (x,), (dim,) = args, dims
    where = scatter_dimension
    if axis.name not in axis_name:
        if dim is not None:
            x, where = moveaxis(x, dim, 0), where + 1
        out = reduce_scatter_p.bind(
            x, scatter_dimension=where, axis_name=axis_name,
            axis_index_groups=axis_index_groups, axis_size=axis_size, tiled=tiled,
        )  # fmt: skip
        return out, (None if dim is None else 0)
    _no_groups(axis_index_groups)
    total = reduce_sum_p.bind(to_front(x, dim, axis.size), axes=(0,), out_sharding=None)
    if tiled:
        shape = total.shape
        split = (*shape[:where], axis.size, shape[where] // axis.size, *shape[where + 1 :])
        total = reshape(total, split)
    return total, where


@reduce_scatter_p.jvp
def _(primals, tangents, **params):
    (x,), (t,) = primals, tangents
    return reduce_scatter_p.bind(x, **params), reduce_scatter_p.bind(instantiate(t), **params)


@reduce_scatter_p.transpose
def _(ct, x, *, scatter_dimension, axis_name, axis_index_groups, axis_size, tiled):
    out = all_gather_p.bind(
        ct, all_gather_dimension=scatter_dimension, axis_name=axis_name,
        axis_index_groups=axis_index_groups, axis_size=axis_size, tiled=tiled,
    )  # fmt: skip
    return [out]


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Like `psum`, with each position keeping one part of the sum along `scatter_dimension`."""
    names = as_names(axis_name)
    _check_bound("psum_scatter", names)
    bind = functools.partial(
        reduce_scatter_p.bind,
        axis_name=names,
        axis_index_groups=axis_index_groups,
        axis_size=axis_size(names),
        tiled=tiled,
    )

    def one(leaf):
        aval = get_aval(leaf)
        dimension = _canonical(scatter_dimension, aval.ndim)
        if axis_index_groups is None and {state_over(aval, name) for name in names} == {
            "unreduced"
        }:
            return unreduced_reduce_scatter_p.bind(
                leaf, scatter_dimension=dimension, axis_name=names, axis_size=axis_size(names),
                tiled=tiled, mesh=get_abstract_mesh(),
            )  # fmt: skip
        return bind(leaf, scatter_dimension=dimension)

    return tree_util.tree_map(one, x)


all_to_all_p = _collective(
    "all_to_all",
    lambda *, axis_name, split_axis, concat_axis, axis_index_groups, tiled: as_names(axis_name),
    manual.all_to_all,
)


@all_to_all_p.shape_rule
def _(x, *, split_axis, concat_axis, axis_name, axis_index_groups, tiled):
    shape = list(x.shape)
    size = axis_size(axis_name)
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


@all_to_all_p.batch_axis
def _(axis, args, dims, *, axis_name, split_axis, concat_axis, axis_index_groups, tiled):
    (x,), (dim,) = args, dims
    if axis.name not in as_names(axis_name):
        if dim is not None:
            x, split_axis, concat_axis = moveaxis(x, dim, 0), split_axis + 1, concat_axis + 1
        out = all_to_all_p.bind(
            x, axis_name=axis_name, split_axis=split_axis, concat_axis=concat_axis,
            axis_index_groups=axis_index_groups, tiled=tiled,
        )  # fmt: skip
        return out, (None if dim is None else 0)
    _no_groups(axis_index_groups)
    x = to_front(x, dim, axis.size)
    split, concat = split_axis + 1, concat_axis + 1
    if not tiled:
        # The mapped dimension becomes `concat_axis` of each part, `split_axis` becomes mapped.
        others = [d for d in range(1, x.ndim) if d != split]
        others.insert(concat_axis, 0)
        return _permute(x, (split, *others)), 0
    parts = x.shape[split] // axis.size
    shape = (*x.shape[:split], axis.size, parts, *x.shape[split + 1 :])
    x = reshape(x, shape)
    concat += concat > split
    order = [d for d in range(1, x.ndim) if d != split]
    order.insert(order.index(concat if concat != split else split + 1), 0)
    x = _permute(x, (split, *order))
    at = 1 + order.index(0)
    merged = (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])
    return reshape(x, merged), 0


def _permute(x: Any, order: Sequence[int]) -> Any:
    return transpose_p.bind(x, permutation=tuple(order))


@all_to_all_p.jvp
def _(primals, tangents, **params):
    (x,), (t,) = primals, tangents
    return all_to_all_p.bind(x, **params), all_to_all_p.bind(instantiate(t), **params)


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
    """Exchange: split dimension `split_axis` over a named axis, and join what arrives.

    Without `tiled`, dimension `split_axis` must have the size of the axis; it disappears, and a
    dimension of that size appears at `concat_axis`. With it, dimensions are cut and concatenated.
    """
    names = as_names(axis_name)
    _check_bound("all_to_all", names)
    name = axis_name if len(names) > 1 else names[0]

    def one(leaf):
        shape = get_aval(leaf).shape
        split, concat = _canonical(split_axis, len(shape)), _canonical(concat_axis, len(shape))
        if not tiled and shape[split] != axis_size(names):
            raise ValueError(
                f"all_to_all requires the size of the mapped axis axis_name to equal "
                f"x.shape[split_axis], but they are {axis_size(names)} and {shape[split]} "
                "respectively."
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
    """Swap a named axis with dimension `axis`, which must have its size."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of `x` (a tree of arrays) at position `source` of a named axis, everywhere."""

    def one(leaf):
        rows = all_gather(leaf, axis_name)
        return reshape(slice_in_dim(rows, source, source + 1), get_aval(leaf).shape)

    return tree_util.tree_map(one, x)
