"""Running a program under a library: abstractly, compiled, or operation by operation.

Libraries are modules that speak JAX's API, by name: "minijax" and "jax". Upstream is imported here, when
it is first asked for, and nowhere else in the package. Other names are subjects that run in a child process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from minijax.difftest import programs
from minijax.difftest.programs import MODULES, Program

__all__ = [
    "HOWS", "Leaf", "Outcome", "attempted", "failure", "library", "outcome", "run", "settings",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One array of a result. `array` is None where it was evaluated abstractly.

    - `sharding`: the part of the array on each device, where there are several devices
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    weak: bool
    array: Any = None
    sharding: str = ""


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
        with contextlib.suppress(ImportError):  # other versions have fewer
            importlib.import_module(f"{name}.{sub}")
    if not hasattr(module, "enable_x64"):
        module.enable_x64 = importlib.import_module(f"{name}.experimental").enable_x64
    return module


def run(
    program: Program, name: str, how: str = "compiled", arguments: tuple | None = None
) -> Outcome:
    """Run a program under a library of this process, "minijax" or "jax": see `subjects.run`."""
    return attempted(program, name, _HOWS[how], arguments)


_HOWS = {
    "abstract": lambda module, function, args: module.eval_shape(function, *args),
    "compiled": lambda module, function, args: module.jit(function)(*args),
    "eager": lambda module, function, args: function(*args),
}
HOWS = tuple(_HOWS)


def attempted(program: Program, name: str, way: Callable, arguments: tuple | None) -> Outcome:
    """Return the outcome of a way to call a program: a function of the library, the program, its inputs."""
    module = library(name)
    try:
        function = programs.compiled(program, module)
        args = programs.arguments(program) if arguments is None else arguments
        with settings(module, program):
            return outcome(module, way(module, function, args))
    except Exception as error:
        return failure(error)


def failure(error: Exception) -> Outcome:
    """Return the outcome of a call that raised."""
    classes = tuple(kind.__name__ for kind in type(error).__mro__)
    return Outcome(error=classes, message=str(error).split("\n")[0][:300])


@contextlib.contextmanager
def settings(module: ModuleType, program: Program):
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
        found.append(Leaf(name, array.shape, str(array.dtype), weak, array, _parts(leaf)))
    return Outcome(tuple(found), str(tree))


def _parts(leaf: Any) -> str:
    sharding = getattr(leaf, "sharding", None)
    if sharding is None or len(sharding.device_set) < 2:
        return ""
    parts = sharding.devices_indices_map(leaf.shape)
    return ", ".join(f"{d.id}: {parts[d]}" for d in sorted(parts, key=lambda d: d.id))
