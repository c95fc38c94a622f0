"""Why a jitted function was traced again: what differs from the nearest earlier call.

May import the floors below. `transforms.jit` calls `explain` when `explain_cache_misses` is on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from minijax.core import source
from minijax.transforms.arguments import argument_names, fun_name

__all__ = ["explain"]

_log = logging.getLogger("minijax")


def explain(fun: Callable, key: tuple, earlier: Iterable[tuple]) -> None:
    """Log which argument's type, static value, tree or setting is new."""
    code = getattr(fun, "__code__", None)
    place = f" defined at {code.co_filename}:{code.co_firstlineno}" if code else ""
    head = (
        f"TRACING CACHE MISS at {source.summarize(source.capture(1))}:\n"
        f"  for {fun_name(fun)}{place}"
    )
    compared = [(differences(fun, key, other), other) for other in earlier]
    if not compared:
        lines = ["never seen function, or a new one of that name: it is traced for the first time"]
    else:
        nearest = min(compared, key=lambda pair: len(pair[0]))[0]
        lines = ["compared with the nearest earlier call:", *nearest]
    _log.warning("%s\n%s", head, "\n".join(f"  {line}" for line in lines))


def differences(fun: Callable, key: tuple, other: tuple) -> list[str]:
    """One line for each thing in which two calls differ."""
    context, tree, statics, avals = key
    old_context, old_tree, old_statics, old_avals = other
    lines = []
    if tree != old_tree:
        lines.append(f"* different structure of the arguments: now {tree}, before {old_tree}")
    else:
        names = argument_names(fun, tree) or [str(i) for i in range(len(avals))]
        for name, new, old in zip(names, avals, old_avals, strict=False):
            if new is not old:
                lines.append(f"* at {name}, {_change(new, old)}")
    before = dict(old_statics)
    for place, value in statics:
        if place not in before or before[place] != value:
            seen = before[place].value if place in before else "nothing"
            lines.append(f"* static argument {place}: now {value.value!r}, before {seen!r}")
    if context is not old_context:
        lines.append("* settings, named axes or mesh that change traces are not the same")
    return lines or ["* nothing: the earlier trace closed over values of another transformation"]


def _change(new: Any, old: Any) -> str:
    text = f"now {new.str_short(True)} and before {old.str_short(True)}"
    if new.weak_type != old.weak_type:
        text += f" (weak_type now {new.weak_type}, before {old.weak_type})"
    return text
