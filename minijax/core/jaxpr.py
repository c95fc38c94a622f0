"""Jaxprs: recorded programs. A jaxpr is a list of equations over typed variables, in one scope,
without control flow of its own: `{ lambda consts ; inputs. let equations in outputs }`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax.config import local
from minijax.core.avals import AbstractValue
from minijax.core.effects import Effect, is_impure
from minijax.core.hooks import hooks
from minijax.core.primitive import Primitive, no_effects
from minijax.core.source import joined

__all__ = [
    "Atom", "ClosedJaxpr", "DebugInfo", "DropVar", "Jaxpr", "JaxprEqn", "Literal", "ParamDict",
    "Value", "Var", "dce_jaxpr", "eval_jaxpr", "jaxpr_as_fun", "jaxprs_in_params",
    "live_equations", "subjaxprs",
]  # fmt: skip


class Var:
    """A variable of a jaxpr; it has a type, and gets a name only when it is printed."""

    __slots__ = ("__weakref__", "aval")

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """The output of an equation that nothing reads, printed as `_`; `var` while it was recorded."""

    __slots__ = ("var",)

    def __init__(self, var: Var) -> None:
        super().__init__(var.aval)
        self.var = var


class Literal:
    """A scalar constant that stands in an equation."""

    __slots__ = ("_x64", "aval", "val")

    def __init__(self, val: Any, aval: AbstractValue) -> None:
        self.val = val
        self.aval = aval
        self._x64 = local.context.settings.enable_x64

    def value(self) -> Any:
        """Return the number as an operand: an array where in the current mode it has another type."""
        if self._x64 is local.context.settings.enable_x64:
            return self.val
        return hooks.array_of(self.val, self._x64)

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal
Value = Any  # what an atom stands for when a program runs
ParamDict = dict[str, Any]


class JaxprEqn:
    """One application of a primitive. `source` and `scope` say where in the user's program."""

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "scope", "source")

    def __init__(
        self, invars: Any, outvars: Any, primitive: Any, params: Any, effects: Any = no_effects,
        source: Any = None, scope: Any = "",
    ) -> None:  # fmt: skip
        self.invars: list[Atom] = invars
        self.outvars: list[Var] = outvars
        self.primitive: Primitive = primitive
        self.params: dict[str, Any] = params
        self.effects: frozenset = effects
        named = isinstance(scope, str)  # rather than a source_info and a ctx
        self.source, self.scope = (source, scope) if named else hooks.where(source, scope)

    source_info = property(lambda self: hooks.source_info(self))
    ctx = property(lambda self: hooks.settings_of(self))

    def replace(self, **changes: Any) -> JaxprEqn:
        if "source_info" in changes or "ctx" in changes:
            changes["source"] = changes.pop("source_info", self.source_info)
            changes["scope"] = changes.pop("ctx", self.ctx)
        return JaxprEqn(**{name: getattr(self, name) for name in self.__slots__} | changes)

    def __repr__(self) -> str:
        return hooks.format_eqn(self)


class DebugInfo:
    """The function a jaxpr was traced from, and the names of its arguments and results."""

    __slots__ = ("arg_names", "func_name", "place", "result_paths", "traced_for")

    def __init__(self, traced_for="", func_src_info="", arg_names=None, result_paths=None):
        self.traced_for = traced_for
        self.func_name, _, self.place = func_src_info.partition(" at ")
        self.arg_names, self.result_paths = arg_names, result_paths

    @property
    def func_src_info(self) -> str:
        return f"{self.func_name} at {self.place}" if self.place else self.func_name

    def __repr__(self) -> str:
        return f"DebugInfo({self.traced_for!r}, {self.func_name!r})"


class Jaxpr:
    """An open program: `constvars` stand for values that the outside supplies."""

    __slots__ = ("__weakref__", "constvars", "debug_info", "effects", "eqns", "invars", "outvars")

    def __init__(
        self, constvars: Sequence[Var], invars: Sequence[Var], outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn], effects: frozenset[Any] | None = None,
        debug_info: DebugInfo | None = None,
    ) -> None:  # fmt: skip
        self.constvars, self.invars = list(constvars), list(invars)
        self.outvars, self.eqns = list(outvars), list(eqns)
        if effects is None:
            effects = no_effects.union(*(eqn.effects for eqn in self.eqns if eqn.effects))
        kinds = [kind for kind in {*map(type, effects)} if issubclass(kind, Effect)]
        own = [e for kind in kinds for e in kind.ended_within(self, effects)]
        self.effects = effects.difference(own) if own else effects
        self.debug_info = debug_info or DebugInfo()

    @property
    def in_avals(self) -> list[AbstractValue]:
        return [var.aval for var in self.invars]

    @property
    def out_avals(self) -> list[AbstractValue]:
        return [var.aval for var in self.outvars]

    is_high = False

    def replace(self, **changes: Any) -> Jaxpr:
        fields = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        if unknown := {name: value for name, value in changes.items() if name not in fields}:
            raise ValueError(f"Unknown keyword arguments: {unknown}; the fields are {fields}.")
        values = {name: getattr(self, name) for name in fields} | changes
        if "eqns" in changes and "effects" not in changes:
            values["effects"] = None
        return Jaxpr(**values)

    def __str__(self) -> str:
        return hooks.format_jaxpr(self)

    __repr__ = __str__

    def pretty_print(self, **options: Any) -> str:
        return hooks.format_jaxpr(self, **options)


