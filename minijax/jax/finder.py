"""The import finder of the stand-in: from upstream's module names to minijax's module objects.

Floor 7: may import all of minijax. There is no second tree of files: `jax.X` is the module object
`minijax.X`, and those of `names.WHOLE` are modules of minijax too. Only two kinds of module are made
here: `jax` itself, which shows minijax under upstream's name and version, and the modules of
`names.BORROWED` and `rooms.ROOMS`, which show single objects.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any

import minijax
from minijax.jax import logs, names, rooms

__all__ = ["API_VERSION", "Finder", "install", "is_installed"]

API_VERSION = names.API_VERSION


class Face(types.ModuleType):
    """`jax`: the names of `minijax`, less the rooms that upstream has not."""

    def __getattr__(self, name: str) -> Any:
        if f"jax.{name}" in names.BORROWED:
            return importlib.import_module(f"jax.{name}")
        if name in names.FACE:
            return placed(names.FACE[name])
        value = getattr(minijax, name, None)  # no public name stands for None
        if value is not None and not is_private_room(value):
            return value
        raise AttributeError(missing(f"jax.{name}"))

    def __dir__(self) -> list[str]:
        shown = {name for name in dir(minijax) if not is_private_room(vars(minijax).get(name))}
        return sorted({*shown, *self.__dict__})

    def __repr__(self) -> str:
        return f"<module 'jax': minijax from {minijax.__file__!r}>"


class Borrowed(types.ModuleType):
    """A module of upstream's that minijax has only some names of.

    A name is looked for in `names.BORROWED`, among the modules within, and in the rooms of
    `rooms.ROOMS`.
    """

    def __getattr__(self, name: str) -> Any:
        place = names.BORROWED.get(self.__name__, {}).get(name)
        if place is not None:
            value = placed(place)
        elif is_borrowed(f"{self.__name__}.{name}"):
            value = importlib.import_module(f"{self.__name__}.{name}")
        else:
            room = next((room for room in self.rooms if rooms.gives(room, name)), None)
            if room is None:
                raise AttributeError(missing(f"{self.__name__}.{name}"))
            value = getattr(room, name)
        setattr(self, name, value)
        return value

    @property
    def rooms(self) -> tuple[types.ModuleType, ...]:
        """The modules of minijax that answer for it, in order."""
        found = self.__dict__.get("_rooms")
        if found is None:
            named = self.__name__ in rooms.ROOMS
            found = self.__dict__["_rooms"] = rooms.rooms_of(self.__name__) if named else ()
        return found

    def __dir__(self) -> list[str]:
        given = {name for room in self.rooms for name in getattr(room, "__all__", ())}
        return sorted({*names.BORROWED.get(self.__name__, {}), *given, *self.__dict__} - {"_rooms"})


def is_borrowed(fullname: str) -> bool:
    """Whether a module of upstream's is answered name by name."""
    return fullname in names.BORROWED or fullname in rooms.ROOMS


def placed(place: str) -> Any:
    """What stands at `module:path`."""
    module, _, path = place.partition(":")
    value: Any = importlib.import_module(module)
    for part in filter(None, path.split(".")):
        value = getattr(value, part)
    return value


def is_private_room(value: Any) -> bool:
    """Whether it is a module that upstream has no public one for."""
    name = value.__name__ if isinstance(value, types.ModuleType) else ""
    return name.removeprefix("minijax.") in names.PRIVATE_ROOMS


def missing(name: str) -> str:
    """The message for a name of upstream's that is not there."""
    return (
        f"minijax, which stands in for JAX {API_VERSION} in this process, has no {name!r}. "
        "Use a public function in its place, or run this program on upstream JAX."
    )


def is_public(fullname: str) -> bool:
    """Whether minijax has a module of this name that upstream has too."""
    if fullname.split(".")[1] in names.PRIVATE_ROOMS:
        return False
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
        # `from jax.X import Y` asks for minijax.X.Y, by the name of the module object.
        if fullname.removeprefix("mini") in names.EMPTY:
            fullname = fullname.removeprefix("mini")
        elif not fullname.startswith("jax."):
            return None
        if is_borrowed(fullname):
            return ModuleSpec(fullname, Loader, origin=names.__file__, is_package=True)
        if fullname not in names.WHOLE and not is_public(fullname):
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
        module = importlib.import_module(names.WHOLE.get(spec.name, "mini" + spec.name))
        spec.loader_state = module.__spec__
        if spec.name in names.KNOWN_BY_NAME:
            module.__name__ = spec.name
        return module

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        own = module.__spec__.loader_state
        if own is not None:
            module.__spec__ = own


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
    logs.forward()
