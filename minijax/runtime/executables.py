"""Compiling a module and running it. May import the ground floor and `runtime`."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import errors
from minijax.config import local
from minijax.runtime import sharding as shardings
from minijax.runtime.agreement import check_agreement
from minijax.runtime.cache import disk_cache, program_key
from minijax.runtime.versions import (
    CompileOptions,
    HloSharding,
    _jax,
    result_handler,
    xla_client,
)

__all__ = [
    "JaxRuntimeError",
    "clear_executables",
    "compile_module",
    "compile_options",
    "result_handler",
]

JaxRuntimeError = errors.JaxRuntimeError = _jax.JaxRuntimeError


def compile_options(
    devices: tuple, *, spmd: bool = False, overrides: dict[str, Any] | None = None
) -> CompileOptions:
    """XLA's options for one program over these devices: one partition a device if `spmd`."""
    options = CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = 1
    options.num_partitions = build.num_partitions = len(devices)
    assignment = np.array([[device.id for device in devices]])
    options.device_assignment = xla_client.DeviceAssignment.create(assignment)
    build.device_assignment = options.device_assignment
    if spmd:
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_output = [True]
    settings = local.context.settings
    if settings.disable_most_optimizations:
        build.debug_options.xla_backend_optimization_level = 0
        build.debug_options.xla_llvm_disable_expensive_passes = True
    if settings.exec_time_optimization_effort:
        build.exec_time_optimization_effort = settings.exec_time_optimization_effort
    if overrides:
        options.env_option_overrides = list(overrides.items())
    return options


def bare_options(
    replicas: int, partitions: int, assignment: Any, overrides: dict[str, Any] | None,
    profile: bytes | None,
) -> CompileOptions:  # fmt: skip
    """XLA's options for a program over devices that are given by number, or not yet."""
    options = CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = replicas
    options.num_partitions = build.num_partitions = partitions
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    if assignment is not None:
        numbers = np.asarray(assignment)
        for name, place, wanted in (("replicas", 0, replicas), ("partitions", 1, partitions)):
            if numbers.ndim != 2 or numbers.shape[place] != wanted:
                raise ValueError(
                    f"device_assignment does not match num_{name}: {assignment} vs {wanted}."
                )
        options.device_assignment = xla_client.DeviceAssignment.create(numbers)
        build.device_assignment = options.device_assignment
    if profile is not None:
        build.fdo_profile = profile
    if overrides:
        options.env_option_overrides = list(overrides.items())
    return options


def inspecting(callback: Callable[[Any], None]) -> tuple[bytes, Any]:
    """What a program carries to tell of a sharding when it is compiled, and what must live on."""
    return _jax.encode_inspect_sharding_callback(callback), callback


transformations: set[tuple] = set()  # passes that were added to XLA's
_in_memory: dict[tuple, Any] = {}
_pending: dict[tuple, threading.Lock] = {}
_MOST_IN_MEMORY = 256  # about half a megabyte each; what is in use lives on without this


def compile_module(
    text: Any,
    devices: tuple,
    *,
    spmd: bool = False,
    overrides: dict[str, Any] | None = None,
    cached: bool = True,
    callbacks: Sequence[Callable] = (),
) -> Any:
    """The loaded executable of a StableHLO module. Equal modules are compiled once.

    `cached=False` keeps it off the disk: it refers to this process, as callbacks do. A module that
    calls back names its `callbacks` by number, so that equal ones are different programs; it is
    given as an MLIR module.
    """
    if callbacks:
        options = compile_options(devices, spmd=spmd, overrides=overrides)
        where = shardings.device_list(devices)
        return devices[0].client.compile_and_load(text, where, options, list(callbacks))
    settings = local.context.settings
    key = (
        text,
        devices,
        spmd,
        tuple(sorted(overrides.items())) if overrides else (),
        settings.disable_most_optimizations,
        settings.exec_time_optimization_effort,
    )
    executable = _in_memory.pop(key, None)
    if executable is not None:
        _in_memory[key] = executable  # now the latest: the first are dropped
        return executable
    with _pending.setdefault(key, threading.Lock()):  # threads that want the same one wait for it
        executable = _in_memory.get(key)
        if executable is None:
            check_agreement(text, devices)
            options = compile_options(devices, spmd=spmd, overrides=overrides)
            executable = _compile(text, devices, options, cached)
            while len(_in_memory) >= _MOST_IN_MEMORY:
                _in_memory.pop(next(iter(_in_memory)), None)
            _in_memory[key] = executable
    _pending.pop(key, None)
    return executable


def _compile(text: str, devices: tuple, options: CompileOptions, cached: bool) -> Any:
    """From the disk if it is there, else compiled and kept."""
    client, device_list = devices[0].client, shardings.device_list(devices)
    kept = disk_cache() if cached and not transformations else None
    if kept is None:
        return client.compile_and_load(text, device_list, options)
    key = program_key(text, devices, options)
    payload = kept.get(key)
    if payload is not None:
        try:
            return client.deserialize_executable(payload, device_list, options)
        except Exception as error:
            kept.drop(key)
            warnings.warn(
                f"A compiled program in the cache could not be loaded and is compiled anew: {error}",
                stacklevel=2,
            )
    executable = client.compile_and_load(text, device_list, options)
    try:
        kept.put(key, executable.serialize())
    except Exception as error:
        if local.context.settings.raise_persistent_cache_errors:
            raise
        warnings.warn(f"A compiled program could not be kept on disk: {error}", stacklevel=2)
    return executable


def clear_executables() -> None:
    _in_memory.clear()


def result_shardings(executable: Any) -> list[Any]:
    """How XLA lays out the results of a compiled program."""
    return [HloSharding.from_proto(found) for found in executable.get_output_shardings() or ()]


def unoptimized_cost(computation: Any, device: Any) -> dict[str, float]:
    """XLA's estimate for a computation as it was written."""
    return _jax.hlo_module_cost_analysis(device.client, computation.as_hlo_module())
