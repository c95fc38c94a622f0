"""`explain.nan`: the user's line of the first NaN, forward and in gradients; masked `where`s."""

import os
import subprocess
import sys

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax, nn
from tests.harness import upstream

X = np.array([1, 0, 4], np.float32)
NEGATIVE = np.array([1, -1, 4], np.float32)
ZEROS = np.zeros(3, np.float32)
PROGRAMS = {}


def program(*args, line, backward=False, masked=False, turns=(), index=None):
    """Add a program with the number of its line, counted from its `def`, on which NaN arises."""

    def add(f):
        PROGRAMS[f.__name__] = f, args, line, backward, masked, turns, index
        return f

    return add


@program(NEGATIVE, line=2, index=(1,))
def log_of_negative(x):
    y = x * 1
    z = jnp.log(y)
    return jnp.sum(z * 2)


@program(NEGATIVE, line=2, index=(1,))
def constant_where_it_is_negative(x):
    y = x * 1
    z = jnp.where(y < 0, jnp.nan, y)
    return z * 2


@program(X, line=1, index=(1,))
def constant_array(x):
    return x + np.array([1, np.nan, 2], np.float32)


@program(X, line=1, turns=(1,), index=(0,))
def constant_in_a_loop(x):
    return lax.fori_loop(0, 3, lambda i, c: jnp.where(i == 1, jnp.nan, c), x)


@program(ZEROS, line=1)
def zero_by_zero(x):
    return jax.jit(lambda x: x / jnp.sum(x))(x)


@program(NEGATIVE, line=1)
def power(x):
    return jnp.sum(jnp.asarray(x) ** 0.5)


@program(np.array([np.inf, 1], np.float32), line=1)
def infinity_less_infinity(x):
    return nn.softmax(x)


@program(NEGATIVE, line=1)
def arcsine_of_large(x):
    return jnp.arcsin(x * 2)


@program(5.0, line=2, turns=(2,))
def in_scan(x):
    def body(c, x):
        c = jnp.log(c - x)
        return c, c * 2

    return lax.scan(body, x, jnp.arange(3.0))


@program(np.float32([50, 5, 3]), line=3, turns=(2,), index=(0,))
def in_scan_under_vmap(x):
    def one(x):
        def body(c, x):
            return jnp.log(c - x), None

        return lax.scan(body, x, jnp.arange(3.0))[0]

    return jax.jit(jax.vmap(one))(x)


@program(4.0, line=1, turns=(5,))
def in_while(x):
    return lax.while_loop(lambda x: x > -1, lambda x: jnp.sqrt(x - 1.5), x)


@program(4.0, line=2, turns=(3,))
def in_branch_of_loop(x):
    return lax.fori_loop(
        0, 9, lambda i, x: lax.cond(i > 2, lambda x: jnp.log(-x), lambda x: x, x), x
    )


@program(ZEROS, line=1, backward=True)
def gradient_of_norm(x):
    return jax.grad(lambda x: jnp.linalg.norm(x))(x)


@program(np.ones(3, np.float32), line=1, backward=True)
def gradient_of_std(x):
    return jax.grad(jnp.std)(x)


@program(ZEROS, line=3, backward=True, turns=(0,))
def gradient_in_scan(x):
    def loss(x):
        def body(c, _):
            return jnp.sqrt(c) * c, None

        return jnp.sum(lax.scan(body, x, None, length=2)[0])

    return jax.grad(loss)(x)


@program(X, line=1, backward=True, masked=True, index=(1,))
def masked_logarithm(x):
    return jax.grad(lambda x: jnp.sum(jnp.where(x > 0, x * jnp.log(x), 0.0)))(x)


@program(NEGATIVE, line=2, masked=True, index=(1,))
def masked_root(x):
    def loss(x):
        return jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0.0))

    return jax.jit(jax.grad(loss))(x)


@program(X, line=3, backward=True, masked=True)
def masked_on_another_line(x):
    def loss(x):
        y = 1 / x
        z = y * y * 0
        return jnp.sum(jnp.where(x == 0, 0.0, z))

    return jax.grad(loss)(x)


@program(X, line=2, masked=True)
def masked_under_vmap(x):
    def loss(x):
        return jnp.where(x == 0, 0.0, jnp.sin(x) / x)

    return jax.vmap(jax.grad(loss))(x)


