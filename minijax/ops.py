"""`minijax.ops`: reductions over segments. Floor 6: written with `minijax.numpy`.

Source: `numpy.add.at` and its kin, with segments of any size and in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax import numpy as jnp
from minijax.core.array import Array
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


# For each reduction: what an empty segment gives, and how buckets are joined.
_REDUCTIONS = {
    "add": (lambda dtype: 0, jnp.sum),
    "multiply": (lambda dtype: 1, jnp.prod),
    "min": (_highest, jnp.min),
    "max": (_lowest, jnp.max),
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
) -> Array:
    empty, join = _REDUCTIONS[name]
    for given in (data, segment_ids):
        if isinstance(given, (list, tuple)):
            raise TypeError(
                f"segment reductions take arrays, got {given!r} of type {type(given)}: convert it "
                "with minijax.numpy.asarray."
            )
    data, segment_ids = jnp.asarray(data), jnp.asarray(segment_ids)
    if num_segments is None:
        num_segments = int(jnp.max(segment_ids)) + 1
    if num_segments < 0:
        raise ValueError(f"num_segments must be non-negative, got {num_segments}.")
    rest = data.shape[segment_ids.ndim :] if segment_ids.ndim else data.shape[1:]
    if segment_ids.ndim > 1:
        raise ValueError(
            f"segment_ids has shape {segment_ids.shape}: give one number for each row of data."
        )
    start = jnp.full((num_segments, *rest), empty(data.dtype), data.dtype)

    def reduce(rows: Array, ids: Array) -> Array:
        update = getattr(start.at[ids], name)
        return update(
            rows,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            wrap_negative_indices=False,
        )

    if bucket_size is None:
        return reduce(data, segment_ids)
    count = -(-data.shape[0] // bucket_size)
    parts = [
        reduce(data[i * bucket_size : (i + 1) * bucket_size],
               segment_ids[i * bucket_size : (i + 1) * bucket_size])
        for i in range(count)
    ]  # fmt: skip
    return join(jnp.stack(parts), axis=0).astype(data.dtype) if parts else start


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Array:
    """The sum of the rows of `data` that belong to each segment: `out[segment_ids[i]] += data[i]`.

    Rows with a number outside of `range(num_segments)` are left out. `num_segments` must be given
    under a transformation; by default it is one more than the largest number. `bucket_size` rows at
    a time are summed, then the partial sums, for accuracy.
    """
    return _segments("add", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode)  # fmt: skip


def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Array:
    """The product of the rows of each segment, 1 for an empty one; see `segment_sum`."""
    return _segments("multiply", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode)  # fmt: skip


def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Array:
    """The largest of the rows of each segment, the least value there is for an empty one."""
    return _segments("max", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode)  # fmt: skip


def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Array:
    """The least of the rows of each segment, the greatest value there is for an empty one."""
    return _segments("min", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode)  # fmt: skip
