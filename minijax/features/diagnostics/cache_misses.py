"""Why a jitted function was traced again: what differs from the nearest earlier call.

`transforms.jit` calls `explain` when `explain_cache_misses` is on.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

from minijax import tree_util
from minijax.arguments.functions import argument_names, fun_name
from minijax.config import local, traced_differences
from minijax.core import source
from minijax.core.caches import ProgramCache
from minijax.core.hooks import hooks

__all__ = ["explain"]

_log = logging.getLogger("minijax")
# By the code of a function, the first one that was traced: another is a definition repeated.
_seen: weakref.WeakKeyDictionary[CodeType, weakref.ref] = weakref.WeakKeyDictionary()


def explain(fun: Callable, key: tuple, earlier: ProgramCache) -> None:
    """Log which argument's type, static value, tree or setting is new."""
    code = getattr(fun, "__code__", None)
    place = f" defined at {code.co_filename}:{code.co_firstlineno}" if code else ""
    lines = [f"TRACING CACHE MISS at {source.summarize(source.capture(1))}:"]
    now = (local.context.key, *key)
    compared = [differences(fun, now, (settings, *other)) for settings, other, _ in earlier.items()]
    if not compared:
        lines += ["never seen function:", f"  {fun_name(fun)} id={id(fun)}{place}"]
        own = getattr(fun, "__func__", fun)  # of a method, which is made anew for each call
        if code is not None and _seen.setdefault(code, weakref.ref(own))() is not own:
            lines += [
                "but seen another function defined on the same line; maybe the function is",
                "being re-defined repeatedly, preventing caching? Define it, or call jit, once, outside",
                "of the loop or function.",
            ]
    else:
        lines += [
            f"for {fun_name(fun)}{place}",
            "all previously seen cache keys differ. For the closest previous key:",
            *min(compared, key=len),
        ]
    _log.warning("%s", "\n  ".join(lines))


def differences(fun: Callable, key: tuple, other: tuple) -> list[str]:
    """Return the differences of two calls: headings, and a line for each."""
    context, tree, statics, avals = key
    old_context, old_tree, old_statics, old_avals = other
    lines = []
    if tree != old_tree:
        lines += [
            "different input pytree:",
            *map(_structure, tree_util.differences(tree, old_tree)),
        ]
    else:
        names = argument_names(fun, tree, statics) or [str(i) for i in range(len(avals))]
        changed = [
            f"* at {name}, {_change(new, old)}"
            for name, new, old in zip(names, avals, old_avals, strict=False)
            if new is not old
        ]
        lines += ["different input types:", *changed] if changed else []
    before = dict(old_statics)
    static = [
        f"* static argument {place}: now {value.value!r}, before "
        f"{before[place].value if place in before else 'nothing'!r}"
        for place, value in statics
        if place not in before or before[place] != value
    ]
    lines += ["different values of static arguments:", *static] if static else []
    if context is not old_context:
        lines += [
            "Tracing context doesn't match, e.g. due to config or context manager.",
            *[
                f"* {name} differs: now {new} and before {old}"
                for name, new, old in traced_differences(context, old_context)
            ],
        ]
    return lines or ["* nothing: the earlier trace closed over values of another transformation"]


def _structure(found: tree_util.Difference) -> str:
    path, new, old, why = found
    return f"* at input path {tree_util.keystr(path)}, now {new} and before {old}, so {why}"


def _change(new: Any, old: Any) -> str:
    text = f"now {new.str_short(True)} and before {old.str_short(True)}"
    if new.weak_type != old.weak_type:
        text += f" (weak_type={new.weak_type} now, weak_type={old.weak_type} before)"
    return text


hooks.fill(explain_cache_miss=explain)
