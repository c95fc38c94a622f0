"""`cond_p`: one of several programs, chosen by an index; and `platform_index_p`.

Here are the primitives and their rules; the functions on them (`cond`, `switch`,
`platform_dependent`) stand in `conditionals`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.arguments.functions import unnamed
from minijax.config import local
from minijax.core.avals import ShapedArray
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from minijax.core.primitive import CallPrimitive, Primitive, Programs, no_rule
from minijax.core.staging import trace_to_jaxpr
from minijax.features.effects.kinds import is_io
from minijax.features.sharding.types import vma_of
from minijax.lax.casts import vary
from minijax.lax.compare import eq_p, select_n_p
from minijax.lax.control_flow.common import run_inline
from minijax.lax.control_flow.dependence import (
    chosen,
    merge,
    nonzero,
    ordered_effects,
    split_program,
)
from minijax.lax.convert import stop_gradient_p
from minijax.transforms.batching import batch_jaxpr, to_front
from minijax.transforms.call_rules import agreeing, calls_program, needed
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.primitives import full_like_aval, moveaxis, to_shape
from minijax.transforms.tangents import (
    cotangents_of,
    is_undefined,
    kinds_of,
    spread_tangents,
    sums_among,
)
from minijax.transforms.transpose import transpose_jaxpr

__all__ = ["cond_p", "platform_index_p"]

# -- the primitive --------------------------------------------------------------------------------

# Operands: the index, then what all branches take. The results have one type in all branches, up to
# weak types. With `branches_platforms` the choice is made by the platform it is lowered for.
cond_p = CallPrimitive("cond", Programs((1,), branches=(1,)))


calls_program(cond_p)


def _derived(branches: tuple, key: tuple, make: Callable) -> Any:
    """Return what `make` gives, kept with the first branch."""
    return branches[0].derive((*key, branches[1:], local.context.key), make)


class _SplitBranches:
    """Branches in two: those that are run now and give residuals, and those that take them.

    - `first`: (*inputs) -> (*outputs, *residuals); a residual that a branch has not is zeros
    - `second`: (*inputs that are residuals, *residuals, *its inputs) -> (*outputs)
    - `inputs`: which inputs of `first` are residuals
    """

    __slots__ = ("first", "inputs", "second")


def _join_residuals(splits: Sequence[tuple], num_inputs: int) -> _SplitBranches:
    """`splits` holds for each branch its two programs and where the residuals come from."""
    slots: list[ShapedArray] = []
    placed = []
    for first, _, sources in splits:
        extra = first.out_avals[len(first.out_avals) - _num_extra(sources, num_inputs) :]
        placed.append(_place(extra, slots))
    inputs = sorted({s for _, _, sources in splits for s in sources if s < num_inputs})
    joined = _SplitBranches()
    joined.inputs = inputs
    joined.first, joined.second = [], []
    for (first, second, sources), places in zip(splits, placed, strict=True):
        joined.first.append(_fill(first, places, slots))
        residuals = dict(zip(sources, second.jaxpr.invars, strict=False))
        by_slot = {place: residuals.get(num_inputs + k) for k, place in enumerate(places)}
        invars = [
            *(residuals.get(s) or Var(first.in_avals[s]) for s in inputs),
            *(by_slot.get(k) or Var(aval) for k, aval in enumerate(slots)),
            *second.jaxpr.invars[len(sources) :],
        ]
        joined.second.append(ClosedJaxpr(second.jaxpr.replace(invars=invars), second.consts))
    joined.first, joined.second = tuple(joined.first), tuple(joined.second)
    return joined


def _num_extra(sources: Sequence[int], num_inputs: int) -> int:
    return len({s for s in sources if s >= num_inputs})


def _place(avals: Sequence[ShapedArray], slots: list[ShapedArray]) -> list[int]:
    """A slot of its type for each residual of a branch; branches share them."""
    free: dict[int, list[int]] = {}
    for place in reversed(range(len(slots))):
        free.setdefault(id(slots[place]), []).append(place)
    places = []
    for aval in avals:
        aval = aval.strip_weak_type()
        if not free.get(id(aval)):
            free[id(aval)] = [len(slots)]
            slots.append(aval)
        places.append(free[id(aval)].pop())
    return places


def _fill(first: ClosedJaxpr, places: Sequence[int], slots: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The branch with its residuals in their slots, and zeros in the others."""
    jaxpr = first.jaxpr
    count = len(jaxpr.outvars) - len(places)
    values: dict[int, Any] = dict(zip(places, jaxpr.outvars[count:], strict=True))
    missing = [k for k in range(len(slots)) if k not in values]
    zeros = trace_to_jaxpr(lambda: [_zeros_of(slots[k]) for k in missing], ())
    values.update(zip(missing, zeros.jaxpr.outvars, strict=True))
    filled = Jaxpr(
        [*jaxpr.constvars, *zeros.jaxpr.constvars],
        jaxpr.invars,
        [*jaxpr.outvars[:count], *(values[k] for k in range(len(slots)))],
        [*jaxpr.eqns, *zeros.jaxpr.eqns],
        jaxpr.effects,
        unnamed(jaxpr.debug_info),
    )
    return ClosedJaxpr(filled, [*first.consts, *zeros.consts])


