"""Eight devices against upstream: `tests/cases/devices.py`, run in a process that has them."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.both_ends


def test_programs_over_eight_devices():
    run = subprocess.run(
        [sys.executable, "-m", "tests.cases.devices"], capture_output=True, text=True, timeout=1200
    )
    assert run.returncode == 0, run.stderr[-3000:]
    results = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert len(results) >= 80
    wrong = {r["program"]: r["problem"] for r in results if r["problem"]}
    assert not wrong, "\n\n".join(f"{name}: {problem}" for name, problem in wrong.items())
