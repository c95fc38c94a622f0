"""References to values that change: their type, and how programs with them become pure.

Where a program is recorded, a reference is a variable of type `AbstractRef`, and what is done to it
is an equation. Everywhere else it is a `Ref`: a cell that holds the value of now, be that an array
or the tracer of a transform, so that no transform needs a rule for references: it sees the reading
and updating of values only. To evaluate a recorded program with cells, in `RefTrace`, is to make it
pure (`features.references.discharge`); so it is done before it is compiled.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minijax import dtypes, errors, tree_util
from minijax.arguments.functions import place_of
from minijax.arrays.array import as_value
from minijax.config import local
from minijax.core.array import Array
from minijax.core.avals import AbstractValue, ShapedArray, opaque_types
from minijax.core.primitive import RuleColumn
from minijax.core.staging import JaxprTrace, PartialTrace
from minijax.core.trace import Trace, Tracer, eval_trace, set_trace
from minijax.features.queries import Reference
from minijax.features.slots import slots
from minijax.transforms.primitives import instantiate
from minijax.transforms.tangents import zero_like

__all__ = [
    "AbstractRef", "Ref", "as_seen", "attach_to_refs", "cell_makers", "cell_of", "check_unmapped",
    "check_unmapped_operands", "discharge", "encloses", "is_cell", "outside_of", "resolved",
]  # fmt: skip

# Rules `(args, params) -> results` that apply a primitive to references that are cells.
discharge = RuleColumn("discharge")


class AbstractRef(AbstractValue):
    """The type of a reference to a value of the type `inner_aval`, which may be a weak one."""

    __slots__ = ("__dict__", "inner_aval", "memory_space")
    weak_type = False
    explicit = None
    vma: frozenset[Any] = frozenset()

    def __new__(cls, inner_aval: ShapedArray, memory_space: Any = None) -> Any:
        key = (inner_aval, memory_space)
        aval = _interned.get(key)
        if aval is None:
            aval = object.__new__(cls)
            aval.inner_aval, aval.memory_space = key
            aval = _interned.setdefault(key, aval)
        return aval

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)
    sharding = property(lambda self: self.inner_aval.sharding)

    def update(self, **changes: Any) -> AbstractRef:
        space = changes.pop("memory_space", self.memory_space)
        inner = changes.pop("inner_aval", self.inner_aval)
        return AbstractRef(inner.update(**changes) if changes else inner, space)

    def lo_ty(self) -> list[AbstractValue]:
        return [self.inner_aval]

    def to_tangent_aval(self) -> ShapedArray:
        """A reference is not differentiated; the values that pass through it are."""
        from_integers = ShapedArray(self.shape, bool)
        return from_integers.to_tangent_aval()

    to_cotangent_aval = to_ct_aval = to_tangent_aval

    def check_tangent(self, t: Any) -> bool:
        """TypeError unless `t` is the reference of a tangent; whether this has no tangents."""
        wanted = self.inner_aval.to_tangent_aval()
        found = getattr(t, "aval", None)
        if type(found) is not AbstractRef or found.shape != self.shape or found.dtype != self.dtype:
            given = repr(t) if found is None else found.str_short()
            raise TypeError(
                "primal and tangent arguments to jax.jvp do not match; the tangent of a reference is "
                f"a reference of its type, here {self.str_short()}; got {given}."
            )
        return wanted.dtype == dtypes.float0

    def jvp_tracer(self, trace: Trace, aval: Any, primal: Any, tangent: Any) -> Ref:
        """Return a cell that holds the value and its tangent of two references, and changes both."""
        cell = Ref(trace.pair(primal[...], tangent[...]), trace, self)
        cell._pair = (primal, tangent)
        return cell

    def check_differentiated(self, transform: str) -> None:
        held = self.inner_aval.strip_weak_type().str_short()
        raise ValueError(
            f"Expected cotangent type {self.str_short()} but got {held}: {transform} cannot "
            "differentiate with respect to references. Pass the value, as in ref[...], and make a "
            "reference inside."
        )

    def check_constant(self, value: Any) -> None:
        raise ValueError(
            f"a function that runs on several devices closes over the reference {value!r}: read it "
            "outside, as in ref[...], and pass the value (pmap, shard_map)."
        )

    def check_result(self, fun: Callable, transform: str, out_tree: Any, index: int) -> None:
        paths = tree_util.generate_key_paths(out_tree.unflatten(range(out_tree.num_leaves)))
        path = tree_util.keystr(list(paths)[index][0])
        where = f" at output tree path result{path}" if path else ""
        raise ValueError(
            f"function {place_of(fun)} traced for {transform} returned a mutable array reference of "
            f"type {self.str_short()}{where}, but mutable array references cannot be returned.\n\n"
            "Return what it holds, as in ref[...]."
        )

    def new_cell(self, values: Iterator[Any], trace: Trace | None) -> Ref:
        """Return a cell of this type, of the current trace by default, that holds the next value."""
        return Ref(next(values), trace, self)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        space = "" if self.memory_space is None else f"<{self.memory_space}>"
        inner = self.inner_aval.strip_weak_type().str_short(short_dtypes, mesh_axis_types)
        return f"Ref{space}{{{inner}}}"

    def __repr__(self) -> str:
        return self.str_short()

    def __reduce__(self) -> Any:
        return AbstractRef, (self.inner_aval, self.memory_space)


_interned: dict[tuple, AbstractRef] = {}


class _AlsoTracers(type):
    """A tracer of a reference counts as one."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is Ref or (isinstance(x, Tracer) and type(x.aval) is AbstractRef)


