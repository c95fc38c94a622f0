"""Functions that are traced again and again: which argument, what it was, what to write instead.

Each tracing of a user's function is counted by the place of its definition, so that functions that
are defined anew count as one. From the third on, where somebody watches, a line says why.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Iterator
from types import CodeType, MethodType
from typing import Any, NamedTuple

from minijax import dtypes
from minijax.arguments.functions import argument_names, fun_name, signature_of
from minijax.config import local, traced_differences
from minijax.core import source
from minijax.core.hooks import hooks

__all__ = ["CacheListing", "Change", "Record", "is_watched", "records", "show", "written"]

_MOST_RECORDS, _MOST_CHANGES = 1000, 50
_FIRST_TOLD = 3
_MOST_COMPARED = 8  # of the earlier tracings, the last ones
_LONGEST = 200  # characters of a value that is shown


class Change(NamedTuple):
    """Why a function was traced again: the cause by name, what changed, and what to write instead."""

    cause: str
    what: str
    remedy: str


class Record:
    """The tracings of one function, or of functions that are defined on one line."""

    def __init__(self, code: CodeType, name: str):
        self.place = code.co_filename, code.co_firstlineno
        self.name = name
        self.count, self.seconds = 0, 0.0
        self.changes: list[tuple[Change, float, str]] = []  # with the time it took, and the caller
        self.last: Any = None  # the last function traced, weakly
        self.closure: dict[str, Any] = {}

    def __str__(self) -> str:
        (change, seconds, caller) = self.changes[-1]
        return (
            f"{self.name} ({self.place[0]}:{self.place[1]}) has been traced {self.count} times, this "
            f"time for {1e3 * seconds:.0f} ms and the time to compile it, at {caller}:\n"
            f"  {change.cause}: {change.what}\n  {change.remedy}"
        )


records: dict[tuple, Record] = {}
_shown: bool | None = None  # whether to tell; None where somebody watches


def show(on: bool | None) -> None:
    """Tell of functions that are traced again: always, never, or (None) on a terminal."""
    global _shown
    _shown = on


def is_watched() -> bool:
    """Whether somebody reads what is told: on a terminal or in a notebook."""
    return sys.stderr.isatty() or hasattr(sys, "ps1") if _shown is None else _shown


def note(jitted: Any, call: Any, avals: tuple, seconds: float) -> None:
    """Count a tracing, and say why it was needed where it is the third, sixth, twelfth, ..."""
    fun, transforms = written(jitted._fun)
    inner = fun.func if isinstance(fun, functools.partial) else getattr(fun, "__func__", fun)
    code = getattr(inner, "__code__", None)
    if code is None or source.is_internal(code):
        return
    place = code.co_filename, code.co_firstlineno, code.co_name, transforms
    record = records.get(place)
    if record is None:
        if len(records) >= _MOST_RECORDS:
            records.clear()
        record = records[place] = Record(code, fun_name(fun))
    record.count += 1
    record.seconds += seconds
    if record.count > 1 and len(record.changes) < _MOST_CHANGES:
        key = local.context.key, call.in_tree, call.statics, avals
        try:
            change = _changed(jitted, fun, inner, key, record)
        except Exception as error:  # of a user's __repr__ or __eq__, which tracing does without
            change = Change("unknown", f"comparing the calls raised {type(error).__name__}", "")
        record.changes.append((change, seconds, source.summarize(source.capture(1))))
        count = record.count
        if count % _FIRST_TOLD == 0 and (count // _FIRST_TOLD).bit_count() == 1 and is_watched():
            print(record, file=sys.stderr)
    record.last = _reference(fun)
    if inner.__closure__:
        record.closure = dict(_cells(inner))


def written(fun: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the user's function within those that transforms made of it, and these by name."""
    transforms = []
    while hasattr(fun, "__wrapped__"):
        code = getattr(fun, "__code__", None)
        if code is not None and not source.is_internal(code):
            break
        transforms.append(type(fun).__name__ if code is None else code.co_name)
        fun = fun.__wrapped__
    return fun, tuple(transforms)


def _reference(fun: Any) -> Any:
    try:
        return weakref.ref(fun)
    except TypeError:
        return lambda: None


