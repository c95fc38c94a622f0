"""Reading and writing at an index, as programs: slices where they will do, else gather and scatter.

The functions here run in any trace; running one as a single compiled program is the business of
`numpy.indexing`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.hooks import hooks
from minijax.core.staging import JaxprTrace
from minijax.errors import InconclusiveDimensionOperation
from minijax.features.queries import is_dim, max_dim, min_dim
from minijax.features.sharding.sharding_rules import check_distinct, parts_of
from minijax.features.sharding.types import explicit_of
from minijax.lax import indexing
from minijax.lax.arithmetic import add_p, mul_p
from minijax.lax.compare import lt_p, select_n_p
from minijax.lax.convert import to_dtype, to_type, warn_if_complex
from minijax.lax.creation import iota_p
from minijax.lax.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from minijax.lax.index_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from minijax.lax.joining import concatenate_p
from minijax.lax.shapes import broadcast_shapes, expand_dims, rev_p, squeeze_p
from minijax.lax.slicing import slice_p
from minijax.namespace import user_stacklevel
from minijax.numpy.index_terms import ARRAY, INT, NEW, OPEN, SLICE, Terms, check_reach
from minijax.transforms.primitives import full_like_aval, to_shape

__all__ = [
    "Options", "read", "read_window", "warn_of_loss", "wrapped", "write", "write_window",
]  # fmt: skip

_FILL = GatherScatterMode.FILL_OR_DROP


class Options(NamedTuple):
    """Options of `x.at[...].get(...)` and its kin."""

    indices_are_sorted: bool = False
    unique_indices: bool = False
    mode: str | GatherScatterMode | None = None
    fill_value: Any = None
    wrap: bool = True


# -- places --------------------------------------------------------------------------------------


def _index_dtype(shape: Sequence[int]) -> np.dtype:
    """The dtype of index vectors: 32 bits, unless an axis needs more."""
    try:
        return np.dtype(np.int64 if max(shape, default=0) >= 2**31 else np.int32)
    except InconclusiveDimensionOperation:
        return np.dtype(np.int32)


def wrapped(place: Any, size: int) -> Any:
    """Places below zero count from the end of an axis of this size."""
    dtype = dtypes.canonicalize_dtype(get_aval(place).dtype)
    if not dtypes.issubdtype(dtype, np.signedinteger):
        return place
    place = to_dtype(place, dtype)
    if is_dim(size):
        size = to_dtype(size.__jax_array__(), dtype, False)
        return select_n_p.bind(lt_p.bind(place, dtype.type(0)), place, add_p.bind(place, size))
    if size > dtypes.iinfo(dtype).max:
        dtype = np.dtype(np.int32 if size < 2**31 else np.int64)
        place = to_dtype(place, dtype, False)
    kind = dtype.type
    negative = lt_p.bind(place, kind(0))
    return select_n_p.bind(negative, place, add_p.bind(place, kind(size)))


# -- reading by slices ---------------------------------------------------------------------------


def read(x: Any, index: Terms, options: Options) -> Any:
    """`x[index]`."""
    places = [term for term in index.terms if term[0] is not NEW]
    check_reach(places)
    mode = None if options.mode is None else GatherScatterMode.from_any(options.mode)
    if index.expanded or any(term[0] is ARRAY for term in places) or mode is _FILL:
        return _read_by_gather(x, index, options)
    if mode is GatherScatterMode.CLIP:
        places = [_clipped(term, size) for term, size in zip(places, index.shape, strict=True)]
    try:
        within = all(
            type(term[1]) is int and (term[0] is SLICE or 0 <= term[1] < size)
            for term, size in zip(places, index.shape, strict=True)
        )
    except InconclusiveDimensionOperation:
        within = False
    if within:
        return _read_by_slice(x, index.terms, places)
    if any(map(is_dim, index.shape)) and not any(isinstance(term[1], Array) for term in places):
        places = [_clamped(term, size) for term, size in zip(places, index.shape, strict=True)]
        return _read_by_slice(x, index.terms, places)
    if all(term[0] is INT or abs(term[3]) == 1 for term in places):
        return _read_by_dynamic_slice(x, index, places, options.wrap)
    return _read_by_gather(x, index, options)


def _read_by_slice(x: Any, terms: list[tuple], places: list[tuple]) -> Any:
    """All is known and within the array."""
    starts = tuple([term[1] for term in places])
    limits = tuple([term[1] + 1 if term[0] is INT else term[4] for term in places])
    strides = tuple([1 if term[0] is INT else abs(term[3]) for term in places])
    gaps = any(step != 1 for step in strides)
    if not gaps and _runs_alone():
        sizes = tuple(_counts(places))
        if sizes != x.shape:
            x = dynamic_slice_p.bind(x, *starts, slice_sizes=sizes)
    elif any(starts) or limits != x.shape or gaps:
        x = slice_p.bind(
            x,
            start_indices=starts,
            limit_indices=limits,
            strides=strides if gaps else None,
        )
    return _finished(x, terms, places)


def _clipped(term: tuple, size: Any) -> tuple:
    """The term of the nearest element, where it is a known integer out of range."""
    if term[0] is SLICE or type(term[1]) is not int or not isinstance(size, int) or not size:
        return term
    return (term[0], min(max(term[1], 0), size - 1), *term[2:])


def _clamped(term: tuple, size: Any) -> tuple:
    """An integer on an axis whose size is symbolic: the last place, where it is beyond that."""
    if term[0] is SLICE:
        return term
    return (INT, max_dim(min_dim(term[1], size - 1), 0), *term[2:])


def _counts(places: list[tuple]) -> list[int]:
    return [1 if term[0] is INT else term[2] for term in places]


def _runs_alone() -> bool:
    """Whether operations are run at once, one by one, as under an un-jitted `grad`.

    The place of a slice, or of the padding that is its transpose, had better be no part of a
    program then: each would be compiled.
    """
    trace = local.context.trace
    while trace is not None:
        if type(trace) is JaxprTrace:
            return False
        trace = trace.parent
    return True


def read_window(x: Any, index: Terms) -> Any:
    """`x[index]` where the places are one window that lies within the array, perhaps with gaps."""
    places = [term for term in index.terms if term[0] is not NEW]
    window = tuple([
        1 if term[0] is INT else term[2] if abs(term[3]) == 1 else size
        for term, size in zip(places, index.shape, strict=True)
    ])  # fmt: skip
    if window != x.shape:
        starts = _window_starts(places, index.shape)
        x = dynamic_slice_p.bind(x, *starts, slice_sizes=window)
    gaps = [term[0] is SLICE and abs(term[3]) != 1 for term in places]
    if any(gaps):
        pairs = list(zip(places, gaps, strict=True))
        x = slice_p.bind(
            x,
            start_indices=tuple([term[1] if gap else 0 for term, gap in pairs]),
            limit_indices=tuple([
                term[4] if gap else size for (term, gap), size in zip(pairs, window, strict=True)
            ]),
            strides=tuple([abs(term[3]) if gap else 1 for term, gap in pairs]),
        )  # fmt: skip
    return _finished(x, index.terms, places)


def _window_starts(places: list[tuple], shape: tuple[int, ...]) -> list[Any]:
    """The first place of a window on each axis; of axes with gaps, the window is all."""
    dtype = _index_dtype(shape)
    firsts = [0 if term[0] is SLICE and abs(term[3]) != 1 else term[1] for term in places]
    return [
        to_dtype(first, dtype, False) if isinstance(first, Array) else dtype.type(first)
        for first in firsts
    ]


def _finished(x: Any, terms: list[tuple], places: list[tuple]) -> Any:
    """Reverse axes, drop those of integers, and put new ones in."""
    reversed_axes = tuple([a for a, t in enumerate(places) if t[0] is SLICE and t[3] < 0])
    if reversed_axes:
        x = rev_p.bind(x, dimensions=reversed_axes)
    dropped = tuple([axis for axis, term in enumerate(places) if term[0] is INT])
    if dropped:
        x = squeeze_p.bind(x, dimensions=dropped)
    kept = [term for term in terms if term[0] is not INT]
    new = [axis for axis, term in enumerate(kept) if term[0] is NEW]
    return expand_dims(x, new) if new else x


def _read_by_dynamic_slice(x: Any, index: Terms, places: list[tuple], wrap: bool) -> Any:
    """Integers are scalars; slices have no gaps."""
    dtype = _index_dtype(index.shape)
    # Where some places were brought within their axes before, those that are constants were too.
    within = any(isinstance(term[1], Array) and _is_known(term) for term in places)
    starts = [
        _start(term, size, dtype, wrap and not within)
        for term, size in zip(places, index.shape, strict=True)
    ]
    sizes = tuple(_counts(places))
    return _finished(dynamic_slice_p.bind(x, *starts, slice_sizes=sizes), index.terms, places)


def _is_known(term: tuple) -> bool:
    return term[4] is not OPEN if term[0] is SLICE else term[2]


def _start(term: tuple, size: int, dtype: np.dtype, wrap: bool) -> Any:
    value = term[1] if term[0] is SLICE else term[3]
    if isinstance(value, Array):
        value = to_dtype(value, dtype, False)
        return value if _is_known(term) else wrapped(value, size)
    return wrapped(dtype.type(value), size) if wrap else dtype.type(value)


# -- gather and scatter --------------------------------------------------------------------------


class _Plan(NamedTuple):
    """An index in terms of gather and scatter.

    - `vectors`: the index vectors
    - `shape`: that of x[index]; `new`, `reversed`: its axes that are new, and those of slices that
      run backwards, before the new ones are put in
    - `offset_dims`, `collapsed`, `index_map`, `sizes`: see `GatherDimensionNumbers`
    - `apart`: no place is named twice, and they are in order
    """

    vectors: Any
    shape: tuple[int, ...]
    new: tuple[int, ...]
    reversed: tuple[int, ...]
    offset_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    index_map: tuple[int, ...]
    sizes: tuple[int, ...]
    apart: bool


class _Planner:
    """Collects the columns of the index vectors, axis by axis."""

    def __init__(self, index: Terms, wrap: bool):
        self.index = index
        self.dtype = _index_dtype(index.shape)
        self.columns: list[tuple[Any, Sequence[int]]] = []  # and their axes among `rows`
        self.rows: list[int] = []
        self.shape: list[int] = []
        self.new: list[int] = []
        self.reversed: list[int] = []
        self.offsets: list[int] = []
        self.collapsed: list[int] = []
        self.map: list[int] = []
        self.sizes: list[int] = list(index.shape)
        self.scalars: dict[int, Any] = {}
        self.depth = 0  # axes of the result so far, without the new ones
        self.wrap = wrap

    def plan(self) -> _Plan:
        terms = self.index.terms
        advanced = [i for i, term in enumerate(terms) if term[0] is ARRAY]
        if advanced:
            advanced = [i for i, term in enumerate(terms) if term[0] in (ARRAY, INT)]
            together = advanced == list(range(advanced[0], advanced[-1] + 1))
            place = advanced[0] if together else 0
        arrays = self.values(advanced)
        axis = 0
        axes = {}
        for position, term in enumerate(terms):
            axes[position] = axis
            axis += term[0] is not NEW
        for position, term in enumerate(terms):
            if advanced and position == place:
                self.add_arrays(arrays, [axes[i] for i in advanced])
            if position not in arrays:
                self.add(position, term, axes[position])
        return _Plan(
            self.vectors(), tuple(self.shape), tuple(self.new), tuple(self.reversed),
            tuple(self.offsets), tuple(sorted(self.collapsed)), tuple(self.map),
            tuple(self.sizes), not advanced,
        )  # fmt: skip

    def values(self, advanced: list[int]) -> dict[int, Any]:
        """The arrays of the index, and the integers that stand beside them, in one shape."""
        terms, axis, values = self.index.terms, 0, {}
        for position, term in enumerate(terms):
            if term[0] in (ARRAY, INT):
                value = term[1]
                if not term[2] and self.wrap:
                    value = wrapped(value, self.index.shape[axis])
                values[position] = value
            axis += term[0] is not NEW
        if not advanced:
            self.scalars = values
            return {}
        shape = broadcast_shapes(*[np.shape(value) for value in values.values()])
        for position, value in values.items():
            found = np.shape(value)
            if found != shape:
                dims = range(len(shape) - len(found), len(shape))
                values[position] = _broadcast_to(value, shape, dims)
        return {position: to_dtype(value, self.dtype, False) for position, value in values.items()}

    def add_arrays(self, arrays: dict[int, Any], axes: list[int]) -> None:
        shape = np.shape(next(iter(arrays.values())))
        dims = range(len(self.rows), len(self.rows) + len(shape))
        self.columns += [(array, dims) for array in arrays.values()]
        self.rows += shape
        self.shape += shape
        self.depth += len(shape)
        self.drop(axes)

    def drop(self, axes: list[int]) -> None:
        """These axes of the array are indexed one place at a time."""
        self.map += axes
        self.collapsed += axes
        for axis in axes:
            self.sizes[axis] = 1

    def add(self, position: int, term: tuple, axis: int) -> None:
        kind = term[0]
        if kind is NEW:
            self.new.append(len(self.shape))
            self.shape.append(1)
        elif kind is INT:
            self.columns.append((self.scalars[position], ()))
            self.drop([axis])
        else:
            self.add_slice(axis, *term[1:4])

    def add_slice(self, axis: int, start: Any, count: int, step: int) -> None:
        if step == 1:
            if count != self.index.shape[axis] or isinstance(start, Array):
                self.columns.append((start, ()))
                self.map.append(axis)
                self.sizes[axis] = count
            self.offsets.append(self.depth)
        else:
            if step < 0:
                self.reversed.append(self.depth)
            self.columns.append((self.steps(start, count, step), (len(self.rows),)))
            self.rows.append(count)
            self.drop([axis])
        self.shape.append(count)
        self.depth += 1

    def steps(self, start: Any, count: int, step: int) -> Any:
        """The places of a slice with gaps, in the order of memory."""
        kind = self.dtype.type
        places = iota_p.bind(dtype=self.dtype, shape=(count,), dimension=0, sharding=None)
        if step < 0:
            first = start + (count - 1) * -step
            places = add_p.bind(kind(first), mul_p.bind(kind(step), places))
            return rev_p.bind(places, dimensions=(0,))
        first = _as_place(start, self.dtype)
        return add_p.bind(first, mul_p.bind(kind(step), places))

    def vectors(self) -> Any:
        if not self.columns:
            return np.zeros((0,), self.dtype)
        shape = (*self.rows, 1)
        columns = [
            to_shape(_as_place(value, self.dtype), shape, dims) for value, dims in self.columns
        ]
        if len(columns) == 1:
            return columns[0]
        return concatenate_p.bind(*columns, dimension=len(self.rows))


def _as_place(value: Any, dtype: np.dtype) -> Any:
    if is_dim(value):
        value = value.__jax_array__()
    return (
        to_dtype(value, dtype, False)
        if isinstance(value, (Array, np.ndarray))
        else dtype.type(value)
    )


def _broadcast_to(value: Any, shape: tuple[int, ...], dims: Sequence[int]) -> Any:
    if isinstance(value, np.ndarray):
        return np.broadcast_to(value, shape)
    return to_shape(value, shape, dims)


def _check_split(x: Any, plan: Any) -> None:
    """DuplicateSpecError if a mesh axis splits the index arrays and dimensions that they leave."""
    vectors = get_aval(plan.vectors)
    where = explicit_of(vectors)
    if where is not None:
        kept = [
            part for axis, part in enumerate(parts_of(get_aval(x))) if axis not in plan.collapsed
        ]
        check_distinct(where, parts_of(vectors)[:-1] + kept)


def _read_by_gather(x: Any, index: Terms, options: Options) -> Any:
    plan = _Planner(index, options.wrap).plan()
    if index.expanded:
        x = expand_dims(x, index.expanded)
    if 0 in plan.shape:
        return full_like_aval(0, ShapedArray(plan.shape, x.dtype, x.weak_type))
    y = x
    if plan.index_map:
        _check_split(x, plan)
        y = indexing.gather(
            x,
            plan.vectors,
            GatherDimensionNumbers(plan.offset_dims, plan.collapsed, plan.index_map),
            plan.sizes,
            unique_indices=options.unique_indices or plan.apart,
            indices_are_sorted=options.indices_are_sorted or plan.apart,
            mode=options.mode,
            fill_value=options.fill_value,
        )
    if plan.reversed:
        y = rev_p.bind(y, dimensions=plan.reversed)
    return expand_dims(y, plan.new) if plan.new else y


# -- writing -------------------------------------------------------------------------------------


def write(scatter: Callable, x: Any, index: Terms, y: Any, options: Options) -> Any:
    """`x` with `y` combined by a function such as `lax.scatter` into the places of an index."""
    plan = _Planner(index, options.wrap).plan()
    if 0 in plan.shape:
        return x
    aval = get_aval(x)
    x, y = _in_common(x, y)
    y = _without_new(_fitted(y, plan.shape), plan.new, plan.reversed)
    if index.expanded:
        x = expand_dims(x, index.expanded)
    _check_split(x, plan)
    out = scatter(
        x,
        plan.vectors,
        y,
        ScatterDimensionNumbers(plan.offset_dims, plan.collapsed, plan.index_map),
        indices_are_sorted=options.indices_are_sorted or plan.apart,
        unique_indices=options.unique_indices or plan.apart,
        mode=options.mode,
    )
    if index.expanded:
        out = squeeze_p.bind(out, dimensions=index.expanded)
    return to_type(out, aval)


def write_window(operation: Any, x: Any, index: Terms, y: Any) -> Any:
    """Write to a window that lies within the array.

    `operation` is a primitive on old and new values; None stands for the new ones.
    """
    kept = [term for term in index.terms if term[0] is not INT]
    shape = tuple([1 if term[0] is NEW else term[2] for term in kept])
    if 0 in shape:
        return x
    aval = get_aval(x)
    x, y = _in_common(x, y)
    new = tuple([axis for axis, term in enumerate(kept) if term[0] is NEW])
    slices = [term for term in kept if term[0] is SLICE]
    backward = tuple([axis for axis, term in enumerate(slices) if term[3] < 0])
    y = _without_new(_fitted(y, shape), new, backward)
    places = [term for term in index.terms if term[0] is not NEW]
    single = [axis for axis, term in enumerate(places) if term[0] is INT]
    if single:
        y = expand_dims(y, single)
    starts = _window_starts(places, index.shape)
    if operation is not None:
        old = dynamic_slice_p.bind(x, *starts, slice_sizes=y.shape)
        y = operation.bind(old, y)
    return to_type(dynamic_update_slice_p.bind(x, y, *starts), aval)


def _in_common(x: Any, y: Any) -> tuple[Any, Any]:
    """An array and its updates in the dtype to which they promote."""
    if isinstance(get_aval(x).dtype, dtypes.ExtendedDType):
        return x, y
    dtype, weak = dtypes.lattice_result_type(x, y)
    return _in_type(x, dtype, weak), _in_type(y, dtype, weak)


def _in_type(x: Any, dtype: Any, weak: bool) -> Any:
    """A value converted; a number becomes one of the dtype."""
    if isinstance(x, Array):
        return to_dtype(x, dtype, weak)
    with np.errstate(all="ignore"):
        return hooks.converted(np.asarray(x), dtype)[()]


def _without_new(y: Any, new: tuple[int, ...], backward: tuple[int, ...]) -> Any:
    """Updates in the shape and order of the places: without new axes, none running backwards."""
    if new:
        y = squeeze_p.bind(y, dimensions=new)
    return rev_p.bind(y, dimensions=backward) if backward else y


def _fitted(y: Any, shape: tuple[int, ...]) -> Any:
    """Updates broadcast to the shape of the places they are for."""
    found = np.shape(y)
    if found == shape:
        return y
    extra = len(shape) - len(found)
    if extra < 0:
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={found} shape={shape}: "
            "the updates have more axes than the places they are for."
        )
    if any(size not in (1, wanted) for size, wanted in zip(found, shape[extra:], strict=True)):
        aval = get_aval(y)
        raise ValueError(
            f"Incompatible types for broadcasting: input type={aval.str_short()} and requested "
            f"type={aval.dtype.name}{list(shape)}: the updates must broadcast to the shape of "
            "x[index]."
        )
    return to_shape(y, shape, range(extra, len(shape)))


def warn_of_loss(x: Any, y: Any) -> None:
    """FutureWarning where updates are of a wider dtype than the array that they go into."""
    dtype = get_aval(x).dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        return
    wide, _ = dtypes.lattice_result_type(x, y)
    if wide != dtype:
        warn_if_complex(wide, dtype)
        mode = local.context.settings.numpy_dtype_promotion
        warnings.warn(
            f"scatter inputs have incompatible types: cannot safely cast value from dtype={wide} "
            f"to dtype={dtype} with jax_numpy_dtype_promotion={mode}. Convert it with "
            f".astype({str(dtype)!r}): in future this will be an error.",
            FutureWarning,
            stacklevel=user_stacklevel(),
        )
