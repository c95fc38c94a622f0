"""The arrays that are alive."""

from __future__ import annotations

from minijax.arrays.array import ArrayImpl, Signature
from minijax.core.array import Array
from minijax.runtime import buffers, platforms

__all__ = ["live_arrays"]


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
