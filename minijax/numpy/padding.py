"""`pad`, in all of NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.values import known_index
from minijax.core.array import Array
from minijax.errors import TracerArrayConversionError
from minijax.features.library import library
from minijax.features.queries import is_dim, is_negative
from minijax.lax import slicing
from minijax.lax.joining import concatenate_p
from minijax.numpy import reductions, ufuncs
from minijax.numpy.creation import asarray
from minijax.numpy.promotion import (
    broadcast_to_shape,
    check_arraylike,
    converted,
    to_array,
    weakened,
)
from minijax.numpy.ranges import (
    _linspace,
)
from minijax.numpy.shapes import flip
from minijax.numpy.statistics import median
from minijax.numpy.vectorizing import apply_along_axis
from minijax.typing import ArrayLike

__all__ = ["pad"]

_KEYWORDS: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "edge": (),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "wrap": (),
    "empty": (),
}


def pad(
    array: ArrayLike,
    pad_width: ArrayLike | Sequence[Any],
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """Pad an array along its axes.

    - `array`: array of any shape and dtype.
    - `pad_width`: an int, a pair (before, after), or a pair for each axis.
    - `mode`: "constant" (the default, with `constant_values`, 0), "edge", "linear_ramp"
      (`end_values`), "maximum", "mean", "median", "minimum" (`stat_length`), "reflect", "symmetric"
      (`reflect_type`), "wrap", "empty"; or a function that fills a vector.

    Returns an array of the dtype of `array`. NotImplementedError for an unknown mode, ValueError
    for negative widths, TypeError if they are no integers. Source: NumPy's `pad`.

    >>> jnp.pad(jnp.array([1, 2]), (1, 2), constant_values=9)
    Array([9, 1, 2, 9, 9], dtype=int32)
    """
    check_arraylike("pad", array)
    if hasattr(array, "__jax_array__"):
        array = array.__jax_array__()
    rank = np.ndim(array)
    widths = _widths(pad_width, rank)
    if callable(mode):
        return _pad_by_function(array, widths, mode, kwargs)
    if mode not in _KEYWORDS:
        raise NotImplementedError(
            f"Unimplemented padding mode '{mode}' for np.pad. Give one of {sorted(_KEYWORDS)}."
        )
    unknown = set(kwargs) - set(_KEYWORDS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    stat_length = kwargs.get("stat_length")
    if stat_length is not None:
        lengths = _pairs(stat_length, rank, "stat_length")
        stat_length = tuple([tuple([int(n) for n in pair]) for pair in lengths])
        if any(n < 1 for pair in stat_length for n in pair):
            raise ValueError(f"stat_length of 0 yields no value for padding: got {stat_length}.")
    values = kwargs.get("constant_values", kwargs.get("end_values", 0))
    if isinstance(values, (list, tuple)):
        values = asarray(values)
    return _pad(array, values, widths, mode, stat_length, kwargs.get("reflect_type", "even"))


def _widths(pad_width: Any, rank: int) -> tuple[tuple[int, int], ...]:
    if isinstance(pad_width, dict):
        out = [(0, 0)] * rank
        for axis, width in pad_width.items():
            out[axis] = (width, width) if isinstance(width, (int, np.integer)) else tuple(width)
        pad_width = out
    try:
        width = np.asarray(pad_width)
    except TracerArrayConversionError:
        for one in tree_util.tree_leaves(pad_width):
            known_index(one, "pad_width argument of jnp.pad")
        raise
    symbolic = width.dtype.kind == "O" and any(map(is_dim, width.flat))
    if not (width.dtype.kind in "iu" or symbolic or (width.size == 0 and rank == 0)):
        raise TypeError(f"`pad_width` must be of integral type. Got {pad_width!r}.")
    pairs = _pairs(pad_width, rank, "pad_width")
    size = lambda n: n if is_dim(n) else int(n)
    out = tuple([(size(before), size(after)) for before, after in pairs])
    if any(is_negative(n) for pair in out for n in pair):
        raise ValueError(f"index can't contain negative values: pad_width is {pad_width}.")
    return out


def _pairs(value: Any, rank: int, name: str) -> list:
    """Return a pair for each axis, of a number, a pair, or pairs."""
    array = np.asarray(value)
    if array.ndim == 0 or array.shape in ((1,), (2,), (1, 2), (rank, 2), (rank, 1)):
        return np.broadcast_to(array, (rank, 2)).tolist()
    raise ValueError(
        f"jnp.pad: {name} with nd={rank} has unsupported shape {array.shape}. Valid shapes are "
        f"({rank}, 2), (1, 2), (2,), (1,), or ()."
    )


@library(static=("widths", "mode", "stat_length", "reflect_type"))
def _pad(array, values, widths, mode, stat_length, reflect_type):
    array = to_array("pad", array)
    if mode == "constant":
        return _pad_constant(array, widths, values)
    if mode == "empty":
        return _pad_constant(array, widths, 0)
    if mode in ("reflect", "symmetric", "wrap", "edge"):
        for axis, size in enumerate(array.aval.shape):
            if not size and any(widths[axis]):
                raise ValueError(f"Cannot apply '{mode}' padding to empty axis")
    if mode == "edge":
        return _each_axis(array, widths, _edge)
    if mode == "wrap":
        return _each_axis(array, widths, _wrap)
    if mode in ("reflect", "symmetric"):
        return _each_axis(
            array,
            widths,
            lambda x, axis, width: _mirror(x, axis, width, mode == "symmetric", reflect_type),
        )
    if mode == "linear_ramp":
        ends = _values_per_axis(array, values)
        return _each_axis(array, widths, lambda x, axis, width: _ramp(x, axis, width, ends[axis]))
    lengths = stat_length or ((None, None),) * array.aval.ndim
    return _each_axis(
        array, widths, lambda x, axis, width: _statistic(x, axis, width, lengths[axis], mode)
    )


def _values_per_axis(array: Any, values: Any) -> list[tuple[Any, Any]]:
    """The value before and after, for each axis."""
    values = to_array("pad", values)
    rank = array.aval.ndim
    spread = broadcast_to_shape(values, (rank, 2)) if values.aval.shape != (rank, 1) else values
    spread = broadcast_to_shape(spread, (rank, 2))
    spread = converted(spread, array.aval.dtype)
    return [(spread[i, 0], spread[i, 1]) for i in range(rank)]


def _pad_constant(array: Any, widths: Any, values: Any) -> Any:
    dtype, weak = array.aval.dtype, array.aval.weak_type
    if np.ndim(values) == 0:
        config = [(before, after, 0) for before, after in widths]
        if dtypes.is_extended(dtype):
            raise TypeError("pad does not take arrays of keys: concatenate them instead.")
        if not array.aval.ndim:
            return array
        out = slicing.pad(array, _scalar(values, dtype), config)
        return weakened(out) if weak else out
    for axis, (low, high) in enumerate(_values_per_axis(array, values)):
        config = [(0, 0, 0)] * array.aval.ndim
        config[axis] = (widths[axis][0], 0, 0)
        array = slicing.pad(array, low, config)
        config[axis] = (0, widths[axis][1], 0)
        array = slicing.pad(array, high, config)
    return weakened(array) if weak else array


def _scalar(value: Any, dtype: Any) -> Any:
    if hasattr(value, "aval"):
        return converted(value, dtype)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)[()]


def _each_axis(array: Any, widths: Any, extend: Callable) -> Any:
    for axis, width in enumerate(widths):
        if any(width):
            array = extend(array, axis, width)
    return array


def _cut(x: Any, start: int, stop: int, axis: int) -> Any:
    return slicing.slice_in_dim(x, start, stop, axis=axis)


def _join(parts: list[Any], axis: int) -> Any:
    kept = [x for x in parts if x is not None and x.aval.shape[axis]]
    return kept[0] if len(kept) == 1 else concatenate_p.bind(*kept, dimension=axis)


def _repeated(x: Any, axis: int, count: int) -> Any:
    """A slice of size one repeated along its axis."""
    sizes = list(x.aval.shape)
    sizes[axis] = count
    return broadcast_to_shape(x, tuple(sizes))


def _edge(x: Any, axis: int, width: tuple[int, int]) -> Any:
    size = x.aval.shape[axis]
    before = _repeated(_cut(x, 0, 1, axis), axis, width[0])
    after = _repeated(_cut(x, size - 1, size, axis), axis, width[1])
    return _join([before, x, after], axis)


def _wrap(x: Any, axis: int, width: tuple[int, int]) -> Any:
    size = x.aval.shape[axis]
    (whole_before, rest_before), (whole_after, rest_after) = (divmod(n, size) for n in width)
    head = _cut(x, size - rest_before, size, axis)
    tail = _cut(x, 0, rest_after, axis)
    return _join([head, *[x] * (whole_before + 1 + whole_after), tail], axis)


def _mirror(x: Any, axis: int, width: tuple[int, int], with_edge: bool, kind: str) -> Any:
    """Reflections at both ends, as often as the width needs; an odd one turns values as well."""
    size = x.aval.shape[axis]
    skip = 0 if with_edge else 1
    if size == 1 and not with_edge:
        return _edge(x, axis, width)
    before, after = width
    base_size = size
    out = x
    while before > 0:
        step = min(before, base_size - skip)
        edge = _cut(out, 0, 1, axis)
        part = flip(_cut(out, skip, skip + step, axis), axis)
        out = _join([_turned(part, edge, kind), out], axis)
        before -= step
        base_size += step
    while after > 0:
        step = min(after, base_size - skip)
        length = out.aval.shape[axis]
        edge = _cut(out, length - 1, length, axis)
        part = flip(_cut(out, length - skip - step, length - skip, axis), axis)
        out = _join([out, _turned(part, edge, kind)], axis)
        after -= step
        base_size += step
    return out


def _turned(part: Any, edge: Any, kind: str) -> Any:
    if kind == "odd":
        return ufuncs.subtract(ufuncs.multiply(2, edge), part)
    if kind != "even":
        raise ValueError(f"reflect_type is 'even' or 'odd'; pad got {kind!r}.")
    return part


def _ramp(x: Any, axis: int, width: tuple[int, int], ends: tuple[Any, Any]) -> Any:
    size = x.aval.shape[axis]
    dtype = x.aval.dtype
    edges = _cut(x, 0, 1, axis), _cut(x, size - 1, size, axis)
    parts = []
    for edge, end, count in zip(edges, ends, width, strict=True):
        sizes = tuple([n for i, n in enumerate(edge.aval.shape) if i != axis])
        from_edge = edge.reshape(sizes)
        ramp = _linspace(end, from_edge, count, False, False, dtype, axis) if count else None
        parts.append(ramp)
    after = None if parts[1] is None else flip(parts[1], axis)
    return _join([parts[0], x, after], axis)


def _statistic(x: Any, axis: int, width: tuple[int, int], lengths: tuple, mode: str) -> Any:
    function: Callable = {
        "maximum": reductions.max,
        "minimum": reductions.min,
        "mean": reductions.mean,
        "median": median,
    }[mode]
    size = x.aval.shape[axis]
    dtype = x.aval.dtype
    before, after = (size if n is None else min(n, size) for n in lengths)
    parts = []
    for part, count in (
        (_cut(x, 0, before, axis), width[0]),
        (_cut(x, size - after, size, axis), width[1]),
    ):
        value = function(part, axis=axis, keepdims=True)
        if dtypes.issubdtype(dtype, np.integer) and mode in ("mean", "median"):
            value = ufuncs.round(value)
        parts.append(_repeated(converted(value, dtype), axis, count))
    return _join([parts[0], x, parts[1]], axis)


def _pad_by_function(array: Any, widths: Any, function: Callable, kwargs: dict) -> Array:
    """NumPy's protocol: the function gets each padded vector, its widths and its axis."""
    padded = _pad(array, 0, widths, "constant", None, "even")
    for axis in range(np.ndim(padded)):
        padded = apply_along_axis(function, axis, padded, widths[axis], axis, kwargs)
    return padded
