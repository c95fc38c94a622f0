"""The primitives that the transforms need themselves, each with all of its rules.

These are adding cotangents, broadcasting (which makes zeros), summing (its transpose) and moving axes;
`jit_p`, which calls a program, is in `transforms.jit`. `minijax.lax` exports all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.shapes import check_broadcast, check_permutation, check_reduced
from minijax.arrays.array import array_of
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.hooks import hooks
from minijax.core.primitive import Primitive
from minijax.lowering.module import i64_array
from minijax.transforms.tangents import Zero, float0_zeros, is_undefined

__all__ = [
    "add_any_p", "add_tangents", "broadcast_in_dim_p", "full_like_aval", "insert_axes",
    "instantiate", "moveaxis", "reduce_sum_p", "to_shape", "transpose_p",
]  # fmt: skip

# -- add_any: the sum of two cotangents ------------------------------------------------------

add_any_p = Primitive("add_any")


@add_any_p.shape_rule
def _(x, y):
    return x


@add_any_p.jvp
def _(primals, tangents):
    return add_any_p.bind(*primals), add_tangents(*tangents)


@add_any_p.transpose
def _(ct, x, y):
    return [ct if is_undefined(x) else None, ct if is_undefined(y) else None]


@add_any_p.batch
def _(args, dims):
    (x, y), (dx, dy) = args, dims
    if dx is None:
        x, dx = insert_axes(x, (dy,), y.shape[dy]), dy
    elif dy is None:
        y, dy = insert_axes(y, (dx,), x.shape[dx]), dx
    return add_any_p.bind(x, moveaxis(y, dy, dx)), dx


@add_any_p.lower
def _(b, x, y):
    if b.out.dtype == dtypes.float0:
        return x
    return b.op("stablehlo.add", (x, y), b.out)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents of one type; None counts as zero."""
    if x is None or type(x) is Zero:
        return x if y is None else y
    if y is None or type(y) is Zero:
        return x
    aval = x.aval if isinstance(x, Array) else get_aval(x)
    if aval.vspace_add is not None:
        return aval.vspace_add(x, y)
    dtype = getattr(aval, "dtype", None)
    if dtype == dtypes.float0:
        return x
    if isinstance(dtype, dtypes.ExtendedDType) and dtype.rule("add") is not None:
        return dtype.rule("add")(dtype, x, y)
    return add_any_p.bind(x, y)


# -- broadcast_in_dim and reduce_sum: transposes of each other ---------------------------------

broadcast_in_dim_p = Primitive("broadcast_in_dim")
broadcast_in_dim_p.printed = lambda params: {
    name: value
    for name, value in params.items()
    if not (name == "shape" or value is None or value == ())
}


@broadcast_in_dim_p.shape_rule
def _(x, *, shape, broadcast_dimensions, sharding):
    check_broadcast(x, shape, broadcast_dimensions)
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


@broadcast_in_dim_p.jvp
def _(primals, tangents, **params):
    (x,), (t,) = primals, tangents
    return broadcast_in_dim_p.bind(x, **params), broadcast_in_dim_p.bind(t, **params)


@broadcast_in_dim_p.transpose
def _(ct, x, *, shape, broadcast_dimensions, sharding):
    kept = {d for axis, d in enumerate(broadcast_dimensions) if x.aval.shape[axis] == shape[d]}
    summed = tuple(d for d in range(len(shape)) if d not in kept)
    ct = reduce_sum_p.bind(ct, axes=summed, out_sharding=None) if summed else ct
    order = [d for d in broadcast_dimensions if d in kept]
    if order != sorted(order):
        permutation = tuple(sorted(order).index(d) for d in order)
        ct = transpose_p.bind(ct, permutation=permutation)
    if ct.ndim != x.aval.ndim:
        dims = tuple(axis for axis, d in enumerate(broadcast_dimensions) if d in kept)
        ct = to_shape(ct, x.aval.shape, dims)
    return [ct]


@broadcast_in_dim_p.batch
def _(args, dims, *, shape, broadcast_dimensions, sharding):
    (x,), (axis,) = args, dims
    x = moveaxis(x, axis, 0)
    shape = (x.shape[0], *shape)
    broadcast_dimensions = (0, *(d + 1 for d in broadcast_dimensions))
    sharding = sharding and hooks.batched_sharding(sharding, x, 0, 0)
    out = broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )
    return out, 0


@broadcast_in_dim_p.lower
def _(b, x, *, shape, broadcast_dimensions, sharding):
    return b.broadcast(x, shape, broadcast_dimensions)


reduce_sum_p = Primitive("reduce_sum")


@reduce_sum_p.shape_rule
def _(x, *, axes, out_sharding):
    if x.dtype == dtypes.bool_:
        raise TypeError(
            f"reduce_sum does not accept dtype bool (operand {x.str_short()}). Accepted dtypes are "
            "numeric: convert it with .astype(...), or use reduce_or."
        )
    return reduced_aval("reduce_sum", x, axes, x.weak_type)


def reduced_aval(name: str, x: ShapedArray, axes: Sequence[int], weak_type: bool) -> ShapedArray:
    """The aval of a reduction over `axes`; ValueError unless these are different and exist."""
    check_reduced(name, x, axes)
    shape = tuple([size for axis, size in enumerate(x.shape) if axis not in axes])
    return ShapedArray(shape, x.dtype, weak_type)


@reduce_sum_p.jvp
def _(primals, tangents, **params):
    (x,), (t,) = primals, tangents
    return reduce_sum_p.bind(x, **params), reduce_sum_p.bind(t, **params)


