"""`custom_jvp`: a function with a rule of its own for forward-mode differentiation.

Forward mode calls the rule with values where they are known, so that Python control flow works in
it; reverse mode comes from transposing what the rule computes with tangents. Where a program is
recorded, the function is traced at once and the rule when somebody differentiates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.functions import fun_name
from minijax.config import local
from minijax.core.avals import get_aval
from minijax.core.trace import eval_trace
from minijax.features.custom_rules import common as custom_rules
from minijax.features.custom_rules.common import (
    Batching,
    Call,
    FlatFunction,
    LayeredFunction,
    Positional,
    Rule,
    SymbolicZero,
    as_symbolic_step,
    batch_call,
    bind_call,
    bind_here,
    call_eagerly,
    call_function,
    given_to_rule,
    show,
    split_nondiff,
)
from minijax.tracebacks import boundary
from minijax.transforms.grad import stepped
from minijax.transforms.primitives import add_tangents, instantiate
from minijax.transforms.tangents import Zero, is_undefined, zero_like, zero_tangent
from minijax.transforms.transpose import backward_pass

__all__ = ["custom_jvp", "custom_jvp_call_p"]

# -- the primitive --------------------------------------------------------------------------------


class FlatSteps(FlatFunction):
    """A rule on flat values: the primals and then the tangents, of arguments and of results."""

    __slots__ = ()

    def __call__(self, *args):
        count, constants = len(args) // 2, self.params["num_consts"]
        primals, steps = args[constants:count], args[count + constants :]
        given = [Zero(t.aval) if type(t) is SymbolicZero else t for t in steps]
        outs, tangents = self.held(list(primals), given)
        return [*outs, *_as_asked(tangents, self.params)]


class LayeredSteps(LayeredFunction):
    """A rule on flat values with layers around it, as a call holds its rule."""

    __slots__ = ()

    def __call__(self, primals, tangents):
        found = self.fun.call_wrapped(*primals, *_as_asked(tangents, self.params))
        count = len(found) // 2
        steps = [Zero(t.aval) if type(t) is SymbolicZero else t for t in found[count:]]
        return found[:count], steps


def _as_asked(tangents: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Tangents as the rule wants them: those known to be zero as `SymbolicZero`s or as arrays."""
    make = as_symbolic_step if params["symbolic_zeros"] else stepped
    return [make(t) for t in tangents]


custom_jvp_call_p = custom_rules.RuledCall(
    "custom_jvp_call",
    {"call_jaxpr": (FlatFunction, LayeredFunction), "jvp": (FlatSteps, LayeredSteps)},
)
custom_jvp_call_p.user_rules = True
custom_jvp_call_p.printed = lambda params: {
    "name": custom_rules.name_of(params["call_jaxpr"]),
    **{name: params[name] for name in ("call_jaxpr", "jvp", "symbolic_zeros")},
}


@custom_jvp_call_p.partial_eval
def _(trace, args, params):
    return call_function(params["call_jaxpr"], args)


@custom_jvp_call_p.jvp
def _(primals, tangents, *, call_jaxpr, jvp, num_consts, **params):
    if all(type(t) is Zero for t in tangents[num_consts:]):
        outs = custom_jvp_call_p.bind(
            *primals, call_jaxpr=call_jaxpr, jvp=jvp, num_consts=num_consts, **params
        )
        return outs, list(map(zero_like, outs))
    return jvp(given_to_rule(primals[num_consts:], call_jaxpr), tangents[num_consts:])


@custom_jvp_call_p.transpose
def _(cts, *args, call_jaxpr, **params):
    found = backward_pass(call_jaxpr.jaxpr, call_jaxpr.consts, args, cts)
    return [ct if is_undefined(a) else None for ct, a in zip(found, args, strict=True)]


@custom_jvp_call_p.batch_axis
def _(axis, args, dims, *, call_jaxpr, jvp, num_consts, **params):
    batching = Batching(axis, dims, call_jaxpr)
    mapped = dict(
        call_jaxpr=batch_call(call_jaxpr, batching),
        jvp=BatchedJVP(jvp, batching, dims[num_consts:]),
        num_consts=num_consts,
        **params,
    )
    outs = bind_here(custom_jvp_call_p, args, mapped)
    return outs, batching.out_dims


