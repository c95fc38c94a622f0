"""`minijax.scipy.ndimage`: values between the elements of an array."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.features.library import library
from minijax.numpy.promotion import check_arraylike, check_ranks
from minijax.tracebacks import public
from minijax.typing import ArrayLike

__all__ = ["map_coordinates"]


def _reflected(place: Any, size: int) -> Any:
    """Turned back between elements beyond the ends."""
    place = jnp.mod(place, 2 * size)
    return jnp.minimum(place, 2 * size - 1 - place)


def _mirrored(place: Any, size: int) -> Any:
    """Turned back at the elements at the ends."""
    period = max(2 * (size - 1), 1)
    place = jnp.mod(place, period)
    return jnp.minimum(place, period - place) if size > 1 else 0 * place


_PLACES = {
    "constant": lambda place, size: place,
    "nearest": lambda place, size: jnp.clip(place, 0, size - 1),
    "wrap": lambda place, size: jnp.mod(place, size),
    "mirror": _mirrored,
    "reflect": _reflected,
}


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Interpolate an array at coordinates between its elements.

    - `input`: array
    - `coordinates`: for each axis, an array of positions; all of one shape
    - `order`: 0 for the nearest element, 1 for linear interpolation
    - `mode`: outside: "constant" (`cval`), "nearest", "wrap", "mirror" or "reflect"
    - `cval`: value outside

    The result has the shape of a coordinate array and the dtype of `input`. NotImplementedError for
    another order or mode, ValueError for another number of coordinates.
    Source: SciPy's `ndimage.map_coordinates` with "grid-wrap" and "grid-constant".

    >>> jax.scipy.ndimage.map_coordinates(jnp.array([0.0, 10.0]), [jnp.array([0.5])], order=1)
    Array([5.], dtype=float32)
    """
    places = [jnp.asarray(c) for c in coordinates]
    input = jnp.asarray(input) if isinstance(input, (list, tuple)) else input
    check_arraylike("map_coordinates", input)
    if len(places) != np.ndim(input):
        raise ValueError(
            "coordinates must be a sequence of length input.ndim, but "
            f"{len(places)} != {np.ndim(input)}"
        )
    if mode not in _PLACES:
        raise NotImplementedError(
            "jax.scipy.ndimage.map_coordinates does not yet support mode "
            f"{mode}. Currently supported modes are {set(_PLACES)}."
        )
    if order not in (0, 1):
        raise NotImplementedError(
            f"jax.scipy.ndimage.map_coordinates currently requires order<=1; got order={order!r}."
        )
    check_ranks("map_coordinates", *places)
    if cval is None:
        raise ValueError(
            "None is not a valid value for jnp.array: give map_coordinates a number as cval."
        )
    if not isinstance(cval, Array):  # NumPy refuses numbers that the dtype has not
        cval = np.asarray(cval, dtypes.dtype(input))
    return _map_coordinates(input, places, cval, order, mode)


@library(static=("order", "mode"), whole=True)
def _map_coordinates(input, places, cval, order, mode):
    input = jnp.asarray(input)
    cval = jnp.asarray(cval).astype(input.dtype)
    corners = [_corners(place, order) for place in places]
    total = 0
    for corner in itertools.product(*corners):
        index, inside, weight = [], True, 1
        for (place, part), size in zip(corner, input.shape, strict=True):
            if mode == "constant":
                inside = inside & (place >= 0) & (place < size)
            index.append(_PLACES[mode](place, size))
            weight = weight * part
        values = input.at[tuple(index)].get(mode="clip") if index else input
        if mode == "constant" and index:
            values = jnp.where(inside, values, cval)
        total = total + (values if order == 0 else weight * values)
    of_floats = dtypes.issubdtype(dtypes.dtype(total), np.floating)
    if dtypes.issubdtype(input.dtype, np.integer) and of_floats:
        total = lax.round(total)  # halves away from zero
    return jnp.asarray(total).astype(input.dtype)


def _corners(place: Any, order: int) -> list[tuple[Any, Any]]:
    """The elements next to places, and their parts of the value."""
    if order == 0:
        if dtypes.issubdtype(place.dtype, np.integer):
            return [(place, 1)]
        return [(lax.round(place).astype(np.int32), 1)]  # halves away from zero
    below = jnp.floor(place)
    upper = place - below
    index = below.astype(np.int32)
    return [(index, 1 - upper), (index + 1, upper)]


__dir__ = public(__name__)
