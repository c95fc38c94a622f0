"""`minijax.flatten_util`: a pytree of arrays as one vector. May import the floors below."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax import numpy as jnp
from minijax.core.array import Array

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
    own = [x.dtype for x in leaves]
    joint = dtypes.result_type(*leaves) if len(set(own)) > 1 else own[0]
    total = sum(x.size for x in leaves)
    bounds = np.cumsum([x.size for x in leaves])[:-1].tolist()
    uniform = all(dtype == joint for dtype in own)
    flat_leaves = [jnp.ravel(x) for x in leaves]
    vector = jnp.concatenate(flat_leaves if uniform else [x.astype(joint) for x in flat_leaves])

    def unravel(flat: Any) -> Any:
        if np.shape(flat) != (total,):
            raise ValueError(
                f"unravel function given array of shape {np.shape(flat)}, but expected shape "
                f"{(total,)}"
            )
        given = dtypes.dtype(flat) if not hasattr(flat, "dtype") else flat.dtype
        if not uniform and given != joint:
            raise TypeError(
                f"unravel function given array of dtype {given}, but expected dtype {joint}"
            )
        parts = [part.reshape(s) for part, s in zip(jnp.split(flat, bounds), shapes, strict=True)]
        if not uniform:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # complex to real, by intent
                parts = [part.astype(dtype) for part, dtype in zip(parts, own, strict=True)]
        return tree.unflatten(parts)

    return vector, unravel
