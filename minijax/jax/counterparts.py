"""Small stand-ins for private names of upstream's that libraries use; `names` says which.

Floor 7: may import all of minijax.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

import numpy as np

from minijax.config import local
from minijax.core import source
from minijax.core.trace import current, eval_trace
from minijax.core.tracebacks import boundary
from minijax.dtypes import ExtendedDType
from minijax.jax.names import API_VERSION
from minijax.tree_util import is_tree_node

__all__ = [
    "API_VERSION", "API_VERSION_INFO", "CheckifyOut", "DType",
    "api_boundary", "common_devices_indices_map", "cuda_versions", "global_result_handlers",
    "include_frame", "is_persistent_cache_enabled", "node_registry", "supports_inf",
    "trace_state_clean", "wait_for_tokens",
]  # fmt: skip

cuda_versions = (
    None  # upstream's CUDA plug-in tells its versions through Python; none is imported here
)

API_VERSION_INFO = tuple(map(int, API_VERSION.split(".")))

DType = np.dtype | ExtendedDType

CheckifyOut = TypeVar("CheckifyOut")  # for annotations


# Upstream looks here for how to show results of a type; minijax has one type of array.
global_result_handlers: dict[type, Callable] = {}


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype has an infinity."""
    return bool(np.isinf(np.asarray(np.inf).astype(dtype).astype(np.float32)))


def trace_state_clean() -> bool:
    """Whether no transformation is at work."""
    return current() is eval_trace


def is_persistent_cache_enabled() -> bool:
    """Whether compiled programs are kept on disk."""
    return bool(local.context.settings.enable_compilation_cache)


def common_devices_indices_map(s: Any, global_shape: tuple[int, ...]) -> Any:
    """For each device of a sharding, the part of an array of this shape that it has."""
    return s.devices_indices_map(global_shape)


def wait_for_tokens() -> None:
    """Upstream waits for ordered effects at exit; minijax runs them in order as they come."""


def api_boundary(fun: Callable, **options: Any) -> Callable:
    """A function of a library's face: errors leave it without the frames of internal code."""
    return boundary(fun)


def include_frame(frame: Any) -> bool:
    """Whether a frame is of the user's program, and not of a library that asked to be left out."""
    code: CodeType = frame.f_code
    return not code.co_filename.startswith(tuple(source.excluded_prefixes))


class _NodeRegistry:
    """Upstream's registry of pytree classes, as far as it can be asked whether it has one."""

    def __contains__(self, kind: type) -> bool:
        return is_tree_node(kind)


node_registry = _NodeRegistry()
