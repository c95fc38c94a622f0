"""Names of `jax._src` that suites written for JAX take: one program, the same lines on both."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("absl")

PROGRAM = pathlib.Path(__file__).with_name("standin_private.py")


def lines(*how):
    done = subprocess.run(
        [sys.executable, *how, str(PROGRAM)], capture_output=True, text=True, timeout=300,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_the_same_lines():
    ours, theirs = lines("-m", "minijax.jax"), lines()
    assert len(ours) > 150
    assert ours == theirs
