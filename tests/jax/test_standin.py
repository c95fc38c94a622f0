"""The stand-in: ways of starting it, identity of modules, and what it says of names it has not."""

import json
import pathlib
import subprocess
import sys

import pytest

import minijax

ROOT = pathlib.Path(minijax.__file__).parent
PROGRAM = """
import sys
import jax, jax.numpy as jnp
from jax import lax, random
from jax.tree_util import tree_map
import minijax
assert jax.numpy is minijax.numpy is jnp and lax is minijax.lax and random is minijax.random
print("args", *sys.argv[1:], __name__, jax.__version__, float(jax.grad(jnp.sin)(0.0)))
"""


def run(*arguments, code=0, **options):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=900, **options
    )
    assert done.returncode == code, done.stderr[-3000:]
    return done.stdout if code == 0 else done.stderr


def installed(program, code=0):
    return run("-c", "import minijax.jax; minijax.jax.install()\n" + program, code=code)


def test_install():
    out = installed(PROGRAM + "minijax.jax.install()\nassert minijax.jax.is_installed()\n")
    assert out.split() == ["args", "__main__", "0.10.2", "1.0"]


def test_importing_it_does_nothing():
    run("-c", "import minijax.jax, jax\nassert not minijax.jax.is_installed()\n"
        "assert 'minijax' not in jax.__file__")  # fmt: skip


def test_script(tmp_path):
    (tmp_path / "helper_of_script.py").write_text(
        "import jax.numpy\nshape = jax.numpy.zeros(2).shape\n"
    )
    script = tmp_path / "script.py"
    script.write_text("import helper_of_script\nassert helper_of_script.shape == (2,)\n" + PROGRAM)
    out = run("-m", "minijax.jax", str(script), "one", "--two")
    assert out.split() == ["args", "one", "--two", "__main__", "0.10.2", "1.0"]


def test_script_knows_its_path(tmp_path):
    """Its `__file__` is absolute, whatever was typed, so that it may change the folder."""
    (tmp_path / "script.py").write_text(
        "import __main__, inspect, os, sys\n"
        "def f(): pass\n"
        "print(__file__, sys.argv, sys.path[0], __spec__, __package__, type(__loader__).__name__)\n"
        "os.chdir(os.sep)\n"
        "print(f.__code__.co_filename, inspect.getsource(__main__.f), vars(__main__) is globals())"
    )
    typed = (f"{tmp_path.name}/script.py", "one")
    folder = tmp_path.parent
    assert run("-m", "minijax.jax", *typed, cwd=folder) == run(*typed, cwd=folder)


def test_module(tmp_path):
    (tmp_path / "module_of_mine.py").write_text(PROGRAM)
    out = run("-m", "minijax.jax", "-m", "module_of_mine", "-x", cwd=tmp_path)
    assert out.split() == ["args", "-x", "__main__", "0.10.2", "1.0"]


def test_usage():
    assert "usage" in run("-m", "minijax.jax", "--help")
    assert run("-m", "minijax.jax", "--version").split()[-2:] == ["(JAX", "0.10.2)"]
    assert "Unknown option: -q" in run("-m", "minijax.jax", "-q", code=2)
    assert "Argument expected for the -c" in run("-m", "minijax.jax", "-c", code=2)


def test_command():
    out = run("-m", "minijax.jax", "-c", PROGRAM, "one", "--two")
    assert out.split() == ["args", "one", "--two", "__main__", "0.10.2", "1.0"]


def test_standard_input():
    out = run("-m", "minijax.jax", input=PROGRAM)
    assert out.split() == ["args", "__main__", "0.10.2", "1.0"]


@pytest.mark.parametrize(
    ("arguments", "typed", "shown"),
    [
        (["-i"], "import jax; print(jax.__version__, 20 + 3)\n", "0.10.2 23"),
        (["-i", "-c", "import jax; x = jax.numpy.ones(3)"], "print(x.sum())\n", "3.0"),
        (["-i", "-c", "x = 23; raise KeyError(x)"], "print(x + 1, __name__)\n", "__main__"),
    ],
)
def test_prompt(arguments, typed, shown):
    assert shown in run("-m", "minijax.jax", *arguments, input=typed)


