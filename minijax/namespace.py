"""The names that a public module shows to `dir` and to tab completion, and those of its functions.

Ground layer: imports the standard library only. A module that is public ends in
`__dir__ = shown(__name__)`, or `public(__name__)` of `tracebacks` if users call its functions; what
else it defines or imports stays importable.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

__all__ = [
    "LateModule", "hiding", "is_present", "named", "names_so_far", "own_names", "pickled_by_import",
    "shown", "user_stacklevel", "written_in",
]  # fmt: skip

_F = TypeVar("_F", bound=Callable)

# The names that a module has now. `vars` of a module that imports names late imports all of them.
names_so_far: Callable[[ModuleType], dict[str, Any]] = ModuleType.__dict__["__dict__"].__get__


class LateModule(ModuleType):
    """A module with names that are imported when they are asked for; `vars` of it has them all.

    Reading other attributes takes no longer than those of a module.
    """

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        names = names_so_far(self)
        for name in names["__all__"]:
            getattr(self, name)
        return names

    def __dir__(self) -> list[str]:
        return names_so_far(self)["__dir__"]()  # that of ModuleType reads `__dict__`

    def __reduce__(self) -> tuple:
        return pickled_by_import(self)


def pickled_by_import(module: ModuleType) -> tuple:
    """Return the `__reduce__` of a module, which cloudpickle makes for those of no class of their own."""
    return importlib.import_module, (module.__name__,)


def shown(module: str) -> Callable[[], list[str]]:
    """Return the `__dir__` of a module: the names in its `__all__`, and those like `__doc__`."""
    names = names_so_far(sys.modules[module])
    if "__getattr__" in names and type(sys.modules[module]) is ModuleType:
        sys.modules[module].__class__ = LateModule
    return lambda: sorted({*names["__all__"], *(n for n in names if n.startswith("__"))})


def hiding(*names: str) -> Callable[[Any], list[str]]:
    """Return the `__dir__` of a class: without the attributes `names`, which only the package reads."""
    return lambda self: [name for name in object.__dir__(self) if name not in names]


def is_present(module: str) -> bool:
    """Whether a module of a feature is there: the package works without it."""
    return importlib.util.find_spec(module) is not None


def named(fun: _F, name: str, module: str) -> _F:
    """Return a function of this module that does what `fun` does: `absolute` for `abs`.

    A call of it costs no more. Methods that are bound to `fun`, such as `lower`, are bound to it.
    """
    same: Any = fun
    made = FunctionType(same.__code__, same.__globals__, name, same.__defaults__, same.__closure__)
    made.__kwdefaults__, made.__annotations__ = same.__kwdefaults__, same.__annotations__
    made.__qualname__, made.__module__, made.__doc__ = name, module, same.__doc__
    for key, value in vars(fun).items():
        if getattr(value, "__self__", None) is fun:
            value = MethodType(value.__func__, made)
        setattr(made, key, value)
    return made  # type: ignore[return-value]


def pickled_by_name(self: Any, protocol: int) -> Any:
    """Return what pickles an object: its name, if the module that it is of has it, or its parts.

    A method `__reduce_ex__` for classes of which objects are public functions.
    """
    name = getattr(self, "__qualname__", "")
    found: Any = sys.modules.get(self.__module__)
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is self else object.__reduce_ex__(self, protocol)


def own_names(module: str) -> None:
    """Give the functions in the `__all__` of a module that are named otherwise the names there."""
    names = names_so_far(sys.modules[module])
    for name in names["__all__"]:
        found = names.get(name)
        if isinstance(found, FunctionType) and found.__name__ != name:
            names[name] = named(found, name, module)


def written_in(fun: Any) -> str:
    """Return the name of the module in whose source a function stands; empty if none is known."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    home = getattr(fun, "__globals__", {}).get("__name__") or getattr(fun, "__module__", None)
    return home or ""


def user_stacklevel() -> int:
    """Return the `stacklevel` for a warning of the caller that points at the first frame not ours."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "minijax":
        level, frame = level + 1, frame.f_back
    return level
