"""The parts that custom_jvp, custom_vjp and custom_vmap share.

A call of such a function becomes one equation whose params hold the user's functions as callables
on flat values. A trace that knows what to do with a rule calls it; a trace that records makes a
program of the function itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref

from minijax import tree_util
from minijax.arguments.functions import debug_info, fun_name, signature_of
from minijax.arrays.array import ArrayImpl, as_value
from minijax.config import local
from minijax.core.avals import AbstractValue, get_aval
from minijax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.core.primitive import Primitive, Programs
from minijax.core.staging import PartialTrace, trace_to_jaxpr
from minijax.core.trace import Trace, Tracer
from minijax.features.custom_rules.typed_values import typed
from minijax.features.slots import slots
from minijax.features.wrapped_functions import WrappedFun, wrap_init
from minijax.namespace import pickled_by_name, written_in
from minijax.transforms.batching import (
    AxisData,
    BatchTrace,
    batch_flat,
    batch_jaxpr,
    to_front,
    unbatch,
)
from minijax.transforms.grad import as_given, as_result
from minijax.transforms.jvp import JVPTrace
from minijax.transforms.primitives import broadcast_batch, moveaxis, reduce_sum_p
from minijax.transforms.tangents import Zero
from minijax.transforms.tracing import any_constant, close_over, positional

__all__ = [
    "BatchedCall", "Batching", "Call", "Constants", "FlatFunction", "LayeredFunction", "Positional",
    "Rule", "RuledCall", "SymbolicZero", "batch_call", "bind_call", "call_eagerly", "call_function", "check_values",
    "given_to_rule", "resolve_nondiff", "run_batched", "show", "split_nondiff", "stage_call",
]  # fmt: skip


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, as custom rules see it. No array: it has a
    type only. Rules may return it.
    """

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)

    def __repr__(self) -> str:
        return "SymbolicZero"

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(get_aval(value).to_tangent_aval())


def as_symbolic(x: Any) -> Any:
    return SymbolicZero(x.aval) if type(x) is Zero else as_result(x)


def as_symbolic_step(x: Any) -> Any:
    """A tangent as a jvp rule with symbolic zeros sees it: numbers stay what they were."""
    return SymbolicZero(x.aval) if type(x) is Zero else as_given(x)


# -- arguments ------------------------------------------------------------------------------------


def given_to_rule(primals: Sequence[Any], function: Any) -> list[Any]:
    """Return the arguments of a user's rule: numbers of a recorded call as the arrays that its
    function was given when it was recorded, those of a direct call with their dtypes.
    """
    return list(map(as_value if type(function) is ClosedJaxpr else typed, primals))


class Positional:
    """Turns the arguments of a call into positional ones, with defaults filled in."""

    __slots__ = ("count", "fun", "kind", "more", "signature")

    def __init__(self, fun: Callable, kind: str):
        self.fun, self.kind = fun, kind
        self.signature = signature_of(fun)
        parameters = self.signature.parameters.values() if self.signature else ()
        self.count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        self.more = self.signature is None or any(p.kind is p.VAR_POSITIONAL for p in parameters)
        if any(p.kind is p.KEYWORD_ONLY for p in parameters):
            self.count, self.more = -1, False

    def __call__(self, args: tuple, kwargs: dict) -> tuple:
        if not kwargs and (len(args) == self.count or (self.more and len(args) >= self.count)):
            return args
        try:
            return self.bind(args, kwargs)
        except TypeError as error:
            raise TypeError(
                f"The input arguments to the {self.kind}-decorated function "
                f"{fun_name(self.fun)} could not be resolved to positional-only arguments. "
                f"Binding failed with the error:\n{error}"
            ) from None

    def bind(self, args: tuple, kwargs: dict) -> tuple:
        if self.signature is None:
            raise TypeError(f"its signature is unknown, and keywords were given: {list(kwargs)}")
        bound = self.signature.bind(*args, **kwargs)
        kinds = {name: p.kind for name, p in self.signature.parameters.items()}
        unresolved = [
            name
            for name in kwargs
            if kinds.get(name, inspect.Parameter.KEYWORD_ONLY) is inspect.Parameter.KEYWORD_ONLY
        ]
        if unresolved:
            raise TypeError(
                "The following keyword arguments could not be resolved to positions: "
                f"{', '.join(unresolved)}"
            )
        bound.apply_defaults()
        return bound.args


