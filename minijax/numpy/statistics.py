"""Averages, quantiles and correlations."""

from __future__ import annotations

import math
import operator
from typing import Any, Literal, overload

import numpy as np

from minijax import dtypes
from minijax.arguments.calls import check_hashable
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.lax import arithmetic, compare, creation
from minijax.lax.arithmetic import div_p, mul_p
from minijax.numpy import reductions, ufuncs
from minijax.numpy.cumulative import cumsum
from minijax.numpy.division import divide
from minijax.numpy.joining import joined
from minijax.numpy.linear_algebra import contract, diag
from minijax.numpy.logic import isnan
from minijax.numpy.promotion import (
    as_dtype,
    axes_of,
    broadcast_to_shape,
    check_arraylike,
    check_dtypes,
    check_ranks,
    converted,
    number_like,
    promote_dtypes_inexact,
    promote_one_inexact,
    promote_shapes,
    to_array,
)
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import atleast_2d, broadcast_to, expanded, moveaxis, ravel, reshaped
from minijax.numpy.sorting import argsort, sort
from minijax.numpy.taking import take, take_along_axis
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.transforms.primitives import transpose_p
from minijax.typing import Array, ArrayLike, Axis, DTypeLike

__all__ = [
    "average", "corrcoef", "cov", "median", "nanmedian", "nanpercentile", "nanquantile",
    "percentile", "quantile",
]  # fmt: skip


@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]: ...
@library(static=("axis", "returned", "keepdims"), converted=("axis",))
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """Compute the weighted average along axes.

    - `a`: numeric array of any shape.
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.
    - `weights`: array of the shape of `a`, or of the sizes of `a` along `axis`; equal weights by
      default.
    - `returned`: also return the sum of the weights.

    Returns an array of floating-point or complex dtype, or a pair of it and the sum. ValueError if
    the shape of the weights does not fit. Source: NumPy's `average`.

    >>> jnp.average(jnp.array([1.0, 2.0, 4.0]), weights=jnp.array([2, 1, 1]))
    Array(2., dtype=float32)
    """
    a = to_array("average", a)
    if weights is None:
        axes = axes_of(axis, a.aval.ndim)
        out = reductions.mean(a, axes, keepdims=keepdims)
        count = reductions.count_of(a, axes, None, None)
        count = _count(count, out.aval.dtype)
        total = broadcast_to_shape(count, out.aval.shape)
        return (out, total) if returned else out
    weights = to_array("average", weights, 2)
    a, weights = promote_dtypes_inexact(a, weights)
    axes = axes_of(axis, a.aval.ndim)
    if a.aval.shape != weights.aval.shape:
        weights = _spread_weights(a, weights, axis, axes)
    total = reductions.sum(weights, axis, keepdims=keepdims)
    out = div_p.bind(reductions.sum(mul_p.bind(a, weights), axis, keepdims=keepdims), total)
    return (out, broadcast_to(total, out.aval.shape)) if returned else out


def _spread_weights(a: Any, weights: Any, axis: Any, axes: tuple[int, ...]) -> Any:
    """Weights of some axes, broadcast to all."""
    if axis is None:
        raise ValueError("Axis must be specified when shapes of a and weights differ.")
    wanted = tuple([a.aval.shape[i] for i in axes])
    if weights.aval.shape != wanted:
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis. weights "
            f"has {weights.aval.shape}, and a has {wanted} along axis {axis}."
        )
    order = tuple([int(i) for i in np.argsort(axes)])
    if order != tuple(range(len(order))):
        weights = transpose_p.bind(weights, permutation=order)
    others = [i for i in range(a.aval.ndim) if i not in axes]
    return broadcast_to_shape(expanded(weights, others) if others else weights, a.aval.shape)


# -- quantiles --------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


class NoElementsError(TypeError, ValueError):
    """A quantile of nothing: a TypeError to upstream's older releases, a ValueError to later ones."""


