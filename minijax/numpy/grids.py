"""Coordinates of grids, and indices as they are written: meshgrid, indices, ix_, mgrid, r_, s_."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_index
from minijax.config import promoting_freely
from minijax.core.array import Array
from minijax.features.library import library
from minijax.lax.shapes import expand_dims
from minijax.numpy.creation import asarray
from minijax.numpy.joining import joined, stack
from minijax.numpy.promotion import (
    as_dtype,
    broadcast_to_shape,
    check_arraylike,
    to_array,
)
from minijax.numpy.ranges import (
    arange,
    iota_range,
    linspace,
)
from minijax.numpy.shapes import broadcast_to, expanded, ravel
from minijax.tracebacks import boundary
from minijax.typing import ArrayLike, DTypeLike

__all__ = ["c_", "index_exp", "indices", "ix_", "meshgrid", "mgrid", "ogrid", "r_", "s_"]


@library(static=("copy", "sparse", "indexing"), converted=("copy", "sparse"))
def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Return coordinate matrices from coordinate vectors.

    - `*xi`: arrays of shapes (n1,), (n2,), ...
    - `indexing`: "xy" (the default) gives shape (n2, n1, ...), "ij" gives (n1, n2, ...).
    - `sparse`: give each result size 1 along all axes but its own.

    Returns a list of arrays, each of its own dtype. ValueError if an argument is not
    one-dimensional, for an unknown `indexing`, or if `copy` is False. Source: NumPy's `meshgrid`.

    >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([5]), indexing="ij")
    [Array([[1],
           [2]], dtype=int32), Array([[5],
           [5]], dtype=int32)]
    """
    check_arraylike("meshgrid", *xi)
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True; leave it out.")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    vectors = [to_array("meshgrid", x) for x in xi]
    if any(x.aval.ndim != 1 for x in vectors):
        raise ValueError("Arguments to jax.numpy.meshgrid must be 1D, got shapes "
                         f"{[x.aval.shape for x in vectors]}.")  # fmt: skip
    count = len(vectors)
    places = list(range(count))
    if indexing == "xy" and count >= 2:
        places[:2] = [1, 0]
    sizes = [0] * count
    for x, place in zip(vectors, places, strict=True):
        sizes[place] = x.aval.shape[0]
    out = []
    for x, place in zip(vectors, places, strict=True):
        grown = expanded(x, [i for i in range(count) if i != place]) if count > 1 else x
        out.append(grown if sparse else broadcast_to_shape(grown, tuple(sizes)))
    return out


@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: Literal[False] = False
) -> Array: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, *, sparse: Literal[True]
) -> tuple[Array, ...]: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]: ...
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """Return the indices of a grid.

    - `dimensions`: sequence of ints, the shape of the grid.
    - `dtype`: dtype of the result, the default integer unless given.
    - `sparse`: return a tuple of arrays of size 1 along all axes but their own.

    Returns an array of shape (len(dimensions), *dimensions). Source: NumPy's `indices`.

    >>> jnp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    sizes = tuple([known_index(size, "dimensions argument of jnp.indices") for size in dimensions])
    found = as_dtype(dtype, "indices") or dtypes.int_()
    parts = [
        broadcast_to_shape(_along(iota_range(None, None, n, found), i, len(sizes)), ())
        if not sizes
        else _along(iota_range(None, None, n, found), i, len(sizes))
        for i, n in enumerate(sizes)
    ]
    if sparse:
        return tuple(parts)
    if not parts:
        return asarray(np.zeros((0,), found))
    return stack([broadcast_to(part, sizes) for part in parts])


def _along(x: Any, axis: int, rank: int) -> Any:
    return expanded(x, [i for i in range(rank) if i != axis]) if rank > 1 else x


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Reshape vectors so that together they index the grid of their values.

    - `*args`: n integer arrays of one dimension.

    Returns a tuple of n arrays of n dimensions; the sizes of each are 1 except along its own axis.
    ValueError if an argument is not one-dimensional, NotImplementedError for boolean ones. Source:
    NumPy's `ix_`.

    >>> [x.shape for x in jnp.ix_(jnp.array([0, 1]), jnp.array([2, 3, 4]))]
    [(2, 1), (1, 3)]
    """
    check_arraylike("ix_", *args)
    out = []
    for place, x in enumerate(args):
        x = to_array("ix_", x)
        if x.ndim != 1:
            raise ValueError(
                f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {x.shape}"
            )
        if x.dtype == dtypes.bool_:
            raise NotImplementedError(
                "Boolean arguments to jax.numpy.ix_ are not implemented: give jnp.nonzero(x)[0]."
            )
        if not x.size:  # as NumPy has it
            x = asarray(np.zeros((0,), dtypes.int_()))
        out.append(expand_dims(x, [i for i in range(len(args)) if i != place]))
    return tuple(out)


def _axis_of_slice(s: slice, name: str) -> Array:
    """The numbers a slice stands for in a grid: with a complex step, that many."""
    start = 0 if s.start is None else s.start
    step = 1 if s.step is None else s.step
    if s.stop is None:
        raise ValueError(f"jnp.{name}: each slice must have a stop; got {s}.")
    if isinstance(step, complex) or (hasattr(step, "dtype") and np.iscomplexobj(step)):
        return linspace(start, s.stop, int(abs(step)))
    return arange(start, s.stop, step)


