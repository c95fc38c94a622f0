"""Names of `jax._src` that suites written for JAX take: programs that print the same lines on
both.
"""

import os
import pathlib
import subprocess
import sys

import pytest

from tests.harness import upstream

pytest.importorskip("absl")

HERE = pathlib.Path(__file__).parents[1] / "harness"


def lines(program, *how):
    done = subprocess.run(
        [sys.executable, *how, str(HERE / program)], capture_output=True, text=True, timeout=900,
        env=os.environ | upstream.devices(8) | {"JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "program", ["standin_private.py", "standin_private_core.py", "standin_modules.py"]
)
def test_the_same_lines(program):
    ours, theirs = lines(program, "-m", "minijax.jax"), lines(program)
    assert len(ours) > 150
    assert ours == theirs
