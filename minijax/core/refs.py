"""References to values that change: their type, and how programs with them become pure.

May import the ground floor and `core`. Where a program is recorded, a reference is a variable of
type `AbstractRef`, and what is done to it is an equation. Everywhere else it is a `Ref`: a cell that
holds the value of now, be that an array or the tracer of a transform, so that no transform needs a
rule for references: it sees the reading and updating of values only. To evaluate a recorded program
with cells, in `RefTrace`, is to make it pure (`without_refs`); so it is done before it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax import errors
from minijax.config import local
from minijax.core.avals import AbstractValue, ShapedArray, is_ref
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from minijax.core.primitive import Primitive
from minijax.core.staging import JaxprTrace, StagedTracer, trace_to_jaxpr
from minijax.core.trace import Trace, Tracer, eval_trace

__all__ = [
    "AbstractRef", "CallPrimitive", "Ref", "RefTrace", "apart", "keep", "on_values", "pure", "resolved", "values",
    "without_refs",
]  # fmt: skip


class AbstractRef(AbstractValue):
    """The type of a reference to a value of the type `inner_aval`."""

    __slots__ = ("__dict__", "inner_aval", "memory_space")
    weak_type = False
    explicit = None
    vma: frozenset = frozenset()

    def __new__(cls, inner_aval: ShapedArray, memory_space: Any = None):
        inner_aval = inner_aval.strip_weak_type()
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

    def update(self, **changes) -> AbstractRef:
        space = changes.pop("memory_space", self.memory_space)
        inner = changes.pop("inner_aval", self.inner_aval)
        return AbstractRef(inner.update(**changes) if changes else inner, space)

    def to_tangent_aval(self) -> ShapedArray:
        """A reference is not differentiated; the values that pass through it are."""
        from_integers = ShapedArray(self.shape, bool)
        return from_integers.to_tangent_aval()

    to_cotangent_aval = to_ct_aval = to_tangent_aval

    def str_short(self, short_dtypes: bool = False) -> str:
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short()

    def __len__(self) -> int:
        return len(self.inner_aval)

    def __reduce__(self):
        return AbstractRef, (self.inner_aval, self.memory_space)


_interned: dict[tuple, AbstractRef] = {}


class _AlsoTracers(type):
    """A tracer of a reference counts as one."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is Ref or (isinstance(x, Tracer) and type(x.aval) is AbstractRef)


class Ref(metaclass=_AlsoTracers):
    """A reference to an array that can be changed in place: `ref[index]` and `ref[index] = value`.

    Made by `new_ref`. The operators and methods are those that `minijax.lax.refs` attaches.
    """

    __slots__ = ("__weakref__", "_trace", "_value", "aval")

    def __init__(self, value: Any, trace: Trace | None = None, aval: AbstractRef | None = None):
        self._value = value
        self._trace = local.context.trace if trace is None else trace
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

    def replace(self, value: Any) -> None:
        """Make `value`, which has the type of the reference, the value of now."""
        if isinstance(value, Tracer) and not _encloses(value._trace, self._trace):
            raise Exception(
                f"performing a set/swap operation with a {value._trace.adjective} value on "
                f"{value._trace.other} array reference of type {self.aval.str_short()}. Make the "
                "reference an argument of the transformed function, or make it inside; of values "
                "that are differentiated, store lax.stop_gradient(x)."
            )
        self._value = value


def _encloses(outer: Trace, inner: Trace | None) -> bool:
    while inner is not None and inner is not outer:
        inner = inner.parent
    return inner is outer