class Ref(Reference, metaclass=_AlsoTracers):
    """Reference to an array that can be changed in place: `ref[index]` and `ref[index] = value`.

    Made by `new_ref`; it has the shape and dtype of the array. TypeError for a value that is not a
    reference.
    Source: MLIR's `memref` type.

    >>> ref = jax.new_ref(jnp.array([1, 2]))
    >>> ref[0] = 5
    >>> ref[...]
    Array([5, 2], dtype=int32)
    """

    __slots__ = ("__weakref__", "_outside", "_pair", "_trace", "_value", "_written", "aval")

    def __init__(
        self, value: Any, trace: Trace | None = None, aval: AbstractRef | None = None
    ) -> None:
        self._value = value
        self._written = False
        self._outside: Ref | None = None
        self._pair: tuple[Any, Any] | None = None  # references of its value and of the tangent
        self._trace = local.context.trace.main if trace is None else trace
        if aval is None and not hasattr(value, "aval"):
            raise TypeError(
                f"A Ref holds an array, got {value!r} of type {type(value).__name__}: make one with "
                "new_ref."
            )
        self.aval = AbstractRef(value.aval) if aval is None else aval

    if TYPE_CHECKING:  # what `lax` attaches
        at: Any

        def __getitem__(self, idx: Any) -> Array: ...
        def __setitem__(self, idx: Any, value: Any) -> None: ...
        def addupdate(self, value: Any, idx: Any = None) -> None: ...

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: False)
    sharding = property(lambda self: self._value.sharding)
    committed = property(lambda self: self._value.committed)
    format = property(lambda self: self._value.format)

    def __len__(self) -> int:
        return errors.length_of(self.shape)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        text = repr(self._value)
        return f"Ref({text[text.index('(') + 1 :]}" if "(" in text else f"Ref({text})"

    def block_until_ready(self) -> Ref:
        """Wait until the value of now is there."""
        self._value.block_until_ready()
        return self

    def unsafe_buffer_pointer(self) -> int:
        """The address of the value of now."""
        return self._value.unsafe_buffer_pointer()

    def replace(self, value: Any, operation: str = "a set/swap") -> None:
        """Make `value`, which has the type of the reference, the value of now."""
        if self._trace is not local.context.trace:
            check_unmapped(self, operation)
        if isinstance(value, Tracer) and not encloses(value._trace, self._trace):
            raise Exception(
                f"performing a set/swap operation with a {value._trace.adjective} value on "
                f"{value._trace.other} array reference of type {self.aval.str_short()}. Make the "
                "reference an argument of the transformed function, or make it inside; of values "
                "that are differentiated, store lax.stop_gradient(x)."
            )
        self._value, self._written = value, True
        if self._outside is not None:
            self.outside(self._outside._trace)
        if self._pair is not None:
            self._write_pair(*self._pair)

    def _write_pair(self, primal: Any, tangent: Any) -> None:
        value = self._value
        with set_trace(self._trace.parent):
            if isinstance(value, Tracer) and value._trace is self._trace:
                primal[...], tangent[...] = value.primal, value.tangent
            else:
                primal[...], tangent[...] = value, instantiate(zero_like(value))

    def outside(self, trace: Trace) -> Ref:
        """Return the reference in an outer trace that backward rules are given in its place.

        This one is made within a function that is differentiated, and has no meaning after that.
        """
        value = self._value
        check_unmapped_operands([self])
        if isinstance(value, Tracer) and value._trace is self._trace:
            value = value.primal
        value = copy.copy(value)  # each may be written in place
        if self._outside is None:
            self._outside = Ref(value, trace, self.aval)
        self._outside._value, self._outside._written = value, False
        return self._outside

    def take_over(self) -> None:
        """Take the value that `outside` has been given, if any."""
        if self._outside._written:
            self._value, self._written = copy.copy(self._outside._value), True


def check_unmapped(ref: Any, operation: str = "a set/swap") -> None:
    """Refuse to change a reference from within a vmap that does not map it: it has one value."""
    trace = local.context.trace
    while trace is not None and trace is not ref._trace:
        if trace.maps:
            raise Exception(
                f"performing {operation} operation with vmapped value on an unbatched array "
                f"reference of type {ref.aval.str_short()}. Move the array reference to be an "
                "argument to the vmapped function? Or make it inside: of one that is not mapped "
                "there is one value for all positions."
            )
        trace = trace.parent


