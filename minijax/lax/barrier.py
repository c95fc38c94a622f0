"""`optimization_barrier`, across which the compiler moves nothing."""

from __future__ import annotations

from typing import TypeVar

from minijax import tree_util
from minijax.core.primitive import Primitive
from minijax.features.sharding.layouts import set_layout
from minijax.features.sharding.memory import of_each
from minijax.features.sharding.sharding_rules import as_operands
from minijax.features.sharding.unreduced import apart
from minijax.transforms.tangents import Zero

__all__ = ["optimization_barrier", "optimization_barrier_p"]

_T = TypeVar("_T")

optimization_barrier_p = Primitive("optimization_barrier", multiple_results=True)
set_layout(optimization_barrier_p, parts=as_operands, sums=apart, memory=of_each)


@optimization_barrier_p.shape_rule
def _(*avals):
    return list(avals)


@optimization_barrier_p.jvp
def _(primals, tangents):
    outs = optimization_barrier_p.bind(*primals)
    given = [t for t in tangents if type(t) is not Zero]
    made = iter(optimization_barrier_p.bind(*given) if given else ())
    return outs, [t if type(t) is Zero else next(made) for t in tangents]


@optimization_barrier_p.transpose
def _(cts, *args):
    given = [ct for ct in cts if type(ct) is not Zero]
    made = iter(optimization_barrier_p.bind(*given) if given else ())
    return [None if type(ct) is Zero else next(made) for ct in cts]


@optimization_barrier_p.batch
def _(args, dims):
    return optimization_barrier_p.bind(*args), list(dims)


@optimization_barrier_p.lower
def _(b, *args):
    return b.op_n("stablehlo.optimization_barrier", args, b.outs) if args else []


def optimization_barrier(operand: _T, /) -> _T:
    """Return a pytree as it is, and keep the compiler from moving computation across.

    - `operand`: pytree of arrays of any shape and dtype

    The result has the structure, shapes and dtypes of `operand`; what is computed from it is not
    merged with, or done before, what the operand is computed from.
    Source: the StableHLO operation `stablehlo.optimization_barrier`.

    >>> lax.optimization_barrier(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    leaves, tree = tree_util.flatten(operand)
    return tree.unflatten(optimization_barrier_p.bind(*leaves) if leaves else [])
