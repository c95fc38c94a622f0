"""Counterparts of upstream's private functions that split, prune, reorder and map programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.avals import get_aval
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, dce_jaxpr, eval_jaxpr
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import set_trace
from minijax.features.checkpoint.decisions import Offloadable, Recompute, Saveable, decide
from minijax.features.vmappable import registered
from minijax.interpreters.batching import AxisData, matchaxis
from minijax.interpreters.partial_eval import PartialVal
from minijax.jax.private.programs import move_binders_to_back, partial_eval_jaxpr_nounits
from minijax.jax.private.utilities import canonicalize_axis
from minijax.lax import iota
from minijax.transforms import batching

RecomputeType, SaveableType = type(Recompute), type(Saveable)
RematCases = bool | RecomputeType | SaveableType | Offloadable

# -- parts of programs -----------------------------------------------------------------------------


def prune_jaxpr_outputs(jaxpr: Jaxpr, used_outputs: Sequence[bool]) -> Jaxpr:
    """The program that gives only these results, by the same equations."""
    kept = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    return jaxpr.replace(outvars=kept)


def prune_unused_inputs(jaxpr: Jaxpr) -> tuple[Jaxpr, set[int], set[int]]:
    """The program without the inputs that it does not read; which constants and inputs are left."""
    made, used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    read: set[Any] = {v for eqn in made.eqns for v in eqn.invars} | set(made.outvars)
    consts = [n for n, v in enumerate(jaxpr.constvars) if v in read]
    made = made.replace(constvars=[jaxpr.constvars[n] for n in consts])
    return made, set(consts), {n for n, flag in enumerate(used) if flag}


def make_jaxpr_effects(
    constvars: Sequence[Any],
    invars: Sequence[Any],
    outvars: Sequence[Any],
    eqns: Sequence[JaxprEqn],
) -> frozenset:
    """The effects of a program of these equations."""
    return Jaxpr(constvars, invars, outvars, eqns).effects


move_invars_right = move_binders_to_back


def move_outvars_to_back(jaxpr: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """The program with those results last."""
    pairs = list(zip(jaxpr.jaxpr.outvars, to_move, strict=True))
    outvars = [v for v, move in pairs if not move] + [v for v, move in pairs if move]
    return ClosedJaxpr(jaxpr.jaxpr.replace(outvars=outvars), jaxpr.consts)


def partition_pvals(
    pvals: Sequence[PartialVal],
) -> tuple[list[bool], list[Any], list[Any]]:
    """Return which values are known, the types of the others, and the known values."""
    known = [p.is_known() for p in pvals]
    avals = [p.get_aval() for p in pvals if not p.is_known()]
    return known, avals, [p.get_known() for p in pvals if p.is_known()]


# -- known and unknown -----------------------------------------------------------------------------


def everything_saveable(*_: Any, **__: Any) -> bool:
    """The policy to save all results."""
    return True


def ensure_enum(case: bool | RematCases) -> RematCases:
    """Return the answer of a policy as `Saveable`, `Recompute` or an `Offloadable`; TypeError for
    others.
    """
    if type(case) is bool:
        return Saveable if case else Recompute
    if not isinstance(case, (RecomputeType, SaveableType, Offloadable)):
        raise TypeError(
            "Value returned by a remat policy should be a bool or `ad_checkpoint.Recompute`, "
            f"`ad_checkpoint.Saveable` or `ad_checkpoint.Offloadable(...)`. Got {case} of type "
            f"{type(case)}."
        )
    return case


def partial_eval_jaxpr_nounits_fwd(
    jaxpr: ClosedJaxpr, unknowns: Sequence[bool], instantiate: bool | Sequence[bool],
    fwd: bool | Sequence[bool] = True,
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[Any], list[int | None]]:  # fmt: skip
    """`partial_eval_jaxpr_nounits`, without the residuals that are known inputs, if `fwd` allows
    it.

    Gives also, for each residual that the second program takes, which known input it is, or None.
    """
    first, rest, out_unknown, avals = partial_eval_jaxpr_nounits(jaxpr, unknowns, instantiate)
    inputs, outvars = first.jaxpr.invars, first.jaxpr.outvars
    allowed = [fwd] * len(inputs) if isinstance(fwd, bool) else list(fwd)
    count = len(outvars) - len(avals)
    place = {v: n for n, v in enumerate(inputs) if allowed[n]}
    forwarded = [None if type(v) is Literal else place.get(v) for v in outvars[count:]]
    pairs = list(zip(outvars[count:], avals, forwarded, strict=True))
    kept = [v for v, _, n in pairs if n is None]
    first = ClosedJaxpr(first.jaxpr.replace(outvars=[*outvars[:count], *kept]), first.consts)
    return first, rest, out_unknown, [a for _, a, n in pairs if n is None], forwarded


class _Halves:
    """The equations of a program, as they are divided: those to run first, and those to run later."""

    def __init__(self, saveable: Callable):
        self.saveable = saveable
        self.first: list[JaxprEqn] = []
        self.later: list[JaxprEqn] = []
        self.unknown: set[Var] = set()
        self.there: set[Var] = set()  # what the later half has
        self.residuals: list[Var] = []

    def need(self, v: Any) -> None:
        """Have a value in the later half."""
        if type(v) is not Literal and v not in self.there:
            self.there.add(v)
            self.residuals.append(v)

    def run_later(self, eqn: JaxprEqn) -> None:
        for v in eqn.invars:
            self.need(v)
        self.later.append(eqn)
        self.there.update(eqn.outvars)

    def add(self, eqn: JaxprEqn) -> None:
        if not self.unknown.isdisjoint([v for v in eqn.invars if type(v) is not Literal]):
            self.run_later(eqn)
            self.unknown.update(eqn.outvars)
            return
        self.first.append(eqn)
        if eqn.effects:
            return  # what it does is done once
        avals = tuple([v.aval for v in eqn.invars])
        found = decide(self.saveable, eqn.primitive, avals, eqn.params)
        if type(found) is Offloadable:
            raise NotImplementedError(
                f"partial_eval_jaxpr_custom does not offload ({found}): use minijax.checkpoint."
            )
        if not found:
            self.run_later(eqn)


def partial_eval_jaxpr_custom(
    jaxpr: Jaxpr, in_unknowns: Sequence[bool], in_inst: bool | Sequence[bool],
    ensure_out_unknowns: bool | Sequence[bool], ensure_out_inst: bool | Sequence[bool],
    saveable: Callable,
) -> tuple[Jaxpr, Jaxpr, list[bool], list[bool], int]:  # fmt: skip
    """Split a program of which some inputs are unknown, saving what a policy allows.

    Gives `(*known inputs) -> (*known results, *residuals)`, `(*residuals, *inputs that are there)
    -> (*results that are there)`, which results are unknown, which the second program gives, and how
    many residuals there are. `in_inst` says which inputs the second is given: those unknown must be.
    """
    flags = lambda x, like: [x] * len(like) if isinstance(x, bool) else list(x)
    in_inst = flags(in_inst, jaxpr.invars)
    halves = _Halves(saveable)
    for v, unknown, there in zip(jaxpr.invars, in_unknowns, in_inst, strict=True):
        if unknown and not there:
            raise AssertionError(f"{v} is unknown: in_inst must say that the second program has it")
        halves.unknown.update([v] if unknown else [])
        halves.there.update([v] if there else [])
    for eqn in jaxpr.eqns:
        halves.add(eqn)
    wanted = zip(
        jaxpr.outvars, flags(ensure_out_unknowns, jaxpr.outvars),
        flags(ensure_out_inst, jaxpr.outvars), strict=True,
    )  # fmt: skip
    out_unknowns, out_inst = [], []
    for v, unknown, there in wanted:
        unknown = unknown or (type(v) is not Literal and v in halves.unknown)
        if unknown or there:
            halves.need(v)
        out_unknowns.append(unknown)
        out_inst.append(type(v) is Literal or v in halves.there)
    known = lambda xs, unknown: [x for x, un in zip(xs, unknown, strict=True) if not un]
    outs = [*known(jaxpr.outvars, out_unknowns), *halves.residuals]
    first = Jaxpr(jaxpr.constvars, known(jaxpr.invars, in_unknowns), outs, halves.first)
    given = [v for v, there in zip(jaxpr.invars, in_inst, strict=True) if there]
    later_outs = [v for v, there in zip(jaxpr.outvars, out_inst, strict=True) if there]
    later = Jaxpr([], [*halves.residuals, *given], later_outs, halves.later)
    return first, later, out_unknowns, out_inst, len(halves.residuals)


def inline_jaxpr_into_trace(
    trace: Any, src: Any, jaxpr: Jaxpr, consts: Sequence[Any], *arg_tracers: Any
) -> list[Any]:
    """Record a program's equations in a trace; gives its results."""
    with set_trace(trace):
        return eval_jaxpr(jaxpr, consts, *arg_tracers)


