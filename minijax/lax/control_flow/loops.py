"""`while_p`, and the loops on it: `while_loop`, and `fori_loop`, which is a scan if it can be.

The condition may have batch axes, in which case all that is carried has them in front and the loop
goes on while any element does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax import dtypes, errors, tree_util
from minijax.arrays.array import as_value
from minijax.config import local
from minijax.core.avals import get_aval
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo, Var, dce_jaxpr
from minijax.core.primitive import CallPrimitive, Programs
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import Tracer
from minijax.features.effects.inputs import numbered
from minijax.features.effects.kinds import is_io
from minijax.features.queries import is_dim
from minijax.lax.arithmetic import add_p
from minijax.lax.compare import lt_p, select_n_p
from minijax.lax.control_flow.common import check_callables, check_carry, program_of, traced_body
from minijax.lax.control_flow.dependence import (
    carry_reached,
    chosen,
    merge,
    permuted,
    reached,
    split_list,
)
from minijax.lax.control_flow.loop_lowering import lower_while
from minijax.lax.control_flow.loop_rules import loops, with_tangents
from minijax.lax.control_flow.scan import make_plan, run_loop, unroll_factor
from minijax.lax.control_flow.scan_rules import batch_loop_body
from minijax.lax.convert import convert_element_type
from minijax.lax.shapes import broadcast_in_dim
from minijax.tracebacks import boundary
from minijax.transforms.batching import batch_jaxpr, to_front
from minijax.transforms.tangents import spread_tangents, zero_tangent
from minijax.transforms.tracing import Traced

__all__ = ["fori_loop", "while_loop", "while_p"]

T = TypeVar("T")

# -- the primitive --------------------------------------------------------------------------------

_COUNTS = ("cond_nconsts", "body_nconsts")
while_p = CallPrimitive("while", Programs(_COUNTS, cond_jaxpr=(0, 2), body_jaxpr=(1, 2), carried=2))


@while_p.effects_rule
def _(*, cond_jaxpr, body_jaxpr, **params):
    # The constants of the body stand between those of the condition and what is carried.
    return numbered(cond_jaxpr.jaxpr) | body_jaxpr.effects


while_p.lower(lower_while)


@while_p.steps
def _(run, *args, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    test, rest = args[:cond_nconsts], args[cond_nconsts:]
    consts, carry = rest[:body_nconsts], rest[body_nconsts:]
    while np.asarray(going := run(cond_jaxpr, *test, *carry)[0]).any():
        following = run(body_jaxpr, *consts, *carry)
        carry = [_where_going(going, *pair) for pair in zip(following, carry, strict=True)]


def _where_going(going: Any, new: Any, old: Any) -> Any:
    """Return `new` for the elements whose condition holds, and `old` for those that have ended."""
    axes = range(np.ndim(going))
    if new is old or not axes:
        return new
    return select_n_p.bind(broadcast_in_dim(going, np.shape(new), axes), old, new)


loops(while_p)


@while_p.linearize
def _(trace, primals, tangents, **params):
    # How often it runs is known only when it has run, so there is no room for residuals: the linear
    # part runs the loop again, on pairs. It can be applied, not transposed.
    outs = while_p.bind(*primals, **params)
    args, changed, carry, _ = with_tangents(while_p, primals, tangents, params)
    avals = params["body_jaxpr"].out_avals
    if not any(carry):
        return outs, list(map(zero_tangent, avals))
    pairs = trace.record(while_p, args, changed)
    return outs, spread_tangents(pairs[len(carry) :], carry, avals)


@while_p.transpose
def _(cts, *args, **params):
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values. Try using lax.scan, or using fori_loop with static start/stop. "
        "How many steps there are, and so how much has to be remembered of them, is not known "
        "beforehand; forward mode (minijax.jvp and jacfwd) works as it is."
    )


@while_p.partial_eval
def _(trace, args, params):
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    counts = params["cond_nconsts"], params["body_nconsts"]
    unknown = [trace.is_unknown(a) for a in args]
    cond_flags, flags, init_flags = split_list(unknown, *counts)
    carry = carry_reached(body.jaxpr, flags, init_flags)
    outs = trace.record(while_p, args, params)
    if reached(cond.jaxpr, [*cond_flags, *carry])[0] or all(carry):
        return outs
    # The steps are known: run the part of the loop that is, for its own sake.
    cond_consts, consts, init = split_list(args, *counts)

    def make():
        known = [not flag for flag in carry]
        inner, _ = dce_jaxpr(body.jaxpr, known, [*[not flag for flag in flags], *known])
        keep = [*[True] * counts[0], *known]
        return ClosedJaxpr(inner, body.consts), permuted(cond, chosen(cond.jaxpr.invars, keep))

    key = ("while known", cond, tuple(flags), tuple(carry), local.context.key)
    known_body, known_cond = body.derive(key, make)
    consts = [x for x, flag in zip(consts, flags, strict=True) if not flag]
    init = [x for x, flag in zip(init, carry, strict=True) if not flag]
    known = while_p.bind(
        *cond_consts, *consts, *init, cond_jaxpr=known_cond, cond_nconsts=len(cond_consts),
        body_jaxpr=known_body, body_nconsts=len(consts),
    )  # fmt: skip
    return merge(known, chosen(outs, carry), carry)


@while_p.batch_axis
def _(axis, args, dims, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    cond_consts, consts, init = split_list(args, cond_nconsts, body_nconsts)
    cond_dims, const_dims, init_dims = split_list(dims, cond_nconsts, body_nconsts)
    body, carry, _ = batch_loop_body(body_jaxpr, axis, const_dims, init_dims)
    cond_dims = [*cond_dims, *(0 if batched else None for batched in carry)]
    # A condition that has axes already lines up with the front of the carry: it gets this one too.
    ends_apart = bool(cond_jaxpr.out_avals[0].shape) and any(carry)
    ends_apart = ends_apart or batch_jaxpr(cond_jaxpr, axis, cond_dims)[1][0] is not None
    if ends_apart and any(map(is_io, cond_jaxpr.effects | body_jaxpr.effects)):
        raise NotImplementedError(
            "Unordered IO effects not supported in while_loop with batched predicate: elements that "
            "have ended would go on acting. Loop with lax.map."
        )
    if ends_apart:
        _, ins = split_list(body_jaxpr.jaxpr.invars, body_nconsts)
        changing = [x is not y for x, y in zip(ins, body_jaxpr.jaxpr.outvars, strict=True)]
        body, carry, _ = batch_loop_body(body_jaxpr, axis, const_dims, init_dims, at_least=changing)
    carry_dims = [0 if batched else None for batched in carry]
    cond, _ = batch_jaxpr(cond_jaxpr, axis, [*cond_dims[:cond_nconsts], *carry_dims], ends_apart)
    init = [
        to_front(x, dim, axis.size) if batched else x
        for x, dim, batched in zip(init, init_dims, carry, strict=True)
    ]
    outs = while_p.bind(
        *cond_consts, *consts, *init, cond_jaxpr=cond, cond_nconsts=cond_nconsts,
        body_jaxpr=body, body_nconsts=body_nconsts,
    )  # fmt: skip
    return outs, carry_dims


# -- while_loop -----------------------------------------------------------------------------------


@boundary
def while_loop(cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init_val: T) -> T:
    """Apply `body_fun` to a state as long as `cond_fun` of it is true.

    - `cond_fun`: function of the state that returns a boolean scalar
    - `body_fun`: function from a state to the next
    - `init_val`: pytree of arrays whose structure, shapes and dtypes `body_fun` keeps

    The result is the last state. TypeError where the state changes or `cond_fun` does not return a
    boolean scalar. Forward mode works; reverse mode raises ValueError: use `scan`.
    Source: the StableHLO operation `stablehlo.while`.

    >>> lax.while_loop(lambda x: x < 10, lambda x: 2 * x, 1)
    Array(16, dtype=int32, weak_type=True)
    """
    check_callables(
        "lax.while_loop: body_fun and cond_fun arguments should be callable.", body_fun, cond_fun
    )
    if local.context.settings.disable_jit:
        try:
            value = tree_util.tree_map(as_value, init_val)
            while cond_fun(value):
                value = body_fun(value)
            return value
        except errors.ConcretizationTypeError:
            pass  # the condition is traced (by vmap, say): the loop is an equation then
    leaves, tree = tree_util.flatten(init_val)
    plan, leaves = _while_plan(cond_fun, body_fun, leaves, tree)
    return tree.unflatten(_run_while(plan, leaves))


class _WhilePlan:
    """The programs of a loop, without what it carries unchanged and does not test (`moved`)."""

    __slots__ = ("body", "body_consts", "cond", "cond_consts", "kept", "moved")


def _while_plan(cond_fun, body_fun, leaves, tree) -> tuple[_WhilePlan, Sequence[Any]]:
    trace = functools.partial(program_of, "while_loop", body_fun, (tree,))
    in_avals = [get_aval(x) for x in leaves]
    body = trace(in_avals)
    if not body.plans:  # else it keeps the types of its carry
        body, leaves, in_avals = traced_body(
            body_fun, body, leaves, in_avals, trace, lambda body: body.closed.out_avals
        )
    cond = program_of("while_cond", cond_fun, (tree,), in_avals)
    plan = body.plans.get(cond)
    if plan is None:
        _check_condition(cond)
        check_carry(
            "while_loop", body_fun, 0, tree, in_avals, body.out_tree, body.closed.out_avals, "val"
        )
        plan = body.plans[cond] = _make_while_plan(cond, body)
    return plan, leaves


def _check_condition(cond: Traced) -> None:
    if cond.out_tree != _LEAF:
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got pytree {cond.out_tree}. Return one "
            "value, such as `x < 10`."
        )
    aval = cond.closed.out_avals[0]
    if aval.shape or aval.dtype != np.bool_:
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got output type(s) [{aval!r}]. Compare, "
            "or reduce with .any() or .all()."
        )


_LEAF = tree_util.tree_structure(0)


def _make_while_plan(cond: Traced, body: Traced) -> _WhilePlan:
    plan = _WhilePlan()
    plan.cond_consts, plan.body_consts = cond.consts, body.consts
    consts, carry = split_list(body.closed.jaxpr.invars, len(body.consts))
    cond_consts, tested = split_list(cond.closed.jaxpr.invars, len(cond.consts))
    outs = body.closed.jaxpr.outvars
    read = {v for eqn in cond.closed.jaxpr.eqns for v in eqn.invars}
    read.update(cond.closed.jaxpr.outvars)
    passed = [x is y and z not in read for x, y, z in zip(carry, outs, tested, strict=True)]
    plan.moved = [i for i, flag in enumerate(passed) if flag]
    plan.kept = [i for i, flag in enumerate(passed) if not flag]
    plan.cond, plan.body = cond.closed, body.closed
    if plan.moved:
        pick = lambda values, places: [values[i] for i in places]
        plan.body = permuted(
            body.closed,
            [*pick(carry, plan.moved), *consts, *pick(carry, plan.kept)],
            pick(outs, plan.kept),
        )
        plan.cond = permuted(cond.closed, [*cond_consts, *pick(tested, plan.kept)])
    return plan


def _run_while(plan: _WhilePlan, leaves: Sequence[Any]) -> list[Any]:
    outs = while_p.bind(
        *plan.cond_consts,
        *[leaves[i] for i in plan.moved],
        *plan.body_consts,
        *[leaves[i] for i in plan.kept],
        cond_jaxpr=plan.cond,
        cond_nconsts=len(plan.cond_consts),
        body_jaxpr=plan.body,
        body_nconsts=len(plan.moved) + len(plan.body_consts),
    )
    if not plan.moved:
        return outs
    results = list(leaves)
    for i, out in zip(plan.kept, outs, strict=True):
        results[i] = out
    for i in plan.moved:
        results[i] = as_value(results[i])
    return results


# -- fori_loop ------------------------------------------------------------------------------------


@boundary
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, T], T],
    init_val: T,
    *,
    unroll: int | bool | None = None,
) -> T:
    """Compute `val = body_fun(i, val)` for `i` from `lower` up to, excluding, `upper`.

    - `lower`, `upper`: integer scalars of one dtype. If both are known, the loop is a `scan` and
      can be differentiated in both modes; with traced bounds it is a `while_loop`. Known bounds
      that are no integers are rounded towards 0
    - `init_val`: pytree of arrays, whose structure, shapes and dtypes `body_fun` keeps
    - `unroll`: as in `scan`, for known bounds only (ValueError otherwise)

    The result is the last value. TypeError if the bounds' dtypes differ, or the state changes.
    Source: the StableHLO operation `stablehlo.while`.

    >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    check_callables("lax.fori_loop: body_fun argument should be callable.", body_fun)
    lower, upper, known = _bounds(lower, upper)
    if not (known or unroll is None or unroll is False or unroll == 1):
        raise ValueError(
            "Can only use `unroll` in `fori_loop` if the loop bounds are statically known. Got "
            f"lower={lower!r}, upper={upper!r}."
        )
    if local.context.settings.disable_jit and known:
        for i in range(lower, upper):
            init_val = body_fun(i, init_val)
        return init_val
    leaves, tree = tree_util.flatten(init_val)
    if not known:
        return tree.unflatten(_dynamic_fori(lower, upper, body_fun, leaves, tree))
    trips = max(upper - lower, 0)
    plan, leaves = _fori_plan(lower, body_fun, leaves, tree)
    steps = unroll_factor(1 if unroll is None else unroll, trips)
    carry, _ = run_loop(plan, [lower, *leaves], (), trips, False, steps)
    return tree.unflatten(carry[1:])