@program(X, line=2, backward=True, masked=True)
def masked_norm(x):
    def one(x):
        return jnp.where(x == 0.0, 0.0, jnp.sqrt(x * x))

    return jax.grad(lambda x: jax.vmap(one)(x).sum())(x)


@program(ZEROS, line=1, backward=True)
def gradient_of_power(x):
    return jax.grad(lambda x: jnp.sum(jnp.asarray(x) ** 0.5 * 0))(x)


@program(np.float32([0, 1]), line=2, backward=True)
def gradient_under_vmap(x):
    def one(x):
        return jnp.sqrt(x) * x

    return jax.vmap(jax.grad(one))(x)


@program(ZEROS, line=2, backward=True)
def gradient_of_a_call(x):
    def loss(x):
        return jnp.sum(jax.jit(jnp.sqrt)(x) * x)

    return jax.jit(jax.grad(loss))(x)


@program(ZEROS, line=3, backward=True)
def gradient_in_branch(x):
    def loss(x):
        def root(x):
            return jnp.sum(jnp.sqrt(x) * x)

        return lax.cond(True, root, jnp.sum, x)

    return jax.grad(loss)(x)


@program(ZEROS, line=3, backward=True)
def gradient_under_checkpoint(x):
    @jax.checkpoint
    def loss(x):
        y = jnp.sqrt(x)
        return jnp.sum(y * x)

    return jax.grad(loss)(x)


@program(ZEROS, line=1, backward=True)
def gradient_of_distance(x):
    distance = lambda a, b: jnp.sqrt(jnp.sum((a - b) ** 2))
    return jax.grad(distance)(x, x)


@program(np.float32(0), line=2, backward=True)
def second_derivative(x):
    def f(x):
        return jnp.sqrt(x * x * x * x)

    return jax.grad(jax.grad(f))(x)


@program(np.array([np.inf, -np.inf], np.float32), line=1, index=())
def mean_of_infinities(x):
    return jnp.mean(x)


@program(ZEROS, line=2, backward=True)
def pulled_back(x):
    def f(x):
        return jnp.sqrt(x) * x

    return jax.vjp(f, x)[1](jnp.ones(3))[0]


@program(X, line=3, backward=True, masked=True, turns=(1,))
def masked_in_scan(x):
    def loss(x):
        def body(c, x):
            return c + jnp.where(x > 0, x * jnp.log(x), 0.0), None

        return lax.scan(body, 0.0, x)[0]

    return jax.grad(loss)(x)


@program(X, line=2, backward=True, masked=True)
def masked_by_select(x):
    def loss(x):
        y = x * jnp.log(x)
        return jnp.sum(lax.select(x > 0, y, jnp.zeros(3)))

    return jax.grad(loss)(x)


@program(X, line=3, backward=True, masked=True)
def masked_in_a_call(x):
    @jax.jit
    def entropy(p):
        return -jnp.sum(jnp.where(p > 0, p * jnp.log(p), 0.0))

    return jax.grad(entropy)(x)


@program(5.0, line=1, turns=(2, 1))
def in_scan_of_scan(x):
    inner = lambda c, y: (jnp.log(c - y), y)
    outer = lambda c, _: (lax.scan(inner, c, jnp.arange(2.0))[0] + 4, None)
    return lax.scan(outer, x, None, length=3)[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_of_the_first_nan(name):
    f, args, line, backward, masked, turns, index = PROGRAMS[name]
    with pytest.raises(FloatingPointError, match="NaN") as caught:
        explain.nan(f)(*args)
    error = caught.value
    first = f.__code__.co_firstlineno + 1  # of `def`, behind the decorator
    assert error.line == (__file__, first + line), str(error)
    assert (error.backward, error.masked, error.turns) == (backward, masked, turns)
    assert index is None or error.index == index
    if masked:
        assert "safe = jnp.where(" in str(error)
    assert f"{__file__}:{error.line[1]}" in str(error)


@pytest.mark.parametrize(
    "name", ["masked_logarithm", "masked_root", "masked_under_vmap", "masked_norm"]
)
def test_what_is_to_be_written_has_a_gradient_without_nan(name):
    f, args = PROGRAMS[name][:2]
    with pytest.raises(FloatingPointError) as caught:
        explain.nan(f)(*args)
    safe, _, choice = str(caught.value).split("\n")[-1].strip().partition("; ")
    scope = {"jnp": jnp}
    exec(f"def written(x):\n    {safe}\n    return jnp.sum({choice})", scope)
    assert np.isfinite(jax.grad(scope["written"])(args[0])).all()


def _own_jvp():
    f = jax.custom_jvp(lambda x: x * x)
    return f, f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * _nan(primals[0])))


