"""`custom_vmap`: a function with a rule of its own for batching.

The function is traced where it is called, so that what it closes over becomes an operand; forward
mode gives a function with a rule again, made from the given one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from minijax import tree_util
from minijax.arguments.functions import fun_name
from minijax.config import local
from minijax.core.avals import get_aval
from minijax.core.jaxpr import eval_jaxpr
from minijax.core.primitive import Primitive, Programs, no_rule
from minijax.core.trace import eval_trace
from minijax.features.custom_rules.common import (
    Positional,
    SetsInnerRules,
    check_values,
    own_lines,
)
from minijax.transforms.batching import AxisData, batch_flat
from minijax.transforms.grad import as_result
from minijax.transforms.jvp import jvp_flat, jvp_jaxpr
from minijax.transforms.primitives import broadcast_batch, instantiate, moveaxis
from minijax.transforms.tangents import Zero, is_float0, zero_like
from minijax.transforms.tracing import any_constant, positional, trace_function

__all__ = ["custom_vmap", "custom_vmap_p"]

custom_vmap_p = Primitive("custom_vmap_call", programs=Programs(call=(0,), ruled=True))
custom_vmap_p.printed = lambda params: {
    name: value for name, value in params.items() if name != "num_consts"
}


@custom_vmap_p.impl
def _(*args, call, **params):
    return eval_jaxpr(call.jaxpr, call.consts, *args)


@custom_vmap_p.batch_axis
def _(axis, args, dims, *, call, rule, in_tree, out_tree, num_consts):
    if any(dim is not None for dim in dims[:num_consts]):
        raise NotImplementedError(
            f"The custom_vmap function {rule} closes over a value that vmap maps over: its rule "
            "is told of its arguments only. Pass the value as an argument."
        )
    args = [
        x if dim is None else moveaxis(x, dim, 0)
        for x, dim in zip(args[num_consts:], dims[num_consts:], strict=True)
    ]
    flags = [dim is not None for dim in dims[num_consts:]]
    if axis.name is None:
        outs, batched = rule(axis.size, flags, args)
    else:
        outs, batched = _with_axis(rule, axis, flags, args)
    return outs, [0 if flag else None for flag in batched]


def _with_axis(rule: Callable, axis: AxisData, flags: list[bool], args: Sequence[Any]) -> tuple:
    """Call a batching rule where the name of the axis is bound: its values do not vary over it."""
    batched: list[bool] = []

    def run(*values):
        outs, batched[:] = rule(axis.size, flags, values)
        return outs

    outs, dims = batch_flat(run, axis, args, [None] * len(args))
    if any(dim is not None for dim in dims):
        raise ValueError(
            f"The batching rule of the custom_vmap function {rule} returned a value that depends on "
            f"the position along the axis {axis.name!r}: the rule is called once for all of them."
        )
    return outs, batched


@custom_vmap_p.jvp
def _(primals, tangents, *, call, rule, in_tree, out_tree, num_consts):
    nonzeros = [type(t) is not Zero for t in tangents]
    wanted = [not is_float0(aval.to_tangent_aval()) for aval in call.out_avals]
    made, _ = jvp_jaxpr(call, nonzeros, wanted)
    given = [t for t in tangents if type(t) is not Zero]
    constants = sum(nonzeros[:num_consts])
    results = custom_vmap_p.bind(
        *primals[:num_consts],
        *given[:constants],
        *primals[num_consts:],
        *given[constants:],
        call=_reordered(made, num_consts, len(primals), constants),
        rule=RuleOfJVP(rule, nonzeros[num_consts:], wanted),
        in_tree=tree_util.treedef_tuple((in_tree, in_tree)),
        out_tree=tree_util.treedef_tuple((out_tree, out_tree)),
        num_consts=num_consts + constants,
    )
    outs, steps = results[: len(wanted)], iter(results[len(wanted) :])
    return outs, [next(steps) if w else zero_like(x) for x, w in zip(outs, wanted, strict=True)]


def _reordered(closed: Any, num_consts: int, count: int, constants: int) -> Any:
    """The program of a jvp with the tangents of constants right behind these."""
    if not constants:
        return closed
    v = closed.jaxpr.invars
    tangents = v[count:]
    order = [*v[:num_consts], *tangents[:constants], *v[num_consts:count], *tangents[constants:]]
    return closed.replace(jaxpr=closed.jaxpr.replace(invars=order))


@custom_vmap_p.linearize
def _(trace, primals, tangents, *, rule, **params):
    raise ValueError(
        "Linearization failed to produce known values for all output primals: reverse-mode "
        f"differentiation of the custom_vmap function {rule} is not supported, since its batching "
        "rule does not say how to batch the derivative. Use forward mode, or make it a custom_vjp "
        "function whose rules call custom_vmap functions."
    )


custom_vmap_p.rule_transpose = no_rule("the rule of custom_vmap does not say how to batch it")


class FlatRule:
    """The user's batching rule on flat values: gives results, and which of them are batched."""

    __slots__ = ("fun", "in_tree", "name", "out_tree")

    def __init__(self, fun: Callable, name: str, in_tree: Any, out_tree: Any):
        self.fun, self.name, self.in_tree, self.out_tree = fun, name, in_tree, out_tree

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any]) -> tuple:
        flags = list(self.in_tree.unflatten(batched))
        with own_lines(self.fun):
            out, out_batched = self.fun(size, flags, *self.in_tree.unflatten(args))
        outs, tree = tree_util.flatten(out)
        found, flag_tree = tree_util.flatten(out_batched)
        rule = f"custom vmap rule ({fun_name(self.fun)})"
        if tree != flag_tree:
            raise ValueError(
                "structure of output value and output batching specification returned by "
                f"{rule} do not match.\nOutput values: {tree}\nBatching spec: {flag_tree}"
            )
        if tree != self.out_tree:
            raise ValueError(
                f"structure of output returned by {rule} does not match that of original "
                f"custom-vmapped function.\nOriginal output: {self.out_tree}\nRule output: {tree}"
            )
        return outs, found

    def __repr__(self) -> str:
        return str(self.fun)


