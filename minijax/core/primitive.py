"""`Primitive`: the name of an operation and, beside it, all of its rules.

A rule is a function set by a decorator:

    sin_p = Primitive("sin")

    @sin_p.shape_rule
    def _(x): return x                                  # avals in, aval (or avals) out

    @sin_p.jvp
    def _(primals, tangents): ...                       # -> primal out, tangent out

Each interpreter asks the primitive for its rule; none keeps a table. A primitive that has no rule of
a kind holds the reason instead (`not_differentiable("...")`), so that a test can tell a rule that was
forgotten. The class `Primitive` lists all rules; what follows it is read when it is met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from minijax.config import local
from minijax.core.avals import AbstractValue
from minijax.core.caches import also_cleared
from minijax.core.hooks import hooks
from minijax.errors import say_where, shortened
from minijax.tracebacks import hide_frames

__all__ = [
    "ByPlatform", "CallPrimitive", "Misplaced", "NoRule", "Primitive", "Programs", "RuleColumn",
    "all_primitives", "no_rule", "not_differentiable",
]  # fmt: skip

all_primitives: dict[str, Primitive] = {}
no_effects: frozenset = frozenset()


def _named(rule: Callable, name: str) -> Callable:
    """Give a rule that is defined as `_` a name, which Python's errors on its arguments show."""
    if getattr(rule, "__name__", None) == "_":
        rule.__name__, rule.__qualname__ = name, rule.__qualname__[:-1] + name
    return rule


def _setter(slot: str) -> Callable:
    kind = slot.removeprefix("rule_")

    def decorate(self: Primitive, rule: Callable) -> Callable:
        setattr(self, slot, _named(rule, f"{self.name}_{kind}"))
        return rule

    decorate.__name__ = kind
    decorate.__doc__ = f"Decorator: set the {kind!r} rule. See `Primitive`."
    return decorate