# -- the rule on flat values ----------------------------------------------------------------------


class FlatJVP(Rule):
    """The user's rule on flat primals and tangents, with its results checked."""

    __slots__ = ("symbolic_zeros",)

    def __init__(self, call: Call, fun: Callable, symbolic_zeros: bool):
        super().__init__(call, fun)
        self.symbolic_zeros = symbolic_zeros

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
        call = self.call
        make = stepped if not self.symbolic_zeros else as_symbolic_step
        unflatten = call.in_tree.unflatten
        constants, values = call.constants.take(primals)
        steps = [make(t) for t in tangents[call.constants.count :]]
        with custom_rules.own_lines(self.fun, call.origin):
            pair = self.fun(*constants, unflatten(values), unflatten(steps))
        outs, out_tree, tangents_out = self.take_apart(pair)
        self.check_primals(outs, out_tree)
        call.learn(primals, out_tree)
        return outs, [self.tangent(x, t) for x, t in zip(outs, tangents_out, strict=True)]

    def take_apart(self, pair: Any) -> tuple[list, Any, list]:
        names = f"Custom JVP rule {self!r} for function {fun_name(self.call.fun)}"
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"{names} must produce a pair (list or tuple of length two) representing primal "
                f"and tangent outputs, but got {pair}."
            )
        outs, out_tree = tree_util.flatten(pair[0])
        tangents, tangent_tree = tree_util.flatten(pair[1])
        if out_tree != tangent_tree:
            raise TypeError(
                f"{names} must produce primal and tangent outputs with equal container (pytree) "
                f"structures, but got {out_tree} and {tangent_tree} respectively."
            )
        return outs, out_tree, tangents

    def check_primals(self, outs: list, out_tree: Any) -> None:
        """Compare with the results of the function, where it has been run already."""
        call = self.call
        if call.out_avals is None:
            return
        avals = [get_aval(x) for x in outs]
        if out_tree == call.out_tree and all(
            a.shape == b.shape and a.dtype == b.dtype
            for a, b in zip(avals, call.out_avals, strict=True)
        ):
            return
        raise TypeError(
            f"Custom JVP rule {self!r} for function {fun_name(call.fun)} must produce a pair (list "
            "or tuple of length two) where the first element represents the primal output (equal "
            f"in value to the output of the custom_jvp-decorated function {fun_name(call.fun)}, "
            "and in particular with leaves of the same shape/dtype), but instead the JVP rule "
            f"output's first element had shapes/dtypes of:\n    {show(avals, out_tree)}\nwhile the "
            f"custom_jvp-decorated function {fun_name(call.fun)} had output shapes/dtypes of:\n"
            f"    {show(call.out_avals, call.out_tree)}"
        )

    def tangent(self, primal: Any, tangent: Any) -> Any:
        """A tangent that the rule gave, checked against its primal."""
        aval = get_aval(primal)
        wanted = aval.to_tangent_aval()
        if isinstance(tangent, (SymbolicZero, Zero)):
            found = tangent.aval
        elif getattr(tangent, "dtype", None) == dtypes.float0:
            found = wanted.update(shape=np.shape(tangent), dtype=dtypes.float0)
            tangent = Zero(wanted)
        else:
            found = get_aval(tangent)
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise TypeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes "
                f"and dtypes. Expected {wanted.str_short()} (tangent type of "
                f"{aval.str_short()}) but got {found.str_short()}, from the rule {self!r} for "
                f"function {fun_name(self.call.fun)}: convert the tangent, for example with "
                ".astype(primal.dtype)."
            )
        return zero_tangent(aval) if type(tangent) is SymbolicZero else tangent


