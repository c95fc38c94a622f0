"""Counterparts of upstream's private helpers for what is loaded late: submodules, and pickles."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.arrays.array import ArrayImpl, array_from_numpy
from minijax.core.avals import ShapedArray

__all__ = ["array_of_pickle", "attach", "dumps", "loads"]


def attach(
    package_name: str, submodules: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose submodules are imported when used.

    RuntimeError if the module that calls it has no name.
    """
    owner = sys._getframe(1).f_globals.get("__name__")
    if owner is None:
        raise RuntimeError("attach: the module that calls it has no __name__")
    names = list(submodules)

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package_name!r} has no attribute {name!r}")
        found = importlib.import_module(f"{package_name}.{name}")
        setattr(sys.modules[owner], name, found)
        return found

    return look_up, lambda: names, names


def dumps(obj: Any) -> bytes:
    """A pickle, of functions that have no name in a module too. ModuleNotFoundError without cloudpickle."""
    return importlib.import_module("cloudpickle").dumps(obj)


def array_of_pickle(
    make: Callable[..., np.ndarray], arguments: tuple, state: tuple, properties: dict[str, Any]
) -> ArrayImpl:
    """The array that upstream pickled as the parts of a NumPy array, and as what that has not."""
    value = make(*arguments)
    value.__setstate__(state)
    return array_from_numpy(value, ShapedArray(value.shape, value.dtype, properties["weak_type"]))


loads = pickle.loads
