"""Products of ragged and of scaled arrays: `ragged_dot_general`, `scaled_dot`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive, no_rule
from minijax.features.sharding.layouts import set_layout
from minijax.lax.arithmetic import mul_p, sub_p
from minijax.lax.compare import and_p, le_p, lt_p, select_n_p
from minijax.lax.convert import convert_element_type, to_dtype
from minijax.lax.creation import iota_p
from minijax.lax.dot import (
    Dims,
    batched_dot,
    canonical_dimension_numbers,
    check_dot,
    check_preferred,
    dot_general_p,
    free_dims,
    preferred_dtype,
    product_dtype,
    pulled_back,
    shifted,
)
from minijax.lax.precision import PrecisionLike, canonical_precision, precision_config
from minijax.lax.rules import linear_in
from minijax.lax.shapes import permute, reshaped
from minijax.lowering.module import lower_by
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding, out_sharding_of
from minijax.transforms.batching import all_to_front, mapped_size, to_front
from minijax.transforms.primitives import to_shape
from minijax.transforms.tangents import is_undefined
from minijax.typing import DTypeLike

__all__ = [
    "RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general",
    "scaled_dot",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Dimensions of `ragged_dot_general` in the shapes of its operands.

    - `dot_dimension_numbers`: contracting and batch dimensions, as in `dot_general`
    - `lhs_ragged_dimensions`: the dimension of lhs that consists of groups
    - `rhs_group_dimensions`: the dimension of rhs that numbers the groups; empty if the ragged
      dimension is contracted or a batch dimension

    Source: the CHLO attribute `ragged_dot`.

    >>> lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)).lhs_ragged_dimensions
    (0,)
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> Any:
        put = object.__setattr__
        numbers = canonical_dimension_numbers(self.dot_dimension_numbers)
        put(self, "dot_dimension_numbers", numbers)
        for name in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            put(self, name, tuple(map(index, getattr(self, name))))


ragged_dot_general_p = Primitive("ragged_dot_general")
set_layout(ragged_dot_general_p)

# -- what the ragged dimension is -----------------------------------------------------------------


class _Plan:
    """The dimension numbers of a ragged product, taken apart.

    `prefix` are the dimensions of lhs along which group sizes may differ, and `rhs_prefix` those of
    rhs that are the same.
    """

    __slots__ = (
        "batch", "contract", "free", "group", "kind", "prefix", "ragged", "rhs_free", "rhs_prefix",
    )  # fmt: skip

    def __init__(self, numbers: RaggedDotDimensionNumbers, x_ndim: int, y_ndim: int):
        (self.contract, self.batch) = numbers.dot_dimension_numbers
        (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
        (self.ragged,) = numbers.lhs_ragged_dimensions
        self.group = numbers.rhs_group_dimensions[0] if numbers.rhs_group_dimensions else None
        self.free = free_dims(x_ndim, lc, lb)
        self.rhs_free = free_dims(y_ndim, rc, (*rb, self.group))
        if self.ragged in lb:
            self.kind, place = "batch", lb.index(self.ragged)
            self.prefix, self.rhs_prefix = lb[:place], rb[:place]
        elif self.ragged in lc:
            self.kind, place = "contracting", lc.index(self.ragged)
            self.prefix, self.rhs_prefix = (*lb, *lc[:place]), (*rb, *rc[:place])
        else:
            self.kind = "free"
            self.prefix = (*lb, *self.free[: self.free.index(self.ragged)])
            self.rhs_prefix = ()


def _check_ragged(x: ShapedArray, y: ShapedArray, numbers: RaggedDotDimensionNumbers) -> None:
    if not isinstance(numbers, RaggedDotDimensionNumbers):
        raise TypeError(f"ragged_dot_general takes RaggedDotDimensionNumbers; got {numbers!r}.")
    ragged, groups = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    wrong = None
    if len(ragged) != 1 or not 0 <= ragged[0] < x.ndim:
        wrong = f"expects exactly one lhs ragged dimension. lhs is of type {x.str_short()}"
    elif ragged[0] in (*lc, *lb):
        if groups:
            wrong = (
                "requires zero group dimensions in the rhs when lhs ragged dimension is "
                "contracting or batch. Leave them out"
            )
    elif len(groups) != 1 or not 0 <= groups[0] < y.ndim or groups[0] in (*rc, *rb):
        wrong = (
            "requires exactly one rhs group dimension when lhs ragged dimension is noncontracting. "
            f"It must be one of rhs, of type {y.str_short()}, neither contracted nor a batch one"
        )
    if wrong:
        raise TypeError(f"ragged_dot_general {wrong}; got {numbers}.")


@ragged_dot_general_p.shape_rule
def _(x, y, sizes, *, ragged_dot_dimension_numbers, preferred_element_type, **params):
    numbers = ragged_dot_dimension_numbers
    _check_ragged(x, y, numbers)
    shape = check_dot("dot_general", x, y, numbers.dot_dimension_numbers)
    plan = _Plan(numbers, x.ndim, y.ndim)
    if not dtypes.issubdtype(sizes.dtype, np.integer):
        raise TypeError(
            "ragged_dot_general requires that group_sizes.dtype is subtype of np.integer. Got "
            f"{sizes.str_short()}."
        )
    full = (*[x.shape[d] for d in plan.prefix], *sizes.shape[-1:])
    if sizes.ndim != 1 and (not sizes.ndim or sizes.shape != full):
        raise TypeError(
            f"ragged_dot_general: group_sizes must be a vector, or of shape {full}; got "
            f"{sizes.str_short()}."
        )
    count = sizes.shape[-1]
    if plan.kind == "free" and y.shape[plan.group] != count:
        raise TypeError(
            f"expected rhs group dimension size to be {count}, got {y.shape[plan.group]}. Dimension "
            f"{plan.group} of rhs, of type {y.str_short()}, is one of groups."
        )
    if plan.kind == "free":
        place = len(plan.batch[0]) + len(plan.free)
        shape = (*shape[:place], *[y.shape[d] for d in plan.rhs_free])
    elif plan.kind == "contracting":
        shape = (count, *shape)
    dtype = product_dtype(x.dtype, y.dtype)
    if preferred_element_type is not None:
        check_preferred("ragged_dot_general", dtype, preferred_element_type)
        dtype = preferred_element_type
    return ShapedArray(shape, dtype)


# -- derivatives ----------------------------------------------------------------------------------


linear_in(ragged_dot_general_p, 0, 1)


@ragged_dot_general_p.transpose
def _(ct, x, y, sizes, *, ragged_dot_dimension_numbers, **params):
    plan = _Plan(ragged_dot_dimension_numbers, get_aval(x).ndim, get_aval(y).ndim)
    left = is_undefined(x)
    aval, other = (x.aval, y) if left else (y.aval, x)
    if plan.kind == "batch":
        (lc, rc), (lb, rb) = plan.contract, plan.batch
        pairs = ((lc, rc), (lb, rb)) if left else ((rc, lc), (rb, lb))
        dot_params = {k: v for k, v in params.items() if k != "group_offset"}
        out = pulled_back(ct, aval, other, get_aval(other).ndim, *pairs, left, dot_params)
    else:
        rule = _RULES[plan.kind, left]
        operands, numbers, places = rule(ct, x, y, plan)
        out = ragged_dot_general_p.bind(
            *operands, sizes, ragged_dot_dimension_numbers=numbers, **params
        )
        out = _put(out, places, aval)
    return [out, None, None] if left else [None, out, None]


def _put(x: Any, places: Sequence[int], aval: ShapedArray) -> Any:
    """`x`, whose axes stand for the dimensions `places`, as a cotangent of type `aval`."""
    return to_dtype(permute(x, np.argsort(places)), aval.dtype)


def _span(start: int, count: int) -> Dims:
    return tuple(range(start, start + count))


def _by(keys: Dims, values: Dims) -> list[int]:
    """The values in the order of their keys."""
    return [value for _, value in sorted(zip(keys, values, strict=True))]


def _free_lhs(ct, x, y, plan):
    (lc, rc), (lb, rb) = plan.contract, plan.batch
    start = len(lb) + len(plan.free)
    dot = (_span(start, len(plan.rhs_free)), plan.rhs_free), (_span(0, len(lb)), rb)
    ragged = len(lb) + plan.free.index(plan.ragged)
    numbers = RaggedDotDimensionNumbers(dot, (ragged,), (plan.group,))
    return (ct, y), numbers, (*lb, *plan.free, *_by(rc, lc))


def _free_rhs(ct, x, y, plan):
    (lc, rc), (lb, rb) = plan.contract, plan.batch
    dot = (plan.free, _span(len(lb), len(plan.free))), (lb, _span(0, len(lb)))
    numbers = RaggedDotDimensionNumbers(dot, (plan.ragged,), ())
    return (x, ct), numbers, (plan.group, *rb, *_by(lc, rc), *plan.rhs_free)


def _contracting_lhs(ct, x, y, plan):
    (lc, rc), (lb, rb) = plan.contract, plan.batch
    start = 1 + len(lb) + len(plan.free)
    dot = (plan.rhs_free, _span(start, len(plan.rhs_free))), (rb, _span(1, len(lb)))
    ragged = rc[lc.index(plan.ragged)]
    numbers = RaggedDotDimensionNumbers(dot, (ragged,), (0,))
    return (y, ct), numbers, (*lb, *_by(rc, lc), *plan.free)


def _contracting_rhs(ct, x, y, plan):
    (lc, rc), (lb, rb) = plan.contract, plan.batch
    dot = (plan.free, _span(1 + len(lb), len(plan.free))), (lb, _span(1, len(lb)))
    numbers = RaggedDotDimensionNumbers(dot, (plan.ragged,), (0,))
    return (x, ct), numbers, (*rb, *_by(lc, rc), *plan.rhs_free)


# From what the ragged dimension is, and whether the cotangent is that of lhs, to the product that
# gives it: the operands, their dimension numbers, and the dimensions that its axes stand for.
_RULES = {
    ("free", True): _free_lhs,
    ("free", False): _free_rhs,
    ("contracting", True): _contracting_lhs,
    ("contracting", False): _contracting_rhs,
}

# -- batching -------------------------------------------------------------------------------------


@ragged_dot_general_p.batch
def _(args, dims, *, ragged_dot_dimension_numbers, **params):
    """The batch axis becomes one more batch dimension, in front."""
    x, y, sizes = args
    numbers = ragged_dot_dimension_numbers
    count = mapped_size(args, dims)
    plan = _Plan(
        numbers, get_aval(x).ndim - (dims[0] is not None), get_aval(y).ndim - (dims[1] is not None)
    )
    x, y = to_front(x, dims[0], count), to_front(y, dims[1], count)
    if dims[2] is not None or get_aval(sizes).ndim > 1:
        sizes = to_front(sizes, dims[2], count)
        full = (count, *[x.shape[1 + d] for d in plan.prefix], sizes.shape[-1])
        if sizes.shape != full:
            sizes = to_shape(sizes, full, (0, len(full) - 1))
    numbers = RaggedDotDimensionNumbers(
        batched_dot(0, 0, x.ndim, y.ndim, numbers.dot_dimension_numbers)[0],
        shifted(numbers.lhs_ragged_dimensions, 0),
        shifted(numbers.rhs_group_dimensions, 0),
    )
    out = ragged_dot_general_p.bind(x, y, sizes, ragged_dot_dimension_numbers=numbers, **params)
    return out, 1 if plan.kind == "contracting" else 0


# -- lowering -------------------------------------------------------------------------------------


def _iota(shape: Dims, dimension: int, dtype: np.dtype) -> Any:
    return iota_p.bind(dtype=dtype, shape=shape, dimension=dimension, sharding=None)


def _spread(x: Any, shape: Dims, dims: Dims) -> Any:
    """`broadcast_in_dim` for dimensions in any order."""
    return to_shape(permute(x, np.argsort(dims)), shape, sorted(dims))


def _by_group(x: Any, sizes: Any, ragged: int, prefix: Dims) -> Any:
    """One copy of `x` for each group, in front, with zeros but where the group is."""
    if sizes.dtype.itemsize < 4:
        sizes = convert_element_type(sizes, np.int32)
    count, dtype = sizes.shape[-1], sizes.dtype
    square = (count, count)
    upto = convert_element_type(le_p.bind(_iota(square, 0, dtype), _iota(square, 1, dtype)), dtype)
    ends = dot_general_p.bind(
        sizes,
        upto,
        dimension_numbers=(((sizes.ndim - 1,), (0,)), ((), ())),
        precision=None,
        preferred_element_type=None,
        out_sharding=None,
    )
    starts = sub_p.bind(ends, sizes)
    shape = (count, *x.shape)
    dims = (*[d + 1 for d in prefix], 0) if sizes.ndim > 1 else (0,)
    place = _iota(shape, ragged + 1, dtype)
    inside = and_p.bind(
        le_p.bind(_spread(starts, shape, dims), place),
        lt_p.bind(place, _spread(ends, shape, dims)),
    )
    zero = _spread(np.zeros((), x.dtype)[()], shape, ())
    return select_n_p.bind(inside, zero, _spread(x, shape, _span(1, x.ndim)))


@ragged_dot_general_p.lower
@lower_by
def _lower_dense(x, y, sizes, *, ragged_dot_dimension_numbers, group_offset, **params):
    numbers = ragged_dot_dimension_numbers
    plan = _Plan(numbers, x.ndim, y.ndim)
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    if plan.kind != "batch":
        x = _by_group(x, sizes, plan.ragged, plan.prefix)
        lc, lb = shifted(lc, 0), shifted(lb, 0)
    if plan.kind == "free":
        lc, rc = (*lc, 0), (*rc, plan.group)
    elif plan.kind == "contracting":
        y = _by_group(y, sizes, rc[plan.contract[0].index(plan.ragged)], plan.rhs_prefix)
        rc, rb = shifted(rc, 0), shifted(rb, 0)
        lb, rb = (0, *lb), (0, *rb)
    return dot_general_p.bind(x, y, dimension_numbers=((lc, rc), (lb, rb)), **params)


@ragged_dot_general_p.lower_on("cuda", "rocm", "tpu")
def _(b, x, y, sizes, *, ragged_dot_dimension_numbers, precision, group_offset, **params):
    """The operation itself: the compilers of accelerators skip what is outside of the groups.

    Those of complex numbers they do not take: they end the process. The compiler of TPUs refuses
    those with batch dimensions.
    """
    numbers = ragged_dot_dimension_numbers
    batched = b.platform == "tpu" and numbers.dot_dimension_numbers[1][0]
    if batched or "c" in (x.dtype.kind, y.dtype.kind, b.out.dtype.kind):
        return _lower_dense(
            b, x, y, sizes, ragged_dot_dimension_numbers=numbers, precision=precision,
            group_offset=group_offset, **params,
        )  # fmt: skip
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    dims = {
        "lhs_batching_dimensions": lb,
        "rhs_batching_dimensions": rb,
        "lhs_contracting_dimensions": lc,
        "rhs_contracting_dimensions": rc,
        "lhs_ragged_dimensions": numbers.lhs_ragged_dimensions,
        "rhs_group_dimensions": numbers.rhs_group_dimensions,
    }
    said = ", ".join([f"{name} = {list(axes)}" for name, axes in dims.items() if axes])
    attributes = (
        f"{precision_config(precision).replace('#stablehlo<', '#chlo<')}, "
        f"ragged_dot_dimension_numbers = #chlo.ragged_dot<{said}>"
    )
    return b.op("chlo.ragged_dot", (x, y, sizes), b.out, attributes)


# -- the functions --------------------------------------------------------------------------------


def ragged_dot_general(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Array | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Multiply arrays where one dimension of lhs consists of groups.

    - `lhs`, `rhs`: numeric arrays; `ragged_dot_dimension_numbers`: a `RaggedDotDimensionNumbers`
    - `group_sizes`: integer vector, or with leading batch dimensions and those before the ragged
      one

    If the ragged dimension is kept, each group is multiplied by its slice of rhs; if contracted,
    each is summed separately, the first axis of the result's shape. TypeError for dimensions that
    do not fit.
    Source: the CHLO operation `chlo.ragged_dot`.

    >>> n = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    >>> lax.ragged_dot_general(jnp.ones((3, 2)), jnp.ones((2, 2, 4)), jnp.array([1, 2]), n).shape
    (3, 4)
    """
    if group_offset is not None:
        raise NotImplementedError(
            "ragged_dot_general: group_offset is not supported; give None, and slice group_sizes "
            f"and the operands instead (got {group_offset!r})."
        )
    return ragged_dot_general_p.bind(
        lhs,
        rhs,
        group_sizes,
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        precision=canonical_precision(precision),
        preferred_element_type=preferred_dtype("ragged_dot_general", preferred_element_type),
        group_offset=group_offset,
        out_sharding=out_sharding_of(out_sharding, "ragged_dot_general"),
    )


