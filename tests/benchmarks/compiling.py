"""Rows of compile times with the disk caches off: from a function to its program, traced and
lowered too.
"""

import jax.scipy.linalg
import numpy as np

import minijax.scipy.linalg
from minijax.config import override
from tests.benchmarks.programs import timed_once

X = np.linspace(0.1, 1.0, 64 * 64, dtype=np.float32).reshape(64, 64)
SPD = X @ X.T + 10 * np.eye(64, dtype=np.float32)
N = np.arange(64)


def _newton(m, x):
    def step(state):
        y, _ = state
        new = y - (y * y - x) / (2 * y)
        return new, m.numpy.abs(new - y)

    return m.lax.while_loop(lambda s: m.numpy.max(s[1]) > 1e-6, step, (x, x))[0]


def _scan(m, x):
    def step(carry, row):
        carry = m.numpy.tanh(carry @ x + row)
        return carry, carry.sum()

    return m.lax.scan(step, x[0], x)


PROGRAMS = {
    "x + 1": lambda m, x: x + 1,
    "sin(x) * x": lambda m, x: m.numpy.sin(x) * x,
    "matmul": lambda m, x: x @ x,
    "grad of a layer": lambda m, x: m.grad(lambda w: m.numpy.tanh(x @ w).sum())(x),
    "softmax": lambda m, x: m.nn.softmax(x),
    "variance": lambda m, x: m.numpy.var(x, axis=0),
    "cumsum": lambda m, x: m.numpy.cumsum(x, axis=0),
    "sort": lambda m, x: m.numpy.sort(x),
    "argsort": lambda m, x: m.numpy.argsort(x),
    "top_k": lambda m, x: m.lax.top_k(x, 3),
    "gather": lambda m, x: x[N, N],
    "scatter": lambda m, x: x.at[N].add(1.0),
    "segment_sum": lambda m, x: m.ops.segment_sum(x, N // 4, 16),
    "cholesky solve": lambda m, x: m.scipy.linalg.cho_solve(m.scipy.linalg.cho_factor(SPD + x), x),
    "eigh": lambda m, x: m.numpy.linalg.eigh(SPD + x),
    "normal": lambda m, x: m.random.normal(m.random.key(0), (64, 64)) + x,
    "newton while": _newton,
    "scan": _scan,
}  # fmt: skip


def _compile(m, f):
    m.clear_caches()
    with override("enable_compilation_cache", False):
        return timed_once(lambda: m.jit(lambda x: f(m, x)).trace(X).lower().compile())[1]


def measured(name, rounds=5):
    """The least times, in turn, of making the program of a name."""
    times = ([], [])
    for _ in range(rounds):
        for m, found in zip((minijax, jax), times, strict=True):
            found.append(_compile(m, PROGRAMS[name]))
    return tuple(map(min, times))


def rows(table):
    found = [(name, *measured(name)) for name in PROGRAMS]
    table.section("from a function to its program, no cache", found, 1.0, worst=1.15)
