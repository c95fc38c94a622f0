"""Forgetting what is cached. May import the floors below and `transforms`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.arrays import array, dispatch
from minijax.core.primitive import all_primitives
from minijax.runtime import platforms
from minijax.transforms.jit import clear_jit_caches
from minijax.transforms.library import clear_library_caches

__all__ = ["also_cleared", "clear_caches", "live_arrays"]

also_cleared: list[Callable[[], None]] = []  # what the floors above keep; they add it here


def clear_caches() -> None:
    """Forget every traced and compiled program: the next calls trace and compile anew."""
    clear_jit_caches()
    clear_library_caches()
    dispatch.clear_programs()
    array.clear_scalars()
    for primitive in all_primitives.values():
        if primitive._avals is not None:
            primitive._avals.clear()
    for forget in also_cleared:
        forget()


def live_arrays(platform: str | None = None) -> list[Any]:
    """The buffers that are alive on a platform, as jaxlib's arrays."""
    return platforms.backend(platform).live_arrays()
