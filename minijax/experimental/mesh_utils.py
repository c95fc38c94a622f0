"""Arrays of devices for meshes. On CPUs and GPUs any order is as good as another; the topology of
TPUs is not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.runtime import platforms
from minijax.tracebacks import public

__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]

# From a kind of device to a function of (mesh_shape, devices) that orders them.
device_kind_handler_dict: dict[str, Callable] = {}


def _sizes(mesh_shape: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(map(int, mesh_shape))
    except (TypeError, ValueError):
        raise ValueError(
            "`mesh_shape` passed to `create_device_mesh` should be a sequence of ints. Got "
            f"{mesh_shape}"
        ) from None


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """All devices as an array of this shape. ValueError if their number is another."""
    devices = list(platforms.devices() if devices is None else devices)
    if math.prod(_sizes(mesh_shape)) != len(devices):
        raise ValueError(
            f"Number of devices {len(devices)} must equal the product of mesh_shape {mesh_shape}"
        )
    for device in devices:
        if not hasattr(device, "device_kind"):
            raise TypeError(f"create_device_mesh takes a list of devices; it holds {device!r}.")
    handler = device_kind_handler_dict.get(devices[0].device_kind) if devices else None
    if handler is not None:
        found = handler(mesh_shape, devices, contiguous_submeshes=contiguous_submeshes)
        if found is not None:
            return found
    return np.array(devices, dtype=object).reshape(_sizes(mesh_shape))


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Devices of several granules (slices, or processes): near ones within `mesh_shape`.

    Each dimension has the product of both sizes, the granules being the major part.
    """
    devices = list(platforms.devices() if devices is None else devices)
    key = "process_index" if process_is_granule else "slice_index"
    granules: dict[Any, list] = {}
    for device in devices:
        if not hasattr(device, key):
            raise ValueError(
                f"Device {device} does not have attribute {key}. See `process_is_granule` option."
            )
        granules.setdefault(getattr(device, key), []).append(device)
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    if len(keys) != int(np.prod(dcn_mesh_shape)):
        raise ValueError(
            f"Number of slices {len(keys)} must equal the product of dcn_mesh_shape {dcn_mesh_shape}"
        )
    blocks = np.empty(len(keys), dtype=object)
    for index, name in enumerate(keys):
        blocks[index] = create_device_mesh(mesh_shape, granules[name])
    return np.block(blocks.reshape(tuple(dcn_mesh_shape)).tolist())


__dir__ = public(__name__)
