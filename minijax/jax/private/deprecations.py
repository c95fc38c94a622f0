"""A stand-in for `jax._src.deprecations`: names for what is deprecated, which tests make errors.

A deprecation that is accelerated raises where it would have warned.
"""

from __future__ import annotations

import functools
import warnings
from types import ModuleType
from typing import Any

__all__ = ["accelerate", "deprecation_getattr", "is_accelerated", "register", "unregister", "warn"]

_accelerated: dict[str, bool] = {}


def register(deprecation_id: str) -> None:
    """A deprecation of this name."""
    _accelerated.setdefault(deprecation_id, False)


def unregister(deprecation_id: str) -> None:
    """Forget it; ValueError if there is none."""
    _check(deprecation_id)
    del _accelerated[deprecation_id]


def _check(deprecation_id: str) -> None:
    if deprecation_id not in _accelerated:
        raise ValueError(f"{deprecation_id=!r} not registered.")


def accelerate(deprecation_id: str) -> None:
    """Raise for it from now on."""
    _check(deprecation_id)
    _accelerated[deprecation_id] = True


def is_accelerated(deprecation_id: str) -> bool:
    """Whether it raises."""
    _check(deprecation_id)
    return _accelerated[deprecation_id]


def warn(
    deprecation_id: str, message: str, stacklevel: int, *, error_class: type[Exception] = ValueError
) -> None:
    """Warn of it, or raise `error_class` if it is accelerated."""
    if is_accelerated(deprecation_id):
        raise error_class(message)
    warnings.warn(message, category=DeprecationWarning, stacklevel=stacklevel + 1)


def deprecation_getattr(module: ModuleType | str, deprecations: dict[str, tuple[str, Any]]) -> Any:
    """A module's `__getattr__` that warns for names `{name: (message, value or None)}`."""

    def look_up(module_name, name):
        if name not in deprecations:
            raise AttributeError(f"module {module_name!r} has no attribute {name!r}")
        message, value = deprecations[name]
        if value is None:
            raise AttributeError(message)
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return value

    return functools.partial(look_up, getattr(module, "__name__", module))
