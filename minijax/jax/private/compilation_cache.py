"""Counterparts of upstream's private functions on its cache of compiled programs, and its LRUCache.

Entries that are made here stand beside its own, under other names: the program with the time it
took to compile.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

from minijax.config import config, local
from minijax.runtime import lapack
from minijax.runtime import sharding as shardings
from minijax.runtime.cache import disk_cache, program_key
from minijax.runtime.versions import xla_client

__all__ = [
    "LRUCache", "combine_executable_and_time", "compress_executable", "decompress_executable",
    "default_min_cache_entry_size", "extract_executable_and_time", "get_cache_key",
    "get_executable_and_time", "get_file_cache", "initialize_cache", "is_cache_used",
    "is_executable_in_cache", "is_initialized", "put_executable_and_time", "set_cache_dir",
]  # fmt: skip

_CACHE_SUFFIX = "-cache"
_TIME_SIZE = 4


class LRUCache:
    """Bytes by name in a folder; those used longest ago go when there are more than `max_size`.

    -1 stands for no limit. Entries are written aside and renamed, so that processes may share the
    folder without a lock: `lock_timeout_secs` is ignored. ValueError for an empty name.
    """

    def __init__(self, path: str, *, max_size: int, lock_timeout_secs: float | None = 10):
        self.path = self._path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.eviction_enabled, self.max_size = max_size != -1, max_size

    def _file(self, key: str) -> Path:
        if not key:
            raise ValueError("key cannot be empty")
        return self.path / f"{key}{_CACHE_SUFFIX}"

    def get(self, key: str) -> bytes | None:
        """The bytes of this name, or None."""
        file = self._file(key)
        try:
            found = file.read_bytes()
            os.utime(file)
        except FileNotFoundError:
            return None
        return found

    def put(self, key: str, value: bytes) -> None:
        """Keep bytes that have no name yet; what alone is above the limit is not kept."""
        file, size = self._file(key), memoryview(value).nbytes
        if file.exists() or (self.eviction_enabled and size > self.max_size):
            return
        if self.eviction_enabled:
            self._evict_if_needed(additional_size=size)
        handle, name = tempfile.mkstemp(dir=self.path, prefix=".new-")
        with os.fdopen(handle, "wb") as new:
            new.write(value)
        try:
            os.replace(name, file)
        except OSError:
            os.unlink(name)
            raise

    def _evict_if_needed(self, *, additional_size: int = 0) -> None:
        entries = sorted(
            (info.st_mtime_ns, info.st_size, file)
            for file in self.path.glob(f"*{_CACHE_SUFFIX}")
            for info in (file.stat(),)
        )
        room = self.max_size - additional_size - sum(size for _, size, _ in entries)
        for _, size, file in entries:
            if room >= 0:
                break
            file.unlink(missing_ok=True)
            room += size


# -- entries -------------------------------------------------------------------------------------------


def combine_executable_and_time(serialized_executable: bytes, compile_time: int) -> bytes:
    """An entry: four bytes of seconds, the highest first, and the program."""
    return int(compile_time).to_bytes(_TIME_SIZE, "big") + serialized_executable


def extract_executable_and_time(executable_and_time: bytes) -> tuple[bytes, int]:
    """The program and the seconds of an entry."""
    seconds = int.from_bytes(executable_and_time[:_TIME_SIZE], "big")
    return executable_and_time[_TIME_SIZE:], seconds


compress_executable, decompress_executable = zlib.compress, zlib.decompress


def get_cache_key(
    module: Any, devices: Any, compile_options: Any, backend: Any, ignore_callbacks: Any = None
) -> str:
    """The name of a program: that of its module, and a digest of all that changes it."""
    name = module.operation.attributes["sym_name"].value
    return f"{name}-{program_key(str(module), tuple(devices.flat), compile_options)}"


def put_executable_and_time(
    cache_key: str, module_name: str, executable: Any, backend: Any, compile_time: int
) -> None:
    """Keep a program if the cache is on, and compiling it took long enough."""
    kept, least = disk_cache(), config.read("jax_persistent_cache_min_compile_time_secs")
    if kept is not None and compile_time >= least:
        entry = combine_executable_and_time(executable.serialize(), compile_time)
        kept.put(cache_key, compress_executable(entry))


def get_executable_and_time(
    cache_key: str, compile_options: Any, backend: Any, executable_devices: Any
) -> tuple[Any, int | None]:
    """The program of this name, loaded, and the seconds it took to compile; or two times None."""
    kept = disk_cache()
    found = kept.get(cache_key) if kept is not None else None
    if found is None:
        return None, None
    payload, seconds = extract_executable_and_time(decompress_executable(found))
    if not isinstance(executable_devices, xla_client.DeviceList):
        executable_devices = shardings.device_list(tuple(executable_devices))
    lapack.prepare_all(backend.platform)
    loaded = backend.deserialize_executable(payload, executable_devices, compile_options)
    return loaded, seconds


def is_executable_in_cache(backend: Any, cache_key: str) -> bool:
    """Whether there is a program of this name."""
    kept = disk_cache()
    return kept is not None and kept.get(cache_key) is not None


# -- settings ------------------------------------------------------------------------------------------


def set_cache_dir(path: Any) -> None:
    """Keep programs in this folder; None for the user's own."""
    config.update("jax_compilation_cache_dir", path if path is None else str(path))


initialize_cache = set_cache_dir


def is_initialized() -> bool:
    """Whether programs are kept on disk: the cache needs no start of its own."""
    return bool(local.context.settings.enable_compilation_cache)


def is_cache_used(backend: Any) -> bool:
    """Whether programs of a platform are kept on disk."""
    return is_initialized()


def get_file_cache(path: str) -> tuple[LRUCache, str]:
    """A cache of the size that is set in a folder, and the folder."""
    return LRUCache(path, max_size=config.read("jax_compilation_cache_max_size")), path


def default_min_cache_entry_size() -> int:
    """Programs of any size are kept."""
    return 0
