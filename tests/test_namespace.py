"""The names that public modules show to `dir`: upstream's, and nothing else."""

import copy
import importlib
import inspect
import json
import operator
import pathlib
import pickle
import re
import subprocess
import sys
import types

import pytest

import minijax

# Upstream's modules that show what they import, or names that are not documented: only ours are
# checked. Those within `jax.experimental` are all untidy but a few.
TIDY = {
    f"jax.experimental.{name}"
    for name in ("checkify", "layout", "mesh_utils", "sparse", "sparse.bcoo")
}
UNTIDY = {
    "jax.example_libraries.optimizers", "jax.example_libraries.stax", "jax.extend.linear_util",
    "jax.interpreters.ad", "jax.interpreters.mlir", "jax.interpreters.partial_eval",
}  # fmt: skip
ABSENT = {
    # settings of rewrites inside upstream, which change nothing here
    "jax": {
        "jax2tf_associative_scan_reductions", "remove_size_one_mesh_axis_from_type",
    },
}  # fmt: skip


ROOT = pathlib.Path(minijax.__file__).parent


def public_modules():
    """The modules of the package that say what they show, by upstream's names."""
    for path in sorted(ROOT.rglob("*.py")):
        if re.search(r"^__dir__ = _?(shown|public)\(__name__\)$", path.read_text(), re.MULTILINE):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(("jax", *parts)).removesuffix(".__init__")


MODULES = list(public_modules())


def public(module):
    return {name for name in dir(module) if not name.startswith("_")}


@pytest.mark.parametrize("name", MODULES)
def test_shown(name):
    ours = importlib.import_module("mini" + name)
    assert set(ours.__all__) == public(ours)
    for shown in public(ours):
        getattr(ours, shown)
    try:
        upstream = importlib.import_module(name)
    except ImportError:
        return
    theirs = public(upstream)
    assert not {n for n in public(ours) - theirs if not hasattr(upstream, n)}
    if name in TIDY or (name not in UNTIDY and not name.startswith("jax.experimental.")):
        # Upstream shows a module within another once something has imported it.
        within = {n for n in theirs if isinstance(getattr(upstream, n), types.ModuleType)}
        named = {n for n in theirs - within if n.isidentifier()}
        assert named - public(ours) <= ABSENT.get(name, set()) | {"annotations"}


def test_every_module_that_an_import_of_upstream_brings_says_what_it_shows():
    code = """
import jax, json, types
seen = []
def walk(module):
    seen.append(module.__name__)
    for name in dir(module):
        value = getattr(module, name, None)
        full = module.__name__ + "." + name
        if isinstance(value, types.ModuleType) and value.__name__ == full and name[0] != "_":
            walk(value)
walk(jax)
print(json.dumps(seen))
"""
    reached = json.loads(subprocess.check_output([sys.executable, "-c", code]))
    assert set(reached) - set(MODULES) <= {"jax.lib", "jax.version"}


def test_lazy_names_are_given():
    assert minijax.numpy.linalg.norm and minijax.lax.after_all and minijax.scipy.stats.norm.logpdf
    with pytest.raises(AttributeError, match="no attribute 'summ'"):
        minijax.numpy.summ  # noqa: B018


# Names that upstream gives by accident: those of inner functions. Nor are private names, those of
# lambdas and of the classes of context managers any contract.
OTHERWISE = {
    "jax.example_libraries.stax.AvgPool", "jax.example_libraries.stax.MaxPool", "jax.example_libraries.stax.SumPool",
    "jax.extend.backend.register_backend_cache", "jax.lax.random_gamma_grad", "jax.export.deserialize",
}  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_functions_are_named_as_upstreams(module):
    """By `__name__` and `__qualname__`; an alias has its own, and pickling finds it."""
    ours = importlib.import_module("mini" + module)
    try:
        upstream = importlib.import_module(module)
    except ImportError:
        return
    wrong = {}
    for name in public(ours):
        a, b = getattr(ours, name), getattr(upstream, name)
        full = f"{module}.{name}"
        if (
            not isinstance(a, types.FunctionType)
            or full in OTHERWISE
            or name.endswith("_DO_NOT_USE")
        ):
            continue
        for attribute in ("__name__", "__qualname__"):
            theirs = getattr(b, attribute, None)
            accidental = theirs is None or theirs[0] in "_<" or theirs.endswith("Manager")
            if not accidental and getattr(a, attribute) != theirs:
                wrong[full, attribute] = getattr(a, attribute), theirs
        aliased = full.replace("jax", "minijax", 1).rpartition(".")[0] == a.__module__
        if aliased and pickle.loads(pickle.dumps(a)) is not a:
            wrong[full] = "pickles as another"
    assert not wrong


def test_a_second_name_is_a_function_of_its_own():
    f = minijax.numpy.absolute
    assert (
        f is not minijax.numpy.abs
        and f(-2.0) == 2
        and inspect.signature(f) == inspect.signature(minijax.numpy.abs)
    )
    assert "@jit_absolute" in f.lower(1.0).as_text() and "absolute" in repr(minijax.jit(f))


