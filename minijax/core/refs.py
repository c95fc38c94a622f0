"""References to values that change: their type, and how programs with them become pure.

Where a program is recorded, a reference is a variable of type `AbstractRef`, and what is done to it
is an equation. Everywhere else it is a `Ref`: a cell that holds the value of now, be that an array
or the tracer of a transform, so that no transform needs a rule for references: it sees the reading
and updating of values only. To evaluate a recorded program with cells, in `RefTrace`, is to make it
pure (`without_refs`); so it is done before it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax import errors
from minijax.config import local
from minijax.core.avals import AbstractValue, ShapedArray, hi_makers, is_ref
from minijax.core.effects import AccumEffect, WriteEffect
from minijax.core.hitypes import AvalQDD, cell_types, check_same_state, is_mutable, with_state
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from minijax.core.primitive import Primitive
from minijax.core.staging import JaxprTrace, StagedTracer, trace_to_jaxpr
from minijax.core.trace import Trace, Tracer, eval_trace

__all__ = [
    "AbstractRef", "CallPrimitive", "Ref", "RefTrace", "apart", "attach_to_refs", "check_settled", "check_unmapped", "is_cell", "keep", "on_values",
    "pure", "resolved", "values", "within", "without_refs",
]  # fmt: skip


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

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        space = "" if self.memory_space is None else f"<{self.memory_space}>"
        inner = self.inner_aval.strip_weak_type().str_short(short_dtypes, mesh_axis_types)
        return f"Ref{space}{{{inner}}}"

    def __repr__(self) -> str:
        return self.str_short()

    def __len__(self) -> int:
        return len(self.inner_aval)

    def __reduce__(self) -> Any:
        return AbstractRef, (self.inner_aval, self.memory_space)


_interned: dict[tuple, AbstractRef] = {}


class _AlsoTracers(type):
    """A tracer of a reference counts as one."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is Ref or (isinstance(x, Tracer) and type(x.aval) is AbstractRef)


class Ref(metaclass=_AlsoTracers):
    """Reference to an array that can be changed in place: `ref[index]` and `ref[index] = value`.

    Made by `new_ref`; it has the shape and dtype of the array. TypeError for a value that is not a
    reference.
    Source: MLIR's `memref` type.

    >>> ref = jax.new_ref(jnp.array([1, 2]))
    >>> ref[0] = 5
    >>> ref[...]
    Array([5, 2], dtype=int32)
    """

    __slots__ = ("__weakref__", "_trace", "_value", "_written", "aval")

    def __init__(
        self, value: Any, trace: Trace | None = None, aval: AbstractRef | None = None
    ) -> None:
        self._value = value
        self._written = False
        self._trace = local.context.trace if trace is None else trace
        if aval is None and not hasattr(value, "aval"):
            raise TypeError(
                f"A Ref holds an array, got {value!r} of type {type(value).__name__}: make one with "
                "new_ref."
            )
        self.aval = AbstractRef(value.aval) if aval is None else aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: False)
    sharding = property(lambda self: self._value.sharding)
    committed = property(lambda self: self._value.committed)
    format = property(lambda self: self._value.format)

    def __len__(self) -> int:
        return len(self.aval)

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
        if isinstance(value, Tracer) and not _encloses(value._trace, self._trace):
            raise Exception(
                f"performing a set/swap operation with a {value._trace.adjective} value on "
                f"{value._trace.other} array reference of type {self.aval.str_short()}. Make the "
                "reference an argument of the transformed function, or make it inside; of values "
                "that are differentiated, store lax.stop_gradient(x)."
            )
        self._value, self._written = value, True


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


def _encloses(outer: Trace, inner: Trace | None) -> bool:
    while inner is not None and inner is not outer:
        inner = inner.parent
    return inner is outer


class _Object:
    """An object of a library's type that changes in place, as a cell."""

    __slots__ = ("aval", "object")

    def __init__(self, x: Any, aval: AvalQDD):
        self.object, self.aval = x, aval


cell_types.add(Ref)


def is_cell(x: Any) -> bool:
    """Whether it is a reference, or another object that changes in place; and no tracer."""
    return type(x) is Ref or (type(x) in hi_makers and is_mutable(x))


