"""From a jaxpr to a StableHLO module, written as text.

Text is written ten times faster than operations are built through the MLIR bindings, XLA parses it
about as fast as those are built, and it can be read. A lowering rule is given a `Builder` and `Value`s,
and returns `Value`s; `b.out` is the aval of the result, `b.outs` are those of several:

    @add_p.lower
    def _(b, x, y): return b.op("stablehlo.add", (x, y), b.out)

`arrays.dispatch.lower_program` makes a `Module`, and adds functions to it by `write_function`, which
makes a `Builder` for each: `Builder.jaxpr` has every equation written by its primitive's rule.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray, abstract_token, get_aval
from minijax.core.caches import ProgramCache
from minijax.core.effects import ordered
from minijax.core.hooks import hooks
from minijax.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    jaxprs_in_params,
    live_equations,
)
from minijax.core.primitive import wrong_result
from minijax.core.staging import trace_to_jaxpr
from minijax.lowering.types import dense, element_type, physical, tensor_type
from minijax.runtime.escape import label, symbol, utf8

__all__ = ["Builder", "Module", "Value", "element_type", "i64_array", "lower_by", "write_function"]


class Value:
    """A value in a module: its name in the text and its aval."""

    __slots__ = ("aval", "name", "type")

    def __init__(self, name: str, aval: Any):
        self.name = name
        self.aval = aval
        self.type = tensor_type(aval)

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)


def i64_array(items: Sequence[int]) -> str:
    """`array<i64: 0, 1>`, how dimension lists are written."""
    return f"array<i64: {', '.join(map(str, items))}>" if items else "array<i64>"


class Module:
    """A module that is being written."""

    builder: Callable  # the class `Builder`; another one where sizes are symbolic

    def __init__(self, name: str, platform: str, *, devices: tuple = (None,)):
        self.name = name
        self.platform = platform
        self.platforms = (platform,)  # all platforms that it is exported for
        self.exported = False  # whether it may become part of a module for several devices
        self.refines = False  # whether symbolic sizes within it are still to be filled in
        self.takes_platform = False  # whether an exported program that it calls depends on it
        self.devices = devices  # one for each partition
        self.within: Any = None  # the region that is being written, if functions depend on it
        self.channels = 0  # the number of channels of collectives
        self.functions: list[str] = []  # their text, callees first
        self.by_key: dict[Any, str] = {}  # the names of functions
        self.names: set[str] = {"main"}
        self.clashes = 0
        self.header: list[str] = []
        self.keepalives: list[Any] = []  # objects that the executable refers to by address
        self.host_callbacks: list[Any] = []

    @classmethod
    def make(cls, name: str, platform: str, *, devices: tuple = (None,)) -> Module:
        """Return a new module; a feature may make it of a class of its own."""
        return cls(name, platform, devices=devices)

    def unique(self, name: str) -> str:
        """Return a new name for a function: the one given, with a number if it is taken."""
        chosen = name = utf8(name) or "_"
        while chosen in self.names:
            chosen = f"{name}_{self.clashes}"
            self.clashes += 1
        self.names.add(chosen)
        return chosen

    def channel(self) -> int:
        """Return a channel number that no other collective or transfer of the module has."""
        self.channels += 1
        return self.channels

    def function(self, key: Any, name: str, make: Callable[[str], str]) -> str:
        """Return the name of the function for `key`, which `make(name)` writes the first time."""
        if key not in self.by_key:
            self.by_key[key] = chosen = self.unique(name)
            self.functions.append(make(chosen))
        return self.by_key[key]

    def add_keepalive(self, kept: Any) -> None:
        """Do nothing: upstream's method to keep an object alive, as compiled programs do here."""

    def declarations(self) -> list[str]:
        """Return lines that precede the functions."""
        return []

    def text(self) -> str:
        attributes = f"mhlo.num_partitions = {len(self.devices)} : i32, mhlo.num_replicas = 1 : i32"
        body = "\n".join([*self.declarations(), *self.header, *reversed(self.functions)])
        return f"module {symbol(self.name)} attributes {{{attributes}}} {{\n{body}\n}}\n"


@functools.lru_cache(4096)
def _location(name: str) -> str:
    return f" loc({label(name)})"