def _quantile(name, a, q, axis, out, overwrite_input, method, keepdims, weights, skip_nan) -> Any:
    if overwrite_input or out is not None:
        raise ValueError(
            f"jax.numpy.{name} does not support overwrite_input=True or out != None: arrays are "
            "immutable. Use the result."
        )
    axis = _reduced_axis(name, axis)
    check_arraylike(name, a, q)
    if method not in _METHODS:
        raise ValueError(
            "method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or "
            f"'inverted_cdf'; got {method!r}."
        )
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(
            f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights."
        )
    if weights is not None:
        a, weights = promote_dtypes_inexact(a, to_array(name, weights, 2))
    if np.ndim(q) > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {np.shape(q)}")
    _check_floating(q)
    a, q = promote_one_inexact(name, a), promote_one_inexact(name, q)
    if a.aval.dtype.kind == "c":
        raise ValueError(
            f"{name} does not support complex input, as the operation is poorly defined."
        )
    axes = axes_of(axis, a.aval.ndim)
    keep = [i for i in range(a.aval.ndim) if i not in axes]
    rows = _rows_last(a, axes, keep)
    if not rows.aval.shape[-1] and q.aval.size:
        raise NoElementsError(
            f"jax.numpy.{name} reduction axis must be non-empty; got shape {a.aval.shape} and "
            f"axis={axis}: no element can be picked."
        )
    if not rows.aval.shape[-1]:  # no quantiles are wanted, of no elements
        found = creation.full((0, *rows.aval.shape[:-1]), 0, rows.aval.dtype)
    elif weights is not None:
        if weights.aval.shape != a.aval.shape:
            weights = _spread_weights(a, weights, axis, axes)
        weights = _rows_last(weights, axes, keep)
        found = _weighted(rows, q, weights, skip_nan)
    else:
        found = _of_sorted(rows, q, method, skip_nan)
    if keepdims:
        lead = q.aval.ndim
        found = expanded(found, [i + lead for i in axes]) if axes else found
    return converted(found, found.aval.dtype)


def _reduced_axis(name: str, axis: Any) -> Any:
    check_hashable("axis", name, axis)
    return axis if axis is None or type(axis) is tuple else operator.index(axis)


def _check_floating(q: Any) -> None:
    """TypeError for probabilities of an integer dtype, which upstream refuses."""
    dtype = dtypes.canonicalize_dtype(dtypes.dtype(q))
    if dtypes.issubdtype(dtype, np.bool_):
        raise TypeError(
            "mul does not accept dtype bool at position 0. Accepted dtypes at position 0 are subtypes "
            "of integer, floating, complexfloating. Give the probabilities q as floats."
        )
    if dtypes.issubdtype(dtype, np.integer):
        raise TypeError(
            f"floor does not accept dtype {dtype.name}. Accepted dtypes are subtypes of floating. "
            "Give the probabilities q as floats."
        )


def _rows_last(a: Any, axes: tuple[int, ...], keep: list[int]) -> Any:
    """The axes to reduce, made into one last axis."""
    a = transpose_p.bind(a, permutation=(*keep, *axes)) if a.aval.ndim > 1 else a
    length = math.prod(a.aval.shape[len(keep) :])
    return reshaped(a, (*a.aval.shape[: len(keep)], length))


def _of_sorted(rows: Any, q: Any, method: str, skip_nan: bool) -> Any:
    """Quantiles along the last axis; those of several `q` come first."""
    length = rows.aval.shape[-1]
    lead = rows.aval.shape[:-1]
    dtype = q.aval.dtype
    missing = isnan(rows)
    if not skip_nan:
        any_missing = reductions.any(missing, axis=-1, keepdims=True)
        rows = choose_where(any_missing, np.nan, rows)
    rows = sort(rows, axis=-1)
    qs = reshaped(q, (*q.aval.shape, *[1] * len(lead)))
    times = lambda x: mul_p.bind(*promote_shapes("quantile", qs, x))  # cotangents of q are not weak
    if skip_nan:
        count = reductions.sum(~missing, axis=-1, dtype=dtype)
        last = ufuncs.subtract(count, number_like(count, 1))
        index = times(last)
        last = ufuncs.maximum(last, number_like(last, 0))
    else:
        last = _count(length - 1, dtype)
        index = times(last)
        if method == "inverted_cdf":
            index = times(_count(length, dtype)) - 1
    if method == "inverted_cdf" and skip_nan:
        index = times(count) - 1
    low, high = arithmetic.floor(index), arithmetic.ceil(index)
    weight = ufuncs.subtract(index, low)
    zero = np.asarray(0, dtype)[()]
    low = ufuncs.minimum(ufuncs.maximum(low, zero), last)
    high = ufuncs.minimum(ufuncs.maximum(high, zero), last)
    pick = _pick if skip_nan else _pick_alike
    lower, upper = (pick(rows, place, q.aval.ndim) for place in (low, high))
    return _between(method, lower, upper, weight)


