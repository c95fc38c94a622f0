"""Forgetting what is cached, and the arrays that are alive."""

from __future__ import annotations

from collections.abc import Callable

from minijax.arrays import array, dispatch
from minijax.arrays.array import ArrayImpl, Signature
from minijax.core.array import Array
from minijax.core.primitive import all_primitives
from minijax.runtime import buffers, platforms
from minijax.transforms.jit import clear_jit_caches
from minijax.transforms.library import clear_library_caches

__all__ = ["also_cleared", "clear_caches", "live_arrays"]

also_cleared: list[Callable[[], None]] = []  # what the layers above keep; they add it here


def clear_caches() -> None:
    """Forget every traced and compiled program.

    The next calls trace and compile anew.
    Source: the caches of `jit` and of operations.

    >>> jax.clear_caches()
    """
    clear_jit_caches()
    clear_library_caches()
    dispatch.clear_programs()
    array.clear_scalars()
    for primitive in all_primitives.values():
        if primitive._avals is not None:
            primitive._avals.clear()
    for forget in also_cleared:
        forget()


def live_arrays(platform: str | None = None) -> list[Array]:
    """Return the arrays that are alive on a platform.

    - `platform`: name of a platform, by default the preferred one

    The result is a list of arrays with the shape, dtype and sharding of the buffers: keys are
    arrays of uint32. Those that another library made are left out. RuntimeError for an unknown
    platform.
    Source: PJRT's list of live buffers.

    >>> x = jnp.ones(3)
    >>> any(array.shape == (3,) for array in jax.live_arrays())
    True
    """
    kept = platforms.backend(platform).live_arrays()
    return [
        ArrayImpl(buffer, Signature(*buffers.described(buffer)))
        for buffer in kept
        if not buffer.is_deleted() and buffers.is_ours(buffer)
    ]
