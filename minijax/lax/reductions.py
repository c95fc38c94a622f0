"""Reductions of one array by a known operation; argmax and argmin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.sharding_rules import kept_axes
from minijax.lax.arithmetic import div_p, max_p, min_p, mul_p
from minijax.lax.compare import and_p, eq_p, or_p, xor_p
from minijax.lax.convert import to_dtype
from minijax.lax.joining import concatenate_p, split_p
from minijax.lax.rules import BITS, NUMBER, ORDERED, check_dtype, defjvp
from minijax.lax.shapes import permute, reshaped
from minijax.lowering.module import i64_array
from minijax.runtime.named_sharding import out_sharding_of
from minijax.transforms.primitives import full_like_aval, reduce_sum_p, reduced_aval
from minijax.transforms.tangents import Zero, zero_like
from minijax.typing import ArrayLike, DTypeLike

__all__ = [
    "argmax", "argmax_p", "argmin", "argmin_p", "reduce_and", "reduce_and_p", "reduce_max",
    "reduce_max_p", "reduce_min", "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_prod",
    "reduce_prod_p", "reduce_sum", "reduce_sum_p", "reduce_xor", "reduce_xor_p",
]  # fmt: skip

# -- what the operations leave alone --------------------------------------------------------------


def least(dtype: Any) -> np.generic:
    """The identity of max: nothing of this dtype is less. ValueError for dtypes without order."""
    return _extreme(dtype, "max", -np.inf, False)


def greatest(dtype: Any) -> np.generic:
    """The identity of min: nothing of this dtype is greater."""
    return _extreme(dtype, "min", np.inf, True)


def _extreme(dtype: Any, name: str, infinity: float, truth: bool) -> np.generic:
    if dtype == dtypes.bool_:
        return np.bool_(truth)
    if dtypes.issubdtype(dtype, np.integer):
        info = dtypes.iinfo(dtype)
    elif dtypes.issubdtype(dtype, np.complexfloating) or dtypes.supports_inf(dtype):
        return np.asarray(infinity, dtype)[()]
    elif dtypes.issubdtype(dtype, np.floating):
        info = dtypes.finfo(dtype)
    else:
        raise ValueError(
            f"Unsupported dtype for {name}: {dtype.name}: its values have no order. Convert them to "
            "numbers."
        )
    return np.asarray(info.max if truth else info.min, dtype)[()]


def all_ones(dtype: Any) -> np.generic:
    """The identity of a bitwise and; NaN, which nothing equals, for dtypes that have none."""
    if dtypes.issubdtype(dtype, np.signedinteger):
        return np.asarray(-1, dtype)[()]
    if dtype == dtypes.bool_ or dtypes.issubdtype(dtype, np.integer):
        return greatest(dtype)
    return np.float32(np.nan)


def no_ones(dtype: Any) -> np.generic:
    """The identity of a bitwise or; NaN for dtypes that have none."""
    has_bits = dtype == dtypes.bool_ or dtypes.issubdtype(dtype, np.integer)
    return zero(dtype) if has_bits else np.float32(np.nan)


def zero(dtype: Any) -> np.generic:
    return np.asarray(0, dtype)[()]


def one(dtype: Any) -> np.generic:
    return np.asarray(1, dtype)[()]


# -- reductions of one array ------------------------------------------------------------------------


def combine_by(p: Primitive, b, x, y):
    """Lower a binary primitive on values of one type."""
    b.out = x.aval
    b.outs = [x.aval]
    return p.rule_lower(b, x, y)


def _reduction(
    name: str,
    combine: Primitive,
    accepts: Sequence[type],
    identity: Callable[[Any], np.generic],
    keeps_weak_type: bool = True,
) -> Primitive:
    """A primitive that reduces one array by an operation; all of its rules but jvp."""
    p = Primitive(name)
    set_layout(p, parts=kept_axes("axes"))

    @p.shape_rule
    def _(x, *, axes):
        _check_reducible(name, x, accepts)
        return reduced_aval(name, x, axes, x.weak_type and keeps_weak_type)

    p.rule_transpose = no_rule("it is not linear in its operand")
    p.rule_batch = _batch_reduction(p)

    @p.lower
    def _(b, x, *, axes):
        return lower_reduce(b, combine, x, identity(x.dtype), axes, b.out)

    return p


def _check_reducible(name: str, x: ShapedArray, accepts: Sequence[type]) -> None:
    if accepts is BITS and not any(dtypes.issubdtype(x.dtype, kind) for kind in BITS):
        raise TypeError(
            f"logical reduction requires operand dtype bool or int, got {x.dtype.name}. It is that of "
            f"{name}: compare the operand with something, or convert it."
        )
    if accepts is _COMPARABLE and isinstance(x.dtype, dtypes.ExtendedDType):
        least(x.dtype)
    check_dtype(name, x, accepts)


def _batch_reduction(p: Primitive) -> Callable:
    def batch(args, dims, *, axes, **params):
        (x,), (dim,) = args, dims
        axes = tuple([axis + (axis >= dim) for axis in axes])
        return p.bind(x, axes=axes, **params), dim - sum([axis < dim for axis in axes])

    return batch


def lower_reduce(
    b, combine: Primitive, x, start: np.generic, axes: Sequence[int], out: ShapedArray
):
    """`stablehlo.reduce` of one operand by a binary primitive."""
    scalar = x.aval.update(shape=())
    body = b.region([scalar, scalar], lambda r, p, q: [combine_by(combine, r, p, q)])
    operands = (x, b.constant(start, scalar))
    attributes = f"dimensions = {i64_array(axes)}"
    return b.op_n("stablehlo.reduce", operands, [out], attributes, [body])[0]


_COMPARABLE = (np.number, np.bool_)
reduce_prod_p = _reduction("reduce_prod", mul_p, NUMBER, one)
reduce_max_p = _reduction("reduce_max", max_p, _COMPARABLE, least)
reduce_min_p = _reduction("reduce_min", min_p, _COMPARABLE, greatest)
reduce_and_p = _reduction("reduce_and", and_p, BITS, all_ones, False)
reduce_or_p = _reduction("reduce_or", or_p, BITS, no_ones, False)
reduce_xor_p = _reduction("reduce_xor", xor_p, BITS, no_ones, False)
for _logical in (reduce_and_p, reduce_or_p, reduce_xor_p):
    defjvp(_logical, None)


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Sum over axes, in the operand's dtype; 0 over nothing.

    - `operand`: numeric array
    - `axes`: nonnegative axes, left out of the result's shape
    - `out_sharding`: sharding of the result

    ValueError for axes out of range or repeated, and for 16-bit floats where the setting
    `allow_f16_reductions` is off; TypeError for booleans.
    Source: the StableHLO operation `stablehlo.reduce`.

    >>> lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), (0,))
    Array([4, 6], dtype=int32)
    """
    out_sharding = out_sharding_of(out_sharding, "reduce_sum")
    axes = tuple(map(index, axes))
    aval = get_aval(operand)
    half = axes and aval.dtype in (dtypes.float16, dtypes.bfloat16)
    if half and not local.context.settings.allow_f16_reductions:
        raise ValueError(
            f"reduce_sum on operand {aval.str_short(True)} is not allowed when "
            "jax_allow_f16_reductions=False. Convert it with .astype(jnp.float32) before."
        )
    return reduce_sum_p.bind(operand, axes=axes, out_sharding=out_sharding)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Multiply over axes, in the operand's dtype; 1 over nothing.

    - `operand`: numeric array
    - `axes`: nonnegative axes, left out of the result's shape

    ValueError for axes out of range or repeated; TypeError for booleans.
    Source: the StableHLO operation `stablehlo.reduce`.

    >>> lax.reduce_prod(jnp.array([[1, 2], [3, 4]]), (0,))
    Array([3, 8], dtype=int32)
    """
    return reduce_prod_p.bind(operand, axes=tuple(map(index, axes)))


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Compute the maximum over axes: NaN if there is one; -inf, or the least integer, of nothing.

    - `operand`: array; complex numbers compare by real, then by imaginary part
    - `axes`: nonnegative axes, left out of the result's shape

    The result has the dtype of `operand`. ValueError for axes out of range or repeated.
    Source: the StableHLO operation `stablehlo.reduce`.

    >>> lax.reduce_max(jnp.array([[1, 4], [3, 2]]), (0,))
    Array([3, 4], dtype=int32)
    """
    return reduce_max_p.bind(operand, axes=tuple(map(index, axes)))


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Compute the minimum over axes: NaN if there is one; inf, or the greatest integer, of nothing.

    - `operand`: array; complex numbers compare by real, then by imaginary part
    - `axes`: nonnegative axes, left out of the result's shape

    The result has the dtype of `operand`. ValueError for axes out of range or repeated.
    Source: the StableHLO operation `stablehlo.reduce`.

    >>> lax.reduce_min(jnp.array([[1, 4], [3, 2]]), (0,))
    Array([1, 2], dtype=int32)
    """
    return reduce_min_p.bind(operand, axes=tuple(map(index, axes)))


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Combine by bitwise and over axes.

    - `operand`: integer or boolean array
    - `axes`: nonnegative axes, left out of the result's shape

    The result has the dtype of `operand`. ValueError for axes out of range or repeated; TypeError
    for other dtypes. Source: the StableHLO operation `stablehlo.reduce`.

    >>> lax.reduce_and(jnp.array([6, 3]), (0,))
    Array(2, dtype=int32)
    """
    return reduce_and_p.bind(operand, axes=tuple(map(index, axes)))


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Combine by bitwise or over axes.

    - `operand`: integer or boolean array
    - `axes`: nonnegative axes, left out of the result's shape

    The result has the dtype of `operand`. ValueError for axes out of range or repeated; TypeError
    for other dtypes. Source: the StableHLO operation `stablehlo.reduce`.

    >>> lax.reduce_or(jnp.array([6, 3]), (0,))
    Array(7, dtype=int32)
    """
    return reduce_or_p.bind(operand, axes=tuple(map(index, axes)))


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Combine by bitwise exclusive or over axes.

    - `operand`: integer or boolean array
    - `axes`: nonnegative axes, left out of the result's shape

    The result has the dtype of `operand`. ValueError for axes out of range or repeated; TypeError
    for other dtypes. Source: the StableHLO operation `stablehlo.reduce`.

    >>> lax.reduce_xor(jnp.array([6, 3]), (0,))
    Array(5, dtype=int32)
    """
    return reduce_xor_p.bind(operand, axes=tuple(map(index, axes)))


