"""`minijax.scipy`: functions of SciPy on the arrays of minijax. Modules load when asked for."""

from importlib import import_module as _import_module
from typing import Any

_MODULES = frozenset((
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
    "spatial", "special", "stats",
))  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f"minijax.scipy.{name}")
    raise AttributeError(f"module 'minijax.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
