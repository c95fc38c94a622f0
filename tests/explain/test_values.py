"""Bytes, operations, rules and single steps of programs, against XLA's figures and known values."""

import doctest
import io

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax, nn
from minijax.core.primitive import RuleColumn
from minijax.explain import showing
from minijax.explain.memory_use import memory
from minijax.explain.rule_tables import COLUMNS, primitive, rules, where
from minijax.explain.stepping import step
from minijax.explain.work import cost


def _of(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _sgd(loss):
    def train(p, *data):
        value, grads = jax.value_and_grad(loss)(p, *data)
        return value, jax.tree.map(lambda x, g: x - 0.1 * g, p, grads)

    return train


def _mlp(p, x, y, act=jnp.tanh):
    for w, b in p[:-1]:
        x = act(x @ w + b)
    return jnp.mean((x @ p[-1][0] + p[-1][1] - y) ** 2)


def _rnn(p, xs, y):
    def body(h, x):
        return jnp.tanh(x @ p[0] + h @ p[1]), None

    h, _ = lax.scan(body, jnp.zeros((64, 128)), xs)
    return jnp.mean((h @ p[2] - y) ** 2)


def _norm(p, x, y):
    for w, s in p:
        centred = x - x.mean(-1, keepdims=True)
        x = x + nn.relu((centred * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * s) @ w)
    return jnp.mean((x - y) ** 2)


def _ode(p, x, y):
    def body(x, _):
        return x + 0.1 * jnp.tanh(x @ p[0]) @ p[1], None

    return jnp.mean((lax.scan(body, x, None, length=10)[0] - y) ** 2)


def _adam(state, x, y):
    p, m, v = state
    g = jax.grad(_mlp)(p, x, y)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
    return jax.tree.map(lambda p, m, v: p - 0.1 * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v


def _autoencoder(p, x):
    z = jnp.tanh(x @ p[0])
    return jnp.mean((nn.sigmoid(z @ p[1]) - x) ** 2) + 1e-3 * jnp.sum(jnp.abs(z))


LAYERS = [(_of(64, 128), _of(128)), (_of(128, 128), _of(128)), (_of(128, 10), _of(10))]
BATCH = (_of(512, 64), _of(512, 10))
STEPS = {
    "tanh": (_sgd(_mlp), LAYERS, *BATCH),
    "relu": (_sgd(lambda *args: _mlp(*args, act=nn.relu)), LAYERS, *BATCH),
    "rnn": (_sgd(_rnn), [_of(32, 128), _of(128, 128), _of(128, 4)], _of(20, 64, 32), _of(64, 4)),
    "norm": (_sgd(_norm), [(_of(128, 128), _of(128))] * 2, _of(256, 128), _of(256, 128)),
    "ode": (_sgd(_ode), [_of(64, 128), _of(128, 64)], _of(128, 64), _of(128, 64)),
    "adam": (_adam, (LAYERS, LAYERS, LAYERS), *BATCH),
    "autoencoder": (_sgd(_autoencoder), [_of(128, 32), _of(32, 128)], _of(512, 128)),
}


@pytest.mark.parametrize("name", STEPS)
def test_peak_and_operations_are_near_those_of_xla(name):
    f, *args = STEPS[name]
    used = memory(f, *args)
    assert used.peak == pytest.approx(used.xla, rel=0.06)
    assert max(row.alive for row in used.rows) == used.peak
    work = cost(f, *args)
    once = sum(row.flops / row.turns for row in work.rows)  # XLA counts a loop as one turn
    assert once == pytest.approx(work.xla["flops"] + work.xla.get("transcendentals", 0), rel=0.01)
    assert {"trace", "lower", "compile"} == set(work.seconds)


def test_residuals_name_the_line_and_a_checkpoint_saves_what_is_said():
    xs, w = _of(32, 64, 64), _of(64, 64)

    def loss(body, w, xs):
        return jnp.sum(lax.scan(body, jnp.zeros((64, 64)), xs)[0])

    def body(w, h, x):
        wide = jnp.tanh(jnp.sin(h @ w) * x)
        return wide, None

    def plain(w, xs):
        return jax.grad(lambda w: loss(lambda h, x: body(w, h, x), w, xs))(w)

    def saving(w, xs):
        return jax.grad(lambda w: loss(jax.checkpoint(lambda h, x: body(w, h, x)), w, xs))(w)

    before, after = memory(plain, w, xs), memory(saving, w, xs)
    line = body.__code__.co_firstlineno + 1
    kept = [r for r in before.residuals if r.line[1] == line]
    assert {r.line[0] for r in kept} == {__file__}
    said = before.savings[__file__, line]
    assert said == pytest.approx(before.xla - after.xla, rel=0.15)
    assert before.peak - after.peak == pytest.approx(before.xla - after.xla, rel=0.15)


def test_nothing_is_kept_without_a_gradient_and_all_without_fusion():
    f = lambda x: jnp.sum(jnp.sin(x) * 2 + 1)
    assert memory(f, _of(100)).residuals == []
    assert memory(f, _of(100)).peak == 404
    assert memory(f, _of(100), fused=False).peak >= 800


def test_costs_by_line_turns_and_branches():
    def f(x):
        x = lax.fori_loop(0, 5, lambda i, x: x @ x, x)
        return lax.cond(x[0, 0] > 0, lambda x: x @ x, lambda x: x, x)

    found = cost(f, _of(8, 8), compile=False)
    dots = [row.flops for row in found.rows if row.eqn.primitive.name == "dot_general"]
    assert dots == [5 * 1024, 1024]
    first = f.__code__.co_firstlineno
    lines = {line: flops for (_, line), (flops, _) in found.by_line().items()}
    assert lines[first + 1] >= 5 * 1024
    assert 1024 <= lines[first + 2] < 1100
    endless = cost(lambda x: lax.while_loop(lambda x: x[0] < 1, lambda x: x * 2, x), _of(3))
    assert all(row.unknown for row in endless.rows)
    assert "at least" in str(endless)
    assert "<table>" in endless._repr_html_()


def test_rules_of_an_interpreter_and_of_a_primitive():
    sine = {row.column: row for row in primitive("sin").rows}
    assert "cos_p.bind" in sine["jvp"].place.source
    assert "not linear" in sine["transpose"].reason
    assert {row.column for row in primitive("scan").rows} >= {"jvp", "batch_axis", "transpose"}
    for column in COLUMNS:
        for row in rules(column).rows:
            if row.primitive.rule_shape.__module__.startswith("minijax."):
                assert row.place or row.reason, row
    own = RuleColumn("own")
    own(lax.sin_p)(lambda x: x)
    assert [(row.primitive.name, row.column) for row in rules(own).rows] == [("sin", "own")]
    with pytest.raises(ValueError, match="No interpreter"):
        rules("nothing")
    with pytest.raises(ValueError, match="No primitive"):
        primitive("nothing")


@pytest.mark.parametrize(
    ("obj", "start"),
    [
        (jax.grad, "def grad"),
        ("minijax.numpy.sin", "sin = "),
        (lax.sin_p, "sin_p = "),
        (jnp.add, "add = "),
        (jax.custom_vjp, "class custom_vjp"),
    ],
    ids=["a function", "a name", "a primitive", "a ufunc", "a class"],
)
def test_where(obj, start):
    found = where(obj)
    assert start in found.source
    assert found.before
    assert found.behind


def test_where_there_is_no_source():
    with pytest.raises(TypeError, match="no Python source"):
        where(len)


def _program(x):
    def body(c, x):
        c = jnp.log(c - x)
        return c, c * 2

    c, ys = lax.scan(body, x, jnp.arange(3.0))
    return jax.jit(lambda c: c + 1)(c), ys


def test_steps_forward_and_back_give_the_values_of_the_function():
    stepper = step(_program, 30.0)
    seen = []
    while not stepper.done:
        seen.append(list(stepper.next().outputs))
    want = _program(30.0)
    for got, wanted in zip(stepper.results, want, strict=True):
        np.testing.assert_array_equal(got, wanted)
    for outs in reversed(seen):
        np.testing.assert_array_equal(stepper.outputs[0], outs[0])
        stepper.back()
    assert stepper.values.keys() == {"a"}
    with pytest.raises(ValueError, match="beginning"):
        stepper.back()
    with pytest.raises(ValueError, match="end"):
        _ = stepper.results


def test_steps_stop_where_the_first_nan_arises():
    stepper = step(_program, 5.0).run_to()
    assert stepper.last.primitive.name == "log"
    assert stepper.turn == (2,)
    assert f":{_program.__code__.co_firstlineno + 2}:" in stepper.line
    assert np.isnan(stepper.outputs[0])
    assert stepper.back().last.primitive.name == "sub"
    while stepper.turn == (2,):
        stepper.back()
    assert stepper.turn == (1,)
    assert stepper.out().turn == ()
    gradient = step(jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0)), 0.0).run_to()
    assert not np.isfinite(gradient.outputs[0])


def test_steps_into_branches_and_loops_and_to_a_predicate():
    def f(x):
        x = lax.cond(x > 0, lambda x: x * 3, lambda x: -x, x)
        return lax.while_loop(lambda x: x < 100, lambda x: x * 2, x)

    stepper = step(f, 2.0).run_to(lambda s: s._has_body(), into=False).into()
    assert stepper.next().outputs == [6.0]
    stepper.run_to(lambda s: s.outputs and np.asarray(s.outputs[0]) > 50)
    assert stepper.outputs == [96.0]
    assert stepper.run_to(lambda s: False).results == f(2.0) == 192
    with pytest.raises(ValueError, match="no body"):
        step(jnp.sin, 1.0).into()


PUBLIC = [showing.explain, *(getattr(explain, name) for name in explain.__all__)]


@pytest.mark.parametrize("function", [f for f in PUBLIC if ">>>" in (f.__doc__ or "")])
def test_docstrings(function):
    scope = {"jax": jax, "minijax": jax, "io": io, "jnp": jnp, "explain": explain}
    test = doctest.DocTestParser().get_doctest(function.__doc__, scope, "", None, 0)
    report = io.StringIO()
    doctest.DocTestRunner().run(test, out=report.write)
    assert test.examples and not report.getvalue()
