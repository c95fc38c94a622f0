"""`custom_gradient`, `closure_convert` and `linear_call`: derivatives given as closures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.arguments.functions import debug_info, fun_name
from minijax.core.avals import get_aval
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from minijax.core.primitive import Primitive, Programs
from minijax.core.staging import StagedTracer
from minijax.core.trace import Tracer
from minijax.features.custom_rules.common import Batching, batch_call, call_function, stage_call
from minijax.features.custom_rules.custom_vjp import custom_vjp
from minijax.transforms.batching import BatchTracer
from minijax.transforms.jvp import JVPTracer, jvp_flat
from minijax.transforms.primitives import add_tangents, instantiate
from minijax.transforms.tangents import Zero, is_undefined, zero_like
from minijax.transforms.tracing import positional, trace_function

__all__ = ["closure_convert", "custom_gradient", "linear_call", "linear_call_p"]


def _trace_leaves(fun: Callable, in_tree: Any, avals: Sequence[Any], what: str) -> tuple:
    """The program of a function of pytrees, and the structure of its result."""
    traced = trace_function(what, fun, positional(in_tree.children()), avals, hoisted=None)
    return traced.closed, traced.out_tree


# -- custom_gradient ------------------------------------------------------------------------------


class _Pullback:
    """A program of cotangents, with the values it closes over: a pytree of those."""

    __slots__ = ("consts", "in_tree", "jaxpr", "out_tree")

    def __init__(self, jaxpr: Jaxpr, in_tree: Any, out_tree: Any, consts: Sequence[Any]):
        self.jaxpr, self.in_tree, self.out_tree = jaxpr, in_tree, out_tree
        self.consts = consts

    def __call__(self, cotangent: Any) -> Any:
        leaves = tree_util.flatten(cotangent)[0]
        return self.out_tree.unflatten(eval_jaxpr(self.jaxpr, self.consts, *leaves))


tree_util.register_pytree_node(
    _Pullback,
    lambda p: (p.consts, (p.jaxpr, p.in_tree, p.out_tree)),
    lambda aux, consts: _Pullback(*aux, consts),
)


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Define a function by its value and its reverse-mode rule: `fun(*args) -> (value, vjp)`.

    - `fun`: function of pytrees of arrays
    - `vjp(cotangent)`: cotangents of the shapes and dtypes of the arguments, a tuple or list if
      there are several; it may read any value that `fun` computes

    The result is a function `fun(*args) -> value`. TypeError in forward mode.
    Source: TensorFlow's `custom_gradient`.

    >>> f = jax.custom_gradient(lambda x: (x * x, lambda ct: 7 * ct))
    >>> jax.grad(f)(3.0)
    Array(7., dtype=float32, weak_type=True)
    """

    def value_of(*args, **kwargs):
        value, _ = fun(*args, **kwargs)
        return value

    def fwd(*args, **kwargs):
        value, rule = fun(*args, **kwargs)
        leaves, tree = tree_util.flatten((value,))
        avals = [get_aval(x).to_tangent_aval() for x in leaves]
        closed, out_tree = _trace_leaves(rule, tree, avals, "custom_gradient")
        return value, _Pullback(closed.jaxpr, tree, out_tree, closed.consts)

    def bwd(pullback, cotangent):
        found = pullback(cotangent)
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    wrapped = custom_vjp(_renamed(value_of, fun))
    wrapped.defvjp(fwd, bwd)
    return update_wrapper(wrapped, fun)


def _renamed(function: Callable, fun: Callable) -> Callable:
    function.__name__ = fun_name(fun)
    return function


