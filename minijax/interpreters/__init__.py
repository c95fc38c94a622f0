"""`minijax.interpreters`: rules of primitives, seen by interpreter. Re-exports on demand.

In minijax a rule stands on its primitive; these modules let libraries register and read rules in
upstream's way. They are loaded when first asked for.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from minijax.namespace import shown

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]

if TYPE_CHECKING:
    from minijax.interpreters import ad, batching, mlir, partial_eval, pxla, xla
else:

    def __getattr__(name):
        if name in __all__:
            return _import_module(f"minijax.interpreters.{name}")
        raise AttributeError(f"module 'minijax.interpreters' has no attribute {name!r}")


__dir__ = shown(__name__)
