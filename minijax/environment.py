"""`print_environment_info`: what to put into a report of a fault; and some old names.

May import the floors below.
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from collections.abc import Callable

import numpy as np

from minijax.runtime import platforms, versions
from minijax.version import __version__

__all__ = ["host_count", "host_id", "host_ids", "print_environment_info"]

_VARIABLES = ("JAX_", "MINIJAX_", "XLA_")


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions, devices and settings of this process, or give them as a string."""
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


def _renamed(name: str, function: Callable) -> Callable:
    """The old name of a function: the same, with a warning."""

    def call(backend: str | None = None):
        new = function.__name__
        warnings.warn(f"jax.{name} has been renamed to jax.{new}: use that.", stacklevel=2)
        return function(backend)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The old name of `{function.__name__}`."
    return call


host_count = _renamed("host_count", platforms.process_count)
host_id = _renamed("host_id", platforms.process_index)
host_ids = _renamed("host_ids", platforms.process_indices)
