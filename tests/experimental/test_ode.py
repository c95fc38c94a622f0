"""`odeint`: solutions and gradients against upstream, and against what is known in closed form."""

import jax
import jax.experimental.ode
import numpy as np
import pytest

import minijax
import minijax.experimental.ode
from tests.harness.differential import assert_same, x64

pytestmark = pytest.mark.both_ends

TIMES = np.linspace(0.0, 2.0, 3, dtype=np.float32)
START = np.float32([2.0, 0.0])


def _pendulum(j):
    return lambda y, t, m, g: j.numpy.stack([y[1], -m * y[1] - g * j.numpy.sin(y[0])])


def _swing(j, y, t=TIMES, m=0.25, g=9.8, **options):
    return j.experimental.ode.odeint(_pendulum(j), y, j.numpy.asarray(t), m, g, **options)


PROGRAMS = {
    "plain": lambda j: _swing(j, START),
    "jit": lambda j: j.jit(lambda y: _swing(j, y, rtol=1e-6, atol=1e-6))(START),
    "vmap": lambda j: j.vmap(lambda m: _swing(j, START, m=m))(np.float32([0.1, 0.2])),
    "gradient": lambda j: j.grad(
        lambda y, t, m, g: (_swing(j, y, t, m, g) ** 2).sum(), argnums=(0, 1, 2, 3)
    )(START, TIMES / 2, 0.25, 9.8),
    "jacobian": lambda j: j.jacrev(lambda y: _swing(j, y, TIMES / 4))(START),
    "tree": lambda j: j.experimental.ode.odeint(
        lambda y, t: {"a": -y["a"], "b": y["a"] * t}, {"a": np.ones(2, "f"), "b": np.zeros(2, "f")},
        j.numpy.asarray(TIMES),
    ),
    "closure": lambda j: j.grad(
        lambda c: j.experimental.ode.odeint(lambda y, t: -c * y, 1.0, j.numpy.asarray(TIMES))[1]
    )(2.0),
    "complex": lambda j: j.experimental.ode.odeint(
        lambda y, t: 1j * y, np.ones(2, "F"), j.numpy.asarray(TIMES)
    ),
    "one time": lambda j: _swing(j, START, TIMES[:1]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_against_upstream(name):
    ours, theirs = PROGRAMS[name](minijax), PROGRAMS[name](jax)
    # The sizes of steps depend on errors of rounding.
    assert_same(ours, theirs, ulps=1024, size=1.0, weak=False)


def test_against_the_exact_solution():
    with x64(True):
        j = minijax
        t = j.numpy.linspace(0.0, 5.0, 11)
        solve = lambda y0, a: j.experimental.ode.odeint(lambda y, t, a: -a * y, y0, t, a)
        np.testing.assert_allclose(solve(2.0, 0.7), 2 * np.exp(-0.7 * t), rtol=1e-7)
        slope = j.grad(lambda a: solve(2.0, a)[-1])(0.7)
        np.testing.assert_allclose(slope, -10 * np.exp(-3.5), rtol=1e-6)


def test_times_that_decrease_have_no_solution():
    assert np.isnan(_swing(minijax, START, TIMES[::-1].copy())[1:]).all()


@pytest.mark.parametrize(("times", "args"), [(np.array([0, 1]), ()), (TIMES, ("text",))])
def test_misuse(times, args):
    for j in (minijax, jax):
        with pytest.raises(TypeError, match="must be"):
            j.experimental.ode.odeint(lambda y, t, *a: -y, 1.0, j.numpy.asarray(times), *args)
