"""Settings: one frozen structure, a global value of it, and overrides for the current thread.

Ground floor: imports the standard library only.

Hot paths read two things: `local.context.settings` (the settings that hold in this thread now) and
`local.context.key`, an object that is the same exactly while everything that can change a trace or a
compiled program is the same. Both are kept up to date when a setting changes, so reading costs nothing.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Settings", "config", "local", "override", "setting_context", "update"]


def _flag(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("y", "yes", "t", "true", "on", "1"):
        return True
    if lowered in ("n", "no", "f", "false", "off", "0", ""):
        return False
    raise ValueError(f"a boolean setting takes true or false, not {text!r}")


def _optional(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text in ("", "None") else parse(text)


def _setting(default, parse=str, *, traced=False, choices=None, factory=None):
    """A field of `Settings`; `traced` marks those that change what tracing or compiling gives."""
    metadata = {"parse": parse, "traced": traced, "choices": choices, "factory": factory}
    return dataclasses.field(default=default, metadata=metadata)


def _guard():
    levels = (None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")
    return _setting(None, _optional(str), choices=levels)


_PRECISIONS = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "bfloat16_3x", "fastest",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
    "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Settings:
    """Every setting there is. Upstream's names; each may be written with the prefix `jax_`."""

    enable_x64: bool = _setting(False, _flag, traced=True)
    numpy_dtype_promotion: str = _setting("standard", traced=True, choices=("standard", "strict"))
    numpy_rank_promotion: str = _setting("allow", traced=True, choices=("allow", "warn", "raise"))
    default_matmul_precision: str | None = _setting(
        None, _optional(str), traced=True, choices=(None, *_PRECISIONS)
    )
    default_device: Any = _setting(None, _optional(str), traced=True)
    default_prng_impl: str = _setting(
        "threefry2x32", traced=True, choices=("threefry2x32", "rbg", "unsafe_rbg")
    )
    threefry_partitionable: bool = _setting(True, _flag, traced=True)
    enable_custom_prng: bool = _setting(False, _flag, traced=True)
    legacy_prng_key: str = _setting("allow", traced=True, choices=("allow", "warn", "error"))
    debug_key_reuse: bool = _setting(False, _flag, traced=True)
    disable_jit: bool = _setting(False, _flag, traced=True)
    debug_nans: bool = _setting(False, _flag)
    debug_infs: bool = _setting(False, _flag)
    check_tracer_leaks: bool = _setting(False, _flag, traced=True)
    enable_checks: bool = _setting(False, _flag)
    explain_cache_misses: bool = _setting(False, _flag)
    log_compiles: bool = _setting(False, _flag)
    softmax_custom_jvp: bool = _setting(True, _flag, traced=True)
    allow_f16_reductions: bool = _setting(False, _flag, traced=True)
    auto_pcast: bool = _setting(True, _flag, traced=True)
    no_tracing: bool = _setting(False, _flag)
    random_seed_offset: int = _setting(0, int, traced=True)
    array_garbage_collection_guard: str = _setting("allow", choices=("allow", "log", "fatal"))
    thread_guard: bool = _setting(False, _flag)
    transfer_guard: str | None = _guard()
    transfer_guard_host_to_device: str | None = _guard()
    transfer_guard_device_to_device: str | None = _guard()
    transfer_guard_device_to_host: str | None = _guard()
    traceback_filtering: str = _setting(
        "auto", choices=("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames")
    )
    platforms: str | None = _setting(None, _optional(str))
    cuda_visible_devices: str = _setting("all")
    rocm_visible_devices: str = _setting("all")
    num_cpu_devices: int = _setting(-1, int)
    cpu_enable_async_dispatch: bool = _setting(True, _flag)
    cpu_collectives_implementation: str | None = _setting("gloo", _optional(str))
    enable_compilation_cache: bool = _setting(True, _flag)
    compilation_cache_dir: str | None = _setting(None, _optional(str))
    compilation_cache_max_size: int = _setting(1 << 30, int)
    persistent_cache_min_compile_time_secs: float = _setting(0.0, float)
    raise_persistent_cache_errors: bool = _setting(False, _flag)
    disable_most_optimizations: bool = _setting(False, _flag, traced=True)
    exec_time_optimization_effort: float = _setting(0.0, float, traced=True)
    memory_fitting_effort: float = _setting(0.0, float, traced=True)


_FIELDS = {field.name: field for field in dataclasses.fields(Settings)}
_TRACED = tuple(name for name, field in _FIELDS.items() if field.metadata["traced"])


