"""minijax: an independent second implementation of JAX, on top of jaxlib's XLA.

The public names are upstream's. This file gathers those of the core and of the transforms; the
modules of libraries (`minijax.numpy`, `minijax.random`, ...) are loaded when first used.
"""

import importlib as _importlib
import os as _os

# XLA's C++ logs to standard error at "info" unless told otherwise before it is loaded.
_os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

from minijax import (
    numpy,  # attaches the operators of Array
    tree,
    tree_util,
)
from minijax.arrays.array import ArrayImpl as _ArrayImpl
from minijax.arrays.array import Shard
from minijax.arrays.dispatch import effects_barrier
from minijax.config import config
from minijax.config import setting_context as _setting_context
from minijax.core import printing as _printing  # registers how jaxprs print
from minijax.core.array import Array
from minijax.core.avals import typeof
from minijax.core.refs import Ref
from minijax.core.source import named_scope
from minijax.dtypes import float0
from minijax.jacobian import hessian, jacfwd, jacobian, jacrev
from minijax.lax.pmap import pmap
from minijax.lax.refs import empty_ref, free_ref, freeze, new_ref
from minijax.lax.shard_map import shard_map
from minijax.lax.smap import smap
from minijax.numpy.dynamic_slices import dslice as ds
from minijax.runtime.mesh import PartitionSpec as P
from minijax.runtime.mesh import (
    make_mesh,
    set_mesh,
)
from minijax.runtime.named import NamedSharding
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
from minijax.transforms.assembling import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from minijax.transforms.caches import clear_caches, live_arrays
from minijax.transforms.checkpoint import checkpoint, remat
from minijax.transforms.closures import closure_convert, custom_gradient
from minijax.transforms.custom_jvp import custom_jvp
from minijax.transforms.custom_vjp import custom_vjp
from minijax.transforms.explicit import reshard
from minijax.transforms.grad import (
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from minijax.transforms.jit import jit
from minijax.transforms.policies import checkpoint_policies
from minijax.transforms.staging import (
    ShapeDtypeStruct,
    disable_jit,
    ensure_compile_time_eval,
    eval_shape,
    make_jaxpr,
    named_call,
)
from minijax.transforms.transfer import (
    block_until_ready,
    copy_to_host_async,
    device_get,
    device_put,
)
from minijax.transforms.vmap import vmap
from minijax.version import __version__, __version_info__

_SETTINGS = {
    "allow_f16_reductions": None,
    "array_garbage_collection_guard": None,
    "auto_pcast": None,
    "check_tracer_leaks": True,
    "debug_infs": True,
    "debug_key_reuse": True,
    "debug_nans": True,
    "default_device": None,
    "default_matmul_precision": None,
    "default_prng_impl": None,
    "enable_checks": True,
    "enable_custom_prng": True,
    "enable_x64": True,
    "explain_cache_misses": True,
    "legacy_prng_key": None,
    "log_compiles": True,
    "no_tracing": True,
    "numpy_dtype_promotion": None,
    "numpy_rank_promotion": None,
    "thread_guard": True,
    "threefry_partitionable": True,
    "transfer_guard": None,
    "transfer_guard_device_to_device": None,
    "transfer_guard_device_to_host": None,
    "transfer_guard_host_to_device": None,
}
for _name, _default in _SETTINGS.items():
    globals()[_name] = _setting_context(_name, *(() if _default is None else (_default,)))
checking_leaks = _setting_context("check_tracer_leaks", True)

_LIBRARIES = frozenset(
    ("ad", "ad_checkpoint", "api_util", "custom_batching", "custom_derivatives", "distributed", "dlpack", "dtypes",
     "errors", "experimental", "export", "extend", "ffi", "flatten_util", "interpreters", "lax", "memory", "ops", "ref", "sharding", "stages",
     "test_util", "typing",
     "debug", "image", "monitoring", "nn", "profiler", "random", "scipy")
)  # fmt: skip
_FUNCTIONS = {
    "fwd_and_bwd": "minijax.transforms.fwd_and_bwd",
    "print_environment_info": "minijax.environment",
    "pure_callback": "minijax.lax.callbacks",
    **dict.fromkeys(("host_count", "host_id", "host_ids"), "minijax.environment"),
}


def __getattr__(name):
    if name in _LIBRARIES:
        return _importlib.import_module(f"minijax.{name}")
    if name in _FUNCTIONS:
        return getattr(_importlib.import_module(_FUNCTIONS[name]), name)
    return _importlib.import_module("minijax.deprecated").moved("minijax", name)


def __dir__():
    return sorted({*globals(), *_LIBRARIES, *_FUNCTIONS})
