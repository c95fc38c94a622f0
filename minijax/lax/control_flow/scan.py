"""`scan` and `map`: loops of known length, as functions on pytrees.

The primitive and its rules stand in `scan_rules`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax import tree_util
from minijax.arguments.functions import check_at_most
from minijax.arguments.values import known_count, known_value
from minijax.arrays.array import as_value
from minijax.config import local
from minijax.core.avals import get_aval
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr
from minijax.features.queries import is_dim, is_ref
from minijax.features.sharding.sharding_rules import parts_of
from minijax.lax.control_flow.common import check_callables, check_carry, program_of, traced_body
from minijax.lax.control_flow.dependence import permuted, split_list
from minijax.lax.control_flow.scan_rules import scan_p
from minijax.lax.creation import iota
from minijax.lax.joining import concatenate, stack
from minijax.lax.shapes import reshape
from minijax.lax.slicing import index_in_dim, slice_in_dim
from minijax.tracebacks import boundary
from minijax.transforms.tracing import Traced
from minijax.transforms.vmap import vmap

__all__ = ["Plan", "make_plan", "map", "run_loop", "scan", "unroll_factor"]

Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


@boundary
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]],
    init: Carry,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Y]:
    """Loop over the leading axis of `xs` with a state: `carry, y = f(carry, x)`.

    - `init`: pytree of arrays whose structure, shapes and dtypes `f` keeps (TypeError otherwise)
    - `xs`: pytree of arrays of one leading size, or None if `length` is given
    - `reverse`: whether to go from the last slice to the first; the `y`s lie as the `xs` do
    - `unroll`: number of steps in one iteration of the compiled loop; True for all

    The result is the last carry and the `y`s stacked along a new leading axis. It is differentiable
    in both modes. ValueError where leading sizes differ. Source: the StableHLO operation
    `stablehlo.while`.

    >>> lax.scan(lambda total, x: (total + x, total * x), 0, jnp.array([1, 2, 3]))
    (Array(6, dtype=int32), Array([0, 2, 9], dtype=int32))
    """
    check_callables("lax.scan: f argument should be a callable.", f)
    init_leaves, init_tree = tree_util.flatten(init)
    xs_leaves, xs_tree = tree_util.flatten(xs)
    length = _length(xs_leaves, length)
    unroll = unroll_factor(unroll, length)
    hash(reverse)  # TypeError for what is no flag
    if any(is_ref(get_aval(x)) for x in xs_leaves):
        f, xs = _over_references(f, xs_leaves, xs_tree, length)
        xs_leaves, xs_tree = tree_util.flatten(xs)
    if local.context.settings.disable_jit:
        return _step_by_step(f, init, xs_leaves, xs_tree, length, reverse)
    plan, leaves = _scan_plan(f, init_leaves, init_tree, xs_leaves, xs_tree, length)
    if plan.body.effects:
        given, in_tree = tree_util.flatten(((init, xs), {}))
        hooks.check_arguments("scan", given, f, in_tree, plan.consts)
    carry, ys = run_loop(plan, leaves, xs_leaves, length, bool(reverse), unroll)
    return plan.out_tree.unflatten([*carry, *ys])  # a pair as the body's, a tuple or a list


def _length(leaves: Sequence[Any], given: Any) -> int:
    """The number of steps."""
    lengths = []
    for x in leaves:
        if get_aval(x).is_high:
            continue
        shape = x.shape if hasattr(x, "aval") else get_aval(x).shape
        if not shape:
            for other in leaves:  # what is no array at all is said first
                get_aval(other)
            raise ValueError(
                f"scan got value with no leading axis to scan over: a leaf of xs is {x!r}, of "
                "shape (). Each leaf of xs needs a leading axis; pass what is the same in each "
                "step in the carry or by closure."
            )
        lengths.append(shape[0])
    if given is not None:
        given = known_count(
            given,
            "The `length` argument to `scan` expects a concrete `int` value. For scan-like iteration "
            "with a dynamic length, use `while_loop` or `fori_loop`.",
        )
        if any(size != given for size in lengths):
            raise ValueError(
                f"scan got `length` argument of {given} which disagrees with leading axis sizes "
                f"{lengths}. Leave `length` out, or slice the xs."
            )
        return given
    distinct = sorted(set(lengths))
    if len(distinct) > 1:
        raise ValueError(
            "scan got values with different leading axis sizes: "
            f"{', '.join([str(n) for n in lengths])}. All leaves of xs need the same leading axis size."
        )
    if not distinct:
        raise ValueError(
            "scan got no values to scan over and `length` not provided. Give `length`."
        )
    return distinct[0]


def _over_references(f: Callable, leaves: Sequence[Any], tree: Any, length: int) -> tuple:
    """Return a body and `xs` in which an index stands for the row of each reference.

    The body closes over the references, whose rows it hands to `f` as views.
    """
    refs = {n: x for n, x in enumerate(leaves) if is_ref(get_aval(x))}
    others = [x for n, x in enumerate(leaves) if n not in refs]

    @functools.wraps(f)
    def body(carry, x):
        index, *rest = x
        rows = iter(rest)
        row = [refs[n].at[index] if n in refs else next(rows) for n in range(len(leaves))]
        return f(carry, tree.unflatten(row))

    return body, (iota(np.int32, length), *others)


def unroll_factor(unroll: int | bool, length: int) -> int:
    known_value(unroll, "The `unroll` argument to `scan` expects a concrete `int` or `bool` value.")
    hash(unroll)  # TypeError for an array
    most = 1 if is_dim(length) else length  # a symbolic number of steps is not unrolled
    if isinstance(unroll, (bool, np.bool_)):
        unroll = max(most, 1) if unroll else 1
    unroll = operator.index(unroll)
    check_at_most("unroll", min(unroll, most), 1 << 16)
    if unroll < 0:
        raise ValueError(
            f"`unroll` must be a `bool` or a non-negative `int`. Got unroll={unroll!r}."
        )
    return 1 if is_dim(length) else int(unroll)


# -- from the traced body to the equation ---------------------------------------------------------


class Plan:
    """The plan by which a traced body becomes an equation.

    What the body passes on as it came is no part of the loop: a carried value becomes a constant
    (`moved`), a stacked slice is the array itself (`from_xs`: for each y the number of the array, or
    None). `kept` numbers the carried values that are left, `out_tree` is that of what the body gives.
    """

    __slots__ = ("body", "consts", "from_xs", "kept", "moved", "out_tree")

    body: ClosedJaxpr


def make_plan(traced: Traced, num_carry: int) -> Plan:
    plan = traced.plans.get(num_carry)
    if plan is not None:
        return plan
    plan = Plan()
    plan.out_tree = traced.out_tree
    plan.consts = traced.consts
    closed = traced.closed
    consts, carry, xs = split_list(closed.jaxpr.invars, len(traced.consts), num_carry)
    out_carry, ys = split_list(closed.jaxpr.outvars, num_carry)
    plan.moved = [i for i, (x, y) in enumerate(zip(carry, out_carry, strict=True)) if x is y]
    plan.kept = [i for i in range(num_carry) if carry[i] is not out_carry[i]]
    places = {id(x): k for k, x in enumerate(xs)}
    plan.from_xs = [places.get(id(y)) for y in ys]
    if plan.moved or any(k is not None for k in plan.from_xs):
        closed = permuted(
            closed,
            [*(carry[i] for i in plan.moved), *consts, *(carry[i] for i in plan.kept), *xs],
            [
                *(out_carry[i] for i in plan.kept),
                *(y for y, k in zip(ys, plan.from_xs, strict=True) if k is None),
            ],
        )
    plan.body = closed
    traced.plans[num_carry] = plan
    return plan


def run_loop(
    plan: Plan, init: Sequence[Any], xs: Sequence[Any], length: int, reverse: bool, unroll: int
) -> tuple[list[Any], list[Any]]:
    """Bind `scan_p`; gives the leaves of the last carry, and of what is stacked."""
    body, kept = plan.body, plan.kept
    outs: Sequence[Any] = ()
    if body.jaxpr.outvars or body.jaxpr.effects:
        outs = scan_p.bind(
            *[init[i] for i in plan.moved], *plan.consts, *[init[i] for i in kept], *xs,
            jaxpr=body, length=length, num_carry=len(kept),
            num_consts=len(plan.moved) + len(plan.consts), reverse=reverse, unroll=unroll,
        )  # fmt: skip
    if len(kept) == len(init) and len(outs) == len(kept) + len(plan.from_xs):
        return outs[: len(kept)], outs[len(kept) :]
    carry = list(init)
    for i, out in zip(kept, outs, strict=False):
        carry[i] = out
    for i in plan.moved:
        carry[i] = as_value(carry[i])
    rest = iter(outs[len(kept) :])
    return carry, [next(rest) if k is None else as_value(xs[k]) for k in plan.from_xs]


def _scan_plan(f, init_leaves, init_tree, xs_leaves, xs_tree, length) -> tuple[Plan, Sequence[Any]]:
    count = len(init_leaves)
    in_avals = [get_aval(x) for x in init_leaves]
    x_avals = [_row_aval(get_aval(x), "xs", length) for x in xs_leaves]

    def trace(avals, **options):
        return program_of("scan", f, (init_tree, xs_tree), [*avals, *x_avals], **options)

    def carry_of(traced):
        return traced.closed.out_avals[: _pair(traced, f)[0].num_leaves]

    traced = trace(in_avals)
    plan = traced.plans.get(count)
    if plan is not None:
        return plan, init_leaves
    traced, init_leaves, in_avals = traced_body(f, traced, init_leaves, in_avals, trace, carry_of)
    carry_tree, _ = _pair(traced, f)
    check_carry("scan", f, 0, init_tree, in_avals, carry_tree, carry_of(traced), "carry")
    return make_plan(traced, count), init_leaves


def _row_aval(aval: Any, name: str, length: int) -> Any:
    if aval.is_high:
        return aval.dec_rank(length, aval.leading_axis_spec())
    if parts_of(aval)[0] is not None:
        raise ValueError(
            f"0th dimension of all {name} should be replicated. Got {aval.sharding.spec}: reshard it "
            "so that each device has every row of its part."
        )
    return aval.without_axis(0)


def _pair(traced: Traced, f: Callable) -> tuple[Any, Any]:
    tree = traced.out_tree
    children = tree.children()
    if len(children) != 2 or (tree.num_leaves == 0 and tree.node_data() is None):
        outs = tree.unflatten(traced.closed.out_avals)
        raise TypeError(
            f"scan body output must be a pair, got {outs}. Return two values (carry, y) from f, "
            "with None as the second if nothing is to be stacked."
        )
    return children[0], children[1]


def _step_by_step(f, carry, xs_leaves, xs_tree, length, reverse):
    """The loop in Python, as with `disable_jit`."""
    if length == 0:
        raise ValueError(
            "zero-length scan is not supported in disable_jit() mode because the output type is "
            "unknown: it would have to be traced. Leave disable_jit for this call."
        )
    rows: list[Any] = []
    tree = None
    for i in reversed(range(length)) if reverse else range(length):
        slices = [index_in_dim(x, i, 0, keepdims=False) for x in xs_leaves]
        carry, y = f(carry, xs_tree.unflatten(slices))
        leaves, tree = tree_util.flatten(y)
        rows.append(leaves)
    if reverse:
        rows.reverse()
    columns = zip(*rows, strict=True)
    return carry, tree.unflatten([stack([as_value(x) for x in column]) for column in columns])


@scan_p.steps
def _(run, *args, jaxpr, length, reverse, num_consts, num_carry, **params):
    consts, carry, xs = (
        args[:num_consts],
        args[num_consts:][:num_carry],
        args[num_consts:][num_carry:],
    )
    for i in reversed(range(length)) if reverse else range(length):
        rows = [index_in_dim(x, i, 0, keepdims=False) for x in xs]
        carry = run(jaxpr, *consts, *carry, *rows)[:num_carry]


# -- map ------------------------------------------------------------------------------------------


@boundary
def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y:
    """Apply a function to each slice along the leading axis, one after the other.

    - `f`: function of a pytree of arrays
    - `xs`: pytree of arrays of one leading size
    - `batch_size`: number of slices to process at once by `vmap`, by default one

    The results are stacked along a new leading axis, with the shapes and dtypes that `f` gives.
    ValueError where leading sizes differ. Source: `scan`, with less memory and less speed than
    `vmap`.

    >>> lax.map(lambda x: x * x, jnp.array([1, 2, 3]))
    Array([1, 4, 9], dtype=int32)
    """
    check_callables("map(f, ...): f should be a callable.", f)
    leaves, tree = tree_util.flatten(xs)
    length = _length(leaves, None)
    if batch_size is None or batch_size >= length or batch_size == 0:
        if batch_size and length:
            return vmap(f)(xs)
        return _map(f, None, leaves, tree, length)
    batch_size = operator.index(batch_size)
    if batch_size < 0:
        raise ValueError(f"map(f, xs, batch_size=...) takes a positive integer; got {batch_size}.")
    batches, rest = divmod(length, batch_size)
    whole = batches * batch_size
    grouped = [
        reshape(slice_in_dim(x, 0, whole) if rest else x, (batches, batch_size, *x.shape[1:]))
        for x in leaves
    ]
    mapped = _map(f, vmap, grouped, tree, batches)
    last = None
    if rest:
        last = vmap(f)(tree.unflatten([slice_in_dim(x, whole, length) for x in leaves]))
    outs, out_tree = tree_util.flatten(mapped)
    outs = [reshape(y, (whole, *y.shape[2:])) for y in outs]
    if rest:
        tails = tree_util.flatten(last)[0]
        outs = [concatenate([y, tail], 0) for y, tail in zip(outs, tails, strict=True)]
    return out_tree.unflatten(outs)


def _map(f: Callable, how: Callable | None, leaves, tree, length: int) -> Any:
    """A scan that carries nothing, of `f` or of `how(f)`."""
    if any(is_ref(get_aval(x)) for x in leaves):
        body, xs = _over_references(lambda _, x: ((), f(x)), leaves, tree, length)
        return scan(body, (), xs)[1]
    if local.context.settings.disable_jit:
        call = f if how is None else how(f)
        return _step_by_step(lambda _, x: ((), call(x)), (), leaves, tree, length, False)[1]
    avals = [_row_aval(get_aval(x), "xs", length) for x in leaves]
    traced = program_of("map", f, (tree,), avals, kind=("map", how), adapt=how)
    plan = make_plan(traced, 0)
    return plan.out_tree.unflatten(run_loop(plan, (), leaves, length, False, 1)[1])
