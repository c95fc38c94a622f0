"""The differences between the versions of jaxlib that are supported; nothing else knows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaxlib import _ifrt_proxy as ifrt_proxy
from jaxlib import _jax, xla_client
from jaxlib import version as _version

__all__ = [
    "OLDER_EMITTERS", "approx_top_k_size", "ifrt_proxy", "jaxlib_version", "result_handler",
    "set_efforts", "set_levels", "set_overrides",
]  # fmt: skip

jaxlib_version: tuple[int, ...] = tuple(int(part) for part in _version.__version__.split(".")[:3])
jaxlib_version_text: str = _version.__version__
# The library with XLA in it, beside the modules that are thin faces of it.
_common = Path(_jax.__file__).with_name("libjax_common.so")
library_path: str = str(_common) if _common.exists() else _jax.__file__
# Options of XLA that have it make kernels for the CPU without MLIR; jaxlib 0.12 has no other way.
OLDER_EMITTERS: dict[str, bool] = (
    {"xla_cpu_use_fusion_emitters": False} if jaxlib_version[:2] == (0, 10) else {}
)
HloSharding = xla_client.HloSharding
CompileOptions = xla_client.CompileOptions
Client = _jax.Client


def _skip_checks_is_known() -> bool:
    return "_skip_checks" in (_jax.array_result_handler.__doc__ or "")


if _skip_checks_is_known():

    def result_handler(aval, sharding, committed: bool):
        """Turns a program's raw result into a jaxlib array of this type."""
        return _jax.array_result_handler(aval, sharding, committed, _skip_checks=True)

else:

    def result_handler(aval, sharding, committed: bool):
        """Turns a program's raw result into a jaxlib array of this type."""
        return _jax.array_result_handler(aval, sharding, committed)


_EFFORTS = ("exec_time_optimization_effort", "memory_fitting_effort")


def set_efforts(build: Any, execution: float, memory: float) -> None:
    """Set how hard XLA tries for speed and for little memory; jaxlib 0.12 knows no such numbers."""
    for name, effort in zip(_EFFORTS, (execution, memory), strict=True):
        if effort and hasattr(build, name):
            setattr(build, name, effort)


_LEVELS = {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}  # the numbers of XLA's levels


def set_levels(build: Any, execution: str, memory: str) -> None:
    """Set the levels of XLA's optimizations for speed and for little memory."""
    build.optimization_level, build.memory_fitting_level = _LEVELS[execution], _LEVELS[memory]


def set_overrides(options: Any, overrides: dict[str, Any]) -> None:
    """Set options of one program: flags of XLA's, and those of a build, which have other names."""
    build, flags = options.executable_build_options, {}
    for name, value in overrides.items():
        if name.endswith("_level") and hasattr(build, name):
            setattr(build, name, _LEVELS.get(value, value))
        elif name in ("fdo_profile", *_EFFORTS) and hasattr(build, name):
            setattr(build, name, value)
        else:
            flags[name] = value
    options.env_option_overrides = list(flags.items())


def approx_top_k_size(size: int, rank: int, k: int, recall: float, override: int) -> int:
    """Return how many candidates XLA's approximate top-k keeps before it picks `k` of them."""
    found = _jax.approx_top_k_reduction_output_size(size, rank, k, recall, False, override)
    return found[0]
