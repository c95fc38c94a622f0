"""Views of references: `ref.at[index]`, what it holds as another shape or dtype.

A view is a reference with steps: each says which part of a value is seen, and how the whole becomes
anew when that part is written. Nothing is recorded until a view is read or written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, tree_util
from minijax.core.avals import ShapedArray
from minijax.core.hooks import hooks
from minijax.core.staging import StagedTracer, trace_to_jaxpr
from minijax.errors import length_of
from minijax.features.references.cells import Ref, attach_to_refs
from minijax.features.slots import slots
from minijax.lax import ref_calls, refs  # noqa: F401  (the rules of calls)
from minijax.lax.convert import bitcast_convert_type
from minijax.lax.shapes import reshape, transpose

__all__ = ["RefView", "recast", "view_of", "views_of"]


class _Step(NamedTuple):
    """One step of a view: reads a part of a value, and replaces it."""

    see: Callable[[Any], Any]
    put: Callable[[Any, Any], Any]


class _Views:
    """The object `ref.at`, which is indexed to make a view."""

    __slots__ = ("view",)

    def __init__(self, view: RefView):
        self.view = view

    def __getitem__(self, index: Any) -> RefView:
        view = self.view
        if not view.steps and view.index is None:
            return RefView(view.ref, index)
        step = _Step(lambda x: refs.read(x, index), lambda x, part: refs.write(x, index, part))
        return RefView(view.ref, view.index, (*view.steps, step))


class RefView:
    """A part of a reference, which is read and written as one: `ref.at[index]`.

    It has the shape and dtype of that part. `view[...]`, `view[index] = value`, `view.at[index]` and
    `view.reshape(...)` are as on a reference.
    """

    __slots__ = ("_aval", "index", "ref", "steps")

    def __init__(self, ref: Any, index: Any = None, steps: tuple[_Step, ...] = ()):
        self.ref, self.index, self.steps = ref, index, steps
        self._aval: ShapedArray | None = None

    @property
    def aval(self) -> ShapedArray:
        """The type of what is seen."""
        if self._aval is None:
            inner = self.ref.aval.inner_aval
            self._aval = trace_to_jaxpr(lambda x: [self._seen(x)], [inner]).out_avals[0]
        return self._aval

    def _seen(self, whole: Any) -> Any:
        part = whole if self.index is None else refs.read(whole, self.index)
        for step in self.steps:
            part = step.see(part)
        return part

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    at = property(_Views)
    T = property(lambda self: self.transpose())

    def __len__(self) -> int:
        return length_of(self.shape)

    def __repr__(self) -> str:
        return f"RefView({self.aval.str_short()} of {self.ref!r})"

    def __getitem__(self, index: Any) -> Any:
        if not self.steps and self.index is None:
            return refs.get(self.ref, index)
        return refs.read(self.get(), index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.swap(value, index)

    def get(self, idx: Any = None) -> Any:
        """Read the part of the reference that the view shows, or a part of that."""
        if idx is not None:
            return self[idx]
        part = refs.get(self.ref, self.index)
        for step in self.steps:
            part = step.see(part)
        return part

    def set(self, value: Any, idx: Any = None) -> None:
        """Write it, or a part of it."""
        self.swap(value, idx)

    def swap(self, value: Any, idx: Any = None) -> Any:
        """Write it, or a part of it; gives what that was before."""
        if idx is not None and not _is_whole(idx):
            return self.at[idx].swap(value)
        if not self.steps:
            return refs.swap(self.ref, self.index, value)
        parts = [refs.get(self.ref, self.index)]
        for step in self.steps:
            parts.append(step.see(parts[-1]))
        old = parts.pop()
        new = refs.checked_value("swap", old.aval, value)
        for step, whole in zip(reversed(self.steps), reversed(parts), strict=True):
            new = step.put(whole, new)
        refs.swap(self.ref, self.index, new)
        return old

    def addupdate(self, value: Any, idx: Any = None) -> None:
        """Add to it, or to a part of it."""
        if idx is not None and not _is_whole(idx):
            self.at[idx].addupdate(value)
        elif not self.steps:
            refs.addupdate(self.ref, self.index, value)
        else:
            self.swap(self.get() + value)

    def _seen_as(self, see: Callable, back: Callable) -> RefView:
        return RefView(self.ref, self.index, (*self.steps, _Step(see, lambda _, part: back(part))))

    def reshape(self, *shape: Any) -> RefView:
        """The elements in another shape."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        sizes = tuple(sizes)
        if -1 in sizes:
            rest = int(np.prod([size for size in sizes if size != -1]))
            sizes = tuple([self.size // rest if size == -1 else size for size in sizes])
        whole = self.shape
        return self._seen_as(lambda x: reshape(x, sizes), lambda part: reshape(part, whole))

    def bitcast(self, dtype: Any) -> RefView:
        """The bits read as another dtype: its width changes the size of the axis before the last."""
        old, new = self.dtype, dtypes.canonicalize_dtype(dtype)
        return self._seen_as(lambda x: recast(x, new), lambda part: recast(part, old))

    def transpose(self, permutation: Any = None) -> RefView:
        """The axes in another order."""
        order = tuple(reversed(range(self.ndim))) if permutation is None else tuple(permutation)
        inverse = tuple(int(axis) for axis in np.argsort(order))
        return self._seen_as(lambda x: transpose(x, order), lambda part: transpose(part, inverse))


def _flatten(view: RefView) -> tuple:
    index, operands = refs.split_index(... if view.index is None else view.index)
    return (view.ref, operands), (index, view.steps)


def _unflatten(data: tuple, children: tuple) -> RefView:
    (index, steps), (ref, operands) = data, children
    return RefView(ref, refs.joined_index(index, operands) if index else None, steps)


tree_util.register_pytree_node(RefView, _flatten, _unflatten)


def _is_whole(index: Any) -> bool:
    return index is Ellipsis or (isinstance(index, tuple) and index in ((), (Ellipsis,)))


def recast(x: Any, dtype: np.dtype) -> Any:
    """The bits of an array in another dtype; packed along the axis before the last."""
    before, after = dtypes.bit_width(x.dtype), dtypes.bit_width(dtype)
    if before == after:
        return bitcast_convert_type(x, dtype)
    if x.ndim < 2:
        raise ValueError(
            f"A reference of type {x.aval.str_short()} has no axis before the last, which a bitcast "
            f"to {dtype.name}, of another width, needs."
        )
    *outer, rows, columns = x.shape
    if before > after:
        parts = bitcast_convert_type(x, dtype)  # the new axis is the last
        order = (*range(x.ndim - 1), x.ndim, x.ndim - 1)
        return reshape(transpose(parts, order), (*outer, rows * (before // after), columns))
    packed = after // before
    if rows % packed:
        raise ValueError(f"{rows} rows cannot be read as {dtype.name}: they come in {packed}s.")
    parts = reshape(x, (*outer, rows // packed, packed, columns))
    order = (*range(x.ndim - 1), x.ndim, x.ndim - 1)
    return bitcast_convert_type(transpose(parts, order), dtype)


def view_of(ref: Any) -> RefView:
    """A view of all of a reference; of a view itself."""
    return ref if type(ref) is RefView else RefView(ref)


def views_of(ref: Any) -> _Views:
    """`ref.at` of a reference."""
    return _Views(RefView(ref))


_MEMBERS = {
    "at": property(views_of),
    "get": lambda self, idx=None: refs.get(self, idx),
    "set": lambda self, value, idx=None: refs.set(self, idx, value),
    "swap": lambda self, value, idx=None: refs.swap(self, idx, value),
    "addupdate": lambda self, value, idx=None: refs.addupdate(self, idx, value),
    "reshape": lambda self, *shape: RefView(self).reshape(*shape),
    "bitcast": lambda self, dtype: RefView(self).bitcast(dtype),
    "transpose": lambda self, permutation=None: RefView(self).transpose(permutation),
}
attach_to_refs({name: member for name, member in _MEMBERS.items() if name != "addupdate"})


def _member_of(tracer: StagedTracer, name: str) -> Any:
    """Return an attribute of a variable that is a reference, beside those of arrays."""
    member = _MEMBERS.get(name)
    if member is None or not isinstance(tracer, Ref):
        return object.__getattribute__(tracer, name)  # whose error says what is wrong
    return member.__get__(tracer)


def _member(ref: Any, name: str) -> Any:
    return views_of(ref) if name == "at" else getattr(view_of(ref), name)


hooks.fill(member_of_tracer=_member_of)
slots.fill(ref_member=_member)
