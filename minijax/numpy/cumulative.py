"""Running sums and products. May import the floors below, `promotion`, `ufuncs` and `shapes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
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
from minijax.transforms.library import library

__all__ = [
    "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum",
]  # fmt: skip


def _cumulative(name: str, p: Any, skipped: int | None = None) -> Callable:
    """`skipped` is what stands in for NaN; None where NaN counts."""

    def body(a, axis, dtype, out):
        check_no_out(name, out)
        a = to_array(name, a)
        if axis is None:
            a, axis = ravel(a), 0
        axis = axis_of(axis, a.aval.ndim)
        dtype = as_dtype(dtype, name)
        if skipped is not None and dtypes.issubdtype(a.aval.dtype, np.inexact):
            a = choose_where(isnan(a), number_like(a, skipped), a)
        if dtype is None:
            dtype = dtypes.int_() if a.aval.dtype == dtypes.bool_ else a.aval.dtype
        wanted = dtype
        if dtype == dtypes.bool_:
            dtype = dtypes.int_()
        return converted(p.bind(cast(a, dtype), axis=axis, reverse=False), wanted)

    return body


_cumsum = _cumulative("cumsum", cumsum_p)
_cumprod = _cumulative("cumprod", cumprod_p)
_nancumsum = _cumulative("nancumsum", cumsum_p, 0)
_nancumprod = _cumulative("nancumprod", cumprod_p, 1)


@library(static=("axis", "dtype", "out"))
def cumsum(a, axis=None, dtype=None, out=None):
    """Sums of all elements up to each, along an axis or of all. Source: numpy.cumsum."""
    return _cumsum(a, axis, dtype, out)


@library(static=("axis", "dtype", "out"))
def cumprod(a, axis=None, dtype=None, out=None):
    """Products of all elements up to each, along an axis or of all. Source: numpy.cumprod."""
    return _cumprod(a, axis, dtype, out)


@library(static=("axis", "dtype", "out"))
def nancumsum(a, axis=None, dtype=None, out=None):
    """`cumsum` with NaN counted as zero. Source: numpy.nancumsum."""
    return _nancumsum(a, axis, dtype, out)


@library(static=("axis", "dtype", "out"))
def nancumprod(a, axis=None, dtype=None, out=None):
    """`cumprod` with NaN counted as one. Source: numpy.nancumprod."""
    return _nancumprod(a, axis, dtype, out)


def _standard(name, body, identity, x, axis, dtype, include_initial) -> Any:
    """The functions of the array API standard: sums of integers widen, and scalars are refused."""
    x = to_array(name, x)
    if not x.aval.ndim:
        raise ValueError(
            "The input must be non-scalar to take a cumulative sum, however a scalar value or "
            f"scalar array was given to {name}."
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


@library(static=("axis", "dtype", "include_initial"))
def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Sums up to each element; with a zero in front if `include_initial`.

    Source: numpy.cumulative_sum.
    """
    return _standard("cumulative_sum", _cumsum, 0, x, axis, dtype, include_initial)


@library(static=("axis", "dtype", "include_initial"))
def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Products up to each element; with a one in front if `include_initial`.

    Source: numpy.cumulative_prod.
    """
    return _standard("cumulative_prod", _cumprod, 1, x, axis, dtype, include_initial)
