"""Arguments whose values a function needs while it is traced: sizes, axes, counts.

In each function `context` says, in upstream's words, which argument of which function it is.
"""

from __future__ import annotations

import operator
from typing import Any

from minijax.core.trace import Tracer
from minijax.errors import ConcretizationTypeError

__all__ = ["known_axes", "known_count", "known_index", "known_value", "needs_value"]


_MARK_STATIC = "Mark it static (static_argnums, static_argnames)."


def needs_value(
    tracer: Tracer, context: str, remedy: str = _MARK_STATIC
) -> ConcretizationTypeError:
    """Return the error for a tracer where a function needs a value."""
    return ConcretizationTypeError(tracer, context, remedy)


def known_value(x: Any, context: str, remedy: str = _MARK_STATIC) -> Any:
    """Return an argument as it is given. ConcretizationTypeError if it is traced."""
    if isinstance(x, Tracer) and x.concrete() is None:
        raise needs_value(x, context, remedy)
    return x


def known_index(x: Any, context: str) -> int:
    """Return an argument as a Python integer. ConcretizationTypeError if it is traced."""
    return operator.index(known_value(x, context))


def known_count(x: Any, context: str) -> int:
    """Return an argument as `known_index`, where NumPy takes any number and rounds it towards zero."""
    return int(known_value(x, context))


def known_axes(axes: Any) -> Any:
    """Return axes, an integer or a sequence, as given. ConcretizationTypeError if one is traced."""
    for one in axes if isinstance(axes, (tuple, list)) else (axes,):
        known_value(one, "expected a static index or sequence of indices.")
    return axes
