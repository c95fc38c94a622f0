"""Compiled programs kept on disk, so that a second process starts fast.

One file per program, named by a digest of everything that changes it, in a private folder of our
own within the folder that the user names; nothing else there is read, changed or counted. Loading a
program runs its code, so files are opened as `runtime.folders` says, and each is sealed with its
key: one that is truncated, corrupted or under another's name is dropped, with a warning. Several
processes may share the folder: files are written aside and renamed, and their total is kept in a
file under a lock.
"""

from __future__ import annotations

import os
import platform
import re
import struct
import threading
import time
import warnings
import weakref
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from minijax.config import local
from minijax.runtime import plugins
from minijax.runtime.digests import sha256
from minijax.runtime.folders import Untrusted, open_file, open_private, resolved
from minijax.runtime.versions import jaxlib_version_text, library_path

__all__ = [
    "DiskCache", "cacheable", "disk_cache", "program_key", "reset_cache", "timed", "timed_content",
]  # fmt: skip

_MAGIC = b"minijax program 2\n"
_FORMAT = "seconds of compilation, executable"  # what a payload is
_SECONDS = struct.Struct("<d")
_DIGEST_SIZE = 32
_SUFFIX = ".program"
_NEW = ".new-"
_TOTAL = ".total"
_SAFE_KEY = r"[0-9A-Za-z][0-9A-Za-z_.\-]{0,199}"
_STALE = 3600.0  # seconds after which a file in the making has lost its writer
_PATIENCE = 1.0  # seconds to wait for another process that counts
_MANY = 256  # programs, which take 1 ms to look at


# -- keys ------------------------------------------------------------------------------------------


def default_folder() -> Path:
    """Return `MINIJAX_CACHE_DIR`, or `minijax` in the user's cache folder.

    A relative XDG_CACHE_HOME is ignored, as its specification says. OSError without a home.
    """
    given = os.environ.get("MINIJAX_CACHE_DIR") or os.environ.get("MINIJAX_COMPILATION_CACHE_DIR")
    if given:
        return resolved(given)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.path.expanduser("~") if os.environ.get("HOME") != "" else ""
        if not os.path.isabs(home) or not os.path.isdir(home):
            raise OSError(f"the user has no home folder ({home!r})")
        base = os.path.join(home, ".cache")
    return resolved(os.path.join(base, "minijax"))


