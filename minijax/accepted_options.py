"""Upstream's options that are no settings of minijax, so that programs that set them run.

An option is fixed (minijax always works so, and refuses any other value) or a hint, which is kept and
otherwise left alone. A few hints say what is written into files and modules or told in warnings and
logs, which platform is the default one, or whether rules of `custom_vjp` are checked; the modules that
do so read `hints`. `minijax.config` and the stand-in's `jax.config` take both; hints are read from the
environment too. Ground layer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

__all__ = [
    "FIXED", "check_choice", "check_type", "context", "from_environment", "hints", "is_accepted",
    "is_changed", "parse_flag", "read", "update",
]  # fmt: skip

FIXED: dict[str, Any] = {
    "jax_remove_size_one_mesh_axis_from_type": False,
}
hints: dict[str, Any] = {
    "check_vma": False,
    "eager_constant_folding": False,
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
    "jax_backend_target": "",
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
    "jax_cross_host_transfer_socket_address": "",
    "jax_cross_host_transfer_timeout_seconds": None,
    "jax_cross_host_transfer_transfer_size": None,
    "jax_cross_host_transport_addresses": "",
    "jax_custom_vjp3": False,
    "jax_debug_leaked_clients_on_clear_backends": False,
    "jax_debug_log_modules": "",
    "jax_disable_bwd_checks": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_distributed_debug": False,
    "jax_dump_ir_modes": "stablehlo",
    "jax_dump_ir_to": "",
    "jax_embedded_constants_max_bytes": 32,
    "jax_enable_pgle": False,
    "jax_enable_preemption_service": True,
    "jax_enable_recoverability": False,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_export_calling_convention_version": 10,
    "jax_export_ignore_forward_compatibility": False,
    "jax_force_dcn_cross_host_transfers": False,
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_include_debug_info_in_dumps": True,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_log_checkpoint_residuals": False,
    "jax_logging_level": "NOTSET",
    "jax_mock_gpu_topology": "",
    "jax_mosaic_allow_hlo": False,
    "jax_mutable_array_checks": True,
    "jax_oneapi_visible_devices": "all",
    "jax_pallas_enable_debug_checks": False,
    "jax_pallas_poison_buffers": False,
    "jax_pallas_use_mosaic_gpu": True,
    "jax_pallas_verbose_errors": False,
    "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_pjrt_client_create_options": None,
    "jax_platform_name": "",
    "jax_pprint_use_color": True,
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
    "jax_ragged_dot_use_ragged_dot_instruction": True,
    "jax_refs_to_pins": False,
    "jax_remat3": False,
    "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    "jax_scan3": False,
    "jax_send_traceback_to_runtime": "off",
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts": False,
    "jax_share_binary_between_hosts_timeout_ms": 1_200_000,
    "jax_sort_devices_by_process_index": True,
    "jax_source_url_schema": None,
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_traceback_in_locations_limit": 100,
    "jax_tracer_error_num_traceback_frames": 5,
    "jax_use_direct_linearize": True,
    "jax_use_emit_pipeline_primitive": False,
    "jax_use_magma": "auto",
    "jax_use_shardy_partitioner": True,
    "jax_use_simplified_jaxpr_constants": False,
    "jax_xla_backend": "",
    "jax_xla_profile_version": 0,
    "mock_num_gpu_processes": 0,
}
_BEHAVIORS = ("ignore", "raise")
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "jax_error_checking_behavior_divide": _BEHAVIORS,
    "jax_error_checking_behavior_nan": _BEHAVIORS,
    "jax_error_checking_behavior_oob": _BEHAVIORS,
    "jax_logging_level": (None, "NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "jax_send_traceback_to_runtime": ("off", "on", "full"),
    "jax_use_magma": ("off", "on", "auto"),
}
_OPTIONAL = {"jax_persistent_cache_enable_xla_caches"}  # texts that may be None
_UNCHECKED = {  # upstream takes any value of these
    "jax_backend_target", "jax_check_proxy_envs", "jax_compiler_detailed_logging_min_ops",
    "jax_cross_host_transfer_socket_address", "jax_cross_host_transfer_timeout_seconds",
    "jax_cross_host_transfer_transfer_size", "jax_cross_host_transport_addresses",
    "jax_dump_ir_modes", "jax_dump_ir_to", "jax_force_dcn_cross_host_transfers",
    "jax_include_debug_info_in_dumps", "jax_mock_gpu_topology", "jax_oneapi_visible_devices",
    "jax_pallas_verbose_errors", "jax_pjrt_client_create_options", "jax_platform_name",
    "jax_sort_devices_by_process_index", "jax_tracer_error_num_traceback_frames", "jax_xla_backend",
    "mock_num_gpu_processes",
}  # fmt: skip


# -- values --------------------------------------------------------------------------------------


def parse_flag(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("y", "yes", "t", "true", "on", "1"):
        return True
    if lowered in ("n", "no", "f", "false", "off", "0", ""):
        return False
    raise ValueError(f"a boolean setting takes true or false, not {text!r}")


def from_environment(name: str, parse: Callable[[str], Any]) -> list[Any]:
    """Return the value that a variable of the environment gives to an option, in a list, or none.

    - `name`: of the option, with its prefix `jax_`
    - `parse`: function from the text to the value
    """
    for variable in (f"MINI{name.upper()}", name.upper()):
        text = os.environ.get(variable)
        if text is not None:
            try:
                return [parse(text)]
            except ValueError as error:
                known = f'Invalid value "{text}" for JAX flag {name}'
                if parse is parse_flag:
                    known = f"invalid truth value {text!r} for environment {variable!r}"
                raise ValueError(f"{known}: {variable}={text!r}: {error}") from None
    return []


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """ValueError unless the value of a setting is among its choices."""
    if value not in choices:
        named = [choice for choice in choices if choice is not None]
        either = "None or " if None in choices else ""
        raise ValueError(
            f"new enum value must be {either}in {named}, got {value} of type {type(value)}. It is "
            f"the setting {name!r}."
        )


_CALLED = {str: "string", int: "int", float: "float"}


def check_type(value: Any, kind: type, optional: bool = True) -> None:
    """ValueError unless the value of a setting is of a type; TypeError if it may not be None."""
    if (value is None and optional) or isinstance(value, (int, float) if kind is float else kind):
        return
    said, stop = f"new {_CALLED[kind]} config value must be", "." if kind is str else ""
    got = f"of type {kind.__name__}, got {value} of type {type(value)}{stop}"
    raise ValueError(f"{said} None or {got}") if optional else TypeError(f"{said} {got}")


def _checked(name: str, value: Any, default: Any) -> Any:
    """Return a value as the hint keeps it; an error of `check_choice` or `check_type`."""
    if name in _CHOICES:
        check_choice(name, value, _CHOICES[name])
    elif isinstance(default, bool) and name not in _UNCHECKED:
        return bool(value)
    elif name not in _UNCHECKED:
        kind = str if default is None else type(default)
        check_type(value, kind, optional=kind is not str or default is None or name in _OPTIONAL)
    return value


def _read_environment() -> None:
    for name, default in hints.items():
        parse = (
            parse_flag if isinstance(default, bool) else int if isinstance(default, int) else str
        )
        for value in from_environment(name, parse):
            try:
                hints[name] = _checked(name, value, default)
            except ValueError as error:
                raise ValueError(f'Invalid value "{value}" for JAX flag {name}: {error}') from None


_defaults = dict(hints)
_read_environment()


def is_accepted(name: Any) -> bool:
    """Whether it is the name of such an option, with the prefix `jax_` if it has one."""
    return name in FIXED or name in hints


def read(name: str) -> Any:
    """Return the value of an option for the whole process."""
    return FIXED[name] if name in FIXED else hints[name]


def is_changed(name: str) -> bool:
    """Whether a hint has another value than at first."""
    return hints[name] != _defaults[name]


def update(name: str, value: Any) -> None:
    """Set a hint for the whole process. ValueError for another value of an option that is fixed."""
    if name not in FIXED:
        hints[name] = _checked(name, value, _defaults[name]) if name in _defaults else value
    elif value != FIXED[name]:
        raise ValueError(
            f"minijax always works as {name}={FIXED[name]!r}: it cannot be set to {value!r}."
        )


def context(name: str) -> Callable[..., AbstractContextManager[None]]:
    """Return the public context manager of an option."""

    @contextmanager
    def set_within(new_val: Any = True):
        before = read(name)
        update(name, new_val)
        try:
            yield
        finally:
            update(name, before)

    set_within.__name__ = set_within.__qualname__ = name.removeprefix("jax_")
    set_within.__doc__ = f"""Set the option `{name}`, which changes no result here, in a `with` block.

    - `new_val`: a boolean

    The whole process is affected. {"ValueError for True. " if name in FIXED else ""}
    Source: the setting `{name}` of `jax.config`.

    >>> with jax.{set_within.__name__}(False):
    ...     print(jax.config.{name})
    False
    """
    return set_within
