"""`Primitive`: the name of an operation and, beside it, all of its rules.

A rule is a function set by a decorator:

    sin_p = Primitive("sin")

    @sin_p.shape_rule
    def _(x): return x                                  # avals in, aval (or avals) out

    @sin_p.jvp
    def _(primals, tangents): ...                       # -> primal out, tangent out

Each interpreter asks the primitive for its rule; none keeps a table. A cell that has no rule holds
the reason why (`not_differentiable("...")`), so that the table is total and can be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minijax.config import local
from minijax.core.caches import also_cleared
from minijax.core.hooks import hooks
from minijax.errors import say_where
from minijax.tracebacks import hide_frames

__all__ = [
    "ByPlatform", "CallPrimitive", "Misplaced", "NoRule", "Primitive", "Programs", "RuleColumn",
    "all_primitives", "no_rule", "not_differentiable",
]  # fmt: skip

all_primitives: dict[str, Primitive] = {}


def _forget_types() -> None:
    for primitive in all_primitives.values():
        if primitive._avals is not None:
            primitive._avals.clear()


also_cleared.append(_forget_types)


class NoRule:
    """Stands where a rule would: calling it raises with the reason."""

    __slots__ = ("error", "reason")

    def __init__(self, reason: str, error: type[Exception] = NotImplementedError):
        self.reason = reason
        self.error = error

    def __call__(self, *args, **params):
        raise self.error(self.reason)

    def __repr__(self) -> str:
        return f"NoRule({self.reason!r})"


def no_rule(reason: str, error: type[Exception] = NotImplementedError) -> NoRule:
    """A cell of the rule table that is empty on purpose."""
    return NoRule(reason, error)


not_differentiable = no_rule


class Misplaced(Exception):
    """Raised by a layout rule for operands that must be recorded as others: see `hooks.aligned`."""


def _setter(slot: str) -> Callable:
    def decorate(self: Primitive, rule: Callable) -> Callable:
        setattr(self, slot, rule)
        return rule

    decorate.__name__ = slot.removeprefix("rule_")
    decorate.__doc__ = f"Decorator: set the {decorate.__name__!r} rule. See the module's top."
    return decorate


class ByPlatform:
    """A lowering rule that is chosen by the platform that the module is for."""

    __slots__ = ("default", "name", "rules")

    def __init__(self, name: str, default: Callable | None):
        self.name = name
        self.default = default
        self.rules: dict[str, Callable] = {}

    def __call__(self, builder: Any, *operands: Any, **params: Any) -> Any:
        rule = self.rules.get(builder.platform, self.default)
        if rule is None:
            raise NotImplementedError(
                f"MLIR translation rule for primitive {self.name!r} not found for platform "
                f"{builder.platform}, only for {sorted(self.rules)}: register one with "
                "platform=None for all."
            )
        return rule(builder, *operands, **params)


class Programs:
    """Map from the operands of a primitive to the inputs of the programs in its params.

    The operands are groups, one behind the other: `counts` says how many there are in each group
    but the last, by a number or by the param that holds it. Each keyword is a param that holds a
    program, or a tuple of programs of which one is called, with the groups that are its inputs.
    The results are those of the last. What stands before it decides about its calls, and so does a
    group that is no input.

    - `carried`: the group whose values each turn of a loop gives anew, as its first results
    - `mapped`: the group of which each turn is given a slice; the other results are stacked
    - `ruled`: whether transforms follow rules that come with the call, not the program

        Programs(jaxpr=(0,))  # a call
        Programs((1,), branches=(1,))  # a choice by the first operand
        Programs(("num_consts", "num_carry"), jaxpr=(0, 1, 2), carried=1, mapped=2)  # a loop
    """

    __slots__ = ("carried", "counts", "inputs", "mapped", "result", "ruled")

    def __init__(
        self, counts: tuple[int | str, ...] = (), *, carried: int | None = None,
        mapped: int | None = None, ruled: bool = False, **inputs: tuple[int, ...],
    ) -> None:  # fmt: skip
        self.counts, self.carried, self.mapped, self.ruled = counts, carried, mapped, ruled
        self.inputs = inputs
        self.result = list(inputs)[-1]

    def groups(self, operands: Sequence[Any], params: dict) -> list[list[Any]]:
        """Return the operands, or what is said of each, by group."""
        found, start = [], 0
        for count in self.counts:
            stop = start + (params[count] if type(count) is str else count)
            found.append(list(operands[start:stop]))
            start = stop
        return [*found, list(operands[start:])]

    def given(self, name: str, groups: Sequence[Sequence[Any]]) -> list[Any]:
        """Return what stands for the inputs of the program in a param, of what stands for all."""
        return [x for number in self.inputs[name] for x in groups[number]]

    def held(self, name: str, params: dict) -> tuple[Any, ...]:
        """Return the program in a param, or those of which one is called."""
        value = params[name]
        return value if type(value) is tuple else (value,)

    def all(self, params: dict) -> list[Any]:
        """Return the programs in all params."""
        return [program for name in self.inputs for program in self.held(name, params)]

    def lower(self, builder: Any, *operands: Any, **params: Any) -> Any:
        """Write the program where it is called; the rule of lowering where no other is set."""
        return builder.closed_jaxpr(params[self.result], *operands)

    def rules(self) -> tuple[Callable[..., list], Callable[..., frozenset]]:
        """Return the rules of types and of effects that are in force where no others are set."""
        result, alone = self.result, len(self.inputs) == 1

        def out_avals(*avals: Any, **params: Any) -> list[Any]:
            held = params[result]
            return (held[0] if type(held) is tuple else held).out_avals

        def effects(**params: Any) -> frozenset[Any]:
            held = params[result]
            if alone and type(held) is not tuple:
                return held.effects
            return no_effects.union(*[program.effects for program in self.all(params)])

        return out_avals, effects


class Primitive:
    """An operation that tracers record and interpreters give meaning to.

    Rules, with what they take and give (`params` are keyword arguments; results are one value, or a
    list if `multiple_results`):

    - shape_rule(*avals, **params) -> aval(s)
    - effects_rule(**params) -> the set of effects of a call; none if absent. It is told the avals
      too, as shape_rule is, where `def_effectful_abstract_eval` set it
    - jvp(primals, tangents, **params) -> out, tangent out; a tangent may be a symbolic `Zero`
    - linearize(trace, primals, tangents, **params): like jvp, with the linear part recorded in
      the `PartialTrace` given; needed only by primitives that hold sub-programs
    - partial_eval(trace, args, **params): split a call of which some arguments are unknown
    - transpose(cotangents, *args, **params) -> a cotangent, Zero or None for each argument; the
      linear arguments are `UndefinedPrimal`s
    - batch(args, dims, **params) -> out, out dim; `None` is an unbatched dim
    - batch_axis(axis, args, dims, **params): the same, told the mapped axis (`AxisData`)
    - lower(ctx, *operands, **params) -> result values; see `minijax.lowering`. `lower_on("cuda",
      "rocm")` sets the rule of platforms that have one of their own
    - impl(*args, **params): run it eagerly, where compiling one equation is not the way
    - stage(trace, args, params): record it, where one equation with these params is not the way
    - layout(avals, out, params) -> the types of the results, which are `out` as far as the shape
      rule says, with their placements, from those of the operands; see `features.sharding.layouts`,
      which has the rule of operations on elements, the default
    - dce(used_outputs, eqn) -> used inputs, new equation or None
    - steps(run, *args, **params): run the programs that it holds one after the other, each as
      `run(program, *args) -> results`: so an error is found within it

    `programs` says how it calls the programs that it holds, if it does: see `Programs`.
    """

    __slots__ = (
        "__weakref__", "_avals", "_effects_by_type", "brought", "multiple_results", "name", "printed",
        "programs", "rule_batch", "rule_batch_axis", "rule_dce", "rule_effects", "rule_impl",
        "rule_jvp", "rule_layout", "rule_linearize", "rule_lower", "rule_partial_eval", "rule_shape",
        "rule_stage", "rule_steps", "rule_transpose", "shown",
    )  # fmt: skip

    def __init__(
        self, name: str, *, multiple_results: bool = False, memoize: bool = True,
        programs: Programs | None = None,
    ) -> None:  # fmt: skip
        """Set `programs` if params hold programs, and `memoize=False` if they hold functions.

        Results of the shape rule are then not kept.
        """
        self.name = name
        self.multiple_results = multiple_results or programs is not None
        self._effects_by_type = False
        self.brought = False  # whether its rules are the user's: they see tuples, numbers as given
        self._avals: dict[tuple, Any] | None = {} if memoize else None
        self.printed: Callable[[dict], dict] | None = None  # the params that are shown
        self.shown: Callable[[Any, Any], str] | None = None  # a whole equation, by a printer
        for slot in Primitive.__slots__:
            if slot.startswith("rule_"):
                setattr(self, slot, None)
        self.programs = programs
        if programs is not None:
            self._avals = None
            self.rule_shape, self.rule_effects = programs.rules()
            self.rule_lower = programs.lower
        all_primitives[name] = self

    shape_rule = _setter("rule_shape")
    effects_rule = _setter("rule_effects")
    jvp = _setter("rule_jvp")
    linearize = _setter("rule_linearize")
    partial_eval = _setter("rule_partial_eval")
    transpose = _setter("rule_transpose")
    batch = _setter("rule_batch")
    batch_axis = _setter("rule_batch_axis")
    lower = _setter("rule_lower")
    stage = _setter("rule_stage")
    dce = _setter("rule_dce")
    steps = _setter("rule_steps")
    layout = _setter("rule_layout")
    transposes_zeros = False  # whether the transpose rule is run where all cotangents are zero
    call_primitive = False  # whether it calls a function that is no program yet: none recorded does

    def lower_on(self, *platforms: str) -> Callable[..., Any]:
        """Decorator: set the 'lower' rule of some platforms; `lower` sets that of all others."""
        known = self.rule_lower
        if type(known) is not ByPlatform:
            known = self.rule_lower = ByPlatform(self.name, known)

        def decorate(rule: Callable[..., Any]) -> Callable[..., Any]:
            known.rules.update(dict.fromkeys(platforms, rule))
            return rule

        return decorate

    @property
    def impl(self) -> Callable[..., Any]:
        """Decorator: set the 'impl' rule. Called with values, run the rule that there was on them."""
        rule = self.rule_impl

        def impl(*args: Any, **params: Any) -> Any:
            if len(args) == 1 and callable(args[0]) and not params:
                self.rule_impl = args[0]
                return args[0]
            if rule is None:
                return local.context.outermost.process(self, args, params, use_impl=False)
            return rule(*args, **params)

        return impl

    @impl.setter
    def impl(self, rule: Callable[..., Any]) -> None:
        self.rule_impl = rule

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive in the current trace."""
        try:
            return local.context.trace.process(self, args, params)
        except Exception as error:
            if isinstance(error, TypeError):
                say_where(error, self.name, args)
            hide_frames(error)
            raise

    def bind_with_trace(self, trace: Any, args: Any, avals: Any, params: dict[str, Any]) -> Any:
        """Apply the primitive in a given trace, which is current meanwhile."""
        context = local.context
        saved = context.trace
        context.trace = trace
        try:
            return trace.process(self, tuple(args), params)
        finally:
            context.trace = saved

    def hand_to(self, trace: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Apply the primitive by the method that a library's trace has for it."""
        return trace.process_primitive(self, args, params)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of `bind` for an equation with these params: mostly the same."""
        return params

    # Upstream's names of `shape_rule` and `impl`.
    def_abstract_eval = _setter("rule_shape")
    def_impl = _setter("rule_impl")

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: `rule(*avals, **params)` gives the avals of the results and a set of effects."""
        self.rule_shape = lambda *avals, **params: rule(*avals, **params)[0]
        self.rule_effects = lambda *avals, **params: frozenset(rule(*avals, **params)[1])
        self._effects_by_type = True
        return rule

    def out_avals(self, avals: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Return the types of the results by the shape rule; remembered, since avals and most
        params are hashable.
        """
        memo = self._avals
        if memo is None:
            known = self.rule_layout is None and self.rule_shape is not None  # by its programs
            return self.rule_shape(*avals, **params) if known else self._typed(avals, params)
        key = (avals, *params.items()) if params else avals
        try:
            return memo[key]
        except KeyError:
            pass
        except TypeError:
            return self._typed(avals, params)
        out = memo[key] = self._typed(avals, params)
        return out

    def _typed(self, avals: tuple, params: dict) -> Any:
        """Return the types by the shape rule, and by the layout rule where a type has a placement."""
        if self.rule_shape is None:
            raise NotImplementedError(
                f"Abstract evaluation for {self.name!r} not implemented: give it a rule of the types "
                f"of its results with @{self.name}_p.shape_rule, or def_abstract_eval. Evaluation "
                f"rule for {self.name!r} not implemented either: see def_impl."
            )
        hooks.check_operands(self, avals)
        if self.rule_layout is None and all(aval.placement is None for aval in avals):
            return self.rule_shape(*avals, **params)
        return hooks.layout(self, avals, params)

    def effects_of(self, params: dict[str, Any], avals: Iterable[Any] = ()) -> frozenset[Any]:
        """The effects of a call with these params, on operands of these types."""
        if self.rule_effects is None:
            return no_effects
        avals = avals if self._effects_by_type else ()
        return self.rule_effects(*avals, **params)

    def __repr__(self) -> str:
        return self.name


class CallPrimitive(Primitive):
    """A primitive that calls programs. `derived` is set by `transforms.call_rules`."""

    __slots__ = ("derived",)

    def __init__(self, name: str, programs: Programs | None = None) -> None:
        programs = Programs(jaxpr=(0,)) if programs is None else programs
        super().__init__(name, programs=programs)
        self.derived: Callable[..., dict] | None = None


hooks.method("bind_call", CallPrimitive, "bind")


class RuleColumn:
    """A column of rules that a feature adds to those of `Primitive`.

    `sparse = RuleColumn("sparse")` makes it; `@sparse(sin_p)` sets the rule of a primitive, and
    `sparse.rule(sin_p)` is that rule, or None.
    """

    __slots__ = ("_rules", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._rules: dict[Primitive, Callable[..., Any]] = {}

    def __call__(self, primitive: Primitive) -> Callable[..., Any]:
        """Return a decorator that sets the rule of a primitive."""

        def decorate(rule: Callable[..., Any]) -> Callable[..., Any]:
            self._rules[primitive] = rule
            return rule

        return decorate

    def update(self, rules: dict[Primitive, Callable[..., Any]]) -> None:
        """Set the rules of several primitives."""
        self._rules.update(rules)

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        """Return the rule of a primitive; None if it has none."""
        return self._rules.get(primitive)


class CallbackPrimitive(Primitive):
    """A primitive whose params hold functions of users: a memo of its types would keep them, and
    all that they close over.
    """

    __slots__ = ()

    def out_avals(self, avals: tuple, params: dict) -> Any:
        """Types of the results by the shape rule, not remembered."""
        return self._typed(avals, params)


no_effects: frozenset = frozenset()