class Builder:
    """Writes the operations of one function, or of one region of it.

    `lines` are the operations, `prologue` the constants of the function, which precede them.
    """

    __slots__ = (
        "_counter", "_memo", "ins", "lines", "location", "module", "out", "outs", "prologue",
        "scope", "source", "tokens",
    )  # fmt: skip

    def __init__(self, module: Module, outer: Builder | None = None, *, isolated: bool = False):
        self.module = module
        self.lines: list[str] = []
        self.location = ""  # written after each operation
        self.scope = ""  # precedes the names of equations, in profiles and in the compiler's errors
        self.source: Any = None  # of the equation being lowered
        self.ins: Sequence[Value] = ()  # the operands of the equation being lowered
        self.out: Any = None  # the aval of its result, or of the first one
        self.outs: list[Any] = []
        self.tokens: dict[Any, Value] = {}  # by ordered effect
        if outer is None:
            self._counter = [0]
        else:
            self._counter = outer._counter
            self.scope, self.source = outer.scope, outer.source
            self.tokens = dict(outer.tokens)
        if outer is None or isolated:
            self.prologue: list[str] = []
            self._memo: dict[Any, Value] = {}
        else:
            self.prologue, self._memo = outer.prologue, outer._memo

    def begin(self, args: Sequence[Value]) -> None:
        """Called with the arguments of the function before its operations are written."""

    @property
    def platform(self) -> str:
        return self.module.platform

    # Upstream's names, for lowering rules of libraries.
    module_context = property(lambda self: self.module)
    avals_in = property(lambda self: [x.aval for x in self.ins])
    avals_out = property(lambda self: self.outs)

    def _name(self) -> str:
        count = self._counter[0]
        self._counter[0] = count + 1
        return f"%{count}"

    def op(self, name: str, operands: Sequence[Value], out: Any, attributes: str = "") -> Value:
        """Write an operation with one result; `attributes` are written between `<{` and `}>`."""
        counter = self._counter
        count = counter[0]
        counter[0] = count + 1
        value = Value(f"%{count}", out)
        properties = f" <{{{attributes}}}>" if attributes else ""
        self.lines.append(
            f'{value.name} = "{name}"({", ".join([x.name for x in operands])}){properties} : '
            f"({', '.join([x.type for x in operands])}) -> {value.type}{self.location}"
        )
        return value

    def op_n(
        self, name: str, operands: Sequence[Value], outs: Sequence[Any], attributes: str = "",
        regions: Sequence[str] = (), extra: str = "",
    ) -> list[Value]:  # fmt: skip
        """Write an operation with any number of results, and with regions (see `region`).

        `extra` are attributes that the operation itself does not define, such as shardings.
        """
        counter = self._counter
        count = counter[0]
        counter[0] = count + 1
        if len(outs) == 1:
            values = [Value(f"%{count}", outs[0])]
        else:
            values = [Value(f"%{count}#{index}", aval) for index, aval in enumerate(outs)]
        result = f"%{count}" + (f":{len(outs)}" if len(outs) > 1 else "")
        properties = f" <{{{attributes}}}>" if attributes else ""
        bodies = " (" + ", ".join(regions) + ")" if regions else ""
        where = f" {{{extra}}}" if extra else ""
        types = ", ".join([value.type for value in values])
        self.lines.append(
            (f"{result} = " if outs else "")
            + f'"{name}"({", ".join([x.name for x in operands])}){properties}{bodies}{where} : '
            f"({', '.join([x.type for x in operands])}) -> ({types}){self.location}"
        )
        return values

    def region(
        self,
        in_avals: Sequence[Any],
        body: Callable[..., Sequence[Value]],
        *,
        isolated: bool = True,
        scope: str = "",
    ) -> str:
        """Return the text of a region; `body(builder, *args)` writes it and returns its results.

        An isolated region refers to nothing outside of it, as is required of reducers. `scope` is
        open for the equations in it.
        """
        inner = type(self)(self.module, self, isolated=isolated)
        inner.scope += scope
        args = [Value(f"%r{inner._name()[1:]}", aval) for aval in in_avals]
        results = body(inner, *args)
        header = ", ".join([f"{a.name}: {a.type}" for a in args])
        block = [f"^bb0({header}):"] if args else []
        end = (
            f'"stablehlo.return"({", ".join([r.name for r in results])}) : '
            f"({', '.join([r.type for r in results])}) -> ()"
        )
        prologue = inner.prologue if isolated else []
        return "{\n" + "\n".join([*block, *prologue, *inner.lines, end]) + "\n}"

    def constant(self, value: Any, aval: ShapedArray | None = None) -> Value:
        """Write a constant; equal ones are written once, at the top of the function."""
        if aval is None:
            aval = get_aval(value)
        aval.check_constant(value)
        stored = physical(aval)
        array = np.asarray(value) if stored is aval else value._stored
        if array.dtype != stored.dtype:
            array = array.astype(stored.dtype)
        if array.shape != stored.shape:
            array = np.broadcast_to(array, stored.shape)
        key = (aval, array.tobytes()) if array.size <= 16 else (aval, id(value))
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = Value(self._name(), aval)
            self.prologue.append(
                f'{known.name} = "stablehlo.constant"() <{{value = {dense(array)} : '
                f"{known.type}}}> : () -> {known.type}"
            )
        return known

    def elements_of(self, x: Value) -> np.ndarray | None:
        """Return the elements of a small constant; None for any other value."""
        for (aval, stored), known in self._memo.items():
            if known is x and type(stored) is bytes:
                return np.frombuffer(stored, aval.dtype)
        return None

    def broadcast(self, x: Value, shape: Sequence[int], dims: Sequence[int] | None = None) -> Value:
        """Write a `broadcast_in_dim`; `dims` defaults to the trailing dimensions."""
        shape = tuple(shape)
        if x.shape == shape and (dims is None or tuple(dims) == tuple(range(len(shape)))):
            return x
        if dims is None:
            dims = range(len(shape) - len(x.shape), len(shape))
        extra = physical(x.aval).ndim - len(x.shape)
        dims = (*dims, *range(len(shape), len(shape) + extra))
        out = x.aval.update(shape=shape)
        attributes = f"broadcast_dimensions = {i64_array(dims)}"
        return self.op("stablehlo.broadcast_in_dim", (x,), out, attributes)

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        extra = physical(x.aval).ndim - len(x.shape)
        order = (*permutation, *range(len(x.shape), len(x.shape) + extra))
        shape = tuple(x.shape[axis] for axis in permutation)
        out = x.aval.update(shape=shape)
        return self.op("stablehlo.transpose", (x,), out, f"permutation = {i64_array(order)}")

    def call(self, function: str, operands: Sequence[Value], outs: Sequence[Any]) -> list[Value]:
        return self.op_n("func.call", operands, outs, f"callee = {symbol(function)}")

    def eqn(self, eqn: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
        """Lower one equation by its primitive's rule."""
        self.ins, self.outs = operands, [var.aval for var in eqn.outvars]
        self.out = self.outs[0] if self.outs else None
        primitive = eqn.primitive
        start, location, scope = len(self.lines), self.location, self.scope
        if eqn.scope:
            self.scope = f"{scope}{eqn.scope}/"
        if eqn.scope or eqn.source is not None or not location:  # or of the equation around it
            self.source = eqn.source
            self.location = self.place(self.scope + primitive.name)
        try:
            if primitive.rule_lower is None:
                raise NotImplementedError(
                    f"MLIR translation rule for primitive {primitive.name!r} not found for platform "
                    f"{self.platform}: give it one with @{primitive.name}_p.lower."
                )
            result = primitive.rule_lower(self, *operands, **eqn.params)
            results = [result] if type(result) is Value else list(result or ())
            if len(results) != len(eqn.outvars):
                wanted = f"the values of {len(eqn.outvars)} results"
                raise wrong_result(primitive, "lower", wanted, result)
        except NotImplementedError as error:
            hooks.say_place(error, eqn)
            raise
        self.location, self.scope = location, scope
        if type(eqn.scope) is not str:
            hooks.mark_lines(self.lines, start, eqn.scope.marks, primitive)
        return results

    def place(self, name: str) -> str:
        """Return the location that is written after the operations of an equation of this name."""
        return _location(name)

    def enter(self, jaxpr: Jaxpr, env: dict[Any, Value]) -> None:
        """Called with a jaxpr and the values of its inputs before its equations are lowered."""

    def jaxpr(self, jaxpr: Jaxpr, consts: Sequence[Value], *args: Value) -> list[Value]:
        """Lower the equations of a jaxpr in place."""
        made = hooks.discharged(jaxpr)
        if made is not None:
            return self.closed_jaxpr(made, *consts, *args)
        env = dict(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, args, strict=True))
        self.enter(jaxpr, env)
        for eqn in live_equations(jaxpr):
            operands = [
                self.constant(v.val, v.aval) if type(v) is Literal else env[v] for v in eqn.invars
            ]
            env.update(zip(eqn.outvars, self.eqn(eqn, operands), strict=True))
        return [
            self.constant(v.val, v.aval) if type(v) is Literal else env[v] for v in jaxpr.outvars
        ]

    def closed_jaxpr(self, closed: ClosedJaxpr, *args: Value) -> list[Value]:
        """Lower a closed jaxpr in place, and its constants as constants of the function."""
        consts = [self.constant(c, get_aval(c)) for c in closed.consts]
        return self.jaxpr(closed.jaxpr, consts, *args)

    def call_jaxpr(self, closed: ClosedJaxpr, name: str, *args: Value) -> list[Value]:
        """Write a call of a private function, which is written once for the jaxpr."""
        function = self.module.function(
            (id(closed), self.module.within),
            name,
            lambda chosen: write_function(self.module, chosen, closed),
        )
        effects = ordered(closed.jaxpr.effects)
        if not effects:
            return self.call(function, args, closed.out_avals)
        tokens = [self.tokens[e] for e in effects]
        avals = [*(abstract_token for _ in effects), *closed.out_avals]
        results = self.call(function, (*tokens, *args), avals)
        self.tokens.update(zip(effects, results[: len(effects)], strict=True))
        return results[len(effects) :]


