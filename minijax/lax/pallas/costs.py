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
from minijax.core.primitive import RuleColumn
from minijax.lax.arithmetic import (
    add_p,
    ceil_p,
    div_p,
    floor_p,
    integer_pow_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    round_p,
    sqrt_p,
    sub_p,
)
from minijax.lax.compare import and_p, not_p, or_p, xor_p
from minijax.lax.dot import dot_general_p
from minijax.lax.pallas.specs import CostEstimate
from minijax.lax.transcendental import (
    acos_p,
    asin_p,
    atan_p,
    cos_p,
    cosh_p,
    exp_p,
    log_p,
    logistic_p,
    sin_p,
    sinh_p,
    tan_p,
    tanh_p,
)
from minijax.transforms.jit import jit_p
from minijax.transforms.primitives import add_any_p
from minijax.transforms.tracing import trace_function

__all__ = ["estimate_cost"]

# Rules `equation -> (operations, transcendental functions)`; what has none costs nothing.
_costs = RuleColumn("estimate_cost")


@_costs(jit_p)
def _(eqn):
    return _total(eqn.params["jaxpr"].jaxpr)


@_costs(dot_general_p)
def _(eqn):
    (contracted, _), _ = eqn.params["dimension_numbers"]
    inner = prod(eqn.invars[0].aval.shape[axis] for axis in contracted)
    return 2 * inner * eqn.outvars[0].aval.size, 0


@_costs(integer_pow_p)
def _(eqn):
    power = abs(eqn.params["y"])
    return max(power.bit_length() + power.bit_count() - 1, 0) * eqn.outvars[0].aval.size, 0


_costs.update({
    **dict.fromkeys((
        add_any_p, add_p, and_p, ceil_p, div_p, floor_p, max_p, min_p, mul_p, neg_p, not_p, or_p,
        round_p, sub_p, xor_p,
    ), lambda eqn: (eqn.outvars[0].aval.size, 0)),
    **dict.fromkeys((
        acos_p, asin_p, atan_p, cos_p, cosh_p, exp_p, log_p, logistic_p, sin_p, sinh_p, sqrt_p,
        tan_p, tanh_p,
    ), lambda eqn: (0, eqn.outvars[0].aval.size)),
})  # fmt: skip


def _cost(eqn: JaxprEqn) -> tuple[int, int]:
    """Operations, and transcendental functions, of one equation."""
    rule = _costs.rule(eqn.primitive)
    return (0, 0) if rule is None else rule(eqn)


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
