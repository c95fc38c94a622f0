"""`where`, and what all functions that choose by a mask build on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.avals import get_aval
from minijax.features.library import library
from minijax.features.sharding.explicit import split_as
from minijax.features.sharding.sharding_rules import merge, parts_of
from minijax.features.sharding.types import explicit_of
from minijax.lax.compare import select_n_p
from minijax.numpy.logic import truth
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    promote_dtypes,
    to_array,
)
from minijax.transforms.primitives import to_shape

__all__ = ["choose_where", "split_alike", "where_arrays"]


def choose_where(condition: Any, x: Any, y: Any) -> Any:
    """Elements of `x` where the boolean array `condition` is true, else of `y`."""
    x, y = promote_dtypes(x, y)
    shape = np.shape(condition)
    if not shape == np.shape(x) == np.shape(y):
        shape = broadcast_shapes(shape, np.shape(x), np.shape(y))
        where = _sharding(shape, condition, x, y)
        condition = _spread(condition, shape, where) if np.ndim(condition) else condition
        x, y = _spread(x, shape, where), _spread(y, shape, where)
    return select_n_p.bind(condition, _spread(y, shape), _spread(x, shape))


def split_alike(arrays: Sequence[Any]) -> list[Any]:
    """Arrays that have dimensions, broadcast and split as all are together; as given if none is split."""
    shape = broadcast_shapes(*map(np.shape, arrays))
    where = _sharding(shape, *arrays)
    if where is None:
        return list(arrays)
    return [_spread(x, shape, where) if np.ndim(x) else x for x in arrays]


def _sharding(shape: tuple[int, ...], *arrays: Any) -> Any:
    """The sharding of arrays that are broadcast to a shape together; None if none is split."""
    avals = [get_aval(x) for x in arrays]
    split = [aval for aval in avals if explicit_of(aval) is not None]
    if not split:
        return None
    places = []
    for aval in split:
        new = len(shape) - aval.ndim
        kept = zip(parts_of(aval), aval.shape, shape[new:], strict=True)
        places.append([None] * new + [part if size == n else None for part, size, n in kept])
    where = explicit_of(split[0])
    return where.with_parts(merge("broadcast_shardings", split, places))


def _spread(x: Any, shape: tuple[int, ...], where: Any = None) -> Any:
    lead = len(shape) - np.ndim(x)
    if np.shape(x) != shape:
        return to_shape(x, shape, range(lead, len(shape)), where)
    if not hasattr(x, "aval"):
        x = broadcast_to_shape(x, shape) if shape else to_array("where", x)
    return split_as(x, where)


@library
def where_arrays(condition, x, y, /):
    """The three-argument form of `where`."""
    check_arraylike("where", condition, x, y)
    return choose_where(truth(condition), x, y)
