"""`print_environment_info`: what to put into a report of a fault; and some old names."""

from __future__ import annotations

import os
import platform
import sys
import warnings
from collections.abc import Callable

import numpy as np

from minijax.namespace import user_stacklevel
from minijax.runtime import cache, platforms, versions
from minijax.version import __version__, api_level

__all__ = [
    "host_count", "host_id", "host_ids", "installation_summary", "print_environment_info",
]  # fmt: skip

_VARIABLES = ("JAX_", "MINIJAX_", "XLA_")


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions, devices and settings of this process.

    - `return_string`: whether to return the text instead

    Source: the packages' metadata and PJRT's devices.

    >>> jax.print_environment_info(return_string=True).startswith("minijax")
    True
    """
    devices = platforms.devices()
    kinds = sorted({device.device_kind for device in devices})
    lines = [
        f"minijax: {__version__}",
        f"jaxlib: {versions.jaxlib_version_text}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}".replace("\n", " "),
        f"device info: {', '.join(kinds)}-{len(devices)}, {platforms.local_device_count()} local "
        "devices",
        f"process_count: {platforms.process_count()}",
        f"platform: {platform.uname()}",
    ]
    lines += [
        f"{key}={value}" for key, value in sorted(os.environ.items()) if key.startswith(_VARIABLES)
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None


def installation_summary() -> str:
    """Return the versions, devices, cache folder and next steps, as `python -m minijax` prints them."""
    kept = cache.disk_cache()
    devices = ", ".join(map(str, platforms.devices()))
    return f"""\
minijax {__version__}, which has the API of JAX {api_level}
jaxlib   {versions.jaxlib_version_text}, Python {platform.python_version()}, NumPy {np.__version__}
devices  {devices}
cache    {kept.folder if kept else "off"}

python -m minijax.jax script.py   run a program written for JAX on minijax
import minijax.numpy as jnp       the API is JAX's: its documentation holds, with other imports
minijax.print_environment_info()  what a report of a fault needs"""


def _renamed(name: str, function: Callable, example: str) -> Callable:
    """The old name of a function: the same, with a warning."""

    def call(backend: str | None = None):
        new = function.__name__
        warnings.warn(
            f"jax.{name} has been renamed to jax.{new}: use that.", stacklevel=user_stacklevel()
        )
        return function(backend)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""Return `{function.__name__}(backend)`, with a warning: an old name.

    - `backend`: name of a platform, by default the preferred one

    UserWarning always; RuntimeError for an unknown platform.
    Source: `{function.__name__}`.

    >>> jax.{function.__name__}()
    {example}
    """
    return call


host_count = _renamed("host_count", platforms.process_count, "1")
host_id = _renamed("host_id", platforms.process_index, "0")
host_ids = _renamed("host_ids", platforms.process_indices, "[0]")
