"""`export` and `Exported`: a jitted function as a StableHLO module that outlives the process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.accepted_options import hints
from minijax.arguments.functions import fun_name
from minijax.arrays.dispatch import lower_program
from minijax.core.avals import ShapedArray
from minijax.core.effects import Effect, observable, ordered_types
from minijax.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.export import calling, serialization
from minijax.export.sizes import check_scopes, check_solvable, check_told
from minijax.features.export.modules import (
    for_platforms,
    from_portable,
    to_portable,
    unstable_calls,
)
from minijax.features.library import as_jitted
from minijax.features.queries import is_ref
from minijax.features.stages.stages import Traced, signature_for
from minijax.features.stages.struct import ShapeDtypeStruct, check_no_structs
from minijax.features.symbolic.lowering import is_symbolic
from minijax.runtime import platforms as backends
from minijax.runtime.gpus import platform_name
from minijax.runtime.layouts import sharding_in
from minijax.runtime.mesh import AbstractMesh, Mesh
from minijax.runtime.named_sharding import NamedSharding
from minijax.runtime.topologies import placeholders
from minijax.transforms.grad import vjp
from minijax.transforms.jit import PjitFunction, jit
from minijax.tree_util import PyTreeDef

__all__ = [
    "DisabledSafetyCheck", "Exported", "default_export_platform", "deserialize", "export",
    "maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version",
]  # fmt: skip

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


@dataclasses.dataclass(frozen=True)
class DisabledSafetyCheck:
    """A check that is left out: made by `platform` or `custom_call`."""

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Let the program be called on platforms that it was not exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Let a program be exported that calls this target, which nobody promises to keep."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The target that may be called; None if this is another check."""
        kind, colon, target = self._impl.partition(":")
        return target if kind == "custom_call" and colon else None

    def __repr__(self) -> str:
        return self._impl


