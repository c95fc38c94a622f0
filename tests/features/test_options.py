"""Options of upstream's config: the values they take, from programs and from the environment, and
files and warnings that they ask for."""

import json
import os
import re
import subprocess
import sys
import warnings

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

import minijax
import minijax.ad_checkpoint
from minijax.accepted_options import hints
from minijax.runtime.executables import compile_options

pytestmark = pytest.mark.both_ends

GIVEN = ("text", "", 1, 0, 2.5, True, None, b"x", [], "O1", "raise", "DEBUG", "on")
LEVELS = ("jax_optimization_level", "jax_memory_fitting_level")
CHOICES = (
    "jax_cpu_collectives_implementation", "jax_default_matmul_precision", "jax_numpy_rank_promotion",
    "jax_traceback_filtering", "jax_transfer_guard",
)  # fmt: skip
LEFT_OUT = {
    "jax_pjrt_client_create_options", "jax_send_traceback_to_runtime",  # of types of upstream's
    # Upstream does not change them once there are devices.
    "jax_cpu_get_global_topology_timeout_minutes", "jax_cpu_get_local_topology_timeout_minutes",
}  # fmt: skip
OPTIONS = sorted({*hints, *LEVELS, *CHOICES} - LEFT_OUT)


def read(m, name):
    return m.config.read(name) if m is minijax else m.config.values[name]


def updated(m, name, value):
    """The value that an option has after an update, or its error."""
    before = read(m, name)
    try:
        m.config.update(name, value)
        return read(m, name)
    except Exception as error:
        return error
    finally:
        m.config.update(name, before)


@pytest.mark.parametrize("name", OPTIONS)
def test_values(name):
    if name not in jax.config.values:
        pytest.skip("upstream of this version has no such option")
    for value in GIVEN:
        theirs, ours = updated(jax, name, value), updated(minijax, name, value)
        if isinstance(theirs, Exception):
            assert type(ours) is type(theirs), (value, ours, theirs)
            assert str(ours).startswith(str(theirs).rstrip(".")), (value, ours)
        else:
            assert (type(ours), ours) == (type(theirs), theirs), value


READ = """
import json, sys
try:
    import {module} as m
    read = m.config.read if m.__name__ == "minijax" else m.config.values.get
    print(json.dumps({{name: read(name) for name in sys.argv[1:]}}))
except ValueError as error:
    print(json.dumps(str(error)))
"""
ENVIRONMENT = {
    "good": {
        "JAX_DUMP_IR_TO": "folder", "JAX_CAPTURED_CONSTANTS_WARN_BYTES": "5", "JAX_REMAT3": "yes",
        "JAX_ERROR_CHECKING_BEHAVIOR_NAN": "raise", "JAX_OPTIMIZATION_LEVEL": "O1", "JAX_USE_MAGMA": "off",
        "JAX_PPRINT_USE_COLOR": "0", "JAX_DEFAULT_MATMUL_PRECISION": "float32", "JAX_ENABLE_X64": "1"},
    "no number": {"JAX_CAPTURED_CONSTANTS_WARN_BYTES": "x"},
    "no flag": {"JAX_ENABLE_X64": "abc"},
    "no flag among the hints": {"JAX_REMAT3": "abc"},
    "no level": {"JAX_OPTIMIZATION_LEVEL": "O7"},
    "no choice": {"JAX_ERROR_CHECKING_BEHAVIOR_NAN": "x"},
    "no rank promotion": {"JAX_NUMPY_RANK_PROMOTION": "x"},
    "no count": {"JAX_NUM_CPU_DEVICES": "x"},
}  # fmt: skip


@pytest.mark.parametrize("case", ENVIRONMENT)
def test_environment(case):
    given = ENVIRONMENT[case]
    names = [variable.lower() for variable in given]
    theirs, ours = [
        json.loads(subprocess.run(
            [sys.executable, "-c", READ.format(module=module), *names],
            capture_output=True, text=True, check=True, env=os.environ | given,
        ).stdout)
        for module in ("jax", "minijax")
    ]  # fmt: skip
    if isinstance(theirs, str):
        assert ours.startswith(theirs)
    else:
        assert ours == theirs


