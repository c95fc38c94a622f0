"""`checkpoint` (`remat`): computing values again in the backward pass instead of saving them.

Linearizing a checkpointed call computes its results at once, saves what the policy allows, and
records ONE linear equation: it computes the residuals again, then does the linear work. Transposing
it gives one equation, too, in which both stay together, behind a barrier, so that the compiler
cannot merge the second computation with the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

from minijax import tree_util
from minijax.accepted_options import hints
from minijax.arguments.functions import as_ints, as_names, fun_name, signature_of
from minijax.config import local
from minijax.core.avals import get_aval
from minijax.core.caches import kept_with
from minijax.core.effects import check_allowed, is_impure, remat_allowed
from minijax.core.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    dce_jaxpr,
    eval_jaxpr,
    jaxprs_in_params,
)
from minijax.core.primitive import CallPrimitive, NoRule, Primitive
from minijax.core.source import joined
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import set_trace
from minijax.features.checkpoint.decisions import Policy, decide, nothing_saveable
from minijax.features.checkpoint.offload import fetch, offload, stored_as
from minijax.features.checkpoint.saved_residuals import log_residuals
from minijax.features.slots import slots
from minijax.namespace import named
from minijax.tracebacks import boundary
from minijax.transforms.call_rules import calls_program
from minijax.transforms.grad import as_result, check_callable
from minijax.transforms.jit import jit_p
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.linearize import LinearizedJaxpr, linearize_jaxpr
from minijax.transforms.tangents import (
    Zero,
    cotangents_of,
    is_undefined,
    spread_tangents,
    sums_among,
)
from minijax.transforms.tracing import Traced, any_constant, close_over, trace_function
from minijax.transforms.transpose import transpose_jaxpr

__all__ = ["checkpoint", "remat", "remat_p"]

_F = TypeVar("_F", bound=Callable[..., Any])
AGAIN = "rematted_computation"  # scope of what runs again, as profiles show it

# -- the primitive --------------------------------------------------------------------------------
# prevent_cse: a bool, or one for each operand; differentiated: whether it computes values again.


class _Remat(CallPrimitive):
    """A checkpointed call; a transform of one sees values for the references it is given."""

    __slots__ = ()


slots.method("bind_checkpointed", _Remat, "bind")
remat_p = _Remat("remat2")


def _derived(params: dict, made: ClosedJaxpr, outs: Any, ins: Sequence[bool]) -> dict:
    """The params for a program made of the one called, which still takes some of its arguments."""
    flags = flags_of(params["prevent_cse"], len(ins))
    flags = [flag for flag, kept in zip(flags, ins, strict=True) if kept]
    return {**params, "jaxpr": made, "prevent_cse": joined_flags(params["prevent_cse"], flags)}


calls_program(remat_p, _derived)


@remat_p.impl
def _(*args, jaxpr, **params):
    return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)


@remat_p.jvp
def _(primals, tangents, *, jaxpr, prevent_cse, **params):
    nonzeros = [type(t) is not Zero for t in tangents]
    made, out_nonzeros = jvp_jaxpr(jaxpr, nonzeros)
    flags = flags_of(prevent_cse, len(primals))
    more = [flag for flag, nz in zip(flags, nonzeros, strict=True) if nz]
    results = remat_p.bind(
        *primals,
        *[t for t in tangents if type(t) is not Zero],
        jaxpr=made,
        prevent_cse=joined_flags(prevent_cse, [*flags, *more]),
        **params,
    )
    count = len(jaxpr.out_avals)
    return results[:count], spread_tangents(results[count:], out_nonzeros, jaxpr.out_avals)


def flags_of(prevent_cse: bool | tuple, count: int) -> Sequence[bool]:
    return (prevent_cse,) * count if isinstance(prevent_cse, bool) else prevent_cse


def joined_flags(prevent_cse: bool | tuple, flags: Sequence[bool]) -> bool | tuple:
    return prevent_cse if isinstance(prevent_cse, bool) else tuple(flags)


@remat_p.linearize
def _(trace, primals, tangents, *, jaxpr, prevent_cse, differentiated, policy):
    nonzeros = tuple([type(t) is not Zero for t in tangents])
    key = ("remat", nonzeros, policy, local.context.key)
    split = jaxpr.derive(key, lambda: _split(jaxpr, nonzeros, policy))
    if hints["jax_log_checkpoint_residuals"]:
        inputs = [*split.constants, *[primals[i] for i in split.inputs]]
        log_residuals(inputs, split.known, len(jaxpr.out_avals))
    with set_trace(trace.parent):
        known = split.known
        results = eval_jaxpr(known.jaxpr, known.consts, *primals)
        count = len(jaxpr.out_avals)
        saved = [
            x if where is None else offload(x, where)
            for x, where in zip(results[count:], split.places, strict=True)
        ]
    out = []
    if split.program.out_avals:
        flags = flags_of(prevent_cse, len(primals))
        given = [t for t in tangents if type(t) is not Zero]
        operands = [*split.constants, *saved, *[primals[i] for i in split.inputs], *given]
        before = [True] * (len(split.constants) + len(saved))
        flags = [*before, *(flags[i] for i in split.inputs), *[True] * len(given)]
        out = trace.record(
            remat_p,
            operands,
            {
                "jaxpr": split.program,
                "prevent_cse": joined_flags(prevent_cse, flags),
                "differentiated": True,
                "policy": policy,
            },
        )
    return results[:count], spread_tangents(out, split.out_nonzeros, jaxpr.out_avals)


@remat_p.transpose
def _(cts, *args, jaxpr, prevent_cse, differentiated, policy):
    linear = tuple([is_undefined(a) for a in args])
    nonzeros = tuple([type(ct) is not Zero for ct in cts])
    summed = tuple(sums_among(args))
    key = ("remat transpose", linear, nonzeros, summed, local.context.key)
    made, out_nonzeros, used = jaxpr.derive(
        key, lambda: _transposed(jaxpr, linear, nonzeros, summed)
    )
    flags = flags_of(prevent_cse, len(args))
    operands = [
        *((a, flag) for a, lin, flag in zip(args, linear, flags, strict=True) if not lin),
        *((ct, True) for ct in cts if type(ct) is not Zero),
        *((a.sum, False) for a, flag in zip(args, summed, strict=True) if flag),
    ]
    operands = [pair for pair, keep in zip(operands, used, strict=True) if keep]
    results = remat_p.bind(
        *[x for x, _ in operands],
        jaxpr=made,
        prevent_cse=joined_flags(prevent_cse, [flag for _, flag in operands]),
        differentiated=True,
        policy=policy,
    )
    avals = [a.aval for a in args if is_undefined(a)]
    return cotangents_of(args, spread_tangents(results, out_nonzeros, avals))


def _transposed(closed: ClosedJaxpr, linear: tuple, nonzeros: tuple, summed: tuple) -> tuple:
    """The transposed program, without what it does not need, and which inputs it needs."""
    made, out_nonzeros = transpose_jaxpr(closed, linear, nonzeros, summed)
    jaxpr, used = dce_jaxpr(made.jaxpr, [True] * len(made.out_avals))
    return ClosedJaxpr(jaxpr, made.consts), out_nonzeros, used


@remat_p.lower
def _(b, *operands, jaxpr, prevent_cse, differentiated, **params):
    operands = list(operands)
    if differentiated:
        flags = flags_of(prevent_cse, len(operands))
        places = [index for index, flag in enumerate(flags) if flag]
        held = [operands[index] for index in places]
        if held:
            op = "stablehlo.optimization_barrier"
            for index, x in zip(places, b.op_n(op, held, [x.aval for x in held]), strict=True):
                operands[index] = x
    b.scope += "checkpoint/"
    return b.closed_jaxpr(jaxpr, *operands)


# -- what is saved, and what is computed again ----------------------------------------------------


class _Split:
    """A program split for linearization with recomputation.

    - `known`: (*inputs) -> (*outputs, *saved values); `places`: where each of those is kept
    - `program`: (*constants, *saved, *inputs of these numbers, *nonzero tangents) -> tangents
    """

    __slots__ = ("constants", "inputs", "known", "out_nonzeros", "places", "program")

    def __init__(self, **fields: Any):
        for name, value in fields.items():
            setattr(self, name, value)


def _split(closed: ClosedJaxpr, nonzeros: tuple[bool, ...], policy: Policy | None) -> _Split:
    if policy is nothing_saveable:
        policy = None
    if policy is not None:
        closed = _exposed(closed, policy)
    linearized = linearize_jaxpr(closed, nonzeros)
    if closed.effects:
        check_allowed(remat_allowed, closed.effects, "partial-eval of `checkpoint`/`remat`")
    primal = linearized.primal.jaxpr
    count = len(closed.out_avals)
    saved, again = _choose(primal, primal.outvars[count:], policy)
    program, constants, inputs = _recomputing(linearized, primal, saved, again, count)
    known = closed
    # By forward rules where functions have some: forward mode around has no use for a custom_vjp.
    if saved or _is_only_transposed(linearized.linear.jaxpr):
        outvars = [*primal.outvars[:count], *saved]
        known = ClosedJaxpr(primal.replace(outvars=outvars), linearized.primal.consts)
    wanted, _ = dce_jaxpr(known.jaxpr, [True] * (count + len(saved)), instantiate=True)
    return _Split(
        known=ClosedJaxpr(wanted, known.consts),
        places=[None if where is True else where for where in saved.values()],
        program=program,
        constants=constants,
        inputs=inputs,
        out_nonzeros=linearized.out_nonzeros,
    )


def _is_only_transposed(jaxpr: Jaxpr) -> bool:
    """Whether a linear program has operations that cannot be run forward."""
    return any(
        type(eqn.primitive.rule_jvp) is NoRule
        or any(map(_is_only_transposed, jaxprs_in_params(eqn.params)))
        for eqn in jaxpr.eqns
    )


def _choose(
    primal: Jaxpr, residuals: Sequence[Any], policy: Policy | None
) -> tuple[dict[Var, Any], list[JaxprEqn]]:
    """The values to save, with the policy's word on each, and the equations to run again."""
    needed = {v for v in residuals if type(v) is not Literal}
    saved: dict[Var, Any] = {}
    again = []
    for eqn in reversed(primal.eqns):
        effectful = bool(eqn.effects) and is_impure(eqn.effects)
        wanted = [v for v in eqn.outvars if v in needed]
        if not wanted and not effectful:
            continue
        where = policy is not None and not effectful and _decision(eqn, policy)
        if where:
            saved.update((v, where) for v in reversed(wanted))
        else:
            again.append(eqn)
            needed.update(v for v in eqn.invars if type(v) is not Literal)
    return dict(reversed(saved.items())), again[::-1]