_BASIC = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Array | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Multiply groups of rows by a matrix for each group.

    - `lhs`, `rhs`: arrays of shapes (m, k) and (groups, k, n)
    - `group_sizes`: integer vector of shape (groups,): numbers of consecutive rows
    - `precision`, `preferred_element_type`, `out_sharding`: as in `dot_general`; `group_offset`:
      None

    The result has shape (m, n) and the operands' dtype; rows behind the last group are zeros.
    TypeError where shapes do not fit.
    Source: the CHLO operation `chlo.ragged_dot`.

    >>> lax.ragged_dot(jnp.ones((3, 2)), jnp.ones((2, 2, 4)), jnp.array([1, 2])).shape
    (3, 4)
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _BASIC, precision, preferred_element_type, group_offset, out_sharding
    )


# -- scaled_dot: operands with one scale for each block along the contracting dimension ------------

scaled_dot_p = Primitive("scaled_dot")
set_layout(scaled_dot_p, parts=lambda avals, out, **params: [None] * out.ndim)
scaled_dot_p.rule_jvp = scaled_dot_p.rule_transpose = no_rule(
    "Differentiation rule for 'scaled_dot' not implemented: its operands are quantized. "
    "Differentiate the product of the arrays that they stand for."
)


def _check_scale(side: str, x: ShapedArray, scale: ShapedArray, contract: int) -> None:
    for d, (size, blocks) in enumerate(zip(x.shape, scale.shape, strict=True)):
        fits = blocks > 0 and size % blocks == 0 and size >= 2 * blocks
        if not (fits if d == contract else size == blocks):
            raise TypeError(
                f"scaled_dot: {side}_scale must have the shape of {side}, but along the "
                "contracting dimension a divisor of its size, one entry for each block of two "
                f"elements or more; got {scale.str_short()} for {side} of type {x.str_short()} "
                f"contracted along dimension {contract}."
            )


