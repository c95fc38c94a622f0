"""Names of upstream's that are not public there, and what minijax has in their place.

Data only: a module of upstream's, and for each name in it the place in minijax, `module:path`. Only
what well-known libraries use and what has an honest counterpart stands here.
"""

API_VERSION = "0.10.2"  # the level of upstream's API that is spoken

_HERE = "minijax.jax.private.counterparts"
_INTERNALS = "minijax.jax.private.internals"
_PROGRAMS = "minijax.jax.private.programs"
_SCOPES = "minijax.jax.private.scopes"

# Names of `jax` itself that are other objects than minijax's own.
OVERRIDES: dict[str, str] = {"config": "minijax.jax.settings:config"}

# Private modules of upstream's that are modules of minijax, with all that these do as modules.
MODULE_ALIASES: dict[str, str] = {
    f"jax._src.internal_test_util.{name}": f"minijax.jax.testing.{name}"
    for name in (
        "deprecation_module", "lazy_loader_module", "lazy_loader_module.lazy_test_submodule",
    )
}  # fmt: skip

# Modules that libraries know by their `__name__` (array-api-compat, SciPy): they bear upstream's here.
KNOWN_BY_NAME = frozenset(("jax.numpy",))

# Classes of values, and the modules that upstream says its own are of: libraries that work with arrays
# of many libraries choose theirs by the package of the class. jaxlib._jax has another ArrayImpl: a class
# is pickled by the name of a module that has it.
VALUE_CLASSES = {
    "minijax.arrays.array.ArrayImpl": "jaxlib._arrays",
    "minijax.core.trace.Tracer": "jax._src.core",
    "minijax.core.staging.StagedTracer": "jax._src.interpreters.partial_eval",
    "minijax.transforms.batching.BatchTracer": "jax._src.interpreters.batching",
    "minijax.transforms.jvp.JVPTracer": "jax._src.interpreters.ad",
    "minijax.errors.JaxRuntimeError": "jax.errors",  # as tracebacks show it
}

# Public submodules that upstream's `import jax` leaves in `sys.modules`: libraries look there to name
# objects and to ask whether JAX is in use.
IMPORTED_WITH_JAX = (
    "api_util", "core", "custom_batching", "custom_derivatives", "debug", "distributed", "dlpack",
    "dtypes", "errors", "experimental", "experimental.compilation_cache",
    "experimental.compilation_cache.compilation_cache", "export", "ffi", "image", "interpreters",
    "interpreters.ad", "interpreters.batching", "interpreters.mlir", "interpreters.partial_eval",
    "interpreters.pxla", "interpreters.xla", "lax", "lax.linalg", "lib", "monitoring", "nn",
    "nn.initializers", "numpy", "numpy.fft", "numpy.linalg", "ops", "profiler", "random", "ref",
    "scipy", "sharding", "stages", "tree", "tree_util", "typing", "version",
)  # fmt: skip

# All public modules directly in `jax`: those, and what programs import by themselves. Upstream has no
# other (`jax.config` is an object, and `import jax.config` an error).
PUBLIC_MODULES = frozenset(
    ("ad_checkpoint", "example_libraries", "extend", "flatten_util", "test_util")
).union(name for name in IMPORTED_WITH_JAX if "." not in name)

# Modules that libraries import at their head for what they do on some device or when asked to, and
# of which minijax has nothing: what Pallas has for GPUs, and its kernels for one kind of device. They
# can be imported; none of their names is there.
_PALLAS = "jax.experimental.pallas"
EMPTY = frozenset(
    (
        f"{_PALLAS}.gpu", f"{_PALLAS}.mosaic_gpu", f"{_PALLAS}.ops", f"{_PALLAS}.ops.gpu",
        f"{_PALLAS}.ops.tpu",
        f"{_PALLAS}.ops.tpu.splash_attention",
        f"{_PALLAS}.ops.tpu.splash_attention.splash_attention_kernel",
        f"{_PALLAS}.ops.tpu.splash_attention.splash_attention_mask",
    )
)  # fmt: skip


def _of(module: str, names: str, prefix: str = "") -> dict[str, str]:
    """Objects of one module under the names that they have there, after a prefix."""
    return {f"{prefix}{name}": f"{module}:{name}" for name in names.split()}


