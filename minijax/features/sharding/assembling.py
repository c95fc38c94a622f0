"""Arrays over several devices, made of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import ArrayImpl, Signature
from minijax.arrays.dispatch import concrete, moved
from minijax.core.array import Array
from minijax.core.avals import ShapedArray
from minijax.features.sharding.memory_layouts import layout_of
from minijax.features.sharding.transfer import device_put
from minijax.lowering.types import physical
from minijax.runtime import buffers, platforms
from minijax.runtime import sharding as shardings
from minijax.runtime.layouts import AutoLayout, Format, sharding_in
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
    - `arrays`: parts, one on each device of the sharding in this process, of one dtype; the array
      has the layout of the first
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
    aval = ShapedArray(shape, _dtype_of(list(parts.values()), dtype))
    _check_devices(arrays, set(parts), set(mine))
    wanted = sharding.shard_shape(shape)
    for device, part in parts.items():
        if part.dtype != aval.dtype:
            raise ValueError(
                f"Input buffers to `Array` must have matching dtypes. Got {part.dtype}, expected "
                f"{aval.dtype} for buffer: {part}"
            )
        if part.shape != wanted:
            raise ValueError(
                f"Expected shard shape {wanted} doesn't match the single device array shape "
                f"{part.shape}. Shape of Array is {aval.str_short()} with sharding {sharding}; the "
                f"part on {device} is {part.aval.str_short()}."
            )
    layout = layout_of(parts[mine[0]].signature.place) if mine else None
    raw = [moved(parts[d], _in_layout(layout, parts[d].sharding))._buffer for d in mine]
    return ArrayImpl(
        buffers.joined(raw, physical(aval), sharding, True),
        Signature(aval, _in_layout(layout, sharding), True),
    )


def _in_layout(layout: Any, sharding: Any) -> Any:
    """Return the place that a layout, which may be None, and a sharding make."""
    return sharding if layout is None else Format(layout, sharding)


def _dtype_of(parts: Sequence[Array], asked: Any) -> Any:
    """The dtype of an array: of its parts, or as asked in a process that has none."""
    maker = "jax.make_array_from_single_device_arrays"
    if asked is not None:
        asked = dtypes.check_user_dtype_supported(asked)
    if not parts:
        if asked is None:
            raise ValueError(
                "If the Array has no addressable shards, `dtype` must be provided via the `dtype` "
                f"argument to `{maker}`."
            )
        return asked
    if asked is not None and asked != parts[0].dtype:
        raise ValueError(
            f"If `dtype` is provided to `{maker}`, it must match the dtype of the addressable "
            f"shards. Got dtype={asked} and shard dtype={parts[0].dtype}`."
        )
    return parts[0].dtype


def _check_devices(arrays: Sequence[Array], found: set, wanted: set) -> None:
    """ValueError unless there is one array on each device of the sharding."""
    if len(arrays) != len(wanted):
        raise ValueError(
            f"Expected {len(wanted)} per-device arrays (this is how many devices are addressable by "
            f"the sharding), but got {len(arrays)}"
        )
    if len(found) != len(arrays):
        ids = [device.id for array in arrays for device in array.devices()]
        raise ValueError(
            "When making an array from single-device arrays, the input arrays must be from distinct "
            f"devices, but got device IDs {ids}"
        )
    if found != wanted:
        missing, others = ({d.id for d in found ^ wanted if d in side} for side in (wanted, found))
        raise ValueError(
            "Addressable devices and per-device arrays devices do not match. Sharding contains "
            f"devices {missing} that are not present in per-device arrays. Per-device arrays contain "
            f"devices {others} that are not present in the sharding."
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

    - `shape`, `sharding`: shape of the array, and its sharding or `Format`
    - `data_callback`: function from the slices of a part to an array; called once for each part
    - `dtype`: dtype, by default that of the parts; necessary in a process without parts

    ValueError for parts of another shape.
    Source: PJRT's transfers from the host.

    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
    >>> jax.make_array_from_callback((2,), sharding, lambda index: np.array([4, 5])[index])
    Array([4, 5], dtype=int32)
    """
    shape, layout, sharding = tuple(shape), layout_of(sharding), sharding_in(sharding)
    if isinstance(layout, AutoLayout):
        raise TypeError(
            "`Layout.AUTO` cannot be used in place of a device-local layout when calling "
            f"`jax.make_array_from_callback`. Got {Format(layout, sharding)}: give a Layout, such as "
            "that of a compiled function's `input_formats`."
        )
    _check_sharding(sharding)
    indices = sharding.addressable_devices_indices_map(shape)
    known: dict[tuple, Any] = {}
    arrays = []
    for device, index in indices.items():
        key = tuple([(part.start, part.stop) for part in index])
        if key not in known:
            known[key] = data_callback(index)
        home = shardings.single_device(device)
        if home.memory_kind != sharding.memory_kind:
            home = home.with_memory_kind(sharding.memory_kind)
        arrays.append(device_put(known[key], _in_layout(layout, home)))
    if dtype is not None and arrays:
        found, dtype = arrays[0].dtype, dtypes.check_user_dtype_supported(dtype)
        if dtype != found:
            raise ValueError(
                "If `dtype` is provided to `jax.make_array_from_callback`, it must match the dtype "
                f"of the addressable shards. Got dtype={dtype} and shard dtype={found}`."
            )
    return make_array_from_single_device_arrays(shape, sharding, arrays, dtype=dtype)


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Any = None
) -> Any:
    """Make an array of which each process gives the part that its devices hold.

    - `sharding`: sharding of the array
    - `local_data`: array, or pytree of them, of the part's shape and dtype
    - `global_shape`: shape of the array; inferred where each dimension is whole in every process or
      split evenly among them

    `sharding` and `global_shape` may be pytrees that are prefixes of `local_data`. ValueError for
    data of another shape.
    Source: PJRT's transfers from the host.

    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
    >>> jax.make_array_from_process_local_data(sharding, np.array([4, 5]))
    Array([4, 5], dtype=int32)
    """
    leaves, tree = tree_util.flatten(local_data)
    shapes = tree_util.flatten_axes("global_shape", tree, global_shape, is_leaf=_is_shape)
    if platforms.process_count() == 1:
        for data, shape in zip(leaves, shapes, strict=True):
            if shape is not None and shape != np.shape(data):
                raise ValueError(
                    "When calling `make_array_from_process_local_data` on a single process, "
                    "global_shape should be None or equal to local_data.shape.Got global_shape="
                    f"{shape} and local_data.shape={np.shape(data)}."
                )
        return device_put(local_data, sharding)
    places = tree_util.flatten_axes("sharding", tree, sharding)
    made = map(_of_processes, places, leaves, shapes)
    return tree.unflatten(list(made))


def _is_shape(x: Any) -> bool:
    sizes = (int, np.integer, type(None))
    return x is None or (isinstance(x, tuple) and all(isinstance(size, sizes) for size in x))


def _of_processes(sharding: Any, local_data: Any, global_shape: Sequence[int] | None) -> ArrayImpl:
    """The array of which this process and others have parts."""
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
