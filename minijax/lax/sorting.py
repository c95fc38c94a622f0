"""Sorting, and the greatest elements."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, overload

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.features.queries import certain, is_dim
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.memory import of_each
from minijax.features.sharding.sharding_rules import along
from minijax.lax.creation import iota_p
from minijax.lax.index_numbers import GatherDimensionNumbers, GatherScatterMode
from minijax.lax.indexing import gather_p
from minijax.lax.reductions import from_ordered_bits, to_ordered_bits
from minijax.lax.shapes import canonical_axis, reshaped, size_of
from minijax.lowering.module import i64_array
from minijax.lowering.types import element_type
from minijax.runtime.escape import symbol
from minijax.runtime.versions import approx_top_k_size
from minijax.transforms.batching import all_to_front
from minijax.transforms.primitives import to_shape
from minijax.transforms.tangents import Zero, zero_like
from minijax.typing import ArrayLike

__all__ = [
    "approx_max_k", "approx_min_k", "approx_top_k_p", "sort", "sort_key_val", "sort_p", "top_k",
    "top_k_p",
]  # fmt: skip

_BOOL = np.dtype(np.bool_)
_INT32 = np.dtype(np.int32)

# -- the order of keys ----------------------------------------------------------------------------------


def _parts(r, x) -> list:
    """A key as reals: complex numbers are ordered by real, then by imaginary part."""
    if not dtypes.issubdtype(x.dtype, np.complexfloating):
        return [x]
    part = x.aval.update(dtype=dtypes.to_real_dtype(x.dtype))
    return [r.op(f"stablehlo.{name}", (x,), part) for name in ("real", "imag")]


def _canonical(r, x):
    """A float with one zero and one NaN, for the total order."""
    zero, nan = r.constant(0, x.aval), r.constant(np.nan, x.aval)
    x0 = r.op("stablehlo.select", (r.compare(x, zero, "EQ"), zero, x), x.aval)
    return r.op("stablehlo.select", (r.compare(x, x, "NE"), nan, x0), x.aval)


def _order(r, x, y) -> tuple[Any, Any]:
    """Functions that write `x < y` and `x == y` of two real keys: zeros are equal, NaN is last."""
    if not dtypes.issubdtype(x.dtype, np.floating):
        return lambda: r.compare(x, y, "LT"), lambda: r.compare(x, y, "EQ")
    if r.platform != "cpu":  # this is what the sorting libraries of accelerators are matched with
        x, y = _canonical(r, x), _canonical(r, y)
        return (
            lambda: r.compare(x, y, "LT", "TOTALORDER"),
            lambda: r.compare(x, y, "EQ", "TOTALORDER"),
        )

    def op(name, *operands):
        return r.op(f"stablehlo.{name}", operands, operands[0].aval)

    def less():
        return op("and", op("not", r.compare(x, y, "GE")), r.compare(x, x, "EQ"))

    def same():
        both = op("and", r.compare(x, x, "NE"), r.compare(y, y, "NE"))
        return op("or", r.compare(x, y, "EQ"), both)

    return less, same


def _before(r, keys: Sequence[tuple[Any, Any]]):
    """Whether the first of two rows of keys comes before the second."""
    pairs = [
        _order(r, *pair) for x, y in keys for pair in zip(_parts(r, x), _parts(r, y), strict=True)
    ]
    result = pairs[-1][0]()
    for less, same in reversed(pairs[:-1]):
        first, equal = less(), same()
        later = r.op("stablehlo.and", (equal, result), result.aval)
        result = r.op("stablehlo.or", (first, later), result.aval)
    return result


# -- sort -----------------------------------------------------------------------------------------------

sort_p = Primitive("sort", multiple_results=True)
_UNSPLIT_SORT = (
    "Arguments to sort must be unsharded over the sorting dimension. Got arg sharding={sharding} and "
    "dimension={axis}"
)
set_layout(
    sort_p,
    parts=along("sort", lambda x, *, dimension, **params: (dimension,), _UNSPLIT_SORT),
    memory=of_each,
)


@sort_p.shape_rule
def _(*avals, dimension, is_stable, num_keys):
    if any(aval.shape != avals[0].shape for aval in avals):
        raise TypeError(
            "Arguments to sort must have equal shapes, got: "
            f"{' '.join(str(aval.shape) for aval in avals)}: broadcast them first."
        )
    if any(isinstance(aval.dtype, dtypes.ExtendedDType) for aval in avals):
        shown = ", ".join(map(str, avals))
        raise TypeError(f"sort: elements of extended dtypes have no order; got {shown}.")
    return list(avals)


@sort_p.jvp
def _(primals, tangents, *, dimension, is_stable, num_keys):
    """Tangents take the places that their primals take."""
    params = {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}
    if all(type(t) is Zero for t in tangents):
        return sort_p.bind(*primals, **params), list(tangents)
    shape = get_aval(primals[0]).shape
    places = iota_p.bind(dtype=_U32, shape=shape, dimension=dimension, sharding=None)
    *outs, places = sort_p.bind(*primals, places, **params)
    rows = to_shape(places, (*shape, 1), range(len(shape)))
    return outs, [t if type(t) is Zero else _taken(t, rows, dimension) for t in tangents]


_U32 = np.dtype(np.uint32)


def _taken(x: Any, places: Any, axis: int) -> Any:
    """The elements of `x` at places along an axis; those are one to a row of the last axis."""
    if x.shape[axis] == 0:  # there is none to take
        return x
    others = tuple([d for d in range(x.ndim) if d != axis])
    return gather_p.bind(
        x,
        places,
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        slice_sizes=tuple([min(1, size) if d != axis else 1 for d, size in enumerate(x.shape)]),
        indices_are_sorted=False,
        unique_indices=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


sort_p.rule_transpose = no_rule("it is not linear in its operands")


@sort_p.batch
def _(args, dims, *, dimension, **params):
    place = next(d for d in dims if d is not None)
    if any(d != place for d in dims):
        args = all_to_front(args, dims)
        place = 0
    outs = sort_p.bind(*args, dimension=dimension + (dimension >= place), **params)
    return outs, [place] * len(outs)


# XLA's CPU sorts single integers by a plain comparison in a sixth of the time that it takes for several
# operands, or for any other comparison. So floats are sorted as integers of the same order, and keys with
# other operands as integers that hold a key and its place. That takes 24 ms more to compile, and saves 1 to
# 2 ms a run from this many elements on (0.2 ms for 4,096).
_MANY = 1 << 14
_I64 = np.dtype(np.int64)


@sort_p.lower
def _(b, *operands, dimension, is_stable, num_keys):
    x = operands[0]
    if b.platform == "cpu" and num_keys == 1 and certain(lambda: x.aval.size >= _MANY):
        keys = to_ordered_bits(b, x) if len(operands) == 1 else _narrow_keys(b, x)
        if keys is not None and len(operands) == 1:
            keys = _lower_sort(b, [keys], dimension, is_stable, 1)[0]
            return [from_ordered_bits(b, keys, x.aval)]
        if keys is not None and x.shape[dimension] < 2**31:
            return _sort_packed(b, keys, operands, dimension)
    return _lower_sort(b, operands, dimension, is_stable, num_keys)


def _narrow_keys(b, x):
    """Keys as integers of up to 32 bits, in 64, in the order of sorting; None if they are wider."""
    wide = x.aval.update(dtype=_I64, weak_type=False)
    if dtypes.issubdtype(x.dtype, np.floating):
        bits = None if x.dtype == np.float64 else to_ordered_bits(b, x)
        if bits is None:
            return None
        zeros = b.compare(x, b.full(0, x.aval), "EQ")
        x = b.op("stablehlo.select", (zeros, b.full(0, bits.aval), bits), bits.aval)
    elif x.dtype.kind == "c" or dtypes.bit_width(x.dtype) > 32:
        return None
    keys = b.op("stablehlo.convert", (x,), wide)
    if dtypes.issubdtype(x.dtype, np.unsignedinteger):  # so that 32 bits go below the sign
        keys = b.op("stablehlo.subtract", (keys, b.full(2**31, wide)), wide)
    return keys


def _sort_packed(b, keys, operands, dimension: int) -> list:
    """Sort keys above their places, then read all operands at those: a stable sort."""
    wide = keys.aval
    high = b.op("stablehlo.shift_left", (keys, b.full(32, wide)), wide)
    places = b.op("stablehlo.iota", (), wide, f"iota_dimension = {dimension} : i64")
    packed = b.op("stablehlo.or", (high, places), wide)
    packed = _lower_sort(b, [packed], dimension, False, 1)[0]
    places = b.op("stablehlo.and", (packed, b.full(2**32 - 1, wide)), wide)
    rows = b.reshape(b.convert(places, _INT32), (*wide.shape, 1))
    others = [d for d in range(wide.ndim) if d != dimension]
    attributes = (
        f"dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [{dimension}], "
        f"operand_batching_dims = {others}, start_indices_batching_dims = {others}, "
        f"start_index_map = [{dimension}], index_vector_dim = {wide.ndim}>, "
        f"slice_sizes = {i64_array([1] * wide.ndim)}, indices_are_sorted = false"
    )
    return [b.op("stablehlo.gather", (x, rows), x.aval, attributes) for x in operands]


def _lower_sort(b, operands, dimension: int, is_stable: bool, num_keys: int) -> list:
    scalars = [x.aval.update(shape=()) for x in operands for _ in range(2)]

    def body(r, *elements):
        pairs = list(zip(elements[::2], elements[1::2], strict=True))
        return [_before(r, pairs[:num_keys])]

    stable = "true" if is_stable else "false"
    attributes = f"dimension = {dimension} : i64, is_stable = {stable}"
    outs = [x.aval for x in operands]
    return b.op_n("stablehlo.sort", operands, outs, attributes, [b.region(scalars, body)])


@overload
def sort(
    operand: Array, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Array: ...
@overload
def sort(
    operand: Sequence[Array], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Array, ...]: ...
def sort(
    operand: Array | Sequence[Array], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Array | tuple[Array, ...]:
    """Sort along an axis, one array or several together.

    - `operand`: array, or sequence of arrays of one shape, ordered by the first `num_keys` of them;
      NaN comes last, complex numbers are ordered by real, then by imaginary part
    - `dimension`: axis; `is_stable`: whether equal elements keep their order

    The result has the shapes and dtypes of `operand`. TypeError if shapes differ; ValueError for an
    axis out of range or too many keys. Source: the StableHLO operation `stablehlo.sort`.

    >>> lax.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    if not isinstance(operand, (list, tuple)):
        if num_keys != 1:
            raise ValueError(f"num_keys={num_keys} must equal 1 for a single operand.")
        axis = canonical_axis(dimension, np.ndim(operand))
        return sort_p.bind(operand, dimension=axis, is_stable=bool(is_stable), num_keys=1)[0]
    if not operand:
        raise TypeError("Sort requires at least one operand: got an empty sequence.")
    if not 1 <= num_keys <= len(operand):
        raise ValueError(f"num_keys={num_keys} must be between 1 and len(operand)={len(operand)}.")
    axis = canonical_axis(dimension, get_aval(operand[0]).ndim)
    return tuple(
        sort_p.bind(*operand, dimension=axis, is_stable=bool(is_stable), num_keys=num_keys)
    )


