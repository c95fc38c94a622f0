"""`take`, `put` and their kin: elements at places along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.features.library import library
from minijax.lax import indexing
from minijax.lax.compare import clamp_p
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import counted
from minijax.lax.index_numbers import GatherDimensionNumbers, GatherScatterMode
from minijax.lax.shapes import (
    broadcast_in_dim,
    broadcast_shapes,
    canonical_axis,
    expand_dims,
    reshape,
    squeeze,
    tile,
)
from minijax.lax.slicing import slice_in_dim
from minijax.numpy.division import remainder
from minijax.numpy.index_plans import Options, warn_of_loss, wrapped, write
from minijax.numpy.index_terms import parse
from minijax.numpy.promotion import check_arraylike, check_no_out, to_array
from minijax.numpy.ufuncs import minimum
from minijax.transforms.primitives import full_like_aval
from minijax.typing import ArrayLike

__all__ = ["put", "put_along_axis", "take", "take_along_axis"]

_MODES = (None, "fill", "clip", "wrap")


def _places(name: str, indices: Any) -> Any:
    """Places as an array of integers of at least 32 bits."""
    indices = to_array(name, indices, 1)
    dtype = indices.dtype
    if dtypes.is_extended(dtype):
        raise TypeError(
            f"less does not accept dtypes {dtype.name}, int32. Indices of {name} are integers; they are of "
            f"{dtype.name}, random keys."
        )
    if dtype == dtypes.bool_ or (
        dtypes.issubdtype(dtype, np.integer) and dtypes.bit_width(dtype) < 32
    ):
        return convert_element_type(indices, np.int32)
    return indices


def _zeros(x: Any, shape: tuple[int, ...]) -> Any:
    return full_like_aval(0, ShapedArray(shape, x.dtype, x.weak_type))


# -- take ----------------------------------------------------------------------------------------


@library(
    static=("axis", "out", "mode", "unique_indices", "indices_are_sorted", "fill_value"),
    converted=("axis",),
)
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Take elements of an array along an axis.

    - `a`: array of any shape; `indices`: integer array of any shape.
    - `axis`: an int, or None to flatten `a` first.
    - `mode`: for indices out of range: "fill" (the default), "clip" to the nearest, or "wrap".
      Negative indices count from the end in "fill".
    - `fill_value`: by default NaN, the least signed or greatest unsigned integer, or True.
    - `unique_indices`, `indices_are_sorted`: promises that may make it faster.

    Returns an array with the shape of `indices` in place of the axis. NotImplementedError for the
    mode "raise", ValueError for others. Source: NumPy's `take`.

    >>> jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0]))
    Array([30, 10], dtype=int32)
    """
    check_no_out("take", out)
    check_arraylike("take", a, indices)
    if mode == "raise":
        raise NotImplementedError(
            "The 'raise' mode to jnp.take is not supported. A compiled program cannot raise: use "
            "'fill', 'clip' or 'wrap'."
        )
    if mode not in _MODES:
        raise ValueError(f"Invalid mode {mode!r} for np.take: it is one of {_MODES}.")
    x, places = to_array("take", a), _places("take", indices)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis = canonical_axis(axis, x.ndim)
    size, count = x.shape[axis], places.ndim
    shape = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
    if not size and places.size:
        raise IndexError(
            f"Cannot do a non-empty jnp.take() from an empty axis: axis {axis} of shape {x.shape}."
        )
    if not size or not places.size:
        return _zeros(x, shape)
    chosen = GatherScatterMode.FILL_OR_DROP
    if mode == "clip":
        chosen = GatherScatterMode.CLIP
    elif mode == "wrap":
        chosen = GatherScatterMode.PROMISE_IN_BOUNDS
        places = remainder(places, places.dtype.type(size))
    else:
        places = wrapped(places, size)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple([d for d in range(len(shape)) if not axis <= d < axis + count]),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    return indexing.gather(
        x,
        expand_dims(places, (count,)),
        numbers,
        (*x.shape[:axis], 1, *x.shape[axis + 1 :]),
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        mode=chosen,
        fill_value=fill_value,
    )


