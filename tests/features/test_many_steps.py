"""Loops over several CPU devices end, and a session works on after Ctrl-C.

Each runs in a process of its own, which is stopped where it hangs. `MINIJAX_MANY_STEPS` says how
many steps of each kind of loop to run; `python -m tests.many_steps` runs more of them.
"""

import os
import subprocess
import sys

import pytest

from tests.harness import upstream
from tests.harness.interrupted import WORK
from tests.many_steps import KINDS, run_child

pytestmark = pytest.mark.both_ends

STEPS = int(os.environ.get("MINIJAX_MANY_STEPS", "160"))
TIMEOUT = 900 + STEPS


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("devices", [2, 4, 8])
def test_loops_of_every_kind_end(devices, threads):
    done = run_child("minijax", devices, threads, STEPS, [], timeout=TIMEOUT, capture_output=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == len(KINDS)


@pytest.mark.parametrize("work", [work.__name__ for work in WORK])
def test_a_session_works_on_after_an_interrupt(work):
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.interrupted", work],
        capture_output=True, text=True, timeout=900, check=False,
        env=os.environ | upstream.devices(4),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["interrupted", "works"]