def _cells(fun: Any) -> Iterator[tuple[str, Any]]:
    """Return the variables that a function closes over: numbers and strings as they are, others by
    type and identity.
    """
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__, strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        plain = isinstance(value, (bool, int, float, str, type(None)))
        yield name, (value if plain else (type(value).__name__, id(value)))


def _text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


# -- causes ----------------------------------------------------------------------------------------


def _changed(jitted: Any, fun: Any, inner: Any, key: tuple, record: Record) -> Change:
    """Return the differences from the nearest earlier tracing."""
    kept = jitted._caches.traces.items()[-_MOST_COMPARED:]
    earlier = [(settings, *known) for settings, known, _ in kept]
    if not earlier:
        return _another_function(fun, inner, record)
    found = min((list(_differences(jitted._fun, key, other)) for other in earlier), key=len)
    if not found:
        return Change(
            "closed-over tracer", "the function closes over values of another transformation",
            "Pass them as arguments: what is closed over while tracing cannot be kept.",
        )  # fmt: skip
    first = found[0]
    return first._replace(what="; ".join(dict.fromkeys(change.what for change in found)))


def _another_function(fun: Any, inner: Any, record: Record) -> Change:
    """The function has no earlier tracing under these options, but its definition has."""
    name = record.name
    if record.last is not None and record.last() is fun:
        return Change(
            "other options, or caches cleared", f"{name} is traced by another jit than before",
            "Call jit once, with one set of options, and keep what it gives.",
        )  # fmt: skip
    if isinstance(fun, functools.partial):
        return Change(
            "new partial", f"functools.partial({name}, ...) is made anew for each jit",
            "Call jit on the function itself: pass the bound arguments to it, or make them static.",
        )  # fmt: skip
    if isinstance(fun, MethodType):
        return Change(
            "new object", f"{name} is a method of another {type(fun.__self__).__name__} object",
            "Make the object a pytree and pass it as an argument, or jit a function once.",
        )  # fmt: skip
    cells = dict(_cells(inner)) if inner.__closure__ else {}
    other = [n for n, value in cells.items() if record.closure.get(n, value) != value]
    if other:
        told = ", ".join(_told(n, record.closure[n], cells[n]) for n in other)
        return Change(
            "new closure", f"{name} is defined anew and closes over another {told}",
            f"Define it once and pass {', '.join(other)} as an argument.",
        )  # fmt: skip
    if "<locals>" in inner.__qualname__ or name == "<lambda>":
        return Change(
            "lambda or function defined anew", f"{name} is another function each time",
            "Define it, and call jit, once: outside of the loop or of the function around it.",
        )  # fmt: skip
    return Change(
        "function defined again", f"{name} has been defined again, as by running its cell",
        "Nothing is wrong if that was wanted.",
    )  # fmt: skip


def _told(name: str, old: Any, new: Any) -> str:
    return name if isinstance(new, tuple) else f"{name} ({_text(new)}, before {_text(old)})"


def _differences(fun: Any, key: tuple, other: tuple) -> Iterator[Change]:
    context, tree, statics, avals = key
    old_context, old_tree, old_statics, old_avals = other
    if tree != old_tree:
        yield _of_trees(fun, key, other)
    else:
        names = argument_names(fun, tree, statics) or [f"number {i}" for i in range(len(avals))]
        for name, new, old in zip(names, avals, old_avals, strict=False):
            if new is not old:
                yield _of_types(name, new, old)
    before = dict(old_statics)
    for place, value in statics:
        if before.get(place) != value:
            old = before[place].value if place in before else None
            yield _of_static(_name_of(fun, place), value.value, old)
    if context is not old_context:
        for name, new, old in traced_differences(context, old_context):
            yield Change(
                "context" if not name.startswith("jax_") else "setting",
                f"{name} is {_text(new)}, before {_text(old)}",
                "Set it once, before the first call.",
            )


def _of_trees(fun: Any, key: tuple, other: tuple) -> Change:
    tree, old = key[1], other[1]
    names, before = (
        argument_names(fun, tree, statics) or [] for _, tree, statics, _ in (key, other)
    )
    more, less = ([n for n in a if n not in b] for a, b in ((names, before), (before, names)))
    told = [f"{name} is there now" for name in more] + [f"{name} was there before" for name in less]
    what = f"the arguments have the structure {tree}, before {old}"
    if 0 < len(told) < 4:
        what = ", ".join(told)
    if tree.num_leaves == old.num_leaves:
        return Change(
            "structure", what,
            "Pass arguments in one way: by position or by name, in the same containers and keys.",
        )  # fmt: skip
    return Change(
        "number of arrays", what,
        "Pass as many arrays each time: stack those of a list that grows into one array.",
    )  # fmt: skip


