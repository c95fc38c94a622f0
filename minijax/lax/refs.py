"""References to arrays that change in place: making, reading and writing them.

The primitives are recorded where a program is; elsewhere a reference is a cell (`features.references`), and
these operations read and replace the value in it. An index is kept in two parts: what of it is
known, in `index`, and arrays, which are operands.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.arrays.array import ArrayImpl, as_value
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import ShapedArray, get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import eval_jaxpr
from minijax.core.primitive import Primitive, no_rule
from minijax.core.staging import JaxprTrace, trace_to_jaxpr
from minijax.core.trace import Tracer
from minijax.errors import say_where
from minijax.features.references.cells import AbstractRef, Ref, check_unmapped, resolved
from minijax.features.references.discharge import RefTrace, makers
from minijax.features.references.effects import (
    AccumEffect,
    FreezeEffect,
    ReadEffect,
    RefEffect,
    WriteEffect,
)
from minijax.features.slots import slots
from minijax.lax.arithmetic import add_p
from minijax.lax.convert import convert_element_type, to_dtype
from minijax.lax.dynamic_slices import Slice
from minijax.lax.ref_blocks import (
    block_of,
    check_windows,
    places_of,
    read_block,
    read_places,
    write_block,
    write_places,
)
from minijax.tracebacks import boundary
from minijax.transforms.batching import batch_jaxpr

__all__ = [
    "addupdate", "addupdate_p", "empty2_p", "empty_ref", "empty_ref_p", "free_ref", "free_ref_p", "freeze",
    "freeze_p", "get", "get_p", "new_ref", "ref_p", "set", "swap", "swap_p",
]  # fmt: skip

# -- the index ------------------------------------------------------------------------------------


class _Slice(NamedTuple):
    """A slice, which can be hashed."""

    start: int | None
    stop: int | None
    step: int | None


class _Window(NamedTuple):
    """A `Slice`; its start is an operand if it is None."""

    start: int | None
    size: int
    stride: int


_ARRAY = "array"  # stands in an index where an operand goes


def split_index(index: Any) -> tuple[tuple, list[Any]]:
    """The parts of an index: those known, and those that are operands."""
    entries = index if isinstance(index, tuple) else (index,)
    known, operands = [], []
    for entry in entries:
        if isinstance(entry, slice):
            parts = [entry.start, entry.stop, entry.step]
            parts = [operator.index(x) if type(x) is ArrayImpl else x for x in parts]
            if any(isinstance(x, Array) for x in parts):
                raise TypeError(
                    f"Slices of references take integers, got {entry}: for a start that is an array "
                    "take pl.ds(start, size), or lax.dynamic_slice of the whole."
                )
            known.append(_Slice(*parts))
        elif type(entry) is Slice:
            computed = not isinstance(entry.start, int)
            known.append(_Window(None if computed else entry.start, entry.size, entry.stride))
            operands += [entry.start] if computed else []
        elif entry is None or entry is Ellipsis:
            known.append(entry)
        elif isinstance(entry, (int, np.integer)) and not isinstance(entry, bool):
            known.append(int(entry))
        else:
            known.append(_ARRAY)
            operands.append(entry)
    return (() if known == [Ellipsis] else tuple(known)), operands


def joined_index(index: tuple, operands: Sequence[Any]) -> tuple:
    rest = iter(operands)
    return tuple(
        [
            slice(*entry)
            if type(entry) is _Slice
            else Slice(next(rest) if entry.start is None else entry.start, entry.size, entry.stride)
            if type(entry) is _Window
            else next(rest)
            if entry is _ARRAY
            else entry
            for entry in index
        ]
    )


def _check_bounds(ref: Ref, index: tuple) -> None:
    """ValueError for an integer that names no element. Recorded programs take the nearest one."""
    if type(ref._trace) is RefTrace or Ellipsis in index or None in index:
        return
    for entry, size in zip(index, ref.shape, strict=False):
        if type(entry) is int and not -size <= entry < size:
            raise ValueError(f"Out of bound indexer: idx={entry}, dim={size}.")


def _within(shape: tuple[int, ...], index: tuple) -> tuple:
    """The index with its integers within the bounds."""
    if Ellipsis in index or None in index:
        return index
    entries = list(index)
    for place, (entry, size) in enumerate(zip(index, shape, strict=False)):
        if type(entry) is int and not -size <= entry < size and size:
            entries[place] = 0 if entry < 0 else size - 1
    return tuple(entries)


def _read(value: Any, operands: Sequence[Any], index: tuple) -> Any:
    if not index:
        return value
    place = joined_index(_within(value.shape, index), operands)
    check_windows(value.shape, place)
    block = block_of(value.shape, place) if operands else None
    if block is not None:
        return read_block(value, block)
    places = places_of(value.shape, place) if operands else None
    return value[place] if places is None else read_places(value, places)


def _write(value: Any, operands: Sequence[Any], index: tuple, new: Any, how: str) -> Any:
    if not index:
        return new if how == "set" else add_p.bind(value, new)
    joined = joined_index(_within(value.shape, index), operands) if index else ...
    block = block_of(value.shape, joined) if operands else None
    if block is not None:
        return write_block(value, block, new, how)
    places = places_of(value.shape, joined) if operands else None
    if places is not None:
        return write_places(value, places, new, how)
    return getattr(value.at[joined], how)(new)


def read(value: Any, index: Any) -> Any:
    """Return the part of a value at an index of references."""
    known, operands = split_index(index)
    return _read(value, operands, known)


def write(value: Any, index: Any, new: Any) -> Any:
    """The value with what an index of references names replaced."""
    known, operands = split_index(index)
    return _write(value, operands, known, new, "set")


def _part(ref: Any, operands: Sequence[Any], index: tuple) -> ShapedArray:
    """The type of what an index reads."""
    if not index:
        return ref.inner_aval
    read = lambda x, *xs: [_read(x, xs, index)]
    return trace_to_jaxpr(read, [ref.inner_aval, *operands]).out_avals[0]


# -- the primitives -------------------------------------------------------------------------------


class _RefPrimitive(Primitive):
    """An operation on a reference, its first operand: on a cell it runs at once."""

    __slots__ = ("changes", "on_cell")
    takes_refs = True

    def __init__(self, name: str, changes: str | None = None, **options):
        super().__init__(name, **options)
        self.changes = changes  # how messages call what it does to the value, if it changes it

    def bind(self, ref, *args, **params):
        ref = resolved(ref)
        if type(ref) is Ref:
            return self.on_cell(ref, *args, **params)
        if type(getattr(ref, "aval", None)) is not AbstractRef:
            raise TypeError(f"{self.name} takes a reference, as new_ref makes it, got {ref!r}.")
        if self.changes is not None and local.context.trace.maps:
            check_unmapped(ref, self.changes)
        return local.context.trace.process(self, (ref, *args), params)


_NO_DERIVATIVE = (
    "performing a set/swap operation with a differentiated value on a non-differentiated array "
    "reference. Make the reference inside of the differentiated function, or store "
    "lax.stop_gradient(x)."
)
_NOT_MAPPED = (
    "performing a set/swap operation with vmapped value on an unbatched array reference. Make the "
    "reference an argument of the mapped function, or make it inside."
)
_EVALUATED = "programs with references are made pure before they are lowered"


def _shared_rules(primitive: Primitive, effect: type[RefEffect] | None) -> None:
    if effect is not None:
        effects = frozenset([effect(0)])  # on the first operand
        primitive.effects_rule(lambda **params: effects)
    primitive.lower(no_rule(_EVALUATED))
    primitive.transpose(no_rule("the values in a reference are differentiated where it is a cell"))
    primitive.jvp(no_rule(_NO_DERIVATIVE, Exception))
    primitive.batch(no_rule(_NOT_MAPPED, Exception))


def _laid_out(value: Any) -> Any:
    """Return a value of a reference in the layout that its device prefers."""
    if type(value) is ArrayImpl and value.signature.place is not value.signature.sharding:
        return hooks.moved(value, value.signature.sharding, False)
    return value


def _copied(value: Any) -> Any:
    """Return a value of a reference in memory of its own: one may be deleted or donated alone."""
    return value.__copy__() if type(value) is ArrayImpl else value


class _NewRef(Primitive):
    """Makes a cell, but where a program is recorded."""

    __slots__ = ()

    def bind(self, value, **params):
        trace = local.context.trace
        if type(trace) is JaxprTrace:
            return trace.process(self, (value,), params)
        value = _copied(value if isinstance(value, Array) else as_value(value))
        return Ref(_laid_out(value))


ref_p = _NewRef("new_ref")
_shared_rules(ref_p, None)


@ref_p.shape_rule
def _(x, *, kind, memory_space):
    return AbstractRef(x, memory_space)


class _EmptyRef(Primitive):
    __slots__ = ()

    def bind(self, *, ty, memory_space):
        trace = local.context.trace
        if type(trace) is JaxprTrace:
            return trace.process(self, (), {"ty": ty, "memory_space": memory_space})
        return ref_p.bind(as_value(np.zeros(ty.shape, ty.dtype)), kind=None, memory_space=None)


empty_ref_p = _EmptyRef("empty_ref")
_shared_rules(empty_ref_p, None)


@empty_ref_p.shape_rule
def _(*, ty, memory_space):
    return AbstractRef(ty, memory_space)


# A value of no particular content, as `lax.empty` gives: of rank 0, for what a library writes later.
empty2_p = Primitive("empty2")
empty2_p.jvp(no_rule("it has no operands"))
empty2_p.transpose(no_rule("it has no operands"))
empty2_p.batch(no_rule("it has no operands"))
empty2_p.lower(lambda b, **params: b.full(0, b.out))


@empty2_p.shape_rule
def _(*, dtype, memory_space):
    return ShapedArray((), dtype)


def _held(ref: Ref) -> Any:
    """Return the value of now, weak if the reference is of a weak type.

    What was stored is strong, as is what a program gives that is made pure: it has values alone.
    """
    weak = ref.aval.inner_aval.weak_type and not ref._trace.has_cells
    return to_dtype(ref._value, ref.dtype, True) if weak else ref._value


freeze_p = _RefPrimitive("freeze")
freeze_p.on_cell = _held
_shared_rules(freeze_p, FreezeEffect)


@freeze_p.shape_rule
def _(ref):
    return ref.inner_aval


free_ref_p = _RefPrimitive("free_ref", multiple_results=True)
free_ref_p.on_cell = lambda ref: []
_shared_rules(free_ref_p, FreezeEffect)


@free_ref_p.shape_rule
def _(ref):
    return []


get_p = _RefPrimitive("get")
_shared_rules(get_p, ReadEffect)


@get_p.shape_rule
def _(ref, *operands, index):
    return _part(ref, operands, index)


def _get_cell(ref, *operands, index):
    _check_bounds(ref, index)
    held = _held(ref)
    found = _read(held, operands, index)
    return _copied(found) if found is ref._value else found


get_p.on_cell = _get_cell


@get_p.batch_axis
def _(axis, args, dims, *, index):
    ref, *operands = args
    if dims[0] is not None:
        raise Exception(_NOT_MAPPED)
    whole = get_p.bind(ref, index=())
    read = lambda x, *xs: [_read(x, xs, index)]
    closed = trace_to_jaxpr(read, [get_aval(whole), *_elements(operands, dims[1:])])
    made, (dim,) = batch_jaxpr(closed, axis, [None, *dims[1:]])
    return eval_jaxpr(made.jaxpr, made.consts, whole, *operands)[0], dim


def _elements(operands: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    return [
        get_aval(x) if d is None else get_aval(x).without_axis(d)
        for x, d in zip(operands, dims, strict=True)
    ]


swap_p = _RefPrimitive("swap", "a set/swap")
_shared_rules(swap_p, WriteEffect)


@swap_p.shape_rule
def _(ref, value, *operands, index):
    return _checked("swap", ref, value, operands, index)


def _checked(name: str, ref: AbstractRef, value: Any, operands: Sequence[Any], index: tuple) -> Any:
    """The type that an index reads; ValueError unless the value has it."""
    part = _part(ref, operands, index)
    _check_value(name, ref, part, value)
    return part


def _check_value(name: str, ref: Any, part: Any, value: Any) -> None:
    if value.shape != part.shape:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected shape: {part.shape}. Value "
            f"shape: {value.shape}. Values are not broadcast: use jnp.full or jnp.broadcast_to."
        )
    if value.dtype != part.dtype:
        raise ValueError(
            f"Invalid dtype for `{name}`. Ref dtype: {ref.dtype}. Value dtype: {value.dtype}. "
            f"Convert it with .astype({ref.dtype})."
        )


def _on_cell(primitive: Primitive, how: str):
    def run(ref, value, *operands, index):
        _check_bounds(ref, index)
        avals = (ref.aval, get_aval(value), *map(get_aval, operands))
        primitive.out_avals(avals, {"index": index})
        old = _held(ref)
        made = _write(old, operands, index, value, how)
        scattered = any(get_aval(x).ndim for x in operands)
        if not scattered and (how == "set" or (index and ref._trace.has_cells)):
            made = to_dtype(made, ref.dtype, False)
        ref.replace(_laid_out(_copied(made) if made is value else made), primitive.changes)
        return _read(old, operands, index) if primitive is swap_p else []

    return run


swap_p.on_cell = _on_cell(swap_p, "set")
addupdate_p = _RefPrimitive("addupdate", "an addupdate", multiple_results=True)
addupdate_p.on_cell = _on_cell(addupdate_p, "add")
_shared_rules(addupdate_p, AccumEffect)


@addupdate_p.shape_rule
def _(ref, value, *operands, index):
    _checked("addupdate", ref, value, operands, index)
    return []


makers.update((ref_p, empty_ref_p))

# -- how their equations are shown ----------------------------------------------------------------


def _shown_place(name: Any, eqn: Any, operands: Sequence[Any]) -> str:
    """`a[i,2:,:]`: a reference with the index of an equation."""
    ref, index = eqn.invars[0], list(eqn.params["index"])
    if all(entry is Ellipsis for entry in index):
        return f"{name(ref)}[...]"
    if Ellipsis not in index:
        index.append(Ellipsis)
    axes = sum(entry is not None and entry is not Ellipsis for entry in index)
    at = index.index(Ellipsis)
    index[at : at + 1] = [_Slice(None, None, None)] * (ref.aval.ndim - axes)
    sizes, rest = iter(ref.aval.shape), iter(operands)
    entries = []
    for entry in index:
        size = None if entry is None else next(sizes)
        if type(entry) is _Slice:
            entries.append(_shown_slice(entry, size))
        elif type(entry) is _Window:
            start = name(next(rest)) if entry.start is None else entry.start
            entries.append(_shown_window(entry, start))
        else:
            entries.append(name(next(rest)) if entry is _ARRAY else str(entry))
    return f"{name(ref)}[{','.join(entries)}]"


def _shown_slice(entry: _Slice, size: int) -> str:
    """`1:3`, `:`, `::2`: a slice of an axis of this size, without bounds that are those of the axis."""
    start, stop, step = slice(*entry).indices(size)
    if step < 0:
        start, stop, step = ("" if x is None else x for x in entry)
        return f"{start}:{stop}:{step}"
    stop = max(start, stop)
    text = f"{start or ''}:{stop if stop != size else ''}"
    return text if step == 1 else f"{text}:{step}"


def _shown_window(entry: _Window, start: Any) -> str:
    if entry.stride == 1:
        stop = start + entry.size if isinstance(start, int) else f"{start}+{entry.size}"
        return f"{start}:{stop}"
    return f"{start}:+{entry.size}:{entry.stride}"


def _shown_result(printer: Any, eqn: Any) -> str:
    return printer.binder(eqn.outvars[0])


get_p.shown = lambda p, eqn: (
    f"{_shown_result(p, eqn)} <- {_shown_place(p.atom, eqn, eqn.invars[1:])}"
)
addupdate_p.shown = lambda p, eqn: (
    f"{_shown_place(p.atom, eqn, eqn.invars[2:])} += {p.atom(eqn.invars[1])}"
)


def _shown_swap(printer: Any, eqn: Any) -> str:
    place = _shown_place(printer.atom, eqn, eqn.invars[2:])
    value = printer.atom(eqn.invars[1])
    if printer.name(eqn.outvars[0]) == "_":
        return f"{place} <- {value}"
    return f"{_shown_result(printer, eqn)}, {place} <- {place}, {value}"


swap_p.shown = _shown_swap

# -- the functions on them ------------------------------------------------------------------------


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Make a reference to an array that can be changed in place.

    - `init_val`: array or number, the first value; its shape and dtype stay
    - `kind`: None or "no_grad_no_remat"; `memory_space`: kind of memory, without effect on CPU

    `ref[...]` reads the value, `ref[index] = value` writes a part. References are arguments of
    functions under `jit`, `vmap`, `scan` and the like, and never results. ValueError for another
    `kind`, TypeError for a value that is not an array.
    Source: MLIR's `memref` type.

    >>> ref = jax.new_ref(jnp.array([1, 2]))
    >>> ref[0] = 5
    >>> ref[...]
    Array([5, 2], dtype=int32)
    """
    if kind not in (None, "no_grad_no_remat"):
        raise ValueError(f"new_ref takes kind=None or 'no_grad_no_remat', got {kind!r}.")
    if isinstance(init_val, Ref):
        raise TypeError("new_ref takes an array, got a reference: read it first, as in ref[...].")
    try:
        get_aval(init_val)
    except TypeError as error:
        say_where(error, "new_ref", (init_val,))
        raise
    return ref_p.bind(init_val, kind=kind, memory_space=memory_space)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Make a reference whose elements are unspecified until written.

    - `ty`: object with `shape` and `dtype`; `memory_space`: kind of memory

    The result is a `Ref` of that shape and dtype. Source: MLIR's `memref.alloc`.

    >>> jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.int32)).shape
    (2,)
    """
    if not (hasattr(ty, "shape") and hasattr(ty, "dtype")):
        raise TypeError(
            f"Cannot interpret value of type {type(ty)} as an abstract array; it does not have a "
            "dtype attribute: pass a ShapeDtypeStruct to empty_ref."
        )
    aval = ShapedArray(ty.shape, dtypes.canonicalize_dtype(ty.dtype))
    return empty_ref_p.bind(ty=aval, memory_space=memory_space)


def freeze(ref: Ref) -> Array:
    """Return the value of a reference and end its use.

    - `ref`: reference, which must not be used any more

    The result is an array of its shape and dtype. TypeError unless it is a reference.
    Source: MLIR's `bufferization.to_tensor`.

    >>> jax.freeze(jax.new_ref(jnp.array([1, 2])))
    Array([1, 2], dtype=int32)
    """
    return freeze_p.bind(ref)


def free_ref(ref: Ref) -> None:
    """End the use of a reference.

    - `ref`: reference of any shape and dtype, which must not be used any more

    TypeError unless it is a reference. Source: MLIR's `memref.dealloc`.

    >>> jax.free_ref(jax.new_ref(jnp.array([1, 2])))
    """
    free_ref_p.bind(ref)


@boundary
def get(ref: Ref, idx: Any = None) -> Array:
    """The part of the value that an index names, as `ref[idx]`; the whole for None."""
    index, operands = split_index(... if idx is None else idx)
    return get_p.bind(ref, *operands, index=index)


@boundary
def swap(ref: Ref, idx: Any, value: Any, _function_name: str = "ref_swap") -> Array:
    """Write a part of the value; gives what it was before.

    `idx` is an index, or None for the whole. `value` has the shape and dtype of that part, or an
    integer dtype where that has one, or is a Python number of its kind: ValueError otherwise.
    """
    if not isinstance(ref, Ref):
        raise ValueError(f"Can only call `{_function_name}` on a `Ref`: {ref!r}.")
    index, operands = split_index(... if idx is None else idx)
    return swap_p.bind(ref, _typed(ref, value), *operands, index=index)


def _typed(ref: Any, value: Any, converts: bool = True) -> Any:
    """A value in the dtype of the reference where it is converted, and never weak.

    ValueError for a reference.
    """
    if isinstance(value, Ref):
        raise ValueError(
            "Cannot store a Ref into another Ref. Did you forget to load from it using `[...]`?"
        )
    aval, held = get_aval(value), get_aval(ref) if isinstance(ref, Ref) else ref
    held = getattr(held, "inner_aval", held)
    if converts and (aval.weak_type if aval.dtype == held.dtype else _fits(aval, held.dtype)):
        value = convert_element_type(value, held.dtype)
    if not isinstance(value, (Array, Tracer)):
        value = as_value(value)
    return value


def _fits(aval: ShapedArray, dtype: Any) -> bool:
    """Whether a value of this type may be written to a reference of another dtype."""
    kinds = [np.integer, *([np.floating, np.complexfloating] if aval.weak_type else [])]
    return any(dtypes.issubdtype(aval.dtype, k) and dtypes.issubdtype(dtype, k) for k in kinds)


def checked_value(name: str, part: ShapedArray, value: Any) -> Any:
    """A value as it is written to a part of this type; ValueError unless it has that type."""
    value = _typed(part, value)
    _check_value(name, part, part, get_aval(value))
    return value


@boundary
def set(ref: Ref, idx: Any, value: Any) -> None:
    """Write a part of the value, as `ref[idx] = value`; see `swap`."""
    swap(ref, idx, value)


@boundary
def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Add to a part of the value; see `swap`."""
    if not isinstance(ref, Ref):
        raise ValueError(f"Can only call `ref_addupdate` on a `Ref`: {ref!r}.")
    index, operands = split_index(... if idx is None else idx)
    addupdate_p.bind(ref, _typed(ref, x, converts=False), *operands, index=index)


slots.fill(
    ref_get=get,
    ref_set=set,
    ref_add=lambda self, value, idx=None: addupdate(self, idx, value),
)

for _function in (get, set, swap, addupdate):  # which upstream calls so
    _function.__name__ = _function.__qualname__ = f"ref_{_function.__name__}"
    globals()[_function.__name__] = _function
