"""Platforms and their devices: clients of jaxlib, made the first time that something asks.

Where a platform is not asked for by name and cannot be started, the next is taken, silently: the
CPU is always there.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import threading
import warnings
from typing import TYPE_CHECKING, Any

from minijax.accepted_options import hints
from minijax.config import forget_keys, local, when_set
from minijax.runtime import gpus, launches, plugins
from minijax.runtime.versions import xla_client

__all__ = [
    "backend",
    "backends",
    "check_not_forked",
    "clear_backends",
    "default_backend",
    "default_device",
    "device_count",
    "devices",
    "local_device_count",
    "local_devices",
    "memory_said",
    "missing",
    "process_count",
    "process_index",
    "process_indices",
]

_log = logging.getLogger("minijax")
_lock = threading.RLock()
_clients: dict[str, Any] = {}  # the preferred one first
_failures: dict[tuple[str, str], str] = {}  # by platform and source: why it did not start
_preferred: str | None = None  # the option `jax_platform_name`, when the platforms were started
_ALIASES = {"gpu": ("cuda", "rocm", "gpu")}
_NVIDIA = ("cuda", "gpu")

if TYPE_CHECKING:

    class Device:
        """One device of a platform, as jaxlib shows it."""

        id: int
        process_index: int
        platform: str
        device_kind: str
        local_hardware_id: int | None
        host_id: int
        client: Any

        def memory_stats(self) -> dict[str, Any] | None: ...
        def addressable_memories(self) -> list[Any]: ...
        def default_memory(self) -> Any: ...
        def memory(self, kind: str) -> Any: ...

else:
    Device = xla_client.Device


client_options: dict[str, Any] = {}  # of the CPU's, when there are several processes


def _make_cpu_client():
    settings = local.context.settings
    count = settings.num_cpu_devices
    options = dict(client_options) if count < 0 else {"num_devices": count, **client_options}
    if count < 0:  # XLA_FLAGS may name a file, and XLA reads them once: only a client can tell
        count = xla_client.make_cpu_client().device_count() if os.environ.get("XLA_FLAGS") else 1
    with launches.threads_for(count):
        return xla_client.make_cpu_client(
            asynchronous=settings.cpu_enable_async_dispatch, **options
        )


plugins.add(plugins.Candidate("cpu", "jaxlib", 0, _make_cpu_client))


def _asked() -> list[str]:
    """The platforms that the setting names, in its order."""
    asked = local.context.settings.platforms
    return [name.strip() for name in asked.split(",") if name.strip()] if asked else []


def _start() -> dict[str, Any]:
    global _preferred
    check_not_forked()
    with _lock:
        if not _clients:
            asked = _asked()
            _preferred = hints["jax_platform_name"] or None
            _clients.update(_start_asked(asked) if asked else _start_all())
        return _clients


# -- processes that fork ---------------------------------------------------------------------------

_abandoned: list[dict[str, Any]] = []  # clients of the process that this one was forked from


def check_not_forked() -> None:
    """RuntimeError in a child of a process that had started its devices before the fork."""
    if _abandoned:
        raise RuntimeError(
            "This process was forked from one that had used minijax, whose devices work with threads "
            "that a fork does not copy: nothing can be computed here, it would wait for ever. Use "
            "multiprocessing.get_context('spawn') or 'forkserver', or fork before the first use of "
            "devices. Reading arrays as NumPy's, and starting another program, work."
        )


def _before_fork() -> None:
    if _clients:
        warnings.warn(
            "os.fork() was called. os.fork() is incompatible with multithreaded code, and JAX is "
            "multithreaded, so this will likely lead to a deadlock. In the child process minijax "
            "raises an error instead: use the start methods 'spawn' or 'forkserver' of "
            "multiprocessing.",
            RuntimeWarning,
            stacklevel=2,
        )


def _in_child() -> None:
    global _lock
    _lock = threading.RLock()  # another thread of the parent may have held it
    if _clients:
        gc.freeze()  # frames of the parent's other threads, and XLA's objects, are not to be collected
        _abandoned.append(dict(_clients))
        _clients.clear()
        _defaults.clear()
        launches.abandon(check_not_forked)
        forget_keys()  # so that no compiled program is found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)


def _start_asked(asked: list[str]) -> dict[str, Any]:
    """Start the platforms that the setting names; an error for those that do not start."""
    started: dict[str, Any] = {}
    missing: list[str] = []
    for name in asked:
        found = _start_named(name)
        if found is None:
            missing.append(name)
        else:
            started.setdefault(*found)
    for name in missing:
        # "cuda,cpu" is how programs ask for a GPU of NVIDIA's where there is one.
        if not started or name not in _NVIDIA or gpus.is_present("cuda"):
            raise RuntimeError(
                f"Unable to initialize backend {name!r} (set JAX_PLATFORMS='' to automatically "
                f"choose an available backend). {_told(name)}"
            )
    return started


def _start_all() -> dict[str, Any]:
    """All platforms that there is hardware for; the CPU is always one of them."""
    plugins.discover()
    best = {name: max(c.priority for c in found) for name, found in plugins.candidates.items()}
    started: dict[str, Any] = {}
    for name in sorted(best, key=lambda name: -best[name]):
        found = _start_named(name)
        if found is not None:
            started.setdefault(*found)
            continue
        loud = [c.source for c in plugins.candidates[name] if not c.quiet]
        if loud:
            raise RuntimeError(f"Unable to initialize backend {name!r}: {_told(name)}")
        if gpus.is_present(name):
            warnings.warn(
                f"There is a GPU here, but it is not used: {_told(name)}", RuntimeWarning,
                stacklevel=2,
            )  # fmt: skip
    if not started:
        raise RuntimeError(f"No platform could be started: {_told('cpu')}")
    return started


def _start_named(platform: str) -> tuple[str, Any] | None:
    """A platform by its name or alias: the name of the client that it has, and the client."""
    if platform != "cpu":
        plugins.discover()
    for name in _ALIASES.get(platform, (platform,)):
        for candidate in plugins.candidates.get(name, ()):
            if (name, candidate.source) in _failures:
                continue
            _log.debug("Initializing backend %r", name)
            try:
                client = candidate.make()
            except Exception as error:
                _failures[name, candidate.source] = plugins.told(error)
                continue
            if client is not None:
                _log.debug("Backend %r initialized", name)
                return name, client
            _failures[name, candidate.source] = "its factory gave no client"
    return None


def _told(platform: str) -> str:
    """Why a platform is not there: all that was found, and why each did not do."""
    if any(name in plugins.candidates for name in _ALIASES.get(platform, (platform,))):
        opening = f"Backend {platform!r} failed to start."
    else:
        known = sorted({"cpu", *plugins.candidates})
        opening = f"Backend {platform!r} is not in the list of known backends: {known}."
    lines = [f"{source} ({name}): {why}" for (name, source), why in _failures.items()]
    lines += [f"{source}: {why}" for source, why in plugins.problems.items()]
    if not lines:
        return f"{opening} No plug-in was found in the entry points or the package 'jax_plugins'."
    return "\n  ".join(
        [f"{opening} The plug-ins that were found, and why each is not used:", *lines]
    )


def missing(platform: str) -> str:
    """Say that no platform of this name runs here, and why."""
    asked = _asked()
    if asked and platform not in asked:
        why = f"The setting jax_platforms={','.join(asked)!r} leaves it out."
    else:
        why = _told(platform)
    known = list(_clients)
    said = f"Unknown backend {platform}. Available backends are {known}"
    if platform in _ALIASES:
        said = (
            f"Unknown backend: {platform!r} requested, but no platforms that are instances of "
            f"{platform} are present. Platforms present are: {','.join(known)}"
        )
    return (
        f"{said}: name one of these, or install the plug-in of that platform, such as "
        f"jax-cuda12-plugin[with-cuda]. {why}"
    )


def backends() -> dict[str, Any]:
    """The clients that run, by platform; starts them if need be."""
    return _clients or _start()


def backend(platform: str | Any | None = None) -> Any:
    """The client of a platform; the preferred one by default. RuntimeError if there is none."""
    clients = _clients or _start()
    if platform is None or (isinstance(platform, str) and not platform):
        if _preferred is None:
            return next(iter(clients.values()))
        platform = _preferred
    if not isinstance(platform, str):
        if not hasattr(platform, "device_count"):
            raise TypeError(
                f"backend must be the name of a platform, such as 'cpu', or a client; got "
                f"{platform!r} of type {type(platform).__name__}."
            )
        return platform
    for name in _ALIASES.get(platform, (platform,)):
        if name in clients:
            return clients[name]
    asked = _asked()
    if platform == "cpu" or not asked or platform in asked:  # registered since, or left to itself
        with _lock:
            found = _start_named(platform)
            if found is not None:
                return clients.setdefault(*found)
    raise RuntimeError(missing(platform))


def started() -> bool:
    """Whether any platform has been started."""
    return bool(_clients)


def _check_not_started(count: int) -> None:
    if started():
        raise RuntimeError(
            "jax_num_cpu_devices config should be updated before backends are initialized i.e. "
            "before any JAX operation is executed. You should initialize this config immediately "
            "after `import jax`."
        )


when_set("num_cpu_devices", _check_not_started)


def memory_said(device: Any) -> str:
    """The end of a message about memory: how much a device has, and what to do."""
    held = None
    if device.platform == "cpu":
        with contextlib.suppress(AttributeError, ValueError, OSError):  # not all systems tell
            held = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    else:
        with contextlib.suppress(Exception):  # a device that is only described
            held = device.memory_stats()["bytes_limit"]
    had = f"{device} has {held} bytes of memory in all" if held else f"{device} has less memory"
    return f"{had}. Ask for smaller shapes, or compute in parts."


def clear_backends() -> None:
    """Forget all clients: the next use starts them anew."""
    with _lock:
        _clients.clear()
        _failures.clear()
        _defaults.clear()


_client = backend  # by a name that the parameters below do not hide


def devices(backend: str | Any | None = None) -> list[Any]:
    """Return the devices of a platform, over all processes.

    - `backend`: name of a platform, by default the preferred one

    The result is a list. RuntimeError for an unknown platform.
    Source: PJRT's list of devices.

    >>> len(jax.devices()) == jax.device_count()
    True
    """
    return _client(backend).devices()


def local_devices(
    process_index: int | None = None, backend: Any = None, host_id: int | None = None
) -> list[Any]:
    """Return the devices of one process.

    - `process_index`: number of the process, by default this one; `host_id` is an older name of it
    - `backend`: name of a platform, by default the preferred one

    The result is a list. ValueError for an unknown process, RuntimeError for an unknown platform.
    Source: PJRT's list of devices.

    >>> len(jax.local_devices()) == jax.local_device_count()
    True
    """
    index = host_id if process_index is None else process_index
    client = _client(backend)
    if index is None:
        index = client.process_index()
    if index not in process_indices(backend):
        raise ValueError(f"Unknown process_index {index}: there are {process_count(backend)}")
    return [device for device in client.devices() if device.process_index == index]


def device_count(backend: Any = None) -> int:
    """Return the number of devices of a platform, over all processes.

    - `backend`: name of a platform, by default the preferred one

    The result is an integer. RuntimeError for an unknown platform.
    Source: PJRT's list of devices.

    >>> jax.device_count() >= 1
    True
    """
    return _client(backend).device_count()


def local_device_count(backend: Any = None) -> int:
    """Return the number of devices of this process.

    - `backend`: name of a platform, by default the preferred one

    The result is an integer. RuntimeError for an unknown platform.
    Source: PJRT's list of addressable devices.

    >>> jax.local_device_count() <= jax.device_count()
    True
    """
    return _client(backend).local_device_count()


def process_index(backend: Any = None) -> int:
    """Return the number of this process, from 0.

    - `backend`: name of a platform, by default the preferred one

    The result is an integer. RuntimeError for an unknown platform.
    Source: PJRT's process index.

    >>> jax.process_index()
    0
    """
    return _client(backend).process_index()


def process_indices(backend: Any = None) -> list[int]:
    """Return the sorted numbers of the processes that have devices.

    - `backend`: name of a platform, by default the preferred one

    The result is a list of integers. RuntimeError for an unknown platform.
    Source: PJRT's list of devices.

    >>> jax.process_indices()
    [0]
    """
    return sorted({device.process_index for device in devices(backend)})


def process_count(backend: Any = None) -> int:
    """Return the number of processes.

    - `backend`: name of a platform, by default the preferred one

    The result is an integer. RuntimeError for an unknown platform.
    Source: PJRT's list of devices.

    >>> jax.process_count()
    1
    """
    return max(device.process_index for device in devices(backend)) + 1


def default_backend() -> str:
    """Return the name of the preferred platform: "cpu", "gpu" or "tpu".

    RuntimeError if no platform can be started.
    Source: PJRT's platform name.

    >>> jax.default_backend() in ("cpu", "gpu", "tpu")
    True
    """
    return backend().platform


_defaults: dict[Any, Any] = {}


def default_device() -> Any:
    """The device that uncommitted results go to, as `default_device` is set in this thread."""
    chosen = local.context.settings.default_device
    try:
        return _defaults[chosen]
    except KeyError:
        if chosen is None or isinstance(chosen, str):
            device = backend(chosen).local_devices()[0]
        else:
            device = getattr(chosen, "_device", chosen)
        _defaults[chosen] = device
        return device