@scaled_dot_p.shape_rule
def _(x, y, x_scale, y_scale, *, dimension_numbers, preferred_element_type):
    if len({a.ndim for a in (x, y, x_scale, y_scale)}) > 1 or x.ndim < 2:
        raise TypeError(
            "scaled_dot takes operands and scales of one rank, at least 2; got "
            f"{', '.join(a.str_short() for a in (x, y, x_scale, y_scale))}."
        )
    shape = check_dot("scaled_dot", x, y, dimension_numbers)
    (lc, rc), _ = dimension_numbers
    if len(lc) != 1:
        raise TypeError(f"scaled_dot contracts one dimension; got {dimension_numbers}.")
    _check_scale("lhs", x, x_scale, lc[0])
    _check_scale("rhs", y, y_scale, rc[0])
    return ShapedArray(shape, preferred_element_type)


@scaled_dot_p.batch
def _(args, dims, *, dimension_numbers, **params):
    args = all_to_front(args, dims)
    numbers, place = batched_dot(0, 0, args[0].ndim, args[1].ndim, dimension_numbers)
    return scaled_dot_p.bind(*args, dimension_numbers=numbers, **params), place


def _scaled(x: Any, scale: Any, contract: int) -> Any:
    """An operand multiplied with its scales, as bfloat16."""
    blocks = scale.shape[contract]
    split = (*x.shape[:contract], blocks, x.shape[contract] // blocks, *x.shape[contract + 1 :])
    scale = _spread(scale, split, tuple(d + (d > contract) for d in range(x.ndim)))
    scale = reshaped(scale, x.shape)
    return mul_p.bind(*[convert_element_type(v, dtypes.BFLOAT16) for v in (x, scale)])


@scaled_dot_p.lower
@lower_by
def _(x, y, x_scale, y_scale, *, dimension_numbers, preferred_element_type):
    (lc, rc), _ = dimension_numbers
    return dot_general_p.bind(
        _scaled(x, x_scale, lc[0]),
        _scaled(y, y_scale, rc[0]),
        dimension_numbers=dimension_numbers,
        precision=None,
        preferred_element_type=preferred_element_type,
        out_sharding=None,
    )


def scaled_dot(
    lhs: Array,
    rhs: Array,
    *,
    lhs_scale: Array | None = None,
    rhs_scale: Array | None = None,
    dimension_numbers: tuple[
        tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
    ]
    | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiply block-scaled arrays.

    - `lhs`, `rhs`: arrays of narrow floats; by default stacks of shapes (..., m, k) and (..., k, n)
    - `lhs_scale`, `rhs_scale`: arrays of the operand's rank, with one entry for each block along
      the contracting dimension; None for ones
    - `dimension_numbers`: as in `dot_general`, with one contracting dimension
    - `preferred_element_type`: dtype of the result, by default bfloat16

    TypeError for ranks below 2 and shapes that do not fit.
    Source: Open Compute Project, Microscaling Formats (2023).

    >>> lax.scaled_dot(jnp.ones((1, 2, 4)), jnp.ones((1, 4, 3))).shape
    (1, 2, 3)
    """
    left, right = np.shape(lhs), np.shape(rhs)
    if min(len(left), len(right)) < 2:
        raise TypeError(
            "scaled_dot takes operands of rank 2 or more; got lhs of shape "
            f"{left} and rhs of shape {right}."
        )
    if dimension_numbers is None:
        batch = tuple(range(len(left) - 2))
        dimension_numbers = ((len(left) - 1,), (len(left) - 2,)), (batch, batch)
    numbers = canonical_dimension_numbers(dimension_numbers)
    preferred = preferred_dtype("scaled_dot", preferred_element_type) or dtypes.BFLOAT16
    (lc, rc), _ = numbers
    scales = [
        _ones(shape, contract[0]) if scale is None else scale
        for scale, shape, contract in ((lhs_scale, left, lc), (rhs_scale, right, rc))
    ]
    return scaled_dot_p.bind(
        lhs, rhs, *scales, dimension_numbers=numbers, preferred_element_type=preferred
    )


def _ones(shape: Dims, contract: int) -> Any:
    shape = (*shape[:contract], 1, *shape[contract + 1 :])
    return _spread(np.ones((), dtypes.float8_e8m0fnu)[()], shape, ())
