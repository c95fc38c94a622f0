"""What stands for `jax.config` and `jax._src.config`: minijax's settings, as states and as flags.

Floor 7: may import all of minijax. A flag of upstream's is one of three things here: a setting of
minijax (`minijax.config`); a way of working that minijax always has, or never (`_FIXED`), which
cannot be set to anything else; or a hint that changes no result (`_HINTS`), which is kept and
otherwise left alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys
from collections.abc import Iterator
from typing import Any

from minijax.config import Settings, local
from minijax.config import canonical_name as _canonical
from minijax.config import config as _own
from minijax.config import override as _override

__all__ = ["State", "config", "parse_flags_with_absl", "read", "update"]

_FIXED: dict[str, Any] = {
    "jax_check_static_indices": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_enable_pgle": False,
    "jax_export_calling_convention_version": 10,
    "jax_high_dynamic_range_gumbel": False,
    "jax_mutable_array_checks": True,
    "jax_no_execution": False,
    "jax_use_direct_linearize": True,
    "jax_use_shardy_partitioner": True,
}
_HINTS: dict[str, Any] = {
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2_000_000_000,
    "jax_compilation_cache_include_metadata_in_key": False,
    "jax_compiler_enable_remat_pass": True,
    "jax_debug_log_modules": "",
    "jax_distributed_debug": False,
    "jax_dump_ir_to": None,
    "jax_export_ignore_forward_compatibility": False,
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_log_checkpoint_residuals": False,
    "jax_logging_level": "NOTSET",
    "jax_persistent_cache_enable_xla_caches": "none",
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_platform_name": "",
    "jax_pprint_use_color": True,
    "jax_traceback_in_locations_limit": 100,
}
_hints = dict(_HINTS)
_SETTINGS = frozenset(field.name for field in dataclasses.fields(Settings))


def _fixed(name: str, value: Any) -> None:
    if value != _FIXED[name]:
        raise ValueError(
            f"minijax, which stands in for JAX in this process, always works as {name}="
            f"{_FIXED[name]!r}: it cannot be set to {value!r}."
        )


def _defined(values: dict[str, Any]) -> Any:
    """absl's module of flags, with one for each setting; None if absl is not installed."""
    try:
        flags = importlib.import_module("absl.flags")
    except ModuleNotFoundError:
        return None
    for name, value in values.items():
        if name not in flags.FLAGS:
            kind = {bool: "bool", int: "integer", float: "float"}.get(type(value), "string")
            shown = value if kind != "string" or isinstance(value, str) else None
            getattr(flags, f"DEFINE_{kind}")(name, shown, f"The setting {name}.")
    return flags


class _Config:
    """`jax.config`: flags as attributes with their prefix, `update` and `read`."""

    use_absl = False

    @property
    def x64_enabled(self) -> bool:
        return _own.jax_enable_x64

    @property
    def values(self) -> dict[str, Any]:
        return {**_own.values, **_FIXED, **_hints}

    def update(self, name: str, value: Any) -> None:
        """Set a flag for the whole process. AttributeError for one that there is not."""
        if name in _FIXED:
            _fixed(name, value)
        elif name in _hints:
            _hints[name] = value
        else:
            _own.update(name, value)

    def read(self, name: str) -> Any:
        """The value of a flag for the whole process."""
        extra = {**_FIXED, **_hints}
        return extra[name] if name in extra else _own.read(name)

    @contextlib.contextmanager
    def override(self, name: str, value: Any) -> Iterator[None]:
        """Set a flag for this thread while the context lasts."""
        if name in _FIXED:
            _fixed(name, value)
            yield
        elif name in _hints:
            saved, _hints[name] = _hints[name], value
            try:
                yield
            finally:
                _hints[name] = saved
        else:
            with _override(_canonical(name), value):
                yield

    def parse_flags_with_absl(self) -> None:
        """Take the settings that are given on the command line, if absl is installed."""
        flags = _defined(self.values)
        if flags is not None:
            flags.FLAGS(sys.argv, known_only=True)
            self.complete_absl_config(flags)

    def config_with_absl(self) -> None:
        """Take them once absl's `app.run` has parsed the command line."""
        flags = _defined(self.values)
        if flags is not None:
            app = importlib.import_module("absl.app")
            app.call_after_init(lambda: self.complete_absl_config(flags))

    def complete_absl_config(self, absl_flags: Any) -> None:
        """Take the settings that were given as flags."""
        flags = absl_flags.FLAGS
        for name in self.values:
            if name in flags and flags[name].present:
                self.update(name, flags[name].value)

    def __getattr__(self, name: str) -> Any:
        if name in _FIXED:
            return _FIXED[name]
        if name in _hints:
            return _hints[name]
        return getattr(_own, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"settings are changed by config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *dir(_own), *_FIXED, *_hints})


config = _Config()
update, read, parse_flags_with_absl = config.update, config.read, config.parse_flags_with_absl
_unset = object()


class State:
    """One setting: `.value` is what it is in this thread; called, it is a context that sets it."""

    def __init__(self, name: str):
        self.name = self._name = name

    @property
    def value(self) -> Any:
        return getattr(config, self.name)

    def get_global(self) -> Any:
        return config.values[self.name]

    def get_local(self) -> Any:
        """What this thread overrides it with; an object that means nothing if it does not."""
        return local.context.overrides.get(self.name.removeprefix("jax_"), _unset)

    def set_global(self, value: Any) -> None:
        config.update(self.name, value)

    def __call__(self, new_val: Any = True) -> Any:
        return config.override(self.name, new_val)

    def __bool__(self) -> bool:
        raise TypeError(
            "bool() not supported for instances of type 'State' "
            "(did you mean to use 'State.value' instead?)"
        )

    def __repr__(self) -> str:
        return f"State({self.name!r})"


def __getattr__(name: str) -> Any:
    full = name if name.startswith("jax_") else f"jax_{name}"
    if full.removeprefix("jax_") in _SETTINGS or full in _FIXED or full in _hints:
        found = globals()[name] = State(full)
        return found
    raise AttributeError(
        f"minijax has no setting {name!r}: dir(jax.config) lists those there are."
    )  # fmt: skip