def resolve_nondiff(fun: Callable, argnums: Sequence[int], argnames: Sequence[str]) -> tuple:
    """The numbers of the arguments that a rule is not about. TypeError unless `fun` is callable."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun} of type {type(fun)}.")
    numbers = list(() if argnums is None else argnums)
    if isinstance(argnames, range) or any(not isinstance(name, str) for name in argnames or ()):
        raise TypeError(f"nondiff_argnames are names of arguments; got {argnames!r}.")
    if argnames:
        signature = signature_of(fun)
        names = list(signature.parameters) if signature else []
        numbers += [i for i, n in enumerate(names) if n in argnames and i not in numbers]
        numbers.sort()
    return tuple(numbers)


class Constants:
    """The arguments that a rule is not about. Those that are traced are operands all the same,
    ahead of the others; the rest are constants of the call.
    """

    __slots__ = ("count", "key", "leaves", "numbers", "trees", "values")

    def __init__(self, numbers: Sequence[int] = (), values: Sequence[Any] = ()):
        self.numbers, self.values = tuple(numbers), list(values)
        self.trees: list[Any] = [None] * len(self.values)
        self.leaves: list[Any] = []
        for index, value in enumerate(self.values):
            leaves, tree = tree_util.flatten(value)
            if any(isinstance(x, Tracer) for x in leaves):
                self.leaves += leaves
                self.trees[index], self.values[index] = tree, None
        self.count = len(self.leaves)
        types = [type(value) for value in self.values]
        key = (self.numbers, *types, *self.trees, *self.values)
        try:
            hash(key)
        except TypeError:
            key = object()  # equal to nothing else
        self.key = key

    def take(self, leaves: Sequence[Any]) -> tuple[list[Any], Sequence[Any]]:
        """The values, and the operands that are left."""
        if not self.count:
            return self.values, leaves
        rest = iter(leaves)
        values = [
            value if tree is None else tree.unflatten([next(rest) for _ in range(tree.num_leaves)])
            for value, tree in zip(self.values, self.trees, strict=True)
        ]
        return values, list(rest)

    def insert(self, values: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        """All arguments, in the order of the function's parameters."""
        if not self.numbers:
            return args
        args = list(args)
        for number, value in zip(self.numbers, values, strict=True):
            args.insert(number, value)
        return args


NOTHING = Constants()


def split_nondiff(numbers: Sequence[int], args: tuple) -> tuple[Constants, tuple]:
    """Part the arguments that a rule is not about from the others."""
    if not numbers:
        return NOTHING, args
    count = len(args)
    if max(numbers) >= count:
        raise IndexError(
            f"tuple index out of range: nondiff_argnums={numbers} names the argument {max(numbers)} of "
            f"a call with {count}."
        )
    if min(numbers) < -count:
        raise ValueError(
            "Positional argument indices, e.g. for `static_argnums`, must have value greater than or "
            f"equal to -len(args) and less than len(args), but got value {min(numbers)} for "
            f"len(args) == {count}: it is one of nondiff_argnums."
        )
    chosen = sorted({n % count for n in numbers})
    rest = tuple([x for i, x in enumerate(args) if i not in chosen])
    return Constants(chosen, [args[n] for n in chosen]), rest


# -- the call -------------------------------------------------------------------------------------


class Call:
    """One call of a function with a custom rule: the function on flat values, and what the call
    learns while it is traced. Calls of one function with arguments of the same structure are equal,
    so that equal equations can be recognized.
    """

    __slots__ = ("constants", "fun", "in_tree", "key", "origin", "out_avals", "out_tree", "owner")

    def __init__(self, owner: Any, fun: Callable, in_tree: Any, constants: Constants):
        self.owner = owner
        self.fun = fun
        self.in_tree = in_tree
        self.constants = constants
        self.key = (id(owner), in_tree, constants.key)
        self.origin: tuple[Trace, ...] = ()  # the trace that it is made in and those around it
        self.out_tree: Any = None
        self.out_avals: Any = None  # known once the function itself has been run

    def __eq__(self, other):
        return type(other) is type(self) and other.key == self.key

    def __hash__(self):
        return hash(self.key)

    def __call__(self, *leaves):
        values, rest = self.constants.take(leaves)
        args = self.constants.insert(values, self.in_tree.unflatten(map(typed, rest)))
        with own_lines(self.fun, self.origin):
            out = self.fun(*args)
        outs, tree = tree_util.flatten(out)
        self.out_avals = tuple([get_aval(x) for x in outs])
        self.learn(leaves, tree)
        return outs

    def learn(self, leaves: Sequence[Any], out_tree: Any) -> None:
        """Remember the structure of the result, here and for equal calls in the same traces."""
        self.out_tree = out_tree
        tables = self.tables()
        if tables:
            avals = tuple([get_aval(x) for x in leaves])
            for table in tables:
                table[self, avals] = out_tree

    def tables(self) -> list[dict]:
        """Return where the traces around the call remember what is shared between equal equations."""
        return [
            trace.shared
            for trace in self.origin
            if type(trace) is JVPTrace and trace.shared is not None
        ]

    def result(self, leaves: Sequence[Any], outs: Sequence[Any]) -> Any:
        tree = self.out_tree
        if tree is None:  # an equal equation was found, and its results used again
            key = (self, tuple([get_aval(x) for x in leaves]))
            tree = next(table[key] for table in self.tables() if key in table)
        return tree.unflatten(outs)

    def debug_info(self, what: str) -> Any:
        if self.constants.count:  # which have no names
            return debug_info(what, self.fun)
        tree, numbers = positional(self.in_tree.children()), self.constants.numbers
        return debug_info(what, self.fun, tree, zip(numbers, self.constants.values, strict=True))