class _Key:
    """Compares by identity; see `Context.key`."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple):
        self.parts = parts


_keys: dict[tuple, _Key] = {}


class Context:
    """What holds in one thread: its settings, its current trace, named axes and mesh, name stack,
    `varying`: the manual mesh axes for which the types of values say whether they vary, and `marks`:
    the scope that programs begin in, "" or one with attributes for the compiled program.

    The layers above own the meaning of `trace`, `axes` and `mesh`; they stand here so that one
    thread-local read gives everything a hot path needs.
    """

    __slots__ = (
        "__weakref__", "axes", "key", "marks", "mesh", "numbers_key", "overrides", "scope",
        "settings", "source", "trace", "varying",
    )  # fmt: skip

    def __init__(self):
        self.overrides: dict[str, Any] = {}
        self.trace: Any = Context.outermost
        self.axes: tuple = ()
        self.mesh: Any = None
        self.varying: frozenset = frozenset()
        self.scope: str = ""
        self.marks: str = ""
        self.source: Any = None
        self.refresh()

    def refresh(self) -> None:
        """Recompute `settings` and `key` from the global settings and this thread's state."""
        if self.overrides:
            self.settings = dataclasses.replace(_global_settings, **self.overrides)
        else:
            self.settings = _global_settings
        self.refresh_key()

    def refresh_key(self) -> None:
        settings = self.settings
        marks = tuple(self.marks.marks.items()) if self.marks else ()
        traced = [getattr(settings, name) for name in _TRACED]
        parts = (*traced, self.axes, self.mesh, self.varying, marks)
        self.key = _keys.get(parts) or _keys.setdefault(parts, _Key(parts))
        # Numbers that are on a device already are not to be found where their transfer is guarded.
        guard = settings.transfer_guard_host_to_device or settings.transfer_guard
        self.numbers_key = (self.key, guard) if guard else self.key


def traced_differences(key: _Key, other: _Key) -> list[tuple[str, Any, Any]]:
    """In what two keys of a context differ: names, and the values of each."""
    names = [*[f"jax_{name}" for name in _TRACED], "named axes", "mesh", "manual axes", "marks"]
    pairs = zip(names, key.parts, other.parts, strict=True)
    return [(name, new, old) for name, new, old in pairs if new != old]


Context.outermost = None  # the trace of a thread that traces nothing; `core.trace` sets it


class _Local(threading.local):
    def __init__(self):
        self.context = Context()
        _contexts.add(self.context)


def _from_environment() -> Settings:
    values = {}
    for name, field in _FIELDS.items():
        for prefix in ("MINIJAX_", "JAX_"):
            text = os.environ.get(prefix + name.upper())
            if text is not None:
                try:
                    value = field.metadata["parse"](text)
                except ValueError as error:
                    raise ValueError(f"{prefix}{name.upper()}={text!r}: {error}") from None
                values[name] = _checked(name, value)
                break
    return Settings(**values)


def _checked(name: str, value: Any) -> Any:
    metadata = _FIELDS[name].metadata
    parse, choices = metadata["parse"], metadata["choices"]
    if parse is _flag:
        if isinstance(value, str):
            return _flag(value)
        if not isinstance(value, (bool, int)):
            raise ValueError(f"setting {name!r} takes a bool, not {value!r}")
        return bool(value)
    if choices is not None and value not in choices:
        named = ", ".join(repr(choice) for choice in choices)
        raise ValueError(
            f"new enum value must be in [{named}], got {value} of type {type(value)}: setting "
            f"{name!r}."
        )
    return value


def canonical_name(name: str) -> str:
    """The field that `name` (with or without the prefix `jax_`) stands for."""
    short = name.removeprefix("jax_") if isinstance(name, str) else name
    if short not in _FIELDS:
        raise AttributeError(
            f"Unrecognized config option: {name}; dir(minijax.config) lists those there are."
        )
    return short


_lock = threading.Lock()
_contexts: weakref.WeakSet[Context] = weakref.WeakSet()
_global_settings = _from_environment()
local = _Local()


def update(name: str, value: Any) -> None:
    """Set a setting for the whole process. Raises AttributeError for an unknown name."""
    global _global_settings
    name = canonical_name(name)
    value = _checked(name, value)
    with _lock:
        _global_settings = dataclasses.replace(_global_settings, **{name: value})
        for context in list(_contexts):
            context.refresh()


@contextmanager
def override(name: str, value: Any) -> Iterator[None]:
    """Set a setting for this thread while the context lasts."""
    context = local.context
    saved = context.overrides
    context.overrides = {**saved, name: _checked(name, value)}
    context.refresh()
    try:
        yield
    finally:
        context.overrides = saved
        context.refresh()


_NO_VALUE = object()


def setting_context(name: str, default: Any = _NO_VALUE) -> Callable[..., Any]:
    """The public context manager of one setting, such as `enable_x64(True)`."""

    def context(new_val: Any = default):
        if new_val is _NO_VALUE:
            raise TypeError(f"{name}() takes the new value of the setting, as {name}(value)")
        if _FIELDS[name].metadata["choices"] is not None:
            _checked(name, new_val)
        return override(name, new_val)

    context.__name__ = context.__qualname__ = name
    context.__doc__ = f"Context manager: set {name!r} for this thread while it lasts."
    return context


class _Config:
    """The object `minijax.config`: settings as attributes, `update`, and `parse_flags_with_absl`."""

    def update(self, name: str, value: Any) -> None:
        """Set a setting for the whole process, as in `config.update("jax_enable_x64", True)`."""
        update(name, value)

    def read(self, name: str) -> Any:
        """The value of a setting for the whole process, whatever this thread overrides."""
        return getattr(_global_settings, canonical_name(name))

    @property
    def values(self) -> dict[str, Any]:
        return {"jax_" + name: getattr(_global_settings, name) for name in _FIELDS}

    def parse_flags_with_absl(self) -> None:
        """Nothing to parse: settings come from the environment and from `update`."""

    config_with_absl = parse_flags_with_absl

    def __getattr__(self, name: str) -> Any:
        return getattr(local.context.settings, canonical_name(name))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"settings are changed by config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return ["update", "read", "values", *("jax_" + name for name in _FIELDS)]


config = _Config()
