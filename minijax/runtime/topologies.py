"""Machines that are described by name, to compile for them from elsewhere, and devices that stand
for those of any machine, over which programs are lowered.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from minijax.runtime import plugins
from minijax.runtime.versions import _jax

__all__ = ["Placeholder", "UnknownTopologyError", "described", "placeholders"]

_INSTALL = {
    "tpu": "run pip install 'minijax-xla[tpu]', which brings libtpu",
    "cuda": "run pip install 'minijax-xla[cuda12]' or 'minijax-xla[cuda13]', which bring NVIDIA's compiler",
}

# One machine of each kind that Google's compiler may know: those that it does are listed in errors.
_NAMES = {
    "tpu": ("v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1"),
}


def described(name: str, platform: str, options: dict[str, Any]) -> list[Any]:
    """The devices of a machine, by the plug-in of a platform, whose hardware need not be here.

    NotImplementedError for the CPU; RuntimeError where no plug-in of the platform is installed;
    ValueError for a machine that it does not know; TypeError for options of other types than text,
    numbers and sequences of integers.
    """
    if platform == "cpu":
        raise NotImplementedError(
            "topology not implemented for cpu: a CPU is here already; see get_attached_topology."
        )
    for key, value in {"topology_name": name, **options}.items():
        if not isinstance(value, int | float | Sequence):
            raise TypeError(
                f"{key} describes a machine by text, a number or integers, got {value!r} of type "
                f"{type(value)}."
            )
    key = _library(platform)
    if not _jax.pjrt_plugin_initialized(key):
        _jax.initialize_pjrt_plugin(key)
    try:
        return _devices(key, name, options)
    except _jax.JaxRuntimeError as error:
        raise UnknownTopologyError(
            f"{str(error).rstrip('.')}. The plug-in of {platform!r} does not describe a machine "
            f"named {name!r} with the options {sorted(options)}: {_how_to_name(key, platform)}"
        ) from None


def _devices(key: str, name: str, options: dict[str, Any]) -> list[Any]:
    return list(_jax.get_default_c_api_topology(key, name, options)._make_compile_only_devices())


def _how_to_name(key: str, platform: str) -> str:
    """The names that a plug-in knows, or the options that it takes."""
    known = [name for name in _NAMES.get(platform, ()) if _knows(key, name)]
    if known:
        return f"it knows {', '.join(known)}, and larger ones of these kinds."
    if platform in ("cuda", "rocm"):
        return "for GPUs the name is empty, with target_config= and topology='1x1x4' as options."
    return "its makers say which names it takes."


def _knows(key: str, name: str) -> bool:
    try:
        return bool(_devices(key, name, {}))
    except _jax.JaxRuntimeError:
        return False


class UnknownTopologyError(_jax.JaxRuntimeError, ValueError):
    """A machine that a plug-in does not know."""


def _library(platform: str) -> str:
    """The name under which jaxlib has the library of a platform, which is loaded if need be."""
    plugins.discover()
    problems = []
    for candidate in plugins.candidates.get(platform, ()):
        if candidate.load is None:
            continue
        try:
            return candidate.load()
        except Exception as error:
            problems.append(f"{candidate.source}: {plugins.told(error)}")
    if _jax.pjrt_plugin_loaded(platform):  # by upstream, or by the program
        return platform
    if platform not in _INSTALL and not problems:
        raise NotImplementedError(
            f"topology not implemented for {platform}: no plug-in of this platform is installed."
        )
    kind = platform.upper()
    how = _INSTALL.get(platform, f"install the plug-in of the platform {platform!r}")
    raise RuntimeError(
        "\n  ".join(
            [
                f"JAX {kind} support not installed; cannot generate {kind} topology: {how}.",
                *problems,
            ]
        )
    )


class Placeholder:
    """A device of a mesh without devices: a program is lowered over it, and compiled for others."""

    platform, device_kind, process_index = "cpu", "placeholder", 0
    client = SimpleNamespace(process_index=lambda: 0)

    def __init__(self, number: int):
        self.id = number

    def __repr__(self) -> str:
        return f"Placeholder(id={self.id})"

    def default_memory(self) -> Any:
        return _MEMORIES[0]

    def addressable_memories(self) -> list[Any]:
        return _MEMORIES


_MEMORIES = [SimpleNamespace(kind=kind) for kind in ("device", "pinned_host", "unpinned_host")]
_placeholders: list[Placeholder] = []


def placeholders(count: int) -> tuple[Placeholder, ...]:
    """So many devices of no machine, the same ones each time."""
    while len(_placeholders) < count:
        _placeholders.append(Placeholder(len(_placeholders)))
    return tuple(_placeholders[:count])
