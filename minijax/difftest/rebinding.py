"""A function written with one library, made again for the other.

Modules and public functions of the one that a function's globals and closure hold are replaced by those of
the other with the same name; functions of the user's own that it calls are made again in turn. Of a function
with a custom rule the other library gets the function without the rule, and so differentiates it itself.
"""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.difftest.running import library

__all__ = ["rebound"]

_PUBLIC = (
    "", ".numpy", ".lax", ".nn", ".random", ".scipy.special", ".numpy.linalg", ".scipy.linalg",
    ".tree_util",
)  # fmt: skip


def rebound(function: Callable, to: str) -> Callable:
    """Return a function with the names of a library in the place of those of the other.

    - `function`: a Python function written with minijax or with upstream
    - `to`: "minijax" or "jax"

    Returns a function. TypeError if it holds something that has no counterpart. Source: this package.
    """
    return _Rebinding("jax" if to == "minijax" else "minijax", to).value(function)


class _Rebinding:
    """Replaces values of one library by those of another, each once."""

    def __init__(self, old: str, new: str):
        self.old, self.new = old, new
        self.made: dict[int, Any] = {}
        library(new), library(old)

    def value(self, x: Any) -> Any:
        if id(x) in self.made:
            return self.made[id(x)]
        if isinstance(x, types.ModuleType):
            return self._module(x)
        if isinstance(x, functools.partial):
            keywords = {k: self.value(v) for k, v in x.keywords.items()}
            return functools.partial(self.value(x.func), *map(self.value, x.args), **keywords)
        if isinstance(x, list | tuple) and type(x) in (list, tuple):
            return type(x)(map(self.value, x))
        if isinstance(x, dict):
            return {k: self.value(v) for k, v in x.items()}
        if isinstance(x, library(self.old).Array):
            return np.asarray(x)
        home = getattr(x, "__module__", None) or ""
        if home == self.old or home.startswith(f"{self.old}."):
            return self._public(x)
        if isinstance(x, types.FunctionType) and not _foreign(x):
            return self._function(x)
        inner = getattr(x, "__wrapped__", None)
        if inner is not None and type(x).__module__.startswith((self.old, "jaxlib")):
            return library(self.new).jit(self.value(inner))
        return x

    def _module(self, module: types.ModuleType) -> types.ModuleType:
        name = module.__name__
        if name == self.old or name.startswith(f"{self.old}."):
            return importlib.import_module(self.new + name[len(self.old) :])
        return module

    def _public(self, x: Any) -> Any:
        """Return the counterpart of a public function or class, found by identity."""
        for sub in _PUBLIC:
            home = importlib.import_module(self.old + sub)
            for name, value in vars(home).items():
                if value is x:
                    return getattr(importlib.import_module(self.new + sub), name)
        inner = getattr(x, "__wrapped__", None)
        if inner is not None and not (getattr(inner, "__module__", "") or "").startswith(self.old):
            return library(self.new).jit(self.value(inner))
        raise TypeError(f"{x!r} of {self.old} has no counterpart in {self.new} that is known.")

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        names = _names(function.__code__)
        made = types.FunctionType(
            function.__code__, {"__builtins__": __builtins__}, function.__name__,
            None, tuple(types.CellType() for _ in function.__closure__ or ()),
        )  # fmt: skip
        self.made[id(function)] = made  # functions may call themselves
        for name in names & function.__globals__.keys():
            made.__globals__[name] = self.value(function.__globals__[name])
        for cell, old in zip(made.__closure__ or (), function.__closure__ or (), strict=True):
            cell.cell_contents = self.value(old.cell_contents)
        made.__defaults__ = self.value(function.__defaults__)
        made.__kwdefaults__ = self.value(function.__kwdefaults__)
        return made


def _foreign(function: types.FunctionType) -> bool:
    """Whether a function belongs to an installed package that knows neither library."""
    return "site-packages" in function.__code__.co_filename


def _names(code: types.CodeType) -> set[str]:
    """Return the global names that a function and those nested in it mention."""
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))
