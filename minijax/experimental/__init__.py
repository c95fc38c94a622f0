"""`minijax.experimental`: parts of the API that upstream may still change.

Its modules are loaded when first asked for.
"""

from importlib import import_module as _import_module
from typing import Any

_MODULES = frozenset(("checkify", "hijax", "layout", "shard_map"))
_NAMES = {
    "cur_qdd": "minijax.core.lowered",
    "io_callback": "minijax.lax.callbacks",
    "primal_tangent_dtype": "minijax.core.extended",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f"minijax.experimental.{name}")
    if name in _NAMES:
        return getattr(_import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'minijax.experimental' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES})