def sort_key_val(
    keys: Array, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort keys along an axis, and values by their keys.

    - `keys`, `values`: arrays of one shape
    - `dimension`: axis; `is_stable`: whether values of equal keys keep their order

    The result is a pair of arrays of the shapes and dtypes of the operands. TypeError if shapes
    differ.
    Source: the StableHLO operation `stablehlo.sort`.

    >>> lax.sort_key_val(jnp.array([3, 1]), jnp.array([5, 6]))
    (Array([1, 3], dtype=int32), Array([6, 5], dtype=int32))
    """
    axis = canonical_axis(dimension, get_aval(keys).ndim)
    out = sort_p.bind(keys, values, dimension=axis, is_stable=bool(is_stable), num_keys=1)
    return out[0], out[1]


# -- top_k ----------------------------------------------------------------------------------------------

top_k_p = Primitive("top_k", multiple_results=True)
_UNSPLIT_TOP_K = (
    "The input should be unsharded over the axis along which to compute the top_k values. Got input "
    "type={type} and axis={axis}"
)
set_layout(top_k_p, parts=along("top_k", lambda x, *, axis, **params: (axis,), _UNSPLIT_TOP_K))


@top_k_p.shape_rule
def _(x, *, k, axis):
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}.")
    if not any(dtypes.issubdtype(x.dtype, kind) for kind in (np.integer, np.floating, np.bool_)):
        raise ValueError(f"top_k is not compatible with complex inputs. Got {x.str_short()}.")
    if k > x.shape[axis]:
        raise ValueError(
            f"k argument to top_k must be no larger than size along axis; got {k=} with "
            f"shape={list(x.shape)} and {axis=}"
        )
    out = x.update(shape=(*x.shape[:axis], k, *x.shape[axis + 1 :]))
    return [out, out.update(dtype=_INT32)]


@top_k_p.jvp
def _(primals, tangents, *, k, axis):
    return _follow(top_k_p.bind(*primals, k=k, axis=axis), tangents[0], axis)


def _follow(outs: Sequence[Any], t: Any, axis: int) -> tuple[Sequence[Any], list[Any]]:
    """The tangents of chosen values, from the places that they were chosen at."""
    values, places = outs
    nothing = zero_like(places)
    if type(t) is Zero:
        return outs, [zero_like(values), nothing]
    rows = reshaped(places, (*places.shape, 1))
    return outs, [_taken(t, rows, axis), nothing]


top_k_p.rule_transpose = no_rule("it is not linear in its operand")


@top_k_p.batch
def _(args, dims, *, k, axis):
    (x,), (dim,) = args, dims
    return top_k_p.bind(x, k=k, axis=axis + (axis >= dim)), [dim, dim]


@top_k_p.lower
def _(b, x, *, k, axis):
    return _greatest(b, x, k, axis, b.outs)


def _greatest(b, x, k: int, axis: int, outs: Sequence[ShapedArray]) -> list:
    """The `k` greatest in falling order, and their places; of equal ones the first come first."""
    ndim, last = len(x.shape), len(x.shape) - 1
    order = [d for d in range(ndim) if d != axis] + [axis]
    if axis != last:
        x = b.transpose(x, order)
    dtype = x.dtype
    if dtypes.bit_width(dtype) < 8 and dtype != _BOOL:
        wide = np.float32 if dtypes.issubdtype(dtype, np.floating) else np.int32
        x = b.convert(x, np.dtype(wide))
    shape = (*x.shape[:last], k)
    chosen = [x.aval.update(shape=shape), x.aval.update(shape=shape, dtype=_INT32)]
    if is_dim(k):
        target = 'call_target_name = "stablehlo.dynamic_top_k", api_version = 2 : i32'
        values, places = b.op_n("stablehlo.custom_call", (x, b.size(k)), chosen, target)
    else:
        values, places = b.op_n("chlo.top_k", (x,), chosen, f"k = {k} : i64")
    values = b.convert(values, dtype)
    if axis == last:
        return [values, places]
    back = [order.index(d) for d in range(ndim)]
    return [b.transpose(values, back), b.transpose(places, back)]


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """Return the `k` greatest elements along an axis and their indices.

    - `operand`: array of real numbers; NaN is greatest, of equal elements the first come first
    - `k`: nonnegative integer
    - `axis`: axis, by default the last; it has size `k` in the results

    The result is a list of values, in falling order, and int32 indices. ValueError if `k` is
    negative or greater than the axis, or for complex operands.
    Source: the CHLO operation `chlo.top_k`.

    >>> lax.top_k(jnp.array([1, 3, 2]), 2)
    [Array([3, 2], dtype=int32), Array([1, 2], dtype=int32)]
    """
    axis = canonical_axis(axis, np.ndim(operand))
    return list(top_k_p.bind(operand, k=size_of(k), axis=axis))


# -- approx_max_k, approx_min_k -------------------------------------------------------------------------

approx_top_k_p = Primitive("approx_top_k", multiple_results=True)
set_layout(
    approx_top_k_p,
    parts=along("approx_top_k", lambda x, *, reduction_dimension, **params: (reduction_dimension,)),
)


@approx_top_k_p.shape_rule
def _(
    x,
    *,
    k,
    reduction_dimension,
    recall_target,
    is_max_k,
    reduction_input_size_override,
    aggregate_to_topk,
):
    name = "approx_max_k" if is_max_k else "approx_min_k"
    if k <= 0:
        raise ValueError(f"k must be positive, got {k}")
    if not dtypes.issubdtype(x.dtype, np.floating):
        raise ValueError(f"operand must be a floating type. {name} got {x.str_short()}.")
    if not 0 < recall_target <= 1:
        raise ValueError(f"{name}: recall_target must be in (0, 1], got {recall_target}.")
    axis = _axis(name, reduction_dimension, x)
    size = x.shape[axis]
    if size < k:
        raise ValueError(
            f"k must be smaller than the size of reduction_dim {size}, got {k}: {name} takes at most all."
        )
    if not aggregate_to_topk:
        override = reduction_input_size_override
        k = approx_top_k_size(size, x.ndim, k, recall_target, override)
    out = x.update(shape=(*x.shape[:axis], k, *x.shape[axis + 1 :]))
    return [out, out.update(dtype=_INT32)]


def _axis(name: str, dimension: int, x: ShapedArray) -> int:
    if not x.ndim:
        raise TypeError(
            f"approx_top_k operand must have >= 1 dimension, got {x.shape}: {name} needs an array."
        )
    if not -x.ndim <= dimension < x.ndim:
        raise IndexError(
            f"{name}: reduction_dimension {dimension} is out of range for an operand of shape "
            f"{x.shape}."
        )
    return dimension % x.ndim


@approx_top_k_p.jvp
def _(primals, tangents, **params):
    outs = approx_top_k_p.bind(*primals, **params)
    return _follow(outs, tangents[0], params["reduction_dimension"] % get_aval(primals[0]).ndim)


approx_top_k_p.rule_transpose = no_rule("it is not linear in its operand")


@approx_top_k_p.batch
def _(args, dims, *, reduction_dimension, **params):
    (x,), (dim,) = args, dims
    axis = reduction_dimension % (x.ndim - 1)
    axis += axis >= dim
    return approx_top_k_p.bind(x, reduction_dimension=axis, **params), [dim, dim]


@approx_top_k_p.lower
def _(b, x, *, reduction_dimension, is_max_k, **params):
    """Found exactly: what recall is asked for is a floor, which only TPUs gain by going down to."""
    outs = b.outs
    axis = reduction_dimension % len(x.shape)
    if not is_max_k:
        x = b.op("stablehlo.negate", (x,), x.aval)
    values, places = _greatest(b, x, outs[0].shape[axis], axis, outs)
    if not is_max_k:
        values = b.op("stablehlo.negate", (values,), values.aval)
    return [values, places]


_ACCELERATORS = ("cuda", "rocm", "tpu")


@approx_top_k_p.lower_on(*_ACCELERATORS)
def _(
    b, x, *, k, reduction_dimension, recall_target, is_max_k, reduction_input_size_override,
    aggregate_to_topk,
):  # fmt: skip
    axis = reduction_dimension % len(x.shape)
    indices = b.outs[1].update(shape=x.shape)
    places = b.op("stablehlo.iota", (), indices, f"iota_dimension = {axis} : i64")
    scalar = x.aval.update(shape=())
    worst = b.constant(-np.inf if is_max_k else np.inf, scalar)
    nowhere = b.constant(np.int32(-1), indices.update(shape=()))
    flags = [
        f"aggregate_to_topk = {'true' if aggregate_to_topk else 'false'}",
        *(["is_fallback = true"] if b.platform != "tpu" else []),
        f"recall_target = {float(np.float32(recall_target))!r} : f32",
        f"reduction_dim = {axis} : i64",
        f"reduction_input_size_override = {reduction_input_size_override} : i64",
        f"top_k = {k} : i64",
    ]
    return b.custom_call(
        "ApproxTopK", (x, places, worst, nowhere), b.outs, config=f"{{{', '.join(flags)}}}",
        calls=(_comparator(b, x, is_max_k),),
    )  # fmt: skip


def _comparator(b, x, is_max_k: bool) -> str:
    """The function that says which of two numbers comes first."""
    kind, word = element_type(x.dtype), "gt" if is_max_k else "lt"
    name = f"top_k_{word}_{kind}_comparator"

    def write(chosen: str) -> str:
        number, place = f"tensor<{kind}>", "tensor<i32>"
        attributes = f"comparison_direction = #stablehlo<comparison_direction {word.upper()}>"
        return (
            f"func.func {symbol(chosen)}(%a: {number}, %b: {number}, %c: {place}, %d: {place}) -> "
            f'tensor<i1> {{\n%0 = "stablehlo.compare"(%a, %b) <{{{attributes}}}> : '
            f'({number}, {number}) -> tensor<i1>\n"stablehlo.return"(%0) : (tensor<i1>) -> ()\n}}'
        )

    return b.module.function(("comparator", name), name, write)


def _approximate(is_max_k, operand, k, dimension, recall, override, aggregate) -> list[Array]:
    return list(
        approx_top_k_p.bind(
            operand,
            k=index(k),
            reduction_dimension=index(dimension),
            recall_target=float(recall),
            is_max_k=is_max_k,
            reduction_input_size_override=index(override),
            aggregate_to_topk=bool(aggregate),
        )
    )


def approx_max_k(
    operand: Array,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Return the `k` greatest elements along an axis, approximately, and their indices.

    - `operand`: floating-point array
    - `reduction_dimension`: the axis, by default the last; it has size `k` in the results
    - `recall_target`: fraction of the true `k` to be found at least; CPU and GPU find all
    - `aggregate_to_topk`: if False, keep all candidates that a TPU has before its last step, for an
      axis of the size `reduction_input_size_override` where that is given

    The result is a list of values, in falling order, and int32 indices. ValueError unless `k` is
    positive and within the axis, and for other dtypes. Source: Chern et al., TPU-KNN (2022).

    >>> lax.approx_max_k(jnp.array([1.0, 3.0, 2.0]), 2)
    [Array([3., 2.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    return _approximate(
        True, operand, k, reduction_dimension, recall_target, reduction_input_size_override,
        aggregate_to_topk,
    )  # fmt: skip


def approx_min_k(
    operand: Array,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Return the `k` least elements along an axis, approximately, and their indices.

    - `operand`: floating-point array
    - `reduction_dimension`: the axis, by default the last; it has size `k` in the results
    - `recall_target`: fraction of the true `k` to be found at least; CPU and GPU find all
    - `reduction_input_size_override`, `aggregate_to_topk`: as for `approx_max_k`

    The result is a list of values, in rising order, and int32 indices. ValueError unless `k` is
    positive and within the axis, and for other dtypes. Source: Chern et al., TPU-KNN (2022).

    >>> lax.approx_min_k(jnp.array([1.0, 3.0, 2.0]), 2)
    [Array([1., 2.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    return _approximate(
        False, operand, k, reduction_dimension, recall_target, reduction_input_size_override,
        aggregate_to_topk,
    )  # fmt: skip
