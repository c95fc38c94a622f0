"""Arrays to and from TensorStore, each process writing and reading the parts on its own devices.

Files are those that upstream writes: a `zarr` array with one chunk for each part of the array.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arrays.array import ArrayImpl
from minijax.features.sharding.assembling import make_array_from_single_device_arrays
from minijax.features.sharding.transfer import device_put
from minijax.features.stages.struct import ShapeDtypeStruct
from minijax.runtime.layouts import Format, sharding_in
from minijax.runtime.platforms import process_index
from minijax.runtime.sharding import single_device
from minijax.tracebacks import public
from minijax.typing import Array

__all__ = ["async_deserialize", "async_serialize", "get_tensorstore_spec"]

_REMOTE = {"gs://": "gcs", "s3://": "s3"}
_contexts: list[Any] = []


def _tensorstore() -> Any:
    try:
        return importlib.import_module("tensorstore")
    except ModuleNotFoundError as error:
        raise ImportError(
            "array_serialization writes and reads files by TensorStore, which is not installed: pip "
            "install tensorstore."
        ) from error


def default_context() -> Any:
    """The TensorStore context that all files are opened with: it bounds how many are open at once."""
    if not _contexts:
        limits = {"file_io_concurrency": {"limit": 128}}
        _contexts.append(_tensorstore().Context(limits))
    return _contexts[0]


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str], ocdbt: bool = True, process_idx: int | None = None,
    arr: Array | None = None, driver: str = "zarr3",
) -> dict[str, Any]:  # fmt: skip
    """Return the spec by which TensorStore keeps an array at a path: local, `gs://` or `s3://`.

    With `ocdbt` the arrays of a directory are kept in one database there. `process_idx` gives each
    process a directory of its own in it, and `arr` says how the file is laid out. ValueError for a
    path that is not absolute, or names no directory.
    """
    path = os.path.normpath(os.fspath(ckpt_path)).replace(":/", "://", 1)
    prefix = next((prefix for prefix in _REMOTE if path.startswith(prefix)), None)
    folder, name = os.path.split(path)
    if process_idx is not None:
        folder = os.path.join(folder, f"process_{process_idx}")
        path = os.path.join(folder, name)
    if not ocdbt:
        spec: dict[str, Any] = {"driver": driver, "kvstore": _place(path, prefix)}
    else:
        if prefix is None and not os.path.isabs(folder):
            raise ValueError(f"Checkpoint path should be absolute. Got {folder}")
        if prefix is not None and "/" not in folder.removeprefix(prefix):
            raise ValueError(
                "Using OCDBT requires the bucket name, the directory name and the array name, your "
                f"path is: {path}"
            )
        base = _place(folder, prefix)
        spec = {"driver": driver, "kvstore": {"driver": "ocdbt", "base": base, "path": name}}
    if arr is not None:
        spec["metadata"] = _metadata(driver, arr)
    return spec


def _place(path: str, prefix: str | None) -> dict[str, Any]:
    if prefix is None:
        return {"driver": "file", "path": path}
    found = re.fullmatch("([^/]+)/(.+)", path.removeprefix(prefix))
    if found is None or not path.startswith(prefix):
        raise ValueError(
            "The ckpt_path should contain the bucket name and the file path inside the bucket. Got: "
            f"{path}: write {prefix}bucket/a."
        )
    return {"driver": _REMOTE[prefix], "bucket": found[1], "path": found[2]}


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether a path or a spec is of cloud storage."""
    if isinstance(tspec, str):
        return tspec.startswith(("gs://", "s3://"))
    if tspec.get("driver") in ("gcs", "s3"):
        return True
    return any(is_remote_storage(tspec[key]) for key in ("base", "kvstore") if key in tspec)


# -- writing --------------------------------------------------------------------------------------


def _metadata(driver: str | None, value: Any) -> dict[str, Any]:
    """Return how a new file is laid out: a chunk for each part of the array, or all of NumPy's."""
    sharding = getattr(value, "sharding", None)
    part = value.shape if sharding is None else sharding.shard_shape(value.shape)
    chunks = [max(1, size) for size in part]
    if driver == "zarr":
        return {"compressor": {"id": "zstd"}, "shape": value.shape, "chunks": chunks}
    if driver != "zarr3":
        raise ValueError(f"Unsupported driver: {driver}. Give 'zarr' or 'zarr3'.")
    grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
    kind = np.dtype(value.dtype).name
    return {"codecs": [], "shape": value.shape, "data_type": kind, "chunk_grid": grid}


def _with_metadata(spec: dict[str, Any], value: ArrayImpl) -> dict[str, Any]:
    """A spec that says how a new file is laid out, and of which dtype it is."""
    if "schema" in spec:
        return spec
    spec = {"metadata": _metadata(spec.get("driver"), value), **spec}
    return {"dtype": np.dtype(value.dtype).name, **spec}


