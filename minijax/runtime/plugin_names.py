"""The names of upstream's that a plug-in's package imports, served while its code runs.

A PJRT plug-in announces itself by calling `jax._src.xla_bridge.register_plugin` in its
`initialize()`. Upstream is not imported for that: the few modules below stand in its place for that
moment, and whatever was imported before, upstream itself perhaps, is put back. In a process where
minijax stands in for `jax` nothing needs to be done.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from typing import Any

from minijax import version
from minijax.namespace import names_so_far
from minijax.runtime.versions import xla_client

__all__ = ["served"]


class _Served(types.ModuleType):
    """A module of upstream's of which a plug-in finds some names."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"minijax loads plug-ins without upstream JAX and serves them no {self.__name__}.{name}"
        )


class _Refusing:
    """The finder of everything else below `jax`: there is none, installed or not."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname == "jax" or fullname.startswith("jax."):
            raise ModuleNotFoundError(
                f"minijax loads plug-ins without upstream JAX and serves them no {fullname}",
                name=fullname,
            )
        return None


def _tree(functions: dict[str, Callable]) -> dict[str, types.ModuleType]:
    contents: dict[str, dict[str, Any]] = {
        "jax": {
            "__version__": version.api_level,
            "__version_info__": tuple(map(int, version.api_level.split("."))),
        },
        "jax._src": {},
        "jax._src.lib": {"xla_client": xla_client},
        "jax._src.xla_bridge": {"xla_client": xla_client, **functions},
        "jax.extend": {},
        "jax.extend.backend": {"register_backend_factory": functions["register_backend_factory"]},
        "jax.lib": {"xla_client": xla_client},
        "jax.version": {"__version__": version.api_level},
    }
    modules: dict[str, types.ModuleType] = {}
    for name, values in contents.items():
        module = modules[name] = _Served(name)
        vars(module).update(values, __path__=[], __file__=__file__)
        parent, _, last = name.rpartition(".")
        if parent:
            vars(modules[parent])[last] = module
    return modules


def _within(name: str, roots: tuple[str, ...]) -> bool:
    return any(name == root or name.startswith(root + ".") for root in roots)


def _take(chosen: Callable[[str], bool]) -> dict[str, types.ModuleType]:
    """Remove modules from those that are imported, and give them."""
    names = [name for name in sys.modules if chosen(name)]
    return {name: sys.modules.pop(name) for name in names}


@contextmanager
def served(package: str, functions: dict[str, Callable]) -> Iterator[None]:
    """While it lasts, `import jax` gives a few names and `package` is imported anew.

    Afterwards `sys.modules` is as it was: the package may be imported by upstream too, which must
    find it fresh, and modules that hold on to the names served are forgotten with it.
    """
    if any(getattr(finder, "stands_in_for_jax", False) for finder in sys.meta_path):
        yield
        return
    hidden = _take(lambda name: _within(name, ("jax", package)))
    before = set(sys.modules)
    tree = _tree(functions)
    ours = {id(value) for value in (*tree.values(), *functions.values())}

    def touched(name: str) -> bool:
        if _within(name, ("jax", package)):
            return True
        if name in before:
            return False
        module = sys.modules[name]
        held = names_so_far(module) if isinstance(module, types.ModuleType) else vars(module)
        return any(id(value) in ours for value in list(held.values()))

    sys.modules.update(tree)
    sys.meta_path.insert(0, _Refusing)
    try:
        yield
    finally:
        sys.meta_path.remove(_Refusing)
        for name, module in _take(touched).items():
            parent, _, last = name.rpartition(".")
            above = vars(sys.modules.get(parent) or types.ModuleType(parent))
            if above.get(last) is module:
                del above[last]
        sys.modules.update(hidden)
        for name, module in hidden.items():
            parent, _, last = name.rpartition(".")
            if parent in sys.modules:
                vars(sys.modules[parent]).setdefault(last, module)