@cond_p.linearize
def _(trace, primals, tangents, *, branches, **params):
    index, *ops = primals
    flags = nonzero(tangents[1:])
    avals = branches[0].out_avals

    def make():
        def derive(branch, want):
            split = linearize_jaxpr(branch, flags, want)
            return split, split.out_nonzeros

        made, out_flags = agreeing(branches, derive, len(avals))
        splits = [(s.primal, s.linear, s.residual_sources) for s in made]
        return _join_residuals(splits, len(ops)), out_flags

    split, out_flags = _derived(branches, ("cond linearize", tuple(flags)), make)
    outs = cond_p.bind(index, *ops, branches=split.first, **params)
    dots = []
    if any(out_flags):
        args = [
            index, *(ops[i] for i in split.inputs), *outs[len(avals) :],
            *chosen(tangents[1:], flags),
        ]  # fmt: skip
        dots = trace.record(cond_p, args, dict(params, branches=split.second))
    return outs[: len(avals)], spread_tangents(dots, out_flags, avals)


@cond_p.partial_eval
def _(trace, args, params):
    branches = params["branches"]
    index, *ops = args
    unknown = [trace.is_unknown(a) for a in ops]
    if trace.is_unknown(index) or all(unknown):
        return trace.record(cond_p, args, params)

    def make():
        def derive(branch, want):
            split = split_program(branch, unknown, want)
            return split, split.out_unknown

        made, out_unknown = agreeing(branches, derive, len(branches[0].out_avals))
        splits = [(s.known, s.unknown, s.sources) for s in made]
        return _join_residuals(splits, unknown.count(False)), out_unknown

    split, out_unknown = _derived(branches, ("cond split", tuple(unknown)), make)
    known_ops = [x for x, flag in zip(ops, unknown, strict=True) if not flag]
    known = cond_p.bind(index, *known_ops, **dict(params, branches=split.first))
    count = out_unknown.count(False)
    rest = [index, *(known_ops[i] for i in split.inputs), *known[count:], *chosen(ops, unknown)]
    outs = trace.record(cond_p, rest, dict(params, branches=split.second))
    return merge(known[:count], outs, out_unknown)


@cond_p.transpose
def _(cts, index, *ops, branches, **params):
    linear = [is_undefined(a) for a in ops]
    flags, summed = kinds_of(cts), sums_among(ops)

    def make():
        def derive(branch, want):
            made = transpose_jaxpr(branch, linear, flags, summed)
            return _with_zeros(made, in_avals, want)

        in_avals = [a.to_cotangent_aval() for a in chosen(branches[0].in_avals, linear)]
        made, out_flags = agreeing(branches, derive, len(in_avals))
        return made, out_flags

    key = ("cond transpose", tuple(linear), tuple(flags), tuple(summed))
    made, out_flags = _derived(branches, key, make)
    known = [a for a in ops if not is_undefined(a)]
    sums = [a.sum for a in chosen(ops, summed)]
    made, given = needed(made, [*known, *chosen(cts, flags), *sums])
    outs = iter(cond_p.bind(index, *given, branches=made, **params))
    return [None, *cotangents_of(ops, [next(outs) if nz else None for nz in out_flags])]


def _zeros_of(aval: Any) -> Any:
    """Zeros of a type, varying over the mesh axes that it says."""
    return vary(full_like_aval(0, aval), vma_of(aval))


def _with_zeros(found: tuple, avals: Sequence[Any], wanted: Sequence[bool]) -> tuple:
    """A transposed branch that also gives the zero cotangents that are wanted."""
    made, flags = found
    missing = [want and not flag for want, flag in zip(wanted, flags, strict=True)]
    if not any(missing):
        return made, flags
    jaxpr = made.jaxpr
    zeros = trace_to_jaxpr(lambda: list(map(_zeros_of, chosen(avals, missing))), ())
    has, lacks = iter(jaxpr.outvars), iter(zeros.jaxpr.outvars)
    outvars = [
        next(lacks) if miss else next(has)
        for miss, flag in zip(missing, flags, strict=True)
        if miss or flag
    ]
    filled = Jaxpr(
        [*jaxpr.constvars, *zeros.jaxpr.constvars], jaxpr.invars, outvars,
        [*jaxpr.eqns, *zeros.jaxpr.eqns], jaxpr.effects, unnamed(jaxpr.debug_info),
    )  # fmt: skip
    return ClosedJaxpr(filled, [*made.consts, *zeros.consts]), list(wanted)


