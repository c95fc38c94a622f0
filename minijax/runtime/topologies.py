"""Machines that are described by name, to compile for them from elsewhere.

May import the ground floor and `runtime`.
"""

from __future__ import annotations

from typing import Any

from minijax.runtime.versions import _jax

__all__ = ["described"]


def described(name: str, platform: str, options: dict[str, Any]) -> list[Any]:
    """The devices of a machine, by the plug-in of a platform that is loaded."""
    if platform == "cpu":
        raise NotImplementedError(
            "topology not implemented for cpu: a CPU is here already; see get_attached_topology."
        )
    if not _jax.pjrt_plugin_loaded(platform):
        kind = platform.upper()
        raise RuntimeError(
            f"JAX {kind} support not installed; cannot generate {kind} topology: install the plug-in "
            f"of the platform {platform!r}."
        )
    if not _jax.pjrt_plugin_initialized(platform):
        _jax.initialize_pjrt_plugin(platform)
    topology = _jax.get_default_c_api_topology(platform, name, options)
    return list(topology._make_compile_only_devices())
