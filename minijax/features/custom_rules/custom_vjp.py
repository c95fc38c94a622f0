"""`custom_vjp`: a function with a rule of its own for reverse-mode differentiation.

Differentiating a call runs the forward rule at once and records one linear equation, `custom_lin`,
whose transpose is the backward rule. It cannot be evaluated: that would be forward mode, of which
the rules say nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from minijax import dtypes, errors, tree_util
from minijax.accepted_options import hints
from minijax.arguments.functions import fun_name
from minijax.config import local
from minijax.core.avals import get_aval, opaque_types
from minijax.core.hooks import hooks
from minijax.core.primitive import Primitive, no_rule
from minijax.core.trace import eval_trace
from minijax.features.custom_rules import common as custom_rules
from minijax.features.custom_rules.common import (
    Batching,
    Call,
    Positional,
    Rule,
    as_symbolic,
    batch_call,
    bind_call,
    bind_here,
    call_eagerly,
    given_to_rule,
    show,
    split_nondiff,
)
from minijax.features.custom_rules.optimize_remat import remat_opt
from minijax.features.sharding.types import explicit_of, vma_of
from minijax.features.slots import slots
from minijax.tracebacks import boundary
from minijax.transforms.grad import materialized
from minijax.transforms.tangents import Zero, is_float0, zero_like, zero_tangent

__all__ = [
    "CustomVJPException", "CustomVJPPrimal", "custom_lin_p", "custom_vjp", "custom_vjp_call_p",
    "custom_vjp_primal_tree_values", "zero_from_primal",
]  # fmt: skip


class CustomVJPException(Exception):
    """A custom_vjp function was differentiated with respect to a value it closes over."""


# -- the call -------------------------------------------------------------------------------------


class _CustomVJPCall(custom_rules.RuledCall):
    """Libraries' traces may run the function, with layers around it, and bind the call again."""

    __slots__ = ()

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**super().get_bind_params(params), "out_trees": _out_trees}


_out_trees = no_rule("the structure of residuals is known to the rules of a custom_vjp call only")
_PLAIN = (custom_rules.FlatFunction, custom_rules.LayeredFunction)
custom_vjp_call_p = _CustomVJPCall(
    "custom_vjp_call", {"call_jaxpr": _PLAIN, "fwd": _PLAIN, "bwd": _PLAIN}
)
custom_vjp_call_p.printed = lambda params: {
    "name": custom_rules.name_of(params["call_jaxpr"]),
    **{name: params[name] for name in ("bwd", "call_jaxpr", "fwd", "symbolic_zeros")},
}


custom_vjp_call_p.partial_eval(custom_vjp_call_p.staged)


@custom_vjp_call_p.jvp
def _(primals, tangents, *, call_jaxpr, fwd, bwd, num_consts, symbolic_zeros):
    if any(type(t) is not Zero for t in tangents[:num_consts]):
        raise CustomVJPException(
            "Detected differentiation of a custom_vjp function with respect to a closed-over "
            "value. That isn't supported because the custom VJP rule only specifies how to "
            "differentiate the custom_vjp function with respect to explicit input parameters. Try "
            "passing the closed-over value into the custom_vjp function as an argument, and "
            f"adapting the custom_vjp fwd and bwd rules of {custom_rules.name_of(call_jaxpr)}."
        )
    perturbed = tuple([type(t) is not Zero for t in tangents[num_consts:]])
    given, refs = slots.outside_refs(primals[num_consts:])
    outs, residuals, info = fwd(given_to_rule(given, call_jaxpr), perturbed)
    for ref in refs:
        ref.take_over()
    out_avals = tuple([get_aval(x).to_tangent_aval() for x in outs])
    if all(map(is_float0, out_avals)):
        return outs, list(map(zero_like, outs))
    steps = custom_lin_p.bind(
        *residuals,
        *[t for t in tangents if type(t) is not Zero],
        bwd=bwd,
        info=info,
        num_res=len(residuals),
        out_avals=out_avals,
        perturbed=perturbed,
        symbolic_zeros=symbolic_zeros,
    )
    return outs, [
        zero_like(x) if is_float0(aval) else t
        for x, t, aval in zip(outs, steps, out_avals, strict=True)
    ]


