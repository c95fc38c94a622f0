"""Modules whose operations say where in the user's program they were made.

Programs are compiled without: places cost time, and two programs that differ in nothing else would
be different.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from minijax.accepted_options import hints
from minijax.arrays.dispatch import Lowered
from minijax.core.hooks import hooks
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn
from minijax.core.source import Source, summarize
from minijax.features.queries import is_dim
from minijax.lowering.module import Builder, Module, write_function
from minijax.runtime.escape import label, mangled, quoted, unescaped

__all__ = ["compile_error", "located", "located_text", "named_arguments", "place_of_failure"]


class LocatedBuilder:
    """Writes the place of an equation behind each of its operations; a base beside a builder's."""

    __slots__ = ()

    def place(self, name: str) -> str:
        if self.source is None:
            return super().place(name)
        if not hints["jax_traceback_in_locations_limit"]:
            return f" loc({label(name)})"
        code, (line, column) = self.source[0], Source(*self.source).position
        left_out = hints["jax_hlo_source_file_canonicalization_regex"]
        file = re.sub(left_out, "", code.co_filename) if left_out else code.co_filename
        return f" loc({label(name)}({label(file)}:{line or 1}:{column or 0}))"


@functools.cache
def located(builder: type[Builder]) -> type[Builder]:
    """Return a class of builders as one that writes places."""
    return type(f"Located{builder.__name__}", (LocatedBuilder, builder), {"__slots__": ()})


def named_arguments(attributes: Sequence[str] | None, names: Sequence[str]) -> list[str]:
    """Return the arguments of a function as written in a module, with these names."""
    given = attributes or [""] * len(names)
    return [f"{text} loc({label(name)})" for text, name in zip(given, names, strict=True)]


def located_text(closed: ClosedJaxpr, name: str, device: Any) -> str:
    """The text of the module of a program for one device."""
    module = Module.make(mangled(f"jit_{name}"), device.platform, devices=(device,))
    module.builder = located(module.builder)
    module.functions.append(
        write_function(module, "main", closed, public=True, scope=f"jit({name})/")
    )
    return module.text()


# A compiler names the line of the module's text in one of two ways; one that it has no kernel for is
# named alone.
_LINE = r"(?:Suspected Python Code Location:\s+-:|source_file=\"-\" source_line=)(\d+)"
_METADATA = r', metadata=\{source_file="-"[^}]*\}'
_TARGET = r"No FFI handler registered for (\S+)"
_FUNCTION = r"func\.func private (@[^(]+)\("
_OPERATION = r'"(?:\w+\.)?(\w+)"\('
_LOCATION = r" loc\(\"([^\"]*)\"\(\"([^\"]*)\":(\d+):(\d+)\)\)$"


def place_of_failure(message: str, text: str, located: str) -> tuple[str, str | None] | None:
    """The operation that a compiler names in an error, and its place `file:line:column`.

    `text` is the module that was compiled and `located` the same with places. One within a function
    that the package keeps for all calls of it has the place of the call. The place is None where
    the whole program is a function of the package.
    """
    lines, placed = text.splitlines(), located.splitlines()
    number, target = re.search(_LINE, message), re.search(_TARGET, message)
    if number is not None:
        index = int(number[1]) - 1
    elif target is not None:
        index = _first(lines, f"call_target_name = {quoted(target[1])}")
    else:
        return None
    if len(lines) != len(placed):
        return None
    name = None
    while 0 <= index < len(lines):
        operation = placed[index].partition(" loc(")[0]
        if operation != lines[index].partition(" loc(")[0]:
            return None
        found = re.search(_LOCATION, placed[_last(placed, index)])
        name = name or (unescaped(found[1]) if found else re.search(_OPERATION, operation)[1])
        if found is not None:
            return name, f"{unescaped(found[2])}:{found[3]}:{found[4]}"
        heads = (re.match(_FUNCTION, placed[i]) for i in range(index, -1, -1))
        head = next(filter(None, heads), None)
        index = -1 if head is None else _first(lines, f"callee = {head[1]}}}")
    return None if name is None else (name, None)


def _last(lines: list[str], index: int) -> int:
    """The line that an operation ends on, which has regions perhaps."""
    depth = 0
    for i in range(index, len(lines)):
        depth += lines[i].count("{") - lines[i].count("}")
        if depth <= 0:
            return i
    return index


def _first(lines: list[str], part: str) -> int:
    return next((i for i, line in enumerate(lines) if part in line), -1)


def without_line(message: str) -> str:
    """An error of a compiler without what it says of lines of the module's text."""
    message = message.partition("\n\t\n\nSuspected Python Code Location:")[0]
    return re.sub(_METADATA, "", message)


def compile_error(message: str, lowered: Lowered, located: Callable[[], Lowered]) -> str:
    """The message of a compiler, with the operation that it would not compile and the user's line."""
    sizes = (size for aval in lowered.out_avals for size in getattr(aval, "shape", ()))
    unknown = next(filter(is_dim, sizes), None)
    if unknown is not None:
        what = "Programs that run have numbers for sizes: give these, or use minijax.export."
        raise unknown.unexpected(what) from None
    found = None
    with contextlib.suppress(Exception):  # that of the compiler is the one to be shown
        found = place_of_failure(message, lowered.text, located().text)
    at = f"jit({lowered.name})"
    if found is not None:
        at = f"the operation {found[0]!r} {f'at {found[1]}' if found[1] else f'of {at}'}"
    return (
        f"{without_line(message).rstrip('.')}. XLA cannot compile {at} for "
        f"{lowered.devices[0].device_kind!r}."
    )


def tell_places(module: Module, attributes: Sequence[str], names: Sequence[str]) -> list[str]:
    """Have a module say where its operations were made; return the attributes of its arguments."""
    module.builder = located(module.builder)
    return named_arguments(attributes, names)


def say_place(error: NotImplementedError, eqn: JaxprEqn) -> None:
    """Have the error of a rule name the innermost operation, and the innermost line of the user's."""
    said = error.__dict__
    said.setdefault("message", str(error))
    name = said.setdefault("operation", eqn.primitive.name)
    if "place" not in said:
        at = ""
        if eqn.source is not None:
            at = said["place"] = f" at {summarize(eqn.source)}"
        error.args = (f"{said['message']} This is for the operation {name!r}{at}.",)


hooks.fill(compile_error=compile_error, tell_places=tell_places, say_place=say_place)