class BatchedJVP:
    """A rule mapped over an axis."""

    __slots__ = ("batching", "dims", "inner")

    def __init__(self, inner: Any, batching: Batching, dims: Sequence[int | None]):
        self.inner, self.batching, self.dims = inner, batching, dims

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
        count = len(primals)
        given = [type(t) is not Zero for t in tangents]
        live: list[bool] = []

        def fun(*args):
            xs, rest = args[:count], iter(args[count:])
            ts = [next(rest) if nz else zero_like(x) for x, nz in zip(xs, given, strict=True)]
            outs, tangents_out = self.inner(xs, ts)
            live.extend(type(t) is not Zero for t in tangents_out)
            return [*outs, *(t for t in tangents_out if type(t) is not Zero)]

        values = [*primals, *(t for t in tangents if type(t) is not Zero)]
        dims = [*self.dims, *(d for d, nz in zip(self.dims, given, strict=True) if nz)]
        results, found = self.batching.run(fun, values, dims)
        outs, steps = results[: len(live)], iter(results[len(live) :])
        out_dims, step_dims = found[: len(live)], iter(found[len(live) :])
        pairs = [(next(steps), next(step_dims)) if nz else (None, None) for nz in live]
        joint = [
            dim if dim is not None else step_dim
            for dim, (_, step_dim) in zip(out_dims, pairs, strict=True)
        ]
        if self.batching.out_dims is None:
            self.batching.out_dims = [None if dim is None else 0 for dim in joint]
        outs = self.batching.settle(outs, out_dims)
        return outs, [
            self.batching.place(t, dim, wanted) if nz else zero_like(x)
            for x, nz, (t, dim), wanted in zip(
                outs, live, pairs, self.batching.out_dims, strict=True
            )
        ]

    def __repr__(self) -> str:
        return repr(self.inner)


# -- the decorator --------------------------------------------------------------------------------


_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])


class custom_jvp(custom_rules.SetsInnerRules, Generic[_P, _R]):
    """Define a function with a custom rule for differentiation; a decorator.

    - `fun`: function of pytrees of arrays
    - `nondiff_argnums`, `nondiff_argnames`: arguments that the rule takes first, and does not
      differentiate

    `f.defjvp(rule)` sets the rule: `rule(primals, tangents)` returns the output and its tangent,
    linear in `tangents`. TypeError if these have other shapes or dtypes; AttributeError if there is
    no rule.
    Source: forward-mode automatic differentiation (Wengert, 1964).

    >>> f = jax.custom_jvp(lambda x: x * x)
    >>> _ = f.defjvp(lambda primals, tangents: (f(*primals), 7 * tangents[0]))
    >>> jax.grad(f)(3.0)
    Array(7., dtype=float32, weak_type=True)
    """

    def __init__(
        self,
        fun: Callable[_P, _R],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = custom_rules.resolve_nondiff(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable | None = None
        self.symbolic_zeros = False
        self._positional: Positional | None = None

    def defjvp(self, jvp: _F, symbolic_zeros: bool = False) -> _F:
        """Set the rule, `jvp(*nondiff, primals, tangents) -> (out, tangent out)`; gives it back.

        With `symbolic_zeros`, tangents known to be zero are `SymbolicZero` objects, not arrays.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set the rule by one function for each argument: `(tangent, out, *primals) -> tangent`.

        The tangent of the output is their sum; None stands for a function that gives zeros.
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals, tangents):
            out = self(*primals)
            leaves, tree = tree_util.flatten(out)
            total: list[Any] = [None] * len(leaves)
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is not None:
                    parts, found = tree_util.flatten(rule(t, out, *primals))
                    if found != tree:
                        raise TypeError(
                            f"Custom JVP rule {fun_name(rule)} for function {fun_name(self.fun)} "
                            "must produce primal and tangent outputs with equal container (pytree) "
                            f"structures, but got {tree} and {found} respectively."
                        )
                    total = [add_tangents(x, y) for x, y in zip(total, parts, strict=True)]
            zeros = [instantiate(zero_like(x)) if t is None else t for x, t in zip(leaves, total)]
            return out, tree.unflatten(zeros)

        self.defjvp(jvp)

    @boundary
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {fun_name(self.fun)} using defjvp. Call "
                "f.defjvp(rule) first."
            )
        if self._positional is None:
            self._positional = Positional(self.fun, "custom_jvp")
        args = self._positional(args, kwargs)
        if local.context.trace is eval_trace:
            return call_eagerly(self.fun, self.nondiff_argnums, args)
        constants, args = split_nondiff(self.nondiff_argnums, args)
        leaves, in_tree = tree_util.flatten(args)
        call = Call(self, self.fun, in_tree, constants)
        return bind_call(
            custom_jvp_call_p,
            call,
            leaves,
            call_jaxpr=call,
            jvp=FlatJVP(call, self.jvp, self.symbolic_zeros),
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )
