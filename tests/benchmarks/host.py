"""Rows of calls that take from the host or give to it: NumPy arrays, numbers, strings, and rows
of arrays.

Some of them can hardly come nearer to upstream, whose C++ function takes the arguments apart itself,
while Python is given these calls only (CPU time on one machine, where jit of an array takes 5.2 us):
- a small NumPy array: `batched_device_put` takes 3.8 us, of 10.1; upstream's whole call 5.8; so the
  values are copied into memory that is lent from call to call (`runtime.lending`)
- ten results: `execute_sharded` and its handlers take 13.3 us, of 14.6; upstream's whole call 13.0
"""

import itertools

import numpy as np

from tests.benchmarks.dispatch import arrays, calls
from tests.benchmarks.timing import compare_quick


def _jitted(m, x):
    f = m.jit(lambda x: x + 1.0)
    return lambda: f(x)


def _eager(m, x):
    f = m.numpy.sin
    return lambda: f(x)


def _static(m, value):
    f, x = m.jit(lambda x, n: x + len(str(n)), static_argnums=1), arrays(m)[0]
    return lambda: f(x, value)


def _new_number(m):
    f, x, numbers = m.jit(lambda x, n: x * n), arrays(m)[0], itertools.count(0.5)
    return lambda: f(x, next(numbers))


def _ten_results(m):
    f, x = m.jit(lambda x: tuple(x + i for i in range(10))), arrays(m)[0]
    return lambda: f(x)


def _iterated(m):
    x = arrays(m)[0]

    def run():
        for _ in x:
            pass

    return run


def _to_numpy(m):
    x = arrays(m)[0]
    return lambda: np.asarray(x)


def _fresh_to_numpy(m):
    f, x = m.jit(lambda x: x + 1.0), arrays(m)[0]
    return lambda: np.asarray(f(x))


SMALL, LARGE = np.ones((4, 4), np.float32), np.ones(1 << 18, np.float32)
ROWS = {
    "jit, a NumPy array of 1 MB": lambda m: _jitted(m, LARGE),
    "jit, a small NumPy array": lambda m: _jitted(m, SMALL),
    "jnp.sin, a NumPy array of 1 MB": lambda m: _eager(m, LARGE),
    "jnp.sin, a small NumPy array": lambda m: _eager(m, SMALL),
    "jit, a static number": lambda m: _static(m, 3),
    "jit, a static string": lambda m: _static(m, "three"),
    "jit, a number that is new": _new_number,
    "jit, ten results": _ten_results,
    "for row in x": _iterated,
    "np.asarray(x), again": _to_numpy,
    "np.asarray(x), fresh": _fresh_to_numpy,
}


def rows(table):
    table.section(
        "host values, static arguments, rows",
        [(n, *compare_quick(*calls(f))) for n, f in ROWS.items()],
    )
