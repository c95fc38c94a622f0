"""Every program under every transform, and under nestings of two and three, against upstream."""

import itertools
import random

import jax
import numpy as np
import pytest

import minijax
from tests.cases.programs import PROGRAMS
from tests.harness.differential import BOTH, assert_same, x64
from tests.harness.rules import outcome

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


def run(m, name, nesting):
    f = PROGRAMS[name](m)
    x = np.array([0.7, -0.4, 1.3])
    for transform in nesting:
        if transform == "vmap":
            x = np.stack([x, x * 0.9 + 0.05])
        f = TRANSFORMS[transform](m, f)
    return f(m.numpy.asarray(x, m.numpy.zeros(()).dtype))


def upstream(name, nesting, known):
    """The same values from upstream, compiled as one program, which is faster than step by step.

    What `jit` wraps has the values of what it wraps, and `linearize` those of `jvp`.
    """
    plain = tuple("jvp" if t == "linearize" else t for t in nesting if t not in ("eager", "jit"))
    if plain not in known:
        known[plain] = outcome(lambda m: run(m, name, (*plain, "jit")), jax)
    return known[plain]


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
    with x64(enable_x64):
        known: dict = {}
        # Each program takes its turn of the nestings, so that each nesting meets many programs.
        step = 4 if enable_x64 else 2
        turn = list(PROGRAMS).index(name) % step
        nestings = [*ONE, *TWO[turn::step], *THREE[turn::step]]
        for nesting in nestings:
            if forward_refused(name, nesting):
                continue
            where = f"{name} under {' of '.join(reversed(nesting))}"
            expected, refused = upstream(name, nesting, known)
            if refused:
                with pytest.raises(type(refused)):
                    run(minijax, name, nesting)
                continue
            try:
                found = run(minijax, name, nesting)
            except Exception as error:
                raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
            assert_same(found, expected, size=1.0, where=where)


def test_both_are_there():
    assert [m.__name__ for m in BOTH] == ["jax", "minijax"]
    assert len(PROGRAMS) >= 60, len(PROGRAMS)