@reduce_sum_p.transpose
def _(ct, x, *, axes, out_sharding):
    shape = x.aval.shape
    dims = tuple(axis for axis in range(len(shape)) if axis not in axes)
    where = None if x.aval.placement is None else hooks.stated_sharding(x.aval.to_cotangent_aval())
    return [broadcast_in_dim_p.bind(ct, shape=shape, broadcast_dimensions=dims, sharding=where)]


@reduce_sum_p.batch
def _(args, dims, *, axes, out_sharding):
    (x,), (dim,) = args, dims
    axes = tuple(axis + (axis >= dim) for axis in axes)
    out_dim = dim - sum(axis < dim for axis in axes)
    out_sharding = out_sharding and hooks.batched_sharding(out_sharding, x, dim, out_dim)
    return reduce_sum_p.bind(x, axes=axes, out_sharding=out_sharding), out_dim


@reduce_sum_p.lower
def _(b, x, *, axes, out_sharding):
    return reduce_by(b, "stablehlo.add", x, 0, axes, b.out)


def reduce_by(b, op: str, x, initial: Any, axes: Sequence[int], out: ShapedArray):
    """`stablehlo.reduce` of one operand by a binary operation."""
    scalar = x.aval.update(shape=())
    start = b.constant(np.asarray(initial, x.dtype), scalar)
    body = b.region([scalar, scalar], lambda r, p, q: [r.op(op, (p, q), scalar)])
    attributes = f"dimensions = {i64_array(axes)}"
    return b.op_n("stablehlo.reduce", (x, start), [out], attributes, [body])[0]


# -- transpose ----------------------------------------------------------------------------------

transpose_p = Primitive("transpose")


@transpose_p.shape_rule
def _(x, *, permutation):
    check_permutation(x, permutation)
    return x.update(shape=tuple(x.shape[axis] for axis in permutation))


@transpose_p.jvp
def _(primals, tangents, *, permutation):
    (x,), (t,) = primals, tangents
    out = transpose_p.bind(x, permutation=permutation)
    return out, transpose_p.bind(t, permutation=permutation)


@transpose_p.transpose
def _(ct, x, *, permutation):
    inverse = tuple(int(axis) for axis in np.argsort(permutation))
    return [transpose_p.bind(ct, permutation=inverse)]


@transpose_p.batch
def _(args, dims, *, permutation):
    (x,), (dim,) = args, dims
    permutation = (dim, *(axis + (axis >= dim) for axis in permutation))
    return transpose_p.bind(x, permutation=permutation), 0


@transpose_p.lower
def _(b, x, *, permutation):
    return b.transpose(x, permutation)


# -- what the transforms do with them -------------------------------------------------------------


def to_shape(x: Any, shape: Sequence[int], dims: Iterable[int] = (), where: Any = None) -> Any:
    """`x` repeated to a shape, of which its own axes are the dimensions `dims`."""
    return broadcast_in_dim_p.bind(
        x, shape=tuple(shape), broadcast_dimensions=tuple(dims), sharding=where
    )


def insert_axes(x: Any, axes: Sequence[int], size: int = 1) -> Any:
    """`x` repeated along new axes at these places of the result, which are in order."""
    shape = list(np.shape(x))
    for axis in axes:
        shape.insert(axis, size)
    return to_shape(x, shape, [axis for axis in range(len(shape)) if axis not in axes])


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """`x` with one axis moved; axes count from the front."""
    if source == destination:
        return x
    order = [axis for axis in range(x.ndim) if axis != source]
    order.insert(destination, source)
    return transpose_p.bind(x, permutation=tuple(order))


def broadcast_batch(x: Any, size: int, axis: int = 0) -> Any:
    """`x` repeated along a new axis."""
    if not hasattr(x, "shape"):
        return to_shape(x, (*get_aval(x).shape, size))
    if x.dtype == dtypes.float0:
        return float0_zeros((*x.shape[:axis], size, *x.shape[axis:]))
    return insert_axes(x, (axis,), size)


_scalars: dict[tuple, Any] = {}


def scalar_of_type(value: complex, dtype: np.dtype, weak_type: bool) -> Any:
    """Return a number of this type, or an array if no number has it in the current mode."""
    x64 = local.context.settings.enable_x64
    key = (value, dtype, weak_type, x64, value == 0 and str(value))  # 0.0 and -0.0 are equal
    try:
        found = _scalars[key]
    except KeyError:
        scalar = np.asarray(value, dtype)[()]
        kinds = (scalar.item(), scalar) if weak_type else (scalar,)  # Python's numbers are weak
        found = _scalars[key] = next((x for x in kinds if get_aval(x).dtype == dtype), None)
    return array_of(dtype.type(value), x64=not x64) if found is None else found


def full_like_aval(value: Any, aval: ShapedArray) -> Any:
    """An array of the type `aval`, filled with a number."""
    if aval.dtype == dtypes.float0:
        return float0_zeros(aval.shape)
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        zero = aval.dtype.rule("zero")
        if zero is None:
            return aval.dtype.zeros(aval)
        scalar = zero(aval.dtype)
    else:
        scalar = scalar_of_type(value, aval.dtype, aval.weak_type)
    where = None if aval.placement is None else hooks.stated_sharding(aval)
    if not aval.shape and where is None:
        return scalar
    return broadcast_in_dim_p.bind(
        scalar, shape=aval.shape, broadcast_dimensions=(), sharding=where
    )


def instantiate(x: Any) -> Any:
    """A tangent as a value: zeros are made."""
    if type(x) is not Zero:
        return x
    zero = x.aval.vspace_zero
    made = full_like_aval(0, x.aval) if zero is None else zero()
    return made if x.aval.placement is None else hooks.varied(made, x.aval)