async def async_serialize(
    arr_inp: ArrayImpl, tensorstore_spec: Any, commit_future: list[Any] | None = None,
    context: Any = None, chunk_layout: Any = None, primary_host: int | None = None,
    replica_id: int = 0, transaction: Any = None,
) -> None:  # fmt: skip
    """Write an array, of which each process writes the parts on its own devices.

    It returns once the values are copied; what the writing is awaited by is appended to
    `commit_future`, or awaited if that is None. Of copies the one numbered `replica_id` is written.
    ValueError for an array that only one of several processes has whole.
    """
    ts = _tensorstore()
    if isinstance(tensorstore_spec, dict):
        tensorstore_spec = ts.Spec(_with_metadata(tensorstore_spec, arr_inp))
    if chunk_layout is not None:
        tensorstore_spec.update(chunk_layout=chunk_layout)
    context = default_context() if context is None else context
    options = {"open": True, "context": context, "transaction": transaction}
    if primary_host is None or process_index() == primary_host:
        await ts.open(tensorstore_spec, create=True, **options)  # only one of them makes the file
    store = await ts.open(tensorstore_spec, assume_metadata=True, **options)

    async def write(part: Any) -> None:
        future = store[part.index].write(
            np.asarray(part.data), can_reference_source_data_indefinitely=True
        )
        await future.copy
        if commit_future is None:
            await future.commit
        else:
            commit_future.append(future.commit)

    parts = [part for part in arr_inp.addressable_shards if part.replica_id == replica_id]
    await asyncio.gather(*map(write, parts))


# -- reading --------------------------------------------------------------------------------------


async def async_deserialize(
    in_type: Any, tensorstore_spec: Any, global_shape: Sequence[int] | None = None,
    dtype: Any = None, byte_limiter: Any = None, context: Any = None, chunk_layout: Any = None,
    assume_metadata: bool = False,
) -> ArrayImpl:  # fmt: skip
    """Read an array, of which each process reads the parts on its own devices.

    `in_type` is a sharding, a `Format`, or a `ShapeDtypeStruct` that has one, whose dtype is taken.
    The array has the layout of the `Format`.
    With a `global_shape` that is not the stored one the array is filled up with zeros, or cut; to
    another `dtype` it is converted.
    """
    ts = _tensorstore()
    where = in_type
    if isinstance(in_type, ShapeDtypeStruct):
        where, dtype = in_type.format, in_type.dtype if dtype is None else dtype
    layout, where = getattr(where, "layout", None), sharding_in(where)
    if where is None:
        raise ValueError(
            f"async_deserialize takes a sharding, or a type with one, got {in_type!r}: it says on "
            "which devices the array is to lie."
        )
    context = default_context() if context is None else context
    spec = ts.Spec(tensorstore_spec) if isinstance(tensorstore_spec, dict) else tensorstore_spec
    store = await ts.open(spec, open=True, assume_metadata=assume_metadata, context=context)
    shape = tuple(store.shape if global_shape is None else global_shape)
    wanted = store.dtype.numpy_dtype if dtype is None else dtypes.canonicalize_dtype(dtype)
    part = where.shard_shape(shape)

    async def read(device: Any, index: tuple) -> Any:
        values = np.zeros(part, store.dtype.numpy_dtype)
        box = ts.IndexTransform(input_shape=shape)[index].domain
        inside = box.intersect(ts.IndexDomain(shape=store.shape))
        await ts.array(values)[ts.d[:].translate_to[box.origin]][inside].write(store[inside])
        return device_put(values.astype(wanted), Format(layout, single_device(device)))

    places = where.addressable_devices_indices_map(shape)
    arrays = await asyncio.gather(*[read(device, index) for device, index in places.items()])
    return make_array_from_single_device_arrays(shape, where, list(arrays))


# -- several at once ------------------------------------------------------------------------------


def run_serialization(arrays: Sequence[ArrayImpl], tensorstore_specs: Sequence[Any]) -> None:
    """Write arrays, and wait until they are written. ValueError unless each has a spec."""

    async def run() -> None:
        await asyncio.gather(*tree_util.tree_map(async_serialize, arrays, tensorstore_specs))

    asyncio.run(run())


def run_deserialization(
    shardings: Sequence[Any], tensorstore_specs: Sequence[Any],
    global_shapes: Sequence[tuple[int, ...]] | None = None, dtypes: Sequence[Any] | None = None,
    concurrent_gb: int = 32,
) -> list[ArrayImpl]:  # fmt: skip
    """Read arrays. `concurrent_gb` is accepted: how much is under way is up to TensorStore.

    ValueError unless each sharding has a spec, and a shape and a dtype if they are given.
    """
    count = len(tensorstore_specs)
    shapes = [None] * count if global_shapes is None else global_shapes
    kinds = [None] * count if dtypes is None else dtypes

    async def run() -> list[ArrayImpl]:
        return await asyncio.gather(
            *tree_util.tree_map(async_deserialize, shardings, tensorstore_specs, shapes, kinds)
        )

    return list(asyncio.run(run()))


__dir__ = public(__name__)