_Grids = TypeVar("_Grids")


class _Grid(Generic[_Grids]):
    """Make grids of coordinates by slicing: `mgrid` full ones, `ogrid` ones that broadcast.

    Indexed by one slice or a tuple of slices `start:stop:step`, of real numbers; an imaginary step
    counts the points, from start to stop inclusive. `mgrid` returns one array of shape (axes, ...),
    `ogrid` a list of arrays; the dtypes of the slices promote. ValueError if a slice has no stop.
    Source: NumPy's `mgrid` and `ogrid`.

    >>> jnp.mgrid[0:2, 0:3].shape
    (2, 2, 3)
    >>> [x.shape for x in jnp.ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """

    def __init__(self, name: str, sparse: bool) -> None:
        self.name, self._sparse = name, sparse

    @boundary
    @promoting_freely()
    def __getitem__(self, key: Any) -> _Grids:
        return self._made(key)

    def _made(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _axis_of_slice(key, self.name)
        axes = [_axis_of_slice(s, self.name) for s in key]
        dtype = dtypes.lattice_result_type(*axes)[0]
        axes = [asarray(x, dtype=dtype) for x in axes]
        if not axes:
            return [] if self._sparse else asarray(np.zeros((0,), int))
        grids = meshgrid(*axes, indexing="ij", sparse=self._sparse)
        return list(grids) if self._sparse else stack(grids)

    def __repr__(self) -> str:
        return f"<minijax.numpy.{self.name}>"


mgrid: _Grid[Array] = _Grid("mgrid", sparse=False)
ogrid: _Grid[Array | list[Array]] = _Grid("ogrid", sparse=True)


class _AxisJoiner:
    """Join arrays, scalars and slices that are written as an index.

    `r_` joins along the first axis, `c_` along the last after turning vectors into columns. A slice
    stands for `arange`, or for `linspace` if its step is imaginary. A leading string
    "axis,ndim,start" gives the axis, the least number of dimensions and where vectors are placed in
    these. Returns an array of the promoted dtype and of the joined shape. ValueError for other
    strings. Source: NumPy's `r_` and `c_`.

    >>> jnp.r_[1:3, 7, jnp.array([8, 9])]
    Array([1, 2, 7, 8, 9], dtype=int32)
    >>> jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])]
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """

    name: str
    _default: tuple[int, int, int]  # axis, least number of dimensions, place of vectors in these

    @boundary
    def __getitem__(self, key: Any) -> Array:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self._default
        matrix = None
        if items and isinstance(items[0], str):
            text = items.pop(0)
            if text in ("r", "c"):  # vectors become a row, or a column
                matrix = 0 if text == "r" else 1
            else:
                axis, ndmin, trans1d = self._directive(text)
        parts = [self._part(item, ndmin, trans1d) for item in items]
        out = joined(self.name, parts, axis)
        return expanded(out, (matrix,)) if matrix is not None and out.ndim == 1 else out

    def _directive(self, text: str) -> tuple[int, int, int]:
        """The axis, least rank and place of vectors that a leading string asks for."""
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            raise ValueError(
                f"could not understand directive {text!r} in jnp.{self.name}."
            ) from None
        return (*numbers, *self._default[len(numbers) :])  # type: ignore[return-value]

    def _part(self, item: Any, ndmin: int, trans1d: int) -> Any:
        if isinstance(item, slice):
            x = _axis_of_slice(item, self.name)
        else:
            x = asarray(item)
        rank = x.ndim
        x = x if rank else ravel(x)
        missing = ndmin - max(rank, 1 if not rank else rank)
        if missing <= 0:
            return x
        place = trans1d if trans1d >= 0 else trans1d + missing + 1
        place = min(max(place, 0), missing)
        return expanded(x, [i for i in range(ndmin) if not place <= i < place + x.ndim])

    def __repr__(self) -> str:
        return f"<minijax.numpy.{self.name}>"


class RClass(_AxisJoiner):
    name, _default = "r_", (0, 1, -1)
    __doc__ = _AxisJoiner.__doc__


class CClass(_AxisJoiner):
    name, _default = "c_", (-1, 2, 0)
    __doc__ = _AxisJoiner.__doc__


r_ = RClass()
c_ = CClass()


class _IndexExpression:
    """Return an index expression as an object that can index an array of fitting shape later.

    `s_` returns it as it stands, `index_exp` always as a tuple. Source: NumPy's `s_` and
    `index_exp`.

    >>> jnp.arange(5)[jnp.s_[1:3]]
    Array([1, 2], dtype=int32)
    >>> jnp.index_exp[1:3]
    (slice(1, 3, None),)
    """

    def __init__(self, always_tuple: bool) -> None:
        self._always_tuple = always_tuple

    @boundary
    def __getitem__(self, item: Any) -> Any:
        return (item,) if self._always_tuple and not isinstance(item, tuple) else item


s_ = _IndexExpression(False)
index_exp = _IndexExpression(True)