# -- derivatives of extrema and products ------------------------------------------------------------


def _jvp_extremum(p: Primitive) -> None:
    """The mean of the tangents at the places where the extremum is."""

    @p.jvp
    def _(primals, tangents, *, axes):
        (x,), (t,) = primals, tangents
        out = p.bind(x, axes=axes)
        if type(t) is Zero:
            return out, zero_like(out)
        aval = get_aval(x)
        kept = tuple([1 if axis in axes else size for axis, size in enumerate(aval.shape)])
        hits = eq_p.bind(x, reshaped(out, kept))
        hits = to_dtype(hits, aval.dtype)
        count = reduce_sum_p.bind(hits, axes=axes, out_sharding=None)
        total = reduce_sum_p.bind(mul_p.bind(t, hits), axes=axes, out_sharding=None)
        return out, div_p.bind(total, count)


_jvp_extremum(reduce_max_p)
_jvp_extremum(reduce_min_p)


@reduce_prod_p.jvp
def _(primals, tangents, *, axes):
    (x,), (t,) = primals, tangents
    out = reduce_prod_p.bind(x, axes=axes)
    if type(t) is Zero:
        return out, zero_like(out)
    shape = get_aval(x).shape
    order = [axis for axis in range(len(shape)) if axis not in axes]
    order[:0] = axes
    sizes = [shape[axis] for axis in order]
    merged = (prod(sizes[: len(axes)]), *sizes[len(axes) :])
    others = _products_of_others(reshaped(permute(x, order), merged))
    others = permute(reshaped(others, tuple(sizes)), np.argsort(order))
    return out, reduce_sum_p.bind(mul_p.bind(t, others), axes=axes, out_sharding=None)


