"""Names of public modules that are imported when they are first asked for.

What few programs use would otherwise take an eighth of the time of the import (160 ms instead of 180,
of which NumPy and jaxlib are 95): a module of 50 kB takes a millisecond, a third of it when the process
ends.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from minijax.namespace import named, names_so_far
from minijax.tracebacks import ended_at_user

__all__ = ["late_names", "when_found"]

# By module: what is called with each name of it that has been imported, and its value.
when_found: dict[str, Callable[[str, Any], None]] = {}


def late_names(
    module: str, places: Mapping[str, str] | None = None, submodules: Iterable[str] = ()
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a public module.

    - `module`: its name
    - `places`: by the name of another module, the names that it has, with spaces between them
    - `submodules`: modules within it that are names of it too

    A name is looked up once. One that is not there is an AttributeError, which says what became of a
    name that upstream has given up.
    """
    names = names_so_far(sys.modules[module])
    place_of = {name: place for place, listed in (places or {}).items() for name in listed.split()}
    submodules = frozenset(submodules)

    def find(name: str) -> Any:
        if name in submodules:
            names[name] = found = importlib.import_module(f"{module}.{name}")
            return found
        if name not in place_of:
            return importlib.import_module("minijax.deprecated").moved(module, name)
        found = getattr(importlib.import_module(place_of[name]), name)
        if type(found) is FunctionType and found.__name__ != name:
            found = named(found, name, module)
        names[name] = found = ended_at_user(found, module)
        if module in when_found:
            when_found[module](name, found)
        return found

    return find
