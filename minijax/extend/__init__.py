"""`minijax.extend`: the pieces that libraries extend the system with. Its modules are loaded when
first asked for.
"""

from minijax.late_names import late_names
from minijax.namespace import shown

__all__ = [
    "backend", "core", "linear_util", "lowering", "mlir", "random", "sharding", "source_info_util",
    "xla",
]  # fmt: skip

_MODULES = (*__all__, "ifrt_programs", "pallas")


__getattr__ = late_names(__name__, submodules=_MODULES)
__dir__ = shown(__name__)
