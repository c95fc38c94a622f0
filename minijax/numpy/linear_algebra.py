"""Products of arrays: dot, matmul, tensordot, outer, kron, cross, trace, and their kin.

`einsum` stands in `einsum`. `precision` is as for `lax.dot_general`; `preferred_element_type` is
the dtype of the result.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.trace import Tracer
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.features.sharding.sharding_rules import parts_of
from minijax.lax import arithmetic, creation, indexing, slicing
from minijax.lax.arithmetic import add_p, mul_p, sub_p
from minijax.lax.compare import and_p, eq_p
from minijax.lax.convert import to_dtype
from minijax.lax.dot import dot_general
from minijax.lax.index_numbers import GatherDimensionNumbers
from minijax.lax.joining import concatenate_p, stack_p
from minijax.lax.precision import PrecisionLike
from minijax.lax.shapes import squeeze_p
from minijax.numpy import reductions
from minijax.numpy.promotion import (
    as_dtype,
    axis_of,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    check_dtypes,
    check_no_out,
    check_ranks,
    converted,
    number_like,
    promote_dtypes,
    promote_pair,
    promote_shapes,
    to_array,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import expanded, moveaxis, ravel, reshaped
from minijax.numpy.triangles import band
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding, out_sharding_of
from minijax.transforms.primitives import full_like_aval, to_shape, transpose_p
from minijax.typing import Array, ArrayLike, DTypeLike

__all__ = [
    "cross", "diag", "diagflat", "diagonal", "dot", "inner", "kron", "matmul", "matvec", "outer",
    "tensordot", "trace", "vdot", "vecdot", "vecmat",
]  # fmt: skip

_Dims = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def contract(
    name: str, a: Any, b: Any, dims: _Dims, precision: Any, preferred: Any, out_sharding: Any = None
) -> Any:
    """`dot_general` of two arrays, in the dtype they promote to unless one is preferred."""
    x, y = a.aval, b.aval
    weak = False
    if preferred is not None:
        preferred = dtypes.check_user_dtype_supported(preferred, name)
    elif x.dtype == y.dtype:
        preferred, weak = x.dtype, x.weak_type and y.weak_type
    else:
        preferred, weak = dtypes.promote(((x.dtype, x.weak_type), (y.dtype, y.weak_type)))
    out = dot_general(
        a, b, dims, precision=precision, preferred_element_type=preferred, out_sharding=out_sharding
    )
    return to_dtype(out, preferred, weak)


_NO_BATCH = ((), ())


@library(static=("precision", "preferred_element_type", "out_sharding"))
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Compute the dot product of vectors, or the product of matrices.

    - `a`: array of shape (..., n); `b`: array of shape (n,) or (..., n, k), or one of them a
      scalar.
    - `precision`: see `lax.Precision`; `preferred_element_type`: dtype of sums and result.
    - `out_sharding`: sharding of the result.

    Returns an array of the promoted dtype and of shape a.shape[:-1] + b.shape without its last but
    one axis; leading axes do not broadcast. TypeError if the shapes do not fit. Source: NumPy's
    `dot`.

    >>> jnp.dot(jnp.array([1, 2]), jnp.array([[1, 0], [1, 1]]))
    Array([3, 2], dtype=int32)
    """
    a, b = to_array("dot", a), to_array("dot", b, 1)
    rank_a, rank_b = a.aval.ndim, b.aval.ndim
    if not rank_a or not rank_b:
        dims = ((), ())
    else:
        dims = ((rank_a - 1,), (max(rank_b - 2, 0),))
    return contract("dot", a, b, (dims, _NO_BATCH), precision, preferred_element_type, out_sharding)