def _modules(package: str, names: str) -> dict[str, str]:
    """Modules of one package under their own names."""
    return {name: f"{package}.{name}" for name in names.split()}


ALIASES: dict[str, dict[str, str]] = {
    **{name: {} for name in EMPTY},
    "jax.version": {
        "__version__": f"{_HERE}:API_VERSION",
        "__version_info__": f"{_HERE}:API_VERSION_INFO",
    },
    "jax.lib": {"__version__": "minijax.runtime.versions:jaxlib_version_text"},
    "jax._src": {},
    "jax._src.ad_util": {
        "Zero": "minijax.transforms.tangents:Zero",
        "add_any_p": "minijax.transforms.primitives:add_any_p",
        "stop_gradient_p": "minijax.lax:stop_gradient_p",
    },
    "jax._src.api_util": {"shaped_abstractify": "minijax.api_util:shaped_abstractify"},
    "jax._src.array": {  # by which upstream pickles arrays
        "_reconstruct_array": "minijax.jax.private.loading:array_of_pickle",
    },
    "jax._src.cache_key": {"get": "minijax.jax.private.compilation_cache:get_cache_key"},
    "jax._src.checkify": {
        **_of("minijax.experimental.checkify", "Error JaxException checkify user_checks"),
        "Out": f"{_HERE}:CheckifyOut",
    },
    "jax._src.compilation_cache": {
        "is_persistent_cache_enabled": f"{_HERE}:is_persistent_cache_enabled",
    },
    "jax._src.compiler": {},
    "jax._src.cloud_tpu_init": {},
    "jax._src.core": {
        **_of(_HERE, "AxisName AxisSize trace_state_clean"),
        **_of("minijax.features.hijax.types", "AvalMutableQDD AvalQDD aval_method aval_property"),
        **_of("minijax.features.call_primitives", "call_p closed_call_p"),
        **_of("minijax.lax.refs", "empty_ref_p free_ref_p freeze_p ref_p"),
        **_of("minijax.core.avals", "ShapedArray get_aval"),
        "JaxprEqnContext": "minijax.features.source_info:Settings",
        "MemorySpace": "minijax.features.sharding.memory:MemorySpace",
        "MutableQuasiDynamicData": "minijax.features.hijax.qdd:MutableState",
        "call": "minijax.features.call_primitives:call_p.bind",
        "is_symbolic_dim": "minijax.export.symbolic:is_symbolic_dim",
        "Ref": "minijax.features.references.cells:Ref",
        "Tracer": "minijax.core.trace:Tracer",
        "is_concrete": f"{_INTERNALS}:is_concrete",
        "physical_aval": "minijax.lowering.types:physical",
    },
    "jax._src.custom_api_util": {
        "forward_attr": "minijax.features.custom_rules.common:SetsInnerRules.__getattr__",
    },
    "jax._src.debugging": _of(_HERE, "debug_effect ordered_debug_effect"),
    "jax._src.dispatch": {
        "BACKEND_COMPILE_EVENT": "minijax.monitoring:COMPILED",
        "JAXPR_TO_MLIR_MODULE_EVENT": "minijax.monitoring:LOWERED",
        "JAXPR_TRACE_EVENT": "minijax.monitoring:TRACED",
        "device_put_p": "minijax.lax:device_put_p",
        "wait_for_tokens": f"{_HERE}:wait_for_tokens",
    },
    "jax._src.distributed": {"global_state": "minijax.runtime.distributed:state"},
    "jax._src.dtypes": {
        **_of(_INTERNALS,
            "check_and_canonicalize_user_dtype coerce_to_array default_complex_dtype "
            "default_float_dtype default_int_dtype default_types default_uint_dtype "
            "is_weakly_typed python_scalar_types safe_to_cast scalar_type_to_dtype "
            "short_dtype_name"
        ),
        **_of(_HERE, "DType supports_inf"),
        **_of("minijax.dtypes", "ExtendedDType TypePromotionError extended"),
        **_of(_INTERNALS,
            "bool_types complex_types float_types int_types intn_dtypes jax_dtype_set jax_types "
            "weak_types", "_"
        ),
        "finfo": "minijax.numpy:finfo",
    },
    "jax._src.effects": {
        **_of(_SCOPES, "custom_derivatives_allowed_effects partial_eval_kept_effects"),
        "EffectTypeSet": "minijax.core.effects:EffectTypes",
        "Effects": "minijax.extend.core:Effects",
        "control_flow_allowed_effects": "minijax.core.effects:control_flow_allowed",
        "lowerable_effects": "minijax.core.effects:lowerable",
        "no_effects": "minijax.core.primitive:no_effects",
        "ordered_effects": "minijax.core.effects:ordered_types",
        "remat_allowed_effects": "minijax.core.effects:remat_allowed",
        "shardable_ordered_effects": "minijax.features.effects.kinds:shardable",
    },
    "jax._src.export.shape_poly": {"_DimExpr": "minijax.features.symbolic.dims:DimExpr"},
    "jax._src.flatten_util": {"ravel_pytree": "minijax.flatten_util:ravel_pytree"},
    "jax._src.interpreters": {},
    "jax._src.interpreters.ad": {
        **_of(_PROGRAMS, "backward_pass zero_jvp"),
        "jvp_jaxpr": "minijax.transforms.jvp:jvp_jaxpr",
    },
    "jax._src.interpreters.batching": {
        **_of("minijax.transforms.batching", "BatchTrace BatchTracer"),
        "batch_jaxpr": f"{_PROGRAMS}:batch_jaxpr",
    },
    "jax._src.interpreters.mlir": {
        "IrTypes": f"{_HERE}:IrTypes",
        "func_dialect": "jaxlib.mlir.dialects.func",
        "hlo": "jaxlib.mlir.dialects.stablehlo",
    },
    "jax._src.interpreters.partial_eval": {
        "DynamicJaxprTrace": "minijax.core.staging:JaxprTrace",
        "JaxprTrace": "minijax.core.staging:PartialTrace",
    },
    "jax._src.lax": {"scaled_dot": "minijax.lax:scaled_dot"},  # a module of that name is there too
    "jax._src.lax.lax": {
        "_const": f"{_INTERNALS}:const",
        "_convert_element_type": f"{_INTERNALS}:convert",
        "_eq_meet": f"{_INTERNALS}:equal_in_meet",
    },
    "jax._src.lib": {
        **_of("minijax.runtime.versions", "_jax xla_client"),
        **_modules("jaxlib",
            "_profile_data _profiler gpu_linalg gpu_prng gpu_rnn gpu_solver gpu_sparse "
            "gpu_triton lapack triton utils weakref_lru_cache"
        ),
        **_of(_HERE, "check_jaxlib_version cuda_versions"),
        "guard_lib": "minijax.runtime.versions:_jax.guard_lib",
        "jax_jit": "minijax.runtime.versions:_jax.jax_jit",
        "ifrt_version": "minijax.runtime.versions:xla_client._ifrt_version",
        "jaxlib": "jaxlib",
        "jaxlib_extension_version": "minijax.runtime.versions:xla_client._version",
        "pytree": "minijax.runtime.versions:_jax.pytree",
        "version": "minijax.runtime.versions:jaxlib_version",
        "version_str": "minijax.runtime.versions:jaxlib_version_text",
    },
    "jax._src.linear_util": {"DebugInfo": "minijax.core.jaxpr:DebugInfo"},
    "jax._src.lib.mlir": _modules("jaxlib.mlir", "ir passmanager"),
    "jax._src.lib.mlir.dialects": {
        **_modules("jaxlib.mlir.dialects",
            "arith builtin chlo func gpu llvm math memref mhlo mpmd nvvm scf sdy vector"
        ),
        "hlo": "jaxlib.mlir.dialects.stablehlo",
    },
    "jax._src.mesh": {
        "empty_abstract_mesh": "minijax.runtime.mesh:_NO_AXES",
        "empty_concrete_mesh": "minijax.runtime.mesh:_NO_MESH",
        "MeshAxisName": f"{_HERE}:MeshAxisName",
        "get_concrete_mesh": "minijax.runtime.mesh:get_mesh",
        "thread_resources": f"{_INTERNALS}:thread_resources",
    },
    "jax._src.monitoring": {
        f"get_{kind}_listeners": f"{_HERE}:get_{kind}_listeners"
        for kind in ("event", "event_duration", "event_time_span", "scalar")
    },
    "jax._src.named_sharding": {
        **_of(_HERE, "UNSPECIFIED UnspecifiedValue"),
        "DuplicateSpecError": "minijax.runtime.mesh:DuplicateSpecError",
    },
    "jax._src.numpy.util": {
        **_of(_INTERNALS,
            "canonicalize_device_to_sharding check_arraylike_or_none check_for_prngkeys "
            "check_no_float0s ensure_arraylike ensure_arraylike_tuple promote_args "
            "promote_args_complex promote_args_inexact promote_args_numeric promote_dtypes "
            "promote_dtypes_complex promote_dtypes_inexact promote_dtypes_numeric"
        ),
        **_of(_INTERNALS, "arraylike arraylike_asarray check_no_float0s", "_"),
        **_of("minijax.numpy", "broadcast_arrays broadcast_to where", "_"),
    },
    "jax._src.path": {"Path": "pathlib:Path"},
    "jax._src.pjit": {
        **_of("minijax.jax.private.placing", "get_unconstrained_dims hashable_pytree"),
        "pjit": "minijax:jit",
        "with_layout_constraint": "minijax.experimental.layout:with_layout_constraint",
    },
    "jax._src.random.threefry2x32": {
        f"threefry_{name}": f"minijax.lax.threefry:threefry_prng_impl.{name}"
        for name in ("fold_in", "random_bits", "seed", "split")
    },
    "jax._src.sharding": {"common_devices_indices_map": f"{_HERE}:common_devices_indices_map"},
    "jax._src.random": {"Shape": "minijax.typing:Shape"},
    "jax._src.sharding_impls": {
        **_of("minijax.features.mlir_rules", "SPMDAxisContext ShardingContext"),
        **_of(_HERE, "MeshAxisName UNSPECIFIED UnspecifiedValue"),
        "canonicalize_sharding": f"{_INTERNALS}:canonicalize_sharding",
    },
    "jax._src.state": {},
    "jax._src.state.primitives": {
        "broadcast_to": "minijax.numpy:broadcast_to",
        "ref_addupdate": "minijax.lax.refs:addupdate",
        "ref_get": "minijax.lax.refs:get",
        "ref_set": "minijax.lax.refs:set",
        "ref_swap": "minijax.lax.refs:swap",
    },
    "jax._src.state.indexing": {
        **_of("minijax.lax.dynamic_slices", "Slice dslice"),
        "ds": "minijax.lax.dynamic_slices:dslice",
    },
    "jax._src.state.types": {
        "AbstractRef": "minijax.features.references.cells:AbstractRef",
        "TransformedRef": "minijax.lax.ref_views:RefView",
        "shaped_array_ref": f"{_HERE}:shaped_array_ref",
    },
    "jax._src.typing": {"DType": "numpy:dtype"},
    "jax._src.test_util": {"test_warning_util": "minijax.jax.testing.counts"},
    "jax._src.traceback_util": {
        **_of("minijax.tracebacks", "UnfilteredStackTrace register_exclusion"),
        **_of(_HERE, "api_boundary include_frame"),
        "_exclude_paths": "minijax.tracebacks:excluded_prefixes",
    },
    "jax._src.tree_util": {
        **_of("minijax.tree_util", "flatten_one_level prefix_errors"),
        "_registry": f"{_HERE}:node_registry",
    },
    "jax.experimental.sparse.test_util": {
        **_of("minijax.experimental.sparse.test_util",
            "SparseLayout is_sparse iter_bcsr_layouts iter_sparse_layouts iter_subsets "
            "rand_bcoo rand_bcsr rand_sparse"
        ),
        **_of("minijax.jax.testing.sparse",
            "BatchedDotGeneralProperties MATMUL_TOL SparseTestCase"
        ),
    },
    "jax.experimental.colocated_python.func": {},
    "jax.experimental.colocated_python.serialization": {
        "DeviceList": "minijax.runtime.versions:xla_client.DeviceList",
    },
    "jax._src.xla_bridge": {
        **_of(_HERE,
            "canonicalize_platform expand_platform_alias get_device_backend is_known_platform "
            "known_platforms using_pjrt_c_api"
        ),
        **_of("minijax.runtime.plugins", "register_backend_factory register_plugin"),
        "_backends": "minijax.runtime.platforms:_clients",
        "_clear_backends": "minijax.runtime.platforms:clear_backends",
        "make_cpu_client": "minijax.runtime.platforms:_make_cpu_client",
        "backends_are_initialized": "minijax.runtime.platforms:started",
    },
}  # fmt: skip
