"""Forty reference programs under six nests of transforms: lines, rules, sources, pages.

Each program is tested in two of the nests; all pairs with `MINIJAX_EXPLAIN=all`.
"""

import os

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.experimental.ode import odeint
from tests.cases.reference_programs import NESTS, PAIRS, PROGRAMS, ROTATION, W, X

CHOSEN = PAIRS if os.environ.get("MINIJAX_EXPLAIN") == "all" else ROTATION


def _equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for value in eqn.params.values():
            for item in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(item, (ClosedJaxpr, Jaxpr)):
                    yield from _equations(item)


def _bits(f):
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(jax.jit(f)(W, X))]


@pytest.mark.parametrize(("program", "nest"), CHOSEN)
def test_lines_rules_source_and_page(program, nest):
    f = NESTS[nest](PROGRAMS[program])
    found = explain(f, W, X, compile=False)
    for stage in found.stages:
        if stage.jaxpr is None:
            continue
        lines = [line for line in stage.lines if line.made]
        assert len(lines) == len(list(_equations(stage.jaxpr)))
        for line in lines:
            assert line.where.startswith(("reference_programs.py:", "test_programs.py:"))
            assert line.made == "written" or ".py:" in line.place, line
    made = {line.transform for line in found["jaxpr"].lines if line.made}
    if nest == "vmap":
        assert "vmap" in made
    elif nest != "jit":
        assert made & {"jvp", "transpose"}
    assert len(found.html().encode()) < 2_000_000
    assert _bits(explain.to_python(f, W, X).function()) == _bits(f)


def test_rules_that_call_functions_with_rules_without_end():
    """The rule of `odeint` integrates a larger system, whose rule does the same."""
    f = lambda w, x: odeint(lambda y, t: jnp.tanh(y @ w[0]), x, jnp.array([0.0, 0.2]))[-1].sum()
    source = explain.to_python(f, W, X)
    assert 1 <= source.count("@jax.custom_vjp") <= 3
    assert _bits(source.function()) == _bits(f)


def test_there_are_forty_programs_and_each_nest_meets_a_third_of_them():
    assert (len(PROGRAMS), len(NESTS)) == (40, 6)
    assert {program for program, _ in ROTATION} == set(PROGRAMS)
    for nest in NESTS:
        assert len([pair for pair in ROTATION if pair[1] == nest]) >= 13