def write_function(
    module: Module, name: str, closed: ClosedJaxpr, *, public: bool = False, scope: str = "",
    threaded: bool | None = None, arg_attributes: Sequence[str] | None = None,
    out_attributes: Sequence[str] | None = None,
) -> str:  # fmt: skip
    """Return the text of a function that computes a closed jaxpr.

    `scope` is open for its equations; XLA puts the name of a call before those of a private function.
    If it is `threaded`, as private functions are by default, a token for each ordered effect precedes
    its arguments and its results.
    """
    threaded = not public if threaded is None else threaded
    builder = module.builder(module)
    builder.scope = scope
    args = [Value(f"%arg{i}", aval) for i, aval in enumerate(closed.in_avals)]
    builder.begin(args)
    effects = ordered(closed.jaxpr.effects)
    if effects and not threaded:
        for effect in effects:
            builder.tokens[effect] = builder.op("stablehlo.create_token", (), abstract_token)
    elif effects:
        tokens = [Value(f"%token{i}", abstract_token) for i in range(len(effects))]
        builder.tokens.update(zip(effects, tokens, strict=True))
    results = builder.closed_jaxpr(closed, *args)
    attributes = arg_attributes or [""] * len(args)
    outs = out_attributes or [""] * len(results)
    if effects and threaded:
        args = [*tokens, *args]
        results = [*(builder.tokens[e] for e in effects), *results]
        attributes, outs = [*[""] * len(effects), *attributes], [*[""] * len(effects), *outs]
    signature = ", ".join([f"{a.name}: {a.type}{t}" for a, t in zip(args, attributes, strict=True)])
    types = ", ".join([f"{r.type}{t}" for r, t in zip(results, outs, strict=True)])
    if results:
        end = f"return {', '.join([r.name for r in results])} : " + ", ".join(
            [r.type for r in results]
        )
    else:
        end = "return"
    visibility = "public" if public else "private"
    head = f"func.func {visibility} {symbol(name)}({signature}) -> ({types}) {{"
    return "\n".join([head, *builder.prologue, *builder.lines, end, "}"])


Module.builder = Builder
hooks.method("make_module", Module, "make")

_traced = ProgramCache()  # the programs of functions given to `lower_by`


def _forget_places(jaxpr: Jaxpr) -> None:
    """Forget the lines of a lowering rule: its equations are located by the one that it lowers."""
    for eqn in jaxpr.eqns:
        eqn.source = None
        for inner in jaxprs_in_params(eqn.params):
            _forget_places(inner)


def lower_by(fun: Callable) -> Callable:
    """Make a lowering rule of a function of other primitives, which is traced and then lowered."""

    def rule(builder: Builder, *operands: Value, **params):
        avals = tuple([hooks.lowered_type(x.aval) for x in operands])
        key = (fun, avals, tuple(params.items()))
        closed = _traced.get(key)
        if closed is None:

            def flat(*args):
                out = fun(*args, **params)
                return list(out) if isinstance(out, (list, tuple)) else [out]

            closed = _traced[key] = trace_to_jaxpr(flat, avals)
            _forget_places(closed.jaxpr)
        return builder.closed_jaxpr(closed, *operands)

    return rule
