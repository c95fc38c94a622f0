"""NVIDIA's and AMD's plug-ins: their options, from the variables that users know, and their
kernels.

The wheels jax-cuda12-pjrt, jax-cuda13-pjrt and jax-rocm*-pjrt bring the plug-in's library,
jax-cuda12-plugin and its likes the kernels; nothing of their Python is run, so that upstream is not
needed.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import re
import sys
from typing import Any, NamedTuple

from minijax.config import local
from minijax.runtime.versions import xla_client

__all__ = [
    "Layout", "cudnn_version", "driver_problem", "is_present", "layout_of", "options", "platform_name",
    "register_kernels",
]  # fmt: skip

# Each brings targets of the typed FFI: solvers, sparse matrices, random bits, recurrent networks.
_KERNELS = ("gpu_linalg", "gpu_prng", "gpu_solver", "gpu_sparse")
_REGISTER_THEMSELVES = ("gpu_rnn", "gpu_triton")
_EXTENSIONS = {"cuda": "jax_cuda{}_plugin.cuda_plugin_extension",
               "rocm": "jax_rocm{}_plugin.rocm_plugin_extension"}  # fmt: skip
_DRIVERS = {"cuda": "libcuda.so.1"}
_TYPED_FFI = 1


class Layout(NamedTuple):
    """A plug-in of a kind that is known: its platform, major version and the library's name."""

    platform: str
    version: int
    library: str


def layout_of(module: str) -> Layout | None:
    """Return the layout of `jax_plugins.xla_cuda12` and its likes; None for any other module."""
    found = re.fullmatch(r"jax_plugins\.xla_(cuda|rocm)(\d+)", module)
    if found is None:
        return None
    return Layout(found[1], int(found[2]), f"xla_{found[1]}_plugin.so")


def platform_name(platform: str, device: Any = None) -> str:
    """The name that programs know a platform by: "cuda" or "rocm" where devices say "gpu"."""
    if platform != "gpu":
        return platform
    version = getattr(getattr(device, "client", None), "platform_version", "")
    return "rocm" if "rocm" in version.lower() else "cuda"


@functools.cache
def driver_problem(platform: str) -> str | None:
    """Why the driver of a platform is not there; None if it is, or if it cannot be told."""
    name = _DRIVERS.get(platform)
    if name is None or sys.platform != "linux":
        return None
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return f"the driver of the GPU is not installed here: {error}"
    return None


def is_present(platform: str) -> bool:
    """Whether this machine has a GPU of NVIDIA's that the program has not hidden."""
    if platform != "cuda" or driver_problem(platform):
        return False
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1")
    return not hidden and any(re.fullmatch(r"nvidia\d+", name) for name in os.listdir("/dev"))


def options(platform: str, visible: list[int] | None) -> dict[str, Any]:
    """The options of the client, from the environment and the settings.

    XLA_PYTHON_CLIENT_MEM_FRACTION, XLA_PYTHON_CLIENT_PREALLOCATE, XLA_PYTHON_CLIENT_ALLOCATOR and
    XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB are read by jaxlib. Which devices: the setting
    `cuda_visible_devices` (JAX_CUDA_VISIBLE_DEVICES) is "all" or a list as in "0,2", counted among
    those that CUDA_VISIBLE_DEVICES leaves; it wins over `visible`, this process's share.
    """
    values = dict(xla_client.generate_pjrt_gpu_plugin_options(), platform_name=platform)
    name = f"{platform}_visible_devices"
    text = getattr(local.context.settings, name)
    if text != "all":
        try:
            visible = [int(part) for part in text.split(",") if part.strip()]
        except ValueError:
            raise ValueError(
                f"jax_{name}={text!r} is not understood: give 'all' or numbers of devices as in "
                "'0,2'."
            ) from None
    if visible is not None:
        values["visible_devices"] = visible
    return values


def register_kernels(layout: Layout, api: Any) -> None:
    """Make the plug-in's kernels known to XLA, by the plug-in's own way `api` into it."""
    platform = layout.platform.upper()
    try:
        extension = importlib.import_module(_EXTENSIONS[layout.platform].format(layout.version))
    except ImportError:
        return  # the library alone is installed: programs without kernels run
    # A handler that upstream has set in this process does the same, and stays.
    xla_client.register_custom_type_handler(
        platform, functools.partial(extension.register_custom_type, api)
    )
    xla_client.register_custom_call_handler(
        platform, functools.partial(extension.register_custom_call_target, api)
    )
    for name, kind in extension.ffi_types().items():
        xla_client.register_custom_type(name, kind, platform=platform)
    for name, handler in extension.ffi_handlers().items():
        xla_client.register_custom_call_target(
            name, handler, platform=platform, api_version=_TYPED_FFI
        )
    for module in _KERNELS:
        kernels = importlib.import_module(f"jaxlib.{module}")
        for name, target, version in kernels.registrations()[platform]:
            xla_client.register_custom_call_target(
                name, target, platform=platform, api_version=version
            )
    for module in _REGISTER_THEMSELVES:
        importlib.import_module(f"jaxlib.{module}")


@functools.cache
def cudnn_version() -> int | None:
    """The version of cuDNN that an installed plug-in brings, such as 91002; None if there is none."""
    for name in ("jax_cuda13_plugin._versions", "jax_cuda12_plugin._versions"):
        try:
            return importlib.import_module(name).cudnn_get_version()
        except (ImportError, RuntimeError):
            continue
    return None
