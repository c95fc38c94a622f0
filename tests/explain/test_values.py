"""Bytes, operations, rules and single steps of programs, against XLA's figures and known values."""

import doctest
import io
import time
from functools import partial

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax
from minijax.core.primitive import RuleColumn
from minijax.explain import showing
from minijax.explain.rule_tables import COLUMNS, primitive, rules, where
from minijax.explain.stepping import out_of_bounds, step
from minijax.explain.work import cost
from tests.cases import training_steps


def _of(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


@pytest.mark.parametrize("name", ["tanh", "relu", "rnn", "norm", "ode", "adam", "autoencoder"])
def test_operations_are_near_those_of_xla(name):
    f, args = training_steps.step(name)
    work = cost(f, *args)
    once = sum(row.flops / row.turns for row in work.rows)  # XLA counts a loop as one turn
    assert once == pytest.approx(work.xla["flops"] + work.xla.get("transcendentals", 0), rel=0.01)
    assert {"trace", "lower", "compile"} == set(work.seconds)


_MESH = jax.sharding.AbstractMesh((4, 2), ("i", "j"))
_P = jax.sharding.PartitionSpec


def _in_parts(x, y):
    product = lambda x, y: lax.psum(x @ y, "j")
    specs = (_P("i", "j"), _P("j", None))
    return jax.shard_map(product, mesh=_MESH, in_specs=specs, out_specs=_P("i", None))(x, y)


def _complex(x):
    return x.astype(jnp.complex64)


COSTS = {  # of square matrices with 64 rows, in terms of 64**3 but for Fourier transforms
    "shard_map": (_in_parts, 2),
    "solve": (lambda x, y: jnp.linalg.solve(x, y[0]), 2 / 3 + 2 / 64),
    "inverse": (lambda x, y: jnp.linalg.inv(x), 2 / 3 + 2),
    "eigh": (lambda x, y: jnp.linalg.eigh(x, symmetrize_input=False), 9),
    "svd of many": (lambda x, y: jnp.linalg.svd(jnp.stack([x, y])), 52),
    "complex cholesky": (lambda x, y: lax.linalg.cholesky(_complex(x), symmetrize_input=False), 4 / 3),
    "fft": (lambda x, y: jnp.fft.fft(x), 5 * 64 * 6 / 64**2),
    "rfft": (lambda x, y: jnp.fft.rfft(x), 5 / 2 * 64 * 6 / 64**2),
    "ifft2": (lambda x, y: jnp.fft.ifft2(_complex(x)), 5 * 64 * 12 / 64**2),
}  # fmt: skip


@pytest.mark.parametrize("name", COSTS)
def test_operations_of_parts_linear_algebra_and_transforms(name):
    f, wanted = COSTS[name]
    found = cost(lambda *args: f(*args), _of(64, 64), _of(64, 64), compile=False)
    assert found.flops == pytest.approx(wanted * 64**3, rel=0.06)
    first, last = (each.__code__.co_firstlineno for each in (_in_parts, COSTS["ifft2"][0]))
    assert all(file == __file__ and first <= line <= last for file, line in found.by_line())


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
        (jax.enable_x64, "enable_x64 = "),
        (jnp.acos, "arccos = "),
        (jnp.int2, "int1, int2, int4 = "),
    ],
    ids=[
        "a function",
        "a name",
        "a primitive",
        "a ufunc",
        "a class",
        "a setting",
        "an alias",
        "a type",
    ],
)
def test_where(obj, start):
    found = where(obj)
    assert start in found.source
    assert found.before
    assert found.behind


def test_every_public_function_and_class_has_its_source():
    """But for those of NumPy, of jaxlib and of abstract classes."""
    without = []
    for module in (
        jax,
        jnp,
        lax,
        jax.nn,
        jax.random,
        jax.scipy.special,
        jax.tree_util,
        jax.sharding,
    ):
        for name in module.__all__ if hasattr(module, "__all__") else dir(module):
            obj = getattr(module, name)
            if not callable(obj) or name.startswith("_") or hasattr(obj, "__path__"):
                continue
            try:
                place = where(obj)
            except TypeError:
                without.append(f"{obj.__module__.split('.')[0]} {name}")
                continue
            assert place.source.strip(), name
    assert {text.split()[0] for text in without} <= {"numpy", "jaxlib"}, without


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


def test_what_has_no_results_is_run_once(capfd):
    def f(x):
        jax.debug.print("x {}", x, ordered=True)
        jax.jit(lambda x: jax.debug.print("in jit {}", x, ordered=True))(x)
        return x + 1

    stepper = step(f, 1.0)
    for _ in range(2):
        while not stepper.done:
            stepper.next()
        stepper.back().back()
    jax.effects_barrier()
    assert capfd.readouterr().out.split("\n") == ["x 1.0", "in jit 1.0", ""]


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


_INDEXED = {
    "read": lambda x, i: x[i] * 2,
    "written": lambda x, i: x.at[i].set(2.0),
    "in a loop": lambda x, i: lax.fori_loop(0, i + 1, lambda i, c: c + x[i], 0.0),
    "in a branch": lambda x, i: lax.cond(i > 0, lambda: jnp.take(x, i), lambda: x[0]),
    "gradient": lambda x, i: jax.grad(lambda x: x[i] ** 2)(x),
}