class Rule:
    """A callable that belongs to a call; shown by the name of the user's function."""

    __slots__ = ("call", "fun")

    def __init__(self, call: Call, fun: Callable):
        self.call, self.fun = call, fun

    def __eq__(self, other):
        return type(other) is type(self) and other.call == self.call and other.fun is self.fun

    def __hash__(self):
        return hash((type(self), self.call))

    def __repr__(self) -> str:
        return fun_name(self.fun)


@contextmanager
def own_lines(rule: Callable, origin: tuple[Trace, ...] = ()):
    """While the context lasts, operations are of the lines of a user's rule, not of the call's.

    Tracers of the traces `origin`, which a call was made in, count as leaked if these are not at work
    now: a custom rule cannot differentiate what it closes over.
    """
    context = local.context
    saved, suspended = context.source, ()
    if saved is not None and not written_in(rule).startswith("minijax."):
        context.source = None
    if origin:
        at_work = chain(context.trace)
        if origin != at_work:
            suspended = [trace for trace in origin if trace.alive and trace not in at_work]
            for trace in suspended:
                trace.alive = False
    try:
        yield
    finally:
        context.source = saved
        for trace in suspended:
            trace.alive = True


def chain(trace: Trace | None) -> tuple[Trace, ...]:
    """A trace and those around it."""
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.parent
    return tuple(found)


def bind_call(primitive: Any, call: Call, leaves: Sequence[Any], **params) -> Any:
    """Apply the primitive of a custom rule to a call, and put its results together."""
    leaves = [*call.constants.leaves, *leaves]
    call.origin = chain(local.context.trace)
    try:
        return call.result(leaves, bind_here(primitive, leaves, params))
    finally:
        call.origin = ()


_THROUGH = (BatchTrace, JVPTrace, PartialTrace)  # what passes a call that it knows nothing of on


def bind_here(primitive: Any, args: Sequence[Any], params: dict) -> list[Any]:
    """Like `bind`; but where vmap is at work its rule is called even if no argument is mapped,
    since the function may close over values that are.
    """
    context = local.context
    trace = context.trace
    if type(trace) not in _THROUGH or any(
        isinstance(x, Tracer) and x._trace is trace for x in args
    ):
        return trace.process(primitive, tuple(args), params)
    context.trace = trace.parent
    try:
        if type(trace) is not BatchTrace:
            return bind_here(primitive, args, params)
        return trace.apply(primitive, list(args), [None] * len(args), params)
    finally:
        context.trace = trace


def call_eagerly(fun: Callable, numbers: Sequence[int], args: Sequence[Any]) -> Any:
    """Call a function outside of all transforms: no rule is needed."""
    constants, args = split_nondiff(numbers, args)
    leaves, tree = tree_util.flatten(args)
    if any(type(x) is not ArrayImpl for x in leaves):
        args = tree.unflatten(map(typed, leaves))
    values, _ = constants.take(constants.leaves)
    out = fun(*constants.insert(values, args))
    check_values(out)
    return out


def check_values(tree: Any) -> None:
    """TypeError unless the leaves are arrays or numbers."""
    for x in tree_util.tree_leaves(tree):
        if type(x) is not ArrayImpl:
            get_aval(x)


class SetsInnerRules:
    """A wrapped function: rules of other kinds are set on the function within."""

    fun: Any
    __reduce_ex__ = pickled_by_name

    def __getattr__(self, name: str) -> Any:
        if name in ("defjvp", "defjvps", "defvjp", "def_vmap"):
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def stage_call(function: Any, args: Sequence[Any], info: Any) -> tuple[ClosedJaxpr, list[Any]]:
    """The program of a call, and the values it closes over, which become leading arguments."""
    return close_over(trace_to_jaxpr(function, [get_aval(x) for x in args], info), any_constant)


