"""jaxlib's profiler: sessions, annotations, the server, and profiles of memory."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from typing import Any

from jaxlib import _profile_data, _profiler

from minijax.runtime import platforms

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "TraceMe",
    "get_profiled_instructions_proto", "memory_profile", "register_subprocess", "start", "start_server", "stop", "stop_server",
]  # fmt: skip

ProfileData = _profile_data.ProfileData
ProfileEvent = _profile_data.ProfileEvent
ProfilePlane = _profile_data.ProfilePlane
ProfileOptions = _profiler.ProfileOptions
TraceMe = _profiler.TraceMe

_lock = threading.Lock()
_session: Any = None
_directory: str = ""
_server: Any = None


def start(directory: str, options: Any) -> None:
    """Begin a session whose profile will lie in this directory. RuntimeError if one is under way."""
    global _session, _directory
    with _lock:
        if _session is not None:
            raise RuntimeError(
                "Profile has already been started. Only one profile may be run at a time: call "
                "stop_trace() first."
            )
        platforms.backends()  # a platform's own profiler is known once the platform runs
        _session = _profiler.ProfilerSession(*(() if options is None else (options,)))
        _directory = directory


def stop() -> str:
    """End the session and write its profile; gives the directory. RuntimeError if there is none."""
    global _session
    with _lock:
        if _session is None:
            raise RuntimeError("No profile started: call start_trace(log_dir) first.")
        session, _session = _session, None
        session.stop_and_export(_directory)
        return _directory


def start_server(port: int, requires_backend: bool) -> Any:
    """ValueError if there is a server in this process already."""
    global _server
    if _server is not None:
        raise ValueError("Only one profiler server can be active at a time: call stop_server().")
    if requires_backend:
        platforms.backends()
    _server = _profiler.start_server(port)
    return _server


def stop_server() -> None:
    """ValueError if there is none."""
    global _server
    if _server is None:
        raise ValueError("No active profiler server: call start_server(port) first.")
    _server = None  # it stops when nothing refers to it


def memory_profile(backend: str | None) -> bytes:
    """Return a compressed `pprof` profile of the memory of a platform's devices."""
    profile = platforms.backend(backend).heap_profile()
    return profile if profile[:2] == b"\x1f\x8b" else gzip.compress(profile)


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Profile the process with a server at this port too; gives what ends that."""
    return _profiler.register_subprocess(pid, port)


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """Return how long instructions took, from the profile in a directory
    `.../plugins/profile/<run>/`.

    A serialized message of XLA's, for profile-guided optimization; it has content for GPUs only.
    """
    return _profiler.get_profiled_instructions_proto(tensorboard_dir)
