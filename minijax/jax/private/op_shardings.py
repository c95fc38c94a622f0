"""A stand-in for the private `op_shardings`: properties of XLA's shardings, which both libraries
use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.runtime.versions import xla_client

__all__ = [
    "are_hlo_shardings_equal", "get_num_ways_dim_sharded", "is_hlo_sharding_replicated",
    "op_sharding_to_indices", "op_sharding_to_numpy_indices",
]  # fmt: skip


def get_num_ways_dim_sharded(hlo_sharding: Any) -> tuple[list[int], int]:
    """Into how many parts each dimension is split, and how many devices have each part."""
    if hlo_sharding.is_replicated():
        return [], 1
    ways = list(hlo_sharding.tile_assignment_dimensions())
    kinds = hlo_sharding.subgroup_types()
    if kinds and kinds != [xla_client.OpSharding.Type.REPLICATED]:
        raise NotImplementedError(
            f"subgroups of the types {kinds}: only replicated ones are known."
        )
    if kinds or hlo_sharding.replicate_on_last_tile_dim():
        return ways[:-1], ways[-1]
    return ways, 1


def is_hlo_sharding_replicated(hc: Any) -> bool:
    """Whether each device has the whole array."""
    if hc.is_replicated() or hc.num_devices() == 1:
        return True
    return hc.is_tiled() and all(ways == 1 for ways in get_num_ways_dim_sharded(hc)[0])


def are_hlo_shardings_equal(hc1: Any, hc2: Any) -> bool:
    """Whether two shardings put the same parts on the same devices."""
    return (
        hc1 is hc2
        or (is_hlo_sharding_replicated(hc1) and is_hlo_sharding_replicated(hc2))
        or hc1 == hc2
    )


def op_sharding_to_numpy_indices(
    hlo_sharding: Any, shape: Sequence[int], num_devices: int
) -> np.ndarray:
    """Return for each device, the part of an array of this shape that it has: an array of tuples."""
    indices = np.empty(num_devices, dtype=np.object_)
    if is_hlo_sharding_replicated(hlo_sharding):
        indices.fill((slice(None),) * len(shape))
        return indices
    if num_devices != hlo_sharding.num_devices():
        raise AssertionError(f"{num_devices} devices for {hlo_sharding}")
    ways, copies = get_num_ways_dim_sharded(hlo_sharding)
    for size, parts in zip(shape, ways, strict=True):
        if size % parts:
            raise ValueError(f"the shape {tuple(shape)} does not split evenly into {ways} parts.")
    devices = np.reshape(hlo_sharding.tile_assignment_devices(), (*ways, copies))
    for *place, copy in np.ndindex(devices.shape):
        indices[devices[(*place, copy)]] = tuple(
            slice(None) if parts == 1 else slice(at * (size // parts), (at + 1) * (size // parts))
            for at, size, parts in zip(place, shape, ways, strict=True)
        )
    return indices


def op_sharding_to_indices(
    op_sharding: Any, shape: Sequence[int], num_devices: int
) -> tuple[tuple[slice, ...], ...]:
    """`op_sharding_to_numpy_indices` as a tuple."""
    return tuple(op_sharding_to_numpy_indices(op_sharding, shape, num_devices))
