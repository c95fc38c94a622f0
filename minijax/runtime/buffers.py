"""Buffers: values on devices, to and from NumPy."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.runtime import executables, platforms
from minijax.runtime import sharding as shardings
from minijax.runtime.layouts import Layout, placed, sharding_in
from minijax.runtime.lending import LentSharding
from minijax.runtime.released import released
from minijax.runtime.unimported import without_upstream
from minijax.runtime.versions import _jax

__all__ = ["Buffer", "CopySemantics", "block_until_ready", "move", "put", "to_numpy"]

Buffer = _jax.ArrayImpl
CopySemantics = _jax.ArrayCopySemantics


def put(value: np.ndarray, aval: Any, sharding: Any, committed: bool, *, copy: bool = True) -> Any:
    """A NumPy array on devices. With `copy`, later writes to `value` do not show."""
    devices = sharding._device_assignment
    if aval.dtype.kind == "T":
        _check_holds_strings(sharding, committed)
    how = _jax.HostBufferSemantics.ZERO_COPY
    if len(devices) == 1:
        parts = [value]
        if copy:
            how = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
    else:  # for several devices jaxlib offers no copying
        devices, indices, rows = sharding.local_parts(aval.shape)
        if rows:
            copied, size = np.array(value, order="C"), aval.shape[0] // len(indices)
            parts = list(copied.reshape(len(indices), size, *aval.shape[1:]))
        else:
            parts = [np.array(value[index], order="C") for index in indices]
        if aval.dtype.kind == "T":  # which jaxlib replicates over one device only
            part_type, homes = (
                _Wide(parts[0].shape, aval.dtype),
                map(shardings.single_device, devices),
            )
            put_parts = [
                put(x, part_type, home, True) for x, home in zip(parts, homes, strict=True)
            ]
            return joined(put_parts, aval, sharding, committed)
    try:
        return _jax.batched_device_put(
            aval, sharding, parts, list(devices), committed, False, how, enable_x64=True
        )
    except _jax.JaxRuntimeError as error:
        _check_attached(devices[0])
        if "Unknown NumPy dtype" not in str(error):
            raise
        raise _jax.JaxRuntimeError(
            f"XLA holds no arrays of dtype {aval.dtype.name} on {devices[0].platform}: convert to a "
            "wider dtype, such as float8_e4m3fn."
        ) from None


def _check_holds_strings(sharding: Any, committed: bool) -> None:
    """TypeError unless a user asks for strings on CPUs."""
    if not committed or any(device.platform != "cpu" for device in sharding._device_assignment):
        raise TypeError(
            "String arrays can only be sharded to CPU devices. Received unsupported device or "
            f"sharding: {sharding if committed else None}. Name the place, as in "
            'jax.device_put(x, jax.devices("cpu")[0]).'
        )


_LARGE = 1 << 16  # bytes, below which copying takes no longer than lending


def putter(
    aval: Any, sharding: Any, dtype: Any = None, copy: bool = True
) -> Callable[[np.ndarray], Any]:
    """`put` of values of one type on one device, uncommitted, converted to `dtype` if it is given.

    Small values are copied always.
    """
    put, devices = _jax.batched_device_put, list(sharding._device_assignment)
    how = _jax.HostBufferSemantics.ZERO_COPY
    if copy or aval.size * aval.dtype.itemsize < _LARGE:
        how = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
    if dtype is not None:
        return lambda x: put(aval, sharding, [x.astype(dtype)], devices, False, False, how, True)
    return lambda x: put(aval, sharding, [x], devices, False, False, how, True)


def described(buffer: Any) -> tuple[Any, Any, bool]:
    """Return the aval and the place of a buffer, and whether it is committed to it."""
    return buffer.aval, place_of(buffer, buffer._sharding, buffer.aval), buffer._committed


def place_of(buffer: Any, sharding: Any, aval: Any) -> Any:
    """Return the place of an array of this type and sharding, of which a buffer is the first part."""
    return placed(buffer._pjrt_layout, sharding, aval)


def is_ours(buffer: Any) -> bool:
    """Whether a buffer is that of an array of minijax, and not of upstream in the same process."""
    place = buffer._sharding
    return isinstance(place, shardings.Sharding) and not isinstance(place, LentSharding)


def parts_of(buffer: Any) -> list[Any]:
    """The buffers on the devices of this process, in the order of its sharding."""
    return without_upstream(getattr, buffer, "_arrays")


def joined(parts: Sequence[Any], aval: Any, sharding: Any, committed: bool) -> Any:
    """One buffer of those on single devices."""
    return _jax.ArrayImpl(aval, sharding, list(parts), committed=committed, _skip_checks=True)


def move(buffer: Any, sharding: Any, *, copy: bool = False) -> Any:
    """Copy a value to the devices of another sharding."""
    _check_attached(sharding._device_assignment[0])
    semantics = CopySemantics.ALWAYS_COPY if copy else CopySemantics.REUSE_INPUT
    return _jax.batched_copy_array_to_devices_with_sharding(
        [buffer], [sharding._internal_device_list], [sharding], [semantics]
    )[0]


def _check_attached(device: Any) -> None:
    """JaxRuntimeError for a device that is only described: jaxlib would end the process."""
    if executables.is_compile_only((device,)):
        raise _jax.JaxRuntimeError(
            f"UNIMPLEMENTED: no array can be put on {device.device_kind!r}, which is described and "
            "not attached: lower and compile for it with "
            "ShapeDtypeStruct(shape, dtype, sharding=...) as arguments."
        )


def block_until_ready(buffers: Sequence[Any]) -> None:
    _jax.batched_block_until_ready(list(buffers))


def to_numpy(buffer: Any, aval: Any, place: Any) -> np.ndarray:
    """The value of an array: a read-only view where it lies in the host's memory as a whole.

    For a `Format`, `has_strides` must hold. RuntimeError if parts of the array are on devices of
    other processes.
    """
    sharding = sharding_in(place)
    ordered = place is not sharding
    devices = sharding._device_assignment
    if len(devices) == 1:
        return _one_to_numpy(buffer, aval, devices[0], ordered)
    if aval.size == 0:  # XLA may not have split what has no elements
        return np.zeros(aval.shape, aval.dtype)
    mine, indices, _ = sharding.local_parts(aval.shape)
    if sharding.is_fully_replicated:  # by all parts a new array on 8 devices takes 20 us, not 5
        first = without_upstream(buffer._fully_replicated_shard)
        return _one_to_numpy(first, aval, mine[0], ordered)
    if len(mine) < len(devices):
        raise RuntimeError(
            "Fetching value for `jax.Array` that spans non-addressable (non process local) devices "
            "is not possible. Use jax.experimental.multihost_utils.process_allgather, or "
            "`addressable_shards` for the parts that this process has."
        )
    out = np.empty(aval.shape, aval.dtype)
    part_type = _Wide(sharding.shard_shape(aval.shape), aval.dtype)
    read = set()
    for device, index, part in zip(mine, indices, parts_of(buffer), strict=True):
        where = tuple([(dim.start, dim.stop) for dim in index])
        if where not in read:  # several devices may have a part: the first is read
            read.add(where)
            out[index] = _one_to_numpy(part, part_type, device, ordered)
    out.flags.writeable = False
    return out


def has_strides(place: Any, dtype: Any) -> bool:
    """Whether the memory of an array, whose place is a `Format`, is that of an array of NumPy's."""
    on_cpu = place.sharding._device_assignment[0].platform == "cpu"
    return on_cpu and not place.layout.tiling and dtype.name not in _NARROW