# -- closure_convert ------------------------------------------------------------------------------


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """Convert the values that a function closes over and may be differentiated by to arguments.

    - `fun`: function of pytrees of arrays
    - `example_args`: arguments whose structure, shapes and dtypes later ones have

    The result is `(converted, constants)` with `converted(*args, *constants) == fun(*args)`; only
    floating-point values that are traced for differentiation are constants. TypeError if
    `converted` is called with another structure.
    Source: Johnsson, Lambda lifting (1985).

    >>> converted, constants = jax.closure_convert(lambda x: 2 * x, 1.0)
    >>> converted(3.0, *constants)
    Array(6., dtype=float32, weak_type=True)
    """
    if not callable(fun):
        raise TypeError(f"the first argument must be callable, got {fun!r}")
    leaves, in_tree = tree_util.flatten(example_args)
    closed, out_tree = _trace_leaves(fun, in_tree, [get_aval(x) for x in leaves], "closure_convert")
    pairs = list(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    hoisted = [_may_be_perturbed(value) for _, value in pairs]
    kept = [pair for pair, out in zip(pairs, hoisted, strict=True) if not out]
    moved = [pair for pair, out in zip(pairs, hoisted, strict=True) if out]
    jaxpr = closed.jaxpr.replace(
        constvars=[v for v, _ in kept], invars=[*(v for v, _ in moved), *closed.jaxpr.invars]
    )
    values = [value for _, value in kept]

    def converted(*args_and_constants):
        split = len(args_and_constants) - len(moved)
        args, constants = args_and_constants[:split], args_and_constants[split:]
        given, tree = tree_util.flatten(args)
        if tree != in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the same Pytree "
                "structure as the example arguments passed when closure_convert was called. "
                f"Expected {in_tree}, but got {tree}; after them come the {len(moved)} constants."
            )
        return out_tree.unflatten(eval_jaxpr(jaxpr, values, *constants, *given))

    return converted, [value for _, value in moved]


def _may_be_perturbed(x: Any) -> bool:
    """Whether a derivative with respect to this value may be in progress."""
    while type(x) is BatchTracer:
        x = x.value
    if not isinstance(x, Tracer) or not dtypes.issubdtype(get_aval(x).dtype, np.inexact):
        return False
    return isinstance(x, (JVPTracer, StagedTracer))


# -- linear_call ----------------------------------------------------------------------------------

linear_call_p = Primitive("linear_call", programs=Programs(callee=(0,), ruled=True))


@linear_call_p.effects_rule
def _(*, callee, **params):
    return callee.effects if type(callee) is ClosedJaxpr else frozenset()


@linear_call_p.impl
def _(*args, callee, **params):
    return call_function(callee, args)


@linear_call_p.stage
@linear_call_p.partial_eval
def _(trace, args, params):
    callee = params["callee"]
    if type(callee) is not ClosedJaxpr:
        info = debug_info("linear_call fun", function_of(callee), None)
        callee, constants = stage_call(callee, args, info)
        params = {**params, "callee": callee, "num_callee_consts": len(constants)}
        args = [*constants, *args]
    return trace.record(linear_call_p, args, params)


@linear_call_p.jvp
def _(primals, tangents, **params):
    outs = linear_call_p.bind(*primals, **params)
    fixed = params["num_callee_consts"] + params["num_res"]
    steps: list[Any] = list(map(zero_like, outs))
    if any(type(t) is not Zero for t in tangents[fixed:]):
        given = [instantiate(t) for t in tangents[fixed:]]
        steps = linear_call_p.bind(*primals[:fixed], *given, **params)
    if any(type(t) is not Zero for t in tangents[:fixed]):
        run = lambda *xs: call_function(params["callee"], [*xs, *primals[fixed:]])
        more = jvp_flat(run, primals[:fixed], tangents[:fixed])[1]
        steps = [add_tangents(x, y) for x, y in zip(steps, more, strict=True)]
    return outs, steps


@linear_call_p.transpose
def _(cts, *args, callee, transpose, num_callee_consts, num_res):
    fixed = num_callee_consts + num_res
    if any(is_undefined(a) for a in args[:fixed]):
        raise NotImplementedError(
            "linear_call is linear in its linear_args only: it cannot be transposed with respect "
            "to a residual. Pass that value among linear_args."
        )
    found = linear_call_p.bind(
        *args[:fixed],
        *[instantiate(ct) for ct in cts],
        callee=Skipping(transpose, num_callee_consts),
        transpose=callee,
        num_callee_consts=0,
        num_res=fixed,
    )
    results = [ct if is_undefined(a) else None for a, ct in zip(args[fixed:], found, strict=True)]
    return [None] * fixed + results