def _count(size: Any, dtype: np.dtype) -> Any:
    return converted(size.__jax_array__(), dtype) if is_dim(size) else np.asarray(size, dtype)[()]


def _pick(rows: Any, place: Any, extra: int) -> Any:
    """Elements of the last axis at places; those have `extra` axes in front."""
    place = converted(place, dtypes.int32)
    shape = rows.aval.shape
    if not extra:
        place = broadcast_to(place, shape[:-1])
        return take_along_axis(rows, expanded(place, (len(shape) - 1,)), axis=-1)[..., 0]
    count = place.aval.shape[0]
    place = broadcast_to(place, (count, *shape[:-1]))
    found = take_along_axis(rows, moveaxis(place, 0, -1), axis=-1)
    return moveaxis(found, -1, 0)


def _pick_alike(rows: Any, place: Any, extra: int) -> Any:
    """Elements of the last axis at places that are the same for all rows."""
    places = reshaped(converted(place, dtypes.int32), place.aval.shape[:extra])
    found = take(rows, places, axis=-1, mode="clip")
    return moveaxis(found, -1, 0) if extra else found


def _between(method: str, lower: Any, upper: Any, weight: Any) -> Any:
    if method == "linear":
        weight = converted(weight, lower.aval.dtype)
        rest = ufuncs.subtract(number_like(weight, 1), weight)
        return ufuncs.add(ufuncs.multiply(lower, rest), ufuncs.multiply(upper, weight))
    if method == "lower":
        return lower
    if method in ("higher", "inverted_cdf"):
        return upper
    if method == "midpoint":
        return ufuncs.multiply(ufuncs.add(lower, upper), number_like(lower, 0.5))
    half = compare.gt_p.bind(weight, number_like(weight, 0.5))
    return choose_where(half, upper, lower)


def _weighted(rows: Any, q: Any, weights: Any, skip_nan: bool) -> Any:
    """The first element, in order, up to which a share `q` of the weights lies."""
    missing = isnan(rows)
    if skip_nan:
        weights = choose_where(missing, number_like(weights, 0), weights)
    order = argsort(rows, axis=-1)
    values = take_along_axis(rows, order, axis=-1)
    share = cumsum(take_along_axis(weights, order, axis=-1), axis=-1)
    share, q = promote_dtypes_inexact(divide(share, share[..., -1:]), q)
    lead, length = values.aval.shape[:-1], values.aval.shape[-1]
    count = int(np.prod(lead, dtype=np.int64))
    qs = ravel(q)
    shape = (qs.aval.shape[0], count, length)
    below = compare.lt_p.bind(
        broadcast_to(reshaped(share, (1, count, length)), shape),
        broadcast_to(reshaped(qs, (qs.aval.shape[0], 1, 1)), shape),
    )
    place = reductions.sum(below, axis=-1, dtype=dtypes.int32)
    place = ufuncs.minimum(place, np.int32(length - 1))
    place = reshaped(place, (*q.aval.shape, *lead))
    found = _pick(values, place, q.aval.ndim)
    if not skip_nan:
        any_missing = reductions.any(missing, axis=-1)
        found = choose_where(any_missing, number_like(found, np.nan), found)
    return found


_STATIC = ("axis", "out", "overwrite_input", "method", "keepdims")


@library(static=_STATIC, whole=True)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute quantiles along axes; NaN where an element is NaN.

    - `a`: real array of any shape.
    - `q`: scalar or array of shape (k,) of probabilities in [0, 1].
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.
    - `method`: between two elements, "linear" interpolation (the default), "lower", "higher",
      "midpoint" or "nearest"; or "inverted_cdf", which takes `weights`.

    Returns a floating-point array of the reduced shape, after an axis of size k if `q` is a vector.
    ValueError for complex input, an unknown method, or a `q` of more dimensions. Source: NumPy's
    `quantile`.

    >>> jnp.quantile(jnp.array([1.0, 2.0, 3.0, 5.0]), jnp.array([0.0, 0.5, 1.0]))
    Array([1. , 2.5, 5. ], dtype=float32)
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, False)


