"""Compiling a module and running it."""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import errors, monitoring
from minijax.config import local
from minijax.runtime import lapack, platforms, plugins
from minijax.runtime import sharding as shardings
from minijax.runtime.agreement import check_agreement
from minijax.runtime.cache import cacheable, disk_cache, program_key, timed, timed_content
from minijax.runtime.small_programs import is_small
from minijax.runtime.versions import (
    OLDER_EMITTERS,
    CompileOptions,
    HloSharding,
    _jax,
    result_handler,
    set_efforts,
    set_levels,
    set_overrides,
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
    """XLA's options for one program over these devices: one partition a device if `spmd`.

    For accelerators the partitioner's passes run over a single partition too: among them are
    simplifications that no later pass makes. For the CPU they cost time to compile alone.
    """
    spmd = spmd or devices[0].platform != "cpu"
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
        build.allow_spmd_sharding_propagation_to_parameters = [len(devices) > 1]
    settings = local.context.settings
    if settings.disable_most_optimizations:
        build.debug_options.xla_backend_optimization_level = 0
        build.debug_options.xla_llvm_disable_expensive_passes = True
    set_efforts(build, settings.exec_time_optimization_effort, settings.memory_fitting_effort)
    set_levels(build, settings.optimization_level, settings.memory_fitting_level)
    if overrides:
        set_overrides(options, overrides)
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
        set_overrides(options, overrides)
    return options


def inspecting(callback: Callable[[Any], None]) -> tuple[bytes, Any]:
    """Return the attribute of a program that reports a sharding when it is compiled, and what must
    live on.
    """
    return _jax.encode_inspect_sharding_callback(callback), callback


transformations: set[tuple] = set()  # passes that were added to XLA's
_in_memory: dict[tuple, Any] = {}
_pending: dict[tuple, threading.Lock] = {}
_MOST_IN_MEMORY = 256  # about half a megabyte each; what is in use lives on without this


class CompileOnly:
    """A program that was compiled for devices which are only described: to be looked at, or kept."""

    def __init__(self, executable: Any, devices: tuple):
        self._executable = executable
        self._kind = devices[0].device_kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executable, name)

    def execute_sharded(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"This program was compiled for {self._kind!r}, a machine that is described and not "
            "attached, so that it cannot be called here: keep it with "
            "experimental.serialize_executable.serialize and load it there, or lower and compile "
            "the function for devices of this machine."
        )