def encloses(outer: Trace, inner: Trace | None) -> bool:
    """Whether a trace is another one, or around it."""
    while inner is not None and inner is not outer:
        inner = inner.parent
    return inner is outer


def check_unmapped_operands(args: Sequence[Any]) -> None:
    """Refuse references that vmap maps as operands of a call with rules that is kept for later."""
    trace = local.context.trace
    ref = next((x for x in args if type(x) is Ref and x._trace.maps), None)
    if ref is not None and not encloses(ref._trace, trace):
        raise NotImplementedError(
            f"A function with derivative rules is given the mapped reference {ref!r}, and is "
            "differentiated or compiled outside of vmap. Map the gradient, as in vmap(grad(f)), or "
            "the compiled function, as in vmap(jit(f))."
        )


def outside_of(trace: Trace) -> Trace:
    """The trace around one that differentiates, in which its backward pass is run."""
    return trace.parent.parent if type(trace.parent) is PartialTrace else trace.parent


def _outside_refs(args: Sequence[Any]) -> tuple[Sequence[Any], list[Ref]]:
    """The operands of a forward rule, with references that outlive the forward pass.

    The references in whose place these stand are given too: they take over what the rule writes.
    """
    trace = local.context.trace
    if type(trace) is not PartialTrace or not any(type(x) is Ref for x in args):
        return args, []
    outer = trace.parent
    inner = [type(x) is Ref and not encloses(x._trace, outer) for x in args]
    # The trace of a program has another backward pass.
    if any(inner) and trace.debug_info.traced_for not in ("linearize", "vjp"):
        raise NotImplementedError(
            "A function with derivative rules is given a reference that is made within a compiled, "
            "checkpointed or repeated function, which is differentiated. Make the reference outside of "
            "that function."
        )
    pairs = list(zip(args, inner, strict=True))
    return [x.outside(outer) if flag else x for x, flag in pairs], [x for x, flag in pairs if flag]


class _Cell:
    """A reference as an operand that is discharged."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref):
        self.ref = ref

    aval = property(lambda self: self.ref.aval)
    written = property(lambda self: self.ref._written)

    def values(self) -> list[Any]:
        """Return the value of now, as a list."""
        return [self.ref._value]

    def keep(self, last: Any, values: Iterator[Any], written: bool) -> None:
        """Make the next of the values the one of now, if it was written."""
        value = next(values)
        if written:
            if not isinstance(value, Array):  # a number in a program that is evaluated
                weak = self.aval.inner_aval.weak_type
                value = as_value(value if weak else np.asarray(value, self.aval.dtype))
            self.ref.replace(value)

    def check_settled(self, name: str, last: Any) -> None:
        """Nothing: the body of a loop leaves a reference of one type."""


# From the class of a value to the function that gives its cell, or None if it does not change.
cell_makers: dict[type, Callable[[Any], Any]] = {Ref: _Cell}
opaque_types.add(Ref)


def cell_of(x: Any) -> Any:
    """Return the cell of a reference, or of another object that changes in place; None of others.

    It has the `aval`, `values()` and whether it was `written`; `keep` puts values into it.
    """
    maker = cell_makers.get(type(x))
    return None if maker is None else maker(x)


def is_cell(x: Any) -> bool:
    """Whether it is a reference, or another object that changes in place; and no tracer."""
    return cell_of(x) is not None


def as_seen(x: Any) -> Any:
    """Return an object that is no array as the current trace is to see it.

    While a program is recorded it is a constant of that; where references are cells, it is itself.
    """
    trace = local.context.trace
    while trace is not None and not trace.has_cells:
        if type(trace) is JaxprTrace:
            var = trace.lift(x)
            return var.aval.staged_tracer(trace, var)
        trace = trace.parent
    return x


def resolved(x: Any) -> Any:
    """A reference as the current trace is to see it: a cell, or the variable of a recorded program.

    A cell of outside becomes a constant of the innermost program that is being recorded.
    """
    if type(x) is not Ref:
        return as_seen(x) if is_cell(x) else x
    trace = local.context.trace
    while trace is not None and trace is not x._trace:
        if type(trace) is JaxprTrace:
            var = trace.lift(x)
            return var.aval.staged_tracer(trace, var)
        trace = trace.parent
    if trace is None and x._trace is not eval_trace:
        raise errors.UnexpectedTracerError(
            f"A reference was used after the function that made it had ended (it leaked): {x!r}. "
            "Return the value that it holds, as in ref[...], instead."
        )
    return x


slots.fill(check_unmapped_operands=check_unmapped_operands, outside_refs=_outside_refs)
slots.method("ref_get", Ref, "__getitem__")
slots.method("ref_set", Ref, "__setitem__")
slots.method("ref_add", Ref, "addupdate")


def attach_to_refs(members: dict[str, Any]) -> None:
    """Give `Ref` its methods; called once by `lax.ref_views`."""
    for name, member in members.items():
        setattr(Ref, name, member)