@library(static=("precision", "preferred_element_type", "out_sharding"))
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Multiply matrices; leading axes broadcast.

    - `a`: array of shape (..., m, n) or (n,); `b`: array of shape (..., n, k) or (n,).
    - `precision`: see `lax.Precision`; `preferred_element_type`: dtype of sums and result.
    - `out_sharding`: sharding of the result.

    Returns an array of the promoted dtype and of shape (..., m, k), without the axis of a vector.
    ValueError for scalars or leading axes that do not broadcast, TypeError if the inner sizes
    differ. Source: NumPy's `matmul`, by the StableHLO operation `dot_general`.

    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    a, b = to_array("matmul", a), to_array("matmul", b, 1)
    for position, x in enumerate((a, b)):
        if not x.aval.ndim:
            raise ValueError(
                f"matmul input operand {position} must have ndim at least 1, but it has ndim 0: "
                "use `*` to scale."
            )
    plan = _matmul_plan(a.aval, b.aval)
    squeezed_a, squeezed_b, dims, order = plan
    if squeezed_a:
        a = squeeze_p.bind(a, dimensions=squeezed_a)
    if squeezed_b:
        b = squeeze_p.bind(b, dimensions=squeezed_b)
    where = out_sharding_of(out_sharding, "dot_general")
    if where is not None and order is not None:
        parts = [*where.spec.partitions, *[None] * (len(order) - len(where.spec))]
        where = where.with_parts([parts[order.index(axis)] for axis in range(len(order))])
    out = contract("matmul", a, b, dims, precision, preferred_element_type, where)
    return transpose_p.bind(out, permutation=order) if order is not None else out


_plans: dict[tuple, tuple] = {}


def _matmul_plan(a: Any, b: Any) -> tuple:
    """Return the axes to squeeze, the dimension numbers, and the transposition of the result."""
    key = (a.shape, b.shape, a.placement, b.placement)
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = _make_plan(a, b)
    return plan


def _make_plan(a: Any, b: Any) -> tuple:
    """Batch axes of one size go together; one of size one, or missing, is left to the other."""
    vector_a, vector_b = a.ndim == 1, b.ndim == 1
    if vector_a or vector_b:
        contracted = (a.ndim - 1,), (b.ndim - 1 if vector_b else b.ndim - 2,)
        return (), (), (contracted, _NO_BATCH), None
    batch_a, batch_b = a.shape[:-2], b.shape[:-2]
    count = max(len(batch_a), len(batch_b))
    squeezed, batch, free_a, free_b = ([], []), ([], []), [], []
    # Axes are named by their place in the result; matrix axes follow the batch axes.
    for place in range(count):
        axis_a, axis_b = place - count + len(batch_a), place - count + len(batch_b)
        size_a = batch_a[axis_a] if axis_a >= 0 else None
        size_b = batch_b[axis_b] if axis_b >= 0 else None
        if size_a == size_b and parts_of(a)[axis_a] == parts_of(b)[axis_b]:
            batch[0].append((place, axis_a))
            batch[1].append((place, axis_b))
        elif size_b is None or (size_b == 1 and size_a is not None):
            free_a.append((place, axis_a))
            if size_b == 1:
                squeezed[1].append(axis_b)
        elif size_a is None or size_a == 1:
            free_b.append((place, axis_b))
            if size_a == 1:
                squeezed[0].append(axis_a)
        else:
            raise ValueError(
                f"Incompatible types for matmul arguments: {a.str_short()} and {b.str_short()}: "
                "leading axes must be equal and split alike, or 1, counted from the matrix axes."
            )

    def shifted(axis, gone):
        return axis - sum(1 for other in gone if other < axis)

    contracted = (
        (shifted(a.ndim - 1, squeezed[0]),),
        (shifted(b.ndim - 2, squeezed[1]),),
    )
    batches = tuple([
        tuple([shifted(axis, gone) for _, axis in pairs])
        for pairs, gone in zip(batch, squeezed, strict=True)
    ])  # fmt: skip
    places = [place for place, _ in batch[0]] + [place for place, _ in free_a] + [count]
    places += [place for place, _ in free_b] + [count + 1]
    order = tuple([places.index(place) for place in range(count + 2)])
    same = order == tuple(range(count + 2))
    return tuple(squeezed[0]), tuple(squeezed[1]), (contracted, batches), None if same else order


@library(static=("precision", "preferred_element_type"))
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute the dot product of flattened arrays, with the first one conjugated.

    - `a`, `b`: numeric arrays with equal numbers of elements.
    - `precision`: see `lax.Precision`; `preferred_element_type`: dtype of sums and result.

    Returns a scalar of the promoted dtype. TypeError if the numbers of elements differ. Source:
    NumPy's `vdot`.

    >>> jnp.vdot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    a, b = to_array("vdot", a), to_array("vdot", b, 1)
    check_dtypes(a, b)
    if a.aval.dtype.kind == "c":
        a = arithmetic.conj(a)
    return dot(
        ravel(a), ravel(b), precision=precision, preferred_element_type=preferred_element_type
    )