def _bounds(lower: Any, upper: Any) -> tuple[Any, Any, bool]:
    """Both bounds, of one type, and whether they are known; then as Python integers, towards 0."""
    lower, upper = [x.__jax_array__() if is_dim(x) else x for x in (lower, upper)]
    low, high = get_aval(lower), get_aval(upper)
    for name, bound, aval in (("lower", lower, low), ("upper", upper, high)):
        if type(bound) is int:
            dtypes.number_as(bound, aval.dtype)
        if aval.shape:
            raise TypeError(
                f"fori_loop: {name} must be a scalar; got {bound!r} of type {aval.str_short()}."
            )
    dtype = low.dtype
    if low.dtype != high.dtype:
        dtype, _ = dtypes.promote(((low.dtype, low.weak_type), (high.dtype, high.weak_type)))
        weak = low.weak_type or high.weak_type
        kinds = {low.dtype.kind, high.dtype.kind}
        if not weak or dtype not in (low.dtype, high.dtype) or not kinds <= set("i"):
            raise TypeError(
                "lower and upper arguments to fori_loop must have equal types, got "
                f"{low.dtype.name} and {high.dtype.name}: convert one of them with .astype."
            )
    known = not (isinstance(lower, Tracer) or isinstance(upper, Tracer))
    if known and dtype.kind != "c":
        return int(lower), int(upper), True
    if low.dtype != dtype:
        lower = convert_element_type(lower, dtype)
    elif high.dtype != dtype:
        upper = convert_element_type(upper, dtype)
    return lower, upper, False


