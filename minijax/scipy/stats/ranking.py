"""Statistics of samples: mode, rankdata, sem."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.numpy.promotion import axis_of, check_arraylike, promote_one_inexact, to_array
from minijax.typing import ArrayLike

__all__ = ["ModeResult", "mode", "rankdata", "sem"]


class ModeResult(NamedTuple):
    """The commonest values, and how often they stand there."""

    mode: Array
    count: Array


def _only_propagate(nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"Illegal nan_policy value {nan_policy!r}; expected one of "
            "{'propagate', 'omit', 'raise'}"
        )
    if nan_policy != "propagate":
        raise NotImplementedError(
            f"Logic for `nan_policy` of {nan_policy} is not implemented: give 'propagate'."
        )


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Return the most frequent values along an axis, the least of several, and their counts.

    - `a`: array
    - `axis`: axis, or None for all elements
    - `nan_policy`: "propagate"
    - `keepdims`: whether the axis stays, with size 1

    The result is a pair `mode`, `count` of the shape without the axis; NaN and zero without
    elements. NotImplementedError for the policy "omit". Source: SciPy's `stats.mode`.

    >>> jax.scipy.stats.mode(jnp.array([3, 1, 3])).mode
    Array(3, dtype=int32)
    """
    check_arraylike("mode", a)
    _only_propagate(nan_policy)
    return _mode(jnp.atleast_1d(a), None if axis is None else int(axis), bool(keepdims))


@library(static=("axis", "keepdims"), whole=True)
def _mode(a, axis, keepdims):
    if axis is None:
        shape = (1,) * a.ndim
        found, count = _mode_of_last(a.ravel())
        return ModeResult(*[x.reshape(shape if keepdims else ()) for x in (found, count)])
    axis = axis_of(axis, a.ndim)
    outs = _mode_of_last(jnp.moveaxis(a, axis, -1))
    return ModeResult(*[jnp.expand_dims(x, axis) if keepdims else x for x in outs])


def _run_starts(a: Any) -> tuple[Any, Any]:
    """Return where runs begin in values sorted along the last axis, and where that of each began."""
    differs = a[..., 1:] != a[..., :-1]
    if dtypes.issubdtype(a.dtype, np.inexact):  # NaNs, which come last, are all the same
        differs = differs & ~jnp.isnan(a[..., :-1])
    is_new = jnp.concatenate([jnp.ones_like(a[..., :1], np.bool_), differs], axis=-1)
    places = lax.broadcasted_iota(np.int32, a.shape, a.ndim - 1)
    return is_new, lax.cummax(jnp.where(is_new, places, 0), axis=a.ndim - 1)


def _mode_of_last(a: Any) -> tuple[Any, Any]:
    if not a.shape[-1]:
        dtype = dtypes.to_inexact_dtype(a.dtype)
        return jnp.full(a.shape[:-1], np.nan, dtype), jnp.zeros(a.shape[:-1], dtype)
    a = jnp.sort(a, axis=-1)
    _, starts = _run_starts(a)
    lengths = lax.broadcasted_iota(np.int32, a.shape, a.ndim - 1) - starts + 1
    best = jnp.argmax(lengths, axis=-1, keepdims=True)
    count = jnp.max(lengths, axis=-1)
    return jnp.take_along_axis(a, best, axis=-1)[..., 0], count.astype(_count_dtype())


def _count_dtype() -> Any:
    return dtypes.canonicalize_dtype(np.int64)


_METHODS = ("average", "min", "max", "dense", "ordinal")


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Rank values from 1 on.

    - `a`: array of real numbers
    - `method`: rank of equal values: "average", "min" or "max" of theirs, "dense" or "ordinal"
    - `axis`: axis, or None for all elements, flattened
    - `nan_policy`: "propagate"

    The result has the shape of `a` (flattened without an axis), and is NaN where a NaN is among the
    values. ValueError for another method, NotImplementedError for the policy "omit".
    Source: SciPy's `stats.rankdata`.

    >>> jax.scipy.stats.rankdata(jnp.array([10, 30, 20]))
    Array([1., 3., 2.], dtype=float32)
    """
    check_arraylike("rankdata", a)
    _only_propagate(nan_policy)
    if method not in _METHODS:
        raise ValueError(f"unknown method {method!r}: give one of {list(_METHODS)}.")
    return _rankdata(a, method, axis)


@library(static=("method", "axis"), whole=True)
def _rankdata(a, method, axis):
    a = to_array("rankdata", a)
    a = a.ravel() if axis is None else a
    axis = -1 if axis is None else axis
    dtype = dtypes.canonicalize_dtype(np.float64)
    if not a.size:
        return jnp.zeros(a.shape, dtype)
    a = jnp.moveaxis(a, axis, -1)
    order = jnp.argsort(a, axis=-1)
    last = a.ndim - 1
    places = lax.broadcasted_iota(np.int32, a.shape, last)
    is_new, starts = _run_starts(jnp.take_along_axis(a, order, axis=-1))
    if method == "ordinal":
        ranks = places + 1
    elif method == "dense":
        ranks = jnp.cumsum(is_new, axis=-1, dtype=np.int32)
    else:
        size = a.shape[-1]
        is_last = jnp.concatenate([is_new[..., 1:], jnp.ones_like(is_new[..., :1])], axis=-1)
        ends = lax.cummin(jnp.where(is_last, places, size), axis=last, reverse=True) + 1
        ranks = {"min": starts + 1, "max": ends}.get(method)
        if ranks is None:
            ranks = 0.5 * (starts + 1 + ends).astype(dtype)
    ranks = jnp.put_along_axis(
        jnp.zeros(a.shape, dtype), order, ranks.astype(dtype), axis=-1, inplace=False
    )
    if dtypes.issubdtype(a.dtype, np.inexact):
        ranks = jnp.where(jnp.any(jnp.isnan(a), axis=-1, keepdims=True), np.nan, ranks)
    return jnp.moveaxis(ranks, -1, axis)


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Compute the standard error of the mean along an axis.

    - `a`: numeric array
    - `axis`: axis, or None for all elements
    - `ddof`: degrees of freedom subtracted, by default 1
    - `nan_policy`: "propagate", or "omit" to leave out NaN
    - `keepdims`: whether the axis stays, with size 1

    The result has the shape without the axis, and an inexact dtype. ValueError for another policy.
    Source: SciPy's `stats.sem`.

    >>> jax.scipy.stats.sem(jnp.array([1.0, 1.0, 1.0]))
    Array(0., dtype=float32)
    """
    check_arraylike("sem", a)
    if nan_policy not in ("propagate", "omit"):
        raise ValueError(f"{nan_policy} is not supported: give 'propagate' or 'omit'.")
    if not np.ndim(a) and axis is not None:
        raise IndexError(f"sem: axis {axis} is out of range of a number: give an array.")
    return _sem(a, axis, ddof, nan_policy == "omit", bool(keepdims))


@library(static=("axis", "ddof", "omit", "keepdims"))
def _sem(a, axis, ddof, omit, keepdims):
    a = promote_one_inexact("sem", a)
    spread = (jnp.nanstd if omit else jnp.std)(a, axis, ddof=ddof, keepdims=keepdims)
    if omit:
        count = jnp.sum(~jnp.isnan(a), axis, keepdims=keepdims).astype(spread.dtype)
    else:
        size = a.size if axis is None else a.shape[axis]
        size = size.__jax_array__() if is_dim(size) else size
        count = jnp.asarray(size, spread.dtype)
    return (spread / jnp.sqrt(count)).astype(a.dtype)