class RuleOfJVP:
    """The batching rule of a jvp: the jvp of the batching rule."""

    __slots__ = ("inner", "nonzeros", "wanted")

    def __init__(self, inner: Any, nonzeros: Sequence[bool], wanted: Sequence[bool]):
        self.inner, self.nonzeros, self.wanted = inner, nonzeros, wanted

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[Any]) -> tuple:
        count = len(self.nonzeros)
        rest = iter(zip(args[count:], batched[count:], strict=True))
        primals, tangents, joint = [], [], []
        for x, flag, nonzero in zip(args[:count], batched[:count], self.nonzeros, strict=True):
            t, step_flag = next(rest) if nonzero else (None, flag)
            either = flag or step_flag
            x = x if flag == either else broadcast_batch(x, size)
            if not nonzero:
                t = zero_like(x)
            elif step_flag != either:
                t = broadcast_batch(t, size)
            primals.append(x)
            tangents.append(t)
            joint.append(either)
        flags: list[bool] = []

        def run(*xs):
            outs, found = self.inner(size, joint, xs)
            flags.extend(found)
            return outs

        outs, steps = jvp_flat(run, primals, tangents)
        pairs = [(t, f) for t, f, w in zip(steps, flags, self.wanted, strict=True) if w]
        return [*outs, *(instantiate(t) for t, _ in pairs)], [*flags, *(f for _, f in pairs)]

    def __repr__(self) -> str:
        return repr(self.inner)


class custom_vmap(SetsInnerRules):
    """Decorator: a function with a custom batching rule.

        @custom_vmap
        def f(x, y): return x + y

        @f.def_vmap
        def f_rule(axis_size, in_batched, x, y):
            out = f(x, y) if all(in_batched) else x + y
            return out, True

    The rule takes the size of the mapped axis, which arguments have it (in front), and the
    arguments; it gives the result and, for each of its leaves, whether it has the axis in front.
    AttributeError if the function is called without a rule; ValueError if the rule's result does
    not have the structure of the function's, or if it is differentiated in reverse mode.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable | None = None
        self._positional: Positional | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule, `vmap_rule(axis_size, in_batched, *args) -> (out, out_batched)`."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {fun_name(self.fun)} using "
                "def_vmap."
            )
        if self._positional is None:
            self._positional = Positional(self.fun, "custom_vmap")
        args = self._positional(args, kwargs)
        if local.context.trace is eval_trace:
            check_values(args)
            out = self.fun(*args)
            check_values(out)
            return tree_util.tree_map(as_result, out)
        leaves, in_tree = tree_util.flatten(args)
        traced = trace_function(
            "custom_vmap", self.fun, positional(in_tree.children()),
            [get_aval(x) for x in leaves], hoisted=any_constant,
        )  # fmt: skip
        constants, out_tree = traced.consts, traced.out_tree
        outs = custom_vmap_p.bind(
            *constants,
            *leaves,
            call=traced.closed,
            rule=FlatRule(self.vmap_rule, fun_name(self.fun), in_tree, out_tree),
            in_tree=tree_util.tree_structure(([0] * len(constants), in_tree.unflatten(leaves))),
            out_tree=out_tree,
            num_consts=len(constants),
        )
        return out_tree.unflatten(outs)
