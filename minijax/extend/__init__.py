"""`minijax.extend`: the pieces that libraries extend the system with. Its modules are loaded when
first asked for.
"""

from importlib import import_module as _import_module
from typing import Any

from minijax.namespace import shown

__all__ = [
    "backend", "core", "linear_util", "lowering", "mlir", "random", "sharding", "source_info_util",
    "xla",
]  # fmt: skip

_MODULES = frozenset(
    (
        "backend", "core", "ifrt_programs", "linear_util", "lowering", "mlir", "pallas", "random",
        "sharding", "source_info_util", "xla",
    )
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f"minijax.extend.{name}")
    raise AttributeError(f"module 'minijax.extend' has no attribute {name!r}")


__dir__ = shown(__name__)
