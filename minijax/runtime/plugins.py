"""PJRT plug-ins: finding those that are installed, and loading them without upstream.

Plug-ins are found as upstream finds them: the entry points of the group `jax_plugins`, the
namespace package `jax_plugins`, the variable PJRT_NAMES_AND_LIBRARY_PATHS ("name:path,name:path"),
and libtpu. A plug-in that fails is no error here: why it failed is kept, for the error of whoever
asks for its platform by name.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import os
import pkgutil
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from minijax.runtime import gpus, plugin_names
from minijax.runtime.digests import sha256
from minijax.runtime.versions import _jax, xla_client

__all__ = [
    "Candidate", "NoHardware", "candidates", "discover", "identities", "joined",
    "library_identity", "problems",
    "register_backend_factory", "register_plugin",
]  # fmt: skip

GROUP = "jax_plugins"
_SAMPLE = 1 << 16  # bytes at either end of a library
# XLA asks for these plug-ins by name: a GPU's when it reads a compiled program.
_KNOWN_TO_XLA = ("cuda", "rocm", "tpu")
_logger = logging.getLogger(__name__)


class NoHardware(RuntimeError):
    """The hardware that a plug-in is for is not there."""


class Candidate(NamedTuple):
    """A way to start a platform: `make` gives its client; the highest `priority` is preferred."""

    platform: str
    source: str
    priority: int
    make: Callable[[], Any]
    quiet: bool = True  # whether its failure matters to nobody who has not asked for it
    load: Callable[[], str] | None = None  # its library alone: the name that jaxlib knows it by


class Joined:
    """The facts that a client needs when several processes run one program; `distributed` fills it."""

    def __init__(self):
        self.client: Any = None
        self.options: dict[str, Any] = {}
        self.visible: list[int] | None = None


candidates: dict[str, list[Candidate]] = {}  # by platform
problems: dict[str, str] = {}  # by source: why a plug-in offers no platform
joined = Joined()

tables: dict[str, Any] = {}  # of functions, of the plug-ins that were loaded
# Which build of which library compiles for a client; all builds of a plug-in call themselves the same.
identities: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
_by_key: dict[str, str | None] = {}  # by the name that jaxlib knows a library by: its identity
_lock = threading.RLock()
_discovered = False
_source: list[str] = []  # the plug-in whose code runs now

# -- registering ---------------------------------------------------------------------------------------


def add(candidate: Candidate) -> None:
    """Offer one more way to start a platform, after those that are known."""
    candidates.setdefault(candidate.platform, []).append(candidate)


def _here() -> str:
    return _source[-1] if _source else "the program"


def register_plugin(
    plugin_name: str, *, priority: int = 400, library_path: str | None = None, options: Any = None,
    c_api: Any = None, factory: Callable[[], Any] | None = None, make_topology: Any = None,
) -> Any:  # fmt: skip
    """Register a platform by its library, table or factory; called by a plug-in's `initialize()`.

    `options` is a dict, or a function that gives one when the client is made. Gives the plug-in's
    table of functions. ValueError if there is nothing to make a client from; jaxlib's error if the
    library is missing or is not one of a plug-in.
    """
    if library_path is None and c_api is None and factory is None:
        raise ValueError(
            f"register_plugin({plugin_name!r}) was given no library_path=, no c_api= and no "
            "factory=: one of them is needed to make a client."
        )
    api = key = None
    if library_path is not None or c_api is not None:
        key, api = _load(plugin_name, library_path, c_api)

    def make():
        if factory is not None:
            return factory()
        return _client(key, options() if callable(options) else options)

    load = None if key is None else lambda: key
    add(Candidate(plugin_name, _here(), priority, make, load=load))
    return api


def register_backend_factory(
    name: str, factory: Callable[[], Any], *, priority: int = 0, fail_quietly: bool = True,
    experimental: bool = False, make_topology: Any = None, c_api: Any = None,
) -> None:  # fmt: skip
    """Offer a platform whose client `factory()` makes, or None where there is no hardware for it.

    If `fail_quietly` its failure is shown to those alone who ask for the platform by name.
    """
    if experimental:
        _logger.warning("Platform %r is experimental: not all of the API may work on it.", name)
    add(Candidate(name, _here(), priority, factory, fail_quietly))


def _load(platform: str, path: str | None, c_api: Any = None) -> tuple[str, Any]:
    """Load a plug-in's library: the name that jaxlib knows it by from here on, and its table."""
    # The names are jaxlib's, of the whole process, and loading under one twice is an error: with
    # names of our own upstream may load the same library, before or after.
    count, key = 0, platform if platform in _KNOWN_TO_XLA else f"minijax_{platform}_0"
    while _jax.pjrt_plugin_loaded(key):
        key = f"minijax_{platform}_{count}"
        count += 1
    _by_key[key] = library_identity(path) if path is not None else None
    tables[key] = _jax.load_pjrt_plugin(key, path, c_api=c_api)
    if key == platform:
        _share_with_upstream()
    return key, tables[key]


