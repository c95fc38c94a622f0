"""Library functions with loops in them, within `shard_map` and its checks:
`tests/cases/in_shard_map.py`.
"""

import jax
import numpy as np
import pytest

import minijax
from tests.cases.in_shard_map import PROGRAMS
from tests.harness.survivors import outcomes


def test_functions_with_loops():
    found = outcomes("in_shard_map", "minijax", PROGRAMS)
    wrong = {name: outcome for name, outcome in found.items() if outcome is not True}
    assert not wrong, "\n".join(f"{name}: {str(why)[:300]}" for name, why in wrong.items())
    assert len(found) > 100


@pytest.mark.parametrize(
    "branches",
    [
        lambda j: [lambda x: x * 2, j.numpy.sin],
        lambda j: [lambda x: x * 2, j.numpy.sin, lambda x: x * j.lax.axis_index("x")],
        lambda j: [lambda x: j.numpy.exp(x) * x.sum(), lambda x: x**3 * 2],
    ],
)
def test_residuals_of_branches_vary(branches):
    """A residual that one branch has not is zeros, which vary over mesh axes as the residual does."""

    def specs(j):
        mesh = j.make_mesh((1,), ("x",), axis_types=(j.sharding.AxisType.Auto,))
        choose = lambda x: j.lax.switch(j.lax.axis_index("x"), branches(j), x)
        mapped = j.shard_map(choose, mesh=mesh, in_specs=j.P("x"), out_specs=j.P("x"))
        jaxpr = j.make_jaxpr(lambda x: j.vjp(mapped, x)[0])(np.ones(4, np.float32)).jaxpr
        (eqn,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "shard_map"]
        return [spec for spec in eqn.params["out_specs"] if "x" not in str(spec)]

    assert specs(minijax) == specs(jax) == []