def _counted(body_fun: Callable) -> Callable:
    @functools.wraps(body_fun)
    def step(i, val):
        return _next(i), body_fun(i, val)

    return step


def _next(i: Any) -> Any:
    aval = i.aval
    one = np.asarray(1, aval.dtype)[()]
    return add_p.bind(i, one.item() if aval.weak_type else one)


def _fori_traced(what, body_fun, index_aval, leaves, tree) -> tuple[Traced, Sequence[Any]]:
    avals = [get_aval(x) for x in leaves]

    def trace(avals, **options):
        options |= {"kind": "fori", "adapt": _counted}
        return program_of(what, body_fun, (_LEAF, tree), [index_aval, *avals], **options)

    traced = trace(avals)
    if traced.plans:
        return traced, leaves
    traced, leaves, avals = traced_body(
        body_fun, traced, leaves, avals, trace, lambda body: body.closed.out_avals[1:]
    )
    out_tree = traced.out_tree.children()[1]
    check_carry(what, body_fun, 1, tree, avals, out_tree, traced.closed.out_avals[1:])
    return traced, leaves


def _fori_plan(lower: int, body_fun, leaves, tree):
    traced, leaves = _fori_traced("fori_loop", body_fun, get_aval(lower), leaves, tree)
    return make_plan(traced, 1 + len(leaves)), leaves


