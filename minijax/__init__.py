"""minijax: an independent second implementation of JAX, on top of jaxlib's XLA.

The public names are upstream's. This file gathers those of the core and of the transforms; the
modules of libraries (`minijax.numpy`, `minijax.random`, ...) are loaded when first used.
"""

import importlib as _importlib
import os as _os
from typing import TYPE_CHECKING

# XLA's C++ logs to standard error at "info" unless told otherwise before it is loaded.
_os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

from minijax.collector import collector_paused as _collector_paused

with _collector_paused():
    from minijax import numpy  # attaches the operators of Array

from minijax import tree, tree_util
from minijax.accepted_options import context as _accepted_context
from minijax.arrays.array import ArrayImpl as _ArrayImpl
from minijax.config import config, make_user_context
from minijax.config import setting_context as _setting_context
from minijax.config import when_set as _when_set
from minijax.core.array import Array
from minijax.core.avals import typeof
from minijax.core.caches import clear_caches
from minijax.core.source import named_scope
from minijax.dtypes import float0
from minijax.features.checkpoint.checkpoint import checkpoint, remat
from minijax.features.compile_time import ensure_compile_time_eval
from minijax.features.custom_rules.custom_jvp import custom_jvp
from minijax.features.effects.pending import effects_barrier
from minijax.features.live_arrays import live_arrays
from minijax.features.named_call import disable_jit, named_call
from minijax.features.sharding.array_members import Shard
from minijax.features.sharding.explicit import reshard
from minijax.features.sharding.transfer import (
    block_until_ready,
    copy_to_host_async,
    device_get,
    device_put,
)
from minijax.features.slots import slots as _slots
from minijax.features.stages.struct import ShapeDtypeStruct, eval_shape
from minijax.late_names import late_names as _late_names
from minijax.namespace import is_present as _is_present
from minijax.numpy.dynamic_slices import dslice as ds
from minijax.runtime.mesh import PartitionSpec as P
from minijax.runtime.mesh import (
    make_mesh,
    set_mesh,
)
from minijax.runtime.named_sharding import NamedSharding
from minijax.runtime.platforms import (
    Device,
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from minijax.tracebacks import public as _public
from minijax.transforms.grad import (
    grad,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from minijax.transforms.jit import jit
from minijax.transforms.make_jaxpr import make_jaxpr
from minijax.transforms.vmap import vmap
from minijax.version import __version__ as __version__
from minijax.version import __version_info__ as __version_info__

if _is_present("minijax.features.references"):
    from minijax.features.references.cells import Ref
    from minijax.lax import ref_views as _ref_views  # what references can do
    from minijax.lax.refs import empty_ref, free_ref, freeze, new_ref

allow_f16_reductions = _setting_context("allow_f16_reductions")
array_garbage_collection_guard = _setting_context("array_garbage_collection_guard")
auto_pcast = _setting_context("auto_pcast")
check_tracer_leaks = _setting_context("check_tracer_leaks", True)
debug_infs = _setting_context("debug_infs", True)
debug_key_reuse = _setting_context("debug_key_reuse", True)
debug_nans = _setting_context("debug_nans", True)
default_device = _setting_context("default_device")
default_matmul_precision = _setting_context("default_matmul_precision")
default_prng_impl = _setting_context("default_prng_impl")
enable_checks = _setting_context("enable_checks", True)
enable_custom_prng = _setting_context("enable_custom_prng", True)
enable_x64 = _setting_context("enable_x64", True)
explain_cache_misses = _setting_context("explain_cache_misses", True)
jax2tf_associative_scan_reductions = _accepted_context("jax2tf_associative_scan_reductions")
legacy_prng_key = _setting_context("legacy_prng_key")
log_compiles = _setting_context("log_compiles", True)
no_execution = _setting_context("no_execution", True)
no_tracing = _setting_context("no_tracing", True)
numpy_dtype_promotion = _setting_context("numpy_dtype_promotion")
numpy_rank_promotion = _setting_context("numpy_rank_promotion")
remove_size_one_mesh_axis_from_type = _accepted_context("jax_remove_size_one_mesh_axis_from_type")
softmax_custom_jvp = _setting_context("softmax_custom_jvp", True)
thread_guard = _setting_context("thread_guard", True)
threefry_partitionable = _setting_context("threefry_partitionable", True)
transfer_guard = _setting_context("transfer_guard")
transfer_guard_device_to_device = _setting_context("transfer_guard_device_to_device")
transfer_guard_device_to_host = _setting_context("transfer_guard_device_to_host")
transfer_guard_host_to_device = _setting_context("transfer_guard_host_to_device")
checking_leaks = _setting_context("check_tracer_leaks", True)

# What asks for tools, which are loaded then.
_when_set("strict", lambda on: _importlib.import_module("minijax.explain.strictness").turn(on))
_slots.fill(
    tell_nan=lambda *program: _importlib.import_module("minijax.explain.nans").tell_nan(*program)
)

__all__ = [
    "Array", "Device", "NamedSharding", "P", "Ref", "ShapeDtypeStruct", "Shard", "ad",
    "allow_f16_reductions", "api_util", "array_garbage_collection_guard", "auto_pcast",
    "block_until_ready", "check_tracer_leaks", "checking_leaks", "checkpoint",
    "checkpoint_policies", "clear_caches", "closure_convert", "config", "copy_to_host_async",
    "core", "custom_batching", "custom_derivatives", "custom_gradient", "custom_jvp", "custom_vjp",
    "debug", "debug_infs", "debug_key_reuse", "debug_nans", "default_backend", "default_device",
    "default_matmul_precision", "default_prng_impl", "device_count", "device_get", "device_put",
    "devices", "disable_jit", "distributed", "dlpack", "ds", "dtypes", "effects_barrier",
    "empty_ref", "enable_checks", "enable_custom_prng", "enable_x64", "ensure_compile_time_eval",
    "errors", "eval_shape", "experimental", "explain_cache_misses", "export", "ffi", "float0",
    "free_ref", "freeze", "fwd_and_bwd", "grad", "hessian", "host_count", "host_id", "host_ids",
    "image", "interpreters", "jacfwd", "jacobian", "jacrev", "jax2tf_associative_scan_reductions",
    "jit", "jvp", "lax", "legacy_prng_key",
    "linear_transpose", "linearize", "live_arrays", "local_device_count", "local_devices",
    "log_compiles", "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays", "make_jaxpr", "make_mesh", "make_user_context", "memory", "monitoring",
    "named_call", "named_scope", "new_ref", "nn", "no_execution", "no_tracing", "numpy", "numpy_dtype_promotion",
    "numpy_rank_promotion", "ops", "pmap", "print_environment_info", "process_count",
    "process_index", "process_indices", "profiler", "pure_callback", "random", "ref", "remat",
    "remove_size_one_mesh_axis_from_type",
    "reshard", "scipy", "set_mesh", "shard_map", "sharding", "smap", "softmax_custom_jvp", "stages", "thread_guard",
    "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
    "transfer_guard_device_to_host", "transfer_guard_host_to_device", "tree", "tree_util", "typeof",
    "typing", "value_and_grad", "version", "vjp", "vmap",
]  # fmt: skip

_LIBRARIES = (
    "ad", "ad_checkpoint", "api_util", "custom_batching", "custom_derivatives", "debug", "distributed", "dlpack",
    "dtypes", "errors", "experimental", "export", "extend", "ffi", "flatten_util", "image", "interpreters", "lax",
    "memory", "monitoring", "nn", "ops", "profiler", "random", "ref", "scipy", "sharding", "stages", "test_util", "typing",
)  # fmt: skip
_LATE = {
    "minijax.environment": "host_count host_id host_ids print_environment_info",
    "minijax.explain.strictness": "strict",
    "minijax.features.checkpoint.policies": "checkpoint_policies",
    "minijax.features.custom_rules.closures": "closure_convert custom_gradient",
    "minijax.features.custom_rules.custom_vjp": "custom_vjp",
    "minijax.features.fwd_and_bwd": "fwd_and_bwd",
    "minijax.features.linear_transpose": "linear_transpose",
    "minijax.features.sharding.assembling": (
        "make_array_from_callback make_array_from_process_local_data "
        "make_array_from_single_device_arrays"
    ),
    "minijax.jacobians": "hessian jacfwd jacobian jacrev",
    "minijax.lax.callbacks": "pure_callback",
    "minijax.lax.pmap": "pmap",
    "minijax.lax.shard_map": "shard_map",
    "minijax.lax.smap": "smap",
}


if TYPE_CHECKING:
    from minijax import (
        ad,
        ad_checkpoint,
        api_util,
        core,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        dlpack,
        dtypes,
        errors,
        experimental,
        export,
        extend,
        ffi,
        flatten_util,
        image,
        interpreters,
        lax,
        memory,
        monitoring,
        nn,
        ops,
        profiler,
        random,
        ref,
        scipy,
        sharding,
        stages,
        test_util,
        typing,
        version,
    )
    from minijax.environment import host_count, host_id, host_ids, print_environment_info
    from minijax.explain.strictness import strict
    from minijax.features.checkpoint.policies import checkpoint_policies
    from minijax.features.custom_rules.closures import closure_convert, custom_gradient
    from minijax.features.custom_rules.custom_vjp import custom_vjp
    from minijax.features.fwd_and_bwd import fwd_and_bwd
    from minijax.features.linear_transpose import linear_transpose
    from minijax.features.sharding.assembling import (
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from minijax.jacobians import hessian, jacfwd, jacobian, jacrev
    from minijax.lax.callbacks import pure_callback
    from minijax.lax.pmap import pmap
    from minijax.lax.shard_map import shard_map
    from minijax.lax.smap import smap
else:
    __getattr__ = _late_names(__name__, _LATE, _LIBRARIES)


__dir__ = _public(__name__)