@linear_call_p.batch_axis
def _(axis, args, dims, *, callee, transpose, num_callee_consts, num_res):
    batching = Batching(axis, dims, callee)
    outs = linear_call_p.bind(
        *args,
        callee=batch_call(callee, batching),
        transpose=BatchedTranspose(transpose, batching, dims[num_callee_consts:], num_res),
        num_callee_consts=num_callee_consts,
        num_res=num_res,
    )
    return outs, batching.out_dims


class Skipping:
    """A function on flat values that ignores the first few of them."""

    __slots__ = ("count", "fun")

    def __init__(self, fun: Any, count: int):
        self.fun, self.count = fun, count

    def __call__(self, *args):
        return call_function(self.fun, args[self.count :])


class BatchedTranspose:
    """`(residuals, cotangents) -> cotangents`, mapped over an axis."""

    __slots__ = ("batching", "dims", "fun", "num_res")

    def __init__(self, fun: Any, batching: Batching, dims: Sequence[int | None], num_res: int):
        self.fun, self.batching, self.dims, self.num_res = fun, batching, dims, num_res

    def __call__(self, *args):
        batching, num_res = self.batching, self.num_res
        dims = [*self.dims[:num_res], *batching.out_dims]
        run = lambda *xs: call_function(self.fun, xs)
        found, found_dims = batching.run(run, args, dims)
        return [
            batching.pull_to(ct, dim, wanted)
            for ct, dim, wanted in zip(found, found_dims, self.dims[num_res:], strict=True)
        ]


class FlatLinear:
    """A function of two pytrees, residuals and what it is linear in, on flat values."""

    __slots__ = ("fun", "in_trees", "out_tree")

    def __init__(self, fun: Callable, *in_trees: Any):
        self.fun, self.in_trees, self.out_tree = fun, in_trees, None

    def __call__(self, *leaves):
        first, second = self.in_trees
        count = first.num_leaves
        out = self.fun(first.unflatten(leaves[:count]), second.unflatten(leaves[count:]))
        outs, self.out_tree = tree_util.flatten(out)
        return outs


def function_of(callee: Any) -> Callable:
    """The user's function in what stands in the params of a `linear_call`."""
    while hasattr(callee, "inner") or hasattr(callee, "fun"):
        callee = callee.inner if hasattr(callee, "inner") else callee.fun
    return callee


def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """`fun(residual_args, linear_args)`, linear in the second, with its transpose given.

    `fun_transpose(residual_args, cotangents)` gives cotangents of `linear_args`; it is used where
    the call is transposed, as in reverse mode, and `fun` is in turn its transpose. TypeError
    (ValueError for shapes) if its result is not like `linear_args`.
    """
    residuals, residual_tree = tree_util.flatten(residual_args)
    operands, linear_tree = tree_util.flatten(linear_args)
    flat = FlatLinear(fun, residual_tree, linear_tree)
    closed, constants = stage_call(
        flat, [*residuals, *operands], debug_info("linear_call fun", fun, None)
    )
    avals = [get_aval(x) for x in operands]

    def transposed(*args):
        pull = FlatLinear(fun_transpose, residual_tree, flat.out_tree)
        found = pull(*args)
        if pull.out_tree != linear_tree:
            raise TypeError(
                "transpose output pytree structure must match that of linear inputs, got output "
                f"structure {pull.out_tree} and input structure {linear_tree}."
            )
        for ct, aval in zip(found, avals, strict=True):
            if get_aval(ct).shape != aval.shape:
                raise ValueError(
                    f"Expected cotangent type {aval.str_short()} but got "
                    f"{get_aval(ct).str_short()} from {fun_name(fun_transpose)}, the transpose of "
                    f"{fun_name(fun)} in linear_call."
                )
        return found

    outs = linear_call_p.bind(
        *constants,
        *residuals,
        *operands,
        callee=closed,
        transpose=transposed,
        num_callee_consts=len(constants),
        num_res=len(residuals),
    )
    return flat.out_tree.unflatten(outs)