@functools.cache
def _share_with_upstream() -> None:
    """Let jaxlib's loader give a library that was loaded here again, where it refuses a name twice."""
    load = xla_client.load_pjrt_plugin_dynamically

    @functools.wraps(load)
    def load_once(plugin_name: str, library_path: str) -> Any:
        identity = _by_key.get(plugin_name)
        if identity is not None and identity == library_identity(library_path):
            return tables[plugin_name]
        return load(plugin_name, library_path)

    xla_client.load_pjrt_plugin_dynamically = load_once


@functools.cache
def _loaded(platform: str, path: str) -> tuple[str, Any]:
    """A library that may serve both a client and the descriptions of machines elsewhere."""
    return _load(platform, path)


def library_identity(path: str) -> str | None:
    """A digest of a library's size, time and first and last bytes, among which is its build id.

    None if it cannot be read. Reading the whole of it, hundreds of megabytes, would take too long.
    """
    try:
        with open(path, "rb") as file:
            info = os.fstat(file.fileno())
            digest = sha256(f"{info.st_size} {info.st_mtime_ns}\n".encode())
            digest.update(file.read(_SAMPLE))
            file.seek(max(0, info.st_size - _SAMPLE))
            digest.update(file.read(_SAMPLE))
    except OSError:
        return None
    return digest.hexdigest()


def _client(key: str, options: dict[str, Any] | None) -> Any:
    if not _jax.pjrt_plugin_initialized(key):
        _jax.initialize_pjrt_plugin(key)
    values = {**(options or {}), **joined.options}
    client = _jax.get_c_api_client(key, values, joined.client)
    if _by_key.get(key) is not None:
        identities[client] = _by_key[key]
    return client


def told(error: BaseException) -> str:
    """An error in a line."""
    kind = "" if isinstance(error, NoHardware) else f"{type(error).__name__}: "
    return f"{kind}{error}".rstrip(": ")


# -- finding -------------------------------------------------------------------------------------------


def discover() -> None:
    """Find every plug-in that is installed, once a process."""
    global _discovered
    with _lock:
        if _discovered:
            return
        _discovered = True
        _from_variable()
        modules = {**_namespace_modules(), **_entry_points()}
        known = {name: gpus.layout_of(name) for name in modules}
        by_version = sorted(
            (name for name in modules if known[name]), key=lambda name: -known[name].version
        )
        for name in by_version:
            _add_gpu(name, known[name])
        for name, source in modules.items():
            if known[name] is None:
                _run(name, source)
        _add_tpu()


def _failed(source: str, why: str) -> None:
    problems[source] = why
    _logger.info("The plug-in %s failed: %s", source, why)


def _from_variable() -> None:
    """PJRT_NAMES_AND_LIBRARY_PATHS; a path to a JSON file names a library and its options."""
    text = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "")
    for entry in filter(None, text.split(",")):
        name, colon, path = entry.partition(":" if os.name != "nt" else ";")
        source = f"PJRT_NAMES_AND_LIBRARY_PATHS {entry!r}"
        if not colon or not name or not path:
            _failed(source, "it is not written as name:path")
            continue
        _source.append(source)
        try:
            options = None
            if path.endswith(".json"):
                with open(path) as file:
                    settings = importlib.import_module("json").load(file)  # rare: not at import
                path, options = settings["library_path"], settings.get("create_options")
            register_plugin(name, library_path=path, options=options)
        except Exception as error:
            _failed(source, told(error))
        finally:
            _source.pop()


def _namespace_modules() -> dict[str, str]:
    """The modules in the namespace package `jax_plugins`, without importing them."""
    try:
        spec = importlib.util.find_spec(GROUP)
    except (ImportError, ValueError) as error:
        _failed(f"package {GROUP}", told(error))
        return {}
    if spec is None or spec.submodule_search_locations is None:
        return {}
    found = pkgutil.iter_modules(list(spec.submodule_search_locations))
    return {f"{GROUP}.{entry.name}": f"package {GROUP}.{entry.name}" for entry in found}


