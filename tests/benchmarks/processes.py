"""Rows measured on whole processes: import, first result, second start with the disk cache."""

import os
import subprocess
import sys
import tempfile
import time

IMPORT = {
    "minijax": "import minijax, minijax.numpy",
    "jax": "import jax, jax.numpy",
}
FIRST = (
    "import {m} as m, {m}.numpy as jnp\nm.jit(lambda x: jnp.sin(x) * 2)(1.0).block_until_ready()"
)

EAGER = """
import {m} as m, {m}.numpy as jnp
x = jnp.arange(12.0).reshape(3, 4)
(jnp.sin(x) @ x.T + x.sum()).block_until_ready()
"""

TRAINING = """
import {m} as m, {m}.numpy as jnp
import numpy as np

def net(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return x

def loss(params, x, y):
    return jnp.mean((net(params, x) - y) ** 2)

@m.jit
def step(params, x, y):
    value, grads = m.value_and_grad(loss)(params, x, y)
    return m.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), value

keys = m.random.split(m.random.key(0), 12)
params = [(m.random.normal(k, (64, 64)) * 0.1, jnp.zeros(64)) for k in keys]
x = m.random.normal(m.random.key(1), (32, 64))
params, value = step(params, x, jnp.ones((32, 64)))
value.block_until_ready()
"""


def run(program, environment):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    return time.perf_counter() - start


def in_turn(ours, theirs, our_env, their_env, rounds=5):
    """The least whole-process times of two programs, with that of an empty one taken off."""
    found = ([], [], [])
    run(ours, our_env), run(theirs, their_env)
    for _ in range(rounds):
        found[0].append(run(ours, our_env))
        found[1].append(run(theirs, their_env))
        found[2].append(run("pass", their_env))
    idle = min(found[2])
    return min(found[0]) - idle, min(found[1]) - idle


def rows(table):
    plain = {**os.environ, "JAX_PLATFORMS": "cpu"}
    plain.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    off = {**plain, "MINIJAX_ENABLE_COMPILATION_CACHE": "0"}
    ours, theirs = in_turn(IMPORT["minijax"], IMPORT["jax"], plain, plain)
    table.section("import", [("import m, m.numpy", ours, theirs)], 0.45)
    firsts = {"jit": FIRST, "few eager operations": EAGER, "MLP step": TRAINING}
    found = [
        (name, *in_turn(program.format(m="minijax"), program.format(m="jax"), off, plain))
        for name, program in firsts.items()
    ]
    table.section("process start to first result, no cache", found, 0.45)
    with tempfile.TemporaryDirectory() as folder:
        cached = {**plain, "MINIJAX_CACHE_DIR": folder}
        ours, theirs = in_turn(
            TRAINING.format(m="minijax"), TRAINING.format(m="jax"), cached, plain, rounds=3
        )
        table.section(
            "second process to the first training step", [("disk cache", ours, theirs)], 0.3
        )