@library(static=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Take elements along an axis, with separate indices for each vector along it.

    - `arr`: array; `indices`: integer array that broadcasts with `arr` except along `axis`.
    - `axis`: an int, -1 by default; None takes from the flattened `arr` with a vector of indices.
    - `mode`: for indices out of range: "fill" (the default), "clip", or "promise_in_bounds".
    - `fill_value`: by default NaN, the least signed or greatest unsigned integer, or True.
    - `wrap_negative_indices`: negative indices count from the end; by default unless promised.

    Returns an array of the dtype of `arr`. TypeError for inexact indices, ValueError if shapes do
    not fit. Source: NumPy's `take_along_axis`.

    >>> jnp.take_along_axis(jnp.array([[1, 2], [3, 4]]), jnp.array([[1], [0]]), axis=1)
    Array([[2],
           [3]], dtype=int32)
    """
    check_arraylike("take_along_axis", arr, indices)
    dtype = get_aval(indices).dtype
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(
            f"take_along_axis indices must be of integer type, got {dtype.name}: convert them with "
            ".astype(int)."
        )
    chosen = GatherScatterMode.from_any(mode)
    if wrap_negative_indices is None:
        wrap_negative_indices = chosen is not GatherScatterMode.PROMISE_IN_BOUNDS
    if fill_value is not None and fill_value != fill_value:
        fill_value = np.nan
    x, places = to_array("take_along_axis", arr), _places("take_along_axis", indices)
    if axis is None:
        if places.ndim != 1:
            raise ValueError(
                f"take_along_axis indices must be 1D if axis=None, got shape {places.shape}."
            )
        x, axis = reshape(x, (x.size,)), 0
    if x.ndim != places.ndim:
        raise ValueError(
            "indices and arr must have the same number of dimensions; "
            f"{places.ndim} vs. {x.ndim}: insert axes of size 1."
        )
    axis = canonical_axis(axis, x.ndim)
    size = x.shape[axis]
    rows = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    shape = list(broadcast_shapes(places.shape, rows))
    shape[axis] = places.shape[axis]
    if not size or 0 in shape:
        return _zeros(x, tuple(shape))
    if wrap_negative_indices:
        places = wrapped(places, size)
    x, vectors, numbers, sizes = _rows_with_rows(x, places, axis)
    return indexing.gather(x, vectors, numbers, sizes, mode=chosen, fill_value=fill_value)


def _rows_with_rows(x: Any, places: Any, axis: int) -> tuple:
    """The gather of places along an axis: the other axes of both go together, where they can."""
    alone = [d for d, size in enumerate(x.shape) if d != axis and size == 1]
    whole = [d for d, size in enumerate(places.shape) if d != axis and size == 1 and d not in alone]
    paired = [d for d in range(x.ndim) if d != axis and d not in alone and d not in whole]
    in_x = {d: i for i, d in enumerate([d for d in range(x.ndim) if d not in alone])}
    in_places = {d: i for i, d in enumerate([d for d in range(x.ndim) if d not in whole])}
    shape = tuple([n for d, n in enumerate(places.shape) if d not in whole])
    sizes = tuple([n if d in whole else 1 for d, n in enumerate(x.shape) if d not in alone])
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(whole),
        collapsed_slice_dims=(in_x[axis],),
        start_index_map=(in_x[axis],),
        operand_batching_dims=tuple([in_x[d] for d in paired]),
        start_indices_batching_dims=tuple([in_places[d] for d in paired]),
    )
    vectors = reshape(places, (*shape, 1))
    return squeeze(x, alone), vectors, numbers, sizes


# -- put -----------------------------------------------------------------------------------------


def _not_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. "
            "Pass inplace=False to instead return an updated array."
        )


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Return a copy of an array with values at positions of its flattened form.

    - `a`: array of any shape; `ind`: integer array of positions in `a.ravel()`.
    - `v`: array whose elements are put in order, and repeated as needed.
    - `mode`: for positions out of range: None or "clip" for the nearest one ("clip" also for
      negative ones), "wrap" around.
    - `inplace`: must be False, since arrays are immutable.

    Returns an array of the shape and dtype of `a`. ValueError unless `inplace` is False or for an
    unknown mode, NotImplementedError for the mode "raise", TypeError if `ind` is not integer.
    Source: NumPy's `put`.

    >>> jnp.put(jnp.array([1, 2, 3]), jnp.array([0, 2]), jnp.array([7, 9]), inplace=False)
    Array([7, 2, 9], dtype=int32)
    """
    _not_in_place("put", inplace)
    check_arraylike("put", a, ind, v)
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported. Use 'clip'.")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}.")
    return _put(a, ind, v, mode)