@library(static=("precision", "preferred_element_type"))
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute the inner product over the last axes of two arrays.

    - `a`: array of shape (..., n); `b`: array of shape (..., n); or one of them a scalar.
    - `precision`: see `lax.Precision`; `preferred_element_type`: dtype of sums and result.

    Returns an array of the promoted dtype and of shape a.shape[:-1] + b.shape[:-1]. TypeError if
    the sizes differ. Source: NumPy's `inner`.

    >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    a, b = to_array("inner", a), to_array("inner", b, 1)
    if not a.aval.ndim or not b.aval.ndim:
        a, b = promote_pair("inner", a, b)
        product = (and_p if a.aval.dtype == dtypes.bool_ else mul_p).bind(a, b)
        preferred = as_dtype(preferred_element_type, "inner")
        return product if preferred is None else converted(product, preferred)
    dims = (((a.aval.ndim - 1,), (b.aval.ndim - 1,)), _NO_BATCH)
    return contract("inner", a, b, dims, precision, preferred_element_type)


@library(static=("out",))
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Compute the outer product of flattened arrays.

    - `a`, `b`: numeric arrays of any shape.

    Returns an array of shape (a.size, b.size) and of the promoted dtype. Source: NumPy's `outer`.

    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    check_no_out("outer", out)
    check_arraylike("outer", a, b)
    a, b = promote_dtypes(to_array("outer", a), to_array("outer", b))
    times = and_p if a.aval.dtype == dtypes.bool_ else mul_p
    return times.bind(expanded(ravel(a), (1,)), expanded(ravel(b), (0,)))


@library(static=("axes", "precision", "preferred_element_type", "out_sharding"))
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Sum products over several axes of two arrays.

    - `a`, `b`: numeric arrays.
    - `axes`: an int, the number of last axes of `a` and first axes of `b` to sum over (2 by
      default), or a pair of axes or sequences of axes, of `a` and of `b`.
    - `precision`: see `lax.Precision`; `preferred_element_type`: dtype of sums and result.
    - `out_sharding`: sharding of the result.

    Returns an array with the remaining axes of `a`, then those of `b`. TypeError if the axes or
    their sizes do not fit. Source: NumPy's `tensordot`.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    a, b = to_array("tensordot", a), to_array("tensordot", b, 1)
    contracted = _tensordot_axes(a.aval, b.aval, axes)
    dims = (contracted, _NO_BATCH)
    return contract("tensordot", a, b, dims, precision, preferred_element_type, out_sharding)


def _tensordot_axes(a: Any, b: Any, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, (tuple, list)) and len(axes) == 2:
        first, second = (
            (one,) if isinstance(one, (int, np.integer)) else tuple(one) for one in axes
        )
        if len(first) != len(second):
            raise TypeError(
                f"tensordot requires axes lists to have equal length, got {axes[0]} and {axes[1]}."
            )
        return (
            tuple([axis_of(axis, a.ndim) for axis in first]),
            tuple([axis_of(axis, b.ndim) for axis in second]),
        )
    try:
        count = operator.index(axes)
    except TypeError:
        raise TypeError(
            f"tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples "
            f"of ints. Got {axes!r}."
        ) from None
    if count > min(a.ndim, b.ndim):
        raise TypeError(
            f"Number of tensordot axes (axes {count}) exceeds input ranks ({a.shape} and {b.shape})"
        )
    return tuple(range(a.ndim - count, a.ndim)), tuple(range(count))


@library(static=("axis", "precision", "preferred_element_type"), converted=("axis",))
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute dot products of vectors along an axis, with the first ones conjugated.

    - `x1`, `x2`: arrays of shape (..., n); other axes broadcast.
    - `axis`: an int, the axis of the vectors, -1 by default.
    - `precision`: see `lax.Precision`; `preferred_element_type`: dtype of sums and result.

    Returns an array of the broadcast shape without the axis. ValueError for scalars or different
    lengths. Source: NumPy's `vecdot`.

    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x1, x2 = to_array("vecdot", x1), to_array("vecdot", x2, 1)
    if x1.aval.ndim < 1 or x2.aval.ndim < 1:
        raise np.exceptions.AxisError(
            f"vecdot takes arrays of at least one dimension: got shapes {x1.shape}, {x2.shape}."
        )
    check_dtypes(x1, x2)
    check_ranks("vecdot", x1, x2)
    axis = operator.index(axis)
    x1, x2 = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    if x1.aval.shape[-1] != x2.aval.shape[-1]:
        raise ValueError(
            f"axes must match; got shapes {x1.aval.shape} and {x2.aval.shape} with axis={axis}: vecdot "
            "takes vectors of one length."
        )
    if x1.aval.dtype.kind == "c":
        x1 = arithmetic.conj(x1)
    rank = max(x1.aval.ndim, x2.aval.ndim)
    left, right = expanded(x1, (x1.aval.ndim - 1,)), expanded(x2, (x2.aval.ndim,))
    out = matmul(left, right, precision=precision, preferred_element_type=preferred_element_type)
    return squeeze_p.bind(out, dimensions=(rank - 1, rank))


