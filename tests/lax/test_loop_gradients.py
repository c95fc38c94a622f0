"""Gradients of loops that read parts of arrays: right, and without whole arrays at each step."""

import jax
import numpy as np
import pytest

import minijax
from minijax.core.jaxpr import jaxprs_in_params
from tests.cases.loop_programs import PROGRAMS
from tests.harness.differential import assert_same

pytestmark = pytest.mark.both_ends

_RNG = np.random.RandomState(0)
X = _RNG.randn(9).astype(np.float32)
ROWS = _RNG.randn(2, 9).astype(np.float32)

WAYS = {
    "grad": lambda m, f: m.grad(f)(X),
    "jit grad": lambda m, f: m.jit(m.grad(f))(X),
    "vmap grad": lambda m, f: m.vmap(m.grad(f))(ROWS),
    "grad vmap": lambda m, f: m.grad(lambda xs: m.vmap(f)(xs).sum())(ROWS),
    "jvp grad": lambda m, f: m.jvp(m.grad(f), (X,), (ROWS[0],)),
    "grad grad": lambda m, f: m.grad(lambda x: (m.grad(f)(x) ** 2).sum())(X),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient(name, way):
    ours, theirs = (WAYS[way](m, lambda x, m=m: PROGRAMS[name](m, x)) for m in (minijax, jax))
    assert_same(ours, theirs, where=f"{way} of {name}")


def _equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _equations(inner)


@pytest.mark.parametrize(
    "name", [name for name in PROGRAMS if name not in ("whole_array", "carried")]
)
def test_backward_loops_touch_only_what_was_read(name):
    x = np.ones(1000, np.float32)
    closed = minijax.make_jaxpr(minijax.grad(lambda x: PROGRAMS[name](minijax, x)))(x)
    whole = {
        eqn.primitive.name
        for outer in _equations(closed.jaxpr)
        if outer.primitive.name == "scan"
        for eqn in _equations(outer.params["jaxpr"].jaxpr)
        if any(var.aval.shape == x.shape for var in eqn.outvars)
    }
    in_place = {
        "dynamic_update_slice",
        "scatter-add",
        "jit",
        "remat2",
        "checkpoint",
        "cond",
        "scan",
    }
    assert whole and whole <= in_place, whole - in_place
