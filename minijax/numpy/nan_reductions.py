"""Reductions that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.calls import check_hashable
from minijax.features.library import library
from minijax.lax import arithmetic, compare
from minijax.lax.arithmetic import div_p, mul_p, sub_p
from minijax.lax.compare import and_p, not_p
from minijax.lax.reductions import argmax_p, argmin_p
from minijax.numpy import reductions
from minijax.numpy.logic import isnan
from minijax.numpy.promotion import (
    as_dtype,
    axes_of,
    broadcast_to_shape,
    check_no_out,
    converted,
    number_like,
    promote_shapes,
    to_array,
)
from minijax.numpy.selecting import choose_where
from minijax.typing import Array, ArrayLike, Axis, DTypeLike

__all__ = [
    "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]  # fmt: skip


def _inexact(a: Any) -> bool:
    return dtypes.issubdtype(a.aval.dtype, np.inexact)


def _not_nan(a: Any, where: Any) -> Any:
    """The mask of what counts: neither NaN nor left out by `where`."""
    mask = not_p.bind(isnan(a))
    return mask if where is None else and_p.bind(*promote_shapes("where", mask, where))


def _operand(name: str, a: Any, axis: Any) -> Any:
    check_hashable("axis", name, axis)
    return to_array(name, a)


@library(static=("axis", "dtype", "out", "keepdims"))
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Sum the elements along axes, with NaN counted as zero.

    - `a`, `axis`, `dtype`, `keepdims`, `initial`, `where`: as in `sum`.

    Returns an array of the shape of `a` without the reduced axes. ValueError if `axis` is out of
    range. Source: NumPy's `nansum`.

    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 2.0]))
    Array(3., dtype=float32)
    """
    a = _operand("nansum", a, axis)
    if _inexact(a):
        a = choose_where(isnan(a), number_like(a, 0), a)
    return reductions.sum(a, axis, dtype, out, keepdims, initial=initial, where=where)


@library(static=("axis", "dtype", "out", "keepdims"))
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Multiply the elements along axes, with NaN counted as one.

    - `a`, `axis`, `dtype`, `keepdims`, `initial`, `where`: as in `prod`.

    Returns an array of the shape of `a` without the reduced axes. ValueError if `axis` is out of
    range. Source: NumPy's `nanprod`.

    >>> jnp.nanprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array(6., dtype=float32)
    """
    a = _operand("nanprod", a, axis)
    if _inexact(a):
        a = choose_where(isnan(a), number_like(a, 1), a)
    return reductions.prod(a, axis, dtype, out, keepdims, initial=initial, where=where)


def _nan_extreme(reduce, missing, a, axis, out, keepdims, initial, where) -> Any:
    """The extreme without NaN, and NaN where there is nothing else."""
    if not _inexact(a):
        return reduce(a, axis, out, keepdims, initial=initial, where=where)
    is_nan = isnan(a)
    found = reduce(
        choose_where(is_nan, number_like(a, missing), a),
        axis, out, keepdims, initial=initial, where=where,
    )  # fmt: skip
    if initial is not None:
        return found
    return choose_where(
        reductions.all(is_nan, axis, keepdims=keepdims), number_like(found, np.nan), found
    )


@library(static=("axis", "out", "keepdims"))
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the maximum along axes, ignoring NaN; NaN where all elements are.

    - `a`, `axis`, `keepdims`, `initial`, `where`: as in `max`.

    Returns an array of the dtype of `a`. ValueError if no element is reduced, or `where` is given,
    and `initial` is not. Source: NumPy's `nanmax`.

    >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2., dtype=float32)
    """
    a = _operand("nanmax", a, axis)
    return _nan_extreme(reductions.max, -np.inf, a, axis, out, keepdims, initial, where)


@library(static=("axis", "out", "keepdims"))
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the minimum along axes, ignoring NaN; NaN where all elements are.

    - `a`, `axis`, `keepdims`, `initial`, `where`: as in `min`.

    Returns an array of the dtype of `a`. ValueError if no element is reduced, or `where` is given,
    and `initial` is not. Source: NumPy's `nanmin`.

    >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1., dtype=float32)
    """
    a = _operand("nanmin", a, axis)
    return _nan_extreme(reductions.min, np.inf, a, axis, out, keepdims, initial, where)


def _nan_arg(name: str, p: Any, missing: float, a, axis, out, keepdims) -> Any:
    """The index of the extreme without NaN; -1 where all are NaN."""
    a = to_array(name, a)
    if not _inexact(a):
        return reductions.arg_reduction(name, p, a, axis, out, keepdims)
    is_nan = isnan(a)
    filled = choose_where(is_nan, number_like(a, missing), a)
    found = reductions.arg_reduction(name, p, filled, axis, out, keepdims)
    nothing = reductions.all(is_nan, axis, keepdims=bool(keepdims))
    return choose_where(nothing, number_like(found, -1), found)


@library(static=("axis", "out", "keepdims"), converted=("axis", "keepdims"))
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the maximum along an axis, ignoring NaN; -1 where all elements are.

    - `a`, `axis`, `keepdims`: as in `argmax`.

    Returns an array of integers of the default dtype. ValueError if the axis is empty. Source:
    NumPy's `nanargmax`.

    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2, dtype=int32)
    """
    return _nan_arg("nanargmax", argmax_p, -np.inf, a, axis, out, keepdims)


