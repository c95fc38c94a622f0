"""`minijax.flatten_util`: a pytree of arrays as one vector."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.promotion import check_arraylike
from minijax.tracebacks import public

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """The leaves of a pytree, flattened and joined, and the function that undoes it.

    The vector has the dtype that the leaves' dtypes promote to; a tree without leaves gives an
    empty one. The inverse restores shapes and dtypes; it raises ValueError for a vector of another
    shape, and TypeError for one of another dtype unless all leaves have the same.
    """
    leaves, tree = tree_util.flatten(pytree)
    if not leaves:
        return jnp.zeros(0), lambda vector: tree.unflatten([])
    leaves = [jnp.asarray(x) if not isinstance(x, Array) else x for x in leaves]
    shapes = [x.shape for x in leaves]
    own = [x.dtype for x in leaves]  # that of a number too: it is not weak here
    joint = dtypes.result_type(*own) if len(set(own)) > 1 else own[0]
    uniform = all(dtype == joint for dtype in own)
    flat_leaves = [jnp.ravel(x) for x in leaves]
    vector = jnp.concatenate(flat_leaves if uniform else [x.astype(joint) for x in flat_leaves])
    return vector, _Unravel(tree, tuple(shapes), tuple(own), joint)


@dataclasses.dataclass(frozen=True)
class _Unravel:
    """The function from a vector to a tree; equal for trees of one structure, shapes and dtypes."""

    tree: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]
    joint: Any

    def __call__(self, flat: Any) -> Any:
        sizes = [math.prod(shape) for shape in self.shapes]
        check_arraylike("unravel", flat)
        flat = jnp.asarray(flat)
        uniform = all(dtype == self.joint for dtype in self.dtypes)
        if not uniform and flat.dtype != self.joint:
            raise TypeError(
                f"unravel function given array of dtype {flat.dtype}, but expected dtype "
                f"{self.joint}"
            )
        if flat.shape != (sum(sizes),):
            raise ValueError(
                f"unravel function given array of shape {flat.shape}, but expected shape "
                f"{(sum(sizes),)}"
            )
        pieces = jnp.split(flat, np.cumsum(sizes)[:-1].tolist())
        parts = [part.reshape(shape) for part, shape in zip(pieces, self.shapes, strict=True)]
        if not uniform:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # complex to real, by intent
                parts = [part.astype(d) for part, d in zip(parts, self.dtypes, strict=True)]
        return self.tree.unflatten(parts)


__dir__ = public(__name__)