DRAWN = {
    "gumbel": lambda m, key: m.random.gumbel(key, (8,)),
    "gumbel, low": lambda m, key: m.random.gumbel(key, (8,), mode="low"),
    "categorical": lambda m, key: m.random.categorical(key, np.zeros(9, np.float32), shape=(8,)),
    "without replacement": lambda m, key: m.random.categorical(
        key, np.zeros(9, np.float32), shape=(8,), replace=False),
    "choice": lambda m, key: m.random.choice(
        key, 9, (8,), replace=False, p=np.full(9, 1 / 9, np.float32)),
    "traced": lambda m, key: m.jit(lambda key: m.random.gumbel(key, (8,)))(key),
}  # fmt: skip


@pytest.mark.parametrize("high", [True, False])
@pytest.mark.parametrize("name", DRAWN)
def test_high_dynamic_range_gumbel(name, high):
    drawn = []
    for m in (jax, minijax):
        before = read(m, "jax_high_dynamic_range_gumbel")
        m.config.update("jax_high_dynamic_range_gumbel", high)
        try:
            drawn.append(np.asarray(DRAWN[name](m, m.random.key(3))))
        finally:
            m.config.update("jax_high_dynamic_range_gumbel", before)
    np.testing.assert_array_max_ulp(*map(np.float32, drawn), 4)


def test_mesh_context_manager_is_disallowed():
    for m in (jax, minijax):
        mesh = m.sharding.Mesh(np.array(m.devices()[:1]), "x")
        m.config.update("jax_disallow_mesh_context_manager", True)
        try:
            with pytest.raises(RuntimeError, match="Mesh context manager is disabled"):
                mesh.__enter__()
            with m.set_mesh(mesh):
                pass
        finally:
            m.config.update("jax_disallow_mesh_context_manager", False)


DEVICES = """
import {module} as m
for ask in (m.devices, m.default_backend, lambda: m.devices("cpu"), lambda: m.jit(lambda x: x + 1)(1)):
    try:
        print(ask())
    except RuntimeError as error:
        print(error)
"""


@pytest.mark.parametrize("name", ["cpu", "gpu", "no such platform", ""])
@pytest.mark.parametrize("option", ["JAX_PLATFORM_NAME", "JAX_XLA_BACKEND"])
def test_preferred_platform(option, name):
    theirs, ours = [
        subprocess.run(
            [sys.executable, "-c", DEVICES.format(module=module)],
            capture_output=True, text=True, check=True, env=os.environ | {option: name},
        ).stdout.splitlines()
        for module in ("jax", "minijax")
    ]  # fmt: skip
    assert len(ours) == len(theirs) == 4
    for mine, yours in zip(ours, theirs, strict=True):
        assert mine.startswith(yours)


@pytest.fixture
def dumped(tmp_path):
    """Set the options of both libraries on files; return the names in a library's folder."""
    saved = {name: hints[name] for name in ("jax_dump_ir_to", "jax_dump_ir_modes")}

    def names(m, modes, run):
        folder = tmp_path / m.__name__
        m.config.update("jax_dump_ir_to", str(folder))
        m.config.update("jax_dump_ir_modes", modes)
        run(m)
        found = sorted(folder.iterdir()) if folder.exists() else []
        return folder, [re.sub(r"\d+", "N", path.name) for path in found]

    yield names
    for m in (jax, minijax):
        for name, value in saved.items():
            m.config.update(name, value)


def _run(m):
    @m.jit
    def inner(x):
        return m.numpy.cos(x) * 3.5

    x = np.ones(3, np.float32)
    inner(x)
    m.jit(lambda x: inner(x) + 1)(x)


@pytest.mark.parametrize(
    "modes", ["stablehlo", "jaxpr", "stablehlo,jaxpr", "eqn_count_pprof", "no"]
)
def test_dumped_programs(dumped, modes):
    (_, theirs), (folder, ours) = [dumped(m, modes, _run) for m in (jax, minijax)]
    assert ours == theirs
    for path in folder.glob("*.mlir"):
        assert "stablehlo.cosine" in path.read_text()
    for path in folder.glob("*.jaxpr.txt"):
        assert "cos" in path.read_text()


