"""The residuals that a function saves for its backward pass."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from minijax import tree_util
from minijax.arguments.functions import argument_names
from minijax.core import source
from minijax.core.avals import AbstractValue, get_aval
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from minijax.features.checkpoint.decisions import name_p
from minijax.transforms.jit import jit_p
from minijax.transforms.linearize import linearize_flat
from minijax.transforms.tracing import trace_function

__all__ = ["log_residuals", "print_saved_residuals", "saved_residuals"]

_log = logging.getLogger("minijax")


def saved_residuals(
    f: Callable[..., Any], *args: Any, **kwargs: Any
) -> list[tuple[AbstractValue, str]]:
    """The types of the values that differentiating `f` saves, with where each comes from."""
    leaves, in_tree = tree_util.flatten((args, kwargs))
    literals: dict[Any, AbstractValue] = {}

    def residuals(call, _):
        def run(*xs):
            _, _, closed = linearize_flat(call, xs)
            for eqn in closed.eqns:
                literals.update(
                    (v.val, v.aval)
                    for v in eqn.invars
                    if type(v) is Literal and type(v.val) in (int, float, complex)
                )
            return closed.consts

        return run

    avals = [get_aval(x) for x in leaves]
    traced = trace_function("saved_residuals", f, in_tree, avals, wrap=residuals, hoisted=None)
    closed = traced.closed
    found = [(aval, "from a literal") for aval in literals.values()]
    names = argument_names(f, in_tree) or [f"number {n}" for n in range(len(leaves))]
    return found + _described(closed, names)


def _described(closed: ClosedJaxpr, names: list[str]) -> list[tuple[AbstractValue, str]]:
    """Each result of a program, with its origin: constants, then arguments, then the rest."""
    wanted = {v for v in closed.jaxpr.outvars if type(v) is not Literal}
    found = [(v.aval, "from a literal") for v in closed.jaxpr.outvars if type(v) is Literal]
    found += [(v.aval, "from a constant") for v in closed.jaxpr.constvars if v in wanted]
    found += [
        (v.aval, f"from the argument {name}")
        for v, name in zip(closed.jaxpr.invars, names, strict=True)
        if v in wanted
    ]
    for eqn in closed.eqns:
        found += [(v.aval, _origin(eqn)) for v in eqn.outvars if v in wanted]
    return found


def _origin(eqn: JaxprEqn) -> str:
    place = source.summarize(eqn.source)
    if eqn.primitive is name_p:
        return f"named {eqn.params['name']!r} from {place}"
    if eqn.primitive is jit_p:
        return f"output of jitted function {eqn.params['name']!r} from {place}"
    return f"output of {eqn.primitive} from {place}"


def log_residuals(inputs: Sequence[Any], known: ClosedJaxpr, count: int) -> None:
    """Log what a checkpointed call saves.

    - `inputs`: those of its inputs, and constants, that are saved
    - `known`: its program, whose results from number `count` on are saved too
    """
    made = {v: _origin(eqn) for eqn in known.eqns for v in eqn.outvars}
    parts = []
    if inputs:
        types = [f"  {get_aval(x).str_short()}\n" for x in inputs]
        parts.append("".join(["saving inputs with shapes:\n", *types]))
    if known.jaxpr.outvars[count:]:
        saved = [
            f"  {v.aval.str_short()} from {made.get(v, 'an input')}\n"
            for v in known.jaxpr.outvars[count:]
        ]
        parts.append("".join(["saving these intermediates:\n", *saved]))
    _log.warning("remat-decorated function %s", "and ".join(parts))


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the values that differentiating `f` saves: type and origin, one a line.

    So one sees what `checkpoint` and its policies do.
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(True)} {origin}")
