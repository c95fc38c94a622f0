"""From programs on values of libraries' types to programs on arrays. Transforms see values of such
types, and apply the rules that libraries gave their primitives. Below all of them, where
operations run at once and where a program is compiled, the values become the arrays they are
made of, and each primitive becomes what it computes of these (`HiPrimitive`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.config import local
from minijax.core import source
from minijax.core.avals import get_aval, raised
from minijax.core.hooks import hooks
from minijax.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Var,
    eval_jaxpr,
    jaxprs_in_params,
)
from minijax.core.primitive import Primitive, Programs, no_effects
from minijax.core.staging import JaxprTrace, trace_to_jaxpr
from minijax.core.trace import Trace, set_trace
from minijax.features.hijax import states
from minijax.features.hijax.qdd import state_of, within
from minijax.features.hijax.types import AvalMutableQDD, AvalQDD, HiPspec, is_hi_value, left_out
from minijax.features.references.discharge import RefTrace, discharge, passes

__all__ = [
    "HiPrimitive", "HighPrimitive", "is_high", "is_high_call", "lower_call", "lower_jaxpr",
]  # fmt: skip

states  # noqa: B018  follows the states of values through calls

# -- primitives of libraries ----------------------------------------------------------------------


class HighPrimitive(Primitive):
    """A primitive on values of libraries' types; its `impl` rule computes it of objects and arrays."""

    __slots__ = ()

    def __init__(self, name: str, **options: Any):
        super().__init__(name, **options)
        discharge(self)(lambda args, params: self.rule_impl(*args, **params))


class HiPrimitive(HighPrimitive):
    """A primitive that a library defines, by overriding methods:

    - `abstract_eval(*avals, **params)` gives the type of the result (types, if the class says
      `multiple_results = True`) and the set of effects. A value that changes comes as an
      `AvalMutableQDD`, whose state it may update; a result that changes is an `AvalQDD`.
    - `to_lojax(*args, **params)` computes it, of objects and arrays
    - `jvp(primals, tangents, **params)` and `transpose(cotangents, *args, **params)` as of any
      primitive, if it is to be differentiated
    """

    __slots__ = ()

    def __init__(self, name: str):
        super().__init__(name)
        self._avals, self.holds_programs, self.user_rules = None, True, True
        self.rule_shape, self.rule_effects = self._types, None  # effects where it is staged
        self.rule_stage, self.rule_impl = self._stage, self._run
        self.rule_jvp, self.rule_transpose = self._jvp, self._transpose

    def is_high(self, *avals: Any, **params: Any) -> bool:
        return True

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple:
        raise left_out(self, "abstract_eval")

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        raise left_out(self, "to_lojax")

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple:
        raise left_out(self, "jvp")

    def transpose(self, cts: Any, *args: Any, **params: Any) -> Any:
        raise left_out(self, "transpose")

    def bind(self, *args: Any, **params: Any) -> Any:
        return super().bind(*map(within, args), **params)

    def _types(self, *avals: Any, **params: Any) -> Any:
        return self.abstract_eval(*map(_shown, avals), **params)[0]

    def _jvp(self, primals: tuple, tangents: tuple, **params: Any) -> tuple:
        return self.jvp(primals, tangents, **params)

    def _transpose(self, cts: Any, *args: Any, **params: Any) -> Any:
        return self.transpose(cts, *args, **params)

    def _run(self, *args: Any, **params: Any) -> Any:
        return self.to_lojax(*args, **params)

    def _stage(self, trace: JaxprTrace, args: Sequence[Any], params: dict) -> Any:
        """Record it: the rule of types may change what is known of values that change."""
        atoms = [trace.atom(a) for a in args]
        shown = [
            AvalMutableQDD(a.aval.aval, state_of(a)) if type(a.aval) is AvalQDD else a.aval
            for a in atoms
        ]
        outs, effects = self.abstract_eval(*shown, **params)
        outvars = [Var(aval) for aval in (outs if self.multiple_results else [outs])]
        context = local.context
        effects = hooks.on_operands(frozenset(effects), atoms, params) if effects else no_effects
        where = context.source or source.capture(3)
        trace.eqns.append(JaxprEqn(atoms, outvars, self, params, effects, where, context.scope))
        trace.effects |= effects
        found = [var.aval.staged_tracer(trace, var) for var in outvars]
        return found if self.multiple_results else found[0]


def _shown(aval: Any) -> Any:
    """A type as rules are given it, where the state is not followed."""
    if type(aval) is AvalQDD:
        return AvalMutableQDD(aval.aval, state_of(Var(aval)))
    return aval


# -- below all transforms -------------------------------------------------------------------------


def _has_high(jaxpr: Jaxpr) -> bool:
    for eqn in jaxpr.eqns:
        if isinstance(eqn.primitive, HighPrimitive) or any(
            v.aval.is_high for v in (*eqn.invars, *eqn.outvars)
        ):
            return True
        if any(map(_has_high, jaxprs_in_params(eqn.params))):
            return True
    return any(v.aval.is_high for v in (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars))


def is_high(closed: ClosedJaxpr) -> bool:
    """Whether a program has primitives or types of libraries, in it or in what it calls."""
    return closed.derive("high", lambda: _has_high(closed.jaxpr))


