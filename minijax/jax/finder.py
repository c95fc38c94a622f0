"""The import finder of the stand-in: from upstream's module names to minijax's module objects.

There is no second tree of files: `jax.X` is the module object `minijax.X`, and those of
`names.MODULE_ALIASES` are modules of minijax too. Only two kinds of module are made here: `jax` itself,
which shows minijax under upstream's name and version, and the modules of `names.ALIASES` and
`modules.MODULES`, which show single objects.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import threading
import types
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

import minijax
from minijax.deprecated import why_removed
from minijax.jax import children, logs, modules, names
from minijax.late_names import when_found
from minijax.namespace import LateModule, names_so_far, pickled_by_import

__all__ = ["API_VERSION", "Finder", "install", "is_installed"]

API_VERSION = names.API_VERSION


class Shown(types.ModuleType):
    """A module that shows what is elsewhere, found when asked for; `vars` of it has all of it."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        names = names_so_far(self)
        names.update((name, getattr(self, name)) for name in dir(self) if name not in names)
        return names

    def __reduce__(self) -> tuple:
        return pickled_by_import(self)


class Face(Shown):
    """`jax`: the names of `minijax`, less the modules that upstream has not."""

    def __getattr__(self, name: str) -> Any:
        if f"jax.{name}" in names.ALIASES:
            return importlib.import_module(f"jax.{name}")
        if name in names.OVERRIDES:
            return placed(names.OVERRIDES[name])
        value = getattr(minijax, name, None)  # no public name stands for None
        if value is not None and not is_private_module(value):
            return value
        raise AttributeError(why_removed("minijax", name) or missing(f"jax.{name}"))

    def __dir__(self) -> list[str]:
        known = names_so_far(minijax)
        shown = {name for name in dir(minijax) if not is_private_module(known.get(name))}
        return sorted({*shown, *names_so_far(self)})

    def __repr__(self) -> str:
        return f"<module 'jax': minijax from {minijax.__file__!r}>"


class Borrowed(Shown):
    """A module of upstream's that minijax has only some names of.

    A name is looked for in `names.ALIASES`, among the modules within, and in the modules of
    `modules.MODULES`.
    """

    def __getattr__(self, name: str) -> Any:
        place = names.ALIASES.get(self.__name__, {}).get(name)
        if place is not None:
            value = placed(place)
        elif is_borrowed(f"{self.__name__}.{name}"):
            value = importlib.import_module(f"{self.__name__}.{name}")
        else:
            module = next((module for module in self.modules if modules.gives(module, name)), None)
            if module is None:
                raise AttributeError(missing(f"{self.__name__}.{name}"))
            value = getattr(module, name)
        setattr(self, name, value)
        return value

    @property
    def modules(self) -> tuple[types.ModuleType, ...]:
        """The modules of minijax that answer for it, in order."""
        known = names_so_far(self)
        found = known.get("_modules")
        if found is None:
            named = self.__name__ in modules.MODULES
            found = known["_modules"] = modules.modules_of(self.__name__) if named else ()
        return found

    def __dir__(self) -> list[str]:
        given = {
            name
            for module in self.modules
            for name in getattr(module, "__all__", ())
            if modules.gives(module, name)
        }
        return sorted(
            {*names.ALIASES.get(self.__name__, {}), *given, *names_so_far(self)} - {"_modules"}
        )


def is_borrowed(fullname: str) -> bool:
    """Whether a module of upstream's is answered name by name."""
    return fullname in names.ALIASES or fullname in modules.MODULES


def placed(place: str) -> Any:
    """Return the object at `module:path`."""
    module, _, path = place.partition(":")
    value: Any = importlib.import_module(module)
    for part in filter(None, path.split(".")):
        value = getattr(value, part)
    return value


def is_private_module(value: Any) -> bool:
    """Whether it is a module directly in minijax that upstream's users know nothing of."""
    package, _, name = getattr(value, "__name__", "").rpartition(".")
    is_within = isinstance(value, types.ModuleType) and package == "minijax"
    return is_within and name not in names.PUBLIC_MODULES and name not in minijax.__all__


def missing(name: str) -> str:
    """The message for a name of upstream's that is not there."""
    return (
        f"minijax, which stands in for JAX {API_VERSION} in this process, has no {name!r}. "
        "Use a public function in its place, or run this program on upstream JAX."
    )


def is_public(fullname: str) -> bool:
    """Whether minijax has a module of this name that upstream has too."""
    parent, _, name = fullname.rpartition(".")
    if fullname.split(".")[1] not in names.PUBLIC_MODULES or is_borrowed(parent):
        return False
    shown = getattr(sys.modules.get("mini" + parent), name, None)
    if shown is not None and not isinstance(shown, types.ModuleType):
        return False  # the function `lax.dot`, whose module has its name
    try:
        return importlib.util.find_spec("mini" + fullname) is not None
    except ModuleNotFoundError:  # its parent is missing
        return False


class Finder:
    """Answers for `jax` and everything in it, and for nothing else."""

    stands_in_for_jax = True  # plug-ins, which import it, are told nothing else then

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname == "jax":
            return ModuleSpec("jax", Loader, origin=minijax.__file__, is_package=True)
        if fullname.startswith("minijax.") and is_borrowed(fullname[4:]):
            # `from jax.X import Y` asks for minijax.X.Y, by the name of the module object.
            if PathFinder.find_spec(fullname, path) is None:
                fullname = fullname[4:]
        if not fullname.startswith("jax."):
            return children.find_spec(path) if fullname == children.MODULE else None
        if is_borrowed(fullname):
            return ModuleSpec(fullname, Loader, origin=names.__file__, is_package=True)
        if fullname not in names.MODULE_ALIASES and not is_public(fullname):
            raise ModuleNotFoundError(missing(fullname), name=fullname)
        return ModuleSpec(fullname, Loader, is_package=True)


