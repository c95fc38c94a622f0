"""Histograms and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_count, known_index
from minijax.core.array import Array
from minijax.features.library import library
from minijax.features.queries import is_dim
from minijax.numpy import reductions, ufuncs
from minijax.numpy.creation import zeros
from minijax.numpy.division import divide
from minijax.numpy.indexing import IndexHelper
from minijax.numpy.joining import stack
from minijax.numpy.promotion import (
    broadcast_to_shape,
    check_arraylike,
    converted,
    promote_dtypes_inexact,
    to_array,
    unwrapped,
)
from minijax.numpy.ranges import (
    linspace,
)
from minijax.numpy.searching import known
from minijax.numpy.selecting import choose_where
from minijax.numpy.shapes import ravel, reshaped
from minijax.numpy.signal import diff
from minijax.numpy.sorting import searchsorted
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding, out_sharding_of
from minijax.typing import ArrayLike

__all__ = [
    "bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
]  # fmt: skip


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Count how often each nonnegative integer occurs in a vector.

    - `x`: integer array of shape (n,); negative numbers count as 0.
    - `weights`: array of shape (n,), summed in place of counting.
    - `minlength`: an int, the least length of the result.
    - `length`: length of the result, needed if `x` is traced; larger numbers are left out.
    - `out_sharding`: sharding of the result.

    Returns an array of shape (length,), by default max(x) + 1 long; integers, or of the dtype of
    the weights. TypeError if `x` is not integer, ValueError if it is not one-dimensional,
    ConcretizationTypeError if it is traced and `length` is None. Source: NumPy's `bincount`.

    >>> jnp.bincount(jnp.array([1, 1, 3]))
    Array([0, 2, 0, 1], dtype=int32)
    """
    out_sharding_of(out_sharding, "jnp.bincount")
    x = to_array("bincount", x)
    if not dtypes.issubdtype(x.dtype, np.integer) and x.dtype != dtypes.bool_:
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported. Got "
                         f"shape {x.shape}.")  # fmt: skip
    where = "The error occurred because of argument {!r} of jnp.bincount."
    minlength = known_count(minlength, where.format("minlength"))
    if length is None:
        value = known(x, "bincount", "Pass a static `length` argument.")
        length = max(minlength, int(value.max()) + 1 if value.size else 0)
    else:
        length = length if is_dim(length) else known_count(length, where.format("length"))
    return _bincount(x, weights, length)


@library(static=("length",), whole=True)
def _bincount(x, weights, length):
    if weights is None:
        weights = np.asarray(1, dtypes.int_())[()]
        dtype = dtypes.int_()
    else:
        weights = to_array("bincount", weights)
        if weights.aval.shape != x.aval.shape:
            raise ValueError(
                "shape of weights must match shape of x: bincount got "
                f"{weights.aval.shape} and {x.aval.shape}."
            )
        dtype = weights.aval.dtype
    x = ufuncs.clip(converted(x, dtypes.int_()) if x.aval.dtype == dtypes.bool_ else x, 0)
    return IndexHelper(zeros(length, dtype))[x].add(weights, mode="drop")


