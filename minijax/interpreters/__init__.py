"""`minijax.interpreters`: rules of primitives, seen by interpreter. Re-exports on demand.

In minijax a rule stands on its primitive; these modules let libraries register and read rules in
upstream's way. They are loaded when first asked for.
"""

from importlib import import_module as _import_module
from typing import Any

_MODULES = frozenset(("ad", "batching", "mlir", "partial_eval", "pxla", "xla"))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f"minijax.interpreters.{name}")
    raise AttributeError(f"module 'minijax.interpreters' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