def objects(name):
    """Objects that users complete names of, by the library: an array, a sharding, a program, ..."""
    jax = importlib.import_module(name)
    x, mesh, tracers = jax.numpy.ones(3), jax.make_mesh((1,), ("rows",)), []
    f = jax.jit(lambda x: tracers.append(x) or x + 1)
    lowered = f.lower(x)
    return {
        "array": x, "x.at": x.at, "x.at[0]": x.at[0], "x.sharding": x.sharding, "mesh": mesh,
        "NamedSharding": jax.NamedSharding(mesh, jax.P("rows")), "P": jax.P("rows"), "jit": f,
        "lowered": lowered, "compiled": lowered.compile(), "vjp": jax.vjp(jax.numpy.sin, x)[1],
        "struct": jax.ShapeDtypeStruct((3,), "float32"), "custom_jvp": jax.custom_jvp(f),
        "custom_vjp": jax.custom_vjp(f), "treedef": jax.tree.structure(x), "ufunc": jax.numpy.add,
        "tracer": tracers[0], "device": jax.devices()[0], "function": jax.numpy.where,
    }  # fmt: skip


# Of concrete arrays, which ours offer on tracers too, to say there what is wrong; and of a feature.
BESIDE = {
    "tracer": {
        "block_until_ready", "copy_to_host_async", "device_buffer", "device_buffers", "weak_type",
    },
    "jit": {"explain_cache"}, "function": {"explain_cache"},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_objects_show_upstreams_names_and_no_others():
    theirs = objects("jax")
    for name, ours in objects("minijax").items():
        added = public(ours) - public(theirs[name]) - BESIDE.get(name, set())
        assert not added, (name, added)


@pytest.mark.parametrize(
    "name", ["numpy.add", "numpy.sin", "nn.relu", "lax.add", "custom_jvp", "Array"]
)
def test_public_objects_are_pickled_by_name(name):
    found = operator.attrgetter(name)(minijax)
    assert pickle.loads(pickle.dumps(found)) is copy.deepcopy(found) is found
    own = minijax.numpy.frompyfunc(divmod, 2, 2)  # which is none of a module's
    assert copy.copy(own) is not own


_LATE = """
import pickle, sys
import minijax, minijax.numpy as jnp
from minijax.namespace import names_so_far
late = [name for name in sys.modules if name.startswith("minijax.") and name.split(".")[-1] in
        ("convolution", "jacobians", "pmap", "sets", "signal", "shard_map", "special", "statistics")]
assert not late, late
for module in (minijax, jnp, minijax.lax):
    absent = [name for name in module.__all__ if name not in names_so_far(module)]
    assert absent
    for name in absent:
        found = getattr(module, name)
        assert found is getattr(module, name), name
        if type(found).__name__ == "function":
            assert found.__name__ == name
            assert pickle.loads(pickle.dumps(found)) is found, name
from minijax.numpy import *
assert unique is jnp.unique
"""


def test_names_that_are_imported_late():
    subprocess.run([sys.executable, "-c", _LATE], check=True)


@pytest.mark.parametrize("name", MODULES)
def test_vars_of_a_module_have_its_names(name):
    module = importlib.import_module("mini" + name)
    shown = vars(module)
    names = set(module.__all__)
    if name in ("jax.experimental.pjit", "jax.experimental.shard_map"):
        names.discard(name.rpartition(".")[2])  # asking for it warns
    assert names <= set(shown)
    assert all(shown[name] is getattr(module, name) for name in names)
    assert vars(module) is module.__dict__


def test_dir_imports_nothing():
    program = """
import minijax.numpy as jnp
from minijax.namespace import names_so_far
assert "average" in dir(jnp) and "average" not in names_so_far(jnp)
assert vars(jnp)["average"] is jnp.average and vars(jnp)["linalg"] is jnp.linalg
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_pickled_by_name(name):
    """By cloudpickle, which takes modules, and functions with a module among their globals."""
    cloudpickle = pytest.importorskip("cloudpickle")
    module = importlib.import_module("mini" + name)
    assert cloudpickle.loads(cloudpickle.dumps(module)) is module
    assert cloudpickle.loads(cloudpickle.dumps(lambda: module))() is module


def test_modules_of_the_standin_are_pickled_by_name():
    pytest.importorskip("cloudpickle")
    program = """
import minijax.jax
minijax.jax.install()
import sys
import cloudpickle, jax, jax.numpy as jnp, jax.scipy.stats, jax._src.core
modules = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "jax"]
assert len(modules) > 40
for module in modules:
    assert cloudpickle.loads(cloudpickle.dumps(module)) is module, module
f = lambda x: jax.jit(lambda y: jnp.sin(y) + jax.scipy.stats.norm.pdf(y))(x)
assert cloudpickle.loads(cloudpickle.dumps(f))(1.0) == f(1.0)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