def within(x: Any) -> Any:
    """An object of a library's type as the current trace is to see it; see `resolved`."""
    if type(x) not in hi_makers:
        return x
    trace = local.context.trace
    while trace is not None and not isinstance(trace, RefTrace):
        if type(trace) is JaxprTrace:
            return StagedTracer(trace, trace.lift(x))
        trace = trace.parent
    return x


def resolved(x: Any) -> Any:
    """A reference as the current trace is to see it: a cell, or the variable of a recorded program.

    A cell of outside becomes a constant of the innermost program that is being recorded.
    """
    if type(x) is not Ref:
        return within(x) if is_cell(x) else x
    trace = local.context.trace
    while trace is not None and trace is not x._trace:
        if type(trace) is JaxprTrace:
            return StagedTracer(trace, trace.lift(x))
        trace = trace.parent
    if trace is None and x._trace is not eval_trace:
        raise errors.UnexpectedTracerError(
            f"A reference was used after the function that made it had ended (it leaked): {x!r}. "
            "Return the value that it holds, as in ref[...], instead."
        )
    return x


class CallPrimitive(Primitive):
    """A primitive that holds programs, and may be given references.

    Its `discharge` rule is for a call with cells among its operands: it applies the primitive to their
    values, and keeps what these have become.
    """

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name, multiple_results=True, memoize=False)

    def bind(self, *args: Any, **params: Any) -> Any:
        if not cell_types.isdisjoint(map(type, args)):
            args = tuple(map(resolved, args))
            if any(map(is_cell, args)):
                if self.rule_discharge is None:
                    raise NotImplementedError(
                        f"{self.name} takes no references: read them before, as in ref[...]."
                    )
                return self.rule_discharge(args, params)
        if local.context.trace.maps:
            self._check_writes(args, params)
        return local.context.trace.process(self, args, params)

    def _check_writes(self, args: Sequence[Any], params: dict) -> None:
        """Refuse a call within vmap that changes references of a program that is being recorded."""
        refs = [x for x in args if type(getattr(x, "aval", None)) is AbstractRef]
        if refs and any(isinstance(e, (AccumEffect, WriteEffect)) for e in self.effects_of(params)):
            check_unmapped(refs[0])


hooks.method("ref_get", Ref, "__getitem__")
hooks.method("ref_set", Ref, "__setitem__")
hooks.method("ref_add", Ref, "addupdate")


def attach_to_refs(members: dict[str, Any]) -> None:
    """Give `Ref` its methods; called once by `lax.ref_views`."""
    for name, member in members.items():
        setattr(Ref, name, member)