def test_exit_code(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import jax, sys\nsys.exit(3)\n")
    run("-m", "minijax.jax", str(script), code=3)


def test_pytest_plugin(tmp_path):
    (tmp_path / "conftest.py").write_text("import jax\nassert 'minijax' in jax.__file__\n")
    (tmp_path / "test_one.py").write_text(
        "import jax, minijax\ndef test_it(): assert jax.numpy is minijax.numpy\n"
    )
    run("-m", "pytest", "-p", "minijax.jax", "-p", "no:cacheprovider", ".", cwd=tmp_path)


def test_flags_of_absl(tmp_path):
    pytest.importorskip("absl")
    script = tmp_path / "script.py"
    script.write_text(
        "import jax, absl.flags\njax.config.parse_flags_with_absl()\n"
        "print(jax.config.jax_enable_x64, absl.flags.FLAGS.is_parsed())\n"
    )
    out = run("-m", "minijax.jax", str(script), "--jax_enable_x64=true", "--other", "-x")
    assert out.split() == ["True", "True"]


FLAGS = {
    "of pytest": ["-v", "-p", "no:cacheprovider"],
    "of absl": ["--verbosity=no", "--flagfile=/nowhere"],
    "of the library": ["first", "--jax_enable_x64=1", "-q", "--jax_num_cpu_devices=2"],
    "unknown": ["--jax_no_such_flag=1", "--jax_enable_x64"],
    "after the options": ["--jax_log_compiles", "--", "--jax_enable_x64"],
    "one dash": ["-jax_enable_x64"],
    "negated": ["--nojax_use_direct_linearize"],
    "no value": ["--jax_num_cpu_devices", "3"],
    "no boolean": ["--jax_enable_x64=maybe"],
}


@pytest.mark.parametrize("name", FLAGS)
def test_flags_on_the_command_line(name):
    """Upstream reads its own options, and leaves those of other programs alone."""
    pytest.importorskip("absl")
    program = """
import jax
try:
    jax.config.parse_flags_with_absl()
    flags = "enable_x64", "num_cpu_devices", "log_compiles", "use_direct_linearize"
    print(*[getattr(jax.config, "jax_" + flag) for flag in flags])
except Exception as error:
    print(type(error).__name__)
"""
    theirs = run("-c", program, *FLAGS[name])
    assert run("-m", "minijax.jax", "-c", program, *FLAGS[name]) == theirs


def test_modules_that_can_be_imported():
    """Each module directly in minijax can be imported as one of `jax` if upstream has it."""
    program = f"""
import importlib
import jax
for name in {sorted({path.stem for path in ROOT.iterdir() if path.name[0] not in "_."})}:
    before = getattr(jax, name, None)
    try:
        importlib.import_module("jax." + name)
    except ModuleNotFoundError:
        print(name, "missing", getattr(jax, name, None) is before)
    else:
        print(name, "there")
"""
    assert run("-m", "minijax.jax", "-c", program) == run("-c", program)


@pytest.mark.parametrize("function", ["jax.lax.dot", "jax.lax.fft", "jax.numpy.einsum"])
def test_functions_that_have_the_name_of_a_module(function):
    """A search for a module of this name finds none, and the function stays where it is."""
    program = f"""
import importlib, pkgutil, pydoc
import jax
for find in (pydoc.locate, pkgutil.resolve_name):
    print(callable(find({function!r})))
try:
    importlib.import_module({function!r})
except ModuleNotFoundError:
    print(callable(eval({function!r})))
"""
    assert run("-m", "minijax.jax", "-c", program) == run("-c", program) == 3 * "True\n"


def test_notebook():
    pytest.importorskip("IPython")
    run(
        "-c",
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_line_magic('load_ext', 'minijax.jax')\n"
        "result = shell.run_cell('import jax; assert \"minijax\" in jax.__file__')\n"
        "result.raise_error()\n",
    )


def test_after_upstream():
    message = run(
        "-c", "import jax\nimport minijax.jax\nminijax.jax.install()", code=1
    )  # fmt: skip
    assert "ImportError: upstream JAX was imported already" in message


def test_identity():
    installed("""
import importlib, importlib.metadata, importlib.util, sys, types
import jax, minijax
for name in ("numpy", "lax", "random", "tree_util", "errors", "core", "extend.core", "api_util",
             "interpreters.ad", "interpreters.mlir", "flatten_util", "sharding", "stages", "nn"):
    theirs = importlib.import_module("jax." + name)
    ours = importlib.import_module("minijax." + name)
    assert theirs is ours is sys.modules["jax." + name], name
    assert ours.__spec__.name == "minijax." + name, name
    # array-api-compat and SciPy know the namespace by its name.
    assert ours.__name__ == ("jax." if name == "numpy" else "minijax.") + name, name
assert isinstance(jax, types.ModuleType) and jax.__name__ == "jax"
assert jax.__spec__.name == "jax" and jax.__file__ == minijax.__file__
assert jax.__version_info__ == (0, 10, 2) and jax.version.__version__ == "0.10.2"
assert importlib.util.find_spec("jax").name == "jax"
import jaxlib
assert importlib.metadata.version("jaxlib") == jaxlib.__version__
assert "minijax" not in jaxlib.__file__
assert jax.Array is minijax.Array and jax.jit is minijax.jit and "jit" in dir(jax)
jax.config.update("jax_enable_x64", True)
assert jax.numpy.arange(2.0).dtype == "float64"
""")


SERIALIZED = """
import jax, numpy as np
from jax.experimental import layout, serialize_executable
mesh = jax.make_mesh((1,), ("i",))
one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
for place in (jax.NamedSharding(mesh, jax.P("i")), layout.Format(layout.Layout((1, 0)), one), one):
    f = jax.jit(lambda x: x.T, in_shardings=place, out_shardings=place)
    made = f.lower(np.ones((2, 3), "f")).compile()
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(made))
    print(again.input_formats == made.input_formats, again.output_formats == made.output_formats)
"""


def test_compiled_functions_are_serialized_whose_places_have_upstreams_names():
    assert run("-m", "minijax.jax", "-c", SERIALIZED).split() == ["True"] * 6


VALUES = """
import pickle, jax, jax.numpy as jnp
x, seen = jnp.ones(3), []
see = lambda x: seen.append(type(x)) or x.sum()
see(x), see(jax.device_get(x)), jax.jit(see)(x), jax.vmap(see)(x), jax.grad(see)(x)
jax.jvp(see, (x,), (x,)), jax.linearize(see, x)
jax.jit(jax.vmap(jax.grad(see)))(x)
print([kind.__module__.partition(".")[0] for kind in seen], pickle.loads(pickle.dumps(x)))
from jax._src.interpreters.batching import BatchTracer
print(BatchTracer in seen)
print([pickle.loads(pickle.dumps(kind, p)) is kind for kind in [type(x)] for p in range(5)])
"""


def test_values_are_of_upstreams_packages():
    upstream = subprocess.run([sys.executable, "-c", VALUES], capture_output=True, text=True)
    assert installed(VALUES) == upstream.stdout != ""


def test_log_records():
    """A program filters the records of upstream's loggers, and sets their levels."""
    out = installed("""
import logging
import jax, jax.numpy as jnp
class Shown(logging.Handler):
    def emit(self, record):
        print(record.name, record.levelname)
logging.getLogger("jax").addHandler(Shown())
logging.getLogger("jax").propagate = False
def fails(x):
    raise ValueError
def attempt():
    try:
        jax.pure_callback(fails, jax.ShapeDtypeStruct((), "float32"), 1.0)
    except Exception:
        pass
    with jax.log_compiles(True):
        jax.jit(lambda x: x + 1)(1.0)
    jax.debug.log("hello")
    jax.effects_barrier()
attempt()
logging.getLogger("jax").setLevel(logging.INFO)
logging.getLogger("jax._src.callback").addFilter(lambda record: False)
attempt()
""")
    compiled = [f"jax._src.{name} WARNING" for name in (
        "dispatch", "interpreters.pxla", "dispatch", "dispatch"
    )]  # fmt: skip
    compiled.append("jax._src.debugging INFO")  # whatever the level
    assert out.splitlines() == ["jax._src.callback ERROR", *compiled, *compiled]


def test_versions_and_types():
    installed("""
import jax, jax.lib, jaxlib, ml_dtypes, numpy as np
assert jax.lib.__version__ == jaxlib.__version__
assert jax.dtypes.bfloat16 is ml_dtypes.bfloat16 and jax.dtypes.bfloat16(2) == 2
assert jax.numpy.ones(1, jax.dtypes.bfloat16).dtype == jax.dtypes.bfloat16
""")


def test_upstream_is_not_imported():
    installed("""
import sys, warnings
import jax, jax.numpy as jnp, numpy as np
from jax._src import core, dtypes, traceback_util
x = jnp.arange(6.0).reshape(2, 3)
np.asarray(x); np.from_dlpack(x); repr(x); x.tolist(); jax.device_put(x, jax.devices()[0])
jax.jit(jax.grad(lambda x: (x @ x.T).sum()))(x)
jnp.asarray(x, jnp.bfloat16).__array__(); jnp.asarray(x, "int4").tolist()
strangers = [name for name, module in sys.modules.items() if name.split(".")[0] == "jax"
             and "minijax" not in (getattr(module, "__file__", None) or "")]
assert not strangers, strangers
""")


def test_each_module_can_be_the_first():
    installed("""
import importlib, os
from minijax.jax.modules import MODULES
from minijax.jax.names import PUBLIC_MODULES
failed = []
for name in sorted({*MODULES, *(f"jax.{name}" for name in PUBLIC_MODULES)}):
    child = os.fork()
    if not child:
        dir(importlib.import_module(name))
        os._exit(0)  # not reached after an error, which ends the child with another status
    if os.waitpid(child, 0)[1]:
        failed.append(name)
assert not failed, failed
""")


MISSING = {
    "import jax.no_such_module": "ModuleNotFoundError",
    "import jax.numpy.statistics_of_mine": "ModuleNotFoundError",
    "import jax.transforms": "ModuleNotFoundError",
    "import jax._src.tpu_custom_call": "ModuleNotFoundError",
    "from jax._src.core import no_such_name": "ImportError",
    "from jax._src import no_such_module": "ImportError",
    "import jax; jax.no_such_name": "AttributeError",
    "import jax; jax.lowering": "AttributeError",
    "import jax._src.core; jax._src.core.no_such_name": "AttributeError",
}


def test_what_it_has_not():
    installed(f"""
for statement, wanted in {MISSING!r}.items():
    try:
        exec(statement)
    except Exception as error:
        assert type(error).__name__ == wanted, (statement, error)
        assert "minijax" in str(error) or statement.startswith("from"), error
    else:
        raise AssertionError(statement)
""")


def test_what_it_has_not_is_only_absent():
    installed("""
import jax, jax._src.core as core
assert not hasattr(jax, "no_such_name") and not hasattr(core, "no_such_name")
assert not hasattr(jax, "lowering") and not hasattr(jax, "runtime")
try:
    import jax.no_such_module
except ImportError as error:
    assert error.name == "jax.no_such_module"
""")


REGISTERED = """
import numpy as np
import jax, jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
twice_p = Primitive("test_twice")
twice_p.def_impl(lambda x: jnp.asarray(x) * 2)
twice_p.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: x * 2, multiple_results=False))
ad.deflinear2(twice_p, lambda ct, x: [twice_p.bind(ct)])
batching.defvectorized(twice_p)
x = jnp.arange(3.0)
sine_p = Primitive("test_sine")
sine_p.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
sine_p.def_impl(jnp.sin)
mlir.register_lowering(sine_p, mlir.lower_fun(jnp.sin, multiple_results=False))
ad.defjvp(sine_p, lambda t, x: t * jnp.cos(x))
batching.primitive_batchers[sine_p] = lambda args, dims: (sine_p.bind(*args), dims[0])
both = lambda x: sine_p.bind(twice_p.bind(x))
results = [both(x), jax.jit(both)(x), jax.vmap(both)(x), jax.vmap(jax.grad(both))(x),
           jax.jvp(both, (x,), (x,))[1], jax.jit(jax.vmap(jax.grad(jax.grad(both))))(x)]
print(str(jax.make_jaxpr(both)(x)).split())
print([np.asarray(r).round(5).tolist() for r in results])
"""


def test_primitives_from_outside():
    assert installed(REGISTERED) == run("-c", REGISTERED)


PARTS = """
import warnings
import jax, numpy as np
from jax._src import op_shardings
from jax._src.compilation_cache import is_persistent_cache_enabled
from jax._src.lib import cuda_versions, pytree
from jax._src.sharding import common_devices_indices_map
from jax.experimental.shard_map import shard_map
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
specs = P(), P("x"), P("x", "y"), P(None, "y"), P(("y", "x")), P("y"), P(("x", "y"), None)
found = [NamedSharding(mesh, spec)._to_xla_hlo_sharding(2) for spec in specs]
for one in found:
    print(op_shardings.get_num_ways_dim_sharded(one), op_shardings.is_hlo_sharding_replicated(one))
    print([op_shardings.are_hlo_shardings_equal(one, other) for other in found])
    print(op_shardings.op_sharding_to_indices(one, (8, 8), 8))
places = common_devices_indices_map(NamedSharding(mesh, P("x")), (8, 2))
print(*[f"{device} {part}" for device, part in places.items()], cuda_versions)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    total = shard_map(lambda a: jax.lax.psum(a, "x"), mesh, P("x"), P(), check_rep=False)
print(total(jax.numpy.arange(8.0)))
"""


def test_parts_of_shardings():
    assert installed(PARTS) == run("-c", PARTS)


def test_modules_that_are_only_there():
    """Libraries import them at their head, for devices that there may be."""
    out = installed(
        "from jax.experimental import pallas as pl\n"
        "from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel\n"
        "from jax.experimental.pallas import mosaic_gpu, tpu as pltpu, triton\n"
        "import jax.experimental.pallas.ops.gpu\n"
        "import jax\nassert jax.experimental.pallas is pl\n"
        "spec = pl.BlockSpec((8,), lambda i: (i,), memory_space=pltpu.VMEM)\n"
        "try:\n    mosaic_gpu.kernel\nexcept AttributeError as error:\n    print(error)\n"
        "try:\n    pl.delay\nexcept AttributeError as error:\n    print(error)\n"
    )
    assert "no 'jax.experimental.pallas.mosaic_gpu.kernel'" in out
    assert "no 'experimental.pallas.delay'" in out


MODULES = """
import jax, sys
print(*sorted(k for k in sys.modules if k.startswith("jax.") and not k.startswith("jax._src")))
"""


def test_submodules_are_in_sys_modules():
    assert installed(MODULES) == run("-c", MODULES)


def test_submodules_run_when_used():
    installed(
        "import sys, jax, minijax\n"
        "assert type(sys.modules['jax.random']).__name__ == 'Unloaded'\n"
        "import jax.random, jax.nn.initializers as initializers\n"
        "from jax.interpreters import mlir\n"
        "assert sys.modules['jax.random'] is jax.random is minijax.random\n"
        "assert jax.random.key(0).shape == () and jax.nn.initializers is initializers\n"
        "assert 'initializers' in dir(jax.nn) and mlir.register_lowering\n"
    )


VARS = """
import importlib, json, types
import jax
found = {}
for name in ("jax", "jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.lax", "jax.lax.linalg",
             "jax.nn", "jax.random", "jax.ops", "jax.scipy.special", "jax.core", "jax.interpreters.ad",
             "jax.extend.core.primitives", "jax.stages", "jax.tree_util", "jax.image", "jax.ref"):
    module = importlib.import_module(name)
    found[name] = [n for n in vars(module) if n[0] != "_"]
    asked = theirs.get(name, found[name])
    assert not [n for n in asked if hasattr(module, n) and n not in found[name]], name
    assert vars(module) is module.__dict__ and not set(dir(module)) - set(vars(module)), name
print(json.dumps(found))
"""


def test_vars_of_modules_have_the_names_of_upstream():
    theirs = json.loads(run("-c", f"theirs = {{}}\n{VARS}"))
    ours = json.loads(installed(f"theirs = {theirs}\n{VARS}"))
    assert {"median", "linalg", "sin"} < set(ours["jax.numpy"]) & set(theirs["jax.numpy"])
    assert "norm" in ours["jax.numpy.linalg"] and "jacfwd" in ours["jax"]


def test_vars_of_a_module_run_it():
    out = installed(
        "import jax, sys\n"
        "private = sys.modules['jax.random']\n"
        "assert type(private).__name__ == 'Unloaded'\n"
        "print('normal' in vars(private), vars(private) is vars(jax.random))\n"
        "import jax._src.core as core\n"
        "print('ShapedArray' in vars(core), set(dir(core)) <= set(vars(core)))\n"
    )
    assert out.split() == ["True"] * 4


HOMES = """
import importlib, json, sys
import jax, jax.numpy, jax.lax, jax.nn, jax.random, jax.sharding, jax.tree_util, jax.scipy.special
found = {}
for module in ("jax", "jax.numpy", "jax.nn", "jax.random", "jax.lax", "jax.sharding", "jax.tree_util",
               "jax.scipy.special", "jax.errors", "jax.numpy.linalg", "jax.dtypes"):
    place = importlib.import_module(module)
    for name in sorted({*vars(place), *getattr(place, "__all__", ())}):  # some are loaded when used
        value = getattr(place, name)
        home = getattr(value, "__module__", None)
        if name[0] != "_" and isinstance(home, str) and hasattr(value, "__name__"):
            found[f"{module}.{name}"] = home
print(json.dumps(found))
"""
# Names that two modules show: upstream's say that they are of the other one, or of jaxlib.
HOMES_ELSEWHERE = {
    "jax.Array", "jax.numpy.ndarray", "jax.numpy.issubdtype", "jax.numpy.result_type",
    "jax.dtypes.issubdtype", "jax.dtypes.result_type", "jax.numpy.iterable", "jax.numpy.poly",
    "jax.numpy.polyfit", "jax.numpy.roots", "jax.P",
    "jax.sharding.PartitionSpec", "jax.sharding.Sharding",
}  # fmt: skip


def test_public_objects_are_of_upstreams_modules():
    """Where upstream's say that they are of a public module, so do ours: texts and pickles agree."""
    theirs, ours = json.loads(run("-c", HOMES)), json.loads(installed(HOMES))
    public = {
        name: home
        for name, home in theirs.items()
        if home.startswith("jax.") and "._" not in home and name in ours
    }
    assert len(public) > 480
    other = {name: ours[name] for name, home in public.items() if ours[name] != home}
    assert set(other) <= HOMES_ELSEWHERE, other
    assert not any(home.startswith("minijax") for name, home in ours.items() if name in public
                   and name not in HOMES_ELSEWHERE)  # fmt: skip


PICKLED = """
jnp.arange(3.0), jnp.asarray(2.0), jnp.ones((2, 0), "bfloat16"), jnp.arange(4, dtype="uint4")
jnp.array([1j]), jax.random.PRNGKey(3), jnp.array(True), {"w": [jnp.eye(2)]}, jax.P("a", None, ("b",))
jax.tree.structure({"a": (1, None)}), jnp.bfloat16, jax.lax.Precision.HIGHEST, jax.nn.gelu
"""


@pytest.mark.parametrize("of_mini", [False, True], ids=["upstream's", "minijax's"])
def test_pickles_of_the_other_library(of_mini, tmp_path):
    """Parameters that one library saved are read by a program that runs on the other."""
    file, values = tmp_path / "values.pkl", ", ".join(PICKLED.strip().splitlines())
    head = "import pickle\nimport jax, jax.numpy as jnp\n"
    plain = lambda program: run("-c", program)
    save, load = (installed, plain) if of_mini else (plain, installed)
    shown = "print([(v if not callable(v) else v.__name__) for v in values])"
    out = save(f"{head}values = {values}\npickle.dump(values, open({str(file)!r}, 'wb'))\n{shown}")
    assert load(f"{head}values = pickle.load(open({str(file)!r}, 'rb'))\n{shown}") == out != ""


def test_public_functions_can_be_pickled():
    installed(
        "import pickle, jax, jax.numpy as jnp\n"
        "for f in (jnp.sin, jax.nn.gelu, jax.numpy.linalg.inv, jax.random.normal, jnp.float32):\n"
        "    assert pickle.loads(pickle.dumps(f)) is f, f\n"
    )


# Options that exist once upstream's helpers for tests are imported, by a test before this one.
OF_TEST_UTIL = {
    "exclude_test_targets", "jax_num_generated_cases", "jax_skip_slow_tests", "jax_test_dut",
    "jax_test_num_threads", "jax_test_with_persistent_compilation_cache",
    "max_cases_sampling_retries", "test_targets",
}  # fmt: skip


def test_every_option_of_upstreams_is_known():
    import jax

    import minijax

    for name in jax.config.values.keys() - OF_TEST_UTIL:
        value, given = jax.config.values[name], minijax.config.read(name)
        if name != "jax_num_cpu_devices":  # which cannot be set once there are devices
            minijax.config.update(name, given)
        assert getattr(minijax.config, name) == given
        assert given is None or value is None or isinstance(given, str) == isinstance(value, str)
    with pytest.raises(ValueError, match="always works as"):
        minijax.config.update("jax_remove_size_one_mesh_axis_from_type", True)


def test_colocated_python():
    installed(
        "import numpy as np, jax\n"
        "from jax.experimental import colocated_python as colocated\n"
        "f = colocated.colocated_python(lambda x: x + 1)\n"
        "assert float(f(jax.numpy.ones(()))) == 2\n"
        "assert colocated.colocated_cpu_devices(jax.devices()) == jax.devices()\n"
    )


def test_modules_that_are_answered_name_by_name():
    """They are found by `import a.b` and by `from a import b`, those within files too."""
    installed(
        "import importlib\n"
        "from minijax.jax import modules, names\n"
        "served = {*names.ALIASES, *names.MODULE_ALIASES, *modules.MODULES}\n"
        "assert len(served) > 80, len(served)\n"
        "for name in sorted(served):\n"
        "    package, _, last = name.rpartition('.')\n"
        "    if package:\n"
        "        exec(f'from {package} import {last}')\n"
        "    importlib.import_module(name)\n"
        "within = 'jax.experimental.pallas.ops.tpu.matmul'  # of a package that has some names only\n"
        "for name in (within, 'jax.numpy.nope', 'jax.version.nope'):\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        assert 'has no ' + repr(name) in str(error), error\n"
        "    else:\n"
        "        raise AssertionError(name)\n"
    )
