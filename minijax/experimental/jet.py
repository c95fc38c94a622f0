"""`minijax.experimental.jet`: Taylor series of compositions, by nested forward-mode derivatives.

The series of the arguments are polynomials in one variable; what `jvp` of the composition, nested
once for each order, gives at zero are the derivatives. Every operation that `jvp` knows can be
used. Equal subexpressions of nested traces are shared; an order still costs up to three times the
one before it, so that this is for orders below ten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minijax import lax, tree_util
from minijax import numpy as jnp
from minijax.arguments.functions import check_at_most
from minijax.core.avals import is_array_type
from minijax.dtypes import float0
from minijax.tracebacks import public
from minijax.transforms.grad import jvp

__all__ = ["fact", "jet"]


_MOST = 1 << 16  # arguments, or terms: no program is that long


def fact(n: Any) -> Any:
    """The factorial of `n`, a floating-point number, by the logarithm of the gamma function."""
    return jnp.exp(lax.lgamma(n + 1.0))


def jet(
    fun: Callable, primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True, **_
) -> tuple[Any, Any]:
    """The value of `fun` and the Taylor series of `fun(x(t))`, for arguments that are series in t.

    - `primals`: the arguments at t = 0, arrays or numbers
    - `series`: for each argument the terms of its series after the first, as many for all
    - `factorial_scaled`: terms are derivatives; otherwise coefficients, derivatives over factorials

    Returns `(value, terms)`, with a list of terms for each array of the value. ValueError if an
    argument is no array or series differ in length. Source: Faa di Bruno's formula.
    """
    check_at_most("the number of arguments", len(primals), _MOST)
    orders = {len(terms) for terms in series}
    if len(orders) > 1:
        raise ValueError(
            "jet terms have inconsistent lengths for different arguments: "
            f"{[len(terms) for terms in series]}. Pad the shorter ones with zeros."
        )
    if len(primals) != len(series):
        raise ValueError(
            f"jet takes a series for each of {len(primals)} arguments; got {len(series)}."
        )
    for position, x in enumerate(primals):
        if not is_array_type(x):
            raise ValueError(
                f"primal value at position {position} is not an array: {x!r}. Give pytrees as "
                "several arguments."
            )
    order = orders.pop() if orders else 0
    check_at_most("the number of terms of a series", order, _MOST)
    inverse, ones = [1 / math.factorial(k) for k in range(1, order + 1)], [1.0] * order
    scales, shown = (inverse, ones) if factorial_scaled else (ones, inverse)
    trees = []

    def along(t):
        outs, tree = tree_util.tree_flatten(
            fun(
                *[
                    _polynomial(x, terms, scales, t)
                    for x, terms in zip(primals, series, strict=True)
                ]
            )
        )
        trees.append(tree)
        return [outs]

    for _unused in range(order):
        along = _with_derivative(along)
    values, *derivatives = along(0.0)
    terms = [
        [_term(d[place], x, scale) for d, scale in zip(derivatives, shown, strict=True)]
        for place, x in enumerate(values)
    ]
    tree = trees[-1]
    return tree.unflatten(values), tree.unflatten(terms)


def _polynomial(x: Any, terms: Sequence[Any], scales: Sequence[float], t: Any) -> Any:
    """The value at t of a series, by Horner's rule."""
    total = 0.0
    for term, scale in zip(reversed(list(terms)), reversed(scales), strict=True):
        total = t * (total + jnp.multiply(term, scale))
    return jnp.add(x, total) if len(terms) else x


def _with_derivative(function: Callable) -> Callable:
    """Append the derivative of the last to a list of values."""

    def longer(t):
        found, dots = jvp(function, (t,), (1.0,))
        return [*found, dots[-1]]

    return longer


def _term(derivative: Any, value: Any, scale: float) -> Any:
    if getattr(derivative, "dtype", None) == float0:
        return jnp.zeros_like(value)
    return derivative if scale == 1 else jnp.multiply(derivative, scale)


__dir__ = public(__name__)
