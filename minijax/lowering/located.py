"""Modules whose operations say where in the user's program they were made.

May import the ground floor, `core` and `lowering`. Programs are compiled without: places cost time,
and two programs that differ in nothing else would be different.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn
from minijax.core.source import Source
from minijax.lowering.module import Builder, Module, Value, write_function

__all__ = ["LocatedBuilder", "located_text", "named_arguments"]


_PLACED = re.compile(r' loc\("[^"]*"\(".*":\d+:\d+\)\)$')


class LocatedBuilder(Builder):
    """Writes the place of an equation behind each of its operations."""

    __slots__ = ()

    def eqn(self, eqn: JaxprEqn, operands: Any) -> list[Value]:
        start = len(self.lines)
        results = super().eqn(eqn, operands)
        if eqn.source is not None:
            code, (line, column) = eqn.source[0], Source(*eqn.source).position
            name = f"{eqn.scope}/{eqn.primitive.name}" if len(eqn.scope) else eqn.primitive.name
            place = f' loc("{name}"({_quoted(code.co_filename)}:{line or 1}:{column or 0}))'
            for index in range(start, len(self.lines)):
                text = self.lines[index]
                if not _PLACED.search(text):  # by an equation of a program within
                    self.lines[index] = text.removesuffix(f' loc("{name}")') + place
        return results


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def named_arguments(attributes: Sequence[str] | None, names: Sequence[str]) -> list[str]:
    """What is written behind the arguments of a function, with the names of these."""
    given = attributes or [""] * len(names)
    return [f"{text} loc({_quoted(name)})" for text, name in zip(given, names, strict=True)]


def located_text(closed: ClosedJaxpr, name: str, device: Any) -> str:
    """The text of the module of a program for one device."""
    module = Module("unnamed", device.platform, devices=(device,))
    module.name = module.unique(f"jit_{name}")
    module.builder = LocatedBuilder
    module.functions.append(write_function(module, "main", closed, public=True))
    return module.text()
