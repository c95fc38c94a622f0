"""Pytest hooks: tests of one's own under both libraries, and suites written for JAX run under both.

With `pytest_plugins = ["minijax.difftest"]` in a `conftest.py`, a test marked `differential` is run as written
for minijax and for upstream (see `rebinding`), and what it returns is compared:

    @pytest.mark.differential(ulps=16)
    def test_softmax():
        return jax.nn.softmax(X)

`pytest -p minijax.difftest SUITE` runs a suite under upstream and, in a second process, with `import jax`
resolving to minijax; the tests that end differently are listed, and the status is 1 if there are any.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from minijax.difftest.comparing import Tolerance, bases, compare
from minijax.difftest.rebinding import rebound
from minijax.difftest.running import Outcome, failure, library, outcome

__all__: list[str] = []

_VARIABLE = "MINIJAX_DIFFTEST_OUTCOMES"  # a file, in the second process
_KEY = "_minijax_difftest"


def pytest_configure(config: Any) -> None:
    config.addinivalue_line(
        "markers", "differential(ulps): compare what the test returns with upstream"
    )
    whole = "minijax.difftest" in (getattr(config.option, "plugins", None) or ())
    if whole or os.environ.get(_VARIABLE):
        setattr(config, _KEY, {})


# -- marked tests ----------------------------------------------------------------------------------


def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    """Run a marked test under both libraries, and fail where the outcomes differ."""
    marker = pyfuncitem.get_closest_marker("differential")
    if marker is None or os.environ.get(_VARIABLE):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    found, errors = [], []
    for name in ("minijax", "jax"):
        try:
            found.append(outcome(library(name), rebound(pyfuncitem.obj, name)(**arguments)))
        except Exception as error:
            errors.append(error)
            found.append(failure(error))
    difference = compare(*found, Tolerance(**({"ulps": 256.0} | marker.kwargs)))
    if difference is not None:
        raise AssertionError(
            f"{difference.kind}{difference.where}: {difference.detail}\nminijax: {found[0]}\nupstream: {found[1]}"
        ) from (errors[0] if errors else None)
    if errors:
        raise errors[0]
    return True


# -- whole suites ----------------------------------------------------------------------------------


def pytest_exception_interact(node: Any, call: Any, report: Any) -> None:
    outcomes = getattr(node.config, _KEY, None)
    if outcomes is not None and hasattr(report, "nodeid"):
        error = call.excinfo.value
        outcomes[report.nodeid] = ["failed", list(failure(error).error), str(error)[:300]]


def pytest_runtest_makereport(item: Any, call: Any) -> None:
    """Note how a test ended: a failure of set-up or tear-down outweighs a pass."""
    outcomes = getattr(item.config, _KEY, None)
    if outcomes is None or item.nodeid in outcomes:
        return
    if call.excinfo is not None and type(call.excinfo.value).__name__ == "Skipped":
        outcomes[item.nodeid] = ["skipped", [], str(call.excinfo.value)]
    elif call.when == "teardown" and call.excinfo is None:
        outcomes[item.nodeid] = ["passed", [], ""]


def pytest_sessionfinish(session: Any) -> None:
    """Write the outcomes, or have the second process give its own and compare."""
    ours = getattr(session.config, _KEY, None)
    if ours is None:
        return
    path = os.environ.get(_VARIABLE)
    if path:
        pathlib.Path(path).write_text(json.dumps(ours))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "outcomes.json"
        command = [
            sys.executable, "-m", "minijax.jax", "-m", "pytest",
            *session.config.invocation_params.args,
        ]  # fmt: skip
        environment = os.environ | {_VARIABLE: str(file)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        theirs = json.loads(file.read_text()) if file.exists() else {}
    differ = [
        line for line in (_line(name, ours, theirs) for name in sorted(ours | theirs)) if line
    ]
    if not theirs:
        differ.append(
            f"the run under minijax ended with status {done.returncode}: {done.stdout[-500:]}"
        )
    setattr(session.config, f"{_KEY}_said", (len(ours), differ))
    session.exitstatus = 1 if differ else 0


def _line(name: str, upstream: dict, minijax: dict) -> str:
    """Return a sentence on a test that ends differently under the two, or nothing."""
    missing = ["not collected", [], ""]
    first, second = upstream.get(name, missing), minijax.get(name, missing)
    as_outcome = lambda ended: Outcome(error=tuple(ended[1])) if ended[1] else Outcome()
    if first[0] == second[0] and not compare(as_outcome(second), as_outcome(first)):
        return ""
    said = lambda ended: " ".join(filter(None, (ended[0], *bases(ended[1])[:1], ended[2][:120])))
    return f"{name}: upstream {said(first)}; minijax {said(second)}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    count, differ = getattr(terminalreporter.config, f"{_KEY}_said", (0, None))
    if differ is None:
        return
    terminalreporter.section("upstream and minijax")
    for line in differ:
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"{count} tests under both libraries, {len(differ)} differ")
