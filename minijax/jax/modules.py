"""Where names of upstream's private modules are looked for in minijax: for each, modules in order.

Data, and the one rule that reads it: a private module of upstream's is answered by the
public names of these modules of minijax, the first that has the name. `names.ALIASES` comes before
it, for what has another name or another shape here.
"""

from __future__ import annotations

import importlib
import sys
import types

__all__ = ["MODULES", "gives", "modules_of"]


def gives(module: types.ModuleType, name: str) -> bool:
    """Whether a module of minijax gives a name to those who ask for upstream's.

    The stand-in's own modules give all that they have; others what is in `__all__`, and what else
    they define under a public name. Modules are given only where they are listed.
    """
    if name.startswith("__"):
        return False
    if isinstance(vars(module).get(name), types.ModuleType):
        return name in getattr(module, "__all__", ()) and not module.__name__.startswith(
            "minijax.jax."
        )
    if module.__name__.startswith("minijax.jax."):
        return hasattr(module, name)
    if module.__name__ == "minijax":
        found = getattr(module, name, None) if name[0] != "_" else None
        return found is not None and not isinstance(found, types.ModuleType)
    if name in getattr(module, "__all__", ()):
        return True
    defined = getattr(vars(module).get(name), "__module__", None)
    return name[0] != "_" and defined == module.__name__


def modules_of(module: str) -> tuple[types.ModuleType, ...]:
    """The modules that answer for a private module of upstream's."""
    found = []
    for name in MODULES[module]:
        try:
            dir(sys.modules.get(name.rpartition(".")[0]))  # runs its package, if that waits for it
            found.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            if not name.startswith(error.name or "?"):
                raise  # a module that is there, and needs something that is not
    return tuple(found)


# By library: upstream's parts, and the modules of minijax; a part is looked for under its own name too.
_LIBRARIES: dict[str, tuple[str, str]] = {
    "image": ("scale", "image"),
    "lax": (
        "ann control_flow control_flow.common control_flow.conditionals control_flow.loops "
        "control_flow.solves convolution fft lax linalg other parallel slicing special utils "
        "windowed_reductions",
        "lax jax.private.types lax.linalg extend.core.primitives lax.parallel lax.collective_movement "
        "lax.convolution "
        "lax.fft lax.shapes "
        "lax.convert lax.slicing lax.conv_numbers lax.precision numpy.promotion",
    ),
    "nn": ("functions initializers", "nn nn.initializers"),
    "numpy": (
        "array_constructors array_creation array_methods einsum error fft index_tricks indexing "
        "lax_numpy linalg polynomial reductions scalar_types setops sorting tensor_contractions "
        "ufunc_api ufuncs util vectorize window_functions",
        "numpy numpy.linalg numpy.fft numpy.promotion numpy.indexing numpy.grids "
        "jax.private.numpy_parts dtypes",
    ),
    "ops": ("scatter special", "ops"),
    "random": (
        "core philox2x32 philox4x32 prng rbg threefry2x32 threefry4x32",
        "random extend.random lax.prng lax.threefry",
    ),
    "scipy": (
        "cluster cluster.vq fft integrate linalg ndimage optimize optimize._lbfgs "
        "optimize.bfgs optimize.line_search optimize.minimize signal sparse sparse.linalg spatial "
        "spatial.transform special stats stats.bernoulli stats.beta stats.betabinom stats.binom "
        "stats.cauchy stats.chi2 stats.dirichlet stats.expon stats.gamma stats.gennorm stats.geom "
        "stats.gumbel_l stats.gumbel_r stats.kde stats.laplace stats.logistic stats.multinomial "
        "stats.multivariate_normal stats.nbinom stats.norm stats.pareto stats.poisson stats.t "
        "stats.truncnorm stats.uniform stats.vonmises stats.wrapcauchy",
        "scipy",
    ),
    "third_party": (
        "scipy scipy.interpolate scipy.signal_helper",
        "scipy.interpolate scipy.signal",
    ),
}

