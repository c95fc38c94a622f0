"""Names that upstream has given up or is about to: where their objects are, and what to use
instead.

Imports the standard library only; a place is imported when its name is asked for. A
module with such names ends in a `__getattr__` that asks `moved`.
"""

from __future__ import annotations

import importlib
import operator
import sys
import warnings
from typing import Any

from minijax.namespace import user_stacklevel

__all__ = ["moved", "why_removed"]

_SAME_IN_EXTEND = (
    "CallPrimitive", "DebugInfo", "DropVar", "Effect", "Effects", "check_jaxpr",
    "concrete_or_error", "find_top_trace", "gensym", "get_opaque_trace_state", "jaxprs_in_params",
    "new_jaxpr_eqn", "no_effects", "primal_dtype_to_tangent_dtype", "valid_jaxtype",
)  # fmt: skip
_WITHOUT_ADVICE = (
    "nonempty_axis_env_DO_NOT_USE", "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE",
)  # fmt: skip

# By module: of each name that still works, the module that has it, or the place in there, and what
# the warning says.
_DEPRECATED: dict[str, dict[str, tuple[str, str]]] = {
    "minijax.core": {
        **{
            name: (
                "minijax.extend.core",
                f"minijax.core.{name} is deprecated. Use minijax.extend.core.{name}.",
            )
            for name in _SAME_IN_EXTEND
        },
        **{
            name: ("minijax.extend.core", f"minijax.core.{name} is deprecated.")
            for name in _WITHOUT_ADVICE
        },
        **{
            name: (
                "minijax.errors",
                f"minijax.core.{name} is deprecated. Use minijax.errors.{name}.",
            )
            for name in ("InconclusiveDimensionOperation", "JaxprTypeError")
        },
        **{
            name: (place, f"minijax.core.{name} is deprecated.")
            for name, place in {
                "call": "minijax.features.call_primitives:call_p.bind",
                "concretization_function_error": "minijax.jax.private.scopes",
                "is_concrete": "minijax.jax.private.internals",
                "is_constant_dim": "minijax.jax.private.programs",
                "is_constant_shape": "minijax.jax.private.programs",
            }.items()
        },
    },
    "minijax.experimental.pallas": {
        "debug_checks_enabled": (
            "minijax.lax.pallas.language",
            "minijax.experimental.pallas.debug_checks_enabled is deprecated, use "
            "pl.enable_debug_checks.value instead.",
        ),
        "dot": (
            "minijax.experimental.pallas.triton",
            "minijax.experimental.pallas.dot was moved to minijax.experimental.pallas.triton. "
            "Accessing it via minijax.experimental.pallas is deprecated. You can use "
            "minijax.numpy.dot, minijax.numpy.einsum or the @ operator instead in a TPU or MGPU "
            "kernel.",
        ),
    },
    "minijax.experimental.pallas.tpu": {
        name: (
            "minijax.experimental.pallas",
            f"pltpu.{name} is deprecated, use pl.{name} instead.",
        )
        for name in (
            "DeviceIdType",
            "HOST",
            "semaphore",
            "semaphore_read",
            "semaphore_signal",
            "semaphore_wait",
        )
    },
    "minijax.experimental.pjit": {
        "pjit": (
            "minijax.experimental.pjit:_pjit",
            "minijax.experimental.pjit.pjit has been deprecated. Please use `minijax.jit` instead.",
        ),
    },
    "minijax.experimental.shard_map": {
        "shard_map": (
            "minijax.experimental.shard_map:_shard_map",
            "minijax.experimental.shard_map is deprecated in v0.8.0. Used minijax.shard_map "
            "instead.",
        ),
    },
    "minijax.interpreters.pxla": {
        **{
            name: (
                "minijax.jax.private.op_shardings",
                f"minijax.interpreters.pxla.{name} is deprecated as of JAX v0.8.2.",
            )
            for name in (
                "are_hlo_shardings_equal",
                "is_hlo_sharding_replicated",
                "op_sharding_to_indices",
            )
        },
        "thread_resources": (
            "minijax.jax.private.internals",
            "minijax.interpreters.pxla.thread_resources is deprecated as of JAX v0.8.2. Please "
            "switch to using `with minijax.set_mesh(mesh)` instead of `with mesh:` and then use "
            "`minijax.sharding.get_abstract_mesh()` to get the current mesh.",
        ),
    },
    "minijax.scipy.special": {
        name: (
            "minijax.scipy.special.legendre",
            f"minijax.scipy.special.{name} is deprecated; no replacement is planned.",
        )
        for name in ("lpmn", "lpmn_values")
    },
}

