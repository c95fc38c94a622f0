"""`dot_general`, the product of arrays over any dimensions, and the functions on it."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_axes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.primitive import Primitive
from minijax.errors import ShardingTypeError
from minijax.features.checkpoint.decisions import batched_product
from minijax.features.sharding.layouts import layout
from minijax.features.sharding.sharding_rules import (
    ambiguous,
    batched_sharding,
    cotangent_sharding,
    parts_of,
)
from minijax.features.sharding.unreduced import NO_SUMS, sums_of
from minijax.lax.convert import lower_conversion, to_type
from minijax.lax.precision import (
    CanonicalPrecision,
    DotAlgorithm,
    DotAlgorithmPreset,
    PrecisionLike,
    algorithm_attribute,
    algorithm_types,
    canonical_precision,
    has_algorithm,
    precision_config,
)
from minijax.lax.shapes import permute
from minijax.lowering.types import element_type
from minijax.runtime.mesh import axes_of
from minijax.runtime.named_sharding import out_sharding_of
from minijax.transforms.primitives import add_tangents
from minijax.transforms.tangents import Zero, is_undefined, zero_tangent
from minijax.typing import DTypeLike

__all__ = ["DotDimensionNumbers", "batch_matmul", "dot", "dot_general", "dot_general_p"]

Dims = tuple[int, ...]
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]

dot_general_p = Primitive("dot_general")
batched_product(dot_general_p)(lambda params: any(params["dimension_numbers"][1]))


def _printed(params: dict) -> dict:
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    shown = {name: value for name, value in params.items() if value is not None}
    shown["dimension_numbers"] = (([*lc], [*rc]), ([*lb], [*rb]))
    return shown


dot_general_p.printed = _printed

# -- shapes and dtypes ----------------------------------------------------------------------------


def free_dims(ndim: int, contract: Dims, batch: Dims) -> Dims:
    """The dimensions of an operand that are those of the result alone."""
    return tuple([d for d in range(ndim) if d not in contract and d not in batch])


def _check_dims(side: str, aval: ShapedArray, contract: Dims, batch: Dims) -> None:
    wrong = None
    if any(not 0 <= d < aval.ndim for d in (*contract, *batch)):
        wrong = (
            "dimension numbers to be nonnegative and less than the number of axes of the "
            f"{side} value, got {side}_batch of {batch} and {side}_contracting of {contract} for "
            f"{side} of rank {aval.ndim}"
        )
    elif len(set(batch)) != len(batch):
        wrong = f"batch dimensions to be distinct, got {side}_batch {batch}"
    elif len(set(contract)) != len(contract):
        wrong = f"contracting dimensions to be distinct, got {side}_contracting {contract}"
    elif {*contract} & {*batch}:
        wrong = (
            "batch dimensions to be disjoint from contracting dimensions, got "
            f"{side}_batch {batch} and {side}_contracting {contract}"
        )
    if wrong:
        raise TypeError(
            f"dot_general requires {side} {wrong}. {side} is of type {aval.str_short()}."
        )


def check_dot(name: str, x: ShapedArray, y: ShapedArray, dimension_numbers) -> tuple[int, ...]:
    """The shape of a product. TypeError if the operands do not fit together."""
    (lc, rc), (lb, rb) = dimension_numbers
    for kind, left, right in (("batch", lb, rb), ("contracting", lc, rc)):
        if len(left) != len(right) and kind == "batch":
            raise TypeError(
                f"{name} requires equal numbers of lhs_batch and rhs_batch dimensions, got "
                f"lhs_batch {left} and rhs_batch {right}. lhs is of type {x.str_short()} and rhs "
                f"of type {y.str_short()}."
            )
    _check_dims("lhs", x, lc, lb)
    _check_dims("rhs", y, rc, rb)
    for kind, left, right in (("batch", lb, rb), ("contracting", lc, rc)):
        sizes = tuple([x.shape[d] for d in left]), tuple([y.shape[d] for d in right])
        if sizes[0] != sizes[1]:
            which = kind if kind == "contracting" else "lhs batch dimensions and rhs batch"
            raise TypeError(
                f"{name} requires {which} dimensions to have the same shape, got {sizes[0]} and "
                f"{sizes[1]}. Dimensions {left} of lhs of shape {x.shape} and {right} of rhs of "
                f"shape {y.shape} must have the same sizes."
            )
    return (
        *[x.shape[d] for d in lb],
        *[x.shape[d] for d in free_dims(x.ndim, lc, lb)],
        *[y.shape[d] for d in free_dims(y.ndim, rc, rb)],
    )


def _rank(dtype: np.dtype) -> tuple:
    """Orders dtypes for products: by category, then by the largest number they hold."""
    if dtype == dtypes.bool_:
        return (0,)
    if dtypes.issubdtype(dtype, np.integer):
        signed = dtypes.issubdtype(dtype, np.signedinteger)
        return 1, dtypes.iinfo(dtype).bits, signed
    if dtypes.issubdtype(dtype, np.complexfloating):
        return 3, dtype.itemsize
    return 2, float(dtypes.finfo(dtype).max), dtype.itemsize


def product_dtype(x: np.dtype, y: np.dtype) -> np.dtype:
    """The dtype of a product: that of the operands, or the higher ranking of the two."""
    return x if x == y or _rank(x) >= _rank(y) else y


def _width(dtype: np.dtype) -> int:
    if dtype == dtypes.bool_:
        return 1
    bits = dtypes.bit_width(dtype)
    return bits // 2 if dtypes.issubdtype(dtype, np.complexfloating) else bits


def check_preferred(
    name: str, found: np.dtype, preferred: np.dtype, also_floats: bool = False
) -> None:
    """TypeError if integers or complex numbers were to become narrower; or floats, if asked."""
    if _width(preferred) >= _width(found):
        return
    if dtypes.issubdtype(found, np.floating) and not also_floats:
        return
    raise TypeError(
        "`preferred_element_type` must not be narrower than the original type, got "
        f"preferred_element_type of {preferred.name} for result type of {found.name} in {name}. "
        "Convert the result with .astype(...) instead."
    )


@dot_general_p.shape_rule
def _(x, y, *, dimension_numbers, precision, preferred_element_type, out_sharding):
    for aval in (x, y):
        if dtypes.is_extended(aval.dtype):
            raise TypeError(
                f"dot_general does not accept dtype {aval.dtype.name} (operand "
                f"{aval.str_short()}): it multiplies numbers and booleans."
            )
    shape = check_dot("dot_general", x, y, dimension_numbers)
    dtype = product_dtype(x.dtype, y.dtype)
    if preferred_element_type is not None:
        if not isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
            check_preferred("dot_general", dtype, preferred_element_type)
        dtype = preferred_element_type
    return ShapedArray(shape, dtype, x.weak_type and y.weak_type)


@layout(dot_general_p, "sums")
def _(name, avals, asked, *, dimension_numbers, **params):
    """Asked to, it leaves the sum over the mesh axes that split the dimensions it contracts."""
    x, y = avals
    if sums_of(x)[0] or sums_of(y)[0]:
        raise ShardingTypeError(
            f"lhs or rhs passed to {name} cannot be unreduced. Got lhs={x} and rhs={y}: take the sum "
            "with minijax.reshard(x, P(...)) first."
        )
    if asked is None or not asked.spec.unreduced:
        return NO_SUMS
    (lc, rc), _ = dimension_numbers
    left, right = ([parts_of(aval)[d] for d in dims] for aval, dims in ((x, lc), (y, rc)))
    if left != right:
        raise ShardingTypeError(
            "lhs and rhs contracting dims should be sharded identically when out_sharding provided "
            f"to {name} mentions unreduced_axes. Got lhs_contracting_spec={tuple(left)}, "
            f"rhs_contracting_spec={tuple(right)}: reshard one of them."
        )
    if asked.spec.unreduced != {axis for part in left for axis in axes_of(part)}:
        raise ShardingTypeError(
            "out_sharding's unreduced axes should be equal to the contracting specs. Got unreduced "
            f"axes={asked.spec.unreduced} and contracting spec={tuple(left)}: name the mesh axes "
            "that split the contracted dimensions."
        )
    return asked.spec.unreduced, frozenset()


@layout(dot_general_p, "parts")
def _(avals, out, *, dimension_numbers, **params):
    x, y = avals
    (lc, rc), (lb, rb) = dimension_numbers
    left, right = parts_of(x), parts_of(y)
    for one, other in ((lc, rc), (lb, rb)):
        for i, j in zip(one, other, strict=True):
            if left[i] and right[j] and left[i] != right[j]:
                which = (
                    "contracting dimensions to have"
                    if one is lc
                    else "lhs batch dimensions and rhs batch dimensions to have the"
                )
                raise ambiguous(
                    "dot_general",
                    f"dot_general requires {which} consistent sharding, got "
                    f"{tuple(left[i] for i in one)} and {tuple(right[j] for j in other)}",
                    avals,
                )
            if one is lc and left[i] and right[j]:
                raise ShardingTypeError(
                    "Contracting dimensions are sharded and it is ambiguous how the output should "
                    "be sharded. Please specify the output sharding via the `out_sharding` "
                    f"parameter. Got lhs_contracting_spec={tuple(left[i] for i in lc)} and "
                    f"rhs_contracting_spec={tuple(right[j] for j in rc)}"
                )
    return [
        *[left[i] for i in lb],
        *[left[i] for i in free_dims(x.ndim, lc, lb)],
        *[right[j] for j in free_dims(y.ndim, rc, rb)],
    ]


# -- derivatives ----------------------------------------------------------------------------------


@dot_general_p.jvp
def _(primals, tangents, **params):
    (x, y), (tx, ty) = primals, tangents
    out = dot_general_p.bind(x, y, **params)
    aval = get_aval(out)
    total = None
    if aval.to_tangent_aval().dtype != dtypes.float0:
        if type(tx) is not Zero:
            total = dot_general_p.bind(tx, y, **params)
        if type(ty) is not Zero:
            total = add_tangents(total, dot_general_p.bind(x, ty, **params))
    return out, zero_tangent(aval) if total is None else total


@dot_general_p.transpose
def _(ct, x, y, *, dimension_numbers, **params):
    (lc, rc), (lb, rb) = dimension_numbers
    if is_undefined(x):
        y_ndim = get_aval(y).ndim
        return [pulled_back(ct, x.aval, y, y_ndim, (lc, rc), (lb, rb), True, params), None]
    x_ndim = get_aval(x).ndim
    return [None, pulled_back(ct, y.aval, x, x_ndim, (rc, lc), (rb, lb), False, params)]


def pulled_back(ct, aval, other, other_ndim, contracts, batches, is_left, params):
    """The cotangent of one operand: that of the product, multiplied with the other operand.

    `contracts` and `batches` give the dimensions of this operand, then those of the other.
    """
    (contract, other_contract), (batch, other_batch) = contracts, batches
    free = free_dims(aval.ndim, contract, batch)
    other_free = free_dims(other_ndim, other_contract, other_batch)
    start = len(batch) + (len(free) if is_left else 0)
    numbers = (
        (tuple(range(start, start + len(other_free))), other_free),
        (tuple(range(len(batch))), other_batch),
    )
    # The contracted dimensions come out in the order that they have in the other operand.
    order = sorted(range(len(contract)), key=other_contract.__getitem__)
    places = (*batch, *free, *[contract[i] for i in order])
    params = {**params, "out_sharding": cotangent_sharding(aval, places, ct, other)}
    out = dot_general_p.bind(ct, other, dimension_numbers=numbers, **params)
    out = permute(out, np.argsort(places))
    return out if get_aval(out).dtype == aval.dtype else to_type(out, aval)


# -- batching -------------------------------------------------------------------------------------


def shifted(dims: Dims, place: int) -> Dims:
    """Dimensions of an operand, counted after one was inserted at `place`."""
    return tuple([d + (d >= place) for d in dims])


def batched_dot(x_dim, y_dim, x_ndim, y_ndim, dimension_numbers) -> tuple[Any, int]:
    """The dimension numbers of a product with a batch axis, and the place of that in the result.

    If one operand has the axis, it is one more of its free dimensions; if both have it, it is one
    more batch dimension, in front.
    """
    (lc, rc), (lb, rb) = dimension_numbers
    if x_dim is not None:
        lc, lb = shifted(lc, x_dim), shifted(lb, x_dim)
    if y_dim is not None:
        rc, rb = shifted(rc, y_dim), shifted(rb, y_dim)
    if x_dim is not None and y_dim is not None:
        return ((lc, rc), ((x_dim, *lb), (y_dim, *rb))), 0
    left = free_dims(x_ndim, lc, lb)
    if x_dim is not None:
        place = len(lb) + left.index(x_dim)
    else:
        place = len(lb) + len(left) + free_dims(y_ndim, rc, rb).index(y_dim)
    return ((lc, rc), (lb, rb)), place


@dot_general_p.batch
def _(args, dims, *, dimension_numbers, out_sharding, **params):
    x, y = args
    numbers, place = batched_dot(*dims, get_aval(x).ndim, get_aval(y).ndim, dimension_numbers)
    mapped, dim = (y, dims[1]) if dims[0] is None else (x, dims[0])
    params["out_sharding"] = batched_sharding(out_sharding, mapped, dim, place)
    return dot_general_p.bind(x, y, dimension_numbers=numbers, **params), place


# -- lowering -------------------------------------------------------------------------------------

_numbers_text: dict[Any, str] = {}


def _dot_attribute(dimension_numbers) -> str:
    text = _numbers_text.get(dimension_numbers)
    if text is None:
        (lc, rc), (lb, rb) = dimension_numbers
        text = _numbers_text[dimension_numbers] = (
            "dot_dimension_numbers = #stablehlo.dot<"
            f"lhs_batching_dimensions = {[*lb]}, rhs_batching_dimensions = {[*rb]}, "
            f"lhs_contracting_dimensions = {[*lc]}, rhs_contracting_dimensions = {[*rc]}>"
        )
    return text


def _is_tiny_float(dtype: np.dtype) -> bool:
    return dtypes.issubdtype(dtype, np.floating) and dtypes.bit_width(dtype) <= 8


def lower_dot(b, x, y, out: ShapedArray, dimension_numbers, precision: CanonicalPrecision):
    """Write a product.

    Operands are converted to what the algorithm takes; without one, those of different dtypes to
    the dtype of the result, but for eight-bit floats, which XLA multiplies as they are.
    """
    left, right, result = x.dtype, y.dtype, out.dtype
    if has_algorithm(precision):
        left, right, result = algorithm_types(precision, left, right, result)
    elif left != right and not (_is_tiny_float(left) and _is_tiny_float(right)):
        left = right = result
    if b.platform != "cpu" and left == right:
        left, result = _kinds_taken(b.platform, left, result)
        right = left
    x, y = (lower_conversion(b, v, v.aval.update(dtype=d)) for v, d in ((x, left), (y, right)))
    algorithm = algorithm_attribute(
        precision, b.platform, element_type(left), element_type(right), element_type(result)
    )
    attributes = f"{_dot_attribute(dimension_numbers)}, {precision_config(precision)}{algorithm}"
    product = b.op("stablehlo.dot_general", (x, y), out.update(dtype=result), attributes)
    return lower_conversion(b, product, out)


def _kinds_taken(platform: str, operand: np.dtype, result: np.dtype) -> tuple[np.dtype, np.dtype]:
    """The dtypes of operands and product that an accelerator's compiler takes.

    It ends the process where only one of them is complex or a truth value, and on GPUs where small
    arrays of integers have a product of floats.
    """
    if result.kind == "c" and operand.kind != "c":
        result = dtypes.to_real_dtype(result)
    if "c" in operand.kind + result.kind or (result.kind == "b" and operand.kind != "b"):
        return operand, operand
    exact = operand.kind == "b" or (platform != "tpu" and dtypes.issubdtype(operand, np.integer))
    return (result if exact and dtypes.issubdtype(result, np.floating) else operand), result


@dot_general_p.lower
def _(b, x, y, *, dimension_numbers, precision, preferred_element_type, out_sharding):
    return lower_dot(b, x, y, b.out, dimension_numbers, precision)


# -- the functions --------------------------------------------------------------------------------

_canonical_numbers: dict[Any, Any] = {}


def canonical_dimension_numbers(numbers: Any) -> Any:
    """Dimension numbers as tuples of Python integers; one integer stands for one dimension."""
    try:
        return _canonical_numbers[numbers]
    except (KeyError, TypeError):
        pass
    (lc, rc), (lb, rb) = numbers
    chosen = (_as_dims(lc), _as_dims(rc)), (_as_dims(lb), _as_dims(rb))
    try:
        _canonical_numbers[numbers] = chosen
    except TypeError:  # lists or arrays
        pass
    return chosen


def _as_dims(dims: Any) -> Dims:
    known_axes(dims)
    return tuple(map(index, dims)) if hasattr(dims, "__len__") else (index(dims),)


def preferred_dtype(name: str, dtype: Any) -> np.dtype | None:
    """A `preferred_element_type` argument, canonical."""
    if dtype is None:
        return None
    return dtypes.check_user_dtype_supported(dtype, name)


def dot_general(
    lhs: Array,
    rhs: Array,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Multiply two arrays and sum over contracting dimensions.

    - `lhs`, `rhs`: numeric arrays
    - `dimension_numbers`: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`
    - `precision`: a `Precision`, its name, a pair, or a `DotAlgorithm`
    - `preferred_element_type`: dtype of the sums and of the result, by default the operands'

    The result has the batch dimensions first, then the others of lhs, then those of rhs. TypeError
    if the shapes do not fit; ValueError for an unknown `precision`.
    Source: the StableHLO operation `stablehlo.dot_general`.

    >>> lax.dot_general(jnp.ones((2, 3)), jnp.ones((4, 3)), (((1,), (1,)), ((), ()))).shape
    (2, 4)
    """
    if preferred_element_type is not None:
        preferred_element_type = preferred_dtype("dot_general", preferred_element_type)
    if dimension_numbers is None:
        return dot(lhs, rhs, precision=precision, preferred_element_type=preferred_element_type)
    return dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=canonical_dimension_numbers(dimension_numbers),
        precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding_of(out_sharding, "dot_general"),
    )


