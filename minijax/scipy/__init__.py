"""`minijax.scipy`: functions of SciPy on the arrays of minijax. Modules load when asked for."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from minijax.tracebacks import public

__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "signal", "sparse",
    "special", "stats",
]  # fmt: skip

_MODULES = frozenset((
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
    "spatial", "special", "stats",
))  # fmt: skip


if TYPE_CHECKING:
    from minijax.scipy import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )
else:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return _import_module(f"minijax.scipy.{name}")
        raise AttributeError(f"module 'minijax.scipy' has no attribute {name!r}")


__dir__ = public(__name__)
