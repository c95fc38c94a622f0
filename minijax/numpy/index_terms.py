"""The terms between the brackets of `x[...]`: one for each axis.

A term is a tuple that begins with its kind:

- `(NEW,)`: a new axis
- `(INT, value, known, given)`: one place on an axis. `known`: it counts from the front; `given`: as
  it was written, perhaps from the end
- `(SLICE, start, count, step, limit)`: places on an axis; `start` and `limit` are the first and past
  the last in the order of memory, even if `step` runs against it
- `(ARRAY, value, known)`: places given by an array

A `Slice` whose start is traced, or that ends outside, has an array for `start` and `OPEN` for
`limit`.

The ellipsis is written out, and boolean masks have become the places where they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as as_index
from typing import Any

import numpy as np

from minijax import dtypes, errors
from minijax.arrays.array import ArrayImpl, as_array
from minijax.core.array import Array
from minijax.core.trace import Tracer
from minijax.features.queries import is_dim, max_dim, min_dim
from minijax.lax.joining import stack
from minijax.numpy.dynamic_slices import Slice

__all__ = ["ARRAY", "INT", "NEW", "OPEN", "SLICE", "Terms", "check_reach", "check_static", "parse"]

NEW, INT, SLICE, ARRAY = "new", "int", "slice", "array"
OPEN = "open"


class Terms:
    """An index that was taken apart: its terms, the shape they are for, and where axes of size 1
    must be put into the array first (for the masks True and False).
    """

    __slots__ = ("expanded", "shape", "terms")

    def __init__(self, terms: list[tuple], shape: tuple[int, ...], expanded: tuple[int, ...] = ()):
        self.terms = terms
        self.shape = shape
        self.expanded = expanded


def parse(idx: Any, shape: tuple[int, ...], wrap: bool = True) -> Terms:
    """The terms of an index into an array of this shape.

    `wrap`: places below zero count from the end. IndexError for too many or impossible terms,
    TypeError for those of a wrong type, NonConcreteBooleanIndexError for a mask that is traced.
    """
    kind = type(idx)
    if kind is not tuple:
        if shape:  # one index for the first axis: the most common ones need no more
            term = None
            if kind is slice:
                term = _slice(idx, shape[0], 0)
            elif kind is int:
                term = _int(idx, shape[0], wrap)
                if shape[0] == 0:
                    _check_elements([term], shape)
            elif kind is ArrayImpl and idx.aval.dtype in _INTEGERS and idx.aval.ndim:
                term = (ARRAY, idx, not wrap)
            if term is not None:
                return Terms([term, *_whole(shape)[1:]], shape)
        idx = _sequence(idx) if isinstance(idx, (list, tuple, range, bytes, bytearray)) else (idx,)
    items = [_item(item, place) for place, item in enumerate(idx)]
    return _terms(items, shape, wrap)


def _terms(items: list, shape: tuple[int, ...], wrap: bool) -> Terms:
    """A term for each item; a mask has one for each of its axes."""
    terms: list[tuple] = []
    expanded: list[int] = []
    unnamed = _unnamed(items, shape)
    axis = 0
    sizes = shape
    for position, item in enumerate(items):
        kind = type(item)
        if item is None:
            terms.append((NEW,))
        elif kind is slice:
            terms.append(_slice(item, sizes[axis], position))
            axis += 1
        elif kind is Slice:
            terms.append(_computed_slice(item, sizes[axis], position))
            axis += 1
        elif item is Ellipsis:
            terms.extend(_whole(sizes[axis : axis + unnamed]))
            axis += unnamed
        elif kind is int:
            terms.append(_int(item, sizes[axis], wrap))
            axis += 1
        elif item.dtype == dtypes.bool_:
            if not item.ndim:
                expanded.append(axis)
                sizes = (*sizes[:axis], 1, *sizes[axis:])
            places = _where(item, sizes, axis, position)
            terms.extend([(ARRAY, place, True) for place in places])
            axis += len(places)
        elif item.ndim:
            terms.append((ARRAY, *_array(item, sizes[axis], wrap)))
            axis += 1
        else:
            terms.append((INT, item, not wrap, item))
            axis += 1
    if axis < len(sizes):
        terms.extend(_whole(sizes[axis:]))
    if 0 in sizes:
        _check_elements(terms, sizes)
    return Terms(terms, sizes, tuple(expanded))


_INTEGERS = frozenset(
    np.dtype(name + str(bits)) for name in ("int", "uint") for bits in (8, 16, 32, 64)
)
_wholes: dict[tuple[int, ...], list[tuple]] = {}


def _whole(shape: tuple[int, ...]) -> list[tuple]:
    """The terms of an index that names all of an array."""
    found = _wholes.get(shape)
    if found is None:
        found = _wholes[shape] = [(SLICE, 0, size, 1, size) for size in shape]
    return found


def _sequence(idx: Sequence) -> tuple:
    if isinstance(idx, tuple):  # a named tuple
        return tuple(idx)
    raise TypeError(
        f"Using a non-tuple sequence for multidimensional indexing is not allowed; use "
        f"`arr[array(seq)]` instead of `arr[seq]`. See "
        f"https://github.com/jax-ml/jax/issues/4564 for more information. Got {idx!r}; for several "
        "axes give a tuple."
    )


def _item(item: Any, position: int) -> Any:
    """None, Ellipsis, a slice, an int, or an array of integers or booleans."""
    kind = type(item)
    if kind is int or kind is slice or kind is Slice or item is None or item is Ellipsis:
        return item
    if kind is ArrayImpl and item.aval.dtype in _INTEGERS:
        return item
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(item)
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, str):
        raise TypeError(
            f"JAX does not support string indexing; got idx={item!r}: index by position."
        )
    if isinstance(item, (list, tuple)):
        item = _of_list(item)
    elif hasattr(item, "__jax_array__") and not isinstance(item, Array):
        item = item.__jax_array__()
    if isinstance(item, (Array, np.ndarray, float, complex, np.generic)):
        dtype = dtypes.dtype(item)
        if dtype == dtypes.bool_ or dtypes.issubdtype(dtype, np.integer):
            if type(item) is np.ndarray and not item.ndim and dtype != dtypes.bool_:
                return int(item)
            return item
        raise TypeError(
            "Indexer must have integer or boolean type, got indexer with type "
            f"{dtype.name} at position {position}, indexer value {item}: convert it "
            "with .astype(int)."
        )
    if hasattr(item, "__index__") and not isinstance(item, type):
        return as_index(item)
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean "
        f"arrays are valid indices. Got {item!r} at position {position}."
    )


def _of_list(items: Sequence) -> Any:
    """A list within an index as an array; an empty one indexes nothing."""
    if not any(isinstance(item, Tracer) for item in items):
        array = np.asarray(items)
        return array.astype(np.int32) if not array.size and array.dtype.kind == "f" else array
    return stack([item if isinstance(item, Array) else as_array(item) for item in items])


def _unnamed(items: list, shape: tuple[int, ...]) -> int:
    """The number of axes that no item names: those of the ellipsis, or the last ones."""
    count = dots = 0
    for item in items:
        if item is Ellipsis:
            dots += 1
        elif isinstance(item, (Array, np.ndarray)) and item.dtype == dtypes.bool_:
            count += item.ndim
        elif item is not None:
            count += 1
    if dots > 1:
        raise IndexError(
            "an index can only have a single ellipsis ('...'): write ':' for the other axes."
        )
    missing = len(shape) - count
    if missing < 0:
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {count} were indexed; its "
            f"shape is {shape}. Give one index an axis."
        )
    return missing


def _slice(item: slice, size: int, position: int) -> tuple:
    first, last, by = item.start, item.stop, item.step
    if first is last is by is None:
        return SLICE, 0, size, 1, size
    for part in (first, last, by):
        if part is not None and type(part) is not int and isinstance(part, Tracer):
            raise IndexError(
                f"Slice entries must be static integers. Got {item} at position {position}, with "
                f"the traced {part!r}. To slice at a place that is computed, use "
                "minijax.lax.dynamic_slice_in_dim, whose size is static."
            )
    try:
        start, stop, step = item.indices(size)
    except TypeError:
        if any(map(is_dim, (size, first, last, by))):
            return _symbolic_slice(item, size)
        for part in (first, last, by):
            if part is not None:
                as_index(part)  # names the type that it refuses
        raise
    count = stop - start if step == 1 else len(range(start, stop, step))
    if count <= 0:
        start = min(max(start, 0), size)
        return SLICE, start, 0, 1, start
    if step < 0:
        return SLICE, start + (count - 1) * step, count, step, start + 1
    return SLICE, start, count, step, stop


def _symbolic_slice(item: slice, size: Any) -> tuple:
    """A slice of an axis whose size, or between places that, depend on dimension variables."""
    step = 1 if item.step is None else as_index(item.step)
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def place(given: Any, default: Any) -> Any:
        if given is None:
            return default
        return max_dim(low, given + size) if given < 0 else min_dim(high, given)

    start, stop = (
        place(item.start, low if step > 0 else high),
        place(item.stop, high if step > 0 else low),
    )
    span, by = (stop - start, step) if step > 0 else (start - stop, -step)
    count = max_dim(0, span if by == 1 else (span + by - 1) // by)
    if step < 0:
        return SLICE, start + (count - 1) * step, count, step, start + 1
    return SLICE, start, count, step, start + count if step == 1 else stop


def _computed_slice(item: Slice, size: int, position: int) -> tuple:
    """A window of a given size; one that is not known to lie within the array stays open."""
    start, step = item.start, item.stride
    if isinstance(item.size, Tracer):
        raise IndexError(
            f"the size of a slice must be static; got the traced {item.size!r} at position "
            f"{position}: pass it as a Python integer."
        )
    count = as_index(item.size)
    if count < 0 or (count > size and step == 1):
        raise TypeError(
            f"the size of a slice must be from 0 to {size}, the size of its axis; got {count} at "
            f"position {position}."
        )
    if isinstance(start, Array):
        if start.ndim or not dtypes.issubdtype(start.dtype, np.integer):
            raise TypeError(
                "the start of a slice must be an integer scalar; got "
                f"{start.aval.str_short()} at position {position}."
            )
        return SLICE, start, count, step, OPEN
    start = as_index(start)
    if start >= 0 and start + max(count - 1, 0) * step < size:
        return SLICE, start, count, step, start + max(count - 1, 0) * step + (count > 0)
    return SLICE, as_array(np.int32(start)), count, step, OPEN


def _check_elements(terms: Sequence[tuple], sizes: Sequence[int]) -> None:
    """IndexError for one element of an axis that has none; arrays of places may be empty themselves."""
    places = [term for term in terms if term[0] is not NEW]
    if any(term[0] is ARRAY for term in places):
        return
    for axis, (term, size) in enumerate(zip(places, sizes, strict=False)):
        if term[0] is INT and size == 0:
            given = "" if isinstance(term[-1], Tracer) else f": no element {term[-1]} exists"
            raise IndexError(f"index is out of bounds for axis {axis} with size 0{given}.")


def _int(place: int, size: int, wrap: bool) -> tuple:
    return INT, place + size if wrap and place < 0 else place, True, place


def check_reach(terms: Sequence[tuple]) -> None:
    """OverflowError for a number to read at that the default integers cannot hold."""
    kind = dtypes.int_()
    least, most = _LIMITS[kind]
    for term in terms:
        if term[0] is INT and type(term[3]) is int and not least <= term[3] <= most:
            raise OverflowError(
                f"Python int {term[3]} too large to convert to {kind.name}: no axis is that long; "
                "give an index within the array."
            )


def check_static(terms: Sequence[tuple], shape: tuple[int, ...]) -> None:
    """IndexError for a known integer that names no element."""
    places = [term for term in terms if term[0] is not NEW]
    for axis, (term, size) in enumerate(zip(places, shape, strict=False)):
        if term[0] is INT and type(term[1]) is int and not 0 <= term[1] < size:
            raise IndexError(
                f"index {term[-1]} out of bounds for axis {axis} with size {size} "
                "(normalize_indices=True)"
            )


def _array(item: Any, size: int, wrap: bool) -> tuple[Any, bool]:
    """An array of places; one of NumPy is known, so it is wrapped at once."""
    if type(item) is not np.ndarray:
        return item, not wrap
    kind = np.dtype(np.int32 if size < 2**31 else np.int64)
    if dtypes.issubdtype(item.dtype, np.unsignedinteger):
        item = np.minimum(item, item.dtype.type(min(size, int(dtypes.iinfo(item.dtype).max))))
    item = item.astype(np.int64)
    if wrap:
        item = np.where(item < 0, item + size, item)
    return np.clip(item, *_LIMITS[kind]).astype(kind), True


_LIMITS = {
    kind: (np.iinfo(kind).min, np.iinfo(kind).max)
    for kind in (np.dtype(np.int32), np.dtype(np.int64))
}


def _where(mask: Any, sizes: Sequence[int], axis: int, position: int) -> tuple[np.ndarray, ...]:
    """The places where a mask holds, for each of its axes."""
    if isinstance(mask, Tracer):
        known = mask.concrete()
        if known is None:
            raise errors.NonConcreteBooleanIndexError(
                f"Array boolean indices must be concrete; got {mask.aval.str_short(True)}\n"
                f"It is at position {position}: the shape of the result would depend on its values.\n"
                f"{mask.origin()}\nUse minijax.numpy.where(mask, x, y), with three arguments, or "
                "compute the mask outside of the traced function."
            )
        mask = known
    if isinstance(mask, ArrayImpl):
        mask = np.asarray(mask)
    if not mask.ndim:
        return (np.zeros((int(mask),), np.int32),)
    found = tuple(sizes[axis : axis + mask.ndim])
    # As in NumPy an axis of a mask may also be empty: it then chooses nothing.
    if len(found) != mask.ndim or any(m not in (s, 0) for m, s in zip(mask.shape, found)):
        raise IndexError(
            f"boolean index did not match shape of indexed array in index {position}: got "
            f"{mask.shape}, expected {list(found)}: a mask has the shape of the axes that it indexes."
        )
    return tuple([places.astype(np.int32) for places in np.nonzero(mask)])
