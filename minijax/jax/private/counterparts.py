"""Small stand-ins for private names of upstream's that libraries use; `names` says which."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax import monitoring, tree_util
from minijax.config import local
from minijax.core.avals import ShapedArray
from minijax.core.trace import current, eval_trace
from minijax.dtypes import ExtendedDType
from minijax.features.effects.kinds import DebugEffect, OrderedDebugEffect
from minijax.features.references.cells import AbstractRef
from minijax.interpreters.mlir import ir
from minijax.jax.names import API_VERSION
from minijax.runtime import platforms, plugins
from minijax.tracebacks import boundary, excluded_prefixes

cuda_versions = (
    None  # upstream's CUDA plug-in tells its versions through Python; none is imported here
)

API_VERSION_INFO = tuple(map(int, API_VERSION.split(".")))

DType = np.dtype | ExtendedDType

CheckifyOut = TypeVar("CheckifyOut")  # for annotations


debug_effect, ordered_debug_effect = DebugEffect(), OrderedDebugEffect()

IrTypes = ir.Type | tuple[ir.Type, ...]

MeshAxisName = AxisName = AxisSize = Any  # for annotations

# A sharding that is not given: minijax says None.
UNSPECIFIED = None
UnspecifiedValue = type(None)


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
    """Return for each device of a sharding, the part of an array of this shape that it has."""
    return s.devices_indices_map(global_shape)


def wait_for_tokens() -> None:
    """Upstream waits for ordered effects at exit; minijax runs them in order as they come."""


def api_boundary(fun: Callable, **options: Any) -> Callable:
    """A function of a library's face: errors leave it without the frames of internal code."""
    return boundary(fun)


def include_frame(frame: Any) -> bool:
    """Whether a frame is of the user's program, and not of a library that asked to be left out."""
    code: CodeType = frame.f_code
    return not code.co_filename.startswith(tuple(excluded_prefixes))


class _RegistryEntry(NamedTuple):
    """The functions that take values of one class apart, and that make them of their children."""

    to_iter: Callable[[Any], tuple]
    from_iter: Callable[[Any, Iterable], Any]


class _NodeRegistry:
    """Upstream's registry of pytree classes, as far as it can be asked about one."""

    def __contains__(self, kind: type) -> bool:
        if not tree_util.is_tree_node(kind):
            return False
        return not (issubclass(kind, tuple) and hasattr(kind, "_fields"))  # no named tuples

    def __getitem__(self, kind: type) -> _RegistryEntry:
        if kind not in self:
            raise KeyError(kind)

        def rebuilt(data: Any, children: Iterable) -> Any:
            children = list(children)
            leaf = tree_util.tree_structure(0)
            return tree_util.PyTreeDef.from_node_data_and_children(
                tree_util.default_registry, (kind, data), [leaf] * len(children)
            ).unflatten(children)

        return _RegistryEntry(tree_util.flatten_one_level, rebuilt)

    def get(self, kind: type, default: Any = None) -> Any:
        try:
            return self[kind]
        except KeyError:
            return default


node_registry = _NodeRegistry()


def shaped_array_ref(shape: tuple[int, ...], dtype: Any, weak_type: bool = False) -> AbstractRef:
    """The type of a reference to an array."""
    return AbstractRef(ShapedArray(shape, dtype, weak_type))


# -- listeners -----------------------------------------------------------------------------------------


def get_event_listeners() -> list[Callable]:
    return list(monitoring._events)


def get_event_duration_listeners() -> list[Callable]:
    return list(monitoring._durations)


def get_event_time_span_listeners() -> list[Callable]:
    return list(monitoring._spans)


def get_scalar_listeners() -> list[Callable]:
    return list(monitoring._scalars)


# -- platforms -----------------------------------------------------------------------------------------

_ALIASES = {"gpu": ["cuda", "rocm", "oneapi"]}


def known_platforms() -> set[str]:
    """The platforms that programs can be written for."""
    return {"cpu", "tpu", *_ALIASES, *_ALIASES["gpu"], *plugins.candidates}


def is_known_platform(platform: str) -> bool:
    return platform in known_platforms()


def expand_platform_alias(platform: str) -> list[str]:
    """The platforms that a name stands for."""
    return _ALIASES.get(platform, [platform])


def canonicalize_platform(platform: str) -> str:
    """The platform that a name stands for here; RuntimeError for one of several that has none."""
    if platform not in _ALIASES:
        return platform
    started = platforms.backends()
    for name in _ALIASES[platform]:
        if name in started:
            return name
    raise RuntimeError(platforms.missing(platform))


def get_device_backend(device: Any = None) -> Any:
    """The client of a device, or of the default one."""
    return platforms.backend() if device is None else device.client


def using_pjrt_c_api(backend: Any = None) -> bool:
    """Whether the platform came as a plug-in."""
    return "PJRT C API" in platforms.backend(backend).platform_version


def check_jaxlib_version(
    jax_version: str, jaxlib_version: str, minimum_jaxlib_version: str
) -> tuple:
    """jaxlib's version in numbers; RuntimeError for one that is too old, or newer than what runs."""
    numbers = lambda text: tuple(int(part) for part in re.findall(r"\d+", text)[:3])
    if numbers(jaxlib_version) < numbers(minimum_jaxlib_version):
        raise RuntimeError(
            f"jaxlib is version {jaxlib_version}, but this version of jax requires version >= "
            f"{minimum_jaxlib_version}."
        )
    if numbers(jaxlib_version) > numbers(jax_version):
        raise RuntimeError(
            f"jaxlib version {jaxlib_version} is newer than and incompatible with jax version "
            f"{jax_version}. Please update your jax and/or jaxlib packages."
        )
    return numbers(jaxlib_version)
