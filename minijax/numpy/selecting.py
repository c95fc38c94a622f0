"""`where`, and what all functions that choose by a mask build on."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.avals import get_aval
from minijax.features.library import library
from minijax.lax.compare import select_n_p
from minijax.numpy.logic import truth
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    promote_dtypes,
    to_array,
)

__all__ = ["choose_where", "where_arrays"]


def choose_where(condition: Any, x: Any, y: Any) -> Any:
    """Elements of `x` where the boolean array `condition` is true, else of `y`."""
    x, y = promote_dtypes(x, y)
    shapes = np.shape(condition), np.shape(x), np.shape(y)
    shape = shapes[0] if shapes[0] == shapes[1] == shapes[2] else broadcast_shapes(*shapes)
    if shapes[0] and shapes[0] != shape:
        condition = broadcast_to_shape(condition, shape)
    return select_n_p.bind(condition, _spread(y, shape), _spread(x, shape))


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    if np.shape(x) == shape and hasattr(x, "aval"):
        return x
    aval = get_aval(x)
    if not shape:
        return to_array("where", x)
    del aval
    return broadcast_to_shape(x, shape)


@library
def where_arrays(condition, x, y, /):
    """The three-argument form of `where`."""
    check_arraylike("where", condition, x, y)
    return choose_where(truth(condition), x, y)