def _products_of_others(x: Any) -> Any:
    """Return for each element, the product of all others along axis 0: never divides, so zeros are
    safe.

    Pairs are multiplied, the products of all other pairs found, and those given to each of a pair,
    times its partner: three multiplications an element.
    """
    size = x.shape[0]
    if size <= 1:
        return full_like_aval(1, get_aval(x).strip_weak_type())
    half = size // 2
    sizes = (half, half, size % 2) if size % 2 else (half, half)
    left, right, *rest = split_p.bind(x, sizes=sizes, axis=0)
    if size == 2:
        return concatenate_p.bind(right, left, dimension=0)
    pairs = mul_p.bind(left, right)
    above = _products_of_others(concatenate_p.bind(pairs, *rest, dimension=0) if rest else pairs)
    if rest:
        above, *rest = split_p.bind(above, sizes=(half, 1), axis=0)
    parts = mul_p.bind(above, right), mul_p.bind(above, left), *rest
    return concatenate_p.bind(*parts, dimension=0)


# -- argmax and argmin ----------------------------------------------------------------------------------

# On CPU floats are compared as integers of the same order: reduced and sorted so, they take a third to
# a sixth of the time.
_BITS = {
    np.dtype(np.float32): np.dtype(np.int32),
    np.dtype(np.float64): np.dtype(np.int64),
    np.dtype(np.float16): np.dtype(np.int16),
    dtypes.BFLOAT16: np.dtype(np.int16),
}


