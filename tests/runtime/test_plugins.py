"""Accelerators come through PJRT plug-ins: finding them, loading them, and every way to fail.

Fake packages stand in a folder of their own; each test below is a child process that sees them, since
what jaxlib loads stays loaded. `PROBE` is what a child runs: it prints what it saw as JSON.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

REGISTERING = """
    import os
    from jax._src import xla_bridge as xb

    def initialize():
        xb.register_plugin(
            {platform!r}, priority={priority}, library_path=os.path.join(os.path.dirname(__file__), {library!r}),
            options={{"memory": 1}},
        )
"""
FACTORY = """
    import jax
    import jax._src.xla_bridge as xb
    from jax._src.lib import xla_client

    assert jax.__version__

    def initialize():
        xb.register_backend_factory(
            "fake", lambda: xla_client.make_cpu_client(num_devices=3, asynchronous=True),
            priority={priority},
        )
"""
PACKAGES = {
    "absent_library": REGISTERING.format(platform="absent", library="no.so", priority=600),
    "not_a_library": REGISTERING.format(platform="garbage", library="plugin.so", priority=600),
    "no_table": REGISTERING.format(platform="tableless", library="plugin.so", priority=600),
    "old_table": REGISTERING.format(platform="outdated", library="plugin.so", priority=600),
    "failing_factory": """
        from jax._src import xla_bridge

        def make():
            raise OSError("the chip is asleep")

        def initialize():
            xla_bridge.register_plugin("sleepy", priority=600, factory=make)
    """,
    "no_client": """
        from jax.extend.backend import register_backend_factory

        def initialize():
            register_backend_factory("nothing", lambda: None, priority=600)
    """,
    "raising": "raise ValueError('broken at import')",
    "leaving": "import sys\nsys.exit(3)",
    "without_initialize": "x = 1",
    "initialize_raises": "def initialize():\n    raise OSError('no driver of this chip')",
    "registers_nothing": "def initialize():\n    pass",
    "wants_more": "from jax._src import mesh",
    "wants_a_module": "import jax.numpy",
    "nothing_given": """
        from jax._src import xla_bridge

        def initialize():
            xla_bridge.register_plugin("empty")
    """,
    "xla_cuda12": "raise AssertionError('the Python of a known plug-in is not run')",
    "xla_rocm7": "raise AssertionError('the Python of a known plug-in is not run')",
}
OLD_TABLE = """
    #include <stddef.h>
    typedef struct { size_t size; void* next; int major, minor; } Version;
    static struct { size_t size; void* next; Version version; void* functions[300]; } table =
        {2400, 0, {24, 0, 99, 1}, {0}};
    const void* GetPjrtApi(void) { return &table; }
"""

# What each failure says, as part of the error of whoever asks for a platform by name.
REASONS = {
    "package jax_plugins.absent_library": "no.so: cannot open shared object file",
    "package jax_plugins.not_a_library": "Failed to open",
    "package jax_plugins.failing_factory (sleepy)": "OSError: the chip is asleep",
    "package jax_plugins.no_client (nothing)": "its factory gave no client",
    "package jax_plugins.raising": "importing it raised ValueError: broken at import",
    "package jax_plugins.leaving": "importing it raised SystemExit: 3",
    "package jax_plugins.without_initialize": "it has no function initialize()",
    "package jax_plugins.initialize_raises": "initialize() raised OSError: no driver of this chip",
    "package jax_plugins.registers_nothing": "initialize() registered no platform",
    "package jax_plugins.wants_more": "cannot import name 'mesh' from 'jax._src'",
    "package jax_plugins.wants_a_module": "serves them no jax.numpy",
    "package jax_plugins.nothing_given": "was given no library_path=, no c_api= and no factory=",
    "entry point by_entry = entered.inner": "importing it raised KeyError: 'entered'",
    "package jax_plugins.xla_cuda12 (cuda)": "",
    "package jax_plugins.xla_rocm7 (rocm)": "xla_rocm_plugin.so",
}
COMPILED = {
    "package jax_plugins.no_table": "GetPjrtApi not found",
    "package jax_plugins.old_table (outdated)": "API major version (99)",
}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A folder with every plug-in that fails."""
    site = tmp_path_factory.mktemp("broken")
    for name, text in PACKAGES.items():
        write(site / "jax_plugins" / name / "__init__.py", text)
    write(site / "jax_plugins" / "not_a_library" / "plugin.so", "this is text" * 100)
    write(site / "entered" / "__init__.py", "")
    write(site / "entered" / "inner.py", "raise KeyError('entered')")
    entry = "[console_scripts]\nx = y:z\n\n[jax_plugins]\nby_entry = entered.inner\n"
    write(site / "entered-1.0.dist-info" / "entry_points.txt", entry)
    compiler = shutil.which("cc")
    for name, source in (("no_table", "int nothing;"), ("old_table", OLD_TABLE)):
        folder = site / "jax_plugins" / name
        if compiler is None:
            shutil.rmtree(folder)
            continue
        write(folder / "table.c", source)
        made = ["-o", str(folder / "plugin.so")]
        subprocess.run([compiler, "-shared", "-fPIC", str(folder / "table.c"), *made], check=True)
    return site


