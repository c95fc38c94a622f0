"""Programs without references: what is done to a reference becomes reading and writing of a value
that goes through the program, and comes out as one more result.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from minijax import errors
from minijax.arguments.functions import path_of, place_of
from minijax.arrays.array import ArrayImpl
from minijax.config import local
from minijax.core.avals import opaque_types
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Var, eval_jaxpr, jaxprs_in_params
from minijax.core.primitive import CallPrimitive, Primitive
from minijax.core.staging import PartialTrace, trace_to_jaxpr
from minijax.core.trace import Trace, Tracer, eval_trace
from minijax.features.queries import is_ref
from minijax.features.references.cells import (
    AbstractRef,
    Ref,
    cell_of,
    check_unmapped,
    discharge,
    encloses,
    is_cell,
    outside_of,
    resolved,
)
from minijax.features.references.effects import AccumEffect, WriteEffect
from minijax.features.slots import slots
from minijax.transforms.jit import jit_p
from minijax.transforms.jvp import JVPTrace

__all__ = [
    "RefTrace", "apart", "check_different", "check_settled", "discharged",
    "has_ruled_refs", "keep", "makers", "on_values", "passes", "values", "without_refs",
]  # fmt: skip


class RefTrace(Trace):
    """Makes cells of the references that a program makes, and leaves the rest to its parent."""

    __slots__ = ()
    has_cells = True

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict) -> Any:
        if not (opaque_types.isdisjoint(map(type, args)) or isinstance(primitive, CallPrimitive)):
            rule = discharge.rule(primitive)
            if rule is not None:
                return rule(args, params)
            if primitive._effects_by_type and any(map(is_cell, args)):  # a library's
                raise NotImplementedError(
                    f"No state discharge rule implemented for primitive: {primitive.name}. Give it "
                    "one with register_discharge_rule, or read the reference before, as in ref[...]."
                )
            if primitive.holds_programs and any(map(is_cell, args)):  # of rules of the user's
                return primitive.rule_impl(*args, **params)  # its derivative is not asked for
        return self.pass_to_parent(primitive, args, params)


def apart(args: Sequence[Any]) -> tuple[list[Any], list[Any], tuple[int | None, ...]]:
    """The operands that are values, the different cells, and which cell each operand is."""
    plain, cells, which = [], [], []
    numbers: dict[int, int] = {}
    for x in args:
        number = numbers.get(id(x))
        cell = cell_of(x) if number is None else None
        if cell is not None:
            numbers[id(x)] = number = len(cells)
            cells.append(cell)
        elif number is None:
            plain.append(x)
        which.append(number)
    return plain, cells, tuple(which)


def values(cells: Sequence[Any]) -> list[Any]:
    """The values in the cells: one in a reference, any number in another object."""
    return [value for cell in cells for value in cell.values()]


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
        states = made[0].derived().get("states") or states
        written = [
            any(marks) for marks in zip(*[one.derived()["written"] for one in made], strict=True)
        ]
    last_values = outs[count:]
    if len(last_values) == len(cells):  # a reference has its value alone
        owned = zip(*[_owned(one, len(cells)) for one in made], strict=True) if made else ()
        owned = list(map(all, owned)) or [False] * len(cells)
        last_values = [
            x if own or type(x) is not ArrayImpl else copy.copy(x)
            for x, own in zip(last_values, owned, strict=True)
        ]
    rest = iter(last_values)
    for cell, last, changed in zip(cells, states, written, strict=True):
        cell.keep(last, rest, changed)
    return outs[:count]


def check_settled(name: str, made: ClosedJaxpr, cells: Sequence[Any]) -> None:
    """TypeError if the body of a loop, as `without_refs` makes it, changes the state of a cell."""
    for cell, last in zip(cells, made.derived()["states"], strict=True):
        cell.check_settled(name, last)


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
        cells = [aval.new_cell(rest, trace) for aval in avals]
        given = iter(plain)
        context.trace = trace
        try:
            ins = [next(given) if n is None else cells[n] for n in which]
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *ins)
            cells = apart(cells)[1]
            last[:] = [cell.aval for cell in cells]
            written[:] = [cell.written for cell in cells]
            return [*outs, *values(cells)]
        finally:
            context.trace = trace.parent

    def make():
        inner = [low for aval in avals for low in aval.lo_ty()]
        made = trace_to_jaxpr(fun, [*others, *inner], closed.jaxpr.debug_info)
        made.derived().update(states=last, written=written)
        return made

    return closed.derive(("without refs", which, avals), make)


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


# Functions from a jaxpr to a program that does the same without what it makes of no arrays, or None.
passes: list[Callable[[Jaxpr], ClosedJaxpr | None]] = []
makers: set[Primitive] = set()  # primitives that make references


def _without_made(jaxpr: Jaxpr) -> ClosedJaxpr | None:
    if not any(eqn.primitive in makers for eqn in jaxpr.eqns):
        return None
    closed = ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]))
    return without_refs(closed, [None] * len(closed.in_avals), ())


passes.append(_without_made)


# A jaxpr is asked for once for the types of its results, which follow what was stored, and once to
# be lowered. With each is kept the key of the context in which it was made pure.
_made_pure: WeakKeyDictionary[Jaxpr, tuple[Any, ClosedJaxpr]] = WeakKeyDictionary()


def discharged(jaxpr: Jaxpr) -> ClosedJaxpr | None:
    """The program without the references that it makes; None if it makes none."""
    key, made = _made_pure.get(jaxpr, (None, None))
    if made is not None and key is local.context.key:
        return made
    for without in passes:
        made = without(jaxpr)
        if made is not None:
            _made_pure[jaxpr] = local.context.key, made
            return made
    return None


# -- calls ----------------------------------------------------------------------------------------


def bind_call(self: CallPrimitive, *args: Any, **params: Any) -> Any:
    """Apply a primitive that holds programs, and may be given references.

    Its rule is for a call with cells among its operands: it applies the primitive to their values,
    and keeps what these have become.
    """
    if not opaque_types.isdisjoint(map(type, args)):
        args = tuple(map(resolved, args))
        if any(map(is_cell, args)):
            derivative = next(filter(None, map(_differentiated, args)), None)
            if derivative is not None and any(map(has_ruled_refs, self.programs.all(params))):
                return _differentiate(self, derivative, args, params)
            rule = discharge.rule(self)
            if rule is not None:
                return rule(args, params)
            if self.derived is None:
                raise NotImplementedError(
                    f"{self.name} takes no references: read them before, as in ref[...]."
                )
            return _call_on_values(self, args, params)
        if local.context.trace is eval_trace:
            args, params = slots.without_unread(self, args, params)
    if local.context.trace.maps:
        _check_writes(self, args, params)
    return local.context.trace.process(self, args, params)


def _differentiated(x: Any) -> Trace | None:
    """The innermost trace that differentiates a value, through the vmaps around it; None if none."""
    while isinstance(x, Tracer):
        if type(x._trace) is JVPTrace:
            return x._trace
        x = getattr(x, "value", None)
    return None


def _differentiate(p: CallPrimitive, trace: Trace, args: Sequence[Any], params: dict) -> Any:
    """Differentiate a call with references as they are, which the user's rules take.

    A backward rule reads and writes them in the backward pass. So they are residuals, and the programs
    that differentiation makes are discharged where they are run.
    """
    current = local.context.trace
    here = current
    while here is not trace and type(here) is PartialTrace:
        here = here.parent
    outer = outside_of(trace)
    inner = {id(x): x for x in args if type(x) is Ref and not encloses(x._trace, outer)}
    tangents = any(
        isinstance(x._value, Tracer) and x._value._trace is trace for x in inner.values()
    )
    if here is not trace or tangents or not all(type(x) is Ref for x in args if is_cell(x)):
        raise NotImplementedError(
            f"{p.name} is differentiated and gives references to a function with derivative rules "
            "(custom_vjp, custom_jvp), and maps them or makes them of values that are "
            "differentiated. Make the reference outside of the differentiated function, and map the "
            "gradient, as in vmap(grad(f))."
        )
    args = [x.outside(outer) if id(x) in inner else x for x in args]
    outs = current.process(p, tuple(args), params)
    for ref in inner.values():
        ref.take_over()
    return outs


def has_ruled_refs(closed: ClosedJaxpr) -> bool:
    """Whether the program gives references to functions with rules of the user's."""
    return closed.derive("ruled refs", lambda: _gives_ruled_refs(closed.jaxpr))


