"""A function on trees as a program that a primitive may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minijax import tree_util
from minijax.config import local
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import CallPrimitive
from minijax.core.staging import trace_to_jaxpr
from minijax.core.trace import is_constant
from minijax.features.sharding.memory import MemorySpace, within
from minijax.transforms.arguments import aval_of_argument, debug_info
from minijax.transforms.call_rules import calls_program
from minijax.transforms.jit import (
    cache_for,
    check_results,
    close_over_tracers,
    without_large_constants,
)

__all__ = ["Called", "as_program", "calls_placed_program"]


def calls_placed_program(p: CallPrimitive, name: str) -> None:
    """Set the rules of a primitive that calls a program (`calls_program`), and whose parameter `name`
    has the memory of each result. Residuals and cotangents lie on the device.
    """

    def derived(params: dict, made: ClosedJaxpr, outs: Any, ins: Any) -> dict:
        spaces = params[name]
        placed = tuple([MemorySpace.Device if i is None else spaces[i] for i in outs])
        return {**params, "jaxpr": made, name: placed}

    calls_program(p, derived)

    @p.shape_rule
    def _(*avals, jaxpr, **params):
        return [within(a, space) for a, space in zip(jaxpr.out_avals, params[name], strict=True)]


class Called(NamedTuple):
    """A call of a function: its program, the operands, and how the results lie."""

    closed: ClosedJaxpr
    operands: tuple[Any, ...]
    out_tree: Any
    consts: tuple[Any, ...]  # operands that are no arguments: values of outside, which come first

    def results(self, outs: Any) -> Any:
        return self.out_tree.unflatten(outs)


def as_program(what: str, fun: Callable, args: tuple, kwargs: dict) -> Called:
    """The program of `fun` for these arguments; `what` traces it, in messages.

    It is kept with the function, for arguments of these types.
    """
    leaves, in_tree = tree_util.flatten((args, kwargs))
    avals = tuple([aval_of_argument(x, fun, in_tree, i, what) for i, x in enumerate(leaves)])
    kept = cache_for(fun, (what,)).fast
    key = (local.context.key, in_tree, avals)
    found = kept.get(key)
    if found is None:
        found = _traced(what, fun, in_tree, avals)
        if all(map(is_constant, found[1])):
            kept[key] = found
    closed, consts, out_tree = found
    return Called(closed, (*consts, *leaves), out_tree, consts)


def _traced(what: str, fun: Callable, in_tree: Any, avals: tuple) -> tuple:
    trees = []

    def flat(*leaves):
        args, kwargs = in_tree.unflatten(leaves)
        outs, tree = tree_util.flatten(fun(*args, **kwargs))
        trees.append(tree)
        check_results(outs, fun, tree, what)
        return outs

    closed = trace_to_jaxpr(flat, avals, debug_info(what, fun, in_tree))
    closed, outer = close_over_tracers(closed)
    closed, large = without_large_constants(closed)
    return closed, (*large, *outer), trees[0]
