"""Choosing elements by a condition: where, nonzero, select, choose, piecewise, compress, extract.

Where the number of results depends on values, `size` makes it known: what is missing is filled,
what is too much left out. Without it the condition must be known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_axes, needs_value, sized
from minijax.arrays.array import as_array
from minijax.core.trace import Tracer
from minijax.errors import float0_error
from minijax.features.library import library
from minijax.lax import compare, creation
from minijax.lax.arithmetic import div_p, rem_p
from minijax.lax.joining import concatenate_p
from minijax.numpy.creation import asarray, ones
from minijax.numpy.cumulative import cumsum
from minijax.numpy.indexing import IndexHelper
from minijax.numpy.logic import truth
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    check_dtypes,
    check_no_out,
    check_ranks,
    converted,
    known_size,
    promote_dtypes,
    to_array,
)
from minijax.numpy.selecting import choose_where, split_alike, where_arrays
from minijax.numpy.shapes import along_axis, ravel, reshaped
from minijax.numpy.taking import take, take_or_last
from minijax.typing import Array, ArrayLike

__all__ = [
    "argwhere", "choose", "compress", "extract", "flatnonzero", "mask_indices", "nonzero",
    "piecewise", "select", "where",
]  # fmt: skip


@overload
def where(
    condition: ArrayLike,
    x: None = None,
    y: None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]: ...
@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...
def where(
    condition: Any,
    x: Any = None,
    y: Any = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Choose elements from two arrays by a condition.

    - `condition`: array of truth values; `x`, `y`: arrays. All three broadcast, and the dtypes of
      `x` and `y` promote.
    - `size`, `fill_value`: for the condition alone, where the call is `nonzero(condition)`.

    Returns `x` where the condition is true and `y` elsewhere, of the broadcast shape. TypeError if
    only one of `x` and `y` is given, ValueError if shapes do not broadcast or `size` is given with
    both. Source: NumPy's `where`.

    >>> jnp.where(jnp.array([True, False, True]), jnp.array([1, 2, 3]), 0)
    Array([1, 0, 3], dtype=int32)
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function. Leave them "
            "out of where(condition, x, y)."
        )
    return where_arrays(condition, x, y)


# -- nonzero ----------------------------------------------------------------------------------


def known(x: Any, name: str, remedy: str) -> np.ndarray:
    """The value of an array; ConcretizationTypeError if it is traced."""
    if isinstance(x, Tracer):
        concrete = x.concrete()
        if concrete is None:
            raise needs_value(
                x, remedy, f"The size of the result of jnp.{name} depends on its values."
            )
        x = concrete
    elif getattr(x, "dtype", None) == dtypes.float0:
        raise float0_error(name)
    return np.asarray(x)


_SIZE_IS_STATIC = (
    "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero within JAX "
    "transformations."
)
_GIVE_SIZE = f"{_SIZE_IS_STATIC[:-1]}: give size=."


def nonzero(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]:
    """Return the indices of the nonzero elements.

    - `a`: array of at least one dimension.
    - `size`: length of the results, needed if `a` is traced; further indices are left out.
    - `fill_value`: index that fills missing places, 0 by default; or a tuple with one for each
      axis.

    Returns a tuple of a.ndim integer arrays of shape (size,), in row-major order. ValueError for
    scalars, ConcretizationTypeError if `a` is traced and `size` is None. Source: NumPy's `nonzero`.

    >>> jnp.nonzero(jnp.array([0, 5, 0, 7]))
    (Array([1, 3], dtype=int32),)
    """
    a = to_array("nonzero", a)
    if not a.ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() "
            "instead."
        )
    if isinstance(fill_value, tuple):
        if len(fill_value) != a.ndim:
            raise ValueError(
                f"If fill_value is a tuple, it must have as many entries as the array axes: got "
                f"{len(fill_value)} for shape {a.shape}."
            )
    else:
        if np.ndim(fill_value):
            raise ValueError(
                f"fill_value must be a scalar or a tuple of length {a.ndim}; got {fill_value}"
            )
        fill_value = (0 if fill_value is None else fill_value,) * a.ndim
    if size is None:
        value = known(a, "nonzero", _GIVE_SIZE)
        return tuple([as_array(places.astype(dtypes.int_())) for places in np.nonzero(value)])
    return _nonzero_of_size(a, fill_value, known_size(size, _SIZE_IS_STATIC))


@library(static=("size",))
def _nonzero_of_size(a, fill_value, size):
    mask = truth(a)
    sizes = mask.aval.shape
    dtype = dtypes.int_()
    count = mask.aval.size
    if not size or not count:
        zero = np.zeros((), dtype)[()]
        filled = [promote_dtypes(to_array("nonzero", v), zero)[0] for v in fill_value]
        return tuple([broadcast_to_shape(x, (size,)) for x in filled])
    # How many elements have each rank; of the first few ranks, as many as were asked for. An element
    # is preceded by all that have a rank of no more than its own.
    rank = cumsum(reshaped(mask, (count,)))
    zeros = broadcast_to_shape(np.asarray(0, dtype)[()], (size,))
    counts = IndexHelper(zeros)[rank].add(1, mode="drop", wrap_negative_indices=False)
    found = cumsum(counts)
    missing = compare.ge_p.bind(creation.iota(dtype, size), rank[-1])
    out = []
    stride = count
    for axis_size in sizes:
        stride //= axis_size
        index = found if stride == 1 else div_p.bind(found, converted(stride, dtype))
        if out:
            index = rem_p.bind(index, converted(axis_size, dtype))
        out.append(index)
    chosen = [promote_dtypes(fill, index) for fill, index in zip(fill_value, out, strict=True)]
    return tuple([choose_where(missing, fill, index) for fill, index in chosen])


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the indices of the nonzero elements as rows.

    - `a`: array of any shape.
    - `size`: number of rows, needed if `a` is traced; `fill_value`: as in `nonzero`.

    Returns an integer array of shape (count, a.ndim). ConcretizationTypeError if `a` is traced and
    `size` is None. Source: NumPy's `argwhere`.

    >>> jnp.argwhere(jnp.array([[1, 0], [0, 4]]))
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    a = to_array("argwhere", a)
    if not a.ndim:
        value = known(a, "argwhere", _GIVE_SIZE) if size is None else None
        rows = int(bool(value)) if size is None else size
        return as_array(np.zeros((rows, 0), dtypes.int_()))
    found = nonzero(a, size=size, fill_value=fill_value)
    return _as_columns(list(found))


@library
def _as_columns(parts):
    columns = [reshaped(x, (*x.aval.shape, 1)) for x in parts]
    return concatenate_p.bind(*columns, dimension=1)


def flatnonzero(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array:
    """Return the indices of the nonzero elements of the flattened array.

    - `a`: array of any shape.
    - `size`: length of the result, needed if `a` is traced; `fill_value`: as in `nonzero`.

    Returns an integer array of shape (count,). ConcretizationTypeError if `a` is traced and `size`
    is None. Source: NumPy's `flatnonzero`.

    >>> jnp.flatnonzero(jnp.array([[1, 0], [0, 4]]))
    Array([0, 3], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """Return the indices of an n by n matrix that a masking function keeps.

    - `n`: an int, the size of the matrix.
    - `mask_func`: function such as `triu` or `tril`, called with a matrix of ones and `k`.
    - `k`: second argument of `mask_func`; `size`: length of the results, as in `nonzero`.

    Returns a pair of integer arrays of shape (count,). Source: NumPy's `mask_indices`.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    i, j = nonzero(mask_func(ones((n, n)), k), size=size)
    return i, j


# -- choice among several ---------------------------------------------------------------------


def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array:
    """Choose for each element the first value whose condition is true.

    - `condlist`: non-empty sequence of boolean arrays.
    - `choicelist`: sequence of as many arrays, the values.
    - `default`: value where no condition is true, 0 by default.

    Returns an array of the shape to which all broadcast, of the promoted dtype of the choices and
    the default. ValueError if the lists are empty or differ in length. Source: NumPy's `select`.

    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x > 2], [x - 10, x * 10], default=5)
    Array([-10,   5,   5,  30], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})"
        )
    if not len(condlist):
        raise ValueError("condlist must be non-empty: select needs one condition at least.")
    return _select(list(condlist), list(choicelist), default)