def _gives_ruled_refs(jaxpr: Jaxpr) -> bool:
    for eqn in jaxpr.eqns:
        calls = eqn.primitive.programs
        if calls is not None and calls.ruled and any(is_ref(var.aval) for var in eqn.invars):
            return True
        if any(map(_gives_ruled_refs, jaxprs_in_params(eqn.params))):
            return True
    return False


def _call_on_values(p: CallPrimitive, args: Sequence[Any], params: dict) -> Sequence[Any]:
    plain, cells, which = apart(args)
    closed = params["jaxpr"]
    made = without_refs(closed, which, [cell.aval for cell in cells])
    count = len(closed.out_avals)
    places = [*range(count), *[None] * (len(made.out_avals) - count)]
    inner = p.derived(params, made, places, None)
    context = local.context
    again = context.settings.debug_nans or context.settings.debug_infs  # it may be run once more
    only_refs = all(type(x) is Ref for x in args if is_cell(x))
    if p is jit_p and context.trace is eval_trace and only_refs and not again:
        given = params["donated_invars"] or [False] * len(which)
        kept = [flag for flag, n in zip(given, which, strict=True) if n is None]
        inner["donated_invars"] = (*kept, *_owned(made, len(cells)))
    outs = p.bind(*plain, *values(cells), **inner)
    return keep(cells, outs, count, made)


