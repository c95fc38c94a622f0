"""`fused`: a function as one operation, whose operands lie in any memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from minijax import tree_util
from minijax.core.avals import get_aval
from minijax.core.primitive import CallPrimitive
from minijax.features.sharding.memory import MemorySpace, within
from minijax.features.sharding.transfer import annotated
from minijax.lax.programs import calls_placed_program
from minijax.transforms.tracing import trace_function

__all__ = ["fused", "fused_p"]


fused_p = CallPrimitive("fused_call")
calls_placed_program(fused_p, "out_spaces")


@fused_p.lower
def _(b, *operands, jaxpr, out_spaces):
    outs = b.outs
    results = b.call_jaxpr(jaxpr, "fused_call", *operands)
    return [annotated(b, x, out) for x, out in zip(results, outs, strict=True)]


def fused(*, out_spaces: Any) -> Callable[[Callable], Callable]:
    """Decorator: a function of arrays in any memories, whose results lie in those of `out_spaces`.

    `out_spaces` has a `memory.Space` for each result.
    """

    def wrap(f: Callable) -> Callable:
        @wraps(f)
        def wrapped(*args):
            leaves, in_tree = tree_util.flatten((args, {}))
            avals = within([get_aval(x) for x in leaves], MemorySpace.Device)
            traced = trace_function("fused", f, in_tree, avals)
            outs = fused_p.bind(
                *traced.consts, *leaves, jaxpr=traced.closed, out_spaces=tuple(out_spaces)
            )
            return traced.out_tree.unflatten(outs)

        return wrapped

    return wrap
