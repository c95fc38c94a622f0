"""Suites written for JAX on the stand-in: the helpers of `jax._src.test_util`, and private names.

One suite runs in two processes, on upstream and on the stand-in; its tests must come out alike.
"""

import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

from minijax.jax.modules import _LIBRARIES, _MODULES

pytest.importorskip("absl")

SUITE = pathlib.Path(__file__).parents[1] / "harness" / "standin_suite.py"
ENVIRONMENT = {
    "JAX_ENABLE_COMPILATION_CACHE": "0",
    "JAX_NUM_GENERATED_CASES": "4",
    "JAX_PLATFORMS": "cpu",
}
STANDIN = ("-m", "minijax.jax")


def child(*arguments, code=0):
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True, text=True, timeout=900, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert done.returncode == code, done.stderr[-3000:]
    return done


@functools.cache
def outcomes(*how):
    return json.loads(child(*how, str(SUITE), "--outcomes").stdout.splitlines()[-1])


def test_every_test_comes_out_as_upstream():
    ours, theirs = outcomes(*STANDIN), outcomes()
    assert set(ours) == set(theirs)
    differing = {
        name: (theirs[name], ours[name]) for name in ours if ours[name][0] != theirs[name][0]
    }
    assert not differing


def test_right_tests_pass_and_wrong_ones_fail():
    found = outcomes(*STANDIN)
    assert len(found) > 80
    for name, (outcome, told) in found.items():
        assert (outcome == "failed") == name.startswith("Wrong"), (name, outcome, told)


def test_absltest_main():
    done = child(*STANDIN, str(SUITE), "DeviceTest", "WrongTest.testTolerance", code=1)
    assert "Ran 5 tests" in done.stderr
    assert "FAILED (failures=1, skipped=3)" in done.stderr
    child(*STANDIN, str(SUITE), "ApiTest.testTrees")


INPUTS = """
import hashlib, json
import jax, numpy as np
from jax._src import test_util as jtu
makers = ["default", "nonzero", "positive", "small", "not_small", "small_positive", "uniform", "bool",
          "some_equal", "some_inf", "some_inf_and_nan", "some_zero"]
found = {}
for name in makers:
    for dtype in (np.float32, np.float16, jax.numpy.bfloat16, np.int32, np.uint8, np.complex64):
        for shape in ((3, 20), (0, 2), (), jtu.NUMPY_SCALAR_SHAPE, jtu.PYTHON_SCALAR_SHAPE):
            value = getattr(jtu, "rand_" + name)(np.random.RandomState(0))(shape, dtype)
            key = f"{name} {jtu.format_shape_dtype_string(shape, dtype)}"
            found[key] = [type(value).__name__, hashlib.md5(np.asarray(value).tobytes()).hexdigest()]
for low, high in ((0, None), (2, 9), (-3, 4)):
    found[f"int {low} {high}"] = jtu.rand_int(np.random.RandomState(0), low, high)((9,), np.int8).tolist()
found["cases"] = list(jtu.sample_product_testcases([dict(a=1), dict(a=2)], b=range(40)))
found["plane"] = jtu.complex_plane_sample(np.complex64, 1, 3).tolist().__repr__()
found["tolerances"] = [jtu.tolerance(np.dtype(d)) for d in ("bool", "int8", "float16", "float32", "complex128")]
found["names"] = [jtu.sanitize_test_name(s) for s in ("a b-c.d[3](x=2,'q')", "__a__", "(1, 2)")]
for x64 in (False, True):
    with jtu.global_config_context(jax_enable_x64=x64):
        lazy = type(jtu.dtypes)()
        found[f"dtypes {x64}"] = [[np.dtype(d).name for d in getattr(lazy, group)] for group in (
            "floating", "all_floating", "integer", "all_integer", "unsigned", "all_unsigned",
            "complex", "boolean", "inexact", "all_inexact", "numeric", "all")]
print(json.dumps(found))
"""


