"""Foreign functions: what compiled programs call by name."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import jaxlib

from minijax.runtime import plugins
from minijax.runtime.versions import xla_client

__all__ = [
    "include_dir", "pycapsule", "register_batch_partitionable", "register_target", "register_type",
]  # fmt: skip


def register_target(name: str, fn: Any, platform: str, api_version: int, **kwargs: Any) -> None:
    """Make a function known to XLA by name: a PyCapsule, or one for each stage in a dictionary."""
    xla_client.register_custom_call_target(
        name, fn, platform=platform, api_version=api_version, **kwargs
    )


def register_type(name: str, registration: Any, platform: str) -> None:
    xla_client.register_custom_type(name, registration, platform=platform)


def register_batch_partitionable(name: str) -> None:
    """Say to XLA, and to that of each plug-in, that a target may be called on parts of a batch."""
    for key, table in [("", None), *plugins.tables.items()]:
        if (name, key) not in _partitionable:
            _partitionable.add((name, key))
            xla_client.register_custom_call_as_batch_partitionable(name, c_api=table)


_partitionable: set[tuple[str, str]] = set()


def include_dir() -> str:
    """The folder of the header files that jaxlib ships."""
    return os.path.join(os.path.dirname(jaxlib.__file__), "include")


def pycapsule(funcptr: Any) -> Any:
    """A pointer to a function that ctypes loaded, as a PyCapsule."""
    make = ctypes.pythonapi.PyCapsule_New
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    make.restype = ctypes.py_object
    return make(ctypes.cast(funcptr, ctypes.c_void_p), None, None)