def _own_vjp():
    f = jax.custom_vjp(lambda x: x * x)
    return f, f.defvjp(lambda x: (x * x, x), lambda x, ct: (ct * _nan(x),))


def _own_forward():
    f = jax.custom_vjp(lambda x: x * x)
    return f, f.defvjp(lambda x: (_nan(x), x), lambda x, ct: (ct * x,))


def _own_batching():
    f = jax.custom_batching.custom_vmap(lambda x: x * x)
    return f, f.def_vmap(lambda size, batched, x: (_nan(x), batched[0]))


def _nan(x):
    return x / x


_NAN = (__file__, _nan.__code__.co_firstlineno + 1)
_CALLS = {
    "": lambda f: lambda x: f(x).sum(),
    "jit": lambda f: jax.jit(lambda x: f(x).sum()),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0].sum(),
    "cond": lambda f: lambda x: lax.cond(x[0] == 0, f, lambda x: x, x).sum(),
    "checkpoint": lambda f: jax.checkpoint(lambda x: f(x).sum()),
}


@pytest.mark.parametrize("call", _CALLS)
@pytest.mark.parametrize("rule", [_own_jvp, _own_vjp, _own_forward, _own_batching])
def test_lines_of_rules_that_the_user_wrote(rule, call):
    f = _CALLS[call](rule()[0])
    run = jax.vmap(f) if rule is _own_batching else jax.value_and_grad(f)
    x = jnp.zeros((2, 3) if rule is _own_batching else 3)
    for each in (run, jax.jit(run)):
        with pytest.raises(FloatingPointError) as caught:
            explain.nan(each)(x)
        assert caught.value.line == _NAN, str(caught.value)


_IN_PARTS = """
import minijax as jax, minijax.numpy as jnp
from minijax import explain, lax

mesh = jax.make_mesh((2, 2), ("i", "j"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
P = jax.sharding.PartitionSpec

def part(x):
    total = lax.psum(x.sum(), "j") - 26
    first = jnp.log(total) * x
    return jnp.sqrt(x - 2) + first * 0

def root(x):
    return jnp.sqrt(x * 0) * 0

def in_parts(f, spec):
    return jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)

def line(f, x, number, backward, index):
    for each in (f, jax.jit(f)):
        try:
            each_result = explain.nan(each)(x)
        except explain.NanError as error:
            found = error.line[1], error.backward, error.index
            assert found == (number, backward, index), (str(error), found)
        else:
            raise AssertionError(each_result)

x = jnp.arange(16.0).reshape(4, 4)
line(in_parts(part, P("i", "j")), x + 1, 11, False, (0, 0))
line(in_parts(part, P("i", "j")), x - 3, 10, False, ())
line(jax.grad(lambda x: in_parts(root, P("i"))(x).sum()), x, 14, True, (0, 0))
line(jax.grad(lambda x: in_parts(jax.checkpoint(root), P("j"))(x).sum()), x, 14, True, (0, 0))
line(jax.pmap(part, axis_name="j"), x - 20, 10, False, ())

def rows(x):
    return lax.scan(
        lambda c, row: (
            jnp.sqrt(c - 3),  # in the second turn
            row,
        ),
        x[1], x[:3],
    )[0] + x

def repeated(x):
    return lax.while_loop(lambda c: (c > 0).any(), lambda c: jnp.sqrt(c - 3), x)

def chosen(x):
    return lax.cond(x.sum() > 3, lambda x: jnp.log(-x), lambda x: x, x)

def counted(x):
    return lax.fori_loop(0, 3, lambda i, c: jnp.log(c) - lax.pmean(c, "i"), x)

def summed(x):
    return lax.scan(
        lambda c, row: (jnp.sqrt(c) + lax.psum(row, "i") * 0 - 5, row), x[3] + 20, x[:3] * 0)[0] + x

def apart(x):  # one device would go on to NaN if its loop had not ended before
    i = lax.axis_index("i")
    c = lax.while_loop(lambda c: c > 0.5 + 2 * i, lambda c: jnp.log(c - i), x[3, 0])
    return jnp.sqrt(c - 2) * x

def within_both(x):
    def turn(c, row):
        c = c - lax.pmax(row, "i")
        return lax.cond(lax.axis_index("i") == 1, lambda c: jnp.log(c), lambda c: c - 100, c), row
    return lax.scan(turn, 20 + x[3], x)[0] + x

def turns(f, number, primitive, turns, checked):
    g = jax.shard_map(f, mesh=mesh, in_specs=P(None, "i"), out_specs=P(None, "i"), check_vma=checked)
    for each in (g, jax.jit(g)):
        try:
            explain.nan(each)(jnp.arange(1.0, 17.0).reshape(4, 4))
        except explain.NanError as error:
            found = error.line[1], error.primitive, error.turns
            assert found == (number, primitive, turns), (str(error), found)
        else:
            raise AssertionError(f)

at = {f: f.__code__.co_firstlineno for f in (rows, repeated, chosen, counted, summed, apart, within_both)}
for checked in (True, False):
    turns(rows, at[rows] + 3, "sqrt", (1,), checked)
    turns(repeated, at[repeated] + 1, "sqrt", (1,), checked)
    turns(chosen, at[chosen] + 1, "log", (), checked)
    turns(counted, at[counted] + 1, "log", (1,), checked)
    turns(summed, at[summed] + 2, "sqrt", (2,), checked)
    turns(apart, at[apart] + 3, "sqrt", (), checked)
    turns(within_both, at[within_both] + 3, "log", (1,), checked)

def outer(x):
    inner = jax.shard_map(counted_over_j, in_specs=P(None, "j"), out_specs=P(None, "j"), axis_names={"j"})
    return inner(x) + lax.axis_index("i")

def counted_over_j(x):
    return lax.fori_loop(0, 3, lambda i, c: jnp.log(c) - lax.pmean(c, "j"), x)

nested = jax.jit(jax.shard_map(
    outer, mesh=mesh, in_specs=P(None, "i"), out_specs=P(None, "i"), axis_names={"i"}))
try:
    explain.nan(nested)(jnp.arange(1.0, 17.0).reshape(4, 4))
except explain.NanError as error:
    assert error.line[1] == counted_over_j.__code__.co_firstlineno + 1, str(error)
    assert (error.primitive, error.turns) == ("log", (1,)), str(error)
else:
    raise AssertionError
"""