def _dynamic_fori(lower, upper, body_fun, leaves, tree) -> list[Any]:
    """A while loop that carries the counter, its bound and the state."""
    index_aval = get_aval(lower)
    traced, leaves = _fori_traced("fori_loop", body_fun, index_aval, leaves, tree)
    bound = get_aval(upper)
    plan = traced.plans.get(bound)
    if plan is None:
        plan = traced.plans[bound] = _dynamic_plan(traced, index_aval, bound)
    return _run_while(plan, [lower, upper, *leaves])[2:]


def _dynamic_plan(traced: Traced, index_aval: Any, bound: Any) -> _WhilePlan:
    jaxpr = traced.closed.jaxpr
    consts, (i, *vals) = split_list(jaxpr.invars, len(traced.consts))
    last = Var(bound)
    body = permuted(
        traced.closed, [*consts, i, last, *vals], [jaxpr.outvars[0], last, *jaxpr.outvars[1:]]
    )
    cond = trace_to_jaxpr(
        lambda i, last, *vals: [lt_p.bind(i, last)],
        (index_aval, bound, *(v.aval for v in vals)),
        DebugInfo("fori_loop", "cond_fun"),
    )
    return _make_while_plan(Traced(cond, [], _LEAF), Traced(body, traced.consts, None))