@pytest.fixture(scope="module")
def working(tmp_path_factory):
    """A folder with two plug-ins that work, one of them preferred to the CPU."""
    site = tmp_path_factory.mktemp("working")
    write(site / "jax_plugins" / "good" / "__init__.py", FACTORY.format(priority=500))
    low = FACTORY.format(priority=-1).replace('"fake"', '"low"').replace("=3", "=2")
    write(site / "lowly.py", low)
    write(site / "lowly-1.0.dist-info" / "entry_points.txt", "[jax_plugins]\nlow=lowly\n")
    return site


PROBE = """
import json, os, sys, warnings
warnings.simplefilter("error")
warnings.simplefilter("ignore", DeprecationWarning)
import minijax
from minijax.runtime import platforms, plugins

def told(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def names(backend=None):
    return told(lambda: [f"{d.platform}:{d.id}" for d in minijax.devices(backend)])

before = set(sys.modules)
"""


def child(code, *folders, **variables):
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("JAX_", "MINIJAX_", "XLA_", "CUDA_", "PJRT_", "TPU_"))
    }
    path = os.pathsep.join(map(str, (ROOT, *folders)))
    environment |= {"PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    result = subprocess.run(
        [sys.executable, "-c", PROBE + textwrap.dedent(code)],
        capture_output=True, text=True, env=environment, timeout=400,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-4000:]
    return json.loads(result.stdout.splitlines()[-1]), result.stderr


def test_all_that_fail_are_passed_over(broken):
    """The CPU is taken without a word, and the error of who asks by name tells of each plug-in."""
    seen, said = child(
        """
        found = {"none": names(), "low": told(minijax.default_backend)}
        found["left"] = sorted(
            name for name in set(sys.modules) - before if name.split(".")[0] in ("jax", "entered")
            or name.startswith("jax_plugins.")
        )
        for name in ("cuda", "gpu", "absent", "sleepy", "outdated", "unheard"):
            found[name] = names(name)
        found["jit"] = told(lambda: minijax.jit(lambda x: x, backend="gpu")(1.0))
        minijax.numpy.ones(3).sum().block_until_ready()
        print(json.dumps(found))
        """,
        broken,
    )
    assert seen["none"] == ["cpu:0"] and seen["low"] == "cpu"
    assert seen["left"] == []
    assert "Traceback" not in said and "plug-in" not in said
    reasons = dict(REASONS)
    if (broken / "jax_plugins" / "old_table").exists():
        reasons |= COMPILED
    for name in ("cuda", "gpu", "absent", "sleepy", "unheard", "jit"):
        text = seen[name]
        assert text.startswith("RuntimeError: Unknown backend"), text
        there = "Platforms present are: cpu" if name in ("gpu", "jit") else "backends are ['cpu']"
        assert there in text
        lines = dict(line.strip().split(": ", 1) for line in text.splitlines()[1:])
        assert sorted(lines) == sorted(reasons)
        for source, reason in reasons.items():
            assert reason in lines[source], (source, lines[source])
    assert "Backend 'sleepy' failed to start" in seen["sleepy"]
    assert "Backend 'unheard' is not in the list of known backends" in seen["unheard"]


