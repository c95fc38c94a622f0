"""Values shared by the programs of several processes. A value of each process becomes an array over
a mesh of one device from each process; collectives of XLA bring it to all.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.arrays.array import ArrayImpl
from minijax.core.array import Array
from minijax.features.sharding.assembling import make_array_from_process_local_data
from minijax.features.sharding.transfer import device_put
from minijax.numpy.promotion import check_arraylike
from minijax.runtime import platforms
from minijax.runtime.distributed import state
from minijax.runtime.mesh import Mesh, PartitionSpec
from minijax.runtime.named_sharding import NamedSharding, replicated
from minijax.tracebacks import public
from minijax.transforms.jit import jit

__all__ = [
    "ProcessFailureError", "assert_equal", "broadcast_one_to_all",
    "global_array_to_host_local_array", "host_local_array_to_global_array", "live_devices",
    "process_allgather", "reached_preemption_sync_point", "sync_global_devices",
]  # fmt: skip


def _by_process() -> Mesh:
    """All devices, a row for each process."""
    devices = sorted(platforms.devices(), key=lambda device: (device.process_index, device.id))
    rows = np.array(devices, dtype=object).reshape(platforms.process_count(), -1)
    return Mesh(rows, ("processes", "local_devices"))


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of every process, as NumPy arrays: stacked, or concatenated if `tiled`.

    Arrays that span processes are gathered whole.
    """
    mesh = _by_process()

    def gather(x):
        if isinstance(x, ArrayImpl) and not x.is_fully_addressable:
            whole = jit(lambda a: a, out_shardings=replicated(x.sharding.mesh))(x)
            return np.asarray(whole)
        x = np.asarray(x)
        if platforms.process_count() == 1:
            return x if tiled else x[None]
        rows = x if tiled and x.ndim else x[None]
        spread = NamedSharding(mesh, PartitionSpec("processes"))
        whole = make_array_from_process_local_data(spread, rows)
        return np.asarray(jit(lambda a: a, out_shardings=replicated(mesh))(whole))

    return tree_util.tree_map(gather, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of one process, process 0 unless another says that it is the source, in all."""
    if platforms.process_count() == 1:
        return tree_util.tree_map(np.asarray, in_tree)
    if is_source is None:
        is_source = platforms.process_index() == 0

    def choose(x):
        x = np.asarray(x)
        kept = x if is_source else np.zeros_like(x)
        return process_allgather(kept).sum(axis=0, dtype=x.dtype)

    return tree_util.tree_map(choose, in_tree)


def sync_global_devices(name: str) -> None:
    """Wait until every process has come to this call with the same name."""
    if platforms.process_count() > 1:
        number = np.uint32(zlib.crc32(name.encode()))
        assert_equal(number, f"sync_global_devices name mismatch ('{name}')")


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """AssertionError unless the values are the same in every process."""
    for rows in tree_util.tree_leaves(process_allgather(in_tree)):
        if not all(np.array_equal(rows[0], row) for row in rows):
            raise AssertionError(f"{fail_message} Expected equal values; got {rows.tolist()}.")


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Each process's part of arrays as arrays over a mesh of all."""
    specs = _specs(pspecs, local_inputs)
    leaves, tree = tree_util.flatten(local_inputs)
    return tree.unflatten([
        make_array_from_process_local_data(NamedSharding(global_mesh, spec), leaf)
        for leaf, spec in zip(leaves, specs, strict=True)
    ])  # fmt: skip


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The part of arrays over a mesh that this process has, over its own part of the mesh."""
    specs = _specs(pspecs, global_inputs)
    leaves, tree = tree_util.flatten(global_inputs)

    def part(x, spec):
        check_arraylike("global_array_to_host_local_array", x)
        where = NamedSharding(getattr(global_mesh, "local_mesh", global_mesh), spec)
        if not isinstance(x, Array):
            return device_put(x, where)
        if x.is_fully_addressable:
            return x
        shards = {tuple([(s.start or 0) for s in p.index]): p for p in x.addressable_shards}
        starts = sorted(shards)
        low = [min(start[axis] for start in starts) for axis in range(x.ndim)]
        high = [
            max(start[axis] + shards[start].data.shape[axis] for start in starts)
            for axis in range(x.ndim)
        ]
        out = np.empty([h - s for h, s in zip(high, low, strict=True)], x.dtype)
        for start, shard in shards.items():
            place = tuple([
                slice(at - begin, at - begin + size)
                for at, begin, size in zip(start, low, shard.data.shape, strict=True)
            ])  # fmt: skip
            out[place] = np.asarray(shard.data)
        return device_put(out, where)

    return tree.unflatten([part(x, spec) for x, spec in zip(leaves, specs, strict=True)])


def _specs(pspecs: Any, tree: Any) -> list[PartitionSpec]:
    is_spec = lambda x: x is None or isinstance(x, PartitionSpec)
    found = tree_util.broadcast_prefix(pspecs, tree, is_leaf=is_spec)
    if None in found:
        raise ValueError(
            "`None` is not a valid input to the pspecs argument. Please use "
            "jax.sharding.PartitionSpec() if you wanted to replicate your input."
        )
    return found


class ProcessFailureError(Exception):
    """Processes failed while `live_devices` watched them; `failed_devices` are theirs."""

    def __init__(self, failed_devices: set[Any]):
        super().__init__(f"Devices failed: {failed_devices}")
        self.failed_devices = failed_devices


def _live(devices: Sequence[Any]) -> list[Any]:
    """Return the devices whose processes are alive; all processes that are wait for each other."""
    alive = state.client.get_live_nodes(sorted({device.process_index for device in devices}))
    return [device for device in devices if device.process_index in alive]


@contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """Context manager: those of these devices whose processes are alive, in the processes alike.

    ProcessFailureError at its end if some of them are no more. RuntimeError where
    `minijax.distributed.initialize` was not called; ValueError without devices, or without one of
    this process.
    """
    if state.client is None:
        raise RuntimeError("Distributed JAX not initialized. Call jax.distributed.initialize().")
    if not any(device.process_index == platforms.process_index() for device in devices):
        raise ValueError(
            f"live_devices is given devices of this process, too: got {list(devices)} in process "
            f"{platforms.process_index()}."
        )
    before = _live(devices)
    failed = False
    try:
        yield before
    except Exception:
        failed = True
        raise
    finally:
        gone = set(before) - set(_live(devices))
        if gone and not failed:
            raise ProcessFailureError(gone)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the cluster's scheduler announced an end: no notice is listened for here."""
    return False


__dir__ = public(__name__)
