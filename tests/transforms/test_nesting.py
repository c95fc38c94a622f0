"""Every program under every transform, and under nestings of two and three, against upstream."""

import functools
import itertools
import random

import jax
import numpy as np
import pytest

import minijax
from tests.cases.programs import PROGRAMS
from tests.harness.differential import BOTH, x64
from tests.harness.rules import compare, outcomes, returned

NO_FORWARD = {"custom_vjp"}  # upstream refuses forward mode through custom_vjp


def total(m, tree):
    """A scalar from all inexact results, which `grad` can differentiate."""
    parts = [
        m.numpy.sum(m.numpy.real(leaf) * (0.3 + 0.1 * index))
        for index, leaf in enumerate(m.tree_util.tree_leaves(tree))
        if np.issubdtype(leaf.dtype, np.inexact)
    ]
    return sum(parts[1:], parts[0])


def linearized(m, f):
    def run(x):
        out, push = m.linearize(f, x)
        return out, push(x * 0.5)

    return run


TRANSFORMS = {
    "eager": lambda m, f: f,
    "jit": lambda m, f: m.jit(f),
    "grad": lambda m, f: m.grad(lambda x: total(m, f(x))),
    "vmap": lambda m, f: m.vmap(f),
    "jvp": lambda m, f: lambda x: m.jvp(f, (x,), (x * 0.5,)),
    "linearize": linearized,
}

ONE = [(name,) for name in TRANSFORMS]
TWO = [p for p in itertools.product(TRANSFORMS, repeat=2) if "eager" not in p]
THREE = random.Random(0).sample(
    [p for p in itertools.product(TRANSFORMS, repeat=3) if "eager" not in p], 12
)


def points(m):
    """The operand under none, one, two and three `vmap`s."""
    xs = [np.array([0.7, -0.4, 1.3])]
    for _ in range(3):
        xs.append(np.stack([xs[-1], xs[-1] * 0.9 + 0.05]))
    return [m.numpy.asarray(x, m.numpy.zeros(()).dtype) for x in xs]


def runs(name, nestings):
    def run(m, *xs, nesting):
        f = PROGRAMS[name](m)
        for transform in nesting:
            f = TRANSFORMS[transform](m, f)
        return f(xs[nesting.count("vmap")])

    return {nesting: functools.partial(run, nesting=nesting) for nesting in nestings}


def plain(nesting):
    """What `jit` wraps has the values of what it wraps, and `linearize` those of `jvp`."""
    return tuple("jvp" if t == "linearize" else t for t in nesting if t not in ("eager", "jit"))


def forward_refused(name, nesting):
    if name not in NO_FORWARD:
        return False
    for position, transform in enumerate(nesting):
        if transform in ("jvp", "linearize") and "grad" not in nesting[:position]:
            return True
    return any(t in ("jvp", "linearize") for t in nesting)


@pytest.mark.parametrize("enable_x64", [False, True], ids=["x32", "x64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, enable_x64):
    # Each program takes its turn of the nestings, so that each nesting meets many programs: a third
    # as they stand, the others within one program.
    step = 4 if enable_x64 else 2
    place = list(PROGRAMS).index(name)
    turn, third = place % step, place // step % 3
    nestings = [*ONE, *TWO[turn::step], *THREE[turn::step]]
    nestings = [nesting for nesting in nestings if not forward_refused(name, nesting)]
    compiled = [nesting for at, nesting in enumerate(nestings[1:]) if at % 3 != third]
    with x64(enable_x64):
        theirs = outcomes(jax, runs(name, map(plain, nestings)), *points(jax))
        xs = points(minijax)
        ours = outcomes(minijax, runs(name, compiled), *xs)
        for nesting, run in runs(name, nestings).items():
            where = f"{name} under {' of '.join(reversed(nesting))}"
            made = lambda m: returned(*ours[nesting], where) if nesting in ours else run(m, *xs)
            compare(made, *theirs[plain(nesting)], where=where, size=1.0)


def test_both_are_there():
    assert [m.__name__ for m in BOTH] == ["jax", "minijax"]
    assert len(PROGRAMS) >= 60, len(PROGRAMS)