def _entry_points() -> dict[str, str]:
    """The modules that installed distributions name in the group `jax_plugins`."""
    found: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in sorted(names):
            if name.endswith((".dist-info", ".egg-info")):
                path = os.path.join(folder, name, "entry_points.txt")
                for label, module in _group_in(path):
                    found.setdefault(module, f"entry point {label} = {module}")
    return found


def _group_in(path: str) -> Iterator[tuple[str, str]]:
    """The lines of the group in a file of entry points."""
    # importlib.metadata reads every distribution's whole metadata: ten times slower, at each start.
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return
    inside = False
    for line in map(str.strip, lines):
        if line.startswith("["):
            inside = line == f"[{GROUP}]"
        elif inside and "=" in line and not line.startswith("#"):
            label, _, value = line.partition("=")
            yield label.strip(), value.partition(":")[0].partition("[")[0].strip()


def _run(name: str, source: str) -> None:
    """Import a plug-in's module and call its `initialize`, which registers what it brings."""
    functions = {
        "register_plugin": register_plugin,
        "register_backend_factory": register_backend_factory,
    }
    before = sum(map(len, candidates.values()))
    doing = "importing it"
    _source.append(source)
    package = name if name.startswith(GROUP + ".") else name.partition(".")[0]
    try:
        with plugin_names.served(package, functions):
            module = importlib.import_module(name)
            initialize = getattr(module, "initialize", None)
            if not callable(initialize):
                _failed(source, "it has no function initialize()")
                return
            doing = "its initialize()"
            initialize()
    except (Exception, SystemExit) as error:
        _failed(source, f"{doing} raised {told(error)}")
        return
    finally:
        _source.pop()
    if sum(map(len, candidates.values())) == before:
        _failed(source, "its initialize() registered no platform")


# -- kinds that are known --------------------------------------------------------------------------------


def _add_gpu(name: str, layout: gpus.Layout) -> None:
    """A plug-in of NVIDIA's or AMD's: its library is loaded when its client is made."""
    source = f"package {name}"
    try:
        spec = importlib.util.find_spec(name)
    except Exception as error:  # of the package that it is in
        _failed(source, f"finding it raised {told(error)}")
        return
    folders = spec.submodule_search_locations if spec is not None else None

    def make():
        problem = gpus.driver_problem(layout.platform)
        if problem is not None:
            raise NoHardware(problem)
        options = gpus.options(layout.platform, joined.visible)
        return _client(load(), options)

    @functools.cache
    def load():
        key, api = _loaded(layout.platform, os.path.join(folders[0], layout.library))
        gpus.register_kernels(layout, api)
        return key

    if not folders:
        _failed(source, "there is no such package")
        return
    add(Candidate(layout.platform, source, 500, make, load=load))


# The PCI numbers of Google's chips: v2 and v3, v4, v5p, v5e, v6e, 7x.
_TPU_CHIPS = ("0x0027", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076")


def _has_tpu() -> bool:
    folder = "/sys/bus/pci/devices"
    for chip in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            with open(f"{folder}/{chip}/vendor") as vendor, open(f"{folder}/{chip}/device") as kind:
                if vendor.read().strip() == "0x1ae0" and kind.read().strip() in _TPU_CHIPS:
                    return True
        except OSError:
            continue
    return False


def _add_tpu() -> None:
    """libtpu: the file that TPU_LIBRARY_PATH names, or that the package brings."""
    path, source = os.environ.get("TPU_LIBRARY_PATH"), "TPU_LIBRARY_PATH"
    if not path:
        try:
            spec = importlib.util.find_spec("libtpu")
        except (ImportError, ValueError):
            spec = None
        if spec is None or not spec.submodule_search_locations:
            return
        path, source = os.path.join(spec.submodule_search_locations[0], "libtpu.so"), "libtpu"

    def make():
        if not _has_tpu():  # libtpu would wait for a network that is not there
            raise NoHardware("this machine has no TPU chip")
        key, _ = _loaded("tpu", path)
        return _client(key, {"ml_framework_name": "JAX"})

    add(Candidate("tpu", source, 300, make, load=lambda: _loaded("tpu", path)[0]))
