"""What a program gives under a library: abstractly, compiled, or operation by operation.

Libraries are modules that speak JAX's API, by name: "minijax" and "jax". Upstream is imported here, when
it is first asked for, and nowhere else in the package.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import warnings
from types import ModuleType
from typing import Any

import numpy as np

from minijax.difftest import programs
from minijax.difftest.programs import MODULES, Program

__all__ = ["HOWS", "Leaf", "Outcome", "library", "run"]

HOWS = ("abstract", "compiled", "eager")


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One array of a result. `array` is None where it was evaluated abstractly."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    weak: bool
    array: Any = None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The leaves and the tree of a result, or the classes and the message of an error."""

    leaves: tuple[Leaf, ...] = ()
    tree: str = ""
    error: tuple[str, ...] = ()
    message: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"raised {self.error[0]}: {self.message}"
        lines = []
        for leaf in self.leaves:
            weak = ", weak" if leaf.weak else ""
            values = "" if leaf.array is None else " " + _short(leaf.array)
            lines.append(f"{leaf.path or 'result'}: {leaf.dtype}{list(leaf.shape)}{weak}{values}")
        return "\n".join(lines)


def _short(array) -> str:
    with np.printoptions(threshold=16, precision=None, floatmode="unique"):
        return str(array.tolist() if array.size <= 16 else array)


@functools.cache
def library(name: str) -> ModuleType:
    """Return a library by name, with the submodules that programs use."""
    module = importlib.import_module(name)
    for sub in MODULES:
        importlib.import_module(f"{name}.{sub}")
    return module


def run(
    program: Program, name: str, how: str = "compiled", arguments: tuple | None = None
) -> Outcome:
    """Run a program under a library.

    - `name`: "minijax" or "jax"
    - `how`: "abstract" (`eval_shape`), "compiled" (`jit` of the whole) or "eager"
    - `arguments`: inputs in place of the program's own

    Returns an `Outcome`; errors of the program are in it. Source: this package.

    >>> difftest.run(difftest.generate(0, 1), "minijax", "abstract").error
    ()
    """
    module = library(name)
    try:
        function = programs.compiled(program, module)
        args = programs.arguments(program) if arguments is None else arguments
        with _settings(module, program):
            if how == "abstract":
                result = module.eval_shape(function, *args)
            elif how == "compiled":
                result = module.jit(function)(*args)
            else:
                result = function(*args)
            return outcome(module, result)
    except Exception as error:
        classes = tuple(kind.__name__ for kind in type(error).__mro__)
        return Outcome(error=classes, message=str(error).split("\n")[0][:300])


@contextlib.contextmanager
def _settings(module: ModuleType, program: Program):
    with warnings.catch_warnings(), np.errstate(all="ignore"), module.enable_x64(program.x64):
        warnings.simplefilter("ignore")
        yield


def outcome(module: ModuleType, result: Any) -> Outcome:
    """Return the outcome of a call that gave a result."""
    leaves, tree = module.tree_util.tree_flatten_with_path(result)
    found = []
    for path, leaf in leaves:
        name = module.tree_util.keystr(path)
        if isinstance(leaf, module.ShapeDtypeStruct):
            found.append(Leaf(name, tuple(leaf.shape), str(leaf.dtype), bool(leaf.weak_type)))
            continue
        if "key<" in str(getattr(leaf, "dtype", "")):
            leaf = module.random.key_data(leaf)
        weak = bool(getattr(leaf, "weak_type", False))
        array = np.asarray(leaf)
        found.append(Leaf(name, array.shape, str(array.dtype), weak, array))
    return Outcome(tuple(found), str(tree))
