"""`minijax.experimental`: parts of the API that upstream may still change.

Its modules are loaded when first asked for.
"""

from typing import TYPE_CHECKING

from minijax.late_names import late_names
from minijax.tracebacks import public

__all__ = ["EArray", "compilation_cache", "cur_qdd", "io_callback", "primal_tangent_dtype"]

_MODULES = ("checkify", "compilation_cache", "hijax", "layout", "shard_map")
_LATE = {
    "minijax.experimental.earray": "EArray",
    "minijax.features.extended_dtypes": "primal_tangent_dtype",
    "minijax.features.hijax.qdd": "cur_qdd",
    "minijax.lax.callbacks": "io_callback",
}

if TYPE_CHECKING:
    from minijax.experimental.earray import EArray
    from minijax.features.extended_dtypes import primal_tangent_dtype
    from minijax.features.hijax.qdd import cur_qdd
    from minijax.lax.callbacks import io_callback
else:
    __getattr__ = late_names(__name__, _LATE, _MODULES)


__dir__ = public(__name__)
