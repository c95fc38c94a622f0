"""`minijax.extend.backend`: the platforms and their clients. May import `runtime`."""

from __future__ import annotations

from typing import Any

from minijax.arrays.dispatch import clear_programs
from minijax.runtime.platforms import backend as get_backend
from minijax.runtime.platforms import backends, clear_backends
from minijax.runtime.platforms import default_device as get_default_device

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache",
    "get_backend", "get_default_device",
]  # fmt: skip


def backend_xla_version(platform: Any = None) -> int | None:
    """The version of the compiler of a platform, where its plug-in says; else None."""
    return getattr(get_backend(platform), "xla_version", None)


def clear_in_memory_compilation_cache() -> None:
    """Forget the compiled programs of single operations."""
    clear_programs()