def _rank_at_least(name: str, x: Any, rank: int) -> None:
    if x.aval.ndim < rank:
        raise ValueError(
            f"{name}: an operand has shape {x.aval.shape}; it must have at least {rank} axes."
        )


def _same_core(name: str, dim: str, found: int, wanted: int, signature: str) -> None:
    if found != wanted:
        raise ValueError(
            f"inconsistent size for core dimension {dim!r}: {found} vs {wanted} in {name}, of the "
            f"signature {signature!r}."
        )


@library
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply matrices by vectors; leading axes broadcast.

    - `x1`: array of shape (..., m, n); `x2`: array of shape (..., n).

    Returns an array of shape (..., m) and of the promoted dtype. ValueError if the shapes do not
    fit. Source: NumPy's `matvec`.

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x1, x2 = to_array("matvec", x1), to_array("matvec", x2, 1)
    _rank_at_least("matvec", x1, 2)
    _rank_at_least("matvec", x2, 1)
    check_dtypes(x1, x2)
    check_ranks("matvec", x1, x2, core=(2, 1))
    _same_core("matvec", "m", x2.aval.shape[-1], x1.aval.shape[-1], "(n,m),(m)->(n)")
    if x2.aval.ndim == 1:
        return matmul(x1, x2)
    if x1.aval.ndim == 2:
        return matmul(x2, transpose_p.bind(x1, permutation=(1, 0)))
    out = matmul(x1, expanded(x2, (x2.aval.ndim,)))
    return squeeze_p.bind(out, dimensions=(out.aval.ndim - 1,))