# The other modules: the modules of minijax, in order. Those without any are there to be imported, by
# suites that do so at their head; none of their names is.
_MODULES: dict[str, str] = {
    "ad_checkpoint": "ad_checkpoint features.checkpoint.checkpoint features.checkpoint.decisions features.checkpoint.policies features.checkpoint.saved_residuals",
    "ad_util": "interpreters.ad transforms.tangents features.custom_rules.common",
    "abstract_arrays": "core.avals core",
    "api": "minijax transforms.grad transforms.jit features.sharding.transfer",
    "api_util": "api_util arguments.functions",
    "array": "arrays.array features.sharding.assembling minijax",
    "basearray": "minijax core.array",
    "blocked_sampler": "",
    "buffer_callback": "experimental.buffer_callback",
    "callback": "lax.callbacks minijax core.effects features.effects.kinds features.effects.inputs",
    "cloud_tpu_init": "",
    "compilation_cache_interface": "",
    "compute_on": "experimental.compute_on",
    "checkify": "experimental.checkify",
    "cache_key": "",
    "compilation_cache": "jax.private.compilation_cache runtime.cache",
    "compiler": "extend.backend",
    "config": "jax.settings",
    "core": "jax.private.programs jax.private.scopes jax.private.texts extend.core core core.avals "
            "core.jaxpr core.trace core.primitive core.effects features.sharding.types features.effects.inputs features.effects.kinds features.program_check features.references.cells features.references.discharge features.references.effects errors minijax "
            "lax.parallel lax.collective_movement lax.named_axes jax.private.utilities",
    "custom_batching": "custom_batching",
    "custom_partitioning": "experimental.custom_partitioning",
    "custom_derivatives": "custom_derivatives",
    "debugging": "debug lax.debug_callbacks",
    "debugger": "debug debug.breakpoints",
    "debugger.cli_debugger": "debug.breakpoints",
    "debugger.colab_debugger": "",
    "debugger.core": "debug.breakpoints",
    "debugger.web_debugger": "",
    "deprecations": "jax.private.deprecations",
    "dispatch": "jax.private.programs jax.private.placing arrays.dispatch minijax",
    "distributed": "distributed runtime.distributed",
    "dlpack": "dlpack",
    "dtypes": "dtypes numpy",
    "earray": "experimental.earray",
    "effects": "core.effects features.effects.kinds features.effects.inputs",
    "error_check": "",
    "environment_info": "environment",
    "errors": "errors",
    "export": "export",
    "export._export": "export export.exported export.calling",
    "export.serialization": "export.serialization export.trees",
    "export.shape_poly": "jax.private.polymorphic export.symbolic features.symbolic.dims export errors",
    "export.shape_poly_decision": "",
    "extend": "extend",
    "extend.random": "extend.random",
    "ffi": "ffi",
    "flatten_util": "flatten_util",
    "frozen_dict": "jax.private.containers",
    "hardware_utils": "jax.private.machine",
    "hashable_array": "jax.private.containers",
    "hijax": "experimental.hijax experimental.boxes",
    "indexing": "lax",
    "internal_test_util": "",
    "internal_test_util.lax_test_util": "jax.testing.operations",
    "internal_test_util.test_harnesses": "jax.testing.harnesses",
    "interpreters.ad": "jax.private.derivatives interpreters.ad transforms.tangents",
    "interpreters.batching": "jax.private.splitting interpreters.batching features.vmappable",
    "interpreters.mlir": "jax.private.hlo interpreters.mlir",
    "interpreters.partial_eval":
        "jax.private.programs jax.private.splitting interpreters.partial_eval",
    "interpreters.pxla": "jax.private.placing jax.private.results jax.private.splitting interpreters.pxla",
    "interpreters.remat": "features.checkpoint.checkpoint",
    "lax_reference":
        "jax.testing.reference jax.testing.reference_shapes jax.testing.reference_windows",
    "jaxpr_util": "features.diagnostics.equations",
    "lax.scaled_dot": "lax.ragged",
    "layout": "experimental.layout",
    "lazy_loader": "jax.private.loading",
    "lib": "runtime.versions",
    "linear_util": "extend.linear_util",
    "literals": "jax.private.literals",
    "logging_config": "jax.logs",
    "lru_cache": "jax.private.compilation_cache",
    "mesh": "jax.private.placing runtime.mesh sharding",
    "mesh_utils": "experimental.mesh_utils",
    "monitoring": "monitoring",
    "named_sharding": "jax.private.gspmd sharding runtime.named_sharding",
    "partition_spec": "sharding minijax",
    "numpy.array_api_metadata": "numpy.array_api",
    "op_shardings": "jax.private.op_shardings",
    "pickle_util": "jax.private.loading",
    "pjit": "transforms.jit features.sharding.constraints sharding minijax",
    "pmap": "lax.pmap minijax",
    "pretty_printer": "jax.private.texts features.printing",
    "prng": "extend.random lax.prng lax.threefry",
    "profiler": "profiler",
    "public_test_util": "jax.testing.checks jax.testing.inputs",
    "random.stateful_rng": "experimental.random",
    "ref": "ref minijax",
    "scipy.stats._core": "scipy.stats.ranking",
    "shard_map": "lax.shard_map minijax",
    "sharding": "sharding jax.private.op_shardings",
    "shard_alike": "experimental.shard_alike",
    "sharding_impls": "jax.private.gspmd jax.private.placing sharding runtime.mesh "
                      "runtime.named_sharding runtime.sharding minijax",
    "source_info_util": "extend.source_info_util core.source",
    "sourcemap": "experimental.source_mapper.sourcemap",
    "stages": "stages features.stages.stages",
    "state": "jax.private.state features.references.cells features.references.discharge core.effects features.effects.inputs features.effects.kinds features.references.effects ref",
    "state.discharge": "jax.private.state features.references.cells features.references.discharge",
    "state.indexing": "jax.private.state lax.dynamic_slices",
    "state.primitives": "jax.private.state lax.refs ref",
    "state.types": "jax.private.state features.references.cells core.effects features.effects.inputs features.effects.kinds features.references.effects",
    "state.utils": "jax.private.state",
    "test_loader": "jax.testing.counts",
    "test_util": "jax.testing",
    "test_warning_util": "jax.testing.counts",
    "third_party.scipy.betaln": "scipy.special",
    "third_party.scipy.linalg": "scipy.linalg",
    "third_party.scipy.special": "scipy.special",
    "traceback_util": "tracebacks core.source",
    "tree": "tree",
    "tree_util": "jax.private.trees tree_util tree_util.prefix tree_util.nodes",
    "typing": "jax.private.types typing minijax",
    "util": "jax.private.utilities",
    "xla_metadata": "experimental.xla_metadata",
    "xla_metadata_lib": "experimental.xla_metadata",
    "xla_transform": "extend.xla",
    "xla_bridge": "runtime.platforms runtime.plugins extend.backend environment minijax",
}  # fmt: skip


def _named(modules: str) -> tuple[str, ...]:
    return tuple(
        module if module == "minijax" else f"minijax.{module}" for module in modules.split()
    )


def _known() -> dict[str, tuple[str, ...]]:
    found = {f"jax._src.{name}": _named(modules) for name, modules in _MODULES.items()}
    for library, (parts, modules) in _LIBRARIES.items():
        found[f"jax._src.{library}"] = _named(modules)
        for part in parts.split():
            found[f"jax._src.{library}.{part}"] = (*_own(library, part), *_named(modules))
    return found


def _own(library: str, part: str) -> tuple[str, ...]:
    """The modules of minijax that bear the part's own name, and those that it is in."""
    names = part.split(".")
    paths = [".".join([library, *names[:size]]) for size in range(len(names), 0, -1)]
    return _named(" ".join(paths))


MODULES: dict[str, tuple[str, ...]] = _known()
