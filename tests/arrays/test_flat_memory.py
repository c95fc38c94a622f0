"""Memory stays flat: tracebacks of executions, buffers in reference cycles, and peaks."""

import os
import subprocess
import sys

import pytest

from tests.benchmarks.memory import PEAK, growth, kinds
from tests.cases.memory_peaks import peak_in_child
from tests.harness import upstream

pytestmark = pytest.mark.both_ends

CALLS = 1500
KINDS = kinds()


@pytest.mark.parametrize("collector", ["on", "off"])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("depth", [0, 40])
@pytest.mark.parametrize("name", KINDS)
def test_calls_leave_nothing(name, depth, threads, collector):
    more = growth(KINDS[name], CALLS, depth, collector, threads, sys.getallocatedblocks)
    assert more < CALLS / 3  # a traceback for each call otherwise


def test_no_buffers_remain():
    """At least 60 kinds of calls, with Python's collector off."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cases.memory_calls"],
        capture_output=True, text=True, timeout=600,
        env=os.environ | upstream.devices(4),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    *remaining, count = done.stdout.splitlines()
    assert not remaining, "\n".join(remaining)
    assert int(count.split()[0]) >= 60


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="reads Linux's /proc")
@pytest.mark.parametrize("name", ["jacfwd", "at set", "asarray of float64", "jit of float64"])
def test_peaks(name):
    allowed = PEAK * peak_in_child("jax", name)  # a busy machine frees buffers later
    assert any(peak_in_child("minijax", name) <= allowed for _ in range(3))
