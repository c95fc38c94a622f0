"""Calls of jaxlib that would import upstream, made without it.

Where jaxlib makes an array of its own accord, it asks upstream for the class of its type: that imports
`jax`, in 0.4 s, if it is installed. If it is not, the array does without, which ours always can.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["without_upstream"]


class _Finder(threading.local):
    """A finder of modules that finds no `jax` for a thread that `hides` it."""

    hides = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if self.hides and name == "jax":
            raise ModuleNotFoundError(name)


_finder = _Finder()


def without_upstream(call: Callable, *args: Any) -> Any:
    """Return `call(*args)`, which imports no `jax` that was not imported before."""
    if "jax" in sys.modules:
        return call(*args)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.hides = True
    try:
        return call(*args)
    finally:
        _finder.hides = False
