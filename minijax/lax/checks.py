"""check: a condition that must hold, with a message. For `experimental.checkify`, which makes a
program return its failed checks as data.
"""

from __future__ import annotations

import numpy as np

from minijax.core.effects import Effect, control_flow_allowed, lowerable, remat_allowed
from minijax.core.primitive import Primitive, RuleColumn, no_rule
from minijax.lax.compare import not_p, select_n_p
from minijax.lax.creation import iota
from minijax.lax.dynamic_slicing import dynamic_index_in_dim
from minijax.lax.reductions import reduce_and_p, reduce_max_p
from minijax.lax.rules import zero_derivative

__all__ = ["CheckEffect", "JaxRuntimeError", "check_p", "failures", "pass_on_elements"]

# Rules `(equation, kinds of errors) -> sites`: where an operation may fail, for `checkify`.
failures = RuleColumn("checkify")


def pass_on_elements(*primitives: Primitive) -> None:
    """Say that a NaN in results of these was in the operands before; or that they do not compute."""
    failures.update(dict.fromkeys(primitives, lambda eqn, errors: ()))


class JaxRuntimeError(ValueError):
    """A check failed in a program that ran at once."""


class CheckEffect(Effect):
    """The equation may fail: it is kept, whether or not anything reads its results."""

    def __repr__(self) -> str:
        return "CheckEffect"


_effects = frozenset((CheckEffect(),))
for _allowed in (lowerable, control_flow_allowed, remat_allowed):
    _allowed.add_type(CheckEffect)

# check(pred, *values, message=..., debug=...): `message` makes the text from the values.
check_p = Primitive("check", multiple_results=True)


@check_p.shape_rule
def _(pred, *values, message, debug):
    return []


@check_p.effects_rule
def _(*, message, debug):
    return _effects


@check_p.impl
def _(pred, *values, message, debug):
    if not debug and not bool(pred):
        raise JaxRuntimeError(message(values))
    return []


zero_derivative(check_p)


check_p.rule_transpose = no_rule("a check has no results that a cotangent could be of")


@check_p.batch
def _(args, dims, **params):
    """One check of all elements; the values are those of the last that failed."""
    pred, *values = args
    dim, *value_dims = dims
    every, last = pred, 0
    if dim is not None:
        places = iota(np.int32, pred.shape[0])
        failed = select_n_p.bind(not_p.bind(pred), np.full(pred.shape, -1, np.int32), places)
        last = reduce_max_p.bind(failed, axes=(0,))
        every = reduce_and_p.bind(pred, axes=(0,))
    chosen = [
        x if d is None else dynamic_index_in_dim(x, last, d, keepdims=False)
        for x, d in zip(values, value_dims, strict=True)
    ]
    return check_p.bind(every, *chosen, **params), []


@check_p.lower
def _(b, *operands, message, debug):
    if debug:
        return []
    raise ValueError(
        "Cannot abstractly evaluate a checkify.check which was not functionalized. This probably "
        "means you tried to stage (jit/scan/pmap/...) a `check` without functionalizing it through "
        "`checkify.checkify`: wrap the outermost function, as in checkify.checkify(jit(f))."
    )
