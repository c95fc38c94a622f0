"""Settings that refuse: transfers that are guarded, tracing where no more is to be traced."""

import jax
import numpy as np
import pytest

import minijax

HOST = np.ones(3, np.float32)

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
    "an element": lambda m, f, x: x[0],
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


def test_the_other_way_is_free():
    x = minijax.numpy.ones(3)
    with minijax.transfer_guard_device_to_host("disallow"):
        assert (x + 1).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="must be in"), minijax.transfer_guard("never"):
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
