"""Collectives that reduce over named axes, and the index on an axis: psum, pmax, axis_index.

An axis is named by `vmap(axis_name=...)`, whose batching rules stand here: they turn a collective
into an operation on the mapped dimension. `collective_movement` has those that move values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import as_value
from minijax.config import local
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule, not_differentiable
from minijax.core.trace import Tracer
from minijax.features.sharding.layouts import layout, set_layout
from minijax.features.sharding.types import vma_of
from minijax.features.sharding.unreduced import first
from minijax.lax import collective_lowering
from minijax.lax.arithmetic import add_p, div, mul, mul_p
from minijax.lax.casts import as_names, common_state, pcast, pvary_p, unreduced_psum_p, vary
from minijax.lax.convert import convert_element_type, to_dtype
from minijax.lax.creation import iota_p
from minijax.lax.named_axes import (
    axis_size,
    batch_over,
    check_bound,
    collective,
    group_size,
    index_groups,
)
from minijax.lax.reductions import reduce_max, reduce_min, reduce_sum
from minijax.lax.rules import linear_in
from minijax.lax.shapes import canonical_axis
from minijax.runtime.mesh import get_abstract_mesh
from minijax.typing import Array

__all__ = [
    "axis_index", "axis_index_p", "axis_size", "pcast", "pmax", "pmax_p", "pmean", "pmin", "pmin_p",
    "psum", "psum_p", "pvary_p",
]  # fmt: skip

_T = TypeVar("_T")
AxisNames: TypeAlias = Hashable | tuple[Hashable, ...]

Name = Hashable


# -- reductions: psum, pmax, pmin ------------------------------------------------------------------


def _reduction(name: str, reduce: Callable, unmapped: Callable | None, op: str) -> Primitive:
    """A collective that reduces; `unmapped(x, size)` is its value on what does not vary."""
    p = collective(
        name, lambda *, axes, axis_index_groups: axes, collective_lowering.all_reduce(op)
    )

    @layout(p, "varying")
    def _(given, *, axes, axis_index_groups):
        given |= frozenset(axes)
        return given, given if axis_index_groups is not None else given - frozenset(axes)

    @p.shape_rule
    def _(x, *, axes, axis_index_groups):
        if axes:  # where types say over which axes a value varies they stay weak
            return x if frozenset(axes) <= local.context.varying else x.strip_weak_type()
        if local.context.varying:
            raise ValueError(
                "psum is a variant->invariant collective. This means that the axis names mentioned "
                "in `axes` passed to `psum` must be present in the type of its operand: "
                f"{name} was given none. Name the axes to reduce over."
            )
        return x

    @batch_over(p)
    def _(axis, x, dim, *, axes, axis_index_groups):
        if axes.count(axis.name) > 1:
            raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
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


def _transpose_sum(ct, x, *, axes, axis_index_groups):
    varying = local.context.varying if axis_index_groups is None else frozenset()
    rest = tuple(name for name in axes if name not in varying)
    if rest:
        ct = psum_p.bind(ct, axes=rest, axis_index_groups=axis_index_groups)
    return [vary(ct, varying & frozenset(axes))]


for _p in (psum_p, psum_invariant_p):
    set_layout(_p, sums=first)
    linear_in(_p, 0)
    _p.transpose(_transpose_sum)


@pvary_p.transpose
def _(ct, x, *, axes):
    # A program that was made for other types may cast what varies already.
    axes = tuple(axis for axis in axes if axis not in vma_of(x.aval))
    return [sum_over(ct, axes) if axes else ct]


def sum_over(x: Any, axes: tuple) -> Any:
    """The sum over mesh axes, within a body over these."""
    checked = frozenset(axes) <= local.context.varying
    if checked and common_state("psum", get_aval(x), axes) == "unreduced":
        return unreduced_psum_p.bind(x, axes=tuple(axes), mesh=get_abstract_mesh())
    p = psum_invariant_p if checked else psum_p
    return p.bind(x, axes=axes, axis_index_groups=None)


def _dimensions(
    axis_name: Any, reduce: Callable, x: Any, groups: Any
) -> tuple[Any, tuple[Name, ...]]:
    """Reduce a pytree over the axes that are numbers of its dimensions; gives the names too."""
    axes = as_names(axis_name)
    names = tuple([axis for axis in axes if not isinstance(axis, int)])
    if len(names) == len(axes):
        return x, names
    if groups is not None:
        raise ValueError(
            "axis_index_groups only supported for sums over just named axes; got the axes "
            f"{axes}, of which some are numbers of dimensions."
        )
    numbers = [axis for axis in axes if isinstance(axis, int)]

    def one(leaf):
        ndim = get_aval(leaf).ndim
        return reduce(leaf, tuple([canonical_axis(axis, ndim) for axis in numbers]))

    return tree_util.tree_map(one, x), names


def _reduce(
    function: str, p: Primitive, reduce: Callable, x: Any, axis_name: Any, groups: Any
) -> Any:
    x, names = _dimensions(axis_name, reduce, x, groups)
    check_bound(function, names)
    groups = index_groups(groups, names, equal=False)
    return tree_util.tree_map(lambda leaf: p.bind(leaf, axes=names, axis_index_groups=groups), x)


def psum(
    x: _T, axis_name: AxisNames, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> _T:
    """Sum over a named axis, or over several.

    - `x`: pytree of arrays; booleans are summed as int32
    - `axis_name`: name of an axis of `vmap` or of a mesh, or number of a dimension, or several
    - `axis_index_groups`: groups of positions that are summed separately

    The result has the shapes and dtypes of `x`; a Python number is multiplied by the size at trace
    time. NameError if a name is unbound. Source: the StableHLO operation `stablehlo.all_reduce`.

    >>> jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.array([1, 2, 3]))
    Array([6, 6, 6], dtype=int32)
    """
    x, names = _dimensions(axis_name, _sum_over_dimensions, x, axis_index_groups)
    check_bound("psum", names, any(isinstance(x, Tracer) for x in tree_util.tree_leaves(x)))
    if not names:
        return x
    axis_index_groups = index_groups(axis_index_groups, names, equal=False)

    def one(leaf):
        if get_aval(leaf).dtype == np.bool_:
            leaf = convert_element_type(leaf, np.int32)
        if dtypes.is_python_scalar(leaf):
            return leaf * group_size(axis_index_groups, names)
        if axis_index_groups is None:
            return sum_over(leaf, names)
        return _reduce("psum", psum_p, reduce_sum, leaf, names, axis_index_groups)

    return cast(_T, tree_util.tree_map(one, x))


def _sum_over_dimensions(x: Any, axes: Sequence[int]) -> Any:
    return reduce_sum(convert_element_type(x, np.int32) if get_aval(x).dtype == bool else x, axes)


def pmean(
    x: _T, axis_name: AxisNames, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> _T:
    """Average over a named axis, or over several.

    - `x`: pytree of arrays
    - `axis_name`: name of an axis of `vmap` or of a mesh, or several
    - `axis_index_groups`: groups of positions that are averaged separately

    The result has the shapes of `x` and floating-point or complex dtypes. NameError if a name is
    unbound.
    Source: the StableHLO operation `stablehlo.all_reduce`.

    >>> jax.vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    size = group_size(axis_index_groups, axis_name)

    def mean(leaf):
        if dtypes.is_python_scalar(leaf):
            return leaf / size
        aval = get_aval(leaf)
        if not dtypes.issubdtype(aval.dtype, np.inexact):
            leaf = to_dtype(leaf, dtypes.to_inexact_dtype(aval.dtype), aval.weak_type)
        return div(leaf, _like(leaf, size))

    return tree_util.tree_map(mean, total)