def is_constant(x: Any) -> bool:
    """Whether an array of the host lies in memory that nobody writes to, such as that of an array."""
    while isinstance(x, np.ndarray) and not x.flags.writeable:
        x = x.base
    if isinstance(x, memoryview):
        x = x.obj
    return isinstance(x, (bytes, Buffer))


def is_on_cpu(sharding: Any) -> bool:
    """Whether an array lies as a whole in the memory of this process."""
    devices = sharding._device_assignment
    return len(devices) == 1 and devices[0].platform == "cpu" and sharding.is_fully_addressable


def _one_to_numpy(buffer: Any, aval: Any, device: Any, ordered: bool) -> np.ndarray:
    """jaxlib's own conversion imports upstream where that is installed, hence the buffer protocol.

    `ordered` says that the dimensions may lie in another order, which the buffer knows.
    """
    if device.platform != "cpu":
        home = shardings.single_device(platforms.backend("cpu").local_devices()[0])
        return _one_to_numpy(move(buffer, home), aval, home.device, ordered)
    dtype = aval.dtype
    if ordered:
        order = Layout.from_pjrt_layout(buffer._pjrt_layout).major_to_minor
        part = _Wide([aval.shape[axis] for axis in order], dtype)
        return _raw_to_numpy(buffer, part).transpose(np.argsort(order))
    if dtype.isbuiltin == 1:  # one of NumPy's own, not of ml_dtypes
        return np.asarray(memoryview(_awaited(buffer)))
    if dtype.name in _NARROW:
        return _widened(buffer, aval, device)
    if dtype.kind == "T":
        return without_upstream(_awaited(buffer)._single_device_array_to_np_array_did_copy)[0]
    return _raw_to_numpy(buffer, aval)


