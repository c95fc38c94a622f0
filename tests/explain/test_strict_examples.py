"""Strict mode raises no false alarm: examples of docstrings and of the repository, and libraries.

Of the docstrings a sixteenth runs; all of them, and all examples, with `MINIJAX_EXPLAIN=all`. An alarm
that is true is listed with its reason.
"""

import importlib.util
import inspect
import json
import os
import pathlib
import subprocess
import sys

import pytest

import minijax as jax
from tests.cases import ecosystem_programs
from tests.test_docstrings import MODULES, _documented, _failures, _loaded

ALL = os.environ.get("MINIJAX_EXPLAIN") == "all"
ROOT = pathlib.Path(__file__).resolve().parents[2]

_SHOWN = "the example shows that the result is NaN outside of the domain"
DOCSTRINGS = {  # by name: why the alarm is true
    **dict.fromkeys(
        (
            "minijax.lax.acos", "minijax.lax.acosh", "minijax.lax.asin", "minijax.lax.atanh",
            "minijax.lax.digamma", "minijax.lax.erf_inv", "minijax.lax.sqrt",
            "minijax.nn.log1mexp", "minijax.scipy.special.spence",
        ),
        _SHOWN,
    ),
    **dict.fromkeys(
        (f"minijax.scipy.stats.truncnorm.{name}" for name in ("cdf", "logcdf", "logsf", "sf")),
        "the interval of the example is empty, so that the result is NaN",
    ),
}  # fmt: skip
EXAMPLES = {  # by the stem of the file: the error, and why the alarm is true
    "02_trace": ("Leaked tracer", "the chapter keeps a tracer, to show what comes of it"),
    "09_your_own_rules": ("NanError", "the chapter begins with a gradient that is NaN"),
    "01_fast_training_loop": ("KeyReuseError", "it shows that the same key gives the same numbers"),
    "02_slow_wrong_out_of_memory": ("NanError", "the notebook looks for the origin of a NaN"),
}
PROGRAMS = {  # by name: the error, and why the alarm is true
    "optax_chain": (
        "KeyReuseError",
        "MultiSteps keeps the key of the noise where it gives no update, in a branch that used it",
    ),
}


def _examples():
    for module in MODULES:
        for name, member in _documented(_loaded(module)):
            if ">>>" in (inspect.getdoc(member) or ""):
                yield f"{module}.{name}", inspect.getdoc(member)


def test_docstrings():
    found, places = {}, list(_examples())
    assert {name for name, _ in places} >= set(DOCSTRINGS)
    for number, (name, doc) in enumerate(places):
        if ALL or number % 16 == 0 or name in DOCSTRINGS:
            with jax.strict():
                found[name] = _failures(name, doc)
    assert {name for name, told in found.items() if told} == set(DOCSTRINGS)
    assert all("NanError" in found[name] for name in DOCSTRINGS)


@pytest.fixture(scope="module")
def outcomes():
    """What each program of a library raises in strict mode."""
    wanted = {name: libraries for name, (_, libraries) in ecosystem_programs.PROGRAMS.items()}
    names = [n for n, ls in wanted.items() if all(map(importlib.util.find_spec, ls))]
    if not names:
        pytest.skip("no libraries are installed (pip install minijax[ecosystem])")
    command = [sys.executable, "-m", "minijax.jax", ecosystem_programs.__file__, *names]
    env = {**os.environ, "JAX_STRICT": "1"}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ecosystem_programs.PROGRAMS)
def test_libraries(name, outcomes):
    if name not in outcomes:
        pytest.skip("its libraries are not installed")
    error, _ = PROGRAMS.get(name, (None, ""))
    told = outcomes[name]
    assert told is None if error is None else told.startswith(error)


_BOOK = (
    "import pathlib, sys; sys.path.insert(0, 'examples/weekend'); import book, minijax\n"
    "minijax.config.update('jax_num_cpu_devices', 8)\n"
    "book.run(pathlib.Path(sys.argv[1]).resolve())"
)
_FILES = [
    path
    for folder in (".", "seeds", "weekend", "researchers", "ecosystem")
    for path in sorted((ROOT / "examples" / folder).glob("*.py"))
    if path.stem != "book"
]
_FEW = ("introduction", "02_trace", "09_your_own_rules", "10_your_own_primitive")


@pytest.mark.parametrize(
    "path",
    [path for path in _FILES if ALL or path.stem in _FEW],
    ids=lambda path: path.stem,
)
def test_examples(path):
    if path.parent.name in ("weekend", "researchers"):
        command = ["-c", _BOOK, str(path)]
    elif path.parent.name == "ecosystem":
        command = ["-m", "minijax.jax", str(path)]
    else:
        command = [str(path)]
    ran = subprocess.run(
        [sys.executable, *command], env={**os.environ, "JAX_STRICT": "1", "PYTHONPATH": str(ROOT)},
        cwd=ROOT, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    if path.stem in EXAMPLES:
        assert ran.returncode and EXAMPLES[path.stem][0] in ran.stderr
    else:
        assert not ran.returncode, ran.stderr[-2000:]
