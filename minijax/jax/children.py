"""Processes that `multiprocessing` starts anew have the stand-in, as those that it forks have.

Such a process unpickles what its parent prepared before it runs or unpickles anything of the program.
One entry of that is an object whose unpickling installs the stand-in.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

import minijax

__all__ = ["MODULE", "find_spec", "prepare_children"]

MODULE = "multiprocessing.spawn"
_INSTALL = "import sys; sys.path.append({folder!r}); import minijax.jax; minijax.jax.install()"


class _StandIn:
    """None in another process, where `import jax` then resolves to minijax."""

    def __reduce__(self) -> tuple[Callable, tuple]:
        folder = os.path.dirname(minijax.__path__[0])  # the parent's path is not known there yet
        return exec, (_INSTALL.format(folder=folder), {})


def prepare_children(spawn: types.ModuleType) -> None:
    """Have `multiprocessing.spawn` give the stand-in to the processes that it starts."""
    prepared = spawn.get_preparation_data

    @functools.wraps(prepared)
    def get_preparation_data(name: str) -> dict[str, Any]:
        return {"jax": _StandIn(), **prepared(name)}

    spawn.get_preparation_data = get_preparation_data


def find_spec(path: Any) -> ModuleSpec | None:
    """Find `multiprocessing.spawn`, which `prepare_children` is given once it has run."""
    spec = PathFinder.find_spec(MODULE, path)
    if spec is not None and spec.loader is not None:
        run = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            run(module)
            prepare_children(module)

        spec.loader.exec_module = exec_module
    return spec