@pytest.fixture
def warned():
    """Return what is warned of the constants of a program, with these options."""
    saved = {name: value for name, value in hints.items() if name.startswith("jax_captured")}

    def messages(m, bytes_, frames, run):
        m.config.update("jax_captured_constants_warn_bytes", bytes_)
        m.config.update("jax_captured_constants_report_frames", frames)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(m)
        return [str(one.message) for one in caught]

    yield messages
    for m in (jax, minijax):
        for name, value in saved.items():
            m.config.update(name, value)


SMALL, LARGE = np.ones(200, np.float32), np.ones(3_000_000, np.float32)
CAPTURED = {
    "small": lambda m: m.jit(lambda x: x + SMALL).lower(1.0),
    "large": lambda m: m.jit(lambda x: x + LARGE).lower(1.0),
    "both": lambda m: m.jit(lambda x: (x + LARGE, x * SMALL)).lower(1.0),
    "none": lambda m: m.jit(lambda x: x + 1.0).lower(1.0),
}


@pytest.mark.parametrize("frames", [0, 1])
@pytest.mark.parametrize("limit", [100, 800, 801, 2_000_000_000, -1])
@pytest.mark.parametrize("name", CAPTURED)
def test_captured_constants(warned, name, limit, frames):
    theirs, ours = [warned(m, limit, frames, CAPTURED[name]) for m in (jax, minijax)]
    assert len(ours) == len(theirs)
    for mine, yours in zip(ours, theirs, strict=True):
        mine, yours = [
            re.sub(r"Constant <class '[^']*'>", "Constant", text) for text in (mine, yours)
        ]
        first, _, report = yours.partition("\n\n")
        assert mine.startswith(first)
        assert report.split("captured at")[0] in mine
        assert not report or f"{os.path.basename(__file__)}:" in mine