class RefTrace(Trace):
    """Makes cells of the references that a program makes, and leaves the rest to its parent."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict) -> Any:
        if primitive.high and not hi_makers.keys().isdisjoint(map(type, args)):
            return primitive.rule_impl(*args, **params)
        if primitive._effects_by_type and any(map(is_cell, args)):  # a library's, on references
            if primitive.rule_discharge is None:
                raise NotImplementedError(
                    f"No state discharge rule implemented for primitive: {primitive.name}. Give it "
                    "one with register_discharge_rule, or read the reference before, as in ref[...]."
                )
            return primitive.rule_discharge(args, params)
        return self.pass_to_parent(primitive, args, params)


def apart(args: Sequence[Any]) -> tuple[list[Any], list[Any], tuple[int | None, ...]]:
    """The operands that are values, the different cells, and which cell each operand is."""
    plain, cells, which = [], [], []
    objects: list[Any] = []
    for x in args:
        if not is_cell(x):
            plain.append(x)
            which.append(None)
            continue
        number = next((n for n, known in enumerate(objects) if known is x), len(objects))
        if number == len(objects):
            objects.append(x)
            cells.append(x if type(x) is Ref else _Object(x, with_state(x)))
        which.append(number)
    return plain, cells, tuple(which)


def values(cells: Sequence[Any]) -> list[Any]:
    """The values in the cells: one in a reference, any number in another object."""
    found: list[Any] = []
    for cell in cells:
        found += [cell._value] if type(cell) is Ref else cell.aval.read_loval(cell.object)
    return found


def keep(
    cells: Sequence[Any], outs: Sequence[Any], count: int, *made: ClosedJaxpr
) -> Sequence[Any]:
    """Give the cells the values that follow `count` results; gives those results.

    `made` is the program that gave them, as `without_refs` makes it, or several of which one did:
    they tell the cells' last states and which of them they write to.
    """
    states = [cell.aval for cell in cells]
    written: Sequence[bool] = [True] * len(cells)
    if made:
        states = made[0].memo.get("states") or states
        written = [any(marks) for marks in zip(*[one.memo["written"] for one in made], strict=True)]
    rest = iter(outs[count:])
    for cell, last, changed in zip(cells, states, written, strict=True):
        if type(cell) is Ref:
            value = next(rest)
            if changed:
                cell.replace(value)
        else:
            given = [next(rest) for _ in last.lo_ty()]
            cell.aval.aval.update_from_loval(last.qdd, cell.object, *given)
    return outs[:count]


def check_settled(name: str, made: ClosedJaxpr, cells: Sequence[Any]) -> None:
    """TypeError if the body of a loop, as `without_refs` makes it, changes the state of a cell."""
    for cell, last in zip(cells, made.memo["states"], strict=True):
        if type(last) is AvalQDD:
            check_same_state(name, cell.aval, last)


def _cell(aval: Any, given: Iterator[Any], trace: Trace) -> Any:
    """A cell of this type, with values from `given`."""
    if type(aval) is AbstractRef:
        return Ref(next(given), trace, aval)
    return aval.new_from_loval(*[next(given) for _ in aval.lo_ty()])


def without_refs(
    closed: ClosedJaxpr, which: Sequence[int | None], avals: Sequence[AbstractRef]
) -> ClosedJaxpr:
    """The program on the values of references: `(*others, *values) -> (*results, *last values)`.

    `which` says for each input which reference it is, if any, and `avals` is their types. References
    that the program makes itself are gone.
    """
    which, avals = tuple(which), tuple(avals)
    others = [a for a, n in zip(closed.in_avals, which, strict=True) if n is None]
    last: list[Any] = []
    written: list[bool] = []

    def fun(*args):
        context = local.context
        trace = RefTrace(context.trace)
        rest = iter(args)
        plain = [next(rest) for _ in others]
        cells = [_cell(aval, rest, trace) for aval in avals]
        given = iter(plain)
        context.trace = trace
        try:
            ins = [next(given) if n is None else cells[n] for n in which]
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *ins)
            cells = apart(cells)[1]
            last[:] = [cell.aval for cell in cells]
            written[:] = [type(cell) is not Ref or cell._written for cell in cells]
            return [*outs, *values(cells)]
        finally:
            context.trace = trace.parent

    def make():
        inner = [low for aval in avals for low in aval.lo_ty()]
        made = trace_to_jaxpr(fun, [*others, *inner], closed.jaxpr.debug_info)
        made.memo["states"], made.memo["written"] = last, written
        return made

    return closed.derive(("without refs", which, avals, local.context.key), make)


def on_values(closed: ClosedJaxpr, chosen: Sequence[bool] | None = None) -> ClosedJaxpr:
    """The program on values in the places of references, which gives their last values too.

    `chosen` says which inputs become values, if they are references; all by default.
    """
    count = len(closed.in_avals)
    chosen = [True] * count if chosen is None else chosen
    cells = [n for n, aval in enumerate(closed.in_avals) if is_ref(aval) and chosen[n]]
    which = [cells.index(n) if n in cells else None for n in range(count)]
    made = without_refs(closed, which, [closed.in_avals[n] for n in cells])
    others = count - len(cells)
    rest, last = iter(made.jaxpr.invars[:others]), made.jaxpr.invars[others:]
    invars = [next(rest) if n is None else last[n] for n in which]
    return ClosedJaxpr(made.jaxpr.replace(invars=invars), made.consts)


def pure(jaxpr: Jaxpr, makes_refs: Callable[[Primitive], bool]) -> ClosedJaxpr | None:
    """The program without the references that it makes; None if it makes none."""
    if not any(makes_refs(eqn.primitive) for eqn in jaxpr.eqns):
        return None
    closed = ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]))
    return without_refs(closed, [None] * len(closed.in_avals), ())
