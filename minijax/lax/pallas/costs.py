"""`estimate_cost`: what a function costs, counted on its program.

Only operations that are surely counted have a rule: the rest costs nothing, as do the bodies of
loops and conditionals.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from minijax import dtypes, tree_util
from minijax.arguments.functions import check_callable
from minijax.core.avals import ShapedArray
from minijax.core.jaxpr import Jaxpr, JaxprEqn
from minijax.lax.pallas.specs import CostEstimate
from minijax.transforms.tracing import trace_function

__all__ = ["estimate_cost"]

_ONE = frozenset((
    "add", "add_any", "and", "ceil", "div", "floor", "max", "min", "mul", "neg", "not", "or",
    "round", "sub", "xor",
))  # fmt: skip
_TRANSCENDENTAL = frozenset((
    "acos", "asin", "atan", "cos", "cosh", "exp", "log", "logistic", "sin", "sinh", "sqrt", "tan",
    "tanh",
))  # fmt: skip


def _cost(eqn: JaxprEqn) -> tuple[int, int]:
    """Operations, and transcendental functions, of one equation."""
    name = eqn.primitive.name
    if name == "jit":
        return _total(eqn.params["jaxpr"].jaxpr)
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        inner = prod(eqn.invars[0].aval.shape[axis] for axis in contracted)
        return 2 * inner * eqn.outvars[0].aval.size, 0
    if name == "integer_pow":
        power = abs(eqn.params["y"])
        return max(power.bit_length() + power.bit_count() - 1, 0) * eqn.outvars[0].aval.size, 0
    size = eqn.outvars[0].aval.size if eqn.outvars else 0
    return size * (name in _ONE), size * (name in _TRANSCENDENTAL)


def _total(jaxpr: Jaxpr) -> tuple[int, int]:
    costs = [_cost(eqn) for eqn in jaxpr.eqns]
    return sum(flops for flops, _ in costs), sum(others for _, others in costs)


def estimate_cost(fun: Callable, *args: Any, **kwargs: Any) -> CostEstimate:
    """Operations, transcendental functions, and bytes of arguments and results of a function.

    Arguments are arrays, or things with a shape and a dtype: AttributeError otherwise.
    """
    check_callable(fun)
    leaves, tree = tree_util.flatten((args, kwargs))
    for x in leaves:
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise AttributeError(
                f"estimate_cost takes arrays, or what has a shape and a dtype; got {x!r} of type "
                f"{type(x)}."
            )
    avals = [ShapedArray(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype)) for x in leaves]

    closed = trace_function("estimate_cost", fun, tree, avals, hoisted=None).closed
    flops, transcendentals = _total(closed.jaxpr)
    moved = [*avals, *closed.out_avals]
    size = sum(aval.size * dtypes.bit_width(aval.dtype) // 8 for aval in moved)
    return CostEstimate(flops, transcendentals, size)
