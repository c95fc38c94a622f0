"""A function on trees as a program that a primitive may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minijax import tree_util
from minijax.arguments.functions import aval_of_argument
from minijax.core.caches import kept_with
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import CallPrimitive
from minijax.features.sharding.memory import MemorySpace, within
from minijax.transforms.call_rules import calls_program
from minijax.transforms.jit import without_large_constants
from minijax.transforms.tracing import Traced, trace_function

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


def as_program(
    what: str, fun: Callable, args: tuple, kwargs: dict, statics: tuple[tuple[int, Any], ...] = ()
) -> Called:
    """The program of `fun` for these arguments; `what` traces it, in messages.

    It is kept with the function, for arguments of these types, and for `statics`: other arguments,
    by position.
    """
    leaves, in_tree = tree_util.flatten((args, kwargs))
    avals = tuple(
        [aval_of_argument(x, fun, in_tree, i, what, statics=statics) for i, x in enumerate(leaves)]
    )
    traced = kept_with(fun, what).find(
        (in_tree, avals, statics, *[type(value) for _, value in statics]),
        lambda: trace_function(what, fun, in_tree, avals, statics=statics),
        Traced.is_lasting,
    )
    closed, large = without_large_constants(traced.closed)
    consts = (*large, *traced.consts)
    return Called(closed, (*consts, *leaves), traced.out_tree, consts)