def _of_types(name: str, new: Any, old: Any) -> Change:
    what = f"{name} is {new.str_short(True)}, before {old.str_short(True)}"
    shapes = getattr(new, "shape", None), getattr(old, "shape", None)
    if shapes[0] != shapes[1]:
        longer = len(shapes[0] or ()) != len(shapes[1] or ())
        remedy = "Pad it to one size, or to a few, and mask what is not used."
        return Change("number of axes" if longer else "shape", what,
                      "Reshape it so that it has as many axes each time." if longer else remedy)  # fmt: skip
    if getattr(new, "dtype", None) != getattr(old, "dtype", None):
        dtype = _of_both(new, old).name
        number = new.weak_type or old.weak_type  # which has no method
        converted = f"jnp.asarray({name}, {dtype!r})" if number else f"{name}.astype({dtype!r})"
        return Change("dtype", what, f"Convert it each time: {converted}.")
    if getattr(new, "weak_type", False) != getattr(old, "weak_type", False):
        kinds = ["a Python number" if x.weak_type else "an array" for x in (new, old)]
        return Change(
            "weak type", f"{name} is {kinds[0]}, before {kinds[1]}, of type {new.str_short(True)}",
            f"Convert it each time: jnp.asarray({name}, {new.dtype.name!r}).",
        )  # fmt: skip
    return Change("placement", what, "Put it on the same devices each time: jax.device_put.")


def _of_both(new: Any, old: Any) -> Any:
    """The dtype that holds the values of both; the one before where there is none."""
    try:
        return dtypes.promote(((new.dtype, new.weak_type), (old.dtype, old.weak_type)))[0]
    except (TypeError, ValueError):
        return old.dtype


def _name_of(fun: Any, place: Any) -> str:
    """The name of a static argument, which is known by its name or its position."""
    if isinstance(place, str):
        return place
    try:
        return list(signature_of(fun).parameters)[place]
    except (TypeError, ValueError, IndexError):
        return f"number {place}"


def _of_static(name: str, new: Any, old: Any) -> Change:
    what = f"static argument {name} is {_text(new)}, before {_text(old)}"
    if isinstance(new, float):
        return Change(
            "static number", what, "Leave it out of static_argnums: numbers can be traced."
        )
    if type(new) is type(old) and type(new).__eq__ is object.__eq__:
        return Change(
            "static object", what,
            f"Pass the same object, or give {type(new).__name__} __eq__ and __hash__ (a frozen "
            "dataclass has them).",
        )  # fmt: skip
    return Change(
        "static value", what, "Each value is a program of its own: trace it if it may be."
    )


# -- what is kept ----------------------------------------------------------------------------------


class CacheListing:
    """The programs kept of a jitted function; made by its method `explain_cache`."""

    def __init__(self, jitted: Any):
        self.name = fun_name(jitted._fun)
        self.entries: list[tuple[str, int]] = []
        for _, (tree, statics, avals), traced in jitted._caches.traces.items():
            names = argument_names(jitted._fun, tree, statics) or [
                str(i) for i in range(len(avals))
            ]
            parts = [f"{n}: {a.str_short(True)}" for n, a in zip(names, avals, strict=False)]
            parts += [f"{place} = {_text(value.value)}" for place, value in statics]
            self.entries.append((", ".join(parts), len(traced.closed.eqns)))
        self.programs = len(jitted._caches.programs)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        head = f"{self.name}: {len(self.entries)} traced, {self.programs} compiled"
        return "\n".join(
            [head, *(f"  ({text}): {count} equations" for text, count in self.entries)]
        )


def explain_cache(jitted: Any, /) -> CacheListing:
    """List the programs that are kept of a jitted function, by the types of their arguments.

    The result shows itself as text, and has `.entries`: the types and static values, and the number
    of equations. Source: the cache of the function.

    >>> f = jax.jit(lambda x: x + 1)
    >>> _ = f(1.0), f(1)
    >>> len(f.explain_cache())
    2
    """
    return CacheListing(jitted)


hooks.fill(note_tracing=note, explain_cache=explain_cache)
