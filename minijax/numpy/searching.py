"""Choosing elements by a condition: where, nonzero, select, choose, piecewise, compress, extract.

May import the floors below, `reductions`, `cumulative`, `shapes` and indexing. Where the number of
results depends on values, `size` makes it known: what is missing is filled, what is too much left
out. Without it the condition must be known.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arrays.array import as_array
from minijax.core.array import Array
from minijax.core.trace import Tracer, unknown_value
from minijax.errors import ConcretizationTypeError
from minijax.lax import compare, filling
from minijax.lax.arithmetic import div_p, rem_p
from minijax.lax.joining import concatenate_p
from minijax.numpy.creation import asarray, ones
from minijax.numpy.cumulative import cumsum
from minijax.numpy.indexing import IndexHelper
from minijax.numpy.logic import truth
from minijax.numpy.promotion import (
    axis_of,
    broadcast_shapes,
    broadcast_to_shape,
    check_arraylike,
    check_no_out,
    converted,
    promote_dtypes,
    to_array,
)
from minijax.numpy.selecting import choose_where, where_arrays
from minijax.numpy.shapes import ravel, reshaped
from minijax.numpy.taking import take
from minijax.transforms.library import library

__all__ = [
    "argwhere", "choose", "compress", "extract", "flatnonzero", "mask_indices", "nonzero",
    "piecewise", "select", "where",
]  # fmt: skip


def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None,
    fill_value: Any = None,
) -> Any:  # fmt: skip
    """Elements of `x` where `condition` is true, else of `y`; all broadcast. Source: numpy.where.

    With the condition alone, the same as `nonzero`.
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function: leave them "
            "out of where(condition, x, y)."
        )
    return where_arrays(condition, x, y)


# -- nonzero ----------------------------------------------------------------------------------


def known(x: Any, name: str, remedy: str) -> np.ndarray:
    """The value of an array; ConcretizationTypeError if it is traced."""
    if isinstance(x, Tracer):
        concrete = x.concrete()
        if concrete is None:
            raise ConcretizationTypeError(
                f"{unknown_value(x)} The values of {x!r} are traced, and the size of the result of "
                f"jnp.{name} depends "
                f"on them. {remedy} {x.origin()}"
            )
        x = concrete
    return np.asarray(x)


_GIVE_SIZE = (
    "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero within JAX "
    "transformations: give size=."
)


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, one array for each axis. Source: numpy.nonzero.

    `size`: how many are given; `fill_value` (0, or one for each axis) stands for what is missing.
    """
    a = to_array("nonzero", a)
    if not a.ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() "
            "instead."
        )
    if size is None:
        value = known(a, "nonzero", _GIVE_SIZE)
        return tuple([as_array(places.astype(dtypes.int_())) for places in np.nonzero(value)])
    if isinstance(fill_value, (tuple, list)):
        fill_value = tuple(fill_value)
        if len(fill_value) != a.ndim:
            raise ValueError(
                f"If fill_value is a tuple, it must have as many entries as the array axes: got "
                f"{len(fill_value)} for shape {a.shape}."
            )
    else:
        fill_value = (0 if fill_value is None else fill_value,) * a.ndim
    if (size := operator.index(size)) < 0:
        raise TypeError(
            f"broadcast_in_dim shape must have every element be nonnegative, got {size}."
        )
    return _nonzero_of_size(a, fill_value, size)


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
    missing = compare.ge_p.bind(filling.iota(dtype, size), rank[-1])
    out = []
    stride = count
    for axis_size in sizes:
        stride //= axis_size
        index = found if stride == 1 else div_p.bind(found, np.asarray(stride, dtype)[()])
        if out:
            index = rem_p.bind(index, np.asarray(axis_size, dtype)[()])
        out.append(index)
    chosen = [promote_dtypes(fill, index) for fill, index in zip(fill_value, out, strict=True)]
    return tuple([choose_where(missing, fill, index) for fill, index in chosen])


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements that are not zero, as rows. Source: numpy.argwhere."""
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


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of nonzero elements of the flattened array. Source: numpy.flatnonzero."""
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def mask_indices(
    n: int, mask_func: Callable, k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Where `mask_func`, such as `triu`, leaves ones in an n by n matrix. Source: numpy.mask_indices."""
    i, j = nonzero(mask_func(ones((n, n)), k), size=size)
    return i, j


# -- choice among several ---------------------------------------------------------------------


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """For each element the first choice whose condition is true, or `default`. Source: numpy.select."""
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
    *choices, default = promote_dtypes(*choices, default)
    out = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = choose_where(truth(to_array("select", condition)), choice, out)
    return to_array("select", out)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """For each element of `a` the element of the choice that it names. Source: numpy.choose.

    `mode`: "raise" (a must be known), "wrap" or "clip" for numbers that name none.
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


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """A function given by cases: the last condition that is true decides. Source: numpy.piecewise.

    Each case is a number or a function; one more than there are conditions is for the rest.
    """
    check_arraylike("piecewise", x)
    x = to_array("piecewise", x)
    conditions = _stacked_conditions(condlist)
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


def _stacked_conditions(condlist: Any) -> list[Any]:
    return [asarray(c) for c in condlist]


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
    condition: Any,
    a: Any,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Array:
    """The slices along an axis for which `condition` is true. Source: numpy.compress."""
    check_no_out("compress", out)
    condition, a = to_array("compress", condition), to_array("compress", a, 1)
    if condition.ndim != 1:
        raise ValueError(f"condition must be a 1D array; compress got shape {condition.shape}.")
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of(axis, a.ndim)
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
    kept = take(a, places, axis=axis, mode="clip")
    shape = [1] * a.aval.ndim
    shape[axis] = size
    return choose_where(reshaped(beyond, tuple(shape)), converted(fill_value, a.aval.dtype), kept)


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Array:
    """The elements of the flattened array where `condition` is true. Source: numpy.extract."""
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)