def test_inputs_are_those_of_upstream():
    installed = "import minijax.jax; minijax.jax.install()\n"
    ours, theirs = (json.loads(child("-c", how + INPUTS).stdout) for how in (installed, ""))
    assert {name: (theirs[name], ours[name]) for name in theirs if theirs[name] != ours[name]} == {}


NAMES = """
import sys, types
import minijax.jax; minijax.jax.install()
import minijax as mini
from jax._src import api, array, core, dtypes, tree_util
from jax._src.lax import control_flow, lax, slicing
from jax._src.lax.control_flow.loops import scan
from jax._src.numpy import lax_numpy, ufuncs
from jax._src.scipy.stats import norm
from jax._src.named_sharding import NamedSharding
from jax._src.partition_spec import PartitionSpec
assert lax.add is mini.lax.add and slicing.gather_p is mini.lax.gather_p and scan is mini.lax.scan
assert control_flow.cond is mini.lax.cond and lax_numpy.arange is mini.numpy.arange
assert ufuncs.sin is mini.numpy.sin and norm.cdf is mini.scipy.stats.norm.cdf
assert PartitionSpec is mini.P and NamedSharding is mini.sharding.NamedSharding
assert tree_util.tree_map is mini.tree_util.tree_map and api.vjp is mini.vjp
assert "absl" not in sys.modules
for module, name in ((core, "no_such_name"), (lax, "np"), (lax, "_no_such_name"), (array, "Any")):
    try:
        getattr(module, name)
    except AttributeError as error:
        assert "minijax" in str(error)
    else:
        raise AssertionError(name)
from jax._src import test_util as jtu
try:
    jtu.count_jax_array_shard_arg_calls
except AttributeError as error:
    assert "minijax" in str(error)
"""


def test_private_names():
    child("-c", NAMES)


def test_every_module_is_there():
    named = [modules for _, modules in _LIBRARIES.values()] + list(_MODULES.values())
    for module in {module for modules in named for module in modules.split()} - {"minijax"}:
        assert importlib.util.find_spec(f"minijax.{module}") is not None, module


SETTINGS = """
import jax
from jax._src import config
found = []
def note(thunk):
    try:
        found.append(repr(thunk()))
    except Exception as error:
        found.append(type(error).__name__)
note(lambda: jax.config.parse_flags_with_absl())
note(lambda: config.config is jax.config)
note(lambda: config.enable_x64.value)
note(lambda: jax.config.x64_enabled)
for flag in ("jax_enable_x64", "jax_debug_nans", "jax_use_shardy_partitioner", "jax_platform",
             "jax_numpy_rank_promotion", "jax_default_matmul_precision", "jax_pprint_use_color",
             "jax_use_direct_linearize", "jax_logging_level", "jax_enable_pgle"):
    note(lambda: getattr(jax.config, flag))
    note(lambda: jax.config.update(flag, getattr(jax.config, flag)))
for name in ("enable_x64", "numpy_rank_promotion", "debug_nans", "disable_jit", "default_device",
             "default_prng_impl", "log_compiles", "use_shardy_partitioner", "no_such_state"):
    note(lambda: getattr(config, name).value)
    note(lambda: getattr(config, name).get_global())
    note(lambda: getattr(config, name).name)
def within(context, read):
    with context:
        return read()
note(lambda: within(config.enable_x64(True), lambda: (config.enable_x64.value, config.enable_x64.get_global())))
note(lambda: within(config.numpy_rank_promotion("raise"), lambda: jax.config.jax_numpy_rank_promotion))
note(lambda: within(config.numpy_dtype_promotion("strict"), lambda: str(jax.config.jax_numpy_dtype_promotion)))
note(lambda: within(config.numpy_rank_promotion("no"), lambda: 0))
note(lambda: bool(config.enable_x64))
note(lambda: jax.config.update("jax_no_such_flag", 1))
note(lambda: jax.config.update("jax_numpy_rank_promotion", "no"))
note(lambda: setattr(jax.config, "jax_enable_x64", True))
print(found)
"""


def test_settings():
    installed = "import minijax.jax; minijax.jax.install()\n"
    assert child("-c", installed + SETTINGS).stdout == child("-c", SETTINGS).stdout
