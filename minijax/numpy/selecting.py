"""`where`, and what all functions that choose by a mask build on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.features.library import library
from minijax.features.sharding.explicit import split_as
from minijax.features.sharding.sharding_rules import common_sharding
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
        where = common_sharding(shape, condition, x, y)
        condition = _spread(condition, shape, where) if np.ndim(condition) else condition
        x, y = _spread(x, shape, where), _spread(y, shape, where)
    return select_n_p.bind(condition, _spread(y, shape), _spread(x, shape))


def split_alike(arrays: Sequence[Any]) -> list[Any]:
    """Arrays that have dimensions, broadcast and split as all are together; as given if none is split."""
    shape = broadcast_shapes(*map(np.shape, arrays))
    where = common_sharding(shape, *arrays)
    if where is None:
        return list(arrays)
    return [_spread(x, shape, where) if np.ndim(x) else x for x in arrays]


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
