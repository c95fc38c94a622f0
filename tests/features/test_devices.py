"""Eight devices against upstream: `tests/cases/devices.py` and `tests/cases/placed.py`, each run in
a process that has them.
"""

import json
import re
import subprocess
import sys

import jax
import pytest

pytestmark = pytest.mark.both_ends

# Expressions for which newer versions of upstream have another error, or another program.
OTHERWISE_IN_0_12 = re.compile(
    r"jnp\.empty\(4, device=S|named\.shard_shape\(|jax\.make_jaxpr\(vmap\(mapped\(|lax\.p(max|min)\(.*, \(\)"
    r"|jnp\.empty\(\(8, 4\)|initializers\.normal\(\)|(out_sharding|device|[( ]sharding)=NamedSharding\(explicit"
    r"|jnp\.zeros_like\)?\(.*explicit"
    r"|types\(lambda x: lax\.pmax\(x, \('(x', 'y|y', 'x)'\)\), P\('x'\)\)"
)


def _results(module):
    run = subprocess.run(
        [sys.executable, "-m", module], capture_output=True, text=True, timeout=1200
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def test_expressions_over_eight_devices():
    *wrong, count = _results("tests.cases.placed")
    assert count["expressions"] >= 150
    if jax.__version_info__ >= (0, 11):
        wrong = [r for r in wrong if not OTHERWISE_IN_0_12.search(r["expression"])]
    assert not wrong, "\n\n".join(f"{r['expression']}: {r['problem']}" for r in wrong)


def test_programs_over_eight_devices():
    results = _results("tests.cases.devices")
    assert len(results) >= 80
    wrong = {r["program"]: r["problem"] for r in results if r["problem"]}
    assert not wrong, "\n\n".join(f"{name}: {problem}" for name, problem in wrong.items())
