"""Steps and values within a `shard_map`, on eight devices."""

import os
import subprocess
import sys

from tests.harness import upstream

_PROGRAMS = """
import itertools
import numpy as np
import minijax as jax, minijax.numpy as jnp
from minijax import explain, lax, random

P, AUTO = jax.P, jax.sharding.AxisType.Auto
mesh = jax.make_mesh((4, 2), ("i", "j"), (AUTO, AUTO))
X = jnp.arange(32.0).reshape(4, 8)
KEY = random.key(3)

def collectives(x, key):
    total = lax.pmean(lax.psum(x, "i") * lax.axis_index("i"), ("i", "j"))
    turned = lax.ppermute(x, "i", [(n, (n + 1) % 4) for n in range(4)])
    own = random.normal(random.fold_in(key, lax.axis_index("j")), x.shape)
    return total + turned + lax.all_gather(x, "j").sum(0) + own

def loops(x, key):
    def turn(c, row):
        c = c + lax.psum(row.sum(), "j")
        return c, c * 2
    c, ys = lax.scan(turn, x[0, 0], x)
    return lax.fori_loop(0, 3, lambda n, c: c + lax.pmax(ys[0] * n, "i"), c) * x

def apart(x, key):
    n = lax.while_loop(lambda n: n < 20, lambda n: n * 2 + 1, x[0, 0])
    each = jax.vmap(lambda x: lax.while_loop(lambda x: x > 1, lambda x: x / 3, x))(x[0])
    chosen = lax.cond(x[0, 0] > 10, jnp.sin, lambda n: jnp.cos(n) * 2, n)
    return chosen * each[None] + x

def calls(x, key):
    inner = jax.jit(lambda x: lax.psum(x, "i") * 2)
    return jax.checkpoint(lambda x: inner(x) + lax.cumsum(x, 1))(x)

def nested(x, key):
    over_j = lambda x: lax.psum(x, "j") * lax.axis_index("i") + x
    both = jax.shard_map(over_j, in_specs=P(None, "j"), out_specs=P(None, "j"), axis_names={"j"})
    return both(x) + random.normal(key, ())

def program(f, check):
    axes = {"i"} if f is nested else {"i", "j"}
    spec = P("i") if f is nested else P("i", "j")
    mapped = jax.shard_map(
        f, mesh=mesh, in_specs=(spec, P()), out_specs=spec, axis_names=axes, check_vma=check)
    return jax.jit(mapped) if f is nested else mapped

def inner(eqn):
    return eqn.primitive.name == "shard_map"
"""

_STEPS = """
for f, check in itertools.product((collectives, loops, apart, calls, nested), (True, False)):
    g = program(f, check)
    wanted = g(X, KEY)
    stepper = explain.step(g, X, KEY)
    seen = []

    def look(s):
        seen.append((s.last and s.last.primitive.name, s.turn, s.ran_on))
        for x in s.outputs if s.ran_on is not None else ():
            assert len(x) == len(s.ran_on), (f, s.last)
        assert str(s)

    stepper.run_to(look)
    np.testing.assert_array_equal(stepper.results, wanted)
    within = [places for _, _, places in seen if places is not None]
    assert within, f
    if f is apart:
        assert min(map(len, within)) < 8
    else:
        assert set(map(len, within)) == ({4, 8} if f is nested else {8}), f

# What a collective does is seen: the values before it, and after it.
stepper = explain.step(program(collectives, True), X, KEY).into()
stepper.run_to(lambda s: s.last is not None and s.last.primitive.name.startswith("psum"), into=False)
parts = np.asarray(X).reshape(4, 1, 2, 4).swapaxes(1, 2).reshape(8, 1, 4)
np.testing.assert_array_equal(stepper.inputs[0], parts)
np.testing.assert_array_equal(
    stepper.outputs[0], np.tile(parts.reshape(4, 2, 1, 4).sum(0), (4, 1, 1)))
assert stepper.places == [{"i": i, "j": j} for i in range(4) for j in range(2)]
assert "on 8 devices" in str(stepper)
values = stepper.values
stepper.next().back()
for name, value in stepper.values.items():
    if name == "b":
        value, values[name] = map(random.key_data, (value, values[name]))
    np.testing.assert_array_equal(value, values[name])
while stepper.places is not None:
    stepper.back()
assert stepper.eqn.primitive.name == "shard_map"

# A loop within, forward and back, and out of it.
stepper = explain.step(program(loops, True), X, KEY).into()
stepper.run_to(lambda s: len(s.turn) == 2 and s.turn[1] == 0 and s.last.primitive.name.startswith("psum"))
first = stepper.outputs[0]
np.testing.assert_array_equal(first, parts.sum((1, 2)).reshape(4, 2).sum(1).repeat(2))
assert stepper.out().turn == (0,)
stepper.back().into()
assert stepper.turn == (0, 0)
stepper.run_to(lambda s: False)
np.testing.assert_array_equal(stepper.results, program(loops, True)(X, KEY))

# It stops where one device makes a NaN, or has an index out of bounds.
def faulty(x, i):
    i = i + lax.axis_index("i")
    return x[i] + jnp.sqrt(2.0 - i)
g = jax.shard_map(faulty, mesh=mesh, in_specs=(P(None, "j"), P()), out_specs=P(("i", "j")))
stepper = explain.step(g, X, 1).run_to()
assert stepper.last.primitive.name in ("gather", "dynamic_slice"), stepper.last
assert explain.step(g, X, 0).run_to().last.primitive.name == "sqrt"
"""

_RANGES = """
def shown(f, check, name, within=""):
    lines = explain(program(f, check), X, KEY, values=True, compile=False)["jaxpr"].lines
    return [line.value for line in lines if f"= {name}" in line.text and within in line.where]

assert shown(collectives, True, "axis_index")[0] == "0 … 3"
assert shown(collectives, False, "axis_index")[0] == "0 … 3"
sums = np.asarray(X).reshape(4, 2, 4).sum((1, 2))
assert shown(loops, True, "psum")[0] == f"{sums.min():.4g} … {sums.max():.4g}"
assert shown(apart, True, "sin") and shown(apart, True, "cos")
assert all(shown(apart, True, "sin")) and all(shown(apart, True, "cos"))
assert all(shown(nested, True, "psum"))
"""


def _run(script):
    env = os.environ | upstream.devices(8)
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAMS + script], env=env, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


def test_steps_within_a_shard_map():
    _run(_STEPS)


def test_ranges_of_values_within_a_shard_map():
    _run(_RANGES)