@cond_p.batch_axis
def _(axis, args, dims, *, branches, **params):
    (index, *ops), (index_dim, *op_dims) = args, dims
    if index_dim is not None:
        if any(is_io(effect) for branch in branches for effect in branch.effects):
            raise NotImplementedError(
                "IO effect not supported in vmap-of-cond: each element would choose for itself, and "
                "all branches are run. Choose by a condition that is not mapped, or loop with lax.map."
            )
        index = moveaxis(index, index_dim, 0)
        return _batched_choice(axis, index, ops, op_dims, branches)
    count = len(branches[0].out_avals)
    found = [batch_jaxpr(branch, axis, op_dims) for branch in branches]
    union = [
        dims[0] if dims.count(dims[0]) == len(dims) else 0
        for dims in zip(*(out_dims for _, out_dims in found), strict=True)
    ]
    if any(list(out_dims) != union for _, out_dims in found):
        front = [dim is not None for dim in union]
        found = [batch_jaxpr(branch, axis, op_dims, front) for branch in branches]
        union = [0 if want else None for want in front]
    assert len(union) == count
    outs = cond_p.bind(index, *ops, branches=tuple(made for made, _ in found), **params)
    return outs, union


def _batched_choice(axis, index, ops, op_dims, branches) -> tuple:
    """Each element chooses for itself: all branches are run, and their results selected.

    In a branch that an element has not chosen, its operands have no derivative: what would come of
    them, perhaps NaN, is to be left out, and zero times NaN is not zero.
    """
    results = []
    for k, branch in enumerate(branches):
        values, dims = list(ops), list(op_dims)
        mask = None
        read = {v for eqn in branch.eqns for v in eqn.invars}
        for i, var in enumerate(branch.jaxpr.invars):
            if var in read and dtypes.issubdtype(var.aval.dtype, np.inexact):
                if mask is None:
                    mask = eq_p.bind(index, np.int32(k))
                x = to_front(values[i], dims[i], axis.size)
                values[i] = select_n_p.bind(_widened(mask, x), stop_gradient_p.bind(x), x)
                dims[i] = 0
        made, _ = batch_jaxpr(branch, axis, dims, True)
        results.append(run_inline(made, "branch", *values))
    outs = []
    for column in zip(*results, strict=True):
        outs.append(select_n_p.bind(_widened(index, column[0]), *column))
    return outs, [0] * len(outs)


def _widened(x: Any, like: Any) -> Any:
    """A value of the mapped axis, repeated along the other axes of `like`."""
    shape = like.shape
    if len(shape) == 1:
        return x
    return to_shape(x, shape, (0,))


@cond_p.steps
def _(run, index, *ops, branches, **params):
    run(branches[min(max(int(index), 0), len(branches) - 1)], *ops)


@cond_p.lower
def _(b, index, *ops, branches, branches_platforms=None):
    outs = b.outs
    if branches_platforms is not None:
        branches = [branches[platform_place(b.platform, branches_platforms)]]
    if len(branches) == 1:
        return b.closed_jaxpr(branches[0], *ops)
    effects = ordered_effects(*(branch.jaxpr for branch in branches))
    tokens = [b.tokens[e] for e in effects]

    def region(number, branch):
        def body(r):
            r.tokens.update(zip(effects, tokens, strict=True))
            return [*r.closed_jaxpr(branch, *ops), *(r.tokens[e] for e in effects)]

        return b.region([], body, isolated=False, scope=f"cond/branch_{number}_fun/")

    avals = [*outs, *(token.aval for token in tokens)]
    regions = [region(number, branch) for number, branch in enumerate(branches)]
    results = b.op_n("stablehlo.case", (index,), avals, "", regions)
    b.tokens.update(zip(effects, results[len(outs) :], strict=True))
    return results[: len(outs)]


# -- platform_index ---------------------------------------------------------------------------

platform_index_p = Primitive("platform_index")


@platform_index_p.shape_rule
def _(*, platforms):
    return ShapedArray((), np.dtype(np.int32))


platform_index_p.rule_jvp = no_rule("it has no operands")
platform_index_p.rule_transpose = no_rule("it has no operands")
platform_index_p.rule_batch = no_rule("it has no operands")


@platform_index_p.lower
def _(b, *, platforms):
    return b.constant(np.int32(platform_place(b.platform, platforms)), b.out)


def platform_place(platform: str, platforms: Sequence[tuple[str, ...] | None]) -> int:
    """The first entry that names the platform, or that is None."""
    names = {"gpu": ("cuda", "rocm")}.get(platform, (platform,))
    for place, entry in enumerate(platforms):
        if entry is None or any(name in entry for name in names):
            return place
    raise NotImplementedError(
        f"platform_dependent has no branch for platform {platform!r}: it has "
        f"{[name for entry in platforms for name in entry]}. Add one, or give default=."
    )