def _edges_from(name: str, bins: Any) -> None:
    if isinstance(bins, str):
        raise NotImplementedError(
            "string values for `bins` not implemented. Give a number of bins, or their edges."
        )


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Array | Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute the edges of the bins of a histogram.

    - `a`: numeric array of any shape.
    - `bins`: an int, the number of bins of equal width (10 by default), or a vector of edges.
    - `range`: pair (low, high) for bins of equal width; by default that of `a`.

    Returns a floating-point array of shape (bins + 1,). ValueError if `range` is no pair,
    NotImplementedError if `bins` is a string. Source: NumPy's `histogram_bin_edges`.

    >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), bins=2)
    Array([0., 2., 4.], dtype=float32)
    """
    del weights
    _edges_from("histogram_bin_edges", bins)
    check_arraylike("histogram_bin_edges", a)
    (a,) = promote_dtypes_inexact(to_array("histogram_bin_edges", a))
    if np.ndim(bins) == 1:
        return converted(to_array("histogram_bin_edges", bins), a.dtype)
    count = known_index(bins, "bins argument of histogram_bin_edges")
    if range is None:
        limits = None
    else:
        if isinstance(range, str) or np.ndim(range) != 1 or len(range) != 2:
            raise ValueError(f"`range` must be either None or a sequence of scalars, got {range}")
        limits = [to_array("histogram_bin_edges", edge) for edge in range]
    return _bin_edges(a, limits, count)


@library(static=("count",))
def _bin_edges(a, limits, count):
    dtype = a.aval.dtype
    if limits is not None:
        low, high = (converted(edge, dtype) for edge in limits)
    elif not a.aval.size:
        low, high = converted(0.0, dtype), converted(1.0, dtype)
    else:
        low, high = reductions.min(a), reductions.max(a)
    width = ufuncs.subtract(high, low)
    same = width == 0
    low = choose_where(same, ufuncs.subtract(low, 0.5), low)
    high = choose_where(same, ufuncs.add(high, 0.5), high)
    return linspace(low, high, count + 1, dtype=dtype)


def _bin_of(x: Any, edges: Any) -> Any:
    """The bin of each element; the last includes its right edge. Beyond the edges: out of range."""
    count = edges.aval.shape[0] - 1
    place = searchsorted(edges, x, side="right")
    return choose_where(x == edges[-1], count, place)


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """Count the elements of an array in bins.

    - `a`: numeric array of any shape.
    - `bins`, `range`: as in `histogram_bin_edges`; the last bin includes its right edge.
    - `weights`: array of the shape of `a`, summed in place of counting.
    - `density`: scale the counts so that their integral is one.

    Returns a pair of floating-point arrays, the counts of shape (bins,) and the edges of shape
    (bins + 1,). ValueError if the weights do not have the shape of `a`, TypeError if `bins` is a
    string. Source: NumPy's `histogram`.

    >>> jnp.histogram(jnp.array([0.0, 1.0, 1.0, 4.0]), bins=2)
    (Array([3., 1.], dtype=float32), Array([0., 2., 4.], dtype=float32))
    """
    if isinstance(bins, str):
        raise TypeError(f"histogram takes a number of bins, or their edges; got bins={bins!r}.")
    if weights is not None:
        check_arraylike("histogram", a, weights)
        a, weights = promote_dtypes_inexact(a, weights)
    edges = histogram_bin_edges(a, bins, range)
    return _histogram(a, weights, edges, bool(density)), edges


@library(static=("density",), whole=True)
def _histogram(a, weights, edges, density):
    if weights is None:
        (a,) = promote_dtypes_inexact(to_array("histogram", a))
        weights = broadcast_to_shape(np.ones((), a.aval.dtype)[()], a.aval.shape)
    else:
        check_arraylike("histogram", a, weights)
        if np.shape(a) != np.shape(weights):
            raise ValueError("weights should have the same shape as a. Got "
                             f"{np.shape(weights)} and {np.shape(a)}.")  # fmt: skip
        a, weights = promote_dtypes_inexact(
            to_array("histogram", a), to_array("histogram", weights)
        )
    edges = converted(edges, a.aval.dtype)
    place = _bin_of(ravel(a), edges)
    count = edges.aval.shape[0] - 1
    counts = zeros(count + 1, weights.aval.dtype)
    counts = IndexHelper(counts)[place].add(ravel(weights), mode="drop")[1:]
    if density:
        counts = divide(divide(counts, diff(edges)), reductions.sum(counts))
    return counts


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | list[ArrayLike] = 10,
    range: Sequence[Array | Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Count pairs of numbers in two-dimensional bins.

    - `x`, `y`: arrays of shape (n,).
    - `bins`: an int, a vector of edges, or a list of one of these for `x` and one for `y`.
    - `range`: sequence of two pairs (low, high) or None.
    - `weights`: array of shape (n,); `density`: scale the counts so that their integral is one.

    Returns the counts, an array of shape (nx, ny), and two vectors of edges of floating-point
    dtype. TypeError if the lengths differ, ValueError if these are no vectors. Source: NumPy's
    `histogram2d`.

    >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    check_arraylike("histogram2d", x, y)
    x, y = unwrapped(x), unwrapped(y)
    try:
        count = len(bins)
    except TypeError:
        count = 1
    if count not in (1, 2):
        edges = to_array("histogram2d", np.asarray(bins))
        bins = [edges, edges]
    if np.shape(x) != np.shape(y):
        raise TypeError(
            f"histogram2d takes two vectors of one length; got shapes {np.shape(x)}, {np.shape(y)}."
        )
    if np.ndim(x) != 1:
        raise ValueError(f"histogram2d takes two vectors; got arrays of shape {np.shape(x)}.")
    sample = stack([x, y], axis=1)
    found, edges = histogramdd(sample, bins, range, weights, density)
    return found, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike | list[ArrayLike] = 10,
    range: Sequence[Array | Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Count points in multidimensional bins.

    - `sample`: array of shape (n, d), of n points.
    - `bins`: an int, or a list of d ints or vectors of edges.
    - `range`: sequence of d pairs (low, high) or None.
    - `weights`: array of shape (n,); `density`: scale the counts so that their integral is one.

    Returns the counts, an array of d dimensions, and a list of d vectors of edges. ValueError if
    the shapes or the lengths of the lists do not fit. Source: NumPy's `histogramdd`.

    >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    sample = to_array("histogramdd", sample)
    if sample.ndim != 2:
        raise ValueError(f"sample must be a 2D array of rows; histogramdd got {sample.shape}.")
    count, dims = sample.shape
    if range is not None and (
        len(range) != dims or any(r is not None and len(r) != 2 for r in range)
    ):
        raise ValueError(f"For sample.shape={(count, dims)}, range must be a sequence of {dims} "
                         f"pairs or Nones; got range={range}")  # fmt: skip
    if isinstance(bins, str) and len(bins) != dims:
        raise ValueError(f"should be a bin for each dimension. histogramdd got bins={bins!r}.")
    if not isinstance(bins, (list, tuple)) and np.ndim(bins) == 0:
        bins = [bins] * dims
    if len(bins) != dims:
        raise ValueError(f"should be a bin for each dimension. Got {len(bins)} for {dims}.")
    if weights is not None and np.shape(weights) != (count,):
        raise ValueError(f"should have one weight for each sample. Got shape {np.shape(weights)} "
                         f"for {count} samples.")  # fmt: skip
    if not dims:
        raise ValueError(
            f"only 1-dimensional input supported. Samples of shape {sample.shape} have no coordinates."
        )
    edges = [
        histogram_bin_edges(sample[:, i], bins[i], None if range is None else range[i])
        for i in np.arange(dims)
    ]
    return _histogramdd(sample, weights, edges, bool(density)), edges


@library(static=("density",), whole=True)
def _histogramdd(sample, weights, edges, density):
    sizes = tuple([edge.aval.shape[0] + 1 for edge in edges])
    places = []
    for i, edge in enumerate(edges):
        (x,) = promote_dtypes_inexact(sample[:, i])
        places.append(_bin_of(x, edge))
    dtype = dtypes.int_() if weights is None else to_array("histogramdd", weights).aval.dtype
    counts = zeros(sizes, dtype)
    by = np.asarray(1, dtype)[()] if weights is None else weights
    counts = IndexHelper(counts)[tuple(places)].add(by, mode="drop")
    counts = counts[(slice(1, -1),) * len(edges)]
    if density:
        counts = converted(counts, edges[0].aval.dtype)
        counts = divide(counts, reductions.sum(counts))
        for i, edge in enumerate(edges):
            shape = [1] * len(edges)
            shape[i] = edge.aval.shape[0] - 1
            counts = divide(counts, reshaped(diff(edge), tuple(shape)))
    return counts