ASKED = {
    "cuda": ("Unable to initialize backend 'cuda'", "package jax_plugins.xla_cuda12 (cuda)"),
    "gpu": ("Unable to initialize backend 'gpu'", "package jax_plugins.xla_rocm7 (rocm)"),
    "sleepy,cpu": ("Unable to initialize backend 'sleepy'", "the chip is asleep"),
    "cpu,unheard": ("Unable to initialize backend 'unheard'", "broken at import"),
}


def test_what_is_asked_for_must_be_there(broken):
    """The setting names platforms; as for upstream, "cuda,cpu" is the CPU where there is no GPU."""
    seen, _ = child(
        """
        found = {}
        for setting in json.loads(os.environ["ASKED"]):
            minijax.config.update("jax_platforms", setting)
            found[setting] = names()
            platforms.clear_backends()
        minijax.config.update("jax_platforms", "cuda,cpu")
        found["cuda,cpu"] = names()
        found["then cuda"] = names("cuda")
        print(json.dumps(found))
        """,
        broken,
        ASKED=json.dumps(list(ASKED)),
    )
    for setting, parts in ASKED.items():
        assert all(part in seen[setting] for part in parts), seen[setting]
    assert seen["cuda,cpu"] == ["cpu:0"]
    assert "xla_cuda12" in seen["then cuda"]


def test_the_cpu_alone_looks_for_nothing(broken):
    seen, _ = child(
        """
        found = [names(), names("sleepy"), plugins.problems, plugins._discovered]
        print(json.dumps(found))
        """,
        broken,
        JAX_PLATFORMS="cpu",
    )
    assert seen[0] == ["cpu:0"] and seen[2:] == [{}, False]
    assert "The setting jax_platforms='cpu' leaves it out" in seen[1]


def test_one_that_works_is_preferred(working):
    seen, _ = child(
        """
        found = {
            "all": names(), "fake": names("fake"), "low": names("low"), "cpu": names("cpu"),
            "order": list(minijax.extend.backend.backends()),
        }
        x = minijax.numpy.arange(4.0)
        found["sum"] = float((x * 2).sum())
        found["on"] = [d.id for d in minijax.device_put(x, minijax.devices("fake")[2]).devices()]
        found["left"] = [name for name in sys.modules if name == "lowly" or name[:4] == "jax."]
        print(json.dumps(found))
        """,
        working,
    )
    assert seen["all"] == seen["fake"] == ["cpu:0", "cpu:1", "cpu:2"]
    assert len(seen["low"]) == 2 and seen["cpu"] == ["cpu:0"]
    assert seen["order"] == ["fake", "cpu", "low"]
    assert seen["sum"] == 12.0 and seen["on"] == [2] and seen["left"] == []


def test_upstream_and_the_plug_ins_share_a_process(working):
    """Each library finds the plug-in for itself, in either order."""
    code = """
        def ours():
            return names("fake")

        def theirs():
            import jax
            return [len(jax.devices()), jax.default_backend(), "jax_plugins.good" in sys.modules]

        first, second = (ours, theirs) if os.environ["FIRST"] == "ours" else (theirs, ours)
        one, two = first(), second()
        import jax
        import jax.numpy
        same = jax is sys.modules["jax"] and "minijax" not in jax.__file__
        print(json.dumps([one, two, same, float(jax.numpy.arange(3.0).sum())]))
        """
    for first in ("ours", "theirs"):
        (one, two, same, total), _ = child(code, working, FIRST=first)
        ours, theirs = (one, two) if first == "ours" else (two, one)
        assert ours == ["cpu:0", "cpu:1", "cpu:2"]
        assert theirs == [3, "cpu", True] and same and total == 3.0


