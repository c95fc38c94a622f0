"""Settings that refuse: transfers that are guarded, tracing where no more is to be traced."""

import contextlib
import types

import jax
import numpy as np
import pytest

import minijax
from minijax.runtime import guards

pytestmark = pytest.mark.both_ends

HOST = np.ones(3, np.float32)

SCALARS = {m: m.numpy.float32(2) for m in (minijax, jax)}

TRANSFERS = {
    "jit of a NumPy array": lambda m, f, x: f(HOST),
    "jit of an array": lambda m, f, x: f(x),
    "jit of a number": lambda m, f, x: f(1.0),
    "an array and a number": lambda m, f, x: x + 1,
    "an array and a NumPy array": lambda m, f, x: x + HOST,
    "array of a list": lambda m, f, x: m.numpy.array([1, 2, 3]),
    "asarray": lambda m, f, x: m.numpy.asarray(HOST),
    "device_put": lambda m, f, x: m.device_put(HOST),
    "device_put on a device": lambda m, f, x: m.device_put(HOST, m.devices()[0]),
    "device_get": lambda m, f, x: m.device_get(f(x)),
    "np.asarray": lambda m, f, x: np.asarray(f(x)),
    "repr": lambda m, f, x: repr(f(x)),
    "arange": lambda m, f, x: m.numpy.arange(3),
    "zeros": lambda m, f, x: m.numpy.zeros(3),
    "ones of integers": lambda m, f, x: m.numpy.ones((2, 1), np.int32),
    "ones of many": lambda m, f, x: m.numpy.ones(1 << 17)[:2],
    "zeros of none": lambda m, f, x: m.numpy.zeros((0, 3)),
    "full": lambda m, f, x: m.numpy.full(2, np.inf),
    "full of an array": lambda m, f, x: m.numpy.full(2, SCALARS[m]),
    "zeros_like": lambda m, f, x: m.numpy.zeros_like(x),
    "full_like": lambda m, f, x: m.numpy.full_like(x, 7),
    "lax.full": lambda m, f, x: m.lax.full((2,), 1.0),
    "broadcast": lambda m, f, x: m.lax.broadcast(1.0, (2,)),
    "iota": lambda m, f, x: m.lax.iota(np.int32, 3),
    "zeros within jit": lambda m, f, x: m.jit(lambda a: a + m.numpy.zeros(3))(x),
    "fromfunction": lambda m, f, x: m.numpy.fromfunction(lambda i: i, (3,)),
    "triu_indices": lambda m, f, x: m.numpy.triu_indices(3)[0],
    "an element": lambda m, f, x: x[0],
    "constants": lambda m, f, x: m.jit(lambda a: a + HOST)(x),
    "a list within jit": lambda m, f, x: m.jit(lambda a: a + m.numpy.array([1, 2, 3]))(x),
    "shapes": lambda m, f, x: np.zeros(m.eval_shape(lambda a: a + HOST, x).shape),
    "compiled": lambda m, f, x: m.jit(lambda a: a * HOST).lower(x).compile()(x),
    "a gradient of constants": lambda m, f, x: m.jit(m.grad(lambda a: (a * HOST).sum()))(x),
    "array of arrays": lambda m, f, x: m.numpy.asarray([SCALARS[m], SCALARS[m]]),
    "pure_callback": lambda m, f, x: m.jit(lambda a: m.pure_callback(np.sin, x, a))(x),
    "debug.callback": lambda m, f, x: (m.jit(lambda a: m.debug.callback(print, a))(x), x)[1],
}
LEVELS = ("allow", "disallow", "disallow_explicit", "log")


def outcome(m, call, guard, level):
    x, f = m.numpy.asarray(HOST), m.jit(lambda a: a + 1)
    f(x), call(m, f, x)  # what is cached must be guarded as well
    with getattr(m, guard)(level):
        try:
            return np.asarray(call(m, f, x)).tolist()
        except Exception as error:
            return type(error)