def _recomputing(
    linearized: LinearizedJaxpr,
    primal: Jaxpr,
    saved: dict[Var, Any],
    again: Sequence[JaxprEqn],
    count: int,
) -> tuple[ClosedJaxpr, list[Any], list[int]]:
    """The linear program with the recomputation in front of it; its constants, and which inputs
    of the primal program it takes.
    """
    linear = linearized.linear.jaxpr
    pool = [*primal.invars, *primal.outvars[count:]]
    sources = [pool[index] for index in linearized.residual_sources]
    kept = [v if where is True else stored_as(v, where) for v, where in saved.items()]
    fetching = [
        fetch(stored, v, where)
        for stored, (v, where) in zip(kept, saved.items(), strict=True)
        if where is not True
    ]
    substitution = dict(zip(linear.invars[: len(sources)], sources, strict=True))
    place = lambda v: v if type(v) is Literal else substitution.get(v, v)
    eqns = [*fetching, *(eqn.replace(scope=joined(AGAIN, eqn.scope)) for eqn in again)]
    eqns += [eqn.replace(invars=[place(v) for v in eqn.invars]) for eqn in linear.eqns]
    outvars = [place(v) for v in linear.outvars]
    read = {v for eqn in eqns for v in eqn.invars if type(v) is not Literal}
    read.update(v for v in outvars if type(v) is not Literal)
    inputs = [index for index, v in enumerate(primal.invars) if v in read]
    constants = [
        (v, value)
        for each in (linearized.primal, linearized.linear)
        for v, value in zip(each.jaxpr.constvars, each.consts, strict=True)
        if v in read
    ]
    invars = [
        *(v for v, _ in constants),
        *kept,
        *(primal.invars[i] for i in inputs),
        *linear.invars[len(sources) :],
    ]
    jaxpr = Jaxpr([], invars, outvars, eqns, None, linear.debug_info)
    return ClosedJaxpr(jaxpr), [value for _, value in constants], inputs