custom_vjp_call_p.rule_transpose = no_rule("the rules of custom_vjp do not say that it is linear")


@custom_vjp_call_p.batch_axis
def _(axis, args, dims, *, call_jaxpr, fwd, bwd, num_consts, symbolic_zeros):
    batching = Batching(axis, dims, call_jaxpr)
    mapped = {
        "call_jaxpr": batch_call(call_jaxpr, batching),
        "fwd": BatchedForward(fwd, batching, dims[num_consts:]),
        "bwd": BatchedBackward(bwd, batching, dims[num_consts:]),
        "num_consts": num_consts,
        "symbolic_zeros": symbolic_zeros,
    }
    outs = bind_here(custom_vjp_call_p, args, mapped)
    return outs, batching.out_dims


# -- its linear part: (residuals, tangents) -> tangents -------------------------------------------


class _CustomLinear(Primitive):
    """A linear part whose transpose is the user's: it may give something of its own for zeros."""

    __slots__ = ()
    transposes_zeros = True


custom_lin_p = _CustomLinear("custom_lin", multiple_results=True, holds_programs=True)
custom_lin_p.printed = lambda params: {
    "bwd": params["bwd"],
    "in_zeros": [not nonzero for nonzero in params["perturbed"]],
    "num_res": params["num_res"],
    "symbolic_zeros": params["symbolic_zeros"],
}


@custom_lin_p.shape_rule
def _(*avals, out_avals, **params):
    return list(out_avals)


_no_forward_mode = no_rule(
    "can't apply forward-mode autodiff (jvp) to a custom_vjp function. Use reverse mode (grad, vjp, "
    "jacrev), or give the function a custom_jvp rule, from which both modes follow.",
    TypeError,
)
for _slot in ("impl", "jvp", "batch", "lower"):
    setattr(custom_lin_p, f"rule_{_slot}", _no_forward_mode)


@custom_lin_p.transpose
def _(cts, *args, bwd, info, num_res, perturbed, **params):
    found = bwd(info, args[:num_res], cts)
    return [None] * num_res + [ct for ct, nz in zip(found, perturbed, strict=True) if nz]


# -- the rules on flat values ---------------------------------------------------------------------


@dataclasses.dataclass
class CustomVJPPrimal:
    """An argument of a forward rule with `symbolic_zeros`: its value, and whether it is being
    differentiated with respect to.
    """

    value: Any
    perturbed: bool


@dataclasses.dataclass(frozen=True)
class _Forward:
    """The types and structure of the forward rule, which the backward rule needs besides its
    residuals.
    """

    in_tree: Any
    in_avals: tuple
    out_tree: Any
    residual_tree: Any


