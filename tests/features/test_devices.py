"""Eight devices against upstream: `tests/cases/devices.py` and `tests/cases/placed.py`, each run in
a process that has them.
"""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.both_ends


def _results(module):
    run = subprocess.run(
        [sys.executable, "-m", module], capture_output=True, text=True, timeout=1200
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def test_expressions_over_eight_devices():
    *wrong, count = _results("tests.cases.placed")
    assert count["expressions"] >= 150
    assert not wrong, "\n\n".join(f"{r['expression']}: {r['problem']}" for r in wrong)


def test_programs_over_eight_devices():
    results = _results("tests.cases.devices")
    assert len(results) >= 80
    wrong = {r["program"]: r["problem"] for r in results if r["problem"]}
    assert not wrong, "\n\n".join(f"{name}: {problem}" for name, problem in wrong.items())