def _saves_residuals(primitive: Primitive) -> bool:
    """Whether it runs programs and saves what those save: a loop of known length, or a choice."""
    calls = primitive.programs
    return calls is not None and bool(calls.counts) and len(calls.inputs) == 1


def _decision(eqn: JaxprEqn, policy: Policy) -> Any:
    """The policy's word on an equation; on one with sub-programs, whether it saves within them."""
    if _saves_residuals(eqn.primitive):
        return _saves_within(eqn, policy)
    return decide(policy, eqn.primitive, tuple([v.aval for v in eqn.invars]), eqn.params)


def _saves_within(eqn: JaxprEqn, policy: Policy) -> bool:
    return any(
        bool(_decision(inner, policy)) or _saves_within(inner, policy)
        for jaxpr in jaxprs_in_params(eqn.params)
        for inner in jaxpr.eqns
    )


def _exposed(closed: ClosedJaxpr, policy: Policy) -> ClosedJaxpr:
    """The program with calls inlined, and with loop bodies that apply the policy themselves."""
    if not any(eqn.primitive is jit_p or _saves_residuals(eqn.primitive) for eqn in closed.eqns):
        return closed
    inlined = _inlined(closed)
    run = lambda *args: eval_jaxpr(inlined.jaxpr, inlined.consts, *args)
    flat = trace_to_jaxpr(run, closed.in_avals, closed.jaxpr.debug_info)
    eqns = [
        eqn.replace(params={k: _body(v, policy) for k, v in eqn.params.items()})
        if _saves_residuals(eqn.primitive) and _saves_within(eqn, policy)
        else eqn
        for eqn in flat.eqns
    ]
    return flat.replace(jaxpr=flat.jaxpr.replace(eqns=eqns))