class FlatForward(Rule):
    """The user's forward rule on flat values: gives outputs, residuals, and how to read those."""

    __slots__ = ("optimize", "symbolic_zeros")

    def __init__(self, call: Call, fun: Callable, symbolic_zeros: bool, optimize: bool):
        super().__init__(call, fun)
        self.symbolic_zeros = symbolic_zeros
        self.optimize = optimize

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple:
        trees: list[Any] = []

        def flat(*leaves):
            outs, residuals, *found = self.run(leaves, perturbed)
            trees[:] = found
            return [*outs, *residuals]

        if self.optimize:
            results = remat_opt(flat, self.call, primals)
        else:
            results = flat(*primals)
        out_tree, residual_tree = trees
        count = out_tree.num_leaves
        in_avals = tuple([get_aval(x) for x in primals])
        info = _Forward(self.call.in_tree, in_avals, out_tree, residual_tree)
        return results[:count], results[count:], info

    def run(self, leaves: Sequence[Any], perturbed: Sequence[bool]) -> tuple:
        call = self.call
        given = leaves
        if self.symbolic_zeros:
            given = [CustomVJPPrimal(x, p) for x, p in zip(leaves, perturbed, strict=True)]
        args = call.constants.insert(call.constants.values, call.in_tree.unflatten(given))
        with custom_rules.own_lines(self.fun, call.origin):
            pair = self.fun(*args)
        function = fun_name(call.fun)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"Custom VJP fwd rule {self!r} for function {function} must produce a pair (list "
                "or tuple of length two) where the first element represents the primal output "
                f"(equal to those of the custom_vjp-decorated function {function}) and the second "
                "element represents residuals (i.e. values stored from the forward pass for use on "
                f"the backward pass), but instead of a pair the fwd rule {self!r} produced {pair}."
            )
        outs, out_tree = tree_util.flatten(pair[0])
        residuals, residual_tree = tree_util.flatten(pair[1])
        self.check(outs, out_tree, residuals)
        call.learn(leaves, out_tree)
        return outs, residuals, out_tree, residual_tree

    def check(self, outs: list, out_tree: Any, residuals: list) -> None:
        """Compare with the results of the function, where it has been run already."""
        call = self.call
        avals = [get_aval(x) for x in outs]
        for x in residuals:
            get_aval(x)
        if call.out_avals is None:
            return
        function = fun_name(call.fun)
        start = (
            f"Custom VJP fwd rule {self!r} for function {function} must produce a pair (list or "
            "tuple of length two) where the first element represents the primal output (equal to "
            f"the output of the custom_vjp-decorated function {function}) and the second element "
            "represents residuals (i.e. values stored from the forward pass for use on the "
            "backward pass), but instead the fwd rule output's first element had "
        )
        if out_tree != call.out_tree:
            what = "container/pytree structure"
        elif any(
            a.shape != b.shape or a.dtype != b.dtype
            for a, b in zip(avals, call.out_avals, strict=True)
        ):
            what = "shapes/dtypes of"
        else:
            return
        wanted = show(call.out_avals, call.out_tree)
        raise TypeError(
            f"{start}{what}:\n    {show(avals, out_tree)}\nwhile the custom_vjp-decorated function "
            f"{function} had output {what}:\n    {wanted}"
        )