def to_ordered_bits(b, x, nan: np.generic | None = None):
    """Integers in the order of floats, with NaN last or at `nan`; None for other dtypes.

    Zero with a sign comes before zero without one. `from_ordered_bits` gives the floats again.
    """
    dtype = _BITS.get(x.dtype)
    if dtype is None or b.platform != "cpu":
        return None
    bits = x.aval.update(dtype=dtype, weak_type=False)
    if nan is None:
        nan = np.asarray(np.nan, x.dtype).view(dtype) & np.iinfo(dtype).max
    flipped = _flip_negative(b, b.op("stablehlo.bitcast_convert", (x,), bits))
    undefined = b.compare(x, x, "NE")
    return b.op("stablehlo.select", (undefined, b.full(nan, bits), flipped), bits)


def from_ordered_bits(b, bits, out: ShapedArray):
    return b.op("stablehlo.bitcast_convert", (_flip_negative(b, bits),), out)


def _flip_negative(b, bits):
    """All bits but the sign, exchanged where the sign is set; its own inverse."""
    width = bits.dtype.itemsize * 8
    places = b.full(width - 1, bits.aval)
    sign = b.op("stablehlo.shift_right_arithmetic", (bits, places), bits.aval)
    most = b.full(np.iinfo(bits.dtype).max, bits.aval)
    mask = b.op("stablehlo.and", (sign, most), bits.aval)
    return b.op("stablehlo.xor", (bits, mask), bits.aval)


_INT32 = np.dtype(np.int32)


def _arg_reduction(name: str, identity: Callable, direction: str) -> Primitive:
    p = Primitive(name)
    set_layout(p, parts=kept_axes("axes"))

    @p.shape_rule
    def _(x, *, axes, index_dtype):
        (axis,) = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(
                f"Invalid axis {axis} for operand shape {x.shape}: the axes of {name} count from 0."
            )
        if not dtypes.issubdtype(index_dtype, np.integer):
            raise TypeError(
                f"index_dtype must be an integer type, but got {index_dtype.name}: {name} counts."
            )
        if x.shape[axis] < 1:
            raise ValueError(
                "argmin and argmax require non-empty reduced dimension. operand.shape="
                f"{x.shape} axis={axis}: {name} has nothing to choose from."
            )
        check_dtype(name, x, ORDERED)
        return reduced_aval(name, x, axes, False).update(dtype=index_dtype)

    defjvp(p, None)
    p.rule_transpose = no_rule("its result is an integer")
    p.rule_batch = _batch_reduction(p)

    @p.lower
    def _(b, x, *, axes, index_dtype):
        out = b.out
        index = x.aval.update(dtype=index_dtype, weak_type=False)
        positions = b.op("stablehlo.iota", (), index, f"iota_dimension = {axes[0]} : i64")
        best = greatest if direction == "GT" else least
        keys = to_ordered_bits(b, x, best(_BITS.get(x.dtype, _INT32)))
        if keys is not None:
            zeros = b.compare(x, b.full(0, x.aval), "EQ")
            x = b.op("stablehlo.select", (zeros, b.full(0, keys.aval), keys), keys.aval)
        narrow = dtypes.bit_width(index_dtype) < 32  # so that places may not be different
        many = type(x.aval.size) is int and x.aval.size >= _MANY
        if b.platform == "cpu" and many and not narrow:
            combine = max_p if direction == "GT" else min_p
            return _place_of(b, combine, x, positions, identity(x.dtype), axes[0], out)
        start = b.constant(identity(x.dtype), x.aval.update(shape=()))
        return _reduce_pairs(b, x, positions, start, axes[0], direction, out)

    return p