def test_lines_within_shard_map_and_pmap(tmp_path):
    script = tmp_path / "parts.py"
    script.write_text(_IN_PARTS)
    env = os.environ | upstream.devices(4)
    ran = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_no_nan_no_error():
    hidden = lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x), 0.0))
    assert explain.nan(hidden)(NEGATIVE) == hidden(NEGATIVE)
    assert explain.nan(lambda x: {"a": x + 1, "b": "text"}["a"])(1) == 2
    assert explain.nan(jax.grad(jnp.sum))(X).tolist() == [1, 1, 1]


def test_a_result_that_is_a_constant():
    with pytest.raises(
        FloatingPointError, match="A result is NaN: it is a constant of the program"
    ):
        explain.nan(lambda x: jnp.float32(jnp.nan))(X)


def test_argument_that_is_nan():
    with pytest.raises(FloatingPointError, match="Argument 1 is NaN already, at index \\(1,\\)"):
        explain.nan(lambda x, y: x + y)(X, np.float32([0, np.nan]).repeat(2)[1:])
    with pytest.raises(FloatingPointError, match="of bfloat16"):
        explain.nan(lambda x: jnp.log(x - 3).astype(jnp.float32))(X.astype(jnp.bfloat16))


_DEBUGGED = {
    "forward": (lambda x: jnp.log(x - 2) * 2, "log", False),
    "masked": (jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0).sum()), "mul", True),
    "in a scan": (lambda x: lax.scan(lambda c, x: (c + jnp.sqrt(x - 1), c), 0.0, x), "sqrt", False),
    "one that is hidden before": (
        lambda x: jnp.log(jnp.where(x > 1, jnp.sqrt(x - 1), -1.0)), "log", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _DEBUGGED)
def test_debug_nans_tells_it(name):
    f, primitive, masked = _DEBUGGED[name]
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        jax.jit(f)(jnp.arange(3.0))
    said = str(caught.value)
    assert said.startswith(f"invalid value (nan) encountered in {primitive} at {__file__}:")
    assert "the first NaN arose at" in said
    assert ("safe = jnp.where(" in said) == masked
    with jax.debug_nans(True):
        jax.jit(lambda x: jnp.where(x > 1, jnp.sqrt(x - 1), 0.0))(jnp.arange(3.0))