def is_compile_only(devices: tuple) -> bool:
    """Whether devices are only described, and can be compiled for."""
    return type(devices[0].client) is _jax.CompileOnlyPyClient


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
    given as an MLIR module, and so is one for devices that are only described.
    """
    if is_compile_only(devices):
        options = compile_options(devices, spmd=spmd, overrides=overrides)
        where = shardings.device_list(devices)
        return CompileOnly(devices[0].client.compile(text, where, options), devices)
    platforms.check_not_forked()
    lapack.prepare_kernels(text, devices[0].platform)
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
        settings.memory_fitting_effort,
        settings.optimization_level,
        settings.memory_fitting_level,
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


_CACHE = "/jax/compilation_cache/"  # what the names of its events begin with
_MODULE_NAME = re.compile(r"module @(\S+)")


def _compile(text: str, devices: tuple, options: CompileOptions, cached: bool) -> Any:
    """Load an executable from the disk if it is there, else compile and keep it."""
    client, device_list = devices[0].client, shardings.device_list(devices)
    settings, begun = local.context.settings, time.perf_counter()
    kept = disk_cache() if cached and not transformations and cacheable(client) else None
    used = "tasks_using_cache" if settings.enable_compilation_cache else "task_disabled_cache"
    monitoring.record_first(_CACHE + used)
    if kept is None:
        return _compiled(client, text, device_list, options)
    monitoring.record_event(_CACHE + "compile_requests_use_cache")
    key = program_key(text, devices, options)
    payload = kept.get(key)
    found = _MODULE_NAME.search(text)
    name = found[1] if found else "a module"
    asked = settings.compilation_cache_dir is not None  # the cache is on without it
    loud = asked and settings.explain_cache_misses
    told = (name, f"{name}-{key}")
    if payload is not None:
        try:
            saved, content = timed_content(payload)
            executable = client.deserialize_executable(content, device_list, options)
        except Exception as error:
            kept.drop(key)
            warnings.warn(
                f"A compiled program in the cache could not be loaded and is compiled anew: {error}",
                stacklevel=2,
            )
        else:
            took = time.perf_counter() - begun
            monitoring.log(
                "Persistent compilation cache hit for %r with key %r", *told,
                loud=asked and settings.log_compiles,
            )  # fmt: skip
            monitoring.record_event(_CACHE + "cache_hits")
            monitoring.record_event_duration_secs(_CACHE + "compile_time_saved_sec", saved - took)
            monitoring.record_event_duration_secs(_CACHE + "cache_retrieval_time_sec", took)
            return executable
    monitoring.log("PERSISTENT COMPILATION CACHE MISS for %r with key %r", *told, loud=loud)
    begun = time.perf_counter()
    executable = _compiled(client, text, device_list, options)
    took, least = time.perf_counter() - begun, settings.persistent_cache_min_compile_time_secs
    if took < least:
        monitoring.log(
            "Not writing persistent cache entry for %r because it took < %.2f seconds to compile "
            "(%.2fs)", name, least, took, loud=loud,
        )  # fmt: skip
        return executable
    try:
        payload = timed(took, executable.serialize())
        least = settings.persistent_cache_min_entry_size_bytes
        if len(payload) < least:
            monitoring.log(
                "Not writing persistent cache entry with key %r since its size (%d bytes) is less "
                "than threshold (%d bytes)", told[1], len(payload), least, loud=loud,
            )  # fmt: skip
            return executable
        monitoring.log("Writing %s to persistent compilation cache with key %r", *told, loud=loud)
        kept.put(key, payload)
        monitoring.record_event(_CACHE + "cache_misses")
    except Exception as error:
        if settings.raise_persistent_cache_errors:
            raise
        kept.warn(f"A compiled program could not be kept on disk: {error}")
    return executable


_NO_KERNEL = r"No FFI handler registered for (\S+)"


def _may_be_quick(client: Any, options: CompileOptions) -> bool:
    """Whether this is jaxlib's CPU, with XLA's own optimizations: without them bits would differ.

    A plug-in for the CPU may bring an XLA of another version, with other options.
    """
    known = bool(OLDER_EMITTERS) and client.platform == "cpu" and client not in plugins.identities
    level = options.executable_build_options.debug_options.xla_backend_optimization_level
    return known and level > 0 and not options.env_option_overrides


def _compiled(client: Any, text: str, device_list: Any, options: CompileOptions) -> Any:
    if _may_be_quick(client, options) and is_small(text):
        options.env_option_overrides = list(OLDER_EMITTERS.items())
    try:
        return client.compile_and_load(text, device_list, options)
    except _jax.JaxRuntimeError as error:
        lacking = re.search(_NO_KERNEL, str(error))
        if lacking is None:
            raise
        raise _jax.JaxRuntimeError(
            f"{error}. The plug-in of platform {client.platform!r} ({client.platform_version!r}) "
            f"has no kernel {lacking[1]!r}: compute this on the CPU, with minijax.device_put(x, "
            "minijax.devices('cpu')[0]), or install a plug-in that brings it."
        ) from None


def clear_executables() -> None:
    _in_memory.clear()


def result_shardings(executable: Any) -> list[Any]:
    """Return how XLA lays out the results of a compiled program."""
    return [HloSharding.from_proto(found) for found in executable.get_output_shardings() or ()]


def argument_shardings(executable: Any) -> list[Any]:
    """Return how a compiled program takes its arguments."""
    return [HloSharding.from_proto(found) for found in executable.get_parameter_shardings() or ()]


def unoptimized_cost(computation: Any, device: Any) -> dict[str, float] | None:
    """XLA's estimate for a computation as it was written; None for devices that are not here."""
    if is_compile_only((device,)):
        return None
    return _jax.hlo_module_cost_analysis(device.client, computation.as_hlo_module())


def optimized_cost(executable: Any) -> dict[str, float] | None:
    """The compiler's estimate for what it made; None where a plug-in has none."""
    try:
        found = executable.cost_analysis()
    except _jax.JaxRuntimeError as error:
        if "UNIMPLEMENTED" in str(error):
            return None
        raise
    return found[0] if isinstance(found, list) else found