def call_function(function: Any, args: Sequence[Any]) -> list[Any]:
    """Call what stands in the params of an equation: a program, or a callable on flat values."""
    if type(function) is ClosedJaxpr:
        return eval_jaxpr(function.jaxpr, function.consts, *args)
    return function(*args)


class FlatFunction:
    """A function that a call holds in its params, on flat values, as libraries are given it."""

    __slots__ = ("held", "params")

    def __init__(self, held: Any, params: dict[str, Any]):
        self.held, self.params = held, params

    def __call__(self, *args):
        return call_function(self.held, args)


class LayeredFunction:
    """A function with a library's layers around it, as a call holds it in its params."""

    __slots__ = ("fun", "params")

    def __init__(self, fun: WrappedFun, params: dict[str, Any]):
        self.fun, self.params = fun, params

    def __call__(self, *args):
        return self.fun.call_wrapped(*args)

    def debug_info(self, what: str) -> Any:
        return self.fun.debug_info

    def __repr__(self) -> str:
        return fun_name(self.fun)


def _effects(*, call_jaxpr: Any, **params: Any) -> frozenset:
    return call_jaxpr.effects if type(call_jaxpr) is ClosedJaxpr else frozenset()


class RuledCall(Primitive):
    """Calls a function with rules of its own.

    `functions` has the params that hold them, the function first; for each, the class of functions
    on flat values that libraries are given for it, and of what is held for one with layers around it.
    Interpreters of equations are given these by `get_bind_params` as `subfuns`, traces by
    `hand_to`; both give them back to `bind`.
    """

    __slots__ = ("functions",)

    def __init__(self, name: str, functions: dict[str, tuple[type, type]]) -> None:
        super().__init__(name, programs=Programs(call_jaxpr=(0,), ruled=True))
        self.functions = functions
        self.effects_rule(_effects)
        self.impl(lambda *args, call_jaxpr, **params: call_function(call_jaxpr, args))
        self.stage(self.staged)

    def staged(self, trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record the call; the function is traced if it was not before."""
        slots.check_unmapped_operands(args)
        function = params["call_jaxpr"]
        if type(function) is not ClosedJaxpr:
            info = info_of(function, f"{self.name.removesuffix('_call')} fun")
            closed, constants = stage_call(function, args, info)
            params = {**params, "call_jaxpr": closed, "num_consts": len(constants)}
            args = [*constants, *args]
        return trace.record(self, args, params)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive in the current trace."""
        return local.context.trace.process(self, args, self.with_functions(params))

    def bind_with_trace(self, trace: Any, args: Any, avals: Any, params: dict[str, Any]) -> Any:
        """Apply the primitive in a given trace, which is current meanwhile."""
        return super().bind_with_trace(trace, args, avals, self.with_functions(params))

    def with_functions(self, params: dict[str, Any]) -> dict[str, Any]:
        """The params with what a call holds in the place of `subfuns`."""
        if "subfuns" not in params:
            return params
        given = {"num_consts": 0, **params}
        del given["subfuns"]
        given.pop("out_trees", None)
        for (name, (_, layered)), fun in zip(
            self.functions.items(), params["subfuns"], strict=True
        ):
            own = fun.f
            whole = not fun.transforms and isinstance(own, FlatFunction)
            given[name] = (
                own.held
                if whole and own.params["num_consts"] == given["num_consts"]
                else layered(fun, params)
            )
        return given

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of `bind` for an equation with these params."""
        rest = {name: value for name, value in params.items() if name not in self.functions}
        info = info_of(params["call_jaxpr"], self.name.removesuffix("_call"))
        subfuns = [
            wrap_init(flat(params[name], params), debug_info=info)
            for name, (flat, _) in self.functions.items()
        ]
        return {**rest, "subfuns": tuple(subfuns)}

    def hand_to(self, trace: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Apply the primitive by the method that a library's trace has for it, on `subfuns`."""
        process = getattr(trace, f"process_{self.name}", None)
        if process is None:
            raise NotImplementedError(
                f"{type(trace)} must override process_{self.name} to handle "
                f"{self.name.removesuffix('_call')} primitives"
            )
        params = self.get_bind_params(params)
        subfuns = params.pop("subfuns")
        del params["num_consts"]
        return process(self, *subfuns, args, **params)


def name_of(function: Any) -> str:
    """The name of the user's function."""
    while type(function) is BatchedCall:
        function = function.inner
    if type(function) is ClosedJaxpr:
        return function.jaxpr.debug_info.func_name
    return fun_name(function.fun)


def info_of(function: Any, what: str) -> Any:
    while type(function) is BatchedCall:
        function = function.inner
    if type(function) is ClosedJaxpr:
        return function.jaxpr.debug_info
    return function.debug_info(what)


def show(avals: Sequence[Any], tree: Any) -> str:
    """A tree of types, for a message."""
    return str(tree.unflatten([_Text(aval.str_short()) for aval in avals]))


class _Text(str):
    __slots__ = ()
    __repr__ = str.__str__


# -- batching -------------------------------------------------------------------------------------


class Batching:
    """The mapping of an equation over an axis, and which of its results turn out to depend on it.

    `trace` gives the `BatchTrace` that is at work; where it still is when a function is called, values
    that the function closes over are recognized. It is not kept alive: equations keep their rules.
    """

    __slots__ = ("axis", "dims", "out_dims", "trace")

    def __init__(self, axis: AxisData, dims: Sequence[int | None], function: Any):
        self.axis = axis
        self.dims = tuple(dims)
        self.out_dims: list[int | None] | None = None
        trace = _batch_trace(function, axis)
        self.trace: Callable[[], BatchTrace | None] = (
            (lambda: None) if trace is None else ref(trace)
        )

    def run(self, fun: Callable, args: Sequence[Any], dims: Sequence[int | None]) -> tuple:
        return run_batched(self.trace(), self.axis, fun, args, dims)

    def settle(self, outs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """Results with the axis in front, or without it; decided by whichever function runs first."""
        if self.out_dims is None:
            self.out_dims = [None if dim is None else 0 for dim in dims]
        return [
            self.place(x, dim, wanted)
            for x, dim, wanted in zip(outs, dims, self.out_dims, strict=True)
        ]

    def place(self, x: Any, dim: int | None, wanted: int | None) -> Any:
        if wanted is not None:
            return to_front(x, dim, self.axis.size)
        if dim is not None:
            raise ValueError(
                "Under vmap, a result of a custom derivative rule depends on the mapped axis where "
                f"the result of the function does not: {get_aval(x).str_short()} is mapped over "
                f"dimension {dim}. Make the function's result depend on the same arguments."
            )
        return x

    def pull_to(self, ct: Any, dim: int | None, wanted: int | None) -> Any:
        """The cotangent of a value that is mapped at `wanted`; summed if it is not mapped."""
        if wanted is not None:
            if dim is not None:
                return moveaxis(ct, dim, wanted)
            return broadcast_batch(ct, self.axis.size, wanted)
        return ct if dim is None else reduce_sum_p.bind(ct, axes=(dim,), out_sharding=None)


def _batch_trace(function: Any, axis: AxisData) -> BatchTrace | None:
    while type(function) is BatchedCall:
        function = function.inner
    for trace in getattr(function, "origin", ()):
        if type(trace) is BatchTrace and trace.axis is axis:
            return trace
    return None


class BatchedCall:
    """A function on flat values, mapped over an axis."""

    __slots__ = ("batching", "inner")

    def __init__(self, inner: Any, batching: Batching):
        self.inner, self.batching = inner, batching

    def __call__(self, *args):
        batching = self.batching
        outs, dims = batching.run(self.inner, args, batching.dims)
        return batching.settle(outs, dims)


def batch_call(function: Any, batching: Batching) -> Any:
    """Return the function that stands in the params of the mapped equation."""
    if type(function) is not ClosedJaxpr:
        return BatchedCall(function, batching)
    made, dims = batch_jaxpr(function, batching.axis, batching.dims)
    if any(dim for dim in dims):
        front = [dim is not None for dim in dims]
        made, dims = batch_jaxpr(function, batching.axis, batching.dims, front)
    batching.out_dims = list(dims)
    return made


def run_batched(
    trace: BatchTrace | None,
    axis: AxisData,
    fun: Callable,
    args: Sequence[Any],
    dims: Sequence[int | None],
) -> tuple[list[Any], list[int | None]]:
    """Like `batch_flat`, in the given trace if it is still at work."""
    if trace is None or not trace.alive:
        return batch_flat(fun, axis, args, dims)
    context = local.context
    current, parent = context.trace, trace.parent
    context.trace, trace.parent = trace, current
    try:
        tracers = [
            x if dim is None else trace.tracer(x, dim) for x, dim in zip(args, dims, strict=True)
        ]
        pairs = [unbatch(trace, out) for out in fun(*tracers)]
        return [value for value, _ in pairs], [dim for _, dim in pairs]
    finally:
        context.trace, trace.parent = current, parent