@library(static=("axis", "out", "keepdims"), converted=("axis", "keepdims"))
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the minimum along an axis, ignoring NaN; -1 where all elements are.

    - `a`, `axis`, `keepdims`: as in `argmin`.

    Returns an array of integers of the default dtype. ValueError if the axis is empty. Source:
    NumPy's `nanargmin`.

    >>> jnp.nanargmin(jnp.array([jnp.nan, 2.0, 1.0]))
    Array(2, dtype=int32)
    """
    return _nan_arg("nanargmin", argmin_p, np.inf, a, axis, out, keepdims)


@library(static=("axis", "dtype", "out", "keepdims"))
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the arithmetic mean along axes, ignoring NaN.

    - `a`, `axis`, `dtype`, `keepdims`, `where`: as in `mean`.

    Returns an array of the shape of `a` without the reduced axes; NaN where nothing is left.
    ValueError if `axis` is out of range. Source: NumPy's `nanmean`.

    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1.5, dtype=float32)
    """
    check_no_out("nanmean", out)
    a = _operand("nanmean", a, axis)
    where = reductions.mask_of("nanmean", where)
    if not _inexact(a):
        return reductions.mean(a, axis, dtype, out, keepdims, where=where)
    dtype = as_dtype(dtype, "nanmean") or a.aval.dtype
    names, rest = reductions.names_of(axis)
    axes = axes_of(rest, a.aval.ndim)
    count = reductions.count_of(a, axes, _not_nan(a, where), dtype, keepdims, names)
    total = nansum(a, axis, dtype, None, keepdims, where=where)
    return div_p.bind(total, count)


@library(static=("axis", "dtype", "out", "keepdims", "ddof"))
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Compute the variance along axes, ignoring NaN.

    - `a`, `axis`, `dtype`, `ddof`, `keepdims`, `where`, `mean`: as in `var`.

    Returns a real array of the shape of `a` without the reduced axes; NaN where the divisor is not
    positive. Source: NumPy's `nanvar`.

    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    check_no_out("nanvar", out)
    a = _operand("nanvar", a, axis)
    working, result = reductions._var_dtypes("nanvar", a, as_dtype(dtype, "nanvar"))
    a = converted(a, working)
    where = _not_nan(a, reductions.mask_of("nanvar", where))
    names, axis = reductions.names_of(axis)
    axes = axes_of(axis, a.aval.ndim)
    every = (*axes, *names)
    a = broadcast_to_shape(a, where.aval.shape)
    if mean is None:
        mean = reductions.mean(a, every, working, keepdims=True, where=where)
    centered = sub_p.bind(*promote_shapes("nanvar", a, converted(mean, working)))
    centered = choose_where(where, centered, number_like(centered, 0))
    if working.kind == "c":
        squared = arithmetic.real(mul_p.bind(centered, arithmetic.conj(centered)))
    else:
        squared = arithmetic.square(centered)
    working = dtypes.to_real_dtype(working)
    count = reductions.count_of(a, axes, where, working, keepdims, names)
    freedom = sub_p.bind(count, converted(ddof, working))
    total = reductions.sum(squared, every, working, keepdims=keepdims)
    enough = compare.gt_p.bind(freedom, number_like(freedom, 0))
    found = div_p.bind(total, freedom)
    return converted(choose_where(enough, found, number_like(found, np.nan)), result)


@library(static=("axis", "dtype", "out", "keepdims", "ddof"))
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Compute the standard deviation along axes, ignoring NaN.

    - `a`, `axis`, `dtype`, `ddof`, `keepdims`, `where`, `mean`: as in `var`.

    Returns a real array of the shape of `a` without the reduced axes; NaN where the divisor is not
    positive. Source: NumPy's `nanstd`.

    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    return arithmetic.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))