@pytest.mark.parametrize("level", ["UNKNOWN", "O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("name", LEVELS)
def test_levels(name, level):
    """XLA is asked for a level, and compiles."""
    before = minijax.config.read(name)
    minijax.config.update(name, level)
    try:
        options = compile_options(tuple(minijax.devices()[:1]))
        found = getattr(options.executable_build_options, name.removeprefix("jax_"))
        assert found == {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}[level]
        assert minijax.jit(lambda x: x * 2 + len(name))(3.0) == 6 + len(name)
    finally:
        minijax.config.update(name, before)


W = np.ones((3, 3), np.float32)
REMATTED = {
    "inputs": lambda m, p: (lambda x: m.numpy.sin(m.numpy.sin(x) * x), None),
    "everything": lambda m, p: (lambda x: m.numpy.sin(m.numpy.cos(x)), p.everything_saveable),
    "products": lambda m, p: (
        lambda x: m.numpy.sin(W @ m.numpy.sin(x * W[0])).sum(), p.dots_saveable),
    "names": lambda m, p: (
        lambda x: m.numpy.sin(m.ad_checkpoint.checkpoint_name(m.numpy.cos(x), "a")),
        p.save_only_these_names("a")),
}  # fmt: skip


@pytest.mark.parametrize("transform", ["grad", "jit", "vjp", "linearize", "jvp"])
@pytest.mark.parametrize("name", REMATTED)
def test_logged_residuals(name, transform, caplog):
    logged = []
    for m in (jax, minijax):
        fun, policy = REMATTED[name](m, m.checkpoint_policies)
        fun = m.checkpoint(fun, policy=policy)
        run = {
            "grad": m.grad(fun), "jit": m.jit(m.grad(fun)), "vjp": lambda x, m=m, f=fun: m.vjp(f, x),
            "linearize": lambda x, m=m, f=fun: m.linearize(f, x),
            "jvp": lambda x, m=m, f=fun: m.jvp(f, (x,), (x,)),
        }[transform]  # fmt: skip
        caplog.clear()
        m.config.update("jax_log_checkpoint_residuals", True)
        try:
            run(1.5)
        finally:
            m.config.update("jax_log_checkpoint_residuals", False)
        logged.append([record.getMessage().strip() for record in caplog.records])
    theirs, ours = logged
    assert ours == theirs
    assert bool(ours) is (transform != "jvp")


@pytest.mark.parametrize("regex", [None, ".*/", "^/", "no such part", "test_|_options"])
def test_source_files(regex):
    """Which parts of the names of files are left out in the text of a module."""
    named = []
    for m in (jax, minijax):
        m.config.update("jax_hlo_source_file_canonicalization_regex", regex)
        m.config.update("jax_include_full_tracebacks_in_locations", False)
        try:
            lowered = m.jit(lambda x: m.numpy.sin(x) * len(str(regex))).lower(1.0)
            text = lowered.as_text(debug_info=True)
        finally:
            m.config.update("jax_hlo_source_file_canonicalization_regex", None)
            m.config.update("jax_include_full_tracebacks_in_locations", True)
        named.append(set(re.findall(r'"([^"]*\.py)"', text)))
    assert named[0] == named[1] != set()


COMPILER_OPTIONS = [
    {}, {"exec_time_optimization_effort": 0.5}, {"exec_time_optimization_effort": "a"},
    {"memory_fitting_effort": 0.25}, {"memory_fitting_level": 29}, {"optimization_level": 9},
    {"optimization_level": 9, "xla_cpu_enable_fast_math": True}, {"fdo_profile": b""},
    {"fdo_profile": ""}, {"num_partitions": 1}, {"xla_no_such_flag": 1}, {"xla_dump_to": 5},
]  # fmt: skip


@pytest.mark.parametrize("stage", ["jit", "compile"])
@pytest.mark.parametrize("options", COMPILER_OPTIONS, ids=str)
def test_compiler_options(options, stage):
    found = []
    for m in (jax, minijax):
        x, fun = m.numpy.arange(3.0), lambda x: x * len(options) + 3
        try:
            if stage == "jit":
                run = m.jit(fun, compiler_options=options)
            else:
                run = m.jit(fun).lower(x).compile(options)
            found.append(run(x).tolist())
        except Exception as error:
            found.append((type(error).__name__, str(error).split("\n")[0].rstrip(".")))
    theirs, ours = found
    if isinstance(theirs, tuple):
        assert ours[0] == theirs[0]
        assert ours[1].startswith(theirs[1])
    else:
        assert ours == theirs


@pytest.fixture
def optioned():
    """Set an option of both libraries, until the end of the test."""
    saved = {}

    def update(name, value):
        saved[name] = hints[name]
        for m in (jax, minijax):
            m.config.update(name, value)

    yield update
    for name, value in saved.items():
        for m in (jax, minijax):
            m.config.update(name, value)


@pytest.mark.parametrize("limit", [0, 10])
@pytest.mark.parametrize("left_out", [None, r".*/tests/", r"tests|features"])
def test_files_in_modules(optioned, left_out, limit):
    optioned("jax_hlo_source_file_canonicalization_regex", left_out)
    optioned("jax_traceback_in_locations_limit", limit)

    def files(m):
        text = m.jit(lambda x: m.numpy.sin(x) + 2.5).lower(1.0).as_text(debug_info=True)
        return {file for file in re.findall(r'loc\("([^"]*)":\d+:\d+', text) if "options" in file}

    ours = files(minijax)
    assert ours == files(jax)
    assert bool(ours) == bool(limit)


@pytest.mark.parametrize("unchecked", [True, False])
@pytest.mark.parametrize("how", ["grad", "jit", "vjp"])
@pytest.mark.parametrize(
    "found",
    [
        lambda m, g: (m.numpy.ones(3),),
        lambda m, g: (m.numpy.asarray(g).astype(int),),
        lambda m, g: (g, g),
    ],
    ids=["shape", "dtype", "count"],
)
def test_unchecked_rules_of_custom_vjp(optioned, found, how, unchecked):
    optioned("jax_disable_bwd_checks", unchecked)

    def outcome(m):
        f = m.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (x, None), lambda _, g: found(m, g))
        try:
            out = {
                "grad": lambda: m.grad(f)(1.0),
                "jit": lambda: m.jit(m.grad(f))(1.0),
                "vjp": lambda: m.vjp(f, 1.0)[1](2.0)[0],
            }[how]()
        except (TypeError, ValueError) as error:
            return type(error)
        return str(out.dtype), np.asarray(out).tolist()

    assert outcome(minijax) == outcome(jax)