@library(static=_STATIC, whole=True)
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute quantiles along axes, ignoring NaN.

    - `a`, `q`, `axis`, `method`, `keepdims`, `weights`: as in `quantile`.

    Returns a floating-point array of the reduced shape, after an axis of size k if `q` is a vector;
    NaN where all elements are. Errors are those of `quantile`. Source: NumPy's `nanquantile`.

    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5)
    Array(2., dtype=float32)
    """
    return _quantile(
        "nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, True
    )


def _share(name: str, q: Any) -> Any:
    q = promote_one_inexact(name, q)
    return divide(q, 100)


@library(static=(*_STATIC, "out_sharding"), whole=True)
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Compute percentiles along axes; NaN where an element is NaN.

    - `a`: real array of any shape.
    - `q`: scalar or array of shape (k,) of percentages in [0, 100].
    - `axis`, `method`, `keepdims`, `weights`: as in `quantile`; `out_sharding`: sharding of the
      result.

    Returns a floating-point array of the reduced shape, after an axis of size k if `q` is a vector.
    ValueError for complex input, an unknown method, or a `q` of more dimensions. Source: NumPy's
    `percentile`.

    >>> jnp.percentile(jnp.array([1.0, 2.0, 3.0, 5.0]), 50)
    Array(2.5, dtype=float32)
    """
    return quantile(
        a, _share("percentile", q), axis, out, overwrite_input, method, keepdims, weights=weights
    )


@library(static=_STATIC, whole=True)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute percentiles along axes, ignoring NaN.

    - `a`: real array of any shape; `q`: scalar or array of shape (k,) of percentages in [0, 100].
    - `axis`, `method`, `keepdims`, `weights`: as in `quantile`.

    Returns a floating-point array of the reduced shape, after an axis of size k if `q` is a vector;
    NaN where all elements are. Errors are those of `quantile`. Source: NumPy's `nanpercentile`.

    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
    Array(2., dtype=float32)
    """
    return nanquantile(
        a, _share("nanpercentile", q), axis, out, overwrite_input, method, keepdims,
        weights=weights,
    )  # fmt: skip


@library(static=("axis", "out", "overwrite_input", "keepdims"), whole=True)
def median(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Compute the median along axes: the middle element, or the mean of the middle two.

    - `a`: real array of any shape.
    - `axis`: an int, a tuple of ints, or None for all axes; `keepdims` keeps them with size 1.

    Returns a floating-point array of the reduced shape; NaN where an element is NaN. ValueError for
    complex input. Source: NumPy's `median`.

    >>> jnp.median(jnp.array([1.0, 4.0, 2.0, 9.0]))
    Array(3., dtype=float32)
    """
    check_arraylike("median", a)
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