class Primitive:
    """An operation that tracers record and interpreters give meaning to.

    Every primitive has these rules, or a `NoRule` in their place. `params` are keyword arguments; with
    `multiple_results`, results, their tangents and cotangents are lists.

    - shape_rule(*avals, **params) -> aval of the result
    - jvp(primals, tangents, **params) -> result, its tangent. A tangent may be a symbolic `Zero`.
      The result is computed by primitives, and the tangent by linear operations on the tangents
    - transpose(cotangent, *args, **params) -> a list with a cotangent, Zero or None for each of
      `args`. Those in which the operation is linear are `UndefinedPrimal`s, the others values
    - batch(args, dims, **params) -> result, its batch dimension. A dimension of None is unbatched
    - lower(builder, *operands, **params) -> `Value` of the result; see `lowering.module`.
      `lower_on("cuda", "rocm")` sets a rule for some platforms only

    These replace what an interpreter does by default:

    - effects_rule(**params) -> the set of effects of a call, in place of none. One that
      `def_effectful_abstract_eval` sets is given the avals too
    - linearize(trace, primals, tangents, **params): as jvp, where the linear part is recorded in
      `trace`, a `PartialTrace`. Of primitives that hold programs
    - partial_eval(trace, args, params): apply it where some of `args` are tracers of `trace`, a
      `PartialTrace`, in place of recording one equation
    - batch_axis(axis, args, dims, **params): as batch, given the mapped axis (`AxisData`) too
    - impl(*args, **params): run it, in place of compiling a program of one equation
    - stage(trace, args, params): record it in a `JaxprTrace`, in place of recording one equation
    - layout(avals, out, params) -> `out`, the aval that the shape rule gives, with a placement. By
      default that of an operation on elements: see `features.sharding.layouts`
    - dce(used_outputs, eqn) -> used inputs, and the equation without what is not used, or None
    - steps(run, *args, **params): run the programs in the params one after the other, each by
      `run(program, *args) -> results`, so that an error can be located within them
    """

    __slots__ = (
        "__dict__", "__weakref__", "_effects_by_type", "holds_programs", "multiple_results", "name",
        "printed", "programs", "rule_batch", "rule_batch_axis", "rule_dce", "rule_effects",
        "rule_impl", "rule_jvp", "rule_layout", "rule_linearize", "rule_lower", "rule_partial_eval",
        "_avals", "rule_shape", "rule_stage", "rule_steps", "rule_transpose", "shown", "user_rules",
    )  # fmt: skip

    def __init__(
        self, name: str, *, multiple_results: bool = False, memoize: Any = dict,
        holds_programs: bool = False, programs: Programs | None = None,
    ) -> None:  # fmt: skip
        """Register a primitive.

        - `memoize`: class of what keeps results of the shape rule, and with them params; or False
        - `holds_programs`: whether params hold programs; nothing is kept then
        - `programs`: how these are called, if by a rule that `Programs` can state
        """
        self.name = name
        kind = type(self)
        many: Any = kind.multiple_results  # True if the class says so
        self.multiple_results = multiple_results or programs is not None or many is True
        self.holds_programs = holds_programs or programs is not None
        self._avals: dict | None = memoize() if memoize and not self.holds_programs else None
        self._effects_by_type = False
        self.user_rules = False  # whether rules take tuples, and numbers as the user gave them
        self.printed: Callable[[dict], dict] | None = None  # params -> the params that are printed
        self.shown: Callable[[Any, Any], str] | None = None  # printer, equation -> its text
        for slot in Primitive.__slots__:
            if slot.startswith("rule_"):
                setattr(self, slot, None)
        self.programs = programs
        if programs is not None:
            self.rule_shape, self.rule_effects = programs.rules()
            self.rule_lower = programs.lower
        if kind.impl is not Primitive.impl:  # of a library's class, whose methods are its rules
            self.rule_impl = self.impl
        if kind.abstract_eval is not Primitive.abstract_eval:
            self.def_effectful_abstract_eval(self.abstract_eval)
        all_primitives[name] = self

    shape_rule = _setter("rule_shape")
    effects_rule = _setter("rule_effects")
    jvp = _setter("rule_jvp")
    linearize = _setter("rule_linearize")
    partial_eval = _setter("rule_partial_eval")
    transpose = _setter("rule_transpose")
    batch = _setter("rule_batch")
    batch_axis = _setter("rule_batch_axis")
    stage = _setter("rule_stage")
    dce = _setter("rule_dce")
    steps = _setter("rule_steps")
    layout = _setter("rule_layout")
    transposes_zeros = False  # whether the transpose rule is run where all cotangents are zero
    unstated: Mapping[str, Any] = {}  # params, and what these are where they are left out
    call_primitive = False  # upstream's attribute: whether it calls a function, not a program

    def lower(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: set the 'lower' rule of all platforms that have none of their own."""
        _named(rule, f"{self.name}_lower")
        if type(self.rule_lower) is ByPlatform:
            self.rule_lower.default = rule
        else:
            self.rule_lower = rule
        return rule

    def lower_on(self, *platforms: str) -> Callable[..., Any]:
        """Decorator: set the 'lower' rule of some platforms."""
        known = self.rule_lower
        if type(known) is not ByPlatform:
            known = self.rule_lower = ByPlatform(self.name, known)

        def decorate(rule: Callable[..., Any]) -> Callable[..., Any]:
            _named(rule, f"{self.name}_lower_on_{platforms[0]}")
            known.rules.update(dict.fromkeys(platforms, rule))
            return rule

        return decorate

    @property
    def impl(self) -> Callable[..., Any]:
        """Decorator: set the 'impl' rule.

        Called with operands, it runs the rule that the primitive had when `p.impl` was read, so that
        a new rule can call the old one: `run = p.impl`, then `@p.impl`.
        """
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
        return trace.process_primitive(self, args, {**self.unstated, **params})

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments of `bind` for an equation with these params."""
        return params

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Any]:
        """The types of the results, and the set of effects."""
        return self.out_avals(avals, params), self.effects_of(params, avals)

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
        """Return the types of the results; kept, since avals and most params can be hashed."""
        memo = self._avals
        if memo is None:
            known = self.holds_programs and self.rule_layout is None and self.rule_shape is not None
            return self.rule_shape(*avals, **params) if known else self._typed(avals, params)
        key = (avals, *params.items()) if params else avals
        try:
            return memo[key]
        except KeyError:
            pass
        except TypeError:  # params that cannot be hashed
            return self._typed(avals, params)
        out = memo[key] = self._typed(avals, params)
        return out

    def _typed(self, avals: tuple, params: dict) -> Any:
        """Return the types by the shape rule, and by the layout rule where a type has a placement."""
        if self.rule_shape is None:
            raise NotImplementedError(
                f"{'Evaluation rule' if local.context.trace.eager else 'Abstract evaluation'} for "
                f"{self.name!r} not implemented: give it a rule of the types of its results with "
                f"@{self.name}_p.shape_rule, or def_abstract_eval; or, to run it at once, def_impl."
            )
        hooks.check_operands(self, avals)
        if self.rule_layout is None and all(aval.placement is None for aval in avals):
            out = self.rule_shape(*avals, **params)
        else:
            out = hooks.layout(self, avals, params)
        many = self.multiple_results
        found = out if many and isinstance(out, (list, tuple)) else [None if many else out]
        if not all(isinstance(aval, AbstractValue) for aval in found):
            wanted = "a list of abstract values" if many else "an abstract value"
            raise wrong_result(self, "shape", wanted, out)
        return out

    def effects_of(self, params: dict[str, Any], avals: Iterable[Any] = ()) -> frozenset[Any]:
        """The effects of a call with these params, on operands of these types."""
        if self.rule_effects is None:
            return no_effects
        avals = avals if self._effects_by_type else ()
        return self.rule_effects(*avals, **params)

    def __deepcopy__(self, memo: dict) -> Primitive:
        return self

    def __repr__(self) -> str:
        return self.name


