"""`repeat`, which needs sums and indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_index, needs_value
from minijax.config import local
from minijax.core.array import Array
from minijax.core.trace import Tracer
from minijax.features.library import library
from minijax.features.queries import is_dim, is_negative
from minijax.features.sharding.explicit import split_as
from minijax.features.sharding.sharding_rules import parts_of
from minijax.features.sharding.types import explicit_of
from minijax.lax import slicing
from minijax.lax.joining import concatenate_p
from minijax.numpy.cumulative import cumsum
from minijax.numpy.promotion import axis_of, broadcast_to_shape, check_arraylike, to_array
from minijax.numpy.shapes import broadcast_to, ravel, reshaped
from minijax.numpy.sorting import searchsorted
from minijax.numpy.taking import take_or_last
from minijax.runtime.mesh import PartitionSpec
from minijax.runtime.named_sharding import NamedSharding, out_sharding_of
from minijax.transforms.primitives import to_shape
from minijax.typing import ArrayLike

__all__ = ["repeat"]


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Repeat each element of an array.

    - `a`: array of any shape and dtype.
    - `repeats`: nonnegative integer, or an array with one for each element along the axis.
    - `axis`: an int, or None to flatten `a` first.
    - `total_repeat_length`: size of the result along the axis, needed if `repeats` is traced. More
      elements are left out; missing ones repeat the last element.
    - `out_sharding`: sharding of the result.

    Returns an array of the dtype of `a`. TypeError for repeats that are negative or no integers,
    ValueError if their number does not fit. Source: NumPy's `repeat`.

    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([3, 1]))
    Array([1, 1, 1, 2], dtype=int32)
    """
    out_sharding_of(out_sharding, "repeat")  # whether it is one, before anything else
    if isinstance(repeats, float):
        raise TypeError(
            "broadcast_in_dim shape must have every element be an integer type, got "
            f"{type(repeats)}: repeat takes integers as repeats, not {repeats}."
        )
    plain = one = isinstance(repeats, (int, np.integer)) or is_dim(repeats)
    if not one:
        check_arraylike("repeat", a, repeats)
    if total_repeat_length is not None and total_repeat_length < 0:
        raise TypeError(
            "broadcast_in_dim shape must have every element be nonnegative, got "
            f"total_repeat_length={total_repeat_length} in repeat."
        )
    if isinstance(repeats, Tracer) and total_repeat_length is None:
        if repeats.concrete() is None:
            raise _needs_length(repeats)
        repeats = repeats.concrete()
    if total_repeat_length is None and not one:
        known = np.asarray(repeats)
        if known.size:
            _check_integers(known)
        if known.size == 1:
            repeats, one = int(known.reshape(())), True
        else:
            total_repeat_length = int(known.sum())
    free = plain and total_repeat_length is None and local.context.mesh is None
    if out_sharding is None and isinstance(a, Array) and explicit_of(a.aval) and not free:
        parts = parts_of((ravel(a) if axis is None else a).aval)
        if parts[0 if axis is None else axis_of(axis, a.aval.ndim)]:
            raise ValueError(
                "Please pass sharding to `jnp.repeat` via `out_sharding` parameter: it repeats along "
                f"an axis of {a.aval.str_short()} that is split over a mesh."
            )
    if one:
        repeats = repeats if is_dim(repeats) else int(repeats)
        out = _repeat_each(a, repeats, axis, total_repeat_length)
    else:
        out = _repeat_by(a, repeats, axis, total_repeat_length)
    return split_as(out, out_sharding, "repeat")


def _check_integers(repeats: Any) -> None:
    if repeats.dtype.kind not in "iub":
        raise TypeError(
            f"repeat takes integers as repeats, got an array of dtype {repeats.dtype}: convert it "
            "with .astype(int)."
        )


def _needs_length(repeats: Any) -> Exception:
    return needs_value(
        repeats,
        "When jit-compiling jnp.repeat, the total number of repeats must be static. To fix this, "
        "either specify a static value for `repeats`, or pass a static value to "
        "`total_repeat_length`.",
    )


def _along(name: str, a: Any, axis: Any) -> tuple[Any, int]:
    """The array and the axis to repeat along; a scalar counts as one element, whatever the axis."""
    a = to_array(name, a)
    if axis is None or not a.aval.ndim:
        return ravel(a), 0
    return a, axis_of(known_index(axis, "'axis' argument of jnp.repeat()"), a.aval.ndim)


@library(static=("repeats", "axis", "total"), converted=("axis",))
def _repeat_each(a, repeats, axis, total):
    a, axis = _along("repeat", a, axis)
    sizes = a.aval.shape
    if is_negative(repeats):
        raise TypeError(
            "broadcast_in_dim shape must have every element be nonnegative, got "
            f"{(*sizes[: axis + 1], repeats, *sizes[axis + 1 :])}. repeat takes nonnegative repeats."
        )
    longer = (*sizes[: axis + 1], repeats, *sizes[axis + 1 :])
    kept = tuple([i for i in range(len(longer)) if i != axis + 1])
    out = to_shape(a, longer, kept)
    out = reshaped(out, (*sizes[:axis], sizes[axis] * repeats, *sizes[axis + 1 :]))
    if total is None or total == out.aval.shape[axis] or not sizes[axis]:
        return out
    if total < out.aval.shape[axis]:
        return slicing.slice_in_dim(out, 0, total, axis=axis)
    return _extended(out, axis, total)


def _extended(x: Any, axis: int, total: int) -> Any:
    """The last slice along an axis repeated up to a length."""
    length = x.aval.shape[axis]
    last = slicing.slice_in_dim(x, length - 1, length, axis=axis)
    sizes = list(x.aval.shape)
    sizes[axis] = total - length
    return concatenate_p.bind(x, broadcast_to_shape(last, tuple(sizes)), dimension=axis)


@library(static=("axis", "total"), converted=("axis",))
def _repeat_by(a, repeats, axis, total):
    a, axis = _along("repeat", a, axis)
    length = a.aval.shape[axis]
    repeats = ravel(to_array("repeat", repeats))
    if repeats.size not in (1, length):
        raise ValueError(
            f"Incompatible shapes for broadcasting: repeats has shape {repeats.shape} for "
            f"{length} elements: give one number, or one for each."
        )
    if not length:  # nothing that could fill the rest
        return a
    _check_integers(repeats)
    ends = cumsum(broadcast_to(repeats, (length,)))
    places = searchsorted(ends, np.arange(total, dtype=dtypes.int_()), side="right")
    return take_or_last(a, places, axis)
