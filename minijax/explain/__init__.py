"""Tools that show programs.

    explain.to_python(f, *args)   runnable source of the jaxpr of `f`

Nothing here is part of tracing: `import minijax` does not load this package, and each tool is loaded
when it is first asked for.
"""

from importlib import import_module as _import_module
from typing import Any

_HOMES = {
    "to_python": "python", "Source": "python",
}  # fmt: skip

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