@library(static=("axis", "out", "overwrite_input", "keepdims"))
def nanmedian(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Compute the median along axes, ignoring NaN.

    - `a`, `axis`, `keepdims`: as in `median`.

    Returns a floating-point array of the reduced shape; NaN where all elements are. ValueError for
    complex input. Source: NumPy's `nanmedian`.

    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 2.0, 9.0]))
    Array(2., dtype=float32)
    """
    check_arraylike("nanmedian", a)
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


# -- covariance -------------------------------------------------------------------------------


def _variables(name: str, m: Any, rowvar: bool, dtype: Any) -> Any:
    """Variables as rows, observations as columns."""
    m = to_array(name, m)
    if m.aval.ndim > 2:
        raise ValueError(f"m has more than 2 dimensions: {name} got shape {m.aval.shape}.")
    if not rowvar and m.aval.ndim == 2:
        m = transpose_p.bind(m, permutation=(1, 0))
    m = atleast_2d(m)
    return m if dtype is None else converted(m, dtype)


def _inexact(name: str, dtype: DTypeLike | None) -> Any:
    """The dtype of a covariance; ValueError for one that is neither real nor complex."""
    found = as_dtype(dtype, name)
    if found is not None and not dtypes.issubdtype(found, np.inexact):
        raise ValueError(f"{name}: dtype must be a subclass of float or complex; got {dtype=}")
    return found


@library(static=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Estimate the covariance matrix of variables from observations.

    - `m`: array of shape (n,), or (k, n) with k variables as rows; (n, k) if `rowvar` is False.
    - `y`: further variables, of the form of `m`; `dtype`: inexact dtype of the result.
    - `bias`: divide by n instead of n - 1; `ddof`: an int, divide by n - ddof.
    - `fweights`, `aweights`: arrays of shape (n,), integer repetitions and weights.

    Returns an array of shape (k, k), or a scalar if k is 1. ValueError for more than two dimensions
    or a `ddof` that is no int, TypeError if `fweights` is not integer. Source: NumPy's `cov`.

    >>> jnp.cov(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    dtype = _inexact("cov", dtype)
    x = _variables("cov", m, rowvar, dtype)
    if dtype is None:
        x = promote_one_inexact("cov", x)
    if not x.aval.shape[0]:
        # NumPy's result for no variables has the default dtype, whatever theirs.
        return broadcast_to_shape(np.zeros((), dtypes.float_())[()], (0, 0))
    if y is not None:
        other = _variables("cov", y, rowvar, dtype)
        check_dtypes(m, y)
        check_ranks("cov", m, y)
        x, other = promote_dtypes_inexact(x, other)
        x = joined("cov", [x, other], 0)
    x = converted(x, x.aval.dtype)
    if ddof is None:
        ddof = 0 if bias else 1
    weights = _frequencies(fweights, aweights, x)
    variables, count = x.aval.shape
    if not count:
        unknown = np.full((), np.nan, x.aval.dtype)[()]
        return broadcast_to_shape(unknown, () if variables == 1 else (variables, variables))
    if weights is None:
        mean = reductions.mean(x, axis=1, keepdims=True)
        scale = converted(count - ddof, dtypes.to_real_dtype(x.aval.dtype))
    else:
        total = reductions.sum(weights)
        mean = reductions.sum(x * weights, axis=1, keepdims=True) / total
        if not ddof:
            scale = total
        elif aweights is None:
            scale = total - ddof
        else:
            scale = total - ddof * reductions.sum(weights * aweights) / total
    centered = ufuncs.subtract(x, mean)
    other = centered if weights is None else centered * weights
    dims = (((1,), (1,)), ((), ()))
    product = contract("cov", centered, ufuncs.conj(other), dims, None, None)
    out = divide(product, scale)
    return reshaped(out, ()) if out.aval.shape == (1, 1) else out


def _frequencies(fweights: Any, aweights: Any, x: Any) -> Any:
    """The weight of each observation, or None."""
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        given = to_array("cov", given)
        if given.aval.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}: shape {given.aval.shape}.")
        if given.aval.shape and given.aval.shape[0] != x.aval.shape[1]:
            raise RuntimeError(f"incompatible numbers of samples and {name}: "
                               f"{x.aval.shape[1]} and {given.aval.shape[0]}.")  # fmt: skip
        if name == "fweights" and not dtypes.issubdtype(given.aval.dtype, np.integer):
            raise TypeError(f"fweights must be integer. Got {given.aval.dtype.name}.")
        given = ufuncs.abs(given)
        weights = given if weights is None else weights * given
    return weights


@library(static=("rowvar", "dtype"))
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Compute Pearson correlation coefficients of variables.

    - `x`: array of shape (n,), or (k, n) with k variables as rows; (n, k) if `rowvar` is False.
    - `y`: further variables, of the form of `x`.
    - `dtype`: dtype of the result, inexact.

    Returns an array of shape (k, k) with elements in [-1, 1], or a scalar if k is 1. ValueError if
    an array has more than two dimensions. Source: NumPy's `corrcoef`.

    >>> jnp.corrcoef(jnp.array([[1.0, 2.0], [2.0, 1.0]])).round()
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    check_arraylike("corrcoef", x)
    c = cov.__wrapped__(x, y, rowvar, dtype=_inexact("corrcoef", dtype))
    if not c.aval.ndim:
        return divide(c, c)
    deviation = ufuncs.sqrt(ufuncs.real(diag(c)))
    c = divide(divide(c, expanded(deviation, (1,))), expanded(deviation, (0,)))
    if c.aval.dtype.kind == "c":
        return arithmetic.complex(
            ufuncs.clip(arithmetic.real(c), -1, 1), ufuncs.clip(arithmetic.imag(c), -1, 1)
        )
    return ufuncs.clip(c, -1, 1)