# By module: of each name that is gone, why.
_REMOVED: dict[str, dict[str, str]] = {
    "minijax": {
        name: (
            f"minijax.{name} is deprecated; use minijax.device_put instead. See "
            "https://docs.jax.dev/en/latest/migrate_pmap.html#drop-in-replacements for a drop-in "
            "replacement."
        )
        for name in ("device_put_replicated", "device_put_sharded")
    },
    "minijax.core": {
        "get_aval": (
            "minijax.core.get_aval was deprecated in JAX v0.8.2 and removed in JAX v0.10.0; use "
            "minijax.typeof instead."
        ),
        "traverse_jaxpr_params": (
            "minijax.core.traverse_jaxpr_params was deprecated in JAX v0.8.2 and removed in JAX "
            "v0.10.0."
        ),
        **{
            name: (
                f"minijax.core.{name} was deprecated in JAX v0.8.2 and removed in JAX v0.10.0. Use "
                f"minijax.extend.core.{name}."
            )
            for name in (
                "AbstractToken", "TraceTag", "call_impl", "mapped_aval", "set_current_trace",
                "subjaxprs", "take_current_trace", "unmapped_aval",
            )
        },
    },
    "minijax.ad_checkpoint": {
        name: (
            f"minijax.ad_checkpoint.{name} was deprecated in JAX v0.8.2 and removed in JAX v0.10.0; "
            f"use minijax.{name} instead."
        )
        for name in ("checkpoint", "remat")
    },
    "minijax.interpreters.ad": {
        "reducing_transposes": (
            "minijax.interpreters.ad.reducing_transposes was deprecated in v0.9.0. and removed in "
            "v0.10.0. It has been unused since JAX v0.4.38."
        ),
    },
    "minijax.interpreters.batching": {
        "NotMapped": "minijax.interpreters.batching.NotMapped is deprecated.",
    },
    "minijax.interpreters.pxla": {
        **{
            name: f"minijax.interpreters.pxla.{name} was removed in JAX v0.10.0."
            for name in ("MapTracer", "PmapExecutable", "parallel_callable", "shard_args")
        },
        **{
            name: (
                f"minijax.interpreters.pxla.{name} was removed in JAX v0.10.0. Please use "
                "`minijax.shard_map` instead of `minijax.pmap`."
            )
            for name in (
                "Chunked", "NoSharding", "Replicated", "ShardedAxis", "ShardingSpec", "Unstacked",
                "spec_to_indices",
            )
        },
    },
    "minijax.lax": {
        "pvary": (
            "minijax.lax.pvary was deprecated in JAX v0.8.2 and removed in JAX v0.10.0; use "
            "`minijax.lax.pcast(..., to='varying')"
        ),
    },
    "minijax.numpy": {
        "fix": (
            "minijax.numpy.fix was deprecated in JAX v0.9.0, and will be removed in JAX v0.10.0. "
            "Use minijax.numpy.trunc instead."
        ),
    },
    "minijax.scipy.special": {
        "sph_harm": (
            "minijax.scipy.special.sph_harm was deprecated in v0.7.0 and removed in v0.10.0. Use "
            "minijax.scipy.special.sph_harm_y instead."
        ),
    },
}  # fmt: skip


def why_removed(module: str, name: str) -> str | None:
    """Return why a module has a name no longer; None for one that it never had."""
    return _REMOVED.get(module, {}).get(name)


def moved(module: str, name: str, absent: str | None = None) -> Any:
    """The object that the name of a module stands for, with a DeprecationWarning to its user.

    AttributeError if there is none, which says why if there was one, or else `absent`.
    """
    own = f"mini{module}" if module.startswith("jax.") else module  # where minijax stands in
    found = _DEPRECATED.get(own, {}).get(name)
    if found is None:
        said = why_removed(own, name) or absent
        raise AttributeError(said or f"module {module!r} has no attribute {name!r}")
    place, _, attribute = found[0].partition(":")
    # `from package import name` asks twice: first importlib whether there is one.
    if sys._getframe(2).f_globals.get("__name__") != "importlib._bootstrap":
        warnings.warn(found[1], DeprecationWarning, stacklevel=user_stacklevel())
    return operator.attrgetter(attribute or name)(importlib.import_module(place))