@library
def _select(conditions, choices, default):
    check_arraylike("select", *conditions, *choices, default)
    check_dtypes(*conditions)
    conditions = [truth(to_array("select", condition)) for condition in conditions]
    *choices, out = promote_dtypes(*choices, default)
    *found, out = split_alike([*conditions, *choices, out])
    conditions, choices = found[: len(conditions)], found[len(conditions) :]
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = choose_where(condition, choice, out)
    return to_array("select", out)


def choose(
    a: ArrayLike,
    choices: Array | np.ndarray | Sequence[ArrayLike],
    out: None = None,
    mode: str = "raise",
) -> Array:
    """Build an array by choosing each element from one of several arrays.

    - `a`: integer array, the number of the choice for each element.
    - `choices`: sequence of n arrays, which broadcast with `a`.
    - `mode`: for numbers outside of [0, n): "raise" (the default; `a` must not be traced), "wrap"
      or "clip".

    Returns an array of the broadcast shape, of the promoted dtype of the choices. ValueError if `a`
    is not integer, has numbers out of range in mode "raise", or the mode is unknown;
    ConcretizationTypeError if `a` is traced in mode "raise". Source: NumPy's `choose`.

    >>> jnp.choose(jnp.array([1, 0, 1]), [jnp.array([1, 2, 3]), jnp.array([10, 20, 30])])
    Array([10,  2, 30], dtype=int32)
    """
    check_no_out("choose", out)
    a = to_array("choose", a)
    if not dtypes.issubdtype(a.dtype, np.integer):
        raise ValueError(f"`a` array must be integer typed; choose got {a.aval.str_short()}.")
    choices = list(choices)
    count = len(choices)
    if mode == "raise":
        value = known(a, "choose", "Give mode='wrap' or mode='clip'.")
        if (value < 0).any() or (value >= count).any():
            raise ValueError(f"invalid entry in choice array: there are {count} choices.")
    elif mode not in ("wrap", "clip"):
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    return _choose(a, choices, mode)


