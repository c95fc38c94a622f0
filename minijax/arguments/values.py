"""Arguments whose values a function needs while it is traced: sizes, axes, counts.

In each function `context` says, in upstream's words, which argument of which function it is.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from minijax.core.trace import Tracer
from minijax.errors import ConcretizationTypeError

__all__ = ["known_axes", "known_count", "known_index", "known_value", "needs_value", "sized"]


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


def sized(name: str, values: Any) -> Any:
    """Return a sequence as given. TypeError for an iterator, of which a call would use up the values."""
    if isinstance(values, Iterator):
        raise TypeError(
            f"object of type {type(values).__name__!r} has no len(): {name} takes a sequence; write "
            "its values in a list."
        )
    return values
