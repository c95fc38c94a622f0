"""What stands for `jax.config` and `jax._src.config`: minijax's settings, as states and as flags.

Floor 7: may import all of minijax. A flag of upstream's is one of three things here: a setting of
minijax (`minijax.config`); a way of working that minijax always has, or never (`_FIXED`), which
cannot be set to anything else; or a hint that changes no result (`_HINTS`), which is kept and
otherwise left alone, but for those on logging (`_SET`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax.config import Settings, local
from minijax.config import canonical_name as _canonical
from minijax.config import config as _own
from minijax.config import override as _override
from minijax.jax import logs

__all__ = [
    "State", "bool_state", "config", "enum_state", "float_state", "int_state",
    "optional_string_state", "parse_flags_with_absl", "read", "string_state", "trace_context", "update",
]  # fmt: skip

_FIXED: dict[str, Any] = {
    "eager_constant_folding": False,
    "jax_check_static_indices": False,
    "jax_disable_bwd_checks": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_disallow_mesh_context_manager": False,
    "jax_enable_pgle": False,
    "jax_export_calling_convention_version": 10,
    "jax_high_dynamic_range_gumbel": False,
    "jax_mutable_array_checks": True,
    "jax_no_execution": False,
    "jax_refs_to_pins": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_use_direct_linearize": True,
    "jax_use_shardy_partitioner": True,
}
_HINTS: dict[str, Any] = {
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
    "jax_bcoo_cusparse_lowering": False,
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2_000_000_000,
    "jax_check_proxy_envs": True,
    "jax_compilation_cache_check_contents": False,
    "jax_compilation_cache_expect_pgle": False,
    "jax_compilation_cache_include_metadata_in_key": False,
    "jax_compiler_detailed_logging_min_ops": 10,
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_get_global_topology_timeout_minutes": 5,
    "jax_cpu_get_local_topology_timeout_minutes": 2,
    "jax_debug_leaked_clients_on_clear_backends": False,
    "jax_debug_log_modules": "",
    "jax_distributed_debug": False,
    "jax_dump_ir_modes": "stablehlo",
    "jax_dump_ir_to": "",
    "jax_embedded_constants_max_bytes": 32,
    "jax_enable_preemption_service": True,
    "jax_enable_recoverability": False,
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_export_ignore_forward_compatibility": False,
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_include_debug_info_in_dumps": True,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_log_checkpoint_residuals": False,
    "jax_logging_level": "NOTSET",
    "jax_memory_fitting_level": "O2",
    "jax_optimization_level": "UNKNOWN",
    "jax_oneapi_visible_devices": "all",
    "jax_pallas_enable_debug_checks": False,
    "jax_pallas_poison_buffers": False,
    "jax_pallas_use_mosaic_gpu": True,
    "jax_pallas_verbose_errors": False,
    "jax_persistent_cache_enable_xla_caches": "none",
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_pjrt_client_create_options": None,
    "jax_platform_name": "",
    "jax_pprint_use_color": True,
    "jax_ragged_dot_use_ragged_dot_instruction": True,
    "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts": False,
    "jax_share_binary_between_hosts_timeout_ms": 1_200_000,
    "jax_sort_devices_by_process_index": True,
    "jax_source_url_schema": None,
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_traceback_in_locations_limit": 100,
    "jax_tracer_error_num_traceback_frames": 5,
    "jax_use_magma": "auto",
    "jax_use_simplified_jaxpr_constants": False,
    "jax_xla_profile_version": 0,
}
_SET: dict[str, Callable[[Any], None]] = {  # what setting one does besides
    "jax_debug_log_modules": logs.update_debug_log_modules,
    "jax_logging_level": logs.update_logging_level_global,
}
_hints = dict(_HINTS)
_SETTINGS = frozenset(field.name for field in dataclasses.fields(Settings))


def _fixed(name: str, value: Any) -> None:
    if value != _FIXED[name]:
        raise ValueError(
            f"minijax, which stands in for JAX in this process, always works as {name}="
            f"{_FIXED[name]!r}: it cannot be set to {value!r}."
        )


def _check(name: str, value: Any) -> None:
    if name in _kinds:
        _kinds[name](value)


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
            _check(name, value)
            if name in _SET:
                _SET[name](value)
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
            _check(name, value)
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


# -- settings that a program defines for itself ---------------------------------------------------------

_kinds: dict[str, Callable[[Any], None]] = {}  # what refuses a value that is none of the setting's


def _define(name: str, default: Any, check: Callable[[Any], None]) -> State:
    if not name.startswith("jax_"):
        raise AssertionError(f"a setting's name begins with jax_, got {name!r}")
    if name in config.values:
        raise Exception(f"Config option {name} already defined")
    _hints[name], _kinds[name] = default, check
    return State(name)


def _typed(kind: type, optional: bool = False) -> Callable[..., State]:
    """A function that defines a setting whose values are of this type."""

    def check(value: Any) -> None:
        if value is not None and not isinstance(value, kind):
            raise ValueError(
                f"new {kind.__name__} config value must be None or of type {kind.__name__}, got "
                f"{value} of type {type(value)}"
            )

    def define(name: str, default: Any, help: str = "", **options: Any) -> State:
        if not isinstance(default, kind) and not (optional and default is None):
            raise TypeError(
                f"Default value must be of type {kind.__name__}, got {default} of type "
                f"{getattr(type(default), '__name__', type(default))}"
            )
        return _define(name, default, check)

    return define


bool_state, int_state, float_state, string_state = map(_typed, (bool, int, float, str))
optional_string_state = _typed(str, optional=True)


def enum_state(
    name: str, enum_values: Sequence[str], default: str, help: str = "", **options: Any
) -> State:
    """Define a setting that is one of these strings."""
    values = list(enum_values)

    def check(value: Any) -> None:
        if value not in values:
            raise ValueError(
                f"new enum value must be in {values}, got {value} of type {type(value)}."
            )

    check(default)
    return _define(name, default, check)


def trace_context() -> Any:
    """An object that is the same while everything that can change a program is the same."""
    return local.context.key


def __getattr__(name: str) -> Any:
    if name == "checking_leaks":
        return State("jax_check_tracer_leaks")
    full = name if name.startswith("jax_") else f"jax_{name}"
    if full.removeprefix("jax_") in _SETTINGS or full in _FIXED or full in _hints:
        found = globals()[name] = State(full)
        return found
    raise AttributeError(
        f"minijax has no setting {name!r}: dir(jax.config) lists those there are."
    )  # fmt: skip
