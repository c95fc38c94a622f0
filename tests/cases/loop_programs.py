"""Loops that read a few elements of a large array at each step: `(m, x) -> number`.

Their gradients are to write as few elements at each step: what fills a whole array of zeros takes
time that grows with the square of its size.
"""

from functools import partial

import numpy as np

PROGRAMS = {}


def _program(read):
    """A loop that sums what `read(m, x, i)` gives."""

    def program(m, x):
        steps = m.numpy.arange(len(x) - 4)
        return m.lax.scan(lambda c, i: (c + read(m, x, i), None), 0.0, steps)[0]

    PROGRAMS[read.__name__.strip("_")] = program
    return read


@_program
def _one_place(m, x, i):
    return m.numpy.sin(x[i])


@_program
def _two_places(m, x, i):
    return m.numpy.sin(x[i]) * x[i + 1]


@_program
def _slices(m, x, i):
    return (m.lax.dynamic_slice(x, (i,), (3,)) ** 2).sum() * x[i]


@_program
def _fixed_places(m, x, i):
    return m.numpy.sin(x[3] * x[5]) * x[2:4].sum()


@_program
def _a_list_of_places(m, x, i):
    return m.numpy.sin(x[np.array([0, 3]) + i]).sum() * x[i]


@_program
def _within_jit(m, x, i):
    return m.jit(partial(_two_places, m))(x, i)


@_program
def _within_checkpoint(m, x, i):
    return m.checkpoint(partial(_two_places, m))(x, i)


@_program
def _within_cond(m, x, i):
    return m.lax.cond(i % 2 == 0, lambda: m.numpy.sin(x[i]), lambda: x[i + 1] * x[i])


@_program
def _within_scan(m, x, i):
    inner = lambda c, k: (c + m.numpy.sin(x[i + k]) * x[k], None)
    return m.lax.scan(inner, 0.0, m.numpy.arange(3))[0]


@_program
def _within_all(m, x, i):
    deep = lambda x, i: m.lax.cond(i > 2, partial(_within_scan, m), partial(_two_places, m), x, i)
    return m.jit(m.checkpoint(deep))(x, i) * x[i]


@_program
def _whole_array(m, x, i):
    return (x * x[i]).sum()


def fori(m, x):
    read = lambda i, c: c + _two_places(m, x, i)
    return m.lax.fori_loop(0, len(x) - 1, read, 0.0)


def carried(m, x):
    step = lambda i, a: a.at[i].add(m.numpy.sin(a[i - 1]) * x[i])
    return m.lax.fori_loop(1, len(x), step, x).sum()


PROGRAMS["fori"] = fori
PROGRAMS["carried"] = carried