@pytest.mark.parametrize("guard", ["transfer_guard", "transfer_guard_host_to_device"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", TRANSFERS)
def test_transfers(name, level, guard):
    call = TRANSFERS[name]
    assert outcome(minijax, call, guard, level) == outcome(jax, call, guard, level)


ON_GPU = types.SimpleNamespace(_device_assignment=(types.SimpleNamespace(platform="gpu"),))


@pytest.mark.parametrize("level", LEVELS)
def test_reads_from_accelerators(level):
    """Without one here: what a read of an array there asks of the guard."""
    aval = minijax.typeof(HOST)
    with minijax.transfer_guard_device_to_host(level):
        for refused, context in (
            (level.startswith("disallow"), contextlib.nullcontext()),
            (level == "disallow_explicit", guards.asked_for()),  # as device_get does
        ):
            with context:
                said = told(lambda: guards.check_read(aval, ON_GPU))
            assert ("Disallowed device-to-host transfer" in said) is refused


def told(call):
    """The message of the error that a call raises."""
    try:
        call()
        return ""
    except minijax.errors.JaxRuntimeError as error:
        return str(error)


def test_the_other_way_is_free():
    x = minijax.numpy.ones(3)
    with minijax.transfer_guard_device_to_host("disallow"):
        assert (x + 1).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="new enum value must be"), minijax.transfer_guard("never"):
        pass


def test_no_tracing():
    x = minijax.numpy.ones(3)
    known, new = minijax.jit(lambda a: a + 1), minijax.jit(lambda a: a + 2)
    known(x)
    with minijax.no_tracing():
        known(x)
        for call in (new, minijax.grad(lambda a: new(a).sum())):
            with pytest.raises(RuntimeError, match="but 'no_tracing' is set"):
                call(x)
    new(x)


def test_no_tracing_says_where_the_function_is():
    def told(m):
        f = lambda a: a + 1
        with m.no_tracing(), pytest.raises(RuntimeError) as raised:
            m.jit(f)(1.0)
        return str(raised.value)

    assert told(minijax).startswith(told(jax))


EXECUTIONS = {
    "jit": lambda m, f, x: f(x),
    "eager": lambda m, f, x: x + 1,
    "numpy": lambda m, f, x: m.numpy.ones(3),
    "gradient": lambda m, f, x: m.grad(lambda y: m.numpy.sum(y * y))(x),
    "indexing": lambda m, f, x: x[0],
    "scan": lambda m, f, x: m.lax.scan(lambda c, y: (c + y, y * c), 0.0, x)[1],
    "abstract": lambda m, f, x: m.eval_shape(f, x).shape,
    "jaxpr": lambda m, f, x: str(m.make_jaxpr(f)(x)),
    "compilation": lambda m, f, x: f.lower(x).compile() and None,
    "transfer": lambda m, f, x: m.device_put(1.0).tolist(),
    "reading": lambda m, f, x: x.tolist(),
}


@pytest.mark.parametrize("name", EXECUTIONS)
def test_no_execution(name):
    found = []
    for m in (minijax, jax):
        x, f = m.numpy.asarray(HOST), m.jit(lambda a: a + 1)
        EXECUTIONS[name](m, f, x)  # what is compiled is not executed either
        try:
            with m.no_execution():
                found.append(EXECUTIONS[name](m, f, x))
        except RuntimeError as error:
            found.append(str(error).split(" function ")[0] + str(error).split("),")[1])
    assert str(found[0]) == str(found[1])


STATIC = {
    "beyond": lambda m, x: x[5],
    "far below": lambda m, x: x[-5],
    "below": lambda m, x: x[-2],
    "second": lambda m, x: x[1, 4],
    "after an ellipsis": lambda m, x: x[..., 4],
    "after None": lambda m, x: x[None, 4],
    "of NumPy": lambda m, x: x[np.int32(4)],
    "of an array": lambda m, x: x[m.numpy.int32(4)],
    "in jit": lambda m, x: m.jit(lambda x: x[4])(x),
    "several": lambda m, x: x[np.array([4])],
    "slice": lambda m, x: x[1:7],
    "set": lambda m, x: x.at[5].set(1),
    "add": lambda m, x: x.at[5].add(1, mode="drop"),
    "fill": lambda m, x: x.at[5].get(mode="fill"),
    "clip": lambda m, x: x.at[5].get(mode="clip"),
    "take": lambda m, x: m.numpy.take(x, 5),
}


@pytest.mark.parametrize("name", STATIC)
def test_static_indices_are_checked(name):
    found = []
    for m in (minijax, jax):
        x = m.numpy.arange(9.0).reshape(3, 3)
        STATIC[name](m, x)
        m.config.update("jax_check_static_indices", True)
        try:
            found.append(np.asarray(STATIC[name](m, x)).tolist())
        except IndexError as error:
            found.append(str(error))
        finally:
            m.config.update("jax_check_static_indices", False)
    assert str(found[0]) == str(found[1])


def test_functions_are_traced_for_each_value_of_a_user_context():
    for m in (minijax, jax):
        context, traced = m.make_user_context("none"), []
        f = m.jit(lambda x, context=context, traced=traced: traced.append(context.value) or x)
        values = ["none", "a", "a", "b", "none"]
        for value in values:
            if value == "none":
                f(1.0)
                continue
            with context(value):
                assert context.value == value
                f(1.0)
                with context([1]):
                    assert context.value == [1]
        assert traced == ["none", "a", "b"] and context.value == "none"