class FlatBackward(Rule):
    """The user's backward rule: residuals and cotangents of outputs to cotangents of inputs."""

    __slots__ = ("symbolic_zeros",)

    def __init__(self, call: Call, fun: Callable, symbolic_zeros: bool):
        super().__init__(call, fun)
        self.symbolic_zeros = symbolic_zeros

    def __call__(self, info: _Forward, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        make = as_symbolic if self.symbolic_zeros else materialized
        given = info.residual_tree.unflatten(residuals)
        cts = info.out_tree.unflatten([make(ct) for ct in cts])
        with custom_rules.own_lines(self.fun):
            found = self.fun(*self.call.constants.values, given, cts)
        leaves = self.spread(found, info.in_tree)
        return [
            self.cotangent(index, ct, aval, info.in_tree)
            for index, (ct, aval) in enumerate(zip(leaves, info.in_avals, strict=True))
        ]

    def spread(self, found: Any, in_tree: Any) -> list[Any]:
        """The leaves of a result, a prefix of the arguments; None stands for zeros."""
        if isinstance(found, list):
            found = tuple(found)
        leaves, tree = tree_util.flatten(found)
        if tree == in_tree:
            return leaves
        leaves, prefix = tree_util.flatten(found, lambda x: x is None)
        out: list[Any] = []
        if isinstance(found, tuple) and _spread(prefix, in_tree, iter(leaves), out):
            return out
        raise TypeError(
            "Custom VJP bwd rule must produce an output with the same container (pytree) structure "
            "as the args tuple of the primal function, and in particular must produce a tuple of "
            "length equal to the number of arguments to the primal function, but got bwd output "
            f"structure {tree} for primal input structure {in_tree}. The rule is {self!r} of "
            f"{fun_name(self.call.fun)}."
        )

    def cotangent(self, index: int, ct: Any, aval: Any, in_tree: Any) -> Any:
        zero = zero_tangent(aval)
        if ct is None or isinstance(ct, (custom_rules.SymbolicZero, Zero)) or is_float0(zero.aval):
            return zero
        if getattr(ct, "dtype", None) == dtypes.float0:
            return zero
        found = get_aval(ct)
        wanted = aval.to_cotangent_aval()
        differs = (
            ", so the shapes do not match" if found.shape != aval.shape
            else ", so the manual axis types do not match" if vma_of(found) != vma_of(wanted)
            else "" if explicit_of(found) != explicit_of(wanted)
            else None
        )  # fmt: skip
        if differs is not None and not hints["jax_disable_bwd_checks"]:
            paths = tree_util.generate_key_paths(in_tree.unflatten(range(in_tree.num_leaves)))
            raise ValueError(
                "Custom VJP bwd rule must produce an output with the same type as the args tuple "
                "of the primal function, but at "
                f"output{tree_util.keystr(list(paths)[index][0])} the bwd rule produced an output "
                f"of type {found.str_short()} corresponding to an input of type "
                f"{aval.str_short()}{differs}: see {self!r}, the "
                f"rule of {fun_name(self.call.fun)}."
            )
        return ct if hasattr(ct, "shape") else np.asarray(ct, found.dtype)[()]


def _spread(prefix: Any, full: Any, leaves: Iterator[Any], out: list[Any]) -> bool:
    """Repeat each leaf for the leaves that it stands for; whether `prefix` is a prefix of `full`."""
    node, full_node = prefix.node_data(), full.node_data()
    if node is None:
        out += [next(leaves)] * full.num_leaves
        return True
    children, full_children = prefix.children(), full.children()
    return (
        node == full_node
        and len(children) == len(full_children)
        and all(_spread(a, b, leaves, out) for a, b in zip(children, full_children, strict=True))
    )


class BatchedForward:
    """A forward rule mapped over an axis; residuals stay where their axis is."""

    __slots__ = ("batching", "dims", "inner")

    def __init__(self, inner: Any, batching: Batching, dims: Sequence[int | None]):
        self.inner, self.batching, self.dims = inner, batching, dims

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple:
        known: list[Any] = []

        def fun(*args):
            outs, residuals, info = self.inner(args, perturbed)
            known[:] = [len(outs), info]
            return [*outs, *residuals]

        results, dims = self.batching.run(fun, primals, self.dims)
        count, info = known
        outs = self.batching.settle(results[:count], dims[:count])
        return outs, results[count:], (info, tuple(dims[count:]))

    def __repr__(self) -> str:
        return repr(self.inner)


class BatchedBackward:
    """A backward rule mapped over an axis: what is not mapped gets the sum of its cotangents."""

    __slots__ = ("batching", "dims", "inner")

    def __init__(self, inner: Any, batching: Batching, dims: Sequence[int | None]):
        self.inner, self.batching, self.dims = inner, batching, dims

    def __call__(self, info: Any, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        inner_info, residual_dims = info
        batching = self.batching
        count = len(residuals)
        given = [type(ct) is not Zero for ct in cts]
        live: list[bool] = []

        def fun(*args):
            rest = iter(args[count:])
            pulled = [
                next(rest) if nz else _unmapped(ct, dim)
                for nz, ct, dim in zip(given, cts, batching.out_dims, strict=True)
            ]
            found = self.inner(inner_info, args[:count], pulled)
            live.extend(type(ct) is not Zero for ct in found)
            return [ct for ct in found if type(ct) is not Zero]

        ct_dims = [dim for dim, nz in zip(batching.out_dims, given, strict=True) if nz]
        values = [*residuals, *(ct for ct in cts if type(ct) is not Zero)]
        results, dims = batching.run(fun, values, [*residual_dims, *ct_dims])
        pairs = iter(zip(results, dims, strict=True))
        return [
            batching.pull_to(*next(pairs), wanted) if nz else _NO_COTANGENT
            for nz, wanted in zip(live, self.dims, strict=True)
        ]

    def __repr__(self) -> str:
        return repr(self.inner)


_NO_COTANGENT = Zero(None)


def _unmapped(zero: Zero, dim: int | None) -> Zero:
    if dim is None:
        return zero
    return Zero(zero.aval.without_axis(dim))


# -- the decorator --------------------------------------------------------------------------------


_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])