_OWNER = object()  # stands for a program in its own `memo`


class _WithOwner(tuple):
    """A tuple in the `memo` of a program, with `_OWNER` in place of the program."""

    __slots__ = ()


class ClosedJaxpr:
    """A jaxpr with the values of its constants. Compares and hashes by identity."""

    __slots__ = ("__weakref__", "consts", "jaxpr", "memo")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(f"{len(jaxpr.constvars)} constants wanted, {len(consts)} given")
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self.memo: dict = {}  # by the settings: what was derived from this program; see `derived`

    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)
    literals = property(lambda self: self.consts)
    constvars = property(lambda self: self.jaxpr.constvars)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)
    debug_info = property(lambda self: self.jaxpr.debug_info)
    is_high = False

    def map_jaxpr(self, function: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        return ClosedJaxpr(function(self.jaxpr), self.consts)

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> Any:
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def derived(self) -> dict:
        """Return what has been derived from this program under the current settings."""
        return self.memo.setdefault(local.context.key, {})

    def derive(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return `make()`, computed once for `key` and the settings; kept with this program.

        A value that is the program itself, or a tuple with it, is kept without it: a cycle would
        hold the program and its constants until Python collects garbage.
        """
        try:
            value = self.memo[local.context.key][key]
        except KeyError:
            value = make()
            self.derived()[key] = self.left_out_of(value)
            return value
        if value is _OWNER:
            return self
        if type(value) is _WithOwner:
            return tuple([self if x is _OWNER else x for x in value])
        return value

    def left_out_of(self, value: Any) -> Any:
        """Return a value or key for `derived()` with a marker in place of this program."""
        if value is self:
            return _OWNER
        if type(value) is tuple and any(x is self for x in value):
            return _WithOwner([_OWNER if x is self else x for x in value])
        return value

    def __str__(self) -> str:
        return hooks.format_jaxpr(self.jaxpr)

    __repr__ = __str__

    def pretty_print(self, **options: Any) -> str:
        return hooks.format_jaxpr(self.jaxpr, **options)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Apply each equation in the current trace."""
    jaxpr = getattr(
        jaxpr, "jaxpr", jaxpr
    )  # of a closed one, whose constants are given all the same
    if not isinstance(jaxpr, Jaxpr):
        raise TypeError(f"eval_jaxpr takes a Jaxpr and its constants; got {jaxpr!r}.")
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    context = local.context
    outer_source, outer_scope = context.source, context.scope
    try:
        for eqn in jaxpr.eqns:
            context.source = eqn.source or outer_source
            context.scope = joined(outer_scope, eqn.scope) if eqn.scope else outer_scope
            ins = [v.value() if type(v) is Literal else env[v] for v in eqn.invars]
            out = eqn.primitive.bind(*ins, **eqn.params)
            if eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, out, strict=True))
            else:
                env[eqn.outvars[0]] = out
    finally:
        context.source, context.scope = outer_source, outer_scope
    return [v.value() if type(v) is Literal else env[v] for v in jaxpr.outvars]


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return a closed jaxpr as a function of flat arguments."""

    def fun(*args):
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    fun.closed_jaxpr = closed
    return fun


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The sub-programs among the params of an equation."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs that the equations of a program hold, such as the bodies of its loops."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Keep what the used outputs and the effects need.

    Returns the program with the unused outputs and inputs left out, and which inputs are used;
    an input that `instantiate` marks is kept in any case.
    """
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(jaxpr.invars)
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    live: set[Var] = {v for v in outvars if type(v) is not Literal}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        used = [v in live for v in eqn.outvars]
        if eqn.primitive.rule_dce is not None and not all(used):
            _, eqn = eqn.primitive.rule_dce(used, eqn)
            if eqn is None:
                continue
        elif not (any(used) or (eqn.effects and is_impure(eqn.effects))):
            continue
        eqns.append(eqn)
        live.update(v for v in eqn.invars if type(v) is not Literal)
    used_inputs = [v in live or keep for v, keep in zip(jaxpr.invars, instantiate, strict=True)]
    invars = [v for v, used in zip(jaxpr.invars, used_inputs, strict=True) if used]
    eqns.reverse()
    info = jaxpr.debug_info
    return Jaxpr(jaxpr.constvars, invars, outvars, eqns, None, info), used_inputs


def live_equations(jaxpr: Jaxpr) -> list[JaxprEqn]:
    """Return the equations that the results or effects of a program need, each as it stands."""
    live: set[Any] = set(jaxpr.outvars)
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if not live.isdisjoint(eqn.outvars) or (eqn.effects and is_impure(eqn.effects)):
            eqns.append(eqn)
            live.update(eqn.invars)
    eqns.reverse()
    return eqns