@library(static=("mode",))
def _choose(a, choices, mode):
    check_arraylike("choose", *choices)
    count = len(choices)
    if mode == "wrap":
        a = a % count
    elif mode == "clip":
        a = compare.clamp(converted(0, a.aval.dtype), a, converted(count - 1, a.aval.dtype))
    choices = promote_dtypes(*choices)
    shape = broadcast_shapes(a.aval.shape, *[np.shape(x) for x in choices])
    a = broadcast_to_shape(a, shape)
    choices = [broadcast_to_shape(x, shape) for x in choices]
    out = compare.select_n(converted(a, dtypes.int32), *choices)
    return converted(out, out.aval.dtype)


def piecewise(
    x: ArrayLike,
    condlist: Array | Sequence[ArrayLike],
    funclist: list[ArrayLike | Callable[..., Array]],
    *args: Any,
    **kw: Any,
) -> Array:
    """Evaluate a function that is given by cases.

    - `x`: array of any shape.
    - `condlist`: n boolean arrays that broadcast to the shape of `x`.
    - `funclist`: n or n + 1 functions or scalars; the last of n + 1 applies where no condition is
      true.
    - `*args`, `**kw`: further arguments of the functions.

    Returns an array of the shape and dtype of `x`; where several conditions are true, the last one
    counts. ValueError for another number of functions. Source: NumPy's `piecewise`.

    >>> x = jnp.array([-2, 0, 3])
    >>> jnp.piecewise(x, [x < 0, x > 0], [lambda v: -v, lambda v: v * 10])
    Array([ 2,  0, 30], dtype=int32)
    """
    check_arraylike("piecewise", x)
    x = to_array("piecewise", x)
    conditions = [asarray(c) for c in sized("piecewise", condlist)]
    check_ranks("piecewise", x, *conditions)
    count = len(conditions)
    cases = list(funclist)
    if len(cases) == count + 1:
        cases = [cases[-1], *cases[:-1]]
    elif len(cases) == count:
        cases = [0, *cases]
    else:
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected; got "
            f"{len(cases)}"
        )
    outs = [_case(case, x, args, kw) for case in cases]
    return _piecewise(conditions, outs, x.shape)