def is_high_call(primitive: Primitive, args: Sequence[Any], params: dict) -> bool:
    """Whether a primitive that holds programs is given, gives or makes what is of libraries."""
    calls = primitive.programs
    if calls is not None and type(calls.all(params)[0]) is not ClosedJaxpr:
        return False  # it calls a function that is no program
    if any(map(is_hi_value, args)):
        return True
    if calls is None:
        return any(map(_has_high, jaxprs_in_params(params)))
    return any(map(is_high, calls.all(params)))


class LowTrace(RefTrace):
    """Makes arrays of values of libraries' types, and leaves the rest to its parent."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict) -> Any:
        if isinstance(primitive, HighPrimitive):
            return primitive.rule_impl(*args, **params)
        if primitive.holds_programs and is_high_call(primitive, args, params):
            return lower_call(primitive, args, params, self.parent)
        if not primitive.holds_programs and any(map(is_hi_value, args)):
            kind = next(get_aval(x) for x in args if is_hi_value(x))
            raise ValueError(
                f"Attempting to pass an unexpected type {kind} to a primitive: {primitive.name}, "
                "which takes arrays. Give it what the primitives of that type compute of the value."
            )
        return self.pass_to_parent(primitive, args, params)


def _lower(x: Any) -> tuple[Any, list[Any]]:
    """The type of a value, and the arrays it is made of."""
    if not is_hi_value(x):
        return get_aval(x), [x]
    aval = get_aval(x).for_constant(x)
    return aval, list(aval.lower_val(x))


def lower_jaxpr(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """The program on the arrays that values are made of, and the types of its results."""
    types: list[Any] = []

    def fun(*values):
        context = local.context
        trace = LowTrace(context.trace)
        context.trace = trace
        try:
            ins = raised(closed.in_avals, values)
            found = [_lower(x) for x in eval_jaxpr(closed.jaxpr, closed.consts, *ins)]
        finally:
            context.trace = trace.parent
        types.extend(aval for aval, _ in found)
        return [value for _, values in found for value in values]

    def make():
        avals = [low for aval in closed.in_avals for low in aval.lo_ty()]
        return trace_to_jaxpr(fun, avals, closed.jaxpr.debug_info), types

    return closed.derive(("lowered", local.context.key), make)


def as_arrays(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]] | None:
    """See `core.hooks`."""
    return lower_jaxpr(closed) if is_high(closed) else None


def _pure(jaxpr: Jaxpr) -> ClosedJaxpr | None:
    """The program on arrays, if values of libraries' types are made within it."""
    if not any(isinstance(eqn.primitive, HighPrimitive) for eqn in jaxpr.eqns):
        return None
    closed = ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]))
    return lower_jaxpr(closed)[0]


passes.insert(0, _pure)


def lower_call(primitive: Primitive, args: Sequence[Any], params: dict, parent: Trace) -> Any:
    """Apply a primitive that holds programs to the arrays that its operands are made of.

    Of a function with rules of its own there is only the function left: no transform will ask.
    """
    found = [_lower(x) for x in args]
    calls = primitive.programs
    if calls is not None and calls.ruled:
        made, kinds = lower_jaxpr(*calls.all(params))
        with set_trace(parent):
            lows = [x for _, values in found for x in values]
            return raised(kinds, eval_jaxpr(made.jaxpr, made.consts, *lows))
    changed = _with_low_programs(calls, params, [len(values) for _, values in found])
    types = _types_of_results(primitive, [aval for aval, _ in found], params)
    with set_trace(parent):
        outs = primitive.bind(*[x for _, values in found for x in values], **changed)
    return raised(types, outs)


def _with_low_programs(calls: Programs | None, params: dict, sizes: Sequence[int]) -> dict:
    """The params for operands that are made of so many arrays: their programs take these."""
    changed = {name: _lowered(value) for name, value in params.items()}
    if "donated_invars" in params:
        changed["donated_invars"] = ()
    if calls is not None:
        counts = zip(calls.counts, calls.groups(sizes, params), strict=False)
        changed.update((name, sum(group)) for name, group in counts if type(name) is str)
    for name in ("in_specs", "out_specs"):
        if name in params:
            changed[name] = _low_specs(params[name])
    return changed


def _lowered(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return lower_jaxpr(value)[0]
    if isinstance(value, (tuple, list)) and any(isinstance(x, ClosedJaxpr) for x in value):
        return type(value)(map(_lowered, value))
    return value


def _types_of_results(primitive: Primitive, avals: Sequence[Any], params: dict) -> Sequence[Any]:
    """The types of what a call gives, with the states of what changes."""
    if "out_specs" in params:  # the program gives parts
        return primitive.out_avals(tuple(avals), params)
    calls = primitive.programs
    types = lower_jaxpr(calls.held(calls.result, params)[0])[1]
    if calls.mapped is None:
        return types
    carry, length = len(calls.groups(avals, params)[calls.carried]), params["length"]
    return [*types[:carry], *(aval.with_axis(0, length) for aval in types[carry:])]


def _low_specs(specs: Sequence[Any]) -> tuple:
    """A PartitionSpec for each of the arrays that values are made of."""
    each = [spec.to_lo() if isinstance(spec, HiPspec) else (spec,) for spec in specs]
    return tuple([spec for low in each for spec in low])


def call_on_arrays(trace: Trace, primitive: Primitive, args: Sequence[Any], params: dict) -> Any:
    """See `core.hooks`."""
    if isinstance(primitive, HighPrimitive) or not is_high_call(primitive, args, params):
        return None
    return lower_call(primitive, args, params, trace)


hooks.fill(as_arrays=as_arrays, call_on_arrays=call_on_arrays)