def resolved(x: Any) -> Any:
    """A reference as the current trace is to see it: a cell, or the variable of a recorded program.

    A cell of outside becomes a constant of the innermost program that is being recorded.
    """
    if type(x) is not Ref:
        return x
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

    Its `discharge` rule, `(args, params) -> results`, is for a call with cells among its operands:
    it applies the primitive to their values, and keeps what these have become.
    """

    __slots__ = ("rule_discharge",)

    def __init__(self, name: str):
        super().__init__(name, multiple_results=True, memoize=False)
        self.rule_discharge: Callable | None = None

    def discharge(self, rule: Callable) -> Callable:
        """Decorator: set the 'discharge' rule."""
        self.rule_discharge = rule
        return rule

    def bind(self, *args, **params):
        if Ref in map(type, args):
            args = tuple(map(resolved, args))
            if Ref in map(type, args):
                if self.rule_discharge is None:
                    raise NotImplementedError(
                        f"{self.name} takes no references: read them before, as in ref[...]."
                    )
                return self.rule_discharge(args, params)
        return local.context.trace.process(self, args, params)


class RefTrace(Trace):
    """Makes cells of the references that a program makes, and leaves the rest to its parent."""

    __slots__ = ()
    process = Trace.pass_to_parent


def apart(args: Sequence[Any]) -> tuple[list[Any], list[Ref], tuple[int | None, ...]]:
    """The operands that are values, the different cells, and which cell each operand is."""
    plain, cells, which = [], [], []
    for x in args:
        if type(x) is not Ref:
            plain.append(x)
            which.append(None)
            continue
        number = next((n for n, cell in enumerate(cells) if cell is x), len(cells))
        cells += [x] if number == len(cells) else []
        which.append(number)
    return plain, cells, tuple(which)


def values(cells: Sequence[Ref]) -> list[Any]:
    return [cell._value for cell in cells]


def keep(cells: Sequence[Ref], outs: Sequence[Any], count: int) -> Sequence[Any]:
    """Give the cells the values that follow `count` results; gives those results."""
    for cell, value in zip(cells, outs[count:], strict=True):
        cell.replace(value)
    return outs[:count]


def without_refs(
    closed: ClosedJaxpr, which: Sequence[int | None], avals: Sequence[AbstractRef]
) -> ClosedJaxpr:
    """The program on the values of references: `(*others, *values) -> (*results, *last values)`.

    `which` says for each input which reference it is, if any, and `avals` is their types. References
    that the program makes itself are gone.
    """
    which, avals = tuple(which), tuple(avals)
    others = [a for a, n in zip(closed.in_avals, which, strict=True) if n is None]

    def fun(*args):
        context = local.context
        trace = RefTrace(context.trace)
        rest = iter(args)
        plain = [next(rest) for _ in others]
        cells = [Ref(x, trace, aval) for x, aval in zip(rest, avals, strict=True)]
        given = iter(plain)
        context.trace = trace
        try:
            ins = [next(given) if n is None else cells[n] for n in which]
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *ins)
        finally:
            context.trace = trace.parent
        return [*outs, *values(cells)]

    def make():
        inner = [aval.inner_aval for aval in avals]
        return trace_to_jaxpr(fun, [*others, *inner], closed.jaxpr.debug_info)

    return closed.derive(("without refs", which, avals, local.context.key), make)


def on_values(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program on values in the places of references, which gives their last values too."""
    cells = [n for n, aval in enumerate(closed.in_avals) if is_ref(aval)]
    which = [cells.index(n) if n in cells else None for n in range(len(closed.in_avals))]
    made = without_refs(closed, which, [closed.in_avals[n] for n in cells])
    count = len(closed.in_avals) - len(cells)
    rest, last = iter(made.jaxpr.invars[:count]), made.jaxpr.invars[count:]
    invars = [next(rest) if n is None else last[n] for n in which]
    return ClosedJaxpr(made.jaxpr.replace(invars=invars), made.consts)


def pure(jaxpr: Jaxpr, makes_refs: Callable[[Primitive], bool]) -> ClosedJaxpr | None:
    """The program without the references that it makes; None if it makes none."""
    if not any(makes_refs(eqn.primitive) for eqn in jaxpr.eqns):
        return None
    closed = ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]))
    return without_refs(closed, [None] * len(closed.in_avals), ())
