"""References given to loops, branches and checkpointed calls: what they hold becomes an operand, and
one more result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.config import local
from minijax.core.primitive import CallPrimitive
from minijax.core.staging import JaxprTrace
from minijax.core.trace import Tracer
from minijax.features.checkpoint.checkpoint import flags_of, joined_flags, remat_p
from minijax.features.references.cells import AbstractRef, Ref, discharge, is_cell, resolved
from minijax.features.references.discharge import (
    apart,
    check_settled,
    has_ruled_refs,
    keep,
    values,
    without_refs,
)
from minijax.features.slots import slots
from minijax.lax.control_flow.cond_rules import cond_p
from minijax.lax.control_flow.dependence import permuted, split_list
from minijax.lax.control_flow.loops import while_p
from minijax.lax.control_flow.scan_rules import scan_p

__all__: list[str] = []


@discharge(while_p)
def _(args, params):
    """References, which are among the constants, become part of the carry."""
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    counts = (params["cond_nconsts"], params["body_nconsts"])
    _, cells, which = apart(args)
    test_consts, body_consts, init = split_list(args, *counts)
    of_test, of_body, of_init = split_list(which, *counts)
    avals = [cell.aval for cell in cells]
    tested = without_refs(test, [*of_test, *of_init], avals)
    made = without_refs(body, [*of_body, *of_init], avals)
    check_settled("while_loop", made, cells)
    first = [x for x in test_consts if not is_cell(x)]
    second = [x for x in body_consts if not is_cell(x)]
    found = while_p.bind(
        *first, *second, *init, *values(cells),
        cond_jaxpr=tested.derive("while", lambda: permuted(
            tested, tested.jaxpr.invars, tested.jaxpr.outvars[:1]
        )),
        body_jaxpr=made, cond_nconsts=len(first), body_nconsts=len(second),
    )  # fmt: skip
    return keep(cells, found, len(init), made)


@discharge(scan_p)
def _(args, params):
    """References, which are among the constants, become part of the carry."""
    closed, counts = params["jaxpr"], (params["num_consts"], params["num_carry"])
    consts, init, xs = split_list(args, *counts)
    plain, cells, which = apart([*consts, *init, *xs])
    if any(n is not None for n in which[len(consts) :]):
        raise ValueError(
            "scan carries arrays, not references, and reads slices of arrays: let the body close "
            "over a reference."
        )
    made = without_refs(closed, which, [cell.aval for cell in cells])
    counts = (len(consts) - len(cells), len(init), len(xs))
    ins = split_list(made.jaxpr.invars, *counts)
    outs = split_list(made.jaxpr.outvars, len(init), len(closed.out_avals) - len(init))
    body = made.derive(("scan", *counts), lambda: permuted(
        made, [*ins[0], *ins[3], *ins[1], *ins[2]], [*outs[2], *outs[0], *outs[1]]
    ))  # fmt: skip
    check_settled("scan", made, cells)
    held = values(cells)
    changed = dict(params, jaxpr=body, num_consts=counts[0], num_carry=len(held) + len(init))
    found = scan_p.bind(*plain[: counts[0]], *held, *init, *xs, **changed)
    last, results = found[: len(held)], found[len(held) :]
    return keep(cells, [*results, *last], len(results), made)


@discharge(cond_p)
def _(args, params):
    index, *operands = args
    plain, cells, which = apart(operands)
    avals = [cell.aval for cell in cells]
    branches = params["branches"]
    made = tuple([without_refs(branch, which, avals) for branch in branches])
    outs = cond_p.bind(index, *plain, *values(cells), **dict(params, branches=made))
    return keep(cells, outs, len(branches[0].out_avals), *made)


@discharge(remat_p)
def _(args, params):
    """References are read before and written after, once: values may be computed again."""
    plain, cells, which = apart(args)
    closed, flags = params["jaxpr"], flags_of(params["prevent_cse"], len(args))
    made = without_refs(closed, which, [cell.aval for cell in cells])
    held = values(cells)
    flags = [
        *(flag for flag, n in zip(flags, which, strict=True) if n is None),
        *[True] * len(held),
    ]
    joined = joined_flags(params["prevent_cse"], flags)
    outs = remat_p.bind(*plain, *held, **dict(params, jaxpr=made, prevent_cse=joined))
    return keep(cells, outs, len(closed.out_avals), made)


def _bind_checkpointed(primitive: CallPrimitive, *args: Any, **params: Any) -> Any:
    """A transform of a checkpointed call sees values for the references that it is given."""
    if type(local.context.trace) is not JaxprTrace:
        args = tuple(map(resolved, args))
        refs = [x for x in args if isinstance(x, Tracer) and type(x.aval) is AbstractRef]
        if refs and not has_ruled_refs(params["jaxpr"]):
            return _on_cells(primitive, {id(x): (x, Ref(x[...])) for x in refs}, args, params)
    return CallPrimitive.bind(primitive, *args, **params)


def _on_cells(primitive: Any, refs: dict[int, tuple], args: Sequence[Any], params: dict) -> Any:
    """The call on cells for references of a program that is being recorded."""
    outs = primitive.bind(*[refs[id(x)][1] if id(x) in refs else x for x in args], **params)
    for ref, cell in refs.values():
        if cell._written:
            ref[...] = cell._value
    return outs


slots.fill(bind_checkpointed=_bind_checkpointed)