def pmax(
    x: _T, axis_name: AxisNames, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> _T:
    """Compute the maximum over a named axis, or over several.

    - `x`: pytree of arrays
    - `axis_name`: name of an axis of `vmap` or of a mesh, or number of a dimension, or several
    - `axis_index_groups`: groups of positions that are reduced separately

    The result has the shapes and dtypes of `x`. NameError if a name is unbound.
    Source: the StableHLO operation `stablehlo.all_reduce`.

    >>> jax.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 3, 2]))
    Array([3, 3, 3], dtype=int32)
    """
    return _reduce("pmax", pmax_p, reduce_max, x, axis_name, axis_index_groups)


def pmin(
    x: _T, axis_name: AxisNames, *, axis_index_groups: Sequence[Sequence[int]] | None = None
) -> _T:
    """Compute the minimum over a named axis, or over several.

    - `x`: pytree of arrays
    - `axis_name`: name of an axis of `vmap` or of a mesh, or number of a dimension, or several
    - `axis_index_groups`: groups of positions that are reduced separately

    The result has the shapes and dtypes of `x`. NameError if a name is unbound.
    Source: the StableHLO operation `stablehlo.all_reduce`.

    >>> jax.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([3, 1, 2]))
    Array([1, 1, 1], dtype=int32)
    """
    return _reduce("pmin", pmin_p, reduce_min, x, axis_name, axis_index_groups)


# -- axis_index ----------------------------------------------------------------------------------

axis_index_p = collective(
    "axis_index", lambda *, axis_name: (axis_name,), collective_lowering.axis_index
)
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


def axis_index(axis_name: Hashable) -> Array:
    """Return the position along a named axis.

    - `axis_name`: name of an axis of `vmap` or of a mesh, or several, counted in row-major order

    The result is an int32 scalar. NameError if a name is unbound.
    Source: the StableHLO operation `stablehlo.partition_id`.

    >>> jax.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.array([10, 20]))
    Array([10, 21], dtype=int32)
    """
    names = as_names(axis_name)
    check_bound("axis_index", names)
    total = None if names else as_value(0)
    for name in names:
        index = axis_index_p.bind(axis_name=name)
        total = index if total is None else add_p.bind(mul(total, axis_size(name)), index)
    return total