def _inlined(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with its calls marked, so that tracing it inlines them."""
    eqns = [
        eqn.replace(params={**eqn.params, "inline": True, "jaxpr": _inlined(eqn.params["jaxpr"])})
        if eqn.primitive is jit_p
        else eqn
        for eqn in closed.eqns
    ]
    return closed.replace(jaxpr=closed.jaxpr.replace(eqns=eqns))


def _body(value: Any, policy: Policy) -> Any:
    """A program among the params of a loop, made a checkpointed call of itself."""
    if type(value) is tuple and value and all(type(item) is ClosedJaxpr for item in value):
        return tuple([_body(item, policy) for item in value])
    if type(value) is not ClosedJaxpr:
        return value
    inner, constants = close_over(value, any_constant)

    def call(*args):
        return remat_p.bind(
            *constants,
            *args,
            jaxpr=inner,
            prevent_cse=False,
            differentiated=False,
            policy=policy,
        )

    return trace_to_jaxpr(call, value.in_avals, value.jaxpr.debug_info)


# -- the decorator --------------------------------------------------------------------------------

_UNSET: Any = object()


def checkpoint(
    fun: _F,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: Any = _UNSET,
) -> _F:
    """Recompute the intermediate values of `fun` in the backward pass instead of storing them.

    - `fun`: function of pytrees of arrays; shapes, dtypes and values of its results do not change
    - `policy`: which results may be stored all the same; see `checkpoint_policies`
    - `prevent_cse`: whether to keep XLA from merging the two computations: a boolean, or a pytree
      of them that is a prefix of the arguments; False where a loop (`lax.scan`) keeps them apart
    - `static_argnums`, `static_argnames`: arguments that are not arrays

    TypeError unless `fun` is callable; ValueError if a static argument does not exist.
    Source: Griewank and Walther, Algorithm 799: Revolve (2000).

    >>> jax.grad(jax.checkpoint(lambda x: x**3))(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    if concrete is not _UNSET:
        raise NotImplementedError(
            "The `concrete` option to `jax.checkpoint` was deprecated in JAX v0.8.2, and removed in "
            "JAX v0.10.0. In its place please use `static_argnums`."
        )
    check_callable(fun)
    statics = _Statics(fun, static_argnums, static_argnames)
    if not isinstance(prevent_cse, bool):
        prevent_cse = tuple(prevent_cse)

    @_wrapping(fun)
    @boundary
    def checkpointed(*args, **kwargs):
        fixed, args, named = statics.take(args, kwargs)
        leaves, in_tree = tree_util.flatten((args, named))
        avals = tuple([get_aval(x) for x in leaves])
        key = (in_tree, avals, *fixed.items(), *[type(v) for v in fixed.values()])
        traced = kept_with(fun, "checkpoint").find(
            key,
            lambda: trace_function(
                "checkpoint / remat", fun, in_tree, avals,
                statics=fixed.items(), hoisted=any_constant,
            ),
            Traced.is_lasting,
        )  # fmt: skip
        flags = prevent_cse
        if not isinstance(flags, bool):
            spread = tree_util.broadcast_prefix(statics.positional(flags, fixed), args)
            rest = [True] * (len(leaves) - len(spread))
            flags = (*[True] * len(traced.consts), *spread, *rest)
        outs = remat_p.bind(
            *traced.consts,
            *leaves,
            jaxpr=traced.closed,
            prevent_cse=flags,
            differentiated=False,
            policy=policy,
        )
        return traced.out_tree.unflatten([as_result(x) for x in outs])

    return checkpointed


remat = named(checkpoint, "remat", __name__)


def _wrapping(fun: Callable) -> Callable:
    def decorate(wrapper: Callable) -> Callable:
        wrapper = wraps(fun)(wrapper)
        wrapper.__name__ = fun_name(fun)
        return wrapper

    return decorate


class _Statics:
    """The static arguments, by number and by name."""

    __slots__ = ("names", "numbers")

    def __init__(self, fun: Callable, argnums: Any, argnames: Any):
        if not isinstance(argnums, (int, tuple)):
            raise TypeError(
                "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` must be an int, tuple "
                f"of ints or, bool, but got value {argnums}: write a tuple."
            )
        self.numbers = as_ints("static_argnums", argnums)
        names = as_names("static_argnames", argnames)
        signature = signature_of(fun) if names else None
        order = list(signature.parameters) if signature else []
        self.names = {name: order.index(name) if name in order else None for name in names}

    def take(self, args: tuple, kwargs: dict) -> tuple[dict, tuple, dict]:
        """The static arguments by number or name, and the others."""
        count = len(args)
        if any(not -count <= n < count for n in self.numbers):
            raise ValueError(
                "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` can only take "
                "integer values greater than or equal to `-len(args)` and less than `len(args)`, "
                f"but got {self.numbers}, while `len(args)` = {count}: pass these arguments by "
                "position, or name them in static_argnames."
            )
        if not self.numbers and not self.names:
            return {}, args, kwargs
        chosen = {n % count for n in self.numbers}
        chosen.update(n for n in self.names.values() if n is not None and n < count)
        fixed: dict = {n: args[n] for n in sorted(chosen)}
        fixed.update((name, kwargs[name]) for name in self.names if name in kwargs)
        rest = tuple([x for n, x in enumerate(args) if n not in fixed])
        return fixed, rest, {name: x for name, x in kwargs.items() if name not in fixed}

    @staticmethod
    def positional(flags: tuple, fixed: dict) -> tuple:
        return tuple([flag for n, flag in enumerate(flags) if n not in fixed])
