"""Public functions take upstream's parameters: their names, their kinds, and their defaults."""

import importlib
import inspect

import pytest

_MODULES = """
ad_checkpoint custom_batching custom_derivatives custom_transpose debug distributed dlpack dtypes
experimental.checkify experimental.colocated_python experimental.custom_partitioning
experimental.io_callback experimental.jet experimental.layout experimental.mesh_utils
experimental.multihost_utils experimental.ode experimental.pjit experimental.rnn
experimental.serialize_executable experimental.shard_map experimental.sparse
experimental.topologies export extend.backend extend.core extend.ffi extend.random
extend.source_info_util ffi flatten_util image lax lax.linalg memory monitoring nn nn.initializers
numpy numpy.fft numpy.linalg ops profiler random scipy.cluster.vq scipy.fft scipy.integrate
scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize scipy.signal scipy.sparse.linalg
scipy.spatial.transform scipy.special scipy.stats scipy.stats.beta scipy.stats.gamma
scipy.stats.multivariate_normal scipy.stats.norm scipy.stats.poisson sharding stages tree tree_util
"""

_TEXT = "takes what NumPy takes; upstream passes everything on"
_MORE = "takes one option more"
_CHOSEN = "Python cannot say what it takes"
REASONS = {
    "numpy.result_type": _MORE,
    "numpy.set_printoptions": _TEXT,
    "lax.cond": _CHOSEN,
    "lax.random_gamma_grad": "names its parameters; upstream passes everything on",
    "export.export": "has no private option",
    "extend.backend.clear_backends": "has no private option",
    "extend.core.jaxpr_as_fun": "takes the arguments in the call of its result",
}


def _function(module, name):
    found = getattr(module, name, None)
    return None if isinstance(found, type) or not callable(found) else found


def _functions():
    for path in _MODULES.split():
        try:
            module = importlib.import_module(f"jax.{path}")
        except ImportError:
            continue
        for name in sorted(vars(module)):
            fun = None if name.startswith("_") else _function(module, name)
            if fun is not None and (getattr(fun, "__module__", None) or "").startswith("jax"):
                yield f"{path}.{name}"


def _described(path, library):
    """The parameters of a function, or None if Python cannot tell them."""
    module, _, name = path.rpartition(".")
    fun = getattr(importlib.import_module(f"{library}.{module}"), name, None)
    if fun is None:
        return None
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return None


def _plain(value):
    return isinstance(value, (bool, int, float, str, tuple, type(None)))


@pytest.mark.parametrize("path", _functions())
def test_parameters(path):
    theirs, ours = _described(path, "jax"), _described(path, "minijax")
    if theirs is None or ours is None:
        pytest.skip("no signature to compare")
    described = [[(p.name, p.kind) for p in found] for found in (ours, theirs)]
    assert (described[0] == described[1]) == (path not in REASONS), described
    if path not in REASONS:
        for one, other in zip(ours, theirs, strict=True):
            if _plain(other.default):
                assert one.default == other.default, one.name