@cache
def _machine() -> bytes:
    """Return what a host program depends on besides the module: the processor, and XLA's own flags."""
    flags = [os.environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")]
    own = plugins.library_identity(library_path)
    parts = [_FORMAT, platform.machine(), jaxlib_version_text, repr(own), *flags]
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
    """The name of a program: a digest of module, devices, options, machine and libraries."""
    digest = sha256(_machine())
    client = devices[0].client
    about = (
        client.platform, client.platform_version, plugins.identities.get(client),
        [(d.id, d.device_kind) for d in devices],
    )  # fmt: skip
    for part in (repr(about).encode(), options.SerializeAsString(), text.encode()):
        digest.update(b"%d\n" % len(part))
        digest.update(part)
    return digest.hexdigest()


def timed(seconds: float, content: bytes) -> bytes:
    """An executable as a payload, with the time that it took to compile."""
    return _SECONDS.pack(seconds) + content


def timed_content(payload: bytes) -> tuple[float, bytes]:
    """The time and the executable of a payload."""
    return _SECONDS.unpack_from(payload)[0], payload[_SECONDS.size :]


# -- the folder ------------------------------------------------------------------------------------


def _folder_name() -> str:
    """A name for each user, so that users may name one folder, such as that of temporary files."""
    return f"minijax-programs-{os.getuid() if hasattr(os, 'getuid') else 0}"


class DiskCache:
    """Programs in a private folder within `parent`, of at most `max_size` bytes in all.

    A negative `max_size` is no limit. Those that were used longest ago go first. OSError if the
    folder cannot be made, or others may write to it.
    """

    def __init__(self, parent: str | os.PathLike, max_size: int):
        self.parent = resolved(parent)
        self.folder = self.parent / _folder_name()
        self.max_size = max_size
        self._lock = threading.Lock()
        self._swept = self._warned = False
        self._open()

    def _open(self) -> None:
        self._handle = open_private(self.parent, self.folder.name)
        self._close = weakref.finalize(self, os.close, self._handle)

    def get(self, key: str) -> bytes | None:
        """The program of this key; None if there is none, or if it is not to be trusted."""
        name = _file_name(key)
        try:
            handle = open_file(name, os.O_RDONLY, self._handle)
        except Untrusted as error:
            self.warn(f"A file in the cache of compiled programs is not used: {error}.")
            return None
        except OSError:
            return None
        with os.fdopen(handle, "rb") as file:
            try:
                content = file.read()
            except OSError:
                return None
            start = len(_MAGIC) + _DIGEST_SIZE
            payload = content[start:]
            if content[:start] == _MAGIC + _seal(key, payload):
                with suppress(OSError):  # a folder that is only read
                    os.utime(file.fileno())
                return payload
        self.drop(key)
        warnings.warn(
            f"A compiled program in the cache was damaged and has been removed: "
            f"{self.folder / name}. It is compiled anew. To do without the cache, set "
            "MINIJAX_ENABLE_COMPILATION_CACHE=0.",
            stacklevel=3,
        )
        return None

    def put(self, key: str, payload: bytes) -> None:
        """Keep a program, unless it alone is above the limit. OSError if it cannot be written.

        It is written aside and renamed, so that no reader sees a part of it.
        """
        content = _MAGIC + _seal(key, payload) + payload
        if 0 <= self.max_size < len(content):
            return
        with self._lock:
            if os.fstat(self._handle).st_nlink == 0:  # the user removed the folder
                old = self._close
                self._open()
                old()
            if not self._swept:
                self._swept = True
                self._sweep()
            new = f"{_NEW}{os.getpid()}-{os.urandom(8).hex()}"
            try:
                handle = open_file(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._handle)
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                self._place(new, _file_name(key), len(content))
            except BaseException:
                self._remove(new)
                raise

    def drop(self, key: str) -> None:
        """Remove the program of this key."""
        self._remove(_file_name(key))

    def evict(self) -> int:
        """Hold the limit: remove the programs used longest ago; the bytes that are left.

        Of many, an eighth of the limit is freed at once, since each time all files are looked at.
        """
        entries = sorted((i.st_mtime_ns, i.st_size, name) for name, i in self._files(_SUFFIX))
        total = sum(size for _, size, _ in entries)
        if self.max_size < 0 or total <= self.max_size:
            return total
        spare = self.max_size // 8 if len(entries) > _MANY else 0
        for _, size, name in entries:
            if total <= self.max_size - spare:
                break
            self._remove(name)
            total -= size
        return total

    def warn(self, text: str) -> None:
        """Warn, once for this folder: another such thing would be no news."""
        if not self._warned:
            self._warned = True
            warnings.warn(f"{text} (folder: {self.folder})", stacklevel=4)

    # -- counting ----------------------------------------------------------------------------------

    def _place(self, new: str, name: str, size: int) -> None:
        """Give a file that was written its name, and see that the limit holds."""
        if self.max_size < 0:
            os.replace(new, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)
            return
        with self._counting() as counter:
            total = counter.read() if counter else None
            if counter:
                counter.write(None)  # whoever is killed before the end leaves no total
            try:
                size -= os.stat(name, dir_fd=self._handle, follow_symlinks=False).st_size
            except OSError:
                pass
            os.replace(new, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)
            if total is None or total + size > self.max_size:
                total = self.evict()
            else:
                total += size
            if counter:
                counter.write(total)

    @contextmanager
    def _counting(self):
        """The file with the total, locked; None if it cannot be: then all files are counted."""
        try:
            import fcntl

            handle = open_file(_TOTAL, os.O_RDWR | os.O_CREAT, self._handle)
        except (ImportError, OSError):
            yield None
            return
        with os.fdopen(handle, "r+b", buffering=0) as file:
            limit = time.monotonic() + _PATIENCE
            locked = False
            while not locked:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    locked = True
                except BlockingIOError:
                    if time.monotonic() > limit:
                        break
                    time.sleep(0.002)
                except OSError:
                    break
            if not locked:
                with suppress(OSError):
                    _Counter(file).write(None)
            yield _Counter(file) if locked else None

    def _sweep(self) -> None:
        """Remove the files in the making whose writers were killed."""
        for name, info in self._files(prefix=_NEW):
            if time.time() - info.st_mtime > _STALE:
                self._remove(name)

    def _files(self, suffix: str = "", prefix: str = "") -> list[tuple[str, os.stat_result]]:
        found = []
        with os.scandir(self._handle) as entries:
            for entry in entries:
                if entry.name.startswith(prefix) and entry.name.endswith(suffix):
                    with suppress(OSError):  # another process removed it
                        if entry.is_file(follow_symlinks=False):
                            found.append((entry.name, entry.stat(follow_symlinks=False)))
        return found

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(name, dir_fd=self._handle)


class _Counter:
    """The bytes of all programs in a folder, as text in a file; blanks while one is added.

    It is written over, in one width: file systems take 1 ms to truncate a file.
    """

    def __init__(self, file: Any):
        self.file = file

    def read(self) -> int | None:
        text = os.pread(self.file.fileno(), 32, 0)
        if re.fullmatch(rb"[0-9]{1,20}\n", text):
            return int(text)
        os.ftruncate(self.file.fileno(), 0)  # whatever else is there
        return None

    def write(self, total: int | None) -> None:
        os.pwrite(self.file.fileno(), b" " * 21 if total is None else b"%020d\n" % total, 0)


def _seal(key: str, payload: bytes) -> bytes:
    digest = sha256(b"%s\n" % key.encode("utf-8", "surrogatepass"))
    digest.update(payload)
    return digest.digest()


def _file_name(key: str) -> str:
    """A key as the name of a file; a digest of it if it could name another place."""
    if not re.fullmatch(_SAFE_KEY, key):
        key = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return key + _SUFFIX


# -- settings --------------------------------------------------------------------------------------

_caches: dict[tuple, DiskCache | None] = {}


def disk_cache() -> DiskCache | None:
    """The cache that the settings ask for; None if it is off or cannot be used."""
    settings = local.context.settings
    if not settings.enable_compilation_cache or settings.compilation_cache_max_size == 0:
        return None
    key = (settings.compilation_cache_dir, settings.compilation_cache_max_size)
    try:
        return _caches[key]
    except KeyError:
        pass
    try:
        found = DiskCache(key[0] or default_folder(), key[1])
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


def cacheable(client: Any) -> bool:
    """Whether it is known which library compiles for a client, so that its programs may be kept."""
    return client.platform_version == "cpu" or plugins.identities.get(client) is not None


def reset_cache() -> None:
    """Forget which folders are in use; the next compilation looks at the settings anew."""
    _caches.clear()
