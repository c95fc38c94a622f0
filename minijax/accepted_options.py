"""Upstream's options that change no result here, so that programs that set them run.

An option is fixed (minijax always works so, and refuses any other value) or a hint, which is kept and
otherwise left alone. `minijax.config` and the stand-in's `jax.config` take both. Ground layer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any

__all__ = ["FIXED", "context", "hints", "is_accepted", "read", "update"]

FIXED: dict[str, Any] = {
    "eager_constant_folding": False,
    "jax_disable_bwd_checks": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_disallow_mesh_context_manager": False,
    "jax_enable_pgle": False,
    "jax_export_calling_convention_version": 10,
    "jax_high_dynamic_range_gumbel": False,
    "jax_mutable_array_checks": True,
    "jax_refs_to_pins": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_use_direct_linearize": True,
    "jax_use_shardy_partitioner": True,
}
hints: dict[str, Any] = {
    "check_vma": False,
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
    "jax_distributed_debug": False,
    "jax_dump_ir_modes": "stablehlo",
    "jax_dump_ir_to": "",
    "jax_embedded_constants_max_bytes": 32,
    "jax_enable_preemption_service": True,
    "jax_enable_recoverability": False,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_export_ignore_forward_compatibility": False,
    "jax_force_dcn_cross_host_transfers": False,
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_include_debug_info_in_dumps": True,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_log_checkpoint_residuals": False,
    "jax_logging_level": "NOTSET",
    "jax_memory_fitting_level": "O2",
    "jax_mock_gpu_topology": "",
    "jax_mosaic_allow_hlo": False,
    "jax_optimization_level": "UNKNOWN",
    "jax_oneapi_visible_devices": "all",
    "jax_pallas_enable_debug_checks": False,
    "jax_pallas_poison_buffers": False,
    "jax_pallas_use_mosaic_gpu": True,
    "jax_pallas_verbose_errors": False,
    "jax_persistent_cache_enable_xla_caches": "none",
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_pjrt_client_create_options": None,
    "jax_platform_name": "",
    "jax_pprint_use_color": True,
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
    "jax_ragged_dot_use_ragged_dot_instruction": True,
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
    "jax_use_emit_pipeline_primitive": False,
    "jax_use_magma": "auto",
    "jax_use_simplified_jaxpr_constants": False,
    "jax_xla_backend": "",
    "jax_xla_profile_version": 0,
    "mock_num_gpu_processes": 0,
}


def is_accepted(name: Any) -> bool:
    """Whether it is the name of such an option, with the prefix `jax_` if it has one."""
    return name in FIXED or name in hints


def read(name: str) -> Any:
    """Return the value of an option for the whole process."""
    return FIXED[name] if name in FIXED else hints[name]


def update(name: str, value: Any) -> None:
    """Set a hint for the whole process. ValueError for another value of an option that is fixed."""
    if name not in FIXED:
        hints[name] = value
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
