"""`minijax.experimental`: parts of the API that upstream may still change.

Its modules are loaded when first asked for.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from minijax.tracebacks import ended_at_user, public

__all__ = ["EArray", "compilation_cache", "cur_qdd", "io_callback", "primal_tangent_dtype"]

_MODULES = frozenset(("checkify", "compilation_cache", "hijax", "layout", "shard_map"))
_NAMES = {
    "EArray": "minijax.experimental.earray",
    "cur_qdd": "minijax.features.hijax.qdd",
    "io_callback": "minijax.lax.callbacks",
    "primal_tangent_dtype": "minijax.features.extended_dtypes",
}

if TYPE_CHECKING:
    from minijax.experimental.earray import EArray
    from minijax.features.extended_dtypes import primal_tangent_dtype
    from minijax.features.hijax.qdd import cur_qdd
    from minijax.lax.callbacks import io_callback
else:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return _import_module(f"minijax.experimental.{name}")
        if name in _NAMES:
            return ended_at_user(getattr(_import_module(_NAMES[name]), name), __name__)
        raise AttributeError(f"module 'minijax.experimental' has no attribute {name!r}")


__dir__ = public(__name__)
