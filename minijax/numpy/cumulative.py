"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.calls import check_hashable
from minijax.errors import ShardingTypeError
from minijax.features.library import library
from minijax.features.sharding.sharding_rules import parts_of
from minijax.lax.cumulative import cumprod_p, cumsum_p
from minijax.lax.joining import concatenate_p
from minijax.numpy.logic import isnan
from minijax.numpy.promotion import (
    as_dtype,
    axis_of,
    broadcast_to_shape,
    cast,
    check_no_out,
    converted,
    number_like,
    to_array,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import ravel
from minijax.typing import Array, ArrayLike, DTypeLike

__all__ = [
    "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum",
]  # fmt: skip


def _flat(name: str, a: Any) -> Any:
    if any(parts_of(a.aval)):
        raise ShardingTypeError(
            f"The input should be fully replicated when axis is not specified to {name}. Got input "
            f"type={a.aval.str_short()}: give an axis that is not split, or reshard it."
        )
    return ravel(a)


def _cumulative(name: str, p: Any, skipped: int | None = None) -> Callable[..., Array]:
    """`skipped` is what stands in for NaN; None where NaN counts."""

    def body(a, axis, dtype, out):
        check_no_out(name, out)
        check_hashable("axis", name, axis)
        a = to_array(name, a)
        if axis is None or (a.aval.weak_type and not a.aval.ndim):  # a number has one axis
            a, axis = _flat(name, a), axis or 0
        axis = axis_of(axis, a.aval.ndim)
        dtype = as_dtype(dtype, name)
        if skipped is not None and dtypes.issubdtype(a.aval.dtype, np.inexact):
            a = choose_where(isnan(a), number_like(a, skipped), a)
        if dtype is None:
            dtype = dtypes.int_() if a.aval.dtype == dtypes.bool_ else a.aval.dtype
        wanted = dtype
        if dtype == dtypes.bool_:
            a, dtype = cast(a, dtype), dtypes.int_()
        return converted(p.bind(cast(a, dtype), axis=axis, reverse=False), wanted)

    return body


_cumsum = _cumulative("cumsum", cumsum_p)
_cumprod = _cumulative("cumprod", cumprod_p)
_nancumsum = _cumulative("nancumsum", cumsum_p, 0)
_nancumprod = _cumulative("nancumprod", cumprod_p, 1)


@library(static=("axis", "dtype", "out"))
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Compute the cumulative sum along an axis.

    - `a`: numeric or boolean array of any shape.
    - `axis`: an int, or None to flatten `a` first.
    - `dtype`: dtype of the result; by default that of `a`, or the default integer for booleans.

    Returns an array of the shape of `a`, or (a.size,) if `axis` is None. ValueError if `axis` is
    out of range. Source: NumPy's `cumsum`.

    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _cumsum(a, axis, dtype, out)


@library(static=("axis", "dtype", "out"), whole=True)
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Compute the cumulative product along an axis.

    - `a`: numeric or boolean array of any shape.
    - `axis`: an int, or None to flatten `a` first.
    - `dtype`: dtype of the result; by default that of `a`, or the default integer for booleans.

    Returns an array of the shape of `a`, or (a.size,) if `axis` is None. ValueError if `axis` is
    out of range. Source: NumPy's `cumprod`.

    >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _cumprod(a, axis, dtype, out)


@library(static=("axis", "dtype", "out"))
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Compute the cumulative sum along an axis, with NaN counted as zero.

    - `a`, `axis`, `dtype`: as in `cumsum`.

    Returns an array of the shape of `a`, or (a.size,) if `axis` is None. Source: NumPy's
    `nancumsum`.

    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    return _nancumsum(a, axis, dtype, out)


@library(static=("axis", "dtype", "out"), whole=True)
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Compute the cumulative product along an axis, with NaN counted as one.

    - `a`, `axis`, `dtype`: as in `cumprod`.

    Returns an array of the shape of `a`, or (a.size,) if `axis` is None. Source: NumPy's
    `nancumprod`.

    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    return _nancumprod(a, axis, dtype, out)


_KINDS = {"cumulative_sum": "sum", "cumulative_prod": "product"}


def _standard(name, body, identity, x, axis, dtype, include_initial) -> Any:
    """The functions of the array API standard: sums of integers widen, and scalars are refused."""
    x = to_array(name, x)
    if not x.aval.ndim:
        raise ValueError(
            f"The input must be non-scalar to take a cumulative {_KINDS[name]}, however a scalar value or "
            f"scalar array was given."
        )
    if axis is None:
        if x.aval.ndim > 1:
            raise ValueError(
                f"The input array has rank {x.aval.ndim}, however axis was not set to an explicit "
                f"value. The axis argument of {name} is only optional for one-dimensional arrays."
            )
        axis = 0
    axis = axis_of(axis, x.aval.ndim)
    if dtype is None and not identity and dtypes.issubdtype(x.aval.dtype, np.integer):
        unsigned = dtypes.issubdtype(x.aval.dtype, np.unsignedinteger)
        default = dtypes.uint() if unsigned else dtypes.int_()
        dtype = default if default.itemsize > x.aval.dtype.itemsize else None
    out = body(x, axis, dtype, None)
    if not include_initial:
        return out
    sizes = list(out.aval.shape)
    sizes[axis] = 1
    first = broadcast_to_shape(np.asarray(identity).astype(out.aval.dtype)[()], tuple(sizes))
    return concatenate_p.bind(first, out, dimension=axis)


@library(static=("axis", "dtype", "include_initial"), converted=("axis", "include_initial"))
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Compute the cumulative sum along an axis.

    - `x`: numeric array of at least one dimension.
    - `axis`: an int; needed unless `x` is one-dimensional.
    - `dtype`: dtype of the result; by default that of `x`, but narrow integers and booleans are
      widened to the default width.
    - `include_initial`: begin with a zero, so that the axis grows by one.

    Returns an array of the shape of `x`, up to that one. ValueError for scalars, or if `axis` is
    missing. Source: NumPy's `cumulative_sum`, of the array API standard.

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _standard("cumulative_sum", _cumsum, 0, x, axis, dtype, include_initial)


@library(static=("axis", "dtype", "include_initial"), converted=("axis", "include_initial"))
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Compute the cumulative product along an axis.

    - `x`: numeric array of at least one dimension.
    - `axis`: an int; needed unless `x` is one-dimensional.
    - `dtype`: dtype of the result; by default that of `x`.
    - `include_initial`: begin with a one, so that the axis grows by one.

    Returns an array of the shape of `x`, up to that one. ValueError for scalars, or if `axis` is
    missing. Source: NumPy's `cumulative_prod`, of the array API standard.

    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    return _standard("cumulative_prod", _cumprod, 1, x, axis, dtype, include_initial)
