"""A forward rule that gives way to the function it belongs to where nothing reads its residuals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.config import local
from minijax.core.jaxpr import ClosedJaxpr, Var, dce_jaxpr, eval_jaxpr
from minijax.core.primitive import Primitive, Programs, no_rule
from minijax.core.staging import JaxprTrace
from minijax.features.custom_rules.common import Call, stage_call
from minijax.transforms.batching import batch_jaxpr
from minijax.transforms.jvp import jvp_flat

__all__ = ["remat_opt", "remat_opt_p"]

remat_opt_p = Primitive("remat_opt", programs=Programs(fwd_jaxpr=(0,), ruled=True))


@remat_opt_p.impl
def _(*args, fwd_jaxpr, **params):
    return eval_jaxpr(fwd_jaxpr.jaxpr, fwd_jaxpr.consts, *args)


@remat_opt_p.jvp
def _(primals, tangents, *, fwd_jaxpr, **params):
    run = lambda *xs: eval_jaxpr(fwd_jaxpr.jaxpr, fwd_jaxpr.consts, *xs)
    return jvp_flat(run, primals, tangents)


remat_opt_p.rule_transpose = no_rule("it is the forward rule of a custom_vjp, which is not linear")


@remat_opt_p.batch_axis
def _(axis, args, dims, *, fwd_jaxpr, fun_jaxpr, num_res):
    outs = len(fun_jaxpr.out_avals)
    fwd, out_dims = batch_jaxpr(fwd_jaxpr, axis, dims, [True] * outs + [False] * num_res)
    fun, _ = batch_jaxpr(fun_jaxpr, axis, dims, True)
    return remat_opt_p.bind(*args, fwd_jaxpr=fwd, fun_jaxpr=fun, num_res=num_res), out_dims


@remat_opt_p.dce
def _(used, eqn):
    fun = eqn.params["fun_jaxpr"]
    outs = len(fun.out_avals)
    if any(used[outs:]):
        return [True] * len(eqn.invars), eqn
    jaxpr, used_inputs = dce_jaxpr(fun.jaxpr, used[:outs])
    if not any(used) and not jaxpr.effects:
        return [False] * len(eqn.invars), None
    closed = ClosedJaxpr(jaxpr, fun.consts)
    return used_inputs, eqn.replace(
        invars=[v for v, keep in zip(eqn.invars, used_inputs, strict=True) if keep],
        outvars=[v for v, keep in zip(eqn.outvars, used, strict=True) if keep],
        params={"fwd_jaxpr": closed, "fun_jaxpr": closed, "num_res": 0},
    )


def remat_opt(forward: Callable, call: Call, primals: Sequence[Any]) -> list[Any]:
    """Run a forward rule on flat values: `primals -> [*outs, *residuals]`; where a program is
    being recorded, as an equation that can still become a call of the function.
    """
    trace = local.context.trace
    while trace is not None and type(trace) is not JaxprTrace:
        trace = trace.parent
    if trace is None:
        return forward(*primals)
    fwd, fwd_consts = stage_call(forward, primals, call.debug_info("custom_vjp fwd"))
    fun, fun_consts = stage_call(call, primals, call.debug_info("custom_vjp fun"))
    unread = [Var(v.aval) for v in fun.jaxpr.invars[: len(fun_consts)]]
    fwd = _with_inputs(fwd, len(fwd_consts), unread)
    fun = _with_inputs(fun, 0, [Var(v.aval) for v in fwd.jaxpr.invars[: len(fwd_consts)]])
    num_res = len(fwd.out_avals) - len(fun.out_avals)
    return remat_opt_p.bind(
        *fwd_consts, *fun_consts, *primals, fwd_jaxpr=fwd, fun_jaxpr=fun, num_res=num_res
    )


def _with_inputs(closed: ClosedJaxpr, place: int, more: list[Var]) -> ClosedJaxpr:
    """The program with inputs inserted that it does not read."""
    invars = closed.jaxpr.invars
    return ClosedJaxpr(
        closed.jaxpr.replace(invars=[*invars[:place], *more, *invars[place:]]), closed.consts
    )