def test_upstream_and_the_library_of_a_gpu_share_a_process(tmp_path):
    """XLA asks for it by its platform's name, which jaxlib gives once: who comes first has it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler of C here")
    folder = tmp_path / "jax_plugins" / "xla_cuda12"
    write(folder / "__init__.py", "")
    write(folder / "table.c", OLD_TABLE.replace("99, 1", "0, 200"))
    library = str(folder / "xla_cuda_plugin.so")
    made = [str(folder / "table.c"), "-o", library]
    subprocess.run([compiler, "-shared", "-fPIC", *made], check=True)
    other = str(tmp_path / "other.so")
    shutil.copy(library, other)
    code = """
        import jax._src.xla_bridge as xb
        from jaxlib import _jax

        def ours():
            plugins.discover()
            return plugins.candidates["cuda"][0].load()

        def theirs():
            xb.register_plugin("cuda", library_path=os.environ["LIBRARY"], options={})
            return "cuda"

        first, second = (ours, theirs) if os.environ["FIRST"] == "ours" else (theirs, ours)
        found = [first(), second()]
        found += [_jax.pjrt_plugin_loaded("cuda"), told(ours)]
        print(json.dumps(found))
        """
    seen, _ = child(code, tmp_path, FIRST="ours", LIBRARY=library)
    assert seen == ["cuda", "cuda", True, "cuda"]
    seen, _ = child(code, tmp_path, FIRST="theirs", LIBRARY=library)
    assert seen == ["cuda", "minijax_cuda_0", True, "minijax_cuda_0"]
    # Another library is not taken for it: jaxlib refuses the name.
    code = code.replace("theirs()\n", "told(theirs)\n").replace("second()]", "told(second)]")
    seen, _ = child(code, tmp_path, FIRST="ours", LIBRARY=other)
    assert seen[0] == "cuda" and "already exists" in seen[1]


def test_a_plug_in_under_the_stand_in(working):
    """Where minijax stands in for jax, a plug-in imports that, and stays imported."""
    seen, _ = child(
        """
        import minijax.jax
        minijax.jax.install()
        import jax
        found = [names(), jax.default_backend(), "lowly" in sys.modules]
        print(json.dumps(found))
        """,
        working,
    )
    assert seen == [["cpu:0", "cpu:1", "cpu:2"], "cpu", True]


def test_entry_points_to_nothing(tmp_path):
    """Distributions whose modules are gone, and files that are no lists of entry points."""
    entries = "[jax_plugins]\na = jax_plugins.xla_cuda13\n# b = c\nd=no.such.module:thing [extra]\n"
    write(tmp_path / "gone-1.0.dist-info" / "entry_points.txt", entries)
    write(tmp_path / "other-1.0.dist-info" / "METADATA", "Name: other")
    (tmp_path / "odd-1.0.egg-info").mkdir()
    (tmp_path / "odd-1.0.egg-info" / "entry_points.txt").write_bytes(b"\xff\xfe[jax_plugins]")
    seen, _ = child("print(json.dumps([names(), names('cuda'), plugins.problems]))", tmp_path)
    assert seen[0] == ["cpu:0"] and "No module named 'jax_plugins'" in seen[1]
    assert list(seen[2]) == ["package jax_plugins.xla_cuda13", "entry point d = no.such.module"]


def test_registering_by_hand_and_by_variable(tmp_path):
    """`register_backend_factory`, PJRT_NAMES_AND_LIBRARY_PATHS, and a failure that is not quiet."""
    (tmp_path / "x.json").write_text('{"library_path": "/nowhere/x.so", "create_options": {}}')
    seen, _ = child(
        """
        from minijax.extend.backend import register_backend_factory
        from jaxlib import xla_client
        register_backend_factory("mine", lambda: xla_client.make_cpu_client(num_devices=2))
        found = {"mine": names("mine"), "unheard": names("unheard"), "all": names()}
        platforms.clear_backends()
        def fail():
            raise ValueError("loud")
        register_backend_factory("bad", fail, fail_quietly=False)
        found["loud"] = names()
        print(json.dumps(found))
        """,
        PJRT_NAMES_AND_LIBRARY_PATHS=f"one:/nowhere/one.so,two:{tmp_path}/x.json,three",
    )
    assert len(seen["mine"]) == 2 and seen["all"] == ["cpu:0"]
    assert "Unable to initialize backend 'bad'" in seen["loud"] and "loud" in seen["loud"]
    for part in ("/nowhere/one.so: cannot", "/nowhere/x.so: cannot", "not written as name:path"):
        assert part in seen["unheard"]


OPTIONS = [
    ({}, {"allocator": "default"}),
    ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".25"}, {"memory_fraction": 0.25}),
    ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, {"preallocate": False}),
    ({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, {"allocator": "platform"}),
    ({"XLA_PYTHON_CLIENT_ALLOCATOR": "nonsense"}, "XLA_PYTHON_CLIENT_ALLOCATOR"),
    ({"JAX_CUDA_VISIBLE_DEVICES": "0,2"}, {"visible_devices": [0, 2]}),
    ({"JAX_CUDA_VISIBLE_DEVICES": "one"}, "jax_cuda_visible_devices='one'"),
    ({"JAX_CUDA_VISIBLE_DEVICES": "all"}, {"share": [1]}),
    ({"JAX_CUDA_VISIBLE_DEVICES": "3"}, {"share": [1], "visible_devices": [3]}),
]


def test_options_of_a_gpu():
    """From the variables that users know to the options of the client."""
    seen, _ = child(
        """
        from minijax.runtime import gpus
        found = []
        for variables, wanted in json.loads(os.environ["ROWS"]):
            os.environ.update(variables)
            minijax.config.update(
                "jax_cuda_visible_devices", variables.get("JAX_CUDA_VISIBLE_DEVICES", "all")
            )
            share = wanted.get("share") if isinstance(wanted, dict) else None
            found.append(told(lambda: gpus.options("cuda", share)))
            for name in variables:
                del os.environ[name]
        print(json.dumps(found))
        """,
        ROWS=json.dumps(OPTIONS),
    )
    for (variables, wanted), found in zip(OPTIONS, seen, strict=True):
        if isinstance(wanted, str):
            assert found.startswith("ValueError") and wanted in found, (variables, found)
            continue
        assert found["platform_name"] == "cuda"
        wanted = dict(wanted)
        share = wanted.pop("share", None)
        if share is not None:
            wanted.setdefault("visible_devices", share)
        else:
            wanted.setdefault("visible_devices", None)
        for key, value in wanted.items():
            assert found.get(key) == value, (variables, key, found)


def test_the_kernels_of_a_plug_in(tmp_path):
    """They are registered with XLA through the extension that the plug-in's package brings."""
    write(tmp_path / "jax_cuda99_plugin" / "__init__.py", "")
    write(
        tmp_path / "jax_cuda99_plugin" / "cuda_plugin_extension.py",
        """
        calls = []

        def register_custom_call_target(api, name, fn, platform, api_version=0, traits=0):
            calls.append([api, name, fn, platform, api_version])

        def register_custom_type(api, name, kind):
            calls.append([api, name, kind])

        def ffi_handlers():
            return {"callback": "handler"}

        def ffi_types():
            return {"plan": "type"}
        """,
    )
    seen, _ = child(
        """
        from minijax.runtime import gpus
        layout = gpus.layout_of("jax_plugins.xla_cuda99")
        gpus.register_kernels(layout, "api")
        gpus.register_kernels(layout._replace(version=98), "other")  # brings no kernels
        import jax_cuda99_plugin.cuda_plugin_extension as extension
        print(json.dumps([list(layout), extension.calls, gpus.layout_of("jax_plugins.other")]))
        """,
        tmp_path,
    )
    layout, calls, other = seen
    assert layout == ["cuda", 99, "xla_cuda_plugin.so"] and other is None
    assert ["api", "plan", "type"] in calls
    assert ["api", "callback", "handler", "CUDA", 1] in calls