@library(static=("mode",))
def _put(a, ind, v, mode):
    x, places, values = to_array("put", a), to_array("put", ind, 1), to_array("put", v, 2)
    if not (x.size and places.size and values.size):
        return x
    warn_of_loss(x, values)
    if not dtypes.issubdtype(places.dtype, np.integer):
        raise TypeError(f"put: ind must have integer type, got {places.aval.str_short()}.")
    places = reshape(_places("put", places), (places.size,))
    values = reshape(values, (values.size,))
    if values.size < places.size:
        values = tile(values, (-(-places.size // values.size),))
    values = slice_in_dim(values, 0, places.size)
    kind = places.dtype.type
    if mode == "clip":
        places = clamp_p.bind(kind(0), places, kind(x.size - 1))
    elif mode == "wrap":
        places = remainder(places, kind(x.size))
    flat = reshape(x, (x.size,))
    index = parse(places, flat.shape)
    out = write(indexing.scatter, flat, index, values, Options(mode="clip"))
    return reshape(out, x.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Return a copy of an array with values put along an axis, by separate indices for each vector.

    - `arr`: array; `indices`: integer array of as many dimensions, which broadcasts except along
      `axis`.
    - `values`: array that broadcasts to `indices`; `axis`: an int, or None to flatten `arr`.
    - `mode`: indices out of range are dropped, or moved to the nearest one by "clip".
    - `inplace`: must be False, since arrays are immutable.

    Returns an array of the shape and dtype of `arr`. ValueError unless `inplace` is False or if the
    numbers of dimensions differ. Source: NumPy's `put_along_axis`.

    >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[1], [0]]), 5, axis=1, inplace=False)
    Array([[0., 5.],
           [5., 0.]], dtype=float32)
    """
    _not_in_place("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    return _put_along_axis(arr, indices, values, axis, mode)


@library(static=("axis", "mode"))
def _put_along_axis(arr, indices, values, axis, mode):
    x, places = to_array("put_along_axis", arr), to_array("put_along_axis", indices, 1)
    values = to_array("put_along_axis", values, 2)
    warn_of_loss(x, values)
    shape = x.shape
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    if x.ndim != places.ndim:
        raise ValueError(
            "put_along_axis arguments 'arr' and 'indices' must have same ndim. Got "
            f"arr.ndim={x.ndim} and indices.ndim={places.ndim}."
        )
    axis = canonical_axis(axis, x.ndim)
    index: list[Any] = [
        counted(size).reshape([-1 if d == other else 1 for d in range(x.ndim)])
        for other, size in enumerate(x.shape)
    ]
    index[axis] = places
    full = broadcast_shapes(*[np.shape(part) for part in index])
    if broadcast_shapes(values.shape, places.shape) != places.shape:
        raise ValueError(
            "put_along_axis argument 'values' must be broadcastable to 'indices'. Got "
            f"values.shape={values.shape} and indices.shape={places.shape}."
        )
    values = broadcast_in_dim(values, full, range(len(full) - values.ndim, len(full)))
    out = write(indexing.scatter, x, parse(tuple(index), x.shape), values, Options(mode=mode))
    return reshape(out, shape)


def take_or_last(a: Any, places: Any, axis: int = 0) -> Any:
    """Return the elements at places that are not negative: beyond the end, the last.

    The places are limited before the elements are read, unlike by the mode "clip", so that
    `checkify` finds none out of bounds.
    """
    return take(a, minimum(places, a.aval.shape[axis] - 1), axis=axis, mode="clip")