@library
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply conjugated vectors by matrices; leading axes broadcast.

    - `x1`: array of shape (..., n); `x2`: array of shape (..., n, m).

    Returns an array of shape (..., m) and of the promoted dtype. ValueError if the shapes do not
    fit. Source: NumPy's `vecmat`.

    >>> jnp.vecmat(jnp.array([1, 1]), jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    x1, x2 = to_array("vecmat", x1), to_array("vecmat", x2, 1)
    _rank_at_least("vecmat", x1, 1)
    _rank_at_least("vecmat", x2, 2)
    check_dtypes(x1, x2)
    check_ranks("vecmat", x1, x2, core=(1, 2))
    _same_core("vecmat", "n", x2.aval.shape[-2], x1.aval.shape[-1], "(n),(n,m)->(m)")
    if x1.aval.dtype.kind == "c":
        x1 = arithmetic.conj(x1)
    if x1.aval.ndim == 1 or x2.aval.ndim == 2:
        return matmul(x1, x2)
    out = matmul(expanded(x1, (x1.aval.ndim - 1,)), x2)
    return squeeze_p.bind(out, dimensions=(out.aval.ndim - 2,))


@library
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the Kronecker product: each element of one array times the other array.

    - `a`, `b`: numeric arrays; the one with fewer dimensions gets axes of size one in front.

    Returns an array of the promoted dtype whose sizes are the products of the sizes. Source:
    NumPy's `kron`.

    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    check_arraylike("kron", a, b)
    a, b = promote_dtypes(to_array("kron", a), to_array("kron", b))
    rank = max(a.aval.ndim, b.aval.ndim)
    a = broadcast_to_shape(a, (1,) * (rank - a.aval.ndim) + a.aval.shape)
    b = broadcast_to_shape(b, (1,) * (rank - b.aval.ndim) + b.aval.shape)
    sizes = tuple([x * y for x, y in zip(a.aval.shape, b.aval.shape, strict=True)])
    spread_a = expanded(a, range(1, 2 * rank, 2))
    spread_b = expanded(b, range(0, 2 * rank, 2))
    return reshaped(mul_p.bind(spread_a, spread_b), sizes)


@library(static=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Compute cross products of vectors of two or three components.

    - `a`, `b`: arrays of shape (..., 2) or (..., 3); other axes broadcast.
    - `axisa`, `axisb`, `axisc`: axes of the vectors in `a`, `b` and the result, -1 by default;
      `axis` sets all three.

    Returns an array of vectors of three components, or of scalars if all vectors have two.
    ValueError for other sizes. Source: NumPy's `cross`.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    check_arraylike("cross", a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_dtypes(to_array("cross", a), to_array("cross", b))
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    sizes = a.aval.shape[-1], b.aval.shape[-1]
    if any(size not in (2, 3) for size in sizes):
        raise ValueError(
            f"Dimension must be either 2 or 3 for cross product; the vectors have {sizes}."
        )
    x, y = _components(a), _components(b)
    if sizes == (2, 2):
        return _minus(_times(x[0], y[1]), _times(x[1], y[0]))
    pairs = ((1, 2), (2, 0), (0, 1))
    parts = [_determinant(x, y, i, j) for i, j in pairs]
    shape = broadcast_shapes(*[part.aval.shape for part in parts])
    out = stack_p.bind(*[broadcast_to_shape(p, shape) for p in parts], axis=len(shape))
    return moveaxis(converted(out, out.aval.dtype), -1, axisc)


def _components(x: Any) -> list[Any]:
    """The components along the last axis; None for a third one that is missing."""
    last = x.aval.ndim - 1
    parts = [
        slicing.index_in_dim(x, i, axis=last, keepdims=False) for i in range(x.aval.shape[last])
    ]
    return parts + [None] * (3 - len(parts))


def _times(x: Any, y: Any) -> Any:
    return None if x is None or y is None else mul_p.bind(*promote_shapes("cross", x, y))


def _minus(x: Any, y: Any) -> Any:
    if y is None:
        return x
    if x is None:
        return arithmetic.neg(y)
    return sub_p.bind(x, y)


def _determinant(x: list, y: list, i: int, j: int) -> Any:
    return _minus(_times(x[i], y[j]), _times(x[j], y[i]))


# -- diagonals --------------------------------------------------------------------------------


def diagonal_length(rows: int, columns: int, offset: int) -> int:
    return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


@library(static=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the diagonals over two axes.

    - `a`: array of at least two dimensions.
    - `offset`: an int, the diagonal: 0 is the main one, positive ones lie above it.
    - `axis1`, `axis2`: ints, the axes of rows and of columns, 0 and 1 by default.

    Returns an array of the dtype of `a` with the diagonal as its last axis in place of the two
    axes. ValueError for fewer dimensions, TypeError for equal axes. Source: NumPy's `diagonal`.

    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    a = to_array("diagonal", a)
    if a.aval.ndim < 2:
        raise ValueError(
            f"diagonal requires an array of at least two dimensions. Got shape {a.aval.shape}."
        )
    offset = operator.index(offset)
    axis1, axis2 = axis_of(axis1, a.aval.ndim), axis_of(axis2, a.aval.ndim)
    if axis1 == axis2:
        raise TypeError(f"axis1 and axis2 cannot be the same: both are {axis1}.")
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    *lead, rows, columns = a.aval.shape
    count, last = diagonal_length(rows, columns, offset), len(lead)
    if not lead and rows == columns and not offset:
        a = converted(a, a.aval.dtype)  # of square matrices alone upstream's is not weak
    if not count:
        return slicing.slice_in_dim(reshaped(a, (*lead, rows * columns)), 0, 0, axis=last)
    # As a slice of the rows in one it is as fast, but not its gradient: such a padding is slow.
    row = creation.broadcasted_iota(dtypes.int32, (count, 1), 0)
    places = [_from(row, max(-offset, 0)), _from(row, max(offset, 0))]
    return indexing.gather(
        a,
        concatenate_p.bind(*places, dimension=1),
        GatherDimensionNumbers(tuple(range(last)), (last, last + 1), (last, last + 1)),
        (*lead, 1, 1),
        unique_indices=True,
        indices_are_sorted=True,
    )


def _with_diagonal(a: Any, offset: Any, axis1: int, axis2: int) -> Any:
    """The two axes last, with zeros where the matrices have not their diagonal, a traced one."""
    if offset.aval.shape or offset.aval.dtype.kind not in "iu":
        raise ValueError(f"k must be a scalar integer; got {offset!r} as the offset of a trace.")
    axis1, axis2 = axis_of(axis1, a.aval.ndim), axis_of(axis2, a.aval.ndim)
    if axis1 == axis2:
        raise ValueError(f"axis1 and axis2 cannot be the same: both are {axis1}.")
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    zero = number_like(a, 0)
    on_diagonal = band(*a.aval.shape[-2:], offset, eq_p)
    return choose_where(on_diagonal, a, zero)


def _from(x: Any, by: int) -> Any:
    return add_p.bind(x, np.asarray(by, x.aval.dtype)[()]) if by else x


@library(static=("k",), converted=("k",))
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Return the diagonal of a matrix, or a matrix with a vector on its diagonal.

    - `v`: array of shape (m, n) or (n,).
    - `k`: an int, the diagonal: 0 is the main one, positive ones lie above it.

    Returns an array of the dtype of `v`, of one or two dimensions; from a vector, of shape (n +
    |k|, n + |k|). ValueError for other arrays. Source: NumPy's `diag`.

    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = to_array("diag", v)
    if v.aval.ndim == 2:
        return diagonal(v, k)
    if v.aval.ndim != 1:
        raise ValueError(f"diag input must be 1d or 2d; got shape {v.aval.shape}.")
    length, k = v.aval.shape[0], operator.index(k)
    size = length + abs(k)
    zeros = full_like_aval(
        0, v.aval.update(shape=(size, size), weak_type=v.aval.weak_type and length)
    )
    if not length:
        return zeros
    if dtypes.is_extended(v.aval.dtype):  # XLA pads with numbers alone
        parts = [zeros[0, : max(-k, 0)], v, zeros[0, : max(k, 0)]]
        column = concatenate_p.bind(*parts, dimension=0)
    else:
        zero = converted(0, v.aval.dtype, v.aval.weak_type)
        column = slicing.pad(v, zero, [(max(-k, 0), max(k, 0), 0)]) if k else v
    return choose_where(band(size, size, k, eq_p), to_shape(column, (size, size), (0,)), zeros)


@library(static=("k",), converted=("k",))
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Return a matrix with the elements of a flattened array on its diagonal.

    - `v`: array of any shape; `k`: an int, the diagonal.

    Returns an array of shape (v.size + |k|, v.size + |k|) and of the dtype of `v`. Source: NumPy's
    `diagflat`.

    >>> jnp.diagflat(jnp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = to_array("diagflat", v)
    return diag(ravel(converted(v, v.aval.dtype)), k)


@library(static=("axis1", "axis2", "dtype", "out", "offset"))
def trace(
    a: ArrayLike,
    offset: int | ArrayLike = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sum the elements of the diagonals over two axes.

    - `a`: array of at least two dimensions.
    - `offset`: an int, the diagonal; `axis1`, `axis2`: as in `diagonal`.
    - `dtype`: dtype of the result; by default that of `a`, with narrow integers widened.

    Returns an array of the shape of `a` without the two axes. ValueError for fewer dimensions.
    Source: NumPy's `trace`.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    check_no_out("trace", out)
    a = to_array("trace", a)
    dtype = dtype if dtype is None else dtypes.check_user_dtype_supported(dtype, "trace")
    if a.aval.ndim < 2:
        raise ValueError(
            f"axis {axis2 if a.aval.ndim else axis1} is out of bounds for array of dimension "
            f"{a.aval.ndim}: trace takes two dimensions or more, got shape {a.aval.shape}."
        )
    if isinstance(offset, (bool, float, complex, np.inexact, np.bool_)):
        raise ValueError(f"trace: k must be a scalar integer; got offset={offset}.")
    axes = axis_of(axis1, a.aval.ndim), axis_of(axis2, a.aval.ndim)
    if axes[0] == axes[1]:
        raise ValueError(f"axis1 and axis2 can not be same. {axis1=} and {axis2=}")
    rows, columns = [a.aval.shape[axis] for axis in axes]
    unordered = rows != columns and (is_dim(rows) or is_dim(columns))  # the length is not known
    if unordered or (isinstance(offset, Tracer) and offset.concrete() is None):
        offset = to_array("trace", offset)
        return reductions.sum(_with_diagonal(a, offset, axis1, axis2), axis=(-2, -1), dtype=dtype)
    return reductions.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)
