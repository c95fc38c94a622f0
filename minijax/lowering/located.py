"""Modules whose operations say where in the user's program they were made.

May import the ground floor, `core` and `lowering`. Programs are compiled without: places cost time,
and two programs that differ in nothing else would be different.
"""

from __future__ import annotations

from typing import Any

from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn
from minijax.core.source import Source
from minijax.lowering.module import Builder, Module, Value, write_function

__all__ = ["located_text"]


class _LocatedBuilder(Builder):
    """Writes the place of an equation behind each of its operations."""

    __slots__ = ()

    def eqn(self, eqn: JaxprEqn, operands: Any) -> list[Value]:
        start = len(self.lines)
        results = super().eqn(eqn, operands)
        if eqn.source is not None:
            code, (line, column) = eqn.source[0], Source(*eqn.source).position
            name = f"{eqn.scope}/{eqn.primitive.name}" if len(eqn.scope) else eqn.primitive.name
            file = code.co_filename.replace("\\", "\\\\").replace('"', '\\"')
            place = f' loc("{name}"("{file}":{line or 1}:{column or 0}))'
            for index in range(start, len(self.lines)):
                text = self.lines[index].removesuffix(f' loc("{name}")')
                self.lines[index] = (
                    text if text.endswith(")))") and " loc(" in text else text + place
                )
        return results


def located_text(closed: ClosedJaxpr, name: str, device: Any) -> str:
    """The text of the module of a program for one device."""
    module = Module("unnamed", device.platform, devices=(device,))
    module.name = module.unique(f"jit_{name}")
    module.builder = _LocatedBuilder
    module.functions.append(write_function(module, "main", closed, public=True))
    return module.text()
