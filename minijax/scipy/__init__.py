"""`minijax.scipy`: functions of SciPy on the arrays of minijax. Modules load when asked for."""

from typing import TYPE_CHECKING

from minijax.late_names import late_names
from minijax.tracebacks import public

__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "signal", "sparse",
    "special", "stats",
]  # fmt: skip

_MODULES = (
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
    "spatial", "special", "stats",
)  # fmt: skip


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
    __getattr__ = late_names(__name__, submodules=_MODULES)


__dir__ = public(__name__)