class Programs:
    """Description of how a primitive calls the programs in its params.

    The operands are consecutive groups. `counts` has the size of each group but the last: a number,
    or the name of a param. Each keyword argument names a param that holds a program, or a tuple of
    programs of which one is called, and lists the groups that are its inputs. The results of the
    primitive are those of the last program; the programs before it, and groups that are inputs of
    none, decide whether or how often that is called.

    - `carried`: the group that a loop carries; its next values are the program's first results
    - `mapped`: the group of which each iteration takes a slice; it stacks the other results
    - `ruled`: whether transforms use rules that the user gave with the call, not the program

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
        """Return the groups of the operands, or of a list with an item for each operand."""
        found, start = [], 0
        for count in self.counts:
            stop = start + (params[count] if type(count) is str else count)
            found.append(list(operands[start:stop]))
            start = stop
        return [*found, list(operands[start:])]

    def given(self, name: str, groups: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the items of these groups that are for the inputs of the program in a param."""
        return [x for number in self.inputs[name] for x in groups[number]]

    def held(self, name: str, params: dict) -> tuple[Any, ...]:
        """Return the programs in a param: one, or those of which one is called."""
        value = params[name]
        return value if type(value) is tuple else (value,)

    def all(self, params: dict) -> list[Any]:
        """Return the programs in all params."""
        return [program for name in self.inputs for program in self.held(name, params)]

    def lower(self, builder: Any, *operands: Any, **params: Any) -> Any:
        """Write the program in place of the call; the default lowering rule."""
        return builder.closed_jaxpr(params[self.result], *operands)

    def rules(self) -> tuple[Callable[..., list], Callable[..., frozenset]]:
        """Return the default shape rule and effects rule."""
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


class CallPrimitive(Primitive):
    """A primitive whose rules, and `derived`, are set by `transforms.call_rules`.

    Its `bind` is that of `Primitive` until a feature fills the slot `bind_call`, for references.
    """

    __slots__ = ("derived",)

    def __init__(self, name: str, programs: Programs | None = None) -> None:
        programs = Programs(jaxpr=(0,)) if programs is None else programs
        super().__init__(name, programs=programs)
        self.derived: Callable[..., dict] | None = None


hooks.method("bind_call", CallPrimitive, "bind")


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


no_rule = not_differentiable = NoRule  # names that read well where a rule is set


def wrong_result(primitive: Primitive, kind: str, wanted: str, given: Any) -> TypeError:
    """Return the error for a rule that did not return what it has to."""
    return TypeError(
        f"The {kind} rule of {primitive.name!r} must return {wanted}; it returned {shortened(given)}"
        f" of type {type(given).__name__}."
    )


def checked_pair(primitive: Primitive, kind: str, wanted: str, given: Any) -> tuple[Any, Any]:
    """Return the pair that a rule returned as a tuple; TypeError if it is no pair."""
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        raise wrong_result(primitive, kind, f"a pair of {wanted}", given)
    return tuple(given)


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


class RuleColumn:
    """Rules of a further kind, for an interpreter that is defined elsewhere.

    `sparse = RuleColumn("sparse")` makes it; `@sparse(sin_p)` sets the rule of a primitive, and
    `sparse.rule(sin_p)` is that rule, or None.
    """

    __slots__ = ("_rules", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._rules: dict[Primitive, Callable[..., Any]] = {}

    def __call__(self, primitive: Primitive) -> Callable[..., Any]:
        """Return a decorator that sets the rule of a primitive."""
        if not isinstance(primitive, Primitive):
            raise TypeError(
                f"{self.name!r} has rules of primitives, such as sin_p; got {primitive!r}."
            )

        def decorate(rule: Callable[..., Any]) -> Callable[..., Any]:
            self._rules[primitive] = _named(rule, f"{primitive.name}_{self.name}")
            return rule

        return decorate

    def update(self, rules: dict[Primitive, Callable[..., Any]]) -> None:
        """Set the rules of several primitives."""
        self._rules.update(rules)

    def rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        """Return the rule of a primitive; None if it has none."""
        return self._rules.get(primitive)


class Misplaced(Exception):
    """Raised by a layout rule if operands have to be moved first: see `hooks.aligned`."""


def _forget_types() -> None:
    for primitive in all_primitives.values():
        if primitive._avals is not None:
            primitive._avals.clear()


also_cleared.append(_forget_types)