# From this number of elements on two reductions of one operand, which XLA's CPU compiler vectorizes,
# are faster than one of pairs, within which it computes the operand element by element: argmax of
# 512 rows of 512 takes 0.17 ms where it took 0.29, `random.categorical` 0.7 where it took 7.2.
_MANY = 4096


def _place_of(b, combine: Primitive, x, positions, start, axis: int, out: ShapedArray):
    """Return the first place of the extremum along an axis, or of NaN."""
    extremum = lower_reduce(b, combine, x, start, (axis,), x.aval.update(shape=out.shape))
    kept = [dim for dim in range(x.aval.ndim) if dim != axis]
    found = b.compare(x, b.broadcast(extremum, x.aval.shape, kept), "EQ")
    if dtypes.issubdtype(x.dtype, np.floating):
        found = b.op("stablehlo.or", (found, b.compare(x, x, "NE")), found.aval)
    beyond = np.iinfo(out.dtype).max
    places = b.op(
        "stablehlo.select", (found, positions, b.full(beyond, positions.aval)), positions.aval
    )
    return lower_reduce(b, min_p, places, out.dtype.type(beyond), (axis,), out)


def _reduce_pairs(b, x, positions, start, axis: int, direction: str, out: ShapedArray):
    """Reduce values together with their places; NaN wins, then the extremum, then the first."""
    value, index = x.aval.update(shape=()), positions.aval.update(shape=())
    inexact = dtypes.issubdtype(x.dtype, np.floating)

    def body(r, x1, i1, x2, i2):
        better = r.compare(x1, x2, direction)
        if inexact:
            better = r.op("stablehlo.or", (better, r.compare(x1, x1, "NE")), better.aval)
        same = r.compare(x1, x2, "EQ")
        earlier = r.op("stablehlo.and", (same, r.compare(i1, i2, "LT")), same.aval)
        first = r.op("stablehlo.or", (better, earlier), same.aval)
        return [
            r.op("stablehlo.select", (better, x1, x2), value),
            r.op("stablehlo.select", (first, i1, i2), index),
        ]

    region = b.region([value, index, value, index], body)
    operands = (x, positions, start, b.constant(0, index))
    outs = [x.aval.update(shape=out.shape), out]
    attributes = f"dimensions = {i64_array((axis,))}"
    return b.op_n("stablehlo.reduce", operands, outs, attributes, [region])[1]


argmax_p = _arg_reduction("argmax", least, "GT")
argmin_p = _arg_reduction("argmin", greatest, "LT")


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the index of the maximum along an axis: of the first one, or of the first NaN.

    - `operand`: array of real numbers or booleans
    - `axis`: nonnegative axis, left out of the result's shape
    - `index_dtype`: integer dtype of the result

    ValueError if the axis is out of range or has size 0; TypeError for complex operands, and for an
    `index_dtype` that is not an integer dtype.
    Source: NumPy's `argmax`.

    >>> lax.argmax(jnp.array([1, 3, 2]), 0, jnp.int32)
    Array(1, dtype=int32)
    """
    return argmax_p.bind(operand, axes=(axis,), index_dtype=_index_dtype(index_dtype, "argmax"))


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the index of the minimum along an axis: of the first one, or of the first NaN.

    - `operand`: array of real numbers or booleans
    - `axis`: nonnegative axis, left out of the result's shape
    - `index_dtype`: integer dtype of the result

    ValueError if the axis is out of range or has size 0; TypeError for complex operands, and for an
    `index_dtype` that is not an integer dtype.
    Source: NumPy's `argmin`.

    >>> lax.argmin(jnp.array([3, 1, 2]), 0, jnp.int32)
    Array(1, dtype=int32)
    """
    return argmin_p.bind(operand, axes=(axis,), index_dtype=_index_dtype(index_dtype, "argmin"))


def _index_dtype(dtype: Any, name: str) -> np.dtype:
    if type(dtype) is np.dtype and dtype.itemsize < 8:
        return dtype
    return dtypes.check_user_dtype_supported(dtype, name)