def _raw_to_numpy(buffer: Any, aval: Any) -> np.ndarray:
    """Return a read-only view of the memory of a buffer."""
    dtype = aval.dtype
    if aval.size == 0:
        return np.zeros(aval.shape, dtype)
    _awaited(buffer)
    start = without_upstream(buffer.unsafe_buffer_pointer)
    raw = (ctypes.c_uint8 * (aval.size * dtype.itemsize)).from_address(start)
    view = np.frombuffer(raw, dtype=dtype).reshape(aval.shape)
    try:  # the view keeps the memory from being freed and from being donated
        raw.owner = buffer if buffer.aval is None else exported(buffer)  # None: a part
    except _jax.JaxRuntimeError:  # DLPack has no such dtype
        view = view.copy()
    view.flags.writeable = False
    return view


def exported(buffer: Any, stream: Any = None) -> Any:
    """Return a DLPack capsule that shares the memory of a buffer, and holds it."""
    # Deleting the very buffer that was exported would end the process while the capsule is held.
    shared = joined([buffer], buffer.aval, buffer._sharding, True)
    return _jax.buffer_to_dlpack_managed_tensor(shared, stream=stream)


def _awaited(buffer: Any) -> Any:
    """Return a buffer that is ready, or raise the error of the program that was to make it."""
    next(released)
    buffer.block_until_ready()
    return buffer


class _Wide:
    """A type as jaxlib wants to see it: of a widened copy, of a part."""

    weak_type = False

    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), len(shape)
        self.size = math.prod(shape)


_NARROW = {"int4": ("i4", "i8"), "uint4": ("ui4", "ui8"), "int2": ("i2", "i8"),
           "uint2": ("ui2", "ui8"), "float4_e2m1fn": ("f4E2M1FN", "f32")}  # fmt: skip
_WIDE = {"i8": np.int8, "ui8": np.uint8, "f32": np.float32}


def _widened(buffer: Any, aval: Any, device: Any) -> np.ndarray:
    """Types of at most half a byte lie packed: a tiny program spreads them."""
    narrow, wide = _NARROW[aval.dtype.name]
    dims = "".join(f"{size}x" for size in aval.shape)
    module = (
        f"func.func public @main(%0: tensor<{dims}{narrow}>) -> tensor<{dims}{wide}> {{\n"
        f"%1 = stablehlo.convert %0 : (tensor<{dims}{narrow}>) -> tensor<{dims}{wide}>\n"
        f"return %1 : tensor<{dims}{wide}> }}"
    )
    executable = executables.compile_module(module, (device,))
    result_type = _Wide(aval.shape, _WIDE[wide])
    handler = executables.result_handler(result_type, shardings.single_device(device), False)
    result = executable.execute_sharded([_awaited(buffer)]).consume_with_handlers([handler])[0]
    return np.asarray(memoryview(_awaited(result))).astype(aval.dtype)


def retyped(buffer: Any, aval: Any, sharding: Any) -> Any:
    """Return the buffer with a type and sharding of ours."""
    parts = [buffer] if len(sharding._device_assignment) == 1 else parts_of(buffer)
    return joined(parts, aval, sharding, True)