# -- mapped ----------------------------------------------------------------------------------------


class ZeroIfMapped:
    """Asks for the batch axis in front, where there is one."""


zero_if_mapped = ZeroIfMapped()


def batch_jaxpr2(
    closed_jaxpr: ClosedJaxpr, axis_data: AxisData, in_axes: Sequence[int | None]
) -> tuple[ClosedJaxpr, tuple[int | None, ...]]:
    """The program mapped over these axes of its inputs, and the axes of its results."""
    made, dims = batching.batch_jaxpr(closed_jaxpr, axis_data, tuple(in_axes))
    return made, tuple(dims)


def batch_jaxpr_axes(
    closed_jaxpr: ClosedJaxpr, axis_data: AxisData, in_axes: Sequence[int | None],
    out_axes_dest: Sequence[Any],
) -> tuple[ClosedJaxpr, list[bool]]:  # fmt: skip
    """The program mapped, with its results' axes where they are asked for; which results have one."""
    made, dims = batching.batch_jaxpr(closed_jaxpr, axis_data, tuple(in_axes))
    places = [
        (None if d is None else 0) if dest is zero_if_mapped else dest
        for d, dest in zip(dims, out_axes_dest, strict=True)
    ]

    def moved(*args: Any) -> list[Any]:
        outs = eval_jaxpr(made.jaxpr, made.consts, *args)
        return [matchaxis(axis_data, *each) for each in zip(dims, places, outs, strict=True)]

    return trace_to_jaxpr(moved, made.in_avals), [place is not None for place in places]


def make_iota(axis_size: int) -> Any:
    """0, 1, ..."""
    return iota("int32", axis_size)


def to_elt(trace: Any, get_idx: Callable[[], Any], x: Any, spec: Any) -> Any:
    """The tracer of a value that is mapped along `spec`: an axis, or None for a value that is not.

    An object of a registered type is taken apart by the function registered for it.
    """
    known = registered.get(type(x))
    if known is not None:
        return known.to_elt(lambda x, spec: to_elt(trace, get_idx, x, spec), get_idx, x, spec)
    if spec is None:
        return x
    if type(spec) is not int:
        raise AssertionError(f"Unexpected type in ELT? {type(x)}")
    return trace.tracer(x, canonicalize_axis(spec, get_aval(x).ndim))
