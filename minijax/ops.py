"""`minijax.ops`: reductions over segments.numpy`.

Source: `numpy.add.at` and its kin, with segments of any size and in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax import numpy as jnp
from minijax.arguments.values import known_index, known_value
from minijax.core.array import Array
from minijax.features.sharding.explicit import split_as
from minijax.lax.indexing import GatherScatterMode
from minijax.numpy.promotion import check_arraylike
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding
from minijax.tracebacks import public
from minijax.typing import ArrayLike

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _lowest(dtype: np.dtype) -> Any:
    if dtype == np.bool_:
        return False
    return jnp.iinfo(dtype).min if dtypes.issubdtype(dtype, np.integer) else -np.inf


def _highest(dtype: np.dtype) -> Any:
    if dtype == np.bool_:
        return True
    return jnp.iinfo(dtype).max if dtypes.issubdtype(dtype, np.integer) else np.inf


# For each function: the update of its rows, what an empty segment gives, and how buckets are joined.
_REDUCTIONS = {
    "segment_sum": ("add", lambda dtype: 0, jnp.sum),
    "segment_prod": ("multiply", lambda dtype: 1, jnp.prod),
    "segment_min": ("min", _highest, jnp.min),
    "segment_max": ("max", _lowest, jnp.max),
}


def _segments(
    name: str,
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None,
    indices_are_sorted: bool,
    unique_indices: bool,
    bucket_size: int | None,
    mode: Any,
    out_sharding: Any,
) -> Array:
    check_arraylike(name, data, segment_ids)
    method, empty, join = _REDUCTIONS[name]
    data, segment_ids = jnp.asarray(data), jnp.asarray(segment_ids)
    where = "segment_sum() `num_segments` argument."
    if num_segments is None:
        num_segments = known_index(jnp.max(segment_ids), where) + 1
    if known_value(num_segments, where) < 0:
        raise ValueError(f"num_segments must be non-negative. Got {num_segments}.")
    start = jnp.full((num_segments, *data.shape[1:]), empty(data.dtype), data.dtype)

    def reduce(rows: Array, ids: Array) -> Array:
        update = getattr(start.at[ids], method)
        return update(
            rows,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            wrap_negative_indices=False,
        )

    if bucket_size is None:
        return split_as(reduce(data, segment_ids), out_sharding, name)
    if bucket_size < 1:
        raise TypeError(f"bucket_size must be positive; got {bucket_size}.")
    count = -(-data.shape[0] // bucket_size)
    parts = [
        reduce(data[i * bucket_size : (i + 1) * bucket_size],
               segment_ids[i * bucket_size : (i + 1) * bucket_size])
        for i in range(count)
    ]  # fmt: skip
    total = join(jnp.stack(parts), axis=0).astype(data.dtype) if parts else start
    return split_as(total, out_sharding, name)


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Sum the rows of each segment: `out[segment_ids[i]] += data[i]`.

    - `data`: array of shape (n, ...)
    - `segment_ids`: integer array of shape (n,); rows with a number outside of the range are left
      out
    - `num_segments`: number of segments, needed under a transformation; by default the largest plus
      1
    - `indices_are_sorted`, `unique_indices`, `mode`: as in `lax.scatter_add`
    - `out_sharding`: how the result is split over a mesh
    - `bucket_size`: number of rows summed at a time, for accuracy

    The result has shape (num_segments, ...) and the dtype of `data`; 0 for an empty segment.
    ValueError for a negative number. Source: TensorFlow's `math.unsorted_segment_sum`.

    >>> jax.ops.segment_sum(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([4, 2], dtype=int32)
    """
    return _segments("segment_sum", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, out_sharding)  # fmt: skip


def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Multiply the rows of each segment.

    - `data`: array of shape (n, ...)
    - `segment_ids`: integer array of shape (n,); rows with a number outside of the range are left
      out
    - `num_segments`: number of segments, needed under a transformation; by default the largest plus
      1
    - `indices_are_sorted`, `unique_indices`, `mode`: as in `lax.scatter_add`
    - `out_sharding`: how the result is split over a mesh
    - `bucket_size`: number of rows reduced at a time

    The result has shape (num_segments, ...) and the dtype of `data`; 1 for an empty segment.
    ValueError for a negative number. Source: TensorFlow's `math.unsorted_segment_prod`.

    >>> jax.ops.segment_prod(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([3, 2], dtype=int32)
    """
    return _segments("segment_prod", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, out_sharding)  # fmt: skip


def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Compute the maximum of the rows of each segment.

    - `data`: array of shape (n, ...)
    - `segment_ids`: integer array of shape (n,); rows with a number outside of the range are left
      out
    - `num_segments`: number of segments, needed under a transformation; by default the largest plus
      1
    - `indices_are_sorted`, `unique_indices`, `mode`: as in `lax.scatter_add`
    - `out_sharding`: how the result is split over a mesh
    - `bucket_size`: number of rows reduced at a time

    The result has shape (num_segments, ...) and the dtype of `data`; the least value for an empty
    segment. ValueError for a negative number. Source: TensorFlow's `math.unsorted_segment_max`.

    >>> jax.ops.segment_max(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([3, 2], dtype=int32)
    """
    return _segments("segment_max", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, out_sharding)  # fmt: skip


def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Compute the minimum of the rows of each segment.

    - `data`: array of shape (n, ...)
    - `segment_ids`: integer array of shape (n,); rows with a number outside of the range are left
      out
    - `num_segments`: number of segments, needed under a transformation; by default the largest plus
      1
    - `indices_are_sorted`, `unique_indices`, `mode`: as in `lax.scatter_add`
    - `out_sharding`: how the result is split over a mesh
    - `bucket_size`: number of rows reduced at a time

    The result has shape (num_segments, ...) and the dtype of `data`; the greatest value for an
    empty segment. ValueError for a negative number. Source: TensorFlow's
    `math.unsorted_segment_min`.

    >>> jax.ops.segment_min(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([1, 2], dtype=int32)
    """
    return _segments("segment_min", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, out_sharding)  # fmt: skip


__dir__ = public(__name__)