@dataclasses.dataclass(frozen=True)
class Exported:
    """A function as a module of StableHLO, with what is needed to call it.

    - `fun_name`: the function's name
    - `in_tree`, `in_avals`: the structure of `(args, kwargs)`, the types of its leaves
    - `out_tree`, `out_avals`: the same of the result
    - `nr_devices`: over how many devices it runs; `in_shardings_jax` and `out_shardings_jax` say how
      its arguments and results lie over those, on a mesh of one's own; `in_shardings_hlo` and
      `out_shardings_hlo` say it as XLA does, of programs that were read from bytes
    - `platforms`: the platforms that it was lowered for; `main` takes their index if several
    - `ordered_effects`, `unordered_effects`: `main` takes and gives a token for each ordered one
    - `disabled_safety_checks`: which checks were left out
    - `mlir_module_serialized`: the module, as StableHLO's portable bytes
    - `calling_convention_version`: what `main` takes and gives
    - `module_kept_var_idx`: which of the leaves of the arguments `main` takes
    - `uses_global_constants`: whether it, or a part of it, takes the index of the platform

    Source: StableHLO portable artifacts; upstream's calling convention.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    _has_named_shardings: bool
    _in_named_shardings: tuple[NamedSharding | None, ...]
    _out_named_shardings: tuple[NamedSharding | None, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Effect, ...]
    unordered_effects: tuple[Effect, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def mlir_module(self) -> str:
        """The module as text."""
        return from_portable(self.mlir_module_serialized)

    def in_shardings_jax(self, mesh: Mesh) -> Sequence[NamedSharding | None]:
        """Return how the leaves of the arguments lie over a mesh like that of the export; None:
        anyhow.

        ValueError if the axes of the mesh are others.
        """
        return tuple([_over(where, mesh) for where in self._in_named_shardings])

    def out_shardings_jax(self, mesh: Mesh) -> Sequence[NamedSharding | None]:
        """Return the shardings of the leaves of the result over a mesh."""
        return tuple([_over(where, mesh) for where in self._out_named_shardings])

    def has_vjp(self) -> bool:
        """Whether `vjp()` gives the derivative."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The reverse-mode derivative, exported.

        It takes the leaves of the arguments, then a cotangent for each leaf of the result, and gives
        a cotangent for each leaf of the arguments. ValueError if it was not kept.
        """
        if self._get_vjp is None:
            raise ValueError(
                "No VJP is available: serialize with vjp_order=1 or more to keep derivatives."
            )
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Return the bytes that `deserialize` reads in another process, with `vjp_order`
        derivatives.

        ValueError for pytrees of classes that are not registered for it.
        """
        return serialization.serialize(self, vjp_order)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call it: eagerly, in traced functions, under `grad`; not under `vmap`.

        ValueError if structure, shapes or dtypes are not those of the export, or it was exported for
        other platforms or another number of devices.
        """
        return calling.call(self, args, kwargs)


def _over(where: NamedSharding | None, mesh: Mesh) -> NamedSharding | None:
    if where is None:
        return None
    if where.mesh.shape_tuple != mesh.shape_tuple:
        raise ValueError(
            f"NamedSharding new mesh {mesh!s} does not match the mesh used for export {where.mesh}."
        )
    return NamedSharding(mesh, where.spec, where.memory_kind)


def default_export_platform() -> str:
    """The name of the platform that `export` lowers for by default: "cpu", "cuda", "rocm", "tpu"."""
    return platform_name(backends.default_backend(), backends.devices()[0])


def export(
    fun_jit: Callable[..., Any], *, platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:  # fmt: skip
    """A function that takes the arguments of `fun_jit`, or their types, and gives it `Exported`.

    - `platforms`: what it can be called on, such as `("cpu", "cuda", "tpu")`; the default platform
      if None. The lowering of each is in the module.
    - `disabled_checks`: see `DisabledSafetyCheck`

    ValueError unless `fun_jit` is what `jit` gives, and for custom calls that nobody promises to
    keep; NotImplementedError for functions of Python within it, which cannot be kept.
    """
    fun_jit = as_jitted(fun_jit) or fun_jit
    if not isinstance(fun_jit, PjitFunction):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")
    chosen = tuple(map(_canonical, platforms or ()))
    checks = tuple(disabled_checks)

    def exported(*args, **kwargs) -> Exported:
        check_scopes(fun_name(fun_jit), (args, kwargs))
        return _exported(
            fun_jit.trace(*args, **kwargs), chosen or (default_export_platform(),), checks
        )

    return exported


def _canonical(platform: str) -> str:
    """The kind of GPU that there is, for "gpu". RuntimeError if there is none."""
    if platform != "gpu":
        return platform
    return platform_name("gpu", backends.backend("gpu").devices()[0])


deserialize = serialization.deserializer(Exported, DisabledSafetyCheck)


# -- from a traced function ------------------------------------------------------------------------


def _exported(
    traced: Traced, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...]
) -> Exported:
    spec, closed = traced._spec, traced.jaxpr
    version = _calling_convention()
    _check_arguments(spec, closed)
    symbolic = list(map(is_symbolic, spec.in_avals))
    kept = spec.keep_unused or (symbolic if any(symbolic) else False)
    ins, outs = _concrete(spec.in_shardings), _concrete(spec.out_shardings)
    leaves = [_lying(aval, x) for aval, x in zip(spec.in_avals, spec.signatures, strict=True)]
    made = [
        lower_program(
            closed, spec.name, leaves,
            donated=spec.donated if any(spec.donated) else None, keep_unused=kept,
            device=spec.device, in_shardings=ins, out_shardings=outs,
            arg_names=list(spec.arg_names), platform=platform, exported=platforms, located=True,
        )
        for platform in platforms
    ]  # fmt: skip
    first = made[0]
    if first.callbacks or first.keepalives:
        raise NotImplementedError(
            "serialization of host_callbacks is not yet implemented: "
            f"{spec.name} calls functions of Python, which exist in this process only."
        )
    artifact = to_portable(
        for_platforms([lowered.text for lowered in made], platforms),
        spec.result_names(),
        any(symbolic) or len(platforms) > 1,
    )
    _check_calls(artifact, checks)
    named_in = [
        _named(sharding_in(asked) or (leaf.sharding if leaf.committed else None))
        for asked, leaf in zip(ins or [None] * len(leaves), leaves, strict=True)
    ]
    named_out = [_named(where) for where in first.place.outs]
    effects = sorted(observable(closed.effects), key=repr)
    return Exported(
        fun_name=spec.name,
        in_tree=spec.in_tree,
        in_avals=tuple(spec.in_avals),
        out_tree=spec.out_tree,
        out_avals=tuple(closed.out_avals),
        _has_named_shardings=True,
        _in_named_shardings=tuple(named_in),
        _out_named_shardings=tuple(named_out),
        in_shardings_hlo=(None,) * len(named_in),
        out_shardings_hlo=(None,) * len(named_out),
        nr_devices=len(first.devices),
        platforms=platforms,
        ordered_effects=tuple(ordered_types.filter_in(effects)),
        unordered_effects=tuple(ordered_types.filter_not_in(effects)),
        disabled_safety_checks=checks,
        mlir_module_serialized=artifact,
        calling_convention_version=version,
        module_kept_var_idx=tuple(first.kept),
        uses_global_constants=len(platforms) > 1
        or any(symbolic)
        or any(x.takes_platform for x in made),
        _get_vjp=lambda exported: _vjp(exported, closed, spec.in_avals, leaves, ins, outs),
    )


def _calling_convention() -> int:
    """The version that is asked for; ValueError for one that is not supported."""
    version = hints["jax_export_calling_convention_version"]
    least, most = (
        minimum_supported_calling_convention_version,
        maximum_supported_calling_convention_version,
    )
    if not least <= version <= most:
        raise ValueError(
            f"The requested export calling convention version {version} is outside the range of "
            f"supported versions [{least}..{most}]: set jax_export_calling_convention_version."
        )
    return version


def _check_arguments(spec: Any, closed: ClosedJaxpr) -> None:
    """Refuse what has no place in an exported program: references, and values of outer traces."""
    check_no_structs(spec.consts)
    if spec.consts:
        raise ValueError(
            f"{spec.name} closes over references or traced values, which cannot be exported with "
            "it: pass them as arguments, or export what it is called with."
        )
    if any(map(is_ref, closed.in_avals)):
        raise NotImplementedError(
            f"{spec.name} takes references, which have no place in an exported function: take the "
            "value, and return what it is to be."
        )
    check_solvable(spec.in_tree, spec.in_avals)
    check_told(closed, spec.in_avals)


def _check_calls(artifact: bytes, checks: Sequence[DisabledSafetyCheck]) -> None:
    allowed = {check.is_custom_call() for check in checks}
    found = unstable_calls(artifact, allowed)
    if found:
        shown = "\n".join(found[:10])
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no compatibility guarantees. "
            "See https://docs.jax.dev/en/latest/export/export.html"
            "#compatibility-guarantees-for-custom-calls. Examples are:\n"
            f"{shown}.\nIf the target will be there, pass disabled_checks="
            "[DisabledSafetyCheck.custom_call(name)]."
        )


# -- shardings -------------------------------------------------------------------------------------


def _on_devices(where: Any) -> Any:
    """A sharding over a mesh without devices, over some: of this process if it has as many."""
    if not isinstance(where, NamedSharding) or not isinstance(where.mesh, AbstractMesh):
        return where
    mesh, devices = where.mesh, backends.devices()
    if mesh.empty:  # that of a type without a sharding
        return None
    devices = devices[: mesh.size] if mesh.size <= len(devices) else placeholders(mesh.size)
    chosen = np.array(devices, dtype=object).reshape(mesh.axis_sizes)
    made = Mesh(chosen, mesh.axis_names, mesh.axis_types)
    return NamedSharding(made, where.spec, where.memory_kind)


def _concrete(shardings: Sequence[Any] | None) -> list[Any] | None:
    return None if shardings is None else list(map(_on_devices, shardings))


def _lying(aval: Any, signature: Any) -> Any:
    """The signature of an argument, on devices if it was given on a mesh without."""
    where = _on_devices(signature.sharding)
    if where is signature.sharding:
        return signature
    return signature_for(ShapeDtypeStruct(aval.shape, aval.dtype, sharding=where), aval)


def _named(where: Any) -> NamedSharding | None:
    """A sharding as it is kept: over a mesh without devices."""
    if not isinstance(where, NamedSharding):
        return None
    return NamedSharding(where.mesh.abstract_mesh, where.spec, where.memory_kind)


# -- derivatives -----------------------------------------------------------------------------------


def _vjp(
    exported: Exported, closed: ClosedJaxpr, in_avals: Sequence[ShapedArray], leaves: Sequence[Any],
    ins: Sequence[Any] | None, outs: Sequence[Any] | None,
) -> Exported:  # fmt: skip
    """The exported derivative of a program, for the same platforms, with its shardings."""
    fun, count = jaxpr_as_fun(closed), len(in_avals)

    def fun_vjp_jax(*args_and_out_cts_flat_jax):
        args, cts = args_and_out_cts_flat_jax[:count], args_and_out_cts_flat_jax[count:]
        _, pull = vjp(lambda *xs: list(fun(*xs)), *args)
        return tuple(pull(list(cts)))

    avals = [*in_avals, *(aval.to_cotangent_aval() for aval in closed.out_avals)]
    known = [leaf.sharding if leaf.committed else None for leaf in leaves]
    asked = list(ins or [None] * count)
    given = [x or y for x, y in zip(asked, known, strict=True)]
    wanted = [*given, *(outs or [None] * len(closed.out_avals))]
    options: dict[str, Any] = {}
    if any(where is not None for where in wanted):
        options = {"in_shardings": tuple(wanted), "out_shardings": tuple(given)}
    types = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
    traced = jit(fun_vjp_jax, **options).trace(*types)
    return _exported(traced, exported.platforms, tuple(exported.disabled_safety_checks))