def dot(
    lhs: Array,
    rhs: Array,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply vectors and matrices.

    - `lhs`, `rhs`: arrays of shapes (n,) or (m, n), and (n,) or (n, k); other shapes with
      `dimension_numbers`, which make it `dot_general`
    - `precision`, `preferred_element_type`, `out_sharding`: as in `dot_general`

    The result has dtype `preferred_element_type`, or the operands' common dtype. ValueError for
    other shapes without `dimension_numbers`.
    Source: the StableHLO operation `stablehlo.dot_general`.

    >>> lax.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    if dimension_numbers is None:
        left, right = tuple(np.shape(lhs)), tuple(np.shape(rhs))
        if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2 and left[-1] == right[0]):
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple "
                "un-batched matrix-matrix, matrix-vector, or vector-vector products; got "
                f"lhs_shape={left} rhs_shape={right}. Sizes that are summed over must be equal."
            )
        dimension_numbers = ((len(left) - 1,), (0,)), ((), ())
    return dot_general(
        lhs,
        rhs,
        dimension_numbers,
        precision,
        preferred_element_type,
        out_sharding=out_sharding,
    )


def batch_matmul(lhs: Array, rhs: Array, precision: PrecisionLike | None = None) -> Array:
    """Multiply two stacks of matrices.

    - `lhs`, `rhs`: arrays of shapes (..., m, k) and (..., k, n), with equal leading dimensions
    - `precision`: as in `dot_general`

    The result has shape (..., m, n) and the operands' dtype. ValueError for fewer than two
    dimensions or different ranks; TypeError where sizes do not fit.
    Source: the StableHLO operation `stablehlo.dot_general`.

    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    left, right = np.shape(lhs), np.shape(rhs)
    if min(len(left), len(right)) < 2 or len(left) != len(right):
        wanted = "be at least 2D" if min(len(left), len(right)) < 2 else "have same ndim"
        raise ValueError(
            f"Arguments to batch_matmul must {wanted}, got {len(left)}, {len(right)}: their shapes "
            f"are {left} and {right}."
        )
    batch = tuple(range(len(left) - 2))
    numbers = ((len(left) - 1,), (len(right) - 2,)), (batch, batch)
    return dot_general(lhs, rhs, numbers, precision)