class Loader:
    """Gives the module object; one that is minijax's own keeps its spec and, mostly, its name."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> types.ModuleType:
        if spec.name == "jax":
            module: types.ModuleType = Face("jax", minijax.__doc__)
            module.__file__ = spec.origin
            module.__version__ = API_VERSION
            module.__version_info__ = tuple(map(int, API_VERSION.split(".")))
            spec.submodule_search_locations = list(minijax.__path__)
            return module
        if is_borrowed(spec.name):
            module = Borrowed(spec.name, f"What minijax has of upstream's {spec.name}.")
            module.__file__ = spec.origin
            return module
        module = importlib.import_module(names.MODULE_ALIASES.get(spec.name, "mini" + spec.name))
        spec.loader_state = module.__spec__
        if spec.name in names.KNOWN_BY_NAME:
            module.__name__ = spec.name
        return module

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        spec = module.__spec__
        if spec.loader_state is not None:
            module.__spec__ = spec.loader_state
        if type(module) in (types.ModuleType, LateModule):
            claim(spec.name, module)
        if module.__name__ == "jax":
            claim("jax.sharding", minijax.sharding)  # which some names of `jax` are of
            claim("jax", minijax)
            for known, home in names.VALUE_CLASSES.items():
                where, _, name = known.rpartition(".")
                origin = importlib.import_module(where)
                getattr(origin, name).__module__ = home
                if home.startswith("jaxlib."):
                    sys.modules.setdefault(home, origin)
            for name in names.IMPORTED_WITH_JAX:
                sys.modules.setdefault(f"jax.{name}", present(f"jax.{name}"))


def claim(fullname: str, module: types.ModuleType) -> None:
    """Have the functions and classes of a public module say that they are of `fullname`.

    Their texts and pickles then name upstream's module. What two modules show is of the first.
    """

    def tell(name: str, value: Any) -> None:
        home = getattr(value, "__module__", None)
        if isinstance(home, str) and home.partition(".")[0] == "minijax":
            if getattr(value, "__name__", None) == name:
                with contextlib.suppress(AttributeError, TypeError):  # of a class written in C
                    value.__module__ = fullname

    known = names_so_far(module)
    for name in getattr(module, "__all__", ()):
        tell(name, known.get(name))
    when_found[module.__spec__.name] = tell


class Unloaded(types.ModuleType):
    """A module that runs when one of its names is asked for.

    Unlike those of `importlib.util.LazyLoader`, it answers for its attributes with underscores, so
    that loops over `sys.modules` run nothing, and it runs once if several threads ask.
    """

    _lock = threading.RLock()
    _runs = False

    def __getattr__(self, name: str) -> Any:
        if name == "__all__" or not name.startswith("__"):
            self._run()
            if type(self) is not Unloaded:
                return getattr(self, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        self._run()
        return dir(self) if type(self) is not Unloaded else sorted(names_so_far(self))

    def __reduce__(self) -> tuple:
        return pickled_by_import(self)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        self._run()
        return self.__dict__ if type(self) is not Unloaded else names_so_far(self)

    def _run(self) -> None:
        """Run the module, unless this thread is running it."""
        with self._lock:
            if type(self) is Unloaded and not self._runs:
                self._runs = True
                try:
                    self.__spec__.loader.exec_module(self)
                finally:
                    del self._runs
                late = "__getattr__" in names_so_far(self)
                self.__class__ = LateModule if late else types.ModuleType
                claim(self.__name__.removeprefix("mini"), self)


class LazyLoader:
    """Make modules that the given loader runs when they are used."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return Unloaded(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)


def present(fullname: str) -> types.ModuleType:
    """Return the module that answers for `fullname`; it runs when one of its names is asked for.

    Running all that upstream's `import jax` runs would make `import jax` take twice as long.
    """
    target = names.MODULE_ALIASES.get(fullname, "mini" + fullname)
    if is_borrowed(fullname) or target in sys.modules:
        return importlib.import_module(fullname)
    # `importlib.util.find_spec` would run the packages that the module is in.
    folder = os.path.join(minijax.__path__[0], *target.split(".")[1:-1])
    spec = PathFinder.find_spec(target, [folder])
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(missing(fullname), name=fullname)
    spec.loader = LazyLoader(spec.loader)
    sys.modules[target] = module = importlib.util.module_from_spec(spec)
    return module


def is_installed() -> bool:
    """Whether `import jax` resolves to minijax in this process."""
    return Finder in sys.meta_path


def install() -> None:
    """Make `import jax` resolve to minijax from here on in this process.

    ImportError if upstream JAX has been imported: two libraries cannot share one name. Installing
    again does nothing.
    """
    if is_installed():
        return
    found = sys.modules.get("jax")
    if found is not None:
        raise ImportError(
            f"upstream JAX was imported already, from {getattr(found, '__file__', None)}: install "
            "the stand-in before anything imports jax, for instance by running the program as "
            "`python -m minijax.jax script.py`."
        )
    sys.meta_path.insert(0, Finder)
    if children.MODULE in sys.modules:
        children.prepare_children(sys.modules[children.MODULE])
    logs.forward()
