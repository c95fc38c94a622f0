"""`x[...]`, `x.at[...]` and `take`.

Within a trace these are sequences of primitives. Eagerly each is ONE compiled program, found by one
dict lookup: its key holds what is static (how many places, of what kind), and the places themselves
are operands, so that a loop over `x[i]` or over `x[i : i + 8]` compiles once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.values import known_value
from minijax.arrays.array import ArrayImpl, array_from_numpy, scalar_array
from minijax.arrays.dispatch import Program, concrete, program_for
from minijax.config import local
from minijax.core.array import Array
from minijax.core.caches import ProgramCache
from minijax.core.hooks import hooks
from minijax.core.jaxpr import DebugInfo
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import eval_trace
from minijax.features.sharding.explicit import left_to_xla
from minijax.features.sharding.memory import MemorySpace
from minijax.features.sharding.sharding_rules import ambiguous, parts_of
from minijax.features.sharding.types import explicit_of
from minijax.lax import indexing
from minijax.lax.arithmetic import add_p, max_p, min_p, mul_p, sub_p
from minijax.lax.index_numbers import GatherScatterMode
from minijax.numpy.creation import asarray
from minijax.numpy.division import divide, power
from minijax.numpy.index_plans import (
    Options,
    read,
    read_window,
    warn_of_loss,
    write,
    write_window,
)
from minijax.numpy.index_terms import (
    ARRAY,
    INT,
    NEW,
    OPEN,
    SLICE,
    Terms,
    check_reach,
    check_static,
    parse,
)
from minijax.numpy.promotion import filled_like
from minijax.numpy.taking import put, put_along_axis, take, take_along_axis
from minijax.runtime.released import released
from minijax.runtime.sharding import SingleDeviceSharding
from minijax.tracebacks import hide_frames

__all__ = [
    "IndexHelper", "IndexRef", "getitem", "put", "put_along_axis", "take", "take_along_axis",
]  # fmt: skip

_PLAIN = Options()
_FILL = GatherScatterMode.FILL_OR_DROP
_programs = ProgramCache()
_tables = _programs.tables

# -- an index in two parts: what is static, and operands -----------------------------------------

_WITHIN, _OUTSIDE, _SCALAR, _WINDOW, _KNOWN = "within", "outside", "scalar", "window", "known"
_OPEN_WINDOW = "open window"


def _split(index: Terms, clamp: bool) -> tuple[tuple, list[ArrayImpl], bool]:
    """A description that can be a key, the arrays that it leaves open, and whether all is one
    window (perhaps with gaps) that lies within the array.

    `clamp`: an integer beyond the array means the nearest place.
    """
    key: list[Any] = [index.expanded]
    operands: list[ArrayImpl] = []
    window = not index.expanded
    axis = 0
    for term in index.terms:
        kind = term[0]
        if kind is NEW:
            key.append(NEW)
            continue
        size = index.shape[axis]
        axis += 1
        if kind is SLICE:
            _, start, count, step, limit = term
            if limit is OPEN:
                key += (_OPEN_WINDOW, count, step)
                operands.append(concrete(start))
                window = False
            elif step != 1 or count == size:
                key.append(term)
            else:
                key.append(_WINDOW)
                key.append(count)
                operands.append(scalar_array(start))
            continue
        place = term[1]
        if type(place) is not int:
            key.append(_KNOWN if term[2] else _SCALAR if kind is INT else ARRAY)
            operands.append(place if type(place) is ArrayImpl else concrete(place))
            window = False
        elif 0 <= place < size or clamp:
            key.append(_WITHIN)
            operands.append(scalar_array(min(max(place, 0), size - 1)))
        else:
            key.append(_OUTSIDE)
            operands.append(scalar_array(min(max(place, -1), size)))
            window = False
    return tuple(key), operands, window


def _joined(key: tuple, shape: tuple[int, ...], operands: tuple) -> Terms:
    """The index that was split, with other values (tracers) for its arrays."""
    rest, parts, terms = iter(operands), iter(key[1:]), []
    for part in parts:
        if part is NEW:
            terms.append((NEW,))
        elif type(part) is tuple:
            terms.append(part)
        elif part is _WINDOW:
            terms.append((SLICE, next(rest), next(parts), 1, None))
        elif part is _OPEN_WINDOW:
            terms.append((SLICE, next(rest), next(parts), next(parts), OPEN))
        else:
            value = next(rest)
            known = part is not _SCALAR and part is not ARRAY
            terms.append((ARRAY, value, known) if value.ndim else (INT, value, known, value))
    expanded = key[0]
    for axis in expanded:
        shape = (*shape[:axis], 1, *shape[axis:])
    return Terms(terms, shape, expanded)


def _run(key: tuple, name: str, arrays: list[ArrayImpl], fun: Callable) -> ArrayImpl:
    """Run the program for this key; `fun(*tracers)` is traced where there is none."""
    program: Program | None = _programs.get(key)
    if program is None:
        avals = tuple([a.aval for a in arrays])
        closed = trace_to_jaxpr(lambda *xs: [fun(*xs)], avals, DebugInfo("library", name))
        program = _programs[key] = program_for(closed, name, arrays, keep_unused=True)
    if program.simple:  # as `Program.__call__` runs it: 0.7 of 11 us for a slice are saved
        next(released)
        try:
            buffer = program.execute([a._buffer for a in arrays]).consume_with_handlers(
                program.handlers
            )[0]
        except Exception as error:
            hooks.check_executed(arrays, error)
            raise
        signature = program.out_signatures[0]
        return ArrayImpl(buffer, signature)
    return program(arrays)[0]


# -- reading -------------------------------------------------------------------------------------


def getitem(x: Array, idx: Any) -> Array:
    """`x[idx]`, with everything that NumPy's basic and advanced indexing can say.

    Places beyond the array mean the nearest one. IndexError for too many or impossible indices,
    TypeError for those of a wrong type, NonConcreteBooleanIndexError for a mask that is traced.
    Source: NumPy, "Indexing on ndarrays".
    """
    context = local.context
    if context.trace is not eval_trace or type(x) is not ArrayImpl or context.settings.disable_jit:
        index = parse(idx, x.shape)
        if context.settings.check_static_indices:
            check_static(index.terms, x.shape)
        return read(x, index, _PLAIN)
    if type(idx) is int:
        shape = x.aval.shape
        size = shape[0] if shape else 0
        if size:
            if not 0 <= idx < size:
                check_reach([(INT, idx, True, idx)])
                if context.settings.check_static_indices:
                    check_static([(INT, idx % size if -size <= idx < 0 else idx)], shape)
                idx = max(idx + size, 0) if idx < 0 else size - 1
            place = scalar_array(idx)
            key = (x.signature, place.signature)
            try:
                program = _tables[context.key][key]
            except KeyError:
                program = None
            if program is not None and program.simple:
                next(released)
                try:
                    buffer = program.execute([x._buffer, place._buffer]).consume_with_handlers(
                        program.handlers
                    )[0]
                except Exception as error:
                    hooks.check_executed([x, place], error)
                    raise
                signature = program.out_signatures[0]
                return ArrayImpl(buffer, signature)
            index = ((), _WITHIN, *[(SLICE, 0, n, 1, n) for n in shape[1:]])
            return _run(
                key, "getitem", [x, place],
                lambda x, i: read_window(x, _taken_whole(x, _joined(index, x.shape, (i,)))),
            )  # fmt: skip
    elif type(idx) in _MASKS and idx.dtype == dtypes.bool_ and _is_on_host(x):
        found = _masked(x, idx)
        if found is not None:
            return found
    return _read_eagerly(x, idx, _PLAIN)


def _read_eagerly(x: ArrayImpl, idx: Any, options: Options) -> Array:
    index = parse(idx, x.aval.shape, options.wrap)
    check_reach(index.terms)
    if options is _PLAIN and local.context.settings.check_static_indices:
        check_static(index.terms, x.aval.shape)
    fill = options.mode is not None and GatherScatterMode.from_any(options.mode) is _FILL
    described, operands, window = _split(index, not fill)
    if window and not operands and all(term[2:4] == (n, 1) for term, n in _pairs(index)):
        return x
    key = (
        x.signature, described, None if window else options,
        *[a.signature for a in operands],
    )  # fmt: skip

    def fun(x, *places):
        index = _taken_whole(x, _joined(described, x.shape, places))
        return read_window(x, index) if window else read(x, index, options)

    return _run(key, "getitem", [x, *operands], fun)


def _taken_whole(x: Any, index: Terms) -> Terms:
    """The index; ShardingTypeError if it takes a part of an axis that is split over a mesh.

    Of a program that is not traced: in one that is, slices whose parts are known are taken.
    """
    if explicit_of(x.aval) is not None and not index.expanded:
        terms = [pair for pair in _pairs(index) if pair[0][0] is not NEW]
        if any(term[0] is ARRAY or (term[0] is SLICE and not term[2]) for term, _ in terms):
            return index  # the rule of gathers says it, or nothing is taken
        for part, (term, size) in zip(parts_of(x.aval), terms, strict=True):
            if part is not None and (term[0] is not SLICE or term[2] != size):
                raise ambiguous("gather", indexing.GATHER_SPLIT, [x.aval])
    return index


def _pairs(index: Terms) -> list[tuple[tuple, int]]:
    """Terms with the sizes of their axes; a new axis has none."""
    sizes = iter(index.shape)
    return [(term, 0 if term[0] is NEW else next(sizes)) for term in index.terms]


_MASKS = frozenset((ArrayImpl, np.ndarray))


def _is_on_host(x: ArrayImpl) -> bool:
    where = x.signature.sharding
    return type(where) is SingleDeviceSharding and where.device.platform == "cpu"


def _masked(x: ArrayImpl, mask: Any) -> ArrayImpl | None:
    """`x[mask]` by NumPy where the array lies in its memory: no program for each new count."""
    aval = x.aval
    mask = np.asarray(mask)
    if (
        not mask.ndim
        or mask.shape != aval.shape[: mask.ndim]
        or isinstance(aval.dtype, dtypes.ExtendedDType)
    ):
        return None
    value = np.asarray(x)[mask]
    signature = x.signature
    return array_from_numpy(
        value, aval.update(shape=value.shape), signature.sharding, signature.committed, copy=False
    )


# -- writing -------------------------------------------------------------------------------------

# For each kind of update: the scatter, and the same on two arrays, of old and new values.
_UPDATES: dict[str, tuple[Callable, Any]] = {
    "set": (indexing.scatter, None),
    "add": (indexing.scatter_add, add_p),
    "subtract": (indexing.scatter_sub, sub_p),
    "multiply": (indexing.scatter_mul, mul_p),
    "min": (indexing.scatter_min, min_p),
    "max": (indexing.scatter_max, max_p),
}


def _by_inverse(combine: Callable) -> Callable:
    """An update for which there is no scatter: `combine(x, z)` with z one in all other places."""

    def update(x, index, y, options):
        ones = filled_like(x, 1)
        return combine(x, write(indexing.scatter_mul, ones, index, y, options))

    return update


_INVERSE = {"divide": _by_inverse(divide), "power": _by_inverse(power)}


def _update_traced(kind: str, x: Any, index: Terms, y: Any, options: Options) -> Any:
    if kind in _INVERSE:
        return _INVERSE[kind](x, index, y, options)
    return write(_UPDATES[kind][0], x, index, y, options)


def _update(kind: str, x: Array, idx: Any, y: Any, options: Options) -> Array:
    """`x` with `y` combined into the places of an index."""
    context = local.context
    index = parse(idx, x.aval.shape, options.wrap)
    if not isinstance(y, Array):
        y = _as_update(y, x.aval.dtype)
    if context.trace is not eval_trace or type(x) is not ArrayImpl or context.settings.disable_jit:
        warn_of_loss(x, y)
        return _update_traced(kind, x, index, y, options)
    y = concrete(y)
    if y.aval is not x.aval and y.aval.dtype != x.aval.dtype:
        warn_of_loss(x, y)
    clip = options.mode is not None and (
        GatherScatterMode.from_any(options.mode) is GatherScatterMode.CLIP
    )
    described, operands, window = _split(index, clip)
    window = (
        window
        and kind in _UPDATES
        and all(term[0] is not SLICE or term[3] in (1, -1) for term in index.terms)
    )
    key = (
        kind, x.signature, y.signature, described, None if window else options,
        *[a.signature for a in operands],
    )  # fmt: skip

    def fun(x, y, *places):
        index = _joined(described, x.shape, places)
        is_on_device = x.aval.memory_space is MemorySpace.Device
        if window and is_on_device and explicit_of(x.aval) is None:
            return write_window(_UPDATES[kind][1], x, index, y)
        return _update_traced(kind, x, index, y, options)

    return _run(key, f"scatter_{kind}", [x, y, *operands], fun)


def _as_update(y: Any, dtype: Any) -> Any:
    """Return a value to be written as an array or a number; TypeError for anything else."""
    if type(y) is int and y > _LARGEST and dtype.kind == "u" and dtype.itemsize >= 4:
        return np.asarray(y).astype(dtype) if y <= int(dtypes.iinfo(dtype).max) else y
    if isinstance(y, (bool, int, float, complex, np.ndarray, np.generic)):
        return y
    return asarray(y)


# -- x.at ------------------------------------------------------------------------------------------


_LARGEST = (1 << 31) - 1  # what int32 holds, as which an integer without a dtype is taken


class IndexHelper:
    """Property `x.at`: `x.at[index]` names elements of `x` to read or to update out of place.

    - `index`: what `x[index]` takes: ints, slices, None, Ellipsis, integer or boolean arrays.

    Returns an `IndexRef`, whose methods return arrays of the dtype of `x`. Source: NumPy's
    indexing.

    >>> jnp.array([1, 2, 3]).at[1].set(9)
    Array([1, 9, 3], dtype=int32)
    """

    __slots__ = ("array",)

    def __init__(self, array: Array):
        self.array = array

    def __getitem__(self, index: Any) -> IndexRef:
        return IndexRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


def _split_terms(index: Any) -> tuple[list[Any], Callable]:
    """The terms of an index that are integers split over mesh axes, and the index with others."""
    terms = index if isinstance(index, tuple) else (index,)
    is_split = lambda x: (
        isinstance(x, Array) and x.dtype.kind in "iu" and explicit_of(x.aval) is not None
    )
    places = [place for place, term in enumerate(terms) if is_split(term)]
    if not places:
        return [], lambda found: index

    def rebuilt(found: Sequence[Any]) -> Any:
        given = dict(zip(places, found, strict=True))
        return tuple([given.get(place, term) for place, term in enumerate(terms)])

    return [terms[place] for place in places], rebuilt


_RESULTS = {  # of the example in each docstring, where 2 is updated with 4
    "set": "[8., 4.]", "add": "[8., 6.]", "subtract": "[ 8., -2.]", "multiply": "[8., 8.]",
    "divide": "[8. , 0.5]", "power": "[ 8., 16.]", "min": "[8., 2.]", "max": "[8., 4.]",
}  # fmt: skip


def _updating(kind: str, doc: str) -> Callable:
    def update(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        options = Options(indices_are_sorted, unique_indices, mode, None, wrap_negative_indices)
        if out_sharding is not None:
            split, index = _split_terms(self.index)
            made = lambda x, values, *split: _update(kind, x, index(split), values, options)
            return left_to_xla(made, out_sharding, f".{kind}", self.array, values, *split)
        try:
            return _update(kind, self.array, self.index, values, options)
        except Exception as error:
            hide_frames(error)
            raise

    update.__name__ = kind
    update.__qualname__ = f"IndexRef.{kind}"
    update.__doc__ = f"""Return a copy of the array `x` with {doc}, as in-place NumPy code does.

        - `values`: array that broadcasts to the shape of x[index]; converted to the dtype of `x`.
        - `mode`: for indices out of range: "drop" (the default), "clip", "promise_in_bounds".
        - `indices_are_sorted`, `unique_indices`: promises that may make it faster.
        - `wrap_negative_indices`: negative indices count from the end, True by default.
        - `out_sharding`: sharding of the result.

        Returns an array of the shape and dtype of `x`. Indices that repeat apply each update; "set"
        does so in no defined order. ValueError if `values` does not broadcast; IndexError or
        TypeError as of x[index]. Source: NumPy's `ufunc.at`.

        >>> jnp.array([8.0, 2.0]).at[1].{kind}(4.0)
        Array({_RESULTS[kind]}, dtype=float32)
        """
    return update


class IndexRef:
    """Indexed elements of an array, `x.at[index]`: methods read them or return updated copies.

    Arrays of the shape and dtype of `x` result, except from `get`. Source: NumPy's indexing.

    >>> jnp.array([1, 2, 3]).at[1:].add(10)
    Array([ 1, 12, 13], dtype=int32)
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return x[index], with options.

        - `mode`: for indices out of range: "clip" reads the nearest element, "fill" returns
          `fill_value`; the default promises that there are none.
        - `fill_value`: by default NaN, the least signed or greatest unsigned integer, or True.
        - `indices_are_sorted`, `unique_indices`: promises that may make it faster.
        - `wrap_negative_indices`: negative indices count from the end, True by default.
        - `out_sharding`: sharding of the result.

        Returns an array of the shape of x[index] and of the dtype of `x`. Source: NumPy's indexing.

        >>> jnp.array([1, 2, 3]).at[jnp.array([0, 7])].get(mode="fill", fill_value=-1)
        Array([ 1, -1], dtype=int32)
        """
        known_value(fill_value, "fill_value argument to indexed get()")
        if fill_value is not None and fill_value != fill_value:
            fill_value = np.nan  # one object for all: they are no equal keys
        options = Options(
            indices_are_sorted, unique_indices, mode, fill_value, wrap_negative_indices
        )
        x, context = self.array, local.context
        if out_sharding is not None:
            split, index = _split_terms(self.index)
            made = lambda x, *split: read(
                x, parse(index(split), x.aval.shape, options.wrap), options
            )
            return left_to_xla(made, out_sharding, ".get", asarray(x), *split)
        if (
            context.trace is not eval_trace
            or type(x) is not ArrayImpl
            or context.settings.disable_jit
        ):
            return read(x, parse(self.index, x.aval.shape, wrap_negative_indices), options)
        return _read_eagerly(x, self.index, options)

    set = _updating("set", "`x[index] = values`")
    add = _updating("add", "`x[index] += values`")
    subtract = _updating("subtract", "`x[index] -= values`")
    multiply = mul = _updating("multiply", "`x[index] *= values`")
    divide = _updating("divide", "`x[index] /= values`")
    power = _updating("power", "`x[index] **= values`")
    min = _updating("min", "`x[index] = minimum(x[index], values)`")
    max = _updating("max", "`x[index] = maximum(x[index], values)`")

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return a copy of an array with a function applied to the indexed elements.

        - `func`: function of a scalar that returns a scalar; elements that are indexed twice pass
          it twice.
        - other arguments: as in `set`.

        Returns an array of the shape and dtype of `x`, without derivatives. Source: NumPy's
        `ufunc.at`.

        >>> jnp.array([1.0, 4.0, 9.0]).at[1:].apply(jnp.sqrt)
        Array([1., 2., 3.], dtype=float32)
        """
        options = Options(indices_are_sorted, unique_indices, mode, None, wrap_negative_indices)
        return _apply(func, self.array, self.index, options)


def _apply(func: Callable, x: Array, idx: Any, options: Options) -> Array:
    def scatter(x, vectors, y, numbers, **params):
        return indexing.scatter_apply(x, vectors, func, numbers, update_shape=y.shape, **params)

    index = parse(idx, x.aval.shape, options.wrap)
    dtype = x.aval.dtype
    zero = np.zeros((), dtype if isinstance(dtype, np.dtype) else np.bool_)[()]  # for its shape
    context = local.context
    if context.trace is not eval_trace or type(x) is not ArrayImpl or context.settings.disable_jit:
        return write(scatter, x, index, zero, options)
    described, operands, _ = _split(index, False)
    signatures = [a.signature for a in operands]
    key = ("apply", func, x.signature, described, options, *signatures)
    return _run(
        key, "scatter_apply", [x, *operands],
        lambda x, *places: write(scatter, x, _joined(described, x.shape, places), zero, options),
    )  # fmt: skip
