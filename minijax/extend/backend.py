"""`minijax.extend.backend`: the platforms and their clients."""

from __future__ import annotations

import weakref
from typing import Any

from minijax.arrays.dispatch import clear_programs
from minijax.core.caches import also_cleared
from minijax.namespace import own_names, shown
from minijax.runtime import executables, platforms
from minijax.runtime.platforms import backend as get_backend
from minijax.runtime.platforms import backends
from minijax.runtime.platforms import default_device as get_default_device
from minijax.runtime.plugins import register_backend_factory
from minijax.runtime.versions import ifrt_proxy

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache",
    "get_backend", "get_compile_options", "get_default_device", "ifrt_proxy",
    "register_backend_cache", "register_backend_factory",
]  # fmt: skip


def backend_xla_version(platform: Any = None) -> int | None:
    """The version of the compiler of a platform, where its plug-in says; else None."""
    return getattr(get_backend(platform), "xla_version", None)


_caches: weakref.WeakSet[Any] = weakref.WeakSet()


def _clear_caches() -> None:
    for cache in list(_caches):
        cache.cache_clear()


also_cleared.append(_clear_caches)


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Have `cache.cache_clear()` called by `clear_backends` and `clear_caches`, while it lives.

    `for_what` says what it keeps.
    """
    _caches.add(cache)


def clear_backends() -> None:
    """Forget all clients, and the caches that were registered: the next use starts anew."""
    platforms.clear_backends()
    _clear_caches()


def get_compile_options(
    num_replicas: int, num_partitions: int, device_assignment: Any = None,
    env_options_overrides: dict[str, str] | None = None, fdo_profile: bytes | None = None,
    detailed_logging: bool = True, backend: Any = None,
) -> Any:  # fmt: skip
    """XLA's compile options for so many replicas and partitions, as the settings ask.

    `device_assignment` has the numbers of the devices, a row a replica. ValueError if its shape is
    not (num_replicas, num_partitions).
    """
    return executables.bare_options(
        num_replicas, num_partitions, device_assignment, env_options_overrides, fdo_profile
    )


def clear_in_memory_compilation_cache() -> None:
    """Forget the compiled programs of single operations."""
    clear_programs()


own_names(__name__)
__dir__ = shown(__name__)