def _case(case: Any, x: Any, args: tuple, kw: dict) -> Any:
    value = functools.partial(case, *args, **kw)(x) if callable(case) else case
    return converted(to_array("piecewise", value), x.dtype)


@library(static=("shape",))
def _piecewise(conditions, outs, shape):
    rest, *outs = outs
    out = rest
    sizes = [x.aval.shape for x in (*conditions, *outs, out)]
    out = broadcast_to_shape(out, broadcast_shapes(shape, *sizes))
    for condition, value in zip(conditions, outs, strict=True):
        out = choose_where(truth(condition), value, out)
    return out


# -- elements by a mask -----------------------------------------------------------------------


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Select the slices along an axis where a condition is true.

    - `condition`: boolean array of shape (m,) with m at most the length of the axis.
    - `a`: array of any shape; `axis`: an int, or None to flatten `a` first.
    - `size`: number of slices of the result, needed if `condition` is traced; `fill_value` fills
      missing ones.

    Returns an array of the dtype of `a`. ValueError if `condition` is not one-dimensional or has
    true elements beyond the axis; ConcretizationTypeError if it is traced and `size` is None.
    Source: NumPy's `compress`.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    check_no_out("compress", out)
    condition, a = to_array("compress", condition), to_array("compress", a, 1)
    if dtypes.float0 in (condition.dtype, a.dtype):
        # Nothing is true; there are no elements to take.
        condition, plain = [
            np.zeros(x.shape, bool) if x.dtype == dtypes.float0 else x for x in (condition, a)
        ]
        found = compress(condition, plain, axis, size=size, fill_value=fill_value)
        return np.zeros(found.shape, a.dtype) if a.dtype == dtypes.float0 else found
    if condition.ndim != 1:
        raise ValueError(f"condition must be a 1D array; compress got shape {condition.shape}.")
    a, axis = along_axis(a, known_axes(axis))
    length = a.shape[axis]
    if condition.shape[0] > length:
        if size is None and known(condition, "compress", _GIVE_SIZE)[length:].any():
            raise ValueError("condition contains entries that are out of bounds")
        condition = condition[:length]
    if size is None:
        (places,) = nonzero(condition)
        return take(a, places, axis=axis)
    if not 0 < size <= length:
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; got "
            f"size={size} for a.shape[axis]={length}"
        )
    return _compress(condition, a, fill_value, axis, size)


@library(static=("axis", "size"))
def _compress(condition, a, fill_value, axis, size):
    (places,) = _nonzero_of_size(condition, (a.aval.shape[axis],), size)
    beyond = places >= a.aval.shape[axis]
    kept = take_or_last(a, places, axis)
    shape = [1] * a.aval.ndim
    shape[axis] = size
    return choose_where(reshaped(beyond, tuple(shape)), converted(fill_value, a.aval.dtype), kept)


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Select the elements of the flattened array where a condition is true.

    - `condition`: array of truth values; `arr`: array of as many elements.
    - `size`: length of the result, needed if `condition` is traced; `fill_value` fills missing
      places.

    Returns an array of shape (count,) and of the dtype of `arr`. ConcretizationTypeError if
    `condition` is traced and `size` is None. Source: NumPy's `extract`.

    >>> jnp.extract(jnp.array([[1, 0], [0, 1]]), jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)
