"""Trends taken out of signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.library import library
from minijax.numpy.promotion import axis_of, promote_one_inexact
from minijax.typing import ArrayLike

__all__ = ["detrend"]


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """Subtract from a signal its mean, or its straight line of least squares.

    - `data`: array; `axis`: axis of the signal
    - `type`: "linear" or "constant"
    - `bp`: positions at which a new line begins
    - `overwrite_data`: must be None

    The result has the shape of `data` and an inexact dtype. ValueError for another type, or
    positions outside of the signal.
    Source: SciPy's `signal.detrend`.

    >>> jax.scipy.signal.detrend(jnp.array([1.0, 3.0]), type="constant")
    Array([-1.,  1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError(
            "overwrite_data argument not implemented. Arrays are immutable: leave it out."
        )
    if type not in ("constant", "linear"):
        raise ValueError(f"Trend type must be 'linear' or 'constant'. Got {type!r}.")
    if isinstance(data, (list, tuple)):
        data = jnp.asarray(data)
    return _detrend(data, axis, type, tuple(np.ravel(bp).tolist()))


@library(static=("axis", "type", "breaks"), converted=("axis",))
def _detrend(data, axis, type, breaks):
    data = promote_one_inexact("detrend", data)
    data = data.astype(data.dtype)
    if type == "constant":
        return data - jnp.mean(data, axis, keepdims=True)
    axis = axis_of(axis, data.ndim)
    size = data.shape[axis]
    places = np.sort(np.unique(np.asarray([0, *breaks, size])))
    if places[0] < 0 or places[-1] > size:
        raise ValueError(
            "Breakpoints must be non-negative and less than length of data along given axis. Got "
            f"{list(breaks)} for {size} elements."
        )
    if not size:
        return data
    parts = [
        _without_line(lax.slice_in_dim(data, start, stop, axis=axis), axis)
        for start, stop in zip(places[:-1].tolist(), places[1:].tolist(), strict=True)
    ]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=axis)


def _without_line(x: Any, axis: int) -> Any:
    """`x` less its projection on constants and on the line, which are orthogonal."""
    size = x.shape[axis]
    x = x - jnp.mean(x, axis=axis, keepdims=True)
    line = np.arange(size) - (size - 1) / 2
    line = line / (np.sqrt(np.sum(line * line)) or 1.0)
    line = line.astype(dtypes.to_real_dtype(x.dtype)).reshape(-1, *[1] * (x.ndim - 1 - axis))
    return x - jnp.sum(x * line, axis=axis, keepdims=True) * line
