"""The public face as a type checker sees it: a program whose types are stated."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

PROGRAM = """
from typing import assert_type

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import Array, grad, jit, lax, nn, random, vmap


@jit
def f(x: Array) -> Array:
    return jnp.sin(x) + x.sum() * 2 - x[0] @ x.T


@jit
def step(params: dict[str, Array], x: Array) -> tuple[Array, int]:
    return nn.relu(x @ params["w"]), 1


def loss(w: Array, x: Array) -> Array:
    return jnp.mean(jnp.dot(x, w) ** 2)


x = random.normal(random.key(0), (3, 3))
assert_type(x, Array)
assert_type(f(x), Array)
assert_type(step({"w": x}, x), tuple[Array, int])
assert_type(vmap(f)(x), Array)
assert_type(x[0], Array)
assert_type(x.astype(np.float16).reshape(-1).mean(axis=0, keepdims=True), Array)
assert_type(1 + x * 2.0 - x @ x / abs(x), Array)
assert_type(x < 0, Array)
assert_type((float(x[0, 0]), len(x), x.shape), tuple[float, int, tuple[int, ...]])
assert_type(minijax.numpy.zeros((2, 3)), Array)
grad(loss)(x, x).block_until_ready()
print(f.lower(x).compile().as_text(), lax.scan(lambda c, a: (c + a, c), x[0], x)[0])
"""


def test_public_face(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "--ignore-missing-imports",
         "--cache-dir", str(tmp_path / "cache"), str(path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
