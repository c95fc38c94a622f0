"""Platforms and their devices: clients of jaxlib, made the first time that something asks.

May import the ground floor and `runtime.versions`.
"""

from __future__ import annotations

import threading
from typing import Any

from minijax.config import local
from minijax.runtime.versions import xla_client

__all__ = [
    "backend",
    "backends",
    "clear_backends",
    "default_backend",
    "default_device",
    "device_count",
    "devices",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "process_indices",
]

_lock = threading.RLock()
_clients: dict[str, Any] = {}
_failures: dict[str, str] = {}
_ALIASES = {"gpu": ("cuda", "rocm", "gpu")}
Device = xla_client.Device


client_options: dict[str, Any] = {}  # of the CPU's, when there are several processes


def _make_cpu_client():
    settings = local.context.settings
    count = settings.num_cpu_devices
    options = dict(client_options) if count < 0 else {"num_devices": count, **client_options}
    return xla_client.make_cpu_client(asynchronous=settings.cpu_enable_async_dispatch, **options)


_factories = {"cpu": _make_cpu_client}


def _wanted_platforms() -> list[str]:
    """The platforms to start, the preferred one first."""
    asked = local.context.settings.platforms
    if asked:
        return [name.strip() for name in asked.split(",") if name.strip()]
    return [name for name in _factories if name != "cpu"] + ["cpu"]


def _start() -> dict[str, Any]:
    with _lock:
        if _clients:
            return _clients
        explicit = local.context.settings.platforms
        for name in _wanted_platforms():
            factory = _factories.get(name)
            if factory is None:
                if explicit:
                    raise RuntimeError(_unknown_platform(name))
                continue
            try:
                _clients[name] = factory()
            except Exception as error:
                _failures[name] = str(error)
                if explicit:
                    raise RuntimeError(
                        f"Unable to initialize backend {name!r}: {error}. Set JAX_PLATFORMS to a "
                        "platform that this machine has, or leave it unset."
                    ) from error
        if not _clients:
            raise RuntimeError(f"No platform could be started: {_failures}")
        return _clients


def _unknown_platform(name: str) -> str:
    failed = "".join(f"; {key} failed: {why}" for key, why in _failures.items())
    return (
        f"Unknown backend {name!r}: the platforms known here are {sorted(_factories)}{failed}. "
        "Install the plug-in of that platform, or name one of these."
    )


def backends() -> dict[str, Any]:
    """The clients that run, by platform; starts them if need be."""
    return _clients or _start()


def backend(platform: str | Any | None = None) -> Any:
    """The client of a platform; the preferred one by default. RuntimeError if there is none."""
    clients = _clients or _start()
    if platform is None:
        return next(iter(clients.values()))
    if not isinstance(platform, str):
        return platform
    for name in _ALIASES.get(platform, (platform,)):
        if name in clients:
            return clients[name]
        if name in _factories and name not in _failures:
            with _lock:
                clients[name] = _factories[name]()
            return clients[name]
    raise RuntimeError(_unknown_platform(platform))


def started() -> bool:
    """Whether any platform has been started."""
    return bool(_clients)


def clear_backends() -> None:
    """Forget all clients: the next use starts them anew."""
    with _lock:
        _clients.clear()
        _failures.clear()
        _defaults.clear()


_client = backend  # by a name that the parameters below do not hide


def devices(backend: str | Any | None = None) -> list:
    """All devices of a platform, over all processes."""
    return _client(backend).devices()


def local_devices(process_index: int | None = None, backend=None, host_id=None) -> list:
    """The devices of one process, this one by default."""
    index = host_id if process_index is None else process_index
    client = _client(backend)
    if index is None:
        index = client.process_index()
    if index not in process_indices(backend):
        raise ValueError(f"Unknown process_index {index}: there are {process_count(backend)}")
    return [device for device in client.devices() if device.process_index == index]


def device_count(backend=None) -> int:
    return _client(backend).device_count()


def local_device_count(backend=None) -> int:
    return _client(backend).local_device_count()


def process_index(backend=None) -> int:
    return _client(backend).process_index()


def process_indices(backend=None) -> list[int]:
    return sorted({device.process_index for device in devices(backend)})


def process_count(backend=None) -> int:
    return max(device.process_index for device in devices(backend)) + 1


def default_backend() -> str:
    """The name of the preferred platform: "cpu", "gpu" or "tpu"."""
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