@pytest.mark.parametrize("name", _INDEXED)
def test_steps_stop_at_indices_out_of_bounds(name):
    f, x = _INDEXED[name], jnp.arange(3.0)
    stepper = step(f, x, 3).run_to()
    assert out_of_bounds(stepper)
    assert f":{f.__code__.co_firstlineno}:" in stepper.line
    assert not out_of_bounds(step(f, x, 2).run_to())
    np.testing.assert_array_equal(step(f, x, 3).run_to(lambda s: False).results, f(x, 3))


def test_steps_of_a_loop_whose_elements_end_apart():
    f = jax.vmap(lambda x: lax.while_loop(lambda x: x > 1.0, lambda x: x / 2, x))
    x = jnp.array([1.0, 5.0, 9.0])
    stepper = step(f, x).run_to(lambda s: s.last is not None and s.last.primitive.name == "div")
    np.testing.assert_array_equal(stepper.outputs[0], x / 2)
    np.testing.assert_array_equal(stepper.run_to(lambda s: False).results, f(x))


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


def _slow(x):
    time.sleep(0.05)
    y = jnp.sin(x)
    for _ in range(100):
        y = jnp.cos(y) * x
    return y


def test_times_of_stages_by_line():
    cost(_slow, 1.0)  # what is prepared once in a process is no line's
    found = cost(_slow, 1.0)
    first = _slow.__code__.co_firstlineno
    for stage in ("trace", "lower", "compile"):
        shares = found.seconds_by_line[stage]
        assert sum(shares.values()) == pytest.approx(found.seconds[stage])
        assert shares.keys() <= {(__file__, first + 2), (__file__, first + 4)}
    assert max(found.seconds_by_line["trace"].items(), key=lambda x: x[1])[0][1] == first + 2
    assert max(found.seconds_by_line["lower"].items(), key=lambda x: x[1])[0][1] == first + 4
    assert found.seconds["trace"] > 0.05
    again = cost(_slow, 1.0)  # what has been compiled is compiled again
    assert again.seconds["compile"] > found.seconds["compile"] / 20
    assert "compile ms" in str(found)
    assert "ms" not in str(cost(_slow, 1.0, compile=False)).split("\n")[1].replace("trace ms", "")


def _counting(ref, x):
    total = jax.new_ref(x * 0)

    def turn(i, c):
        total[...] += x * c
        ref[...] -= 1.0
        return c + total[0]

    c = lax.fori_loop(0, 3, turn, 1.0)
    return c, total[...] + ref[...]


def _given():
    return jax.new_ref(jnp.float32(9)), jnp.arange(1.0, 3.0)


def test_a_program_with_references_is_stepped_through_as_it_runs():
    wanted = jax.tree.map(np.asarray, _counting(*_given()))
    for moves in ((), ("next", "next"), ("next", "into", "next", "back", "next", "next")):
        ref, x = _given()
        stepper = step(_counting, ref, x)
        for move in moves:
            getattr(stepper, move)()
        assert str(stepper)
        for _ in range(2):
            found = stepper.run_to(lambda s: False).results
            jax.tree.map(np.testing.assert_array_equal, found, wanted)
            stepper.back().back()
        assert ref[...] == 9


@pytest.mark.parametrize("values", [False, True])
def test_references_of_the_user_are_shown_and_keep_their_values(values):
    ref, x = _given()
    shown = explain(_counting, ref, x, values=values)
    assert ref[...] == 9
    assert [stage.name for stage in shown.stages][-2:] == ["StableHLO", "optimised HLO"]
    lines = [line for line in shown["jaxpr"].lines if "<-" in line.text]
    assert [line.where for line in lines].count(lines[0].where) == 2
    assert lines[-1].value == ("6" if values else "")


def test_the_line_of_a_nan_that_references_carry():
    def f(ref, x):
        def turn(i, c):
            ref[...] -= 1.0
            logarithm = jnp.log(ref[...])
            return c + logarithm

        return lax.fori_loop(0, 5, turn, x)

    ref = jax.new_ref(jnp.float32(2.5))
    with pytest.raises(FloatingPointError) as caught:
        explain.nan(f)(ref, 0.0)
    assert caught.value.line[1] == f.__code__.co_firstlineno + 3
    assert (caught.value.primitive, caught.value.turns) == ("log", (2,))
    assert ref[...] == -2.5


@partial(jax.jit, static_argnums=1, static_argnames="how", donate_argnums=0)
def _jitted(x, n, y, how="cumsum"):
    return getattr(jnp, how)(jnp.log(x - n) * y)


def test_static_arguments_stay_static_and_donated_ones_stay_alive():
    x, args, kwargs = jnp.ones(3), (2, 2.0), {"how": "cumprod"}
    with pytest.raises(FloatingPointError):
        explain.nan(_jitted)(x + 0, *args, **kwargs)
    assert "log" in explain(_jitted, x, *args, values=True, **kwargs)["jaxpr"].text
    assert np.isnan(step(_jitted, x, *args, **kwargs).run_to(lambda s: False).results).all()
    assert cost(_jitted, x, *args, **kwargs).flops > 0
    assert "log" in explain.graph(_jitted, x, *args, **kwargs).dot()
    assert explain.memory(_jitted, x, *args, **kwargs).peak
    source = explain.to_python(_jitted, x, *args)
    assert np.isnan(source.function()(x, *args)).all()
    assert explain.diff(_jitted, _jitted, x, *args).same
    assert x.tolist() == [1, 1, 1]


def test_keys_are_shown_as_their_words():
    def draw(key):
        return jax.random.normal(jax.random.split(key)[0])

    assert "[0 7]" in str(step(draw, jax.random.key(7)).next())
