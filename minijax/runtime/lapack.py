"""LAPACK as jaxlib brings it: kernels that programs call by name, on the CPU or on the host of a GPU.

The kernels of the CPU are registered with XLA, and all are pointed at SciPy's LAPACK, the first time that
a program which names one is compiled or loaded: importing them costs 50 to 100 ms. Upstream may have
registered the same kernels in this process, or may do so later: neither minds.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from minijax.runtime.versions import xla_client

__all__ = ["prepare_all", "prepare_kernels"]

_TYPED_FFI = 1


def prepare_kernels(program: Any, platform: str) -> None:
    """Prepare the kernels that a StableHLO module, or its text, calls on a platform."""
    name, prepare = ("lapack_", _on_cpu) if platform == "cpu" else ("hybrid_", _beside_gpu)
    if name in (program if type(program) is str else str(program)):
        prepare()


def prepare_all(platform: str) -> None:
    """Prepare the kernels that a compiled program may call, whatever it calls."""
    (_on_cpu if platform == "cpu" else _beside_gpu)()


@functools.cache
def _on_cpu() -> None:
    kernels = importlib.import_module("jaxlib.cpu._lapack")
    for name, capsule in kernels.registrations().items():
        xla_client.register_custom_call_target(
            name, capsule, platform="cpu", api_version=_TYPED_FFI
        )
    kernels.initialize()


@functools.cache
def _beside_gpu() -> None:
    importlib.import_module("jaxlib.gpu_solver").initialize_hybrid_kernels()
