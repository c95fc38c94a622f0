"""Compiled programs kept on disk, so that a second process starts fast.

May import the ground floor and `runtime.versions`. One file per program, named by a digest of
everything that changes it. Loading a program runs code, so the folder must be the user's own and
private. A file carries a checksum: one that is truncated or corrupted is dropped, with a warning.
Several processes may share the folder: files are written aside and renamed, and read whole.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from minijax.config import local
from minijax.runtime.versions import jaxlib_version_text

__all__ = ["DiskCache", "disk_cache", "program_key", "reset_cache"]

_MAGIC = b"minijax program 1\n"
_DIGEST = hashlib.sha256
_DIGEST_SIZE = 32
_EVICT_EVERY = 64  # writes between two looks at the size of the folder


def default_folder() -> Path:
    """`MINIJAX_CACHE_DIR`, or `minijax` in the user's cache folder."""
    given = os.environ.get("MINIJAX_CACHE_DIR") or os.environ.get("MINIJAX_COMPILATION_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "minijax" / "programs"


@cache
def _machine() -> bytes:
    """What a host program depends on besides the module: the processor and its features."""
    parts = [platform.machine(), jaxlib_version_text, os.environ.get("XLA_FLAGS", "")]
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features", "model name")):
                parts.append(line)
            elif not line:
                break
    except OSError:
        parts.append(platform.processor())
    return "\n".join(parts).encode()


def program_key(text: str, devices: tuple, options: Any) -> str:
    """The name of a program: a digest of module, devices, options, machine and versions."""
    digest = _DIGEST(_machine())
    client = devices[0].client
    about = (client.platform, client.platform_version, [(d.id, d.device_kind) for d in devices])
    digest.update(repr(about).encode())
    digest.update(options.SerializeAsString())
    digest.update(text.encode())
    return digest.hexdigest()


class DiskCache:
    """Programs in one folder, at most `max_size` bytes of them; the least recently used go first."""

    def __init__(self, folder: Path, max_size: int):
        self.folder = folder
        self.max_size = max_size
        self._writes = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if hasattr(os, "getuid") and found.st_uid != os.getuid():
            raise PermissionError(f"the folder {folder} belongs to another user")
        if stat.S_IMODE(found.st_mode) & 0o077:
            folder.chmod(0o700)

    def get(self, key: str) -> bytes | None:
        """The program of this name; None if there is none, or if it is damaged."""
        path = self.folder / key
        try:
            content = path.read_bytes()
        except OSError:
            return None
        start = len(_MAGIC) + _DIGEST_SIZE
        payload = content[start:]
        if content[:start] != _MAGIC + _DIGEST(payload).digest():
            self.drop(key)
            _warn_damaged(path)
            return None
        try:
            os.utime(path)
        except OSError:
            pass
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Keep a program; written aside and renamed, so that no reader sees a part of it."""
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + _DIGEST(payload).digest())
                file.write(payload)
            os.replace(name, self.folder / key)
        except BaseException:
            _remove(name)
            raise
        if self._writes % _EVICT_EVERY == 0:
            self.evict()
        self._writes += 1

    def drop(self, key: str) -> None:
        _remove(self.folder / key)

    def evict(self) -> None:
        """Remove the programs used longest ago until the folder is within its size."""
        entries = []
        with os.scandir(self.folder) as found:
            for entry in found:
                try:
                    info = entry.stat()
                except OSError:
                    continue  # another process removed it
                entries.append((info.st_mtime, info.st_size, entry.path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.max_size:
                break
            _remove(path)
            total -= size


def _remove(path: Any) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _warn_damaged(path: Path) -> None:
    warnings.warn(
        f"A compiled program in the cache was damaged and has been removed: {path}. It is compiled "
        "anew. To do without the cache, set MINIJAX_ENABLE_COMPILATION_CACHE=0.",
        stacklevel=3,
    )


_caches: dict[tuple, DiskCache | None] = {}


def disk_cache() -> DiskCache | None:
    """The cache that the settings ask for; None if it is off or cannot be used."""
    settings = local.context.settings
    if not settings.enable_compilation_cache:
        return None
    key = (settings.compilation_cache_dir, settings.compilation_cache_max_size)
    try:
        return _caches[key]
    except KeyError:
        pass
    folder = Path(key[0]) if key[0] else default_folder()
    try:
        found = DiskCache(folder, key[1])
    except OSError as error:
        if settings.raise_persistent_cache_errors:
            raise
        warnings.warn(
            f"The cache of compiled programs is off: {error}. Name another folder with "
            "MINIJAX_CACHE_DIR, or set MINIJAX_ENABLE_COMPILATION_CACHE=0.",
            stacklevel=2,
        )
        found = None
    _caches[key] = found
    return found


def reset_cache() -> None:
    """Forget which folders are in use; the next compilation looks at the settings anew."""
    _caches.clear()
