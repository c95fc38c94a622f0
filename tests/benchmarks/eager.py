"""Rows of public functions called eagerly on small arrays: for each, the first call of its tests.

So the choice is nobody's: a name of `jax.numpy`, `lax`, `random`, `nn`, `scipy.special` or `image` is
here if the tables of the tests have it, with the arrays and keywords that it has there. Left out is
what is the same object in both libraries: `finfo`, which is `ml_dtypes`' own.

How a process lies in memory shifts calls of microseconds by a few percent, to either side: a row is
the median of several processes.
"""

import json
import re
import subprocess
import sys
import warnings
from functools import partial

import jax
import numpy as np

import minijax
from tests.benchmarks.timing import compare_quick
from tests.cases import lax_cases
from tests.cases.numpy_cases import CASES
from tests.image import test_image
from tests.nn import test_nn
from tests.numpy.test_expressions import _arrays, _function, _used, lines
from tests.random import test_random
from tests.scipy import test_scipy

_LIBRARIES = (minijax, jax)


def _first(rows):
    """The first row of each name."""
    found = {}
    for name, row in rows:
        found.setdefault(name, row)
    return found.items()


def _on_device(m, args):
    return [m.numpy.asarray(x) if isinstance(x, np.ndarray) else x for x in args]


def _numpy():
    named = [(re.match(r"jnp\.(\w+)\(", text), text) for text in lines(CASES)]
    for name, text in _first((match[1], text) for match, text in named if match):
        if getattr(minijax.numpy, name) is getattr(jax.numpy, name):
            continue
        used = _used(text)
        yield name, [partial(_function(text, m, used), *_arrays(m, used)) for m in _LIBRARIES]


def _lax():
    rows = [(name.partition("@")[0], row) for t in lax_cases.ROWS_OF.values() for name, *row in t]
    for name, (function, args) in _first(rows):
        yield name, [partial(function, m, *_on_device(m, args)) for m in _LIBRARIES]


def _random():
    for name, row in test_random.FIRST.items():
        yield name, [partial(row, m.random, m.random.key(0), np.float32) for m in _LIBRARIES]


def _of(table):
    for name, row in _first((row.name, row) for row in table):
        yield name, [partial(row.call, m, *_on_device(m, row.args)) for m in _LIBRARIES]


FAMILIES = {
    "jax.numpy": _numpy,
    "jax.lax": _lax,
    "jax.random": _random,
    "jax.nn": partial(_of, test_nn.ROWS),
    "jax.scipy.special": partial(_of, test_scipy.SPECIAL),
    "jax.image": partial(_of, test_image.ROWS),
}


_PROCESSES = 5


def _measured(family):
    """For each name, the times of both libraries, in seconds, as this process has them."""
    warnings.simplefilter("ignore")
    return {name: compare_quick(*both) for name, both in FAMILIES[family]()}


def rows(table):
    command = [sys.executable, "-m", "tests.benchmarks.eager"]
    for family in FAMILIES:
        runs = [
            json.loads(
                subprocess.run([*command, family], check=True, stdout=subprocess.PIPE).stdout
            )
            for _ in range(_PROCESSES)
        ]
        found = []
        for name in runs[0]:
            by_ratio = sorted((run[name] for run in runs), key=lambda times: times[0] / times[1])
            found.append((name, *by_ratio[_PROCESSES // 2]))
        found.sort(key=lambda row: row[2] / row[1])
        table.section(f"eager, {len(found)} functions of {family}", found, 0.5, worst=1.0)


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1])))
