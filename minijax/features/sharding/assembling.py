"""Arrays over several devices, made of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arrays.array import ArrayImpl, Signature
from minijax.arrays.dispatch import concrete
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.features.sharding.transfer import device_put
from minijax.lowering.types import physical
from minijax.runtime import buffers
from minijax.runtime import sharding as shardings
from minijax.runtime.sharding import Sharding
from minijax.typing import DTypeLike

__all__ = [
    "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
]  # fmt: skip


def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: Sharding,
    arrays: Sequence[Array],
    *,
    dtype: DTypeLike | None = None,
) -> ArrayImpl:
    """Make an array of parts that lie on the devices of this process.

    - `shape`, `sharding`: shape and sharding of the array
    - `arrays`: parts, one on each device of the sharding in this process, of one dtype
    - `dtype`: dtype, necessary in a process without parts

    ValueError for parts of another shape or on other devices.
    Source: IFRT's `AssembleArrayFromSingleDeviceArrays`.

    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
    >>> jax.make_array_from_single_device_arrays((2,), sharding, [jnp.array([4, 5])])
    Array([4, 5], dtype=int32)
    """
    shape = tuple(shape)
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(
            "jax.make_array_from_single_device_arrays `arrays` argument must be a list or tuple, but "
            f"got {type(arrays)}."
        )
    parts = {}
    for part in arrays:
        if not isinstance(part, Array):
            raise TypeError(
                f"Unsupported type for elements in `arrays`: {type(part)}. Put each on its device "
                "with device_put first."
            )
        part = concrete(part)
        (device,) = part.devices()
        parts[device] = part
    _check_sharding(sharding)
    mine = [d for d in sharding._device_assignment if d in sharding.addressable_devices]
    if set(parts) != set(mine) or len(arrays) != len(mine):
        raise ValueError(
            f"Expected {len(mine)} per-device arrays (this is how many devices are addressable by "
            f"the sharding), but got {len(arrays)}: one on each of {sorted(map(str, mine))}, and "
            "the arrays are on "
            f"{sorted(map(str, parts))}."
        )
    if not parts and dtype is None:
        raise ValueError("This process has no part of the array: give its dtype.")
    first = next(iter(parts.values())).aval if parts else None
    found = dtypes.check_user_dtype_supported(dtype) if first is None else first.dtype
    aval = ShapedArray(shape, found)
    wanted = sharding.shard_shape(shape)
    for device, part in parts.items():
        if part.shape != wanted or part.dtype != aval.dtype:
            raise ValueError(
                f"Expected shard shape {wanted} doesn't match the single device array shape "
                f"{part.shape}. Shape of Array is {aval.str_short()} with sharding {sharding}; the "
                f"part on {device} is {part.aval.str_short()}."
            )
    raw = [parts[device]._buffer for device in mine]
    return ArrayImpl(
        buffers.joined(raw, physical(aval), sharding, True), Signature(aval, sharding, True)
    )


def _check_sharding(sharding: Any) -> None:
    if not isinstance(sharding, shardings.Sharding):
        raise TypeError(
            f"sharding should be an instance of `jax.sharding`. Got {sharding} of type "
            f"{type(sharding)}"
        )


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Any,
    data_callback: Callable[..., Any],
    dtype: DTypeLike | None = None,
) -> ArrayImpl:
    """Make an array whose part on each device is computed by a function.

    - `shape`, `sharding`: shape and sharding of the array
    - `data_callback`: function from the slices of a part to an array; called once for each part
    - `dtype`: dtype, by default that of the parts; necessary in a process without parts

    ValueError for parts of another shape.
    Source: PJRT's transfers from the host.

    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
    >>> jax.make_array_from_callback((2,), sharding, lambda index: np.array([4, 5])[index])
    Array([4, 5], dtype=int32)
    """
    shape = tuple(shape)
    _check_sharding(sharding)
    indices = sharding.addressable_devices_indices_map(shape)
    known: dict[tuple, Any] = {}
    arrays = []
    for device, index in indices.items():
        key = tuple([(part.start, part.stop) for part in index])
        if key not in known:
            value = data_callback(index)
            known[key] = value if dtype is None else np.asarray(value, dtype)
        arrays.append(device_put(known[key], shardings.single_device(device)))
    return make_array_from_single_device_arrays(shape, sharding, arrays, dtype=dtype)


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Sequence[int] | None = None
) -> ArrayImpl:
    """Make an array of which each process gives the part that its devices hold.

    - `sharding`: sharding of the array
    - `local_data`: array, or pytree of them, of the part's shape and dtype
    - `global_shape`: shape of the array; inferred where each dimension is whole in every process or
      split evenly among them

    ValueError for data of another shape.
    Source: PJRT's transfers from the host.

    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
    >>> jax.make_array_from_process_local_data(sharding, np.array([4, 5]))
    Array([4, 5], dtype=int32)
    """
    local_data = np.asarray(local_data)
    if not isinstance(sharding, shardings.Sharding):
        raise ValueError(
            "make_array_from_process_local_data takes a `jax.sharding.Sharding`, got "
            f"{sharding!r} of type {type(sharding)}."
        )
    if global_shape is None:
        global_shape = _global_shape(sharding, local_data.shape)
    shape = tuple(
        size if size is not None else own
        for size, own in zip(global_shape, local_data.shape, strict=True)
    )
    starts = [0] * len(shape)
    if local_data.shape != shape:
        indices = sharding.addressable_devices_indices_map(shape).values()
        starts = [min(index[axis].start or 0 for index in indices) for axis in range(len(shape))]

    def part(index):
        moved = [
            slice((s.start or 0) - start, (size if s.stop is None else s.stop) - start)
            for s, start, size in zip(index, starts, shape, strict=True)
        ]
        return local_data[tuple(moved)]

    return make_array_from_callback(shape, sharding, part)


def _global_shape(sharding: Any, local: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the whole, from the dimensions that this process has a part of."""
    ndim = len(local)
    pieces = sharding._pieces(ndim)
    probe = tuple(pieces)
    indices = list(sharding.addressable_devices_indices_map(probe).values())
    shape = []
    for axis, (own, count) in enumerate(zip(local, pieces, strict=True)):
        mine = len({index[axis].start or 0 for index in indices})
        shape.append(own * count // mine)
    return tuple(shape)