def _owned(made: ClosedJaxpr, count: int) -> list[bool]:
    """Return which of the last values of references have memory of their own: so they may be written
    in place the next time.

    They are results of a program that are no arguments, and no other results.
    """
    jaxpr, written = made.jaxpr, made.derived()["written"]
    if len(written) != count:
        return [False] * count
    others = {*jaxpr.invars, *jaxpr.constvars}
    uses = Counter(map(id, jaxpr.outvars))
    return [
        changed and type(var) is Var and var not in others and uses[id(var)] == 1
        for var, changed in zip(jaxpr.outvars[len(jaxpr.outvars) - count :], written, strict=True)
    ]


def _check_writes(p: Primitive, args: Sequence[Any], params: dict) -> None:
    """Refuse a call within vmap that changes references of a program that is being recorded."""
    refs = [x for x in args if type(getattr(x, "aval", None)) is AbstractRef]
    if refs and any(isinstance(e, (AccumEffect, WriteEffect)) for e in p.effects_of(params)):
        check_unmapped(refs[0])


def check_operands(primitive: Primitive, avals: Sequence[Any]) -> None:
    """RefOperandError for a reference that is given to a primitive on arrays."""
    ref = next(filter(is_ref, avals), None)
    if ref is None or primitive._effects_by_type or getattr(primitive, "takes_refs", False):
        return
    if not isinstance(primitive, CallPrimitive) and discharge.rule(primitive) is None:
        raise errors.RefOperandError(primitive, ref)


def check_different(
    what: str, leaves: Sequence[Any], fun: Callable, in_tree: Any, outer: Sequence[Any] = (),
    statics: Sequence[Any] = (),
) -> None:  # fmt: skip
    """ValueError if the same reference is given twice, or given and closed over (`outer`)."""
    refs = [(n, x) for n, x in enumerate(leaves) if type(x) is Ref]
    if len({id(x) for _, x in refs}.union(map(id, outer))) == len(refs) + len(outer):
        return
    for n, x in refs:
        kind, path = f"a mutable array reference of type {x.aval.str_short()}", path_of
        if any(x is other for other in outer):
            raise ValueError(
                f"when tracing {place_of(fun)} for {what}, {kind} was both closed over and passed as "
                f"the argument {path(fun, in_tree, n, statics)}: let it take the reference once."
            )
        first = next(other for other, y in refs if y is x)
        if first < n:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, "
                f"but when tracing {place_of(fun)} for {what} the{kind[1:]} appeared at both "
                f"{path(fun, in_tree, first, statics)} and {path(fun, in_tree, n, statics)}: let it take the reference once."
            )


hooks.fill(
    bind_call=bind_call,
    check_arguments=check_different,
    check_operands=check_operands,
    discharged=discharged,
    is_lasting=lambda x: type(x) is Ref and x._trace is eval_trace,
)
slots.fill(
    on_values=on_values,
    keep_in_refs=lambda args, outs, count: keep(apart(args)[1], outs, count),
)
