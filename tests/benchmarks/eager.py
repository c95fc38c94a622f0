"""Rows of public functions called eagerly on small arrays: for each, the first call of its tests.

So the choice is nobody's: a name of `jax.numpy`, `lax`, `random`, `nn`, `scipy.special` or `image` is
here if the tables of the tests have it, with the arrays and keywords that it has there. Left out is
what is the same object in both libraries: `finfo`, which is `ml_dtypes`' own.
"""

import re
import warnings
from functools import partial

import jax
import numpy as np

import minijax
from tests import lax_cases, test_image, test_nn, test_random, test_scipy
from tests.benchmarks.timing import compare_quick
from tests.numpy_cases import CASES
from tests.test_numpy import _arrays, _function, _used, lines

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


def rows(table):
    for family, calls in FAMILIES.items():
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, both in calls():
                found.append((name, *compare_quick(*both)))
        found.sort(key=lambda row: row[2] / row[1])
        table.section(f"eager, {len(found)} functions of {family}", found, 0.5, worst=1.0)
