"""How long gradients of loops run that read parts of an array at each step."""

import jax
import numpy as np

import minijax
from tests.benchmarks.timing import compare
from tests.cases.loop_programs import PROGRAMS


def _compiled(m, program, x):
    gradient = m.jit(m.grad(lambda x: program(m, x)))
    return lambda: gradient(x).block_until_ready()


def rows(table):
    x = np.random.RandomState(0).randn(2000).astype(np.float32)
    found = []
    for name, program in PROGRAMS.items():
        both = [_compiled(m, program, m.numpy.asarray(x)) for m in (minijax, jax)]
        found.append((f"grad of {name.replace('_', ' ')}", *compare(*both)))
    table.section("gradients of loops over an array of 2000", found, 1.0)