class custom_vjp(custom_rules.SetsInnerRules, Generic[_P, _R]):
    """Define a function with custom rules for reverse-mode differentiation; a decorator.

    - `fun`: function of pytrees of arrays
    - `nondiff_argnums`, `nondiff_argnames`: arguments that are not arrays; `fwd` takes them at
      their positions, `bwd` before the residuals

    `f.defvjp(fwd, bwd)`: `fwd(*args)` returns the output and residuals, `bwd(residuals, ct)` a
    tuple of cotangents of the arguments' shapes and dtypes, or None. TypeError in forward mode and
    for other structures; ValueError for other shapes.
    Source: reverse-mode automatic differentiation (Linnainmaa, 1970).

    >>> f = jax.custom_vjp(lambda x: x * x)
    >>> f.defvjp(lambda x: (x * x, x), lambda x, ct: (7 * ct,))
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
        self.fwd: Callable | None = None
        self.bwd: Callable | None = None
        self.symbolic_zeros = False
        self.optimize_remat = False
        self._positional: Positional | None = None

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules: `fwd(*args) -> (out, residuals)`, `bwd(*nondiff, residuals, ct) -> cts`.

        With `symbolic_zeros`, `fwd` takes `CustomVJPPrimal`s and `bwd` may be given `SymbolicZero`s.
        With `optimize_remat`, where nothing reads the residuals of a recorded `fwd`, the function
        itself takes its place. NotImplementedError for both at once.
        """
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError(
                "remat optimization for custom_vjp does not support symbolic zeros: set one of "
                "symbolic_zeros and optimize_remat only."
            )
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat

    @boundary
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {fun_name(self.fun)} using defvjp. Call "
                "f.defvjp(fwd, bwd) first."
            )
        if self._positional is None:
            self._positional = Positional(self.fun, "custom_vjp")
        args = self._positional(args, kwargs)
        if not opaque_types.isdisjoint(map(type, args)):
            leaves, in_tree = tree_util.flatten((args, {}))
            hooks.check_arguments("custom_vjp", leaves, self.fun, in_tree)
        if local.context.trace is eval_trace:
            return call_eagerly(self.fun, self.nondiff_argnums, args)
        constants, args = split_nondiff(self.nondiff_argnums, args)
        if constants.count:
            raise errors.UnexpectedTracerError(
                f"Found a JAX Tracer object passed as an argument to a custom_vjp function "
                f"in a position indicated by nondiff_argnums as "
                "non-differentiable. Tracers cannot be passed as non-differentiable arguments to "
                "custom_vjp functions; instead, nondiff_argnums should only be used for arguments "
                "that can't be or contain JAX tracers, e.g. function-valued arguments. In "
                "particular, array-valued arguments should typically not be indicated as "
                "nondiff_argnums: return a cotangent of None for them. It is an argument of "
                f"{fun_name(self.fun)}."
            )
        leaves, in_tree = tree_util.flatten(args)
        call = Call(self, self.fun, in_tree, constants)
        return bind_call(
            custom_vjp_call_p,
            call,
            leaves,
            call_jaxpr=call,
            fwd=FlatForward(call, self.fwd, self.symbolic_zeros, self.optimize_remat),
            bwd=FlatBackward(call, self.bwd, self.symbolic_zeros),
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values of a tree of `CustomVJPPrimal`s, such as the arguments of a forward rule."""
    return tree_util.tree_map(_value_of, tree, is_leaf=lambda x: isinstance(x, CustomVJPPrimal))


def _value_of(leaf: Any) -> Any:
    if not isinstance(leaf, CustomVJPPrimal):
        raise TypeError(f"unexpected leaf type {type(leaf)}: the leaves must be CustomVJPPrimals.")
    return leaf.value


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Zero tangents for a tree of values: float0 for integers; `SymbolicZero`s if asked for."""
    make = as_symbolic if symbolic_zeros else materialized
    return tree_util.tree_map(lambda x: make(zero_like(x)), val)
